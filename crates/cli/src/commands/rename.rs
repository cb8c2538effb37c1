//! `foldline rename`: gives a session a title, or takes it away.

use foldline_session_model::EntryDraft;
use foldline_session_store::DiskStore;
use serde::Serialize;

use crate::commit;
use crate::error::{CommandError, ErrorKind, Status};
use crate::output::{self, BOLD, Format, GOOD};
use crate::session::{Damage, Session};

/// Titles are lines of listings.
const LONGEST: usize = 200;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "The title is one entry more (`session_info`), which pi and its relatives read too.

Examples:
  foldline rename latest 'Fencing tokens for the lease'
  foldline rename session.jsonl ''"
)]
pub(crate) struct Args {
    /// The session: a path, the start of an id, or `latest`.
    session: String,
    /// The title, one line; an empty one takes the title away.
    title: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    outcome: &'static str,
    title: Option<String>,
    old_title: Option<String>,
    entry_id: Option<String>,
    backup_path: Option<String>,
}

pub(crate) fn run(args: &Args, format: Format) -> Result<Status, CommandError> {
    let title = args.title.trim();
    if title.chars().any(char::is_control) || title.chars().count() > LONGEST {
        let message = format!("a title is one line of at most {LONGEST} characters");
        return Err(CommandError::new(ErrorKind::Usage, message).hint("shorten it"));
    }
    let store = DiskStore::new();
    let session = Session::open(&store, &args.session, Damage::Warn)?;
    let log = &session.log;
    let old_title = log.name().as_str().map(str::to_owned);
    let mut document = Document {
        outcome: "skipped",
        title: (!title.is_empty()).then(|| title.to_owned()),
        old_title,
        entry_id: None,
        backup_path: None,
    };
    if document.title != document.old_title {
        let (entry, backup) = commit::append(&session, &store, &EntryDraft::session_info(title))?;
        document.outcome = "committed";
        document.entry_id = Some(entry.to_string());
        document.backup_path = backup.map(|path| path.display().to_string());
    }
    output::result(format, &document, || match (document.outcome, &document.title) {
        ("committed", Some(title)) => format!("{GOOD}Renamed{GOOD:#} to {BOLD}{title}{BOLD:#}\n"),
        ("committed", None) => format!("{GOOD}Took the title away{GOOD:#}\n"),
        (_, Some(_)) => "Nothing was changed: that is its title\n".to_owned(),
        (_, None) => "Nothing was changed: it has no title\n".to_owned(),
    });
    Ok(Status::Done)
}

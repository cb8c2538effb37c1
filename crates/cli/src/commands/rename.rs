//! `foldline rename`: gives a session a title, or takes it away.

use std::path::PathBuf;

use foldline_session_store::DiskStore;
use serde::Serialize;

use crate::door::{Door, session_error};
use crate::error::{CommandError, ErrorKind, Status};
use crate::output::{self, BOLD, Format, GOOD};
use crate::progress::Progress;
use crate::session::{Damage, Session};
use crate::setup::Setup;

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
    session: PathBuf,
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
    let old_title = session.log.name().as_str().map(str::to_owned);
    let mut document = Document {
        outcome: "skipped",
        title: (!title.is_empty()).then(|| title.to_owned()),
        old_title,
        entry_id: None,
        backup_path: None,
    };
    if document.title != document.old_title {
        let door = Door::of(session, Setup::without_model()?.options_without_models())?;
        let progress = Progress::start("Renaming the session");
        let renamed = if title.is_empty() {
            door.run(&progress, door.session.clear_name())
        } else {
            door.run(&progress, door.session.set_name(title))
        };
        drop(progress);
        let renamed = renamed.map_err(|e| session_error(&e))?;
        document.outcome = "committed";
        document.entry_id = Some(renamed.entry_id.to_string());
        document.backup_path = renamed.backup_path.map(|path| path.display().to_string());
    }
    output::result(format, &document, || match (document.outcome, &document.title) {
        ("committed", Some(title)) => format!("{GOOD}Renamed{GOOD:#} to {BOLD}{title}{BOLD:#}\n"),
        ("committed", None) => format!("{GOOD}Took the title away{GOOD:#}\n"),
        (_, Some(_)) => "Nothing was changed: that is its title\n".to_owned(),
        (_, None) => "Nothing was changed: it has no title\n".to_owned(),
    });
    Ok(Status::Done)
}

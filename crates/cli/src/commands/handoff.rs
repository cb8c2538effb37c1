//! `foldline handoff`: a document that tells the next session where the work stands, and that session.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use foldline_agent_session::{HandoffDocument, HandoffOptions, SessionError};
use foldline_session_store::{DiskStore, Layout};
use serde::Serialize;

use crate::door::{Door, session_error};
use crate::error::{CommandError, ErrorKind, Status};
use crate::model::ModelArgs;
use crate::new_file;
use crate::output::{self, BOLD, Format, GOOD};
use crate::progress::Progress;
use crate::session::{Damage, Session};
use crate::setup::{Purpose, Setup};

#[derive(Debug, clap::Args)]
#[command(
    after_help = "The old session is not changed. Without a model the document is made of quotes and counts.

Examples:
  foldline handoff latest
  foldline handoff latest --instructions 'the release is next' --output next.jsonl
  foldline handoff latest --output - > HANDOFF.md"
)]
pub(crate) struct Args {
    /// The session: a path, the start of an id, or `latest`.
    session: PathBuf,
    #[command(flatten)]
    model: ModelArgs,
    /// What the document should look at above all.
    #[arg(long, value_name = "T")]
    instructions: Option<String>,
    /// The file of the new session [default: beside the old one, under a new name]; it must not exist. `-` prints
    /// the document and begins no session.
    #[arg(long, value_name = "FILE|-")]
    output: Option<PathBuf>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct HandoffResult<'d> {
    outcome: &'static str,
    new_session: Option<String>,
    document: Option<&'d str>,
    /// Who wrote it.
    model: &'d str,
}

pub(crate) fn run(args: &Args, format: Format) -> Result<Status, CommandError> {
    let only_document = args.output.as_deref() == Some(Path::new("-"));
    if let Some(output) = args.output.as_deref().filter(|_| !only_document) {
        new_file::check(output)?;
    }
    // Before anything is read: a model that cannot be asked is not worth waiting for.
    let setup = Setup::new(&args.model, Purpose::Work)?;
    let options = setup.options()?;
    let session = Session::open(&DiskStore::new(), &args.session, Damage::Warn)?;
    let output = match &args.output {
        // Another agent's folder is not ours to write into.
        None if session.imported_from.is_some() => Some(among_ours(&session)?),
        output => output.clone().filter(|_| !only_document),
    };
    let door = Door::of_any(session, options)?;
    let wanted = HandoffOptions {
        focus: args.instructions.clone(),
        planner: Some(setup.planner()),
        output,
        ..HandoffOptions::default()
    };
    let progress = Progress::start("Writing the handoff");
    let done: Result<(HandoffDocument, Option<PathBuf>), SessionError> = if only_document {
        door.run(&progress, door.session.handoff_document(wanted))
            .map(|document| (document, None))
    } else {
        door.run(&progress, door.session.handoff(wanted))
            .map(|done| (done.document, Some(done.new_session)))
    };
    drop(progress);
    let (written, new_session) = match done {
        Ok(done) => done,
        Err(SessionError::Cancelled { .. }) => {
            let name = setup.name();
            let document = HandoffResult {
                outcome: "cancelled",
                new_session: None,
                document: None,
                model: &name,
            };
            output::ended(format, &document, "Handoff cancelled");
            return Ok(Status::Ended(ErrorKind::Cancelled));
        }
        Err(error) => return Err(session_error(&error)),
    };
    let document = HandoffResult {
        outcome: "committed",
        new_session: new_session.map(|path| path.display().to_string()),
        document: Some(&written.text),
        model: &written.planner,
    };
    match &document.new_session {
        None => output::content(
            format,
            &document,
            format!("{}\n", written.text.trim_end()).as_bytes(),
        ),
        Some(path) => output::result(format, &document, || {
            format!(
                "{GOOD}Handed off{GOOD:#} to {BOLD}{path}{BOLD:#}\n  by      {}\n  source  unchanged\n",
                document.model
            )
        }),
    }
    Ok(Status::Done)
}

/// A new file among our sessions of the project.
fn among_ours(session: &Session) -> Result<PathBuf, CommandError> {
    let failed = |e: &dyn std::error::Error| CommandError::from_error(ErrorKind::Failed, e);
    let layout = Layout::from_environment().map_err(|e| failed(&e))?;
    let id = uuid::Uuid::now_v7().to_string();
    layout
        .new_session(Path::new(&session.log.header().cwd), SystemTime::now(), &id)
        .map_err(|e| failed(&e))
}

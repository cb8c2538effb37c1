//! `foldline show`: one entry, or the original of a pruned one, whole.

use foldline_session_store::DiskStore;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::args;
use crate::error::{CommandError, ErrorKind, Status};
use crate::output::{self, Format};
use crate::session::{Damage, Session};
use crate::view;

#[derive(Serialize)]
struct EntryDocument<'e> {
    entry: &'e RawValue,
}

#[derive(Serialize)]
struct TextDocument<'t> {
    text: &'t str,
}

pub(crate) fn run(args: &args::Show, format: Format) -> Result<Status, CommandError> {
    let session = Session::open(&DiskStore::new(), &args.session, Damage::Warn)?;
    let original = args.id.strip_prefix("artifact://entry/");
    let id = original.unwrap_or(&args.id);
    let Some(ix) = session.log.find(id) else {
        return Err(CommandError::new(
            ErrorKind::Failed,
            format!("entry {id} not found in {}", session.path.display()),
        )
        .hint("`foldline context SESSION --json` lists the entries of the context"));
    };
    if original.is_some() {
        let Some(message) = session.log.message(ix) else {
            return Err(CommandError::new(
                ErrorKind::Failed,
                format!("entry {id} is no message"),
            ));
        };
        let text = view::plain(&message);
        output::result(format, &TextDocument { text: &text }, || format!("{text}\n"));
        return Ok(Status::Done);
    }
    let line = String::from_utf8_lossy(session.log.raw_line(ix));
    let entry: &RawValue = serde_json::from_str(&line)
        .map_err(|e| CommandError::new(ErrorKind::Failed, format!("entry {id} is no valid JSON: {e}")))?;
    output::result(format, &EntryDocument { entry }, || format!("{line}\n"));
    Ok(Status::Done)
}

//! `foldline show`: one entry, or the original of a pruned one, whole.

use foldline_pruning::Original;
use foldline_session_model::EntryIx;
use foldline_session_store::{ArtifactRef, DiskStore, SessionStore as _};
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
    let store = DiskStore::new();
    let session = Session::open(&store, &args.session, Damage::Warn)?;
    let show_bytes = |bytes: &[u8]| {
        let text = &String::from_utf8_lossy(bytes);
        output::content(format, &TextDocument { text }, bytes);
        Ok(Status::Done)
    };
    let show_text = |text: &str| show_bytes(text.as_bytes());
    let id = match ArtifactRef::parse(&args.id) {
        Some(ArtifactRef::Stored(id)) => {
            let bytes = store
                .artifacts(&session.path)
                .read(id)
                .map_err(|e| CommandError::from_error(ErrorKind::Failed, &e))?;
            return show_bytes(&bytes);
        }
        Some(ArtifactRef::Entry(id)) => {
            let ix = find(&session, id.as_str())?;
            if let Some(original) = Original::of(&session.log, ix) {
                return show_text(original.as_str());
            }
            let Some(message) = session.log.message(ix) else {
                let message = format!("entry {id} is no message");
                return Err(CommandError::new(ErrorKind::Failed, message));
            };
            return show_text(&view::plain(&message));
        }
        None => &args.id,
    };
    let ix = find(&session, id)?;
    let line = String::from_utf8_lossy(session.log.raw_line(ix));
    let entry: &RawValue = serde_json::from_str(&line)
        .map_err(|e| CommandError::new(ErrorKind::Failed, format!("entry {id} is no valid JSON: {e}")))?;
    let line = [session.log.raw_line(ix), b"\n"].concat();
    output::content(format, &EntryDocument { entry }, &line);
    Ok(Status::Done)
}

fn find(session: &Session, id: &str) -> Result<EntryIx, CommandError> {
    session.log.find(id).ok_or_else(|| {
        let message = format!("entry {id} not found in {}", session.path.display());
        CommandError::new(ErrorKind::Failed, message)
            .hint("`foldline context SESSION --json` lists the entries of the context")
    })
}

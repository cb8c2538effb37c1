//! `foldline export`: what the model would see now, as another agent's session or as a document.

use foldline_session_model::export::{self, Exported, Target};
use foldline_session_model::tree::Leaf;
use foldline_session_store::DiskStore;
use serde::Serialize;

use crate::args::{self, ExportFormat};
use crate::commit;
use crate::error::{CommandError, ErrorKind, Status};
use crate::new_file;
use crate::output::{self, Format, GOOD};
use crate::session::{Damage, Session};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document<'d> {
    outcome: &'static str,
    agent: &'static str,
    /// The id of the exported session; a document has none.
    session_id: Option<&'d str>,
    output: Option<String>,
    /// The export itself, if it goes to no file.
    text: Option<&'d str>,
    messages: usize,
    dropped: Vec<DroppedRow>,
}

#[derive(Serialize)]
struct DroppedRow {
    what: &'static str,
    count: u32,
}

pub(crate) fn run(args: &args::Export, format: Format) -> Result<Status, CommandError> {
    if let Some(output) = &args.output {
        new_file::check(output)?;
    }
    let session = Session::open(&DiskStore::new(), &args.session, Damage::Warn)?;
    let context = session.context(&Leaf::Last)?;
    // A session of its own, so that no file of the other agent is taken for it.
    let id = uuid::Uuid::new_v4().to_string();
    let timestamp = commit::now();
    let target = Target {
        session_id: &id,
        cwd: &session.log.header().cwd,
        timestamp: &timestamp,
    };
    let exported = match args.to {
        ExportFormat::Markdown => Exported {
            text: export::markdown(&context),
            omitted: Vec::new(),
        },
        ExportFormat::ClaudeCode => export::claude_code(&context, &target),
        ExportFormat::Codex => export::codex(&context, &target),
        ExportFormat::Pi => export::pi(&context, &target),
    };
    if args.to != ExportFormat::Markdown && (context.items.is_empty() || exported.text.is_empty()) {
        let message = format!("{} has no message that could be exported", session.path.display());
        return Err(CommandError::new(ErrorKind::Failed, message)
            .hint("what the model would see is empty; `foldline tree SESSION` lists the entries"));
    }
    for omitted in &exported.omitted {
        output::warning(&format!(
            "left out: {} {}",
            omitted.count,
            omitted.part.describe()
        ));
    }
    if let Some(output) = &args.output {
        new_file::write(output, &exported.text)?;
    }
    let document = Document {
        outcome: "committed",
        agent: args.to.as_str(),
        session_id: (args.to != ExportFormat::Markdown).then_some(&*id),
        output: args.output.as_ref().map(|path| path.display().to_string()),
        text: args.output.is_none().then_some(&*exported.text),
        messages: context.items.len(),
        dropped: exported
            .omitted
            .iter()
            .map(|omitted| DroppedRow {
                what: omitted.part.describe(),
                count: omitted.count,
            })
            .collect(),
    };
    match &document.output {
        Some(path) => output::result(format, &document, || {
            // The other agent may want a file of that name.
            let session = document
                .session_id
                .map_or_else(String::new, |id| format!("  session {id}\n"));
            format!(
                "{GOOD}Exported{GOOD:#} {} messages to {path}\n{session}",
                document.messages
            )
        }),
        None => {
            if let (Format::Human, Some(id)) = (format, document.session_id) {
                output::note(&format!("session {id}"));
            }
            output::content(format, &document, exported.text.as_bytes());
        }
    }
    Ok(Status::Done)
}

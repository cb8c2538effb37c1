//! `foldline check`: every damage of a session file.

use foldline_session_store::DiskStore;
use serde::Serialize;

use crate::args;
use crate::error::{CommandError, Status};
use crate::output::{self, BOLD, Format, GOOD, grouped};
use crate::session::{Damage, Session};

#[derive(Serialize)]
struct Document {
    entries: usize,
    damaged: Vec<DamageRow>,
    repaired: bool,
}

#[derive(Serialize)]
struct DamageRow {
    line: u32,
    offset: u64,
    kind: &'static str,
    message: String,
}

pub(crate) fn run(args: &args::Check, format: Format) -> Result<Status, CommandError> {
    let session = Session::open(&DiskStore::new(), &args.session, Damage::Silent)?;
    let damaged: Vec<DamageRow> = session
        .log
        .damage()
        .iter()
        .map(|damage| DamageRow {
            line: damage.line.get(),
            offset: damage.offset.get(),
            kind: damage.kind.name(),
            message: damage.kind.to_string(),
        })
        .collect();
    let status = if damaged.is_empty() {
        Status::Done
    } else {
        Status::Damaged
    };
    let document = Document {
        entries: session.log.len(),
        damaged,
        repaired: false,
    };
    output::result(format, &document, || text(&session, &document));
    Ok(status)
}

fn text(session: &Session, document: &Document) -> String {
    let path = session.path.display();
    let entries = grouped(document.entries as u64);
    if document.damaged.is_empty() {
        return format!("{GOOD}{path}{GOOD:#}: {entries} entries, no damage\n");
    }
    let mut out = format!("{BOLD}{path}{BOLD:#}: {entries} entries can be read\n");
    for row in &document.damaged {
        out.push_str(&format!("  line {}: {} [{}]\n", row.line, row.message, row.kind));
    }
    out
}

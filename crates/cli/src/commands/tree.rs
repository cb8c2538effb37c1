//! `foldline tree`: the entries of a session as the tree that they form.

mod drawing;
pub(super) mod outline;
mod row;

use foldline_session_model::EntryIx;
use foldline_session_model::fold::Profile;
use foldline_session_model::tokens::{Heuristic, TokenCounter as _};
use foldline_session_model::tree::{Labels, Leaf};
use foldline_session_store::DiskStore;
use serde::Serialize;

use crate::args;
use crate::error::{CommandError, Status};
use crate::output::{self, Format};
use crate::session::{Damage, Session};

use drawing::Fold;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document<'d> {
    session_id: &'d str,
    /// Where the session stands; null before the first entry.
    leaf_id: Option<&'d str>,
    /// What the model would see there.
    context_tokens: u64,
    entries: Vec<EntryRow<'d>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct EntryRow<'d> {
    id: &'d str,
    parent_id: Option<&'d str>,
    #[serde(rename = "type")]
    kind: String,
    /// Null for entries that say nothing to the model.
    role: Option<String>,
    tokens: u64,
    label: Option<&'d str>,
    timestamp: &'d str,
    /// Whether it is on the path to the leaf.
    active: bool,
}

pub(crate) fn run(args: &args::Tree, format: Format) -> Result<Status, CommandError> {
    let session = Session::open(&DiskStore::new(), &args.session, Damage::Warn)?;
    let log = &session.log;
    let leaf = log.stands_at();
    let labels = log.labels();
    let context = session.context(&Leaf::Last)?;
    let context_tokens = context
        .items
        .iter()
        .filter(|item| item.message.is_visible())
        .map(|item| Heuristic.message(&item.message).get())
        .sum();
    let mut active = vec![false; log.len()];
    for ix in leaf.map(|leaf| log.path(leaf)).unwrap_or_default() {
        if let Some(active) = active.get_mut(ix.index()) {
            *active = true;
        }
    }
    if format == Format::Human {
        let fold = if args.all { Fold::Nothing } else { Fold::LongRuns };
        let text = drawing::draw(&session, &labels, &active, context_tokens, fold, output::width());
        output::result(format, &(), || text);
        return Ok(Status::Done);
    }
    let entries = log
        .entries()
        .map(|ix| entry_row(&session, &labels, &active, ix))
        .collect();
    let document = Document {
        session_id: &log.header().id,
        leaf_id: leaf.map(|ix| log.id(ix)),
        context_tokens,
        entries,
    };
    output::result(format, &document, String::new);
    Ok(Status::Done)
}

fn entry_row<'d>(session: &'d Session, labels: &'d Labels<'_>, active: &[bool], ix: EntryIx) -> EntryRow<'d> {
    let log = &session.log;
    let message = log.own_message(ix, Profile::Auto).ok().flatten();
    EntryRow {
        id: log.id(ix),
        parent_id: log.parent_id(ix),
        kind: log.kind_text(ix).into_owned(),
        role: message.as_ref().map(|m| m.role().to_owned()),
        tokens: message.as_ref().map_or(0, |m| Heuristic.message(m).get()),
        label: labels.of(ix),
        timestamp: log.timestamp(ix),
        active: active.get(ix.index()).copied().unwrap_or_default(),
    }
}

//! Compacts a session without a model: the program of docs/rust.md.

use std::error::Error;
use std::io::Write as _;
use std::path::Path;
use std::time::SystemTime;

use foldline_compaction_core::verbatim::{self, Demand, Parameters, RangePlan, Rung, SmallRegion};
use foldline_session_model::fold::Profile;
use foldline_session_model::log::{SessionLog, Trust};
use foldline_session_model::tokens::Heuristic;
use foldline_session_model::tree::Leaf;
use foldline_session_model::{EntryDraft, Envelope};
use foldline_session_store::{DiskStore, Durability, Expected, OpenOptions, Owner, SessionStore};

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("name a session file")?;
    writeln!(std::io::stdout(), "{}", compact(Path::new(&path))?)?;
    Ok(())
}

/// Appends a compaction to a session and says what it did.
pub(crate) fn compact(path: &Path) -> Result<String, Box<dyn Error>> {
    // Read: the log, and the context that a model would see at its end.
    let store = DiskStore::new();
    let snapshot = store.read(path)?;
    let stamp = snapshot.stamp();
    let log = SessionLog::load(snapshot, Trust::Validated)?;
    let context = log.context(&Leaf::Last, Profile::Auto)?;

    // Plan: values in, values out. Nothing here touches a file.
    let parameters = Parameters::with_query(context.last_user_text().unwrap_or_default());
    let preparation = verbatim::prepare(&context, parameters, SmallRegion::Refuse, &Heuristic)?;
    let chosen = verbatim::extractive(&preparation);
    let plan = RangePlan {
        dropped: chosen.dropped,
        ..RangePlan::new(chosen.ranges, Rung::Extractive)
    };
    let before = preparation.tokens_before();
    let compaction = verbatim::finish(&preparation, &plan, Demand::Any, before, &Heuristic)?;

    // Commit: one line more, if the session is still the one that was read.
    let envelope = Envelope {
        id: "0badcafe".into(),
        parent: log.leaf().map(|leaf| log.entry_id(leaf)),
        timestamp: "2026-11-30T12:00:00.000Z".to_owned(),
    };
    let line = EntryDraft::compaction(&compaction.draft).line(&envelope);
    let options = OpenOptions {
        owner: Owner::this_process(),
        now: SystemTime::now(),
        expected: Expected::Exactly(stamp),
    };
    let mut writer = store.open(path, &options)?;
    writer.backup("compact", SystemTime::now())?;
    writer.append(&line, Durability::Commit)?;
    let stats = &compaction.stats;
    Ok(format!(
        "{} of {} lines kept, {} → {} tokens",
        stats.lines_kept, stats.lines_before, stats.tokens_before, stats.tokens_after
    ))
}

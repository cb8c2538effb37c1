//! Work that goes in a circle: the same files are read again after each compaction, and nothing is written (R02,
//! FB-034).

use foldline_session_model::entry::EntryKind;
use foldline_session_model::fold::Context;
use foldline_session_model::message::Message;
use rustc_hash::FxHashSet;

use crate::file_ops::{FailedCalls, FileOps, ToolTable};

/// So many compactions in a row, with nothing written between them, are a circle if the reads repeat.
const LEAST_COMPACTIONS: usize = 3;
/// So much of what is read must have been read before, in percent.
const REPEATED_PERCENT: usize = 80;

/// Work that goes in a circle. Nothing should be continued by itself then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{compactions} compactions in a row without a change to any file, and {repeated} of {reads} files were read again: \
     the context is too small for this task"
)]
pub struct Livelock {
    /// The compactions in a row.
    pub compactions: usize,
    /// Files that were read in a round, summed over the rounds between these compactions.
    pub reads: usize,
    /// Those of them that an earlier round had read too.
    pub repeated: usize,
}

/// What was done between two compactions.
#[derive(Default)]
struct Round {
    read: FxHashSet<String>,
    wrote: bool,
}

/// Looks at a path for a circle. Ask right after a compaction. A log of a file's end only knows the compactions that are
/// in it.
pub fn livelock(context: &Context<'_>, tools: &ToolTable) -> Option<Livelock> {
    let rounds = rounds(context, tools);
    // The newest compactions without a change between them; the round before the first of them may have written.
    let quiet = rounds.iter().rev().take_while(|round| !round.wrote).count();
    let counted = (quiet + 1).min(rounds.len());
    if counted < LEAST_COMPACTIONS {
        return None;
    }
    let mut known = FxHashSet::default();
    let (mut reads, mut repeated) = (0, 0);
    for (at, round) in rounds.iter().enumerate() {
        if at > rounds.len() - counted {
            reads += round.read.len();
            repeated += round.read.iter().filter(|path| known.contains(*path)).count();
        }
        known.extend(&round.read);
    }
    (reads > 0 && repeated * 100 >= reads * REPEATED_PERCENT).then_some(Livelock {
        compactions: counted,
        reads,
        repeated,
    })
}

/// The rounds of a path that a compaction ended, oldest first.
fn rounds(context: &Context<'_>, tools: &ToolTable) -> Vec<Round> {
    let mut rounds = Vec::new();
    let mut messages: Vec<Message<'_>> = Vec::new();
    for ix in &context.path {
        match context.log.kind(*ix) {
            EntryKind::Compaction => {
                let failed = FailedCalls::of(messages.iter());
                let mut ops = FileOps::default();
                ops.add_calls(messages.iter(), &failed, tools);
                rounds.push(Round {
                    read: ops.read().into_iter().map(str::to_owned).collect(),
                    wrote: !ops.lists().modified_files.is_empty(),
                });
                messages.clear();
            }
            EntryKind::Message => messages.extend(context.log.context_message(*ix)),
            _ => {}
        }
    }
    rounds
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Rows, context};

    /// Rounds of calls, each ended by a compaction: `r` reads a file, `w` writes it.
    fn found(rounds: &[&[(&str, &str)]]) -> Option<Livelock> {
        let mut rows = Rows::new().user("u", "go");
        for (round, calls) in rounds.iter().enumerate() {
            for (at, (tool, path)) in calls.iter().enumerate() {
                let id = format!("{round}-{at}");
                rows = rows
                    .call(
                        &format!("a{id}"),
                        &format!("c{id}"),
                        tool,
                        &format!("{{\"path\":\"{path}\"}}"),
                    )
                    .result(&format!("t{id}"), &format!("c{id}"), tool, "text");
            }
            rows = rows.compaction(&format!("C{round}"), None, "Notes.");
        }
        let log = rows.log();
        livelock(&context(&log), &ToolTable::default())
    }

    const READS: &[(&str, &str)] = &[("read", "a.rs"), ("read", "b.rs"), ("read", "c.rs")];

    #[test]
    fn fb_034_reading_the_same_files_three_times_is_a_circle() {
        assert_eq!(found(&[READS, READS]), None);
        let circle = found(&[READS, READS, READS]).unwrap();
        assert_eq!(
            circle,
            Livelock {
                compactions: 3,
                reads: 6,
                repeated: 6
            }
        );
        assert!(circle.to_string().contains("6 of 6 files were read again"));
        // A change between them is progress; one before them is not.
        let wrote: &[_] = &[("read", "a.rs"), ("write", "d.rs")];
        assert_eq!(found(&[READS, READS, wrote]), None);
        assert_eq!(
            found(&[READS, wrote, READS, READS]).map(|l| l.compactions),
            Some(3)
        );
        // New files are progress too.
        let others: &[_] = &[("read", "d.rs"), ("read", "e.rs")];
        assert_eq!(found(&[READS, others, READS]), None);
        assert_eq!(found(&[&[], &[], &[]]), None);
    }
}

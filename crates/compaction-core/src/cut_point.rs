//! Where the kept tail of a compaction begins (seed 000, "Boundary and cut-point logic" and "Split-turn handling"; spec
//! "Compaction core", 3).

use foldline_session_model::entry::EntryKind;
use foldline_session_model::fold::Context;
use foldline_session_model::log::SessionLog;
use foldline_session_model::message::{Content, Message};
use foldline_session_model::tokens::TokenCounter;
use foldline_session_model::{ByteLen, EntryIx, Tokens};

/// One entry of a path, as far as cutting needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// What the entry is.
    pub kind: StepKind,
    /// The estimate of its message; 0 without one.
    pub tokens: Tokens,
    /// The length of its pictures as they are encoded.
    pub media: ByteLen,
}

/// How much a tail may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepBudget {
    /// The tokens at which the tail is long enough.
    pub tokens: Tokens,
    /// The bytes of pictures that the tail never exceeds: what they cost in tokens says nothing about the size of a
    /// request (R16).
    pub media: ByteLen,
}

impl From<Tokens> for KeepBudget {
    /// Any pictures.
    fn from(tokens: Tokens) -> Self {
        Self {
            tokens,
            media: ByteLen(u64::MAX),
        }
    }
}

/// What an entry is for a cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StepKind {
    /// The user spoke: a turn begins, and a cut before it is a clean one.
    User,
    /// Something else that begins a turn: a command of the user, a message of a program, the summary of a branch.
    TurnStart,
    /// A message that a tail may begin with, within a turn.
    CutPoint,
    /// A message that a tail never begins with: tool results above all.
    Inner,
    /// No message.
    Metadata,
    /// A compaction.
    Compaction,
}

/// Where to cut a list of steps. Positions count in that list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CutPoint {
    /// The first kept entry: the cut, or metadata right before it.
    pub first_kept: usize,
    /// The first kept message.
    pub cut: usize,
    /// Where the turn begins that the cut splits; `None` for a clean cut.
    pub turn_start: Option<usize>,
    /// Whether the budget was exceeded behind the last cut point, by messages that no tail begins with.
    pub crossing: Crossing,
}

/// Where the walk from the end met the budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crossing {
    /// Nowhere: everything fits.
    None,
    /// At or before a cut point.
    Ordinary,
    /// Behind the last cut point: the tail is larger than the budget.
    Trailing,
}

impl Step {
    /// The step of an entry as it stands in the log; entries that cannot be read are metadata.
    pub fn of_entry(log: &SessionLog, ix: EntryIx, counter: &dyn TokenCounter) -> Self {
        let kind = match log.kind(ix) {
            EntryKind::Compaction => {
                return Self::without_message(StepKind::Compaction);
            }
            kind => kind,
        };
        match log.context_message(ix) {
            Some(message) => Self::of_message(kind, &message, counter),
            None => Self::without_message(StepKind::Metadata),
        }
    }

    const fn without_message(kind: StepKind) -> Self {
        Self {
            kind,
            tokens: Tokens::ZERO,
            media: ByteLen(0),
        }
    }

    fn of_message(kind: EntryKind, message: &Message<'_>, counter: &dyn TokenCounter) -> Self {
        Self {
            // Entries of these types begin a turn whatever they hold.
            kind: match kind {
                EntryKind::CustomMessage | EntryKind::BranchSummary => StepKind::TurnStart,
                _ => kind_of(message),
            },
            tokens: counter.message(message),
            media: message.content().map_or(ByteLen(0), Content::media_bytes),
        }
    }
}

/// The steps of a part of a context's path, with prunes and revocations applied. The items of the context in that
/// part are counted; `item` is the first of them.
pub(crate) fn steps_of(
    context: &Context<'_>,
    path: &[EntryIx],
    mut item: usize,
    counter: &dyn TokenCounter,
) -> Vec<Step> {
    path.iter()
        .map(|ix| match context.log.kind(*ix) {
            EntryKind::Compaction => Step::without_message(StepKind::Compaction),
            kind => match context.items.get(item) {
                Some(found) if found.source == *ix => {
                    item += 1;
                    Step::of_message(kind, &found.message, counter)
                }
                _ => Step::without_message(StepKind::Metadata),
            },
        })
        .collect()
}

fn kind_of(message: &Message<'_>) -> StepKind {
    match message {
        Message::User(_) => StepKind::User,
        Message::BashExecution(_) => StepKind::TurnStart,
        Message::Assistant(_)
        | Message::HookMessage(_)
        | Message::BranchSummary(_)
        | Message::CompactionSummary(_)
        | Message::VerbatimBoundary(_) => StepKind::CutPoint,
        _ => StepKind::Inner,
    }
}

impl StepKind {
    const fn is_cut_point(self) -> bool {
        matches!(self, Self::User | Self::TurnStart | Self::CutPoint)
    }

    const fn starts_turn(self) -> bool {
        matches!(self, Self::User | Self::TurnStart)
    }
}

/// Finds the cut that keeps about `keep` tokens. Without any cut point everything is kept.
///
/// The walk goes back from the end until the budget is met and takes the first cut point from there on; if only tool
/// results follow, the last cut point before them, so that a huge result never keeps everything (CD17). A message whose
/// pictures exceed their budget ends the walk too: the tail begins behind it, if it can begin there.
pub fn find_cut_point(steps: &[Step], keep: impl Into<KeepBudget>) -> CutPoint {
    let keep = keep.into();
    let Some(first) = steps.iter().position(|step| step.kind.is_cut_point()) else {
        return CutPoint {
            first_kept: 0,
            cut: 0,
            turn_start: None,
            crossing: Crossing::None,
        };
    };
    let mut cut = first;
    let mut crossing = Crossing::None;
    let mut kept = Tokens::ZERO;
    let mut media = 0_u64;
    for (at, step) in steps.iter().enumerate().rev() {
        kept += step.tokens;
        media = media.saturating_add(step.media.get());
        let next = |from: usize| {
            let ahead = steps.iter().skip(from).position(|step| step.kind.is_cut_point());
            ahead.map(|ahead| from + ahead)
        };
        let too_much_media = media > keep.media.get();
        if too_much_media || kept >= keep.tokens {
            let behind = if too_much_media { next(at + 1) } else { None };
            (cut, crossing) = match behind.or_else(|| next(at)) {
                Some(cut) => (cut, Crossing::Ordinary),
                None => {
                    let last = steps.iter().rposition(|step| step.kind.is_cut_point());
                    (last.unwrap_or(first), Crossing::Trailing)
                }
            };
            break;
        }
    }
    CutPoint {
        first_kept: pulled_back(steps, cut),
        cut,
        turn_start: split_turn(steps, cut),
        crossing,
    }
}

/// The cut itself, or the first one behind it whose tail takes no more than this; `None` if there is none. The walk of
/// [`find_cut_point`] ends with a whole message, which may be larger than all the room there is (R01).
pub(crate) fn cut_within(steps: &[Step], cut: CutPoint, room: Tokens) -> Option<CutPoint> {
    let tail = steps.get(cut.cut..).unwrap_or_default();
    let mut kept: Tokens = tail.iter().map(|step| step.tokens).sum();
    for (ahead, step) in tail.iter().enumerate() {
        if kept <= room && (ahead == 0 || step.kind.is_cut_point()) {
            let at = cut.cut + ahead;
            return Some(if ahead == 0 {
                cut
            } else {
                CutPoint {
                    first_kept: pulled_back(steps, at),
                    cut: at,
                    turn_start: split_turn(steps, at),
                    crossing: Crossing::Ordinary,
                }
            });
        }
        kept = kept.saturating_sub(step.tokens);
    }
    None
}

/// Metadata right before the cut goes to the kept side; messages never do (D3).
fn pulled_back(steps: &[Step], cut: usize) -> usize {
    let before = steps.get(..cut).unwrap_or_default();
    let metadata = before
        .iter()
        .rev()
        .take_while(|step| step.kind == StepKind::Metadata)
        .count();
    cut - metadata
}

/// The start of the turn that a cut splits, if it splits one and something lies before the cut in it (CD2, CD20).
pub(crate) fn split_turn(steps: &[Step], cut: usize) -> Option<usize> {
    if steps.get(cut).is_some_and(|step| step.kind.starts_turn()) {
        return None;
    }
    steps.get(..cut)?.iter().rposition(|step| step.kind.starts_turn())
}

#[cfg(test)]
mod tests;

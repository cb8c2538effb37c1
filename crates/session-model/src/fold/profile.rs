//! Which compactions of a file count, and for whom.

use crate::entry::{Compaction, CompactionStrategy, EntryKind};
use crate::log::SessionLog;

/// Whose rules hold when a log is folded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Profile {
    /// [`Profile::Atomic`] for files that only atomic writes, [`Profile::Foldline`] for all others (D8).
    #[default]
    Auto,
    /// Compactions of both kinds are active; the newest on the path wins.
    Foldline,
    /// What pi and oh-my-pi see: every compaction is a summary, and the model that answered last is the model.
    Pi,
    /// What gajae-code sees: as `Pi`, but an explicit choice of a model stays.
    Gajae,
    /// What atomic sees: prose compactions are inert.
    Atomic,
}

impl Profile {
    /// Replaces `Auto` by what the file is.
    #[must_use]
    pub fn resolved(self, log: &SessionLog) -> Self {
        if self != Self::Auto {
            return self;
        }
        let of_atomic = |kind| matches!(kind, EntryKind::ContextCompaction | EntryKind::SessionSummary);
        if log.header().internal || log.entries().any(|ix| of_atomic(log.kind(ix))) {
            Self::Atomic
        } else {
            Self::Foldline
        }
    }

    /// Whether a compaction is active.
    pub(crate) fn accepts(self, compaction: &Compaction<'_>) -> bool {
        match self {
            Self::Auto | Self::Foldline | Self::Pi | Self::Gajae => true,
            Self::Atomic => compaction.strategy == CompactionStrategy::VerbatimLines,
        }
    }

    /// Whether a verbatim compaction is shown as what it is and not as a summary.
    pub(crate) fn knows_verbatim(self) -> bool {
        matches!(self, Self::Auto | Self::Foldline | Self::Atomic)
    }
}

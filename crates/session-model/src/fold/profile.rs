//! Which compactions of a file count, and for whom.

use crate::entry::{Compaction, CompactionStrategy, EntryKind};
use crate::json::Raw;
use crate::log::Header;

/// Whose rules hold when a log is folded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Profile {
    /// [`Profile::Atomic`] where atomic wrote last, [`Profile::Foldline`] everywhere else (D8).
    ///
    /// The signs are the header's `internal`, and a `context_compaction` or `session_summary` entry on the path
    /// after its newest compaction of either kind (after the root, if there is none; revoked and elided compactions
    /// do not count). A sign before that compaction says nothing: a program that knows prose compactions wrote
    /// after it. So the answer depends only on what a resume reads, and a resume that reads the end of a file and
    /// one that reads all of it agree.
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

    /// Whether the kept tail is in the context beside a provider's own history. The source systems leave it out, and
    /// a model of another provider then misses it (spec, 12 row 54). Here it is there, and the LLM view leaves it out
    /// for the one provider that can read its history.
    pub(crate) fn keeps_tail(self, preserve_data: Option<&Raw<'_>>) -> bool {
        match self {
            Self::Auto | Self::Foldline | Self::Atomic => true,
            Self::Pi | Self::Gajae => !super::apply::has_remote_history(preserve_data),
        }
    }
}

/// What speaks for [`Profile::Atomic`]: collected from the leaf toward the root.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Evidence {
    of_atomic: bool,
    /// A compaction was met: older entries say nothing.
    complete: bool,
}

impl Evidence {
    pub(crate) fn header(&mut self, header: &Header) {
        self.of_atomic |= header.internal;
    }

    pub(crate) fn entry(&mut self, kind: EntryKind) {
        let sign = matches!(kind, EntryKind::ContextCompaction | EntryKind::SessionSummary);
        self.of_atomic |= sign && !self.complete;
    }

    pub(crate) fn compaction(&mut self) {
        self.complete = true;
    }

    /// What `profile` means, given the evidence so far.
    pub(crate) fn resolve(self, profile: Profile) -> Profile {
        match profile {
            Profile::Auto if self.of_atomic => Profile::Atomic,
            Profile::Auto => Profile::Foldline,
            profile => profile,
        }
    }
}

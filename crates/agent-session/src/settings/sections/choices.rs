//! Choices among words.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A choice among words.
macro_rules! choices {
    ($($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident),+ $(,)? })+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "kebab-case")]
        pub enum $name { $($(#[$variant_doc])* $variant),+ }
    )+};
}

choices! {
    /// How many queued messages are handed over at once.
    QueueMode {
        /// The oldest.
        #[default]
        OneAtATime,
        /// All.
        All,
    }
    /// Whether a steering message stops tools that run.
    InterruptMode {
        /// It does.
        #[default]
        Immediate,
        /// It waits for them.
        Wait,
    }
    /// What a prompt becomes that is sent while the agent works.
    BusyPromptMode {
        /// A steering message.
        #[default]
        Steer,
        /// A follow-up.
        Queue,
    }
    /// How a provider compacts a history itself.
    NativeChoice {
        /// It does not.
        #[default]
        Off,
        /// By `/responses/compact`.
        Plain,
        /// In a stream; by `/responses/compact` if that fails.
        Streaming,
    }
    /// When the first model of a chain is used again.
    FallbackRevertPolicy {
        /// Once it may be asked again.
        #[default]
        CooldownExpiry,
        /// Not in this session.
        Never,
    }
    /// What pressing Escape twice at an empty prompt does.
    DoubleEscapeAction {
        /// It shows the tree.
        #[default]
        Tree,
        /// It offers to fork.
        Fork,
        /// Nothing.
        None,
    }
    /// What the view of the tree shows at first.
    TreeFilterMode {
        /// What is said.
        #[default]
        Default,
        /// Nothing of tools.
        NoTools,
        /// What the user said.
        UserOnly,
        /// What has a label.
        LabeledOnly,
        /// Every entry.
        All,
    }
    /// Whether a result that a later one makes worthless may go although it is new.
    Staleness {
        /// It may.
        #[default]
        Track,
        /// Only age counts.
        Ignore,
    }
    /// What a notice tells of the output that it stands for.
    Digests {
        /// Exit status, error line, path, counts and the last line.
        #[default]
        ErrorFirst,
        /// Only how large it was.
        None,
    }
    /// Where the originals of pruned output are kept.
    PruneStorage {
        /// In the session, behind a mask.
        #[default]
        Mask,
        /// In files beside the session, which is rewritten.
        Rewrite,
    }
}

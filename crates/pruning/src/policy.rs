//! What may be pruned, and what has to come of it (seed 000, "Pre-compaction pruning").

use foldline_session_model::Tokens;

/// What may be pruned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// The newest tool output stays: this many tokens of it. The result that reaches across the limit stays too.
    pub protect_tokens: Tokens,
    /// A plan that saves less in all is no plan.
    pub minimum_savings: Tokens,
    /// A result whose notice saves less is left alone. 0 replaces results by notices that are longer, too.
    pub entry_floor: Tokens,
    /// The newest turns of the user stay whole, whatever else holds: typed text or a command starts one. With fewer
    /// turns than this, all from the first on stay. 0 protects none.
    pub protect_recent_turns: u32,
    /// Tools whose results stay.
    pub protected_tools: Vec<String>,
    /// Protected tools whose results may go once they are stale.
    pub stale_overridable: Vec<String>,
    /// Whether a result that a later one makes worthless may go although it is new.
    pub staleness: Staleness,
    /// What a notice tells of the output that it stands for.
    pub digests: Digests,
}

/// Whether stale results are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Staleness {
    /// Repeats, changed files and covered ranges.
    Track,
    /// Only age counts.
    Ignore,
}

/// What a notice tells of the output that it stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Digests {
    /// Exit status, error line, path, counts and the last line, within 256 characters.
    ErrorFirst,
    /// Only how large it was.
    None,
}

/// What becomes of the originals, and how notices refer to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Originals {
    /// They stay in the log, behind a mask entry: `artifact://entry/<id>` (D4).
    InLog,
    /// Each is written to an artifact file first: `artifact://<number>`.
    Artifacts {
        /// The longest reference to plan for: the numbers are not known yet.
        budget: ReferenceBudget,
    },
    /// Notices refer to nothing. A rewrite then loses the originals for good; a mask does not.
    Unreferenced,
}

/// The length of the longest reference that a plan makes room for, in characters: 1 to 16,384.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReferenceBudget(u16);

impl ReferenceBudget {
    /// Room for every number that there is, and what seed 000's system plans for.
    pub const DEFAULT: Self = Self(64);
    const MAX: u16 = 16_384;

    /// A budget in characters; `None` outside of 1 to 16,384.
    pub const fn new(chars: u16) -> Option<Self> {
        if chars >= 1 && chars <= Self::MAX {
            Some(Self(chars))
        } else {
            None
        }
    }

    /// The budget in characters.
    pub const fn get(self) -> u16 {
        self.0
    }
}

impl Default for Policy {
    /// Seed 000's policy: 40,000 tokens and two turns stay, 20,000 have to be saved, `skill` and `read` are
    /// protected, a stale `read` is not.
    fn default() -> Self {
        Self {
            protect_tokens: Tokens(40_000),
            minimum_savings: Tokens(20_000),
            entry_floor: Tokens(50),
            protect_recent_turns: 2,
            protected_tools: vec!["skill".to_owned(), "read".to_owned()],
            stale_overridable: vec!["read".to_owned()],
            staleness: Staleness::Track,
            digests: Digests::ErrorFirst,
        }
    }
}

impl Policy {
    /// Seed 001's simpler form: only age counts, notices tell a size, no turn is protected.
    ///
    /// Its estimates are those of [`CharsPerFour`](foldline_session_model::tokens::CharsPerFour).
    #[must_use]
    pub fn seed_001() -> Self {
        Self {
            protect_recent_turns: 0,
            stale_overridable: Vec::new(),
            staleness: Staleness::Ignore,
            digests: Digests::None,
            ..Self::default()
        }
    }

    /// The policy with a lower minimum, where less is enough to avert a compaction. Never raises it.
    #[must_use]
    pub fn relaxed_to(mut self, minimum: Tokens) -> Self {
        self.minimum_savings = self.minimum_savings.min(minimum);
        self
    }

    pub(crate) fn protects(&self, tool: &str) -> bool {
        self.protected_tools.iter().any(|name| name == tool)
    }

    pub(crate) fn gives_up_when_stale(&self, tool: &str) -> bool {
        self.stale_overridable.iter().any(|name| name == tool)
    }
}

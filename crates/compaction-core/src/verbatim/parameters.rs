//! What a verbatim compaction is asked for (spec "Verbatim", section 7).

use serde::{Serialize, Serializer};

/// The default share of lines to keep.
pub const DEFAULT_RATIO: f64 = 0.5;
/// The default number of newest messages that stay as messages.
pub const DEFAULT_PRESERVE_RECENT: usize = 2;
/// The focus when no user message says anything.
pub const DEFAULT_QUERY: &str = "the latest user request";

/// A share of something: above 0 and below 1.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Share(f64);

impl Share {
    /// So close to all that nothing has to go.
    pub const ALMOST_ALL: Self = Self(0.999_999_999);

    /// The share; `None` unless 0 < share < 1.
    pub fn new(share: f64) -> Option<Self> {
        (share > 0.0 && share < 1.0).then_some(Self(share))
    }

    /// The number.
    pub const fn get(self) -> f64 {
        self.0
    }

    /// The share of a count, rounded half up.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of a count fits it"
    )]
    pub fn of(self, count: usize) -> usize {
        (count as f64 * self.0 + 0.5).floor() as usize
    }
}

impl Serialize for Share {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.0)
    }
}

/// What a verbatim compaction is asked for.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Parameters {
    /// The share of the region's lines to keep.
    #[serde(rename = "compression_ratio")]
    pub ratio: Share,
    /// How many of the newest visible messages stay as messages.
    pub preserve_recent: usize,
    /// What the lines to keep should be about.
    pub query: String,
    /// The share of the region's tokens to keep; the stricter of both wins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<Share>,
}

impl Parameters {
    /// The defaults, with a focus.
    pub fn with_query(query: impl Into<String>) -> Self {
        Self {
            ratio: Share(DEFAULT_RATIO),
            preserve_recent: DEFAULT_PRESERVE_RECENT,
            query: query.into(),
            budget: None,
        }
    }
}

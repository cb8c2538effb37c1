//! What a verbatim compaction is asked for (spec "Verbatim", section 7).

use std::fmt;

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
    /// Who says so.
    #[serde(skip)]
    pub query_from: QuerySource,
    /// The share of the region's tokens to keep; the stricter of both wins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<Share>,
}

/// Where the focus of a verbatim compaction comes from. The embedded planner covers what the kept tail is about by
/// itself, so it follows only a focus that somebody named; a model reads either.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QuerySource {
    /// The last request of the user.
    #[default]
    LastRequest,
    /// A setting, an option or a hook.
    Named,
}

/// One layer of parameters as it was written: settings of a user, of a project, or options of a call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ParameterLayer {
    /// `compression_ratio`: above 0 and below 1.
    pub ratio: Option<f64>,
    /// `preserve_recent`: rounded down, at least 0.
    pub preserve_recent: Option<f64>,
    /// `query`: anything that is not blank.
    pub query: Option<String>,
    /// `budget`: above 0 and below 1.
    pub budget: Option<f64>,
}

/// A value that was not taken. The one below it holds instead, never a constant over a configured value
/// (spec "Verbatim", section 20, 10).
#[derive(Clone, Debug, PartialEq)]
pub struct BadParameter {
    /// Its name.
    pub name: &'static str,
    /// Its value.
    pub value: f64,
}

impl fmt::Display for BadParameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rule = if self.name == "preserve_recent" {
            "must be a number"
        } else {
            "must be above 0 and below 1"
        };
        write!(f, "{} {} is not taken: it {rule}", self.name, self.value)
    }
}

impl Parameters {
    /// The defaults, with a focus.
    pub fn with_query(query: impl Into<String>) -> Self {
        Self {
            ratio: Share(DEFAULT_RATIO),
            preserve_recent: DEFAULT_PRESERVE_RECENT,
            query: query.into(),
            query_from: QuerySource::LastRequest,
            budget: None,
        }
    }

    /// The same with a focus that somebody named.
    #[must_use]
    pub fn about(self, query: impl Into<String>) -> Self {
        Self {
            query: query.into(),
            query_from: QuerySource::Named,
            ..self
        }
    }

    /// Lays layers over the defaults, the last one on top. `last_user_text` is the focus if no layer names one.
    /// Values that cannot be taken are returned and change nothing.
    pub fn merge(layers: &[ParameterLayer], last_user_text: Option<&str>) -> (Self, Vec<BadParameter>) {
        let mut bad = Vec::new();
        let mut merged = Self::with_query(
            last_user_text
                .map(str::trim)
                .filter(|t| !t.is_empty())
                .unwrap_or(DEFAULT_QUERY),
        );
        for layer in layers {
            if let Some(value) = layer.ratio {
                match Share::new(value) {
                    Some(share) => merged.ratio = share,
                    None => bad.push(BadParameter {
                        name: "compression_ratio",
                        value,
                    }),
                }
            }
            if let Some(value) = layer.preserve_recent {
                if value.is_finite() {
                    merged.preserve_recent = whole(value);
                } else {
                    bad.push(BadParameter {
                        name: "preserve_recent",
                        value,
                    });
                }
            }
            if let Some(query) = layer.query.as_deref().map(str::trim).filter(|q| !q.is_empty()) {
                query.clone_into(&mut merged.query);
                merged.query_from = QuerySource::Named;
            }
            if let Some(value) = layer.budget {
                match Share::new(value) {
                    Some(share) => merged.budget = Some(share),
                    None => bad.push(BadParameter {
                        name: "budget",
                        value,
                    }),
                }
            }
        }
        (merged, bad)
    }
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "float casts saturate"
)]
fn whole(value: f64) -> usize {
    value.max(0.0).floor() as usize
}

#[cfg(test)]
mod tests;

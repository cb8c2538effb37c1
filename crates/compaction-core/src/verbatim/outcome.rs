//! What a model's answer comes to (spec "Verbatim", section 9).

use foldline_session_model::Tokens;
use foldline_session_model::model_call::{AssistantBlock, ErrorClass, LlmReply, StopReason};

use super::ranges::{ValidatedRanges, parse_records, recover_records};
use super::view::View;

/// A request that failed, with the class that the client gave it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallFailure {
    /// What kind of failure.
    pub class: ErrorClass,
    /// What the provider said.
    pub message: String,
    /// Whether waiting and asking again was tried until there were no tries left.
    pub retries: Retries,
}

/// Whether a client tried again before it gave up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retries {
    /// It did not.
    None,
    /// It did, as often as it may.
    Exhausted,
}

/// What one answer comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Ranges that can be deleted.
    Ranked {
        /// Over the whole region.
        ranges: ValidatedRanges,
        /// How many records were read; `Some` if the answer was cut off and only whole ones count.
        recovered: Option<usize>,
    },
    /// The request does not fit: a smaller view may.
    Overflowed {
        /// What the provider said; `None` if only the usage tells.
        message: Option<String>,
    },
    /// Too many requests, or no credit.
    Limited {
        /// Which.
        category: Category,
        /// What the provider said.
        message: String,
        /// Whether waiting was tried.
        retries: Retries,
    },
    /// An answer that cannot be used.
    Unusable {
        /// Why.
        category: Category,
    },
    /// The provider failed in another way.
    ProviderError {
        /// What it said.
        message: String,
        /// Where.
        category: Category,
    },
}

/// Why a plan failed, for diagnostics (spec "Verbatim", sections 1 and 13).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Category {
    /// The answer does not follow the grammar.
    MalformedOutput,
    /// The answer names no line that may be deleted.
    NoUsableRanges,
    /// Reasoning used up the output.
    Starved,
    /// Too many requests for now.
    RateLimited,
    /// Credit or budget used up.
    Quota,
    /// The request does not fit the model's window.
    ContextOverflow,
    /// The provider reported an error.
    ProviderError,
    /// The connection failed.
    StreamError,
    /// No credentials.
    Unauthenticated,
}

impl Category {
    /// Whether it is about a limit that waiting or paying lifts.
    pub const fn is_limit(self) -> bool {
        matches!(self, Self::RateLimited | Self::Quota)
    }

    /// The name in a diagnostic.
    pub const fn name(self) -> &'static str {
        match self {
            Self::MalformedOutput => "malformed_output",
            Self::NoUsableRanges => "no_usable_ranges",
            Self::Starved => "starved",
            Self::RateLimited => "rate_limited",
            Self::Quota => "quota",
            Self::ContextOverflow => "context_overflow",
            Self::ProviderError => "provider_error",
            Self::StreamError => "stream_error",
            Self::Unauthenticated => "unauthenticated",
        }
    }
}

/// Reads one answer against the view that was shown. `window` is the model's context window, if it is known.
pub fn outcome(view: &View<'_>, answer: &Result<LlmReply, CallFailure>, window: Option<Tokens>) -> Outcome {
    match answer {
        Err(failure) => failed(failure),
        // Some servers cut a prompt that is too long and say nothing (spec "Verbatim", section 9.4).
        Ok(reply) if window.is_some_and(|window| reply.usage.shows_overflow(reply.stop, window)) => {
            Outcome::Overflowed { message: None }
        }
        Ok(reply) => read(view, reply),
    }
}

fn failed(failure: &CallFailure) -> Outcome {
    let message = failure.message.clone();
    match &failure.class {
        class if class.wants_smaller_request() => Outcome::Overflowed {
            message: Some(message),
        },
        ErrorClass::RateLimit => Outcome::Limited {
            category: Category::RateLimited,
            message,
            retries: failure.retries,
        },
        ErrorClass::Quota => Outcome::Limited {
            category: Category::Quota,
            message,
            retries: failure.retries,
        },
        ErrorClass::Auth => Outcome::ProviderError {
            message,
            category: Category::Unauthenticated,
        },
        ErrorClass::Transient(_) => Outcome::ProviderError {
            message,
            category: Category::StreamError,
        },
        _ => Outcome::ProviderError {
            message,
            category: Category::ProviderError,
        },
    }
}

fn read(view: &View<'_>, reply: &LlmReply) -> Outcome {
    let text = answer_text(reply);
    match reply.stop {
        StopReason::Stop | StopReason::ToolUse => read_whole(view, &text),
        StopReason::Length => read_cut(view, &text, reply),
        // Whatever such an answer says, nobody finished it (spec "Verbatim", section 9.3).
        StopReason::Error => Outcome::ProviderError {
            message: "the provider failed in the middle of its answer".to_owned(),
            category: Category::ProviderError,
        },
        StopReason::Aborted => Outcome::ProviderError {
            message: "the answer was stopped before its end".to_owned(),
            category: Category::StreamError,
        },
    }
}

/// An answer that the output limit cut off: its whole records count.
fn read_cut(view: &View<'_>, text: &str, reply: &LlmReply) -> Outcome {
    let records = recover_records(text).unwrap_or_default();
    if let Some(ranges) = view.ranges(&records) {
        return Outcome::Ranked {
            ranges,
            recovered: Some(records.len()),
        };
    }
    let category = if reply.usage.reasoning.is_some_and(|tokens| tokens > Tokens::ZERO) {
        Category::Starved
    } else if records.is_empty() {
        Category::MalformedOutput
    } else {
        Category::NoUsableRanges
    };
    Outcome::Unusable { category }
}

fn read_whole(view: &View<'_>, text: &str) -> Outcome {
    match parse_records(text) {
        Err(_) => Outcome::Unusable {
            category: Category::MalformedOutput,
        },
        Ok(records) => match view.ranges(&records) {
            Some(ranges) => Outcome::Ranked {
                ranges,
                recovered: None,
            },
            None => Outcome::Unusable {
                category: Category::NoUsableRanges,
            },
        },
    }
}

/// The text blocks one after another: the border between two of them is no line break.
pub(crate) fn answer_text(reply: &LlmReply) -> String {
    let texts = reply.blocks.iter().filter_map(|block| match block {
        AssistantBlock::Text { text, .. } => Some(&**text),
        _ => None,
    });
    texts.collect()
}

//! The classes that every failure of a model call falls into (requirement R05).

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::units::{ByteLen, EntryId, Tokens};

/// What kind of failure a call met. Decisions (compact, retry, next model, give up) read only this.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum ErrorClass {
    /// The request does not fit into the model's context window.
    #[serde(rename_all = "camelCase")]
    Overflow {
        /// The window, when the provider named it.
        limit: Option<Tokens>,
        /// The tokens of the prompt, when the provider counted them.
        input: Option<Tokens>,
        /// The output that was reserved, when the provider counted it.
        output: Option<Tokens>,
    },
    /// One request is larger than a rate allows per minute: waiting cannot help, a smaller request can.
    #[serde(rename_all = "camelCase")]
    RequestTooLarge {
        /// The largest request that can pass.
        limit: Option<Tokens>,
        /// What was asked for.
        requested: Option<Tokens>,
    },
    /// The body has too many bytes.
    #[serde(rename_all = "camelCase")]
    BodyTooLarge {
        /// The largest body that can pass.
        limit: Option<ByteLen>,
    },
    /// An image or document was refused.
    #[serde(rename_all = "camelCase")]
    MediaRejected {
        /// The message of the request that holds it, counted from 0.
        message: Option<usize>,
        /// The entry behind that message.
        entry: Option<EntryId>,
    },
    /// Too many requests or tokens for now.
    RateLimit,
    /// Credit, budget or plan used up: waiting minutes does not help.
    Quota,
    /// The credentials are missing, wrong or not allowed.
    Auth,
    /// Likely to pass by itself.
    Transient(TransientCause),
    /// The caller cancelled.
    Cancelled,
    /// Anything else: repeating the same request would fail again.
    Other(OtherCause),
}

/// Why a failure is likely to pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum TransientCause {
    /// The provider failed (HTTP 5xx, 408, 409, 425).
    Server,
    /// The provider is overloaded.
    Overloaded,
    /// The connection could not be made or broke.
    Network,
    /// The stream ended without its terminal marker.
    StreamEnded,
    /// Nothing came before the first-event limit. A slow model is replaced, not asked again.
    FirstEventTimeout,
    /// The stream fell silent for too long. A slow model is replaced, not asked again.
    IdleTimeout,
    /// The whole call took longer than its budget.
    TotalTimeout,
    /// The reply ended normally but held nothing.
    EmptyReply,
}

/// Why a failure will not pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum OtherCause {
    /// The provider found the request invalid.
    InvalidRequest,
    /// The model or the endpoint does not exist.
    NotFound,
    /// The provider refused on grounds of safety or policy.
    Refused,
    /// The provider's answer does not follow its API.
    Protocol,
    /// The client is set up wrongly (endpoint, header, model).
    Configuration,
    /// Not recognised.
    Unknown,
}

impl ErrorClass {
    /// An overflow of which the provider named no numbers.
    pub const OVERFLOW: Self = Self::Overflow {
        limit: None,
        input: None,
        output: None,
    };

    /// Whether only a smaller request can succeed: the classes that may start a compaction.
    pub const fn wants_smaller_request(&self) -> bool {
        matches!(
            self,
            Self::Overflow { .. } | Self::RequestTooLarge { .. } | Self::BodyTooLarge { .. }
        )
    }

    /// Whether the same request to the same model may be sent again after a wait.
    pub const fn may_retry(&self) -> bool {
        match self {
            Self::RateLimit => true,
            Self::Transient(cause) => !cause.is_timeout(),
            _ => false,
        }
    }
}

impl TransientCause {
    /// Whether the call was ended by one of our own limits.
    pub const fn is_timeout(self) -> bool {
        matches!(
            self,
            Self::FirstEventTimeout | Self::IdleTimeout | Self::TotalTimeout
        )
    }
}

impl fmt::Display for ErrorClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Overflow { .. } => "context overflow",
            Self::RequestTooLarge { .. } => "request too large",
            Self::BodyTooLarge { .. } => "body too large",
            Self::MediaRejected { .. } => "media rejected",
            Self::RateLimit => "rate limit",
            Self::Quota => "quota used up",
            Self::Auth => "authentication failed",
            Self::Transient(cause) if cause.is_timeout() => "timeout",
            Self::Transient(_) => "transient failure",
            Self::Cancelled => "cancelled",
            Self::Other(OtherCause::InvalidRequest) => "invalid request",
            Self::Other(OtherCause::NotFound) => "not found",
            Self::Other(OtherCause::Refused) => "refused",
            Self::Other(OtherCause::Protocol) => "unexpected answer",
            Self::Other(OtherCause::Configuration) => "configuration",
            Self::Other(OtherCause::Unknown) => "failure",
        })
    }
}

//! From a line to an entry.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::{
    BranchSummary, Compaction, CompactionStrategy, Custom, CustomMessage, Entry, EntryBody, EntryKind, Label,
    ModeChange, ModelChange, ServiceTierChange, SessionInfo, ThinkingLevelChange, ToolSelection,
};
use crate::Tokens;
use crate::json::{DecodeError, Field, Raw, json_object};
use crate::message::{Content, Message};

json_object! {
    /// Every field of every entry type; wrong types read as absent.
    struct RawEntry {
        "type" => kind: Cow<'a, str>,
        "id" => id: Cow<'a, str>,
        "parentId" => parent_id: Cow<'a, str>,
        "timestamp" => timestamp: Cow<'a, str>,
        "message" => message: Box<Message<'a>>,
        "customType" => custom_type: Cow<'a, str>,
        "content" => content: Content<'a>,
        "display" => display: bool,
        "details" => details: Raw<'a>,
        "attribution" => attribution: Cow<'a, str>,
        "excludeFromContext" => excluded: bool,
        "summary" => summary: Cow<'a, str>,
        "shortSummary" => short_summary: Cow<'a, str>,
        "firstKeptEntryId" => first_kept: Cow<'a, str>,
        "tokensBefore" => tokens_before: f64,
        "preserveData" => preserve_data: Raw<'a>,
        "fromHook" => from_hook: bool,
        "fromExtension" => from_extension: bool,
        "fromId" => from_id: Cow<'a, str>,
        "data" => data: Raw<'a>,
        "targetId" => target_id: Cow<'a, str>,
        "label" => label: Cow<'a, str>,
        "role" => role: Cow<'a, str>,
        "provider" => provider: Cow<'a, str>,
        "modelId" => model_id: Cow<'a, str>,
        "model" => model: Cow<'a, str>,
        "thinkingLevel" => thinking_level: Cow<'a, str>,
        "serviceTier" => service_tier: Raw<'a>,
        "mode" => mode: Cow<'a, str>,
        "selectedToolNames" => selected: Vec<Cow<'a, str>>,
        "name" => name: Cow<'a, str>,
    }
}

/// Decodes a line whose head says that it is an entry.
pub(crate) fn entry(line: &[u8]) -> Result<Entry<'_>, DecodeError> {
    RawEntry::decode(line).map(from_raw)
}

fn from_raw(raw: RawEntry<'_>) -> Entry<'_> {
    let kind = EntryKind::from_type(raw.kind.as_deref().unwrap_or_default().as_bytes());
    let from_extension = raw.from_hook == Some(true) || raw.from_extension == Some(true);
    let body = match kind {
        EntryKind::Message => EntryBody::Message(raw.message.unwrap_or_default()),
        EntryKind::CustomMessage => EntryBody::CustomMessage(CustomMessage {
            custom_type: raw.custom_type.unwrap_or_default(),
            content: raw.content.unwrap_or_default(),
            display: raw.display.unwrap_or(true),
            details: raw.details,
            attribution: raw.attribution,
            excluded: raw.excluded == Some(true),
        }),
        EntryKind::Compaction => EntryBody::Compaction(Box::new(Compaction {
            summary: raw.summary.unwrap_or_default(),
            short_summary: raw.short_summary,
            first_kept: raw.first_kept.filter(|id| !id.is_empty()),
            tokens_before: tokens(raw.tokens_before),
            strategy: strategy(raw.details.as_deref()),
            details: raw.details,
            preserve_data: raw.preserve_data,
            from_extension,
        })),
        EntryKind::BranchSummary => EntryBody::BranchSummary(BranchSummary {
            summary: raw.summary.unwrap_or_default(),
            from_id: raw.from_id.unwrap_or_default(),
            details: raw.details,
            from_extension,
        }),
        EntryKind::Custom => EntryBody::Custom(Custom {
            custom_type: raw.custom_type.unwrap_or_default(),
            data: raw.data,
        }),
        EntryKind::Label => EntryBody::Label(Label {
            target_id: raw.target_id.unwrap_or_default(),
            label: raw.label,
        }),
        EntryKind::ModelChange => EntryBody::ModelChange(ModelChange {
            role: raw.role,
            provider: raw.provider,
            model_id: raw.model_id,
            model: raw.model,
        }),
        EntryKind::ThinkingLevelChange => EntryBody::ThinkingLevelChange(ThinkingLevelChange {
            level: raw.thinking_level,
        }),
        EntryKind::ServiceTierChange => EntryBody::ServiceTierChange(ServiceTierChange {
            tier: raw.service_tier,
        }),
        EntryKind::ModeChange => EntryBody::ModeChange(ModeChange {
            mode: raw.mode.unwrap_or_default(),
            data: raw.data,
        }),
        EntryKind::McpToolSelection | EntryKind::DiscoveredBuiltinToolSelection => {
            EntryBody::ToolSelection(ToolSelection {
                names: raw.selected.unwrap_or_default(),
            })
        }
        EntryKind::SessionInfo => EntryBody::SessionInfo(SessionInfo { name: raw.name }),
        _ => EntryBody::Other,
    };
    Entry {
        id: raw.id.unwrap_or_default(),
        parent_id: raw.parent_id.filter(|id| !id.is_empty()),
        timestamp: raw.timestamp.unwrap_or_default(),
        body,
    }
}

/// A token count of a session file: missing, negative and non-finite numbers count as 0.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "float casts saturate"
)]
pub(crate) fn tokens(number: Option<f64>) -> Tokens {
    Tokens(number.filter(|n| n.is_finite()).map_or(0, |n| n as u64))
}

/// A whole number of a session file; stops at the ends of its range.
#[allow(clippy::cast_possible_truncation, reason = "float casts saturate")]
pub(crate) fn integer(number: f64) -> i64 {
    number as i64
}

json_object! {
    struct Strategy {
        "strategy" => strategy: Cow<'a, str>,
    }
}

fn strategy(details: Option<&RawValue>) -> CompactionStrategy {
    let verbatim = details
        .and_then(Strategy::lenient)
        .is_some_and(|d| d.strategy.as_deref() == Some("verbatim-lines"));
    if verbatim {
        CompactionStrategy::VerbatimLines
    } else {
        CompactionStrategy::Prose
    }
}

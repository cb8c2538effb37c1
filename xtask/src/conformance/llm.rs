//! `gajae.convert_to_llm`, `atomic.repair_tool_results`: messages as a model sees them.

use foldline_session_model::entry::EntryKind;
use foldline_session_model::fold::{Context, ContextItem, Masked, Profile};
use foldline_session_model::llm::{LlmBlock, LlmMessage, LlmRole, ResultOrigin, TrailingCalls};
use foldline_session_model::log::{SessionLog, Trust};
use foldline_session_model::tree::Leaf;
use serde_json::{Map, Value, json};

use super::canonical::neutral_wrappers;
use super::session::Sessions;
use super::{Case, Outcome, field, refused};

/// One message, as the only entry of a session.
pub(super) fn convert(_: &Sessions, case: &Case) -> Outcome {
    let header = json!({ "type": "session", "version": 3, "id": "s", "timestamp": "", "cwd": "/" });
    let message = field(&case.input, "message")?;
    let entry =
        json!({ "type": "message", "id": "m", "parentId": null, "timestamp": "", "message": message });
    let log = SessionLog::load(format!("{header}\n{entry}\n"), Trust::Validated)?;
    let context = log.context(&Leaf::Last, Profile::Gajae)?;
    let wrappers = neutral_wrappers();
    let seen = context.converted(&wrappers);
    Ok(seen.first().map_or(Value::Null, shown))
}

/// A converted message in both forms of the vectors: its text, and its blocks.
fn shown(message: &LlmMessage<'_>) -> Value {
    let blocks: Vec<Value> = message.content.iter().map(block).collect();
    json!({
        "role": message.role_name(),
        "text": message.texts().collect::<Vec<_>>().join("\n"),
        "blocks": blocks.len(),
        "content": blocks,
    })
}

fn block(block: &LlmBlock<'_>) -> Value {
    match block {
        LlmBlock::Text(text) => json!({ "type": "text", "text": text }),
        LlmBlock::Image { data, mime_type } => {
            json!({ "type": "image", "data": data, "mimeType": mime_type })
        }
        _ => Value::Object(Map::new()),
    }
}

/// The user, assistant and tool messages of a path, repaired.
pub(super) fn repair_tool_results(sessions: &Sessions, case: &Case) -> Outcome {
    let session = sessions.of(case)?;
    let log = &session.log;
    let Some(leaf) = (match log.resolve(&session.leaf(case)?) {
        Ok(leaf) => leaf,
        Err(error) => return Ok(refused(&error)),
    }) else {
        return Ok(json!({ "sequence": [] }));
    };
    let trailing = if field(&case.params, "repairTrailing")? == &Value::Bool(true) {
        TrailingCalls::Answer
    } else {
        TrailingCalls::Leave
    };
    let path = log.path(leaf);
    let items = path
        .iter()
        .filter(|ix| log.kind(**ix) == EntryKind::Message)
        .filter_map(|&source| {
            let message = log.context_message(source)?;
            let masked = Masked::No;
            matches!(message.role(), "user" | "assistant" | "toolResult").then_some(ContextItem {
                source,
                message,
                masked,
            })
        })
        .collect();
    let context = Context {
        log,
        leaf: Some(leaf),
        path,
        items,
        kept_tail: 0..0,
        compaction: None,
        profile: Profile::Atomic,
    };
    let wrappers = neutral_wrappers();
    let view = context.llm_view(&wrappers, trailing);
    Ok(json!({ "sequence": view.iter().map(step).collect::<Value>() }))
}

fn step(message: &LlmMessage<'_>) -> Value {
    match &message.role {
        LlmRole::ToolResult { call_id, origin, .. } => {
            let origin = match origin {
                ResultOrigin::Recorded => "kept",
                ResultOrigin::Repair => "inserted",
            };
            json!([message.role_name(), call_id, origin])
        }
        _ => json!([message.role_name()]),
    }
}

//! The repair of tool calls and their results (spec, 8; R04).
//!
//! One deterministic pass: calls without an id or a name go, with their results; of several results the first one
//! answers; a result that comes late moves to its call; a call without one gets a synthetic error; a result
//! without a call becomes text of the user; a repeated id gets a suffix.

use std::borrow::Cow;

use rustc_hash::FxHashMap;

use super::{LlmBlock, LlmMessage, LlmRole, ResultOrigin, TrailingCalls, Wrappers};
use crate::message::StopReason;

/// What becomes of one message.
enum Fate {
    Keep,
    /// A result that is emitted after the message that calls it.
    Moved,
    /// A result without a call.
    Orphan,
    Drop,
}

/// A call of an assistant message.
struct Announced {
    message: usize,
    /// The id that it gets in the view, if not its own.
    renamed: Option<String>,
    result: Option<usize>,
}

pub(super) fn repair<'c>(
    mut messages: Vec<LlmMessage<'c>>,
    wrappers: &'c Wrappers,
    trailing: TrailingCalls,
) -> Vec<LlmMessage<'c>> {
    let mut announced: Vec<Announced> = Vec::new();
    // By message: where its calls begin in `announced`.
    let mut first_call = Vec::with_capacity(messages.len());
    let mut latest: FxHashMap<String, usize> = FxHashMap::default();
    let mut used: FxHashMap<String, u32> = FxHashMap::default();
    let mut fates: Vec<Fate> = Vec::with_capacity(messages.len());
    let mut blank_calls = false;
    for (i, message) in messages.iter_mut().enumerate() {
        first_call.push(announced.len());
        let fate = match &message.role {
            LlmRole::Assistant { message: recorded } => {
                let stopped = matches!(recorded.stop_reason, StopReason::Error | StopReason::Aborted);
                message.content.retain(|block| match block {
                    LlmBlock::ToolCall { call, .. } => {
                        let blank = call.id.is_empty() || call.name.is_empty();
                        blank_calls |= blank;
                        !blank
                    }
                    _ => true,
                });
                for block in &mut message.content {
                    let LlmBlock::ToolCall { id, .. } = block else {
                        continue;
                    };
                    let own = id.to_string();
                    let renamed = renamed(&own, &mut used);
                    if let Some(new) = &renamed {
                        *id = Cow::Owned(new.clone());
                    }
                    latest.insert(own, announced.len());
                    announced.push(Announced {
                        message: i,
                        renamed,
                        result: None,
                    });
                }
                let said = message.content.iter().any(|b| match b {
                    LlmBlock::Text(text) => !text.trim().is_empty(),
                    LlmBlock::Thinking { .. } | LlmBlock::RedactedThinking { .. } => false,
                    _ => true,
                });
                let empty = message.content.is_empty();
                if empty || stopped && !said {
                    Fate::Drop
                } else {
                    Fate::Keep
                }
            }
            LlmRole::ToolResult { call_id, .. } => match latest.get(&**call_id) {
                Some(&call) if announced.get(call).is_some_and(|a| a.result.is_none()) => {
                    if let Some(call) = announced.get_mut(call) {
                        call.result = Some(i);
                    }
                    Fate::Moved
                }
                // The call had no id or no name, so nothing can name it either.
                None if blank_calls && call_id.is_empty() => Fate::Drop,
                _ => Fate::Orphan,
            },
            _ => Fate::Keep,
        };
        fates.push(fate);
    }
    first_call.push(announced.len());
    emit(messages, &announced, &first_call, &fates, wrappers, trailing)
}

fn emit<'c>(
    messages: Vec<LlmMessage<'c>>,
    announced: &[Announced],
    first_call: &[usize],
    fates: &[Fate],
    wrappers: &'c Wrappers,
    trailing: TrailingCalls,
) -> Vec<LlmMessage<'c>> {
    let last_kept = fates.iter().rposition(|f| !matches!(f, Fate::Drop | Fate::Moved));
    let mut slots: Vec<Option<LlmMessage<'c>>> = messages.into_iter().map(Some).collect();
    let mut out = Vec::with_capacity(slots.len());
    for i in 0..slots.len() {
        match fates.get(i) {
            Some(Fate::Keep) => {}
            Some(Fate::Orphan) => {
                out.extend(slots[i].take().map(orphan));
                continue;
            }
            _ => continue,
        }
        let Some(message) = slots[i].take() else { continue };
        let calls = first_call[i]..first_call[i + 1];
        let source = message.source;
        let names: Vec<(Cow<'c, str>, Cow<'c, str>)> = message
            .content
            .iter()
            .filter_map(|b| match b {
                LlmBlock::ToolCall { id, call } => Some((id.clone(), Cow::Borrowed(&*call.name))),
                _ => None,
            })
            .collect();
        out.push(message);
        let all_open = calls.clone().all(|c| announced[c].result.is_none());
        if trailing == TrailingCalls::Leave && Some(i) == last_kept && all_open {
            continue;
        }
        for (call, (id, name)) in calls.zip(names) {
            debug_assert_eq!(announced[call].message, i, "calls are numbered by message");
            let result = announced[call].result.and_then(|r| slots.get_mut(r)?.take());
            out.push(match result {
                Some(mut result) => {
                    if let (LlmRole::ToolResult { call_id, .. }, Some(new)) =
                        (&mut result.role, &announced[call].renamed)
                    {
                        *call_id = Cow::Owned(new.clone());
                    }
                    result
                }
                None => LlmMessage {
                    source,
                    role: LlmRole::ToolResult {
                        call_id: id,
                        tool_name: name,
                        is_error: true,
                        origin: ResultOrigin::Repair,
                    },
                    content: vec![LlmBlock::Text(Cow::Borrowed(&wrappers.missing_result))],
                },
            });
        }
    }
    out
}

/// A result whose call is not shown, as text of the user.
fn orphan(message: LlmMessage<'_>) -> LlmMessage<'_> {
    let LlmRole::ToolResult {
        call_id,
        tool_name,
        is_error,
        ..
    } = &message.role
    else {
        return message;
    };
    let outcome = if *is_error { "Error" } else { "Result" };
    let tool = if tool_name.is_empty() { "a tool" } else { tool_name };
    let text =
        format!("{outcome} of an earlier call to {tool} (call {call_id}), which is no longer shown:\n\n");
    let mut content = vec![LlmBlock::Text(Cow::Owned(text))];
    content.extend(message.content);
    LlmMessage {
        source: message.source,
        role: LlmRole::User,
        content,
    }
}

/// A suffix for an id that an earlier call of the view has; providers refuse repeated ids.
fn renamed(id: &str, used: &mut FxHashMap<String, u32>) -> Option<String> {
    let count = used.entry(id.to_owned()).or_insert(0);
    *count += 1;
    let mut n = *count;
    if n == 1 {
        return None;
    }
    loop {
        let suffix = format!("_dup{}", n - 1);
        // Some providers take at most 64 characters.
        let room = 64_usize.saturating_sub(suffix.len());
        let stem: String = id.chars().take(room).collect();
        let new = format!("{stem}{suffix}");
        if !used.contains_key(&new) {
            used.insert(new.clone(), 1);
            return Some(new);
        }
        n += 1;
    }
}

//! Results with their calls.
//!
//! What a message consists of is far apart in memory, and in a long session none of it is near the processor. Waiting
//! for one piece after another would take longer than everything else, so each piece of many messages is read before
//! any of them is looked at: then the waits overlap.

use std::hint::black_box;
use std::sync::Arc;

use foldline_session_model::message::{Message, ToolCall, ToolResult};
use rustc_hash::FxHashMap;

use crate::digest::Kind;
use crate::policy::{Digests, Policy, Staleness};
use crate::staleness::Calls;
use crate::view::{Item, View};

/// Messages, or answers, that are looked at one after another.
pub(super) const TOGETHER: usize = 32;

/// A result with its call.
pub(super) struct Answer<'v> {
    pub(super) position: usize,
    pub(super) result: &'v ToolResult<'v>,
    pub(super) call: Option<&'v ToolCall<'v>>,
    /// The tool, among the tools of all answers.
    pub(super) tool: u32,
}

/// What is to be known of a tool. There are few of them.
pub(super) struct Tool {
    pub(super) name: Arc<str>,
    pub(super) kind: Kind,
    /// Whether the policy protects its results.
    pub(super) is_protected: bool,
    /// Whether it gives them up once they are stale.
    pub(super) yields_stale: bool,
}

/// The results with their calls, oldest first, and the tools that gave them.
pub(super) struct Answers<'v> {
    pub(super) list: Vec<Answer<'v>>,
    pub(super) tools: Vec<Tool>,
}

/// The results with their calls, if the policy asks about calls. Of calls with the same id the last one counts.
pub(super) fn answers<'v>(view: &'v View<'v>, policy: &Policy) -> Answers<'v> {
    let of_interest = policy.staleness == Staleness::Track || policy.digests == Digests::ErrorFirst;
    let half = view.items.len() / 2;
    let mut calls = Calls::with_capacity(if of_interest { half } else { 0 });
    let mut list = Vec::with_capacity(half);
    let mut tools = Vec::new();
    let mut tool_names: FxHashMap<&str, u32> = FxHashMap::default();
    // Nearly always a call stands before its result, and no other has its id: then one pass is enough.
    let mut is_in_order = true;
    let mut positions = 0..;
    for together in view.items.chunks(TOGETHER) {
        fetch_calls(together);
        for (item, position) in together.iter().zip(&mut positions) {
            match item.message {
                Message::Assistant(message) if of_interest => {
                    for call in message.content.tool_calls() {
                        is_in_order &= calls.insert(call);
                    }
                }
                Message::ToolResult(result) => {
                    let call = calls.get(&result.tool_call_id);
                    is_in_order &= call.is_some();
                    let tool = *tool_names.entry(&result.tool_name).or_insert_with_key(|name| {
                        tools.push(Tool::new(name, policy));
                        u32::try_from(tools.len() - 1).unwrap_or(u32::MAX)
                    });
                    list.push(Answer {
                        position,
                        result,
                        call,
                        tool,
                    });
                }
                _ => {}
            }
        }
    }
    if !is_in_order {
        for answer in &mut list {
            answer.call = calls.get(&answer.result.tool_call_id);
        }
    }
    Answers { list, tools }
}

impl Tool {
    fn new(name: &str, policy: &Policy) -> Self {
        Self {
            name: name.into(),
            kind: Kind::of(name),
            is_protected: policy.protects(name),
            yields_stale: policy.gives_up_when_stale(name),
        }
    }
}

/// Reads what is needed to find the calls of results.
fn fetch_calls(items: &[Item<'_>]) {
    let contents = || {
        items.iter().filter_map(|item| match item.message {
            Message::Assistant(message) => Some(&message.content),
            _ => None,
        })
    };
    black_box(contents().fold(0, |all, content| all ^ content.blocks().len()));
    black_box(contents().fold(0, |all, content| all ^ content.tool_calls().count()));
    let ids = items.iter().filter_map(|item| match item.message {
        Message::Assistant(message) => message.content.tool_calls().next().map(|call| &*call.id),
        Message::ToolResult(result) => Some(&*result.tool_call_id),
        _ => None,
    });
    black_box(ids.fold(0, |all, id| all ^ first_byte(id)));
}

/// Reads what is needed to judge results.
pub(super) fn fetch_answers(answers: &[Answer<'_>]) {
    let texts = || answers.iter().map(|answer| answer.result.content.texts().next());
    black_box(texts().fold(0, |all, text| all ^ text.map_or(0, str::len)));
    let results = answers.iter().map(|answer| answer.result);
    black_box(results.fold(false, |all, result| {
        all ^ result.is_error ^ result.details.is_some()
    }));
    black_box(texts().fold(0, |all, text| all ^ text.map_or(0, first_byte)));
    let names = answers.iter().filter_map(|answer| Some(&*answer.call?.name));
    black_box(names.fold(0, |all, name| all ^ first_byte(name)));
    let arguments = answers
        .iter()
        .filter_map(|answer| Some(answer.call?.arguments.as_deref()?.get()));
    black_box(arguments.fold(0, |all, written| all ^ first_byte(written)));
}

fn first_byte(text: &str) -> u8 {
    text.bytes().next().unwrap_or(0)
}

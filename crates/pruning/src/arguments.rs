//! Argument pruning: what an edit wrote, once later edits made it worthless (spec "Pruning", 8).
//!
//! The content of an overwritten file is in the arguments of the call that wrote it. A call goes only if each file that
//! it changed was changed again. There is no mask for arguments, only a rewrite, and a provider that wants calls
//! back as they were sent may refuse what is left of one: callers ask for this expressly.

use std::borrow::Cow;

use foldline_session_model::json::{DecodeError, Edit, elements, object, stringify, write_string};
use foldline_session_model::log::SessionLog;
use foldline_session_model::message::{AssistantMessage, Block, Content, Message, ToolCall};
use foldline_session_model::tokens::TokenCounter;
use foldline_session_model::{EntryId, EntryIx, Tokens};
use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::value::RawValue;

use crate::policy::Policy;
use crate::rewrite::{MovedContent, Rewrite, RewriteError, RewrittenEntry, Stamp, edit_message};
use crate::staleness::{Calls, Members, PathId, Paths, is_edit_tool, path_groups, proven_groups};
use crate::text::units;
use crate::turn_fence::first_fenced;
use crate::view::View;

/// `reason` of the arguments that stand for pruned ones.
const REASON: &str = "stale_tool_arguments";

/// Which calls lose their arguments. Nothing is changed yet.
#[must_use]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArgumentPlan {
    /// The entries with such calls, newest first.
    pub entries: Vec<PrunedArguments>,
    /// What all of them save together: estimate before less estimate after.
    pub tokens_saved: Tokens,
}

/// One entry with calls that lose their arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrunedArguments {
    /// The entry.
    pub entry: EntryId,
    /// The same entry in its log.
    pub source: EntryIx,
    /// Its calls that change, in order.
    pub calls: Vec<PrunedCall>,
    /// What they save.
    pub saved: Tokens,
}

/// One call that loses its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrunedCall {
    /// The call.
    pub id: String,
    /// The position of its block in the message.
    pub block: usize,
    /// The new arguments: that they were pruned and when, their paths, and how long they were.
    pub arguments: String,
}

/// Plans which calls lose their arguments. Of the policy, the window, the minimum and the turn fence count; the window
/// here is one of the model's messages before the fence.
pub fn plan_arguments(
    view: &View<'_>,
    policy: &Policy,
    stamp: Stamp,
    counter: &dyn TokenCounter,
) -> ArgumentPlan {
    let fence = first_fenced(view, policy.protect_recent_turns);
    let mut paths = Paths::new(view.cwd);
    let history = History::of(view, &mut paths);
    let mut newer = Tokens::ZERO;
    let mut plan = ArgumentPlan::default();
    for (position, item) in view.items.iter().enumerate().take(fence).rev() {
        let Message::Assistant(message) = item.message else {
            continue;
        };
        let tokens = counter.message(item.message);
        let is_protected = newer < policy.protect_tokens;
        newer += tokens;
        if is_protected {
            continue;
        }
        let pruned = stale_calls(message, position, &history, stamp, &mut paths);
        if pruned.is_empty() {
            continue;
        }
        let after = counter.message(&with_arguments(message, &pruned));
        let saved = tokens.saturating_sub(after);
        if saved > Tokens::ZERO {
            plan.tokens_saved += saved;
            plan.entries.push(PrunedArguments {
                entry: EntryId::from(item.id),
                source: item.source,
                calls: pruned,
                saved,
            });
        }
    }
    if plan.tokens_saved < policy.minimum_savings {
        return ArgumentPlan::default();
    }
    plan
}

impl ArgumentPlan {
    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The entries with the new arguments in place.
    ///
    /// # Errors
    /// [`RewriteError`] if an entry is not what it was when the plan was made.
    pub fn rewrite(&self, log: &SessionLog) -> Result<Rewrite, RewriteError> {
        let mut rewrite = Rewrite {
            tokens_saved: self.tokens_saved,
            ..Rewrite::default()
        };
        for pruned in &self.entries {
            let line = rewritten_calls(log, pruned).map_err(|source| RewriteError::Unreadable {
                entry: pruned.entry.clone(),
                source,
            })?;
            rewrite.entries.push(RewrittenEntry {
                entry: pruned.entry.clone(),
                source: pruned.source,
                line,
            });
        }
        Ok(rewrite)
    }
}

/// What became of the files that calls changed.
struct History<'v> {
    /// By group of files, sorted: the newest result that changed them, and its call.
    latest: FxHashMap<Vec<PathId>, (usize, &'v str)>,
    /// Calls that changed nothing.
    failed: FxHashSet<&'v str>,
}

impl<'v> History<'v> {
    fn of(view: &View<'v>, paths: &mut Paths<'v>) -> Self {
        let calls = Calls::of(view);
        let mut history = Self {
            latest: FxHashMap::default(),
            failed: FxHashSet::default(),
        };
        for (position, item) in view.items.iter().enumerate() {
            let Message::ToolResult(result) = item.message else {
                continue;
            };
            let Some(call) = calls.get(&result.tool_call_id) else {
                continue;
            };
            if !is_edit_tool(&call.name) {
                continue;
            }
            let arguments = Members::of(call.arguments.as_deref());
            let details = Members::of(result.details.as_deref());
            let proven = proven_groups(call, &arguments, &details, result.is_error, paths);
            if result.is_error || proven.is_empty() {
                history.failed.insert(&call.id);
                continue;
            }
            for group in proven {
                history.latest.insert(sorted(group.ids), (position, &call.id));
            }
        }
        history
    }

    /// Whether another call changed this group of files after the message at `position`.
    fn changed_later(&self, group: Vec<PathId>, position: usize, call: &str) -> bool {
        self.latest
            .get(&sorted(group))
            .is_some_and(|(at, by)| *at > position && *by != call)
    }
}

fn sorted(mut group: Vec<PathId>) -> Vec<PathId> {
    group.sort_unstable();
    group.dedup();
    group
}

fn stale_calls<'v>(
    message: &'v AssistantMessage<'v>,
    position: usize,
    history: &History<'v>,
    stamp: Stamp,
    paths: &mut Paths<'v>,
) -> Vec<PrunedCall> {
    let mut pruned = Vec::new();
    for (block, content) in message.content.blocks().iter().enumerate() {
        let Block::ToolCall(call) = content else {
            continue;
        };
        let Some(raw) = call.arguments.as_deref().filter(|_| changes_files(call)) else {
            continue;
        };
        let arguments = Members::of(Some(raw));
        if is_pruned(&arguments) || history.failed.contains(&*call.id) {
            continue;
        }
        let groups = path_groups(&arguments, paths);
        let stale = !groups.is_empty()
            && groups
                .iter()
                .all(|group| history.changed_later(group.ids.clone(), position, &call.id));
        if stale {
            let hints = groups.into_iter().flat_map(|group| group.paths).collect();
            pruned.push(PrunedCall {
                id: call.id.to_string(),
                block,
                arguments: sentinel(raw, hints, stamp),
            });
        }
    }
    pruned
}

fn changes_files(call: &ToolCall<'_>) -> bool {
    is_edit_tool(&call.name) || call.wire_name.as_deref() == Some("apply_patch")
}

fn is_pruned(arguments: &Members<'_>) -> bool {
    arguments.is_true("pruned") && arguments.text("reason").as_deref() == Some(REASON)
}

/// The arguments that stand for pruned ones.
fn sentinel(original: &RawValue, mut hints: Vec<Cow<'_, str>>, stamp: Stamp) -> String {
    // By UTF-16 units, as the programs that read this sort.
    hints.sort_by(|a, b| a.encode_utf16().cmp(b.encode_utf16()));
    hints.dedup();
    let mut json = String::from("{\"pruned\":true,\"reason\":");
    write_string(&mut json, REASON);
    json.push_str(",\"pathHints\":[");
    for (index, hint) in hints.iter().enumerate() {
        if index > 0 {
            json.push(',');
        }
        write_string(&mut json, hint);
    }
    json.push_str("],\"originalChars\":");
    json.push_str(&units(&stringify(original)).to_string());
    json.push_str(",\"prunedAt\":");
    json.push_str(&stamp.0.to_string());
    json.push('}');
    json
}

/// The message with its new arguments, to be measured.
fn with_arguments<'v>(message: &AssistantMessage<'v>, pruned: &[PrunedCall]) -> Message<'v> {
    let mut message = message.clone();
    if let Content::Blocks(blocks) = &mut message.content {
        for call in pruned {
            if let Some(Block::ToolCall(block)) = blocks.get_mut(call.block) {
                block.arguments = RawValue::from_string(call.arguments.clone()).ok().map(Cow::Owned);
            }
        }
    }
    Message::Assistant(Box::new(message))
}

fn rewritten_calls(log: &SessionLog, pruned: &PrunedArguments) -> Result<String, DecodeError> {
    let message = log.message_json(pruned.source).unwrap_or_default();
    let raw: &RawValue = serde_json::from_str(&message)?;
    let content = object(raw)
        .unwrap_or_default()
        .into_iter()
        .rev()
        .find(|(key, _)| key == "content")
        .and_then(|(_, content)| elements(content))
        .unwrap_or_default();
    let mut blocks = String::from("[");
    for (index, block) in content.iter().enumerate() {
        if index > 0 {
            blocks.push(',');
        }
        match pruned.calls.iter().find(|call| call.block == index) {
            None => blocks.push_str(block.get()),
            Some(call) => {
                let arguments = Edit::Set {
                    key: "arguments",
                    json: call.arguments.clone(),
                    after: "name",
                };
                blocks.push_str(&foldline_session_model::json::edit(
                    block.get().as_bytes(),
                    &[arguments],
                )?);
            }
        }
    }
    blocks.push(']');
    let content = Edit::Set {
        key: "content",
        json: blocks,
        after: "role",
    };
    edit_message(log, pruned.source, &[content], MovedContent::Keep)
}

//! Codex rollouts.
//!
//! The conversation is in the `response_item` rows; `event_msg` rows repeat it for user interfaces, except for
//! token counts and rollbacks. Items of one response are one message: its reasoning (kept as the provider wrote
//! it), its text and its calls.

mod items;

use std::borrow::Cow;

use rustc_hash::FxHashMap;
use serde_json::value::RawValue;

use super::content::{Blocks, one_line, without_wrapper};
use super::plan::{Assistant, Plan, Speaker, Usage, rows, session_id_of};
use super::{Agent, DropReason, Imported};
use crate::entry::decode::{integer, tokens};
use crate::json::{Field, Object};
use crate::{Author, CompactionDraft, EntryDraft, Tokens};

use items::{
    Compacted, Event, Item, OldOutput, Row, SessionMeta, TurnContext, add_parts, arguments, exit_code,
    freeform, is_by_program, is_empty_list, text_of_items,
};

const API: &str = "openai-responses";
const PROVIDER: &str = "openai";

/// Imports a rollout.
pub(super) fn import(bytes: &[u8]) -> Imported {
    let rows: Vec<(usize, Option<Row<'_>>)> = rows(bytes)
        .map(|(line, text)| (line, Row::decode(text).ok().filter(|row| row.kind.is_some())))
        .collect();
    let meta = rows
        .iter()
        .filter_map(|(_, row)| row.as_ref())
        .find(|row| row.kind.as_deref() == Some("session_meta"))
        .and_then(|row| SessionMeta::lenient(row.payload.as_deref()?))
        .unwrap_or_default();
    let made = session_id_of(bytes);
    let mut reader = Reader {
        plan: Plan::new(Agent::Codex, meta.id.as_deref().unwrap_or(&made)),
        provider: meta.provider.as_deref().unwrap_or(PROVIDER),
        model: String::new(),
        effort: String::new(),
        tools: FxHashMap::default(),
        response: None,
        newest: None,
        turns: Vec::new(),
        meta_seen: false,
    };
    for (line, row) in &rows {
        reader
            .plan
            .row(*line, row.as_ref().and_then(|row| row.timestamp.as_ref()));
        match row {
            Some(row) => reader.row(row),
            None => reader.plan.drop("line", DropReason::Damaged),
        }
    }
    let version = meta.cli_version.as_deref().map(ToOwned::to_owned);
    reader
        .plan
        .finish(meta.cwd.as_deref().unwrap_or_default(), version)
}

struct Reader<'r> {
    plan: Plan<'r>,
    provider: &'r str,
    model: String,
    effort: String,
    /// The tool of each call.
    tools: FxHashMap<String, String>,
    /// The message of the response whose items are being read.
    response: Option<usize>,
    /// The newest message of the model that has no usage yet.
    newest: Option<usize>,
    /// The place before each message of the user.
    turns: Vec<Option<usize>>,
    meta_seen: bool,
}

impl<'r> Reader<'r> {
    fn row(&mut self, row: &'r Row<'r>) {
        let kind = row.kind.as_deref().unwrap_or_default();
        let payload = row.payload.as_deref();
        match kind {
            "session_meta" if std::mem::replace(&mut self.meta_seen, true) => {
                self.plan.drop(kind, DropReason::Duplicate);
            }
            "session_meta" => self.plan.use_row(),
            "turn_context" => self.turn_context(payload),
            "response_item" => {
                if let Some(payload) = payload {
                    self.item(payload);
                } else {
                    self.plan.drop(kind, DropReason::Empty);
                }
            }
            "compacted" => self.compacted(payload),
            "event_msg" => self.event(payload.and_then(Event::lenient).unwrap_or_default()),
            _ => self.plan.drop(kind, DropReason::Unknown),
        }
    }

    fn turn_context(&mut self, payload: Option<&RawValue>) {
        // A new turn is a new request.
        self.response = None;
        let turn = payload.and_then(TurnContext::lenient).unwrap_or_default();
        let mut changed = false;
        if let Some(model) = turn
            .model
            .filter(|model| !model.is_empty() && *model != self.model)
        {
            self.plan.add(EntryDraft::model_change(self.provider, &model));
            self.model = model.into_owned();
            changed = true;
        }
        if let Some(effort) = turn.effort.filter(|effort| *effort != self.effort) {
            let level = if effort == "none" { "off" } else { &*effort };
            self.plan.add(EntryDraft::thinking_level_change(level));
            self.effort = effort.into_owned();
            changed = true;
        }
        if !changed {
            self.plan.drop("turn_context", DropReason::Duplicate);
        }
    }

    fn item(&mut self, payload: &'r RawValue) {
        let item = Item::lenient(payload).unwrap_or_default();
        let kind = item.kind.as_deref().unwrap_or_default();
        let mut blocks = Blocks::default();
        match kind {
            "message" if item.role.as_deref() != Some("assistant") => {
                self.user(&item);
                return;
            }
            "function_call_output" | "custom_tool_call_output" => {
                self.output(&item);
                return;
            }
            "message" => add_parts(&mut blocks, item.content.as_deref()),
            "reasoning" => {
                let summary: Vec<&str> = item
                    .summary
                    .iter()
                    .flatten()
                    .filter_map(|part| part.text.as_deref())
                    .collect();
                blocks.thinking(&summary.join("\n\n"), Some(&one_line(payload.get())));
            }
            "function_call" => {
                let id = item.call_id.as_deref().unwrap_or_default();
                let arguments = arguments(item.arguments.as_deref().unwrap_or_default());
                self.call(
                    &mut blocks,
                    id,
                    item.name.as_deref().unwrap_or_default(),
                    &arguments,
                );
            }
            "custom_tool_call" => {
                let id = item.call_id.as_deref().unwrap_or_default();
                let arguments = freeform(item.input.as_deref().unwrap_or_default());
                self.call(
                    &mut blocks,
                    id,
                    item.name.as_deref().unwrap_or_default(),
                    &arguments,
                );
            }
            "local_shell_call" => {
                let id = item.call_id.as_deref().or(item.id.as_deref()).unwrap_or_default();
                let action = item.action.as_deref().map_or("{}", RawValue::get);
                self.call(&mut blocks, id, "local_shell", &one_line(action));
            }
            "web_search_call" | "image_generation_call" | "tool_search_call" => {
                self.plan
                    .drop(format!("response_item/{kind}"), DropReason::ProviderSide);
                return;
            }
            "ghost_snapshot" => {
                self.plan
                    .drop(format!("response_item/{kind}"), DropReason::Bookkeeping);
                return;
            }
            _ => {
                self.plan
                    .drop(format!("response_item/{kind}"), DropReason::Unknown);
                return;
            }
        }
        if blocks.is_empty() {
            self.plan.drop(format!("response_item/{kind}"), DropReason::Empty);
            return;
        }
        if let Some(message) = self.response.and_then(|at| self.plan.assistant_mut(at)) {
            message.blocks.append(&blocks);
            self.plan.use_row();
            return;
        }
        let at = self.plan.assistant(Assistant {
            blocks,
            api: API,
            provider: self.provider.to_owned(),
            model: self.model.clone(),
            ..Assistant::default()
        });
        self.response = Some(at);
        self.newest = Some(at);
    }

    fn call(&mut self, blocks: &mut Blocks, id: &str, name: &str, arguments: &str) {
        self.tools.insert(id.to_owned(), name.to_owned());
        blocks.call(id, name, arguments);
    }

    fn user(&mut self, item: &Item<'_>) {
        self.response = None;
        let mut blocks = Blocks::default();
        add_parts(&mut blocks, item.content.as_deref());
        if blocks.is_empty() {
            self.plan.drop("response_item/message", DropReason::Empty);
            return;
        }
        let speaker = match item.role.as_deref() {
            Some("user") if is_by_program(item.content.as_deref()) => Speaker::Synthetic,
            Some("user") => Speaker::User,
            _ => Speaker::Developer,
        };
        if speaker == Speaker::User {
            self.turns.push(self.plan.place());
        }
        self.plan.user(speaker, &blocks.list());
    }

    fn output(&mut self, item: &Item<'_>) {
        self.response = None;
        let id = item.call_id.as_deref().unwrap_or_default();
        let tool = self.tools.get(id).cloned().unwrap_or_default();
        let mut blocks = Blocks::default();
        let mut failed = None;
        match item.output.as_deref() {
            Some(raw) if raw.get().starts_with('{') => {
                let old = OldOutput::lenient(raw).unwrap_or_default();
                failed = old.failed();
                blocks.text(old.content.or(old.output).as_deref().unwrap_or_default());
            }
            Some(raw) if raw.get().starts_with('"') => {
                let text = Cow::lenient(raw).unwrap_or_default();
                failed = exit_code(&text).map(|code| code != 0);
                blocks.text(&text);
            }
            raw => add_parts(&mut blocks, raw),
        }
        let failed = item.success.map(|success| !success).or(failed);
        self.plan.tool_result(id, &tool, &blocks, failed == Some(true));
    }

    fn compacted(&mut self, payload: Option<&RawValue>) {
        self.response = None;
        let compacted = payload.and_then(Compacted::lenient).unwrap_or_default();
        let message = compacted.message.as_deref().unwrap_or_default();
        let replacement = compacted.replacement.as_deref().filter(|raw| !is_empty_list(raw));
        let readable = if message.is_empty() {
            replacement.map(text_of_items)
        } else {
            None
        };
        let summary = readable.as_deref().unwrap_or(message);
        if summary.is_empty() && replacement.is_none() {
            self.plan.drop("compacted", DropReason::NoSummary);
            return;
        }
        let (summary, strategy) = without_wrapper(summary);
        let mut details = String::new();
        let mut object = Object::begin(&mut details);
        object
            .text("strategy", strategy)
            .text("importedFrom", Agent::Codex.name());
        object.end();
        let preserve_data = replacement.map(|items| {
            let mut data = String::new();
            let mut object = Object::begin(&mut data);
            object.object("openaiRemoteCompaction", |remote| {
                remote.text("provider", self.provider);
                remote.raw("replacementHistory", one_line(items.get()));
            });
            object.end();
            data
        });
        self.plan.compaction(&CompactionDraft {
            summary: summary.to_owned(),
            short_summary: None,
            first_kept: None,
            tokens_before: Tokens::ZERO,
            details,
            preserve_data,
            author: Author::Foldline,
        });
    }

    fn event(&mut self, event: Event<'_>) {
        let kind = event.kind.as_deref().unwrap_or("unknown");
        match kind {
            "token_count" => {
                let last = event.info.and_then(|info| info.last);
                if let (Some(usage), Some(message)) =
                    (last, self.newest.and_then(|at| self.plan.assistant_mut(at)))
                {
                    // What came from the cache is a part of the input here.
                    let (input, cache_read) = (tokens(usage.input), tokens(usage.cached));
                    message.usage = Some(Usage {
                        input: input.saturating_sub(cache_read),
                        output: tokens(usage.output),
                        cache_read,
                        cache_write: Tokens::ZERO,
                    });
                    self.newest = None;
                    self.plan.use_row();
                } else {
                    self.plan.drop("event_msg/token_count", DropReason::Duplicate);
                }
            }
            "thread_rolled_back" => {
                let turns = event.turns.map_or(0, integer);
                let turns = usize::try_from(turns).unwrap_or(0).min(self.turns.len());
                if turns == 0 {
                    self.plan.drop("event_msg/thread_rolled_back", DropReason::Empty);
                    return;
                }
                let place = self.turns.get(self.turns.len() - turns).copied().flatten();
                self.turns.truncate(self.turns.len() - turns);
                self.response = None;
                self.newest = None;
                self.plan.rewind(place);
                self.plan.use_row();
            }
            "user_message"
            | "agent_message"
            | "agent_reasoning"
            | "agent_reasoning_raw_content"
            | "context_compacted"
            | "exec_command_end"
            | "patch_apply_end"
            | "mcp_tool_call_end"
            | "web_search_end"
            | "view_image_tool_call" => {
                self.plan.drop(format!("event_msg/{kind}"), DropReason::Duplicate);
            }
            _ => self
                .plan
                .drop(format!("event_msg/{kind}"), DropReason::Bookkeeping),
        }
    }
}

//! Claude Code transcripts.
//!
//! The order of the file is the order of the conversation: results of parallel calls hang on side branches of the
//! `uuid` links, so a walk along them would lose some. The links tell two things only: which rows belong to a
//! subagent, and where the user went back to an earlier point.

mod links;
mod row;

use std::borrow::Cow;

use rustc_hash::FxHashMap;

use self::links::Links;
use self::row::{Attachment, Block, CompactMetadata, Reply, Row};
use super::content::{Blocks, Parts, one_line, without_wrapper};
use super::plan::{Assistant, Plan, Speaker, Usage, rows, session_id_of};
use super::{Agent, DropReason, Imported};
use crate::entry::decode::tokens;
use crate::json::{Field, Raw};
use crate::{Author, CompactionDraft, EntryDraft};

const API: &str = "anthropic-messages";
const PROVIDER: &str = "anthropic";
/// The model of messages that the program itself wrote in the model's name.
const NO_MODEL: &str = "<synthetic>";

/// Imports a transcript. A file in which every message belongs to a subagent is that subagent's own session.
pub(super) fn import(bytes: &[u8]) -> Imported {
    let rows: Vec<(usize, Option<Row<'_>>)> = rows(bytes)
        .map(|(line, text)| (line, Row::decode(text).ok().filter(|row| row.kind.is_some())))
        .collect();
    let replies: Vec<Reply<'_>> = rows
        .iter()
        .map(|(_, row)| {
            row.as_ref()
                .and_then(|row| Reply::lenient(row.message.as_deref()?))
                .unwrap_or_default()
        })
        .collect();
    let messages = || {
        rows.iter()
            .filter_map(|(_, row)| row.as_ref())
            .filter(|row| row.is_message())
    };
    let subagent = messages().next().is_some() && messages().all(Row::is_sidechain);
    let main = if subagent { Chain::Any } else { Chain::Main };
    let known = |field: for<'a> fn(&'a Row<'_>) -> Option<&'a str>| {
        let all = || rows.iter().filter_map(|(_, row)| row.as_ref());
        messages().find_map(field).or_else(|| all().find_map(field))
    };
    let of_subagent = subagent.then(|| known(|row| row.agent_id.as_deref())).flatten();
    let made = session_id_of(bytes);
    let session_id = of_subagent
        .or_else(|| known(|row| row.session_id.as_deref()))
        .unwrap_or(&made);
    let cwd = known(|row| row.cwd.as_deref()).unwrap_or_default();
    let version = known(|row| row.version.as_deref()).map(ToOwned::to_owned);

    let mut reader = Reader {
        plan: Plan::new(Agent::ClaudeCode, session_id),
        chain: main,
        links: Links::with_capacity(rows.len()),
        tools: FxHashMap::default(),
        adjacent: None,
        responses: FxHashMap::default(),
        model: String::new(),
        boundary: None,
    };
    for ((line, row), reply) in rows.iter().zip(&replies) {
        reader
            .plan
            .row(*line, row.as_ref().and_then(|row| row.timestamp.as_ref()));
        match row {
            Some(row) => reader.row(*line, row, reply),
            None => reader.plan.drop("line", DropReason::Damaged),
        }
    }
    reader.unanswered_boundary();
    reader.plan.finish(cwd, version)
}

/// Which messages are the conversation.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Chain {
    Main,
    Any,
}

struct Reader<'r> {
    plan: Plan<'r>,
    chain: Chain,
    links: Links<'r>,
    /// The tool of each call.
    tools: FxHashMap<String, String>,
    /// The response that the newest message belongs to, and that message.
    adjacent: Option<(&'r str, usize)>,
    /// The newest message of each response: it alone carries the usage.
    responses: FxHashMap<&'r str, usize>,
    model: String,
    /// A compaction mark whose summary did not come yet.
    boundary: Option<(usize, Option<&'r CompactMetadata<'r>>)>,
}

impl<'r> Reader<'r> {
    fn row(&mut self, line: usize, row: &'r Row<'r>, reply: &'r Reply<'r>) {
        let at = self.links.add(row.uuid.as_deref(), row.parent_uuid.as_deref());
        let kind = row.kind.as_deref().unwrap_or_default();
        if row.is_sidechain() && self.chain == Chain::Main && (row.is_message() || kind == "attachment") {
            self.plan.drop(kind, DropReason::Subagent);
            return;
        }
        let first = self.plan.len();
        match kind {
            "user" => self.user(at, row, reply),
            "assistant" => self.assistant(row, reply),
            "system" => match row.subtype.as_deref() {
                Some("compact_boundary") => {
                    self.unanswered_boundary();
                    self.boundary = Some((line, row.compact_metadata.as_ref()));
                }
                subtype => self.bookkeeping(kind, subtype),
            },
            "attachment" => self.attachment(row),
            "custom-title" => match row.custom_title.as_deref().filter(|title| !title.is_empty()) {
                Some(title) => {
                    self.plan.add(EntryDraft::session_info(title));
                }
                None => self.plan.drop(kind, DropReason::Empty),
            },
            "progress"
            | "file-history-snapshot"
            | "queue-operation"
            | "summary"
            | "last-prompt"
            | "ai-title"
            | "agent-name"
            | "agent-color"
            | "agent-setting"
            | "tag"
            | "mode"
            | "permission-mode"
            | "pr-link"
            | "worktree-state"
            | "attribution-snapshot"
            | "speculation-accept" => self.bookkeeping(kind, None),
            _ => self.plan.drop(kind, DropReason::Unknown),
        }
        if self.plan.len() > first {
            self.links.begins_at(at, first);
        }
    }

    fn bookkeeping(&mut self, kind: &str, subtype: Option<&str>) {
        let what = subtype.map_or_else(|| kind.to_owned(), |subtype| format!("{kind}/{subtype}"));
        self.plan.drop(what, DropReason::Bookkeeping);
    }

    fn user(&mut self, at: usize, row: &'r Row<'r>, message: &'r Reply<'r>) {
        self.adjacent = None;
        let Some(content) = message.content.as_deref() else {
            self.plan.drop("user", DropReason::Empty);
            return;
        };
        let speaker = if row.is_meta == Some(true) {
            Speaker::Synthetic
        } else {
            Speaker::User
        };
        if row.is_compact_summary == Some(true) {
            self.compaction(&text_of(content));
            return;
        }
        let blocks = match Parts::of(Some(content)) {
            Parts::Text(text) => {
                self.prompt(at, speaker);
                if text.is_empty() {
                    self.plan.drop("user", DropReason::Empty);
                } else {
                    let mut json = String::new();
                    crate::json::write_string(&mut json, &text);
                    self.plan.user(speaker, &json);
                }
                return;
            }
            Parts::Blocks(blocks) => blocks,
        };
        let before = self.plan.len();
        let mut said = Blocks::default();
        let mut results = 0;
        for raw in &blocks {
            match Block::lenient(raw) {
                Some(block) if block.kind.as_deref() == Some("tool_result") => {
                    results += 1;
                    self.tool_result(&block);
                }
                block => push(&mut said, raw, block.as_ref()),
            }
        }
        if results == 0 {
            self.prompt(at, speaker);
        }
        if !said.is_empty() {
            self.plan.user(speaker, &said.list());
        }
        if self.plan.len() == before {
            self.plan.drop("user", DropReason::Empty);
        } else if row.tool_use_result.is_some() {
            self.plan.drop("user/toolUseResult", DropReason::DisplayCopy);
        }
    }

    /// Goes back if the user did: this prompt follows a row after which there was another prompt already.
    fn prompt(&mut self, at: usize, speaker: Speaker) {
        if speaker != Speaker::User {
            return;
        }
        if let Some(place) = self.links.rewound_to(at) {
            self.plan.rewind(place);
        }
        self.links.prompt(at, self.plan.place());
    }

    fn tool_result(&mut self, block: &Block<'_>) {
        let mut content = Blocks::default();
        match Parts::of(block.content.as_deref()) {
            Parts::Text(text) => content.text(&text),
            Parts::Blocks(blocks) => {
                for raw in &blocks {
                    push(&mut content, raw, Block::lenient(raw).as_ref());
                }
            }
        }
        let id = block.tool_use_id.as_deref().unwrap_or_default();
        let tool = self.tools.get(id).cloned().unwrap_or_default();
        self.plan
            .tool_result(id, &tool, &content, block.is_error == Some(true));
    }

    fn assistant(&mut self, row: &'r Row<'r>, reply: &'r Reply<'r>) {
        let mut blocks = Blocks::default();
        let content = reply.content.as_deref();
        match Parts::of(content) {
            Parts::Text(text) if text.is_empty() => {}
            Parts::Text(text) => blocks.text(&text),
            Parts::Blocks(list) => {
                for raw in &list {
                    let block = Block::lenient(raw);
                    if let Some(block) = &block
                        && block.kind.as_deref() == Some("tool_use")
                    {
                        let own =
                            |text: &Option<Cow<'_, str>>| text.as_deref().unwrap_or_default().to_owned();
                        self.tools.insert(own(&block.id), own(&block.name));
                    }
                    push(&mut blocks, raw, block.as_ref());
                }
            }
        }
        let id = reply.id.as_deref();
        let usage = reply.usage.as_ref().map(|usage| Usage {
            input: tokens(usage.input),
            output: tokens(usage.output),
            cache_read: tokens(usage.cache_read),
            cache_write: tokens(usage.cache_write),
        });
        let stop_reason = reply.stop_reason.as_deref().and_then(stop_reason);
        if let (Some((response, at)), Some(id)) = (self.adjacent, id)
            && response == id
            && let Some(message) = self.plan.assistant_mut(at)
        {
            message.blocks.append(&blocks);
            message.usage = usage.or(message.usage);
            message.stop_reason = stop_reason.or(message.stop_reason);
            self.plan.use_row();
            return;
        }
        if blocks.is_empty() {
            self.plan.drop("assistant", DropReason::Empty);
            return;
        }
        let model = reply
            .model
            .as_deref()
            .filter(|model| *model != NO_MODEL && !model.is_empty());
        let by_program = model.is_none();
        if let Some(model) = model
            && self.model != model
        {
            model.clone_into(&mut self.model);
            self.plan.add(EntryDraft::model_change(PROVIDER, model));
        }
        // A response whose rows are not adjacent is several messages: its usage counts once, at the newest.
        let earlier = id.and_then(|id| self.responses.get(id).copied());
        let earlier_usage = earlier.and_then(|at| self.plan.assistant_mut(at)?.usage.take());
        let failed = row.is_api_error == Some(true);
        let at = self.plan.assistant(Assistant {
            blocks,
            api: API,
            provider: PROVIDER.to_owned(),
            model: self.model.clone(),
            usage: usage.filter(|_| !by_program).or(earlier_usage),
            stop_reason: if failed { Some("error") } else { stop_reason },
            error: failed.then(|| content.map(text_of)).flatten(),
        });
        self.adjacent = id.map(|id| (id, at));
        if let Some(id) = id {
            self.responses.insert(id, at);
        }
    }

    /// A prompt that the user typed while the model worked. Other attachments hold no message.
    fn attachment(&mut self, row: &'r Row<'r>) {
        let attachment = row
            .attachment
            .as_deref()
            .and_then(Attachment::lenient)
            .unwrap_or_default();
        let kind = attachment.kind.as_deref().unwrap_or("unknown");
        let prompt = attachment.prompt.as_deref().filter(|_| kind == "queued_command");
        let mut said = Blocks::default();
        match Parts::of(prompt) {
            Parts::Text(text) if text.is_empty() => {}
            Parts::Text(text) => said.text(&text),
            Parts::Blocks(blocks) => {
                for raw in &blocks {
                    push(&mut said, raw, Block::lenient(raw).as_ref());
                }
            }
        }
        if said.is_empty() {
            self.plan
                .drop(format!("attachment/{kind}"), DropReason::Attachment);
            return;
        }
        self.adjacent = None;
        let typed = matches!(attachment.mode.as_deref(), None | Some("prompt"));
        let speaker = if typed { Speaker::User } else { Speaker::Synthetic };
        self.plan.user(speaker, &said.list());
    }

    fn compaction(&mut self, summary: &str) {
        let mark = self.boundary.take();
        if mark.is_some() {
            self.plan.use_earlier_row();
        }
        let metadata = mark.and_then(|(_, metadata)| metadata);
        let (summary, strategy) = without_wrapper(summary);
        let mut details = String::new();
        let mut object = crate::json::Object::begin(&mut details);
        object
            .text("strategy", strategy)
            .text("importedFrom", Agent::ClaudeCode.name());
        if let Some(trigger) = metadata.and_then(|metadata| metadata.trigger.as_deref()) {
            object.text("trigger", trigger);
        }
        object.end();
        let kept = metadata.and_then(|metadata| metadata.preserved.as_ref()?.head.as_deref());
        let first_kept = kept
            .and_then(|uuid| self.links.entry_of(uuid))
            .and_then(|at| self.plan.entry_id(at));
        self.plan.compaction(&CompactionDraft {
            summary: summary.to_owned(),
            short_summary: None,
            first_kept,
            tokens_before: tokens(metadata.and_then(|metadata| metadata.tokens_before)),
            details,
            preserve_data: None,
            author: Author::Foldline,
        });
    }

    fn unanswered_boundary(&mut self) {
        if let Some((line, _)) = self.boundary.take() {
            self.plan
                .drop_earlier(line, "system/compact_boundary", DropReason::NoSummary);
        }
    }
}

/// Adds a block that is no tool result. Empty text is no block: providers refuse it.
fn push(blocks: &mut Blocks, raw: &Raw<'_>, block: Option<&Block<'_>>) {
    let Some(block) = block else {
        blocks.opaque(raw);
        return;
    };
    match block.kind.as_deref() {
        Some("text") => match block.text.as_deref() {
            None | Some("") => {}
            Some(text) => blocks.text(text),
        },
        Some("thinking") => {
            let thinking = block.thinking.as_deref().unwrap_or_default();
            blocks.thinking(thinking, block.signature.as_deref());
        }
        Some("redacted_thinking") => blocks.redacted(block.data.as_deref().unwrap_or_default()),
        Some("tool_use") => {
            let id = block.id.as_deref().unwrap_or_default();
            let name = block.name.as_deref().unwrap_or_default();
            let input = block
                .input
                .as_deref()
                .map_or("{}", serde_json::value::RawValue::get);
            blocks.call(id, name, &one_line(input));
        }
        Some("image") => {
            let source = block.source.as_ref();
            match source.and_then(|s| s.data.as_deref().zip(s.media_type.as_deref())) {
                Some((data, media_type)) => blocks.image(data, media_type),
                None => blocks.opaque(raw),
            }
        }
        _ => blocks.opaque(raw),
    }
}

/// The text of content: a string, or its text blocks line by line.
fn text_of(content: &serde_json::value::RawValue) -> String {
    match Parts::of(Some(content)) {
        Parts::Text(text) => text.into_owned(),
        Parts::Blocks(blocks) => {
            let texts: Vec<_> = blocks
                .iter()
                .filter_map(|raw| Block::lenient(raw)?.text)
                .collect();
            texts.join("\n")
        }
    }
}

fn stop_reason(reason: &str) -> Option<&'static str> {
    match reason {
        "end_turn" | "stop_sequence" | "pause_turn" => Some("stop"),
        "max_tokens" | "model_context_window_exceeded" => Some("length"),
        "tool_use" => Some("toolUse"),
        "refusal" => Some("error"),
        _ => None,
    }
}

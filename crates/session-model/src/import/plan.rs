//! The session that an import builds: entries with derived ids, counts, and the list of what was dropped.

use std::borrow::Cow;
use std::fmt::Write as _;

use rustc_hash::FxHashMap;

use super::content::Blocks;
use super::{Agent, DropReason, Dropped, Imported, MessageCounts};
use crate::derived::DerivedIds;
use crate::json::Object;
use crate::log::lines;
use crate::time::unix_millis;
use crate::{CompactionDraft, EntryDraft, EntryId, Envelope, LineNumber, Tokens};

/// The time of rows before the first one that has a time.
const NO_TIME: &str = "1970-01-01T00:00:00.000Z";

/// A session under construction.
pub(super) struct Plan<'r> {
    agent: Agent,
    session_id: &'r str,
    ids: DerivedIds<'r>,
    entries: Vec<Planned>,
    /// The entry that the next one follows.
    leaf: Option<usize>,
    row: usize,
    parts_of_row: u32,
    timestamp: Cow<'r, str>,
    messages: MessageCounts,
    compactions: u32,
    pub(super) rewinds: u32,
    rows: u32,
    rows_used: u32,
    used: bool,
    drops: Drops,
}

struct Planned {
    id: EntryId,
    parent: Option<usize>,
    timestamp: String,
    body: Body,
}

enum Body {
    Done(EntryDraft),
    /// Later rows may add blocks and usage.
    Assistant(Assistant),
}

/// An assistant message that may still grow.
#[derive(Debug, Default)]
pub(super) struct Assistant {
    pub(super) blocks: Blocks,
    pub(super) api: &'static str,
    pub(super) provider: String,
    pub(super) model: String,
    pub(super) usage: Option<Usage>,
    /// As session files name it; `None` where the source does not say.
    pub(super) stop_reason: Option<&'static str>,
    pub(super) error: Option<String>,
}

/// What a provider counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Usage {
    pub(super) input: Tokens,
    pub(super) output: Tokens,
    pub(super) cache_read: Tokens,
    pub(super) cache_write: Tokens,
}

/// Who speaks in a message with the role `user`, or beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Speaker {
    User,
    Synthetic,
    Developer,
}

impl<'r> Plan<'r> {
    pub(super) fn new(agent: Agent, session_id: &'r str) -> Self {
        Self {
            agent,
            session_id,
            ids: DerivedIds::new(session_id),
            entries: Vec::new(),
            leaf: None,
            row: 0,
            parts_of_row: 0,
            timestamp: Cow::Borrowed(NO_TIME),
            messages: MessageCounts::default(),
            compactions: 0,
            rewinds: 0,
            rows: 0,
            rows_used: 0,
            used: false,
            drops: Drops::default(),
        }
    }

    /// Begins a row: what follows comes from it.
    pub(super) fn row(&mut self, line: usize, timestamp: Option<&Cow<'r, str>>) {
        self.row = line;
        self.parts_of_row = 0;
        self.rows += 1;
        self.used = false;
        if let Some(timestamp) = timestamp {
            self.timestamp.clone_from(timestamp);
        }
    }

    /// Marks the row as being in the session.
    pub(super) fn use_row(&mut self) {
        if !std::mem::replace(&mut self.used, true) {
            self.rows_used += 1;
        }
    }

    /// Marks an earlier row as being in the session after all.
    pub(super) fn use_earlier_row(&mut self) {
        self.rows_used += 1;
    }

    /// Lists the row, or a part of it, as dropped.
    pub(super) fn drop(&mut self, what: impl Into<String>, reason: DropReason) {
        self.drops
            .add(what.into(), reason, LineNumber::from_index(self.row));
    }

    /// Lists a row that was used until now as dropped: what it announced did not come.
    pub(super) fn drop_earlier(&mut self, line: usize, what: &str, reason: DropReason) {
        self.drops
            .add(what.to_owned(), reason, LineNumber::from_index(line));
    }

    /// Where the next entry would stand, to come back to with [`Self::rewind`].
    pub(super) fn place(&self) -> Option<usize> {
        self.leaf
    }

    /// Continues at an earlier place: what came after it stays as a branch.
    pub(super) fn rewind(&mut self, place: Option<usize>) {
        self.leaf = place;
        self.rewinds += 1;
    }

    /// How many entries there are.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The id of an entry by its position.
    pub(super) fn entry_id(&self, at: usize) -> Option<EntryId> {
        self.entries.get(at).map(|entry| entry.id.clone())
    }

    /// An assistant message by its position.
    pub(super) fn assistant_mut(&mut self, at: usize) -> Option<&mut Assistant> {
        match &mut self.entries.get_mut(at)?.body {
            Body::Assistant(assistant) => Some(assistant),
            Body::Done(_) => None,
        }
    }

    pub(super) fn add(&mut self, draft: EntryDraft) -> usize {
        self.push(Body::Done(draft))
    }

    pub(super) fn compaction(&mut self, draft: &CompactionDraft) {
        self.compactions += 1;
        self.add(EntryDraft::compaction(draft));
    }

    pub(super) fn assistant(&mut self, assistant: Assistant) -> usize {
        self.messages.assistant += 1;
        self.push(Body::Assistant(assistant))
    }

    /// A message of the user or of the program; `content` is JSON.
    pub(super) fn user(&mut self, speaker: Speaker, content: &str) {
        let role = match speaker {
            Speaker::User | Speaker::Synthetic => "user",
            Speaker::Developer => "developer",
        };
        match speaker {
            Speaker::User => self.messages.user += 1,
            Speaker::Synthetic => self.messages.synthetic += 1,
            Speaker::Developer => self.messages.developer += 1,
        }
        let mut json = String::with_capacity(content.len() + 80);
        let mut message = Object::begin(&mut json);
        message.text("role", role);
        message.raw("content", content);
        if speaker == Speaker::Synthetic {
            message.raw("synthetic", true);
        }
        time(&mut message, &self.timestamp);
        message.end();
        self.add(EntryDraft::message(&json));
    }

    pub(super) fn tool_result(&mut self, call_id: &str, tool: &str, content: &Blocks, is_error: bool) {
        self.messages.tool_results += 1;
        let mut json = String::new();
        let mut message = Object::begin(&mut json);
        message.text("role", "toolResult").text("toolCallId", call_id);
        message.text("toolName", tool).raw("content", content.list());
        message.raw("isError", is_error);
        time(&mut message, &self.timestamp);
        message.end();
        self.add(EntryDraft::message(&json));
    }

    /// The whole session.
    pub(super) fn finish(self, cwd: &str, agent_version: Option<String>) -> Imported {
        let mut text = String::new();
        let started = self
            .entries
            .first()
            .map_or(&*self.timestamp, |e| &e.timestamp)
            .to_owned();
        let mut header = Object::begin(&mut text);
        header.text("type", "session").raw("version", 3);
        header
            .text("id", self.session_id)
            .text("timestamp", &started)
            .text("cwd", cwd);
        header.object("importedFrom", |source| {
            source.text("agent", self.agent.name());
            if let Some(version) = &agent_version {
                source.text("version", version);
            }
        });
        header.end();
        text.push('\n');
        for entry in &self.entries {
            let envelope = Envelope {
                id: entry.id.clone(),
                parent: entry.parent.and_then(|at| self.entry_id(at)),
                timestamp: entry.timestamp.clone(),
            };
            let line = match &entry.body {
                Body::Done(draft) => draft.line(&envelope),
                Body::Assistant(assistant) => {
                    EntryDraft::message(&assistant_json(assistant, &entry.timestamp)).line(&envelope)
                }
            };
            text.push_str(&line);
            text.push('\n');
        }
        Imported {
            text,
            agent: self.agent,
            session_id: self.session_id.to_owned(),
            cwd: cwd.to_owned(),
            started,
            agent_version,
            rows: self.rows,
            rows_used: self.rows_used,
            messages: self.messages,
            compactions: self.compactions,
            rewinds: self.rewinds,
            dropped: self.drops.finish(),
        }
    }

    fn push(&mut self, body: Body) -> usize {
        self.use_row();
        let mut position = self.row.to_string();
        if self.parts_of_row > 0 {
            // Writing to a String cannot fail.
            let _ = write!(position, ".{}", self.parts_of_row);
        }
        self.parts_of_row += 1;
        let at = self.entries.len();
        self.entries.push(Planned {
            id: EntryId::from(self.ids.id(&position)),
            parent: self.leaf,
            timestamp: self.timestamp.to_string(),
            body,
        });
        self.leaf = Some(at);
        at
    }
}

fn assistant_json(assistant: &Assistant, timestamp: &str) -> String {
    let mut json = String::new();
    let mut message = Object::begin(&mut json);
    message
        .text("role", "assistant")
        .raw("content", assistant.blocks.list());
    message
        .text("api", assistant.api)
        .text("provider", &assistant.provider);
    message.text("model", &assistant.model);
    // Readers of this format refuse assistant messages without usage and cost.
    let usage = assistant.usage.unwrap_or_default();
    message.object("usage", |o| {
        let total = usage.input + usage.output + usage.cache_read + usage.cache_write;
        o.raw("input", usage.input).raw("output", usage.output);
        o.raw("cacheRead", usage.cache_read)
            .raw("cacheWrite", usage.cache_write);
        o.raw("totalTokens", total);
        o.object("cost", |cost| {
            for part in ["input", "output", "cacheRead", "cacheWrite", "total"] {
                cost.raw(part, 0);
            }
        });
    });
    let inferred = if assistant.blocks.calls { "toolUse" } else { "stop" };
    message.text("stopReason", assistant.stop_reason.unwrap_or(inferred));
    if let Some(error) = &assistant.error {
        message.text("errorMessage", error);
    }
    time(&mut message, timestamp);
    message.end();
    json
}

fn time(message: &mut Object<'_>, timestamp: &str) {
    if let Some(millis) = unix_millis(timestamp) {
        message.raw("timestamp", millis);
    }
}

/// What was dropped, by kind and reason.
#[derive(Default)]
struct Drops {
    list: Vec<Dropped>,
    places: FxHashMap<(String, DropReason), usize>,
}

impl Drops {
    fn add(&mut self, what: String, reason: DropReason, line: LineNumber) {
        let place = *self
            .places
            .entry((what.clone(), reason))
            .or_insert(self.list.len());
        match self.list.get_mut(place) {
            Some(dropped) => {
                dropped.count += 1;
                dropped.first_line = dropped.first_line.min(line);
            }
            None => self.list.push(Dropped {
                what,
                reason,
                count: 1,
                first_line: line,
            }),
        }
    }

    fn finish(mut self) -> Vec<Dropped> {
        self.list
            .sort_by(|a, b| (a.first_line, &a.what).cmp(&(b.first_line, &b.what)));
        self.list
    }
}

/// The rows of a source: each line that is not blank, with its position among the lines.
pub(super) fn rows(bytes: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    lines(bytes)
        .map(|span| bytes.get(span).unwrap_or_default().trim_ascii())
        .enumerate()
        .filter(|(_, line)| !line.is_empty())
}

/// An id for a source that has none.
pub(super) fn session_id_of(bytes: &[u8]) -> String {
    let first = rows(bytes)
        .next()
        .map_or(Cow::Borrowed(""), |(_, line)| String::from_utf8_lossy(line));
    let digest = crate::derived::hex_digest("imported", &first);
    digest.get(..16).unwrap_or(&digest).to_owned()
}

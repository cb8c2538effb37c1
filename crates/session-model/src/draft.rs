//! New entries as the lines that an append writes (D1): the field names and key order of pi, with `fromExtension`
//! beside `fromHook`, and an explicit `details.strategy`.

use std::borrow::Cow;
use std::fmt::Write as _;

use crate::json::write_string;
use crate::{EntryId, Tokens};

/// An entry that is not yet in a log: everything but its id, its parent and its time, which a commit supplies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryDraft {
    kind: Cow<'static, str>,
    /// The body's members as JSON, each beginning with a comma.
    members: String,
}

/// What a commit adds to a draft.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// The new entry's id.
    pub id: EntryId,
    /// The entry before it; `None` makes it a root.
    pub parent: Option<EntryId>,
    /// The time as ISO 8601 in UTC with milliseconds, for example `2026-01-01T00:00:00.000Z`.
    pub timestamp: String,
}

/// The header of a new session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderDraft {
    /// The session's id.
    pub id: String,
    /// The time, in the form of [`Envelope::timestamp`].
    pub timestamp: String,
    /// The working folder.
    pub cwd: String,
    /// The session that it comes from: its path, as pi and atomic write it.
    pub parent_session: Option<String>,
    /// The title, of sessions that have one in their header.
    pub title: Option<String>,
}

impl HeaderDraft {
    /// The header as one line of JSON, without a newline.
    pub fn line(&self) -> String {
        let mut line = String::from("{\"type\":\"session\",\"version\":3");
        let mut text = |key: &str, value: Option<&str>| {
            if let Some(value) = value {
                line.push_str(key);
                write_string(&mut line, value);
            }
        };
        text(",\"id\":", Some(&self.id));
        text(",\"timestamp\":", Some(&self.timestamp));
        text(",\"cwd\":", Some(&self.cwd));
        text(",\"parentSession\":", self.parent_session.as_deref());
        text(",\"title\":", self.title.as_deref());
        line.push('}');
        line
    }
}

/// The content of a `compaction` entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompactionDraft {
    /// Prose, or the surviving lines of a verbatim compaction.
    pub summary: String,
    /// A line for user interfaces.
    pub short_summary: Option<String>,
    /// Where the kept tail begins.
    pub first_kept: Option<EntryId>,
    /// The size of the context before it.
    pub tokens_before: Tokens,
    /// `details` as JSON of an object.
    pub details: String,
    /// `preserveData` as JSON of an object.
    pub preserve_data: Option<String>,
    /// Who wrote the text.
    pub author: Author,
}

/// Who wrote a summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Author {
    /// This program, or a model at its request.
    Foldline,
    /// An extension.
    Extension,
}

impl EntryDraft {
    /// A `compaction` entry.
    pub fn compaction(draft: &CompactionDraft) -> Self {
        let mut entry = Self::new("compaction");
        entry.text("summary", &draft.summary);
        if let Some(short) = &draft.short_summary {
            entry.text("shortSummary", short);
        }
        entry.nullable("firstKeptEntryId", draft.first_kept.as_ref().map(EntryId::as_str));
        entry.raw("tokensBefore", &draft.tokens_before.to_string());
        entry.raw("details", &draft.details);
        if let Some(data) = &draft.preserve_data {
            entry.raw("preserveData", data);
        }
        entry.author(draft.author);
        entry
    }

    /// A `branch_summary` entry. `from` is the leaf that was left; `details` is JSON of an object.
    pub fn branch_summary(summary: &str, from: &EntryId, details: Option<&str>, author: Author) -> Self {
        let mut entry = Self::new("branch_summary");
        entry.text("fromId", from.as_str());
        entry.text("summary", summary);
        if let Some(details) = details {
            entry.raw("details", details);
        }
        entry.author(author);
        entry
    }

    /// A `custom` entry. `data` is JSON.
    pub fn custom(custom_type: &str, data: Option<&str>) -> Self {
        let mut entry = Self::new("custom");
        entry.text("customType", custom_type);
        if let Some(data) = data {
            entry.raw("data", data);
        }
        entry
    }

    /// A leaf move: a `custom` entry that is the last record, and so the leaf, of a reopened session. `from` is the
    /// leaf that was left (D15).
    pub fn leaf_move(from: Option<&EntryId>) -> Self {
        let mut data = String::from("{\"from\":");
        match from {
            Some(from) => write_string(&mut data, from.as_str()),
            None => data.push_str("null"),
        }
        data.push('}');
        Self::custom(crate::fold::LEAF_TYPE, Some(&data))
    }

    /// A revocation: from here on the fold treats `target` as absent (D15).
    pub fn revocation(target: &EntryId) -> Self {
        let mut data = String::from("{\"entryId\":");
        write_string(&mut data, target.as_str());
        data.push('}');
        Self::custom(crate::fold::REVOKE_TYPE, Some(&data))
    }

    /// A mask of pictures: from here on the fold shows a notice in the place of each picture of these entries, and the
    /// log keeps them (R16). With each entry its notice and the size of its pictures.
    pub fn picture_mask(items: &[(EntryId, String, Tokens)]) -> Self {
        Self::custom(crate::fold::PRUNE_TYPE, Some(&crate::fold::picture_mask(items)))
    }

    /// A `message` entry. `message` is JSON of a message object.
    pub fn message(message: &str) -> Self {
        let mut entry = Self::new("message");
        entry.raw("message", message);
        entry
    }

    /// A `custom_message` entry with plain text.
    pub fn custom_message(custom_type: &str, content: &str, display: Display) -> Self {
        let mut entry = Self::new("custom_message");
        entry.text("customType", custom_type);
        entry.text("content", content);
        entry.raw(
            "display",
            if display == Display::Shown {
                "true"
            } else {
                "false"
            },
        );
        entry
    }

    /// A `label` entry; `None` clears the label.
    pub fn label(target: &EntryId, label: Option<&str>) -> Self {
        let mut entry = Self::new("label");
        entry.text("targetId", target.as_str());
        if let Some(label) = label {
            entry.text("label", label);
        }
        entry
    }

    /// A `session_info` entry: the session's name.
    pub fn session_info(name: &str) -> Self {
        let mut entry = Self::new("session_info");
        entry.text("name", name);
        entry
    }

    /// A `model_change` entry in both shapes.
    pub fn model_change(provider: &str, model: &str) -> Self {
        let mut entry = Self::new("model_change");
        entry.text("provider", provider);
        entry.text("modelId", model);
        entry.text("model", &format!("{provider}/{model}"));
        entry
    }

    /// A `thinking_level_change` entry.
    pub fn thinking_level_change(level: &str) -> Self {
        let mut entry = Self::new("thinking_level_change");
        entry.text("thinkingLevel", level);
        entry
    }

    /// The entry's type.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// The entry as one line of JSON, without a newline.
    pub fn line(&self, envelope: &Envelope) -> String {
        let mut line = String::with_capacity(self.members.len() + 160);
        line.push_str("{\"type\":");
        write_string(&mut line, &self.kind);
        line.push_str(",\"id\":");
        write_string(&mut line, envelope.id.as_str());
        line.push_str(",\"parentId\":");
        match &envelope.parent {
            Some(parent) => write_string(&mut line, parent.as_str()),
            None => line.push_str("null"),
        }
        line.push_str(",\"timestamp\":");
        write_string(&mut line, &envelope.timestamp);
        line.push_str(&self.members);
        line.push('}');
        line
    }

    /// An entry of any type; `members` is JSON without braces.
    #[cfg(any(test, feature = "notation"))]
    pub(crate) fn raw_entry(kind: &str, members: &str) -> Self {
        Self {
            kind: Cow::Owned(kind.to_owned()),
            members: if members.is_empty() {
                String::new()
            } else {
                format!(",{members}")
            },
        }
    }

    fn new(kind: &'static str) -> Self {
        Self {
            kind: Cow::Borrowed(kind),
            members: String::new(),
        }
    }

    fn text(&mut self, key: &str, value: &str) {
        // Writing to a String cannot fail.
        let _ = write!(self.members, ",\"{key}\":");
        write_string(&mut self.members, value);
    }

    fn nullable(&mut self, key: &str, value: Option<&str>) {
        match value {
            Some(value) => self.text(key, value),
            None => self.raw(key, "null"),
        }
    }

    fn raw(&mut self, key: &str, json: &str) {
        let _ = write!(self.members, ",\"{key}\":{json}");
    }

    fn author(&mut self, author: Author) {
        if author == Author::Extension {
            self.members.push_str(",\"fromHook\":true,\"fromExtension\":true");
        }
    }
}

/// Whether a user sees a custom message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Display {
    /// The user sees it.
    Shown,
    /// Only the model sees it.
    Hidden,
}

//! A version 3 session with nothing but the folded view, for pi and every program that reads its format.
//!
//! Entries keep their ids and their bytes; only parents change, and what a prune or a patch replaced is replaced
//! in the message itself.

use super::{Exported, Target};
use crate::entry::EntryKind;
use crate::fold::{Context, ContextItem, Masked};
use crate::json::splice::{Edit, edit};
use crate::json::{Object, write_string};
use crate::message::Content;
use crate::{EntryDraft, EntryId, EntryIx, Envelope, derived};

/// Exports the view as a version 3 session.
pub fn pi(context: &Context<'_>, target: &Target<'_>) -> Exported {
    let mut out = String::new();
    let mut header = Object::begin(&mut out);
    header.text("type", "session").raw("version", 3);
    header
        .text("id", target.session_id)
        .text("timestamp", target.timestamp);
    header.text("cwd", target.cwd);
    header.end();
    out.push('\n');
    let mut writer = Writer {
        context,
        target,
        out,
        parent: None,
    };
    writer.state();
    // The kept tail stands before its compaction, in this format as in the log.
    let boundary = context
        .compaction
        .and_then(|ix| context.path.iter().position(|at| *at == ix));
    let items = context
        .items
        .iter()
        .filter(|item| Some(item.source) != context.compaction);
    let place = |item: &ContextItem<'_>| context.path.iter().position(|at| *at == item.source);
    let mut first_kept = None;
    let mut at_boundary = boundary.is_some();
    // Both run in the order of the path, so each item is looked for behind the one before it.
    let mut passed = 0;
    for item in items {
        let at = context
            .path
            .get(passed..)
            .and_then(|rest| rest.iter().position(|ix| *ix == item.source))
            .map(|offset| passed + offset)
            .or_else(|| place(item));
        passed = at.unwrap_or(passed);
        if at_boundary && at > boundary {
            writer.compaction(first_kept.as_deref());
            at_boundary = false;
        }
        if at_boundary && first_kept.is_none() {
            first_kept = Some(context.log.id(item.source).to_owned());
        }
        writer.item(item);
    }
    if at_boundary {
        writer.compaction(first_kept.as_deref());
    }
    Exported {
        text: writer.out,
        omitted: Vec::new(),
    }
}

struct Writer<'c> {
    context: &'c Context<'c>,
    target: &'c Target<'c>,
    out: String,
    parent: Option<String>,
}

impl Writer<'_> {
    /// The title, the model and the thinking level that hold at the leaf.
    fn state(&mut self) {
        let state = self.context.state();
        if let Some(title) = &self.context.log.header().title {
            self.add(&EntryDraft::session_info(title), "title");
        }
        if let Some(model) = state.model() {
            self.add(&EntryDraft::model_change(&model.provider, &model.model), "model");
        }
        if let Some(level) = &state.thinking_level {
            self.add(&EntryDraft::thinking_level_change(level), "thinking");
        }
    }

    fn add(&mut self, draft: &EntryDraft, position: &str) {
        // Other entries keep their ids, so these need one that no entry has.
        let id = (0..=u32::MAX)
            .map(|n| derived::hex_digest(self.target.session_id, &format!("{position} {n}")))
            .filter_map(|digest| digest.get(..8).map(ToOwned::to_owned))
            .find(|id| self.context.log.find(id).is_none())
            .unwrap_or_default();
        let line = draft.line(&Envelope {
            id: EntryId::from(id.as_str()),
            parent: self.parent.as_deref().map(EntryId::from),
            timestamp: self.target.timestamp.to_owned(),
        });
        self.line(&line, id);
    }

    fn item(&mut self, item: &ContextItem<'_>) {
        let log = self.context.log;
        let mut edits = Vec::new();
        if log.kind(item.source) == EntryKind::Message {
            let patched = log.patched_message(item.source).map(ToOwned::to_owned);
            let message = if item.masked == Masked::No {
                patched
            } else {
                let current = patched.or_else(|| self.raw_message(item.source));
                current.map(|message| with_notice(&message, item))
            };
            edits.extend(message.map(|json| Edit::Set {
                key: "message",
                json,
                after: "timestamp",
            }));
        }
        self.entry(item.source, edits);
    }

    fn compaction(&mut self, first_kept: Option<&str>) {
        let Some(ix) = self.context.compaction else { return };
        let json = first_kept.map_or_else(|| "null".to_owned(), quoted);
        let edit = Edit::Set {
            key: "firstKeptEntryId",
            json,
            after: "summary",
        };
        self.entry(ix, vec![edit]);
    }

    /// Writes an entry of the log behind the one before it.
    fn entry(&mut self, ix: EntryIx, mut edits: Vec<Edit<'_>>) {
        let log = self.context.log;
        edits.push(Edit::Set {
            key: "parentId",
            json: self.parent.as_deref().map_or_else(|| "null".to_owned(), quoted),
            after: "id",
        });
        let line = log.raw_line(ix);
        let line = edit(line, &edits).unwrap_or_else(|_| String::from_utf8_lossy(line).into_owned());
        self.line(&line, log.id(ix).to_owned());
    }

    fn line(&mut self, line: &str, id: String) {
        self.out.push_str(line);
        self.out.push('\n');
        self.parent = Some(id);
    }

    /// The message of an entry as it stands in its line.
    fn raw_message(&self, ix: EntryIx) -> Option<String> {
        let line = self.context.log.raw_line(ix);
        let text = match std::str::from_utf8(line) {
            Ok(text) => std::borrow::Cow::Borrowed(text),
            Err(_) => crate::json::repaired(line),
        };
        let members = crate::json::splice::members_of(&text).ok()?;
        let member = members.iter().rev().find(|member| member.key == "message")?;
        text.get(member.value.clone()).map(ToOwned::to_owned)
    }
}

/// A message with the notices of its mask in the place of what they stand for.
fn with_notice(message: &str, item: &ContextItem<'_>) -> String {
    let texts = item.message.content().into_iter().flat_map(Content::texts);
    let mut content = String::from("[");
    for (at, text) in texts.enumerate() {
        if at > 0 {
            content.push(',');
        }
        let mut block = Object::begin(&mut content);
        block.text("type", "text").text("text", text);
        block.end();
    }
    content.push(']');
    let edits = [Edit::Set {
        key: "content",
        json: content,
        after: "toolName",
    }];
    edit(message.as_bytes(), &edits).unwrap_or_else(|_| message.to_owned())
}

fn quoted(text: &str) -> String {
    let mut json = String::with_capacity(text.len() + 2);
    write_string(&mut json, text);
    json
}

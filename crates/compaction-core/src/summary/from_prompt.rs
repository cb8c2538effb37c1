//! A summary without a model for a request that another agent made: its prompt holds the conversation as text
//! (seeds 000 and 001, "Remote summarization modes"; spec "Compaction core", 8, 9.1 and 11.1).
//!
//! The text becomes messages again, as far as it tells who said what, and the extractive summariser reads those.
//! Instructions cannot be followed without a model and are left alone.

use std::collections::VecDeque;

use foldline_session_model::fold::Profile;
use foldline_session_model::json::write_string;
use foldline_session_model::log::{SessionLog, Trust};
use foldline_session_model::tokens::Heuristic;
use foldline_session_model::tree::Leaf;
use foldline_session_model::{EntryDraft, EntryId, Envelope, HeaderDraft, Tokens};
use serde_json::value::RawValue;

use super::extractive::{EXTRACTED, Extract, extracted_notes};
use super::sections::Sections;
use super::stored::handed_on;
use crate::inert::{Wrapper, restored};
use crate::redact::redact;

/// The longest summary: what the seeds let a model write (spec "Compaction core", 9.1).
const LONGEST: Tokens = Tokens(13_107);
/// The most tokens of quoted lines in it.
const QUOTED: Tokens = Tokens(6_000);

/// The blocks of a summary request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PromptParts<'p> {
    /// The transcript.
    pub conversation: &'p str,
    /// The summary that the new one replaces.
    pub previous_summary: Option<&'p str>,
    /// What else the summary should hold, one item on each line.
    pub additional_context: Option<&'p str>,
}

impl<'p> PromptParts<'p> {
    /// Finds the blocks of a prompt. Their tags stand alone on their lines, in the order that the seeds name.
    /// `None` without a conversation that says something.
    pub fn parse(prompt: &'p str) -> Option<Self> {
        let (_, rest) = split_at_line(prompt, "<conversation>")?;
        // Inside of a transcript the same tags may be quoted; its own end is the last one before the next block.
        let seam = "\n</conversation>\n\n<previous-summary>\n";
        let (conversation, rest) = match rest.rfind(seam) {
            Some(at) => (rest.get(..at)?, rest.get(at + 1..)?.split_once('\n')?.1),
            None => split_at_last_line(rest, "</conversation>")?,
        };
        let (previous_summary, rest) = match rest.trim_start().strip_prefix("<previous-summary>\n") {
            Some(rest) => {
                let (summary, rest) = split_at_last_line(rest, "</previous-summary>")?;
                (Some(summary), rest)
            }
            None => (None, rest),
        };
        let additional_context = rest
            .trim_start()
            .strip_prefix("<additional-context>\n")
            .and_then(|rest| split_at_line(rest, "</additional-context>"))
            .map(|(lines, _)| lines);
        let said = |text: &&str| !text.trim().is_empty();
        Some(Self {
            conversation: Some(conversation).filter(said)?,
            previous_summary: previous_summary.filter(said),
            additional_context: additional_context.filter(said),
        })
    }

    /// The summary. It says in its first line that no model made it.
    pub fn extractive(&self) -> String {
        let mut sections = Sections::default();
        if let Some(earlier) = self.previous_summary {
            let earlier = restored(earlier, Wrapper::Request);
            sections = Sections::parse(&redact(&handed_on(&earlier).replace(EXTRACTED, "")));
        }
        sections.append(Sections::parse(&notes(self.conversation)));
        if let Some(lines) = self.additional_context {
            let lines = redact(lines);
            sections.append(Sections::parse(&format!("## Additional Notes\n{lines}")));
        }
        sections.shorten(LONGEST, &Heuristic);
        format!("{EXTRACTED}\n\n{}", sections.text())
    }
}

/// The text before and after the first line that is exactly this.
fn split_at_line<'t>(text: &'t str, line: &str) -> Option<(&'t str, &'t str)> {
    split_at(text, lines(text).find(|(_, found)| *found == line)?)
}

/// The text before and after the last line that is exactly this.
fn split_at_last_line<'t>(text: &'t str, line: &str) -> Option<(&'t str, &'t str)> {
    split_at(text, lines(text).filter(|(_, found)| *found == line).last()?)
}

fn split_at<'t>(text: &'t str, (at, line): (usize, &str)) -> Option<(&'t str, &'t str)> {
    let before = text.get(..at)?;
    let after = text.get(at + line.len()..)?;
    Some((
        before.strip_suffix('\n').unwrap_or(before),
        after.strip_prefix('\n').unwrap_or(after),
    ))
}

/// Lines with where they begin.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    text.split('\n').map(move |line| {
        let start = at;
        at += line.len() + 1;
        (start, line)
    })
}

/// The notes on a conversation.
fn notes(conversation: &str) -> String {
    let log = session_of(&restored(conversation, Wrapper::Request));
    let Some(context) = log
        .as_ref()
        .and_then(|log| log.context(&Leaf::Last, Profile::Auto).ok())
    else {
        return String::new();
    };
    extracted_notes(&Extract {
        context: &context,
        items: 0..context.items.len(),
        open_todos: &[],
        cap: QUOTED,
    })
}

/// What a part of a transcript is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    User,
    Thinking,
    Text,
    Calls,
    Result,
}

/// The beginnings of parts as the seeds' systems write them.
const HEADERS: [(&str, Part); 7] = [
    ("[User]:", Part::User),
    ("[Assistant thinking]:", Part::Thinking),
    ("[Think]:", Part::Thinking),
    ("[Assistant]:", Part::Text),
    ("[Assistant tool calls]:", Part::Calls),
    ("[Tool Call]:", Part::Calls),
    ("[Tool result]:", Part::Result),
];

fn header(line: &str) -> Option<(Part, &str)> {
    HEADERS.iter().find_map(|(header, part)| {
        let head = line.get(..header.len())?;
        let rest = line.get(header.len()..)?;
        head.eq_ignore_ascii_case(header)
            .then(|| (*part, rest.strip_prefix(' ').unwrap_or(rest)))
    })
}

/// The parts of a transcript. A part begins after a blank line; a transcript of another form is one result, of which
/// nothing is known but its lines.
fn parts(conversation: &str) -> Vec<(Part, String)> {
    let mut parts: Vec<(Part, String)> = Vec::new();
    let mut after_blank = true;
    for line in conversation.split('\n') {
        match (header(line).filter(|_| after_blank), parts.last_mut()) {
            (Some((part, rest)), _) => parts.push((part, rest.to_owned())),
            (None, Some((_, text))) => {
                text.push('\n');
                text.push_str(line);
            }
            (None, None) => parts.push((Part::Result, line.to_owned())),
        }
        after_blank = line.is_empty();
    }
    for (_, text) in &mut parts {
        text.truncate(text.trim_end().len());
    }
    parts
}

/// The conversation as a session in memory.
fn session_of(conversation: &str) -> Option<SessionLog> {
    let mut session = Writer::default();
    for (part, text) in parts(conversation) {
        session.part(part, &text);
    }
    session.end_answer();
    SessionLog::load(session.text.into_bytes(), Trust::Validated).ok()
}

/// Writes the lines of a session.
struct Writer {
    text: String,
    entries: usize,
    /// The blocks of the answer that is being read, and the last part of it.
    answer: Vec<String>,
    last: Option<Part>,
    /// Calls without a result: id and name.
    open: VecDeque<(String, String)>,
    calls: usize,
}

impl Default for Writer {
    fn default() -> Self {
        let header = HeaderDraft {
            id: "conversation".to_owned(),
            timestamp: String::new(),
            cwd: String::new(),
            parent_session: None,
            title: None,
        };
        Self {
            text: header.line() + "\n",
            entries: 0,
            answer: Vec::new(),
            last: None,
            open: VecDeque::new(),
            calls: 0,
        }
    }
}

impl Writer {
    fn part(&mut self, part: Part, text: &str) {
        // Thinking, text and calls of one answer come in this order.
        if self.last.is_none_or(|last| part <= last) || matches!(part, Part::User | Part::Result) {
            self.end_answer();
        }
        match part {
            Part::User => {
                let content = json_string(text);
                self.message(&format!("{{\"role\":\"user\",\"content\":{content}}}"));
            }
            Part::Thinking => self.block(
                part,
                format!(r#"{{"type":"thinking","thinking":{}}}"#, json_string(text)),
            ),
            Part::Text => self.block(part, format!(r#"{{"type":"text","text":{}}}"#, json_string(text))),
            Part::Calls => {
                for (name, arguments) in calls(text) {
                    self.calls += 1;
                    let id = format!("call-{}", self.calls);
                    let block = format!(
                        r#"{{"type":"toolCall","id":"{id}","name":{},"arguments":{arguments}}}"#,
                        json_string(&name)
                    );
                    self.block(part, block);
                    self.open.push_back((id, name));
                }
            }
            Part::Result => {
                let (id, name) = self.open.pop_front().unwrap_or_default();
                self.message(&format!(
                    r#"{{"role":"toolResult","toolCallId":{},"toolName":{},"isError":false,"content":[{{"type":"text","text":{}}}]}}"#,
                    json_string(&id),
                    json_string(&name),
                    json_string(text)
                ));
            }
        }
    }

    fn block(&mut self, part: Part, block: String) {
        self.answer.push(block);
        self.last = Some(part);
    }

    fn end_answer(&mut self) {
        self.last = None;
        if !self.answer.is_empty() {
            let blocks = std::mem::take(&mut self.answer).join(",");
            self.message(&format!(
                r#"{{"role":"assistant","stopReason":"stop","content":[{blocks}]}}"#
            ));
        }
    }

    fn message(&mut self, message: &str) {
        let id = |number: usize| EntryId::from(format!("{number:08x}").as_str());
        let envelope = Envelope {
            id: id(self.entries),
            parent: self.entries.checked_sub(1).map(id),
            timestamp: String::new(),
        };
        self.text.push_str(&EntryDraft::message(message).line(&envelope));
        self.text.push('\n');
        self.entries += 1;
    }
}

fn json_string(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    write_string(&mut out, text);
    out
}

/// The calls of a part: `name(key=JSON, key=JSON); name()`. What does not read as one ends the list.
fn calls(text: &str) -> Vec<(String, String)> {
    let mut calls = Vec::new();
    let mut rest = text;
    while let Some((call, after)) = call(rest) {
        calls.push(call);
        rest = after.trim_start_matches([';', ' ', '\n']);
    }
    calls
}

fn call(text: &str) -> Option<((String, String), &str)> {
    let (name, mut rest) = text.split_once('(')?;
    if name.trim().is_empty() || name.contains(char::is_whitespace) {
        return None;
    }
    let mut members: Vec<String> = Vec::new();
    loop {
        rest = rest.trim_start_matches([',', ' ']);
        if let Some(after) = rest.strip_prefix(')') {
            return Some(((name.to_owned(), format!("{{{}}}", members.join(","))), after));
        }
        let (key, value) = rest.split_once('=')?;
        rest = match value.strip_prefix("undefined") {
            Some(after) => after,
            None => {
                let mut values = serde_json::Deserializer::from_str(value).into_iter::<&RawValue>();
                let json = values.next()?.ok()?;
                members.push(format!("{}:{}", json_string(key), json.get()));
                value.get(values.byte_offset()..)?
            }
        };
    }
}

#[cfg(test)]
mod tests;

//! What a few lines tell of a session: its id, its project, its title. Fields are looked at one by one,
//! so that one with an odd type hides no other.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

/// Characters of a first prompt that stand for a title.
const PROMPT: usize = 80;
/// Bytes of a line that decide whether it is an entry.
const START: usize = 256;

#[derive(Deserialize)]
struct Probe<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<&'a RawValue>,
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    cwd: Option<&'a RawValue>,
    #[serde(borrow)]
    title: Option<&'a RawValue>,
    #[serde(borrow)]
    name: Option<&'a RawValue>,
    #[serde(borrow)]
    summary: Option<&'a RawValue>,
    /// Claude Code's name of the session.
    #[serde(borrow, rename = "sessionId")]
    session_id: Option<&'a RawValue>,
    #[serde(borrow)]
    patch: Option<&'a RawValue>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    /// Codex wraps its records.
    #[serde(borrow)]
    payload: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    role: Option<&'a RawValue>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(borrow)]
    text: Option<&'a RawValue>,
}

/// What is known of a title.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) enum Title {
    /// No line spoke of it.
    #[default]
    Unknown,
    /// The newest line took it away.
    Cleared,
    /// The newest line gave it.
    Named(String),
}

/// What the front of a session tells.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) id: Option<String>,
    pub(super) cwd: Option<String>,
    /// From the header, a title slot, or the newest line in the head that gives one.
    named: Title,
    pub(super) first_prompt: Option<String>,
}

impl Head {
    /// Whether more bytes could not tell more that matters.
    pub(super) fn is_settled(&self) -> bool {
        self.id.is_some() && (self.first_prompt.is_some() || matches!(self.named, Title::Named(_)))
    }

    pub(super) fn title(&self) -> Option<String> {
        match &self.named {
            Title::Named(title) => Some(title.clone()),
            Title::Unknown | Title::Cleared => self.first_prompt.clone(),
        }
    }
}

/// Reads the front of a session; the last line counts only if the file ends there or it has an end.
pub(super) fn head(bytes: &[u8], whole_file: bool) -> Head {
    let mut head = Head::default();
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let whole = if whole_file {
        bytes.len()
    } else {
        memchr::memrchr(b'\n', bytes).map_or(0, |at| at + 1)
    };
    for line in bytes
        .get(..whole)
        .unwrap_or_default()
        .split(|byte| *byte == b'\n')
    {
        let Ok(probe) = serde_json::from_slice::<Probe<'_>>(line) else {
            continue;
        };
        let kind = string(probe.kind).unwrap_or_default();
        if head.id.is_none() {
            match &*kind {
                "session" => {
                    head.id = string(probe.id).map(Cow::into_owned);
                    head.cwd = string(probe.cwd).map(Cow::into_owned);
                }
                "session_meta" => {
                    let payload = probe
                        .payload
                        .and_then(|raw| serde_json::from_str::<Probe<'_>>(raw.get()).ok());
                    head.id = payload
                        .as_ref()
                        .and_then(|payload| string(payload.id))
                        .map(Cow::into_owned);
                    head.cwd = payload
                        .as_ref()
                        .and_then(|payload| string(payload.cwd))
                        .map(Cow::into_owned);
                }
                _ => {
                    head.id = string(probe.session_id).map(Cow::into_owned);
                    head.cwd = string(probe.cwd).map(Cow::into_owned);
                }
            }
        }
        match title_of(&kind, &probe) {
            Title::Unknown => {}
            title => head.named = title,
        }
        if head.cwd.is_none() {
            head.cwd = string(probe.cwd).map(Cow::into_owned);
        }
        if head.first_prompt.is_none() {
            head.first_prompt = prompt_of(&probe);
        }
    }
    head
}

/// Reads the end of a session: the newest line that speaks of the title. The first line is a part of one.
pub(super) fn tail(bytes: &[u8]) -> Title {
    let lines = bytes.split(|byte| *byte == b'\n').skip(1).collect::<Vec<_>>();
    for line in lines.iter().rev() {
        let Ok(probe) = serde_json::from_slice::<Probe<'_>>(line) else {
            continue;
        };
        let kind = string(probe.kind).unwrap_or_default();
        // A second header means nothing.
        if kind == "session" {
            continue;
        }
        match title_of(&kind, &probe) {
            Title::Unknown => {}
            title => return title,
        }
    }
    Title::Unknown
}

/// Whether a line is an entry, by its first bytes: the type of a record stands at its front, in all writers'
/// files. Exact counts are those of session-model.
pub(super) fn is_entry(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    if line.first() != Some(&b'{') {
        return false;
    }
    let start = line.get(..START.min(line.len())).unwrap_or_default();
    ![
        &b"\"session\""[..],
        b"\"title\"",
        b"\"header_patch\"",
        b"\"entry_patch\"",
        b"\"session_meta\"",
    ]
    .iter()
    .any(|kind| {
        start
            .strip_prefix(b"{\"type\":")
            .is_some_and(|rest| rest.starts_with(kind))
    })
}

fn title_of(kind: &str, probe: &Probe<'_>) -> Title {
    let said = match kind {
        "session" | "title" => match string(probe.title) {
            // A header without a title says nothing; an empty slot is a header without a title.
            Some(title) if !title.trim().is_empty() => Some(title),
            _ => return Title::Unknown,
        },
        "session_info" => string(probe.name),
        "title_change" => string(probe.title),
        "summary" => string(probe.summary),
        "header_patch" => {
            let patch = probe
                .patch
                .and_then(|raw| serde_json::from_str::<Probe<'_>>(raw.get()).ok());
            match patch.and_then(|patch| string(patch.title)) {
                Some(title) => Some(title),
                None => return Title::Unknown,
            }
        }
        _ => return Title::Unknown,
    };
    let title = said.as_deref().map(one_line).unwrap_or_default();
    if title.is_empty() {
        Title::Cleared
    } else {
        Title::Named(title)
    }
}

fn prompt_of(probe: &Probe<'_>) -> Option<String> {
    let message = probe.message.or(probe.payload)?;
    let message: Message<'_> = serde_json::from_str(message.get()).ok()?;
    if string(message.role)? != "user" {
        return None;
    }
    let content = message.content?;
    let text = if let Some(text) = string(Some(content)) {
        one_line(&text)
    } else {
        let blocks: Vec<Block<'_>> = serde_json::from_str(content.get()).ok()?;
        one_line(&blocks.iter().find_map(|block| string(block.text))?)
    };
    // Text that a program put in front of the user's words.
    (!text.is_empty() && !text.starts_with('<')).then_some(text)
}

/// The first line that is not blank, cut to a title's length.
fn one_line(text: &str) -> String {
    let line = text
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty())
        .unwrap_or_default();
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    let mut title: String = line.chars().take(PROMPT).map(plain).collect();
    if line.chars().nth(PROMPT).is_some() {
        title.push('…');
    }
    title
}

fn string<'a>(raw: Option<&'a RawValue>) -> Option<Cow<'a, str>> {
    #[derive(Deserialize)]
    struct Text<'a>(#[serde(borrow)] Cow<'a, str>);
    serde_json::from_str::<Text<'a>>(raw?.get())
        .ok()
        .map(|text| text.0)
}

#[cfg(test)]
mod tests;

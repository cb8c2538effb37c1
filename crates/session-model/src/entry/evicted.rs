//! Content that gajae-code moved out of a session after a compaction: notices in its place, and the references under
//! which the originals are stored (spec, 6.4; 12 row 69).

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::EntryBody;
use crate::EntryIx;
use crate::json::{Field, Own, Raw, json_object, splice};
use crate::log::SessionLog;
use crate::message::Block;

/// One block whose original is stored elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evicted {
    /// The block's position in the message's content.
    pub block: usize,
    /// Where the original is, for example `blob:sha256:…`.
    pub reference: String,
    /// The hash of the original, in hexadecimal digits; empty if the file does not say.
    pub sha256: String,
    /// How the original is written: `utf8` or `json`.
    pub encoding: String,
}

json_object! {
    struct Marked {
        "evictedContent" => evicted: RawEvicted<'a>,
    }
}

json_object! {
    struct RawEvicted {
        "payloads" => payloads: Raw<'a>,
    }
}

json_object! {
    struct RawPayload {
        "ref" => reference: Cow<'a, str>,
        "sha256" => sha256: Cow<'a, str>,
        "encoding" => encoding: Cow<'a, str>,
    }
}

const NOTICE: &str = "[Compacted history content evicted to durable cold storage]";
const ARGUMENTS_MARK: &str = "__gjcColdSpillArguments";

impl SessionLog {
    /// The blocks of an entry whose originals are stored elsewhere.
    ///
    /// A payload is recorded under the position that its block once had. Where no notice stands there any more (small
    /// blocks before it were merged), the payloads that are left go to the notices that are left, in order.
    pub fn evicted(&self, ix: EntryIx) -> Vec<Evicted> {
        self.evictions(ix).unwrap_or_default()
    }

    fn evictions(&self, ix: EntryIx) -> Option<Vec<Evicted>> {
        let line = self.raw_line(ix);
        memchr::memmem::find(line, b"evictedContent")?;
        let payloads = Marked::decode(line).ok()?.evicted?.payloads?;
        let mut payloads = payloads_of(&payloads)?;
        let entry = self.entry(ix).ok()?;
        let content = match &entry.body {
            EntryBody::Message(message) => message.content()?,
            EntryBody::CustomMessage(message) => &message.content,
            _ => return None,
        };
        let notices: Vec<(usize, &str)> = content
            .blocks()
            .iter()
            .enumerate()
            .filter_map(|(at, block)| Some((at, noticed_field(block)?)))
            .collect();
        let mut found = Vec::new();
        let mut left = Vec::new();
        for (at, field) in notices {
            match payloads.iter().position(|p| p.index == at && p.field == field) {
                Some(exact) => found.push(payloads.remove(exact).at(at)),
                None => left.push((at, field)),
            }
        }
        for (at, field) in left {
            if let Some(next) = payloads.iter().position(|p| p.field == field) {
                found.push(payloads.remove(next).at(at));
            }
        }
        found.sort_by_key(|evicted| evicted.block);
        Some(found)
    }
}

struct Payload {
    index: usize,
    field: String,
    raw: RawPayload<'static>,
}

impl Payload {
    fn at(self, block: usize) -> Evicted {
        let text = |t: Option<Cow<'static, str>>| t.map(Cow::into_owned).unwrap_or_default();
        Evicted {
            block,
            reference: text(self.raw.reference),
            sha256: text(self.raw.sha256),
            encoding: text(self.raw.encoding),
        }
    }
}

/// The payloads in the order of their positions.
fn payloads_of(raw: &RawValue) -> Option<Vec<Payload>> {
    let members = splice::members_of(raw.get()).ok()?;
    let mut payloads: Vec<Payload> = members
        .into_iter()
        .filter_map(|member| {
            let (path, field) = member.key.rsplit_once('.')?;
            let index = path.rsplit_once('.')?.1.parse().ok()?;
            let value: &RawValue = serde_json::from_str(raw.get().get(member.value)?).ok()?;
            Some(Payload {
                index,
                field: field.to_owned(),
                raw: RawPayload::lenient(value)?.own(),
            })
        })
        .collect();
    payloads.sort_by_key(|payload| payload.index);
    Some(payloads)
}

/// The field of a block that holds a notice.
fn noticed_field(block: &Block<'_>) -> Option<&'static str> {
    match block {
        Block::Text { text, .. } if text == NOTICE => Some("text"),
        Block::Thinking { thinking, .. } if thinking == NOTICE => Some("thinking"),
        Block::RedactedThinking { data } if data == NOTICE => Some("data"),
        Block::ToolCall(call) => call
            .arguments
            .as_deref()
            .is_some_and(|raw| raw.get().contains(ARGUMENTS_MARK))
            .then_some("arguments"),
        _ => None,
    }
}

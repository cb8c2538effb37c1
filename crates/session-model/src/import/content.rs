//! Blocks of other formats as blocks of this one.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::json::{Field, Object, Raw};

/// A JSON list of blocks that is being written.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    json: String,
    pub(super) calls: bool,
}

impl Blocks {
    pub(super) fn is_empty(&self) -> bool {
        self.json.is_empty()
    }

    /// The list; no blocks are an empty one.
    pub(super) fn list(&self) -> String {
        format!("[{}]", self.json)
    }

    pub(super) fn append(&mut self, other: &Self) {
        if !other.is_empty() {
            self.separate();
            self.json.push_str(&other.json);
            self.calls |= other.calls;
        }
    }

    pub(super) fn text(&mut self, text: &str) {
        self.block("text", |block| {
            block.text("text", text);
        });
    }

    pub(super) fn thinking(&mut self, thinking: &str, signature: Option<&str>) {
        self.block("thinking", |block| {
            block.text("thinking", thinking);
            if let Some(signature) = signature {
                block.text("thinkingSignature", signature);
            }
        });
    }

    /// Thinking that only its provider can read: the payload takes the signature's place.
    pub(super) fn redacted(&mut self, payload: &str) {
        self.block("thinking", |block| {
            block.text("thinking", "").text("thinkingSignature", payload);
            block.raw("redacted", true);
        });
    }

    pub(super) fn image(&mut self, data: &str, mime_type: &str) {
        self.block("image", |block| {
            block.text("data", data).text("mimeType", mime_type);
        });
    }

    /// `arguments` is JSON on one line.
    pub(super) fn call(&mut self, id: &str, name: &str, arguments: &str) {
        self.calls = true;
        self.block("toolCall", |block| {
            block.text("id", id).text("name", name);
            block.raw("arguments", arguments);
        });
    }

    /// A block of a type that this format does not know, as it was written.
    pub(super) fn opaque(&mut self, block: &RawValue) {
        self.separate();
        self.json.push_str(&one_line(block.get()));
    }

    fn block(&mut self, kind: &str, members: impl FnOnce(&mut Object<'_>)) {
        self.separate();
        let mut block = Object::begin(&mut self.json);
        block.text("type", kind);
        members(&mut block);
        block.end();
    }

    fn separate(&mut self) {
        if !self.json.is_empty() {
            self.json.push(',');
        }
    }
}

/// Content of a source: plain text or blocks; anything else is no content.
pub(super) enum Parts<'r> {
    Text(Cow<'r, str>),
    Blocks(Vec<Raw<'r>>),
}

impl<'r> Parts<'r> {
    pub(super) fn of(raw: Option<&'r RawValue>) -> Self {
        let Some(raw) = raw else {
            return Self::Blocks(Vec::new());
        };
        Cow::lenient(raw)
            .map(Self::Text)
            .or_else(|| Vec::lenient(raw).map(Self::Blocks))
            .unwrap_or(Self::Blocks(Vec::new()))
    }
}

/// JSON on one line: line ends in JSON text stand between tokens only, so they can be spaces.
pub(super) fn one_line(json: &str) -> Cow<'_, str> {
    if json.contains(['\n', '\r']) {
        Cow::Owned(json.replace(['\n', '\r'], " "))
    } else {
        Cow::Borrowed(json)
    }
}

/// The media type and the Base64 text of a data URL.
pub(super) fn data_url(url: &str) -> Option<(&str, &str)> {
    let (mime_type, data) = url.strip_prefix("data:")?.split_once(',')?;
    Some((mime_type.strip_suffix(";base64")?, data))
}

/// The text of a compaction without the sentences that an export of this crate put around it, and which strategy
/// these name.
pub(super) fn without_wrapper(text: &str) -> (&str, &'static str) {
    let wrappers = crate::llm::Wrappers::default();
    [
        (&wrappers.compaction_summary, "context-full"),
        (&wrappers.verbatim, "verbatim-lines"),
    ]
    .into_iter()
    .find_map(|(around, strategy)| {
        let inner = text.strip_prefix(&*around.before)?.strip_suffix(&*around.after)?;
        Some((inner, strategy))
    })
    .unwrap_or((text, "context-full"))
}

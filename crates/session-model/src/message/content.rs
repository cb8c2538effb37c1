//! Content: text or blocks.

use std::borrow::Cow;

use crate::ByteLen;
use crate::json::Raw;

/// What a message says: plain text or blocks. `null` and missing content read as no blocks.
#[derive(Clone, Debug)]
pub enum Content<'a> {
    /// Plain text.
    Text(Cow<'a, str>),
    /// Blocks in order.
    Blocks(Vec<Block<'a>>),
}

/// One block of a message.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Block<'a> {
    /// Text.
    Text {
        /// The text.
        text: Cow<'a, str>,
        /// The provider's signature of it.
        signature: Option<Cow<'a, str>>,
    },
    /// Thinking, possibly signed. A redacted one has its opaque payload in the signature.
    Thinking {
        /// The thinking.
        thinking: Cow<'a, str>,
        /// The provider's signature: sent back whole, to the same provider and model, or not at all.
        signature: Option<Cow<'a, str>>,
        /// Whether the provider hides the text.
        redacted: bool,
    },
    /// Thinking that only its provider can read.
    RedactedThinking {
        /// The opaque payload.
        data: Cow<'a, str>,
    },
    /// A picture.
    Image {
        /// Base64, or a reference to a blob.
        data: Cow<'a, str>,
        /// Its media type.
        mime_type: Cow<'a, str>,
    },
    /// A call of a tool.
    ToolCall(ToolCall<'a>),
    /// A block of a type that this crate does not know.
    Unknown {
        /// Its type.
        kind: Cow<'a, str>,
    },
}

/// A call of a tool.
#[derive(Clone, Debug)]
pub struct ToolCall<'a> {
    /// The id that its result names.
    pub id: Cow<'a, str>,
    /// The tool.
    pub name: Cow<'a, str>,
    /// What the tool was called on the wire, where that differs: `customWireName`.
    pub wire_name: Option<Cow<'a, str>>,
    /// The arguments as written; `None` if the file has none.
    pub arguments: Option<Raw<'a>>,
    /// The provider's signature of the call.
    pub thought_signature: Option<Cow<'a, str>>,
}

impl Default for Content<'_> {
    fn default() -> Self {
        Self::Blocks(Vec::new())
    }
}

impl<'a> Content<'a> {
    /// The blocks; plain text has none.
    pub fn blocks(&self) -> &[Block<'a>] {
        match self {
            Self::Text(_) => &[],
            Self::Blocks(blocks) => blocks,
        }
    }

    /// The text: plain text, or each text block. Thinking and calls are not text.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        let (plain, blocks) = match self {
            Self::Text(text) => (Some(&**text), &[][..]),
            Self::Blocks(blocks) => (None, &blocks[..]),
        };
        plain
            .into_iter()
            .chain(blocks.iter().filter_map(|block| match block {
                Block::Text { text, .. } => Some(&**text),
                _ => None,
            }))
    }

    /// The calls in order.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall<'a>> {
        self.blocks().iter().filter_map(|block| match block {
            Block::ToolCall(call) => Some(call),
            _ => None,
        })
    }

    /// How many pictures it holds.
    pub fn image_count(&self) -> usize {
        self.blocks()
            .iter()
            .filter(|block| matches!(block, Block::Image { .. }))
            .count()
    }

    /// The length of its pictures as they are encoded.
    pub fn media_bytes(&self) -> ByteLen {
        let images = self.blocks().iter().map(|block| match block {
            Block::Image { data, .. } => data.len() as u64,
            _ => 0,
        });
        ByteLen(images.sum())
    }

    /// Whether it holds anything that a model would see: text that is not blank, a picture, or a block of an
    /// unknown type.
    pub fn is_visible(&self) -> bool {
        match self {
            Self::Text(text) => !text.trim().is_empty(),
            Self::Blocks(blocks) => blocks.iter().any(Block::is_visible),
        }
    }
}

impl Block<'_> {
    /// Whether a model would see it; blank text is nothing to see.
    pub fn is_visible(&self) -> bool {
        match self {
            Self::Text { text, .. } => !text.trim().is_empty(),
            _ => true,
        }
    }

    /// The block's type as session files name it.
    pub fn kind(&self) -> &str {
        match self {
            Self::Text { .. } => "text",
            Self::Thinking { .. } => "thinking",
            Self::RedactedThinking { .. } => "redactedThinking",
            Self::Image { .. } => "image",
            Self::ToolCall(_) => "toolCall",
            Self::Unknown { kind } => kind,
        }
    }
}

//! What a stream of a model says, one piece at a time, and how the pieces become a reply.

use foldline_session_model::model_call::{
    ArgumentsState, AssistantBlock, LlmReply, RawJson, StopReason, ToolCall, Usage,
};

/// One piece of a reply.
///
/// Order: `Start`, then for each block `BlockStart`, its deltas, `BlockEnd`; `Usage` at any time after
/// `Start`, each replacing the one before; last `End`. Blocks of different index may overlap. A failure is
/// the `Err` of the stream and ends it as well: there is exactly one terminal item.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum LlmEvent {
    /// The provider began to answer.
    Start {
        /// The model as the provider names it.
        model: Option<String>,
        /// The provider's id of the reply.
        response_id: Option<String>,
    },
    /// A block begins.
    BlockStart {
        /// Its position in the reply.
        index: usize,
        /// What it will hold.
        kind: BlockKind,
    },
    /// More text.
    Text {
        /// The block.
        index: usize,
        /// What is appended.
        delta: String,
    },
    /// More reasoning.
    Thinking {
        /// The block.
        index: usize,
        /// What is appended.
        delta: String,
    },
    /// More of a call's arguments, as JSON text that is not yet whole.
    ToolArguments {
        /// The block.
        index: usize,
        /// What is appended.
        delta: String,
    },
    /// A block is whole.
    BlockEnd {
        /// Its position in the reply.
        index: usize,
        /// The block with its signature.
        block: AssistantBlock<'static>,
    },
    /// What has been counted so far.
    Usage(Usage),
    /// The reply is whole.
    End(Box<LlmReply>),
}

impl LlmEvent {
    /// Whether the event shows anything of the answer: after one of these a request is never repeated.
    pub const fn is_content(&self) -> bool {
        !matches!(self, Self::Start { .. } | Self::Usage(_))
    }
}

/// What a block will hold.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BlockKind {
    /// Text.
    Text,
    /// Reasoning in the open.
    Thinking,
    /// Reasoning that only its provider can read.
    RedactedThinking,
    /// A call.
    ToolCall {
        /// The id of the call.
        id: String,
        /// The tool.
        name: String,
    },
}

/// Collects blocks and writes the events of a decoder.
#[derive(Debug, Default)]
pub(crate) struct ReplyBuilder {
    blocks: Vec<Building>,
    pub(crate) usage: Usage,
    pub(crate) model: Option<String>,
    pub(crate) response_id: Option<String>,
    started: bool,
}

#[derive(Debug)]
struct Building {
    kind: BlockKind,
    text: String,
    signature: Option<String>,
    open: bool,
}

impl ReplyBuilder {
    /// Writes `Start` unless it was written.
    pub(crate) fn start(&mut self, out: &mut Vec<LlmEvent>) {
        if !self.started {
            self.started = true;
            out.push(LlmEvent::Start {
                model: self.model.clone(),
                response_id: self.response_id.clone(),
            });
        }
    }

    pub(crate) fn open(&mut self, kind: BlockKind, out: &mut Vec<LlmEvent>) -> usize {
        self.start(out);
        let index = self.blocks.len();
        out.push(LlmEvent::BlockStart {
            index,
            kind: kind.clone(),
        });
        self.blocks.push(Building {
            kind,
            text: String::new(),
            signature: None,
            open: true,
        });
        index
    }

    /// Appends to an open block; empty deltas and closed blocks are left alone.
    pub(crate) fn append(&mut self, index: usize, delta: &str, out: &mut Vec<LlmEvent>) {
        let Some(block) = self
            .blocks
            .get_mut(index)
            .filter(|block| block.open && !delta.is_empty())
        else {
            return;
        };
        block.text.push_str(delta);
        let delta = delta.to_owned();
        out.push(match block.kind {
            BlockKind::Text => LlmEvent::Text { index, delta },
            BlockKind::Thinking => LlmEvent::Thinking { index, delta },
            BlockKind::ToolCall { .. } => LlmEvent::ToolArguments { index, delta },
            BlockKind::RedactedThinking => return,
        });
    }

    /// The text of a block so far.
    pub(crate) fn text_of(&self, index: usize) -> &str {
        self.blocks.get(index).map_or("", |block| block.text.as_str())
    }

    /// Replaces the text of a block by the provider's final version; what is new goes out as a delta.
    pub(crate) fn finish_text(&mut self, index: usize, whole: &str, out: &mut Vec<LlmEvent>) {
        let known = self.text_of(index).len();
        if whole.starts_with(self.text_of(index)) {
            self.append(index, whole.get(known..).unwrap_or_default(), out);
        } else if let Some(block) = self.blocks.get_mut(index) {
            whole.clone_into(&mut block.text);
        }
    }

    pub(crate) fn sign(&mut self, index: usize, signature: &str) {
        if let Some(block) = self.blocks.get_mut(index) {
            block.signature.get_or_insert_default().push_str(signature);
        }
    }

    /// Sets id and name of a call that came after its first fragment.
    pub(crate) fn name_call(&mut self, index: usize, new_id: Option<&str>, new_name: Option<&str>) {
        if let Some(Building {
            kind: BlockKind::ToolCall { id, name },
            ..
        }) = self.blocks.get_mut(index)
        {
            if let Some(new) = new_id.filter(|_| id.is_empty()) {
                new.clone_into(id);
            }
            if let Some(new) = new_name.filter(|_| name.is_empty()) {
                new.clone_into(name);
            }
        }
    }

    pub(crate) fn close(&mut self, index: usize, out: &mut Vec<LlmEvent>) {
        if let Some(block) = self.blocks.get_mut(index).filter(|block| block.open) {
            block.open = false;
            out.push(LlmEvent::BlockEnd {
                index,
                block: block.build(ArgumentsState::Whole),
            });
        }
    }

    /// Closes what is open and writes `End`. A block that the output limit cut stays open, so that a call
    /// in it is marked as unusable.
    pub(crate) fn finish(&mut self, stop: StopReason, raw_stop: Option<String>, out: &mut Vec<LlmEvent>) {
        self.start(out);
        if stop != StopReason::Length {
            for index in 0..self.blocks.len() {
                self.close(index, out);
            }
        }
        out.push(LlmEvent::End(Box::new(self.reply(stop, raw_stop))));
    }

    pub(crate) fn has_calls(&self) -> bool {
        self.blocks
            .iter()
            .any(|block| matches!(block.kind, BlockKind::ToolCall { .. }))
    }

    pub(crate) fn set_usage(&mut self, usage: Usage, out: &mut Vec<LlmEvent>) {
        self.usage = usage;
        out.push(LlmEvent::Usage(usage));
    }

    /// The reply as it stands. A reply that was cut marks the calls in its last block as unusable, because
    /// text that happens to be whole JSON can still be a part of what the model meant to write.
    pub(crate) fn reply(&self, stop: StopReason, raw_stop: Option<String>) -> LlmReply {
        let cut = matches!(stop, StopReason::Length | StopReason::Error | StopReason::Aborted);
        let last = self.blocks.len().saturating_sub(1);
        let blocks = self.blocks.iter().enumerate().map(|(index, block)| {
            let state = if block.open || (cut && index == last) {
                ArgumentsState::Unusable
            } else {
                ArgumentsState::Whole
            };
            block.build(state)
        });
        LlmReply {
            blocks: blocks.collect(),
            usage: self.usage,
            stop,
            raw_stop,
            model: self.model.clone(),
            response_id: self.response_id.clone(),
        }
    }
}

impl Building {
    fn build(&self, state: ArgumentsState) -> AssistantBlock<'static> {
        let signature = self.signature.clone().map(Into::into);
        match &self.kind {
            BlockKind::Text => AssistantBlock::Text {
                text: self.text.clone().into(),
                signature,
            },
            BlockKind::Thinking => AssistantBlock::Thinking {
                text: self.text.clone().into(),
                signature,
            },
            BlockKind::RedactedThinking => AssistantBlock::RedactedThinking {
                data: signature.unwrap_or_default(),
            },
            BlockKind::ToolCall { id, name } => {
                let (arguments, parsed) = arguments(&self.text);
                AssistantBlock::ToolCall(ToolCall {
                    id: id.clone().into(),
                    name: name.clone().into(),
                    arguments,
                    state: if parsed == ArgumentsState::Unusable {
                        parsed
                    } else {
                        state
                    },
                })
            }
        }
    }
}

/// The arguments of a call: one JSON object, `{}` for nothing, and `{}` marked unusable for anything else.
pub(crate) fn arguments(text: &str) -> (RawJson<'static>, ArgumentsState) {
    if text.trim().is_empty() {
        return (RawJson::empty_object(), ArgumentsState::Whole);
    }
    match RawJson::parse(text.trim().to_owned()) {
        Some(raw) if raw.is_object() => (raw, ArgumentsState::Whole),
        _ => (RawJson::empty_object(), ArgumentsState::Unusable),
    }
}

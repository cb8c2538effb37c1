//! What every wire format needs done to a conversation before it is written (spec "Orchestrator and
//! clients", 14.3).
//!
//! Replies that failed are left out. Opaque blocks of another provider or model become text or nothing.
//! Every call gets exactly one result right after it. A result whose call is gone becomes user text that
//! names the call, and it waits until no call is open. Blank texts disappear, pictures become a note for a
//! model that cannot see them. Cut points never part a call from its result, so the repairs are a safety
//! net.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use foldline_session_model::model_call::{
    Api, AssistantBlock, Image, ImageInput, InputBlock, LlmRequest, MessageContent, ModelProfile, Origin,
    RawJson, StopReason, ToolCall, ToolOutcome,
};

/// The result of a call that has none.
pub(super) const NO_RESULT: &str = "No result provided";

const IMAGE_NOTE: &str = "[image left out: this model cannot see images]";

/// A message ready for a wire format, and the request message that it came from.
pub(super) struct Prepared<'r> {
    pub(super) source: Option<usize>,
    pub(super) content: Content<'r>,
}

pub(super) enum Content<'r> {
    User(Vec<Part<'r>>),
    Assistant {
        origin: OriginMatch,
        blocks: Vec<Block<'r>>,
    },
    Result {
        call_id: &'r str,
        parts: Vec<Part<'r>>,
        outcome: ToolOutcome,
    },
    /// Items of the same model.
    Opaque(&'r [RawJson<'r>]),
}

/// Whether a reply came from the model that is asked now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum OriginMatch {
    /// API, provider and model are the same.
    Same,
    /// Something differs or is unknown.
    Other,
}

pub(super) enum Part<'r> {
    Text(Cow<'r, str>),
    Image(&'r Image<'r>),
}

#[derive(Clone, Copy)]
pub(super) enum Block<'r> {
    Text {
        text: &'r str,
        signature: Option<&'r str>,
    },
    /// Of the same model only, and signed.
    Thinking {
        text: &'r str,
        signature: &'r str,
    },
    /// Of the same model only.
    Redacted {
        data: &'r str,
    },
    Call(&'r ToolCall<'r>),
}

/// Prepares the messages of a request for a model.
pub(super) fn prepare<'r>(profile: &ModelProfile, request: &'r LlmRequest<'_>) -> Vec<Prepared<'r>> {
    let mut out = Preparing {
        images: profile.capabilities.images,
        ready: Vec::new(),
        open: Vec::new(),
        late: Vec::new(),
    };
    for (index, message) in request.messages.iter().enumerate() {
        match &message.content {
            MessageContent::User { blocks } => {
                out.close_calls();
                let parts = out.parts(blocks);
                out.push_user(index, parts);
            }
            MessageContent::Assistant {
                stop: StopReason::Error | StopReason::Aborted,
                ..
            } => {}
            MessageContent::Assistant { origin, blocks, .. } => {
                out.close_calls();
                let origin = match origin {
                    Some(origin) if is_same(profile, origin) => OriginMatch::Same,
                    _ => OriginMatch::Other,
                };
                out.push_assistant(index, origin, blocks);
            }
            MessageContent::Opaque {
                origin,
                items,
                fallback,
            } => {
                out.close_calls();
                if profile.api == Api::OpenAiResponses && is_same(profile, origin) {
                    out.push(Some(index), Content::Opaque(items));
                } else if !fallback.trim().is_empty() {
                    out.push(
                        Some(index),
                        Content::User(vec![Part::Text(Cow::Borrowed(fallback))]),
                    );
                }
            }
            MessageContent::ToolResult {
                call_id,
                tool_name,
                blocks,
                outcome,
            } => {
                let parts = out.parts(blocks);
                if let Some(at) = out.open.iter().position(|open| *open == call_id.as_ref()) {
                    out.open.swap_remove(at);
                    out.push(
                        Some(index),
                        Content::Result {
                            call_id,
                            parts,
                            outcome: *outcome,
                        },
                    );
                } else {
                    let mut text = vec![Part::Text(
                        format!("Result of an earlier call of {tool_name} ({call_id}):").into(),
                    )];
                    text.extend(parts);
                    out.late.push((index, text));
                }
            }
        }
    }
    out.close_calls();
    out.ready
}

fn is_same(profile: &ModelProfile, origin: &Origin) -> bool {
    origin.api == profile.api && origin.provider == profile.provider && origin.model == profile.id
}

struct Preparing<'r> {
    images: ImageInput,
    ready: Vec<Prepared<'r>>,
    /// Calls of the newest reply that wait for their result.
    open: Vec<&'r str>,
    /// Results without a call, which wait until no call is open.
    late: Vec<(usize, Vec<Part<'r>>)>,
}

impl<'r> Preparing<'r> {
    fn push(&mut self, source: Option<usize>, content: Content<'r>) {
        self.ready.push(Prepared { source, content });
    }

    fn push_user(&mut self, index: usize, parts: Vec<Part<'r>>) {
        if !parts.is_empty() {
            self.push(Some(index), Content::User(parts));
        }
    }

    fn push_assistant(&mut self, index: usize, origin: OriginMatch, blocks: &'r [AssistantBlock<'_>]) {
        let mut kept = Vec::with_capacity(blocks.len());
        for block in blocks {
            match (block, origin) {
                (
                    AssistantBlock::Thinking {
                        text,
                        signature: Some(signature),
                    },
                    OriginMatch::Same,
                ) => {
                    kept.push(Block::Thinking { text, signature });
                }
                (AssistantBlock::RedactedThinking { data }, OriginMatch::Same) => {
                    kept.push(Block::Redacted { data });
                }
                (AssistantBlock::Text { text, signature }, _) if !text.trim().is_empty() => {
                    let signature = signature.as_deref().filter(|_| origin == OriginMatch::Same);
                    kept.push(Block::Text { text, signature });
                }
                // Thinking without proof must not pose as thinking; its words may still help.
                (AssistantBlock::Thinking { text, .. }, _) if !text.trim().is_empty() => {
                    kept.push(Block::Text {
                        text,
                        signature: None,
                    });
                }
                (AssistantBlock::Text { .. } | AssistantBlock::Thinking { .. }, _)
                | (AssistantBlock::RedactedThinking { .. }, OriginMatch::Other) => {}
                (AssistantBlock::ToolCall(call), _) => {
                    self.open.push(&call.id);
                    kept.push(Block::Call(call));
                }
            }
        }
        if !kept.is_empty() {
            self.push(Some(index), Content::Assistant { origin, blocks: kept });
        }
    }

    /// Answers the calls that are still open and lets late results through.
    fn close_calls(&mut self) {
        for call_id in std::mem::take(&mut self.open) {
            let parts = vec![Part::Text(NO_RESULT.into())];
            self.push(
                None,
                Content::Result {
                    call_id,
                    parts,
                    outcome: ToolOutcome::Error,
                },
            );
        }
        for (index, parts) in std::mem::take(&mut self.late) {
            self.push_user(index, parts);
        }
    }

    fn parts(&self, blocks: &'r [InputBlock<'_>]) -> Vec<Part<'r>> {
        let mut parts = Vec::with_capacity(blocks.len());
        for block in blocks {
            match (block, self.images) {
                (InputBlock::Text(text), _) if text.trim().is_empty() => {}
                (InputBlock::Text(text), _) => parts.push(Part::Text(Cow::Borrowed(text))),
                (InputBlock::Image(image), ImageInput::Yes) => parts.push(Part::Image(image)),
                (InputBlock::Image(_), ImageInput::No) => parts.push(Part::Text(IMAGE_NOTE.into())),
            }
        }
        parts
    }
}

/// Ids of calls as an API allows them: a call and its result get the same one, two calls never.
pub(super) struct CallIds<'r> {
    limit: usize,
    wire: BTreeMap<&'r str, String>,
    taken: BTreeSet<String>,
}

impl<'r> CallIds<'r> {
    pub(super) const fn new(limit: usize) -> Self {
        Self {
            limit,
            wire: BTreeMap::new(),
            taken: BTreeSet::new(),
        }
    }

    /// The wire id of a call.
    pub(super) fn wire_id(&mut self, id: &'r str) -> String {
        if let Some(wire) = self.wire.get(id) {
            return wire.clone();
        }
        let base = sanitise(id, self.limit);
        let mut wire = base.clone();
        let mut number = 1_u32;
        while self.taken.contains(&wire) {
            number += 1;
            let suffix = format!("_{number}");
            let room = self.limit.saturating_sub(suffix.len());
            wire = format!("{}{suffix}", base.get(..room.min(base.len())).unwrap_or_default());
        }
        self.taken.insert(wire.clone());
        self.wire.insert(id, wire.clone());
        wire
    }
}

/// Letters, digits, `_` and `-` only, and not longer than the API takes.
pub(super) fn sanitise(id: &str, limit: usize) -> String {
    let clean: String = id
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') {
                c
            } else {
                '_'
            }
        })
        .take(limit)
        .collect();
    if clean.is_empty() {
        "call".to_owned()
    } else {
        clean
    }
}

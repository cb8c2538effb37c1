//! A session whose model answers at once, and forgets at once what it was asked.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use foldline_agent_session::tool::{Tool, ToolOutput, ToolRun};
use foldline_agent_session::{AgentSession, Models, SessionOptions};
use foldline_llm_client::testing::{text_reply, tool_call};
use foldline_llm_client::{EventStream, LanguageModel, LlmError, LlmEvent};
use foldline_session_model::model_call::{
    Api, LlmRequest, MessageContent, ModelProfile, ModelRef, RawJson, StopReason, ToolSpec, Usage,
};
use foldline_session_model::{HeaderDraft, Tokens};
use foldline_session_store::SessionStore;
use futures::StreamExt as _;
use tokio_util::sync::CancellationToken;

const SYSTEM: &str = "You are a careful engineer.";
const WINDOW: u64 = 40_000;

/// Each prompt leads to one call and one answer; summaries are short.
struct Quick {
    profile: ModelProfile,
    calls: AtomicUsize,
}

#[async_trait]
impl LanguageModel for Quick {
    fn profile(&self) -> &ModelProfile {
        &self.profile
    }

    async fn stream(
        &self,
        request: &LlmRequest<'_>,
        _cancel: CancellationToken,
    ) -> Result<EventStream, LlmError> {
        let is_turn = request.system.first().is_some_and(|system| system == SYSTEM);
        let answers_result = matches!(
            request.messages.last().map(|message| &message.content),
            Some(MessageContent::ToolResult { .. })
        );
        let mut reply = if is_turn {
            text_reply(&"this was done and that is next, ".repeat(20))
        } else {
            text_reply(
                "## Goal\nBuild the parser.\n## Progress\n- lexer done\n## Next Steps\n1. the parser\n",
            )
        };
        if is_turn && !answers_result {
            let number = self.calls.fetch_add(1, Ordering::Relaxed);
            reply.blocks.extend(tool_call(
                &format!("call-{number}"),
                "read",
                "{\"path\":\"src/parser.rs\"}",
            ));
            reply.stop = StopReason::ToolUse;
        }
        let size = serde_json::to_string(request).unwrap().len() as u64 / 5;
        reply.usage = Usage::from_parts(Tokens(size), Tokens(200), Tokens::ZERO, Tokens::ZERO);
        Ok(futures::stream::iter([Ok(LlmEvent::End(Box::new(reply)))]).boxed())
    }
}

/// A file of a few hundred lines.
struct Read;

#[async_trait]
impl Tool for Read {
    fn spec(&self) -> ToolSpec<'static> {
        ToolSpec {
            name: "read".into(),
            description: "Reads a file.".into(),
            parameters: RawJson::empty_object(),
        }
    }

    async fn run(&self, call: ToolRun<'_>) -> ToolOutput {
        let lines = (0..200).map(|n| format!("{n}: let value_{n} = {};\n", call.call_id));
        ToolOutput::text(lines.collect::<String>())
    }
}

/// A new session at this path.
pub(crate) fn session(store: Arc<dyn SessionStore>, path: &Path) -> AgentSession {
    let name = ModelRef {
        provider: "bench".to_owned(),
        id: "quick".to_owned(),
    };
    let mut profile = ModelProfile::unknown(name, Api::AnthropicMessages);
    profile.context_window = Some(Tokens(WINDOW));
    profile.max_output = Some(Tokens(4_000));
    let options = SessionOptions {
        system: vec![SYSTEM.to_owned()],
        tools: vec![Arc::new(Read)],
        models: Models {
            current: Some(Arc::new(Quick {
                profile,
                calls: AtomicUsize::new(0),
            })),
            ..Models::default()
        },
        ..SessionOptions::default()
    };
    let header = HeaderDraft {
        id: "bench".to_owned(),
        timestamp: "2026-01-01T00:00:00.000Z".to_owned(),
        cwd: "/work".to_owned(),
        parent_session: None,
        title: None,
    };
    AgentSession::create(store, path, &header, options).unwrap()
}

//! A session in memory with a scripted model, for tests.

pub(crate) mod pairs;

use std::path::Path;
use std::sync::Arc;

use foldline_llm_client::testing::{Script, ScriptedModel, WhenEmpty};
use foldline_session_model::fold::Profile;
use foldline_session_model::log::{SessionLog, Trust};
use foldline_session_model::message::Message;
use foldline_session_model::model_call::{Api, ErrorClass, LlmRequest, ModelProfile, ModelRef, Usage};
use foldline_session_model::{HeaderDraft, Tokens};
use foldline_session_store::{MemoryStore, SessionStore};
use tokio::sync::mpsc::UnboundedReceiver;

use crate::event::Event;
use crate::{AgentSession, Models, SessionOptions};
use pairs::Pairs;

/// The file of every test session.
pub(crate) const FILE: &str = "/sessions/test.jsonl";

/// The system text of every test session.
const SYSTEM: &str = "You are a careful engineer.";

/// A session in memory, what it is asked with, and what it tells.
pub(crate) struct Rig {
    pub(crate) session: AgentSession,
    pub(crate) model: Arc<ScriptedModel>,
    pub(crate) store: MemoryStore,
    pub(crate) options: SessionOptions,
    events: UnboundedReceiver<Arc<Event>>,
    /// Every test is also one of this: each start has one end.
    pairs: Pairs,
}

/// A model with this window.
pub(crate) fn profile(name: &str, window: u64) -> ModelProfile {
    let mut profile = ModelProfile::unknown(
        ModelRef {
            provider: "test".to_owned(),
            id: name.to_owned(),
        },
        Api::AnthropicMessages,
    );
    profile.context_window = Some(Tokens(window));
    profile.max_output = Some(Tokens(window / 8));
    profile
}

/// What a request with a prompt of this size costs.
pub(crate) fn used(prompt: u64) -> Usage {
    Usage::from_parts(Tokens(prompt), Tokens(50), Tokens::ZERO, Tokens::ZERO)
}

/// A request that does not fit.
pub(crate) fn overflow() -> Script {
    let class = ErrorClass::Overflow {
        limit: Some(Tokens(200_000)),
        input: None,
        output: None,
    };
    Script::failure(class, "prompt is too long for the maximum of 200000 tokens")
}

/// A summary that is good enough to be taken.
pub(crate) fn summary() -> Script {
    Script::reply(SUMMARY, used(5_000))
}

/// The same after a wait of a second.
pub(crate) fn slow_summary() -> Script {
    Script::new()
        .wait(std::time::Duration::from_secs(1))
        .text(SUMMARY)
        .usage(used(5_000))
        .stop(foldline_session_model::model_call::StopReason::Stop)
}

/// Its text.
pub(crate) const SUMMARY: &str = "## Goal\nBuild the parser.\n## Constraints & Preferences\n- keep it small\n## Progress\n### Done\n- [x] \
                       lexer\n### In Progress\n- [ ] parser\n### Blocked\n- none\n## Key Decisions\n- **Hand-written**: \
                       faster\n## Next Steps\n1. finish the parser\n## Critical Context\n- src/parser.rs\n";

/// Whether a request is a turn of the agent; maintenance has system texts of its own.
pub(crate) fn is_turn(request: &LlmRequest<'_>) -> bool {
    request.system.first().is_some_and(|system| system == SYSTEM)
}

/// The estimate of all texts of a request.
pub(crate) fn estimated(request: &LlmRequest<'_>) -> u64 {
    use foldline_session_model::model_call::{AssistantBlock, InputBlock, MessageContent};
    use foldline_session_model::tokens::{Heuristic, TokenCounter as _};
    let one = |text: &str| Heuristic.one(text).get();
    let mut tokens: u64 = request.system.iter().map(|text| one(text) + 4).sum();
    for tool in &request.tools {
        tokens += one(&tool.name) + one(&tool.description) + one(tool.parameters.get());
    }
    for message in &request.messages {
        tokens += 4;
        tokens += match &message.content {
            MessageContent::User { blocks } | MessageContent::ToolResult { blocks, .. } => blocks
                .iter()
                .map(|block| match block {
                    InputBlock::Text(text) => one(text),
                    InputBlock::Image(_) => 0,
                })
                .sum::<u64>(),
            MessageContent::Assistant { blocks, .. } => blocks
                .iter()
                .map(|block| match block {
                    AssistantBlock::Text { text, .. } => one(text),
                    _ => 0,
                })
                .sum(),
            _ => 0,
        };
    }
    tokens
}

/// A model that answers turns and maintenance by different rules.
pub(crate) fn two_minds(
    window: u64,
    turn: impl Fn(&LlmRequest<'_>, usize) -> Script + Send + Sync + 'static,
    maintenance: impl Fn(&LlmRequest<'_>, usize) -> Script + Send + Sync + 'static,
) -> ScriptedModel {
    ScriptedModel::answering(profile("one", window), move |request, number| {
        if is_turn(request) {
            turn(request, number)
        } else {
            maintenance(request, number)
        }
    })
}

/// Options with this model and nothing else.
pub(crate) fn options(model: &Arc<ScriptedModel>) -> SessionOptions {
    SessionOptions {
        system: vec![SYSTEM.to_owned()],
        models: Models {
            current: Some(Arc::clone(model) as _),
            ..Models::default()
        },
        ..SessionOptions::default()
    }
}

impl Rig {
    /// A new session on a model with a window of 200,000 tokens that plays these answers.
    pub(crate) fn new(scripts: impl IntoIterator<Item = Script>) -> Self {
        Self::with(200_000, scripts, |_| {})
    }

    /// The same with another window and changed options.
    pub(crate) fn with(
        window: u64,
        scripts: impl IntoIterator<Item = Script>,
        change: impl FnOnce(&mut SessionOptions),
    ) -> Self {
        let model = ScriptedModel::new(profile("one", window), scripts, WhenEmpty::Fail);
        Self::over(model, change)
    }

    /// A new session on this model.
    pub(crate) fn over(model: ScriptedModel, change: impl FnOnce(&mut SessionOptions)) -> Self {
        Self::on(Arc::new(model), change)
    }

    /// The same on a model that the test asks too.
    pub(crate) fn on(model: Arc<ScriptedModel>, change: impl FnOnce(&mut SessionOptions)) -> Self {
        let mut options = options(&model);
        change(&mut options);
        let store = MemoryStore::new();
        let header = HeaderDraft {
            id: "test-session".to_owned(),
            timestamp: "2026-01-01T00:00:00.000Z".to_owned(),
            cwd: "/work".to_owned(),
            parent_session: None,
            title: None,
        };
        let session =
            AgentSession::create(Arc::new(store.clone()), Path::new(FILE), &header, options.clone()).unwrap();
        let events = session.subscribe();
        Self {
            session,
            model,
            store,
            options,
            events,
            pairs: Pairs::default(),
        }
    }

    /// Waits until a compaction is being written.
    pub(crate) async fn until_compacting(&self) {
        for _ in 0..300 {
            if self.session.state().is_compacting {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        panic!("no compaction began");
    }

    /// Opens the session again, as another process would.
    pub(crate) fn reopen(&mut self) {
        drop(self.events());
        std::mem::take(&mut self.pairs).check();
        self.session = AgentSession::open(
            Arc::new(self.store.clone()),
            Path::new(FILE),
            self.options.clone(),
        )
        .unwrap();
        self.events = self.session.subscribe();
    }

    /// Turns of this many tokens each, without asking the model.
    pub(crate) async fn filled(self, turns: usize, tokens: usize) -> Self {
        let core = self.session.core();
        let mut core = core.lock().await;
        for turn in 0..turns {
            let text = format!("turn {turn}: {}", "word ".repeat(tokens));
            let question = crate::message::input(
                crate::message::Speaker::User,
                &[foldline_session_model::model_call::InputBlock::Text(
                    format!("question {turn}").into(),
                )],
                None,
                0,
            );
            core.append(question).await.unwrap();
            let reply = foldline_llm_client::testing::text_reply(&text);
            let answer = crate::message::assistant(&reply, self.profile(), None, 0);
            core.append(answer).await.unwrap();
        }
        drop(core);
        self
    }

    pub(crate) fn profile(&self) -> &ModelProfile {
        use foldline_llm_client::LanguageModel as _;
        self.model.profile()
    }

    /// How many of the requests so far were turns of the agent.
    pub(crate) fn turns(&self) -> usize {
        let asked = self.model.asked();
        asked.iter().filter(|asked| is_turn(&asked.request)).count()
    }

    /// What was told since the last call.
    pub(crate) fn events(&mut self) -> Vec<Arc<Event>> {
        let mut events = Vec::new();
        while let Ok(event) = self.events.try_recv() {
            self.pairs.see(&*event);
            events.push(event);
        }
        events
    }

    /// The types of what was told since the last call, without the pieces of answers.
    pub(crate) fn told(&mut self) -> Vec<String> {
        let events = self.events();
        let names = events.iter().map(|event| name(event));
        names
            .filter(|name| !matches!(name.as_str(), "message_update" | "queue_update"))
            .collect()
    }

    /// The file as another process reads it.
    pub(crate) fn log(&self) -> SessionLog {
        let bytes: Vec<u8> = self.store.read(Path::new(FILE)).unwrap().into();
        SessionLog::load(bytes, Trust::Validated).unwrap()
    }

    /// The bytes of the file.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.store.read(Path::new(FILE)).unwrap().into()
    }

    /// The context as `role: text` lines, texts cut.
    pub(crate) fn context(&self) -> Vec<String> {
        let log = self.log();
        let context = log
            .context(&foldline_session_model::tree::Leaf::Last, Profile::Auto)
            .unwrap();
        context.messages().map(shown).collect()
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        drop(self.events());
        if self.session.core().try_lock().is_ok() {
            self.pairs.check_idle();
        } else {
            self.pairs.check();
        }
    }
}

/// The type of an event.
pub(crate) fn name(event: &Event) -> String {
    let json = serde_json::to_string(event).unwrap();
    let (_, rest) = json.split_once("\"type\":\"").unwrap();
    rest.split('"').next().unwrap().to_owned()
}

fn shown(message: &Message<'_>) -> String {
    let text = match message {
        Message::CompactionSummary(summary) => summary.summary.to_string(),
        Message::BranchSummary(summary) => summary.summary.to_string(),
        Message::VerbatimBoundary(boundary) => boundary.text.to_string(),
        message => message
            .content()
            .map(|content| content.texts().collect::<Vec<_>>().join(" "))
            .unwrap_or_default(),
    };
    let text: String = text.chars().take(40).collect();
    format!("{}: {}", message.role(), text.trim())
}

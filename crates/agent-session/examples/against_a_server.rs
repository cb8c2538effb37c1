//! A session on a model whose window is smaller than its profile says: it overflows, is compacted and goes on, and goes
//! on again in another process.
//!
//! usage: `against_a_server BASE_URL CONTEXT_TOKENS [PROMPTS | resume FILE]`
//!
//! Written for llama.cpp with a small model: it checks that the session survives, not what is answered.
#![allow(clippy::print_stdout, reason = "an example reports to the terminal")]

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use foldline_agent_session::event::{Event, OperationOutcome, RunEnd};
use foldline_agent_session::{AgentSession, Models, Prompted, SessionOptions};
use foldline_compaction_core::decide::Reason;
use foldline_llm_client::endpoint::{Auth, Endpoint, PlainHttp};
use foldline_llm_client::{EndpointPlace, EventStream, LanguageModel, LlmError, ProviderModel, WindowSource};
use foldline_session_model::log::{SessionLog, Trust};
use foldline_session_model::model_call::{
    Api, AssistantBlock, ErrorClass, LlmRequest, MessageContent, ModelProfile, ModelRef,
};
use foldline_session_model::{HeaderDraft, Tokens};
use foldline_session_store::DiskStore;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// What the profile claims, four times what the server has.
const CLAIMED: Tokens = Tokens(8_192);
const PROMPTS: usize = 12;
/// What the profile says that an answer may have. Nothing holds the model to it: a small one likes to repeat itself until
/// its window is full.
const ANSWER: Tokens = Tokens(1_024);
/// One prompt with everything that follows from it.
const PROMPT: Duration = Duration::from_secs(180);
/// So many overflows have to happen, or nothing was shown.
const OVERFLOWS: usize = 3;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (Some(base), Some(_)) = (arguments.first(), arguments.get(1)) else {
        return Err("usage: against_a_server BASE_URL CONTEXT_TOKENS [PROMPTS]".into());
    };
    let prompts = match (arguments.get(2).map(String::as_str), arguments.get(3)) {
        (Some("resume"), Some(file)) => return resume(base, Path::new(file)).await,
        (Some(count), _) => count.parse()?,
        (None, _) => PROMPTS,
    };
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("session.jsonl");
    run(base, &file, prompts).await?;

    let status = std::process::Command::new(std::env::current_exe()?)
        .args(arguments.iter().take(2))
        .arg("resume")
        .arg(&file)
        .status()?;
    if !status.success() {
        return Err(format!("the session could not be resumed: {status}").into());
    }
    Ok(())
}

/// Prompts until the window overflowed often enough.
async fn run(base: &str, file: &Path, prompts: usize) -> Result<(), Failure> {
    let model = Watched::new(base)?;
    let header = HeaderDraft {
        id: "against-a-server".to_owned(),
        timestamp: "2026-01-01T00:00:00.000Z".to_owned(),
        cwd: "/".to_owned(),
        parent_session: None,
        title: None,
    };
    let session = AgentSession::create(Arc::new(DiskStore::new()), file, &header, options(&model))?;
    let mut events = session.subscribe();
    let started = Instant::now();
    let (mut overflows, mut recovered, mut filled, mut compactions) = (0, 0, 0, 0);
    for number in 1..=prompts {
        let before = model.overflows();
        let report = match tokio::time::timeout(PROMPT, session.prompt(question(number))).await {
            Err(_) => return Err(format!("prompt {number} took longer than {} s", PROMPT.as_secs()).into()),
            Ok(prompted) => match prompted? {
                Prompted::Ran(report) => report,
                Prompted::Queued => return Err(format!("prompt {number} was queued").into()),
            },
        };
        let mut committed = 0;
        let mut told = Vec::new();
        while let Ok(event) = events.try_recv() {
            match &*event {
                Event::CompactionEnd(end) if end.outcome == OperationOutcome::Committed => {
                    compactions += 1;
                    committed += usize::from(end.reason == Reason::Overflow);
                }
                Event::CompactionEnd(end) => told.extend(end.error_message.clone()),
                _ => {}
            }
        }
        let refused = model.overflows() - before;
        overflows += usize::from(refused > 0);
        if refused > 0 {
            if report.end != RunEnd::Completed || committed == 0 {
                let told = told.join("; ");
                return Err(format!("prompt {number} was not recovered: {report:?} ({told})").into());
            }
            recovered += 1;
        } else if report.end == RunEnd::Completed {
            // An answer that filled the window is an overflow too, which nobody refused.
            filled += usize::from(committed > 0);
        } else {
            return Err(format!("prompt {number} failed: {report:?}").into());
        }
        check(file)?;
    }
    model.verdict()?;
    if overflows + filled < OVERFLOWS {
        return Err(
            format!("only {overflows} of {prompts} prompts overflowed, {filled} filled the window").into(),
        );
    }
    println!(
        "{prompts} prompts: {overflows} overflows, {recovered} recovered, {filled} filled the window, {compactions} \
         compactions, {} requests without an orphan ({:.1} s)",
        model.requests(),
        started.elapsed().as_secs_f64()
    );
    Ok(())
}

/// Goes on with a session that another process left.
async fn resume(base: &str, file: &Path) -> Result<(), Failure> {
    let model = Watched::new(base)?;
    let session = AgentSession::open(Arc::new(DiskStore::new()), file, options(&model))?;
    let prompted =
        tokio::time::timeout(PROMPT, session.prompt("Thank you. Name one of the topics.")).await??;
    match prompted {
        Prompted::Ran(report) if report.end == RunEnd::Completed => {}
        other => return Err(format!("the resumed session did not answer: {other:?}").into()),
    }
    check(file)?;
    model.verdict()?;
    println!("resumed in another process and answered");
    Ok(())
}

fn options(model: &Arc<Watched>) -> SessionOptions {
    SessionOptions {
        system: vec!["Answer in one short sentence.".to_owned()],
        models: Models {
            current: Some(Arc::clone(model) as _),
            place: EndpointPlace::Local,
            // What the profile says stands, so that the window overflows again and again.
            window_source: WindowSource::User,
            ..Models::default()
        },
        ..SessionOptions::default()
    }
}

/// A question of a few hundred tokens; each is another one.
fn question(number: usize) -> String {
    const WORDS: [&str; 12] = [
        "river", "engine", "harvest", "signal", "garden", "window", "copper", "letter", "island", "winter",
        "bridge", "market",
    ];
    let text: Vec<String> = (0..110)
        .map(|at| {
            format!(
                "{} {}",
                WORDS[(at * 7 + number * 5) % WORDS.len()],
                at * number % 97
            )
        })
        .collect();
    format!(
        "Topic {number} is about the {}. Notes: {}. Which word comes first?",
        WORDS[number % WORDS.len()],
        text.join(", ")
    )
}

/// The file is valid to the last byte.
fn check(file: &Path) -> Result<(), Failure> {
    let log = SessionLog::load(fs_err::read(file)?, Trust::Validated)?;
    match log.damage().first() {
        None => Ok(()),
        Some(damage) => Err(format!("line {}: {}", damage.line, damage.kind).into()),
    }
}

/// A model that is watched: each request has its pairs whole, and overflows are counted.
struct Watched {
    inner: ProviderModel,
    requests: AtomicUsize,
    overflows: AtomicUsize,
    broken: Mutex<Option<String>>,
}

impl Watched {
    fn new(base: &str) -> Result<Arc<Self>, LlmError> {
        let name = ModelRef {
            provider: "llama.cpp".to_owned(),
            id: "smollm2".to_owned(),
        };
        let mut profile = ModelProfile::unknown(name, Api::OpenAiCompletions);
        profile.context_window = Some(CLAIMED);
        profile.max_output = Some(ANSWER);
        let endpoint = Endpoint::new(base, Auth::None, PlainHttp::LoopbackOnly)?;
        Ok(Arc::new(Self {
            inner: ProviderModel::new(profile, endpoint)?,
            requests: AtomicUsize::new(0),
            overflows: AtomicUsize::new(0),
            broken: Mutex::new(None),
        }))
    }

    fn requests(&self) -> usize {
        self.requests.load(Ordering::Relaxed)
    }

    fn overflows(&self) -> usize {
        self.overflows.load(Ordering::Relaxed)
    }

    fn verdict(&self) -> Result<(), Failure> {
        match &*self.broken.lock().unwrap_or_else(PoisonError::into_inner) {
            None => Ok(()),
            Some(broken) => Err(broken.clone().into()),
        }
    }
}

#[async_trait]
impl LanguageModel for Watched {
    fn profile(&self) -> &ModelProfile {
        self.inner.profile()
    }

    async fn stream(
        &self,
        request: &LlmRequest<'_>,
        cancel: CancellationToken,
    ) -> Result<EventStream, LlmError> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        if let Some(broken) = broken_pair(request) {
            *self.broken.lock().unwrap_or_else(PoisonError::into_inner) = Some(broken);
        }
        let answer = self.inner.stream(request, cancel).await;
        // Summaries that do not fit are none of the turn's overflows: they ask for no conversation.
        let of_a_turn = request.session_key.is_some();
        if let Err(error) = &answer
            && of_a_turn
            && matches!(error.class, ErrorClass::Overflow { .. })
        {
            self.overflows.fetch_add(1, Ordering::Relaxed);
        }
        answer
    }
}

/// A call without its result, or a result without its call.
fn broken_pair(request: &LlmRequest<'_>) -> Option<String> {
    let mut open: BTreeSet<&str> = BTreeSet::new();
    for message in &request.messages {
        match &message.content {
            MessageContent::ToolResult { call_id, .. } if !open.remove(&**call_id) => {
                return Some(format!("the result {call_id} has no call before it"));
            }
            MessageContent::Assistant { blocks, .. } => {
                open.extend(blocks.iter().filter_map(|block| match block {
                    AssistantBlock::ToolCall(call) => Some(&*call.id),
                    _ => None,
                }));
            }
            _ => {}
        }
    }
    open.first().map(|id| format!("the call {id} has no result"))
}

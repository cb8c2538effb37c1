//! A session in memory, a model and a tool that make trouble, and what was said and acknowledged.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use foldline_agent_session::event::Event;
use foldline_agent_session::tool::{Concurrency, Tool, ToolOutput, ToolRun};
use foldline_agent_session::{
    AgentSession, CompactOptions, Delivery, Models, Prompt, Prompted, SessionError, SessionOptions,
};
use foldline_llm_client::testing::{Script, ScriptedModel};
use foldline_session_model::model_call::{
    Api, ErrorClass, LlmRequest, ModelProfile, ModelRef, RawJson, StopReason, ToolSpec, TransientCause, Usage,
};
use foldline_session_model::{HeaderDraft, Tokens};
use foldline_session_store::{Fault, MemoryStore, SessionStore as _};
use tokio::sync::mpsc::UnboundedReceiver;

use crate::checks;
use crate::ledger::{Fate, Ledger, Queue};
use crate::pairs::Pairs;

const FILE: &str = "/sessions/test.jsonl";
const SYSTEM: &str = "You are a careful engineer.";
const WINDOW: u64 = 8_000;

/// Something that happens to a session.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    Prompt(Way),
    Steer,
    FollowUp,
    Compact,
    CompactIdle,
    Abort,
    AbortCompaction,
    AbortRetry,
    Name,
    Resume,
    /// A prompt whose caller goes away.
    DropPrompt,
    /// Waits until nothing is in progress.
    Settle,
    /// Milliseconds.
    Wait(u64),
}

/// What becomes of a prompt while a run is in progress.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Way {
    Refuse,
    Steer,
    FollowUp,
}

/// How a process ends.
#[derive(Clone, Debug)]
pub(crate) enum Death {
    /// When nothing is in progress.
    Quit,
    /// The process alone.
    Killed,
    /// The machine, and the number says what the disk has kept.
    PowerNow(u64),
    /// The same, in the midst of one of the next writes.
    PowerIn { steps: u64, seed: u64 },
}

#[derive(Clone, Debug)]
pub(crate) struct Life {
    pub(crate) ops: Vec<Op>,
    pub(crate) death: Death,
}

/// Sleeps for a while and answers; remembers which calls it ran.
struct Look {
    ran: Mutex<Vec<String>>,
    dice: Dice,
}

#[async_trait]
impl Tool for Look {
    fn spec(&self) -> ToolSpec<'static> {
        ToolSpec {
            name: "look".into(),
            description: "Looks at something.".into(),
            parameters: RawJson::empty_object(),
        }
    }

    fn concurrency(&self) -> Concurrency {
        Concurrency::Parallel
    }

    async fn run(&self, call: ToolRun<'_>) -> ToolOutput {
        self.ran.lock().unwrap().push(call.call_id.to_owned());
        let roll = self
            .dice
            .at(call.call_id.len() as u64 ^ call.call_id.bytes().map(u64::from).sum::<u64>());
        let work = tokio::time::sleep(Duration::from_millis(roll % 900));
        match roll % 5 {
            // One that does not heed a cancel.
            0 => work.await,
            _ => drop(call.cancel.run_until_cancelled(work).await),
        }
        ToolOutput::text(format!(
            "{}: {}",
            call.call_id,
            "found it ".repeat(usize::try_from(roll % 400).unwrap())
        ))
    }
}

/// `SplitMix64` over a seed and a number.
#[derive(Clone, Copy)]
struct Dice(u64);

impl Dice {
    fn at(self, number: u64) -> u64 {
        let mut z = self
            .0
            .wrapping_add(number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) >> 3
    }
}

pub(crate) struct World {
    store: MemoryStore,
    options: SessionOptions,
    model: Arc<ScriptedModel>,
    tool: Arc<Look>,
    calm: Arc<AtomicBool>,
    ledger: Arc<Mutex<Ledger>>,
    /// Prompts that nobody may know of: their callers went away.
    dropped: Vec<usize>,
}

/// What a model says to a request.
fn answer(dice: Dice, calm: bool, request: &LlmRequest<'_>, number: usize) -> Script {
    let roll = dice.at(number as u64);
    let size = serde_json::to_string(request).unwrap().len() as u64 / 4;
    let usage = Usage::from_parts(Tokens(size), Tokens(40), Tokens::ZERO, Tokens::ZERO);
    let silence = Duration::from_millis(roll / 100 % 2_000);
    if request.system.first().is_none_or(|system| system != SYSTEM) {
        let text = "## Goal\nBuild the parser.\n## Progress\n- lexer done, parser in progress\n## Next Steps\n1. go on\n";
        return match roll % 10 {
            0 if !calm => Script::failure(ErrorClass::Transient(TransientCause::Overloaded), "overloaded"),
            1 if !calm => Script::hang(),
            2 if !calm => Script::failure(ErrorClass::Auth, "no"),
            _ => Script::new()
                .wait(silence)
                .text(text)
                .usage(usage)
                .stop(StopReason::Stop),
        };
    }
    let call = |script: Script, n: u64| script.call(format!("call-{number}-{n}"), "look", "{}");
    match roll % 20 {
        0 | 1 if !calm => Script::failure(ErrorClass::Transient(TransientCause::Overloaded), "overloaded"),
        2 if !calm => Script::failure(
            ErrorClass::OVERFLOW,
            "prompt is too long: 9000 tokens > 8000 maximum",
        ),
        3 if !calm => Script::new().wait(silence).text("half an ans"),
        4 if !calm => Script::hang(),
        5 if !calm => Script::failure(ErrorClass::Auth, "no"),
        6 if !calm => Script::new().text("cut").usage(usage).stop(StopReason::Length),
        7..=10 if request.messages.len() < 60 => {
            let calls = (0..=roll / 7 % 3).fold(Script::new().wait(silence / 4), call);
            calls.usage(usage).stop(StopReason::ToolUse)
        }
        11..=14 => Script::new()
            .pieces(["this ", "is ", "an ", "answer"], silence / 4)
            .usage(usage)
            .stop(StopReason::Stop),
        _ => Script::new()
            .wait(silence)
            .text("answered")
            .usage(usage)
            .stop(StopReason::Stop),
    }
}

impl World {
    pub(crate) fn new(seed: u64) -> Self {
        let dice = Dice(seed);
        let mut profile = ModelProfile::unknown(
            ModelRef {
                provider: "test".to_owned(),
                id: "one".to_owned(),
            },
            Api::AnthropicMessages,
        );
        profile.context_window = Some(Tokens(WINDOW));
        profile.max_output = Some(Tokens(1_000));
        let calm = Arc::new(AtomicBool::new(false));
        let is_calm = Arc::clone(&calm);
        let model = Arc::new(ScriptedModel::answering(profile, move |request, number| {
            answer(dice, is_calm.load(Ordering::Relaxed), request, number)
        }));
        let tool = Arc::new(Look {
            ran: Mutex::default(),
            dice,
        });
        let mut options = SessionOptions {
            system: vec![SYSTEM.to_owned()],
            tools: vec![Arc::clone(&tool) as _],
            models: Models {
                current: Some(Arc::clone(&model) as _),
                ..Models::default()
            },
            ..SessionOptions::default()
        };
        options.settings.compaction.keep_recent_tokens = 900.0;
        options.settings.maintenance_budget = Duration::from_secs(20);
        let store = MemoryStore::new();
        let header = HeaderDraft {
            id: "test-session".to_owned(),
            timestamp: "2026-01-01T00:00:00.000Z".to_owned(),
            cwd: "/work".to_owned(),
            parent_session: None,
            title: None,
        };
        drop(
            AgentSession::create(Arc::new(store.clone()), Path::new(FILE), &header, options.clone()).unwrap(),
        );
        Self {
            store,
            options,
            model,
            tool,
            calm,
            ledger: Arc::default(),
            dropped: Vec::new(),
        }
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap()
    }

    fn open(&self) -> (AgentSession, UnboundedReceiver<Arc<Event>>) {
        let store = Arc::new(self.store.clone());
        let session = AgentSession::open(store, Path::new(FILE), self.options.clone()).unwrap();
        let events = session.subscribe();
        (session, events)
    }

    /// A process that begins, lives and ends.
    pub(crate) fn live(&mut self, life: &Life) {
        let runtime = runtime();
        let mut pairs = Pairs::default();
        let mut events = runtime.block_on(async {
            let (session, events) = self.open();
            if let Death::PowerIn { steps, .. } = life.death {
                self.store
                    .plan_fault(self.store.steps() + 1 + steps, Fault::Crash);
            }
            for op in &life.ops {
                self.happen(&session, op).await;
                for _ in 0..4 {
                    tokio::task::yield_now().await;
                }
            }
            if let Death::Quit = life.death {
                settle(&session).await;
            }
            events
        });
        // What was told is known: a message whose end was told is in the session.
        while let Ok(event) = events.try_recv() {
            pairs.see(&*event);
            if let Event::MessageEnd {
                role: "user",
                text,
                entry_id: Some(_),
                ..
            } = &*event
                && let Some(number) = checks::number(text)
            {
                self.ledger().accepted(number);
            }
        }
        match life.death {
            Death::Quit => pairs.check_idle(),
            _ => pairs.check(),
        }
        // Nothing of the process goes on.
        drop(runtime);
        match life.death {
            Death::Quit | Death::Killed => self.store.kill_writers(),
            Death::PowerNow(seed) | Death::PowerIn { seed, .. } => self.store.restart(seed),
        }
    }

    async fn happen(&mut self, session: &AgentSession, op: &Op) {
        match op {
            Op::Prompt(way) => {
                let way = *way;
                let (number, prompt) = self.prompt(way, Queue::FollowUp);
                let (session, ledger, store) =
                    (session.clone(), Arc::clone(&self.ledger), self.store.clone());
                tokio::spawn(async move {
                    let state = session.state();
                    if matches!(way, Way::Steer) && (state.is_streaming || state.is_compacting) {
                        ledger.lock().unwrap().said[number].queue = Queue::Steer;
                    }
                    let outcome = session.prompt(prompt).await;
                    let mut ledger = ledger.lock().unwrap();
                    match outcome {
                        Ok(Prompted::Ran(_) | Prompted::Queued) => ledger.accepted(number),
                        Err(error) => refused(&mut ledger, number, &error, &store),
                    }
                });
            }
            Op::DropPrompt => {
                let (number, prompt) = self.prompt(Way::FollowUp, Queue::FollowUp);
                self.dropped.push(number);
                let going = session.clone();
                let task = tokio::spawn(async move { drop(going.prompt(prompt).await) });
                tokio::task::yield_now().await;
                tokio::task::yield_now().await;
                task.abort();
            }
            Op::Steer | Op::FollowUp => {
                let queue = match op {
                    Op::Steer => Queue::Steer,
                    _ => Queue::FollowUp,
                };
                let (number, text) = self.ledger().say(queue);
                let (session, ledger, store) =
                    (session.clone(), Arc::clone(&self.ledger), self.store.clone());
                tokio::spawn(async move {
                    let outcome = match queue {
                        Queue::Steer => session.steer(text).await,
                        Queue::FollowUp => session.follow_up(text).await,
                    };
                    let mut ledger = ledger.lock().unwrap();
                    match outcome {
                        Ok(()) => ledger.accepted(number),
                        Err(error) => refused(&mut ledger, number, &error, &store),
                    }
                });
            }
            Op::Compact => {
                let session = session.clone();
                tokio::spawn(async move { drop(session.compact(CompactOptions::default()).await) });
            }
            Op::CompactIdle => {
                let session = session.clone();
                tokio::spawn(async move { drop(session.compact_idle().await) });
            }
            Op::Resume => {
                let session = session.clone();
                tokio::spawn(async move { drop(session.resume().await) });
            }
            Op::Name => {
                let session = session.clone();
                tokio::spawn(async move { drop(session.set_name("a name").await) });
            }
            Op::Abort => session.abort(),
            Op::AbortCompaction => drop(session.abort_compaction()),
            Op::AbortRetry => drop(session.abort_retry()),
            Op::Settle => settle(session).await,
            Op::Wait(time) => tokio::time::sleep(Duration::from_millis(*time)).await,
        }
    }

    fn prompt(&self, way: Way, queue: Queue) -> (usize, Prompt) {
        let (number, text) = self.ledger().say(queue);
        let prompt = Prompt::text(text);
        let prompt = match way {
            Way::Refuse => prompt,
            Way::Steer => prompt.queued_as(Delivery::Steer),
            Way::FollowUp => prompt.queued_as(Delivery::FollowUp),
        };
        (number, prompt)
    }

    /// The last life: what is left gets its turn, and then everything is counted.
    pub(crate) fn finish(&self) {
        self.calm.store(true, Ordering::Relaxed);
        let runtime = runtime();
        runtime.block_on(async {
            let (session, mut events) = self.open();
            for _ in 0..200 {
                match session.resume().await {
                    Ok(_) => {}
                    Err(SessionError::NothingToContinue | SessionError::AlreadyAnswered) => break,
                    Err(error) => panic!("{error}"),
                }
            }
            assert_eq!(
                session.state().pending_message_count,
                0,
                "messages that still wait"
            );
            // The next prompt is accepted and answered.
            let (number, prompt) = self.prompt(Way::Refuse, Queue::FollowUp);
            match session.prompt(prompt).await {
                Ok(Prompted::Ran(report)) => {
                    assert_eq!(report.error, None);
                    self.ledger().accepted(number);
                }
                other => panic!("{other:?}"),
            }
            let mut pairs = Pairs::default();
            while let Ok(event) = events.try_recv() {
                pairs.see(&*event);
            }
            pairs.check_idle();
        });
        self.check();
    }

    fn check(&self) {
        let log = checks::valid(self.store.read(Path::new(FILE)).unwrap().into());
        let delivered = checks::delivered(&log);
        let ledger = self.ledger();
        let place = |number: usize| delivered.iter().position(|found| *found == number);
        for (number, said) in ledger.said.iter().enumerate() {
            let count = delivered.iter().filter(|found| **found == number).count();
            match said.fate {
                Fate::Accepted(_) => assert_eq!(count, 1, "message {number}, {said:?}: {delivered:?}"),
                Fate::Refused => assert_eq!(count, 0, "message {number}, {said:?}: {delivered:?}"),
                Fate::Unknown => assert!(count <= 1, "message {number}, {said:?}: {delivered:?}"),
            }
            let Fate::Accepted(accepted) = said.fate else {
                continue;
            };
            for (later, other) in ledger.said.iter().enumerate() {
                if other.queue == said.queue && other.at > accepted && matches!(other.fate, Fate::Accepted(_))
                {
                    assert!(
                        place(number) < place(later),
                        "{number} after {later}: {delivered:?}"
                    );
                }
            }
        }
        for asked in self.model.asked() {
            checks::pairs_are_whole(&asked.request);
            checks::asks(&asked);
        }
        let mut ran = self.tool.ran.lock().unwrap().clone();
        let runs = ran.len();
        ran.sort();
        ran.dedup();
        assert_eq!(ran.len(), runs, "a call that ran twice");
    }
}

fn refused(ledger: &mut Ledger, number: usize, error: &SessionError, store: &MemoryStore) {
    ledger.refused(number, store.has_stopped());
    assert!(
        store.has_stopped() || matches!(error, SessionError::AgentBusy | SessionError::HandoffInProgress),
        "{error}"
    );
}

/// Waits until nothing is in progress; what hangs is cancelled.
async fn settle(session: &AgentSession) {
    for _ in 0..100 {
        if session.wait_for_idle_within(Duration::from_secs(900)).await {
            return;
        }
        session.abort();
    }
    panic!("the session does not come to rest");
}

/// One thread and a clock that jumps to the next thing that is due.
fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap()
}

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use foldline_compaction_core::settings::CompactionSettings;
use foldline_session_model::model_call::RawJson;
use foldline_session_model::{EntryId, Tokens};

use chained::Chained;

use super::*;

mod chained;

fn raw(text: &str) -> RawJson<'static> {
    RawJson::parse(text.to_owned()).unwrap()
}

pub(super) fn context(cwd: &Path) -> HookContext {
    HookContext {
        session_id: "session".into(),
        cwd: cwd.into(),
        signal: CancellationToken::new(),
        actions: Arc::new(NoActions),
    }
}

fn here() -> HookContext {
    context(Path::new("/"))
}

type Behaviour<A> =
    Box<dyn Fn(HookContext) -> futures::future::BoxFuture<'static, Result<A, HookError>> + Send + Sync>;

/// A hook whose answer to one event is a closure.
enum Scripted {
    Before(Behaviour<BeforeCompactAnswer>),
    Tree(Behaviour<BeforeTreeAnswer>),
    Tool(Behaviour<ToolCallAnswer>),
    Told(Behaviour<()>),
}

struct Scripted_ {
    path: &'static str,
    events: Vec<HookEvent>,
    does: Scripted,
}

#[async_trait]
impl Hooks for Scripted_ {
    fn path(&self) -> &str {
        self.path
    }
    fn events(&self) -> &[HookEvent] {
        &self.events
    }
    async fn session_before_compact(
        &self,
        _: &BeforeCompactEvent<'_>,
        cx: &HookContext,
    ) -> Result<BeforeCompactAnswer, HookError> {
        match &self.does {
            Scripted::Before(answer) => answer(cx.clone()).await,
            _ => Ok(BeforeCompactAnswer::default()),
        }
    }
    async fn session_before_tree(
        &self,
        _: &BeforeTreeEvent<'_>,
        cx: &HookContext,
    ) -> Result<BeforeTreeAnswer, HookError> {
        match &self.does {
            Scripted::Tree(answer) => answer(cx.clone()).await,
            _ => Ok(BeforeTreeAnswer::default()),
        }
    }
    async fn tool_call(&self, _: &ToolCallEvent<'_>, cx: &HookContext) -> Result<ToolCallAnswer, HookError> {
        match &self.does {
            Scripted::Tool(answer) => answer(cx.clone()).await,
            _ => Ok(ToolCallAnswer::default()),
        }
    }
    async fn session_compact(&self, _: &SessionCompactEvent<'_>, cx: &HookContext) -> Result<(), HookError> {
        match &self.does {
            Scripted::Told(answer) => answer(cx.clone()).await,
            _ => Ok(()),
        }
    }
}

fn before(
    path: &'static str,
    answer: impl Fn() -> Result<BeforeCompactAnswer, HookError> + Send + Sync + 'static,
) -> Arc<dyn Hooks> {
    Arc::new(Scripted_ {
        path,
        events: vec![HookEvent::SessionBeforeCompact],
        does: Scripted::Before(Box::new(move |_| {
            let answer = answer();
            Box::pin(async move { answer })
        })),
    })
}

fn tool<F: Future<Output = Result<ToolCallAnswer, HookError>> + Send + 'static>(
    path: &'static str,
    answer: impl Fn(HookContext) -> F + Send + Sync + 'static,
) -> Arc<dyn Hooks> {
    Arc::new(Scripted_ {
        path,
        events: vec![HookEvent::ToolCall],
        does: Scripted::Tool(Box::new(move |cx| Box::pin(answer(cx)))),
    })
}

fn text(text: &str) -> BeforeCompactAnswer {
    BeforeCompactAnswer {
        compacted_text: Some(text.to_owned()),
        ..BeforeCompactAnswer::default()
    }
}

fn before_compact(settings: &CompactionSettings) -> BeforeCompactEvent<'_> {
    BeforeCompactEvent {
        reason: "manual",
        preparation: CompactionPreparation {
            first_kept_entry_id: Some(EntryId::from("e4")),
            messages_to_summarize: vec![raw(r#"{"role":"user","content":"hi"}"#)],
            turn_prefix_messages: Vec::new(),
            is_split_turn: false,
            tokens_before: Tokens(1234),
            previous_summary: None,
            previous_preserve_data: None,
            file_ops: FileOpsLists {
                read: vec!["a.rs"],
                written: vec![],
                edited: vec!["b.rs"],
            },
            region: None,
            settings,
        },
        branch_entries: vec![raw(r#"{"type":"message","id":"e1"}"#)],
        parameters: None,
        custom_instructions: Some("the parser"),
    }
}

fn call() -> ToolCallEvent<'static> {
    ToolCallEvent {
        tool_name: "bash",
        tool_call_id: "c1",
        input: raw(r#"{"command":"ls"}"#),
    }
}

/// A runner, and what it reports.
fn runner(hooks: Vec<Arc<dyn Hooks>>) -> (HookRunner, Arc<Mutex<Vec<HookFailure>>>) {
    let reports = Arc::new(Mutex::new(Vec::new()));
    let to = Arc::clone(&reports);
    let reporter: HookReporter = Arc::new(move |failure| to.lock().unwrap().push(failure.clone()));
    (HookRunner::new(hooks).with_reporter(reporter), reports)
}

async fn ask(runner: &HookRunner, cx: &HookContext) -> BeforeCompactAnswer {
    let settings = CompactionSettings::default();
    runner
        .session_before_compact(cx, || before_compact(&settings))
        .await
}

#[test]
fn events_have_the_names_of_the_wire() {
    for event in HookEvent::ALL {
        assert_eq!(serde_json::to_string(&event).unwrap(), format!("\"{event}\""));
    }
}

#[tokio::test]
async fn nothing_is_made_for_nobody() {
    let (runner, _) = runner(vec![before("a", || Ok(text("x")))]);
    assert!(runner.wants(HookEvent::SessionBeforeCompact) && !runner.wants(HookEvent::ToolCall));
    let verdict = runner.tool_call(&here(), || panic!("made for nobody")).await;
    assert_eq!(verdict, ToolVerdict::Run);
    runner
        .session_compact(&here(), || panic!("made for nobody"))
        .await;
    assert_eq!(
        HookRunner::default()
            .input(&here(), || panic!("made for nobody"))
            .await,
        InputFate::Unchanged
    );
}

/// A session asks from tasks of its own.
#[tokio::test]
async fn questions_can_be_asked_on_any_thread() {
    let asked = tokio::spawn(async {
        let (runner, _) = runner(vec![before("a", || Ok(text("1"))), Arc::new(Chained("b"))]);
        let cx = here();
        let messages = vec![raw("0")];
        let changed = runner
            .context(&cx, || ContextEvent {
                messages: messages.clone(),
            })
            .await;
        let verdict = runner.tool_call(&cx, call).await;
        runner.agent_settled(&cx, || AgentSettledEvent {}).await;
        (ask(&runner, &cx).await, changed.map(|all| all.len()), verdict)
    });
    assert_eq!(asked.await.unwrap(), (text("1"), Some(2), ToolVerdict::Run));
}

/// Spec "Orchestrator and clients", 13.2: an empty answer does not wipe an earlier one.
#[tokio::test]
async fn the_last_answer_that_says_something_counts() {
    let nothing = || before("nothing", || Ok(BeforeCompactAnswer::default()));
    let (first, second) = (
        || before("first", || Ok(text("1"))),
        || before("second", || Ok(text("2"))),
    );
    for (hooks, expected) in [
        (vec![first(), nothing()], text("1")),
        (vec![first(), second(), nothing()], text("2")),
        (vec![nothing()], BeforeCompactAnswer::default()),
    ] {
        let (runner, reports) = runner(hooks);
        assert_eq!(ask(&runner, &here()).await, expected);
        assert_eq!(reports.lock().unwrap().len(), 0);
    }
}

#[tokio::test]
async fn the_first_cancel_ends_the_questions() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let cancel = || BeforeCompactAnswer {
        cancel: true,
        ..BeforeCompactAnswer::default()
    };
    let (runner, _) = runner(vec![
        before("text", || Ok(text("1"))),
        before("cancel", move || Ok(cancel())),
        before("late", move || {
            count.fetch_add(1, Ordering::Relaxed);
            Ok(text("2"))
        }),
    ]);
    assert_eq!(ask(&runner, &here()).await, cancel());
    assert_eq!(asked.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn a_hook_that_fails_or_panics_costs_only_itself() {
    let (runner, reports) = runner(vec![
        before("fails", || Err("no luck".into())),
        before("works", || Ok(text("1"))),
        before("panics", || panic!("oh {}", "no")),
    ]);
    assert_eq!(ask(&runner, &here()).await, text("1"));
    let reports = serde_json::to_string(&*reports.lock().unwrap()).unwrap();
    assert_eq!(
        reports,
        r#"[{"hookPath":"fails","event":"session_before_compact","error":"no luck"},{"hookPath":"panics","event":"session_before_compact","error":"handler panicked: oh no"}]"#
    );
}

#[tokio::test(start_paused = true)]
async fn a_slow_hook_is_given_up_after_30_seconds() {
    let cancelled = Arc::new(Mutex::new(None::<CancellationToken>));
    let seen = Arc::clone(&cancelled);
    let slow = Scripted_ {
        path: "slow",
        events: vec![HookEvent::SessionCompact],
        does: Scripted::Told(Box::new(move |cx| {
            *seen.lock().unwrap() = Some(cx.signal);
            Box::pin(std::future::pending())
        })),
    };
    let (runner, reports) = runner(vec![Arc::new(slow)]);
    let begin = tokio::time::Instant::now();
    let cx = here();
    runner
        .session_compact(&cx, || SessionCompactEvent {
            compaction_entry: raw("{}"),
            from_extension: false,
            reason: "threshold",
            parameters: None,
            result: None,
        })
        .await;
    assert_eq!(begin.elapsed(), Duration::from_secs(30));
    assert_eq!(
        reports.lock().unwrap()[0].error,
        "handler timed out after 30000ms"
    );
    // The hook learns it; the work goes on.
    assert!(cancelled.lock().unwrap().take().unwrap().is_cancelled());
    assert!(!cx.signal.is_cancelled());
}

/// A hook before a compaction may ask a model: nothing but the cancel bounds it.
#[tokio::test(start_paused = true)]
async fn hooks_before_compaction_and_move_have_all_the_time() {
    const LONG: Duration = Duration::from_secs(24 * 3600);
    let compact: Arc<dyn Hooks> = Arc::new(Scripted_ {
        path: "slow",
        events: vec![HookEvent::SessionBeforeCompact],
        does: Scripted::Before(Box::new(|_| {
            Box::pin(async {
                tokio::time::sleep(LONG).await;
                Ok(text("late"))
            })
        })),
    });
    let tree: Arc<dyn Hooks> = Arc::new(Scripted_ {
        path: "slow",
        events: vec![HookEvent::SessionBeforeTree],
        does: Scripted::Tree(Box::new(|_| {
            Box::pin(async {
                tokio::time::sleep(LONG).await;
                Ok(BeforeTreeAnswer {
                    label: Some("l".to_owned()),
                    ..BeforeTreeAnswer::default()
                })
            })
        })),
    });
    let (runner, reports) = runner(vec![compact, tree]);
    assert_eq!(ask(&runner, &here()).await, text("late"));
    let answer = runner
        .session_before_tree(&here(), || BeforeTreeEvent {
            preparation: TreePreparation {
                target_id: EntryId::from("t"),
                old_leaf_id: None,
                common_ancestor_id: None,
                entries_to_summarize: Vec::new(),
                user_wants_summary: false,
                custom_instructions: None,
                replace_instructions: None,
                label: None,
            },
        })
        .await;
    assert_eq!(answer.label.as_deref(), Some("l"));
    assert_eq!(reports.lock().unwrap().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_answer_to_cancelled_work_is_discarded() {
    let (runner, reports) = runner(vec![
        before("early", || Ok(text("early"))),
        Arc::new(Scripted_ {
            path: "cancels",
            events: vec![HookEvent::SessionBeforeCompact],
            does: Scripted::Before(Box::new(|cx| {
                Box::pin(async move {
                    cx.actions.compact(None);
                    tokio::time::sleep(Duration::from_secs(5)).await;
                    Ok(text("late"))
                })
            })),
        }),
    ]);
    let cx = here();
    let cancel = cx.signal.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(1)).await;
        cancel.cancel();
    });
    let begin = tokio::time::Instant::now();
    assert_eq!(ask(&runner, &cx).await, BeforeCompactAnswer::default());
    assert_eq!(begin.elapsed(), Duration::from_secs(1));

    // One that answers at the moment at which it cancels the work itself is late too.
    let cx = here();
    let own = cx.signal.clone();
    let (runner, _) = self::runner(vec![before("itself", move || {
        own.cancel();
        Ok(text("late"))
    })]);
    assert_eq!(ask(&runner, &cx).await, BeforeCompactAnswer::default());
    assert_eq!(reports.lock().unwrap().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_tool_runs_only_if_every_hook_lets_it() {
    let ok = || tool("ok", |_| async { Ok(ToolCallAnswer::default()) });
    let block = |reason: Option<&str>| {
        let answer = ToolCallAnswer {
            block: true,
            reason: reason.map(str::to_owned),
        };
        tool("guard", move |_| {
            let answer = answer.clone();
            async { Ok(answer) }
        })
    };
    let fails = || tool("broken", |_| async { Err("boom".into()) });
    let slow = || {
        tool("slow", |_| async {
            tokio::time::sleep(Duration::from_secs(3600)).await;
            Ok(ToolCallAnswer::default())
        })
    };
    let blocked = |reason: &str| ToolVerdict::Block {
        reason: reason.to_owned(),
    };
    for (hooks, verdict) in [
        (vec![ok(), slow(), ok()], ToolVerdict::Run),
        (vec![ok(), block(Some("no")), fails()], blocked("no")),
        (vec![block(None)], blocked("Blocked by hook guard")),
        (
            vec![fails(), block(Some("no"))],
            blocked("Hook broken failed: boom"),
        ),
        (
            vec![tool("panics", |_| async { panic!("p") })],
            blocked("Hook panics failed: handler panicked: p"),
        ),
    ] {
        assert_eq!(runner(hooks).0.tool_call(&here(), call).await, verdict);
    }
    let cx = here();
    cx.signal.cancel();
    let verdict = runner(vec![ok()]).0.tool_call(&cx, call).await;
    assert_eq!(verdict, blocked("Cancelled before a hook allowed the call"));
}

#[test]
fn payloads_have_the_names_of_the_wire() {
    let settings = CompactionSettings::default();
    let text = serde_json::to_string_pretty(&before_compact(&settings)).unwrap();
    insta::assert_snapshot!(text);
}

#![cfg(unix)]
#![expect(
    clippy::disallowed_methods,
    reason = "tests look at files that programs made, and wait for programs"
)]

use std::fs;
use std::path::Path;
use std::time::Instant;

use foldline_session_model::model_call::RawJson;
use tempfile::TempDir;

use super::super::tests::context;
use super::super::{HookRunner, ToolVerdict};
use super::*;

struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn cx(&self) -> HookContext {
        context(self.folder.path())
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }
}

fn hook(script: &str) -> CommandHook {
    with_timeout(script, None)
}

fn with_timeout(script: &str, timeout_ms: Option<u64>) -> CommandHook {
    let settings = HookSettings {
        events: HookEvent::ALL.to_vec(),
        command: "sh".to_owned(),
        args: vec!["-c".to_owned(), script.to_owned(), "hook".to_owned()],
        timeout_ms,
    };
    CommandHook::new("test", settings)
}

fn call() -> ToolCallEvent<'static> {
    ToolCallEvent {
        tool_name: "bash",
        tool_call_id: "c1",
        input: RawJson::parse(r#"{"command": "ls  -l"}"#.to_owned()).unwrap(),
    }
}

fn compacting() -> CompactingEvent<'static> {
    CompactingEvent { messages: Vec::new() }
}

async fn verdict(place: &Place, hook: CommandHook) -> ToolVerdict {
    HookRunner::new(vec![Arc::new(hook)])
        .tool_call(&place.cx(), call)
        .await
}

fn is_alive(pid: &str) -> bool {
    // A process that nobody has waited for yet is dead all the same.
    fs::read_to_string(format!("/proc/{}/stat", pid.trim())).is_ok_and(|stat| !stat.contains(") Z"))
}

/// Waits for something that another process does.
async fn until(what: &str, holds: impl Fn() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < Duration::from_secs(20), "{what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn a_program_reads_the_event_and_writes_its_answer() {
    let place = Place::new();
    let script =
        r#"cat > seen.json; pwd > where; env > environment; echo '{"context":["a line"],"unknown":1}'"#;
    let answer = hook(script)
        .session_compacting(&compacting(), &place.cx())
        .await
        .unwrap();
    assert_eq!(answer.context, ["a line"]);
    let cwd = place.folder.path().display();
    assert_eq!(
        fs::read_to_string(place.path("seen.json")).unwrap(),
        format!(r#"{{"type":"session.compacting","sessionId":"session","cwd":"{cwd}","messages":[]}}"#)
    );
    let wherever = fs::read_to_string(place.path("where")).unwrap();
    assert_eq!(
        fs::canonicalize(wherever.trim()).unwrap(),
        fs::canonicalize(place.folder.path()).unwrap()
    );
    // Cargo sets many variables for tests: none of them gets through.
    let environment = fs::read_to_string(place.path("environment")).unwrap();
    assert!(environment.contains("FOLDLINE_HOOK_EVENT=session.compacting"));
    assert!(!environment.contains("CARGO"), "{environment}");
}

#[tokio::test]
async fn what_was_raw_stays_as_it_was() {
    let place = Place::new();
    hook("cat > seen.json")
        .tool_call(&call(), &place.cx())
        .await
        .unwrap();
    let seen = fs::read_to_string(place.path("seen.json")).unwrap();
    assert!(
        seen.ends_with(r#""toolName":"bash","toolCallId":"c1","input":{"command": "ls  -l"}}"#),
        "{seen}"
    );
}

#[tokio::test]
async fn no_output_is_no_answer_and_no_reader_is_needed() {
    let place = Place::new();
    for script in ["true", "echo; echo '  '", "exec 0<&-; true"] {
        let answer = hook(script)
            .session_compacting(&compacting(), &place.cx())
            .await
            .unwrap();
        assert_eq!(answer, CompactingAnswer::default(), "{script}");
    }
    // More than a pipe holds, and nobody reads it.
    let event = ContextEvent {
        messages: vec![RawJson::parse(format!("\"{}\"", "x".repeat(1 << 20))).unwrap()],
    };
    assert_eq!(
        hook("true").context(&event, &place.cx()).await.unwrap(),
        ContextAnswer::default()
    );
}

#[tokio::test]
async fn garbage_is_a_failure() {
    let place = Place::new();
    for (script, says) in [
        ("echo hello", "it is no JSON object"),
        ("echo '[[\"a\"]]'", "it is no JSON object"),
        ("echo '{\"context\": 3}'", "invalid type"),
        ("echo '{} {}'", "trailing characters"),
        ("printf '{\"prompt\":\"\\377\"}'", "invalid unicode"),
        ("printf '{'", "EOF"),
    ] {
        let error = hook(script)
            .session_compacting(&compacting(), &place.cx())
            .await
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with("the output is no answer: ") && error.contains(says),
            "{script}: {error}"
        );
    }
    // Where no answer is asked for, chatter is fine.
    let event = SessionStartEvent {
        reason: "startup",
        previous_session_file: None,
    };
    hook("echo hello")
        .session_start(&event, &place.cx())
        .await
        .unwrap();
}

#[tokio::test]
async fn huge_output_is_cut_off_at_once() {
    let place = Place::new();
    let error = hook("echo $$ > pid; exec yes")
        .session_compacting(&compacting(), &place.cx())
        .await
        .unwrap_err();
    assert!(
        matches!(error, HookError::OutputTooLong { limit: 1_048_576 }),
        "{error}"
    );
    let pid = fs::read_to_string(place.path("pid")).unwrap();
    until("the program ends", || !is_alive(&pid)).await;
}

#[tokio::test]
async fn a_program_that_fails_says_why_without_secrets() {
    let place = Place::new();
    let script = "echo 'key sk-ant-REDACTED \u{1b}[31m' >&2; \
                  head -c 100000 /dev/zero | tr '\\0' 'x' >&2; exit 3";
    let error = hook(script)
        .session_compacting(&compacting(), &place.cx())
        .await
        .unwrap_err();
    let HookError::Exit { stderr, status } = &error else {
        panic!("{error}")
    };
    assert_eq!(status.code(), Some(3));
    assert!(
        !stderr.contains("aBcDeFgHiJ") && !stderr.contains('\u{1b}'),
        "{stderr}"
    );
    assert!(stderr.len() <= 4200, "{}", stderr.len());
    assert!(error.to_string().starts_with("exit status: 3: key "), "{error}");
}

/// Exit code 2 blocks, with the reason on the standard error; any other failure blocks too, and says so.
#[tokio::test]
async fn a_program_can_block_a_tool() {
    let place = Place::new();
    let blocked = |reason: &str| ToolVerdict::Block {
        reason: reason.to_owned(),
    };
    for (script, expected) in [
        ("true", ToolVerdict::Run),
        (
            "echo 'not on my machine' >&2; exit 2",
            blocked("not on my machine"),
        ),
        ("exit 2", blocked("Blocked by hook hooks.test")),
        (
            "echo '{\"block\":true,\"reason\":\"because\"}'",
            blocked("because"),
        ),
        (
            "echo oops >&2; exit 1",
            blocked("Hook hooks.test failed: exit status: 1: oops"),
        ),
        (
            "echo no",
            blocked("Hook hooks.test failed: the output is no answer: it is no JSON object"),
        ),
    ] {
        assert_eq!(verdict(&place, hook(script)).await, expected, "{script}");
    }
    // Elsewhere 2 is a failure like any other.
    let error = hook("exit 2")
        .session_compacting(&compacting(), &place.cx())
        .await
        .unwrap_err();
    assert!(matches!(error, HookError::Exit { .. }), "{error}");
}

#[tokio::test]
async fn what_cannot_be_started_is_a_failure() {
    let place = Place::new();
    let settings = HookSettings {
        events: vec![HookEvent::ToolCall],
        command: "/no/such/program".to_owned(),
        args: Vec::new(),
        timeout_ms: None,
    };
    let ToolVerdict::Block { reason } = verdict(&place, CommandHook::new("gone", settings)).await else {
        panic!()
    };
    assert!(
        reason.starts_with("Hook hooks.gone failed: /no/such/program cannot be started: "),
        "{reason}"
    );
    let nowhere = context(Path::new("/no/such/folder"));
    assert!(matches!(
        hook("true").tool_call(&call(), &nowhere).await,
        Err(HookError::Spawn { .. })
    ));
}

/// The program and what it started end together.
const STARTS_ANOTHER: &str = "sleep 1000 & echo $! > other.tmp; mv other.tmp other; wait";

#[tokio::test]
async fn a_program_that_takes_too_long_is_killed_with_all_it_started() {
    let place = Place::new();
    // Long enough to start, even on a busy machine.
    let script = format!("{STARTS_ANOTHER}; echo late");
    let ToolVerdict::Block { reason } = verdict(&place, with_timeout(&script, Some(3_000))).await else {
        panic!()
    };
    assert_eq!(reason, "Hook hooks.test failed: handler timed out after 3000ms");
    let other = fs::read_to_string(place.path("other")).unwrap();
    until("the other ends", || !is_alive(&other)).await;
}

#[tokio::test]
async fn a_cancel_kills_it_too() {
    let place = Place::new();
    let cx = place.cx();
    let runner = HookRunner::new(vec![Arc::new(hook(STARTS_ANOTHER))]);
    let cancel = async {
        until("it starts another", || place.path("other").exists()).await;
        cx.signal.cancel();
    };
    let (verdict, ()) = tokio::join!(runner.tool_call(&cx, call), cancel);
    assert!(matches!(verdict, ToolVerdict::Block { .. }));
    let other = fs::read_to_string(place.path("other")).unwrap();
    until("the other ends", || !is_alive(&other)).await;
}

#[tokio::test]
async fn what_a_program_leaves_behind_does_not_hold_the_answer() {
    let place = Place::new();
    let script = "sleep 1000 & echo $! > other; echo '{\"context\":[\"kept\"]}'";
    let answer = hook(script)
        .session_compacting(&compacting(), &place.cx())
        .await
        .unwrap();
    assert_eq!(answer.context, ["kept"]);
    let other = fs::read_to_string(place.path("other")).unwrap();
    until("the other ends", || !is_alive(&other)).await;
}

#[test]
fn hooks_come_from_settings_in_the_order_of_their_names() {
    let text = r#"{"hooks":{"20-b":{"events":["input"],"command":"b"},"10-a":{"events":["tool_call"],"command":"a","timeoutMs":5}}}"#;
    let settings: Settings = serde_json::from_str(text).unwrap();
    let hooks = command_hooks(&settings);
    let paths: Vec<_> = hooks.iter().map(|hook| hook.path()).collect();
    assert_eq!(paths, ["hooks.10-a", "hooks.20-b"]);
    assert_eq!(
        hooks[0].time_limit(HookEvent::ToolCall),
        Some(Duration::from_millis(5))
    );
    assert_eq!(hooks[1].time_limit(HookEvent::ToolCall), None);
    assert_eq!(
        hooks[1].time_limit(HookEvent::Input),
        Some(Duration::from_secs(30))
    );
}

/// The example of docs/hooks.md, as it stands there but for the folder of its script.
#[tokio::test]
async fn the_example_of_the_documentation_works() {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/hooks.md")).unwrap();
    let block = |language: &str| {
        let (_, rest) = page.split_once(&format!("```{language}\n")).unwrap();
        rest.split_once("```").unwrap().0.to_owned()
    };
    let place = Place::new();
    fs::write(place.path("guard.sh"), block("sh")).unwrap();
    let script = place.path("guard.sh");
    let example = block("json");
    assert!(example.contains("/home/me/.config/foldline/guard.sh"));
    let example = example.replace("/home/me/.config/foldline/guard.sh", script.to_str().unwrap());
    let settings: Settings = serde_json::from_str(&example).unwrap();
    let runner = HookRunner::new(command_hooks(&settings));
    let ask = |command: &str| {
        let input = RawJson::parse(format!(r#"{{"command":"{command}"}}"#)).unwrap();
        let cx = place.cx();
        let runner = runner.clone();
        async move {
            let event = || ToolCallEvent {
                tool_name: "bash",
                tool_call_id: "c",
                input,
            };
            runner.tool_call(&cx, event).await
        }
    };
    assert_eq!(ask("cargo test").await, ToolVerdict::Run);
    let reason = "Pushing is the user's business.".to_owned();
    assert_eq!(ask("git push --force").await, ToolVerdict::Block { reason });
}

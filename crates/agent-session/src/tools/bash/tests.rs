use std::time::Duration;

use rustix::process::{Pid, test_kill_process};
use tokio::time::Instant;

use super::super::ToolName::{Bash, Read};
use super::super::tests::{Yard, detail, told};
use super::*;

/// The number that a command wrote of a process that it started.
async fn pid(yard: &Yard, file: &str) -> Pid {
    loop {
        let text = fs_err::read_to_string(yard.root.join(file)).unwrap_or_default();
        if let (true, Ok(number)) = (text.ends_with('\n'), text.trim().parse()) {
            return Pid::from_raw(number).unwrap();
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Waits until a process is gone, or a zombie that nobody will wait for.
async fn gone(pid: Pid) {
    let stat = format!("/proc/{}/stat", pid.as_raw_nonzero());
    let is_there = || {
        let state = fs_err::read_to_string(&stat).unwrap_or_default();
        let is_zombie = state
            .rsplit_once(") ")
            .is_some_and(|(_, state)| state.starts_with('Z'));
        test_kill_process(pid).is_ok() && !is_zombie
    };
    while is_there() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn output_and_errors_come_in_order_with_the_exit_code() {
    let yard = Yard::new();
    let output = yard
        .call(Bash, r#"{"command":"echo 1; echo 2 >&2; echo 3; cat; exit 7"}"#)
        .await;
    assert_eq!(told(&output), "1\n2\n3\n[exit code 7]");
    assert_eq!(output.outcome, ToolOutcome::Error);
    assert_eq!(
        (detail(&output, "exitCode"), detail(&output, "timedOut")),
        ("7".to_owned(), "false".to_owned())
    );
    assert_eq!(*yard.progress.lock().unwrap(), "1\n2\n3\n");
    assert_eq!(yard.text(Bash, r#"{"command":"true"}"#).await, "(no output)");
    assert_eq!(
        yard.text(Bash, r#"{"command":"pwd"}"#).await,
        format!("{}\n", yard.root.display())
    );
    let killed = yard.call(Bash, r#"{"command":"kill -9 $$"}"#).await;
    assert_eq!(
        (told(&killed).as_str(), detail(&killed, "signal").as_str()),
        ("[killed by signal 9]", "9")
    );
}

#[tokio::test]
async fn what_is_wrong_with_the_arguments_is_told() {
    let yard = Yard::new();
    for (arguments, expected) in [
        ("{}", "`command` is missing."),
        (r#"{"command":" "}"#, "`command` must not be empty."),
        (r#"{"command":"a\u0000"}"#, "`command` must not hold a NUL."),
        (
            r#"{"command":"true","timeout":3601}"#,
            "`timeout` must be a whole number from 1 to 3600, not 3601.",
        ),
    ] {
        assert_eq!(yard.error(Bash, arguments).await, expected);
    }
}

#[tokio::test]
async fn secrets_of_the_environment_are_not_passed_on() {
    let yard = Yard::new();
    let shown = yard.text(Bash, r#"{"command":"env"}"#).await;
    for line in shown.lines() {
        let name = line.split_once('=').map_or(line, |(name, _)| name);
        assert!(!name.ends_with("_KEY") && !name.ends_with("_TOKEN"), "{name}");
    }
    assert!(
        shown.contains("PAGER=cat\n") && shown.contains("PATH="),
        "{shown}"
    );
}

#[tokio::test]
async fn much_output_is_read_again_from_its_artifact() {
    let yard = Yard::new();
    let output = yard.call(Bash, r#"{"command":"seq 200000"}"#).await;
    let text = told(&output);
    assert!(
        text.starts_with("1\n2\n") && text.ends_with("\n199999\n200000\n"),
        "{}",
        text.len()
    );
    assert!(text.len() < 51_000 && text.contains("bytes left out; all of it: artifact://1]"));
    assert_eq!(
        (detail(&output, "artifact"), detail(&output, "bytes")),
        ("\"artifact://1\"".to_owned(), "1288895".to_owned())
    );
    let part = yard.text(Read, r#"{"path":"artifact://1:100000-100001"}"#).await;
    assert_eq!(part, "100000\n100001\n[lines 100000-100001 of 200000]");
}

#[tokio::test]
async fn a_command_that_takes_too_long_is_killed_with_what_it_started() {
    let mut yard = Yard::new();
    yard.limits().command = Duration::from_millis(300);
    let command =
        r#"{"command":"echo begun; trap 'echo ended' TERM; sleep 600 & echo $! > pid; wait; wait"}"#;
    let output = yard.call(Bash, command).await;
    assert_eq!(
        told(&output),
        "begun\nended\n[killed: the command ran longer than 0.3 s]"
    );
    assert_eq!(detail(&output, "timedOut"), "true");
    gone(pid(&yard, "pid").await).await;
}

#[tokio::test]
async fn a_cancel_is_answered_at_once_and_kills_what_does_not_listen() {
    let yard = Yard::new();
    let command = r#"{"command":"trap '' TERM; echo begun; sleep 600 & echo $! > pid; wait"}"#;
    let call = yard.call(Bash, command);
    let cancel = async {
        let pid = pid(&yard, "pid").await;
        yard.cancel.cancel();
        (pid, Instant::now())
    };
    let (output, (pid, cancelled)) = tokio::join!(call, cancel);
    // Far less than the command is given to end: the answer does not wait for that.
    assert!(cancelled.elapsed() < GRACE);
    assert_eq!(told(&output), "begun\n[cancelled, and killed]");
    assert_eq!(detail(&output, "cancelled"), "true");
    gone(pid).await;
}

#[tokio::test]
async fn a_call_that_is_dropped_leaves_nothing_running() {
    let yard = Yard::new();
    let command = r#"{"command":"trap '' TERM; sleep 600 & echo $! > pid; wait"}"#;
    let pid = tokio::select! {
        _ = yard.call(Bash, command) => panic!("it ended"),
        pid = pid(&yard, "pid") => pid,
    };
    gone(pid).await;
}

#[test]
fn a_runtime_that_ends_leaves_nothing_running() {
    let yard = Yard::new();
    let runtime = || {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap()
    };
    let first = runtime();
    let command = r#"{"command":"trap '' TERM; sleep 600 & echo $! > pid; wait"}"#;
    let pid = first.block_on(async {
        tokio::select! {
            _ = yard.call(Bash, command) => panic!("it ended"),
            pid = pid(&yard, "pid") => pid,
        }
    });
    drop(first);
    runtime().block_on(gone(pid));
}

#[tokio::test]
async fn what_runs_in_the_background_does_not_hold_the_answer() {
    let yard = Yard::new();
    let output = yard
        .call(Bash, r#"{"command":"sleep 600 & echo $! > pid; echo done"}"#)
        .await;
    assert_eq!(told(&output), "done\n[something still runs in the background]");
    assert_eq!(output.outcome, ToolOutcome::Success);
    assert_eq!(detail(&output, "inBackground"), "true");
    let pid = pid(&yard, "pid").await;
    assert!(test_kill_process(pid).is_ok());
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

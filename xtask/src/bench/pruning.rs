//! What a plan of a prune costs, against a typed decode of the same entries in the same run, and whether it is linear.

use std::fmt::Write as _;
use std::hint::black_box;
use std::time::{Duration, Instant};

use anyhow::bail;
use foldline_pruning::{Originals, Policy, View, plan};
use foldline_session_model::fold::Profile;
use foldline_session_model::json::write_string;
use foldline_session_model::log::{SessionLog, Trust};
use foldline_session_model::tokens::Heuristic;
use foldline_session_model::tree::Leaf;

/// At most this part of a typed decode of the same entries.
const DECODE_LIMIT: f64 = 0.5;
/// At most so many times as long as for a tenth of the entries.
const GROWTH_LIMIT: f64 = 12.0;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Entries of the large session; the small one has a tenth of them.
    #[arg(long, default_value_t = 100_000)]
    entries: usize,
    /// Runs of each measurement.
    #[arg(long, default_value_t = 15)]
    runs: usize,
}

pub(super) fn run(args: &Args) -> anyhow::Result<()> {
    let small = measure(args.entries / 10, args.runs)?;
    let large = measure(args.entries, args.runs)?;
    let share = large.plan / large.decode.max(f64::MIN_POSITIVE);
    let growth = large.plan / small.plan.max(f64::MIN_POSITIVE);
    println!(
        "plan of {}: {share:.2} of a typed decode, at most {DECODE_LIMIT}",
        args.entries
    );
    println!(
        "plan of {} against {}: {growth:.2} times, at most {GROWTH_LIMIT}",
        args.entries,
        args.entries / 10
    );
    if cfg!(debug_assertions) {
        println!("limits: skipped 1 (not an optimised build)");
        return Ok(());
    }
    if share > DECODE_LIMIT || growth > GROWTH_LIMIT {
        bail!("a plan takes too long");
    }
    Ok(())
}

/// Seconds of the fastest run: whatever else the machine does makes a run slower, never faster.
struct Times {
    decode: f64,
    plan: f64,
}

fn measure(entries: usize, runs: usize) -> anyhow::Result<Times> {
    let log = SessionLog::load(session(entries), Trust::Validated)?;
    let context = log.context(&Leaf::Last, Profile::Foldline)?;
    let (mut decodes, mut plans) = (Vec::new(), Vec::new());
    let mut results = 0;
    for _ in 0..runs.max(1) {
        let start = Instant::now();
        for ix in log.entries() {
            black_box(log.entry(ix)?);
        }
        decodes.push(start.elapsed());

        // What a caller that holds a context pays: the view is part of it.
        let start = Instant::now();
        let view = View::of_context(&context);
        let planned = plan(&view, &Policy::default(), Originals::InLog, &Heuristic);
        plans.push(start.elapsed());
        results = planned.replacements.len();
    }
    let fastest = |times: Vec<Duration>| times.into_iter().min().unwrap_or_default().as_secs_f64();
    let times = Times {
        decode: fastest(decodes),
        plan: fastest(plans),
    };
    println!(
        "{} entries: typed decode {:.2} ms, plan {:.2} ms, {results} results to replace",
        log.len(),
        times.decode * 1e3,
        times.plan * 1e3
    );
    Ok(times)
}

/// Turns of five calls: reads in ranges, searches, commands that succeed and fail, edits.
fn session(entries: usize) -> String {
    let mut file = String::from(
        "{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"timestamp\":\"2026-01-01T00:00:00.000Z\",\"cwd\":\"/w\"}\n",
    );
    let mut parent = String::from("null");
    // Writing to a String cannot fail.
    let mut push = |n: usize, body: &str| {
        let _ = writeln!(
            file,
            r#"{{"type":"message","id":"{n:08x}","parentId":{parent},"timestamp":"2026-01-01T00:00:01.000Z","message":{body}}}"#
        );
        parent = format!("\"{n:08x}\"");
    };
    let mut n = 0;
    while n < entries {
        if n % 11 == 0 {
            push(n, r#"{"role":"user","content":"And now the next step, please."}"#);
            n += 1;
        }
        let call = Call::number(n);
        push(
            n,
            &format!(
                r#"{{"role":"assistant","content":[{{"type":"text","text":"Looking."}},{{"type":"toolCall","id":"c{n}","name":"{}","arguments":{}}}]}}"#,
                call.tool, call.arguments
            ),
        );
        let mut text = String::new();
        for line in 0..20 + n % 60 {
            let _ = writeln!(
                text,
                "    {line:>4}  let value_{line} = compute(input, \"{n}\")?; // step"
            );
        }
        let mut quoted = String::new();
        write_string(&mut quoted, &text);
        push(
            n + 1,
            &format!(
                r#"{{"role":"toolResult","toolCallId":"c{n}","toolName":"{}","content":[{{"type":"text","text":{quoted}}}],"isError":{}{}}}"#,
                call.tool, call.fails, call.details
            ),
        );
        n += 2;
    }
    file
}

struct Call {
    tool: &'static str,
    arguments: String,
    details: &'static str,
    fails: bool,
}

impl Call {
    fn number(n: usize) -> Self {
        let file = format!("src/file{}.rs", n % 97);
        let from = 1 + n * 7 % 4000;
        let (tool, arguments, details) = match n % 5 {
            0 => ("read", format!(r#"{{"path":"{file}:{from}-{}"}}"#, from + 80), ""),
            1 => ("grep", format!(r#"{{"pattern":"name{n}","path":"src"}}"#), ""),
            2 => (
                "bash",
                String::from(r#"{"command":"cargo build --workspace"}"#),
                r#","details":{"exitCode":0}"#,
            ),
            3 => (
                "bash",
                format!(r#"{{"command":"cargo test case_{n}"}}"#),
                r#","details":{"exitCode":101}"#,
            ),
            _ => (
                "edit",
                format!(r#"{{"path":"{file}","oldText":"let a = {n};","newText":"let b = {n};"}}"#),
                "",
            ),
        };
        Self {
            tool,
            arguments,
            details,
            fails: n % 5 == 3,
        }
    }
}

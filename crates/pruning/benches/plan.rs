//! A plan over 10,000 and 100,000 entries, beside a typed decode of the same entries: plans are to be linear.
#![allow(missing_docs, reason = "criterion's macros make undocumented items")]
#![allow(clippy::unwrap_used, reason = "a bench that meets an error has failed")]

use std::fmt::Write as _;
use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use foldline_pruning::{Originals, Policy, View, plan};
use foldline_session_model::fold::Profile;
use foldline_session_model::json::write_string;
use foldline_session_model::log::{SessionLog, Trust};
use foldline_session_model::tokens::Heuristic;
use foldline_session_model::tree::Leaf;

/// Turns of five calls: reads in ranges, searches, commands that succeed and fail, edits.
fn session(entries: usize) -> SessionLog {
    let mut file = String::from(
        "{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"timestamp\":\"2026-01-01T00:00:00.000Z\",\"cwd\":\"/w\"}\n",
    );
    let mut parent = String::from("null");
    let mut push = |n: usize, body: &str| {
        writeln!(file, r#"{{"type":"message","id":"{n:08x}","parentId":{parent},"timestamp":"2026-01-01T00:00:01.000Z","message":{body}}}"#).unwrap();
        parent = format!("\"{n:08x}\"");
    };
    let mut n = 0;
    while n < entries {
        if n % 11 == 0 {
            push(n, r#"{"role":"user","content":"And now the next step, please."}"#);
            n += 1;
        }
        let from = 1 + n * 7 % 4000;
        let (tool, args, details) = match n % 5 {
            0 => (
                "read",
                format!(r#"{{"path":"src/file{}.rs:{from}-{}"}}"#, n % 97, from + 80),
                "",
            ),
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
                format!(
                    r#"{{"path":"src/file{}.rs","oldText":"let a = {n};","newText":"let b = {n};"}}"#,
                    n % 97
                ),
                "",
            ),
        };
        let mut text = String::new();
        for line in 0..20 + n % 60 {
            writeln!(
                text,
                "    {line:>4}  let value_{line} = compute(input, \"{n}\")?; // step"
            )
            .unwrap();
        }
        let mut quoted = String::new();
        write_string(&mut quoted, &text);
        push(
            n,
            &format!(
                r#"{{"role":"assistant","content":[{{"type":"text","text":"Looking."}},{{"type":"toolCall","id":"c{n}","name":"{tool}","arguments":{args}}}]}}"#
            ),
        );
        push(
            n + 1,
            &format!(
                r#"{{"role":"toolResult","toolCallId":"c{n}","toolName":"{tool}","content":[{{"type":"text","text":{quoted}}}],"isError":{}{details}}}"#,
                n % 5 == 3
            ),
        );
        n += 2;
    }
    SessionLog::load(file, Trust::Validated).unwrap()
}

fn plans(c: &mut Criterion) {
    let mut group = c.benchmark_group("plan");
    group.sample_size(10);
    for entries in [10_000, 100_000] {
        let log = session(entries);
        group.throughput(Throughput::Elements(entries as u64));
        group.bench_function(BenchmarkId::new("decode", entries), |b| {
            b.iter(|| {
                for ix in log.entries() {
                    black_box(log.entry(ix).unwrap());
                }
            });
        });
        let context = log.context(&Leaf::Last, Profile::Foldline).unwrap();
        group.bench_function(BenchmarkId::new("plan", entries), |b| {
            b.iter(|| {
                let view = View::of_context(&context);
                plan(&view, &Policy::default(), Originals::InLog, &Heuristic)
            });
        });
    }
    group.finish();
}

criterion_group!(benches, plans);
criterion_main!(benches);

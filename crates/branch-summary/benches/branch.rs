//! Collection in trees of 10,000 to 1,000,000 entries, and preparation of a long branch: both are linear.
#![allow(missing_docs, reason = "criterion's macros make undocumented items")]
#![allow(clippy::unwrap_used, reason = "a bench that meets an error has failed")]

use std::fmt::Write as _;
use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use foldline_branch_summary::{Abandoned, Budget, PrepareOptions, prepare};
use foldline_compaction_core::file_ops::ToolTable;
use foldline_session_model::Tokens;
use foldline_session_model::fold::Profile;
use foldline_session_model::log::{SessionLog, Trust};
use foldline_session_model::tokens::Heuristic;

/// A trunk of a tenth of the entries, and two branches that go on from it in turn.
fn tree(entries: usize) -> SessionLog {
    let mut file = String::from(
        "{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"timestamp\":\"2026-01-01T00:00:00.000Z\",\"cwd\":\"/w\"}\n",
    );
    let trunk = entries / 10;
    for n in 0..entries {
        let parent = match n {
            0 => "null".to_owned(),
            n if n < trunk + 2 => format!("\"{:08x}\"", (n - 1).min(trunk - 1)),
            n => format!("\"{:08x}\"", n - 2),
        };
        let message = if n % 8 == 0 {
            "{\"role\":\"user\",\"content\":\"And now the next step, please.\"}".to_owned()
        } else {
            format!(
                "{{\"role\":\"assistant\",\"stopReason\":\"toolUse\",\"content\":[{{\"type\":\"text\",\"text\":\"Looking.\"}},{{\"type\":\"toolCall\",\"id\":\"c{n}\",\"name\":\"read\",\"arguments\":{{\"path\":\"src/file{}.rs\"}}}}]}}",
                n % 97
            )
        };
        writeln!(file, "{{\"type\":\"message\",\"id\":\"{n:08x}\",\"parentId\":{parent},\"timestamp\":\"2026-01-01T00:00:01.000Z\",\"message\":{message}}}").unwrap();
    }
    SessionLog::load(file, Trust::Claimed).unwrap()
}

fn collect(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("collect");
    group.sample_size(10);
    for entries in [10_000, 100_000, 1_000_000] {
        let log = tree(entries);
        let new = log.find(&format!("{:08x}", entries - 2));
        group.throughput(Throughput::Elements(entries as u64));
        group.bench_with_input(BenchmarkId::from_parameter(entries), &log, |bencher, log| {
            bencher.iter(|| black_box(Abandoned::between(log, log.leaf(), new)));
        });
    }
    group.finish();
}

fn prepared(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("prepare");
    group.sample_size(10);
    let tools = ToolTable::default();
    for entries in [10_000, 100_000] {
        let log = tree(entries);
        let new = log.find(&format!("{:08x}", entries - 2));
        let abandoned = Abandoned::between(&log, log.leaf(), new);
        let options = PrepareOptions {
            budget: Budget::for_window(Some(Tokens(200_000)), Tokens(16_384)),
            profile: Profile::Auto,
            tools: &tools,
            in_editor: None,
        };
        group.throughput(Throughput::Elements(abandoned.entries().len() as u64));
        group.bench_with_input(BenchmarkId::from_parameter(entries), &log, |bencher, log| {
            bencher.iter(|| prepare(black_box(log), &abandoned, &options, &Heuristic).unwrap());
        });
    }
    group.finish();
}

criterion_group!(benches, collect, prepared);
criterion_main!(benches);

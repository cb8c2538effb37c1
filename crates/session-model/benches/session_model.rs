//! The paths that every command takes: open, head index, path, fold, decode, estimate.

use std::hint::black_box;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use foldline_session_model::fold::Profile;
use foldline_session_model::llm::{TrailingCalls, Wrappers};
use foldline_session_model::log::{SessionLog, Trust};
use foldline_session_model::tail::{Need, TailReader};
use foldline_session_model::tokens::{Heuristic, TokenCounter as _};
use foldline_session_model::tree::Leaf;

/// A day of work, about 2 MB.
const FILE: &[u8] = include_bytes!("../../../fixtures/sessions/realistic.jsonl");

fn resume(file: &[u8]) -> Option<SessionLog> {
    let mut reader = TailReader::new(file.len() as u64, Profile::Auto);
    while let Need::Bytes(range) = reader.need() {
        let range = usize::try_from(range.start).ok()?..usize::try_from(range.end).ok()?;
        reader.feed(file.get(range)?);
    }
    reader.finish().ok()
}

fn session_model(c: &mut Criterion) {
    let log = match SessionLog::load(FILE, Trust::Validated) {
        Ok(log) => log,
        Err(error) => panic!("the fixture is a session: {error}"),
    };
    let mut group = c.benchmark_group("session-model");
    group.throughput(Throughput::Bytes(FILE.len() as u64));
    group.bench_function("newlines", |b| {
        b.iter(|| memchr::memchr_iter(b'\n', black_box(FILE)).count());
    });
    for (name, trust) in [
        ("head-index", Trust::Claimed),
        ("open-validated", Trust::Validated),
    ] {
        group.bench_function(name, |b| {
            b.iter_batched(
                || FILE.to_vec(),
                |bytes| SessionLog::load(bytes, trust).map(|log| log.len()),
                BatchSize::LargeInput,
            );
        });
    }
    group.bench_function("resume-from-the-end", |b| {
        b.iter(|| {
            let log = resume(black_box(FILE))?;
            let context = log.context(&Leaf::Last, Profile::Auto).ok()?;
            Some(context.items.len())
        });
    });
    group.bench_function("path", |b| {
        b.iter(|| log.leaf().map(|leaf| log.path(black_box(leaf)).len()));
    });
    group.bench_function("fold", |b| {
        b.iter(|| {
            log.context(&Leaf::Last, Profile::Auto)
                .map(|context| context.items.len())
        });
    });
    group.bench_function("decode", |b| {
        b.iter(|| log.entries().filter(|ix| log.entry(*ix).is_ok()).count());
    });
    if let Ok(context) = log.context(&Leaf::Last, Profile::Foldline) {
        let wrappers = Wrappers::default();
        group.bench_function("llm-view", |b| {
            b.iter(|| {
                context
                    .llm_view(black_box(&wrappers), TrailingCalls::Answer)
                    .len()
            });
        });
        group.bench_function("estimate", |b| {
            b.iter(|| {
                context
                    .messages()
                    .map(|m| Heuristic.message(m))
                    .sum::<foldline_session_model::Tokens>()
            });
        });
    }
    group.finish();
}

criterion_group!(benches, session_model);
criterion_main!(benches);

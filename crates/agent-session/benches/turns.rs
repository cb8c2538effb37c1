//! What a turn with one call costs beside the model and the tool: of a young session and of one with 400 turns behind it,
//! of which compactions have left the newest only.
#![allow(missing_docs, reason = "criterion's macros make undocumented items")]
#![allow(clippy::unwrap_used, reason = "a bench that meets an error has failed")]

#[path = "common/mod.rs"]
mod common;

use std::path::Path;
use std::sync::Arc;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use foldline_session_store::MemoryStore;

fn turns(c: &mut Criterion) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut group = c.benchmark_group("turn");
    group.sample_size(20);
    for behind in [0, 400] {
        let session = runtime.block_on(async {
            let session = common::session(Arc::new(MemoryStore::new()), Path::new("/sessions/bench.jsonl"));
            for turn in 0..behind {
                drop(session.prompt(format!("step {turn}")).await.unwrap());
            }
            session
        });
        group.bench_function(BenchmarkId::from_parameter(behind), |b| {
            b.iter(|| runtime.block_on(session.prompt("next step")).unwrap());
        });
    }
    group.finish();
}

criterion_group!(benches, turns);
criterion_main!(benches);

//! Appends with and without a sync, opening a writer, and reading lines from the end.
#![allow(missing_docs, reason = "criterion's macros make undocumented items")]
#![allow(clippy::unwrap_used, reason = "a bench that meets an error has failed")]
#![allow(
    clippy::disallowed_methods,
    reason = "a bench is its own caller and owns the clock"
)]

use std::time::SystemTime;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use foldline_session_store::{DiskStore, Durability, Expected, OpenOptions, Owner, SessionStore};

const HEADER: &str =
    r#"{"type":"session","version":3,"id":"s","timestamp":"2026-08-01T00:00:00.000Z","cwd":"/w"}"#;

fn entry(id: u64) -> String {
    let text = "a line of output, ".repeat(85);
    format!(
        r#"{{"type":"message","id":"{id:08x}","parentId":null,"message":{{"role":"user","content":"{text}"}}}}"#
    )
}

fn options() -> OpenOptions {
    OpenOptions {
        owner: Owner::this_process(),
        now: SystemTime::now(),
        expected: Expected::Any,
    }
}

fn appends(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().unwrap();
    let session = folder.path().join("s.jsonl");
    let store = DiskStore::new();
    store
        .create(&session, &mut std::iter::once(HEADER.as_bytes()))
        .unwrap();
    let mut group = criterion.benchmark_group("append");
    let mut id = 0;
    for (name, durability) in [("later", Durability::Later), ("commit", Durability::Commit)] {
        let mut writer = store.open(&session, &options()).unwrap();
        group.bench_function(name, |bencher| {
            bencher.iter_batched(
                || {
                    id += 1;
                    entry(id)
                },
                |line| writer.append(&line, durability).unwrap(),
                BatchSize::SmallInput,
            );
        });
    }
    group.bench_function("open_commit_close", |bencher| {
        bencher.iter_batched(
            || {
                id += 1;
                entry(id)
            },
            |line| {
                store
                    .open(&session, &options())
                    .unwrap()
                    .append(&line, Durability::Commit)
                    .unwrap()
            },
            BatchSize::SmallInput,
        );
    });
    group.finish();
}

fn reading(criterion: &mut Criterion) {
    const ENTRIES: u64 = 10_000;
    let folder = tempfile::tempdir().unwrap();
    let session = folder.path().join("s.jsonl");
    let store = DiskStore::new();
    let lines: Vec<String> = (0..ENTRIES).map(entry).collect();
    store
        .create(
            &session,
            &mut std::iter::once(HEADER)
                .chain(lines.iter().map(String::as_str))
                .map(str::as_bytes),
        )
        .unwrap();
    let mut group = criterion.benchmark_group("read");
    group.throughput(Throughput::Bytes(store.reader(&session).unwrap().stamp().len));
    group.bench_function("whole", |bencher| {
        bencher.iter(|| store.read(&session).unwrap().len());
    });
    group.bench_function("lines_backward", |bencher| {
        bencher.iter(|| {
            let reader = store.reader(&session).unwrap();
            let mut lines = reader.lines_backward();
            let mut count = 0_u64;
            while lines.next_line().unwrap().is_some() {
                count += 1;
            }
            assert_eq!(count, ENTRIES + 1);
        });
    });
    group.finish();
}

criterion_group!(benches, appends, reading);
criterion_main!(benches);

//! Deleting ranges from a region and ranking its lines, in terms of a newline scan of the same text.
#![allow(
    clippy::unwrap_used,
    missing_docs,
    reason = "a benchmark stops when its input is wrong, and its functions are named by criterion"
)]

use std::hint::black_box;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use foldline_compaction_core::extractive::{Packed, Target, balanced};
use foldline_compaction_core::verbatim::{
    Author, RawRange, Region, RegionBuilder, SectionKind, ValidatedRanges, parse_records, print_records,
    reconstruct,
};

/// Random numbers that are the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }
}

const WORDS: [&str; 16] = [
    "let",
    "value",
    "return",
    "session.entries",
    "src/verbatim/line.rs",
    "the",
    "checked",
    "E0308",
    "'not found'",
    "=>",
    "{",
    "fn",
    "parser",
    "\"two words\"",
    "crates/model/src/log.rs",
    "}",
];

/// About 60 bytes per line, names drawn from a pool that grows as in a session.
fn lines(count: usize, numbers: &mut Numbers) -> String {
    let mut text = String::new();
    for line in 0..count {
        if line > 0 {
            text.push('\n');
        }
        for _ in 0..numbers.below(9) {
            match numbers.below(6) {
                0 => text.push_str(&format!("item_{}", numbers.below(count / 10 + 1))),
                _ => text.push_str(WORDS[numbers.below(WORDS.len())]),
            }
            text.push(' ');
        }
    }
    text
}

/// A region of messages with 50 lines each.
fn builder(count: usize) -> RegionBuilder {
    let mut numbers = Numbers(1);
    let mut builder = RegionBuilder::new();
    let kinds = [
        SectionKind::User,
        SectionKind::Assistant,
        SectionKind::ToolCalls,
        SectionKind::ToolResult,
    ];
    for message in 0..count / 50 {
        builder.begin_message(None, Author::Session);
        builder.section(kinds[message % 4], |text| text.push_str(&lines(49, &mut numbers)));
    }
    builder
}

/// Nine of twelve lines go, as in a compaction to a quarter.
fn records(lines: usize) -> Vec<RawRange> {
    (0..lines as u64 / 12)
        .map(|k| RawRange {
            start: 12 * k + 1,
            end: 12 * k + 9,
        })
        .collect()
}

fn verbatim(c: &mut Criterion) {
    for lines in [24_000, 1_000_000] {
        let builder = builder(lines);
        let region = builder.clone().finish().unwrap();
        let text = region.text().to_owned();
        let records = records(region.line_count());
        let answer = print_records(&records);
        let ranges =
            ValidatedRanges::validate(records.iter().copied(), region.line_count(), region.protected());
        let mut group = c.benchmark_group(format!("verbatim, {lines} lines"));
        group
            .throughput(Throughput::Bytes(text.len() as u64))
            .sample_size(20);
        group.bench_function("newline scan", |b| {
            b.iter(|| memchr::memchr_iter(b'\n', black_box(text.as_bytes())).fold(0, |sum, at| sum ^ at));
        });
        group.bench_function("split, delete, write markers", |b| {
            let run = |builder: RegionBuilder| {
                let region = builder.finish().unwrap();
                let text = reconstruct(&region, &ranges).into_text();
                (region, text)
            };
            b.iter_batched(|| builder.clone(), run, BatchSize::PerIteration);
        });
        group.bench_function("the same with records parsed and normalised", |b| {
            let run = |builder: RegionBuilder| {
                let region = builder.finish().unwrap();
                let records = parse_records(black_box(&answer)).unwrap();
                let ranges = ValidatedRanges::validate(records, region.line_count(), region.protected());
                let text = reconstruct(&region, &ranges).into_text();
                (region, text)
            };
            b.iter_batched(|| builder.clone(), run, BatchSize::PerIteration);
        });
        group.bench_function("split, with roles guessed from the text", |b| {
            b.iter_with_large_drop(|| Region::guessed_from_text(black_box(&text)).unwrap());
        });
        group.finish();
    }
}

fn extractive(c: &mut Criterion) {
    let region = builder(24_000).finish().unwrap();
    let tail = lines(40, &mut Numbers(2));
    let mut group = c.benchmark_group("extractive, 24000 lines");
    group
        .throughput(Throughput::Bytes(region.text().len() as u64))
        .sample_size(20);
    group.bench_function("rank", |b| {
        b.iter_with_large_drop(|| balanced(black_box(&region), &tail));
    });
    let ranking = balanced(&region, &tail);
    group.bench_function("pack to a quarter", |b| {
        let target = Target::percent_of(&region, 25);
        b.iter_with_large_drop(|| {
            let mut packed = Packed::new(black_box(&region));
            packed.pack(ranking.positions(), target);
            packed
        });
    });
    group.finish();
}

criterion_group!(benches, verbatim, extractive);
criterion_main!(benches);

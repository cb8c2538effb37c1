//! How long it takes to delete ranges from a region, in terms of a newline scan of the same text.

#![allow(
    clippy::unwrap_used,
    missing_docs,
    reason = "a benchmark stops when its input is wrong"
)]

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use foldline_compaction_core::verbatim::{
    RawRange, Region, ValidatedRanges, parse_records, print_records, reconstruct,
};

/// Lines of the lengths that transcripts have; 50 bytes on average.
fn transcript(lines: usize) -> String {
    let mut text = String::new();
    let mut state = 1u64;
    for _ in 0..lines {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let len = (state >> 33) as usize % 100;
        text.extend("let value = region.line(number).text; ".chars().cycle().take(len));
        text.push('\n');
    }
    text
}

/// Every twelfth range of lines stays, as in a compaction to 30 %.
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
        let text = transcript(lines);
        let records = records(lines);
        let answer = print_records(&records);
        let mut group = c.benchmark_group(format!("verbatim, {lines} lines"));
        group
            .throughput(Throughput::Bytes(text.len() as u64))
            .sample_size(20);
        group.bench_function("newline scan", |b| {
            b.iter(|| memchr::memchr_iter(b'\n', black_box(text.as_bytes())).fold(0, |sum, at| sum ^ at));
        });
        group.bench_function("split, delete, write markers", |b| {
            let region = Region::guessed_from_text(&text).unwrap();
            let ranges =
                ValidatedRanges::validate(records.iter().copied(), region.line_count(), region.protected());
            b.iter(|| {
                let region = Region::guessed_from_text(black_box(&text)).unwrap();
                reconstruct(&region, &ranges).into_text()
            });
        });
        group.bench_function("the same with records parsed and normalised", |b| {
            b.iter(|| {
                let region = Region::guessed_from_text(black_box(&text)).unwrap();
                let records = parse_records(black_box(&answer)).unwrap();
                let ranges = ValidatedRanges::validate(records, region.line_count(), region.protected());
                reconstruct(&region, &ranges).into_text()
            });
        });
        group.finish();
    }
}

criterion_group!(benches, verbatim);
criterion_main!(benches);

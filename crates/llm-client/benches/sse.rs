//! How fast a body becomes events, in chunks as sockets deliver them.

use std::hint::black_box;

use bytes::Bytes;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use foldline_llm_client::{Decoder, LlmEvent, decode_sse};
use foldline_session_model::model_call::Api;
use futures::{StreamExt, stream};

/// A reply of many small deltas and one long line.
fn body() -> Bytes {
    let mut body = String::from(
        "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"model\":\"m\"}}\n\n\
         event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n",
    );
    for number in 0..5000 {
        body.push_str("event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"");
        body.push_str(if number % 7 == 0 {
            "naïve 東京 \\n"
        } else {
            "some words "
        });
        body.push_str("\"}}\n\n");
    }
    body.push_str("event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"");
    body.push_str(&"x".repeat(1_000_000));
    body.push_str("\"}}\n\n");
    body.push_str("event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\n");
    body.push_str("event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n");
    Bytes::from(body)
}

fn decode(body: &Bytes, chunk: usize) -> usize {
    let chunks: Vec<_> = (0..body.len())
        .step_by(chunk)
        .map(|start| Ok(body.slice(start..(start + chunk).min(body.len()))))
        .collect();
    let mut decoder = Decoder::new(Api::AnthropicMessages);
    let mut out: Vec<LlmEvent> = Vec::new();
    let mut count = 0;
    futures::executor::block_on(async {
        let mut events = std::pin::pin!(decode_sse(stream::iter(chunks)));
        while let Some(event) = events.next().await {
            if let Ok(event) = event {
                count += usize::from(decoder.event(&event, &mut out).is_ok());
            }
            out.clear();
        }
    });
    count
}

fn bench(criterion: &mut Criterion) {
    let body = body();
    assert_eq!(decode(&body, 16 * 1024), 5005, "every event of the body counts");
    let mut group = criterion.benchmark_group("sse");
    group
        .throughput(Throughput::Bytes(body.len() as u64))
        .sample_size(10);
    for chunk in [64, 1400, 16 * 1024, usize::MAX >> 8] {
        let name = if chunk > body.len() {
            "whole".to_owned()
        } else {
            format!("chunks of {chunk}")
        };
        group.bench_function(name, |bencher| bencher.iter(|| decode(black_box(&body), chunk)));
    }
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);

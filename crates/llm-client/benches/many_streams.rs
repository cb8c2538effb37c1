//! A thousand streams at once on one runtime: how late its tasks run, and what they keep in memory.
//!
//! `cargo bench -p foldline-llm-client --bench many_streams`. Needs about 2,100 open files.
#![allow(clippy::unwrap_used, reason = "a bench fails by panicking")]
#![allow(clippy::print_stdout, reason = "a bench reports to the terminal")]

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use foldline_llm_client::endpoint::{Auth, Endpoint, PlainHttp};
use foldline_llm_client::transport::HttpTransport;
use foldline_llm_client::{LanguageModel, LlmEvent, ProviderModel};
use foldline_session_model::model_call::{Api, LlmRequest, ModelProfile, ModelRef};
use futures::StreamExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Streams at once; few when the bench only has to run.
const STREAMS: usize = 1000;
const STREAMS_OF_A_TEST: usize = 20;
const DELTAS: usize = 100;
const PAUSE: Duration = Duration::from_millis(50);

fn main() {
    let only_runs = std::env::args().any(|argument| argument == "--test")
        || !std::env::args().any(|argument| argument == "--bench");
    let streams = if only_runs { STREAMS_OF_A_TEST } else { STREAMS };
    let serving = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let base = serving.block_on(serve());
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    // The same beat on a runtime without streams: what the machine itself adds.
    let idle = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let (done, worst) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let control = idle.spawn(heartbeat(Arc::clone(&done), Arc::clone(&worst)));
    runtime.block_on(run(&base, streams));
    done.store(true, Ordering::SeqCst);
    let late = idle.block_on(control).unwrap();
    println!(
        "idle runtime     {}",
        lateness(&late, worst.load(Ordering::SeqCst))
    );
}

async fn run(base: &str, streams: usize) {
    let endpoint = Endpoint::new(base, Auth::None, PlainHttp::LoopbackOnly).unwrap();
    let transport = Arc::new(HttpTransport::new(&endpoint).unwrap());
    let (done, worst) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let beat = tokio::spawn(heartbeat(Arc::clone(&done), Arc::clone(&worst)));
    let events = Arc::new(AtomicU64::new(0));
    let longest = Arc::new(AtomicU64::new(0));
    let before = resident();
    let started = Instant::now();
    let calls: Vec<_> = (0..streams)
        .map(|_| {
            let name = ModelRef {
                provider: "local".to_owned(),
                id: "m".to_owned(),
            };
            let profile = ModelProfile::unknown(name, Api::AnthropicMessages);
            let model = ProviderModel::with_transport(profile, endpoint.clone(), transport.clone());
            let events = Arc::clone(&events);
            tokio::spawn(Measured::new(Arc::clone(&longest), async move {
                let request = LlmRequest::from_prompt("s", "p");
                let mut stream = model.stream(&request, CancellationToken::new()).await.unwrap();
                while let Some(event) = stream.next().await {
                    events.fetch_add(1, Ordering::Relaxed);
                    if let LlmEvent::End(reply) = event.unwrap() {
                        assert_eq!(reply.text().len(), DELTAS * 6);
                    }
                }
            }))
        })
        .collect();
    let mut samples = Vec::new();
    while calls.iter().any(|call| !call.is_finished()) {
        tokio::time::sleep(Duration::from_millis(250)).await;
        samples.push(resident());
    }
    for call in calls {
        call.await.unwrap();
    }
    done.store(true, Ordering::SeqCst);
    let late: Vec<u64> = beat.await.unwrap();
    println!("streams          {streams}");
    println!("events           {}", events.load(Ordering::SeqCst));
    println!("time             {:.1} s", started.elapsed().as_secs_f64());
    println!(
        "late by          {}",
        lateness(&late, worst.load(Ordering::SeqCst))
    );
    println!(
        "longest poll     {:.1} ms of processor time",
        longest.load(Ordering::SeqCst) as f64 / 1e6
    );
    println!("memory before    {before} KiB");
    println!("memory while     {samples:?} KiB");
}

/// A task that notes the longest time on the processor between two of its waits: for so long it blocked all
/// others of its thread. Other than lateness, this does not depend on what else the machine does.
struct Measured<F> {
    inner: Pin<Box<F>>,
    longest: Arc<AtomicU64>,
}

impl<F> Measured<F> {
    fn new(longest: Arc<AtomicU64>, inner: F) -> Self {
        Self {
            inner: Box::pin(inner),
            longest,
        }
    }
}

impl<F: Future> Future for Measured<F> {
    type Output = F::Output;
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let before = thread_time();
        let polled = self.inner.as_mut().poll(context);
        self.longest
            .fetch_max(thread_time().saturating_sub(before), Ordering::Relaxed);
        polled
    }
}

/// Nanoseconds that this thread was on a processor, to the tick; 0 where the system does not say.
fn thread_time() -> u64 {
    #[expect(
        clippy::disallowed_methods,
        reason = "the bench asks the system, the crate does not"
    )]
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    stat.split(' ')
        .next()
        .and_then(|time| time.parse().ok())
        .unwrap_or(0)
}

fn lateness(late: &[u64], worst: u64) -> String {
    let percentile = |share: usize| late.get(late.len() * share / 1000).copied().unwrap_or_default();
    format!(
        "median {} ms, p99 {} ms, p99.9 {} ms, worst {worst} ms",
        percentile(500),
        percentile(990),
        percentile(999)
    )
}

/// A task that wants to run every 5 ms, and how late it was.
async fn heartbeat(done: Arc<AtomicBool>, worst: Arc<AtomicU64>) -> Vec<u64> {
    const BEAT: Duration = Duration::from_millis(5);
    let mut late = Vec::new();
    while !done.load(Ordering::SeqCst) {
        let due = Instant::now() + BEAT;
        tokio::time::sleep(BEAT).await;
        let by = u64::try_from(due.elapsed().as_millis()).unwrap_or(u64::MAX);
        worst.fetch_max(by, Ordering::SeqCst);
        late.push(by);
    }
    late.sort_unstable();
    late
}

/// Resident memory in KiB; 0 where the system does not say.
fn resident() -> u64 {
    #[expect(
        clippy::disallowed_methods,
        reason = "the bench asks the system, the crate does not"
    )]
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .and_then(|rest| rest.trim().trim_end_matches(" kB").parse().ok())
        .unwrap_or(0)
}

async fn serve() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut connection, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut buffer = vec![0; 4096];
                assert!(connection.read(&mut buffer).await.unwrap() > 0);
                let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n\
                    data: {\"type\":\"message_start\",\"message\":{\"id\":\"m\"}}\n\n\
                    data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n";
                connection.write_all(head.as_bytes()).await.unwrap();
                for _ in 0..DELTAS {
                    tokio::time::sleep(PAUSE).await;
                    let delta = "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"words \"}}\n\n";
                    connection.write_all(delta.as_bytes()).await.unwrap();
                }
                let end = "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\ndata: {\"type\":\"message_stop\"}\n\n";
                connection.write_all(end.as_bytes()).await.unwrap();
            });
        }
    });
    base
}

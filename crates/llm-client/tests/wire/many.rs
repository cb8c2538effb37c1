//! Many streams at once on one runtime.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use foldline_llm_client::endpoint::{Auth, Endpoint, PlainHttp};
use foldline_llm_client::transport::HttpTransport;
use foldline_llm_client::{LanguageModel, ProviderModel};
use foldline_session_model::model_call::LlmReply;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::server::{Server, Step, head};
use crate::{STREAMS, profile, request};

/// Two hundred here, so that the limit of open files of any machine is enough; the bench `many_streams` runs a
/// thousand and reports figures.
const STREAMS_AT_ONCE: usize = 200;

#[test]
fn many_streams_run_side_by_side() {
    let (api, body) = STREAMS[0];
    let mut steps = vec![Step::Send(head())];
    for event in body.split_inclusive("\n\n") {
        steps.push(Step::Wait(Duration::from_millis(20)));
        steps.push(Step::Send(event.as_bytes().to_vec()));
    }
    // The server has a runtime of its own: what is measured is the client's.
    let serving = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let server = serving.block_on(Server::start(steps));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let started = Instant::now();
    let replies: Vec<LlmReply> = runtime.block_on(async {
        let endpoint = Endpoint::new(&server.base, Auth::None, PlainHttp::LoopbackOnly).unwrap();
        let transport = Arc::new(HttpTransport::new(&endpoint).unwrap());
        let finished = Arc::new(AtomicU64::new(0));
        let calls: Vec<_> = (0..STREAMS_AT_ONCE)
            .map(|_| {
                let model = ProviderModel::with_transport(profile(api), endpoint.clone(), transport.clone());
                let finished = Arc::clone(&finished);
                tokio::spawn(async move {
                    let reply = model.complete(&request(), CancellationToken::new()).await;
                    finished.fetch_add(1, Ordering::SeqCst);
                    reply
                })
            })
            .collect();
        let mut replies = Vec::new();
        for call in calls {
            replies.push(call.await.unwrap().unwrap());
        }
        assert_eq!(finished.load(Ordering::SeqCst), STREAMS_AT_ONCE as u64);
        replies
    });
    let first = replies.first().unwrap();
    assert!(replies.iter().all(|reply| reply == first));
    // One after the other they would take 20 ms times 21 events times 200.
    assert!(
        started.elapsed() < Duration::from_secs(40),
        "{:?}",
        started.elapsed()
    );
}

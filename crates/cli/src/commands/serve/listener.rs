//! The server: connections, their limits, and its end.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::{Body as _, Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Method, Request};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio_util::sync::CancellationToken;

use super::answer::{self, Answer, Refusal};
use super::request::{self, HostRule};
use super::summarizer::Summarizer;
use crate::output;
use crate::signals::Signals;

/// What a client may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// How long a head may take to arrive, and how long a body.
    pub(super) receive: Duration,
    /// The largest body: a window of a million tokens, escaped.
    pub(super) body: usize,
    /// How many connections are open at once; the others wait.
    pub(super) connections: usize,
    /// How much the bodies of all requests may take together.
    pub(super) bodies: usize,
    /// How long a request waits for its share of that.
    pub(super) wait: Duration,
    /// How long requests that are at work may go on after the end was asked for.
    pub(super) drain: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            receive: Duration::from_secs(30),
            body: 16 << 20,
            connections: 256,
            bodies: 256 << 20,
            wait: Duration::from_secs(20),
            drain: Duration::from_secs(20),
        }
    }
}

/// How the server ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Drain {
    /// Every request was answered.
    Complete,
    /// Some were cut off.
    Incomplete,
}

/// Bodies are counted in units of this many bytes.
const UNIT: usize = 1024;

struct Server {
    summarizer: Arc<Summarizer>,
    rule: HostRule,
    limits: Limits,
    /// Room for bodies.
    room: Semaphore,
    stop: CancellationToken,
}

/// Serves until somebody asks it to end, and then until the requests at work are answered. A second signal ends it at
/// once.
pub(super) async fn serve(
    listener: TcpListener,
    summarizer: Arc<Summarizer>,
    rule: HostRule,
    limits: Limits,
) -> Drain {
    let server = Arc::new(Server {
        summarizer,
        rule,
        limits,
        room: Semaphore::new(limits.bodies / UNIT),
        stop: CancellationToken::new(),
    });
    let connections = Arc::new(Semaphore::new(limits.connections));
    let graceful = GracefulShutdown::new();
    let mut signals = Signals::new();
    loop {
        let accepted = async {
            // Not to be refused: whoever comes too many waits until one goes.
            let place = Arc::clone(&connections).acquire_owned().await.ok();
            (listener.accept().await, place)
        };
        let (stream, place) = tokio::select! {
            (accepted, place) = accepted => match accepted {
                Ok((stream, _)) => (stream, place),
                Err(error) => {
                    output::warning(&format!("a connection failed: {error}"));
                    // Out of file handles, for example: they come back when others close.
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            },
            () = signals.next() => break,
        };
        let watcher = graceful.watcher();
        let server = Arc::clone(&server);
        tokio::spawn(async move {
            watcher.watch(connection(server, stream)).await.ok();
            drop(place);
        });
    }
    drop(listener);
    let ended = async {
        let mut ended = std::pin::pin!(graceful.shutdown());
        if tokio::time::timeout(limits.drain, &mut ended).await.is_ok() {
            return Drain::Complete;
        }
        // Those that still wait for a model are told so.
        server.stop.cancel();
        tokio::time::timeout(Duration::from_secs(1), ended).await.ok();
        Drain::Incomplete
    };
    tokio::select! {
        drain = ended => drain,
        () = signals.next() => Drain::Incomplete,
    }
}

/// A connection to be driven: HTTP/1, as all clients of the seeds speak.
fn connection(
    server: Arc<Server>,
    stream: TcpStream,
) -> impl hyper_util::server::graceful::GracefulConnection<Error = hyper::Error> {
    let receive = server.limits.receive;
    let service = service_fn(move |request: Request<Incoming>| {
        let server = Arc::clone(&server);
        async move { Ok::<Answer, Infallible>(server.answer(request).await) }
    });
    hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(receive)
        .max_headers(64)
        .max_buf_size(64 * 1024)
        .serve_connection(TokioIo::new(stream), service)
}

impl Server {
    async fn answer(&self, request: Request<Incoming>) -> Answer {
        let started = Instant::now();
        match self.route(request).await {
            Ok(answer) => answer,
            Err(refusal) => {
                let answer = answer::refusal(&refusal);
                // What went wrong, and never what was said: neither bodies nor headers.
                output::note(&format!(
                    "refused with {} after {} ms",
                    answer.status(),
                    started.elapsed().as_millis()
                ));
                answer
            }
        }
    }

    async fn route(&self, request: Request<Incoming>) -> Result<Answer, Refusal> {
        if !self.rule.accepts(request.uri(), request.headers()) {
            return Err(Refusal::WrongHost);
        }
        match (request.uri().path(), request.method()) {
            ("/health", &Method::GET | &Method::HEAD) => Ok(answer::health()),
            ("/health", _) => Err(Refusal::WrongMethod { allowed: "GET" }),
            ("/summarize", &Method::POST) => self.summarize(request).await,
            ("/summarize", _) => Err(Refusal::WrongMethod { allowed: "POST" }),
            _ => Err(Refusal::NotFound),
        }
    }

    async fn summarize(&self, request: Request<Incoming>) -> Result<Answer, Refusal> {
        if !request::is_json(request.headers()) {
            return Err(Refusal::NotJson);
        }
        let (body, _room) = self.receive(request.into_body()).await?;
        let asked = request::parse(&body).map_err(Refusal::Malformed)?;
        drop(body);
        let summary = self
            .summarizer
            .summarize(asked.system_prompt, asked.prompt, &self.stop)
            .await;
        summary
            .map(|text| answer::summary(&text))
            .map_err(Refusal::Failed)
    }

    /// The whole body, and the room that it takes as long as it is at work.
    async fn receive(&self, body: Incoming) -> Result<(Bytes, SemaphorePermit<'_>), Refusal> {
        let limit = self.limits.body;
        let too_large = || Refusal::TooLarge { limit };
        let announced = body.size_hint().exact();
        let size = match announced.map(usize::try_from) {
            Some(Ok(size)) if size <= limit => size,
            Some(_) => return Err(too_large()),
            None => limit,
        };
        let units = u32::try_from(size / UNIT + 1).unwrap_or(u32::MAX);
        let waiting = tokio::time::timeout(self.limits.wait, self.room.acquire_many(units));
        let Ok(Ok(room)) = waiting.await else {
            return Err(Refusal::Busy);
        };
        let whole = Limited::new(body, limit).collect();
        match tokio::time::timeout(self.limits.receive, whole).await {
            Ok(Ok(body)) => Ok((body.to_bytes(), room)),
            Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large()),
            Ok(Err(_)) => Err(Refusal::Unreadable),
            Err(_) => Err(Refusal::TooSlow),
        }
    }
}

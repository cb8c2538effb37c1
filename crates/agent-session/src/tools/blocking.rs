//! Work that blocks, off the async threads, and how it learns that it should stop.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::answer::Failure;

const OPEN: u8 = 0;
const COMMITTED: u8 = 1;
const CLOSED: u8 = 2;

/// Tells blocking work that nobody waits for it any more.
#[derive(Clone)]
pub(super) struct Stop {
    token: CancellationToken,
    phase: Arc<AtomicU8>,
}

impl Stop {
    pub(super) fn new(cancel: &CancellationToken) -> Self {
        Self {
            token: cancel.child_token(),
            phase: Arc::new(AtomicU8::new(OPEN)),
        }
    }

    /// Whether the work should end with what it has.
    pub(super) fn is_set(&self) -> bool {
        self.token.is_cancelled()
    }

    /// The same bytes, with an error in place of the next ones once the work should end.
    pub(super) fn reader<R: Read>(&self, inner: R) -> impl Read {
        Stoppable {
            inner,
            stop: self.clone(),
        }
    }

    /// Asked right before a change becomes visible: whether it may. After that the caller waits for the work to end, so
    /// that an answer "cancelled" always means that nothing was changed.
    pub(super) fn commit(&self) -> bool {
        self.enter(COMMITTED)
    }

    /// Whether the work is cut off before it changed anything.
    fn close(&self) -> bool {
        self.enter(CLOSED)
    }

    fn enter(&self, phase: u8) -> bool {
        let entered = self
            .phase
            .compare_exchange(OPEN, phase, Ordering::AcqRel, Ordering::Acquire);
        entered.is_ok()
    }
}

struct Stoppable<R> {
    inner: R,
    stop: Stop,
}

impl<R: Read> Read for Stoppable<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.stop.is_set() {
            return Err(io::Error::other("stopped"));
        }
        self.inner.read(buffer)
    }
}

/// Closes the work if its caller goes away.
struct Guard(Stop);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.token.cancel();
        self.0.close();
    }
}

/// Runs blocking work. A cancel answers at once, and work that is still reading is left to notice. At the time limit the
/// work is told to stop, and answers with what it has.
pub(super) async fn blocking<T: Send + 'static>(
    cancel: &CancellationToken,
    limit: Option<Duration>,
    work: impl FnOnce(&Stop) -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    if cancel.is_cancelled() {
        return Err(Failure::cancelled());
    }
    let stop = Stop::new(cancel);
    let guard = Guard(stop.clone());
    let mut running = tokio::task::spawn_blocking(move || work(&stop));
    let limit = async {
        match limit {
            Some(limit) => tokio::time::sleep(limit).await,
            None => std::future::pending().await,
        }
    };
    tokio::pin!(limit);
    let joined = loop {
        tokio::select! {
            joined = &mut running => break joined,
            () = cancel.cancelled() => {
                if guard.0.close() {
                    return Err(Failure::cancelled());
                }
                break (&mut running).await;
            }
            () = &mut limit, if !guard.0.is_set() => guard.0.token.cancel(),
        }
    };
    joined.unwrap_or_else(|_| Err(Failure("The tool failed inside.".to_owned())))
}

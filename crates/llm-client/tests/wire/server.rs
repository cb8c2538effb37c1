//! A server that writes what a test tells it, byte for byte and with waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

/// One step of an answer.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Bytes in one write.
    Send(Vec<u8>),
    /// A pause.
    Wait(Duration),
    /// Nothing more, with the connection open, until the client closes it.
    Hang,
}

/// A server that gives every connection the same answer.
pub(crate) struct Server {
    pub(crate) base: String,
    /// Connections that the client closed before the answer was over.
    pub(crate) hung_up: Arc<AtomicUsize>,
    pub(crate) on_hang_up: Arc<Notify>,
    task: tokio::task::JoinHandle<()>,
}

impl Server {
    pub(crate) async fn start(steps: Vec<Step>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let hung_up = Arc::new(AtomicUsize::new(0));
        let on_hang_up = Arc::new(Notify::new());
        let steps = Arc::new(steps);
        let (count, notify) = (Arc::clone(&hung_up), Arc::clone(&on_hang_up));
        let task = tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                let (steps, count, notify) = (Arc::clone(&steps), Arc::clone(&count), Arc::clone(&notify));
                tokio::spawn(async move {
                    if answer(connection, &steps).await == End::HungUp {
                        count.fetch_add(1, Ordering::SeqCst);
                        notify.notify_one();
                    }
                });
            }
        });
        Self {
            base,
            hung_up,
            on_hang_up,
            task,
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[derive(PartialEq)]
enum End {
    Over,
    HungUp,
}

async fn answer(mut connection: TcpStream, steps: &[Step]) -> End {
    if read_request(&mut connection).await.is_none() {
        return End::Over;
    }
    connection.set_nodelay(true).unwrap();
    for step in steps {
        match step {
            Step::Send(bytes) => {
                if connection.write_all(bytes).await.is_err() {
                    return End::HungUp;
                }
            }
            Step::Wait(time) => tokio::time::sleep(*time).await,
            Step::Hang => {
                let mut byte = [0];
                return match connection.read(&mut byte).await {
                    Ok(0) | Err(_) => End::HungUp,
                    Ok(_) => End::Over,
                };
            }
        }
    }
    let _closed = connection.shutdown().await;
    End::Over
}

/// Reads head and body; `None` when the client closed before.
async fn read_request(connection: &mut TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    let mut buffer = vec![0; 16 * 1024];
    loop {
        let read = connection.read(&mut buffer).await.ok()?;
        if read == 0 {
            return None;
        }
        bytes.extend_from_slice(&buffer[..read]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .filter_map(|line| line.split_once(':'))
                .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
                .and_then(|(_, length)| length.trim().parse::<usize>().ok())
                .unwrap_or(0);
            if body.len() >= length {
                return Some(text);
            }
        }
    }
}

/// The head of a stream that ends when the connection does.
pub(crate) fn head() -> Vec<u8> {
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n".to_vec()
}

/// The head of a stream in HTTP chunks.
pub(crate) fn chunked_head() -> Vec<u8> {
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n".to_vec()
}

/// One HTTP chunk.
pub(crate) fn chunk(bytes: &[u8]) -> Vec<u8> {
    let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
    chunk.extend_from_slice(bytes);
    chunk.extend_from_slice(b"\r\n");
    chunk
}

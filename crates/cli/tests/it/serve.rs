//! The server over real sockets.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use crate::server;
use crate::support::Sandbox;

const PROMPT: &str = "<conversation>\n[User]: Fix the parser in src/parse.rs\n\n[Assistant]: The root cause is an off by one.\n</conversation>\n\n<previous-summary>\n## Goal\n- Ship the parser\n</previous-summary>\n\nUpdate the summary.";

/// A running `foldline serve`. Dropping it kills it.
struct Served {
    process: Child,
    address: SocketAddr,
}

impl Served {
    fn start(more: &[&str]) -> Self {
        let sandbox = Sandbox::new();
        let mut process = Command::new(env!("CARGO_BIN_EXE_foldline"))
            .args(["serve", "--addr", "127.0.0.1:0", "--json"])
            .args(more)
            .env_clear()
            .env("HOME", sandbox.path("."))
            .env("NO_COLOR", "1")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let started: serde_json::Value = serde_json::from_str(&line).unwrap();
        let url = started["url"].as_str().unwrap();
        let address = url.strip_prefix("http://").unwrap().parse().unwrap();
        Self { process, address }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream
    }

    /// Sends bytes and reads the answer: status, head and body.
    fn send(&self, request: &str) -> (u16, String, serde_json::Value) {
        let mut stream = self.connect();
        stream.write_all(request.as_bytes()).unwrap();
        read(stream)
    }

    fn post(&self, body: &str) -> (u16, String, serde_json::Value) {
        self.send(&request("POST", "/summarize", "localhost", body))
    }

    #[cfg(unix)]
    fn terminate(&self) {
        let status = Command::new("kill")
            .args(["-TERM", &self.process.id().to_string()])
            .status()
            .unwrap();
        assert!(status.success());
    }

    fn exit_code(&mut self) -> i32 {
        self.process.wait().unwrap().code().unwrap()
    }

    fn stderr(&mut self) -> String {
        let mut text = String::new();
        self.process
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut text)
            .unwrap();
        text
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

fn request(method: &str, path: &str, host: &str, body: &str) -> String {
    format!(
        "{method} {path} HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json; charset=utf-8\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
}

fn read(mut stream: TcpStream) -> (u16, String, serde_json::Value) {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{text:?}"));
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (
        status,
        head.to_ascii_lowercase(),
        serde_json::from_str(body).unwrap_or_default(),
    )
}

fn body(prompt: &str) -> String {
    serde_json::json!({"systemPrompt": "Summarise.", "prompt": prompt}).to_string()
}

#[test]
fn a_conversation_gets_a_summary_without_a_model() {
    let served = Served::start(&[]);
    let (status, head, answer) = served.post(&body(PROMPT));
    assert_eq!(status, 200, "{answer}");
    assert!(head.contains("content-type: application/json"), "{head}");
    let summary = answer["summary"].as_str().unwrap();
    for expected in [
        "without a model",
        "Ship the parser",
        "Fix the parser in src/parse.rs",
        "off by one",
    ] {
        assert!(summary.contains(expected), "{summary}");
    }
    let (status, _, health) =
        served.send("GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n");
    assert_eq!((status, &health["status"]), (200, &"ok".into()));
}

/// What our own client sends, and what JavaScript sends that no strict reader takes.
#[test]
fn lone_surrogates_are_no_error() {
    let served = Served::start(&[]);
    let body = body(PROMPT).replace("off by one", "off \\ud83d by one");
    assert_eq!(served.post(&body).0, 200);
}

#[test]
fn every_refusal_has_its_status_and_says_why() {
    let served = Served::start(&[]);
    let good = body(PROMPT);
    let get = |path: &str| format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    let cases = [
        (
            request("POST", "/summarize", "localhost", &body("Summarise this.")),
            422,
            "no_conversation",
        ),
        (
            request("POST", "/summarize", "localhost", "{"),
            400,
            "bad_request",
        ),
        (
            request("POST", "/summarize", "localhost", "{\"systemPrompt\":\"\"}"),
            400,
            "bad_request",
        ),
        (request("POST", "/", "localhost", &good), 404, "not_found"),
        (get("/nothing"), 404, "not_found"),
        (get("/summarize"), 405, "method_not_allowed"),
        (
            request("POST", "/health", "localhost", ""),
            405,
            "method_not_allowed",
        ),
        (
            request("OPTIONS", "/summarize", "localhost", ""),
            405,
            "method_not_allowed",
        ),
        (
            request("POST", "/summarize", "evil.example", &good),
            421,
            "wrong_host",
        ),
        (
            request("POST", "/summarize", "localhost", &good).replace("application/json", "text/plain"),
            415,
            "unsupported_media_type",
        ),
        (
            format!(
                "POST /summarize HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
                17 << 20
            ),
            413,
            "too_large",
        ),
    ];
    for (request, status, kind) in cases {
        let (got, head, answer) = served.send(&request);
        let first = request.lines().next().unwrap();
        assert_eq!(got, status, "{first}: {answer}");
        assert_eq!(answer["error"]["kind"], kind, "{first}");
        assert!(answer["error"]["message"].as_str().is_some_and(|m| !m.is_empty()));
        if status == 405 {
            assert!(head.contains("allow: "), "{head}");
        }
    }
    assert_eq!(served.post(&good).0, 200);
}

#[test]
fn a_body_of_unknown_length_is_bounded_too() {
    let served = Served::start(&[]);
    let mut stream = served.connect();
    stream
        .write_all(b"POST /summarize HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n")
        .unwrap();
    let chunk = format!("100000\r\n{}\r\n", "x".repeat(0x0010_0000));
    for _ in 0..20 {
        // The server stops reading somewhere in between.
        if stream.write_all(chunk.as_bytes()).is_err() {
            break;
        }
    }
    let mut answer = [0; 12];
    // Where the system throws the answer away with what was not read, there is none to look at.
    if stream.read_exact(&mut answer).is_ok() {
        assert_eq!(&answer, b"HTTP/1.1 413");
    }
    assert_eq!(served.post(&body(PROMPT)).0, 200);
}

#[test]
fn a_slow_client_is_not_waited_for() {
    let served = Served::start(&["--receive-timeout", "1"]);
    let whole = request("POST", "/summarize", "localhost", &body(PROMPT));
    let mut slow_body = served.connect();
    slow_body
        .write_all(&whole.as_bytes()[..whole.len() - 10])
        .unwrap();
    let mut slow_head = served.connect();
    slow_head
        .write_all(b"POST /summarize HTTP/1.1\r\nhost: lo")
        .unwrap();
    assert_eq!(served.post(&body(PROMPT)).0, 200);
    let (status, _, answer) = read(slow_body);
    assert_eq!((status, &answer["error"]["kind"]), (408, &"timeout".into()));
    // A head that never ends gets no answer, and its connection closes.
    let mut rest = Vec::new();
    slow_head.read_to_end(&mut rest).ok();
    assert!(!String::from_utf8_lossy(&rest).contains("200"));
}

#[test]
fn a_hundred_clients_at_once_are_all_answered() {
    let served = Served::start(&[]);
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..100)
            .map(|i| {
                let served = &served;
                scope.spawn(move || {
                    let prompt = PROMPT.replace("the parser in", &format!("the parser {i} in"));
                    let (status, _, answer) = served.post(&body(&prompt));
                    let summary = answer["summary"].as_str().unwrap_or_default();
                    assert!(summary.contains(&format!("the parser {i} in")), "{answer}");
                    status
                })
            })
            .collect();
        clients.into_iter().map(|client| client.join().unwrap()).collect()
    });
    assert_eq!(statuses, [200; 100]);
}

/// A provider that answers when it is told to, and tells when it was asked.
fn provider(answer: mpsc::Receiver<&'static str>) -> (String, mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (asked, was_asked) = mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            asked.send(server::read(&stream).1).ok();
            let Ok(text) = answer.recv() else { return };
            stream.write_all(text.as_bytes()).unwrap();
        }
    });
    (url, was_asked)
}

const REPLY: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\ndata: {\"id\":\"r\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"The notes.\"},\"finish_reason\":null}]}\n\ndata: {\"id\":\"r\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
const DENIED: &str = "HTTP/1.1 401 Unauthorized\r\ncontent-type: application/json\r\ncontent-length: 38\r\nconnection: close\r\n\r\n{\"error\":{\"message\":\"Incorrect key.\"}}\n";

fn by_model(url: &str) -> Served {
    let model = [
        "--model",
        "my/model",
        "--base-url",
        url,
        "--api",
        "openai-completions",
    ];
    Served::start(&model)
}

#[cfg(unix)]
#[test]
fn who_is_being_served_at_the_end_still_gets_the_answer() {
    let (answer, answers) = mpsc::channel();
    let (url, asked) = provider(answers);
    let mut served = by_model(&url);
    let mut client = served.connect();
    client
        .write_all(request("POST", "/summarize", "localhost", &body(PROMPT)).as_bytes())
        .unwrap();
    let request = asked.recv_timeout(Duration::from_secs(60)).unwrap();
    assert!(
        request.contains("Summarise.") && request.contains("Ship the parser"),
        "{request}"
    );
    served.terminate();
    // The door closes while the answer is still to come.
    while TcpStream::connect(served.address).is_ok() {
        std::thread::sleep(Duration::from_millis(10));
    }
    answer.send(REPLY).unwrap();
    let (status, _, body) = read(client);
    assert_eq!((status, &body["summary"]), (200, &"The notes.".into()));
    assert_eq!(served.exit_code(), 0);
}

#[test]
fn a_failing_model_is_told_and_nothing_private_is_logged() {
    let (answer, answers) = mpsc::channel();
    let (url, _asked) = provider(answers);
    let mut served = by_model(&url);
    answer.send(DENIED).unwrap();
    let (status, _, body) = served.post(&body(PROMPT));
    assert_eq!(
        (status, &body["error"]["kind"]),
        (502, &"provider".into()),
        "{body}"
    );
    served.process.kill().unwrap();
    let log = served.stderr();
    assert!(log.contains("502"), "{log}");
    assert!(!log.contains("parser") && !log.contains("Summarise"), "{log}");
}

#[test]
fn addresses_that_others_can_reach_have_to_be_asked_for() {
    let sandbox = Sandbox::new();
    let run = sandbox.run(&["serve", "--addr", "0.0.0.0:0"]);
    assert_eq!(run.code(), 2, "{}", run.all());
    assert!(run.stderr().contains("--allow-remote"), "{}", run.all());
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let run = sandbox.run(&["serve", "--addr", &address]);
    assert_eq!(run.code(), 1, "{}", run.all());
    assert!(run.stderr().contains("another port"), "{}", run.all());
}

//! A scripted server on this machine that stands for a provider.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
#[cfg(unix)]
use std::process::{Child, Command};
use std::sync::{Arc, Mutex};
#[cfg(unix)]
use std::time::Duration;

/// A server that answers each request with the next script; the last one repeats.
pub(crate) struct Server {
    pub(crate) url: String,
    bodies: Arc<Mutex<Vec<String>>>,
}

/// What the server answers.
#[derive(Clone)]
pub(crate) enum Script {
    /// A streamed reply of one text.
    Text(String, &'static str),
    /// A streamed call of a tool: its name and its arguments.
    Call(&'static str, &'static str),
    /// An error.
    Status(u16, &'static str),
    /// A JSON document.
    Json(u16, String),
    /// A streamed reply of one text, as Responses writes it.
    Responses(String),
    /// The request is taken, and never answered.
    Silence,
}

impl Server {
    pub(crate) fn start(scripts: Vec<Script>) -> Self {
        Self::answering(move |number, _| scripts.get(number).or(scripts.last()).unwrap().clone())
    }

    /// A server that answers by the path of the request.
    pub(crate) fn by_path(routes: Vec<(&'static str, Script)>) -> Self {
        Self::answering(move |_, path| {
            let known = routes.iter().find(|(route, _)| *route == path);
            known.map_or(Script::Status(404, "{}"), |(_, script)| script.clone())
        })
    }

    fn answering(script: impl Fn(usize, &str) -> Script + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let bodies = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&bodies);
        // Ends with the test process.
        std::thread::spawn(move || {
            let mut kept = Vec::new();
            for (i, stream) in listener.incoming().enumerate() {
                let stream = stream.unwrap();
                kept.push(stream.try_clone().unwrap());
                let (path, body) = read(&stream);
                let script = script(i, &path);
                // A test that saw the request may expect its answer.
                seen.lock().unwrap().push(body);
                answer(stream, &script);
            }
        });
        Self { url, bodies }
    }

    pub(crate) fn requests(&self) -> Vec<String> {
        self.bodies.lock().unwrap().clone()
    }

    /// Interrupts `child` as Ctrl-C does, once it has asked this server.
    #[cfg(unix)]
    pub(crate) fn interrupt_when_asked(&self, child: &Child) {
        while self.requests().is_empty() {
            std::thread::sleep(Duration::from_millis(10));
        }
        let sent = Command::new("kill")
            .args(["-INT", &child.id().to_string()])
            .status()
            .unwrap();
        assert!(sent.success());
    }
}

/// The path and the body of the request that comes in.
pub(crate) fn read(stream: &TcpStream) -> (String, String) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut first = String::new();
    reader.read_line(&mut first).unwrap();
    let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    (path, String::from_utf8(body).unwrap())
}

fn answer(mut stream: TcpStream, script: &Script) {
    let (status, kind, text) = match script {
        Script::Text(text, finish) => {
            let text = serde_json::to_string(text).unwrap();
            let events = [
                format!(r#"{{"id":"r","model":"m","choices":[{{"index":0,"delta":{{"role":"assistant","content":{text}}},"finish_reason":null}}]}}"#),
                format!(r#"{{"id":"r","model":"m","choices":[{{"index":0,"delta":{{}},"finish_reason":"{finish}"}}]}}"#),
                r#"{"id":"r","model":"m","choices":[],"usage":{"prompt_tokens":900,"completion_tokens":20,"total_tokens":920}}"#.to_owned(),
                "[DONE]".to_owned(),
            ];
            (
                200,
                "text/event-stream",
                events.map(|e| format!("data: {e}\n\n")).concat(),
            )
        }
        Script::Call(name, arguments) => {
            let arguments = serde_json::to_string(arguments).unwrap();
            let events = [
                format!(r#"{{"id":"r","model":"m","choices":[{{"index":0,"delta":{{"role":"assistant","tool_calls":[{{"index":0,"id":"call_1","type":"function","function":{{"name":"{name}","arguments":{arguments}}}}}]}},"finish_reason":null}}]}}"#),
                r#"{"id":"r","model":"m","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#.to_owned(),
                r#"{"id":"r","model":"m","choices":[],"usage":{"prompt_tokens":100,"completion_tokens":10,"total_tokens":110}}"#.to_owned(),
                "[DONE]".to_owned(),
            ];
            (
                200,
                "text/event-stream",
                events.map(|e| format!("data: {e}\n\n")).concat(),
            )
        }
        Script::Responses(text) => {
            let text = serde_json::to_string(text).unwrap();
            let events = [
                r#"{"type":"response.created","response":{"id":"r","model":"m"}}"#.to_owned(),
                r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"m1"}}"#
                    .to_owned(),
                format!(r#"{{"type":"response.output_text.delta","output_index":0,"delta":{text}}}"#),
                format!(
                    r#"{{"type":"response.output_item.done","output_index":0,"item":{{"type":"message","id":"m1","content":[{{"type":"output_text","text":{text}}}]}}}}"#
                ),
                r#"{"type":"response.completed","response":{"id":"r","status":"completed","usage":{"input_tokens":900,"output_tokens":20}}}"#.to_owned(),
            ];
            (
                200,
                "text/event-stream",
                events.map(|e| format!("data: {e}\n\n")).concat(),
            )
        }
        Script::Json(status, body) => (*status, "application/json", body.clone()),
        Script::Silence => return,
        Script::Status(status, body) => (*status, "application/json", (*body).to_owned()),
    };
    write!(
        stream,
        "HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{text}",
        text.len()
    )
    .ok();
}

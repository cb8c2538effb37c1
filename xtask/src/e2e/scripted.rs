//! A server that speaks Chat Completions and answers by a script: what it says depends on what it is asked, never on
//! how often or how fast.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use serde_json::{Value, json};

/// A running server. It ends with this process.
pub(super) struct Scripted {
    pub(super) url: String,
}

/// What was asked has this in it, and is answered so.
pub(super) struct Rule {
    pub(super) asked: &'static str,
    pub(super) answer: Answer,
}

#[derive(Clone, Copy)]
pub(super) enum Answer {
    /// A text, in pieces.
    Text(&'static str),
    /// A call of a tool: its name and its arguments.
    Call(&'static str, &'static str),
    /// The beginning of a text; the rest never comes.
    Stalls(&'static str),
    /// The first time the request is too large, then there is a text.
    TooLargeAtFirst(&'static str),
}

/// Between two pieces of a text.
const PAUSE: Duration = Duration::from_millis(5);

impl Scripted {
    /// Starts it. The first rule that fits what was asked last is followed.
    pub(super) fn start(rules: &'static [Rule]) -> anyhow::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let url = format!("http://{}", listener.local_addr()?);
        let refused = Arc::new(AtomicBool::new(false));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let refused = Arc::clone(&refused);
                // Who goes away in the middle is no trouble of the server.
                std::thread::spawn(move || drop(serve(&stream, rules, &refused)));
            }
        });
        Ok(Self { url })
    }
}

fn serve(stream: &TcpStream, rules: &[Rule], refused: &AtomicBool) -> anyhow::Result<()> {
    let request = read(stream)?;
    let asked = last_text(&request).unwrap_or_default();
    let answer = rules
        .iter()
        .find(|rule| asked.contains(rule.asked))
        .map_or(Answer::Text("Yes."), |rule| rule.answer);
    let mut out = stream;
    match answer {
        Answer::TooLargeAtFirst(_) if !refused.swap(true, Ordering::SeqCst) => {
            let error = json!({"error": {
                "message": "This model's maximum context length is 4000 tokens. However, your messages resulted in 4711 \
                            tokens. Please reduce the length of the messages.",
                "type": "invalid_request_error",
                "param": "messages",
                "code": "context_length_exceeded",
            }})
            .to_string();
            write!(
                out,
                "HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: \
                 close\r\n\r\n{error}",
                error.len()
            )?;
        }
        Answer::Text(text) | Answer::TooLargeAtFirst(text) => {
            begin(out)?;
            pieces(out, text)?;
            end(out, "stop")?;
        }
        Answer::Stalls(text) => {
            begin(out)?;
            pieces(out, text)?;
            // Until the other side has had enough.
            let mut nothing = [0; 1];
            out.read_exact(&mut nothing)?;
        }
        Answer::Call(name, arguments) => {
            begin(out)?;
            event(
                out,
                &json!({"role": "assistant", "tool_calls": [{
                    "index": 0,
                    "id": "call_1",
                    "type": "function",
                    "function": {"name": name, "arguments": arguments},
                }]}),
                None,
            )?;
            end(out, "tool_calls")?;
        }
    }
    Ok(())
}

fn read(stream: &TcpStream) -> anyhow::Result<Value> {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse()?;
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    serde_json::from_slice(&body).context("the request is no JSON")
}

/// The text of the last message; of a tool's result with a word before it that says so.
fn last_text(request: &Value) -> Option<String> {
    let last = request.get("messages")?.as_array()?.last()?;
    let text = match last.get("content")? {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts = parts.iter().filter_map(|part| part.get("text")?.as_str());
            texts.collect::<Vec<_>>().join("\n")
        }
        _ => return None,
    };
    let is_result = last.get("role").and_then(Value::as_str) == Some("tool");
    Some(if is_result { format!("RESULT {text}") } else { text })
}

fn begin(mut out: &TcpStream) -> std::io::Result<()> {
    out.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
}

fn event(mut out: &TcpStream, delta: &Value, finish: Option<&str>) -> std::io::Result<()> {
    let event =
        json!({"id": "r", "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]});
    write!(out, "data: {event}\n\n")
}

fn pieces(out: &TcpStream, text: &str) -> std::io::Result<()> {
    let chars: Vec<char> = text.chars().collect();
    for piece in chars.chunks(24) {
        let piece: String = piece.iter().collect();
        event(out, &json!({"content": piece}), None)?;
        std::thread::sleep(PAUSE);
    }
    Ok(())
}

fn end(mut out: &TcpStream, finish: &str) -> std::io::Result<()> {
    event(out, &json!({}), Some(finish))?;
    let usage = json!({"id": "r", "model": "m", "choices": [], "usage": {
        "prompt_tokens": 1600, "completion_tokens": 20, "total_tokens": 1620,
    }});
    write!(out, "data: {usage}\n\ndata: [DONE]\n\n")
}

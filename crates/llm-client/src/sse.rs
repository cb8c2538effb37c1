//! Server-sent events out of the bytes of a body.

use bytes::{Bytes, BytesMut};
use eventsource_stream::{EventStreamError, Eventsource};
use futures::{Stream, StreamExt, stream};

use crate::LlmError;

/// One event of a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SseEvent {
    /// The name; `message` when the server gives none.
    pub name: String,
    /// The data lines, joined by newlines.
    pub data: String,
}

/// The most bytes of one line. A server that never ends a line must not fill the memory.
pub const MAX_LINE: usize = 64 * 1024 * 1024;

/// Decodes a body.
///
/// Fields, comments and data over several lines are the library's work. It scans its whole buffer again for
/// each chunk and copies the rest for each line, so it is fed whole lines, one at a time: decoding stays
/// linear however the bytes arrive. On the way bytes that are no UTF-8 become U+FFFD (the library would wait
/// for more), a byte order mark goes (the library would panic), and the body gets a blank line at its end,
/// because servers forget it after the last event.
pub fn decode<S>(body: S) -> impl Stream<Item = Result<SseEvent, LlmError>> + Send
where
    S: Stream<Item = Result<Bytes, LlmError>> + Send,
{
    let mut lines = Lines::default();
    body.map(Some)
        .chain(stream::once(async { None }))
        .flat_map(move |chunk| {
            stream::iter(match chunk {
                Some(Ok(chunk)) => lines.split(&chunk),
                Some(Err(error)) => vec![Err(error)],
                None => lines.finish(),
            })
        })
        .eventsource()
        .map(|event| match event {
            Ok(event) => Ok(SseEvent {
                name: event.event,
                data: event.data,
            }),
            Err(EventStreamError::Transport(error)) => Err(error),
            Err(EventStreamError::Utf8(_) | EventStreamError::Parser(_)) => {
                Err(LlmError::protocol("the body is not an event stream"))
            }
        })
}

/// Cuts chunks into whole lines.
#[derive(Default)]
struct Lines {
    held: BytesMut,
    position: Position,
}

/// Where in the body the next line is.
#[derive(Default, PartialEq, Eq)]
enum Position {
    #[default]
    Start,
    Inside,
}

/// Of a body that begins so the mark is no part of the first line.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

impl Lines {
    fn split(&mut self, chunk: &[u8]) -> Vec<Result<Bytes, LlmError>> {
        let mut lines = Vec::new();
        for piece in chunk.split_inclusive(|byte| matches!(byte, b'\n' | b'\r')) {
            if self.held.len().saturating_add(piece.len()) > MAX_LINE {
                lines.push(Err(LlmError::protocol(
                    "a line of the stream is larger than 64 MiB",
                )));
                return lines;
            }
            self.held.extend_from_slice(piece);
            if matches!(piece.last(), Some(b'\n' | b'\r')) {
                lines.push(Ok(self.take()));
            }
        }
        lines
    }

    fn finish(&mut self) -> Vec<Result<Bytes, LlmError>> {
        vec![Ok(self.take()), Ok(Bytes::from_static(b"\n\n"))]
    }

    fn take(&mut self) -> Bytes {
        let mut line = self.held.split().freeze();
        if self.position == Position::Start {
            self.position = Position::Inside;
            if line.starts_with(BYTE_ORDER_MARK) {
                line = line.slice(BYTE_ORDER_MARK.len()..);
            }
        }
        match std::str::from_utf8(&line) {
            Ok(_) => line,
            Err(_) => Bytes::from(String::from_utf8_lossy(&line).into_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(chunks: &[&[u8]]) -> Vec<(String, String)> {
        let chunks: Vec<_> = chunks
            .iter()
            .map(|chunk| Ok(Bytes::copy_from_slice(chunk)))
            .collect();
        let decoded = decode(stream::iter(chunks)).map(|event| event.map(|event| (event.name, event.data)));
        futures::executor::block_on(decoded.collect::<Vec<_>>())
            .into_iter()
            .collect::<Result<_, _>>()
            .unwrap()
    }

    fn message(data: &str) -> (String, String) {
        ("message".to_owned(), data.to_owned())
    }

    #[test]
    fn forms_of_events() {
        let rows: &[(&str, Vec<(String, String)>)] = &[
            ("data: a\n\n", vec![message("a")]),
            ("data:a\n\n", vec![message("a")]),
            ("data: a\r\n\r\n", vec![message("a")]),
            ("data: a\r\rdata: b\r\r", vec![message("a"), message("b")]),
            ("\u{feff}data: a\n\n", vec![message("a")]),
            (": keep-alive\n\ndata: a\n: more\n\n", vec![message("a")]),
            (
                "event: x\ndata: a\ndata: b\n\n",
                vec![("x".to_owned(), "a\nb".to_owned())],
            ),
            ("event: x\nid: 7\nretry: 5\n\n", vec![]),
            // The last event lacks its blank line, and even its newline.
            ("data: a\n\ndata: b\n", vec![message("a"), message("b")]),
            ("data: a\n\ndata: b", vec![message("a"), message("b")]),
            ("", vec![]),
        ];
        for (body, expected) in rows {
            assert_eq!(&events(&[body.as_bytes()]), expected, "{body:?}");
            let bytes: Vec<&[u8]> = body.as_bytes().chunks(1).collect();
            assert_eq!(&events(&bytes), expected, "byte by byte: {body:?}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_do_not_stop_the_stream() {
        let decoded = events(&[b"data: a\xffb\n\n", b"data: c\n\n"]);
        assert_eq!(decoded, [message("a\u{fffd}b"), message("c")]);
    }

    #[test]
    fn a_failed_body_fails_the_stream() {
        let chunks = vec![
            Ok(Bytes::from_static(b"data: a\n\nda")),
            Err(LlmError::cancelled()),
        ];
        let decoded: Vec<_> = futures::executor::block_on(decode(stream::iter(chunks)).collect());
        assert_eq!(decoded.len(), 2, "{decoded:?}");
        assert!(decoded[0].is_ok() && decoded[1].is_err());
    }
}

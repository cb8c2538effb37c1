//! Sessions for tests, row by row.

use std::fmt::Write as _;

use foldline_session_model::fold::{Context, Profile};
use foldline_session_model::log::{SessionLog, Trust};
use foldline_session_model::tree::Leaf;

/// A session file that grows by rows; each row is the child of the one before it.
#[derive(Clone, Debug)]
pub(crate) struct Rows {
    text: String,
    last: Option<String>,
    count: usize,
}

impl Rows {
    pub(crate) fn new() -> Self {
        Self {
            text: "{\"type\":\"session\",\"version\":3,\"id\":\"s0\",\"timestamp\":\"2026-01-01T00:00:00.000Z\",\"cwd\":\"/w\"}\n"
                .to_owned(),
            last: None,
            count: 0,
        }
    }

    /// Any entry; `body` are its members besides the usual ones.
    pub(crate) fn entry(mut self, id: &str, kind: &str, body: &str) -> Self {
        self.count += 1;
        let parent = self
            .last
            .as_ref()
            .map_or("null".to_owned(), |p| format!("\"{p}\""));
        let comma = if body.is_empty() { "" } else { "," };
        writeln!(
            self.text,
            "{{\"type\":\"{kind}\",\"id\":\"{id}\",\"parentId\":{parent},\"timestamp\":\"2026-01-01T{:02}:{:02}:{:02}.000Z\"{comma}{body}}}",
            self.count / 3600, self.count / 60 % 60, self.count % 60
        )
        .unwrap();
        self.last = Some(id.to_owned());
        self
    }

    pub(crate) fn message(self, id: &str, message: &str) -> Self {
        self.entry(id, "message", &format!("\"message\":{message}"))
    }

    pub(crate) fn user(self, id: &str, text: &str) -> Self {
        self.message(
            id,
            &format!(
                "{{\"role\":\"user\",\"content\":[{{\"type\":\"text\",\"text\":{}}}]}}",
                json(text)
            ),
        )
    }

    pub(crate) fn assistant(self, id: &str, text: &str) -> Self {
        self.answer(id, text, &[], None, "stop")
    }

    /// An assistant message with one call.
    pub(crate) fn call(self, id: &str, call_id: &str, tool: &str, arguments: &str) -> Self {
        self.answer(id, "", &[(call_id, tool, arguments)], None, "toolUse")
    }

    /// An assistant message with everything; `usage` is input, output, cache read, cache write.
    pub(crate) fn answer(
        self,
        id: &str,
        text: &str,
        calls: &[(&str, &str, &str)],
        usage: Option<[u64; 4]>,
        stop: &str,
    ) -> Self {
        let mut blocks = Vec::new();
        if !text.is_empty() {
            blocks.push(format!("{{\"type\":\"text\",\"text\":{}}}", json(text)));
        }
        for (call_id, tool, arguments) in calls {
            blocks.push(format!(
                "{{\"type\":\"toolCall\",\"id\":\"{call_id}\",\"name\":\"{tool}\",\"arguments\":{arguments}}}"
            ));
        }
        let usage = usage.map_or(String::new(), |[i, o, r, w]| {
            format!(
                ",\"usage\":{{\"input\":{i},\"output\":{o},\"cacheRead\":{r},\"cacheWrite\":{w},\"totalTokens\":{}}}",
                i + o + r + w
            )
        });
        self.message(
            id,
            &format!(
                "{{\"role\":\"assistant\",\"content\":[{}],\"provider\":\"p\",\"model\":\"m\"{usage},\"stopReason\":\"{stop}\"}}",
                blocks.join(",")
            ),
        )
    }

    pub(crate) fn result(self, id: &str, call_id: &str, tool: &str, text: &str) -> Self {
        self.outcome(id, call_id, tool, text, "false")
    }

    pub(crate) fn error(self, id: &str, call_id: &str, tool: &str, text: &str) -> Self {
        self.outcome(id, call_id, tool, text, "true")
    }

    fn outcome(self, id: &str, call_id: &str, tool: &str, text: &str, is_error: &str) -> Self {
        self.message(
            id,
            &format!(
                "{{\"role\":\"toolResult\",\"toolCallId\":\"{call_id}\",\"toolName\":\"{tool}\",\"content\":[{{\"type\":\"text\",\"text\":{}}}],\"isError\":{is_error}}}",
                json(text)
            ),
        )
    }

    pub(crate) fn compaction(self, id: &str, kept: Option<&str>, summary: &str) -> Self {
        let kept = kept.map_or("null".to_owned(), |k| format!("\"{k}\""));
        self.entry(
            id,
            "compaction",
            &format!(
                "\"summary\":{},\"firstKeptEntryId\":{kept},\"tokensBefore\":1",
                json(summary)
            ),
        )
    }

    pub(crate) fn label(self, id: &str) -> Self {
        self.entry(id, "thinking_level_change", "\"thinkingLevel\":\"high\"")
    }

    /// A line as a commit writes it.
    pub(crate) fn line(mut self, id: &str, line: &str) -> Self {
        self.text.push_str(line);
        self.text.push('\n');
        self.last = Some(id.to_owned());
        self
    }

    pub(crate) fn last(&self) -> Option<&str> {
        self.last.as_deref()
    }

    pub(crate) fn log(&self) -> SessionLog {
        SessionLog::load(self.text.as_str(), Trust::Validated).unwrap()
    }
}

pub(crate) fn context(log: &SessionLog) -> Context<'_> {
    log.context(&Leaf::Last, Profile::Foldline).unwrap()
}

pub(crate) fn json(text: &str) -> String {
    serde_json::to_string(text).unwrap()
}

/// Text of so many tokens by the default estimate.
pub(crate) fn filler(tokens: usize) -> String {
    "x".repeat(tokens * 4)
}

/// The same as words, so that it has lines and is no single word.
pub(crate) fn prose(tokens: usize) -> String {
    "some words and a number 42\n"
        .chars()
        .cycle()
        .take(tokens * 4)
        .collect()
}

//! Random session files for property tests, and the committed fixtures.
#![allow(clippy::format_collect, reason = "lines of a few test files")]

use std::fmt::Write as _;
use std::path::PathBuf;

use proptest::prelude::*;

/// The choices that make one line.
pub(crate) type Choice = (u8, u8, u16, u16);

/// Choices for a file of up to `lines` lines.
pub(crate) fn choices(lines: usize) -> impl Strategy<Value = Vec<Choice>> {
    proptest::collection::vec(any::<Choice>(), 0..lines)
}

/// What may happen in a random file beside well-formed entries in a tree.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wildness {
    /// Every parent stands before its child, every id is used once, every line is whole.
    Tame,
    /// Parents that are missing or come later, ids twice, damaged lines.
    Wild,
}

/// A version 3 file that the choices make.
pub(crate) fn session(choices: &[Choice], wildness: Wildness) -> String {
    let mut text = String::from(
        "{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"timestamp\":\"2026-01-01T00:00:00.000Z\",\"cwd\":\"/w\"}\n",
    );
    let id = |at: usize| format!("e{at}");
    for (at, &(kind, tree, a, b)) in choices.iter().enumerate() {
        let earlier = |n: u16| id(usize::from(n) % at.max(1));
        if wildness == Wildness::Wild {
            match kind {
                250 => text.push_str("garbage\n"),
                251 => text.push_str("\n  \n"),
                252 => text.push_str(
                    "{\"type\":\"message\",\"id\":\"x\",\"parentId\":null,\"timestamp\":\"t\",broken}\n",
                ),
                253 => text.push_str("null\n{}\n"),
                _ => {}
            }
        }
        let parent = match (tree, wildness) {
            (0..=3, _) => "null".to_owned(),
            (4..=40, _) if at > 0 => format!("\"{}\"", earlier(b)),
            (41, Wildness::Wild) => format!("\"e{}\"", at + usize::from(b % 4)),
            (42, Wildness::Wild) => "\"nowhere\"".to_owned(),
            _ if at > 0 => format!("\"{}\"", id(at - 1)),
            _ => "null".to_owned(),
        };
        let own = if wildness == Wildness::Wild && tree == 43 && at > 0 {
            earlier(a)
        } else {
            id(at)
        };
        let (kind, body) = body(kind, a, b, at);
        writeln!(
            text,
            "{{\"type\":\"{kind}\",\"id\":\"{own}\",\"parentId\":{parent},\"timestamp\":\"2026-01-01T00:00:{:02}.000Z\"{body}}}",
            at % 60
        )
        .unwrap();
    }
    text
}

fn body(kind: u8, a: u16, b: u16, at: usize) -> (&'static str, String) {
    let some_id = |n: u16| format!("e{}", usize::from(n) % (at + 1));
    let call = |n: u16| format!("c{}", n % 6);
    match kind {
        0..=59 => (
            "message",
            format!(",\"message\":{{\"role\":\"user\",\"content\":\"u{at}\"}}"),
        ),
        60..=99 => {
            let stop = ["stop", "toolUse", "error", "aborted", "length"][usize::from(b % 5)];
            let calls: String = (0..a % 4)
                .map(|n| {
                    format!(
                        ",{{\"type\":\"toolCall\",\"id\":\"{}\",\"name\":\"read\",\"arguments\":{{\"n\":{n}}}}}",
                        call(a.wrapping_add(n))
                    )
                })
                .collect();
            (
                "message",
                format!(
                    ",\"message\":{{\"role\":\"assistant\",\"provider\":\"p{}\",\"model\":\"m{}\",\"api\":\"anthropic-messages\",\"stopReason\":\"{stop}\",\"usage\":{{\"input\":{a},\"output\":{b}}},\"content\":[{{\"type\":\"text\",\"text\":\"a{at}\"}}{calls}]}}",
                    a % 2,
                    b % 3
                ),
            )
        }
        100..=144 => (
            "message",
            format!(
                ",\"message\":{{\"role\":\"toolResult\",\"toolCallId\":\"{}\",\"toolName\":\"read\",\"isError\":false,\"content\":[{{\"type\":\"text\",\"text\":\"r{at}\"}}]}}",
                call(a)
            ),
        ),
        145..=159 => {
            let kept = match b % 6 {
                0 => "null".to_owned(),
                1 => "\"unknown\"".to_owned(),
                _ => format!("\"{}\"", some_id(a)),
            };
            let strategy = ["summary", "verbatim-lines"][usize::from(a % 2)];
            let state = if b.is_multiple_of(3) {
                ",\"state\":{\"models\":[{\"role\":\"default\",\"provider\":\"sp\",\"model\":\"sm\"}],\"thinkingLevel\":\"low\",\"mode\":null,\"selectedTools\":[\"t\"]}"
            } else {
                ""
            };
            let remote = if b.is_multiple_of(7) {
                ",\"preserveData\":{\"openaiRemoteCompaction\":{\"provider\":\"p1\",\"replacementHistory\":[1]}}"
            } else {
                ""
            };
            let summary = if b.is_multiple_of(11) {
                "[Superseded compaction summary elided during session load]".to_owned()
            } else {
                format!("s{at}")
            };
            (
                "compaction",
                format!(
                    ",\"summary\":\"{summary}\",\"firstKeptEntryId\":{kept},\"tokensBefore\":9,\"details\":{{\"strategy\":\"{strategy}\"{state}}}{remote}"
                ),
            )
        }
        160..=169 => (
            "custom",
            format!(
                ",\"customType\":\"foldline/prune\",\"data\":{{\"items\":[{{\"entryId\":\"{}\",\"notice\":\"n{at}\",\"tokens\":5}},{{\"entryId\":\"{}\",\"notice\":\"m{at}\",\"tokens\":6}}]}}",
                some_id(a),
                some_id(b)
            ),
        ),
        170..=179 => (
            "custom",
            format!(
                ",\"customType\":\"foldline/revoke\",\"data\":{{\"entryId\":\"{}\"}}",
                some_id(a)
            ),
        ),
        180..=189 => (
            "branch_summary",
            format!(",\"fromId\":\"{}\",\"summary\":\"b{at}\"", some_id(a)),
        ),
        190..=199 => (
            "label",
            format!(",\"targetId\":\"{}\",\"label\":\"l{}\"", some_id(a), b % 3),
        ),
        200..=207 => (
            "model_change",
            format!(
                ",\"provider\":\"q\",\"modelId\":\"m{}\",\"model\":\"q/m{}\"{}",
                a % 3,
                a % 3,
                if b.is_multiple_of(2) {
                    ",\"role\":\"smol\""
                } else {
                    ""
                }
            ),
        ),
        208..=212 => (
            "thinking_level_change",
            format!(",\"thinkingLevel\":\"t{}\"", a % 3),
        ),
        213..=216 => ("mode_change", format!(",\"mode\":\"mode{}\"", a % 3)),
        217..=219 => (
            "service_tier_change",
            format!(",\"serviceTier\":\"tier{}\"", a % 3),
        ),
        220..=222 => (
            "session_summary",
            ",\"summary\":\"x\",\"summarizedThroughId\":\"e0\"".to_owned(),
        ),
        223..=224 => (
            "context_compaction",
            ",\"promptVersion\":1,\"deletedTargets\":[]".to_owned(),
        ),
        225..=230 => (
            "custom_message",
            format!(
                ",\"customType\":\"note\",\"content\":\"k{at}\",\"display\":true{}",
                if a.is_multiple_of(4) {
                    ",\"excludeFromContext\":true"
                } else {
                    ""
                }
            ),
        ),
        231..=236 => (
            "message",
            format!(",\"message\":{{\"role\":\"bashExecution\",\"command\":\"ls\",\"output\":\"o{at}\"}}"),
        ),
        237..=240 => (
            "mcp_tool_selection",
            format!(",\"selectedToolNames\":[\"t{}\"]", a % 3),
        ),
        241..=244 => ("from_the_future", ",\"x\":1".to_owned()),
        _ => (
            "custom",
            ",\"customType\":\"foldline/leaf\",\"data\":{}".to_owned(),
        ),
    }
}

/// The committed session files: name and bytes.
#[allow(clippy::disallowed_methods, reason = "tests read the committed files")]
pub(crate) fn fixtures() -> Vec<(String, Vec<u8>)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/sessions");
    let mut files = Vec::new();
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_some_and(|e| e == "jsonl") {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            files.push((name, std::fs::read(&path).unwrap()));
        }
    }
    files.sort();
    files
}

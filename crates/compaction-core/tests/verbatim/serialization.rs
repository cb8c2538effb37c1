//! Rows "Serialization" (spec "Verbatim", sections 4, 5.1, 5.2 and 21).

use foldline_compaction_core::verbatim::Region;
use foldline_session_model::LineNumber;
use foldline_session_model::message::{Block, Message};

use super::support::{Session, prepared_small, result, secret, user};

/// The region of a session of which nothing stays.
fn region(messages: &[String]) -> String {
    let session = Session::of(messages);
    let context = session.context();
    prepared_small(&context, 0).region().text().to_owned()
}

const PICTURE: &str = r#"{"type":"image","data":"AA==","mimeType":"image/png"}"#;

fn text(text: &str) -> String {
    format!(r#"{{"type":"text","text":"{text}"}}"#)
}

fn message(role: &str, blocks: &[&str]) -> String {
    format!(
        r#"{{"role":"{role}","stopReason":"stop","content":[{}]}}"#,
        blocks.join(",")
    )
}

#[test]
fn row_the_full_grammar() {
    let found = region(&[
        message("user", &[&text("Fix it"), PICTURE]),
        message(
            "assistant",
            &[
                r#"{"type":"toolCall","id":"1","name":"read","arguments":{"path":"a.ts","lines":[1,2]}}"#,
                &text("On it."),
                r#"{"type":"thinking","thinking":"Hm."}"#,
                r#"{"type":"toolCall","id":"2","name":"ls","arguments":{}}"#,
            ],
        ),
        result("1", "one\n\nthree\n"),
        result("2", ""),
        message("assistant", &[&text("")]),
        user("thanks\n"),
    ]);
    assert_eq!(
        found,
        "[User]: Fix it\n[image]\n\n[Assistant thinking]: Hm.\n\n[Assistant]: On it.\n\n\
         [Assistant tool calls]: read(path=\"a.ts\", lines=[1,2]); ls()\n\n[Tool result]: one\n\nthree\n\n\
         [User]: thanks\n"
    );
}

#[test]
fn row_blocks_of_a_user_and_a_picture_between_them() {
    let blocks = [
        text("alpha"),
        text("beta"),
        PICTURE.to_owned(),
        text("gamma"),
        text("delta"),
    ];
    let blocks: Vec<&str> = blocks.iter().map(String::as_str).collect();
    assert_eq!(
        region(&[message("user", &blocks)]),
        "[User]: alphabeta\n[image]\ngammadelta"
    );
}

#[test]
fn row_a_result_of_16010_characters() {
    assert_eq!(
        region(&[result("1", &"x".repeat(16_010))]),
        format!(
            "[Tool result]: {}\n\n[... 10 more characters truncated]",
            "x".repeat(16_000)
        )
    );
}

/// What the original calls retained mode: here the tail stays as messages, pictures and long results included.
#[test]
fn row_the_tail_keeps_pictures_and_long_results() {
    let long = "x".repeat(16_010);
    let seen = format!(
        r#"{{"role":"toolResult","toolCallId":"1","toolName":"look","content":[{},{PICTURE}],"isError":false}}"#,
        text(&long)
    );
    let session = Session::of(&[user("a"), seen]);
    let context = session.context();
    let preparation = prepared_small(&context, 1);
    let Message::ToolResult(kept) = &preparation.tail()[0].message else {
        panic!("the result stays a result")
    };
    let [Block::Text { text, .. }, Block::Image { .. }] = kept.content.blocks() else {
        panic!("its blocks stay what they are")
    };
    assert_eq!(*text, long);
}

/// R18: whatever kind of section a secret stands in, it does not leave the log.
#[test]
fn r18_no_section_shows_a_secret() {
    let secret = secret();
    let words = text(&format!("key {secret}"));
    let found = region(&[
        user(&format!("key {secret}")),
        message("user", &[&words]),
        message(
            "assistant",
            &[
                &format!(r#"{{"type":"thinking","thinking":"key {secret}"}}"#),
                &words,
                &format!(r#"{{"type":"toolCall","id":"1","name":"put","arguments":{{"key":"{secret}"}}}}"#),
            ],
        ),
        result("1", &format!("key {secret}")),
    ]);
    assert_eq!(found.matches("[REDACTED:").count(), 6, "{found}");
    assert!(!found.contains(&secret), "{found}");
}

#[test]
fn row_headers_1_and_4_and_a_marker_of_12_at_3() {
    let text = "[User]: a\nb\n(filtered 12 lines)\n[Assistant]: c";
    let region = Region::guessed_from_text(text).unwrap();
    let headers: Vec<u32> = region.header_lines().map(LineNumber::get).collect();
    assert_eq!(headers, [1, 4]);
    assert_eq!(region.markers(), [(LineNumber::new(3).unwrap(), 12)]);
}

/// Row, text, lines.
#[test]
fn rows_of_line_ends() {
    for (row, text, lines) in [
        ("CRLF", "a\r\nb", vec!["a\r", "b"]),
        ("a lone CR", "a\rb", vec!["a\rb"]),
        ("U+2028", "a\u{2028}b", vec!["a\u{2028}b"]),
        (
            "U+2029, U+0085, VT, FF",
            "a\u{2029}b\u{85}c\u{b}d\u{c}e",
            vec!["a\u{2029}b\u{85}c\u{b}d\u{c}e"],
        ),
        ("a newline at the end", "a\n", vec!["a", ""]),
        ("empty text", "", vec![""]),
    ] {
        let region = Region::guessed_from_text(text).unwrap();
        let found: Vec<&str> = region.lines().map(|line| line.text).collect();
        assert_eq!(found, lines, "{row}");
        assert_eq!(found.join("\n"), text, "{row}: joined again it is the same");
    }
    // A marker or a tag before a CR: the marker is none, the tag is one.
    let region =
        Region::guessed_from_text("(filtered 3 lines)\r\n<keepContext>\r\nx\n</keepContext>\r").unwrap();
    assert!(region.markers().is_empty());
    assert_eq!(region.protected().line_count(), 3);
}

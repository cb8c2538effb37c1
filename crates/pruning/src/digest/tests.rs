use std::borrow::Cow;

use foldline_session_model::message::{Block, Content, ToolResult};

use super::sanitize::sanitize;
use super::{DIGEST_UNITS, digest};
use crate::text::units;

fn result(tool: &str, text: &str, is_error: bool, details: &str) -> ToolResult<'static> {
    ToolResult {
        tool_name: Cow::Owned(tool.to_owned()),
        content: Content::Blocks(vec![Block::Text {
            text: Cow::Owned(text.to_owned()),
            signature: None,
        }]),
        is_error,
        details: (!details.is_empty()).then(|| Cow::Owned(serde_json::from_str(details).unwrap())),
        ..ToolResult::default()
    }
}

#[test]
fn digests_by_tool() {
    let table = [
        ("bash", "a\nb", false, "", None, Some("exit=0; tail=b")),
        ("Bash", "a\nb", true, "", None, Some("exit=1; tail=b")),
        ("bash", "", false, r#"{"exitCode":1.50}"#, None, Some("exit=1.5")),
        (
            "bash",
            " x\n  y \n\n",
            false,
            r#"{"exitCode":"2"}"#,
            None,
            Some("exit=0; tail=  y"),
        ),
        (
            "bash",
            "failed",
            true,
            r#"{"exitCode":17}"#,
            Some("p"),
            Some("exit=17; error=failed; path=p; tail=failed"),
        ),
        (
            "grep",
            "12 matches in 1 file",
            false,
            "",
            Some("src/x.rs"),
            Some("path=src/x.rs; matches=12; files=1"),
        ),
        (
            "search",
            "nothing",
            false,
            "",
            None,
            Some("search digest unavailable"),
        ),
        (
            "search",
            "error: x\n2 files",
            true,
            "",
            None,
            Some("error=error: x; files=2"),
        ),
        ("read", "error", false, "", Some("p"), None),
        (
            "read",
            " \n",
            true,
            "",
            Some("p"),
            Some("error=tool result failed without text"),
        ),
        (
            "read",
            "x\nerror y",
            true,
            r#"{"resolvedPath":"/r"}"#,
            None,
            Some("error=error y; path=/r"),
        ),
        (
            "read",
            "\n no such thing \n",
            true,
            "",
            Some("p"),
            Some("summary=no such thing"),
        ),
    ];
    for (tool, text, is_error, details, path, expected) in table {
        let result = result(tool, text, is_error, details);
        assert_eq!(digest(&result, path).as_deref(), expected, "{tool} {text}");
    }
}

#[test]
fn a_digest_is_cut_at_its_end() {
    let line = format!("error {}", "e".repeat(500));
    let long = result("bash", &format!("{line}\n{}", "z".repeat(500)), true, "");
    let digest = digest(&long, None).unwrap();
    assert_eq!(units(&digest), DIGEST_UNITS);
    assert!(digest.starts_with("exit=1; error=error eee"));
    assert!(digest.ends_with('…'));
}

#[test]
fn control_is_removed() {
    let table = [
        ("plain\ttext\n", "plain\ttext\n"),
        ("\u{1B}[31mred\u{1B}[0m", "red"),
        ("\u{1B}[38;5;1m\u{1B}[1Kx", "x"),
        ("\u{9B}1mx", "x"),
        ("\u{1B}]0;title\u{7}x", "x"),
        ("\u{1B}]8;;http://a\u{1B}\\link\u{1B}]8;;\u{1B}\\", "link"),
        ("\u{1B}]never ends", "never ends"),
        ("\u{1B}(Bx\u{1B}=y", "xy"),
        ("a\rb\u{0}c\u{7F}d\u{85}e", "abcde"),
        ("é\u{A0}", "é\u{A0}"),
        ("\u{1B}", ""),
        ("\u{1B}[日", "日"),
    ];
    for (text, expected) in table {
        assert_eq!(sanitize(text), expected, "{text:?}");
    }
}

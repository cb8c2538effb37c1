//! The page that `foldline report` writes, read as a browser would.

use std::collections::BTreeSet;
use std::path::Path;

use crate::support::Sandbox;

/// One start tag: its name and its attributes.
struct Tag {
    name: String,
    attributes: Vec<(String, String)>,
}

/// The start tags of a page, by the rules of the HTML tokenizer for what this program writes: quoted attributes, and
/// one raw element, the style sheet.
fn tags(html: &str) -> Vec<Tag> {
    let mut tags = Vec::new();
    let mut rest = html.strip_prefix("<!DOCTYPE html>").unwrap();
    while let Some(at) = rest.find('<') {
        rest = &rest[at + 1..];
        let name: String = rest
            .chars()
            .take_while(|c| c.is_ascii_alphanumeric() || *c == '/')
            .collect();
        assert!(
            !name.is_empty(),
            "a bare < before {:?}",
            &rest[..rest.len().min(40)]
        );
        rest = &rest[name.len()..];
        let mut attributes = Vec::new();
        loop {
            rest = rest.trim_start();
            if let Some(after) = rest.strip_prefix('>') {
                rest = after;
                break;
            }
            let end = rest.find(['=', '>', ' ']).unwrap();
            let attribute = rest[..end].to_owned();
            rest = &rest[end..];
            let Some(quoted) = rest.strip_prefix("=\"") else {
                attributes.push((attribute, String::new()));
                continue;
            };
            let end = quoted.find('"').unwrap();
            attributes.push((attribute, quoted[..end].to_owned()));
            rest = &quoted[end + 1..];
        }
        if name == "style" {
            let end = rest.find("</style>").unwrap();
            rest = &rest[end..];
        }
        if !name.starts_with('/') {
            tags.push(Tag { name, attributes });
        }
    }
    tags
}

/// The elements and attributes that the page is made of.
fn assert_only_known(tags: &[Tag]) {
    let elements = "a article b body circle code dd details div dl dt footer g h1 h2 h3 head header html i li link main meta ol p path pre rect section span strong style summary svg table tbody td text tfoot th thead title tr ul";
    let attributes = "aria-hidden aria-label charset class content cx cy d dx dy height href http-equiv id lang name open preserveAspectRatio r rel role scope viewBox width x y";
    let elements: BTreeSet<&str> = elements.split(' ').collect();
    let attributes: BTreeSet<&str> = attributes.split(' ').collect();
    for tag in tags {
        assert!(elements.contains(&*tag.name), "{}", tag.name);
        for (name, value) in &tag.attributes {
            assert!(attributes.contains(&**name), "{} {name}={value}", tag.name);
            if name == "href" {
                assert!(value.starts_with("#compaction-") || value == "data:,", "{value}");
            }
        }
    }
}

fn cards(tags: &[Tag]) -> usize {
    tags.iter().filter(|tag| tag.name == "article").count()
}

#[test]
fn every_fixture_has_a_report_or_is_no_session() {
    let sandbox = Sandbox::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/sessions");
    let mut reports = 0;
    for file in std::fs::read_dir(folder).unwrap() {
        let name = file.unwrap().file_name().into_string().unwrap();
        if Path::new(&name).extension().is_none_or(|e| e != "jsonl") {
            continue;
        }
        sandbox.fixture(&name);
        let before = sandbox.read_bytes(&name);
        let html = format!("{name}.html");
        let run = sandbox.run(&["report", &name, "-o", &html]);
        assert_eq!(run.code(), sandbox.run(&["stats", &name]).code(), "{}", run.all());
        assert_eq!(sandbox.read_bytes(&name), before);
        if run.code() == 0 {
            let page = sandbox.read(&html);
            let tags = tags(&page);
            assert_only_known(&tags);
            let stats = sandbox.json(&["stats", &name]);
            assert_eq!(
                cards(&tags),
                stats["compactions"].as_array().unwrap().len(),
                "{name}"
            );
            reports += 1;
        }
    }
    assert!(reports > 30, "{reports}");
}

#[test]
fn the_page_names_its_file_and_leaves_others_alone() {
    let sandbox = Sandbox::new();
    let session = sandbox.fixture("compacted-verbatim-once.jsonl");
    let document = sandbox.json(&["report", &session, "--output", "r.html"]);
    assert_eq!(document["output"], "r.html");
    assert_eq!(document["compactions"], 1);
    assert_eq!(document["bytes"], sandbox.read("r.html").len());
    let again = sandbox.run(&["report", &session, "-o", "r.html"]);
    assert_eq!(again.code(), 2, "{}", again.all());
    assert!(again.stderr().contains("does not exist yet"), "{}", again.all());
}

#[test]
fn other_agents_sessions_have_reports_too() {
    let sandbox = Sandbox::new();
    for (name, source, agent) in [
        (
            "t.jsonl",
            include_str!("../../../session-model/tests/data/claude-code.jsonl"),
            "Claude Code",
        ),
        (
            "r.jsonl",
            include_str!("../../../session-model/tests/data/codex.jsonl"),
            "Codex",
        ),
    ] {
        sandbox.write(name, source);
        let html = format!("{name}.html");
        let document = sandbox.json(&["report", name, "-o", &html]);
        assert_eq!(document["compactions"], 1, "{document}");
        let page = sandbox.read(&html);
        assert!(page.contains(agent) && page.contains("in effect"));
    }
}

/// The lines behind a marker are those that stood there.
#[test]
fn removed_lines_stand_behind_their_markers() {
    let sandbox = Sandbox::new();
    let session = sandbox.fixture("realistic.jsonl");
    let compacted = sandbox.json(&[
        "compact", &session, "--ratio", "0.5", "--output", "c.jsonl", "--diff",
    ]);
    sandbox.json(&["report", "c.jsonl", "-o", "c.html"]);
    let page = sandbox.read("c.html");
    let mut checked = 0;
    let grouped = |number: u64| match number {
        0..1000 => number.to_string(),
        _ => format!("{},{:03}", number / 1000, number % 1000),
    };
    for range in compacted["diff"].as_array().unwrap() {
        let (start, end) = (range["start"].as_u64().unwrap(), range["end"].as_u64().unwrap());
        if start == end {
            continue;
        }
        let marker = format!(
            "(filtered {} lines)</span><span class=\"where\">lines {}–{}</span>",
            range["filtered"],
            grouped(start),
            grouped(end)
        );
        // The page has room for so many.
        let Some(at) = page.find(&marker) else { break };
        let gap = &page[at..at + page[at..].find("</details>").unwrap()];
        if gap.contains("are not shown") && end - start < 400 {
            break;
        }
        for line in range["text"].as_str().unwrap().lines().take(400) {
            // The role of a message is an element of its own.
            let line = line.split_once("]: ").map_or(line, |(_, rest)| rest);
            let line = line
                .replace('&', "&amp;")
                .replace('<', "&lt;")
                .replace('>', "&gt;")
                .replace('"', "&quot;");
            assert!(gap.contains(&*line), "{line} is not in {gap}");
        }
        checked += 1;
    }
    assert!(checked > 50, "{checked}");
}

/// Text that wants to be more than text. The word in it finds it again.
const HOSTILE: &str = "zqx</script></style></title></textarea><img src=x onerror=alert(1)>\"'`><svg/onload=alert(1)>&lt;b&gt;<!--]]>\u{1b}]0;x\u{7}\u{0}\u{202e}gpj.exe\u{2066}\u{e0041}javascript:alert(1)";
const SECRET: &str = "ghp_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8";

/// A session that says this wherever a session can say something.
fn everywhere(text: &str) -> String {
    let t = serde_json::to_string(text).unwrap();
    let lines = [
        format!(r#"{{"type":"session","version":3,"id":{t},"timestamp":{t},"cwd":{t},"title":{t}}}"#),
        format!(r#"{{"type":"session_info","id":"n","parentId":null,"timestamp":"x","name":{t}}}"#),
        format!(
            r#"{{"type":"model_change","id":"m","parentId":"n","timestamp":"x","provider":{t},"modelId":{t}}}"#
        ),
        format!(
            r#"{{"type":"message","id":"u","parentId":"m","timestamp":{t},"message":{{"role":"user","content":{t}}}}}"#
        ),
        format!(
            r#"{{"type":"message","id":"a","parentId":"u","timestamp":"x","message":{{"role":"assistant","provider":{t},"model":{t},"api":{t},"usage":{{"input":10,"output":5,"cacheRead":3,"cacheWrite":1,"cost":{{"total":0.1}}}},"content":[{{"type":"thinking","thinking":{t}}},{{"type":"text","text":{t}}},{{"type":"toolCall","id":"c","name":{t},"arguments":{{"path":{t}}}}}]}}}}"#
        ),
        format!(
            r#"{{"type":"message","id":{t},"parentId":"a","timestamp":"x","message":{{"role":"toolResult","toolCallId":"c","toolName":{t},"isError":true,"content":[{{"type":"text","text":{t}}},{{"type":"image","mimeType":{t},"data":"x"}}]}}}}"#
        ),
        format!(r#"{{"type":{t},"id":"o","parentId":{t},"timestamp":"x"}}"#),
        format!(r#"{{"type":"label","id":"l","parentId":"o","timestamp":"x","targetId":"u","label":{t}}}"#),
        format!(r#"{{"type":"custom","id":"x","parentId":"l","timestamp":"x","customType":{t},"data":{t}}}"#),
        format!(
            r#"{{"type":"custom_message","id":"y","parentId":"x","timestamp":"x","customType":{t},"content":{t},"display":true}}"#
        ),
        format!(
            r#"{{"type":"message","id":"z","parentId":"y","timestamp":"x","message":{{"role":{t},"content":{t}}}}}"#
        ),
        format!(
            r#"{{"type":"message","id":"b","parentId":"z","timestamp":"x","message":{{"role":"bashExecution","command":{t},"output":{t},"exitCode":0}}}}"#
        ),
        format!(
            r#"{{"type":"branch_summary","id":"s","parentId":"b","timestamp":"x","fromId":"u","summary":{t}}}"#
        ),
        format!(
            r#"{{"type":"compaction","id":"k1","parentId":"s","timestamp":{t},"summary":{t},"firstKeptEntryId":"b","tokensBefore":9,"details":{{"readFiles":[{t}],"modifiedFiles":[{t}],"planner":{t},"model":{t}}}}}"#
        ),
        format!(
            r#"{{"type":"compaction","id":"k2","parentId":"k1","timestamp":"x","summary":{t},"firstKeptEntryId":null,"tokensBefore":9,"details":{{"strategy":"verbatim-lines","rung":{t},"parameters":{{"compression_ratio":{t},"query":{t}}},"stats":{{"linesBefore":{t}}}}}}}"#
        ),
        format!(
            r#"{{"type":"message","id":"e","parentId":"k2","timestamp":"x","message":{{"role":"user","content":{t}}}}}"#
        ),
        "{torn".to_owned(),
    ];
    lines.join("\n")
}

#[test]
fn hostile_text_stays_text() {
    let sandbox = Sandbox::new();
    sandbox.write("s.jsonl", everywhere(HOSTILE));
    let document = sandbox.json(&["report", "s.jsonl", "-o", "r.html"]);
    assert_eq!(document["compactions"], 2, "{document}");
    let page = sandbox.read("r.html");
    let tags = tags(&page);
    assert_only_known(&tags);
    assert_eq!(cards(&tags), 2);
    assert!(
        page.matches("zqx").count() > 20,
        "{}",
        page.matches("zqx").count()
    );
    for tag in &tags {
        for (name, value) in &tag.attributes {
            assert!(
                !value.contains("zqx") && !value.contains("alert"),
                "{name}={value}"
            );
        }
    }
    let unwanted = |c: char| {
        (c.is_control() && c != '\n' && c != '\t')
            || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{e0000}'..='\u{e007f}')
    };
    assert!(!page.contains(unwanted));
}

#[test]
fn secrets_do_not_reach_the_page() {
    let sandbox = Sandbox::new();
    sandbox.write("s.jsonl", everywhere(SECRET));
    sandbox.json(&["report", "s.jsonl", "-o", "r.html"]);
    let page = sandbox.read("r.html");
    assert!(!page.contains(SECRET));
    assert!(page.contains("[REDACTED:"));
}

/// However long the session, the page stays one that a browser opens.
#[test]
fn a_long_session_has_a_bounded_page() {
    let sandbox = Sandbox::new();
    let mut lines = vec![r#"{"type":"session","version":3,"id":"s","timestamp":"","cwd":""}"#.to_owned()];
    let mut parent = "null".to_owned();
    let text = "word ".repeat(400);
    for i in 0..6000 {
        let body = if i % 300 == 299 {
            format!(r#""type":"compaction","summary":"{text}","firstKeptEntryId":null,"tokensBefore":1"#)
        } else {
            let role = if i % 2 == 0 { "user" } else { "assistant" };
            format!(
                r#""type":"message","message":{{"role":"{role}","content":[{{"type":"text","text":"{i} {text}"}}]}}"#
            )
        };
        lines.push(format!(
            r#"{{"id":"{i}","parentId":{parent},"timestamp":"",{body}}}"#
        ));
        parent = format!("\"{i}\"");
    }
    sandbox.write("s.jsonl", lines.join("\n"));
    let document = sandbox.json(&["report", "s.jsonl", "-o", "r.html"]);
    assert_eq!(document["compactions"], 20);
    let bytes = document["bytes"].as_u64().unwrap();
    assert!(bytes < 12_000_000, "{bytes}");
    assert!(sandbox.read("r.html").contains("foldline tree SESSION --all"));
}

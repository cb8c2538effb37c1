mod steps;

use proptest::prelude::*;

use super::{Exported, OmittedPart, Target, claude_code, codex, markdown, pi};
use crate::fold::{Context, Profile};
use crate::import;
use crate::llm::{LlmBlock, LlmRole, TrailingCalls, Wrappers};
use crate::log::{SessionLog, Trust};
use crate::tree::Leaf;

use steps::{Step, Thinking, Tool, build, step};

const TARGET: Target<'_> = Target {
    session_id: "6c9b8f9e-1f5a-4f38-8f5e-2f9c0c7e9d11",
    cwd: "/home/ada/kettle",
    timestamp: "2026-03-01T10:00:00.000Z",
};

fn load(text: &str) -> SessionLog {
    let log = SessionLog::load(text, Trust::Validated).unwrap();
    assert_eq!(log.damage(), [], "{text}");
    log
}

fn folded(log: &SessionLog) -> Context<'_> {
    log.context(&Leaf::Last, Profile::Auto).unwrap()
}

/// Which roles a format tells apart.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Roles {
    All,
    /// What the program says goes to the user's side.
    WithoutDeveloper,
}

#[derive(Debug, PartialEq, Eq)]
struct Said {
    role: String,
    text: String,
    images: usize,
    calls: Vec<(String, String, String)>,
    answers: Option<(String, String, bool)>,
}

/// What the view says: role, text, calls with arguments, results with error flags.
fn said(context: &Context<'_>, roles: Roles) -> Vec<Said> {
    let wrappers = Wrappers::default();
    let view = context.llm_view(&wrappers, TrailingCalls::Answer);
    view.iter()
        .map(|message| {
            // Blank text of a user is nothing that a model sees.
            let said = |text: &&str| match message.role {
                LlmRole::User | LlmRole::Developer => !text.trim().is_empty(),
                _ => !text.is_empty(),
            };
            let texts: Vec<&str> = message.texts().filter(said).collect();
            let calls = message.content.iter().filter_map(|block| match block {
                LlmBlock::ToolCall { id, call } => {
                    let arguments = crate::json::stringify(call.arguments.as_deref()?).into_owned();
                    Some((id.to_string(), call.name.to_string(), arguments))
                }
                _ => None,
            });
            Said {
                role: match (message.role_name(), roles) {
                    ("developer", Roles::WithoutDeveloper) => "user".to_owned(),
                    (role, _) => role.to_owned(),
                },
                text: texts.join("\n"),
                images: message
                    .content
                    .iter()
                    .filter(|b| matches!(b, LlmBlock::Image { .. }))
                    .count(),
                calls: calls.collect(),
                answers: match &message.role {
                    LlmRole::ToolResult {
                        call_id,
                        tool_name,
                        is_error,
                        ..
                    } => Some((call_id.to_string(), tool_name.to_string(), *is_error)),
                    _ => None,
                },
            }
        })
        .filter(|m| m.answers.is_some() || m.images > 0 || !m.text.is_empty() || !m.calls.is_empty())
        .collect()
}

/// The fenced blocks of a document, and the lines outside of them.
fn fences(document: &str) -> (Vec<String>, Vec<&str>) {
    let (mut blocks, mut outside) = (Vec::new(), Vec::new());
    let mut open: Option<(&str, String)> = None;
    for line in document.split_inclusive('\n') {
        let bare = line.strip_suffix('\n').unwrap_or(line);
        match &mut open {
            Some((fence, _)) if bare == *fence => blocks.extend(open.take().map(|(_, content)| content)),
            Some((fence, content)) => {
                // No part of a line that a reader could take for the closing fence.
                for part in line.split('\r') {
                    let closing = part.trim_start().trim_end();
                    assert!(
                        closing.len() < fence.len() || closing.chars().any(|c| c != '`'),
                        "{line:?}"
                    );
                }
                content.push_str(line);
            }
            None if bare.starts_with("```") && !bare.trim_start_matches('`').contains('`') => {
                let fence = &bare[..bare.len() - bare.trim_start_matches('`').len()];
                open = Some((fence, String::new()));
            }
            None => outside.push(bare),
        }
    }
    assert!(open.is_none(), "{document}");
    (blocks, outside)
}

fn assert_claude_code(context: &Context<'_>) -> Exported {
    let exported = claude_code(context, &TARGET);
    assert_eq!(exported, claude_code(context, &TARGET));
    let before = said(context, Roles::WithoutDeveloper);
    if before.is_empty() {
        return exported;
    }
    let imported = import::session(exported.text.as_bytes()).unwrap();
    assert_eq!(
        (imported.rows_used, imported.dropped),
        (imported.rows, Vec::new()),
        "{}",
        exported.text
    );
    assert_eq!(
        (&*imported.session_id, &*imported.cwd),
        (TARGET.session_id, TARGET.cwd)
    );
    let log = load(&imported.text);
    assert_eq!(
        said(&folded(&log), Roles::WithoutDeveloper),
        before,
        "{}",
        exported.text
    );
    exported
}

fn assert_codex(context: &Context<'_>) -> Exported {
    let exported = codex(context, &TARGET);
    assert_eq!(exported, codex(context, &TARGET));
    let imported = import::session(exported.text.as_bytes()).unwrap();
    assert!(
        imported
            .dropped
            .iter()
            .all(|d| d.reason == import::DropReason::Duplicate),
        "{:?} {}",
        imported.dropped,
        exported.text
    );
    assert_eq!(
        (&*imported.session_id, &*imported.cwd),
        (TARGET.session_id, TARGET.cwd)
    );
    let log = load(&imported.text);
    assert_eq!(
        said(&folded(&log), Roles::All),
        said(context, Roles::All),
        "{}",
        exported.text
    );
    exported
}

fn assert_pi(context: &Context<'_>) -> Exported {
    let exported = pi(context, &TARGET);
    let log = load(&exported.text);
    assert_eq!(log.header().id, TARGET.session_id);
    assert_eq!(
        said(&folded(&log), Roles::All),
        said(context, Roles::All),
        "{}",
        exported.text
    );
    exported
}

fn assert_markdown(context: &Context<'_>) -> String {
    let document = markdown(context);
    let (blocks, outside) = fences(&document);
    let wrappers = Wrappers::default();
    let view = context.llm_view(&wrappers, TrailingCalls::Answer);
    let expected: Vec<String> = view
        .iter()
        .flat_map(|message| &message.content)
        .filter_map(|block| match block {
            LlmBlock::Text(text) => Some(text.to_string()),
            LlmBlock::Thinking {
                thinking,
                redacted: false,
                ..
            } => Some((*thinking).to_owned()),
            LlmBlock::ToolCall { call, .. } => call.arguments.as_deref().map(|raw| raw.get().to_owned()),
            _ => None,
        })
        .map(|text| {
            if text.is_empty() || text.ends_with('\n') {
                text
            } else {
                text + "\n"
            }
        })
        .collect();
    assert_eq!(blocks, expected, "{document}");
    let ours = [
        "#",
        "## ",
        "- Id",
        "- Started",
        "- Folder",
        "Picture, ",
        "Thinking",
        "Call of ",
        "A block",
        "`",
    ];
    for line in outside {
        assert!(
            line.is_empty() || ours.iter().any(|start| line.starts_with(start)),
            "{line:?}"
        );
    }
    document
}

fn assert_all(log: &SessionLog) {
    let context = folded(log);
    assert_claude_code(&context);
    assert_codex(&context);
    assert_pi(&context);
    assert_markdown(&context);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn what_is_exported_comes_back(steps in prop::collection::vec(step(), 0..24)) {
        assert_all(&load(&build(&steps)));
    }
}

#[test]
fn the_exports_of_imports_come_back() {
    for source in [
        include_str!("../../tests/data/claude-code.jsonl"),
        include_str!("../../tests/data/codex.jsonl"),
    ] {
        let imported = import::session(source.as_bytes()).unwrap();
        let whole = load(&imported.text);
        assert_all(&whole);
        // Also without the compaction, which hides most of the session.
        let lines: Vec<&str> = imported.text.lines().collect();
        let compaction = lines
            .iter()
            .position(|l| l.starts_with("{\"type\":\"compaction\""))
            .unwrap();
        assert_all(&load(&lines[..compaction].join("\n")));
    }
}

fn sample() -> SessionLog {
    load(&build(&[
        Step::User {
            texts: vec!["old".into()],
            synthetic: false,
            image: false,
        },
        Step::Assistant {
            text: "ok".into(),
            thinking: Thinking::None,
            calls: vec![(Tool::Shell, "ls".into())],
        },
        Step::Result {
            pick: 0,
            text: "a\nb".into(),
            error: false,
        },
        Step::Prune {
            pick: 0,
            notice: "[output removed]".into(),
        },
        Step::Compaction {
            summary: "They listed files.".into(),
            keep: Some(1),
            verbatim: false,
        },
        Step::User {
            texts: vec!["Now ``` fix it".into()],
            synthetic: false,
            image: true,
        },
        Step::Assistant {
            text: "Fixing.".into(),
            thinking: Thinking::Anthropic,
            calls: vec![(Tool::Patch, "*** Begin Patch\n".into())],
        },
        Step::Result {
            pick: 0,
            text: "no such file".into(),
            error: true,
        },
    ]))
}

#[test]
fn a_claude_code_transcript() {
    let log = sample();
    insta::assert_snapshot!(assert_claude_code(&folded(&log)).text);
}

#[test]
fn a_codex_rollout() {
    let log = sample();
    let exported = assert_codex(&folded(&log));
    assert_eq!(exported.omitted.len(), 1);
    assert_eq!(
        (exported.omitted[0].part, exported.omitted[0].count),
        (OmittedPart::Thinking, 1)
    );
    insta::assert_snapshot!(exported.text);
}

#[test]
fn a_pi_session() {
    let log = sample();
    insta::assert_snapshot!(assert_pi(&folded(&log)).text);
}

#[test]
fn a_markdown_document() {
    let log = sample();
    insta::assert_snapshot!(assert_markdown(&folded(&log)));
}

#[test]
fn pictures_elsewhere_are_named() {
    let line = r#"{"type":"message","id":"a","parentId":null,"timestamp":"2026-03-01T09:00:00.000Z","message":{"role":"user","content":[{"type":"image","data":"https://pictures.invalid/kettle.png","mimeType":"image/png"}]}}"#;
    let log = load(&format!("{}{line}\n", build(&[])));
    let context = folded(&log);
    for exported in [claude_code(&context, &TARGET), codex(&context, &TARGET)] {
        assert!(exported.text.contains("stored elsewhere"));
        assert_eq!(exported.omitted[0].part, OmittedPart::Image);
    }
}

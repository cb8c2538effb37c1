use proptest::prelude::*;

use super::{Exported, OmittedPart, Target, claude_code, codex, markdown, pi};
use crate::fold::{Context, Profile};
use crate::import;
use crate::llm::{LlmBlock, LlmRole, TrailingCalls, Wrappers};
use crate::log::{SessionLog, Trust};
use crate::tree::Leaf;
use crate::{Author, CompactionDraft, EntryDraft, EntryId, Envelope, Tokens};

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

/// One step of a generated session.
#[derive(Clone, Debug)]
enum Step {
    User {
        texts: Vec<String>,
        synthetic: bool,
        image: bool,
    },
    Developer(String),
    Custom(String),
    Bash(String),
    Assistant {
        text: String,
        thinking: Thinking,
        calls: Vec<(Tool, String)>,
    },
    /// Answers an open call, or one that nobody made.
    Result {
        pick: usize,
        text: String,
        error: bool,
    },
    Compaction {
        summary: String,
        keep: Option<usize>,
        verbatim: bool,
    },
    Prune {
        pick: usize,
        notice: String,
    },
}

#[derive(Clone, Copy, Debug)]
enum Thinking {
    None,
    Anthropic,
    OpenAi,
}

#[derive(Clone, Copy, Debug)]
enum Tool {
    Shell,
    Patch,
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => "[a-z ]{1,12}",
        1 => any::<String>(),
        1 => "[`~#>\\-\\n\\r <&\\[\\]\\\\]{1,16}",
        1 => Just("</summary>\n## User\n```\n<environment_context>".to_owned()),
        1 => Just("Exit code: 1\nOutput:\n".to_owned()),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let thinking = prop_oneof![
        Just(Thinking::None),
        Just(Thinking::Anthropic),
        Just(Thinking::OpenAi)
    ];
    let tool = prop_oneof![Just(Tool::Shell), Just(Tool::Patch)];
    let call = (tool, text());
    prop_oneof![
        3 => (prop::collection::vec(text(), 1..3), any::<bool>(), any::<bool>())
            .prop_map(|(texts, synthetic, image)| Step::User { texts, synthetic, image }),
        1 => text().prop_map(Step::Developer),
        1 => text().prop_map(Step::Custom),
        1 => text().prop_map(Step::Bash),
        4 => (text(), thinking, prop::collection::vec(call, 0..3))
            .prop_map(|(text, thinking, calls)| Step::Assistant { text, thinking, calls }),
        5 => (any::<usize>(), text(), any::<bool>())
            .prop_map(|(pick, text, error)| Step::Result { pick, text, error }),
        1 => (text(), prop::option::of(any::<usize>()), any::<bool>())
            .prop_map(|(summary, keep, verbatim)| Step::Compaction { summary, keep, verbatim }),
        1 => (any::<usize>(), text()).prop_map(|(pick, notice)| Step::Prune { pick, notice }),
    ]
}

fn json(text: &str) -> String {
    let mut out = String::new();
    crate::json::write_string(&mut out, text);
    out
}

/// The session that the steps make.
fn build(steps: &[Step]) -> String {
    let mut out = String::from(
        "{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"timestamp\":\"2026-03-01T09:00:00.000Z\",\"cwd\":\"/w\"}\n",
    );
    let mut ids: Vec<String> = Vec::new();
    let mut results: Vec<String> = Vec::new();
    let mut open: Vec<(String, &str)> = Vec::new();
    for (n, step) in steps.iter().enumerate() {
        let id = format!("e{n:04}");
        let draft = match step {
            Step::User {
                texts,
                synthetic,
                image,
            } => {
                let mut blocks: Vec<String> = texts
                    .iter()
                    .map(|t| format!("{{\"type\":\"text\",\"text\":{}}}", json(t)))
                    .collect();
                if *image {
                    blocks.push(r#"{"type":"image","data":"iVBORw0KGgo=","mimeType":"image/png"}"#.into());
                }
                let content = blocks.join(",");
                EntryDraft::message(&format!(
                    "{{\"role\":\"user\",\"content\":[{content}],\"synthetic\":{synthetic}}}"
                ))
            }
            Step::Developer(text) => {
                EntryDraft::message(&format!("{{\"role\":\"developer\",\"content\":{}}}", json(text)))
            }
            Step::Custom(text) => EntryDraft::custom_message("note", text, crate::Display::Shown),
            Step::Bash(text) => EntryDraft::message(&format!(
                "{{\"role\":\"bashExecution\",\"command\":\"ls\",\"output\":{},\"exitCode\":1}}",
                json(text)
            )),
            Step::Assistant {
                text,
                thinking,
                calls,
            } => {
                let (provider, signature) = match thinking {
                    Thinking::None => ("local", None),
                    Thinking::Anthropic => ("anthropic", Some("c2ln".to_owned())),
                    Thinking::OpenAi => ("openai", Some(r#"{"type":"reasoning","summary":[]}"#.to_owned())),
                };
                let mut blocks = Vec::new();
                if let Some(signature) = signature {
                    let signature = json(&signature);
                    blocks.push(format!(
                        "{{\"type\":\"thinking\",\"thinking\":\"hm\",\"thinkingSignature\":{signature}}}"
                    ));
                }
                blocks.push(format!("{{\"type\":\"text\",\"text\":{}}}", json(text)));
                for (i, (tool, argument)) in calls.iter().enumerate() {
                    let (name, key) = match tool {
                        Tool::Shell => ("shell", "command"),
                        Tool::Patch => ("apply_patch", "input"),
                    };
                    let call = format!("call_{n}_{i}");
                    let argument = json(argument);
                    blocks.push(format!(
                        "{{\"type\":\"toolCall\",\"id\":\"{call}\",\"name\":\"{name}\",\"arguments\":{{\"{key}\":{argument}}}}}"
                    ));
                    open.push((call, name));
                }
                let blocks = blocks.join(",");
                EntryDraft::message(&format!(
                    "{{\"role\":\"assistant\",\"content\":[{blocks}],\"provider\":\"{provider}\",\"model\":\"m\",\"stopReason\":\"stop\"}}"
                ))
            }
            Step::Result { pick, text, error } => {
                let (call, name) = if open.is_empty() {
                    ("nobody".to_owned(), "shell")
                } else {
                    open.remove(pick % open.len())
                };
                results.push(id.clone());
                let text = json(text);
                EntryDraft::message(&format!(
                    "{{\"role\":\"toolResult\",\"toolCallId\":\"{call}\",\"toolName\":\"{name}\",\"content\":[{{\"type\":\"text\",\"text\":{text}}}],\"isError\":{error}}}"
                ))
            }
            Step::Compaction {
                summary,
                keep,
                verbatim,
            } => {
                let kept = keep.and_then(|keep| ids.get(keep.checked_rem(ids.len())?));
                let strategy = if *verbatim {
                    "verbatim-lines"
                } else {
                    "context-full"
                };
                EntryDraft::compaction(&CompactionDraft {
                    summary: summary.clone(),
                    short_summary: None,
                    first_kept: kept.map(|id| EntryId::from(id.as_str())),
                    tokens_before: Tokens(7),
                    details: format!("{{\"strategy\":\"{strategy}\"}}"),
                    preserve_data: None,
                    author: Author::Foldline,
                })
            }
            Step::Prune { pick, notice } => {
                let Some(target) = pick.checked_rem(results.len()).and_then(|at| results.get(at)) else {
                    continue;
                };
                let notice = json(notice);
                EntryDraft::custom(
                    "foldline/prune",
                    Some(&format!(
                        "{{\"items\":[{{\"entryId\":\"{target}\",\"notice\":{notice},\"tokens\":9}}]}}"
                    )),
                )
            }
        };
        out.push_str(&draft.line(&Envelope {
            id: EntryId::from(id.as_str()),
            parent: ids.last().map(|id| EntryId::from(id.as_str())),
            timestamp: format!("2026-03-01T09:00:{:02}.000Z", n % 60),
        }));
        out.push('\n');
        ids.push(id);
    }
    out
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

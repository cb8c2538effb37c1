//! Sessions that are made step by step, for the round trips.

use proptest::prelude::*;

use crate::{Author, CompactionDraft, EntryDraft, EntryId, Envelope, Tokens};

/// One step of a generated session.
#[derive(Clone, Debug)]
pub(super) enum Step {
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
pub(super) enum Thinking {
    None,
    Anthropic,
    OpenAi,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Tool {
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

pub(super) fn step() -> impl Strategy<Value = Step> {
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
pub(super) fn build(steps: &[Step]) -> String {
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

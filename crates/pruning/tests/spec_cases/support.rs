//! Sessions in a few words, and what a plan makes of them.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use foldline_pruning::{Original, Originals, Plan, Policy, Rewrite, Stamp, View, plan};
use foldline_session_model::fold::{Context, Profile};
use foldline_session_model::json::write_string;
use foldline_session_model::log::{SessionLog, Trust};
use foldline_session_model::message::Message;
use foldline_session_model::tokens::{Heuristic, TokenCounter};
use foldline_session_model::tree::Leaf;
use foldline_session_model::{Envelope, Tokens};

pub(crate) const PICTURE: &str = r#"{"type":"image","data":"AAAA","mimeType":"image/png"}"#;

/// One record of a session, after its type.
#[derive(Clone)]
pub(crate) enum Step {
    User,
    Command,
    Custom,
    /// Calls of one message: id, tool, arguments, further members.
    Calls(Vec<(String, String, String, &'static str)>),
    Result(Box<Answer>),
    /// A call and its result.
    Pair(Box<Answer>),
}

#[derive(Clone, Default)]
pub(crate) struct Answer {
    pub(crate) id: String,
    tool: String,
    args: String,
    /// Blocks as JSON.
    blocks: Vec<String>,
    is_error: bool,
    details: String,
    pruned_at: Option<u64>,
}

pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::new();
    write_string(&mut out, text);
    out
}

pub(crate) fn text_block(text: &str) -> String {
    format!(r#"{{"type":"text","text":{}}}"#, quoted(text))
}

/// A call and its result; the text is that of `R(id)`.
pub(crate) fn pair(id: &str, tool: &str, args: &str) -> Step {
    Step::Pair(Box::new(Answer {
        id: id.to_owned(),
        tool: tool.to_owned(),
        args: args.to_owned(),
        blocks: vec![text_block(&result_text(id, 8000))],
        ..Answer::default()
    }))
}

pub(crate) fn read(id: &str, path: &str) -> Step {
    pair(id, "read", &format!(r#"{{"path":{}}}"#, quoted(path)))
}

pub(crate) fn edit(id: &str, path: &str) -> Step {
    pair(id, "edit", &format!(r#"{{"path":{}}}"#, quoted(path)))
}

pub(crate) fn bash(id: &str, command: &str) -> Step {
    pair(id, "bash", &format!(r#"{{"command":{}}}"#, quoted(command)))
}

pub(crate) fn patch(id: &str, lines: &[&str]) -> Step {
    let input = format!("*** Begin Patch\n{}\n*** End Patch", lines.join("\n"));
    pair(id, "apply_patch", &format!(r#"{{"input":{}}}"#, quoted(&input)))
}

impl Step {
    fn change(mut self, change: impl FnOnce(&mut Answer)) -> Self {
        match &mut self {
            Self::Pair(answer) | Self::Result(answer) => change(answer),
            _ => panic!("no result"),
        }
        self
    }

    pub(crate) fn text(self, text: &str) -> Self {
        self.change(|answer| answer.blocks = vec![text_block(text)])
    }

    pub(crate) fn blocks(self, blocks: &[String]) -> Self {
        self.change(|answer| answer.blocks = blocks.to_vec())
    }

    pub(crate) fn error(self) -> Self {
        self.change(|answer| answer.is_error = true)
    }

    pub(crate) fn details(self, details: &str) -> Self {
        self.change(|answer| details.clone_into(&mut answer.details))
    }

    pub(crate) fn pruned(self) -> Self {
        self.change(|answer| answer.pruned_at = Some(12_345))
    }

    /// The result without its call.
    pub(crate) fn orphan(self) -> Self {
        match self {
            Self::Pair(answer) => Self::Result(answer),
            other => other,
        }
    }
}

// Texts of the specification.

/// `T(l,n)`.
pub(crate) fn lines(label: &str, n: usize) -> String {
    let line = |i: usize| format!("{label}-{} alpha beta gamma delta", base_36(i));
    (0..n).map(line).collect::<Vec<_>>().join("\n")
}

/// `R(id,s)`.
pub(crate) fn result_text(id: &str, size: usize) -> String {
    format!("result-{id} {}", "x ".repeat(size / 2))
}

/// `B(l,n)`.
pub(crate) fn blob(label: &str, n: usize) -> String {
    let line = |i: usize| format!("{label}-{i} {}", "x".repeat(60));
    (0..n).map(line).collect::<Vec<_>>().join("\n")
}

/// `Q`.
pub(crate) fn q() -> String {
    "x ".repeat(4000)
}

fn base_36(mut n: usize) -> String {
    let mut out = String::new();
    loop {
        out.insert(0, char::from_digit(u32::try_from(n % 36).unwrap(), 36).unwrap());
        n /= 36;
        if n == 0 {
            return out;
        }
    }
}

// Policies of the specification. They know no floor but 1.

pub(crate) fn rt() -> Policy {
    Policy {
        protect_tokens: Tokens(0),
        minimum_savings: Tokens(0),
        entry_floor: Tokens(1),
        stale_overridable: Vec::new(),
        ..Policy::default()
    }
}

pub(crate) fn eager() -> Policy {
    Policy {
        stale_overridable: vec!["read".to_owned()],
        ..rt()
    }
}

pub(crate) fn eager_q() -> Policy {
    Policy {
        protected_tools: vec!["read".to_owned()],
        ..eager()
    }
}

pub(crate) fn open() -> Policy {
    Policy {
        protected_tools: Vec::new(),
        ..eager()
    }
}

/// "W": everything is inside the window, so only stale results go.
pub(crate) fn wide(policy: Policy) -> Policy {
    Policy {
        protect_tokens: Tokens(1_000_000),
        ..policy
    }
}

/// The session of some steps. Entry ids are those of the results; other entries are `e0`, `e1` and so on.
pub(crate) fn session(steps: &[Step]) -> SessionLog {
    let mut file = String::from(
        r#"{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w"}"#,
    );
    file.push('\n');
    let mut parent = String::from("null");
    let mut others = 0;
    let mut push = |id: Option<&str>, body: &str| {
        let id = id.map_or_else(
            || {
                others += 1;
                format!("e{}", others - 1)
            },
            str::to_owned,
        );
        writeln!(
            file,
            r#"{{"type":"message","id":{},"parentId":{parent},"timestamp":"2026-01-01T00:00:01.000Z","message":{body}}}"#,
            quoted(&id)
        )
        .unwrap();
        parent = quoted(&id);
    };
    let call = |id: &str, tool: &str, args: &str, more: &str| {
        format!(r#"{{"type":"toolCall","id":"call-{id}","name":"{tool}","arguments":{args}{more}}}"#)
    };
    let assistant = |calls: &[String]| format!(r#"{{"role":"assistant","content":[{}]}}"#, calls.join(","));
    for step in steps {
        match step {
            Step::User => push(None, r#"{"role":"user","content":"go on"}"#),
            Step::Command => push(None, r#"{"role":"bashExecution","command":"ls","output":"a"}"#),
            Step::Custom => push(None, r#"{"role":"custom","customType":"x","content":"note"}"#),
            Step::Calls(calls) => {
                let calls: Vec<String> = calls
                    .iter()
                    .map(|(id, tool, args, more)| call(id, tool, args, more))
                    .collect();
                push(None, &assistant(&calls));
            }
            Step::Pair(answer) | Step::Result(answer) => {
                if matches!(step, Step::Pair(_)) {
                    push(
                        None,
                        &assistant(&[call(&answer.id, &answer.tool, &answer.args, "")]),
                    );
                }
                let mut body = format!(
                    r#"{{"role":"toolResult","toolCallId":"call-{}","toolName":"{}","content":[{}],"isError":{}"#,
                    answer.id,
                    answer.tool,
                    answer.blocks.join(","),
                    answer.is_error
                );
                if !answer.details.is_empty() {
                    write!(body, r#","details":{}"#, answer.details).unwrap();
                }
                if let Some(at) = answer.pruned_at {
                    write!(body, r#","prunedAt":{at}"#).unwrap();
                }
                body.push('}');
                push(Some(&answer.id), &body);
            }
        }
    }
    SessionLog::load(file, Trust::Validated).unwrap()
}

pub(crate) fn context(log: &SessionLog) -> Context<'_> {
    log.context(&Leaf::Last, Profile::Foldline).unwrap()
}

/// What the messages of a context cost together.
pub(crate) fn total(context: &Context<'_>) -> u64 {
    context.messages().map(|m| Heuristic.message(m).get()).sum()
}

/// A plan, its session, and the session with the mask behind it.
pub(crate) struct Planned {
    pub(crate) log: SessionLog,
    pub(crate) plan: Plan,
}

impl Planned {
    pub(crate) fn saved(&self) -> u64 {
        self.plan.tokens_saved.get()
    }

    /// The ids of what goes, newest first.
    pub(crate) fn ids(&self) -> Vec<&str> {
        self.plan
            .replacements
            .iter()
            .map(|r| self.plan.entry(r))
            .collect()
    }

    pub(crate) fn goes(&self, id: &str) -> bool {
        self.ids().contains(&id)
    }

    /// The notice that a mask shows.
    pub(crate) fn notice(&self, id: &str) -> String {
        let replacement = self.plan.replacements.iter().find(|r| self.plan.entry(r) == id);
        self.plan.mask_notice(replacement.unwrap())
    }

    pub(crate) fn tokens(&self, id: &str) -> u64 {
        let replacement = self.plan.replacements.iter().find(|r| self.plan.entry(r) == id);
        replacement.unwrap().tokens.get()
    }

    pub(crate) fn original(&self, id: &str) -> Original {
        Original::of(&self.log, self.log.find(id).unwrap()).unwrap()
    }

    /// The rewrite with an artifact for each of these entries.
    pub(crate) fn rewrite(&self, artifacts: &[(&str, u64)]) -> Rewrite {
        let artifacts: BTreeMap<_, _> = artifacts
            .iter()
            .map(|(id, number)| (self.log.find(id).unwrap(), *number))
            .collect();
        self.plan
            .rewrite(&self.log, &artifacts, Stamp(1_760_000_000_000), &Heuristic)
            .unwrap()
    }
}

/// Plans without references, as most cases do.
pub(crate) fn prune(policy: &Policy, steps: &[Step]) -> Planned {
    prune_with(policy, Originals::Unreferenced, steps)
}

/// Plans, appends the mask, and checks what holds for every plan.
pub(crate) fn prune_with(policy: &Policy, originals: Originals, steps: &[Step]) -> Planned {
    let log = session(steps);
    let plan = {
        let context = context(&log);
        plan(&View::of_context(&context), policy, originals, &Heuristic)
    };
    let planned = Planned { log, plan };
    check(&planned, policy);
    planned
}

/// Savings are what the context shrinks by, nothing else changes, a second plan is empty, undo brings all back.
fn check(planned: &Planned, policy: &Policy) {
    let Some(mask) = planned.plan.mask() else {
        let is_for_files = matches!(planned.plan.originals, Originals::Artifacts { .. });
        assert!(is_for_files || planned.saved() == 0);
        return;
    };
    let before = context(&planned.log);
    let append = |log: &SessionLog, id: &str, draft: &foldline_session_model::EntryDraft| {
        let line = draft.line(&Envelope {
            id: id.into(),
            parent: log.leaf().map(|leaf| log.entry_id(leaf)),
            timestamp: "2026-01-01T00:00:02.000Z".to_owned(),
        });
        let mut bytes = log.bytes().to_vec();
        bytes.extend_from_slice(line.as_bytes());
        bytes.push(b'\n');
        SessionLog::load(bytes, Trust::Validated).unwrap()
    };
    let masked = append(&planned.log, "mask", &mask);
    let after = context(&masked);
    assert_eq!(total(&before) - total(&after), planned.saved());
    for (old, new) in before.items.iter().zip(&after.items) {
        let id = planned.log.id(old.source);
        if planned.goes(id) {
            let Message::ToolResult(result) = &new.message else {
                panic!("no result");
            };
            assert_eq!(result.content.texts().collect::<Vec<_>>(), [planned.notice(id)]);
        } else {
            assert_eq!(format!("{:?}", old.message), format!("{:?}", new.message));
        }
    }
    let again = plan(
        &View::of_context(&after),
        policy,
        planned.plan.originals,
        &Heuristic,
    );
    assert!(again.is_empty(), "{again:?}");

    let revoke = foldline_session_model::EntryDraft::custom(
        foldline_session_model::fold::REVOKE_TYPE,
        Some(r#"{"entryId":"mask"}"#),
    );
    let undone = append(&masked, "undo", &revoke);
    let undone = context(&undone);
    assert_eq!(
        format!("{:?}", before.messages().collect::<Vec<_>>()),
        format!("{:?}", undone.messages().collect::<Vec<_>>())
    );
}

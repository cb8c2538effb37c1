//! What holds for every plan over every session.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a helper that fails is a test that fails"
)]

use std::collections::BTreeMap;
use std::fmt::Write as _;

use foldline_pruning::cost::{BelowThreshold, Cache, DEFAULT_HORIZON, Prices};
use foldline_pruning::{Original, Originals, Policy, ReferenceBudget, Stamp, View, plan};
use foldline_session_model::fold::{Context, PRUNE_TYPE, Profile, REVOKE_TYPE};
use foldline_session_model::json::write_string;
use foldline_session_model::llm::{TrailingCalls, Wrappers};
use foldline_session_model::log::{SessionLog, Trust};
use foldline_session_model::message::Message;
use foldline_session_model::tokens::{Heuristic, TokenCounter};
use foldline_session_model::tree::Leaf;
use foldline_session_model::{EntryDraft, Envelope, Tokens};
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Step {
    User,
    Call(Call),
}

#[derive(Clone, Debug)]
struct Call {
    tool: &'static str,
    args: String,
    text: String,
    is_error: bool,
    picture: bool,
}

fn quoted(text: &str) -> String {
    let mut out = String::new();
    write_string(&mut out, text);
    out
}

fn call() -> impl Strategy<Value = Call> {
    let path = prop::sample::select(vec![
        "a", "./a", "b", "a:1-9", "a:2-5", "b:3", "/w/b:raw", "c:1-4,9",
    ]);
    let tool = prop::sample::select(vec!["read", "bash", "edit", "grep", "skill", "write"]);
    let word = prop::sample::select(vec![
        "x ",
        "0 errors\n",
        "failed 日本 ",
        "💥",
        "12 matches\n",
        "\u{1B}[31mred",
    ]);
    (
        tool,
        path,
        word,
        0_usize..200,
        any::<bool>(),
        prop::bool::weighted(0.1),
    )
        .prop_map(|(tool, path, word, n, is_error, picture)| Call {
            tool,
            args: match tool {
                "bash" => r#"{"command":"bun test"}"#.to_owned(),
                "grep" => format!(r#"{{"pattern":"p","path":"{path}"}}"#),
                _ => format!(r#"{{"path":"{path}"}}"#),
            },
            text: word.repeat(n),
            is_error,
            picture,
        })
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(
        prop_oneof![1 => Just(Step::User), 4 => call().prop_map(Step::Call)],
        0..24,
    )
}

fn policy() -> impl Strategy<Value = Policy> {
    (0_u64..600, 0_u64..400, 1_u64..60, 0_u32..4).prop_map(|(window, minimum, floor, turns)| Policy {
        protect_tokens: Tokens(window),
        minimum_savings: Tokens(minimum),
        entry_floor: Tokens(floor),
        protect_recent_turns: turns,
        ..Policy::default()
    })
}

fn session(steps: &[Step]) -> SessionLog {
    let mut file = String::from(
        "{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"timestamp\":\"2026-01-01T00:00:00.000Z\",\"cwd\":\"/w\"}\n",
    );
    let mut parent = String::from("null");
    let mut n = 0;
    let mut push = |body: &str| {
        writeln!(file, r#"{{"type":"message","id":"e{n}","parentId":{parent},"timestamp":"2026-01-01T00:00:01.000Z","message":{body}}}"#).unwrap();
        parent = format!("\"e{n}\"");
        n += 1;
    };
    for (i, step) in steps.iter().enumerate() {
        match step {
            Step::User => push(r#"{"role":"user","content":"go on"}"#),
            Step::Call(call) => {
                push(&format!(
                    r#"{{"role":"assistant","content":[{{"type":"toolCall","id":"c{i}","name":"{}","arguments":{}}}]}}"#,
                    call.tool, call.args
                ));
                let picture = if call.picture {
                    r#",{"type":"image","data":"AA","mimeType":"image/png"}"#
                } else {
                    ""
                };
                push(&format!(
                    r#"{{"role":"toolResult","toolCallId":"c{i}","toolName":"{}","content":[{{"type":"text","text":{}}}{picture}],"isError":{}}}"#,
                    call.tool,
                    quoted(&call.text),
                    call.is_error
                ));
            }
        }
    }
    SessionLog::load(file, Trust::Validated).unwrap()
}

fn context(log: &SessionLog) -> Context<'_> {
    log.context(&Leaf::Last, Profile::Foldline).unwrap()
}

fn total(context: &Context<'_>) -> u64 {
    context.messages().map(|m| Heuristic.message(m).get()).sum()
}

fn append(log: &SessionLog, id: &str, draft: &EntryDraft) -> SessionLog {
    let line = draft.line(&Envelope {
        id: id.into(),
        parent: log.leaf().map(|leaf| log.entry_id(leaf)),
        timestamp: "2026-01-01T00:00:02.000Z".to_owned(),
    });
    let mut bytes = log.bytes().to_vec();
    bytes.extend_from_slice(line.as_bytes());
    bytes.push(b'\n');
    SessionLog::load(bytes, Trust::Validated).unwrap()
}

/// Each message of the request, to the byte.
fn request(log: &SessionLog) -> Vec<String> {
    let context = context(log);
    let wrappers = Wrappers::default();
    let view = context.llm_view(&wrappers, TrailingCalls::Answer);
    view.iter().map(|m| format!("{m:?}")).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn a_mask_saves_what_it_says_and_is_undone_to_the_byte(steps in steps(), policy in policy()) {
        let log = session(&steps);
        let before = context(&log);
        let planned = plan(&View::of_context(&before), &policy, Originals::InLog, &Heuristic);
        let Some(mask) = planned.mask() else {
            prop_assert_eq!(planned.tokens_saved, Tokens(0));
            return Ok(());
        };
        prop_assert!(planned.tokens_saved >= policy.minimum_savings);
        let masked = append(&log, "mask", &mask);
        let after = context(&masked);
        prop_assert_eq!(total(&before) - total(&after), planned.tokens_saved.get());

        // What is protected or fenced is as it was, and every original can be named.
        let starts: Vec<usize> = before.items.iter().enumerate()
            .filter(|(_, item)| matches!(item.message, Message::User(_)))
            .map(|(at, _)| at)
            .collect();
        let turns = policy.protect_recent_turns as usize;
        let fence = match starts.len().saturating_sub(turns) {
            _ if turns == 0 || starts.is_empty() => before.items.len(),
            at => starts[at],
        };
        for replacement in &planned.replacements {
            prop_assert!(replacement.position < fence);
            prop_assert!(&*replacement.tool != "skill");
            prop_assert!(replacement.saved >= policy.entry_floor);
            let notice = planned.mask_notice(replacement);
            let address = format!("artifact://entry/{}", planned.entry(replacement));
            prop_assert!(notice.contains(&address));
            prop_assert!(planned.digest(replacement).is_none_or(|d| d.encode_utf16().count() <= 256));
            let Some(Original::Text(text) | Original::Content(text)) = Original::of(&masked, replacement.source) else {
                panic!("no original");
            };
            prop_assert!(!text.is_empty());
        }
        for (old, new) in before.items.iter().zip(&after.items) {
            if !planned.replacements.iter().any(|r| r.source == old.source) {
                prop_assert_eq!(format!("{:?}", old.message), format!("{:?}", new.message));
            }
        }

        let again = plan(&View::of_context(&after), &policy, Originals::InLog, &Heuristic);
        prop_assert!(again.is_empty());

        let revoke = EntryDraft::custom(REVOKE_TYPE, Some(r#"{"entryId":"mask"}"#));
        let undone = append(&masked, "undo", &revoke);
        prop_assert_eq!(request(&log), request(&undone));
    }

    #[test]
    fn a_rewrite_saves_at_least_what_was_planned(steps in steps(), policy in policy(), failed in any::<u64>()) {
        let log = session(&steps);
        let before = context(&log);
        let originals = Originals::Artifacts { budget: ReferenceBudget::DEFAULT };
        let planned = plan(&View::of_context(&before), &policy, originals, &Heuristic);
        let artifacts: BTreeMap<_, _> = planned.replacements.iter().zip(0_u64..)
            .filter(|(_, n)| failed >> (n % 64) & 1 == 0)
            .map(|(r, n)| (r.source, n))
            .collect();
        let rewrite = planned.rewrite(&log, &artifacts, Stamp(1_760_000_000_000), &Heuristic).unwrap();
        prop_assert_eq!(rewrite.entries.len() + rewrite.kept.len(), planned.replacements.len());
        if rewrite.kept.is_empty() {
            prop_assert!(rewrite.tokens_saved >= planned.tokens_saved);
        }
        let bytes = log.to_written_form_with(&rewrite.lines()).unwrap();
        let rewritten = SessionLog::load(bytes, Trust::Validated).unwrap();
        prop_assert!(rewritten.damage().is_empty());
        let after = context(&rewritten);
        prop_assert_eq!(total(&before) - total(&after), rewrite.tokens_saved.get());
        for ix in log.entries() {
            if !rewrite.entries.iter().any(|entry| entry.source == ix) {
                prop_assert_eq!(log.raw_line(ix), rewritten.raw_line(ix));
            }
        }
    }

    #[test]
    fn pairs_stay_whole(steps in steps(), policy in policy()) {
        let log = session(&steps);
        let planned = plan(&View::of_context(&context(&log)), &policy, Originals::InLog, &Heuristic);
        if let Some(mask) = planned.mask() {
            let masked = append(&log, "mask", &mask);
            let kinds = |log: &SessionLog| -> Vec<String> {
                let context = context(log);
                let wrappers = Wrappers::default();
                let view = context.llm_view(&wrappers, TrailingCalls::Answer);
                view.iter().map(|m| format!("{:?}", m.role)).collect()
            };
            prop_assert_eq!(kinds(&log), kinds(&masked));
        }
    }
}

/// With the default setting nothing that was sent changes below the threshold: of 30 requests, each but the first
/// begins with the one before it.
#[test]
fn below_the_threshold_requests_keep_their_beginning() {
    let prices = Prices {
        input: 3.0,
        cache_read: 0.3,
        cache_write: 3.75,
    };
    let mut steps = Vec::new();
    let mut sent: Vec<Vec<String>> = Vec::new();
    let mut would_prune = 0;
    let mut log = session(&steps);
    for turn in 0..30 {
        steps.push(Step::User);
        steps.push(Step::Call(Call {
            tool: "bash",
            args: format!(r#"{{"command":"run {turn}"}}"#),
            text: "output ".repeat(6_000),
            is_error: false,
            picture: false,
        }));
        log = session(&steps);
        let context = context(&log);
        let view = View::of_context(&context);
        let planned = plan(&view, &Policy::default(), Originals::InLog, &Heuristic);
        would_prune += usize::from(!planned.is_empty());
        let cost = planned.cost(&view, Some(prices), &Heuristic);
        if BelowThreshold::default().allows(&cost, DEFAULT_HORIZON, Cache::Expired) {
            log = append(&log, "mask", &planned.mask().unwrap());
        }
        sent.push(request(&log));
    }
    assert!(would_prune > 20);
    let stable = sent
        .windows(2)
        .filter(|pair| pair[1].starts_with(&pair[0]))
        .count();
    assert_eq!(stable, 29);
    assert!(!log.entries().any(|ix| {
        let line = std::str::from_utf8(log.raw_line(ix)).unwrap();
        line.contains(PRUNE_TYPE)
    }));
}

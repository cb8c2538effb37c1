use super::TokenSource;
use crate::Tokens;
use crate::fold::Profile;
use crate::log::{SessionLog, Trust};
use crate::tokens::Heuristic;
use crate::tree::Leaf;

const USAGE: &str = r#""usage":{"input":90,"output":10,"cacheRead":0,"cacheWrite":0,"totalTokens":100}"#;
const MIRRORED: &str = r#""usage":{"input":90,"output":10,"cacheRead":90,"cacheWrite":0,"totalTokens":190}"#;

/// The bodies as a chain of entries `e0`, `e1`, … and the size of the context at its end.
fn tokens(bodies: &[String]) -> (u64, u64, Option<usize>) {
    let mut text = String::from(
        "{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"timestamp\":\"t\",\"cwd\":\"/w\"}\n",
    );
    for (at, body) in bodies.iter().enumerate() {
        let parent = at
            .checked_sub(1)
            .map_or("null".to_owned(), |p| format!("\"e{p}\""));
        text += &format!("{{\"id\":\"e{at}\",\"parentId\":{parent},\"timestamp\":\"t\",{body}}}\n");
    }
    let log = SessionLog::load(text, Trust::Validated).unwrap();
    let context = log.context(&Leaf::Last, Profile::Foldline).unwrap();
    let size = context.tokens(&Heuristic);
    let item = match size.source {
        TokenSource::Measured { usage, item } => {
            assert_eq!(size.total, usage + size.estimated);
            Some(item)
        }
        TokenSource::Estimated => None,
    };
    (size.total.get(), size.estimated.get(), item)
}

/// A message of 8 units: two tokens.
fn user() -> String {
    message("user", "")
}

fn assistant(more: &str) -> String {
    message("assistant", &format!(",{more}"))
}

fn message(role: &str, more: &str) -> String {
    let content = r#"[{"type":"text","text":"12345678"}]"#;
    format!(r#""type":"message","message":{{"role":"{role}","content":{content}{more}}}"#)
}

fn custom(kind: &str, data: &str) -> String {
    format!(r#""type":"custom","customType":"{kind}","data":{data}"#)
}

#[test]
fn the_newest_usage_counts_and_what_follows_is_estimated() {
    let table = [
        ("nothing", vec![], (0, 0, None)),
        ("no usage", vec![user(), assistant("\"x\":1")], (4, 4, None)),
        ("usage", vec![user(), assistant(USAGE)], (100, 0, Some(1))),
        (
            "usage and more",
            vec![user(), assistant(USAGE), user()],
            (102, 2, Some(1)),
        ),
        (
            "a failed answer measures nothing",
            vec![
                user(),
                assistant(USAGE),
                user(),
                assistant(&format!("{USAGE},\"stopReason\":\"error\"")),
            ],
            (104, 4, Some(1)),
        ),
        (
            "no usage is no measurement",
            vec![user(), assistant(USAGE), assistant(r#""usage":{"input":0}"#)],
            (102, 2, Some(1)),
        ),
        (
            "a mirrored cache counts once, for the API that has them",
            vec![
                user(),
                assistant(&format!("{MIRRORED},\"api\":\"anthropic-messages\"")),
            ],
            (100, 0, Some(1)),
        ),
        (
            "and twice for others",
            vec![
                user(),
                assistant(&format!("{MIRRORED},\"api\":\"openai-responses\"")),
            ],
            (190, 0, Some(1)),
        ),
    ];
    for (name, bodies, expected) in table {
        assert_eq!(tokens(&bodies), expected, "{name}");
    }
}

#[test]
fn usage_of_an_earlier_generation_tells_nothing() {
    let compaction = r#""type":"compaction","summary":"12345678","firstKeptEntryId":"e1","tokensBefore":1"#;
    let before = || vec![user(), assistant(USAGE), message("toolResult", "")];
    let with = |body: String| {
        let mut bodies = before();
        bodies.push(body);
        bodies
    };
    let mask = r#"{"items":[{"entryId":"e2","notice":"1234","tokens":2}]}"#;
    assert_eq!(tokens(&before()), (102, 2, Some(1)));
    assert_eq!(tokens(&with(compaction.to_owned())), (6, 6, None));
    assert_eq!(tokens(&with(custom("foldline/prune", mask))), (5, 5, None));
    assert_eq!(
        tokens(&with(custom("foldline/revoke", r#"{"entryId":"e0"}"#))),
        (4, 4, None)
    );
    assert_eq!(tokens(&with(custom("other", "{}"))), (102, 2, Some(1)));
    let mut answered = with(compaction.to_owned());
    answered.push(assistant(USAGE));
    assert_eq!(tokens(&answered), (100, 0, Some(3)));
}

#[test]
fn usage_from_before_a_rewriting_prune_tells_nothing() {
    let at = |time: u32| assistant(&format!("{USAGE},\"timestamp\":{time}"));
    let pruned = message("toolResult", ",\"prunedAt\":50");
    assert_eq!(tokens(&[user(), at(40), pruned.clone()]), (6, 6, None));
    assert_eq!(tokens(&[user(), at(40), pruned, at(60)]), (100, 0, Some(3)));
}

#[test]
fn sums_stop_at_the_largest_number() {
    let huge = r#""usage":{"input":1e300,"output":1e300}"#;
    assert_eq!(tokens(&[assistant(huge), user()]).0, Tokens(u64::MAX).get());
}

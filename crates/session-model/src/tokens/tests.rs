use super::{CharsPerFour, Heuristic, TokenCounter};
use crate::fold::Profile;
use crate::llm::{LlmBlock, TrailingCalls, Wrappers};
use crate::log::{SessionLog, Trust};
use crate::message::Message;
use crate::tree::Leaf;

fn estimate(fragments: &[&str]) -> u64 {
    Heuristic.text(&mut fragments.iter().copied()).get()
}

#[test]
fn texts_cost_what_the_specification_says() {
    let faces = "😀".repeat(200);
    let hangul = "한".repeat(400) + &"a".repeat(400);
    let table: &[(&[&str], u64)] = &[
        (&[], 0),
        (&[""], 0),
        (&["a"], 1),
        (&["abcd"], 1),
        (&["abcde"], 2),
        (&["a", "b"], 1),
        (&["a", "b", "c"], 1),
        (&["가나"], 2),
        (&["ab한"], 2),
        (&["💥"], 1),
        (&["ab💥"], 2),
        (&["日本ab"], 3),
        (&["éééééééé"], 2),
        (&[&faces], 200),
        (&[&hangul], 500),
    ];
    for (fragments, expected) in table {
        assert_eq!(estimate(fragments), *expected, "{fragments:?}");
    }
}

#[test]
fn blocks_of_ascii_and_other_text_add_up() {
    for n in 0..80 {
        let text = format!("{}é{}日", "x".repeat(n), "y".repeat(n));
        assert_eq!(estimate(&[&text]), 1 + (2 * n as u64 + 1).div_ceil(4));
    }
}

#[test]
fn a_quarter_of_the_units() {
    for (text, expected) in [
        ("", 0),
        ("abcd", 1),
        ("abcde", 2),
        ("日本", 1),
        ("😀😀", 1),
        ("😀😀😀", 2),
    ] {
        assert_eq!(CharsPerFour.one(text).get(), expected, "{text}");
    }
}

#[test]
fn what_reaches_the_model_counts() {
    let picture = r#"{"type":"image","data":"AA==","mimeType":"image/png"}"#;
    let content = format!(r#""content":[{{"type":"text","text":"12345678"}},{picture}]"#);
    let table = [
        (format!(r#"{{"role":"user",{content}}}"#), 1202),
        (format!(r#"{{"role":"developer",{content}}}"#), 1202),
        (format!(r#"{{"role":"custom",{content}}}"#), 1202),
        (format!(r#"{{"role":"hookMessage",{content}}}"#), 1202),
        (format!(r#"{{"role":"toolResult",{content}}}"#), 1202),
        (r#"{"role":"user","content":"12345678"}"#.to_owned(), 2),
        (
            r#"{"role":"bashExecution","command":"1234","output":"5678"}"#.to_owned(),
            2,
        ),
        (
            r#"{"role":"bashExecution","command":"1234","output":"5678","excludeFromContext":true}"#
                .to_owned(),
            0,
        ),
        (
            r#"{"role":"custom","content":"12345678","excludeFromContext":true}"#.to_owned(),
            0,
        ),
        (
            r#"{"role":"pythonExecution","code":"1234","output":"5678"}"#.to_owned(),
            2,
        ),
        (
            format!(
                r#"{{"role":"fileMention","files":[{{"path":"1234","content":"5678","image":{picture}}}]}}"#
            ),
            1202,
        ),
    ];
    for (json, expected) in &table {
        let message = crate::message::decode::from_json(json).unwrap();
        assert_eq!(Heuristic.message(&message).get(), *expected, "{json}");
        assert_eq!(CharsPerFour.message(&message).get(), *expected, "{json}");
    }
}

proptest::proptest! {
    #[test]
    fn more_text_never_costs_less(a in "\\PC{0,60}", b in "\\PC{0,60}") {
        let both = format!("{a}{b}");
        proptest::prop_assert!(estimate(&[&both]) >= estimate(&[&a]));
        proptest::prop_assert_eq!(estimate(&[&both]), estimate(&[&a, &b]));
    }
}

/// The counts by blocks are those of a loop over characters.
fn by_characters(text: &str) -> u64 {
    let dense = |c: &char| {
        let c = u32::from(*c);
        c >= 0x10000
            || [
                0x1100..=0x11FF,
                0x3000..=0x303F,
                0x3040..=0x30FF,
                0x3130..=0x318F,
                0x3400..=0x4DBF,
                0x4E00..=0x9FFF,
                0xAC00..=0xD7AF,
                0xF900..=0xFAFF,
                0xFF00..=0xFFEF,
            ]
            .iter()
            .any(|range: &std::ops::RangeInclusive<u32>| range.contains(&c))
    };
    let count = text.chars().filter(dense).count() as u64;
    count + (text.chars().count() as u64 - count).div_ceil(4)
}

#[test]
fn every_character_costs_what_its_range_says() {
    for c in '\0'..=char::MAX {
        let text: String = std::iter::repeat_n(c, 4).collect();
        assert_eq!(estimate(&[&text]), by_characters(&text), "{c:?}");
    }
}

/// R17: 160 Han characters cost 96 to 160 tokens, 160 ASCII characters 40.
#[test]
fn scripts_cost_what_they_cost() {
    assert!((96..=160).contains(&estimate(&[&"漢".repeat(160)])));
    assert_eq!(estimate(&[&"a".repeat(160)]), 40);
}

/// What the model is sent of a session costs what its messages cost, calls and pictures included.
#[test]
fn messages_of_a_call_cost_what_their_sources_cost() {
    let mut seen = 0;
    for (name, file) in crate::testing::fixtures() {
        let Ok(log) = SessionLog::load(file, Trust::Validated) else {
            continue;
        };
        let context = log.context(&Leaf::Last, Profile::Auto).unwrap();
        let wrappers = Wrappers::default();
        for message in context.llm_view(&wrappers, TrailingCalls::Leave) {
            // One source without wrapping text.
            let source = context.items.iter().find(|item| item.source == message.source);
            let Some(item) = source.filter(|item| matches!(item.message, Message::Assistant(_))) else {
                continue;
            };
            let calls = |block: &LlmBlock<'_>| matches!(block, LlmBlock::ToolCall { .. });
            if message.content.iter().any(calls) {
                assert_eq!(
                    Heuristic.call_message(&message),
                    Heuristic.message(&item.message),
                    "{name}"
                );
                seen += 1;
            }
        }
    }
    assert!(seen > 20, "{seen}");
}

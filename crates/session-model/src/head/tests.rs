use std::borrow::Cow;

use proptest::prelude::*;

use super::{Near, careful, fast, plain};
use crate::entry::EntryKind;

/// Text of a JSON string between its quotes: mostly plain, sometimes with what the fast scanner must leave alone.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => "[0-9a-f]{8}",
        4 => "[ -!#-\\[\\]-~\\x7F]{0,40}",
        1 => "[a-z]{240,270}",
        1 => "[a-zé]{0,3}(\\\\\"|\\\\\\\\|\\\\u0061|\\\\n|é|日|\\x01)[a-z]{0,9}",
    ]
}

fn kind() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => Just("message".to_owned()),
        2 => prop_oneof![Just("compaction"), Just("custom_message"), Just("label")].prop_map(str::to_owned),
        1 => text(),
    ]
}

fn parent() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => text().prop_map(|text| format!("\"{text}\"")),
        1 => Just("null".to_owned()),
        1 => prop_oneof![Just("7"), Just("nul"), Just("[]")].prop_map(str::to_owned),
    ]
}

fn near(line: &[u8], place: Near) -> &str {
    std::str::from_utf8(&line[place.range()]).unwrap()
}

fn is_plain(text: &str) -> bool {
    text.bytes()
        .all(|b| matches!(b, 0x20..=0x7F) && b != b'"' && b != b'\\')
}

/// What [`plain`] does, one byte at a time.
fn plain_by_byte(line: &[u8], start: usize) -> Option<(std::ops::Range<usize>, usize)> {
    let end = start
        + line
            .get(start..)?
            .iter()
            .position(|b| !matches!(b, b' '..=b'!' | b'#'..=b'[' | b']'..=0x7F))?;
    (line[end] == b'"').then_some((start..end, end + 1))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn the_fast_head_is_that_of_a_whole_parse(
        kind in kind(),
        id in text(),
        parent in parent(),
        timestamp in text(),
        tail in prop_oneof![
            Just("}"),
            Just(",\"message\":{\"id\":\"no\",\"type\":\"no\"}}"),
            Just(",\"data\":[1e400,\"}\"]}"),
            Just(" }"),
            Just(",\"torn\":\"x"),
        ],
    ) {
        let line = format!(
            "{{\"type\":\"{kind}\",\"id\":\"{id}\",\"parentId\":{parent},\"timestamp\":\"{timestamp}\"{tail}"
        );
        let line = line.as_bytes();
        let found = fast(line);
        let inner = parent.trim_matches('"');
        let usual = [&*kind, &id, inner, &timestamp].into_iter().all(is_plain)
            && (parent == "null" || parent.starts_with('"'))
            && tail.ends_with('}')
            && !tail.starts_with(' ');
        let length = kind.len() + id.len() + parent.len() + timestamp.len();
        prop_assert!(!usual || length > 190 || found.is_some(), "a usual head is read fast");
        prop_assert!(usual || found.is_none(), "any other is left to the parser");
        if let Some(found) = found {
            let whole = careful(line).unwrap();
            prop_assert_eq!(found.kind, EntryKind::from_type(whole.kind.as_deref().unwrap_or_default().as_bytes()));
            prop_assert_eq!(near(line, found.id), whole.id.unwrap_or(Cow::Borrowed("absent")));
            prop_assert_eq!(near(line, found.parent), whole.parent_id.unwrap_or_default());
            prop_assert_eq!(near(line, found.timestamp), whole.timestamp.unwrap_or(Cow::Borrowed("absent")));
        }
    }

    #[test]
    fn eight_bytes_at_a_time_see_what_one_at_a_time_sees(
        text in prop::collection::vec(prop_oneof![8 => 0x20..=0x7F_u8, 1 => any::<u8>()], 0..64),
        start in 0..20_usize,
    ) {
        prop_assert_eq!(plain(&text, start), plain_by_byte(&text, start));
    }
}

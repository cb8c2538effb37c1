use proptest::prelude::*;
use serde::Deserialize;

use super::*;

/// An anchor, if the whole is one, and its parts.
type Group = (Option<String>, Vec<String>);

/// Values computed by the reference of the ranking, over made-up lines.
#[derive(Deserialize)]
struct Vectors {
    norm: Vec<(String, String)>,
    groups: Vec<(String, Vec<Group>)>,
    plain_words: Vec<(String, Vec<String>)>,
    occurs: Vec<(String, String, bool)>,
}

fn vectors() -> Vectors {
    serde_json::from_str(include_str!("../vectors.json")).unwrap()
}

/// Anchors with the parts that count only while the whole is unknown.
fn groups(line: &str) -> Vec<Group> {
    let mut out: Vec<Group> = Vec::new();
    lex(line, |item| match item {
        Item::Whole(t) | Item::Quoted(t) => out.push((Some(t.to_owned()), vec![])),
        Item::Sub(t) => out.last_mut().unwrap().1.push(t.to_owned()),
        Item::Part(t) => match out.last_mut() {
            Some((None, parts)) => parts.push(t.to_owned()),
            _ => out.push((None, vec![t.to_owned()])),
        },
        Item::Word(_) => {}
    });
    out
}

#[test]
fn anchors_are_those_of_the_reference() {
    for (line, expected) in vectors().groups {
        assert_eq!(groups(&line), expected, "{line}");
    }
}

#[test]
fn plain_words_are_those_of_the_reference() {
    for (line, expected) in vectors().plain_words {
        let mut words = Vec::new();
        lex(&line, |item| {
            if item.is_word() {
                words.push(item.text().to_owned());
            }
        });
        words.dedup();
        assert_eq!(words, expected, "{line}");
    }
}

#[test]
fn anchors_are_looked_up_as_in_the_reference() {
    for (line, expected) in vectors().norm {
        assert_eq!(norm(&line), expected);
    }
    for (anchor, line, expected) in vectors().occurs {
        assert_eq!(occurs(&anchor, &norm(&line)), expected, "{anchor} in {line}");
    }
}

#[test]
fn stop_names_are_no_anchors() {
    assert_eq!(STOP_SET.len(), STOP.len());
    assert_eq!(STOP.iter().map(|s| s.len()).max(), Some(LONGEST_STOP));
    for name in STOP {
        let wholes = groups(&format!("see {name} now")).into_iter().filter_map(|g| g.0);
        assert_eq!(wholes.count(), 0, "{name}");
    }
}

#[test]
fn quotes_reach_sixty_characters() {
    for (content, found) in [
        ("é".repeat(59) + "a", true),
        ("é".repeat(60) + "a", false),
        ("abcdef".to_owned(), false),
        ("ab_cde".to_owned(), false), // an anchor without its quotes
        ("12345a".to_owned(), true),
        ("a b".to_owned(), false),
        ("a b c!".to_owned(), true),
        (" ab cd".to_owned(), false),
        ("ab\\ncd".to_owned(), false),
    ] {
        let line = format!("x = \"{content}\"");
        let mut quoted = false;
        lex(&line, |item| quoted |= item == Item::Quoted(content.as_str()));
        assert_eq!(quoted, found, "{line}");
    }
}

proptest! {
    #[test]
    fn what_is_found_occurs_in_the_line(line in r#"([a-zA-Z0-9_./:"'`\\nré -]{0,40}|.{0,40})"#) {
        let normalised = norm(&line);
        prop_assert_eq!(normalised.len(), line.len());
        lex(&line, |item| {
            assert!(line.contains(item.text()));
            if !matches!(item, Item::Quoted(_)) {
                assert!(normalised.contains(item.text()), "{item:?} in {line:?}");
            }
        });
    }
}

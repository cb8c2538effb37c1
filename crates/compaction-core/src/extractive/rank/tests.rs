use proptest::prelude::*;

use super::*;
use crate::verbatim::{Author, RegionBuilder, SectionKind};

fn region(messages: &[(SectionKind, &str)]) -> Region<'static> {
    let mut b = RegionBuilder::new();
    for (kind, text) in messages {
        b.begin_message(None, Author::Session);
        b.section(*kind, |t| t.push_str(text));
    }
    b.finish().unwrap()
}

fn best(region: &Region<'_>, tail: &str) -> String {
    let first = balanced(region, tail).positions().next().unwrap();
    region.text_at(first).to_owned()
}

#[test]
fn words_of_the_person_come_before_bulk() {
    let region = region(&[
        (SectionKind::User, "never touch the generated files"),
        (SectionKind::ToolResult, "0\n1\n2\n3\n4\n5\n6\n7"),
    ]);
    assert_eq!(best(&region, ""), "[User]: never touch the generated files");
}

#[test]
fn what_the_tail_holds_is_worth_less() {
    let lines = "x\nsee src/parser_one.rs\nsee src/parser_two.rs";
    let region = region(&[
        (SectionKind::ToolResult, lines),
        (SectionKind::ToolResult, "done"),
    ]);
    assert_eq!(
        best(&region, ""),
        "see src/parser_two.rs",
        "ties go to the newest line"
    );
    // The line of the tail gives the message its topic, but its own item is kept already.
    assert_eq!(best(&region, "open src/parser_two.rs"), "see src/parser_one.rs");
}

#[test]
fn only_the_newest_copy_of_a_line_counts() {
    let copy = "error: src/lib_core.rs is broken";
    let text = [copy, "filler", copy].join("\n");
    let region = region(&[
        (SectionKind::User, "hi"),
        (SectionKind::ToolResult, &format!("x\n{text}")),
    ]);
    let order: Vec<usize> = balanced(&region, "").positions().collect();
    let place = |line: usize| order.iter().position(|&l| l == line).unwrap();
    let copies: Vec<usize> = (0..region.line_count())
        .filter(|&l| region.text_at(l) == copy)
        .collect();
    assert!(place(copies[1]) < place(copies[0]));
}

#[test]
fn trusted_markers_are_not_ranked() {
    let region = Region::guessed_from_text("a\n(filtered 1234 lines)\nb").unwrap();
    let mut order: Vec<usize> = balanced(&region, "").positions().collect();
    order.sort_unstable();
    assert_eq!(order, [0, 2]);
    assert_eq!(
        balanced(&RegionBuilder::new().finish().unwrap(), "")
            .positions()
            .len(),
        0
    );
}

proptest! {
    #[test]
    fn every_line_is_ranked_once(
        messages in prop::collection::vec((0usize..4, "([a-z_./:\"0-9 \n]{0,60}|.{0,20})"), 0..8),
        tail in "[a-z_./ \n]{0,40}",
    ) {
        let kinds =
            [SectionKind::User, SectionKind::Assistant, SectionKind::AssistantThinking, SectionKind::ToolResult];
        let messages: Vec<_> = messages.iter().map(|(k, t)| (kinds[*k], t.as_str())).collect();
        let region = region(&messages);
        let ranking = balanced(&region, &tail);
        let mut order: Vec<usize> = ranking.positions().collect();
        order.sort_unstable();
        prop_assert_eq!(order, (0..region.line_count()).collect::<Vec<_>>());
        prop_assert_eq!(balanced(&region, &tail), ranking);
    }
}

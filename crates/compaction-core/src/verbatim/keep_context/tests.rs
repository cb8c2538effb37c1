use super::*;
use crate::verbatim::{Author, RegionBuilder};

fn spans(set: &LineSet) -> Vec<(u32, u32)> {
    set.ranges()
        .iter()
        .map(|r| (r.start().get(), r.end().get()))
        .collect()
}

#[test]
fn an_open_span_ends_with_its_section_and_takes_the_blank_line() {
    let mut b = RegionBuilder::new();
    b.begin_message(None, Author::Session);
    b.section(SectionKind::User, |t| t.push_str("<keepContext>\nrule"));
    b.section(SectionKind::User, |t| t.push_str("more"));
    b.begin_message(None, Author::Session);
    b.section(SectionKind::Assistant, |t| t.push_str("ok\n</keepContext>"));
    let region = b.finish().unwrap();
    assert_eq!(
        region.text(),
        "[User]: <keepContext>\nrule\n\n[User]: more\n\n[Assistant]: ok\n</keepContext>"
    );
    assert_eq!(spans(region.protected()), [(1, 3)]);
}

#[test]
fn the_glance_misses_no_tag() {
    let tags = ["<keepContext>", "</KEEPCONTEXT>", "  <keepcontext>\t "];
    // Blanks of another script count as blanks of a line too.
    let ends = ["", " ", "  ", "\r", "\u{a0}", "\u{3000} "];
    let others = ["", " ", "a", "a ", "\u{e9}", ">", "x>  ", "t>", "keepContext> x"];
    for tag_line in tags.iter().flat_map(|t| ends.map(|end| format!("{t}{end}"))) {
        for above in others {
            let text = format!("{above}\n{tag_line}\n{above}");
            let start = above.len() + 1;
            let line = start..start + tag_line.len();
            assert!(tag(&tag_line).is_some(), "{tag_line:?}");
            assert!(may_be_tag(&text, line), "{text:?}");
        }
    }
    // Lines of a text that are no tags, whatever stands above them.
    for (text, line) in [
        ("", 0..0),
        ("a\n", 2..2),
        ("a>\n\n", 3..3),
        ("t>\n \n", 3..4),
        ("x y ", 0..4),
    ] {
        assert!(!may_be_tag(text, line), "{text:?}");
    }
}

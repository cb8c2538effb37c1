use super::*;
use crate::verbatim::{RawRange, ValidatedRanges, reconstruct};

fn parts(region: &Region<'_>) -> Vec<(String, SectionKind, LinePart, usize)> {
    region
        .lines()
        .map(|l| (l.text.to_owned(), l.kind, l.part, l.message.index()))
        .collect()
}

#[test]
fn sections_are_joined_by_a_blank_line_and_know_their_message() {
    use LinePart::{Content, Header, Separator};
    use SectionKind::{Assistant, ToolResult, User};
    let mut b = RegionBuilder::new();
    b.begin_message(Some("u1".into()), Author::Session);
    b.section(SectionKind::User, |t| t.push_str("fix\nit"));
    b.begin_message(Some("a1".into()), Author::Session);
    b.section(SectionKind::AssistantThinking, |_| ());
    b.section(SectionKind::Assistant, |t| t.push_str("ok"));
    b.begin_message(Some("r1".into()), Author::Session);
    b.section(SectionKind::ToolResult, |t| {
        t.push_str("(filtered 9 lines)\n[User]: hi");
    });
    let region = b.finish().unwrap();
    assert_eq!(
        region.text(),
        "[User]: fix\nit\n\n[Assistant]: ok\n\n[Tool result]: (filtered 9 lines)\n[User]: hi"
    );
    let expected = [
        ("[User]: fix", User, Header, 0),
        ("it", User, Content, 0),
        ("", Assistant, Separator, 1),
        ("[Assistant]: ok", Assistant, Header, 1),
        ("", ToolResult, Separator, 2),
        ("[Tool result]: (filtered 9 lines)", ToolResult, Header, 2),
        ("[User]: hi", ToolResult, Content, 2),
    ];
    assert_eq!(
        parts(&region),
        expected.map(|(t, k, p, m)| (t.to_owned(), k, p, m))
    );
    let headers: Vec<u32> = region.header_lines().map(LineNumber::get).collect();
    assert_eq!(headers, [1, 4, 6]);
    assert_eq!(region.messages().len(), 3);
    assert_eq!(region.line_count(), 7);
}

#[test]
fn lines_end_at_newlines_and_nowhere_else() {
    for (text, lines) in [
        ("", vec![""]),
        ("a\r\nb", vec!["a\r", "b"]),
        (
            "a\rb\u{2028}c\u{85}d\u{b}e\u{c}f\0g",
            vec!["a\rb\u{2028}c\u{85}d\u{b}e\u{c}f\0g"],
        ),
        ("a\n", vec!["a", ""]),
        ("\n\n", vec!["", "", ""]),
    ] {
        let region = Region::guessed_from_text(text).unwrap();
        let found: Vec<&str> = region.lines().map(|l| l.text).collect();
        assert_eq!(found, lines);
        assert_eq!(region.line_text(LineNumber::FIRST), lines[0]);
        assert_eq!(region.line_text(LineNumber::from_index(lines.len())), "");
    }
}

#[test]
fn a_region_without_sections_has_no_lines() {
    let mut b = RegionBuilder::new();
    b.begin_message(None, Author::Session);
    b.section(SectionKind::ToolResult, |_| ());
    b.earlier("", EarlierOrigin::Unknown).unwrap();
    let region = b.finish().unwrap();
    assert_eq!(
        (region.line_count(), region.text(), region.messages().len()),
        (0, "", 1)
    );
    let none = ValidatedRanges::validate([RawRange { start: 1, end: 5 }], 0, region.protected());
    assert_eq!(reconstruct(&region, &none).into_text(), "");
}

#[test]
fn bare_text_shows_headers_and_markers_to_whoever_believes_it() {
    let region =
        Region::guessed_from_text("(filtered 12 lines)\nx\n[User]:no\n[Tool result]: y\n(filtered 3 lines)");
    let region = region.unwrap();
    let headers: Vec<u32> = region.header_lines().map(LineNumber::get).collect();
    assert_eq!(headers, [4]);
    let markers: Vec<_> = region.markers().iter().map(|(l, n)| (l.get(), *n)).collect();
    assert_eq!(markers, [(1, 12), (5, 3)]);
    assert!(region.lines().all(|l| l.author == Author::Synthetic));
}

#[test]
fn earlier_text_is_believed_as_far_as_its_origin_goes() {
    let text = "[User]: a\n(filtered 7 lines)\n<keepContext>\nz";
    let build = |origin| {
        let mut b = RegionBuilder::new();
        b.earlier(text, origin).unwrap();
        b.begin_message(Some("u".into()), Author::Session);
        b.section(SectionKind::User, |t| t.push_str("new"));
        b.finish().unwrap()
    };
    let unknown = build(EarlierOrigin::Unknown);
    assert_eq!(
        unknown.text(),
        format!("{text}\n[User]: new"),
        "joined by one newline"
    );
    assert!(unknown.markers().is_empty());
    assert!(
        unknown
            .lines()
            .take(4)
            .all(|l| l.kind == SectionKind::Earlier && l.part == LinePart::Content)
    );

    let foreign = build(EarlierOrigin::ForeignVerbatim);
    assert_eq!(foreign.markers().len(), 1);
    let first = foreign.lines().next().unwrap();
    assert_eq!((first.kind, first.author), (SectionKind::User, Author::Synthetic));
    assert_eq!(foreign.protected().line_count(), 2);
    let last = foreign.lines().last().unwrap();
    assert_eq!(
        (last.kind, last.author, last.part),
        (SectionKind::User, Author::Session, LinePart::Header)
    );
}

#[test]
fn section_text_can_be_read_and_cut_at_character_borders() {
    use std::fmt::Write as _;
    let mut b = RegionBuilder::new();
    b.section(SectionKind::ToolResult, |t| {
        t.push_str("aé");
        write!(t, "{}", 7).unwrap();
        assert_eq!(t.as_str(), "aé7");
        t.truncate(2);
        assert_eq!(t.as_str(), "a");
        t.truncate(99);
    });
    assert_eq!(b.finish().unwrap().text(), "[Tool result]: a");
}

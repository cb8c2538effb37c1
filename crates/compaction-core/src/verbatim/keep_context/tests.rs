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

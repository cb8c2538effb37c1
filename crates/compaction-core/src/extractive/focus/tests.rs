use super::*;
use crate::verbatim::{RegionBuilder, SectionKind};

fn region(texts: &[&str]) -> Region<'static> {
    let mut b = RegionBuilder::new();
    for text in texts {
        b.begin_message(None, Author::Session);
        b.section(SectionKind::ToolResult, |t| t.push_str(text));
    }
    b.finish().unwrap()
}

fn found(texts: &[&str], focus: &str) -> Vec<String> {
    let region = region(texts);
    let found = lines(&region, focus);
    found
        .iter()
        .map(|line| region.text_at(*line).to_owned())
        .collect()
}

#[test]
fn more_and_rarer_terms_come_first_then_the_newest() {
    let texts = [
        "head\nold quota check\nplain",
        "head\nthe QuotaMeter of a tenant\nquota check again",
    ];
    assert_eq!(
        found(&texts, "tenant quota"),
        [
            "the QuotaMeter of a tenant",
            "quota check again",
            "old quota check"
        ]
    );
}

#[test]
fn of_equal_lines_the_newest_counts_and_common_terms_count_nothing() {
    let many = format!("head\n{}quota", "checked ok\n".repeat(60));
    assert_eq!(found(&[&many, "head\nquota"], "quota"), ["quota"]);
    assert_eq!(found(&[&many], "checked"), [""; 0]);
    assert_eq!(found(&[&many], ""), [""; 0]);
}

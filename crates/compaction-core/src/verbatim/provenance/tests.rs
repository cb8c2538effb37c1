use proptest::prelude::*;

use super::*;
use crate::verbatim::{EarlierOrigin, RawRange, Region, RegionBuilder, ValidatedRanges, reconstruct};

const KINDS: [SectionKind; 5] = [
    SectionKind::User,
    SectionKind::AssistantThinking,
    SectionKind::Assistant,
    SectionKind::ToolCalls,
    SectionKind::ToolResult,
];

/// Texts with everything that could be taken for ours.
fn content() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        Just("(filtered 3 lines)".to_owned()),
        Just("[User]: x".to_owned()),
        Just("<keepContext>".to_owned()),
        Just("</keepContext>".to_owned()),
        Just(String::new()),
        "[a-zé]{1,6}",
    ];
    prop::collection::vec(line, 1..6).prop_map(|l| l.join("\n"))
}

type Messages = Vec<(bool, Vec<(usize, String)>)>;

fn messages() -> impl Strategy<Value = Messages> {
    prop::collection::vec(
        (any::<bool>(), prop::collection::vec((0usize..5, content()), 0..3)),
        0..6,
    )
}

fn add(b: &mut RegionBuilder, name: &str, messages: &Messages) {
    for (i, (person, sections)) in messages.iter().enumerate() {
        let author = if *person {
            Author::Session
        } else {
            Author::Synthetic
        };
        b.begin_message(Some(format!("{name}{i}").into()), author);
        let mut sections = sections.clone();
        sections.sort_by_key(|s| s.0);
        sections.dedup_by_key(|s| s.0);
        for (kind, text) in sections {
            b.section(KINDS[kind], |t| t.push_str(&text));
        }
    }
}

/// What must survive of a line: everything but its number and the position of its message.
fn data(region: &Region<'_>) -> Vec<(String, SectionKind, LinePart, Option<EntryId>, bool, bool)> {
    let line = |l: Line<'_>| {
        let message = &region.messages()[l.message.index()];
        let person = l.kind == SectionKind::User && message.author == Author::Session;
        match l.part {
            // A marker carries its count and nothing else.
            LinePart::Marker(_) => (
                l.text.to_owned(),
                SectionKind::Earlier,
                l.part,
                None,
                false,
                l.protected,
            ),
            _ => (
                l.text.to_owned(),
                l.kind,
                l.part,
                message.origin.clone(),
                person,
                l.protected,
            ),
        }
    };
    region.lines().map(line).collect()
}

fn expanded(region: &Region<'_>) -> u64 {
    region
        .lines()
        .map(|l| if let LinePart::Marker(n) = l.part { n } else { 1 })
        .sum()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn lines_keep_their_data_over_compactions(
        rounds in prop::collection::vec((messages(), prop::collection::vec((0u64..40, 0u64..6), 0..5)), 1..5),
    ) {
        let mut earlier: Option<(String, String)> = None;
        let mut ever = 0;
        for (round, (messages, records)) in rounds.iter().enumerate() {
            let mut b = RegionBuilder::new();
            let before = if let Some((text, json)) = &earlier {
                let record: Provenance = serde_json::from_str(json).unwrap();
                prop_assert_eq!(b.earlier(text, EarlierOrigin::Recorded(&record)), Ok(()));
                text.split('\n').count() * usize::from(!text.is_empty())
            } else { 0 };
            add(&mut b, &format!("r{round}m"), messages);
            let region = b.finish().unwrap();
            ever += (region.line_count() - before) as u64;
            prop_assert_eq!(expanded(&region), ever, "markers and kept lines are all lines ever seen");

            let records = records.iter().map(|&(start, n)| RawRange { start, end: start + n });
            let ranges = ValidatedRanges::validate(records, region.line_count(), region.protected());
            let out = reconstruct(&region, &ranges);
            let survivors = {
                let deleted: LineSet = out.ranges().collect();
                let all = data(&region);
                region.lines().zip(all).filter(|(l, _)| !deleted.contains(l.number)).map(|(_, d)| d).collect::<Vec<_>>()
            };
            let record = out.provenance();
            let json = serde_json::to_string(&record).unwrap();
            prop_assert_eq!(&serde_json::from_str::<Provenance>(&json).unwrap(), &record);

            let mut b = RegionBuilder::new();
            prop_assert_eq!(b.earlier(out.text(), EarlierOrigin::Recorded(&record)), Ok(()));
            let again = b.finish().unwrap();
            prop_assert_eq!(again.text(), out.text());
            let mut rest = survivors.iter();
            let mut next = rest.next();
            for line in data(&again) {
                if Some(&line) == next {
                    next = rest.next();
                } else {
                    prop_assert!(matches!(line.2, LinePart::Marker(_)), "neither survivor nor new marker: {:?}", line);
                }
            }
            prop_assert_eq!(next, None, "a survivor lost its data");
            for span in out.kept_ranges().ranges() {
                for index in span.indices() {
                    prop_assert!(out.text().contains(region.text_at(index)));
                }
            }
            earlier = Some((out.into_text(), json));
        }
    }

    #[test]
    fn hostile_records_are_refused_or_fit(
        text in content(),
        sections in prop::collection::vec((0u32..4, prop_oneof![Just('U'), Just('R'), Just('E'), Just('x')], 0u8..5), 0..4),
        markers in prop::collection::vec(prop_oneof![0u32..4, Just(u32::MAX)], 0..3),
        protected in prop::collection::vec(prop_oneof![0u32..4, Just(u32::MAX)], 0..4),
    ) {
        let sections = sections.into_iter().map(|(n, kind, lead)| Run(n, kind, None, lead)).collect();
        let record = Provenance { sections, markers, protected };
        let mut b = RegionBuilder::new();
        let fits = b.earlier(&text, EarlierOrigin::Recorded(&record)).is_ok() && !text.is_empty();
        let region = b.finish().unwrap();
        prop_assert_eq!(region.text(), &text);
        if !fits {
            prop_assert!(region.markers().is_empty());
            prop_assert!(region.lines().all(|l| l.kind == SectionKind::Earlier && l.part == LinePart::Content));
        }
    }
}

#[test]
fn records_are_compact_and_checked() {
    let mut b = RegionBuilder::new();
    b.begin_message(Some("u1".into()), Author::Session);
    b.section(SectionKind::User, |t| t.push_str("a\nb\nc"));
    b.begin_message(Some("r1".into()), Author::Session);
    b.section(SectionKind::ToolResult, |t| t.push_str("1\n2\n3\n4"));
    let region = b.finish().unwrap();
    let ranges = ValidatedRanges::validate(
        [RawRange { start: 2, end: 3 }, RawRange { start: 6, end: 7 }],
        region.line_count(),
        region.protected(),
    );
    let out = reconstruct(&region, &ranges);
    assert_eq!(
        out.text(),
        "[User]: a\n(filtered 2 lines)\n\n[Tool result]: 1\n(filtered 2 lines)\n4"
    );
    let json = serde_json::to_string(&out.provenance()).unwrap();
    assert_eq!(
        json,
        r#"{"sections":[[2,"U","u1",1],[4,"R","r1",3]],"markers":[2,3]}"#
    );

    let check = |json: &str| {
        let record: Provenance = serde_json::from_str(json).unwrap();
        record.apply(out.text()).map(|_| ())
    };
    let at = |n: usize| LineNumber::from_index(n - 1);
    assert_eq!(check(&json), Ok(()));
    for (json, error) in [
        (r#"{"sections":[[6,"U",null,1]]}"#, Ok(())),
        (
            r#"{"sections":[[5,"U",null,1]]}"#,
            Err(ProvenanceError::LineCount {
                recorded: 5,
                actual: 6,
            }),
        ),
        (
            r#"{"sections":[[6,"E",null,0],[0,"E",null,0]]}"#,
            Err(ProvenanceError::LineCount {
                recorded: 6,
                actual: 6,
            }),
        ),
        (
            r#"{"sections":[[6,"Z",null,0]]}"#,
            Err(ProvenanceError::UnknownSection { line: at(1) }),
        ),
        (
            r#"{"sections":[[6,"E",null,1]]}"#,
            Err(ProvenanceError::UnknownSection { line: at(1) }),
        ),
        (
            r#"{"sections":[[6,"U",null,4]]}"#,
            Err(ProvenanceError::UnknownSection { line: at(1) }),
        ),
        (
            r#"{"sections":[[6,"R",null,1]]}"#,
            Err(ProvenanceError::Content { line: at(1) }),
        ),
        (
            r#"{"sections":[[2,"U",null,1],[4,"R",null,1]]}"#,
            Err(ProvenanceError::Content { line: at(3) }),
        ),
        (
            r#"{"sections":[[2,"U",null,1],[1,"R",null,3],[3,"R",null,0]]}"#,
            Err(ProvenanceError::Content { line: at(4) }),
        ),
        (
            r#"{"sections":[[6,"U",null,1]],"markers":[1]}"#,
            Err(ProvenanceError::Content { line: at(1) }),
        ),
        (
            r#"{"sections":[[6,"U",null,1]],"markers":[2,0]}"#,
            Err(ProvenanceError::Position),
        ),
        (
            r#"{"sections":[[6,"U",null,1]],"markers":[2,9]}"#,
            Err(ProvenanceError::Position),
        ),
        (
            r#"{"sections":[[6,"U",null,1]],"markers":[2,4294967295]}"#,
            Err(ProvenanceError::Position),
        ),
        (
            r#"{"sections":[[6,"U",null,1]],"protected":[4,3]}"#,
            Err(ProvenanceError::Position),
        ),
        (
            r#"{"sections":[[6,"U",null,1]],"protected":[4]}"#,
            Err(ProvenanceError::Position),
        ),
        (
            r#"{"sections":[[6,"U",null,1]],"protected":[4,0]}"#,
            Err(ProvenanceError::Position),
        ),
    ] {
        assert_eq!(check(json), error, "{json}");
    }
}

//! Where the region ends and the tail begins (spec "Verbatim", sections 4 to 6 and 21).

use foldline_compaction_core::verbatim::{
    Author, LineRange, LineSet, Nothing, ParameterLayer, Parameters, RawRange, Region, RegionBuilder,
    SectionKind, ValidatedRanges, parse_records, reconstruct, recover_records,
};
use foldline_session_model::LineNumber;
use foldline_session_model::tokens::{Heuristic, TokenCounter as _};

use super::support::{
    Session, assistant, call, deleting, finished, lines, prepared, prepared_small, result, user,
};

/// First and last lines.
type Spans = Vec<(u32, u32)>;

fn spans(lines: &LineSet) -> Spans {
    lines
        .ranges()
        .iter()
        .map(|r| (r.start().get(), r.end().get()))
        .collect()
}

fn span(start: u32, end: u32) -> LineRange {
    LineRange::new(LineNumber::new(start).unwrap(), LineNumber::new(end).unwrap()).unwrap()
}

/// Deletes records from a bare text. Returns the text, what was deleted, and what is protected.
fn delete(text: &str, records: &str) -> (String, Spans, Spans) {
    let region = Region::guessed_from_text(text).unwrap();
    let records = parse_records(records).unwrap();
    let ranges = ValidatedRanges::validate(records, region.line_count(), region.protected());
    let out = reconstruct(&region, &ranges);
    let deleted = out.ranges().map(|r| (r.start().get(), r.end().get())).collect();
    let kept = spans(out.kept_ranges());
    (out.into_text(), deleted, kept)
}

#[test]
fn headers_and_blank_lines_are_ordinary_lines_and_spans_are_not() {
    let text = "one\n[User]: task\nthree\n\n[Assistant]: ok\nsix";
    assert_eq!(
        delete(text, "1,6"),
        ("(filtered 6 lines)".into(), vec![(1, 6)], vec![])
    );
    let (text, deleted, _) = delete("noise\n<keepContext>\nx\n</keepContext>\nmore", "1,5");
    assert_eq!(
        text,
        "(filtered 1 lines)\n<keepContext>\nx\n</keepContext>\n(filtered 1 lines)"
    );
    assert_eq!(deleted, [(1, 1), (5, 5)]);
    let (_, _, kept) = delete("[User]: <keepContext>\nrule\n</keepContext>\nt\nt", "1,5");
    assert_eq!(kept, [(1, 3)]);
}

/// An API may protect lines besides those that the text does.
#[test]
fn explicit_spans_join_the_detected_ones() {
    let text = "a\n<keepContext>\nb\n</keepContext>\nc\nd";
    let region = Region::guessed_from_text(text)
        .unwrap()
        .protect([span(5, 5), span(9, 12)]);
    assert_eq!(
        spans(region.protected()),
        [(2, 5)],
        "lines outside of the region are ignored"
    );
}

/// A fresh line that looks like a marker counts for one line.
#[test]
fn a_fresh_look_alike_counts_for_one_line() {
    let mut builder = RegionBuilder::new();
    builder.begin_message(None, Author::Session);
    builder.section(SectionKind::ToolResult, |text| {
        text.push_str("a\nb\n(filtered 1000000 lines)\nc\nd");
    });
    let region = builder.finish().unwrap();
    for (records, expected) in [
        (
            [(2, 2), (4, 4)],
            "[Tool result]: a\n(filtered 1 lines)\n(filtered 1000000 lines)\n(filtered 1 lines)\nd",
        ),
        ([(2, 4), (2, 4)], "[Tool result]: a\n(filtered 3 lines)\nd"),
    ] {
        let records = records.map(|(start, end)| RawRange { start, end });
        let ranges = ValidatedRanges::validate(records, region.line_count(), region.protected());
        assert_eq!(reconstruct(&region, &ranges).text(), expected);
    }
}

#[test]
fn a_record_that_is_cut_off_costs_itself_only() {
    let records: String = (1..=50).map(|i| format!("{},{}\n", 10 * i, 10 * i + 5)).collect();
    let cut = format!("{records}505,");
    assert!(parse_records(&cut).is_err());
    assert_eq!(recover_records(&cut).unwrap(), parse_records(&records).unwrap());
}

#[test]
fn the_region_has_all_but_the_newest_visible_messages() {
    let mut session = Session::of(&[
        user("task"),             // m0
        call("c1", "read", "{}"), // m1
        result("c1", &lines(30)), // m2
        user("next"),             // m3
        assistant("ok"),          // m4
        call("c2", "read", "{}"), // m5
        result("c2", "x"),        // m6
    ]);
    session.entry(
        "custom_message",
        r#""customType":"note","content":"seen","display":false,"excludeFromContext":true"#,
    );
    session.entry("label", r#""targetId":"m0","label":"start""#);
    session.message(&assistant("done")); // m9
    let context = session.context();
    for (preserve, first, region) in [
        (2, Some("m6"), vec!["m0", "m1", "m2", "m3", "m4", "m5"]),
        (3, Some("m5"), vec!["m0", "m1", "m2", "m3", "m4"]),
        (
            0,
            None,
            vec!["m0", "m1", "m2", "m3", "m4", "m5", "m6", "m7", "m9"],
        ),
    ] {
        let preparation = prepared(&context, preserve).unwrap();
        let found = preparation.first_kept();
        assert_eq!(
            found.as_ref().map(foldline_session_model::EntryId::as_str),
            first,
            "{preserve}"
        );
        let entries: Vec<&str> = preparation
            .compacted_entries()
            .map(|ix| session.log.id(ix))
            .collect();
        assert_eq!(entries, region, "{preserve}");
        let rebuilt: u64 = context.messages().map(|m| Heuristic.message(m).get()).sum();
        assert_eq!(preparation.tokens_before().get(), rebuilt);
    }
    assert_eq!(
        prepared(&context, 100).unwrap_err(),
        Nothing::OnlyTail { messages: 8 }
    );
}

#[test]
fn twenty_lines_are_enough_and_nineteen_are_not() {
    for (count, taken) in [(19, false), (20, true)] {
        let session = Session::of(&[user(&lines(count)), user("x"), user("y")]);
        let context = session.context();
        match prepared(&context, 2) {
            Ok(preparation) => assert_eq!((preparation.region().line_count(), taken), (count, true)),
            Err(nothing) => assert_eq!((nothing, taken), (Nothing::TooSmall { lines: count }, false)),
        }
    }
}

/// Every result of the tail is in the tail, and every line of the region in the region, also where the cut falls
/// between a call and its results (section 20, row 1).
#[test]
fn no_result_falls_between_region_and_tail() {
    let session = Session::of(&[
        user(&lines(30)),
        r#"{"role":"assistant","stopReason":"toolUse","content":[{"type":"toolCall","id":"a","name":"read","arguments":{"path":"a"}},{"type":"toolCall","id":"b","name":"read","arguments":{"path":"b"}},{"type":"toolCall","id":"c","name":"read","arguments":{"path":"c"}}]}"#.to_owned(),
        result("a", "first result"),
        result("b", "second result"),
        result("c", "third result"),
        assistant("read all"),
    ]);
    let context = session.context();
    for preserve in 0..=5 {
        let preparation = prepared_small(&context, preserve);
        let (region, tail) = (preparation.region().text(), preparation.tail_text());
        for text in [
            "first result",
            "second result",
            "third result",
            "read all",
            "line 30",
        ] {
            assert_eq!(
                (region.contains(text), tail.contains(text)),
                (!tail.contains(text), !region.contains(text)),
                "{text:?} is on one side with {preserve} messages kept"
            );
        }
    }
}

#[test]
fn the_earlier_text_is_prepended_raw() {
    let mut session = Session::of(&[user(&lines(40)), user("task 0"), assistant("did it")]);
    let compaction = {
        let context = session.context();
        let preparation = prepared(&context, 1).unwrap();
        finished(&preparation, &deleting(&preparation, &[(2, 30)])).unwrap()
    };
    session.commit(&compaction);
    session.message(&user("new"));
    session.message(&assistant("newer"));
    let context = session.context();
    let preparation = prepared_small(&context, 1);
    let text = preparation.region().text();
    assert!(text.starts_with(&format!(
        "{}\n[Assistant]: did it\n\n[User]: new",
        compaction.draft.summary
    )));
    assert!(text.starts_with("[User]: line 1\n(filtered 29 lines)\nline 31\n"));
}

#[test]
fn the_focus_is_the_newest_words_of_the_user() {
    let picture = r#"{"role":"user","content":[{"type":"image","data":"AA==","mimeType":"image/png"}]}"#;
    for (messages, focus) in [
        (vec![user("first"), user("  second \n")], "second"),
        (vec![user("first"), assistant("a"), picture.to_owned()], "first"),
        (vec![picture.to_owned()], "the latest user request"),
        (vec![user("  "), assistant("a")], "the latest user request"),
    ] {
        let session = Session::of(&messages);
        let newest = session.context().last_user_text();
        let (parameters, bad) = Parameters::merge(&[ParameterLayer::default()], newest.as_deref());
        assert_eq!((parameters.query.as_str(), bad.len()), (focus, 0));
    }
    // What the user wants was said before a compaction that left nothing but the agent's words.
    let mut session = Session::of(&[user("the wish"), assistant("a")]);
    session.entry(
        "compaction",
        r#""summary":"a line","firstKeptEntryId":"m1","tokensBefore":9,"details":{"strategy":"verbatim-lines"}"#,
    );
    assert_eq!(session.context().last_user_text().as_deref(), Some("the wish"));
}

#[test]
fn fb_143_cut_answers_lose_their_last_record_and_odd_ones_are_put_in_order() {
    let text = ["line"; 1_000].join("\n");
    let region = Region::guessed_from_text(&text).unwrap();
    let lines = |records: Vec<RawRange>| -> Vec<String> {
        let ranges = ValidatedRanges::validate(records, region.line_count(), region.protected());
        let shown = ranges.ranges().iter();
        shown.map(|r| format!("{}-{}", r.start(), r.end())).collect()
    };
    // Cut by the output limit.
    assert_eq!(
        recover_records("120,180\n6,40\n300,30").map(lines).unwrap(),
        ["6-40", "120-180"]
    );
    assert!(recover_records("120,180\nfoo\n").is_err());
    assert!(recover_records("300,305").is_err());
    // Whole.
    assert_eq!(
        parse_records("40,6\n990,5000\n41,50\n0,3").map(lines).unwrap(),
        ["1-3", "6-50", "990-1000"]
    );
    for nothing in ["5000,6000", "0,0"] {
        assert_eq!(parse_records(nothing).map(lines).unwrap(), [""; 0], "{nothing}");
    }
    for malformed in ["[1,2]", "1 - 2", "+1,2", "1,2,3", "-1,2", ""] {
        assert!(parse_records(malformed).is_err(), "{malformed}");
    }
}

#[test]
fn fb_145_what_is_kept_is_kept_to_the_byte_and_a_look_alike_is_a_line() {
    let lines = [
        "tab\there",
        "blanks at the end   ",
        "N→ prefix",
        "a\u{2028}b",
        "cr\r",
        "x",
        "(filtered 7 lines)",
        "y",
        "",
        "last",
    ];
    let mut builder = RegionBuilder::new();
    builder.begin_message(None, Author::Session);
    builder.section(SectionKind::User, |text| text.push_str(&lines.join("\n")));
    let region = builder.finish().unwrap();
    let kept = |start, end| {
        let ranges =
            ValidatedRanges::validate([RawRange { start, end }], region.line_count(), region.protected());
        reconstruct(&region, &ranges).into_text()
    };
    assert_eq!(
        kept(6, 8),
        "[User]: tab\there\nblanks at the end   \nN→ prefix\na\u{2028}b\ncr\r\n(filtered 3 lines)\n\nlast"
    );
}

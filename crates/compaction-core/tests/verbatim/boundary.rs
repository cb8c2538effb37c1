//! Rows "Boundary" (spec "Verbatim", sections 5.4, 6, 7 and 21): where the region ends and the tail begins, and what is
//! asked for.

use foldline_compaction_core::verbatim::{
    Author, DEFAULT_QUERY, Nothing, ParameterLayer, Parameters, RawRange, Region, RegionBuilder, SectionKind,
    SmallRegion, ValidatedRanges, parse_records, prepare, reconstruct, recover_records,
};
use foldline_session_model::EntryId;
use foldline_session_model::model_call::StopReason;
use foldline_session_model::tokens::{Heuristic, TokenCounter as _};

use super::support::{
    Session, ask_once, assistant, call, deleting, finished, json, lines, prepared, prepared_small, reply,
    result, secret, user,
};

/// Rows "preserve 0: first null, all ids in the region", "default and 2: first `m6` although it is a tool result, a
/// hidden custom entry between is not counted", "tokensBefore is the estimate of the rebuilt context".
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
        assert_eq!(found.as_ref().map(EntryId::as_str), first, "{preserve}");
        let entries: Vec<&str> = preparation
            .compacted_entries()
            .map(|ix| session.log.id(ix))
            .collect();
        assert_eq!(entries, region, "{preserve}");
        let rebuilt: u64 = context.messages().map(|m| Heuristic.message(m).get()).sum();
        assert_eq!(preparation.tokens_before().get(), rebuilt);
    }
    assert_eq!(Parameters::with_query("q").preserve_recent, 2, "the default");
    assert_eq!(
        prepared(&context, 100).unwrap_err(),
        Nothing::OnlyTail { messages: 8 }
    );
}

/// Row "three short messages are refused"; where the context must shrink they are taken.
#[test]
fn three_short_messages_are_refused() {
    let session = Session::of(&[user("a"), assistant("b"), user("c")]);
    let context = session.context();
    assert_eq!(prepared(&context, 2).unwrap_err(), Nothing::TooSmall { lines: 1 });
    assert_eq!(prepared_small(&context, 2).region().text(), "[User]: a");
}

/// Row "one message of 20 lines is accepted, 19 are refused".
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

/// Row "the previous summary is prepended raw as the first lines".
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

/// Rows "ratio, preserve and query tables of section 7". A value that is not taken leaves the configured one, and is
/// told (section 20, row 10).
#[test]
fn rows_of_parameters() {
    let configured = ParameterLayer {
        ratio: Some(0.3),
        preserve_recent: Some(5.0),
        query: Some("the configured focus".to_owned()),
        budget: None,
    };
    let ratio = |value| ParameterLayer {
        ratio: Some(value),
        ..ParameterLayer::default()
    };
    let preserve = |value| ParameterLayer {
        preserve_recent: Some(value),
        ..ParameterLayer::default()
    };
    let query = |text: &str| ParameterLayer {
        query: Some(text.to_owned()),
        ..ParameterLayer::default()
    };
    let focus = "the configured focus";
    for (row, option, expected, told) in [
        ("no option", ParameterLayer::default(), (0.3, 5, focus), None),
        ("ratio 0.7", ratio(0.7), (0.7, 5, focus), None),
        ("ratio 0.01", ratio(0.01), (0.01, 5, focus), None),
        ("ratio 0", ratio(0.0), (0.3, 5, focus), Some("compression_ratio")),
        ("ratio 1", ratio(1.0), (0.3, 5, focus), Some("compression_ratio")),
        (
            "ratio -0.5",
            ratio(-0.5),
            (0.3, 5, focus),
            Some("compression_ratio"),
        ),
        (
            "ratio NaN",
            ratio(f64::NAN),
            (0.3, 5, focus),
            Some("compression_ratio"),
        ),
        (
            "ratio Infinity",
            ratio(f64::INFINITY),
            (0.3, 5, focus),
            Some("compression_ratio"),
        ),
        ("preserve 0", preserve(0.0), (0.3, 0, focus), None),
        ("preserve 1.9", preserve(1.9), (0.3, 1, focus), None),
        ("preserve -3", preserve(-3.0), (0.3, 0, focus), None),
        ("preserve 1e300", preserve(1e300), (0.3, usize::MAX, focus), None),
        (
            "preserve NaN",
            preserve(f64::NAN),
            (0.3, 5, focus),
            Some("preserve_recent"),
        ),
        (
            "preserve Infinity",
            preserve(f64::INFINITY),
            (0.3, 5, focus),
            Some("preserve_recent"),
        ),
        (
            "query with blanks around",
            query("  fix it \n"),
            (0.3, 5, "fix it"),
            None,
        ),
        ("query of blanks", query(" \n\t"), (0.3, 5, focus), None),
    ] {
        let (merged, bad) = Parameters::merge(&[configured.clone(), option], Some("said last"));
        let found = (merged.ratio.get(), merged.preserve_recent, merged.query.as_str());
        assert_eq!(found, expected, "{row}");
        assert_eq!(bad.first().map(|bad| bad.name), told, "{row}");
        // What is merged is as it was if it is merged again.
        let again = ParameterLayer {
            ratio: Some(merged.ratio.get()),
            preserve_recent: Some(merged.preserve_recent as f64),
            query: Some(merged.query.clone()),
            budget: None,
        };
        assert_eq!(Parameters::merge(&[again], None), (merged, Vec::new()), "{row}");
    }
    for (row, last, expected) in [
        (
            "no query: what the user said last",
            Some(" said last "),
            "said last",
        ),
        ("no query, nothing said", Some("  "), DEFAULT_QUERY),
        ("no query, no user", None, "the latest user request"),
    ] {
        let (merged, bad) = Parameters::merge(&[], last);
        assert_eq!((&*merged.query, bad.len()), (expected, 0), "{row}");
        assert_eq!((merged.ratio.get(), merged.preserve_recent), (0.5, 2), "{row}");
    }
}

/// Row "a query of more than 10,000 characters": its beginning and its end are in the request, and what was left out is
/// said (section 20, row 14).
#[test]
fn a_query_of_more_than_10000_characters_is_cut_in_the_middle() {
    let mut session = Session::of(&[user(&lines(30)), assistant("a")]);
    session.message(&user(&format!(
        "</focus> begin {}{} end",
        "b".repeat(6_000),
        "e".repeat(6_000)
    )));
    let context = session.context();
    let newest = context.last_user_text();
    let (parameters, _) = Parameters::merge(&[], newest.as_deref());
    assert_eq!(parameters.query.len(), 12_019);
    let preparation = prepare(&context, parameters, SmallRegion::Refuse, &Heuristic).unwrap();
    let climbed = ask_once(&preparation, &reply("2,20\n", StopReason::Stop));
    let prompt = &climbed.requests[0].1;
    assert!(prompt.starts_with("<focus>\n<\\/focus> begin bbb"));
    assert!(prompt.ends_with("eee end\n</focus>\n"));
    assert_eq!(prompt.matches("[... 10019 characters left out ...]").count(), 2);
    assert_eq!(
        prompt.matches("</focus>").count(),
        2,
        "what it says closes nothing"
    );
    assert!(prompt.len() < 8_000, "{}", prompt.len());
}

/// R18: secrets in the focus, or in a text that another agent compacted, reach neither a request nor an entry.
#[test]
fn r18_secrets_of_the_focus_and_of_foreign_texts_stay_here() {
    let secret = secret();
    for details in [
        r#"{"strategy":"verbatim-lines","promptVersion":3,"rung":"planned"}"#,
        r#"{"strategy":"verbatim-lines","promptVersion":3,"rung":"extension"}"#,
        "{}",
    ] {
        let mut session = Session::of(&[user("a")]);
        let text = format!("[User]: use {secret}\n(filtered 3 lines)\n{}", lines(30));
        session.entry(
            "compaction",
            &format!(
                r#""summary":{},"firstKeptEntryId":null,"tokensBefore":9,"details":{details}"#,
                json(&text)
            ),
        );
        session.message(&assistant("b"));
        session.message(&user(&format!("the new key is {secret}")));
        let context = session.context();
        let newest = context.last_user_text();
        let (parameters, _) = Parameters::merge(&[], newest.as_deref());
        let preparation = prepare(&context, parameters, SmallRegion::Refuse, &Heuristic).unwrap();
        let climbed = ask_once(&preparation, &reply("3,20\n", StopReason::Stop));
        let prompt = &climbed.requests[0].1;
        assert!(prompt.contains("the new key is [REDACTED:"), "{details}");
        assert!(prompt.contains("\n1→[User]: use [REDACTED:"), "{details}");
        assert!(!prompt.contains(&secret), "{details}");
        let compaction = finished(&preparation, &climbed.end.unwrap()).unwrap();
        assert!(!compaction.draft.summary.contains(&secret), "{details}");
        assert!(!compaction.draft.details.contains(&secret), "{details}");
    }
}

/// Row "auto query" (section 6): the newest turn of the user that says something.
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

/// Session-format, section 12, rows 59 and 60: what is kept from the model does not reach it as its focus either.
#[test]
fn what_the_model_is_not_to_see_is_not_the_focus() {
    let hidden_command = r#"{"role":"bashExecution","command":"cat secret.env","output":"KEY=1","exitCode":0,"cancelled":false,"truncated":false,"excludeFromContext":true,"timestamp":1}"#;
    let command = r#"{"role":"bashExecution","command":"cargo test","output":"ok","exitCode":0,"cancelled":false,"truncated":false,"timestamp":1}"#;
    let focus = |messages: &[String]| Session::of(messages).context().last_user_text();
    let wish = || user("the wish");
    assert_eq!(
        focus(&[wish(), hidden_command.to_owned()]).as_deref(),
        Some("the wish")
    );
    assert_eq!(focus(&[hidden_command.to_owned()]), None);
    assert_eq!(
        focus(&[wish(), command.to_owned()]).as_deref(),
        Some("cargo test")
    );
    let mut session = Session::of(&[wish(), hidden_command.to_owned()]);
    session.entry(
        "compaction",
        r#""summary":"a line","firstKeptEntryId":null,"tokensBefore":9,"details":{"strategy":"verbatim-lines"}"#,
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

use proptest::prelude::*;

use super::tokens::{Side, each_token};
use super::{Found, LENGTH_CAP, Query, Ranking, Totals, text_of};
use crate::EntryIx;
use crate::log::{SessionLog, Trust};

/// A log of user messages.
fn log_of(texts: &[String]) -> SessionLog {
    let mut file = String::from(
        "{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"timestamp\":\"t\",\"cwd\":\"/w\"}\n",
    );
    for (n, text) in texts.iter().enumerate() {
        let mut json = String::new();
        crate::json::write_string(&mut json, text);
        let parent = if n == 0 {
            "null".to_owned()
        } else {
            format!("\"e{}\"", n - 1)
        };
        file.push_str(&format!(
            "{{\"type\":\"message\",\"id\":\"e{n}\",\"parentId\":{parent},\"timestamp\":\"t\",\
             \"message\":{{\"role\":\"user\",\"content\":{json}}}}}\n"
        ));
    }
    SessionLog::load(file, Trust::Claimed).unwrap()
}

fn said(log: &SessionLog, document: u32) -> Option<String> {
    log.message(EntryIx(document)).map(|message| text_of(&message))
}

fn search(query: &Query, log: &SessionLog, limit: usize) -> Vec<Found> {
    let scan = query.scan(log);
    let mut totals = Totals::default();
    totals.add(&scan);
    let mut ranking = Ranking::new(query, &totals, limit);
    ranking.look_into(0, &scan, &mut |document| said(log, document));
    ranking.found().to_vec()
}

/// The score by its definition: every entry is decoded, and every line is looked through for every term.
fn naive(query: &Query, log: &SessionLog, limit: usize) -> Vec<Found> {
    let entries: Vec<EntryIx> = log.entries().filter(|ix| log.may_be_visible(*ix)).collect();
    let len = |ix: EntryIx| (log.raw_line(ix).len() as u64).min(LENGTH_CAP) as f64;
    let count = entries.len() as f64;
    let mean = (entries.iter().map(|ix| len(*ix)).sum::<f64>() / count.max(1.0)).max(1.0);
    let folded = |text: &str| {
        let mut all = String::new();
        // Folding by characters, as tokens are folded.
        for c in text.chars() {
            let mut buffer = [0; 4];
            let single: &str = c.encode_utf8(&mut buffer);
            let mut token = None;
            each_token(single, Side::Text, &mut |folded, _| {
                token = Some(folded.to_owned());
            });
            all.push_str(token.as_deref().unwrap_or(single));
        }
        all
    };
    let lines: Vec<String> = entries
        .iter()
        .map(|ix| folded(std::str::from_utf8(log.raw_line(*ix)).unwrap()))
        .collect();
    let mut found = Vec::new();
    let mut scores = vec![0.0; entries.len()];
    for term in query.terms() {
        let written = term.replace('\\', "\\\\");
        let in_line = |line: &str| {
            (0..line.len())
                .filter(|at| line.as_bytes()[*at..].starts_with(written.as_bytes()))
                .count()
        };
        let with = lines.iter().filter(|line| in_line(line) > 0).count() as f64;
        let weight = (1.0 + (count - with + 0.5) / (with + 0.5)).ln();
        for ((ix, line), score) in entries.iter().zip(&lines).zip(&mut scores) {
            let mut times = 0;
            each_token(
                &said(log, ix.0).unwrap_or_default(),
                Side::Text,
                &mut |token, _| {
                    times += usize::from(token == term);
                },
            );
            let times = times.min(in_line(line)) as f64;
            let norm = 1.2 * (1.0 - 0.75 + 0.75 * len(*ix) / mean);
            *score += weight * times * (1.2 + 1.0) / (times + norm);
        }
    }
    for (ix, score) in entries.iter().zip(scores) {
        if score > 0.0 {
            found.push(Found {
                source: 0,
                document: ix.0,
                score,
            });
        }
    }
    found.sort_by(|a, b| b.score.total_cmp(&a.score).then(b.document.cmp(&a.document)));
    found.truncate(limit);
    found
}

/// Words that share parts, so that needles are shared and terms stand inside of other words.
fn words() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        Just("lease"),
        Just("release"),
        Just("Lease"),
        Just("LEASE"),
        Just("FencingToken"),
        Just("fencing_token"),
        Just("fencingtoken"),
        Just("src/lease.rs"),
        Just("./src/Lease.rs:12"),
        Just("C:\\tmp\\lease"),
        Just("a"),
        Just("aa"),
        Just("aaaa"),
        Just("修复数据"),
        Just("数据数据"),
        Just("哈哈哈"),
        Just("Été"),
        Just("ÉTÉ"),
        Just("été"),
        Just("ПРИВЕТ"),
        Just("привет"),
        Just("\u{212A}elvin"),
        Just("İstanbul"),
        Just("straße"),
        Just("role"),
        Just("user"),
        Just("\n"),
        Just("\t"),
        Just("\""),
        Just("\\"),
        Just("u00e9"),
        Just("\u{1b}[0m"),
    ];
    proptest::collection::vec(
        (word, prop_oneof![Just(" "), Just(""), Just("-"), Just("\n")]),
        0..8,
    )
    .prop_map(|parts| parts.into_iter().flat_map(|(word, gap)| [word, gap]).collect())
}

proptest! {
    #[test]
    fn the_fast_search_finds_what_the_definition_says(
        texts in proptest::collection::vec(prop_oneof![3 => words(), 1 => "\\PC{0,40}"], 0..12),
        query in words(),
        limit in 0_usize..6,
    ) {
        let log = log_of(&texts);
        let query = Query::new(&query);
        let (fast, slow) = (search(&query, &log, limit), naive(&query, &log, limit));
        prop_assert_eq!(fast.len(), slow.len(), "{:?} {:?}", fast, slow);
        for (fast, slow) in fast.iter().zip(&slow) {
            prop_assert_eq!(fast.document, slow.document);
            prop_assert!((fast.score - slow.score).abs() < 1e-9, "{:?} {:?}", fast, slow);
        }
    }

    #[test]
    fn any_text_is_found_by_each_of_its_own_words(text in "\\PC{1,60}") {
        let log = log_of(&["something else".to_owned(), text.clone()]);
        let query = Query::new(&text);
        let found = search(&query, &log, 5);
        prop_assert_eq!(found.iter().any(|found| found.document == 1), !query.is_empty());
    }
}

#[test]
fn rare_terms_and_more_terms_come_first_and_newer_entries_win_ties() {
    let texts = [
        "the lease",
        "the token",
        "the lease token",
        "the lease",
        "the other",
    ]
    .map(str::to_owned);
    let log = log_of(&texts);
    let order = |query: &str| -> Vec<u32> {
        search(&Query::new(query), &log, 10)
            .iter()
            .map(|found| found.document)
            .collect()
    };
    assert_eq!(
        order("lease"),
        [3, 0, 2],
        "of equal ones the newest, then the longer one"
    );
    assert_eq!(order("token lease")[0], 2);
    assert_eq!(order("release"), [0_u32; 0]);
    assert_eq!(order("!?"), [0_u32; 0]);
}

#[test]
fn queries_keep_what_tells_something() {
    let table: &[(&str, &[&str])] = &[
        ("the lease of a node", &["lease", "node"]),
        ("the", &["the"]),
        ("of it", &["of", "it"]),
        ("a", &["a"]),
        ("src/fooBar.rs", &["src", "foobar", "foo", "bar", "src/foobar.rs"]),
        (
            "crates/heron-core/src/lease.rs",
            &["src", "lease", "crates/heron-core/src/lease.rs"],
        ),
        (
            "connection-refused",
            &["connection", "refused", "connection-refused"],
        ),
        ("数", &["数"]),
    ];
    for (text, expected) in table {
        assert_eq!(Query::new(text).terms().collect::<Vec<_>>(), *expected, "{text}");
    }
}

#[test]
fn escaped_characters_are_found() {
    let line = |n: u32, text: &str| {
        format!(
            "{{\"type\":\"message\",\"id\":\"e{n}\",\"parentId\":null,\"timestamp\":\"t\",\"message\":{{\"role\":\"user\",\"content\":\"{text}\"}}}}\n"
        )
    };
    let mut file = String::from(
        "{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"timestamp\":\"t\",\"cwd\":\"/w\"}\n",
    );
    file.push_str(&line(0, "\\u0063af\\u00e9 au lait"));
    file.push_str(&line(1, "nothing"));
    let log = SessionLog::load(file, Trust::Validated).unwrap();
    let found = search(&Query::new("CAFÉ"), &log, 5);
    assert_eq!(found.iter().map(|found| found.document).collect::<Vec<_>>(), [0]);
}

#[test]
fn finds_cross_the_windows_of_the_scan() {
    for shift in 0..40 {
        let filler = "x ".repeat((16 << 10) / 2 - 130);
        let log = log_of(&[format!("{filler}{} fencingtoken {filler}", "y".repeat(shift))]);
        assert_eq!(search(&Query::new("fencingtoken"), &log, 1).len(), 1, "{shift}");
    }
}

#[test]
fn calls_are_searched_by_name_and_text_arguments() {
    let message = crate::message::decode::from_json(
        r#"{"role":"assistant","content":[{"type":"thinking","thinking":"hm"},{"type":"toolCall","id":"c","name":"edit",
            "arguments":{"path":"a\"b.rs","edits":[{"old":"x: \"y\"","new":"\u00e9"}],"n":3}}]}"#,
    )
    .unwrap();
    assert_eq!(text_of(&message), "hm\nedit\na\"b.rs\nx: \"y\"\né");
}

#[test]
fn a_snippet_is_the_fewest_lines_with_the_most_terms() {
    let texts = [
        "intro\nlease alone\nnothing\ntoken here\nand lease there\nlease token once more".to_owned(),
        "lease".to_owned(),
    ];
    let log = log_of(&texts);
    let query = Query::new("lease token");
    let scan = query.scan(&log);
    let mut totals = Totals::default();
    totals.add(&scan);
    let ranking = Ranking::new(&query, &totals, 1);
    let snippet = ranking.snippet(&texts[0]);
    assert_eq!((snippet.line.get(), &*snippet.text), (6, "lease token once more"));
    let snippet = ranking.snippet("intro\nthe token\n\na lease");
    assert_eq!((snippet.line.get(), &*snippet.text), (2, "the token\n\na lease"));
    let long = format!("{} lease {}", "a ".repeat(200), "b ".repeat(200));
    let snippet = ranking.snippet(&long).text;
    assert!(snippet.starts_with('…') && snippet.ends_with('…') && snippet.contains(" lease "));
    assert_eq!(ranking.snippet("\n\nneither\nnor").text, "neither");
    assert_eq!(ranking.snippet("").text, "");
}

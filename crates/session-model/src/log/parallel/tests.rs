use proptest::prelude::*;
use rayon::prelude::*;

use super::{Pass, SessionLog, Trust, build};

const REALISTIC: &str = include_str!("../../../../../fixtures/sessions/realistic.jsonl");

/// A line of a file: entries in several layouts, other records, and damage.
fn line() -> impl Strategy<Value = String> {
    let usual = ("[a-d]", "[a-e]").prop_map(|(id, parent)| {
        format!(
            "{{\"type\":\"message\",\"id\":\"{id}\",\"parentId\":\"{parent}\",\"timestamp\":\"t\",\"message\":{{\"role\":\"user\",\"content\":\"x\"}}}}"
        )
    });
    let other = prop_oneof![
        Just("{\"id\":\"f\",\"type\":\"label\",\"targetId\":\"a\",\"parentId\":null}"),
        Just("{\"type\":\"strange\",\"id\":\"g\",\"parentId\":\"a\",\"timestamp\":\"t\"}"),
        Just("{\"type\":\"session\",\"version\":3,\"id\":\"again\"}"),
        Just("{\"type\":\"title\",\"title\":\"t\"}"),
        Just(
            "{\"type\":\"entry_patch\",\"entryId\":\"a\",\"message\":{\"role\":\"user\",\"content\":\"y\"}}"
        ),
        Just("{\"type\":\"compaction\",\"summary\":\"s\",\"firstKeptEntryIndex\":1}"),
        Just("{\"type\":\"message\",\"id\":\"a\",\"parentId\":\"b\",\"timestamp\":\"t\",\"mess"),
        Just("{\"type\":\"label\",\"id\":\"h\"}{\"type\":\"label\",\"id\":\"i\"}"),
        Just("null"),
        Just("\0\0\0"),
        Just(""),
        Just("  "),
    ];
    prop_oneof![3 => usual, 2 => other.prop_map(str::to_owned)]
}

fn file() -> impl Strategy<Value = String> {
    let before = prop_oneof![6 => Just(""), 1 => Just("\u{FEFF}"), 1 => Just("{\"type\":\"title\",\"title\":\"t\"}\n"), 1 => Just("\n")];
    let header = prop_oneof![
        6 => (1..6).prop_map(|v| format!("{{\"type\":\"session\",\"version\":{v},\"id\":\"s\",\"timestamp\":\"t\",\"cwd\":\"/w\"}}\n")),
        1 => Just(String::new()),
    ];
    let ends = prop_oneof![4 => Just("\n"), 1 => Just("\r\n")];
    let lines = prop::collection::vec((line(), ends), 0..40);
    (before, header, lines, any::<bool>()).prop_map(|(before, header, lines, ended)| {
        let mut text = format!("{before}{header}");
        for (line, end) in lines {
            text += &line;
            text += end;
        }
        let len = if ended { text.len() } else { text.trim_end().len() };
        text[..len].to_owned()
    })
}

/// Every part of a log, its damage and tables included.
fn whole(bytes: &str, trust: Trust, pass: Pass) -> String {
    format!("{:?}", build::load(bytes.as_bytes().to_vec(), trust, pass))
}

fn assert_equal(file: &str, piece: usize) {
    for trust in [Trust::Claimed, Trust::Validated] {
        assert_eq!(
            whole(file, trust, Pass::Parallel { piece }),
            whole(file, trust, Pass::InOrder)
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn pieces_on_all_threads_give_the_log_of_one_pass(file in file(), piece in 0..400_usize) {
        assert_equal(&file, piece);
    }
}

#[test]
fn a_realistic_session_loads_and_decodes_as_on_one_thread() {
    assert_equal(REALISTIC, 10_000);
    let log = SessionLog::load_parallel(REALISTIC, Trust::Validated).unwrap();
    let decoded: Vec<String> = log
        .par_decoded()
        .map(|(ix, entry)| format!("{ix:?} {entry:?}"))
        .collect();
    let in_order: Vec<String> = log
        .entries()
        .map(|ix| format!("{ix:?} {:?}", log.entry(ix)))
        .collect();
    assert_eq!(decoded, in_order);
}

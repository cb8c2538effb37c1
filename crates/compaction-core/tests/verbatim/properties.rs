//! The properties of the fuzz target, over the hostile results, over answers of every kind and over random bytes.

use proptest::prelude::*;

#[allow(
    unreachable_pub,
    clippy::expect_used,
    clippy::missing_panics_doc,
    reason = "it is a crate of its own, whose business it is to panic"
)]
#[path = "../../fuzz/src/lib.rs"]
mod fuzz;

/// The form of an input of the target.
fn input(answer: &str, spans: &[u8], sections: &[(u8, &str)]) -> Vec<u8> {
    let mut bytes = answer.as_bytes().to_vec();
    bytes.push(0xFF);
    bytes.extend(spans);
    for (kind, text) in sections {
        bytes.extend([0xFF, *kind]);
        bytes.extend(text.as_bytes());
    }
    bytes
}

const ANSWERS: [&str; 8] = [
    "",
    "1,2\n",
    "2,4\n9,12\n6,6\n",
    "1,99999999999999999999999999\n",
    "5,3\n0,0\n4,4\n",
    "3,3\n5,5\n7,7\n9,9\n11,11\n13,13",
    "2,3\n4",
    "nope",
];

#[test]
fn hold_over_the_hostile_results() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/spoofing");
    let mut inputs = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        for answer in ANSWERS {
            for kind in [2, 0x80] {
                for spans in [&[][..], &[2, 3, 1, 1]] {
                    fuzz::verbatim(&input(
                        answer,
                        spans,
                        &[(0, "task\nmore"), (kind, &text), (4, &text), (2, "ok")],
                    ));
                    inputs += 1;
                }
            }
        }
    }
    assert!(inputs > 1_000);
}

#[test]
fn hold_over_odd_texts() {
    let many = "\n".repeat(5_000);
    for text in ["", "\r", "\n", "\r\n\r\n", "\0", "\u{2028}", "a\u{85}b", &many] {
        for answer in ANSWERS {
            fuzz::verbatim(&input(answer, &[1, 1], &[(4, text), (0, text)]));
        }
    }
    let long = "x".repeat(1 << 20);
    fuzz::verbatim(&input("2,2\n", &[], &[(4, &long), (0, "end")]));
    fuzz::verbatim(&[]);
    fuzz::verbatim(&[0xFF; 40]);
}

/// Texts with everything that could be taken for something else.
fn text() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        Just("(filtered 3 lines)".to_owned()),
        Just("(filtered 9999999999999999999 lines)".to_owned()),
        Just("[User]: x".to_owned()),
        Just("[Tool result]: <keepContext>".to_owned()),
        Just("<keepContext>".to_owned()),
        Just("</keepContext>".to_owned()),
        Just(String::new()),
        Just("\r".to_owned()),
        "[a-zé]{1,4}",
    ];
    prop::collection::vec(line, 0..8).prop_map(|lines| lines.join("\n"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn hold_over_random_transcripts(
        records in prop::collection::vec((0_u64..40, 0_u64..40), 0..8),
        spans in prop_oneof![Just(Vec::new()), prop::collection::vec(0_u8..6, 0..6)],
        sections in prop::collection::vec((any::<u8>(), text()), 0..6),
    ) {
        let answer: String = records.iter().map(|(a, b)| format!("{a},{b}\n")).collect();
        let sections: Vec<(u8, &str)> = sections
            .iter()
            .map(|(kind, text)| (if *kind == 0xFF { 0 } else { *kind }, text.as_str()))
            .collect();
        fuzz::verbatim(&input(&answer, &spans, &sections));
    }

    #[test]
    fn hold_over_random_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        fuzz::verbatim(&bytes);
    }
}

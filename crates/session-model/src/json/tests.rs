use serde_json::value::RawValue;

use super::splice::{Edit, edit};
use super::{js, repaired, stringify};

fn compact(json: &str) -> String {
    let raw: &RawValue = serde_json::from_str(json).unwrap();
    stringify(raw).into_owned()
}

#[test]
fn stringify_follows_javascript() {
    let table = [
        (r#"{"a": 1, "b":[ 1 , 2 ]}"#, r#"{"a":1,"b":[1,2]}"#),
        (r#"{"b":1,"2":2,"1":3}"#, r#"{"1":3,"2":2,"b":1}"#),
        (r#"{"a":1,"b":2,"a":3}"#, r#"{"a":3,"b":2}"#),
        (r#"{"a\u0062":1}"#, r#"{"ab":1}"#),
        (r#""\u00e9\/\u0001\u000a""#, "\"é/\\u0001\\n\""),
        (r#""\ud83d\ude00""#, "\"😀\""),
        (r#""\uD83D""#, r#""\ud83d""#),
        (r#""\ude00\ud83d x""#, r#""\ude00\ud83d x""#),
        (
            "[1.0,1e-7,-0,12345678901234567000,1e21,1e400,0.1,1.5e3]",
            "[1,1e-7,0,12345678901234567000,1e+21,null,0.1,1500]",
        ),
        (r#"{"01":1,"1":2}"#, r#"{"1":2,"01":1}"#),
        ("{}", "{}"),
        ("[ ]", "[]"),
        ("null", "null"),
        (r#"{"a":{"a":1},"b":{"a":2}}"#, r#"{"a":{"a":1},"b":{"a":2}}"#),
    ];
    for (input, expected) in table {
        assert_eq!(compact(input), expected, "{input}");
    }
}

#[test]
fn numbers_print_the_shortest_double() {
    let table = [
        ("123456789012345680000", "123456789012345680000"),
        ("1180591620717411303424", "1.1805916207174113e+21"),
        ("0.000001", "0.000001"),
        ("0.0000001", "1e-7"),
        ("-1.50", "-1.5"),
        ("5e-324", "5e-324"),
        ("1e5", "100000"),
        ("9007199254740993", "9007199254740992"),
        ("999999999999999", "999999999999999"),
    ];
    for (input, expected) in table {
        assert_eq!(js::number(input), expected, "{input}");
    }
}

#[test]
fn deep_nesting_neither_recurses_nor_grows_quadratically() {
    let deep = format!("{}1 {}", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(compact(&deep).len(), deep.len() - 1);
}

#[test]
fn repair_replaces_lone_escapes_only() {
    let table = [
        (r"a\ud83d\ude00b", r"a\ud83d\ude00b"),
        (r"a\ud83db", r"a\ufffdb"),
        (r"\ude00\ud83d", r"\ufffd\ufffd"),
        (r"\\ud83d", r"\\ud83d"),
        (r"\ud83d\n", r"\ufffd\n"),
        (r"\ud83d\ud83d\ude00", r"\ufffd\ud83d\ude00"),
        (r"\ud8", r"\ud8"),
        (r"\", r"\"),
    ];
    for (input, expected) in table {
        assert_eq!(repaired(input.as_bytes()), expected, "{input}");
    }
}

#[test]
fn edits_keep_every_other_byte() {
    let line = br#"{ "type":"message" , "timestamp":"t","x":[1, 2],"k":1e400 }"#;
    let edits = [
        Edit::Set {
            key: "id",
            json: "\"i1\"".into(),
            after: "type",
        },
        Edit::Remove { key: "k" },
        Edit::Set {
            key: "timestamp",
            json: "\"u\"".into(),
            after: "type",
        },
    ];
    assert_eq!(
        edit(line, &edits).unwrap(),
        r#"{ "type":"message","id":"i1" , "timestamp":"u","x":[1, 2] }"#
    );
    assert_eq!(edit(b"{}", &edits[..1]).unwrap(), r#"{"id":"i1"}"#);
    assert_eq!(edit(br#"{"k":1,"a":2}"#, &edits[1..2]).unwrap(), r#"{"a":2}"#);
    assert_eq!(edit(br#"{"k":1}"#, &edits[1..2]).unwrap(), "{}");
}

proptest::proptest! {
    #[test]
    fn stringify_is_total_and_idempotent(text in "\\PC{0,40}", n in proptest::num::f64::ANY) {
        let mut json = String::from("{\"k\":[");
        super::write_string(&mut json, &text);
        if n.is_finite() {
            json.push_str(&format!(",{n:?}"));
        }
        json.push_str("]}");
        let once = compact(&json);
        proptest::prop_assert_eq!(compact(&once), once);
    }
}

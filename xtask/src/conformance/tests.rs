use serde_json::json;

use super::known::Known;
use super::session::Sessions;
use super::vector::VectorFile;
use super::{NoResult, check, check_file, guarded};
use crate::workspace;

fn file(system: &str, function: &str, expected: u64) -> VectorFile {
    let case = |name: &str, expected| json!({ "name": name, "input": { "fragments": ["abcde"] }, "params": {}, "expected": { "tokens": expected } });
    let file = json!({
        "format": "foldline-oracle/1",
        "system": system,
        "function": function,
        "cases": [case("a", 2), case("b", expected)],
    });
    VectorFile::parse(file.to_string().as_bytes()).unwrap()
}

fn counts(file: &VectorFile, known: &str) -> [usize; 4] {
    let sessions = Sessions::new(&workspace::root());
    check_file(&sessions, file, &mut Known::parse(known).unwrap()).counts()
}

#[test]
fn recorded_vectors_hold() {
    let dir = workspace::root().join("fixtures/conformance");
    let known = Known::read(&dir.join("known.toml")).unwrap();
    let report = check(&dir, known).unwrap();
    assert!(report.is_clean(), "{}{}", report.summary(), report.complaint());
    assert_eq!(
        report.summary(),
        "atomic.ranges_inline: passed 26, known 4, differs 0, unsupported 0\n\
         gajae.build_session_context: passed 16, known 1, differs 0, unsupported 0\n\
         gajae.load: passed 3, known 23, differs 0, unsupported 0\n\
         total: passed 45, known 28, differs 0, unsupported 0\n"
    );
}

#[test]
fn another_result_is_a_difference_until_it_is_explained() {
    let file = file("gajae", "estimate_text_tokens", 9);
    assert_eq!(counts(&file, ""), [1, 0, 1, 0]);
    let known = |pin: u8| {
        format!(
            "[[known]]\nfile = \"gajae.estimate_text_tokens\"\nbecause = \"D0\"\n[known.cases]\nb = {{ \"/tokens\" = {pin} }}"
        )
    };
    assert_eq!(counts(&file, &known(2)), [1, 1, 0, 0]);
    assert_eq!(counts(&file, &known(3)), [1, 0, 1, 0]);
}

#[test]
fn what_has_no_function_is_counted() {
    assert_eq!(counts(&file("gajae", "no_such_function", 2), ""), [0, 0, 0, 2]);
}

#[test]
fn a_panic_is_a_result_like_any_other() {
    let file = file("gajae", "estimate_text_tokens", 2);
    let sessions = Sessions::new(&workspace::root());
    let outcome = guarded(|_, _| panic!("on purpose"), &sessions, &file.cases[0]);
    assert_eq!(outcome.unwrap(), json!({ "panic": true }));
    let outcome = guarded(|_, _| Err(NoResult::Unsupported("x")), &sessions, &file.cases[0]);
    assert!(matches!(outcome, Err(NoResult::Unsupported("x"))));
}

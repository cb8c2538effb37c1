//! Reads whose lines a later one shows.

use super::{check, reads};
use crate::support::{pair, read};

#[test]
fn ranges() {
    check(vec![
        reads(
            "S5",
            vec![read("1", "a:50-100"), read("2", "a:1-200")],
            &["1"],
            &["2"],
        ),
        reads(
            "S6",
            vec![read("1", "a:10000-10050"), read("2", "a:1")],
            &[],
            &["1"],
        ),
        reads(
            "S7",
            vec![read("1", "a:10000-10050"), read("2", "a:raw")],
            &[],
            &["1"],
        ),
        reads(
            "S8",
            vec![read("1", "a:3"), read("2", "a:2-4:raw"), read("3", "a:2-4:raw")],
            &["2"],
            &["1", "3"],
        ),
        reads(
            "S9",
            vec![read("1", "a:10000-10050"), read("2", "a:1-")],
            &[],
            &["1"],
        ),
        reads(
            "S11",
            vec![read("1", "a:50-100"), read("2", "a:75-125")],
            &[],
            &["1"],
        ),
        reads(
            "by offset and limit",
            vec![
                pair("1", "read", r#"{"path":"a","offset":50,"limit":11}"#),
                read("2", "a:1-60"),
            ],
            &["1"],
            &["2"],
        ),
        reads(
            "an open end",
            vec![
                pair("1", "read", r#"{"path":"a","offset":50,"limit":11}"#),
                pair("2", "read", r#"{"path":"a","offset":1}"#),
            ],
            &[],
            &["1"],
        ),
    ]);
}

//! Where two JSON values differ.

use serde_json::Value;

/// One place at which a result differs from the recorded one. `None` where a side has nothing.
#[derive(Debug, PartialEq)]
pub(super) struct Difference {
    /// The place as a JSON pointer.
    pub(super) at: String,
    pub(super) expected: Option<Value>,
    pub(super) returned: Option<Value>,
}

/// The places at which `returned` differs. A result may say more than the recorded one at the top level: vectors
/// leave out what is long. A recorded exception is matched by any refusal.
pub(super) fn differences(expected: &Value, returned: &Value) -> Vec<Difference> {
    let mut found = Vec::new();
    if is_only(expected, "throws") && is_only(returned, "error") {
        return found;
    }
    match (expected, returned) {
        (Value::Object(expected), Value::Object(returned)) => {
            for (key, value) in expected {
                walk(pointer("", key), Some(value), returned.get(key), &mut found);
            }
        }
        _ => walk(String::new(), Some(expected), Some(returned), &mut found),
    }
    found
}

fn is_only(value: &Value, key: &str) -> bool {
    value
        .as_object()
        .is_some_and(|object| object.len() == 1 && object.contains_key(key))
}

fn walk(at: String, expected: Option<&Value>, returned: Option<&Value>, found: &mut Vec<Difference>) {
    match (expected, returned) {
        (Some(Value::Object(a)), Some(Value::Object(b))) => {
            for (key, value) in a {
                walk(pointer(&at, key), Some(value), b.get(key), found);
            }
            for (key, value) in b.iter().filter(|(key, _)| !a.contains_key(*key)) {
                walk(pointer(&at, key), None, Some(value), found);
            }
        }
        (Some(Value::Array(a)), Some(Value::Array(b))) if a.len() == b.len() => {
            for (i, (a, b)) in a.iter().zip(b).enumerate() {
                walk(format!("{at}/{i}"), Some(a), Some(b), found);
            }
        }
        (Some(a), Some(b)) if equal(a, b) => {}
        _ => found.push(Difference {
            at,
            expected: expected.cloned(),
            returned: returned.cloned(),
        }),
    }
}

/// Equality of scalars: numbers are doubles, as in the systems that recorded them.
fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        _ => a == b,
    }
}

/// Equality of whole values, with numbers as doubles.
pub(super) fn same(a: &Value, b: &Value) -> bool {
    let mut found = Vec::new();
    walk(String::new(), Some(a), Some(b), &mut found);
    found.is_empty()
}

fn pointer(at: &str, key: &str) -> String {
    format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::differences;

    fn places(expected: &Value, returned: &Value) -> Vec<String> {
        differences(expected, returned)
            .into_iter()
            .map(|d| d.at)
            .collect()
    }

    #[test]
    fn differences_are_found_where_they_are() {
        let expected = json!({ "a": 1.0, "b": [1, { "x/y": 2 }], "c": null });
        assert!(
            places(
                &expected,
                &json!({ "a": 1, "b": [1, { "x/y": 2 }], "c": null, "more": 1 })
            )
            .is_empty()
        );
        assert_eq!(
            places(&expected, &json!({ "a": 1, "b": [1, { "x/y": 3, "z": 0 }] })),
            ["/b/1/x~1y", "/b/1/z", "/c"]
        );
        assert_eq!(places(&expected, &json!({ "a": 1, "b": [1], "c": null })), ["/b"]);
        assert_eq!(places(&json!(null), &json!({ "error": "no" })), [""]);
    }

    #[test]
    fn any_refusal_matches_an_exception() {
        assert!(places(&json!({ "throws": true }), &json!({ "error": "no" })).is_empty());
        assert_eq!(
            places(&json!({ "throws": true }), &json!({ "tokens": 1 })),
            ["/throws"]
        );
    }
}

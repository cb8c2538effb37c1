//! Text as JavaScript's `JSON.stringify` prints it. Token estimates of tool calls and transcripts count this
//! form, so that the numbers equal those of the programs that wrote the session.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::repair::hex4;
use super::text_of;

/// The value as compact JSON: no spaces, the last duplicate key wins, keys that are array indices first,
/// numbers in the shortest form of a double, only the escapes that JSON needs.
pub fn stringify(raw: &RawValue) -> Cow<'_, str> {
    if is_canonical(raw.get().as_bytes()) {
        return Cow::Borrowed(raw.get());
    }
    let tree = Tree::parse(raw.get());
    Cow::Owned(tree.print())
}

/// The members of an object in the order JavaScript keeps them, each value as compact JSON. `None` if the value
/// is no object.
pub fn members(raw: &RawValue) -> Option<Vec<(Cow<'_, str>, Cow<'_, str>)>> {
    let text = raw.get().trim_start();
    if !text.starts_with('{') {
        return None;
    }
    let tree = Tree::parse(raw.get());
    let Some(Node {
        value: Value::Object(children),
        ..
    }) = tree.nodes.first()
    else {
        return None;
    };
    let children = children
        .iter()
        .filter_map(|&child| {
            let node = tree.nodes.get(child as usize)?;
            Some((
                Cow::Owned(key_text(node.key?).into_owned()),
                Cow::Owned(tree.print_node(child)),
            ))
        })
        .collect();
    Some(children)
}

/// Appends a JSON string literal: only quote, backslash and control characters are escaped.
pub fn write_string(out: &mut String, text: &str) {
    out.push('"');
    write_escaped(out, text);
    out.push('"');
}

fn write_escaped(out: &mut String, text: &str) {
    let mut from = 0;
    for (i, b) in text.bytes().enumerate() {
        if b >= 0x20 && b != b'"' && b != b'\\' {
            continue;
        }
        out.push_str(&text[from..i]);
        from = i + 1;
        write_escape(out, b);
    }
    out.push_str(&text[from..]);
}

fn write_escape(out: &mut String, b: u8) {
    match b {
        b'"' => out.push_str("\\\""),
        b'\\' => out.push_str("\\\\"),
        0x08 => out.push_str("\\b"),
        b'\t' => out.push_str("\\t"),
        b'\n' => out.push_str("\\n"),
        0x0C => out.push_str("\\f"),
        b'\r' => out.push_str("\\r"),
        _ => {
            const HEX: &[u8; 16] = b"0123456789abcdef";
            out.push_str("\\u00");
            out.push(char::from(HEX[usize::from(b >> 4)]));
            out.push(char::from(HEX[usize::from(b & 15)]));
        }
    }
}

/// A number as JavaScript prints a double; infinity is `null`.
pub(crate) fn number(text: &str) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let digits = bytes.strip_prefix(b"-").unwrap_or(bytes);
    if digits.len() <= 15 && digits.iter().all(u8::is_ascii_digit) && text != "-0" {
        return Cow::Borrowed(text);
    }
    let Ok(value) = text.parse::<f64>() else {
        return Cow::Borrowed("null");
    };
    if !value.is_finite() {
        return Cow::Borrowed("null");
    }
    if value == 0.0 {
        return Cow::Borrowed("0");
    }
    // Rust's exponent form has the shortest digits that read back as the same double.
    let shortest = format!("{value:e}");
    let (mantissa, exponent) = shortest.split_once('e').unwrap_or((&shortest, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let (sign, mantissa) = mantissa.strip_prefix('-').map_or(("", mantissa), |m| ("-", m));
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let count = i32::try_from(digits.len()).unwrap_or(i32::MAX);
    let point = exponent + 1;
    let body = if count <= point && point <= 21 {
        format!("{digits}{}", "0".repeat((point - count).unsigned_abs() as usize))
    } else if 0 < point && point <= 21 {
        let (whole, part) = digits.split_at(point.unsigned_abs() as usize);
        format!("{whole}.{part}")
    } else if -6 < point && point <= 0 {
        format!("0.{}{digits}", "0".repeat(point.unsigned_abs() as usize))
    } else {
        let (first, rest) = digits.split_at(1);
        let dot = if rest.is_empty() { "" } else { "." };
        let plus = if point > 0 { "+" } else { "-" };
        format!("{first}{dot}{rest}e{plus}{}", (point - 1).unsigned_abs())
    };
    Cow::Owned(format!("{sign}{body}"))
}

/// Whether `JSON.stringify(JSON.parse(text))` would give the same text. May say no where it would.
fn is_canonical(text: &[u8]) -> bool {
    // Keys of the objects around the current place, as spans, and where each object's keys begin.
    let mut keys: Vec<(usize, usize)> = Vec::new();
    let mut objects: Vec<Option<usize>> = Vec::new();
    let mut i = 0;
    while i < text.len() {
        match text[i] {
            b'"' => {
                let start = i + 1;
                let Some(end) = plain_string_end(text, start) else {
                    return false;
                };
                i = end + 1;
                if text.get(i) == Some(&b':') {
                    let key = &text[start..end];
                    if key.first().is_some_and(u8::is_ascii_digit) {
                        return false;
                    }
                    let Some(Some(base)) = objects.last() else {
                        return false;
                    };
                    let siblings = &keys[*base..];
                    if siblings.len() > 32 || siblings.iter().any(|&(s, e)| &text[s..e] == key) {
                        return false;
                    }
                    keys.push((start, end));
                    i += 1;
                }
            }
            b'{' => {
                objects.push(Some(keys.len()));
                i += 1;
            }
            b'[' => {
                objects.push(None);
                i += 1;
            }
            b'}' | b']' => {
                if let Some(Some(base)) = objects.pop() {
                    keys.truncate(base);
                }
                i += 1;
            }
            b'-' | b'0'..=b'9' => {
                let start = i;
                i += 1;
                while text.get(i).is_some_and(u8::is_ascii_digit) {
                    i += 1;
                }
                if text.get(i).is_some_and(|b| matches!(b, b'.' | b'e' | b'E'))
                    || i - start > 15
                    || text[start] == b'-' && text[start + 1..i] == *b"0"
                {
                    return false;
                }
            }
            b' ' | b'\t' | b'\n' | b'\r' => return false,
            _ => i += 1,
        }
    }
    true
}

/// The closing quote of a string that holds no escape other than JavaScript's own short ones.
fn plain_string_end(text: &[u8], mut i: usize) -> Option<usize> {
    loop {
        i += memchr::memchr2(b'"', b'\\', text.get(i..)?)?;
        if text[i] == b'"' {
            return Some(i);
        }
        match text.get(i + 1)? {
            b'"' | b'\\' | b'n' | b'r' | b't' | b'b' | b'f' => i += 2,
            _ => return None,
        }
    }
}

/// A parsed value in an arena: no recursion, whatever the depth.
struct Tree<'a> {
    nodes: Vec<Node<'a>>,
}

struct Node<'a> {
    /// The key as written, without its quotes.
    key: Option<&'a str>,
    value: Value<'a>,
}

enum Value<'a> {
    /// A string as written, without its quotes.
    Text(&'a str),
    /// A number, `true`, `false` or `null`.
    Scalar(&'a str),
    Array(Vec<u32>),
    Object(Vec<u32>),
}

impl<'a> Tree<'a> {
    /// Parses text that is known to be valid JSON; anything else gives some tree, never a panic.
    fn parse(text: &'a str) -> Self {
        let bytes = text.as_bytes();
        let mut nodes: Vec<Node<'a>> = Vec::new();
        let mut open: Vec<u32> = Vec::new();
        let mut key: Option<&'a str> = None;
        let mut i = 0;
        while i < bytes.len() {
            let value = match bytes[i] {
                b'"' => {
                    let start = i + 1;
                    let end = string_end(bytes, start);
                    i = (end + 1).min(bytes.len());
                    let content = text.get(start..end).unwrap_or_default();
                    let mut next = i;
                    while bytes.get(next).is_some_and(u8::is_ascii_whitespace) {
                        next += 1;
                    }
                    if bytes.get(next) == Some(&b':') {
                        key = Some(content);
                        i = next + 1;
                        continue;
                    }
                    Value::Text(content)
                }
                b'{' => {
                    i += 1;
                    Value::Object(Vec::new())
                }
                b'[' => {
                    i += 1;
                    Value::Array(Vec::new())
                }
                b'}' | b']' => {
                    i += 1;
                    if let Some(closed) = open.pop() {
                        Self::close(&mut nodes, closed);
                    }
                    continue;
                }
                b',' | b':' | b' ' | b'\t' | b'\n' | b'\r' => {
                    i += 1;
                    continue;
                }
                _ => {
                    let start = i;
                    while bytes
                        .get(i)
                        .is_some_and(|b| !matches!(b, b',' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r'))
                    {
                        i += 1;
                    }
                    Value::Scalar(text.get(start..i).unwrap_or_default())
                }
            };
            let index = u32::try_from(nodes.len()).unwrap_or(u32::MAX);
            let container = matches!(value, Value::Array(_) | Value::Object(_));
            nodes.push(Node {
                key: key.take(),
                value,
            });
            if let Some(parent) = open.last().and_then(|&p| nodes.get_mut(p as usize))
                && let Value::Array(children) | Value::Object(children) = &mut parent.value
            {
                children.push(index);
            }
            if container {
                open.push(index);
            }
        }
        Self { nodes }
    }

    /// Gives a finished object JavaScript's key order: array indices ascending, then the others, each at the
    /// place of its first and with the value of its last occurrence.
    fn close(nodes: &mut [Node<'a>], object: u32) {
        let children = match nodes.get_mut(object as usize) {
            Some(Node {
                value: Value::Object(children),
                ..
            }) => std::mem::take(children),
            _ => return,
        };
        let mut seen: rustc_hash::FxHashMap<Cow<'_, str>, usize> = rustc_hash::FxHashMap::default();
        let mut order: Vec<(Option<u32>, u32)> = Vec::with_capacity(children.len());
        for child in children {
            let key = nodes
                .get(child as usize)
                .and_then(|n| n.key)
                .map(key_text)
                .unwrap_or_default();
            let index = array_index(&key);
            if let Some(&place) = seen.get(&key) {
                order[place].1 = child;
            } else {
                seen.insert(key, order.len());
                order.push((index, child));
            }
        }
        order.sort_by_key(|&(index, _)| index.map_or((1, 0), |i| (0, i)));
        let sorted = order.into_iter().map(|(_, child)| child).collect();
        if let Some(node) = nodes.get_mut(object as usize) {
            node.value = Value::Object(sorted);
        }
    }

    fn print(&self) -> String {
        self.print_node(0)
    }

    fn print_node(&self, root: u32) -> String {
        let mut out = String::new();
        // Each open container with the number of children already printed.
        let mut open: Vec<(u32, usize)> = Vec::new();
        self.begin(&mut out, &mut open, root);
        while let Some((container, done)) = open.last_mut() {
            let (children, close) = match self.nodes.get(*container as usize).map(|n| &n.value) {
                Some(Value::Array(children)) => (children, ']'),
                Some(Value::Object(children)) => (children, '}'),
                _ => break,
            };
            let Some(&child) = children.get(*done) else {
                out.push(close);
                open.pop();
                continue;
            };
            if *done > 0 {
                out.push(',');
            }
            *done += 1;
            if close == '}' {
                let key = self
                    .nodes
                    .get(child as usize)
                    .and_then(|n| n.key)
                    .unwrap_or_default();
                out.push('"');
                write_rewritten(&mut out, key);
                out.push_str("\":");
            }
            self.begin(&mut out, &mut open, child);
        }
        out
    }

    fn begin(&self, out: &mut String, open: &mut Vec<(u32, usize)>, index: u32) {
        match self.nodes.get(index as usize).map(|n| &n.value) {
            Some(Value::Text(text)) => {
                out.push('"');
                write_rewritten(out, text);
                out.push('"');
            }
            Some(Value::Scalar(text)) => match text.as_bytes().first() {
                Some(b'-' | b'0'..=b'9') => out.push_str(&number(text)),
                _ => out.push_str(text),
            },
            Some(Value::Array(_)) => {
                out.push('[');
                open.push((index, 0));
            }
            Some(Value::Object(_)) => {
                out.push('{');
                open.push((index, 0));
            }
            None => {}
        }
    }
}

fn string_end(bytes: &[u8], mut i: usize) -> usize {
    while let Some(at) = bytes.get(i..).and_then(|rest| memchr::memchr2(b'"', b'\\', rest)) {
        i += at;
        if bytes[i] == b'"' {
            return i;
        }
        i += 2;
    }
    bytes.len()
}

/// A key that JavaScript treats as an array index.
fn array_index(key: &str) -> Option<u32> {
    let canonical = key == "0" || key.starts_with(|c: char| ('1'..='9').contains(&c));
    if !canonical || !key.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    key.parse().ok().filter(|&n| n != u32::MAX)
}

/// The decoded text of a string as written.
fn key_text(written: &str) -> Cow<'_, str> {
    if !written.contains('\\') {
        return Cow::Borrowed(written);
    }
    let mut out = Vec::with_capacity(written.len());
    let literal = format!("\"{written}\"");
    let mut d = serde_json::Deserializer::from_str(&literal);
    if let Ok(text) = <Cow<'_, str> as super::Field<'_>>::strict(&mut d) {
        return Cow::Owned(text.into_owned());
    }
    out.extend_from_slice(written.as_bytes());
    Cow::Owned(text_of(&out))
}

/// Writes a string as written with the escapes that `JSON.stringify` would choose; lone surrogates keep theirs.
fn write_rewritten(out: &mut String, written: &str) {
    let bytes = written.as_bytes();
    let mut from = 0;
    let mut i = 0;
    while let Some(at) = bytes.get(i..).and_then(|rest| memchr::memchr(b'\\', rest)) {
        let at = i + at;
        out.push_str(&written[from..at]);
        let (ch, len) = match bytes.get(at + 1) {
            Some(b'u') => {
                let unit = hex4(bytes.get(at + 2..at + 6)).unwrap_or(0xFFFD);
                let low = (bytes.get(at + 6..at + 8) == Some(b"\\u"))
                    .then(|| hex4(bytes.get(at + 8..at + 12)))
                    .flatten();
                match (unit, low) {
                    (0xD800..=0xDBFF, Some(low @ 0xDC00..=0xDFFF)) => {
                        let pair = char::decode_utf16([unit, low]).next().and_then(Result::ok);
                        (pair, 12)
                    }
                    (0xD800..=0xDFFF, _) => {
                        out.push_str(&format!("\\u{unit:04x}"));
                        (None, 6)
                    }
                    _ => (char::from_u32(u32::from(unit)), 6),
                }
            }
            Some(b'n') => (Some('\n'), 2),
            Some(b'r') => (Some('\r'), 2),
            Some(b't') => (Some('\t'), 2),
            Some(b'b') => (Some('\u{8}'), 2),
            Some(b'f') => (Some('\u{c}'), 2),
            Some(b'/') => (Some('/'), 2),
            Some(b'"') => (Some('"'), 2),
            Some(b'\\') => (Some('\\'), 2),
            _ => (None, 1),
        };
        if let Some(ch) = ch {
            write_escaped(out, ch.encode_utf8(&mut [0; 4]));
        }
        i = (at + len).min(bytes.len());
        from = i;
    }
    out.push_str(&written[from..]);
}

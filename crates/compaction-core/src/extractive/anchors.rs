//! Anchors and plain words of a line: the items whose coverage a ranking maximises.
//!
//! Anchors are paths, identifiers, numbers, codes and quoted literals; plain words are lower-case words that
//! are no anchors. All rules are over ASCII; a character that is not ASCII only separates. One pass over the
//! bytes, nothing is allocated.

use rustc_hash::FxHashSet;
use std::sync::LazyLock;

/// Something found in a line, in the order of the line; quoted literals come last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Item<'l> {
    /// A run of word and path characters.
    Whole(&'l str),
    /// The last part of the path, or a part of the dotted name, that came before as [`Item::Whole`].
    Sub(&'l str),
    /// The same part of a run that is itself no anchor.
    Part(&'l str),
    /// A literal in quotes.
    Quoted(&'l str),
    /// A plain word of 5 to 20 lower-case letters.
    Word(&'l str),
}

impl<'l> Item<'l> {
    /// The text, whatever it is.
    pub const fn text(self) -> &'l str {
        match self {
            Self::Whole(t) | Self::Sub(t) | Self::Part(t) | Self::Quoted(t) | Self::Word(t) => t,
        }
    }

    /// Whether it is a plain word and no anchor.
    pub const fn is_word(self) -> bool {
        matches!(self, Self::Word(_))
    }
}

/// Finds the items of a line. An item may come more than once.
pub fn lex<'l>(line: &'l str, mut visit: impl FnMut(Item<'l>)) {
    let bytes = line.as_bytes();
    let mut at = 0;
    let mut quotes = false;
    while let Some(&byte) = bytes.get(at) {
        match class(byte) {
            Class::Other => at += 1,
            Class::Quote => {
                quotes = true;
                at += 1;
            }
            // An escaped line break or tab separates, so that its letter does not stick to the next word.
            Class::Backslash => at += 1 + usize::from(matches!(bytes.get(at + 1), Some(b'n' | b'r' | b't'))),
            Class::Colon if bytes.get(at + 1) != Some(&b':') => at += 1,
            Class::Run | Class::Colon => {
                let start = at;
                at = run_end(bytes, at);
                // A run is ASCII, so the slice is on character borders.
                run(line.get(start..at).unwrap_or_default(), &mut visit);
            }
        }
    }
    if quotes {
        quoted(line, &mut visit);
    }
}

/// The text in which anchors are looked up: escaped line breaks and tabs become spaces of the same length.
pub fn norm(line: &str) -> std::borrow::Cow<'_, str> {
    if memchr::memchr(b'\\', line.as_bytes()).is_none() {
        return line.into();
    }
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = memchr::memchr(b'\\', rest.as_bytes()) {
        let (before, after) = rest.split_at(at);
        out.push_str(before);
        if matches!(after.as_bytes().get(1), Some(b'n' | b'r' | b't')) {
            out.push_str("  ");
            rest = after.get(2..).unwrap_or_default();
        } else {
            out.push('\\');
            rest = after.get(1..).unwrap_or_default();
        }
    }
    out.push_str(rest);
    out.into()
}

/// Whether an anchor stands in a normalised line with no word character of it touching one of the line.
pub fn occurs(anchor: &str, line: &str) -> bool {
    let (Some(&first), Some(&last)) = (anchor.as_bytes().first(), anchor.as_bytes().last()) else {
        return false;
    };
    let bytes = line.as_bytes();
    // `find` again from the next character, not from the end of the match: matches may overlap.
    let mut from = 0;
    while let Some(at) = line
        .get(from..)
        .and_then(|rest| rest.find(anchor))
        .map(|i| i + from)
    {
        let before = at.checked_sub(1).and_then(|i| bytes.get(i));
        let after = bytes.get(at + anchor.len());
        let touches = |edge: u8, other: Option<&u8>| is_word(edge) && other.is_some_and(|&b| is_word(b));
        if !touches(first, before) && !touches(last, after) {
            return true;
        }
        from = at + 1;
        while !line.is_char_boundary(from) {
            from += 1;
        }
    }
    false
}

/// General names that point at nothing in particular.
const STOP: [&str; 55] = [
    "and/or",
    "either/or",
    "input/output",
    "read/write",
    "true/false",
    "success/failure",
    "before/after",
    "e.g",
    "i.e",
    "JavaScript",
    "TypeScript",
    "GitHub",
    "OpenAI",
    "README.md",
    "package.json",
    "tsconfig.json",
    "node_modules",
    "node_modules/.bin",
    ".gitignore",
    "console.log",
    "console.error",
    "JSON.stringify",
    "JSON.parse",
    "Math.max",
    "Math.min",
    "Math.floor",
    "Math.ceil",
    "Object.keys",
    "Object.entries",
    "Array.isArray",
    "Array.from",
    "process.env",
    "process.cwd",
    "process.exit",
    "Promise.all",
    "Date.now",
    "toString",
    "toLowerCase",
    "toUpperCase",
    "startsWith",
    "endsWith",
    "forEach",
    "indexOf",
    "dev/null",
    "/dev/null",
    "usr/bin",
    "bin/bash",
    "old_string",
    "new_string",
    "file_path",
    "subagent_type",
    "run_in_background",
    "output_mode",
    "replace_all",
    "REDACTED_EMAIL",
];

static STOP_SET: LazyLock<FxHashSet<&'static str>> = LazyLock::new(|| STOP.into_iter().collect());
const LONGEST_STOP: usize = 17;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Other,
    Run,
    Colon,
    Quote,
    Backslash,
}

const CLASSES: [Class; 256] = {
    let mut table = [Class::Other; 256];
    let mut b = 0u8;
    while b < 128 {
        table[b as usize] = match b {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'_' | b'.' | b'/' | b'-' => Class::Run,
            b':' => Class::Colon,
            b'"' | b'\'' | b'`' => Class::Quote,
            b'\\' => Class::Backslash,
            _ => Class::Other,
        };
        b += 1;
    }
    table
};

const fn class(byte: u8) -> Class {
    CLASSES[byte as usize]
}

const fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Where the run ends that begins at `at`; colons belong to it in pairs.
fn run_end(bytes: &[u8], mut at: usize) -> usize {
    while let Some(&byte) = bytes.get(at) {
        match class(byte) {
            Class::Run => at += 1,
            Class::Colon if bytes.get(at + 1) == Some(&b':') => at += 2,
            _ => break,
        }
    }
    at
}

fn strip(text: &str) -> &str {
    text.trim_matches(['.', '/', ':', '-'])
}

fn run<'l>(run: &'l str, visit: &mut impl FnMut(Item<'l>)) {
    let stripped = strip(run);
    if stripped.bytes().all(|b| b.is_ascii_lowercase()) {
        // A plain word cannot be an anchor: it has neither digit nor joint.
        if (5..=20).contains(&stripped.len()) {
            visit(Item::Word(stripped));
        }
        return;
    }
    if stripped.len() < 4 {
        return; // shorter than any anchor or any part of one
    }
    for piece in stripped.split("..") {
        let whole = strip(piece);
        let whole_is_anchor = is_anchor(whole);
        if whole_is_anchor {
            visit(Item::Whole(whole));
        }
        let mut part = |text: &'l str| {
            let text = strip(text);
            if is_anchor(text) {
                visit(if whole_is_anchor {
                    Item::Sub(text)
                } else {
                    Item::Part(text)
                });
            }
        };
        if let Some((_, name)) = whole.rsplit_once('/') {
            part(name);
        } else if whole.contains('.') || whole.contains("::") {
            // A single colon is not inside of a run, so splitting at each gives the same parts.
            whole.split(['.', ':']).for_each(part);
        }
    }
}

fn is_anchor(text: &str) -> bool {
    qualifies(text.as_bytes()) && (text.len() > LONGEST_STOP || !STOP_SET.contains(text))
}

/// Whether a run is specific enough to be an anchor.
fn qualifies(text: &[u8]) -> bool {
    let len = text.len();
    if !(4..=200).contains(&len) {
        return false;
    }
    let mut letters = 0;
    let mut digits = 0;
    let mut hex_letters = 0;
    let mut joint = false;
    let mut dash = false;
    let mut camel = false;
    let mut before = 0u8;
    for &byte in text {
        match byte {
            b'a'..=b'z' => {
                letters += 1;
                hex_letters += usize::from(byte <= b'f');
            }
            b'A'..=b'Z' => {
                letters += 1;
                camel |= before.is_ascii_lowercase() || before.is_ascii_digit();
            }
            b'0'..=b'9' => digits += 1,
            b'-' => dash = true,
            b'_' | b'.' | b'/' => joint = true,
            b':' => joint |= before == b':',
            _ => {}
        }
        before = byte;
    }
    if letters == 0 {
        return digits == len && len <= 20 && !text.ends_with(b"000");
    }
    if digits > 0 && digits + letters == len {
        let is_hex = digits + hex_letters == len && hex_letters > 0 && (7..=64).contains(&len);
        if is_hex || is_code(text, letters) {
            return true;
        }
    }
    len >= 6 && (joint || camel || (dash && digits > 0))
}

/// Codes as compilers print them: `E0308`, `TS2345`.
fn is_code(text: &[u8], letters: usize) -> bool {
    (1..=6).contains(&letters)
        && (3..=6).contains(&(text.len() - letters))
        && text.iter().take(letters).all(u8::is_ascii_uppercase)
}

/// Literals in quotes of 6 to 60 characters. The quote must not touch a word character on the outside.
fn quoted<'l>(line: &'l str, visit: &mut impl FnMut(Item<'l>)) {
    let bytes = line.as_bytes();
    let word_at = |i: usize| bytes.get(i).is_some_and(|&b| is_word(b));
    let mut at = 0;
    while let Some(found) = bytes
        .get(at..)
        .and_then(|rest| memchr::memchr3(b'"', b'\'', b'`', rest))
    {
        let open = at + found;
        at = open + 1;
        if open > 0 && word_at(open - 1) {
            continue;
        }
        let Some(content) = closed_by(line, open).filter(|content| !word_at(at + content.len() + 1)) else {
            continue;
        };
        at += content.len() + 1;
        if is_literal(content) && !STOP_SET.contains(content) {
            visit(Item::Quoted(content));
        }
    }
}

/// The text between the quote at `open` and the same quote at most 61 characters further on.
fn closed_by(line: &str, open: usize) -> Option<&str> {
    let rest = line.as_bytes().get(open + 1..)?;
    // 60 characters have at most 240 bytes.
    let near = rest.get(..241).unwrap_or(rest);
    let len = memchr::memchr(*line.as_bytes().get(open)?, near)?;
    let content = line.get(open + 1..open + 1 + len)?;
    (len <= 60 || content.chars().count() <= 60).then_some(content)
}

fn is_literal(text: &str) -> bool {
    let bytes = text.as_bytes();
    let at_edge = |b: Option<&u8>| matches!(b, Some(b' ' | b'\t'));
    bytes.len() >= 6
        && !at_edge(bytes.first())
        && !at_edge(bytes.last())
        && bytes.iter().any(u8::is_ascii_alphabetic)
        && !bytes.iter().all(u8::is_ascii_alphabetic)
        && !bytes.contains(&b'\\')
        && (text.is_ascii() || text.chars().count() >= 6)
        && !is_one_run(text)
}

/// A quoted path or identifier is already an anchor of its own.
fn is_one_run(text: &str) -> bool {
    let stripped = strip(text);
    run_end(text.as_bytes(), 0) == text.len() && !stripped.contains("..") && qualifies(stripped.as_bytes())
}

#[cfg(test)]
mod tests;

//! Tokens: words as they stand, and the parts that identifiers and paths consist of.
//!
//! A word is a run of letters, digits and `_`. Words with `/`, `\`, `.`, `-` or `:` between them are a token together
//! (`src/lease.rs`) and each alone; a word is a token whole (`FencingToken`) and in parts (`fencing`, `token`). Chinese,
//! Japanese and Korean writing has no spaces: there each pair of neighbours is a token.

/// The most bytes of a word. Longer runs are data and no words.
pub const MAX_TOKEN: usize = 200;

/// For whom tokens are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// The text that is searched: single ideographs are tokens too.
    Text,
    /// What is searched for: a single ideograph is a token only if it stands alone.
    Query,
}

/// Calls `found` with each token, folded to lower case, and the place in `text` at which it begins.
pub(super) fn each_token(text: &str, side: Side, found: &mut dyn FnMut(&str, usize)) {
    let mut tokens = Tokens {
        folded: String::new(),
        found,
    };
    let mut at = 0;
    while let Some(c) = text.get(at..).and_then(|rest| rest.chars().next()) {
        at = if is_ideograph(c) {
            tokens.ideographs(text, at, side)
        } else if is_word(c) {
            tokens.compound(text, at)
        } else {
            at + c.len_utf8()
        };
    }
}

struct Tokens<'f> {
    folded: String,
    found: &'f mut dyn FnMut(&str, usize),
}

impl Tokens<'_> {
    fn emit(&mut self, token: &str, at: usize) {
        if token.len() > MAX_TOKEN || !token.contains(char::is_alphanumeric) {
            return;
        }
        self.folded.clear();
        if token.is_ascii() {
            self.folded.push_str(token);
            self.folded.make_ascii_lowercase();
        } else {
            self.folded.extend(token.chars().map(fold));
        }
        (self.found)(&self.folded, at);
    }

    /// Returns where the run ends.
    fn ideographs(&mut self, text: &str, start: usize, side: Side) -> usize {
        let run = run_of(text, start, is_ideograph);
        let mut before: Option<usize> = None;
        for (at, c) in run.char_indices() {
            let end = at + c.len_utf8();
            if let Some(pair) = before.and_then(|before| run.get(before..end)) {
                self.emit(pair, start + at - (pair.len() - c.len_utf8()));
            }
            if side == Side::Text || run.len() == c.len_utf8() {
                self.emit(run.get(at..end).unwrap_or_default(), start + at);
            }
            before = Some(at);
        }
        start + run.len()
    }

    /// Returns where the last word ends.
    fn compound(&mut self, text: &str, start: usize) -> usize {
        let mut at = start;
        let end = loop {
            let word = run_of(text, at, |c| is_word(c) && !is_ideograph(c));
            self.word(word, at);
            let end = at + word.len();
            let next = end + run_of(text, end, is_joiner).len();
            let goes_on = next > end
                && text
                    .get(next..)
                    .and_then(|rest| rest.chars().next())
                    .is_some_and(|c| is_word(c) && !is_ideograph(c));
            if !goes_on {
                break end;
            }
            at = next;
        };
        if at > start {
            self.emit(text.get(start..end).unwrap_or_default(), start);
        }
        end
    }

    fn word(&mut self, word: &str, start: usize) {
        self.emit(word, start);
        let mut piece_at = 0;
        for piece in word.split('_') {
            let mut part_at = 0;
            for cut in humps(piece).chain([piece.len()]) {
                let part = piece.get(part_at..cut).unwrap_or_default();
                if part.len() < word.len() {
                    self.emit(part, start + piece_at + part_at);
                }
                part_at = cut;
            }
            piece_at += piece.len() + 1;
        }
    }
}

/// Where the parts of `fencingToken` and `HTTPServer` begin, but for the first.
fn humps(piece: &str) -> impl Iterator<Item = usize> + '_ {
    let mut before: Option<char> = None;
    piece.char_indices().filter_map(move |(at, c)| {
        let last = before.replace(c)?;
        if !c.is_uppercase() {
            return None;
        }
        let next = piece.get(at + c.len_utf8()..)?.chars().next();
        let begins = !last.is_uppercase() || next.is_some_and(char::is_lowercase);
        begins.then_some(at)
    })
}

fn run_of(text: &str, at: usize, belongs: impl Fn(char) -> bool) -> &str {
    let rest = text.get(at..).unwrap_or_default();
    let len = rest.find(|c| !belongs(c)).unwrap_or(rest.len());
    rest.get(..len).unwrap_or_default()
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

pub(super) fn is_joiner(c: char) -> bool {
    matches!(c, '/' | '\\' | '.' | '-' | ':')
}

fn is_ideograph(c: char) -> bool {
    matches!(c,
        '\u{3041}'..='\u{30FF}' | '\u{31F0}'..='\u{31FF}' | '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}'
        | '\u{AC00}'..='\u{D7A3}' | '\u{F900}'..='\u{FAFF}' | '\u{FF66}'..='\u{FF9F}' | '\u{20000}'..='\u{3FFFD}')
        && c.is_alphanumeric()
}

/// Lower case, if that is one character from which the way back is the same; the character itself otherwise.
/// ASCII letters are only ever the folded form of ASCII letters, so that folded bytes can be searched for.
pub(super) fn fold(c: char) -> char {
    if c.is_ascii() {
        return c.to_ascii_lowercase();
    }
    only(c.to_lowercase())
        .filter(|lower| !lower.is_ascii() && only(lower.to_uppercase()) == Some(c))
        .unwrap_or(c)
}

/// The characters that fold to this folded one, itself included. ASCII is left to searches that know no case.
pub(super) fn variants(c: char) -> impl Iterator<Item = char> {
    let upper = (!c.is_ascii())
        .then(|| only(c.to_uppercase()))
        .flatten()
        .filter(|upper| *upper != c && fold(*upper) == c);
    [Some(c), upper].into_iter().flatten()
}

/// Whether one search finds every form of the character.
pub(super) fn is_caseless(c: char) -> bool {
    variants(c).count() == 1
}

fn only(mut chars: impl Iterator<Item = char>) -> Option<char> {
    chars.next().filter(|_| chars.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::{Side, each_token};

    fn tokens(text: &str, side: Side) -> Vec<String> {
        let mut all = Vec::new();
        each_token(text, side, &mut |token, at| {
            assert!(text.is_char_boundary(at));
            all.push(token.to_owned());
        });
        all
    }

    #[test]
    fn identifiers_and_paths_are_whole_and_in_parts() {
        let table: &[(&str, &[&str])] = &[
            ("", &[]),
            ("Fix it, now!", &["fix", "it", "now"]),
            ("FencingToken", &["fencingtoken", "fencing", "token"]),
            (
                "parseHTTPHeader2",
                &["parsehttpheader2", "parse", "http", "header2"],
            ),
            ("MAX_LEN __init__", &["max_len", "max", "len", "__init__", "init"]),
            ("./src/a.rs:12", &["src", "a", "rs", "12", "src/a.rs:12"]),
            (r"C:\tmp", &["c", "tmp", r"c:\tmp"]),
            ("-- a - b ...", &["a", "b"]),
            ("node-7's", &["node", "7", "node-7", "s"]),
            ("Été ÉTÉ", &["été", "été"]),
            ("___ :: ", &[]),
        ];
        for (text, expected) in table {
            assert_eq!(tokens(text, Side::Text), *expected, "{text}");
            assert_eq!(tokens(text, Side::Query), *expected, "{text}");
        }
    }

    #[test]
    fn writing_without_spaces_is_cut_into_pairs() {
        assert_eq!(tokens("修复数据", Side::Query), ["修复", "复数", "数据"]);
        assert_eq!(tokens("修复", Side::Text), ["修", "修复", "复"]);
        assert_eq!(tokens("修", Side::Query), ["修"]);
        assert_eq!(tokens("用lease表", Side::Query), ["用", "lease", "表"]);
    }

    #[test]
    fn long_runs_are_no_words() {
        assert!(tokens(&"a".repeat(201), Side::Text).is_empty());
        assert_eq!(tokens(&"a".repeat(200), Side::Text).len(), 1);
    }
}

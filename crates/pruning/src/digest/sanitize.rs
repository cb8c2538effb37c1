//! Text without terminal control: what a terminal would act on must not reach a notice.

use std::borrow::Cow;

const ESC: char = '\u{1B}';
/// Bytes that are looked at together.
const BLOCK: usize = 256;

/// The text without escape sequences and control characters other than tab and newline. Borrowed if it has none.
pub(super) fn sanitize(text: &str) -> Cow<'_, str> {
    if !may_hold_control(text.as_bytes()) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let after = &rest[c.len_utf8()..];
        rest = match c {
            ESC => after_escape(after),
            '\u{9B}' => after_csi(after),
            '\t' | '\n' => {
                out.push(c);
                after
            }
            '\u{0}'..='\u{1F}' | '\u{7F}'..='\u{9F}' => after,
            _ => {
                let end = rest.find(is_control).unwrap_or(rest.len());
                out.push_str(&rest[..end]);
                &rest[end..]
            }
        };
    }
    Cow::Owned(out)
}

fn is_control(c: char) -> bool {
    matches!(c, '\u{0}'..='\u{1F}' | '\u{7F}'..='\u{9F}')
}

/// Whether a byte can belong to a control character that is removed. In blocks, without an early exit inside of one,
/// so that the compiler can look at many bytes at once.
fn may_hold_control(bytes: &[u8]) -> bool {
    // Compared as signed numbers, control characters and whatever is not ASCII are the smaller ones: one comparison
    // of the widest kind, and most text is ASCII.
    let is_rare = |b: u8| (b.cast_signed() < 0x20 && b != b'\t' && b != b'\n') || b == 0x7F;
    let is_control = |b: u8| (b < 0x20 && b != b'\t' && b != b'\n') || b == 0x7F || b == 0xC2;
    let any = |block: &[u8], is: fn(u8) -> bool| block.iter().fold(false, |found, &b| found | is(b));
    bytes
        .chunks(BLOCK)
        .any(|block| any(block, is_rare) && any(block, is_control))
}

/// What follows an escape sequence of which ESC was read.
fn after_escape(rest: &str) -> &str {
    let mut chars = rest.chars();
    match chars.next() {
        Some('[') => after_csi(chars.as_str()),
        // Operating system commands and other strings: to BEL or ESC \. One that never ends is no sequence.
        Some(']' | 'P' | 'X' | '^' | '_') => {
            let body = chars.as_str();
            match body.find(['\u{7}', ESC, '\u{9C}']) {
                Some(end) if body[end..].starts_with("\u{1B}\\") => &body[end + 2..],
                Some(end) if body[end..].starts_with(ESC) => &body[end..],
                Some(end) => body[end..]
                    .chars()
                    .next()
                    .map_or("", |c| &body[end + c.len_utf8()..]),
                None => body,
            }
        }
        // Intermediate bytes, then one final byte.
        Some(' '..='/') => {
            let body = rest.trim_start_matches(|c: char| matches!(c, ' '..='/'));
            skip_final(body, |c| matches!(c, '0'..='~'))
        }
        _ => skip_final(rest, |c| matches!(c, '0'..='~')),
    }
}

/// What follows a control sequence whose introducer was read: parameters, intermediate bytes, a final byte.
fn after_csi(rest: &str) -> &str {
    let rest = rest.trim_start_matches(|c: char| matches!(c, '0'..='?'));
    let rest = rest.trim_start_matches(|c: char| matches!(c, ' '..='/'));
    skip_final(rest, |c| matches!(c, '@'..='~'))
}

fn skip_final(rest: &str, is_final: impl Fn(char) -> bool) -> &str {
    match rest.chars().next() {
        Some(c) if is_final(c) => &rest[c.len_utf8()..],
        _ => rest,
    }
}

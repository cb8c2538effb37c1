//! The notice in the place of a result (seed 000, "Pre-compaction pruning"; spec "Pruning", 6).

use std::fmt::Write as _;

use foldline_session_model::Tokens;

/// What every reference to an artifact begins with.
pub(crate) const SCHEME: &str = "artifact://";

/// The notice for a result of `tokens` tokens. A digest stands in the bracket, or behind it if there is a reference.
pub(crate) fn notice(tokens: Tokens, digest: Option<&str>, reference: Option<&str>) -> String {
    let mut out = String::with_capacity(48 + digest.map_or(0, str::len) + reference.map_or(0, str::len));
    write_notice(&mut out, tokens, digest, reference);
    out
}

/// Appends the [`notice`].
pub(crate) fn write_notice(out: &mut String, tokens: Tokens, digest: Option<&str>, reference: Option<&str>) {
    // Writing to a String cannot fail.
    let _ = write!(out, "[Output truncated - {tokens} tokens");
    if let Some(reference) = reference {
        out.push_str("; full output: ");
        out.push_str(reference);
        out.push(']');
    }
    if let Some(digest) = digest {
        out.push_str(if reference.is_some() { " " } else { "; " });
        out.push_str(digest);
    }
    if reference.is_none() {
        out.push(']');
    }
}

/// The reference to the original of an entry that is still in the log.
pub(crate) fn entry_reference(id: &str) -> String {
    let mut out = String::new();
    write_entry_reference(&mut out, id);
    out
}

/// Appends the [`entry_reference`].
pub(crate) fn write_entry_reference(out: &mut String, id: &str) {
    out.push_str(SCHEME);
    out.push_str("entry/");
    out.push_str(id);
}

/// The reference to an artifact file.
pub(crate) fn number_reference(number: u64) -> String {
    format!("{SCHEME}{number}")
}

#[cfg(test)]
mod tests {
    use super::{Tokens, notice};

    #[test]
    fn the_four_forms() {
        let table = [
            (None, None, "[Output truncated - 7 tokens]"),
            (Some("exit=1"), None, "[Output truncated - 7 tokens; exit=1]"),
            (
                None,
                Some("artifact://5"),
                "[Output truncated - 7 tokens; full output: artifact://5]",
            ),
            (
                Some("exit=1"),
                Some("artifact://5"),
                "[Output truncated - 7 tokens; full output: artifact://5] exit=1",
            ),
        ];
        for (digest, reference, expected) in table {
            assert_eq!(notice(Tokens(7), digest, reference), expected);
        }
    }
}

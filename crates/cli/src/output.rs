//! The only place that prints. Results go to standard output; warnings and errors to standard error.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "this is the module that prints"
)]

use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use serde::Serialize;

use crate::error::CommandError;

/// For whom a result is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// A person.
    Human,
    /// A program: one JSON document.
    Json,
}

impl Format {
    pub(crate) const fn from_flag(json: bool) -> Self {
        if json { Self::Json } else { Self::Human }
    }
}

pub(crate) const BOLD: Style = Style::new().bold();
pub(crate) const DIM: Style = Style::new().dimmed();
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
pub(crate) const NOTE: Style = AnsiColor::Yellow.on_default();
pub(crate) const BAD: Style = AnsiColor::Red.on_default();
const WARNING: Style = AnsiColor::Yellow.on_default().bold();
const ERROR: Style = AnsiColor::Red.on_default().bold();

/// Prints a result: the document for programs, the text for people.
pub(crate) fn result(format: Format, document: &impl Serialize, text: impl FnOnce() -> String) {
    match format {
        Format::Json => {
            let mut out = std::io::BufWriter::new(std::io::stdout().lock());
            // A closed pipe is the reader's choice; there is nobody left to tell.
            serde_json::to_writer(&mut out, document).ok();
            out.write_all(b"\n").and_then(|()| out.flush()).ok();
        }
        Format::Human => {
            let mut out = anstream::stdout().lock();
            out.write_all(text().as_bytes()).and_then(|()| out.flush()).ok();
        }
    }
}

/// Prints a line of a protocol.
///
/// # Errors
/// Nobody reads any more.
pub(crate) fn line(text: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.write_all(b"\n")?;
    out.flush()
}

/// Prints a piece of a text that is still coming.
pub(crate) fn stream(piece: &str) {
    let mut out = std::io::stdout().lock();
    let written = if out.is_terminal() {
        // What a model says must not command the terminal.
        let shown: String = piece
            .chars()
            .filter(|c| !c.is_control() || matches!(c, '\n' | '\t'))
            .collect();
        out.write_all(shown.as_bytes())
    } else {
        out.write_all(piece.as_bytes())
    };
    written.and_then(|()| out.flush()).ok();
}

/// Prints a warning.
pub(crate) fn warning(text: &str) {
    anstream::eprintln!("{WARNING}warning{WARNING:#}: {text}");
}

/// Prints what happened while a command goes on.
pub(crate) fn note(text: &str) {
    anstream::eprintln!("{DIM}{text}{DIM:#}");
}

#[derive(Serialize)]
struct ErrorDocument<'e> {
    error: ErrorFields<'e>,
}

#[derive(Serialize)]
pub(crate) struct ErrorFields<'e> {
    kind: &'static str,
    message: &'e str,
    hint: Option<&'e str>,
}

impl<'e> From<&'e CommandError> for ErrorFields<'e> {
    fn from(error: &'e CommandError) -> Self {
        Self {
            kind: error.kind.name(),
            message: &error.message,
            hint: error.hint.as_deref(),
        }
    }
}

/// Prints a failure: cause, then hint.
pub(crate) fn failure(error: &CommandError, format: Format) {
    let fields = ErrorFields::from(error);
    if format == Format::Json {
        result(format, &ErrorDocument { error: fields }, String::new);
    } else {
        anstream::eprintln!("{ERROR}error{ERROR:#}: {}", error.message);
        if let Some(hint) = &error.hint {
            anstream::eprintln!("{BOLD}hint{BOLD:#}: {hint}");
        }
    }
}

/// Prints what the command line parser has to say: help on standard output, mistakes on standard error.
pub(crate) fn clap(error: &clap::Error) -> ExitCode {
    // A closed pipe is the reader's choice.
    error.print().ok();
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}

/// How many columns a line has: those of the terminal, or 80 for files and pipes.
pub(crate) fn width() -> usize {
    terminal_size::terminal_size_of(std::io::stdout()).map_or(80, |(width, _)| usize::from(width.0).max(40))
}

/// Columns and rows of the terminal; those of a small one if it does not tell.
pub(crate) fn size() -> (usize, usize) {
    terminal_size::terminal_size_of(std::io::stdout()).map_or((80, 24), |(width, height)| {
        (usize::from(width.0), usize::from(height.0))
    })
}

/// A number with commas between groups of three digits.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::grouped;

    #[test]
    fn numbers_are_grouped() {
        for (number, text) in [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(grouped(number), text);
        }
    }
}

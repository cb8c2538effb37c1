//! The only place that prints. Results go to standard output; warnings and errors to standard error.
//!
//! There are two kinds of writing. A **result** for people is text of ours with parts in it that come from sessions,
//! models and the command line; our styles stand in it as marks that no such part can hold. **Content** is nothing but
//! such a part. On a terminal both lose what could command it; in a pipe or a file both are what they are, byte for byte.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "this is the module that prints"
)]

mod ink;

use std::io::{self, BufWriter, IsTerminal as _, Write as _};
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};

use serde::Serialize;

use crate::error::{CommandError, ErrorKind};

pub(crate) use ink::{BAD, BOLD, DIM, GOOD, NOTE, styles};
use ink::{Content, ERROR, Styles, WARNING};

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

/// Prints a result: the document for programs, the text for people.
pub(crate) fn result(format: Format, document: &impl Serialize, text: impl FnOnce() -> String) {
    remember(match format {
        Format::Json => json(document),
        Format::Human => styled(&text()),
    });
}

/// Prints a part of a session as it is: the document for programs, the content for people. A terminal gets a whole last
/// line.
pub(crate) fn content(format: Format, document: &impl Serialize, content: &[u8]) {
    remember(match format {
        Format::Json => json(document),
        Format::Human => raw(content, LastLine::Ended),
    });
}

/// Tells that a command came to no result: programs get the document, people a diagnostic.
pub(crate) fn ended(format: Format, document: &impl Serialize, text: &str) {
    match format {
        Format::Json => result(format, document, String::new),
        Format::Human => note(text),
    }
}

/// Prints a line of a protocol.
///
/// # Errors
/// Nobody reads any more.
pub(crate) fn line(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let written = out
        .write_all(text.as_bytes())
        .and_then(|()| out.write_all(b"\n"))
        .and_then(|()| out.flush());
    if let Err(error) = &written {
        let same = error.raw_os_error().map(io::Error::from_raw_os_error);
        remember(Err(same.unwrap_or_else(|| error.kind().into())));
    }
    written
}

/// Prints a piece of a text that is still coming.
pub(crate) fn stream(piece: &str) {
    remember(raw(piece.as_bytes(), LastLine::AsItIs));
}

/// Prints a warning.
pub(crate) fn warning(text: &str) {
    told(&format!("{WARNING}warning{WARNING:#}: {text}\n"));
}

/// Prints what happened while a command goes on.
pub(crate) fn note(text: &str) {
    told(&format!("{DIM}{text}{DIM:#}\n"));
}

/// Why the output did not arrive. A closed pipe is no reason: it is the reader's choice, and nobody is left to tell.
static LOST: Mutex<Option<io::Error>> = Mutex::new(None);

fn remember(written: io::Result<()>) {
    if let Err(error) = written
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        let mut lost = LOST.lock().unwrap_or_else(PoisonError::into_inner);
        lost.get_or_insert(error);
    }
}

/// What is left to say when a command is over: whether its output arrived.
///
/// # Errors
/// Standard output could not be written.
pub(crate) fn finish() -> Result<(), CommandError> {
    match LOST.lock().unwrap_or_else(PoisonError::into_inner).take() {
        None => Ok(()),
        Some(error) => {
            let message = format!("the output cannot be written: {error}");
            Err(CommandError::new(ErrorKind::Failed, message))
        }
    }
}

fn json(document: &impl Serialize) -> io::Result<()> {
    let out = io::stdout().lock();
    let mut out = BufWriter::new(out);
    if io::stdout().is_terminal() {
        out.write_all(ink::json_for_terminals(&serde_json::to_string(document)?).as_bytes())?;
    } else {
        serde_json::to_writer(&mut out, document)?;
    }
    out.write_all(b"\n")?;
    out.flush()
}

/// Writes text of ours to standard output.
fn styled(text: &str) -> io::Result<()> {
    let out = io::stdout();
    if out.is_terminal() {
        let mut out = anstream::AutoStream::auto(out).lock();
        out.write_all(ink::drawn(text, Styles::Drawn, Content::Harmless).as_bytes())?;
        return out.flush();
    }
    let styles = styles_of(anstream::AutoStream::choice(&out));
    let mut out = out.lock();
    out.write_all(ink::drawn(text, styles, Content::Whole).as_bytes())?;
    out.flush()
}

/// Writes text of ours to standard error. Nobody can be told if that fails.
fn told(text: &str) {
    let out = io::stderr();
    let written = if out.is_terminal() {
        let text = ink::drawn(text, Styles::Drawn, Content::Harmless);
        anstream::AutoStream::auto(out).lock().write_all(text.as_bytes())
    } else {
        let styles = styles_of(anstream::AutoStream::choice(&out));
        out.lock()
            .write_all(ink::drawn(text, styles, Content::Whole).as_bytes())
    };
    written.ok();
}

/// A person can ask for styles in a pipe too.
fn styles_of(choice: anstream::ColorChoice) -> Styles {
    match choice {
        anstream::ColorChoice::Never => Styles::Left,
        _ => Styles::Drawn,
    }
}

/// Whether content gets a line break at its end on a terminal, where something follows it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LastLine {
    Ended,
    AsItIs,
}

fn raw(content: &[u8], last: LastLine) -> io::Result<()> {
    let mut out = io::stdout().lock();
    if out.is_terminal() {
        let shown = ink::harmless(&String::from_utf8_lossy(content));
        out.write_all(shown.as_bytes())?;
        if last == LastLine::Ended && !shown.ends_with('\n') {
            out.write_all(b"\n")?;
        }
    } else {
        out.write_all(content)?;
    }
    out.flush()
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
        told(&format!("{ERROR}error{ERROR:#}: {}\n", error.message));
        if let Some(hint) = &error.hint {
            told(&format!("{BOLD}hint{BOLD:#}: {hint}\n"));
        }
    }
}

/// Prints what the command line parser has to say: help on standard output, mistakes on standard error.
pub(crate) fn clap(error: &clap::Error) -> ExitCode {
    let typed = |arg: std::ffi::OsString| arg.to_string_lossy().chars().any(char::is_control);
    let code = ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
    if error.use_stderr() && std::env::args_os().any(typed) {
        // The parser repeats what was typed, among styles of its own.
        told(&error.render().to_string());
        return code;
    }
    let printed = error.print();
    if error.use_stderr() {
        return code;
    }
    remember(printed);
    match finish() {
        Ok(()) => code,
        Err(lost) => {
            failure(&lost, Format::Human);
            ExitCode::from(lost.kind.exit_code())
        }
    }
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

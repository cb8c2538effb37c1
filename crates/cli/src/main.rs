#![doc = include_str!("../README.md")]

mod args;
mod commands;
mod commit;
mod cost;
mod door;
mod environment;
mod error;
mod host;
mod model;
mod new_file;
mod output;
mod progress;
#[cfg(test)]
mod reference;
mod session;
mod setup;
mod signals;
mod view;

use std::process::ExitCode;

use clap::Parser as _;

use crate::error::{CommandError, ErrorKind};

fn main() -> ExitCode {
    let args = match args::Args::try_parse() {
        Ok(args) => args,
        Err(error) => return not_understood(&error),
    };
    let format = output::Format::from_flag(args.json);
    let code = match commands::run(&args.command, format) {
        Ok(status) => status.code(),
        Err(error) => {
            output::failure(&error, format);
            error.kind.exit_code()
        }
    };
    match output::finish() {
        Ok(()) => ExitCode::from(code),
        Err(lost) => {
            output::failure(&lost, output::Format::Human);
            // What the command itself has to say comes first.
            ExitCode::from(if code == 0 { lost.kind.exit_code() } else { code })
        }
    }
}

/// What programs get that ask for help or the version.
#[derive(serde::Serialize)]
#[serde(rename_all = "camelCase")]
enum Told {
    Help(String),
    Version(&'static str),
}

impl Told {
    fn of(error: &clap::Error) -> Option<Self> {
        use clap::error::ErrorKind as Parsed;
        match error.kind() {
            Parsed::DisplayHelp => Some(Self::Help(error.render().to_string())),
            Parsed::DisplayVersion => Some(Self::Version(env!("CARGO_PKG_VERSION"))),
            _ => None,
        }
    }
}

/// A command line that is wrong, or that asks for help. Programs get a document here too, although no flag was read.
fn not_understood(error: &clap::Error) -> ExitCode {
    let asks_for_json = std::env::args_os().any(|arg| arg == "--json");
    if asks_for_json {
        // `help` takes no flags.
        let without = std::env::args_os().filter(|arg| arg != "--json");
        let again = args::Args::try_parse_from(without).err();
        if let Some(told) = Told::of(error).or_else(|| again.as_ref().and_then(Told::of)) {
            output::result(output::Format::Json, &told, String::new);
            return ExitCode::SUCCESS;
        }
    }
    if error.use_stderr() && asks_for_json {
        let text = error.render().to_string();
        let cause = text.split("\n\n").next().unwrap_or_default();
        let cause: Vec<&str> = cause.trim_start_matches("error:").split_whitespace().collect();
        let error = CommandError::new(ErrorKind::Usage, cause.join(" "))
            .hint("`foldline help COMMAND` shows what it takes");
        output::failure(&error, output::Format::Json);
        return ExitCode::from(error.kind.exit_code());
    }
    output::clap(error)
}

#![doc = include_str!("../README.md")]

mod args;
mod commands;
mod commit;
mod error;
mod model;
mod new_file;
mod output;
mod progress;
mod session;
mod view;

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    let args = args::Args::parse();
    let format = output::Format::from_flag(args.json);
    match commands::run(&args.command, format) {
        Ok(status) => ExitCode::from(status.code()),
        Err(error) => {
            output::failure(&error, format);
            ExitCode::from(error.kind.exit_code())
        }
    }
}

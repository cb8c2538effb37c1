//! `foldline completions`: scripts that let a shell complete commands and flags.

use clap::CommandFactory as _;
use clap_complete::Shell;
use serde::Serialize;

use crate::error::{CommandError, Status};
use crate::output::{self, Format};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  foldline completions bash > ~/.local/share/bash-completion/completions/foldline
  foldline completions zsh > ~/.zfunc/_foldline
  foldline completions fish > ~/.config/fish/completions/foldline.fish")]
pub(crate) struct Args {
    /// The shell.
    #[arg(value_enum)]
    shell: Shell,
}

#[derive(Serialize)]
struct Document {
    shell: String,
    script: String,
}

#[allow(clippy::unnecessary_wraps, reason = "every command returns the same")]
pub(crate) fn run(args: &Args, format: Format) -> Result<Status, CommandError> {
    let mut script = Vec::new();
    clap_complete::generate(
        args.shell,
        &mut crate::args::Args::command(),
        "foldline",
        &mut script,
    );
    let document = Document {
        shell: args.shell.to_string(),
        script: String::from_utf8_lossy(&script).into_owned(),
    };
    output::content(format, &document, &script);
    Ok(Status::Done)
}

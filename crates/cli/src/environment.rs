//! Every environment variable that Foldline reads: one table for the help, the reference page and its test.

use std::path::PathBuf;

use crate::error::{CommandError, ErrorKind};

/// The folder that the program runs in.
///
/// # Errors
/// It was deleted, or may not be looked at.
pub(crate) fn working_folder() -> Result<PathBuf, CommandError> {
    std::env::current_dir().map_err(|e| {
        CommandError::new(
            ErrorKind::Failed,
            format!("the current folder cannot be used: {e}"),
        )
        .hint("it may have been deleted: change to a folder that exists (cd)")
    })
}

/// A variable and what it does.
pub(crate) struct Variable {
    pub(crate) name: &'static str,
    pub(crate) does: &'static str,
}

const fn variable(name: &'static str, does: &'static str) -> Variable {
    Variable { name, does }
}

/// All of them but those that hold providers' keys, which the model catalogue names.
pub(crate) const VARIABLES: &[Variable] = &[
    variable("FOLDLINE_MODEL", "the model, as --model"),
    variable("FOLDLINE_BASE_URL", "the server to ask, as --base-url"),
    variable("FOLDLINE_API", "how to speak to it, as --api"),
    variable(
        "FOLDLINE_CONTEXT_WINDOW",
        "how many tokens the model can take, as --context-window",
    ),
    variable("FOLDLINE_API_KEY", "the key for the server that --base-url names"),
    variable(
        "XDG_DATA_HOME",
        "sessions and trash are in foldline/ there [default: ~/.local/share]",
    ),
    variable(
        "XDG_CONFIG_HOME",
        "settings are in foldline/ there [default: ~/.config]",
    ),
    variable(
        "PI_CODING_AGENT_DIR",
        "where pi keeps its files [default: ~/.pi/agent]",
    ),
    variable(
        "OMP_CODING_AGENT_DIR",
        "where oh-my-pi keeps its files [default: ~/.omp/agent]",
    ),
    variable(
        "GJC_CODING_AGENT_DIR",
        "where gajae-code keeps its files [default: ~/.gjc/agent]",
    ),
    variable(
        "ATOMIC_CODING_AGENT_DIR",
        "where atomic keeps its files [default: ~/.atomic/agent]",
    ),
    variable(
        "CLAUDE_CONFIG_DIR",
        "where Claude Code keeps its files [default: ~/.claude]",
    ),
    variable("CODEX_HOME", "where Codex keeps its files [default: ~/.codex]"),
    variable("NO_COLOR", "print without colours"),
];

/// The table as the end of a help text.
pub(crate) fn help() -> String {
    let mut text = String::from("Environment variables:\n");
    for variable in VARIABLES {
        text.push_str(&format!("  {:<24} {}\n", variable.name, variable.does));
    }
    text.push_str("  Keys of providers: `foldline models` names the variable of each.");
    text
}

//! What was typed: something to say, or a command.

/// A line that was typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Command {
    Nothing,
    /// Something for the model.
    Say(String),
    /// With instructions, if there are any.
    Compact(Option<String>),
    Prune,
    Undo,
    Tree,
    /// With a focus, if there is one.
    Handoff(Option<String>),
    /// Which session; `None` asks.
    Resume(Option<String>),
    New,
    Goal(GoalCommand),
    /// `None` asks which it is.
    Model(Option<String>),
    Context,
    Summary,
    Help,
    Quit,
    /// No command, and the one that it is nearest to.
    Unknown {
        name: String,
        nearest: Option<&'static str>,
    },
}

/// What is asked of the goal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum GoalCommand {
    Show,
    Set(String),
    Pause,
    Resume,
    Clear,
}

/// A command as the help lists it: its names, what may follow, what it does.
struct Described {
    names: &'static [&'static str],
    takes: &'static str,
    does: &'static str,
}

const fn described(names: &'static [&'static str], takes: &'static str, does: &'static str) -> Described {
    Described { names, takes, does }
}

const COMMANDS: &[Described] = &[
    described(
        &["compact"],
        "[TEXT]",
        "make the context smaller; TEXT says what matters",
    ),
    described(&["prune"], "", "replace old tool output by notices"),
    described(&["undo"], "", "take back the newest compaction or prune"),
    described(&["tree"], "", "go to another place of the session"),
    described(
        &["handoff"],
        "[TEXT]",
        "go on in a new session that starts from a document",
    ),
    described(&["resume", "sessions"], "[S]", "go on with another session"),
    described(&["new"], "", "begin a new session"),
    described(
        &["goal"],
        "[TEXT]",
        "what is to be reached; `pause`, `resume` and `clear` change it",
    ),
    described(&["model"], "[P/M]", "the model, or another one"),
    described(&["context", "stats"], "", "what fills the context"),
    described(
        &["summary"],
        "",
        "the newest compaction, whole, with the lines it kept",
    ),
    described(&["help"], "", "this list"),
    described(&["quit", "exit"], "", "leave; Ctrl-D does the same"),
];

/// What `/help` shows.
pub(super) fn help() -> String {
    let mut text = String::new();
    for command in COMMANDS {
        let name = format!("/{} {}", command.names.join(", /"), command.takes);
        text.push_str(&format!("{name:<22} {}\n", command.does));
    }
    text.push_str(
        "\nEsc or Ctrl-C cancels what is running; Enter meanwhile sends what you typed when its turn comes.\n\
         Alt-Enter begins another line. Tab completes commands. Ctrl-C twice leaves.\n",
    );
    text
}

/// All names, for completion.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    COMMANDS.iter().flat_map(|command| command.names.iter().copied())
}

/// How like each other a name and a command are, so that one is meant by the other.
const ALIKE: f64 = 0.7;

impl Command {
    pub(super) fn parse(line: &str) -> Self {
        let line = line.trim();
        if line.is_empty() {
            return Self::Nothing;
        }
        // A path such as /etc/hosts is something to say.
        let Some(command) = line
            .strip_prefix('/')
            .filter(|rest| !first_word(rest).contains('/'))
        else {
            return Self::Say(line.to_owned());
        };
        let name = first_word(command);
        let rest = command.get(name.len()..).unwrap_or_default().trim();
        let rest = (!rest.is_empty()).then(|| rest.to_owned());
        match name {
            "compact" => Self::Compact(rest),
            "prune" => Self::Prune,
            "undo" => Self::Undo,
            "tree" => Self::Tree,
            "handoff" => Self::Handoff(rest),
            "resume" | "sessions" => Self::Resume(rest),
            "new" => Self::New,
            "goal" => Self::Goal(match rest.as_deref() {
                None => GoalCommand::Show,
                Some("pause") => GoalCommand::Pause,
                Some("resume") => GoalCommand::Resume,
                Some("clear") => GoalCommand::Clear,
                Some(text) => GoalCommand::Set(text.to_owned()),
            }),
            "model" => Self::Model(rest),
            "context" | "stats" => Self::Context,
            "summary" => Self::Summary,
            "help" => Self::Help,
            "quit" | "exit" => Self::Quit,
            other => Self::Unknown {
                name: other.to_owned(),
                nearest: nearest(other),
            },
        }
    }
}

fn first_word(text: &str) -> &str {
    text.split_whitespace().next().unwrap_or_default()
}

fn nearest(name: &str) -> Option<&'static str> {
    let likeness = |other: &'static str| (strsim::jaro_winkler(name, other), other);
    names()
        .map(likeness)
        .filter(|(likeness, _)| *likeness >= ALIKE)
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_commands_or_words() {
        let some = |text: &str| Some(text.to_owned());
        for (line, expected) in [
            ("", Command::Nothing),
            ("  \t", Command::Nothing),
            (" hi there ", Command::Say("hi there".to_owned())),
            ("/compact", Command::Compact(None)),
            (
                "/compact  keep the tests ",
                Command::Compact(some("keep the tests")),
            ),
            (
                "/etc/hosts is empty",
                Command::Say("/etc/hosts is empty".to_owned()),
            ),
            ("/goal", Command::Goal(GoalCommand::Show)),
            ("/goal pause", Command::Goal(GoalCommand::Pause)),
            (
                "/goal pause the tests",
                Command::Goal(GoalCommand::Set("pause the tests".to_owned())),
            ),
            ("/model a/b", Command::Model(some("a/b"))),
            ("/sessions", Command::Resume(None)),
            ("/resume latest", Command::Resume(some("latest"))),
        ] {
            assert_eq!(Command::parse(line), expected, "{line:?}");
        }
    }

    #[test]
    fn an_unknown_command_names_the_nearest_one() {
        for (line, expected) in [
            ("/compat now", Some("compact")),
            ("/undoo", Some("undo")),
            ("/exti", Some("exit")),
            ("/zzz", None),
            ("/", None),
        ] {
            let Command::Unknown { nearest, .. } = Command::parse(line) else {
                panic!("{line} is known");
            };
            assert_eq!(nearest, expected, "{line}");
        }
    }

    #[test]
    fn every_command_that_help_lists_is_one() {
        for name in names() {
            let command = Command::parse(&format!("/{name}"));
            assert!(!matches!(command, Command::Unknown { .. }), "{name}");
            assert!(help().contains(&format!("/{name}")), "{name}");
        }
    }
}

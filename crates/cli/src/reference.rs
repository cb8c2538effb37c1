//! The reference page: every command and flag as the program knows it, so that the page cannot say anything else.

use clap::{Arg, Command, CommandFactory as _, Parser as _};
use foldline_llm_client::Catalogue;

use crate::args::Args;
use crate::environment::VARIABLES;

#[test]
fn the_reference_page_is_fresh() {
    // SNAPSHOTS=overwrite writes it.
    snapbox::assert_data_eq!(page(), snapbox::file!["../../../docs/reference.md"].raw());
}

#[test]
fn every_command_shows_examples() {
    for command in Args::command()
        .get_subcommands()
        .filter(|c| c.get_name() != "help")
    {
        assert!(
            shows_examples(command) || command.get_subcommands().any(shows_examples),
            "foldline {} --help has no examples",
            command.get_name()
        );
    }
}

fn shows_examples(command: &Command) -> bool {
    let help = command.get_after_help().or(command.get_after_long_help());
    help.is_some_and(|help| help.to_string().contains("Examples:\n  foldline "))
}

/// The pages are run with their output; of the examples in the help it is checked that they are command lines.
#[test]
fn every_example_can_be_typed() {
    let command = Args::command();
    for sub in command.get_subcommands() {
        let help = sub.get_after_help().or(sub.get_after_long_help());
        let help = help.map(ToString::to_string).unwrap_or_default();
        for line in help.lines().filter_map(|line| line.strip_prefix("  foldline ")) {
            let line = line.split(" > ").next().unwrap_or_default();
            // Quotes are the only thing of a shell that the examples use.
            let words = line.split('\'').enumerate().flat_map(|(at, part)| match at % 2 {
                0 => part.split_whitespace().collect(),
                _ => vec![part],
            });
            let typed = Args::try_parse_from(std::iter::once("foldline").chain(words));
            assert!(
                typed.is_ok(),
                "foldline {line}: {}",
                typed.err().map(|e| e.to_string()).unwrap_or_default()
            );
        }
    }
}

#[test]
fn every_variable_of_a_flag_is_documented() {
    let command = Args::command();
    let commands = std::iter::once(&command).chain(command.get_subcommands());
    let mut named = 0;
    for help in commands
        .flat_map(Command::get_arguments)
        .filter_map(Arg::get_help)
    {
        let help = help.to_string();
        let Some((_, rest)) = help.split_once("[env: ") else {
            continue;
        };
        let name = rest.split(']').next().unwrap_or_default();
        assert!(
            VARIABLES.iter().any(|known| known.name == name),
            "{name} is not in src/environment.rs"
        );
        named += 1;
    }
    assert!(named > 0);
}

fn page() -> String {
    let mut command = Args::command().term_width(100);
    command.build();
    let mut page = String::from(
        "# Reference\n\nEvery command and flag of `foldline`, as the program knows them: a test keeps this page fresh.\n\n\
         Every command takes `--json`, which prints exactly one JSON document on standard output, and `--help`.\n\
         Exit codes: 0 done (or nothing to do), 1 failed, 2 wrong command line, 3 no session can be read or `check`\n\
         found damage, 4 provider or network, 5 somebody else writes the session, 130 cancelled. An error with `--json`\n\
         is `{\"error\":{\"kind\",\"message\",\"hint\"}}`.\n",
    );
    for sub in command.get_subcommands_mut().filter(|c| c.get_name() != "help") {
        command_section(&mut page, sub, "##");
    }
    page.push_str("\n## Environment variables\n\n| variable | does |\n|---|---|\n");
    for variable in VARIABLES {
        page.push_str(&format!("| `{}` | {} |\n", variable.name, cell(variable.does)));
    }
    for provider in Catalogue::built_in().providers() {
        if let Some(key) = &provider.key_env {
            page.push_str(&format!("| `{key}` | the key for {} |\n", provider.name));
        }
    }
    page
}

fn command_section(page: &mut String, command: &mut Command, heading: &str) {
    let usage = command.render_usage().to_string();
    let usage = usage.trim_start_matches("Usage:").trim();
    let usage: Vec<&str> = usage.lines().map(str::trim).collect();
    let name = command
        .get_display_name()
        .unwrap_or(command.get_name())
        .replace('-', " ");
    let name = if name.starts_with("foldline") {
        name
    } else {
        format!("foldline {name}")
    };
    page.push_str(&format!(
        "\n{heading} `{name}`\n\n{}\n\n```text\n{}\n```\n",
        command.get_about().map(ToString::to_string).unwrap_or_default(),
        usage.join("\n")
    ));
    let arguments: Vec<&Arg> = command
        .get_arguments()
        .filter(|arg| !arg.is_hide_set() && !matches!(arg.get_id().as_str(), "json" | "help" | "version"))
        .collect();
    if !arguments.is_empty() {
        page.push_str("\n| argument | meaning |\n|---|---|\n");
    }
    for argument in arguments {
        page.push_str(&format!(
            "| `{}` | {} |\n",
            shape(argument).replace('|', "\\|"),
            meaning(argument)
        ));
    }
    let more = command.get_after_help().or(command.get_after_long_help());
    if let Some(more) = more.map(ToString::to_string) {
        let (text, examples) = more.split_once("Examples:\n").unwrap_or((&more, ""));
        if !text.trim().is_empty() {
            page.push_str(&format!("\n{}\n", text.trim()));
        }
        if !examples.is_empty() {
            let examples: Vec<&str> = examples.lines().map(str::trim).collect();
            page.push_str(&format!("\n```sh\n{}\n```\n", examples.join("\n")));
        }
    }
    let deeper = format!("{heading}#");
    for sub in command.get_subcommands_mut().filter(|c| c.get_name() != "help") {
        command_section(page, sub, &deeper);
    }
}

fn shape(argument: &Arg) -> String {
    let values = argument.get_value_names().unwrap_or_default();
    let values: Vec<String> = values.iter().map(|name| format!("<{name}>")).collect();
    let takes_value = argument.get_action().takes_values();
    match argument.get_long() {
        Some(long) if takes_value => format!("--{long} {}", values.join(" ")),
        Some(long) => format!("--{long}"),
        None => values.join(" "),
    }
}

fn meaning(argument: &Arg) -> String {
    let mut text = argument.get_help().map(ToString::to_string).unwrap_or_default();
    let values: Vec<String> = argument
        .get_possible_values()
        .iter()
        .filter(|value| !value.is_hide_set() && argument.get_action().takes_values())
        .map(|value| match value.get_help() {
            Some(help) => format!(
                "`{}` ({})",
                value.get_name(),
                help.to_string().trim_end_matches('.')
            ),
            None => format!("`{}`", value.get_name()),
        })
        .collect();
    if !values.is_empty() {
        text.push_str(&format!(" One of {}.", values.join(", ")));
    }
    let defaults: Vec<String> = argument
        .get_default_values()
        .iter()
        .map(|value| value.to_string_lossy().into_owned())
        .collect();
    if !defaults.is_empty() && argument.get_action().takes_values() {
        text.push_str(&format!(" [default: {}]", defaults.join(", ")));
    }
    cell(&text)
}

/// Text that stays in one cell of a table.
fn cell(text: &str) -> String {
    text.split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .replace('|', "\\|")
}

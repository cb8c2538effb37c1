//! Every command of the README and of docs/ runs and prints what the page says. `TRYCMD=overwrite` corrects the pages.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::support::Sandbox;

#[path = "../../examples/compact.rs"]
#[allow(
    dead_code,
    clippy::print_stdout,
    reason = "a program of its own, of which one function is called here"
)]
mod compact;

const SESSIONS: &[(&str, &str)] = &[
    ("realistic.jsonl", "session.jsonl"),
    ("realistic.jsonl", "fixtures/sessions/realistic.jsonl"),
    ("damaged-everything.jsonl", "damaged.jsonl"),
    ("branching.jsonl", "branching.jsonl"),
];

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The pages: the README, and the guides. The reference page is made of the program itself.
fn pages() -> Vec<PathBuf> {
    let mut pages = vec![repository().join("README.md")];
    for item in std::fs::read_dir(repository().join("docs")).unwrap() {
        let path = item.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "md") && !path.ends_with("reference.md") {
            pages.push(path);
        }
    }
    pages.sort();
    pages
}

/// What a page finds in its folder.
fn fill(sandbox: &Sandbox, folder: &Path, page: &str) {
    std::fs::create_dir_all(folder.join("fixtures/sessions")).unwrap();
    std::fs::create_dir_all(folder.join("target")).unwrap();
    std::fs::write(folder.join("target/.keep"), "").unwrap();
    std::fs::write(folder.join("notes.md"), "# Notes\n").unwrap();
    for (fixture, name) in SESSIONS {
        // The guide for Claude Code makes its own session.
        if page != "claude-code.md" || *name != "session.jsonl" {
            let name_here = sandbox.fixture(fixture);
            std::fs::copy(sandbox.path(&name_here), folder.join(name)).unwrap();
        }
    }
    let transcript = folder.join("transcript.jsonl");
    let transcript = transcript.to_str().unwrap();
    let fixture = sandbox.fixture("realistic.jsonl");
    let run = sandbox.run(&["export", &fixture, "--to", "claude-code", "--output", transcript]);
    assert_eq!(run.code(), 0, "{}", run.stderr());
}

#[test]
fn every_command_of_the_pages_prints_what_they_say() {
    let sandbox = Sandbox::new();
    let home = sandbox.path("home");
    let cases = trycmd::TestCases::new();
    let mut copies = Vec::new();
    for page in pages() {
        let name = page.file_name().unwrap().to_str().unwrap().to_owned();
        // Two pages may have one name.
        let folder = sandbox.path(&format!("pages-{}", copies.len()));
        std::fs::create_dir_all(folder.join(&name).with_extension("out")).unwrap();
        fill(&sandbox, &folder.join(&name).with_extension("in"), &name);
        let copy = folder.join(&name);
        std::fs::copy(&page, &copy).unwrap();
        cases.case(&copy);
        copies.push((copy, page));
    }
    // `cargo run … -- ARGUMENTS` stands for the program that is tested.
    let cargo = sandbox.path("cargo");
    let binary = env!("CARGO_BIN_EXE_foldline");
    std::fs::write(
        &cargo,
        format!("#!/bin/sh\nwhile [ \"$1\" != -- ]; do shift; done\nshift\nexec '{binary}' \"$@\"\n"),
    )
    .unwrap();
    std::fs::set_permissions(&cargo, std::fs::Permissions::from_mode(0o755)).unwrap();
    cases
        .register_bin("cargo", cargo)
        .register_bin("foldline", Path::new(binary))
        .env("HOME", home.display().to_string())
        .env("XDG_DATA_HOME", home.join("data").display().to_string())
        .env("XDG_CONFIG_HOME", home.join("config").display().to_string())
        .env("CLAUDE_CONFIG_DIR", home.join("claude").display().to_string())
        .env("CODEX_HOME", home.join("codex").display().to_string())
        .env("NO_COLOR", "1");
    cases.run();
    if std::env::var_os("TRYCMD").is_some_and(|mode| mode == "overwrite") {
        for (copy, page) in copies {
            std::fs::copy(copy, page).unwrap();
        }
    }
}

/// A command in another kind of block would not be run.
#[test]
fn no_page_hides_a_command_from_the_test() {
    for page in pages() {
        let text = std::fs::read_to_string(&page).unwrap();
        let mut language = None;
        for line in text.lines() {
            if let Some(fence) = line.trim_start().strip_prefix("```") {
                language = if language.is_some() {
                    None
                } else {
                    Some(fence.to_owned())
                };
            }
            let command = line.trim_start_matches("$ ");
            let writes_outside = command.contains(" > ~/");
            // These run until they are stopped; tests/it/serve.rs and chat.rs run them.
            let never_ends = command.starts_with("foldline serve") || command.starts_with("foldline chat");
            if command.starts_with("foldline ") && !writes_outside && !never_ends {
                assert_eq!(
                    language.as_deref().unwrap_or("console"),
                    "console",
                    "{}: {line}",
                    page.display()
                );
            }
        }
    }
}

#[test]
fn the_program_of_the_guide_compacts_a_session() {
    let source = include_str!("../../examples/compact.rs");
    let page = std::fs::read_to_string(repository().join("docs/rust.md")).unwrap();
    assert!(
        page.contains(source),
        "docs/rust.md does not show examples/compact.rs as it is"
    );
    let sandbox = Sandbox::new();
    let name = sandbox.fixture("realistic.jsonl");
    let before = sandbox.read(&name);
    let said = compact::compact(&sandbox.path(&name)).unwrap();
    assert!(said.contains("lines kept"), "{said}");
    assert!(sandbox.read(&name).starts_with(&before));
    let stats = sandbox.json(&["stats", &name]);
    assert_eq!(stats["compactions"][0]["strategy"], "verbatim-lines");
    assert_eq!(sandbox.run(&["check", &name]).code(), 0);
}

//! `cargo xtask browser`: the pages of `foldline report` in a real browser. They must load without an error and without
//! a request to anywhere, fit the screen of a phone, be readable in light and dark, open what is folded, and show hostile
//! text as text. The pictures are left in `target/browser`.

mod devtools;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use base64::Engine as _;
use serde::Deserialize;
use serde_json::json;

use crate::e2e::process::{Outcome, bounded};
use crate::workspace;
use devtools::Browser;

/// Arguments of `browser`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Fail, instead of skip, when there is no Chromium.
    #[arg(long)]
    required: bool,
}

/// Building the program is part of the first run.
const RUN: Duration = Duration::from_secs(900);
/// The least contrast of text with what is behind it (WCAG 2, AA).
const CONTRAST: f64 = 4.5;
const SCREENS: [(&str, u32, &str); 4] = [
    ("wide-light", 1280, "light"),
    ("wide-dark", 1280, "dark"),
    ("phone-light", 400, "light"),
    ("phone-dark", 400, "dark"),
];

/// The longest picture, in pixels.
const LONGEST: f64 = 6000.0;

/// Text that wants to be more than text.
const HOSTILE: &str = "zqx</script><script>ran=1</script></style><img src=http://127.0.0.1:9/x onerror=\"ran=1\">\"'><svg onload=ran=1>\u{202e}\u{1b}[31m\u{0}";

/// What the page looks like from inside.
#[derive(Debug, Deserialize)]
struct Look {
    cards: usize,
    charts: usize,
    line: f64,
    foreign: usize,
    details: usize,
    opened: bool,
    gap: Option<String>,
    wider: f64,
    contrast: f64,
    faintest: String,
    text: String,
    title: String,
    ran: String,
}

/// A session, and what its page has to show.
struct Page {
    name: &'static str,
    session: PathBuf,
    cards: usize,
    /// Texts that a person reads.
    says: Vec<&'static str>,
    has_gap: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let Some(program) = devtools::find() else {
        ensure!(!args.required, "there is no Chromium");
        println!("skipped: there is no Chromium on this machine");
        return Ok(());
    };
    let root = workspace::root();
    let folder = root.join("target/browser");
    if folder.exists() {
        fs_err::remove_dir_all(&folder)?;
    }
    fs_err::create_dir_all(&folder)?;
    let pages = pages(&root, &folder)?;
    let mut browser = Browser::start(&program)?;
    for page in &pages {
        let html = folder.join(format!("{}.html", page.name));
        foldline(&root, |command| {
            command.arg("report").arg(&page.session).arg("-o").arg(&html)
        })?;
        for (screen, width, scheme) in SCREENS {
            check(&mut browser, page, &html, (screen, width, scheme))
                .with_context(|| format!("{} on {screen}", page.name))?;
        }
        println!("{}: {} screens", page.name, SCREENS.len());
    }
    println!("pictures are in {}", folder.display());
    Ok(())
}

fn pages(root: &Path, folder: &Path) -> anyhow::Result<Vec<Page>> {
    let fixtures = root.join("fixtures/sessions");
    let hostile = folder.join("hostile.jsonl");
    fs_err::write(&hostile, hostile_session())?;
    let compacted = folder.join("compacted.jsonl");
    foldline(root, |command| {
        command
            .arg("compact")
            .arg(fixtures.join("realistic.jsonl"))
            .arg("--output")
            .arg(&compacted)
    })?;
    Ok(vec![
        Page {
            name: "long",
            session: compacted,
            cards: 1,
            says: vec!["Heron", "verbatim-lines", "in effect"],
            has_gap: true,
        },
        Page {
            name: "both-kinds",
            session: fixtures.join("compacted-verbatim-then-prose.jsonl"),
            cards: 2,
            says: vec!["context-full", "messages that it replaced"],
            has_gap: true,
        },
        Page {
            name: "branches",
            session: fixtures.join("branching.jsonl"),
            cards: 0,
            says: vec!["stands here", "first try"],
            has_gap: false,
        },
        Page {
            name: "damaged",
            session: fixtures.join("damaged-everything.jsonl"),
            cards: 0,
            says: vec!["Damage in the file"],
            has_gap: false,
        },
        Page {
            name: "hostile",
            session: hostile,
            cards: 1,
            says: vec![
                "<img src=http://127.0.0.1:9/x onerror=\"ran=1\">",
                "⟨U+202E⟩^[[31m^@",
            ],
            has_gap: false,
        },
    ])
}

/// A session that says hostile things wherever a page shows something.
fn hostile_session() -> String {
    let t = json!(HOSTILE);
    let lines = [
        json!({"type": "session", "version": 3, "id": t, "timestamp": t, "cwd": t, "title": t}),
        json!({"type": "message", "id": "u", "parentId": null, "timestamp": t, "message": {"role": "user", "content": t}}),
        json!({"type": "message", "id": t, "parentId": "u", "timestamp": "x", "message": {"role": "assistant", "provider": t, "model": t, "usage": {"input": 9, "output": 1}, "content": [{"type": "text", "text": t}, {"type": "toolCall", "id": "c", "name": t, "arguments": {"path": t}}]}}),
        json!({"type": "message", "id": "r", "parentId": t, "timestamp": "x", "message": {"role": "toolResult", "toolCallId": "c", "toolName": t, "content": [{"type": "text", "text": t}]}}),
        json!({"type": "label", "id": "l", "parentId": "r", "timestamp": "x", "targetId": "u", "label": t}),
        json!({"type": "compaction", "id": "k", "parentId": "l", "timestamp": t, "summary": t, "firstKeptEntryId": "r", "tokensBefore": 9, "details": {"readFiles": [t], "planner": t}}),
    ];
    lines.map(|line| line.to_string() + "\n").concat()
}

fn check(
    browser: &mut Browser,
    page: &Page,
    html: &Path,
    (screen, width, scheme): (&str, u32, &str),
) -> anyhow::Result<()> {
    browser.open()?;
    let metrics = json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600});
    browser.call("Emulation.setDeviceMetricsOverride", &metrics)?;
    let features = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
    browser.call("Emulation.setEmulatedMedia", &features)?;
    let url = format!("file://{}", html.display());
    browser.navigate(&url)?;
    picture(browser, html, screen)?;

    let look: Look = serde_json::from_value(browser.evaluate(include_str!("browser/look.js"))?)?;
    if screen == SCREENS[0].0 {
        picture(browser, html, "open")?;
    }
    ensure!(
        look.cards == page.cards,
        "{} cards, not {}",
        look.cards,
        page.cards
    );
    ensure!(
        look.charts >= 1 && look.line > 100.0,
        "the chart is {} wide",
        look.line
    );
    ensure!(look.foreign == 0, "{} elements that run or load", look.foreign);
    ensure!(look.ran == "undefined", "a script of the session ran");
    ensure!(
        look.details > 0 && look.opened,
        "of {} folds some do not open",
        look.details
    );
    ensure!(
        look.wider <= 0.0,
        "the page is {} px wider than the screen",
        look.wider
    );
    ensure!(
        look.contrast >= CONTRAST,
        "a contrast of {:.2} at {}",
        look.contrast,
        look.faintest
    );
    ensure!(!look.title.trim().is_empty(), "there is no title");
    for text in &page.says {
        ensure!(look.text.contains(text), "{text:?} cannot be read");
    }
    if page.has_gap {
        let gap = look.gap.context("there is no gap to open")?;
        ensure!(!gap.trim().is_empty(), "nothing is behind a gap");
    }

    for request in browser.events("Network.requestWillBeSent") {
        let asked = request["request"]["url"].as_str().unwrap_or_default();
        ensure!(asked == url || asked.starts_with("data:"), "a request to {asked}");
    }
    for method in [
        "Runtime.exceptionThrown",
        "Runtime.consoleAPICalled",
        "Log.entryAdded",
        "Page.javascriptDialogOpening",
    ] {
        if let Some(event) = browser.events(method).next() {
            bail!("{method}: {event}");
        }
    }
    Ok(())
}

/// The page, as far as a picture goes, beside it.
fn picture(browser: &mut Browser, html: &Path, screen: &str) -> anyhow::Result<()> {
    let size = &browser.call("Page.getLayoutMetrics", &json!({}))?["cssContentSize"];
    let height = size["height"].as_f64().unwrap_or(900.0).min(LONGEST);
    let clip = json!({"x": 0, "y": 0, "width": size["width"], "height": height, "scale": 1});
    let parameters = json!({"format": "png", "captureBeyondViewport": true, "clip": clip});
    let shot = browser.call("Page.captureScreenshot", &parameters)?;
    let data = shot["data"].as_str().context("there is no picture")?;
    let bytes = base64::engine::general_purpose::STANDARD.decode(data)?;
    fs_err::write(html.with_extension(format!("{screen}.png")), bytes)?;
    Ok(())
}

/// Runs the program and expects success.
fn foldline(root: &Path, arguments: impl FnOnce(&mut Command) -> &mut Command) -> anyhow::Result<()> {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command
        .args(["run", "--quiet", "--locked", "-p", "foldline-cli", "--"])
        .current_dir(root);
    match bounded(arguments(&mut command), RUN)? {
        Outcome::Ended(status) => ensure!(status.success(), "foldline failed ({status})"),
        Outcome::TimedOut => bail!("foldline did not end in {} s", RUN.as_secs()),
    }
    Ok(())
}

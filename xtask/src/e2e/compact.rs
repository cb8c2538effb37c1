//! `foldline compact` against the real server: through every API, by both strategies, and into a real overflow.
//!
//! The model is far too small to write a good plan or summary, so what it writes is not judged: a compaction, or a
//! clean refusal of the answer that leaves the session as it was, are both right. A failed request is not.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use serde::Deserialize;

use super::process::{Outcome, bounded_output};

const APIS: [&str; 3] = ["anthropic-messages", "openai-completions", "openai-responses"];
const STRATEGIES: [&str; 2] = ["verbatim-lines", "context-full"];
/// Building the program is part of the first run.
const RUN: Duration = Duration::from_secs(900);

/// What `compact --json` prints, as far as it matters here.
#[derive(Debug, Deserialize)]
struct Document {
    outcome: Option<String>,
    reason: Option<String>,
    error: Option<ErrorFields>,
}

#[derive(Debug, Deserialize)]
struct ErrorFields {
    kind: String,
    message: String,
}

/// Runs all of it against the server at `base`, whose window is `context` tokens.
pub(super) fn run(root: &Path, folder: &Path, base: &str, context: u32) -> anyhow::Result<()> {
    let small = folder.join("small.jsonl");
    let large = folder.join("large.jsonl");
    // Numbers are about a token each: the large one is twice the window, whatever the tokenizer.
    fs_err::write(&small, session(40))?;
    fs_err::write(&large, session(usize::try_from(context)? / 4))?;
    for api in APIS {
        for strategy in STRATEGIES {
            let window = context.to_string();
            let (code, document) = compact(root, &small, base, api, strategy, &window)?;
            let name = format!("{strategy} over {api}");
            match (code, &document.outcome, &document.error) {
                (0, Some(outcome), None) if document.reason.is_none() || outcome == "committed" => {
                    println!("{name}: {outcome}");
                }
                // Smaller is the one thing that is asked of an answer that was taken.
                (0, Some(outcome), None)
                    if document.reason.as_deref().is_some_and(|r| r.contains("tokens")) =>
                {
                    println!("{name}: {outcome}, because it does not pay");
                }
                (4, None, Some(error)) if is_refused_answer(error) => {
                    ensure!(
                        fs_err::read_to_string(&small)? == session(40),
                        "{name}: the session changed"
                    );
                    println!("{name}: the answer was refused ({})", error.message);
                }
                _ => bail!("{name}: exit {code}, {document:?}"),
            }
            fs_err::write(&small, session(40))?;
        }
        // A window that is claimed too large: the provider must say so, and nothing is written.
        let (code, document) = compact(root, &large, base, api, "verbatim-lines", "1000000")?;
        let error = document
            .error
            .with_context(|| format!("{api}: the overflow was not noticed"))?;
        ensure!(
            code == 4 && error.kind == "provider",
            "{api}: exit {code}, {error:?}"
        );
        ensure!(error.message.contains("context"), "{api}: {}", error.message);
        ensure!(
            fs_err::read_to_string(&large)? == session(usize::try_from(context)? / 4),
            "{api}: the session changed"
        );
        println!("overflow over {api}: {}", error.message);
    }
    Ok(())
}

/// An answer that came and was not of use. Anything that went wrong on the way to it is not this.
fn is_refused_answer(error: &ErrorFields) -> bool {
    let on_the_way = ["HTTP ", "connect", "timed out", "time limit"];
    error.kind == "provider" && !on_the_way.iter().any(|words| error.message.contains(words))
}

fn compact(
    root: &Path,
    session: &Path,
    base: &str,
    api: &str,
    strategy: &str,
    window: &str,
) -> anyhow::Result<(i32, Document)> {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command
        .args([
            "run",
            "--quiet",
            "--locked",
            "-p",
            "foldline-cli",
            "--",
            "compact",
        ])
        .arg(session)
        .args(["--model", "local/small", "--base-url", base, "--api", api])
        .args([
            "--strategy",
            strategy,
            "--context-window",
            window,
            "--keep-recent",
            "10",
            "--json",
        ])
        .current_dir(root);
    let (outcome, output) = bounded_output(&mut command, RUN)?;
    let Outcome::Ended(status) = outcome else {
        bail!("foldline compact did not end in {} s", RUN.as_secs())
    };
    let document = serde_json::from_slice(&output)
        .with_context(|| format!("no JSON: {}", String::from_utf8_lossy(&output)))?;
    Ok((status.code().unwrap_or(-1), document))
}

/// A session of so many short lines in messages of five, and two short messages after them.
fn session(lines: usize) -> String {
    let mut out = String::from(
        "{\"type\":\"session\",\"version\":3,\"id\":\"e2e\",\"timestamp\":\"2026-01-01T00:00:00.000Z\",\"cwd\":\"/w\"}\n",
    );
    let steps: Vec<String> = (1..=lines)
        .map(|i| format!("step {i} wrote file {i} and test {i} passed"))
        .collect();
    let texts = steps.chunks(5).map(|steps| steps.join("\\n"));
    let mut parent = "null".to_owned();
    for (i, text) in texts
        .chain(["go on".to_owned(), "and then?".to_owned()])
        .enumerate()
    {
        out.push_str(&format!(
            "{{\"type\":\"message\",\"id\":\"m{i}\",\"parentId\":{parent},\"timestamp\":\"2026-01-01T00:00:01.000Z\",\"message\":{{\"role\":\"user\",\"content\":\"{text}\",\"timestamp\":1}}}}\n"
        ));
        parent = format!("\"m{i}\"");
    }
    out
}

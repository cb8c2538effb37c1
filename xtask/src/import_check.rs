//! Imports other agents' sessions and checks that every row of each is accounted for.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{bail, ensure};
use foldline_session_model::export::{self, Exported, Target};
use foldline_session_model::fold::{Context, Profile};
use foldline_session_model::import::{self, Imported};
use foldline_session_model::llm::{LlmMessage, TrailingCalls, Wrappers};
use foldline_session_model::log::{SessionLog, Trust};
use foldline_session_model::tree::Leaf;

/// Arguments of `import-check`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Folder with sessions of other agents.
    dir: PathBuf,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let mut files: Vec<PathBuf> = fs_err::read_dir(&args.dir)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()?;
    files.retain(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
    files.sort();
    ensure!(!files.is_empty(), "{} holds no .jsonl file", args.dir.display());
    let mut failed = 0;
    for path in &files {
        if let Err(error) = check(path) {
            failed += 1;
            println!("  FAILED: {error:#}");
        }
    }
    println!("{} files, {failed} failed", files.len());
    if failed > 0 {
        bail!("{failed} imports failed");
    }
    Ok(())
}

fn check(path: &Path) -> anyhow::Result<()> {
    println!("{}", path.file_name().unwrap_or_default().display());
    let bytes = fs_err::read(path)?;
    let start = Instant::now();
    let imported = import::session(&bytes)?;
    let elapsed = start.elapsed();
    print(&imported, bytes.len(), elapsed.as_secs_f64() * 1e3);

    let dropped: u32 = imported
        .dropped
        .iter()
        .filter(|dropped| !dropped.reason.is_part_of_row())
        .map(|dropped| dropped.count)
        .sum();
    ensure!(
        imported.rows_used + dropped == imported.rows,
        "{} rows, but {} used and {dropped} dropped",
        imported.rows,
        imported.rows_used
    );
    ensure!(import::session(&bytes)? == imported, "a second import differs");

    let log = SessionLog::load(imported.text.clone(), Trust::Validated)?;
    ensure!(log.damage().is_empty(), "damage: {:?}", log.damage());
    let messages = log.entries().filter(|ix| log.message(*ix).is_some()).count();
    ensure!(
        messages == imported.messages.total() as usize,
        "{messages} messages in the log"
    );
    let context = log.context(&Leaf::Last, Profile::Auto)?;
    println!(
        "  log: {} entries, 0 damages; context: {} messages",
        log.len(),
        context.items.len()
    );
    come_back(&context, &imported)
}

type Export = fn(&Context<'_>, &Target<'_>) -> Exported;

/// Exports the view to each format that can be read again, and compares what comes back.
fn come_back(context: &Context<'_>, imported: &Imported) -> anyhow::Result<()> {
    let target = Target {
        session_id: &imported.session_id,
        cwd: &imported.cwd,
        timestamp: "2026-01-01T00:00:00.000Z",
    };
    let exports: [(&str, Export); 3] = [
        ("claude-code", export::claude_code),
        ("codex", export::codex),
        ("pi", export::pi),
    ];
    let wrappers = Wrappers::default();
    let before = context.llm_view(&wrappers, TrailingCalls::Answer);
    for (name, write) in exports {
        let exported = write(context, &target);
        let text = match import::detect(exported.text.as_bytes()) {
            Some(_) => import::session(exported.text.as_bytes())?.text,
            None => exported.text,
        };
        let log = SessionLog::load(text, Trust::Validated)?;
        ensure!(log.damage().is_empty(), "{name}: damage: {:?}", log.damage());
        let again = log.context(&Leaf::Last, Profile::Auto)?;
        let after = again.llm_view(&wrappers, TrailingCalls::Answer);
        ensure!(
            before.len() == after.len(),
            "{name}: {} messages became {}",
            before.len(),
            after.len()
        );
        for (at, (old, new)) in before.iter().zip(&after).enumerate() {
            ensure!(said(old) == said(new), "{name}: message {at} differs");
        }
        let omitted: Vec<String> = exported
            .omitted
            .iter()
            .map(|omitted| format!(", without {} {}", omitted.count, omitted.part.describe()))
            .collect();
        println!(
            "  to {name} and back: {} messages{}",
            after.len(),
            omitted.concat()
        );
    }
    let document = export::markdown(context);
    println!("  to markdown: {} bytes", document.len());
    Ok(())
}

/// Role and text. Claude Code has no role for the program: what it says is on the user's side there.
fn said(message: &LlmMessage<'_>) -> (&'static str, String) {
    let texts: Vec<&str> = message.texts().filter(|text| !text.is_empty()).collect();
    let role = match message.role_name() {
        "developer" => "user",
        role => role,
    };
    (role, texts.join("\n"))
}

fn print(imported: &Imported, bytes: usize, milliseconds: f64) {
    let megabytes = bytes as f64 / 1e6;
    println!(
        "  {} {}: {} rows ({megabytes:.2} MB, {milliseconds:.1} ms), {} used",
        imported.agent,
        imported
            .agent_version
            .as_deref()
            .unwrap_or("of an unknown version"),
        imported.rows,
        imported.rows_used,
    );
    let messages = imported.messages;
    println!(
        "  {} messages: {} user, {} synthetic, {} developer, {} assistant, {} tool results; {} compactions, {} rewinds",
        messages.total(),
        messages.user,
        messages.synthetic,
        messages.developer,
        messages.assistant,
        messages.tool_results,
        imported.compactions,
        imported.rewinds,
    );
    for dropped in &imported.dropped {
        println!(
            "  not there: {} {} ({}), first on line {}",
            dropped.count, dropped.what, dropped.reason, dropped.first_line
        );
    }
}

#[cfg(test)]
mod tests {
    use super::{Args, run};
    use crate::workspace;

    #[test]
    fn the_small_sources_are_accounted_for() {
        let dir = workspace::root().join("crates/session-model/tests/data");
        run(&Args { dir }).unwrap();
    }
}

//! The command line.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};
use foldline_compaction_core::verbatim::Share;

use crate::commands::{completions, delete, models, recall, rename};
use crate::model::ModelArgs;

/// Keep long sessions of coding agents usable.
#[derive(Debug, Parser)]
#[command(
    name = "foldline",
    version,
    propagate_version = true,
    max_term_width = 100,
    after_help = "Examples:
  foldline list --all
  foldline compact latest --dry-run
  foldline recall latest 'connection refused'",
    after_long_help = crate::environment::help()
)]
pub(crate) struct Args {
    /// Print exactly one JSON document on standard output.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Make the context of a session smaller: one compaction, appended to it.
    Compact(Compact),
    /// Show what the model would see now.
    Context(Context),
    /// Show one entry whole.
    Show(Show),
    /// Replace old and stale tool output by notices; nothing is lost.
    Prune(Prune),
    /// Draw the tree of a session: branches, labels, compactions, where it stands.
    Tree(Tree),
    /// Go to another entry of a session and go on from there.
    Navigate(Navigate),
    /// Take back the newest compaction or prune.
    Undo(Undo),
    /// Write a handoff document, and begin a new session with it.
    Handoff(crate::commands::handoff::Args),
    /// Make a new session from the path to an entry.
    Fork(Fork),
    /// Search everything that was ever said, folded or not.
    Recall(recall::Args),
    /// Give a session a title.
    Rename(rename::Args),
    /// Move a session to the trash.
    Delete(delete::Args),
    /// List every damage of a session file, and repair it.
    Check(Check),
    /// Count what a session holds and what it cost.
    Stats(Stats),
    /// List sessions.
    List(List),
    /// Remove old backups and what is left of sessions that are gone.
    Gc(Gc),
    /// Make a session of a Claude Code transcript or a Codex rollout.
    Import(Import),
    /// Write what the model would see now for another agent, or as a document.
    Export(Export),
    /// Write a page that shows how full the context was, what filled it, and what each compaction did.
    Report(crate::commands::report::Args),
    /// Say one thing to a model, let it work, and print its answer.
    Run(crate::commands::run::Args),
    /// Talk to a model in the terminal, and look after the session meanwhile.
    Chat(crate::commands::chat::Args),
    /// Drive a session by JSON lines on standard input and output.
    Rpc(crate::commands::rpc::Args),
    /// Make summaries for other agents, over HTTP.
    Serve(crate::commands::serve::Args),
    /// Show and change settings; trust projects.
    Config(crate::commands::config::Args),
    /// List models and providers, or test whether a model answers.
    Models(models::Args),
    /// Print a script that completes commands and flags in a shell.
    Completions(completions::Args),
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  foldline compact session.jsonl
  foldline compact session.jsonl --ratio 0.3 --output smaller.jsonl
  foldline compact session.jsonl --budget 0.25 --query 'the parser' --dry-run
  foldline compact session.jsonl --strategy context-full --keep-recent 10000
  foldline compact session.jsonl --model ollama/qwen3 --dry-run
  foldline compact session.jsonl --model my/model --base-url http://127.0.0.1:8080 --api openai-completions")]
pub(crate) struct Compact {
    /// The session: a path, the start of an id, or `latest`.
    pub(crate) session: PathBuf,
    /// How to compact [default: the setting `compaction.strategy`, or context-full with a model and verbatim-lines
    /// without one].
    #[arg(long, value_enum)]
    pub(crate) strategy: Option<Strategy>,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    /// What a summary should pay attention to (context-full).
    #[arg(long, value_name = "T")]
    pub(crate) instructions: Option<String>,
    /// The share of the compactable lines to keep, above 0 and below 1 [default: without --budget the
    /// setting `compaction.compression_ratio`, or 0.5] (verbatim-lines).
    #[arg(long, value_name = "R", value_parser = share)]
    pub(crate) ratio: Option<Share>,
    /// The share of the compactable tokens to keep, above 0 and below 1 (verbatim-lines). With --ratio the stricter
    /// wins.
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub(crate) budget: Option<Share>,
    /// About how many tokens of the newest messages stay as they are (context-full) [default: the setting
    /// `compaction.keepRecentTokens`, or 20000].
    #[arg(long, value_name = "N")]
    pub(crate) keep_recent: Option<u32>,
    /// How many of the newest messages stay as messages (verbatim-lines) [default: the setting
    /// `compaction.preserve_recent`, or 2].
    #[arg(long, value_name = "N")]
    pub(crate) preserve_recent: Option<usize>,
    /// What the kept lines should be about [default: the last user message].
    #[arg(long, value_name = "Q")]
    pub(crate) query: Option<String>,
    /// Show every line that was removed.
    #[arg(long)]
    pub(crate) diff: bool,
    /// Show what would be compacted and change nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Write a compacted copy here and leave the session as it is. The file must not exist.
    #[arg(long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Strategy {
    /// Delete lines, keep the others word for word.
    VerbatimLines,
    /// Replace old messages by a summary, keep recent ones as they are.
    ContextFull,
}

impl Strategy {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::VerbatimLines => "verbatim-lines",
            Self::ContextFull => "context-full",
        }
    }
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  foldline context latest
  foldline context session.jsonl --format llm --json
  foldline context session.jsonl --leaf 8f3a21bc --format text")]
pub(crate) struct Context {
    /// The session: a path, the start of an id, or `latest`.
    pub(crate) session: PathBuf,
    /// Show the context at this entry instead of the last one.
    #[arg(long, value_name = "ID")]
    pub(crate) leaf: Option<String>,
    /// In which form.
    #[arg(long, value_enum, default_value_t = ContextFormat::Messages)]
    pub(crate) format: ContextFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ContextFormat {
    /// The messages of the session.
    Messages,
    /// The messages of a model call, with whole pairs of calls and results.
    Llm,
    /// The messages of a model call as text.
    Text,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  foldline show session.jsonl 8f3a21bc
  foldline show latest artifact://entry/8f3a21bc")]
pub(crate) struct Show {
    /// The session: a path, the start of an id, or `latest`.
    pub(crate) session: PathBuf,
    /// The entry, or the `artifact://` address of an original that a notice names.
    pub(crate) id: String,
}

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "The newest output and the newest two turns stay. `foldline show SESSION artifact://…` reads what a
notice stands for, `foldline undo SESSION` takes a mask back.

Examples:
  foldline prune session.jsonl --dry-run
  foldline prune latest --minimum-savings 0 --protect-tokens 10000"
)]
pub(crate) struct Prune {
    /// The session: a path, the start of an id, or `latest`.
    pub(crate) session: PathBuf,
    /// Where the originals are kept [default: the setting `pruning.storage`, or mask].
    #[arg(long, value_enum)]
    pub(crate) storage: Option<PruneStorage>,
    /// Show what would be pruned and change nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// How many tokens of the newest tool output stay [default: 40000].
    #[arg(long, value_name = "N")]
    pub(crate) protect_tokens: Option<u64>,
    /// Prune only if it saves this many tokens [default: 20000].
    #[arg(long, value_name = "N")]
    pub(crate) minimum_savings: Option<u64>,
    /// How many of the newest turns stay whole [default: 2].
    #[arg(long, value_name = "N")]
    pub(crate) protect_turns: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PruneStorage {
    /// In the session: one entry more, and every reader of ours sees the notices.
    Mask,
    /// In files beside the session, which is rewritten, so that other agents see the notices.
    Rewrite,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  foldline check session.jsonl
  foldline check session.jsonl --repair")]
pub(crate) struct Check {
    /// The session: a path, the start of an id, or `latest`.
    pub(crate) session: PathBuf,
    /// Move the damage into a file beside the session and rewrite it without; the original is kept.
    #[arg(long)]
    pub(crate) repair: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  foldline stats latest
  foldline stats session.jsonl --json")]
pub(crate) struct Stats {
    /// The session: a path, the start of an id, or `latest`.
    pub(crate) session: PathBuf,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  foldline list
  foldline list --all --count
  foldline list --all --backups --json")]
pub(crate) struct List {
    /// Of all projects, and of every agent found on this machine.
    #[arg(long)]
    pub(crate) all: bool,
    /// Count entries, for which whole files are read.
    #[arg(long)]
    pub(crate) count: bool,
    /// List their backups too.
    #[arg(long)]
    pub(crate) backups: bool,
}

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "The backups before compactions and those before rewrites (repair, migration, prune --storage rewrite) are counted
apart. Of a session that is gone, the newest backup of each kind stays: it may be all that is left.

Examples:
  foldline gc --dry-run
  foldline gc --keep 1"
)]
pub(crate) struct Gc {
    /// How many backups of each kind stay for each session.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) keep: usize,
    /// Remove our backups beside other agents' sessions too.
    #[arg(long)]
    pub(crate) all: bool,
    /// Only say what would be removed.
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  foldline tree latest
  foldline tree session.jsonl --all")]
pub(crate) struct Tree {
    /// The session: a path, the start of an id, or `latest`.
    pub(crate) session: PathBuf,
    /// Draw every entry; without it, long runs without a branch are folded.
    #[arg(long)]
    pub(crate) all: bool,
}

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "A message that you typed is put back into the editor: the session then stands before it, and its
text is printed. Nothing is deleted: `foldline tree` shows what was left.

Examples:
  foldline navigate session.jsonl 8f3a21bc
  foldline navigate latest 8f3a21bc --label 'before the rewrite'"
)]
pub(crate) struct Navigate {
    /// The session: a path, the start of an id, or `latest`.
    pub(crate) session: PathBuf,
    /// The entry to go to: its id, or the start of it.
    pub(crate) target: String,
    /// Leave a summary of the branch that is left at the place.
    #[arg(long)]
    pub(crate) summarize: bool,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    /// What the summary should look at above all.
    #[arg(long, value_name = "T", requires = "summarize")]
    pub(crate) instructions: Option<String>,
    /// A prompt in place of the usual one.
    #[arg(
        long,
        value_name = "T",
        requires = "summarize",
        conflicts_with = "instructions"
    )]
    pub(crate) replace_instructions: Option<String>,
    /// Put a label on the summary, or on the place if there is none.
    #[arg(long, value_name = "L")]
    pub(crate) label: Option<String>,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  foldline undo latest")]
pub(crate) struct Undo {
    /// The session: a path, the start of an id, or `latest`.
    pub(crate) session: PathBuf,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  foldline fork latest
  foldline fork session.jsonl --at 8f3a21bc --output other.jsonl")]
pub(crate) struct Fork {
    /// The session: a path, the start of an id, or `latest`.
    pub(crate) session: PathBuf,
    /// The last entry of the new session: an id, or the start of it [default: where the session stands].
    #[arg(long, value_name = "ID")]
    pub(crate) at: Option<String>,
    /// Where to write it [default: beside the session, under a new name]. The file must not exist.
    #[arg(long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  foldline import ~/.claude/projects/-home-me-project/0198f3a2.jsonl
  foldline import rollout.jsonl --output session.jsonl")]
pub(crate) struct Import {
    /// The other agent's file; its content tells which agent that is.
    pub(crate) file: PathBuf,
    /// The new session [default: among the sessions of its project]. The file must not exist.
    #[arg(long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  foldline export latest --to claude-code --output transcript.jsonl
  foldline export session.jsonl --to markdown")]
pub(crate) struct Export {
    /// The session: a path, the start of an id, or `latest`.
    pub(crate) session: PathBuf,
    /// For whom.
    #[arg(long, value_enum)]
    pub(crate) to: ExportFormat,
    /// The new file [default: standard output]. It must not exist.
    #[arg(long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// A document to read.
    Markdown,
    /// A transcript for Claude Code.
    ClaudeCode,
    /// A rollout for Codex.
    Codex,
    /// A session for pi and every program that reads its format.
    Pi,
}

impl ExportFormat {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Markdown => "markdown",
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
            Self::Pi => "pi",
        }
    }
}

fn share(text: &str) -> Result<Share, String> {
    let number: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    Share::new(number).ok_or_else(|| "must be above 0 and below 1".to_owned())
}

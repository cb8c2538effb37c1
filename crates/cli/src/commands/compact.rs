//! `foldline compact`: one compaction of a session.

mod diff;
mod dry;
mod real;

use std::time::Instant;

use foldline_compaction_core::prompts::PROMPT_VERSION;
use foldline_compaction_core::settings::Planner;
use foldline_compaction_core::verbatim::{self, Parameters, Share};
use foldline_session_model::EntryId;
use foldline_session_model::fold::Context;
use foldline_session_model::tokens::{Heuristic, TokenCounter as _};
use foldline_session_store::DiskStore;
use serde::Serialize;

use crate::args::{self, Strategy};
use crate::error::{CommandError, Status};
use crate::model::{EXTRACTIVE, RequestPreview};
use crate::new_file;
use crate::output::{self, Format};
use crate::progress::Progress;
use crate::session::{Damage, Session};
use crate::setup::{Purpose, Setup};

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    outcome: &'static str,
    reason: Option<String>,
    strategy: &'static str,
    model: String,
    parameters: Option<Asked>,
    rung: Option<&'static str>,
    prompt_version: u32,
    entry_id: Option<EntryId>,
    first_kept_entry_id: Option<EntryId>,
    tokens_before: u64,
    tokens_after: u64,
    stats: Option<verbatim::VerbatimStats>,
    read_files: Vec<String>,
    modified_files: Vec<String>,
    dropped: Vec<verbatim::DroppedLine>,
    /// What was removed, if it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    diff: Option<Vec<diff::RemovedRange>>,
    /// The requests that a dry run would make.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    requests: Vec<RequestPreview>,
    backup_path: Option<String>,
    output: Option<String>,
    elapsed_ms: u64,
}

/// What was asked for, by strategy.
#[derive(Serialize)]
#[serde(untagged)]
enum Asked {
    Lines(Parameters),
    #[serde(rename_all = "camelCase")]
    Summary {
        keep_recent_tokens: u32,
    },
}

/// What was asked for, and with what.
struct Work<'w> {
    args: &'w args::Compact,
    setup: &'w Setup,
    strategy: Strategy,
    started: Instant,
    format: Format,
}

pub(crate) fn run(args: &args::Compact, format: Format) -> Result<Status, CommandError> {
    let started = Instant::now();
    if let Some(output) = &args.output {
        new_file::check(output)?;
    }
    let setup = Setup::new(&args.model, Purpose::Compaction)?;
    // Before anything is read: a model that cannot be asked is not worth waiting for.
    let options = if args.dry_run {
        // What the real run would refuse is refused, but no key is needed.
        setup.check_address()?;
        None
    } else {
        Some(setup.options()?)
    };
    let progress = Progress::start("Reading the session");
    let session = Session::open(&DiskStore::new(), &args.session, Damage::Warn)?;
    let work = Work {
        args,
        setup: &setup,
        strategy: strategy(args, &setup),
        started,
        format,
    };
    for idle in work.idle_flags() {
        progress.say(|| output::warning(&idle));
    }
    match options {
        None => dry::run(&work, &session, progress),
        Some(options) => real::run(&work, session, options, progress),
    }
}

/// The strategy: a flag's, or that of the settings, which depends on who plans.
fn strategy(args: &args::Compact, setup: &Setup) -> Strategy {
    use foldline_compaction_core::settings::Strategy as Configured;
    args.strategy.unwrap_or_else(|| {
        match setup
            .settings()
            .compaction
            .core
            .strategy
            .manual(setup.summariser())
        {
            Configured::VerbatimLines => Strategy::VerbatimLines,
            _ => Strategy::ContextFull,
        }
    })
}

impl Work<'_> {
    /// Flags that change nothing here: a person who gave one expects something of it.
    fn idle_flags(&self) -> Vec<String> {
        let args = self.args;
        let of_lines = [
            ("--ratio", args.ratio.is_some()),
            ("--budget", args.budget.is_some()),
            ("--preserve-recent", args.preserve_recent.is_some()),
            ("--query", args.query.is_some()),
            ("--diff", args.diff),
        ];
        let of_summaries = [
            ("--instructions", args.instructions.is_some()),
            ("--keep-recent", args.keep_recent.is_some()),
        ];
        let others: &[_] = match self.strategy {
            Strategy::ContextFull => &of_lines,
            Strategy::VerbatimLines => &of_summaries,
        };
        let mut idle: Vec<String> = others
            .iter()
            .filter(|(_, is_given)| *is_given)
            .map(|(flag, _)| {
                format!(
                    "{flag} has no effect with the strategy {}",
                    self.strategy.as_str()
                )
            })
            .collect();
        if self.strategy == Strategy::ContextFull
            && args.instructions.is_some()
            && self.setup.planner() == Planner::Extractive
        {
            idle.push(format!(
                "--instructions has no effect without a model ({EXTRACTIVE})"
            ));
        }
        if self.strategy == Strategy::VerbatimLines && args.diff && args.dry_run {
            idle.push("--diff has no effect with --dry-run: no planner is asked".to_owned());
        }
        idle
    }

    /// The parameters of a verbatim compaction: those of the settings under those of the flags.
    fn parameters(&self, context: &Context<'_>) -> Parameters {
        let (args, last) = (self.args, context.last_user_text());
        let (mut parameters, _) =
            Parameters::merge(&[self.setup.settings().compaction.verbatim()], last.as_deref());
        if let Some(query) = &args.query {
            parameters = parameters.about(query);
        }
        if let Some(count) = args.preserve_recent {
            parameters.preserve_recent = count;
        }
        parameters.budget = args.budget;
        match (args.ratio, args.budget) {
            (Some(ratio), _) => parameters.ratio = ratio,
            // With a budget alone, lines are no limit.
            (None, Some(_)) => parameters.ratio = Share::ALMOST_ALL,
            (None, None) => {}
        }
        parameters
    }

    fn keep_recent(&self) -> u32 {
        let configured = self.setup.settings().compaction.core.keep_recent_tokens;
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a float as an integer saturates"
        )]
        self.args.keep_recent.unwrap_or(configured as u32)
    }

    /// What is known before anything is planned.
    fn document(&self, context: &Context<'_>) -> Document {
        let (parameters, prompt_version) = match self.strategy {
            Strategy::VerbatimLines => (Asked::Lines(self.parameters(context)), verbatim::PROMPT_VERSION),
            Strategy::ContextFull => (
                Asked::Summary {
                    keep_recent_tokens: self.keep_recent(),
                },
                PROMPT_VERSION,
            ),
        };
        let tokens = context.messages().map(|m| Heuristic.message(m).get()).sum();
        Document {
            // As long as nothing is written, it stays as it is.
            tokens_before: tokens,
            tokens_after: tokens,
            strategy: self.strategy.as_str(),
            model: self.setup.name(),
            parameters: Some(parameters),
            prompt_version,
            ..Document::default()
        }
    }
}

fn elapsed(started: Instant) -> u64 {
    u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX)
}

fn skipped(mut document: Document, reason: &str, started: Instant, format: Format) -> Status {
    document.outcome = "skipped";
    document.reason = Some(reason.to_owned());
    document.elapsed_ms = elapsed(started);
    output::result(format, &document, || format!("Nothing was changed: {reason}\n"));
    Status::Done
}

//! `cargo xtask loss FILE...`: three summaries in a row on real sessions; which entries are lost.
//!
//! An entry that the model once saw is lost if it is in no summary request and not in the context at the end.

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::Context as _;
use foldline_compaction_core::accounting::{ContextSize, Limits, RatioUse};
use foldline_compaction_core::file_ops::ToolTable;
use foldline_compaction_core::prompts::Prompts;
use foldline_compaction_core::settings::CompactionSettings;
use foldline_compaction_core::summary::{
    CommitOptions, JobOptions, PrepareOptions, SummaryJob, Window, prepare,
};
use foldline_compaction_core::verbatim::{Demand, SmallRegion};
use foldline_session_model::fold::{Context, Profile};
use foldline_session_model::log::{SessionLog, Trust};
use foldline_session_model::model_call::{
    Api, AssistantBlock, LlmReply, ModelProfile, ModelRef, ReasoningEffort, StopReason, Usage,
};
use foldline_session_model::tokens::Heuristic;
use foldline_session_model::tree::Leaf;
use foldline_session_model::{EntryDraft, EntryId, Envelope, Tokens};
use serde_json::Value;

/// Arguments of the task.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Session files.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// About how many tokens each compaction keeps.
    #[arg(long, default_value_t = 20_000)]
    keep: u32,
}

const WINDOW: Tokens = Tokens(200_000);
const NOTES: &str =
    "## Goal\nGo on.\n\n## Progress\n### Done\n- [x] What the record shows\n\n## Next Steps\n1. The rest";

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    for file in &args.files {
        let lines = linear(file).with_context(|| file.display().to_string())?;
        for window in [Window::FromFirstKept, Window::AfterCompaction] {
            let tally = three(&lines, window, args.keep)?;
            println!(
                "{}: {window:?}: {} of {} visible entries lost, {} requests, largest {} + {} of {WINDOW}",
                file.display(),
                tally.lost(),
                tally.visible.len(),
                tally.requests,
                tally.largest.0,
                tally.largest.1,
            );
        }
    }
    Ok(())
}

/// The path of a session without its compactions, as one line of descent.
fn linear(file: &PathBuf) -> anyhow::Result<Vec<Value>> {
    let log = SessionLog::load(fs_err::read(file)?, Trust::Validated)?;
    let leaf = log.resolve(&Leaf::Last)?.context("the session is empty")?;
    let mut lines = vec![serde_json::json!({
        "type": "session", "version": 3, "id": "loss", "timestamp": "2026-01-01T00:00:00.000Z", "cwd": "/"
    })];
    let mut parent = Value::Null;
    for ix in log.path(leaf) {
        let mut entry: Value = serde_json::from_slice(log.raw_line(ix))?;
        if entry["type"] == "compaction" {
            continue;
        }
        entry["parentId"] = std::mem::replace(&mut parent, entry["id"].clone());
        lines.push(entry);
    }
    Ok(lines)
}

#[derive(Default)]
struct Tally {
    visible: BTreeSet<String>,
    asked: BTreeSet<String>,
    kept: BTreeSet<String>,
    requests: usize,
    /// Prompt and output of the largest request.
    largest: (Tokens, Tokens),
}

impl Tally {
    fn lost(&self) -> usize {
        self.visible
            .iter()
            .filter(|id| !self.asked.contains(*id) && !self.kept.contains(*id))
            .count()
    }
}

/// Compacts after each third of the session.
fn three(lines: &[Value], window: Window, keep: u32) -> anyhow::Result<Tally> {
    let mut tally = Tally::default();
    let mut text = format!("{}\n", lines[0]);
    let entries = &lines[1..];
    let mut last: Option<(String, String)> = None;
    for third in 0..3 {
        let part = &entries[entries.len() * third / 3..entries.len() * (third + 1) / 3];
        for (at, entry) in part.iter().enumerate() {
            let mut entry = entry.clone();
            if let (0, Some((_, compaction))) = (at, &last) {
                entry["parentId"] = Value::from(compaction.as_str());
            }
            text.push_str(&format!("{entry}\n"));
        }
        let log = SessionLog::load(text.as_str(), Trust::Validated)?;
        let context = log.context(&Leaf::Last, Profile::Foldline)?;
        see(&mut tally.visible, &log, &context);
        let id = format!("loss{third}");
        let line = compact(&context, window, keep, &id, &mut tally)?;
        text.push_str(&line);
        text.push('\n');
        last = Some((line, id));
    }
    let log = SessionLog::load(text.as_str(), Trust::Validated)?;
    let context = log.context(&Leaf::Last, Profile::Foldline)?;
    see(&mut tally.kept, &log, &context);
    Ok(tally)
}

fn compact(
    context: &Context<'_>,
    window: Window,
    keep: u32,
    id: &str,
    tally: &mut Tally,
) -> anyhow::Result<String> {
    let settings = CompactionSettings {
        keep_recent_tokens: f64::from(keep),
        ..CompactionSettings::default()
    };
    let limits = Limits::new(Some(WINDOW), &settings, Tokens::ZERO);
    let options = PrepareOptions {
        settings: &settings,
        limits: limits.as_ref(),
        ratio: RatioUse::None,
        window,
        small: SmallRegion::Allow,
        room: None,
        tools: &ToolTable::default(),
    };
    let preparation = prepare(context, &options, &Heuristic)?;
    let name = ModelRef {
        provider: "none".to_owned(),
        id: "none".to_owned(),
    };
    let model = ModelProfile {
        context_window: Some(WINDOW),
        max_output: Some(Tokens(32_000)),
        ..ModelProfile::unknown(name, Api::AnthropicMessages)
    };
    let job_options = JobOptions {
        commit: CommitOptions {
            settings: &settings,
            limits: limits.as_ref(),
            size: ContextSize::of(context, Tokens::ZERO, Tokens::ZERO, &Heuristic),
            open_todos: &[],
            demand: Demand::Any,
            preserve_data: None,
        },
        model: &model,
        prompts: &Prompts::default(),
        instructions: None,
        prompt_override: None,
        context_lines: &[],
        reasoning: ReasoningEffort::High,
    };
    let job = SummaryJob::new(&preparation, job_options, &Heuristic)?;
    for request in job.requests() {
        tally.requests += 1;
        tally
            .asked
            .extend(request.entries.iter().map(ToString::to_string));
        let output = request.request.max_output.unwrap_or_default();
        tally.largest = tally.largest.max((request.estimate, output));
    }
    let reply = LlmReply {
        blocks: vec![AssistantBlock::Text {
            text: NOTES.into(),
            signature: None,
        }],
        usage: Usage::default(),
        stop: StopReason::Stop,
        raw_stop: None,
        model: None,
        response_id: None,
    };
    let replies = vec![reply; job.requests().len()];
    let compaction = job.finish(&replies, &Heuristic)?;
    let envelope = Envelope {
        id: EntryId::from(id),
        parent: context.leaf.map(|leaf| context.log.entry_id(leaf)),
        timestamp: "2026-01-01T00:00:00.000Z".to_owned(),
    };
    Ok(EntryDraft::compaction(&compaction.draft).line(&envelope))
}

/// Visible entries with anything to read.
fn see(into: &mut BTreeSet<String>, log: &SessionLog, context: &Context<'_>) {
    let items = context
        .items
        .iter()
        .filter(|item| item.message.is_visible() && Some(item.source) != context.compaction);
    into.extend(items.map(|item| log.id(item.source).to_owned()));
}

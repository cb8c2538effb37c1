//! `foldline run`: one prompt through the agent loop.

use std::io::{IsTerminal as _, Read as _};
use std::path::PathBuf;

use foldline_agent_session::event::{Delta, Event, FailureKind, RunEnd};
use foldline_agent_session::tools::Selection;
use foldline_agent_session::{Prompt, Prompted, RunReport};
use foldline_session_model::Tokens;
use foldline_session_model::model_call::{Cost, ModelProfile, Usage};
use serde::Serialize;
use serde_json::Value;

use crate::door::{drive, runtime, session_error, show};
use crate::error::{CommandError, ErrorKind, Status};
use crate::host::{self, Reach};
use crate::model::{ModelArgs, failure_error};
use crate::output::{self, ErrorFields, Format};
use crate::progress::Progress;
use crate::setup::{Purpose, Setup};

#[derive(Debug, clap::Args)]
#[command(
    after_help = "The answer goes to standard output as it comes, everything else to standard error. The exit code tells how
it ended: 0 done, 1 failed, 4 the provider or the network, 5 the session is busy, 130 cancelled.

Examples:
  foldline run 'What does the parser do with tabs?' --model ollama/qwen3
  git diff | foldline run --session latest --json
  foldline run 'Fix the typo in README.md' --tools read,edit"
)]
pub(crate) struct Args {
    /// What to say [default: standard input].
    prompt: Option<String>,
    /// The session to go on with: a path, the start of an id, or `latest` [default: a new one].
    #[arg(long, value_name = "S")]
    session: Option<PathBuf>,
    /// The tools that the model may call: `all`, `none`, or names with commas between [default: the setting
    /// `tools.allowed`, or those that only read].
    #[arg(long, value_name = "NAMES")]
    tools: Option<Selection>,
    #[command(flatten)]
    model: ModelArgs,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document<'d> {
    outcome: &'static str,
    answer: Option<&'d str>,
    session: String,
    model: String,
    /// The sum over all requests of the run, those of compactions not counted.
    usage: UsageFields,
    requests: u32,
    /// What happened, without the pieces of answers.
    events: &'d [Value],
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ErrorFields<'d>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct UsageFields {
    input: Tokens,
    output: Tokens,
    cache_read: Tokens,
    cache_write: Tokens,
    total_tokens: Tokens,
    /// In US dollars; null if the prices are not known.
    cost: Option<Cost>,
}

impl UsageFields {
    fn new(usage: &Usage, profile: Option<&ModelProfile>) -> Self {
        let is_known = usage.cost.total > 0.0 || profile.is_some_and(|profile| profile.prices.is_some());
        Self {
            input: usage.input,
            output: usage.output,
            cache_read: usage.cache_read,
            cache_write: usage.cache_write,
            total_tokens: usage.total_tokens,
            cost: is_known.then_some(usage.cost),
        }
    }
}

/// What is kept of a run's events.
#[derive(Default)]
struct Record {
    events: Vec<Value>,
    usage: Usage,
    /// Whether the last thing on standard output was a piece of a line.
    mid_line: bool,
}

pub(crate) fn run(args: &Args, format: Format) -> Result<Status, CommandError> {
    let setup = Setup::new(&args.model, Purpose::Work)?;
    let profile = setup.profile()?;
    if profile.is_none() {
        return Err(
            CommandError::new(ErrorKind::Usage, "there is no model to ask").hint(
                "name one with --model provider/model, or set it: foldline config set model provider/model",
            ),
        );
    }
    let prompt = match &args.prompt {
        Some(prompt) => prompt.clone(),
        None => read_prompt()?,
    };
    if prompt.trim().is_empty() {
        return Err(CommandError::new(ErrorKind::Usage, "the prompt is empty")
            .hint("say it as an argument, or on standard input"));
    }
    let session = host::open(&setup, args.session.as_deref(), args.tools.as_ref(), Reach::Tail)?;
    let runtime = runtime()?;
    runtime.block_on(session.tell_startup());
    let progress = Progress::start("Working");
    let mut record = Record::default();
    let done = drive(
        &runtime,
        &session,
        session.prompt(Prompt::text(prompt)),
        |event| {
            record.take(event, &progress, format);
        },
    );
    drop(progress);
    runtime.block_on(session.tell_quit());
    record.end_line(format);
    let report = match done {
        Ok(Prompted::Ran(report)) => report,
        Ok(Prompted::Queued) => {
            return Err(CommandError::new(ErrorKind::Busy, "the session is busy")
                .hint("the prompt waits in it for its turn"));
        }
        Err(error) => return Err(session_error(&error)),
    };
    let failure = failed(&report);
    let path = session.path();
    let document = Document {
        outcome: match report.end {
            RunEnd::Completed => "completed",
            RunEnd::Cancelled => "cancelled",
            RunEnd::Failed => "failed",
        },
        answer: report.answer.as_ref().map(|answer| answer.text.as_str()),
        session: path.display().to_string(),
        model: setup.name(),
        usage: UsageFields::new(&record.usage, profile.as_ref()),
        requests: report.requests,
        events: &record.events,
        error: failure.as_ref().map(ErrorFields::from),
    };
    match format {
        Format::Json => output::result(format, &document, String::new),
        Format::Human => {
            if let Some(error) = &failure {
                output::failure(error, format);
            }
            output::note(&format!("session {}", document.session));
        }
    }
    Ok(failure.map_or(Status::Done, |error| Status::Ended(error.kind)))
}

fn read_prompt() -> Result<String, CommandError> {
    let mut input = std::io::stdin();
    if input.is_terminal() {
        return Err(CommandError::new(ErrorKind::Usage, "there is no prompt")
            .hint("say it as an argument, or send it to standard input"));
    }
    let mut bytes = Vec::new();
    input
        .read_to_end(&mut bytes)
        .map_err(|e| CommandError::from_error(ErrorKind::Failed, &e))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// How a run that did not come to its end is told.
pub(super) fn failed(report: &RunReport) -> Option<CommandError> {
    match report.end {
        RunEnd::Completed => None,
        RunEnd::Cancelled => Some(CommandError::new(ErrorKind::Cancelled, "cancelled")),
        RunEnd::Failed => {
            let kind = report.failure.as_deref().unwrap_or(&FailureKind::Other);
            let message = report
                .error
                .clone()
                .unwrap_or_else(|| "the run failed".to_owned());
            Some(failure_error(kind, message))
        }
    }
}

impl Record {
    fn take(&mut self, event: &Event, progress: &Progress, format: Format) {
        match event {
            Event::MessageUpdate {
                assistant_message_event: Delta::TextDelta { delta, .. },
            } if format == Format::Human => {
                progress.say(|| output::stream(delta));
                self.mid_line = !delta.ends_with('\n');
            }
            Event::MessageUpdate { .. } => {}
            Event::MessageEnd { usage, .. } => {
                self.end_line(format);
                if let Some(usage) = usage {
                    add(&mut self.usage, usage);
                }
            }
            Event::ToolExecutionStart { tool_name, args, .. } => {
                let call = crate::view::first_line(args.get(), 100);
                progress.say(|| output::note(&format!("{tool_name} {call}")));
            }
            event => show(event, progress),
        }
        if !matches!(event, Event::MessageUpdate { .. })
            && let Ok(event) = serde_json::to_value(event)
        {
            self.events.push(event);
        }
    }

    fn end_line(&mut self, format: Format) {
        if std::mem::take(&mut self.mid_line) && format == Format::Human {
            output::stream("\n");
        }
    }
}

fn add(sum: &mut Usage, usage: &Usage) {
    sum.input += usage.input;
    sum.output += usage.output;
    sum.cache_read += usage.cache_read;
    sum.cache_write += usage.cache_write;
    sum.total_tokens += usage.total_tokens;
    sum.cost.input += usage.cost.input;
    sum.cost.output += usage.cost.output;
    sum.cost.cache_read += usage.cost.cache_read;
    sum.cost.cache_write += usage.cost.cache_write;
    sum.cost.total += usage.cost.total;
}

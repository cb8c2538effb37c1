mod cases;
mod field;
mod loss;
mod preparing;
mod requests;
mod rounds;

use foldline_session_model::fold::Context;
use foldline_session_model::log::SessionLog;
use foldline_session_model::model_call::{
    Api, AssistantBlock, LlmReply, ModelProfile, ModelRef, ReasoningEffort, StopReason, Usage,
};
use foldline_session_model::tokens::Heuristic;
use foldline_session_model::{EntryDraft, EntryId, Envelope, Tokens};

use super::*;
use crate::accounting::{ContextSize, Limits, RatioUse};
use crate::file_ops::ToolTable;
use crate::prompts::Prompts;
use crate::settings::CompactionSettings;
use crate::testing::{Rows, context};
use crate::verbatim::{Demand, SmallRegion};

/// How a test compacts.
#[derive(Clone)]
pub(super) struct Setup {
    pub(super) settings: CompactionSettings,
    pub(super) window: Option<u64>,
    pub(super) tools: ToolTable,
    pub(super) prompts: Prompts2,
    pub(super) rule: Window,
    pub(super) small: SmallRegion,
    pub(super) room: Option<Tokens>,
    pub(super) model: ModelProfile,
    pub(super) context_lines: Vec<String>,
    pub(super) open_todos: Vec<String>,
    pub(super) instructions: Option<String>,
    pub(super) demand: Demand,
}

/// Prompts are not cloned by anyone but tests.
#[derive(Default)]
pub(super) struct Prompts2(pub(super) Prompts);

impl Clone for Prompts2 {
    fn clone(&self) -> Self {
        Self::default()
    }
}

pub(super) fn model(window: Option<u64>, output: Option<u64>) -> ModelProfile {
    let name = ModelRef {
        provider: "p".into(),
        id: "m".into(),
    };
    ModelProfile {
        context_window: window.map(Tokens),
        max_output: output.map(Tokens),
        ..ModelProfile::unknown(name, Api::AnthropicMessages)
    }
}

impl Setup {
    pub(super) fn new(window: u64, keep: u64) -> Self {
        Self {
            settings: CompactionSettings {
                keep_recent_tokens: keep as f64,
                ..CompactionSettings::default()
            },
            window: Some(window),
            tools: ToolTable::default(),
            prompts: Prompts2::default(),
            rule: Window::FromFirstKept,
            small: SmallRegion::Allow,
            room: None,
            model: model(Some(window), Some(32_000)),
            context_lines: Vec::new(),
            open_todos: Vec::new(),
            instructions: None,
            demand: Demand::Any,
        }
    }

    pub(super) fn limits(&self) -> Option<Limits> {
        Limits::new(self.window.map(Tokens), &self.settings, Tokens::ZERO)
    }

    pub(super) fn prepare<'c, 'l>(&self, context: &'c Context<'l>) -> Result<Preparation<'c, 'l>, Nothing> {
        let limits = self.limits();
        let options = PrepareOptions {
            settings: &self.settings,
            limits: limits.as_ref(),
            ratio: RatioUse::None,
            window: self.rule,
            small: self.small,
            room: self.room,
            tools: &self.tools,
        };
        prepare(context, &options, &Heuristic)
    }

    pub(super) fn commit_options<'o>(
        &'o self,
        limits: Option<&'o Limits>,
        context: &Context<'_>,
    ) -> CommitOptions<'o> {
        CommitOptions {
            settings: &self.settings,
            limits,
            size: ContextSize::of(context, Tokens::ZERO, Tokens::ZERO, &Heuristic),
            open_todos: &self.open_todos,
            demand: self.demand,
            preserve_data: None,
        }
    }

    pub(super) fn job_options<'o>(
        &'o self,
        limits: Option<&'o Limits>,
        context: &Context<'_>,
    ) -> JobOptions<'o> {
        JobOptions {
            commit: self.commit_options(limits, context),
            model: &self.model,
            prompts: &self.prompts.0,
            instructions: self.instructions.as_deref(),
            prompt_override: None,
            context_lines: &self.context_lines,
            reasoning: ReasoningEffort::High,
        }
    }

    /// Prepares, asks `model` each request, and finishes.
    pub(super) fn compact(
        &self,
        context: &Context<'_>,
        mut model: impl FnMut(&SummaryRequest) -> LlmReply,
    ) -> Result<SummaryCompaction, SummaryError> {
        let limits = self.limits();
        let preparation = self.prepare(context).expect("something to compact");
        let job = SummaryJob::new(
            &preparation,
            self.job_options(limits.as_ref(), context),
            &Heuristic,
        )
        .expect("requests");
        let replies: Vec<LlmReply> = job.requests().iter().map(&mut model).collect();
        job.finish(&replies, &Heuristic)
    }

    pub(super) fn extractive(&self, context: &Context<'_>) -> Result<SummaryCompaction, SummaryError> {
        let limits = self.limits();
        let preparation = self.prepare(context).expect("something to compact");
        extractive(
            &preparation,
            &self.commit_options(limits.as_ref(), context),
            &Heuristic,
        )
    }
}

/// The text of a request.
pub(super) fn prompt(request: &SummaryRequest) -> String {
    crate::remote::SummarizeRequest::of(&request.request).prompt
}

pub(super) fn reply(text: &str) -> LlmReply {
    reply_with(text, StopReason::Stop)
}

pub(super) fn reply_with(text: &str, stop: StopReason) -> LlmReply {
    LlmReply {
        blocks: vec![AssistantBlock::Text {
            text: text.to_owned().into(),
            signature: None,
        }],
        usage: Usage::default(),
        stop,
        raw_stop: None,
        model: None,
        response_id: None,
    }
}

/// A summary as a good model writes one.
pub(super) const NOTES: &str = "## Goal\nFix the parser.\n\n## Progress\n### Done\n- [x] Read the code\n\n## Next Steps\n1. Run the tests";

/// The rows with a compaction appended.
pub(super) fn appended(rows: Rows, id: &str, compaction: &SummaryCompaction) -> Rows {
    let envelope = Envelope {
        id: EntryId::from(id),
        parent: rows.last().map(EntryId::from),
        timestamp: "2026-01-01T12:00:00.000Z".to_owned(),
    };
    let line = EntryDraft::compaction(&compaction.draft).line(&envelope);
    rows.line(id, &line)
}

pub(super) fn ids(log: &SessionLog, items: &[foldline_session_model::fold::ContextItem<'_>]) -> Vec<String> {
    items.iter().map(|item| log.id(item.source).to_owned()).collect()
}

//! What hooks say about a compaction (spec "Orchestrator and clients", 6.1 steps 10 and 11, 13).

use foldline_compaction_core::accounting::ContextSize;
use foldline_compaction_core::file_ops::{FileOps, ToolTable};
use foldline_compaction_core::summary::{self, PrepareOptions, Window};
use foldline_compaction_core::verbatim::{self, Parameters};
use foldline_session_model::fold::{Context, ContextItem};
use foldline_session_model::log::SessionLog;
use foldline_session_model::message::{Message, SummaryText};
use foldline_session_model::model_call::RawJson;
use foldline_session_model::tokens::{Heuristic, TokenCounter as _};
use foldline_session_model::{Author, CompactionDraft, EntryId, Tokens};
use tokio_util::sync::CancellationToken;

use super::{Extras, Ground, NotPlanned, Order, Planned, on_thread_until};
use crate::core::{Core, context};
use crate::event::{CompactionAction, reason_name};
use crate::hooks::{
    BeforeCompactEvent, CompactingEvent, CompactionPreparation, HookCompaction, HookEvent, RegionLines,
};

/// What is told about a planned compaction, owned.
struct Told {
    first_kept: Option<EntryId>,
    messages: Vec<RawJson<'static>>,
    prefix: Vec<RawJson<'static>>,
    /// The size of the context as triggers see it, which is what is told and recorded (D10).
    size: Tokens,
    /// Its estimate, to compare with that of the rebuilt one (D11).
    tokens_before: Tokens,
    kept: Tokens,
    previous: Option<String>,
    previous_data: Option<RawJson<'static>>,
    file_ops: FileOps,
    lines: Option<Vec<String>>,
    entries: Vec<RawJson<'static>>,
}

impl Core {
    /// Asks the hooks. `Some`: one of them made the compaction itself.
    pub(super) async fn ask_hooks(
        &self,
        order: &Order,
        action: CompactionAction,
        parameters: &Parameters,
        ground: &mut Ground,
        token: &CancellationToken,
    ) -> Result<Option<Planned>, NotPlanned> {
        let hooks = self.options.hooks.clone();
        let before = hooks.wants(HookEvent::SessionBeforeCompact);
        let compacting = hooks.wants(HookEvent::SessionCompacting) && action == CompactionAction::ContextFull;
        if !before && !compacting {
            return Ok(None);
        }
        let (input, wanted) = (ground.clone(), parameters.clone());
        let told = on_thread_until(token, move || told(&input, action, wanted)).await??;
        let cx = self.hook_context(token);
        if before {
            let lines: Option<Vec<&str>> = told
                .lines
                .as_ref()
                .map(|lines| lines.iter().map(String::as_str).collect());
            let answer = hooks
                .session_before_compact(&cx, || BeforeCompactEvent {
                    reason: reason_name::name(order.reason),
                    preparation: CompactionPreparation {
                        first_kept_entry_id: told.first_kept.clone(),
                        messages_to_summarize: told.messages.clone(),
                        turn_prefix_messages: told.prefix.clone(),
                        is_split_turn: !told.prefix.is_empty(),
                        tokens_before: told.size,
                        previous_summary: told.previous.as_deref(),
                        previous_preserve_data: told.previous_data.clone(),
                        file_ops: (&told.file_ops).into(),
                        region: lines.map(|lines| RegionLines { lines }),
                        settings: &ground.settings,
                    },
                    branch_entries: told.entries.clone(),
                    parameters: (action == CompactionAction::VerbatimLines).then_some(parameters),
                    custom_instructions: ground.instructions.as_deref(),
                })
                .await;
            if token.is_cancelled() {
                return Err(NotPlanned::Cancelled);
            }
            if answer.cancel {
                return Err(NotPlanned::Vetoed);
            }
            if let Some(compaction) = answer.compaction {
                let input = ground.clone();
                return on_thread_until(token, move || custom(&input, told, compaction))
                    .await?
                    .map(Some);
            }
            if let Some(text) = answer.compacted_text {
                return self
                    .custom_lines(ground, parameters.clone(), text, token)
                    .await
                    .map(Some);
            }
        }
        if compacting {
            let answer = hooks
                .session_compacting(&cx, || CompactingEvent {
                    messages: told.messages.iter().chain(&told.prefix).cloned().collect(),
                })
                .await;
            if token.is_cancelled() {
                return Err(NotPlanned::Cancelled);
            }
            // What hooks say comes before what the session says of itself.
            let own = std::mem::take(&mut ground.lines);
            ground.lines = answer.context;
            ground.lines.extend(own);
            ground.prompt_override = answer.prompt;
            ground.preserve_data = answer
                .preserve_data
                .as_ref()
                .and_then(|data| serde_json::to_string(data).ok());
        }
        Ok(None)
    }

    async fn custom_lines(
        &self,
        ground: &Ground,
        parameters: Parameters,
        text: String,
        token: &CancellationToken,
    ) -> Result<Planned, NotPlanned> {
        let input = ground.clone();
        on_thread_until(token, move || {
            let context =
                context(&input.log, input.profile).map_err(|error| NotPlanned::Failed(error.to_string()))?;
            let preparation = verbatim::prepare(&context, parameters, input.small, &Heuristic)
                .map_err(|nothing| NotPlanned::Skipped(nothing.to_string()))?;
            let size = size_of(&input, &context);
            let made = verbatim::finish_override(&preparation, &text, input.demand, size, &Heuristic);
            match made {
                Ok(compaction) => Ok(Planned {
                    tokens_before: compaction.stats.tokens_before,
                    tokens_after: compaction.stats.tokens_after,
                    draft: compaction.draft,
                    planner: "extension".to_owned(),
                    rung: "extension",
                    extras: Extras {
                        stats: Some(compaction.stats),
                        ..Extras::default()
                    },
                }),
                Err(verbatim::finish::OverrideError::NotSmaller(reason)) => {
                    Err(NotPlanned::Skipped(reason.to_string()))
                }
                Err(error) => Err(NotPlanned::Failed(error.to_string())),
            }
        })
        .await?
    }
}

/// A hook's own compaction. The state of the work is added to its text, as it is to every summary. The entry that it
/// keeps first has to be one of those that it was told of.
fn custom(ground: &Ground, told: Told, made: HookCompaction) -> Result<Planned, NotPlanned> {
    if made.summary.trim().is_empty() {
        return Err(NotPlanned::Failed(
            "No compacted text provided by extension".to_owned(),
        ));
    }
    let mut summary = made.summary;
    if !ground.lines.is_empty() {
        summary.push_str("\n\n<compaction-state>\n");
        summary.push_str(&ground.lines.join("\n"));
        summary.push_str("\n</compaction-state>");
    }
    let boundary = Message::CompactionSummary(SummaryText {
        summary: summary.as_str().into(),
        ..SummaryText::default()
    });
    let kept = match &made.first_kept_entry_id {
        Some(id) if Some(id) != told.first_kept.as_ref() => kept_from(ground, id)?,
        _ => told.kept,
    };
    let tokens_after = Heuristic.message(&boundary) + kept;
    if told.tokens_before.saturating_sub(tokens_after) < ground.demand.least(told.tokens_before) {
        return Err(NotPlanned::Skipped(format!(
            "the context would have {tokens_after} tokens, and has {} now",
            told.tokens_before
        )));
    }
    Ok(Planned {
        tokens_before: told.tokens_before,
        tokens_after,
        draft: CompactionDraft {
            summary,
            short_summary: made.short_summary,
            first_kept: made.first_kept_entry_id.or(told.first_kept),
            tokens_before: made.tokens_before.unwrap_or(told.size),
            details: made
                .details
                .map_or_else(|| "{}".to_owned(), |details| details.get().to_owned()),
            preserve_data: made.preserve_data.map(|data| data.get().to_owned()),
            author: Author::Extension,
        },
        planner: "extension".to_owned(),
        rung: "extension",
        extras: Extras::default(),
    })
}

/// The tokens that stay if the tail begins at an entry of the path.
fn kept_from(ground: &Ground, first: &EntryId) -> Result<Tokens, NotPlanned> {
    let context =
        context(&ground.log, ground.profile).map_err(|error| NotPlanned::Failed(error.to_string()))?;
    let at = ground.log.find(first.as_str());
    let at = at.and_then(|ix| context.path.iter().position(|on_path| *on_path == ix));
    let Some(at) = at else {
        return Err(NotPlanned::Failed(format!(
            "an extension keeps the entry {first} first, and the path to the leaf has none of that name"
        )));
    };
    // Paths and items stand in the order of the log; only a summary comes before what it stands for.
    let of_entries = |item: &&ContextItem<'_>| Some(item.source) != context.compaction;
    let mut items = context.items.iter().filter(of_entries).peekable();
    let kept = context.path.iter().skip(at).filter_map(|ix| {
        while items.next_if(|item| item.source < *ix).is_some() {}
        match items.next_if(|item| item.source == *ix) {
            Some(item) => Some(Heuristic.message(&item.message)),
            None => Some(Heuristic.message(&ground.log.context_message(*ix)?)),
        }
    });
    Ok(kept.sum())
}

fn told(ground: &Ground, action: CompactionAction, parameters: Parameters) -> Result<Told, NotPlanned> {
    let context =
        context(&ground.log, ground.profile).map_err(|error| NotPlanned::Failed(error.to_string()))?;
    let size = size_of(ground, &context);
    let entries = context
        .path
        .iter()
        .filter_map(|ix| raw_entry(&ground.log, *ix))
        .collect();
    if action == CompactionAction::VerbatimLines {
        let preparation = verbatim::prepare(&context, parameters, ground.small, &Heuristic)
            .map_err(|nothing| NotPlanned::Skipped(nothing.to_string()))?;
        return Ok(Told {
            first_kept: preparation.first_kept(),
            messages: messages(&ground.log, preparation.compacted()),
            prefix: Vec::new(),
            size,
            tokens_before: preparation.tokens_before(),
            kept: preparation.tail_tokens(),
            previous: None,
            previous_data: None,
            file_ops: FileOps::default(),
            lines: Some(
                preparation
                    .region()
                    .lines()
                    .map(|line| line.text.to_owned())
                    .collect(),
            ),
            entries,
        });
    }
    let tools = ToolTable::default();
    let options = PrepareOptions {
        settings: &ground.settings,
        limits: ground.limits.as_ref(),
        ratio: ground.ratio,
        window: Window::FromFirstKept,
        small: ground.small,
        room: ground.tail_room(),
        tools: &tools,
    };
    let preparation = summary::prepare(&context, &options, &Heuristic)
        .map_err(|nothing| NotPlanned::Skipped(nothing.to_string()))?;
    let previous_data = preparation.previous().and_then(|previous| {
        let data = previous.preserve_data.as_deref()?;
        RawJson::parse(data.get().to_owned())
    });
    Ok(Told {
        first_kept: preparation.first_kept(),
        messages: messages(&ground.log, preparation.history()),
        prefix: messages(&ground.log, preparation.turn_prefix()),
        size,
        tokens_before: preparation.tokens_before(),
        kept: preparation.kept_tokens(),
        previous: preparation.previous_summary().map(str::to_owned),
        previous_data,
        file_ops: preparation.file_ops().clone(),
        lines: None,
        entries,
    })
}

fn size_of(ground: &Ground, context: &Context<'_>) -> Tokens {
    ContextSize::of(context, ground.overhead, Tokens::ZERO, &Heuristic).tokens
}

/// Messages as the session holds them; of entries that are no messages, the whole entry.
pub(crate) fn messages(log: &SessionLog, items: &[ContextItem<'_>]) -> Vec<RawJson<'static>> {
    items
        .iter()
        .filter_map(|item| match log.message_json(item.source) {
            Some(json) => RawJson::parse(json),
            None => raw_entry(log, item.source),
        })
        .collect()
}

/// An entry as it is in the session.
pub(crate) fn raw_entry(log: &SessionLog, ix: foldline_session_model::EntryIx) -> Option<RawJson<'static>> {
    RawJson::parse(String::from_utf8_lossy(log.raw_line(ix)).into_owned())
}

//! A plan becomes an entry, and whoever wants to know is told (DESIGN, rule 2).

use std::sync::Arc;

use foldline_llm_client::NativeForm;
use foldline_session_model::model_call::RawJson;
use foldline_session_model::{Author, EntryDraft, Tokens};
use serde::Serialize;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{BackupChoice, NotPlanned, Order, Planned, raw_entry};
use crate::core::{Core, context};
use crate::event::{CompactionAction, CompactionResult, FailureKind, reason_name};
use crate::hooks::SessionCompactEvent;
use crate::journal::{CommitError, Group, Pending, PlannedFor};
use crate::queue::Queued;

/// What a compaction entry says about how it came to be.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Record<'r> {
    reason: &'static str,
    phase: &'static str,
    strategy: CompactionAction,
    rung: &'static str,
    planner: &'r str,
    /// The form of the provider's own history beside the summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    native: Option<&'static str>,
    /// When the plan was made, if it was not when it was due.
    #[serde(skip_serializing_if = "Option::is_none")]
    prepared: Option<&'static str>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    fallback_reasons: &'r [String],
    ms: u64,
    tokens_before: Tokens,
    tokens_after: Tokens,
    #[serde(skip_serializing_if = "Option::is_none")]
    cached_tokens: Option<Tokens>,
    /// Messages that wait, so that a resume from here on finds them.
    #[serde(skip_serializing_if = "<[Queued]>::is_empty")]
    waiting: &'r [Queued],
}

impl Core {
    pub(super) async fn commit_compaction(
        &mut self,
        order: &Order,
        action: CompactionAction,
        mut planned: Planned,
        failures: Vec<String>,
        started: Instant,
    ) -> Result<CompactionResult, NotPlanned> {
        let shared = Arc::clone(&self.shared);
        let books = shared.books().await;
        let waiting: Vec<Queued> = shared.queues().all().cloned().collect();
        let elapsed_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let record = Record {
            reason: reason_name::name(order.reason),
            phase: if order.mid_turn { "midTurn" } else { "boundary" },
            strategy: action,
            rung: planned.rung,
            planner: &planned.planner,
            native: planned.extras.native.map(NativeForm::name),
            prepared: planned.extras.prepared.name(),
            fallback_reasons: &failures,
            ms: elapsed_ms,
            tokens_before: planned.tokens_before,
            tokens_after: planned.tokens_after,
            cached_tokens: self.cached_tokens(),
            waiting: &waiting,
        };
        planned.draft.details = with_member(&planned.draft.details, "foldline", &record);
        let group = Group {
            entries: vec![Pending::from(EntryDraft::compaction(&planned.draft))],
            planned_for: PlannedFor::Leaf(self.shared.journal().content_leaf()),
            backup: (order.backup == BackupChoice::Before).then_some("compact"),
            ..Group::default()
        };
        let committed = self.commit(group).await.map_err(|error| match error {
            CommitError::Moved => NotPlanned::Skipped(error.to_string()),
            error if error.is_busy() => NotPlanned::FailedBy {
                kind: FailureKind::Busy,
                cause: error.full_text(),
            },
            error => NotPlanned::FailedBy {
                kind: error.system().map_or(FailureKind::Other, FailureKind::System),
                cause: error.full_text(),
            },
        })?;
        drop(books);
        self.forget_replaced().await;
        let entry_id = committed
            .ids
            .into_iter()
            .next()
            .ok_or_else(|| NotPlanned::Failed("nothing was written".to_owned()))?;
        let author = planned.draft.author;
        let result = CompactionResult {
            entry_id,
            first_kept_entry_id: planned.draft.first_kept,
            tokens_before: planned.tokens_before,
            tokens_after: planned.tokens_after,
            summary: planned.draft.summary,
            short_summary: planned.draft.short_summary,
            planner: planned.planner,
            rung: planned.rung,
            native: planned.extras.native.map(NativeForm::name),
            prepared: planned.extras.prepared.name(),
            fallback_reasons: failures,
            elapsed_ms,
            backup_path: committed.backup,
            extras: planned.extras,
        };
        self.tell_compacted(order, author, &result).await;
        Ok(result)
    }

    async fn tell_compacted(&self, order: &Order, author: Author, result: &CompactionResult) {
        let Some(raw) = self
            .log
            .find(result.entry_id.as_str())
            .and_then(|ix| raw_entry(&self.log, ix))
        else {
            return;
        };
        let cx = self.hook_context(&CancellationToken::new());
        self.options
            .hooks
            .session_compact(&cx, || SessionCompactEvent {
                compaction_entry: raw,
                from_extension: author == Author::Extension,
                reason: reason_name::name(order.reason),
                parameters: order.parameters.as_ref(),
                result: serde_json::to_string(result).ok().and_then(RawJson::parse),
            })
            .await;
    }

    /// What the newest request had in the provider's cache.
    fn cached_tokens(&self) -> Option<Tokens> {
        let context = context(&self.log, self.options.profile).ok()?;
        context.items.iter().rev().find_map(|item| match &item.message {
            foldline_session_model::message::Message::Assistant(message) => {
                message.usage.map(|usage| usage.cache_read)
            }
            _ => None,
        })
    }
}

/// An object with one more member. What is no object is replaced by one.
pub(super) fn with_member(object: &str, key: &str, value: &impl Serialize) -> String {
    let value = serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned());
    let body = object
        .trim()
        .strip_prefix('{')
        .and_then(|rest| rest.strip_suffix('}'))
        .map_or("", str::trim);
    if body.is_empty() {
        format!("{{\"{key}\":{value}}}")
    } else {
        format!("{{{body},\"{key}\":{value}}}")
    }
}

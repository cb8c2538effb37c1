//! Compaction by summary: each candidate is asked until one gives a summary that pays.

use std::sync::Arc;

use foldline_compaction_core::accounting::ContextSize;
use foldline_compaction_core::file_ops::ToolTable;
use foldline_compaction_core::prompts::Prompts;
use foldline_compaction_core::summary::{
    self, CommitOptions, JobOptions, Preparation, PrepareOptions, SummaryCompaction, SummaryError,
    SummaryJob, Window, stored_cap,
};
use foldline_compaction_core::verbatim::NotSmaller;
use foldline_llm_client::{LanguageModel, LlmError, RetryingModel};
use foldline_session_model::Tokens;
use foldline_session_model::model_call::{ErrorClass, LlmReply, LlmRequest, ModelProfile, OtherCause};
use foldline_session_model::tokens::Heuristic;
use tokio_util::sync::CancellationToken;

use super::room::{Rest, Room};
use super::{
    Extras, Ground, NotPlanned, Order, Oversized, POLICY, Planned, UNCHANGED, advances, falls_back, on_thread,
};
use crate::core::{Core, context};
use crate::event::{Event, FailureKind, Unpaid};

/// Why a candidate gave no summary.
enum Refused {
    /// No candidate can do better.
    Final(NotPlanned),
    /// Another one may.
    Next { class: ErrorClass, cause: String },
}

impl Core {
    pub(super) async fn plan_summary(
        &self,
        order: &Order,
        ground: &Ground,
        remote: Option<Arc<dyn LanguageModel>>,
        models: Vec<Arc<dyn LanguageModel>>,
        token: &CancellationToken,
        failures: &mut Vec<String>,
    ) -> Result<Planned, NotPlanned> {
        let by_model = remote.is_some() || !models.is_empty();
        let mut last = None;
        let mut unchanged = true;
        // A service never stands alone: whatever goes wrong there, the models are asked next.
        let remote = remote.into_iter().map(|model| (model, true));
        let candidates = remote.chain(models.into_iter().map(|model| (model, false)));
        for (model, is_remote) in candidates {
            match self.summary_by(ground, &model, token).await {
                Ok(planned) => match fitting(order, ground, planned) {
                    Ok(planned) => return Ok(planned),
                    Err(not) => match goes_down(order, ground, not) {
                        Ok(cause) => {
                            failures.push(format!("{}: {cause}", model.profile().model_ref()));
                            break;
                        }
                        Err(not) => return Err(not),
                    },
                },
                Err(Refused::Final(not)) => {
                    let cause = goes_down(order, ground, not)?;
                    failures.push(format!("{}: {cause}", model.profile().model_ref()));
                    break;
                }
                Err(Refused::Next { class, cause }) => {
                    let name = model.profile().model_ref();
                    failures.push(format!("{name}: {cause}"));
                    unchanged &= cause == UNCHANGED;
                    let text = missing_credentials(&class, &name.to_string(), &cause).unwrap_or(cause);
                    let advances = advances(order, &class);
                    let kind = match class {
                        ErrorClass::Other(OtherCause::Protocol) => FailureKind::Answer,
                        class => FailureKind::Provider(class),
                    };
                    last = Some((kind, text));
                    if !is_remote && !advances {
                        break;
                    }
                }
            }
        }
        if by_model && !falls_back(order, ground) {
            if unchanged && last.is_some() {
                return Err(NotPlanned::Skipped(unchanged_text(order)));
            }
            return Err(match last {
                Some((kind, cause)) => NotPlanned::FailedBy { kind, cause },
                None => NotPlanned::Failed("no available model".to_owned()),
            });
        }
        let rung = if by_model { "fallback" } else { "extractive" };
        match without_model(order, ground, rung).await {
            // Something smaller than a summary is left: the newest lines only.
            Err(not) => {
                let cause = goes_down(order, ground, not)?;
                failures.push(format!("extractive: {cause}"));
                self.lines_without_model(ground).await
            }
            Ok(planned) => Ok(planned),
        }
    }

    async fn summary_by(
        &self,
        ground: &Ground,
        model: &Arc<dyn LanguageModel>,
        token: &CancellationToken,
    ) -> Result<Planned, Refused> {
        let profile = self.known_for(ground, model.profile());
        let input = ground.clone();
        let asked = profile.clone();
        let requests = on_thread(move || {
            with_job(&input, &asked, |job| {
                job.requests()
                    .iter()
                    .map(|r| r.request.clone())
                    .collect::<Vec<LlmRequest<'static>>>()
            })
        })
        .await?;
        let mark = Oversized::mark(&profile, &requests);
        if self.live.oversized.holds(mark) {
            return Err(Refused::Next {
                class: ErrorClass::OVERFLOW,
                cause: UNCHANGED.to_owned(),
            });
        }
        let replies = self
            .ask_all(model, &requests, token)
            .await
            .map_err(|error| match error.class {
                ErrorClass::Cancelled => Refused::Final(NotPlanned::Cancelled),
                class => {
                    if class.wants_smaller_request() {
                        self.live.oversized.remember(mark);
                    }
                    Refused::Next {
                        cause: error.message.to_string(),
                        class,
                    }
                }
            })?;
        let input = ground.clone();
        let asked = profile.clone();
        let finished =
            on_thread(move || with_job(&input, &asked, |job| job.finish(&replies, &Heuristic))).await?;
        match finished {
            Ok(compaction) => Ok(planned(compaction, profile.model_ref().to_string(), "planned")),
            Err(SummaryError::NotSmaller(reason)) => Err(Refused::Final(unpaid(reason, "planned"))),
            Err(error) => Err(Refused::Next {
                class: ErrorClass::Other(OtherCause::Protocol),
                cause: error.to_string(),
            }),
        }
    }

    /// Asks one model several things side by side.
    pub(crate) async fn ask_all(
        &self,
        model: &Arc<dyn LanguageModel>,
        requests: &[LlmRequest<'static>],
        token: &CancellationToken,
    ) -> Result<Vec<LlmReply>, LlmError> {
        let shared = Arc::clone(&self.shared);
        let observer = Arc::new(
            move |attempt: u32, error: &LlmError, delay: std::time::Duration| {
                shared.emit(Event::SummarizationRetryScheduled {
                    attempt,
                    max_attempts: u32::try_from(POLICY.max_retries).unwrap_or(u32::MAX),
                    delay_ms: u64::try_from(delay.as_millis()).unwrap_or(u64::MAX),
                    error_message: error.to_string(),
                });
            },
        );
        let retrying = RetryingModel::new(Arc::clone(model), POLICY).with_observer(observer);
        let calls = requests
            .iter()
            .map(|request| retrying.complete(request, token.clone()));
        futures::future::try_join_all(calls).await
    }
}

/// A summary by the embedded planner, that fits where it must.
pub(super) async fn without_model(
    order: &Order,
    ground: &Ground,
    rung: &'static str,
) -> Result<Planned, NotPlanned> {
    let input = ground.clone();
    let extracted = on_thread(move || {
        with_preparation(&input, |preparation, options| {
            summary::extractive(preparation, options, &Heuristic)
        })
    })
    .await;
    match extracted {
        Ok(Ok(compaction)) => fitting(order, ground, planned(compaction, "extractive".to_owned(), rung)),
        Ok(Err(error)) => Err(not_planned(error)),
        Err(nothing) => Err(NotPlanned::Skipped(nothing)),
    }
}

/// Whether there is something to summarise.
pub(super) fn is_due(ground: &Ground) -> bool {
    with_preparation(ground, |_, _| ()).is_ok()
}

/// Prepares and plans; the same again gives the same, so that nothing is held while a model thinks.
fn with_job<R>(
    ground: &Ground,
    model: &ModelProfile,
    work: impl FnOnce(&SummaryJob<'_, '_, '_>) -> R,
) -> Result<R, Refused> {
    let prompts = Prompts::default();
    let made = with_preparation(ground, |preparation, commit| {
        let options = JobOptions {
            commit: *commit,
            model,
            prompts: &prompts,
            instructions: ground.instructions.as_deref(),
            prompt_override: ground.prompt_override.as_deref(),
            context_lines: &ground.lines,
            reasoning: ground.reasoning,
        };
        SummaryJob::new(preparation, options, &Heuristic).map(|job| work(&job))
    });
    match made {
        Ok(Ok(result)) => Ok(result),
        // A window that is too small for this model's requests may be large enough for another's.
        Ok(Err(error)) => Err(Refused::Next {
            class: ErrorClass::OVERFLOW,
            cause: error.to_string(),
        }),
        Err(nothing) => Err(Refused::Final(NotPlanned::Skipped(nothing))),
    }
}

fn with_preparation<R>(
    ground: &Ground,
    work: impl FnOnce(&Preparation<'_, '_>, &CommitOptions<'_>) -> R,
) -> Result<R, String> {
    let context = context(&ground.log, ground.profile).map_err(|error| error.to_string())?;
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
    let preparation =
        summary::prepare(&context, &options, &Heuristic).map_err(|nothing| nothing.to_string())?;
    let commit = CommitOptions {
        settings: &ground.settings,
        limits: ground.limits.as_ref(),
        size: ContextSize::of(&context, ground.overhead, Tokens::ZERO, &Heuristic),
        open_todos: &ground.todos,
        demand: ground.demand,
        preserve_data: ground.preserve_data.as_deref(),
    };
    Ok(work(&preparation, &commit))
}

impl Ground {
    /// The most that a kept tail may take beside a summary, where the rebuilt context must fit.
    pub(super) fn tail_room(&self) -> Option<Tokens> {
        let summary = stored_cap(&self.settings, self.limits.as_ref());
        self.room.map(|room| room.beside(summary))
    }
}

/// Why the next rung is tried; an error where none is. What need not become smaller is left alone if there is nothing
/// to do.
pub(super) fn goes_down(order: &Order, ground: &Ground, not: NotPlanned) -> Result<String, NotPlanned> {
    let has_failed = matches!(not, NotPlanned::Failed(_) | NotPlanned::FailedBy { .. });
    let must = ground.room.is_some_and(Room::is_exceeded);
    match not.cause() {
        Some(cause) if falls_back(order, ground) && (has_failed || must) => Ok(cause.to_owned()),
        _ => Err(not),
    }
}

/// A plan that fits, where it must.
pub(super) fn fitting(order: &Order, ground: &Ground, planned: Planned) -> Result<Planned, NotPlanned> {
    let rest = if falls_back(order, ground) {
        Rest::StandsBy
    } else {
        Rest::None
    };
    match ground.room {
        Some(room) if !room.takes(planned.tokens_after, rest) => {
            Err(room.insufficient(planned.tokens_before, planned.tokens_after, planned.rung))
        }
        _ => Ok(planned),
    }
}

fn planned(compaction: SummaryCompaction, planner: String, rung: &'static str) -> Planned {
    Planned {
        tokens_before: compaction.tokens_before,
        tokens_after: compaction.tokens_after,
        draft: compaction.draft,
        planner,
        rung,
        extras: Extras {
            read_files: compaction.files.read_files,
            modified_files: compaction.files.modified_files,
            ..Extras::default()
        },
    }
}

fn unchanged_text(order: &Order) -> String {
    let what = if order.is_manual() {
        "Compaction"
    } else {
        "Auto-compaction"
    };
    format!("{what} skipped: {UNCHANGED}")
}

fn not_planned(error: SummaryError) -> NotPlanned {
    match error {
        SummaryError::NotSmaller(reason) => unpaid(reason, "extractive"),
        SummaryError::Cancelled => NotPlanned::Cancelled,
        error => NotPlanned::Failed(error.to_string()),
    }
}

/// A summary that does not make the context small enough.
fn unpaid(reason: NotSmaller, rung: &'static str) -> NotPlanned {
    match reason {
        NotSmaller::Insufficient { before, after, .. } => NotPlanned::Unpaid {
            reason: reason.to_string(),
            figures: Box::new(Unpaid {
                tokens_before: before,
                tokens_after: after,
                rung,
                extras: Extras::default(),
            }),
        },
        reason => NotPlanned::Skipped(reason.to_string()),
    }
}

fn missing_credentials(class: &ErrorClass, model: &str, cause: &str) -> Option<String> {
    let provider = model.split_once('/').map_or(model, |(provider, _)| provider);
    (*class == ErrorClass::Auth).then(|| {
        format!(
            "Compaction requires usable credentials for {model}. Configure {provider} credentials or assign an \
             authenticated fallback via modelRoles.default. {cause}"
        )
    })
}

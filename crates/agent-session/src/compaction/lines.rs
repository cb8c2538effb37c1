//! Compaction by deleting lines: a ladder of planners, each asked once (D6; spec "Verbatim", 12).

use std::sync::Arc;
use std::time::SystemTime;

use foldline_compaction_core::accounting::Limits;
use foldline_compaction_core::redact::redact;
use foldline_compaction_core::verbatim::diagnostic::{SidecarKind, diagnostic, recovery};
use foldline_compaction_core::verbatim::{
    self, Attempt, CallFailure, Candidate, Category, Climb, Credentials, Ladder, LastRung, NotSmaller,
    Parameters, Preparation, RangePlan, RangePrompts, Retries, Rung, SmallRegion, Step, VerbatimCompaction,
};
use foldline_llm_client::{LanguageModel, LlmError, RetryingModel};
use foldline_session_model::Tokens;
use foldline_session_model::model_call::{ErrorClass, LlmReply, LlmRequest, ModelProfile};
use foldline_session_model::tokens::Heuristic;
use foldline_session_store::SidecarName;
use tokio_util::sync::CancellationToken;

use super::room::{Rest, Room};
use super::summary::{fitting, goes_down};
use super::{
    Extras, Ground, NotPlanned, Order, Oversized, POLICY, Planned, UNCHANGED, falls_back, on_thread,
};
use crate::core::{Core, context};
use crate::event::{FailureKind, Unpaid};
use crate::journal::now_text;

type Replies = Vec<Result<LlmReply, CallFailure>>;

/// A plan that was carried out, or why it is not.
type Finished = Result<Made, NotPlanned>;

/// A plan that was carried out.
struct Made {
    compaction: VerbatimCompaction,
    plan: RangePlan,
    /// What is wrong with the text of an earlier compaction, which is taken as plain text then.
    provenance: Option<String>,
}

/// What the ladder says after the answers so far.
enum Stand {
    Ask {
        candidate: usize,
        request: Box<LlmRequest<'static>>,
    },
    Done(Box<Finished>),
    Failed {
        message: String,
        category: Category,
    },
}

impl Core {
    pub(super) async fn plan_lines(
        &self,
        order: &Order,
        ground: &Ground,
        parameters: Parameters,
        models: Vec<Arc<dyn LanguageModel>>,
        token: &CancellationToken,
        failures: &mut Vec<String>,
    ) -> Result<Planned, NotPlanned> {
        if models.is_empty() {
            return self.extractive_lines(ground, parameters).await;
        }
        let profiles: Vec<ModelProfile> = models
            .iter()
            .map(|model| self.known_for(ground, model.profile()))
            .collect();
        let climb = if order.is_load_bearing() {
            Climb::AllModels
        } else {
            Climb::OneRequest
        };
        let last = if falls_back(order, ground) {
            LastRung::ModelFree {
                limit: ground.limit_of_lines(),
            }
        } else {
            LastRung::Fail
        };
        let mut answers: Replies = Vec::new();
        let mut told = None;
        let mut asked_last = None;
        loop {
            let (input, asked, so_far) = (ground.clone(), profiles.clone(), answers.clone());
            let wanted = parameters.clone();
            let stand = on_thread(move || stand(&input, wanted, &asked, &so_far, climb, last)).await?;
            match stand {
                Stand::Done(finished) => {
                    let made = match *finished {
                        Ok(made) => {
                            let planner = match &made.plan.planner {
                                Some(planner) => format!("{}/{}", planner.provider, planner.id),
                                None if made.plan.rung == Rung::Planned => profiles
                                    .first()
                                    .map(|p| p.model_ref().to_string())
                                    .unwrap_or_default(),
                                None => "extractive".to_owned(),
                            };
                            fitting(order, ground, planned(made, planner))
                        }
                        Err(not) => Err(not),
                    };
                    return match made {
                        Err(not) => {
                            failures.push(goes_down(order, ground, not)?);
                            self.lines_without_model(ground).await
                        }
                        made => made,
                    };
                }
                Stand::Failed { message, category } => {
                    // Without a key there is nothing to look into.
                    let told = told.filter(|_| category != Category::Unauthenticated);
                    let beside = told.map_or_else(String::new, |path| format!(" (diagnostic: {path})"));
                    let text = match (category, asked_last) {
                        (Category::Unauthenticated, Some(provider)) => {
                            format!("No API key found for {provider}: {message}")
                        }
                        _ => message,
                    };
                    let kind = match answers.pop() {
                        Some(Err(failure)) => FailureKind::Provider(failure.class),
                        _ if category == Category::ContextOverflow => {
                            FailureKind::Provider(ErrorClass::OVERFLOW)
                        }
                        _ => FailureKind::Answer,
                    };
                    return Err(NotPlanned::FailedBy {
                        kind,
                        cause: format!("{text}{beside}"),
                    });
                }
                Stand::Ask { candidate, request } => {
                    let Some(model) = models.get(candidate) else {
                        return Err(NotPlanned::Failed("no available model".to_owned()));
                    };
                    asked_last = Some(model.profile().provider.clone());
                    let mark = Oversized::mark(model.profile(), std::slice::from_ref(&*request));
                    let answer = if self.live.oversized.holds(mark) {
                        Err(LlmError::new(ErrorClass::OVERFLOW, UNCHANGED))
                    } else {
                        let retrying = RetryingModel::new(Arc::clone(model), POLICY);
                        retrying.complete(&request, token.clone()).await
                    };
                    if answer
                        .as_ref()
                        .is_err_and(|error| error.class.wants_smaller_request())
                    {
                        self.live.oversized.remember(mark);
                    }
                    let answer = answer.map_err(failure);
                    if token.is_cancelled() {
                        return Err(NotPlanned::Cancelled);
                    }
                    if let Err(error) = &answer {
                        failures.push(format!("{}: {}", model.profile().model_ref(), error.message));
                    }
                    answers.push(answer);
                    let (input, asked, so_far) = (ground.clone(), profiles.clone(), answers.clone());
                    let wanted = parameters.clone();
                    let attempt =
                        on_thread(move || last_attempt(&input, wanted, &asked, &so_far, climb, last)).await;
                    told = attempt
                        .and_then(|attempt| self.tell(&attempt, answers.last()?, model.profile()))
                        .or(told);
                }
            }
        }
    }

    async fn extractive_lines(&self, ground: &Ground, parameters: Parameters) -> Result<Planned, NotPlanned> {
        let input = ground.clone();
        let made = on_thread(move || {
            with_preparation(&input, parameters, input.small, |preparation| {
                let chosen = verbatim::extractive(preparation);
                let plan = RangePlan {
                    dropped: chosen.dropped,
                    ..RangePlan::new(chosen.ranges, Rung::Extractive)
                };
                finish(&input, preparation, plan)
            })
        })
        .await?;
        match made {
            Ok(made) => Ok(planned(made, "extractive".to_owned())),
            Err(not) => Err(not),
        }
    }

    /// The last rung: whatever fits, without a model.
    pub(super) async fn lines_without_model(&self, ground: &Ground) -> Result<Planned, NotPlanned> {
        let input = ground.clone();
        let limit = ground.limit_of_lines();
        let stand = on_thread(move || {
            let query = context(&input.log, input.profile)
                .ok()
                .and_then(|context| context.last_user_text())
                .unwrap_or_else(|| verbatim::DEFAULT_QUERY.to_owned());
            let mut parameters = Parameters::with_query(query);
            parameters.preserve_recent = recent_within(&input, &parameters, limit)?;
            stand(
                &input,
                parameters,
                &[],
                &[],
                Climb::AllModels,
                LastRung::ModelFree { limit },
            )
        })
        .await?;
        let made = match stand {
            Stand::Done(finished) => planned((*finished)?, "extractive".to_owned()),
            Stand::Failed { message, .. } => return Err(NotPlanned::Failed(message)),
            Stand::Ask { .. } => return Err(NotPlanned::Failed("no available model".to_owned())),
        };
        match ground.room {
            Some(room) if !room.takes(made.tokens_after, Rest::None) => {
                Err(room.insufficient(made.tokens_before, made.tokens_after, made.rung))
            }
            _ => Ok(made),
        }
    }

    /// Writes a sidecar about an attempt that failed or was recovered. Only that of a failure is named to the user.
    fn tell(
        &self,
        attempt: &Attempt,
        answer: &Result<LlmReply, CallFailure>,
        profile: &ModelProfile,
    ) -> Option<String> {
        let hide = |text: &str| redact(text).into_owned();
        let (kind, content) = match (attempt, answer) {
            (Attempt::Failed(failed), _) => (
                SidecarKind::Diagnostic,
                diagnostic(failed, answer, profile, &now_text(), &hide),
            ),
            (Attempt::Recovered { records }, Ok(reply)) => (
                SidecarKind::Recovery,
                recovery(*records, reply, profile, &now_text(), &hide),
            ),
            _ => return None,
        };
        let unique = uuid::Uuid::now_v7().to_string();
        let name = SidecarName {
            kind: match kind {
                SidecarKind::Diagnostic => "compaction-diagnostic",
                SidecarKind::Recovery => "compaction-recovery",
            },
            now: SystemTime::now(),
            unique: &unique,
        };
        let journal = self.shared.journal();
        let written = journal.store().sidecar(journal.path(), &name, content.as_bytes());
        let path = written.path().map(|path| path.display().to_string());
        path.filter(|_| kind == SidecarKind::Diagnostic)
    }
}

impl Ground {
    /// What lines and tail may take together.
    fn limit_of_lines(&self) -> Option<Tokens> {
        let window = || self.limits.as_ref().map(Limits::window);
        self.room.map(Room::for_lines).or_else(window)
    }
}

/// How many of the newest messages may stay as they are; without the newest question a recovery would be none.
fn recent_within(
    ground: &Ground,
    parameters: &Parameters,
    limit: Option<Tokens>,
) -> Result<usize, NotPlanned> {
    for recent in (2..=parameters.preserve_recent).rev() {
        let fewer = Parameters {
            preserve_recent: recent,
            ..parameters.clone()
        };
        let tail = with_preparation(ground, fewer, ground.small, |preparation| {
            preparation.tail_tokens()
        })?;
        if limit.is_none_or(|limit| tail.get() <= limit.get() / 10 * 9) {
            return Ok(recent);
        }
    }
    Ok(1)
}

/// Plays the answers so far and says what comes next. The ladder is a pure state machine: the same answers lead to the
/// same place, so that nothing is held while a model thinks.
fn stand(
    ground: &Ground,
    parameters: Parameters,
    profiles: &[ModelProfile],
    answers: &[Result<LlmReply, CallFailure>],
    climb: Climb,
    last: LastRung,
) -> Result<Stand, NotPlanned> {
    with_preparation(ground, parameters, ground.small, |preparation| {
        let prompts = RangePrompts::default();
        let mut ladder = ladder(preparation, &prompts, ground, profiles, climb, last);
        let mut answers = answers.iter();
        loop {
            match ladder.step(&Heuristic) {
                Step::Ask { candidate, request } => match answers.next() {
                    Some(answer) => drop(ladder.answer(answer)),
                    None => return Stand::Ask { candidate, request },
                },
                Step::Done(plan) => return Stand::Done(Box::new(finish(ground, preparation, plan))),
                Step::Failed(error) => {
                    return Stand::Failed {
                        message: error.message,
                        category: error.category,
                    };
                }
            }
        }
    })
}

/// What the last answer led to.
fn last_attempt(
    ground: &Ground,
    parameters: Parameters,
    profiles: &[ModelProfile],
    answers: &[Result<LlmReply, CallFailure>],
    climb: Climb,
    last: LastRung,
) -> Option<Attempt> {
    let attempt = with_preparation(ground, parameters, ground.small, |preparation| {
        let prompts = RangePrompts::default();
        let mut ladder = ladder(preparation, &prompts, ground, profiles, climb, last);
        let mut attempt = None;
        for answer in answers {
            match ladder.step(&Heuristic) {
                Step::Ask { .. } => attempt = Some(ladder.answer(answer)),
                Step::Done(_) | Step::Failed(_) => break,
            }
        }
        attempt
    });
    attempt.ok().flatten()
}

fn ladder<'p, 'c, 'l>(
    preparation: &'p Preparation<'c, 'l>,
    prompts: &'p RangePrompts,
    ground: &Ground,
    profiles: &[ModelProfile],
    climb: Climb,
    last: LastRung,
) -> Ladder<'p, 'c, 'l> {
    let candidates = profiles.iter().map(|profile| Candidate {
        profile: profile.clone(),
        reasoning: ground.reasoning,
        credentials: Credentials::Present,
    });
    Ladder::new(preparation, prompts, candidates.collect(), climb, last)
}

fn with_preparation<R>(
    ground: &Ground,
    parameters: Parameters,
    small: SmallRegion,
    work: impl FnOnce(&Preparation<'_, '_>) -> R,
) -> Result<R, NotPlanned> {
    let context =
        context(&ground.log, ground.profile).map_err(|error| NotPlanned::Failed(error.to_string()))?;
    let preparation = verbatim::prepare(&context, parameters, small, &Heuristic)
        .map_err(|nothing| NotPlanned::Skipped(nothing.to_string()))?;
    Ok(work(&preparation))
}

fn finish(ground: &Ground, preparation: &Preparation<'_, '_>, plan: RangePlan) -> Finished {
    use foldline_compaction_core::accounting::ContextSize;
    let size = ContextSize::of(preparation.context(), ground.overhead, Tokens::ZERO, &Heuristic);
    match verbatim::finish(preparation, &plan, ground.demand, size.tokens, &Heuristic) {
        Ok(compaction) => Ok(Made {
            compaction,
            plan,
            provenance: preparation.provenance_error().map(ToString::to_string),
        }),
        Err(reason @ NotSmaller::Insufficient { before, after, .. }) => Err(NotPlanned::Unpaid {
            reason: reason.to_string(),
            figures: Box::new(Unpaid {
                tokens_before: before,
                tokens_after: after,
                rung: plan.rung.as_str(),
                extras: Extras {
                    stats: Some(
                        verbatim::reconstruct(preparation.region(), &plan.ranges).stats(before, after),
                    ),
                    dropped_lines: plan.dropped,
                    ..Extras::default()
                },
            }),
        }),
        Err(reason) => Err(NotPlanned::Skipped(reason.to_string())),
    }
}

fn planned(made: Made, planner: String) -> Planned {
    let Made {
        compaction,
        plan,
        provenance,
    } = made;
    Planned {
        tokens_before: compaction.stats.tokens_before,
        tokens_after: compaction.stats.tokens_after,
        draft: compaction.draft,
        planner,
        rung: plan.rung.as_str(),
        extras: Extras {
            stats: Some(compaction.stats),
            dropped_lines: plan.dropped,
            deleted: Some(plan.ranges),
            provenance,
            ..Extras::default()
        },
    }
}

fn failure(error: LlmError) -> CallFailure {
    CallFailure {
        // What may be tried again was: the client gave up after its last try.
        retries: if error.class.may_retry() {
            Retries::Exhausted
        } else {
            Retries::None
        },
        message: error.message.to_string(),
        class: error.class,
    }
}

/// The class of a failure that only its words tell.
pub(crate) fn class_of_text(text: &str) -> ErrorClass {
    use foldline_llm_client::classify::{TransportFacts, UserPatterns, classify_failure};
    classify_failure(&TransportFacts::default(), Some(text), &UserPatterns::default())
}

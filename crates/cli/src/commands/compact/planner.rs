//! The ranges of a verbatim compaction: from the embedded planner, or from a model in one request (seed 002; D6).

use std::path::Path;
use std::time::SystemTime;

use foldline_compaction_core::redact::redact;
use foldline_compaction_core::verbatim::diagnostic::{SidecarKind, diagnostic, recovery};
use foldline_compaction_core::verbatim::{
    self, Attempt, CallFailure, Candidate, Category, Climb, Credentials, Ladder, LastRung, Preparation,
    RangePlan, RangePrompts, Rung, Step,
};
use foldline_session_model::model_call::{LlmReply, ModelProfile, ReasoningEffort};
use foldline_session_model::tokens::Heuristic;
use foldline_session_store::{DiskStore, SessionStore as _, SidecarName};

use crate::commit::now;
use crate::error::{CommandError, ErrorKind};
use crate::model::{Model, RequestPreview, call_error};

/// Plans without a model.
pub(super) fn extractive(preparation: &Preparation<'_, '_>) -> RangePlan {
    let chosen = verbatim::extractive(preparation);
    RangePlan {
        dropped: chosen.dropped,
        ..RangePlan::new(chosen.ranges, Rung::Extractive)
    }
}

/// The request that would be sent.
pub(super) fn preview(preparation: &Preparation<'_, '_>, profile: &ModelProfile) -> Option<RequestPreview> {
    let prompts = RangePrompts::default();
    let mut ladder = ladder(preparation, &prompts, profile);
    match ladder.step(&Heuristic) {
        Step::Ask { request, .. } => Some(RequestPreview::new(
            verbatim::estimate(&request, &Heuristic),
            profile,
        )),
        Step::Done(_) | Step::Failed(_) => None,
    }
}

/// Asks a model, once. A failure is told in a private file beside the session, and nothing is written to it.
pub(super) fn by_model(
    preparation: &Preparation<'_, '_>,
    model: &Model,
    store: &DiskStore,
    session: &Path,
) -> Result<RangePlan, CommandError> {
    let prompts = RangePrompts::default();
    let mut ladder = ladder(preparation, &prompts, model.profile());
    let mut told = None;
    loop {
        match ladder.step(&Heuristic) {
            Step::Ask { request, .. } => {
                let answer = model.ask(&request);
                if let (true, Err(failure)) = (model.was_cancelled(), &answer) {
                    return Err(call_error(failure));
                }
                let attempt = ladder.answer(&answer);
                told = tell(&attempt, &answer, model.profile(), store, session).or(told);
            }
            Step::Done(plan) => return Ok(plan),
            Step::Failed(error) => {
                let beside = told.map_or_else(String::new, |path| format!(" (diagnostic: {path})"));
                let message = format!("{error}{beside}");
                let hint = match error.category {
                    Category::MalformedOutput | Category::NoUsableRanges | Category::Starved => {
                        "another model may do better; `--model extractive` needs none"
                    }
                    Category::ContextOverflow => {
                        "the session is too large for this model; `--model extractive` has no limit"
                    }
                    Category::Unauthenticated => "check the key",
                    _ => "try again later, or work without a model: --model extractive",
                };
                return Err(CommandError::new(ErrorKind::Provider, message).hint(hint));
            }
        }
    }
}

fn ladder<'p, 'c, 'l>(
    preparation: &'p Preparation<'c, 'l>,
    prompts: &'p RangePrompts,
    profile: &ModelProfile,
) -> Ladder<'p, 'c, 'l> {
    let candidate = Candidate {
        profile: profile.clone(),
        reasoning: ReasoningEffort::Unset,
        credentials: Credentials::Present,
    };
    Ladder::new(
        preparation,
        prompts,
        vec![candidate],
        Climb::OneRequest,
        LastRung::Fail,
    )
}

/// Writes a sidecar about an attempt that failed or was recovered. Only that of a failure is shown.
fn tell(
    attempt: &Attempt,
    answer: &Result<LlmReply, CallFailure>,
    profile: &ModelProfile,
    store: &DiskStore,
    session: &Path,
) -> Option<String> {
    let hide = |text: &str| redact(text).into_owned();
    let (kind, content) = match (attempt, answer) {
        (Attempt::Failed(failed), _) => (
            SidecarKind::Diagnostic,
            diagnostic(failed, answer, profile, &now(), &hide),
        ),
        (Attempt::Recovered { records }, Ok(reply)) => (
            SidecarKind::Recovery,
            recovery(*records, reply, profile, &now(), &hide),
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
    let written = store.sidecar(session, &name, content.as_bytes());
    let path = written.path().map(|path| path.display().to_string());
    path.filter(|_| kind == SidecarKind::Diagnostic)
}

//! What makes the summaries: a model, or the embedded summariser.

use std::num::NonZero;
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Duration;

use foldline_compaction_core::summary::PromptParts;
use foldline_llm_client::{LanguageModel, LlmError};
use foldline_session_model::model_call::{ErrorClass, LlmRequest, TransientCause};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::error::CommandError;
use crate::setup::Setup;

/// Clients of the seeds give up after three minutes; the answer should come before that.
const MODEL_TIME: Duration = Duration::from_secs(170);
/// How many requests a model gets at once.
const MODEL_CALLS: usize = 4;

pub(super) struct Summarizer {
    planner: Planner,
    /// As many as can usefully work at once; the others wait.
    slots: Semaphore,
}

enum Planner {
    Extractive,
    Model(Arc<dyn LanguageModel>),
}

/// Why there is no summary.
#[derive(Debug)]
pub(super) enum Failure {
    /// The prompt holds no conversation, and without a model nothing else can be read.
    NoConversation,
    /// The model failed, or the way to it.
    Model(LlmError),
    /// It took too long.
    Timeout,
    /// The server ends.
    Stopping,
    /// A fault of this program.
    Broken,
}

impl Summarizer {
    pub(super) fn new(setup: &Setup) -> Result<Self, CommandError> {
        let (planner, slots) = match setup.answerer()? {
            Some(model) => (Planner::Model(model), MODEL_CALLS),
            None => (
                Planner::Extractive,
                available_parallelism().map_or(2, NonZero::get),
            ),
        };
        Ok(Self {
            planner,
            slots: Semaphore::new(slots),
        })
    }

    pub(super) async fn summarize(
        &self,
        system_prompt: String,
        prompt: String,
        stop: &CancellationToken,
    ) -> Result<String, Failure> {
        let work = async {
            let _slot = self.slots.acquire().await.map_err(|_| Failure::Stopping)?;
            match &self.planner {
                Planner::Extractive => extract(prompt).await,
                Planner::Model(model) => {
                    let request = LlmRequest::from_prompt(system_prompt, prompt);
                    let reply = model.complete(&request, stop.clone()).await;
                    let text = reply.map_err(Failure::Model)?.text();
                    if text.trim().is_empty() {
                        return Err(Failure::Model(LlmError::new(
                            ErrorClass::Transient(TransientCause::EmptyReply),
                            "the model answered without text",
                        )));
                    }
                    Ok(text)
                }
            }
        };
        tokio::select! {
            done = tokio::time::timeout(MODEL_TIME, work) => done.unwrap_or(Err(Failure::Timeout)),
            () = stop.cancelled() => Err(Failure::Stopping),
        }
    }
}

/// Reading a long transcript takes the processor for a while, so it leaves the threads that serve.
async fn extract(prompt: String) -> Result<String, Failure> {
    let work = move || PromptParts::parse(&prompt).map(|parts| parts.extractive());
    match tokio::task::spawn_blocking(work).await {
        Ok(summary) => summary.ok_or(Failure::NoConversation),
        Err(_) => Err(Failure::Broken),
    }
}

//! The history as the model's provider compacts it, beside a summary in text (seed 000, "Remote summarization modes";
//! spec "Compaction core", 11 and 12).
//!
//! The two are asked for side by side: the text is needed whatever the provider says, for every other model.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use foldline_compaction_core::prompts::{Prompt, Prompts, Variables};
use foldline_compaction_core::remote::{PRESERVE_KEY, RemoteHistory};
use foldline_llm_client::{LanguageModel, LlmError, NativeForm, NativeHistory, Tried};
use foldline_session_model::llm::{TrailingCalls, Wrappers};
use foldline_session_model::model_call::{CacheHint, LlmRequest, Origin, ToolChoice};
use futures::future::{Either, select};
use tokio_util::sync::CancellationToken;

use super::{Ground, NotPlanned, Order, Planned, on_thread, summary, with_member};
use crate::core::{Core, context};
use crate::event::NoticeLevel;

/// Who may write the summary of a context.
pub(super) struct Summarisers {
    /// A service, asked first.
    pub(super) remote: Option<Arc<dyn LanguageModel>>,
    /// Models, in order.
    pub(super) models: Vec<Arc<dyn LanguageModel>>,
    /// The model whose provider compacts histories itself.
    pub(super) native: Option<Arc<dyn LanguageModel>>,
}

impl Core {
    /// The model that works, if its provider compacts histories itself and the settings allow it.
    pub(super) fn native(&self) -> Option<Arc<dyn LanguageModel>> {
        let model = self.model()?;
        let asked = self.options.settings.compaction.remote_enabled && model.native_compaction().is_some();
        asked.then(|| Arc::clone(model))
    }

    /// A summary in text, and the provider's own history beside it if there is one.
    pub(super) async fn plan_context(
        &self,
        order: &Order,
        ground: &Ground,
        who: Summarisers,
        token: &CancellationToken,
        failures: &mut Vec<String>,
    ) -> Result<Planned, NotPlanned> {
        let Summarisers {
            remote,
            models,
            native,
        } = who;
        let Some(native) = native else {
            return self
                .plan_summary(order, ground, remote, models, token, failures)
                .await;
        };
        let mut text_failures = Vec::new();
        let (text, tried) = {
            let text = pin!(self.plan_summary(order, ground, remote, models, token, &mut text_failures));
            let asked = pin!(self.ask_native(ground, &native, token));
            match select(text, asked).await {
                // There is nothing that a history could stand beside.
                Either::Left((
                    Err(not @ (NotPlanned::Skipped(_) | NotPlanned::Unpaid { .. } | NotPlanned::Cancelled)),
                    _,
                )) => return Err(not),
                Either::Left((text, asked)) => (text, asked.await),
                Either::Right((tried, text)) => (text.await, tried),
            }
        };
        // Only a cancel is an error here.
        let tried = tried.map_err(|_| NotPlanned::Cancelled)?;
        let name = native.profile().model_ref();
        let reasons = tried.failures.iter();
        failures.extend(reasons.map(|(form, error)| format!("{name} native {form}: {}", error.message)));
        failures.append(&mut text_failures);
        self.tell_native(&tried);
        let Some((form, history)) = tried.history else {
            return text;
        };
        let planned = match text {
            // What the provider made is not thrown away because no model summarises.
            Err(NotPlanned::Failed(_) | NotPlanned::FailedBy { .. }) => {
                summary::without_model(order, ground, "fallback").await
            }
            text => text,
        };
        planned.map(|planned| with_history(planned, form, &history))
    }

    /// Has the provider compact the context. Nothing is asked if there is nothing to compact, or if a hook brings such
    /// a history.
    async fn ask_native(
        &self,
        ground: &Ground,
        model: &Arc<dyn LanguageModel>,
        token: &CancellationToken,
    ) -> Result<Tried, LlmError> {
        let of_hook = ground.preserve_data.as_deref().and_then(RemoteHistory::read);
        let input = ground.clone();
        let due = of_hook.is_none() && on_thread(move || summary::is_due(&input)).await;
        let (true, Some(native), Ok(context)) = (
            due,
            model.native_compaction(),
            context(&ground.log, ground.profile),
        ) else {
            return Ok(Tried::default());
        };
        let profile = model.profile();
        let origin = Origin {
            api: profile.api,
            provider: profile.provider.clone(),
            model: profile.id.clone(),
        };
        // The view holds an earlier history of this model's in place of what that stands for.
        let wrappers = Wrappers::default();
        let view = context.llm_view_for(&wrappers, TrailingCalls::Answer, &origin);
        let request = LlmRequest {
            system: vec![self.native_instructions().into()],
            messages: view
                .iter()
                .map(|message| message.to_request(&ground.log))
                .collect(),
            tools: self.options.tools.iter().map(|tool| tool.spec()).collect(),
            tool_choice: ToolChoice::Auto,
            max_output: None,
            reasoning: self.options.reasoning,
            cache: CacheHint::Short,
            session_key: Some(ground.log.header().id.as_str().into()),
        };
        native.try_forms(&request, token).await
    }

    /// The session's system text. A user's instructions are for the text summary only: what the provider does with a
    /// history cannot be told (spec "Compaction core", 12.4).
    fn native_instructions(&self) -> String {
        let system = self.options.system.join("\n\n");
        if !system.trim().is_empty() {
            return system;
        }
        let prompts = Prompts::default();
        prompts
            .render(Prompt::System, &Variables::default())
            .unwrap_or_default()
    }

    /// Says that the provider's compaction has stopped working; once until it works again.
    fn tell_native(&self, tried: &Tried) {
        let Some((_, error)) = tried.failures.last() else {
            self.live.native_down.store(false, Ordering::Relaxed);
            return;
        };
        let is_down = tried.history.is_none();
        if !self.live.native_down.swap(is_down, Ordering::Relaxed) && is_down {
            let text = format!(
                "The provider's own compaction failed; the summary in text stands alone: {}",
                error.message
            );
            self.shared
                .events
                .notice(NoticeLevel::Warning, Some("native-compaction"), text);
        }
    }
}

/// A summary with a provider's history beside it. Lines are no summary: they stay alone.
fn with_history(mut planned: Planned, form: NativeForm, history: &NativeHistory) -> Planned {
    let stored = RemoteHistory::new(&history.origin, &history.items, history.compaction);
    if let (Some(stored), None) = (stored, &planned.extras.stats) {
        let data = planned.draft.preserve_data.as_deref().unwrap_or("{}");
        planned.draft.preserve_data = Some(with_member(data, PRESERVE_KEY, &stored));
        planned.extras.native = Some(form);
    }
    planned
}

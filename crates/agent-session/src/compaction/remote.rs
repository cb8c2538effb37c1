//! A service that writes summaries, as one more model to ask (seed 000, "Remote summarization modes").

use std::sync::Arc;

use async_trait::async_trait;
use foldline_compaction_core::remote::SummarizeRequest;
use foldline_llm_client::{EventStream, LanguageModel, LlmError, LlmEvent, RemoteSummary};
use foldline_session_model::model_call::{
    Api, AssistantBlock, LlmReply, LlmRequest, ModelProfile, ModelRef, StopReason, Usage,
};
use futures::StreamExt as _;
use tokio_util::sync::CancellationToken;

use crate::core::Core;

/// The service, in the place of a model. It has no window of its own that is known, so its requests are made for the
/// window of the model that works.
struct RemoteModel {
    profile: ModelProfile,
    service: Arc<RemoteSummary>,
}

impl Core {
    /// The service that is asked before any model, if there is one and the settings allow it.
    pub(super) fn remote(&self) -> Option<Arc<dyn LanguageModel>> {
        let service = self.options.models.remote.as_ref()?;
        if !self.options.settings.compaction.remote_enabled {
            return None;
        }
        let name = ModelRef {
            provider: "remote".to_owned(),
            id: "summary".to_owned(),
        };
        let mut profile = ModelProfile::unknown(name, Api::OpenAiCompletions);
        if let Some(model) = self.model() {
            profile.context_window = self.hard_window(model.profile());
            profile.max_output = model.profile().max_output;
        }
        Some(Arc::new(RemoteModel {
            profile,
            service: Arc::clone(service),
        }))
    }
}

#[async_trait]
impl LanguageModel for RemoteModel {
    fn profile(&self) -> &ModelProfile {
        &self.profile
    }

    async fn stream(
        &self,
        request: &LlmRequest<'_>,
        cancel: CancellationToken,
    ) -> Result<EventStream, LlmError> {
        let asked = SummarizeRequest::of(request);
        let summary = self
            .service
            .summarize(&asked.system_prompt, &asked.prompt, &cancel)
            .await?;
        let reply = LlmReply {
            blocks: vec![AssistantBlock::Text {
                text: summary.into(),
                signature: None,
            }],
            usage: Usage::default(),
            stop: StopReason::Stop,
            raw_stop: None,
            model: None,
            response_id: None,
        };
        let end = LlmEvent::End(Box::new(reply));
        Ok(futures::stream::iter([Ok(end)]).boxed())
    }
}

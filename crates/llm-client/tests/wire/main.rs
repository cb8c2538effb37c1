//! The client against servers on sockets.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod many;
mod native;
mod secrets;
mod server;
mod statuses;
mod streams;

use foldline_llm_client::ProviderModel;
use foldline_llm_client::endpoint::{Auth, Endpoint, PlainHttp};
use foldline_session_model::model_call::{Api, LlmRequest, ModelProfile, ModelRef};

/// A whole stream of each API.
const STREAMS: [(Api, &str); 3] = [
    (
        Api::AnthropicMessages,
        include_str!("../../fixtures/anthropic.sse"),
    ),
    (
        Api::OpenAiCompletions,
        include_str!("../../fixtures/completions.sse"),
    ),
    (Api::OpenAiResponses, include_str!("../../fixtures/responses.sse")),
];

fn profile(api: Api) -> ModelProfile {
    ModelProfile::unknown(
        ModelRef {
            provider: "local".to_owned(),
            id: "m".to_owned(),
        },
        api,
    )
}

fn model(api: Api, base: &str) -> ProviderModel {
    let endpoint = Endpoint::new(base, Auth::None, PlainHttp::LoopbackOnly).unwrap();
    ProviderModel::new(profile(api), endpoint).unwrap()
}

fn request() -> LlmRequest<'static> {
    LlmRequest::from_prompt("Be short.", "Go.")
}

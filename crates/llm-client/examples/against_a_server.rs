//! Streams, usage, cancel and overflow through all three APIs of one server, which must not want a key.
//!
//! usage: `against_a_server BASE_URL CONTEXT_TOKENS`
//!
//! Written for llama.cpp with a small model: it checks that requests work, not what is answered.
#![allow(clippy::print_stdout, reason = "an example reports to the terminal")]

use std::sync::Arc;
use std::time::Duration;

use foldline_llm_client::endpoint::{Auth, Endpoint, PlainHttp};
use foldline_llm_client::{LanguageModel, LlmError, LlmEvent, ProviderModel, RetryPolicy, RetryingModel};
use foldline_session_model::Tokens;
use foldline_session_model::model_call::{
    Api, AssistantBlock, ErrorClass, LlmRequest, MessageContent, ModelProfile, ModelRef, Origin,
    RequestMessage, StopReason, context_tokens,
};
use futures::StreamExt;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// No single call may take longer: the whole window is read in less.
const CALL: Duration = Duration::from_secs(120);

/// The tokens of a reply that is not waited for.
const STORY: u64 = 1500;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let (Some(base), Some(context)) = (arguments.next(), arguments.next()) else {
        return Err("usage: against_a_server BASE_URL CONTEXT_TOKENS".into());
    };
    let context = Tokens(context.parse()?);
    for api in Api::ALL {
        let started = Instant::now();
        let model = model(api, &base, context)?;
        streams(&model).await?;
        continues(&model).await?;
        let cancelled_in = cancels(&model).await?;
        let counted = overflows(&model, context).await?;
        println!(
            "{api}: streamed, counted, cancelled in {} ms, overflow of {counted} tokens recognised ({:.1} s)",
            cancelled_in.as_millis(),
            started.elapsed().as_secs_f64(),
        );
    }
    Ok(())
}

fn model(api: Api, base: &str, context: Tokens) -> Result<Arc<ProviderModel>, LlmError> {
    let name = ModelRef {
        provider: "llama.cpp".to_owned(),
        id: "smollm2".to_owned(),
    };
    let mut profile = ModelProfile::unknown(name, api);
    profile.context_window = Some(context);
    profile.max_output = Some(context);
    let endpoint = Endpoint::new(base, Auth::None, PlainHttp::LoopbackOnly)?;
    Ok(Arc::new(ProviderModel::new(profile, endpoint)?))
}

fn ask(prompt: &str, max_output: u64) -> LlmRequest<'_> {
    let mut request = LlmRequest::from_prompt("You are helpful.", prompt);
    request.max_output = Some(Tokens(max_output));
    request
}

fn check(holds: bool, what: impl std::fmt::Display) -> Result<(), Failure> {
    if holds {
        Ok(())
    } else {
        Err(what.to_string().into())
    }
}

/// Several pieces of text, one end, and a count that fits the text.
async fn streams(model: &ProviderModel) -> Result<(), Failure> {
    let api = model.profile().api;
    let request = ask("Count from one to twenty.", 24);
    let mut events = tokio::time::timeout(CALL, model.stream(&request, CancellationToken::new())).await??;
    let (mut pieces, mut text, mut end) = (0, String::new(), None);
    while let Some(event) = tokio::time::timeout(CALL, events.next()).await? {
        match event? {
            LlmEvent::Text { delta, .. } => {
                pieces += 1;
                text.push_str(&delta);
            }
            LlmEvent::End(reply) => end = Some(reply),
            _ => {}
        }
    }
    let reply = end.ok_or("the stream has no end")?;
    check(pieces >= 3, format_args!("{api}: only {pieces} pieces"))?;
    check(
        reply.text() == text,
        format_args!("{api}: the pieces are not the reply"),
    )?;
    let used = reply.usage;
    check(
        used.output > Tokens::ZERO && used.output <= Tokens(24),
        format_args!("{api}: odd output {used:?}"),
    )?;
    let size = context_tokens(&used, api);
    check(
        size > Tokens(20) && size < Tokens(200),
        format_args!("{api}: odd context {size} of {used:?}"),
    )?;
    // This server reports "completed" through Responses although the limit cut the reply.
    check(
        matches!(reply.stop, StopReason::Length | StopReason::Stop),
        format_args!("{api}: ended with {:?}", reply.stop),
    )
}

/// A second turn, with the model's own first reply in the request.
async fn continues(model: &ProviderModel) -> Result<(), Failure> {
    let profile = model.profile();
    let api = profile.api;
    let first = tokio::time::timeout(
        CALL,
        model.complete(&ask("Say hello.", 16), CancellationToken::new()),
    )
    .await??;
    let mut request = ask("Say hello.", 16);
    let origin = Origin {
        api,
        provider: profile.provider.clone(),
        model: profile.id.clone(),
    };
    let blocks: Vec<AssistantBlock<'_>> = first.blocks.clone();
    request.messages.push(RequestMessage {
        entry: None,
        content: MessageContent::Assistant {
            origin: Some(origin),
            stop: first.stop,
            blocks,
        },
    });
    request.messages.push(RequestMessage::user("Again, please."));
    let second = tokio::time::timeout(CALL, model.complete(&request, CancellationToken::new())).await??;
    let (before, after) = (
        context_tokens(&first.usage, api),
        context_tokens(&second.usage, api),
    );
    check(
        after > before,
        format_args!("{api}: the second context ({after}) is not larger than the first ({before})"),
    )
}

/// A cancel in the middle of a reply: quick, named, and the server is free again at once.
async fn cancels(model: &ProviderModel) -> Result<Duration, Failure> {
    let api = model.profile().api;
    let cancel = CancellationToken::new();
    let request = ask("Write a very long story about the sea.", STORY);
    let mut events = tokio::time::timeout(CALL, model.stream(&request, cancel.clone())).await??;
    let mut pieces = 0;
    let (mut first, mut pace) = (None, Duration::ZERO);
    let mut at = None;
    let error = loop {
        match tokio::time::timeout(CALL, events.next()).await? {
            Some(Ok(LlmEvent::Text { .. })) => {
                pieces += 1;
                let first = *first.get_or_insert_with(Instant::now);
                if pieces == 9 {
                    pace = first.elapsed() / 8;
                    at = Some(Instant::now());
                    cancel.cancel();
                }
            }
            Some(Ok(LlmEvent::End(_))) | None => {
                return Err(format!("{api}: the reply ended before the cancel").into());
            }
            Some(Ok(_)) => {}
            Some(Err(error)) => break error,
        }
    };
    let took = at.map(|at| at.elapsed()).unwrap_or_default();
    check(
        error.class == ErrorClass::Cancelled,
        format_args!("{api}: {error}"),
    )?;
    check(
        took < Duration::from_millis(200),
        format_args!("{api}: the cancel took {took:?}"),
    )?;
    let partial = error.partial.ok_or("a cancelled reply keeps what had arrived")?;
    check(
        partial.stop == StopReason::Aborted && !partial.text().is_empty(),
        format_args!("{api}: {partial:?}"),
    )?;
    // At the pace of the first pieces the whole story would have kept the only slot for `story`. A slot that was
    // freed answers long before that, on a busy machine too.
    let story = pace * u32::try_from(STORY)?;
    let started = Instant::now();
    tokio::time::timeout(
        CALL,
        model.complete(&ask("Say hello.", 4), CancellationToken::new()),
    )
    .await??;
    check(
        started.elapsed() < story / 2,
        format_args!(
            "{api}: the server was busy for {:?} after the cancel of {story:?}",
            started.elapsed()
        ),
    )?;
    Ok(took)
}

/// A prompt that cannot fit: the class, the server's numbers, and no second attempt.
async fn overflows(model: &Arc<ProviderModel>, context: Tokens) -> Result<Tokens, Failure> {
    let api = model.profile().api;
    let words = usize::try_from(context.get())?;
    let prompt = "The sea is deep and blue. ".repeat(words / 4);
    let retrying = RetryingModel::new(Arc::clone(model) as Arc<dyn LanguageModel>, RetryPolicy::TURN);
    let started = Instant::now();
    let request = ask(&prompt, 16);
    let outcome = tokio::time::timeout(CALL, retrying.complete(&request, CancellationToken::new())).await?;
    let Err(error) = outcome else {
        return Err(format!("{api}: the server took a prompt larger than its window").into());
    };
    check(
        started.elapsed() < Duration::from_secs(2),
        format_args!("{api}: an overflow must not be retried"),
    )?;
    match error.class {
        ErrorClass::Overflow {
            limit,
            input: Some(input),
            ..
        } if limit == Some(context) && input > context => Ok(input),
        _ => Err(format!("{api}: not recognised as an overflow: {error:?}").into()),
    }
}

//! `foldline models`: what is known of models and providers, and whether one answers.

use std::time::{Duration, Instant};

use foldline_agent_session::event::FailureKind;
use foldline_llm_client::endpoint::key_from_env;
use foldline_llm_client::{Catalogue, LanguageModel, LlmError};
use foldline_session_model::Tokens;
use foldline_session_model::model_call::{
    ErrorClass, LlmReply, LlmRequest, ModelProfile, ModelRef, TransientCause,
};
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use crate::door::runtime;
use crate::error::{CommandError, ErrorKind, Status};
use crate::model::{ApiName, EXTRACTIVE, ModelArgs, failure_error};
use crate::output::{self, BAD, BOLD, DIM, Format, GOOD, grouped};
use crate::setup::{Purpose, Setup};
use crate::signals::Signals;

/// A provider that takes longer than this to say one word is of no use.
const TEST_LIMIT: Duration = Duration::from_secs(30);

#[derive(Debug, clap::Args)]
#[command(
    after_help = "A model that is not listed can be used too, if its provider is: providers get new models.

Examples:
  foldline models
  foldline models --test anthropic/claude-haiku-4-5
  foldline models --test my/model --base-url http://127.0.0.1:8080 --api openai-completions"
)]
pub(crate) struct Args {
    /// Send one tiny request to this model and say what came back.
    #[arg(long, value_name = "PROVIDER/MODEL")]
    test: Option<String>,
    /// The server to ask, if it is not the provider's own.
    #[arg(long, value_name = "URL", requires = "test")]
    base_url: Option<String>,
    /// How to speak to it.
    #[arg(long, value_enum, requires = "test")]
    api: Option<ApiName>,
}

#[derive(Serialize)]
struct Document {
    models: Vec<Row>,
    providers: Vec<ProviderRow>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    provider: String,
    id: String,
    context_window: Option<Tokens>,
    max_output: Option<Tokens>,
    /// US dollars per million tokens.
    prices: Option<PriceRow>,
    key: Key,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PriceRow {
    input: f64,
    output: f64,
    cache_read: f64,
    cache_write: f64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ProviderRow {
    provider: String,
    base_url: String,
    key: Key,
    /// The environment variable that holds the key.
    key_variable: Option<String>,
}

/// Whether a provider can be asked. The key itself is never printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Key {
    Found,
    Missing,
    NotNeeded,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TestDocument {
    outcome: &'static str,
    model: String,
    answer: String,
    elapsed_ms: u64,
    input_tokens: Tokens,
    output_tokens: Tokens,
}

pub(crate) fn run(args: &Args, format: Format) -> Result<Status, CommandError> {
    match &args.test {
        Some(model) => test(model, args, format),
        None => {
            let document = known();
            output::result(format, &document, || text(&document));
            Ok(Status::Done)
        }
    }
}

fn known() -> Document {
    let catalogue = Catalogue::built_in();
    let key = |provider: &str| match catalogue.provider(provider).and_then(|p| p.key_env.as_deref()) {
        None => Key::NotNeeded,
        Some(variable) if key_from_env(variable).is_some() => Key::Found,
        Some(_) => Key::Missing,
    };
    let row = |name: ModelRef| {
        let profile: ModelProfile = catalogue.profile(&name, None)?;
        Some(Row {
            key: key(&name.provider),
            provider: name.provider,
            id: name.id,
            context_window: profile.context_window,
            max_output: profile.max_output,
            prices: profile.prices.map(|prices| PriceRow {
                input: prices.input,
                output: prices.output,
                cache_read: prices.cache_read,
                cache_write: prices.cache_write,
            }),
        })
    };
    Document {
        models: catalogue.models().filter_map(row).collect(),
        providers: catalogue
            .providers()
            .map(|provider| ProviderRow {
                provider: provider.name.clone(),
                base_url: provider.base_url.clone(),
                key: key(&provider.name),
                key_variable: provider.key_env.clone(),
            })
            .collect(),
    }
}

fn text(document: &Document) -> String {
    let mut out = format!(
        "{BOLD}{:<44}{:>12}{:>10}{:>9}{:>9}{BOLD:#}\n",
        "model", "window", "output", "$/M in", "$/M out"
    );
    let number = |tokens: Option<Tokens>| tokens.map_or_else(|| "?".to_owned(), |t| grouped(t.get()));
    let price = |price: Option<f64>| price.map_or_else(|| "?".to_owned(), |price| format!("{price:.2}"));
    out.push_str(&format!(
        "{EXTRACTIVE:<44}{DIM}  the embedded planner: no model, no key, no network{DIM:#}\n"
    ));
    for row in &document.models {
        let name = format!("{}/{}", row.provider, row.id);
        out.push_str(&format!(
            "{name:<44}{:>12}{:>10}{:>9}{:>9}\n",
            number(row.context_window),
            number(row.max_output),
            price(row.prices.as_ref().map(|p| p.input)),
            price(row.prices.as_ref().map(|p| p.output))
        ));
    }
    out.push_str(&format!(
        "\n{BOLD}{:<20}{:<38}key{BOLD:#}\n",
        "provider", "server"
    ));
    for row in &document.providers {
        let key = match (row.key, &row.key_variable) {
            (Key::Found, Some(variable)) => format!("{GOOD}found{GOOD:#} in {variable}"),
            (Key::Missing, Some(variable)) => format!("{BAD}missing{BAD:#}: set {variable}"),
            _ => "not needed".to_owned(),
        };
        out.push_str(&format!("{:<20}{:<38}{key}\n", row.provider, row.base_url));
    }
    out
}

fn test(model: &str, args: &Args, format: Format) -> Result<Status, CommandError> {
    if model == EXTRACTIVE {
        let message = format!("{EXTRACTIVE} is no model: there is nothing to test");
        return Err(CommandError::new(ErrorKind::Usage, message).hint("name a model as provider/model"));
    }
    let asked = ModelArgs {
        model: Some(model.to_owned()),
        base_url: args.base_url.clone(),
        api: args.api,
        context_window: None,
    };
    let Some(client) = Setup::new(&asked, Purpose::Work)?.answerer()? else {
        return Err(CommandError::new(
            ErrorKind::Usage,
            format!("{model:?} is no model"),
        ));
    };
    let mut request = LlmRequest::from_prompt("You answer with one word.", "Say: ready");
    // Models that think first need some room before the word.
    request.max_output = Some(Tokens(512));
    let start = Instant::now();
    let reply = ask(&*client, &request)?
        .map_err(|e| failure_error(&FailureKind::Provider(e.class), e.message.to_string()))?;
    let answer: String = reply.text().split_whitespace().collect::<Vec<_>>().join(" ");
    let document = TestDocument {
        outcome: "committed",
        model: client.profile().model_ref().to_string(),
        answer: answer.chars().take(200).collect(),
        elapsed_ms: u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX),
        input_tokens: reply.usage.input,
        output_tokens: reply.usage.output,
    };
    output::result(format, &document, || {
        format!(
            "{GOOD}{} answers{GOOD:#} after {:.1} s: {:?}\n",
            document.model,
            document.elapsed_ms as f64 / 1000.0,
            document.answer
        )
    });
    Ok(Status::Done)
}

/// Asks, and gives up after a time. Ctrl-C cancels.
fn ask(
    client: &dyn LanguageModel,
    request: &LlmRequest<'_>,
) -> Result<Result<LlmReply, LlmError>, CommandError> {
    let cancel = CancellationToken::new();
    Ok(runtime()?.block_on(async {
        let mut signals = Signals::new();
        tokio::select! {
            answer = tokio::time::timeout(TEST_LIMIT, client.complete(request, cancel.clone())) => {
                answer.unwrap_or_else(|_| Err(LlmError::new(
                    ErrorClass::Transient(TransientCause::TotalTimeout),
                    format!("no answer within {} seconds", TEST_LIMIT.as_secs()),
                )))
            }
            () = signals.next() => {
                cancel.cancel();
                Err(LlmError::cancelled())
            }
        }
    }))
}

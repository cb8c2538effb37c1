//! `atomic.parameters`, `atomic.region_trimming`, `atomic.planner_outcome`, `atomic.runner`: what a verbatim compaction
//! is asked for, and what the answers of a model come to.

use anyhow::{Context as _, anyhow, bail};
use foldline_compaction_core::verbatim::{
    CallFailure, Candidate, Category, Climb, Credentials, Ladder, LastRung, Outcome as Planned,
    ParameterLayer, Parameters, Preparation, RangePlan, RangePrompts, RawRange, Region, Retries, Step,
    TailFate, View, outcome, reconstruct,
};
use foldline_llm_client::classify::{TransportFacts, UserPatterns, classify_failure};
use foldline_session_model::Tokens;
use foldline_session_model::fold::Profile;
use foldline_session_model::message::{Message, VerbatimBoundary};
use foldline_session_model::model_call::{
    Api, AssistantBlock, InputBlock, LlmReply, LlmRequest, MessageContent, ModelProfile, ModelRef,
    ReasoningEffort, StopReason, Usage,
};
use foldline_session_model::tokens::{CharsPerFour, TokenCounter as _};
use serde_json::{Value, json};

use super::canonical::{neutral_wrappers, sha256, utf16_len};
use super::regions::prepared;
use super::session::Sessions;
use super::verbatim::{line_set, pair};
use super::{Case, Outcome, field, text_field};

pub(super) fn parameters(_: &Sessions, case: &Case) -> Outcome {
    let layer = layer(field(&case.input, "parameters")?);
    let (parameters, _) = Parameters::merge(&[layer], Some(text_field(&case.input, "fallbackQuery")?));
    Ok(serde_json::to_value(parameters)?)
}

pub(super) fn layer(options: &Value) -> ParameterLayer {
    let number = |name| options.get(name).and_then(Value::as_f64);
    ParameterLayer {
        ratio: number("compression_ratio"),
        preserve_recent: number("preserve_recent"),
        query: options.get("query").and_then(Value::as_str).map(str::to_owned),
        budget: None,
    }
}

pub(super) fn region_trimming(_: &Sessions, case: &Case) -> Outcome {
    let region = Region::guessed_from_text(text_field(&case.input, "regionText")?)?;
    let offset = usize::try_from(field(&case.params, "offset")?.as_u64().context("offset")?)?;
    let views: Vec<View<'_>> =
        std::iter::successors(View::whole(&region).smaller(), |v| v.smaller()).collect();
    let view = views
        .iter()
        .find(|view| view.withheld() == offset)
        .context("no view begins there")?;
    let lines: Vec<&str> = view.lines().collect();
    let text = lines.join("\n");
    let numbered: Vec<String> = lines
        .iter()
        .enumerate()
        .map(|(i, line)| format!("{}→{line}", i + 1))
        .collect();
    let shown = |number: u32| {
        usize::try_from(number)
            .ok()?
            .checked_sub(offset)
            .filter(|n| *n > 0)
    };
    let records: Vec<RawRange> = field(&case.params, "viewRanges")?
        .as_array()
        .context("viewRanges")?
        .iter()
        .filter_map(|r| {
            Some(RawRange {
                start: r.get(0)?.as_u64()?,
                end: r.get(1)?.as_u64()?,
            })
        })
        .collect();
    let rebased = view.ranges(&records).context("no usable range")?;
    Ok(json!({
        "offsets": views.iter().map(View::withheld).collect::<Vec<_>>(),
        "view": {
            "lineCount": view.line_count(),
            "textLength": utf16_len(&text),
            "textSha256": sha256(&text),
            "numberedSha256": sha256(&numbered.join("\n")),
            "tokenEstimate": CharsPerFour.one(&text),
            "headerLines": region.header_lines().filter_map(|n| shown(n.get())).collect::<Vec<_>>(),
            "priorMarkers": region
                .markers()
                .iter()
                .filter_map(|(n, count)| Some((shown(n.get())?, *count)))
                .collect::<Vec<_>>(),
            "protectedRanges": view.protected().into_iter().map(pair).collect::<Value>(),
        },
        "rebased": rebased.ranges().iter().copied().map(pair).collect::<Value>(),
    }))
}

pub(super) fn planner_outcome(_: &Sessions, case: &Case) -> Outcome {
    let region = Region::guessed_from_text(text_field(&case.input, "regionText")?)?;
    let window = field(&case.params, "contextWindow")?.as_u64().map(Tokens);
    let answer = match case.input.get("transportError") {
        Some(message) => Err(failure(message.as_str().context("transportError")?)),
        None => reply(field(&case.input, "response")?)?,
    };
    let planned = outcome(&View::whole(&region), &answer, window);
    Ok(match planned {
        Planned::Ranked { ranges, recovered } => {
            let ranges: Value = ranges.ranges().iter().copied().map(pair).collect();
            match recovered {
                None => json!({ "kind": "ranked", "ranges": ranges }),
                Some(count) => json!({ "kind": "recovered", "ranges": ranges, "recoveredCount": count }),
            }
        }
        Planned::Limited {
            category, retries, ..
        } => json!({
            "kind": "rateLimited",
            "category": category.name(),
            "exhausted": retries == Retries::Exhausted,
        }),
        Planned::Unusable { category } => json!({ "kind": "unusable", "category": category.name() }),
        Planned::Overflowed { .. } => json!({ "kind": "overflowed" }),
        Planned::ProviderError { .. } => json!({ "kind": "providerError" }),
    })
}

/// A request that failed, with the class that the client gives it.
fn failure(message: &str) -> CallFailure {
    CallFailure {
        class: classify_failure(
            &TransportFacts::default(),
            Some(message),
            &UserPatterns::default(),
        ),
        message: message.to_owned(),
        retries: Retries::None,
    }
}

fn reply(response: &Value) -> anyhow::Result<Result<LlmReply, CallFailure>> {
    let stop: StopReason = serde_json::from_value(field(response, "stopReason")?.clone())?;
    if stop == StopReason::Error {
        return Ok(Err(failure(text_field(response, "errorMessage")?)));
    }
    let texts = field(response, "texts")?.as_array().context("texts")?;
    let blocks = texts.iter().map(|text| AssistantBlock::Text {
        text: text.as_str().unwrap_or_default().to_owned().into(),
        signature: None,
    });
    Ok(Ok(LlmReply {
        blocks: blocks.collect(),
        usage: serde_json::from_value(field(response, "usage")?.clone())?,
        stop,
        raw_stop: None,
        model: None,
        response_id: None,
    }))
}

pub(super) fn runner(sessions: &Sessions, case: &Case) -> Outcome {
    let session = sessions.of(case)?;
    let context = session.log.context(&session.leaf(case)?, Profile::Atomic)?;
    let preparation = prepared(&context, &neutral_wrappers(), &case.params)??;
    let candidates = candidates(&case.params)?;
    let last = match text_field(&case.params, "urgency")? {
        "recoverable" => LastRung::Fail,
        _ => fresh(&preparation, candidates.first()),
    };
    let prompts = RangePrompts::default();
    let names: Vec<String> = candidates
        .iter()
        .map(|c| c.profile.model_ref().to_string())
        .collect();
    let mut ladder = Ladder::new(&preparation, &prompts, candidates, Climb::AllModels, last);
    let mut requests = Vec::new();
    let mut out = loop {
        match ladder.step(&CharsPerFour) {
            Step::Ask { candidate, request } => {
                let shown = figure(&request, "Lines: ")?;
                let script = script(&case.params, requests.len())?;
                let (text, answer) = scripted(script, shown)?;
                requests.push(json!({
                    "model": names.get(candidate),
                    "shownLines": shown,
                    "targetKeepLines": figure(&request, "Lines to keep: ")?,
                    "answer": script.trim_end_matches('*'),
                    "text": text,
                }));
                ladder.answer(&answer);
            }
            Step::Done(plan) => break done(&preparation, &plan),
            Step::Failed(error) => {
                let (kind, category) = kind_of(error.category);
                break json!({ "error": {
                    "name": "RangePlanError",
                    "providerOverflow": error.category == Category::ContextOverflow,
                    "outcomeKind": kind,
                    "outcomeCategory": category,
                } });
            }
        }
    };
    if let Some(out) = out.as_object_mut() {
        out.insert("requests".into(), requests.into());
    }
    Ok(out)
}

/// The last rung with the tightest limit that the tail fits in, so that no line but protected ones stays: what the
/// recorded system does at once. A tail that is larger than the model's window does not stay.
fn fresh(preparation: &Preparation<'_, '_>, own: Option<&Candidate>) -> LastRung {
    let tail = preparation.tail_tokens();
    let window = own
        .and_then(|c| c.profile.context_window)
        .filter(|w| *w > Tokens::ZERO);
    let limit = window
        .filter(|window| tail > *window)
        .unwrap_or(tail + Tokens(129));
    LastRung::ModelFree { limit: Some(limit) }
}

/// The outcome that a category of failure belongs to, and what the recorded system names besides.
fn kind_of(category: Category) -> (&'static str, Option<&'static str>) {
    match category {
        Category::ContextOverflow => ("overflowed", None),
        Category::RateLimited | Category::Quota => ("rateLimited", Some(category.name())),
        Category::MalformedOutput | Category::NoUsableRanges | Category::Starved => {
            ("unusable", Some(category.name()))
        }
        _ => ("providerError", None),
    }
}

fn done(preparation: &Preparation<'_, '_>, plan: &RangePlan) -> Value {
    let result = reconstruct(preparation.region(), &plan.ranges);
    let boundary = VerbatimBoundary {
        text: result.text().into(),
        ..VerbatimBoundary::default()
    };
    let tail = match plan.tail {
        TailFate::Kept => preparation.tail_tokens(),
        TailFate::Dropped => Tokens::ZERO,
    };
    let after = CharsPerFour.message(&Message::VerbatimBoundary(boundary)) + tail;
    json!({
        "rung": plan.rung.as_str(),
        "keptTail": plan.tail == TailFate::Kept,
        "plannerModel": plan.planner,
        "reconstructed": {
            "textLength": utf16_len(result.text()),
            "textSha256": sha256(result.text()),
            "ranges": result.ranges().map(pair).collect::<Value>(),
            "keptRanges": line_set(preparation.region().protected()),
            "stats": result.stats(preparation.tokens_before(), after),
        },
    })
}

/// The session's model, then the fallback models that the registry has.
fn candidates(params: &Value) -> anyhow::Result<Vec<Candidate>> {
    let session = field(params, "sessionModel")?;
    let own = format!(
        "{}/{}",
        text_field(session, "provider")?,
        text_field(session, "id")?
    );
    let level = effort(text_field(params, "thinkingLevel")?)?;
    let list = |name| {
        params
            .get(name)
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default()
    };
    let (registry, without_auth) = (list("registry"), list("providersWithoutAuth"));
    let window = session.get("contextWindow").and_then(Value::as_u64);
    let mut candidates = Vec::new();
    for name in std::iter::once(own).chain(
        list("fallbackModels")
            .iter()
            .filter_map(Value::as_str)
            .map(str::to_owned),
    ) {
        let (name, reasoning) = match name.split_once(':') {
            Some((name, level)) => (name.to_owned(), effort(level)?),
            None => (name, level),
        };
        let known = registry
            .iter()
            .filter_map(Value::as_str)
            .find(|known| **known == *name || known.split_once('/').is_some_and(|(_, id)| id == name));
        let Some(model) = known.and_then(ModelRef::parse) else {
            continue;
        };
        let credentials = if without_auth.iter().any(|p| p == &*model.provider) {
            Credentials::Missing("no key".to_owned())
        } else {
            Credentials::Present
        };
        let own = candidates.is_empty();
        let mut profile = ModelProfile::unknown(model, Api::OpenAiCompletions);
        profile.context_window = window.filter(|_| own).map(Tokens);
        candidates.push(Candidate {
            profile,
            reasoning,
            credentials,
        });
    }
    Ok(candidates)
}

fn effort(level: &str) -> anyhow::Result<ReasoningEffort> {
    serde_json::from_value(level.into()).with_context(|| level.to_owned())
}

/// The scripted answer to a request; the last one repeats.
fn script(params: &Value, request: usize) -> anyhow::Result<&str> {
    let answers = field(params, "answers")?.as_array().context("answers")?;
    let answer = answers.get(request).or(answers.last());
    answer.and_then(Value::as_str).context("no answer is scripted")
}

/// What the script answers when it is shown a number of lines.
fn scripted(script: &str, shown: u64) -> anyhow::Result<(String, Result<LlmReply, CallFailure>)> {
    let range = format!("{},{}\n", shown.div_ceil(4), shown.div_ceil(2));
    let (text, stop) = match script {
        "ok" => (range, StopReason::Stop),
        "trunc" => (format!("{range}1,"), StopReason::Length),
        "empty" => (format!("{},{}", shown + 5, shown + 9), StopReason::Stop),
        "bad" => ("nope".to_owned(), StopReason::Stop),
        "overflow" | "overflow*" => return Ok(("nope".to_owned(), Err(failure("prompt is too long")))),
        "quota" => return Ok(("nope".to_owned(), Err(failure("insufficient_quota")))),
        "throw" => return Ok(("nope".to_owned(), Err(failure("socket hang up")))),
        other => bail!("{other} is no answer"),
    };
    let reply = LlmReply {
        blocks: vec![AssistantBlock::Text {
            text: text.clone().into(),
            signature: None,
        }],
        usage: Usage::from_parts(Tokens(1000), Tokens(50), Tokens::ZERO, Tokens::ZERO),
        stop,
        raw_stop: None,
        model: None,
        response_id: None,
    };
    Ok((text, Ok(reply)))
}

/// A figure that a request tells the model.
fn figure(request: &LlmRequest<'_>, label: &str) -> anyhow::Result<u64> {
    let Some(MessageContent::User { blocks }) = request.messages.first().map(|m| &m.content) else {
        bail!("the request has no prompt")
    };
    let line = blocks.iter().find_map(|block| match block {
        // The figures stand behind the transcript.
        InputBlock::Text(text) => text.lines().rev().find_map(|line| line.strip_prefix(label)),
        InputBlock::Image(_) => None,
    });
    line.ok_or_else(|| anyhow!("the request has no {label:?}"))?
        .parse()
        .with_context(|| label.to_owned())
}

//! `atomic.prepare_boundary`, `atomic.ranges_session`, `atomic.ranges_repeated`, `atomic.serialize`: the regions of
//! sessions.

use anyhow::Context as _;
use foldline_compaction_core::accounting::ContextSize;
use foldline_compaction_core::summary::serialize_conversation;
use foldline_compaction_core::verbatim::{
    Nothing, Parameters, Preparation, Region, SmallRegion, ValidatedRanges, View, parse_records,
    prepare_with, reconstruct,
};
use foldline_session_model::Tokens;
use foldline_session_model::fold::{Context, Profile};
use foldline_session_model::llm::{LlmMessage, TrailingCalls, Wrappers};
use foldline_session_model::tokens::CharsPerFour;
use serde_json::{Value, json};

use super::canonical::{neutral_wrappers, sha256, utf16_len};
use super::planning::layer;
use super::session::{Session, Sessions};
use super::verbatim::{deletion, reconstructed, region_facts};
use super::{Case, Outcome, field, text_field};

/// Prepares a case's session as its parameters say.
pub(super) fn prepared<'c, 'l>(
    context: &'c Context<'l>,
    wrappers: &Wrappers,
    params: &Value,
) -> anyhow::Result<Result<Preparation<'c, 'l>, Nothing>> {
    let newest = context.last_user_text();
    let (parameters, _) = Parameters::merge(&[layer(field(params, "options")?)], newest.as_deref());
    let small = match field(params, "allowSmallRegion")?.as_bool() {
        Some(true) => SmallRegion::Allow,
        _ => SmallRegion::Refuse,
    };
    Ok(prepare_with(context, wrappers, parameters, small, &CharsPerFour))
}

fn context<'s>(session: &'s Session, case: &Case) -> anyhow::Result<Context<'s>> {
    Ok(session.log.context(&session.leaf(case)?, Profile::Atomic)?)
}

pub(super) fn prepare_boundary(sessions: &Sessions, case: &Case) -> Outcome {
    let session = sessions.of(case)?;
    let context = context(&session, case)?;
    let Ok(preparation) = prepared(&context, &neutral_wrappers(), &case.params)? else {
        return Ok(Value::Null);
    };
    let parameters = preparation.parameters();
    let region = preparation.region();
    let first = preparation.first_kept();
    let own = preparation
        .compacted()
        .iter()
        .filter(|item| Some(item.source) != context.compaction && item.message.is_visible());
    let tail = preparation.tail().iter().filter(|item| item.message.is_visible());
    let mut facts = region_facts(region);
    let recorded = case.expected.pointer("/region/lines").is_some();
    if let Some(facts) = facts.as_object_mut().filter(|_| recorded) {
        let lines: Vec<&str> = region.lines().map(|line| line.text).collect();
        facts.insert("lines".into(), json!(lines));
    }
    Ok(json!({
        "firstKeptEntryId": first.map(|id| session.reference_to(id.as_str())),
        "keptTailMessageCount": tail.count(),
        "regionEntryIds": own.map(|item| session.reference(item.source)).collect::<Vec<_>>(),
        "tokensBefore": ContextSize::of(&context, Tokens::ZERO, Tokens::ZERO, &CharsPerFour).tokens,
        "keptTailTokens": preparation.tail_tokens(),
        "parameters": {
            "compression_ratio": parameters.ratio,
            "preserve_recent": parameters.preserve_recent,
            "queryLength": utf16_len(&parameters.query),
            "querySha256": sha256(&parameters.query),
        },
        "targetKeepLines": View::whole(region).keep_target(parameters.ratio),
        "region": facts,
    }))
}

pub(super) fn ranges_session(sessions: &Sessions, case: &Case) -> Outcome {
    let session = sessions.of(case)?;
    let context = context(&session, case)?;
    let preparation = prepared(&context, &neutral_wrappers(), &case.params)??;
    let region = preparation.region();
    let mut out = deletion(region, parse_records(text_field(&case.input, "plannerText")?)?);
    if let Some(out) = out.as_object_mut() {
        out.insert("lineCount".into(), region.line_count().into());
    }
    Ok(out)
}

pub(super) fn ranges_repeated(sessions: &Sessions, case: &Case) -> Outcome {
    let session = sessions.of(case)?;
    let context = context(&session, case)?;
    let preparation = prepared(&context, &neutral_wrappers(), &case.params)??;
    let answers = field(&case.input, "plannerTexts")?
        .as_array()
        .context("plannerTexts")?;
    let mut text = preparation.region().text().to_owned();
    let mut steps = Vec::new();
    for answer in answers {
        let region = Region::guessed_from_text(&text)?;
        let records = parse_records(answer.as_str().context("an answer is no text")?)?;
        let ranges = ValidatedRanges::validate(records, region.line_count(), region.protected());
        let result = reconstruct(&region, &ranges);
        steps.push(reconstructed(&region, &result));
        let next = result.into_text();
        text = next;
    }
    Ok(json!({ "steps": steps }))
}

pub(super) fn serialize(sessions: &Sessions, case: &Case) -> Outcome {
    let session = sessions.of(case)?;
    let context = context(&session, case)?;
    let wrappers = neutral_wrappers();
    let all = json!({ "options": { "preserve_recent": 0 }, "allowSmallRegion": true });
    let preparation = prepared(&context, &wrappers, &all)??;
    let text = preparation.region().text();
    let view = context.llm_view(&wrappers, TrailingCalls::Leave);
    let for_branch = serialize_conversation(&view);
    let roles: Vec<&str> = view.iter().map(LlmMessage::role_name).collect();
    let listed = case.expected.get("llmRoles").is_some_and(Value::is_array);
    let mut for_compaction = json!({ "length": utf16_len(text), "sha256": sha256(text) });
    if let Some(facts) = for_compaction.as_object_mut()
        && case.expected.pointer("/forCompaction/first200").is_some()
    {
        facts.insert("first200".into(), first_units(text, 200).into());
    }
    Ok(json!({
        "llmRoles": if listed { json!(roles) } else { json!(roles.len()) },
        "forCompaction": for_compaction,
        "forBranchSummary": { "length": utf16_len(&for_branch), "sha256": sha256(&for_branch) },
    }))
}

/// The beginning of a text in UTF-16 units, without half a pair at its end.
fn first_units(text: &str, units: usize) -> String {
    let mut left = units;
    text.chars()
        .take_while(|c| {
            let fits = c.len_utf16() <= left;
            left = left.saturating_sub(c.len_utf16());
            fits
        })
        .collect()
}

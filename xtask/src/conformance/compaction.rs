//! `*.find_cut_point`, `*.prepare_compaction`: where the tail begins, and what the summary is made of.

use foldline_compaction_core::accounting::{ContextSize, Limits, RatioUse};
use foldline_compaction_core::cut_point::{Step, find_cut_point};
use foldline_compaction_core::file_ops::ToolTable;
use foldline_compaction_core::settings::CompactionSettings;
use foldline_compaction_core::summary::{PrepareOptions, Window, prepare};
use foldline_compaction_core::verbatim::SmallRegion;
use foldline_session_model::Tokens;
use foldline_session_model::fold::{ContextItem, Profile};
use foldline_session_model::tokens::{CharsPerFour, Heuristic, TokenCounter};
use serde_json::{Value, json};

use super::canonical::{sha256, utf16_len};
use super::session::{Session, Sessions};
use super::{Case, Outcome, field, refused};

pub(super) fn gajae_cut_point(sessions: &Sessions, case: &Case) -> Outcome {
    cut_point(sessions, case, &Heuristic)
}

pub(super) fn pi_cut_point(sessions: &Sessions, case: &Case) -> Outcome {
    cut_point(sessions, case, &CharsPerFour)
}

fn cut_point(sessions: &Sessions, case: &Case, counter: &dyn TokenCounter) -> Outcome {
    let session = sessions.of(case)?;
    let leaf = session.log.resolve(&session.leaf(case)?)?;
    let path = leaf.map(|leaf| session.log.path(leaf)).unwrap_or_default();
    let index = |name| -> anyhow::Result<usize> {
        Ok(usize::try_from(
            field(&case.params, name)?.as_u64().unwrap_or_default(),
        )?)
    };
    let (start, end) = (index("startIndex")?, index("endIndex")?);
    let part = path.get(start..end).unwrap_or_default();
    let steps: Vec<Step> = part
        .iter()
        .map(|ix| Step::of_entry(&session.log, *ix, counter))
        .collect();
    let keep = field(&case.params, "keepRecentTokens")?
        .as_u64()
        .unwrap_or_default();
    let found = find_cut_point(&steps, Tokens(keep));
    Ok(json!({
        "firstKeptEntryIndex": start + found.first_kept,
        "turnStartIndex": found.turn_start.map_or(json!(-1), |at| json!(start + at)),
        "isSplitTurn": found.turn_start.is_some(),
    }))
}

pub(super) fn gajae_prepare(sessions: &Sessions, case: &Case) -> Outcome {
    prepared(sessions, case, Profile::Gajae, &Heuristic)
}

pub(super) fn pi_prepare(sessions: &Sessions, case: &Case) -> Outcome {
    prepared(sessions, case, Profile::Pi, &CharsPerFour)
}

fn prepared(sessions: &Sessions, case: &Case, profile: Profile, counter: &dyn TokenCounter) -> Outcome {
    let session = sessions.of(case)?;
    let context = match session.log.context(&session.leaf(case)?, profile) {
        Ok(context) => context,
        Err(error) => return Ok(refused(&error)),
    };
    let settings = CompactionSettings {
        keep_recent_tokens: field(&case.params, "keepRecentTokens")?
            .as_f64()
            .unwrap_or_default(),
        ..CompactionSettings::default()
    };
    let option = |name| case.params.get("options").and_then(|options| options.get(name));
    let limits = option("contextWindow")
        .and_then(Value::as_u64)
        .and_then(|window| Limits::new(Some(Tokens(window)), &settings, Tokens::ZERO));
    let options = PrepareOptions {
        settings: &settings,
        limits: limits.as_ref(),
        ratio: option("tokenCorrectionRatio")
            .and_then(Value::as_f64)
            .map_or(RatioUse::None, RatioUse::Manual),
        window: Window::AfterCompaction,
        small: SmallRegion::Allow,
        room: None,
        tools: &tools(),
    };
    let Ok(preparation) = prepare(&context, &options, counter) else {
        return Ok(Value::Null);
    };
    let (history, prefix, kept) = (
        preparation.history(),
        preparation.turn_prefix(),
        preparation.kept(),
    );
    let ops = preparation.file_ops();
    let lists = ops.lists();
    let previous = preparation.previous();
    let mut out = json!({
        "firstKeptEntryId": preparation.first_kept().map(|id| session.reference_to(id.as_str())),
        "isSplitTurn": !prefix.is_empty(),
        "tokensBefore": ContextSize::of(&context, Tokens::ZERO, Tokens::ZERO, counter).tokens,
        "counts": { "messagesToSummarize": history.len(), "turnPrefix": prefix.len() },
        "messagesToSummarize": references(&session, history),
        "turnPrefix": references(&session, prefix),
        "previousSummary": previous.map(|p| json!([utf16_len(&p.summary), sha256(&p.summary)])),
        "fileOps": { "read": ops.read(), "written": ops.written(), "edited": ops.edited() },
        "fileLists": { "readFiles": lists.read_files, "modifiedFiles": lists.modified_files },
    });
    if profile == Profile::Gajae {
        let keep = preparation.keep();
        out["counts"]["recent"] = json!(kept.len());
        out["recent"] = references(&session, kept);
        out["hasPreservedData"] = json!(previous.is_some_and(|p| p.preserve_data.is_some()));
        out["tokenCorrection"] =
            json!({ "ratio": whole(keep.ratio), "keepRecentTokensCorrected": keep.tokens });
    }
    // Long lists were left out of some cases.
    if let (Some(out), Some(expected)) = (out.as_object_mut(), case.expected.as_object()) {
        for list in ["messagesToSummarize", "turnPrefix", "recent"] {
            if !expected.contains_key(list) {
                out.remove(list);
            }
        }
    }
    Ok(out)
}

/// The tools whose files the recorded systems know.
pub(super) fn tools() -> ToolTable {
    let only = |name: &str| vec![name.to_owned()];
    ToolTable {
        read: only("read"),
        write: only("write"),
        edit: only("edit"),
        patch: Vec::new(),
        moves: Vec::new(),
    }
}

fn references(session: &Session, items: &[ContextItem<'_>]) -> Value {
    items.iter().map(|item| session.reference(item.source)).collect()
}

/// A number as JavaScript prints it: whole ones without a fraction.
fn whole(number: f64) -> Value {
    serde_json::from_str(&number.to_string()).unwrap_or_default()
}

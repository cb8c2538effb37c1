//! `atomic.ranges_*`, `atomic.keep_context`, `atomic.planner_parse`: the kernels of verbatim line compaction.

use anyhow::Context as _;
use foldline_compaction_core::verbatim::{
    LineRange, LineSet, RawRange, Reconstruction, Region, ValidatedRanges, parse_records, reconstruct,
    recover_records,
};
use foldline_session_model::tokens::{CharsPerFour, TokenCounter};
use serde_json::{Value, json};

use super::canonical::{sha256, utf16_len};
use super::session::Sessions;
use super::{Case, Outcome, field, refused, text_field};

pub(super) fn keep_context(_: &Sessions, case: &Case) -> Outcome {
    let lines = field(&case.input, "lines")?
        .as_array()
        .context("\"lines\" is no list")?;
    let lines: Option<Vec<&str>> = lines.iter().map(|line| line.as_str()).collect();
    let text = lines.context("a line is no text")?.join("\n");
    let protected =
        foldline_compaction_core::verbatim::keep_context::protected_lines_guessed_from_text(&text)?;
    Ok(json!({ "protectedRanges": line_set(&protected) }))
}

pub(super) fn ranges_inline(_: &Sessions, case: &Case) -> Outcome {
    let region = Region::guessed_from_text(text_field(&case.input, "regionText")?)?;
    let answer = answer(&case.input)?;
    let records = match parse_records(&answer) {
        Ok(records) => records,
        Err(error) => {
            return Ok(json!({
                "region": region_facts(&region),
                "normalized": refused(&error),
                "reconstructed": null,
            }));
        }
    };
    let mut out = deletion(&region, records);
    if let Some(out) = out.as_object_mut() {
        out.insert("region".into(), region_facts(&region));
    }
    Ok(out)
}

/// The two readings of an answer: finished, and cut off by the output limit.
pub(super) fn planner_parse(_: &Sessions, case: &Case) -> Outcome {
    let text = text_field(&case.input, "text")?;
    let complete = parse_records(text).ok();
    let recovered = recover_records(text).ok();
    Ok(json!({
        "complete": complete.map(|records| raw_ranges(&records)),
        "truncated": recovered.map(|records| json!({
            "ranges": raw_ranges(&records),
            "recoveredCount": records.len(),
        })),
    }))
}

fn raw_ranges(records: &[RawRange]) -> Value {
    records.iter().map(|r| json!([r.start, r.end])).collect()
}

/// The planner's answer. Endpoints that were handed over as values are written as an answer would hold them:
/// text is the only way in.
fn answer(input: &Value) -> anyhow::Result<String> {
    if input.get("plannerText").is_some() {
        return text_field(input, "plannerText").map(str::to_owned);
    }
    let ranges = field(input, "rawRanges")?
        .as_array()
        .context("\"rawRanges\" is no list")?;
    let end = |range: &Value, name| match range.get(name) {
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
        None => String::new(),
    };
    let records = ranges
        .iter()
        .map(|r| format!("{},{}\n", end(r, "start"), end(r, "end")));
    Ok(records.collect())
}

/// The normalised ranges and what is left of the region.
pub(super) fn deletion(region: &Region<'_>, records: Vec<RawRange>) -> Value {
    let ranges = ValidatedRanges::validate(records, region.line_count(), region.protected());
    let result = reconstruct(region, &ranges);
    json!({
        "normalized": ranges.ranges().iter().copied().map(pair).collect::<Value>(),
        "reconstructed": reconstructed(region, &result),
    })
}

/// What is left of a region.
pub(super) fn reconstructed(region: &Region<'_>, result: &Reconstruction<'_>) -> Value {
    let stats = result.stats(CharsPerFour.one(region.text()), CharsPerFour.one(result.text()));
    json!({
        "textLength": utf16_len(result.text()),
        "textSha256": sha256(result.text()),
        "ranges": result.ranges().map(pair).collect::<Value>(),
        "keptRanges": line_set(region.protected()),
        "stats": stats,
    })
}

pub(super) fn region_facts(region: &Region<'_>) -> Value {
    json!({
        "lineCount": region.line_count(),
        "textLength": utf16_len(region.text()),
        "textSha256": sha256(region.text()),
        "numberedSha256": sha256(&region.numbered()),
        "tokenEstimate": CharsPerFour.one(region.text()),
        "headerLines": region.header_lines().collect::<Vec<_>>(),
        "priorMarkers": region.markers(),
        "protectedRanges": line_set(region.protected()),
    })
}

pub(super) fn line_set(lines: &LineSet) -> Value {
    lines.ranges().iter().copied().map(pair).collect()
}

pub(super) fn pair(range: LineRange) -> Value {
    json!([range.start(), range.end()])
}

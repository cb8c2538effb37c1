//! What users said, kept beside a compaction (spec "Compaction core", 13, replacement history).

use foldline_session_model::Tokens;
use foldline_session_model::model_call::RawJson;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::LlmError;
use crate::api::responses::encode::Item;

/// The most tokens of user messages that are kept.
const BUDGET: Tokens = Tokens(64_000);

/// What a picture counts.
const IMAGE: u64 = 765;

/// Beginnings of texts that a harness put there: they are rebuilt, not kept.
const HARNESS_STARTS: [&str; 6] = [
    "<environment_context>",
    "<user_instructions>",
    "<additional_context>",
    "<skills",
    "<token_budget>",
    "<model_switch>",
];

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(default)]
    role: Option<String>,
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct PartHead {
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    text: Option<String>,
}

/// A message with the type that stored items have.
#[derive(Serialize)]
struct Kept<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    role: &'static str,
    content: Vec<KeptPart<'a>>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum KeptPart<'a> {
    Text {
        #[serde(rename = "type")]
        kind: &'static str,
        text: String,
    },
    Other(&'a RawValue),
}

impl KeptPart<'_> {
    fn cost(&self) -> u64 {
        match self {
            Self::Text { text, .. } => tokens_of(text),
            Self::Other(_) => IMAGE,
        }
    }
}

/// The newest user messages within the budget, oldest first. The first one that is too large is cut to what
/// is left, and older ones go.
pub(super) fn retain(items: &[&Item<'_>]) -> Result<Vec<RawJson<'static>>, LlmError> {
    retain_within(items, BUDGET)
}

fn retain_within(items: &[&Item<'_>], budget: Tokens) -> Result<Vec<RawJson<'static>>, LlmError> {
    let mut left = budget.get();
    let mut kept = Vec::new();
    for item in items.iter().rev() {
        let written = serde_json::value::to_raw_value(item).map_err(|error| unwritable(&error))?;
        let Some(parts) = user_parts(&written) else {
            continue;
        };
        let cost = parts.iter().map(KeptPart::cost).sum::<u64>().max(1);
        let fits = cost <= left;
        let parts = if fits { parts } else { cut(parts, left) };
        if !parts.is_empty() {
            // An item of the provider stays as it is.
            kept.push(match item {
                Item::Raw(raw) if fits => RawJson::from((*raw).to_owned()),
                _ => {
                    let message = Kept {
                        kind: "message",
                        role: "user",
                        content: parts,
                    };
                    RawJson::from(
                        serde_json::value::to_raw_value(&message).map_err(|error| unwritable(&error))?,
                    )
                }
            });
        }
        if !fits {
            break;
        }
        left -= cost;
    }
    kept.reverse();
    Ok(kept)
}

fn unwritable(error: &serde_json::Error) -> LlmError {
    LlmError::protocol(format!("a message cannot be written: {error}"))
}

/// The parts of a user message; `None` for other items and for texts of the harness.
fn user_parts(item: &RawValue) -> Option<Vec<KeptPart<'_>>> {
    let message: Message<'_> = serde_json::from_str(item.get()).ok()?;
    if message.role.as_deref() != Some("user") {
        return None;
    }
    let content = message.content?;
    let text = |text: String| KeptPart::Text {
        kind: "input_text",
        text,
    };
    let parts: Vec<KeptPart<'_>> = match serde_json::from_str::<Vec<&RawValue>>(content.get()) {
        Ok(parts) => parts
            .into_iter()
            .map(|part| match serde_json::from_str::<PartHead>(part.get()) {
                Ok(PartHead {
                    kind,
                    text: Some(said),
                }) if kind == "input_text" => text(said),
                _ => KeptPart::Other(part),
            })
            .collect(),
        Err(_) => vec![text(serde_json::from_str::<String>(content.get()).ok()?)],
    };
    let is_harness = parts.iter().any(|part| match part {
        KeptPart::Text { text, .. } => {
            let start: String = text.trim_start().chars().take(32).collect();
            let start = start.to_ascii_lowercase();
            HARNESS_STARTS.iter().any(|mark| start.starts_with(mark))
        }
        KeptPart::Other(_) => false,
    });
    (!is_harness && !parts.is_empty()).then_some(parts)
}

/// As many parts as fit; the first text that does not keeps both ends.
fn cut(parts: Vec<KeptPart<'_>>, mut left: u64) -> Vec<KeptPart<'_>> {
    let mut kept = Vec::new();
    for part in parts {
        let cost = part.cost();
        if cost <= left {
            left -= cost;
            kept.push(part);
            continue;
        }
        if let KeptPart::Text { text, kind } = part
            && let Some(text) = both_ends(&text, cost, left)
        {
            kept.push(KeptPart::Text { kind, text });
        }
        break;
    }
    kept
}

/// Both ends of a text around a note of how much is missing; `None` when there is no room for either.
fn both_ends(text: &str, cost: u64, left: u64) -> Option<String> {
    let note = format!("…{} tokens truncated…", cost.saturating_sub(left));
    let room = usize::try_from(left)
        .ok()?
        .saturating_mul(4)
        .checked_sub(note.chars().count())?;
    let (head, tail) = (room / 2, room - room / 2);
    if head == 0 {
        return None;
    }
    // Characters of two units may make a half a little shorter than it could be, never longer.
    let head_end = boundary(text.char_indices().map(|(at, c)| (at + c.len_utf8(), c)), head).unwrap_or(0);
    let tail_start = boundary(text.char_indices().rev(), tail).unwrap_or(text.len());
    Some(format!(
        "{}{note}{}",
        text.get(..head_end)?,
        text.get(tail_start.max(head_end)..)?
    ))
}

/// The last position before `units` UTF-16 units are used up.
fn boundary(positions: impl Iterator<Item = (usize, char)>, units: usize) -> Option<usize> {
    let mut used = 0;
    let mut last = None;
    for (at, c) in positions {
        used += c.len_utf16();
        if used > units {
            break;
        }
        last = Some(at);
    }
    last
}

/// A quarter of the UTF-16 length, rounded up.
fn tokens_of(text: &str) -> u64 {
    let units: usize = text.chars().map(char::len_utf16).sum();
    u64::try_from(units.div_ceil(4)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(json: &str) -> Box<RawValue> {
        RawValue::from_string(json.to_owned()).unwrap()
    }

    fn kept(items: &[&str], budget: u64) -> Vec<String> {
        let raw: Vec<Box<RawValue>> = items.iter().map(|item| raw(item)).collect();
        let items: Vec<Item<'_>> = raw.iter().map(|raw| Item::Raw(raw)).collect();
        let items: Vec<&Item<'_>> = items.iter().collect();
        retain_within(&items, Tokens(budget))
            .unwrap()
            .iter()
            .map(|item| item.get().to_owned())
            .collect()
    }

    fn user(text: &str) -> String {
        format!(r#"{{"role":"user","x":1.0,"content":[{{"type":"input_text","text":"{text}"}}]}}"#)
    }

    #[test]
    fn only_what_users_said_is_kept() {
        let said = user("fix it");
        let items = [
            said.as_str(),
            r#"{"role":"developer","content":"x"}"#,
            r#"{"type":"message","role":"assistant","content":[]}"#,
            r#"{"type":"function_call_output","call_id":"c","output":"x"}"#,
            r#"{"role":"user","content":[]}"#,
            r#"{"role":"user","content":"  <Environment_Context>cwd"}"#,
            r#"{"role":"user","content":[{"type":"input_text","text":"a"},{"type":"input_text","text":"<SKILLS_x>"}]}"#,
            r#"{"role":"user","content":"see <skills>"}"#,
            r#"{"type":"compaction","encrypted_content":"x"}"#,
        ];
        assert_eq!(
            kept(&items, 1000),
            [said.as_str(), r#"{"role":"user","content":"see <skills>"}"#],
            "byte for byte"
        );
    }

    #[test]
    fn the_newest_messages_win_and_the_first_that_is_too_large_is_cut() {
        let (old, long, new) = (user("oldest"), user(&"abcd".repeat(100)), user("12345678"));
        let all = [old.as_str(), long.as_str(), new.as_str()];
        assert_eq!(kept(&all, 104), all);
        assert_eq!(kept(&all, 102), all[1..]);
        let cut = kept(&all, 22);
        assert_eq!(cut.len(), 2, "{cut:?}");
        assert!(
            cut[0].contains("abcdab")
                && cut[0].contains("…80 tokens truncated…")
                && cut[0].ends_with("cd\"}]}"),
            "{cut:?}"
        );
        assert_eq!(kept(&all, 2), [new.as_str()]);
        assert_eq!(kept(&all, 3), [new.as_str()], "no room for both ends");
    }

    #[test]
    fn pictures_have_a_price_of_their_own() {
        let image = r#"{"type":"input_image","image_url":"data:image/png;base64,AAAA"}"#;
        let message =
            format!(r#"{{"role":"user","content":[{{"type":"input_text","text":"look"}},{image}]}}"#);
        assert_eq!(kept(&[&message], 766), [message.as_str()]);
        let cut = kept(&[&message], 765);
        assert_eq!(
            cut,
            [r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"look"}]}"#]
        );
    }

    #[test]
    fn a_cut_text_is_never_longer_than_its_room() {
        for text in ["👍".repeat(300), "é".repeat(300), "a👍".repeat(200)] {
            for left in 0..60 {
                if let Some(short) = both_ends(&text, tokens_of(&text), left) {
                    assert!(tokens_of(&short) <= left, "{left}: {short}");
                }
            }
        }
    }
}

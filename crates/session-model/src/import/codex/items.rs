//! The rows and items of a rollout, and what they hold as text, pictures and arguments.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::super::content::{Blocks, Parts, data_url, one_line};
use crate::entry::decode::integer;
use crate::json::{Field, Object, Raw, json_object};

/// How messages begin that the program puts into the user's place.
const PROGRAM_TEXTS: [&str; 9] = [
    "<environment_context>",
    "<user_instructions>",
    "# AGENTS.md instructions for ",
    "<permissions instructions>",
    "<skill>",
    "<user_shell_command>",
    "<turn_aborted>",
    "<subagent_notification>",
    "<INSTRUCTIONS>",
];

json_object! {
    /// One row.
    struct Row {
        "timestamp" => timestamp: Cow<'a, str>,
        "type" => kind: Cow<'a, str>,
        "payload" => payload: Raw<'a>,
    }
}

json_object! {
    struct SessionMeta {
        "id" => id: Cow<'a, str>,
        "cwd" => cwd: Cow<'a, str>,
        "cli_version" => cli_version: Cow<'a, str>,
        "model_provider" => provider: Cow<'a, str>,
    }
}

json_object! {
    struct TurnContext {
        "model" => model: Cow<'a, str>,
        "effort" => effort: Cow<'a, str>,
    }
}

json_object! {
    struct Compacted {
        "message" => message: Cow<'a, str>,
        "replacement_history" => replacement: Raw<'a>,
    }
}

json_object! {
    struct Event {
        "type" => kind: Cow<'a, str>,
        "num_turns" => turns: f64,
        "info" => info: TokenInfo<'a>,
    }
}

json_object! {
    struct TokenInfo {
        "last_token_usage" => last: TokenUsage<'a>,
    }
}

json_object! {
    struct TokenUsage {
        "input_tokens" => input: f64,
        "cached_input_tokens" => cached: f64,
        "output_tokens" => output: f64,
    }
}

json_object! {
    /// An item of any type.
    struct Item {
        "type" => kind: Cow<'a, str>,
        "role" => role: Cow<'a, str>,
        "content" => content: Raw<'a>,
        "summary" => summary: Vec<Part<'a>>,
        "call_id" => call_id: Cow<'a, str>,
        "id" => id: Cow<'a, str>,
        "name" => name: Cow<'a, str>,
        "arguments" => arguments: Cow<'a, str>,
        "input" => input: Cow<'a, str>,
        "action" => action: Raw<'a>,
        "output" => output: Raw<'a>,
        "success" => success: bool,
    }
}

json_object! {
    struct Part {
        "type" => kind: Cow<'a, str>,
        "text" => text: Cow<'a, str>,
        "image_url" => image_url: Cow<'a, str>,
    }
}

json_object! {
    /// Output of old rollouts: an object, also as JSON inside a string.
    struct OldOutput {
        "content" => content: Cow<'a, str>,
        "output" => output: Cow<'a, str>,
        "success" => success: bool,
        "metadata" => metadata: OldMetadata<'a>,
    }
}

json_object! {
    struct OldMetadata {
        "exit_code" => exit_code: f64,
    }
}

impl OldOutput<'_> {
    pub(super) fn failed(&self) -> Option<bool> {
        let code = self.metadata.as_ref().and_then(|metadata| metadata.exit_code);
        self.success
            .map(|success| !success)
            .or(code.map(|code| code != 0.0))
    }
}

/// Adds text and pictures. Empty text is no block.
pub(super) fn add_parts(blocks: &mut Blocks, content: Option<&RawValue>) {
    match Parts::of(content) {
        Parts::Text(text) if text.is_empty() => {}
        Parts::Text(text) => blocks.text(&text),
        Parts::Blocks(parts) => {
            for raw in &parts {
                let part = Part::lenient(raw).unwrap_or_default();
                let image = part.image_url.as_deref().and_then(data_url);
                match (part.kind.as_deref(), part.text.as_deref(), image) {
                    (Some("input_text" | "output_text" | "text"), Some(""), _) => {}
                    (Some("input_text" | "output_text" | "text"), Some(text), _) => blocks.text(text),
                    (Some("input_image"), _, Some((mime_type, data))) => blocks.image(data, mime_type),
                    _ => blocks.opaque(raw),
                }
            }
        }
    }
}

/// Arguments as an object: those of functions are JSON inside a string.
pub(super) fn arguments(text: &str) -> Cow<'_, str> {
    let object = text.trim().starts_with('{') && serde_json::from_str::<&RawValue>(text).is_ok();
    if object {
        one_line(text.trim())
    } else {
        Cow::Owned(freeform(text))
    }
}

/// Free text as the arguments of a call.
pub(super) fn freeform(text: &str) -> String {
    let mut json = String::with_capacity(text.len() + 16);
    let mut object = Object::begin(&mut json);
    object.text("input", text);
    object.end();
    json
}

/// The exit code that the program's own shell tools print in front of the output.
pub(super) fn exit_code(text: &str) -> Option<i64> {
    if text.starts_with('{')
        && let Ok(old) = OldOutput::decode(text.as_bytes())
        && let Some(code) = old.metadata.and_then(|metadata| metadata.exit_code)
    {
        return Some(integer(code));
    }
    let head: Vec<&str> = text.lines().take(4).collect();
    head.iter().find_map(|line| {
        let code = line
            .strip_prefix("Exit code: ")
            .or_else(|| line.strip_prefix("Process exited with code "))?;
        code.trim().parse().ok()
    })
}

pub(super) fn is_by_program(content: Option<&RawValue>) -> bool {
    let first = match Parts::of(content) {
        Parts::Text(text) => Some(text.into_owned()),
        Parts::Blocks(parts) => parts
            .first()
            .and_then(|raw| Part::lenient(raw)?.text.map(Cow::into_owned)),
    };
    first.is_some_and(|text| {
        PROGRAM_TEXTS
            .iter()
            .any(|start| text.trim_start().starts_with(start))
    })
}

pub(super) fn is_empty_list(raw: &RawValue) -> bool {
    let text = raw.get().trim();
    !text.starts_with('[') || text.trim_start_matches('[').trim_start().starts_with(']')
}

/// The messages of a replacement history as text, for other providers.
pub(super) fn text_of_items(raw: &RawValue) -> String {
    let items: Vec<Item<'_>> = Vec::lenient(raw).unwrap_or_default();
    let texts: Vec<String> = items
        .iter()
        .filter(|item| item.kind.as_deref() == Some("message"))
        .filter(|item| !is_by_program(item.content.as_deref()))
        .map(|item| match Parts::of(item.content.as_deref()) {
            Parts::Text(text) => text.into_owned(),
            Parts::Blocks(parts) => {
                let texts: Vec<_> = parts.iter().filter_map(|raw| Part::lenient(raw)?.text).collect();
                texts.join("\n")
            }
        })
        .filter(|text| !text.is_empty())
        .collect();
    texts.join("\n\n")
}

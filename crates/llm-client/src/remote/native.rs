mod fallback;
mod retained;
mod streaming;

use std::sync::Arc;

use foldline_session_model::model_call::{LlmRequest, ModelProfile, Origin, RawJson, Usage};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use super::{neutralise, post};
use crate::LlmError;
use crate::api::responses::RawUsage;
use crate::api::responses::encode::{Item, items};
use crate::endpoint::Endpoint;
use crate::transport::{HttpRequest, HttpTransport, Transport};

pub use fallback::{Compacted, CompactedBy, NativeForm, compact_or_summarise};

/// The compaction that a Responses provider makes itself: in one answer (`/responses/compact`) or in a stream.
pub struct NativeCompaction {
    profile: ModelProfile,
    endpoint: Endpoint,
    transport: Arc<dyn Transport>,
}

/// What a provider made of a history.
#[derive(Clone, Debug, PartialEq)]
pub struct NativeHistory {
    /// The model that can read it. No other model is ever sent these items.
    pub origin: Origin,
    /// The items that replace the history, byte for byte.
    pub items: Vec<RawJson<'static>>,
    /// The position of the compaction among them.
    pub compaction: usize,
    /// The summary in the open, when the provider gave one.
    pub summary: Option<String>,
    /// What the provider counted.
    pub usage: Usage,
}

#[derive(Serialize)]
struct Body<'r> {
    model: &'r str,
    input: Vec<Item<'r>>,
    instructions: &'r str,
}

#[derive(Deserialize)]
struct Answer<'a> {
    #[serde(borrow, default)]
    output: Option<Vec<&'a RawValue>>,
    #[serde(default)]
    usage: Option<RawUsage>,
}

#[derive(Deserialize)]
struct OutputItem<'a> {
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    role: Option<String>,
    #[serde(default)]
    encrypted_content: Option<String>,
    #[serde(borrow, default)]
    summary: Option<&'a RawValue>,
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct ContentPart {
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    text: String,
}

impl NativeCompaction {
    /// The native compaction of this model.
    ///
    /// # Errors
    /// When TLS cannot be set up.
    pub fn new(profile: ModelProfile, endpoint: Endpoint) -> Result<Self, LlmError> {
        let transport = Arc::new(HttpTransport::new(&endpoint)?);
        Ok(Self::with_transport(profile, endpoint, transport))
    }

    /// The native compaction over a given transport.
    pub fn with_transport(profile: ModelProfile, endpoint: Endpoint, transport: Arc<dyn Transport>) -> Self {
        Self {
            profile,
            endpoint,
            transport,
        }
    }

    /// Has the provider compact a conversation. The request's system text goes along as instructions. One
    /// attempt.
    ///
    /// # Errors
    /// When the provider fails or its answer holds no compaction. A cancel is an error of its own class, so
    /// that it is not mistaken for a reason to summarise locally.
    pub async fn compact(
        &self,
        request: &LlmRequest<'_>,
        cancel: &CancellationToken,
    ) -> Result<NativeHistory, LlmError> {
        let mut input = Vec::new();
        items(&self.profile, request, &mut input, &mut Vec::new());
        let instructions = request.system.join("\n\n");
        let body = Body {
            model: &self.profile.id,
            input,
            instructions: &instructions,
        };
        let body = String::from_utf8(crate::api::to_bytes(&body)?)
            .map_err(|_| LlmError::protocol("the request is not UTF-8"))?;
        let request = HttpRequest {
            url: self.endpoint.url(self.profile.api, "/responses/compact"),
            headers: vec![("content-type", "application/json".to_owned())],
            secret_headers: self.endpoint.secret_headers(),
            // In JSON text a control token looks as it does in the strings, so the whole body can be treated.
            body: neutralise(&body).into_bytes(),
        };
        let answer = post(
            self.transport.as_ref(),
            request,
            &self.endpoint.scrubber(),
            cancel,
        )
        .await?;
        read_answer(&answer, self.origin())
    }

    fn origin(&self) -> Origin {
        Origin {
            api: self.profile.api,
            provider: self.profile.provider.clone(),
            model: self.profile.id.clone(),
        }
    }
}

fn read_answer(answer: &[u8], origin: Origin) -> Result<NativeHistory, LlmError> {
    let answer: Answer<'_> = serde_json::from_slice(answer)
        .map_err(|error| LlmError::protocol(format!("the native compaction cannot be read: {error}")))?;
    let output = answer
        .output
        .ok_or_else(|| LlmError::protocol("the native compaction has no output"))?;
    let mut history = NativeHistory {
        origin,
        items: Vec::new(),
        compaction: 0,
        summary: None,
        usage: answer.usage.map(|usage| usage.normalise()).unwrap_or_default(),
    };
    let mut found = false;
    for raw in &output {
        let Ok(item) = serde_json::from_str::<OutputItem<'_>>(raw.get()) else {
            continue;
        };
        if !is_kept(&item) {
            continue;
        }
        if item.is_compaction() {
            found = true;
            history.compaction = history.items.len();
            history.summary = item.summary_text();
        }
        history.items.push(RawJson::from((*raw).to_owned()));
    }
    if found {
        Ok(history)
    } else {
        Err(LlmError::protocol(format!(
            "the native compaction holds no compaction item ({} items, {} of them kept)",
            output.len(),
            history.items.len()
        )))
    }
}

impl OutputItem<'_> {
    fn is_compaction(&self) -> bool {
        match self.kind.as_str() {
            "compaction" => self.encrypted_content.is_some(),
            kind => kind == "compaction_summary",
        }
    }

    fn summary_text(&self) -> Option<String> {
        serde_json::from_str(self.summary?.get()).ok()
    }
}

/// The items that are worth keeping: compactions, replies, and what users really said.
fn is_kept(item: &OutputItem<'_>) -> bool {
    match (item.kind.as_str(), item.role.as_deref()) {
        ("compaction" | "compaction_summary", _) | ("message", Some("assistant")) => true,
        ("message", Some("user")) => {
            let Some(content) = item.content else { return false };
            let Ok(parts) = serde_json::from_str::<Vec<ContentPart>>(content.get()) else {
                return serde_json::from_str::<String>(content.get()).is_ok_and(|text| is_user_text(&text));
            };
            !parts.is_empty()
                && parts.iter().all(|part| match part.kind.as_str() {
                    "input_image" => true,
                    "input_text" => is_user_text(&part.text),
                    _ => false,
                })
        }
        _ => false,
    }
}

/// Fragments that a harness adds to user messages: they are rebuilt, not kept.
const HARNESS_MARKS: [&str; 6] = [
    "<system-reminder>",
    "<environment-context>",
    "<skill>",
    "<user-shell-command>",
    "<turn-aborted>",
    "<subagent-notification>",
];

const AGENTS_MARK: &str = "# AGENTS.md instructions";

fn is_user_text(text: &str) -> bool {
    let trimmed = text.trim();
    if trimmed.is_empty() || text.contains(AGENTS_MARK) {
        return false;
    }
    let lower = trimmed.to_ascii_lowercase();
    let wraps_agents =
        lower.starts_with(&AGENTS_MARK.to_ascii_lowercase()) && lower.ends_with("</instructions>");
    !wraps_agents && HARNESS_MARKS.iter().all(|mark| !lower.contains(mark))
}

#[cfg(test)]
mod tests {
    use foldline_session_model::Tokens;
    use foldline_session_model::model_call::Api;

    use super::*;

    fn origin() -> Origin {
        Origin {
            api: Api::OpenAiResponses,
            provider: "openai".to_owned(),
            model: "m".to_owned(),
        }
    }

    #[test]
    fn an_answer_keeps_what_users_and_the_model_said() {
        let compaction = r#"{"type":"compaction","id":"c","encrypted_content":"AbC=", "x": 1.0}"#;
        let answer = format!(
            r#"{{"id":"r","output":[
              {{"type":"message","role":"user","content":[{{"type":"input_text","text":"do it"}}]}},
              {{"type":"message","role":"user","content":[{{"type":"input_text","text":"<System-Reminder>x"}}]}},
              {{"type":"message","role":"user","content":[{{"type":"input_image","image_url":"data:"}}]}},
              {{"type":"message","role":"developer","content":[]}},
              {{"type":"reasoning","id":"r1"}},
              {{"type":"function_call","call_id":"c1"}},
              {{"type":"message","role":"assistant","content":[{{"type":"output_text","text":"done"}}]}},
              {compaction}
            ],"usage":{{"input_tokens":100,"output_tokens":20,"input_tokens_details":{{"cached_tokens":60}}}}}}"#
        );
        let history = read_answer(answer.as_bytes(), origin()).unwrap();
        assert_eq!(history.items.len(), 4);
        assert_eq!(
            history.items[history.compaction].get(),
            compaction,
            "byte for byte"
        );
        assert_eq!(
            (history.usage.input, history.usage.cache_read),
            (Tokens(40), Tokens(60))
        );
    }

    #[test]
    fn an_answer_without_a_compaction_is_an_error() {
        for answer in [
            r#"{"output":[]}"#,
            r#"{"output":[{"type":"compaction"}]}"#,
            r#"{"output":"x"}"#,
            "{}",
            "<html>",
        ] {
            assert!(read_answer(answer.as_bytes(), origin()).is_err(), "{answer}");
        }
    }

    #[test]
    fn texts_of_the_harness_are_not_user_texts() {
        for (text, expected) in [
            ("fix the bug", true),
            ("  ", false),
            ("# AGENTS.md instructions for x", false),
            ("# agents.md instructions\n<INSTRUCTIONS>\n</INSTRUCTIONS>", false),
            ("read # agents.md instructions", true),
            ("<skill>a</skill>", false),
        ] {
            assert_eq!(is_user_text(text), expected, "{text}");
        }
    }
}

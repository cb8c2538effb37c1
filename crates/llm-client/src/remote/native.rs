mod fit;
mod forms;
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
use crate::text::clip;
use crate::transport::{HttpRequest, HttpTransport, Transport};

use fit::fit;
pub use forms::{NativeForm, Tried};

/// The compaction that a Responses provider makes itself: in one answer (`/responses/compact`) or in a stream.
pub struct NativeCompaction {
    profile: ModelProfile,
    endpoint: Endpoint,
    transport: Arc<dyn Transport>,
    forms: Vec<NativeForm>,
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

/// So much of a type of an item is told.
const LONGEST_KIND: usize = 40;

#[derive(Serialize)]
struct Body<'r> {
    model: &'r str,
    input: &'r [Box<RawValue>],
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
            forms: vec![NativeForm::Plain],
        }
    }

    /// The native compaction in these forms, which are tried in order.
    #[must_use]
    pub fn with_forms(mut self, forms: &[NativeForm]) -> Self {
        self.forms = forms.to_vec();
        self
    }

    /// Has the provider compact a conversation. The request's system text goes along as instructions. One
    /// attempt. Where the conversation is larger than the model takes, its newest results go with their calls; what
    /// is still too large is not sent.
    ///
    /// # Errors
    /// When the conversation does not fit, the provider fails, or its answer holds no compaction. A cancel is an
    /// error of its own class, so that it is not mistaken for a reason to summarise locally.
    pub async fn compact(
        &self,
        request: &LlmRequest<'_>,
        cancel: &CancellationToken,
    ) -> Result<NativeHistory, LlmError> {
        let mut input = Vec::new();
        items(&self.profile, request, &mut input, &mut Vec::new());
        let instructions = neutralise(&request.system.join("\n\n"));
        let input = fit(&input, inert(&input)?, &instructions, &self.profile)?;
        let body = Body {
            model: &self.profile.id,
            input: &input,
            instructions: &instructions,
        };
        let request = HttpRequest {
            url: self.endpoint.url(self.profile.api, "/responses/compact"),
            headers: vec![("content-type", "application/json".to_owned())],
            secret_headers: self.endpoint.secret_headers(),
            body: crate::api::to_bytes(&body)?,
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

/// The items as JSON with inert control tokens. What is the provider's own stays byte for byte (R15).
fn inert(input: &[Item<'_>]) -> Result<Vec<Box<RawValue>>, LlmError> {
    let unwritable =
        |error: serde_json::Error| LlmError::protocol(format!("a message cannot be written: {error}"));
    let written = input.iter().map(|item| match item {
        Item::Raw(raw) => Ok((*raw).to_owned()),
        // In JSON text a control token looks as it does in the strings, so all of it can be treated.
        item => {
            let json = serde_json::to_string(item).map_err(unwritable)?;
            RawValue::from_string(neutralise(&json)).map_err(unwritable)
        }
    });
    written.collect()
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
    let mut kinds = Vec::with_capacity(output.len());
    for raw in &output {
        let Ok(item) = serde_json::from_str::<OutputItem<'_>>(raw.get()) else {
            kinds.push("unreadable".to_owned());
            continue;
        };
        kinds.push(clip(&item.kind, LONGEST_KIND).to_owned());
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
            "the native compaction holds no compaction item ({} items, {} of them kept: {})",
            output.len(),
            history.items.len(),
            kinds.join(", ")
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
    use foldline_session_model::model_call::{
        Api, ArgumentsState, AssistantBlock, InputBlock, MessageContent, ModelRef, RequestMessage,
        StopReason, ToolCall, ToolOutcome,
    };

    use super::*;
    use crate::endpoint::{Auth, PlainHttp};
    use crate::testing::{Replay, ReplayTransport};

    /// A history of everything that a request can hold, and of the items that its model made itself.
    fn request() -> LlmRequest<'static> {
        let raw = |json: &str| RawJson::parse(json.to_owned()).unwrap();
        let said = |text: &str| InputBlock::Text(text.to_owned().into());
        let contents = [
            MessageContent::Opaque {
                origin: origin(),
                items: vec![raw(r#"{"type":"compaction", "encrypted_content":"<|e|>"}"#)],
                fallback: "a summary".into(),
            },
            MessageContent::User {
                blocks: vec![said("Fix <|channel|> it")],
            },
            MessageContent::Assistant {
                origin: Some(origin()),
                stop: StopReason::ToolUse,
                blocks: vec![
                    AssistantBlock::Thinking {
                        text: "hm".into(),
                        signature: Some(r#"{"type":"reasoning", "encrypted_content":"<|x|>"}"#.into()),
                    },
                    AssistantBlock::ToolCall(ToolCall {
                        id: "c1|fc_1".into(),
                        name: "read".into(),
                        arguments: raw(r#"{"path":"a"}"#),
                        state: ArgumentsState::Whole,
                    }),
                ],
            },
            MessageContent::ToolResult {
                call_id: "c1|fc_1".into(),
                tool_name: "read".into(),
                blocks: vec![said("text <|end|>")],
                outcome: ToolOutcome::Success,
            },
        ];
        let mut request = LlmRequest {
            system: vec!["be <|brief|>".into()],
            ..LlmRequest::default()
        };
        let message = |content| RequestMessage { entry: None, content };
        request.messages.extend(contents.map(message));
        request
    }

    /// The body of the request that this model sends.
    async fn sent_by(model: &str) -> String {
        let answer = r#"{"output":[{"type":"compaction","encrypted_content":"b64=="}]}"#;
        let transport = Arc::new(ReplayTransport::new([Replay::ok(answer)]));
        let endpoint = Endpoint::new("https://api.example.com", Auth::None, PlainHttp::LoopbackOnly).unwrap();
        let name = ModelRef {
            provider: "openai".to_owned(),
            id: model.to_owned(),
        };
        let profile = ModelProfile::unknown(name, Api::OpenAiResponses);
        let native = NativeCompaction::with_transport(profile, endpoint, transport.clone());
        let history = native
            .compact(&request(), &CancellationToken::new())
            .await
            .unwrap();
        assert_eq!(history.origin.model, model);
        transport.bodies().remove(0)
    }

    #[tokio::test]
    async fn history_becomes_items() {
        insta::assert_snapshot!(sent_by("m").await);
    }

    /// Nothing of the provider's own is touched, not even by what makes control tokens inert.
    #[tokio::test]
    async fn r15_opaque_items_go_back_whole_to_their_own_model_or_not_at_all() {
        let own = sent_by("m").await;
        for item in [
            r#"{"type":"compaction", "encrypted_content":"<|e|>"}"#,
            r#"{"type":"reasoning", "encrypted_content":"<|x|>"}"#,
        ] {
            assert!(own.contains(item), "{item} in {own}");
        }
        let other = sent_by("other").await;
        assert!(!other.contains("encrypted_content"), "{other}");
        assert!(other.contains("a summary"), "{other}");
    }

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
        let answer = r#"{"output":[{"type":"reasoning"},{"type":"compaction"},1]}"#;
        let error = read_answer(answer.as_bytes(), origin()).unwrap_err();
        assert!(
            error.message.contains("reasoning, compaction, unreadable"),
            "{error}"
        );
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

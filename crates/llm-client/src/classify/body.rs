//! The error bodies of providers and of the proxies in front of them.

use foldline_session_model::Tokens;
use foldline_session_model::model_call::ErrorClass;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{TransportFacts, UserPatterns, classify_failure};

/// What an error body says, whatever its shape.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ErrorBody {
    /// Every code or type in it.
    pub codes: Vec<String>,
    /// A status inside the body: streams carry errors under HTTP 200.
    pub status: Option<u16>,
    /// The text.
    pub message: Option<String>,
    limit: Option<Tokens>,
    input: Option<Tokens>,
}

/// One level of an error object; every field may be of any type.
#[derive(Deserialize)]
struct Level<'a> {
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
    #[serde(borrow, default)]
    errors: Option<&'a RawValue>,
    #[serde(borrow, default)]
    detail: Option<&'a RawValue>,
    #[serde(borrow, default)]
    message: Option<&'a RawValue>,
    #[serde(borrow, default)]
    code: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "type")]
    kind: Option<&'a RawValue>,
    #[serde(borrow, default)]
    status: Option<&'a RawValue>,
    #[serde(borrow, default)]
    metadata: Option<&'a RawValue>,
    #[serde(borrow, default)]
    n_prompt_tokens: Option<&'a RawValue>,
    #[serde(borrow, default)]
    n_ctx: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Metadata<'a> {
    #[serde(borrow, default)]
    raw: Option<&'a RawValue>,
}

/// Error objects nest two deep in practice (`{"error":{"error":…}}` of some proxies).
const MAX_LEVELS: u8 = 4;

impl ErrorBody {
    /// Reads a body. One that is no JSON is its own message.
    pub fn parse(body: &[u8]) -> Self {
        let text = String::from_utf8_lossy(body);
        let text = text.trim();
        let mut parsed = Self::default();
        if let Ok(raw) = serde_json::from_str::<&RawValue>(text) {
            parsed.read(raw, MAX_LEVELS);
        } else if !text.is_empty() {
            parsed.message = Some(text.to_owned());
        }
        parsed
    }

    /// The class that it stands for, under the HTTP status of the answer.
    pub fn classify(&self, status: Option<u16>, user: &UserPatterns) -> ErrorClass {
        let codes: Vec<&str> = self.codes.iter().map(String::as_str).collect();
        let facts = TransportFacts {
            status: status.or(self.status),
            codes: &codes,
        };
        let mut class = classify_failure(&facts, self.message.as_deref(), user);
        if let ErrorClass::Overflow { limit, input, .. } = &mut class {
            *limit = self.limit.or(*limit);
            *input = self.input.or(*input);
        }
        class
    }

    fn read(&mut self, raw: &RawValue, levels: u8) {
        let text = raw.get();
        if let Some(message) = as_string(raw) {
            self.add_message(message);
            return;
        }
        if text.starts_with('[') {
            if let Ok(items) = serde_json::from_str::<Vec<&RawValue>>(text)
                && let Some(first) = items.first()
                && let Some(levels) = levels.checked_sub(1)
            {
                self.read(first, levels);
            }
            return;
        }
        let Ok(level) = serde_json::from_str::<Level<'_>>(text) else {
            return;
        };
        for code in [level.code, level.kind, level.status].into_iter().flatten() {
            if let Ok(number) = code.get().parse::<u16>() {
                if (400..600).contains(&number) {
                    self.status = Some(number);
                }
            } else if let Some(code) = as_string(code) {
                self.codes.push(code);
            }
        }
        self.limit = self.limit.or_else(|| as_tokens(level.n_ctx));
        self.input = self.input.or_else(|| as_tokens(level.n_prompt_tokens));
        if let Some(message) = level.message {
            self.read_nested(message, levels);
        }
        for inner in [level.error, level.errors, level.detail].into_iter().flatten() {
            self.read_nested(inner, levels);
        }
        // OpenRouter: what the provider behind it really said.
        if let Some(metadata) = level.metadata
            && let Ok(metadata) = serde_json::from_str::<Metadata<'_>>(metadata.get())
            && let Some(raw) = metadata.raw
        {
            self.add_message(as_string(raw).unwrap_or_else(|| raw.get().to_owned()));
        }
    }

    fn read_nested(&mut self, raw: &RawValue, levels: u8) {
        if let Some(levels) = levels.checked_sub(1) {
            self.read(raw, levels);
        }
    }

    fn add_message(&mut self, text: String) {
        match &mut self.message {
            Some(message) if !message.contains(&text) => {
                message.push('\n');
                message.push_str(&text);
            }
            Some(_) => {}
            None => self.message = Some(text),
        }
    }
}

fn as_string(raw: &RawValue) -> Option<String> {
    serde_json::from_str(raw.get()).ok()
}

fn as_tokens(raw: Option<&RawValue>) -> Option<Tokens> {
    raw?.get().parse().ok().map(Tokens)
}

//! Compaction by a service, as plain data (seed 000, "Summary generation"; spec "Compaction core", 11.1 and 12).
//!
//! A service may write the summary ([`SummarizeRequest`]), or turn the history into items that only its provider can
//! read ([`RemoteHistory`]). The second never stands alone: a text summary goes with it, so that every other model can
//! go on. How services are spoken to is the business of whoever runs requests.

use foldline_session_model::model_call::{InputBlock, LlmRequest, MessageContent, Origin, RawJson};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The key of a [`RemoteHistory`] below `preserveData`.
pub const PRESERVE_KEY: &str = "openaiRemoteCompaction";

/// What a remote summariser is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SummarizeRequest {
    /// The system text.
    pub system_prompt: String,
    /// Transcript and instructions.
    pub prompt: String,
}

impl SummarizeRequest {
    /// The same question as a request to a model.
    pub fn of(request: &LlmRequest<'_>) -> Self {
        let texts = request
            .messages
            .iter()
            .flat_map(|message| match &message.content {
                MessageContent::User { blocks } => blocks.as_slice(),
                _ => &[],
            });
        let prompt: Vec<&str> = texts
            .filter_map(|block| match block {
                InputBlock::Text(text) => Some(&**text),
                InputBlock::Image(_) => None,
            })
            .collect();
        Self {
            system_prompt: request.system.join("\n\n"),
            prompt: prompt.join("\n"),
        }
    }
}

/// The history that a provider compacted itself, and who it is for. Opaque items go back to their own provider and
/// model, byte for byte, or not at all (R15, FB-112).
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RemoteHistory {
    /// The provider, the only one that can read it.
    pub provider: String,
    /// The API that it came through; older entries do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api: Option<String>,
    /// The model; older entries do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The items that stand for the history.
    pub replacement_history: Vec<Box<RawValue>>,
    /// The opaque one among them.
    pub compaction_item: Box<RawValue>,
}

#[derive(Deserialize)]
struct Data {
    #[serde(rename = "openaiRemoteCompaction")]
    remote: Option<RemoteHistory>,
}

impl RemoteHistory {
    /// What a model's provider returned; `compaction` is the position of the opaque item. `None` without one.
    pub fn new(origin: &Origin, items: &[RawJson<'_>], compaction: usize) -> Option<Self> {
        let compaction_item = items.get(compaction)?.raw().to_owned();
        Some(Self {
            provider: origin.provider.clone(),
            api: Some(origin.api.name().to_owned()),
            model: Some(origin.model.clone()),
            replacement_history: items.iter().map(|item| item.raw().to_owned()).collect(),
            compaction_item,
        })
    }

    /// Reads `preserveData` of an entry; `None` if it holds no such history in a usable form.
    pub fn read(preserve_data: &str) -> Option<Self> {
        let remote = serde_json::from_str::<Data>(preserve_data).ok()?.remote?;
        (!remote.provider.is_empty() && is_compaction(&remote.compaction_item)).then_some(remote)
    }

    /// As `preserveData` of an entry.
    pub fn to_preserve_data(&self) -> String {
        let value = serde_json::to_string(self).unwrap_or_else(|_| "null".to_owned());
        format!("{{\"{PRESERVE_KEY}\":{value}}}")
    }

    /// Whether a model may get these items: the same provider, and the same API and model where they are recorded.
    pub fn is_for(&self, target: &Origin) -> bool {
        self.provider == target.provider
            && self.api.as_deref().is_none_or(|api| api == target.api.name())
            && self.model.as_deref().is_none_or(|model| model == target.model)
    }
}

/// The fields of an item that decide about it.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Shape {
    #[serde(rename = "type")]
    kind: String,
    encrypted_content: Option<String>,
}

fn is_compaction(item: &RawValue) -> bool {
    let item: Shape = serde_json::from_str(item.get()).unwrap_or_default();
    item.kind == "compaction" && item.encrypted_content.is_some() || item.kind == "compaction_summary"
}

#[cfg(test)]
mod tests {
    use foldline_session_model::model_call::Api;

    use super::*;

    const ITEM: &str = r#"{"type":"compaction", "encrypted_content":"b64=="}"#;

    fn target() -> Origin {
        Origin {
            api: Api::OpenAiResponses,
            provider: "openai".into(),
            model: "m".into(),
        }
    }

    fn history() -> RemoteHistory {
        let items = [r#"{"type":"message","role":"user"}"#, ITEM]
            .map(|item| RawJson::parse(item.to_owned()).unwrap());
        RemoteHistory::new(&target(), &items, 1).unwrap()
    }

    #[test]
    fn a_request_takes_the_form_of_the_service() {
        let mut request = LlmRequest::from_prompt("be brief", "the transcript");
        request.system.push("and exact".into());
        assert_eq!(
            SummarizeRequest::of(&request),
            SummarizeRequest {
                system_prompt: "be brief\n\nand exact".into(),
                prompt: "the transcript".into(),
            }
        );
    }

    #[test]
    fn a_history_is_stored_byte_for_byte() {
        let data = history().to_preserve_data();
        assert!(data.contains(ITEM), "{data}");
        let read = RemoteHistory::read(&data).unwrap();
        assert_eq!(read.to_preserve_data(), data);
        assert_eq!(read.compaction_item.get(), ITEM);
        assert!(RemoteHistory::new(&target(), &[], 0).is_none());
        for unusable in [
            r#"{"openaiRemoteCompaction":{"provider":"openai"}}"#,
            r#"{"openaiRemoteCompaction":{"provider":"openai","replacementHistory":[],"compactionItem":{"type":"compaction"}}}"#,
            r#"{"openaiRemoteCompaction":{"provider":"","replacementHistory":[],"compactionItem":{"type":"compaction_summary"}}}"#,
            "{}",
        ] {
            assert!(RemoteHistory::read(unusable).is_none(), "{unusable}");
        }
    }

    #[test]
    fn fb_112_a_history_goes_only_to_the_model_that_it_is_from() {
        assert!(history().is_for(&target()));
        let others = [
            Origin {
                provider: "p2".into(),
                ..target()
            },
            Origin {
                model: "m2".into(),
                ..target()
            },
            Origin {
                api: Api::OpenAiCompletions,
                ..target()
            },
        ];
        for other in others {
            assert!(!history().is_for(&other), "{other:?}");
        }
        // Older entries do not say which model.
        let old = RemoteHistory::read(
            r#"{"openaiRemoteCompaction":{"provider":"openai","replacementHistory":[],"compactionItem":{"type":"compaction_summary"}}}"#,
        );
        assert!(old.unwrap().is_for(&target()));
    }
}

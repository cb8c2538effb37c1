//! The commands of the RPC protocol: JSON lines (spec "Orchestrator and clients", 15). What carries them out is the
//! host's; the names, the arguments and which of them may overtake others are here.

use foldline_session_model::model_call::{Image, InputBlock};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;

use crate::event::{CompactionEnd, CompactionStart, Event};
use crate::queue::Delivery;
use crate::session::Prompt;

/// Something that a client asks for.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum Command {
    /// Says something to the model. Answered once it is accepted; what comes of it is told by events.
    Prompt {
        /// The text.
        message: String,
        /// Pictures beside it.
        #[serde(default)]
        images: Vec<Picture>,
        /// What becomes of it if a run is in progress; without it it is refused then.
        #[serde(default)]
        streaming_behavior: Option<StreamingBehavior>,
    },
    /// Says something before the next request of the run.
    Steer {
        /// The text.
        message: String,
        /// Pictures beside it.
        #[serde(default)]
        images: Vec<Picture>,
    },
    /// Says something when the run would end.
    FollowUp {
        /// The text.
        message: String,
        /// Pictures beside it.
        #[serde(default)]
        images: Vec<Picture>,
    },
    /// Cancels what is in progress. Answered when nothing is.
    Abort,
    /// Compacts the context.
    Compact {
        /// What a summary should pay attention to.
        #[serde(default)]
        custom_instructions: Option<String>,
        /// How lines are chosen, where they are deleted.
        #[serde(default)]
        parameters: Option<CompactParameters>,
    },
    /// Switches automatic compaction on or off, for this process.
    SetAutoCompaction {
        /// Whether it is on.
        enabled: bool,
    },
    /// Cancels the compaction in progress, if there is one.
    AbortCompaction,
    /// Switches retries on or off, for this process.
    SetAutoRetry {
        /// Whether they are on.
        enabled: bool,
    },
    /// Ends the wait before a retry, which does not happen then.
    AbortRetry,
    /// Takes back the messages that wait.
    ClearQueue,
    /// Holds back the messages that wait.
    PauseQueuedMessages,
    /// Releases them.
    ResumeQueuedMessages,
    /// Moves in the tree.
    NavigateTree {
        /// The entry to go to.
        target_id: String,
        /// How.
        #[serde(default)]
        options: NavigateTreeOptions,
    },
    /// Puts a label on an entry; without one it takes it away.
    SetLabel {
        /// The entry.
        entry_id: String,
        /// The label.
        #[serde(default)]
        label: Option<String>,
    },
    /// Asks for the tree of entries.
    GetTree {
        /// Whether the entries come as one list, each with the id of its parent, instead of nested: the nested form is
        /// as deep as the session is long, which not every JSON parser reads.
        #[serde(default)]
        flat: bool,
    },
    /// Asks for entries in the order of the file.
    GetEntries {
        /// Only those after this one.
        #[serde(default)]
        since: Option<String>,
    },
    /// Goes on in a new session that ends before a message of the user.
    Fork {
        /// The message.
        entry_id: String,
    },
    /// Goes on in a copy of the session's path.
    Clone,
    /// Asks for the messages that a fork may begin at.
    GetForkMessages,
    /// Writes a handoff document and goes on in a new session that begins with it.
    Handoff {
        /// What the document should look at above all.
        #[serde(default)]
        custom_instructions: Option<String>,
    },
    /// Begins a new session.
    NewSession {
        /// The session that it belongs to.
        #[serde(default)]
        parent_session: Option<String>,
    },
    /// Goes on with another session.
    SwitchSession {
        /// Its file.
        session_path: String,
    },
    /// Asks how things stand.
    GetState,
    /// Asks what the session holds and what it cost.
    GetSessionStats,
    /// Asks for the messages of the context.
    GetMessages,
    /// Asks for the text of the newest answer.
    GetLastAssistantText,
    /// Names the session.
    SetSessionName {
        /// The name.
        name: String,
    },
}

/// The names of the commands.
pub const COMMANDS: [&str; 27] = [
    "prompt",
    "steer",
    "follow_up",
    "abort",
    "compact",
    "set_auto_compaction",
    "abort_compaction",
    "set_auto_retry",
    "abort_retry",
    "clear_queue",
    "pause_queued_messages",
    "resume_queued_messages",
    "navigate_tree",
    "set_label",
    "get_tree",
    "get_entries",
    "fork",
    "clone",
    "get_fork_messages",
    "handoff",
    "new_session",
    "switch_session",
    "get_state",
    "get_session_stats",
    "get_messages",
    "get_last_assistant_text",
    "set_session_name",
];

/// A picture.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Picture {
    /// For example `image/png`.
    pub mime_type: String,
    /// The bytes in base64.
    pub data: String,
}

/// What becomes of a prompt while a run is in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum StreamingBehavior {
    /// It is delivered before the next request.
    Steer,
    /// It is delivered when the run would end.
    FollowUp,
}

impl From<StreamingBehavior> for Delivery {
    fn from(behavior: StreamingBehavior) -> Self {
        match behavior {
            StreamingBehavior::Steer => Self::Steer,
            StreamingBehavior::FollowUp => Self::FollowUp,
        }
    }
}

/// How lines are chosen, where they are deleted. What is left out is as the settings say.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
pub struct CompactParameters {
    /// The share of the lines that stays, above 0 and below 1.
    #[serde(default)]
    pub compression_ratio: Option<f64>,
    /// How many of the newest messages stay as messages.
    #[serde(default)]
    pub preserve_recent: Option<f64>,
    /// What the lines that stay are about.
    #[serde(default)]
    pub query: Option<String>,
}

/// How a move in the tree is made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct NavigateTreeOptions {
    /// Whether what is left is summed up.
    pub summarize: bool,
    /// What the summary should look at above all.
    pub custom_instructions: Option<String>,
    /// Whether these instructions stand in place of the usual ones.
    pub replace_instructions: bool,
    /// A label for the summary, or for the place.
    pub label: Option<String>,
}

/// Whether a command waits for those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lane {
    /// It does: ordinary commands are carried out one after the other.
    Ordinary,
    /// It does not: it steers what is in progress.
    Control,
}

impl Command {
    /// Whether it waits for the commands before it.
    pub const fn lane(&self) -> Lane {
        match self {
            Self::Abort
            | Self::AbortCompaction
            | Self::AbortRetry
            | Self::PauseQueuedMessages
            | Self::ResumeQueuedMessages
            | Self::ClearQueue => Lane::Control,
            _ => Lane::Ordinary,
        }
    }
}

/// A text with pictures.
pub fn prompt(message: String, images: Vec<Picture>) -> Prompt {
    let mut prompt = Prompt::text(message);
    prompt.blocks.extend(images.into_iter().map(|picture| {
        InputBlock::Image(Image {
            mime_type: picture.mime_type.into(),
            data: picture.data.into(),
        })
    }));
    prompt
}

/// A line that was read: a command, or why it is none.
#[derive(Debug)]
pub struct Request {
    /// The client's name for it, as it was written; it comes back with the answer.
    pub id: Option<Box<RawValue>>,
    /// The name of the command, or `parse`.
    pub name: String,
    /// The command, or what is wrong.
    pub command: Result<Command, String>,
}

impl Request {
    /// Reads a line.
    pub fn parse(line: &[u8]) -> Self {
        #[derive(Deserialize)]
        struct Envelope {
            #[serde(default)]
            id: Option<Box<RawValue>>,
            r#type: Option<String>,
        }
        let bad = |error: serde_json::Error| Self {
            id: None,
            name: "parse".to_owned(),
            command: Err(format!("Failed to parse command: {error}")),
        };
        let envelope: Envelope = match serde_json::from_slice(line) {
            Ok(envelope) => envelope,
            Err(error) => return bad(error),
        };
        let name = envelope.r#type.unwrap_or_default();
        let command = if COMMANDS.contains(&name.as_str()) {
            serde_json::from_slice(line).map_err(|error| error.to_string())
        } else {
            Err(format!("Unknown command: {name}"))
        };
        Self {
            id: envelope.id,
            name,
            command,
        }
    }
}

/// The answer to a command: one line.
#[derive(Debug, Serialize)]
pub struct Response<'r> {
    /// The id of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<&'r RawValue>,
    /// Always `response`.
    pub r#type: &'static str,
    /// The command.
    pub command: &'r str,
    /// Whether it was done.
    pub success: bool,
    /// What it gave.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<&'r RawValue>,
    /// Why it was not done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<&'r str>,
}

/// The lines that tell an event: it, and after it the same under the name that older clients listen for, if it has one
/// (spec "Orchestrator and clients", 10.3).
pub fn event_lines(event: &Event) -> Vec<String> {
    #[derive(Serialize)]
    struct Renamed<'e> {
        r#type: &'e str,
        #[serde(flatten)]
        fields: Fields<'e>,
    }
    #[derive(Serialize)]
    #[serde(untagged)]
    enum Fields<'e> {
        Start(&'e CompactionStart),
        End(&'e CompactionEnd),
    }
    let fields = match event {
        Event::CompactionStart(start) => Some(Fields::Start(start)),
        Event::CompactionEnd(end) => Some(Fields::End(end)),
        _ => None,
    };
    let alias = event.alias().zip(fields).and_then(|(name, fields)| {
        let renamed = Renamed { r#type: name, fields };
        serde_json::to_string(&renamed).ok()
    });
    serde_json::to_string(event)
        .ok()
        .into_iter()
        .chain(alias)
        .collect()
}

/// The schema of the lines that a client writes and of the answers to them, as JSON.
pub fn schema() -> String {
    let settings = SchemaSettings::draft2020_12().with(|s| s.inline_subschemas = true);
    let mut generator = settings.into_generator();
    let command = generator.subschema_for::<Command>().to_value();
    let id = json!({"description": "Comes back with the answer."});
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Lines of `foldline rpc`",
        "description": "A client writes requests, one a line; each gets one response. Between them stand events.",
        "oneOf": [
            {"$ref": "#/$defs/request"},
            {"$ref": "#/$defs/response"},
            {"$ref": "#/$defs/event"},
        ],
        "$defs": {
            "request": {"allOf": [{"type": "object", "properties": {"id": id}}, command]},
            "response": {
                "type": "object",
                "properties": {
                    "id": id,
                    "type": {"const": "response"},
                    "command": {"type": "string", "description": "The command, or `parse`."},
                    "success": {"type": "boolean"},
                    "data": {"description": "What the command gave, if it was done and gives something."},
                    "error": {"type": "string", "description": "Why it was not done."},
                },
                "required": ["type", "command", "success"],
            },
            "event": {
                "type": "object",
                "description": "Something that happened in the session; it has no id.",
                "properties": {"type": {"type": "string", "not": {"const": "response"}}},
                "required": ["type"],
            },
        },
    });
    format!("{schema:#}\n")
}

#[cfg(test)]
mod tests;

//! Whose session is it? The first records tell, never the file's name.

use std::borrow::Cow;

use super::Agent;
use crate::json::{Raw, json_object};
use crate::log::lines;

/// How many rows are looked at. Both agents show what they are in the first few; a file may begin with damage.
const ROWS: usize = 64;

json_object! {
    struct Probe {
        "type" => kind: Cow<'a, str>,
        "version" => version: Raw<'a>,
        "id" => id: Cow<'a, str>,
        "payload" => payload: Raw<'a>,
        "sessionId" => session_id: Cow<'a, str>,
        "uuid" => uuid: Cow<'a, str>,
        "message" => message: Raw<'a>,
        "snapshot" => snapshot: Raw<'a>,
        "leafUuid" => leaf_uuid: Cow<'a, str>,
    }
}

/// The agent that wrote these bytes; `None` for sessions of this format and for everything else.
pub fn detect(bytes: &[u8]) -> Option<Agent> {
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    lines(bytes)
        .map(|span| bytes.get(span).unwrap_or_default().trim_ascii())
        .filter(|line| !line.is_empty())
        .take(ROWS)
        .filter_map(|line| Probe::decode(line).ok())
        .find_map(|row| match sign(&row) {
            Sign::Of(agent) => Some(Some(agent)),
            Sign::Session => Some(None),
            Sign::None => None,
        })
        .flatten()
}

/// What one row says about its file.
enum Sign {
    Of(Agent),
    /// A header or an entry of a session of this format.
    Session,
    None,
}

fn sign(row: &Probe<'_>) -> Sign {
    let Some(kind) = row.kind.as_deref() else {
        return Sign::None;
    };
    match kind {
        "session" if row.id.is_some() => Sign::Session,
        "session_meta" | "response_item" | "turn_context" | "event_msg" | "compacted"
            if row.payload.is_some() =>
        {
            Sign::Of(Agent::Codex)
        }
        "user" | "assistant" if row.message.is_some() && (row.uuid.is_some() || row.session_id.is_some()) => {
            Sign::Of(Agent::ClaudeCode)
        }
        "system" | "progress" | "attachment" if row.uuid.is_some() && row.session_id.is_some() => {
            Sign::Of(Agent::ClaudeCode)
        }
        "queue-operation" if row.session_id.is_some() => Sign::Of(Agent::ClaudeCode),
        "file-history-snapshot" if row.snapshot.is_some() => Sign::Of(Agent::ClaudeCode),
        "summary" if row.leaf_uuid.is_some() => Sign::Of(Agent::ClaudeCode),
        _ => Sign::None,
    }
}

//! The header: the first record of a session.

use std::borrow::Cow;

use crate::json::{DecodeError, Raw, json_object};

/// The newest version that this crate reads.
pub(crate) const NEWEST_VERSION: u8 = 5;
/// The version that this crate writes (D1).
pub(crate) const WRITTEN_VERSION: i64 = 3;

/// What a session says of itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Header {
    /// The session's id.
    pub id: String,
    /// The version of the file as it was read.
    pub version: Version,
    /// When the session began, as it stands in the file.
    pub timestamp: String,
    /// The working folder; empty in very old files.
    pub cwd: String,
    /// The session it came from: a path or an id, never a reliable key.
    pub parent_session: Option<String>,
    /// The title, with the records that change it applied.
    pub title: Option<String>,
    /// Who set the title: `auto` or `user`.
    pub title_source: Option<String>,
    /// The model at the start, of version 1 files.
    pub initial_model: Option<(String, String)>,
    /// The thinking level at the start, of version 1 files.
    pub initial_thinking_level: Option<String>,
    /// Whether the session belongs to a workflow and not to a person.
    pub internal: bool,
}

/// The version of a session file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Version {
    /// A version that is read and, after migration, written.
    Known(u8),
    /// A newer version, or no whole number: read as well as possible, never written.
    #[default]
    Foreign,
}

impl Version {
    /// Whether the version has patch records.
    pub(crate) const fn has_patches(self) -> bool {
        matches!(self, Self::Known(4..))
    }
}

json_object! {
    struct RawHeader {
        "type" => kind: Cow<'a, str>,
        "version" => version: Raw<'a>,
        "id" => id: Cow<'a, str>,
        "timestamp" => timestamp: Cow<'a, str>,
        "cwd" => cwd: Cow<'a, str>,
        "parentSession" => parent_session: Cow<'a, str>,
        "title" => title: Cow<'a, str>,
        "titleSource" => title_source: Cow<'a, str>,
        "provider" => provider: Cow<'a, str>,
        "modelId" => model_id: Cow<'a, str>,
        "thinkingLevel" => thinking_level: Cow<'a, str>,
        "internal" => internal: bool,
        "workflow" => workflow: RawWorkflow<'a>,
    }
}

json_object! {
    struct RawWorkflow {
        "runId" => run_id: Cow<'a, str>,
        "stageId" => stage_id: Cow<'a, str>,
        "stageName" => stage_name: Cow<'a, str>,
    }
}

/// Reads a header. `Ok(None)`: an object, but none with a string id.
pub(crate) fn parse(line: &[u8]) -> Result<Option<Header>, DecodeError> {
    let raw = RawHeader::decode(line)?;
    let Some(id) = raw.id else { return Ok(None) };
    let version = version(raw.version.as_deref().map(serde_json::value::RawValue::get));
    let first = version == Version::Known(1);
    let text = |t: Option<Cow<'_, str>>| t.map(Cow::into_owned);
    let workflow = raw.workflow.as_ref().is_some_and(|w| {
        [&w.run_id, &w.stage_id, &w.stage_name]
            .iter()
            .all(|t| t.as_deref().is_some_and(|t| !t.trim().is_empty()))
    });
    Ok(Some(Header {
        id: id.into_owned(),
        version,
        timestamp: text(raw.timestamp).unwrap_or_default(),
        cwd: text(raw.cwd).unwrap_or_default(),
        parent_session: text(raw.parent_session),
        title: text(raw.title).filter(|t| !t.is_empty()),
        title_source: text(raw.title_source),
        initial_model: raw
            .provider
            .zip(raw.model_id)
            .filter(|_| first)
            .map(|(p, m)| (p.into_owned(), m.into_owned())),
        initial_thinking_level: text(raw.thinking_level).filter(|_| first),
        internal: raw.internal == Some(true) && workflow,
    }))
}

/// Absent and anything up to 1 is version 1; a numeric string counts as its number (spec, 12 row 13).
fn version(json: Option<&str>) -> Version {
    let Some(json) = json else {
        return Version::Known(1);
    };
    let number = json.trim_matches('"').parse::<f64>().ok();
    match number {
        _ if json == "null" => Version::Known(1),
        Some(n) if n <= 1.0 => Version::Known(1),
        Some(n) if n.fract() == 0.0 => {
            let n = u8::try_from(crate::entry::decode::integer(n)).unwrap_or(u8::MAX);
            if n <= NEWEST_VERSION {
                Version::Known(n)
            } else {
                Version::Foreign
            }
        }
        _ => Version::Foreign,
    }
}

json_object! {
    /// The title slot of oh-my-pi: the first line of a file, before the header, 256 bytes.
    struct TitleSlot {
        "type" => kind: Cow<'a, str>,
        "v" => v: f64,
        "title" => title: Cow<'a, str>,
        "source" => source: Cow<'a, str>,
        "updatedAt" => updated_at: Cow<'a, str>,
        "pad" => pad: Cow<'a, str>,
    }
}

/// A title that a slot sets: the title, if any, and who set it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Title {
    pub(crate) title: Option<String>,
    pub(crate) source: Option<String>,
}

/// Reads a title slot; `None` if its shape is wrong (spec, 1.3).
pub(crate) fn title_slot(line: &[u8]) -> Option<Title> {
    let slot = TitleSlot::decode(line).ok()?;
    if slot.v.map(crate::entry::decode::integer) != Some(1) || slot.updated_at.is_none() || slot.pad.is_none()
    {
        return None;
    }
    let source = slot.source.map(Cow::into_owned);
    if source.as_deref().is_some_and(|s| s != "auto" && s != "user") {
        return None;
    }
    let title = slot.title?.into_owned();
    Some(Title {
        title: (!title.is_empty()).then_some(title),
        source,
    })
}

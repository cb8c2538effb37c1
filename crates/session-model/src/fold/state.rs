//! What holds at a leaf besides the messages: model, thinking level, mode, tier, tools (spec, 7.1).
//!
//! Our compactions carry it in `details.state`, so that a resume that reads only the end of a file knows it. The form
//! is `{"models":[{"role":"default","provider":…,"model":…}],"thinkingLevel":…,"serviceTier":…,"mode":…,
//! "modeData":…,"selectedTools":[…]}`; what no entry sets is `null` or absent.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::Profile;
use crate::EntryIx;
use crate::entry::{EntryBody, EntryKind, ModelChange};
use crate::json::{Field, Own, Raw, json_object, write_string};
use crate::log::{Extent, Parent, SessionLog};
use crate::message::Message;

/// The state at a leaf.
#[derive(Clone, Debug, Default)]
pub struct State<'l> {
    /// The thinking level; `None` if no entry sets one.
    pub thinking_level: Option<Cow<'l, str>>,
    /// The models by role; the main one has the role `default`.
    pub models: BTreeMap<Cow<'l, str>, ModelRef<'l>>,
    /// The service tier as written.
    pub service_tier: Option<Raw<'l>>,
    /// The mode; `None` if no entry sets one.
    pub mode: Option<Cow<'l, str>>,
    /// The mode's own data.
    pub mode_data: Option<Raw<'l>>,
    /// The selected tools of tool servers; `None` if no entry selects any.
    pub selected_tools: Option<Vec<Cow<'l, str>>>,
    /// Whether what is `None`, or a role that is missing, is so in the whole session.
    pub completeness: Completeness,
}

/// Whether a state takes everything into account that sets it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Completeness {
    /// It does: what is `None` was never set.
    #[default]
    Complete,
    /// Only the end of the file was read, and no compaction in it carries the state. What is set is right; what is
    /// `None` is unknown, and a scan of the file would tell.
    Partial,
}

/// A model by provider and name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelRef<'l> {
    /// The provider.
    pub provider: Cow<'l, str>,
    /// The model.
    pub model: Cow<'l, str>,
}

impl<'l> State<'l> {
    /// The model of the default role.
    pub fn model(&self) -> Option<&ModelRef<'l>> {
        self.models.get("default")
    }

    /// The state as the JSON that a compaction carries in `details.state`. A partial state gives `None`: a
    /// compaction must not turn what is unknown into what was never set.
    pub fn to_details(&self) -> Option<String> {
        if self.completeness == Completeness::Partial {
            return None;
        }
        let mut out = String::from("{\"models\":[");
        for (i, (role, model)) in self.models.iter().enumerate() {
            out.push_str(if i == 0 { "{\"role\":" } else { ",{\"role\":" });
            write_string(&mut out, role);
            out.push_str(",\"provider\":");
            write_string(&mut out, &model.provider);
            out.push_str(",\"model\":");
            write_string(&mut out, &model.model);
            out.push('}');
        }
        out.push(']');
        let mut text = |key: &str, value: Option<&str>| {
            out.push_str(key);
            match value {
                Some(value) => write_string(&mut out, value),
                None => out.push_str("null"),
            }
        };
        text(",\"thinkingLevel\":", self.thinking_level.as_deref());
        text(",\"mode\":", self.mode.as_deref());
        for (key, raw) in [
            (",\"serviceTier\":", &self.service_tier),
            (",\"modeData\":", &self.mode_data),
        ] {
            out.push_str(key);
            out.push_str(raw.as_deref().map_or("null", serde_json::value::RawValue::get));
        }
        out.push_str(",\"selectedTools\":");
        match &self.selected_tools {
            None => out.push_str("null"),
            Some(tools) => {
                out.push('[');
                for (i, tool) in tools.iter().enumerate() {
                    if i > 0 {
                        out.push(',');
                    }
                    write_string(&mut out, tool);
                }
                out.push(']');
            }
        }
        out.push('}');
        Some(out)
    }
}

json_object! {
    struct Details {
        "state" => state: RawState<'a>,
    }
}

json_object! {
    struct RawState {
        "models" => models: Vec<RawModel<'a>>,
        "thinkingLevel" => thinking_level: Cow<'a, str>,
        "serviceTier" => service_tier: Raw<'a>,
        "mode" => mode: Cow<'a, str>,
        "modeData" => mode_data: Raw<'a>,
        "selectedTools" => selected_tools: Vec<Cow<'a, str>>,
    }
}

json_object! {
    struct RawModel {
        "role" => role: Cow<'a, str>,
        "provider" => provider: Cow<'a, str>,
        "model" => model: Cow<'a, str>,
    }
}

/// The state that a compaction of ours carries.
fn carried(log: &SessionLog, ix: EntryIx) -> Option<RawState<'_>> {
    memchr::memmem::find(log.raw_line(ix), b"\"state\"")?;
    let EntryBody::Compaction(compaction) = log.entry(ix).ok()?.body else {
        return None;
    };
    let state = match compaction.details? {
        Cow::Borrowed(raw) => Details::lenient(raw)?.state?,
        Cow::Owned(raw) => Details::lenient(&raw)?.state?.own(),
    };
    // Anything may call its data `state`; ours lists the models.
    state.models.is_some().then_some(state)
}

/// Collects the state from the whole path, newest first, so that only what counts is decoded.
pub(super) fn state<'l>(log: &'l SessionLog, path: &[EntryIx], profile: Profile) -> State<'l> {
    let mut state = State::default();
    let sticky = profile == Profile::Gajae;
    // With sticky models an explicit choice anywhere on the path silences the assistant messages after it; those
    // before it are overridden by it. So messages only count when there is none.
    let mut from_message = None;
    let mut found = Found::default();
    let mut reached_root = true;
    for &ix in path.iter().rev() {
        match log.kind(ix) {
            EntryKind::Message if from_message.is_none() && !found.default_model => {
                from_message = answered_by(log, ix);
                if from_message.is_some() && !sticky {
                    found.default_model = true;
                }
            }
            EntryKind::ModelChange
            | EntryKind::ThinkingLevelChange
            | EntryKind::ServiceTierChange
            | EntryKind::ModeChange
            | EntryKind::McpToolSelection => {
                if let Ok(entry) = log.entry(ix) {
                    found.change(entry.body, &mut state, profile);
                }
            }
            EntryKind::Compaction => {
                if let Some(carried) = carried(log, ix) {
                    found.carried(carried, &mut state);
                    reached_root = false;
                    break;
                }
            }
            _ => {}
        }
    }
    let begins_before = path
        .first()
        .is_some_and(|first| log.parent(*first) == Parent::Missing && log.extent() != Extent::Whole);
    if reached_root && begins_before {
        state.completeness = Completeness::Partial;
        if sticky && !found.default_model {
            // An explicit choice before the part that was read would silence the message.
            from_message = None;
        }
    }
    let header = log.header();
    if let Some(model) = from_message {
        state.models.entry(Cow::Borrowed("default")).or_insert(model);
    }
    if let Some((provider, model)) = &header.initial_model {
        let model = ModelRef {
            provider: provider.as_str().into(),
            model: model.as_str().into(),
        };
        state.models.entry(Cow::Borrowed("default")).or_insert(model);
    }
    if state.thinking_level.is_none() {
        state.thinking_level = header.initial_thinking_level.as_deref().map(Cow::Borrowed);
    }
    state
}

/// What the walk from the leaf has met already.
#[derive(Default)]
struct Found {
    default_model: bool,
    thinking: bool,
    tier: bool,
    mode: bool,
}

impl Found {
    /// Fills in what no entry after the compaction sets.
    fn carried<'l>(&mut self, carried: RawState<'l>, state: &mut State<'l>) {
        if !self.thinking {
            state.thinking_level = carried.thinking_level;
        }
        if !self.tier {
            state.service_tier = carried.service_tier;
        }
        if !self.mode {
            state.mode = carried.mode;
            state.mode_data = carried.mode_data;
        }
        if state.selected_tools.is_none() {
            state.selected_tools = carried.selected_tools;
        }
        for raw in carried.models.unwrap_or_default() {
            let (Some(role), Some(provider), Some(model)) = (raw.role, raw.provider, raw.model) else {
                continue;
            };
            if role != "default" || !self.default_model {
                state.models.entry(role).or_insert(ModelRef { provider, model });
            }
        }
    }

    fn change<'l>(&mut self, body: EntryBody<'l>, state: &mut State<'l>, profile: Profile) {
        match body {
            EntryBody::ThinkingLevelChange(change) if !self.thinking => {
                self.thinking = true;
                state.thinking_level = Some(change.level.unwrap_or(Cow::Borrowed("off")));
            }
            EntryBody::ServiceTierChange(change) if !self.tier => {
                self.tier = true;
                state.service_tier = change.tier;
            }
            EntryBody::ModeChange(change) if !self.mode => {
                self.mode = true;
                state.mode = Some(change.mode);
                state.mode_data = change.data;
            }
            EntryBody::ToolSelection(selection) if state.selected_tools.is_none() => {
                state.selected_tools = Some(selection.names);
            }
            EntryBody::ModelChange(change) => {
                let role = change.role.clone().unwrap_or(Cow::Borrowed("default"));
                if role == "default" && self.default_model || state.models.contains_key(&role) {
                    return;
                }
                if let Some(model) = chosen(change, profile) {
                    self.default_model |= role == "default";
                    state.models.insert(role, model);
                }
            }
            _ => {}
        }
    }
}

/// The model of a change, in whichever shape; gajae-code knows only the one with one field.
fn chosen(change: ModelChange<'_>, profile: Profile) -> Option<ModelRef<'_>> {
    if let (Some(provider), Some(model), true) = (change.provider, change.model_id, profile != Profile::Gajae)
    {
        return Some(ModelRef { provider, model });
    }
    let text = change.model?;
    match text {
        Cow::Borrowed(text) => text.split_once('/').map(|(p, m)| ModelRef {
            provider: Cow::Borrowed(p),
            model: Cow::Borrowed(m),
        }),
        Cow::Owned(text) => text.split_once('/').map(|(p, m)| ModelRef {
            provider: Cow::Owned(p.to_owned()),
            model: Cow::Owned(m.to_owned()),
        }),
    }
}

/// The model that wrote an assistant message.
fn answered_by(log: &SessionLog, ix: EntryIx) -> Option<ModelRef<'_>> {
    let line = log.raw_line(ix);
    memchr::memmem::find(line, b"assistant")?;
    match *log.message(ix)? {
        Message::Assistant(m) if !m.model.is_empty() || !m.provider.is_empty() => Some(ModelRef {
            provider: m.provider,
            model: m.model,
        }),
        _ => None,
    }
}

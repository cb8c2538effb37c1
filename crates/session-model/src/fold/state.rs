//! What holds at a leaf besides the messages: model, thinking level, mode, tier, tools (spec, 7.1).

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::Profile;
use crate::EntryIx;
use crate::entry::{EntryBody, EntryKind, ModelChange};
use crate::json::Raw;
use crate::log::SessionLog;
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
}

/// Collects the state from the whole path, newest first, so that only what counts is decoded.
pub(super) fn state<'l>(log: &'l SessionLog, path: &[EntryIx], profile: Profile) -> State<'l> {
    let mut state = State::default();
    let sticky = profile == Profile::Gajae;
    // With sticky models an explicit choice anywhere on the path silences the assistant messages after it; those
    // before it are overridden by it. So messages only count when there is none.
    let mut from_message = None;
    let mut found = Found::default();
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
            _ => {}
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

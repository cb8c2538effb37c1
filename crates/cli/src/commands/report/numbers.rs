//! What fills a session and its context, and what it cost.

use std::collections::BTreeMap;

use foldline_session_model::entry::{EntryBody, EntryKind};
use foldline_session_model::fold::{Context, PRUNE_TYPE, Profile};
use foldline_session_model::log::SessionLog;
use foldline_session_model::message::Message;
use foldline_session_model::model_call::Usage;
use foldline_session_model::tokens::{Heuristic, TokenCounter as _};

use crate::cost;

#[derive(Default)]
pub(super) struct Numbers {
    pub(super) turns: u64,
    pub(super) prunes: u64,
    /// Estimates, over every branch of the file.
    pub(super) all_tokens: u64,
    /// The estimate of what the model would see now.
    pub(super) context_tokens: u64,
    /// The largest first.
    pub(super) roles: Vec<Share>,
    pub(super) tools: Vec<Share>,
    pub(super) models: Vec<ModelUse>,
    pub(super) total: Use,
    /// Input of every request, in the order of the file.
    pub(super) requests: Vec<Input>,
}

/// How much of the tokens belongs to something.
#[derive(Clone, Debug, Default)]
pub(super) struct Share {
    pub(super) name: String,
    /// Messages, or calls of a tool.
    pub(super) count: u64,
    pub(super) errors: u64,
    pub(super) all: u64,
    pub(super) now: u64,
}

/// What a model was asked and answered.
pub(super) struct ModelUse {
    pub(super) name: String,
    pub(super) uses: Use,
}

/// What providers counted and charged.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Use {
    pub(super) requests: u64,
    pub(super) uncached: u64,
    pub(super) cache_read: u64,
    pub(super) cache_write: u64,
    pub(super) output: u64,
    pub(super) cost: Option<f64>,
}

/// The input of one request.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Input {
    pub(super) cache_read: u64,
    pub(super) cache_write: u64,
    pub(super) uncached: u64,
}

impl Use {
    fn add(&mut self, usage: &Usage, cost: Option<f64>) {
        self.requests += 1;
        self.uncached = self.uncached.saturating_add(usage.input.get());
        self.cache_read = self.cache_read.saturating_add(usage.cache_read.get());
        self.cache_write = self.cache_write.saturating_add(usage.cache_write.get());
        self.output = self.output.saturating_add(usage.output.get());
        cost::add(&mut self.cost, cost);
    }

    /// The share of the input that came from a cache, in percent; `None` without input.
    pub(super) fn cache_share(&self) -> Option<u64> {
        let input = self
            .uncached
            .saturating_add(self.cache_read)
            .saturating_add(self.cache_write);
        (input > 0)
            .then(|| u64::try_from(u128::from(self.cache_read) * 100 / u128::from(input)).unwrap_or(100))
    }
}

pub(super) fn collect(log: &SessionLog, context: &Context<'_>) -> Numbers {
    let mut numbers = Numbers::default();
    let mut roles: BTreeMap<String, Share> = BTreeMap::new();
    let mut tools: BTreeMap<String, Share> = BTreeMap::new();
    let mut models: BTreeMap<String, Use> = BTreeMap::new();
    for ix in log.entries() {
        if log.kind(ix) == EntryKind::Custom {
            let is_prune = matches!(
                log.entry(ix).map(|entry| entry.body),
                Ok(EntryBody::Custom(custom)) if custom.custom_type == PRUNE_TYPE
            );
            numbers.prunes += u64::from(is_prune);
            continue;
        }
        let Ok(Some(message)) = log.own_message(ix, Profile::Auto) else {
            continue;
        };
        let tokens = Heuristic.message(&message).get();
        numbers.all_tokens += tokens;
        let role = share(&mut roles, role_name(&message));
        role.count += 1;
        role.all += tokens;
        match &message {
            Message::User(m) if !m.synthetic => numbers.turns += 1,
            Message::Assistant(m) => {
                for call in m.content.tool_calls() {
                    share(&mut tools, &call.name).count += 1;
                }
                if let Some(usage) = &m.usage {
                    let name = if m.provider.is_empty() {
                        m.model.to_string()
                    } else {
                        format!("{}/{}", m.provider, m.model)
                    };
                    let cost = cost::of(m, usage);
                    models.entry(name).or_default().add(usage, cost);
                    numbers.total.add(usage, cost);
                    numbers.requests.push(Input {
                        cache_read: usage.cache_read.get(),
                        cache_write: usage.cache_write.get(),
                        uncached: usage.input.get(),
                    });
                }
            }
            Message::ToolResult(m) => {
                let tool = share(&mut tools, &m.tool_name);
                tool.all += tokens;
                tool.errors += u64::from(m.is_error);
            }
            _ => {}
        }
    }
    for message in context.messages() {
        let tokens = Heuristic.message(message).get();
        numbers.context_tokens += tokens;
        share(&mut roles, role_name(message)).now += tokens;
        if let Message::ToolResult(m) = message {
            share(&mut tools, &m.tool_name).now += tokens;
        }
    }
    numbers.roles = largest_first(roles);
    numbers.tools = largest_first(tools);
    numbers.models = models
        .into_iter()
        .map(|(name, uses)| ModelUse { name, uses })
        .collect();
    numbers
        .models
        .sort_by_key(|model| std::cmp::Reverse(model.uses.requests));
    numbers
}

fn share<'s>(shares: &'s mut BTreeMap<String, Share>, name: &str) -> &'s mut Share {
    shares.entry(name.to_owned()).or_insert_with(|| Share {
        name: name.to_owned(),
        ..Share::default()
    })
}

fn largest_first(shares: BTreeMap<String, Share>) -> Vec<Share> {
    let mut list: Vec<Share> = shares.into_values().collect();
    list.sort_by(|a, b| {
        b.all
            .max(b.now)
            .cmp(&a.all.max(a.now))
            .then_with(|| a.name.cmp(&b.name))
    });
    list
}

/// The role as people call it.
pub(super) fn role_name<'m>(message: &'m Message<'_>) -> &'m str {
    match message {
        Message::ToolResult(_) => "tool results",
        Message::BashExecution(_) | Message::PythonExecution(_) => "commands of the user",
        Message::CompactionSummary(_) | Message::VerbatimBoundary(_) => "compaction text",
        Message::BranchSummary(_) => "branch summary",
        Message::FileMention(_) => "mentioned files",
        Message::Custom(_) | Message::HookMessage(_) => "extensions",
        other => other.role(),
    }
}

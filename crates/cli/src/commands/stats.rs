//! `foldline stats`: what a session holds and what it cost.

use std::collections::BTreeMap;

use foldline_session_model::entry::{EntryBody, EntryKind};
use foldline_session_model::fold::Context;
use foldline_session_model::message::Message;
use foldline_session_model::model_call;
use foldline_session_model::tokens::{Heuristic, TokenCounter as _};
use foldline_session_model::tree::Leaf;
use foldline_session_store::DiskStore;
use serde::Serialize;

use crate::args;
use crate::cost;
use crate::error::{CommandError, Status};
use crate::output::{self, BOLD, DIM, Format, grouped};
use crate::session::{Damage, Session};

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    entries: usize,
    /// By role.
    messages: BTreeMap<String, Count>,
    turns: u64,
    tokens: Tokens,
    /// By tool, the largest first.
    by_tool: Vec<ToolRow>,
    compactions: Vec<CompactionRow>,
    usage: Usage,
}

/// All numbers are estimates of the whole file, every branch of it.
#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Tokens {
    all: u64,
    /// What the model would see now.
    context: u64,
}

#[derive(Default, Serialize)]
struct Count {
    count: u64,
    tokens: u64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolRow {
    tool: String,
    calls: u64,
    results: u64,
    errors: u64,
    tokens: u64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CompactionRow {
    entry_id: String,
    timestamp: String,
    strategy: &'static str,
    /// What was recorded: where a provider had counted the context, its number.
    tokens_before: u64,
    /// The estimate of the context before it, to be compared with the other numbers here.
    estimated_before: u64,
    summary_tokens: u64,
}

/// What providers counted and charged, summed over all answers of the file.
#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Usage {
    requests: u64,
    input: u64,
    output: u64,
    cache_read: u64,
    cache_write: u64,
    /// In US dollars, by the known prices where none was recorded; null if no price is known.
    cost: Option<f64>,
    /// Requests whose price nobody knows. They are not in the cost.
    unpriced_requests: u64,
    /// The share of input that came from a cache, in percent; null without input.
    cache_share: Option<u64>,
}

impl Usage {
    fn all_input(&self) -> u64 {
        self.input
            .saturating_add(self.cache_read)
            .saturating_add(self.cache_write)
    }

    fn add(&mut self, usage: &model_call::Usage, cost: Option<f64>) {
        self.requests += 1;
        self.input = self.input.saturating_add(usage.input.get());
        self.output = self.output.saturating_add(usage.output.get());
        self.cache_read = self.cache_read.saturating_add(usage.cache_read.get());
        self.cache_write = self.cache_write.saturating_add(usage.cache_write.get());
        cost::add(&mut self.cost, cost);
        self.unpriced_requests += u64::from(cost.is_none());
    }
}

pub(crate) fn run(args: &args::Stats, format: Format) -> Result<Status, CommandError> {
    let session = Session::open(&DiskStore::new(), &args.session, Damage::Warn)?;
    let context = session.context(&Leaf::Last)?;
    let mut document = collect(&session);
    document.tokens.context = estimate(&context);
    output::result(format, &document, || text(&document, &session));
    Ok(Status::Done)
}

fn estimate(context: &Context<'_>) -> u64 {
    context.messages().map(|m| Heuristic.message(m).get()).sum()
}

fn collect(session: &Session) -> Document {
    let log = &session.log;
    let mut document = Document {
        entries: log.len(),
        ..Document::default()
    };
    let mut tools: BTreeMap<String, ToolRow> = BTreeMap::new();
    for ix in log.entries() {
        if !matches!(
            log.kind(ix),
            EntryKind::Message | EntryKind::Compaction | EntryKind::CustomMessage
        ) {
            continue;
        }
        let Ok(entry) = log.entry(ix) else { continue };
        match entry.body {
            EntryBody::Message(message) => add_message(&mut document, &mut tools, &message),
            EntryBody::CustomMessage(m) => {
                let tokens = Heuristic.text(&mut m.content.texts()).get();
                add(&mut document, "custom", tokens);
            }
            EntryBody::Compaction(compaction) => {
                let summary_tokens = Heuristic.one(&compaction.summary).get();
                document.tokens.all += summary_tokens;
                document.compactions.push(CompactionRow {
                    entry_id: log.id(ix).to_owned(),
                    timestamp: entry.timestamp.into_owned(),
                    strategy: compaction.strategy.as_str(),
                    tokens_before: compaction.tokens_before.get(),
                    estimated_before: match log.parent_id(ix) {
                        Some(parent) => session
                            .context(&Leaf::Entry(parent.into()))
                            .map_or(0, |c| estimate(&c)),
                        None => 0,
                    },
                    summary_tokens,
                });
            }
            _ => {}
        }
    }
    document.by_tool = tools.into_values().collect();
    document
        .by_tool
        .sort_by(|a, b| b.tokens.cmp(&a.tokens).then_with(|| a.tool.cmp(&b.tool)));
    let usage = &mut document.usage;
    let input = usage.all_input();
    usage.cache_share = (input > 0)
        .then(|| u64::try_from(u128::from(usage.cache_read) * 100 / u128::from(input)).unwrap_or(100));
    if usage.requests == 0 {
        usage.cost = Some(0.0);
    }
    document
}

fn add(document: &mut Document, role: &str, tokens: u64) {
    let row = document.messages.entry(role.to_owned()).or_default();
    row.count += 1;
    row.tokens += tokens;
    document.tokens.all += tokens;
}

fn add_message(document: &mut Document, tools: &mut BTreeMap<String, ToolRow>, message: &Message<'_>) {
    let tokens = Heuristic.message(message).get();
    add(document, message.role(), tokens);
    document.turns += u64::from(matches!(message, Message::User(m) if !m.synthetic));
    let mut tool = |name: &str, change: &dyn Fn(&mut ToolRow)| {
        let row = tools.entry(name.to_owned()).or_insert_with(|| ToolRow {
            tool: name.to_owned(),
            calls: 0,
            results: 0,
            errors: 0,
            tokens: 0,
        });
        change(row);
    };
    match message {
        Message::Assistant(m) => {
            for call in m.content.tool_calls() {
                tool(&call.name, &|row| row.calls += 1);
            }
            if let Some(usage) = m.usage {
                document.usage.add(&usage, cost::of(m, &usage));
            }
        }
        Message::ToolResult(m) => tool(&m.tool_name, &|row| {
            row.results += 1;
            row.errors += u64::from(m.is_error);
            row.tokens += tokens;
        }),
        _ => {}
    }
}

fn text(document: &Document, session: &Session) -> String {
    let mut out = format!(
        "{BOLD}{}{BOLD:#}  {} entries, {} turns, about {} tokens in all, {} in the context\n",
        session.log.header().id,
        grouped(document.entries as u64),
        grouped(document.turns),
        grouped(document.tokens.all),
        grouped(document.tokens.context)
    );
    out.push_str(&format!(
        "\n{BOLD}{:<18}{:>10}{:>12}{BOLD:#}\n",
        "role", "messages", "tokens"
    ));
    for (role, row) in &document.messages {
        out.push_str(&format!(
            "{role:<18}{:>10}{:>12}\n",
            grouped(row.count),
            grouped(row.tokens)
        ));
    }
    if !document.by_tool.is_empty() {
        out.push_str(&format!(
            "\n{BOLD}{:<18}{:>10}{:>12}{:>9}{BOLD:#}\n",
            "tool", "calls", "tokens", "errors"
        ));
        for row in &document.by_tool {
            let (calls, tokens, errors) = (grouped(row.calls), grouped(row.tokens), grouped(row.errors));
            out.push_str(&format!("{:<18}{calls:>10}{tokens:>12}{errors:>9}\n", row.tool));
        }
    }
    for row in &document.compactions {
        out.push_str(&format!(
            "\ncompaction {DIM}{}{DIM:#} {}: about {} tokens before, {} in its text",
            row.entry_id,
            row.strategy,
            grouped(row.estimated_before),
            grouped(row.summary_tokens)
        ));
        if row.tokens_before != row.estimated_before {
            out.push_str(&format!(" (recorded: {} before)", grouped(row.tokens_before)));
        }
    }
    if !document.compactions.is_empty() {
        out.push('\n');
    }
    let usage = &document.usage;
    if usage.requests > 0 {
        let cached = usage.cache_share.map_or_else(String::new, |share| {
            format!(", {share} % of the input from a cache")
        });
        out.push_str(&format!(
            "\n{} requests: {} tokens in, {} out{cached}, {}\n",
            grouped(usage.requests),
            grouped(usage.all_input()),
            grouped(usage.output),
            cost::dollars(usage.cost)
        ));
        if usage.cost.is_some() && usage.unpriced_requests > 0 {
            out.push_str(&format!(
                "  without {} requests whose price is not known\n",
                grouped(usage.unpriced_requests)
            ));
        }
    }
    out
}

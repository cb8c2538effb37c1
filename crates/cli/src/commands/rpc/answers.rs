//! What a session holds, as the protocol tells it.

use foldline_compaction_core::accounting::ContextSize;
use foldline_session_model::entry::EntryKind;
use foldline_session_model::fold::{Context, Profile};
use foldline_session_model::log::SessionLog;
use foldline_session_model::message::Message;
use foldline_session_model::tokens::{Heuristic, TokenCounter as _};
use foldline_session_model::tree::Leaf;
use foldline_session_model::{EntryIx, Tokens};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use crate::cost;
use crate::view::{ContentJson, plain};

type Data = Result<Box<RawValue>, String>;

fn data(value: &impl Serialize) -> Data {
    to_raw_value(value).map_err(|e| e.to_string())
}

/// The line of an entry as JSON.
fn raw(log: &SessionLog, ix: EntryIx) -> Result<Box<RawValue>, String> {
    let line = String::from_utf8_lossy(log.raw_line(ix)).into_owned();
    RawValue::from_string(line).map_err(|e| format!("entry {}: {e}", log.id(ix)))
}

fn context(log: &SessionLog) -> Result<Context<'_>, String> {
    log.context(&Leaf::Last, Profile::Auto).map_err(|e| e.to_string())
}

/// The entries as the tree that they form. Written without recursion: a session is as deep as it is long.
pub(super) fn tree(log: &SessionLog) -> Data {
    enum Step {
        Open(EntryIx),
        Close,
    }
    let children = log.children();
    let labels = log.labels();
    let leaf = log.stands_at().map(|ix| log.id(ix));
    let mut out = String::from("{\"tree\":[");
    let mut steps: Vec<Step> = children.roots().iter().rev().map(|ix| Step::Open(*ix)).collect();
    while let Some(step) = steps.pop() {
        match step {
            Step::Open(ix) => {
                if out.ends_with('}') {
                    out.push(',');
                }
                out.push_str("{\"entry\":");
                out.push_str(raw(log, ix)?.get());
                if let Some(label) = labels.set_at(ix) {
                    out.push_str(",\"label\":");
                    out.push_str(data(&label.label)?.get());
                    if let Ok(set_by) = log.entry(label.set_by) {
                        out.push_str(",\"labelTimestamp\":");
                        out.push_str(data(&set_by.timestamp)?.get());
                    }
                }
                out.push_str(",\"children\":[");
                steps.push(Step::Close);
                steps.extend(children.of(ix).iter().rev().map(|child| Step::Open(*child)));
            }
            Step::Close => out.push_str("]}"),
        }
    }
    out.push_str("],\"leafId\":");
    out.push_str(data(&leaf)?.get());
    out.push('}');
    RawValue::from_string(out).map_err(|e| e.to_string())
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FlatTree<'l> {
    entries: Vec<FlatEntry<'l>>,
    leaf_id: Option<&'l str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FlatEntry<'l> {
    /// The entry above it in the tree; null for a root, also for one that names a parent which is not there.
    parent_id: Option<&'l str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<&'l str>,
    entry: Box<RawValue>,
}

/// The same tree as a list: each entry after its parent, children in order.
pub(super) fn flat_tree(log: &SessionLog) -> Data {
    let children = log.children();
    let labels = log.labels();
    let mut entries = Vec::with_capacity(log.len());
    let mut open: Vec<(EntryIx, Option<EntryIx>)> =
        children.roots().iter().rev().map(|ix| (*ix, None)).collect();
    while let Some((ix, parent)) = open.pop() {
        entries.push(FlatEntry {
            parent_id: parent.map(|parent| log.id(parent)),
            label: labels.of(ix),
            entry: raw(log, ix)?,
        });
        open.extend(children.of(ix).iter().rev().map(|child| (*child, Some(ix))));
    }
    data(&FlatTree {
        entries,
        leaf_id: log.stands_at().map(|ix| log.id(ix)),
    })
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Entries<'l> {
    entries: Vec<Box<RawValue>>,
    leaf_id: Option<&'l str>,
}

pub(super) fn entries(log: &SessionLog, since: Option<&str>) -> Data {
    let after = match since {
        None => None,
        Some(id) => Some(log.find(id).ok_or_else(|| format!("Entry not found: {id}"))?),
    };
    let entries = log
        .entries()
        .filter(|ix| after.is_none_or(|after| *ix > after))
        .map(|ix| raw(log, ix))
        .collect::<Result<_, _>>()?;
    data(&Entries {
        entries,
        leaf_id: log.stands_at().map(|ix| log.id(ix)),
    })
}

#[derive(Serialize)]
struct Messages<M> {
    messages: Vec<M>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct MessageRow<'m> {
    role: &'m str,
    entry_id: &'m str,
    tokens: u64,
    content: ContentJson<'m>,
}

/// The messages of the context.
pub(super) fn messages(log: &SessionLog) -> Data {
    let context = context(log)?;
    let messages = context.items.iter().map(|item| MessageRow {
        role: item.message.role(),
        entry_id: log.id(item.source),
        tokens: Heuristic.message(&item.message).get(),
        content: ContentJson(&item.message),
    });
    data(&Messages {
        messages: messages.collect(),
    })
}

#[derive(Serialize)]
struct Text {
    text: Option<String>,
}

pub(super) fn last_assistant_text(log: &SessionLog) -> Data {
    let context = context(log)?;
    let last = context
        .items
        .iter()
        .rev()
        .find(|item| matches!(item.message, Message::Assistant(_)));
    data(&Text {
        text: last.map(|item| plain(&item.message).into_owned()),
    })
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ForkMessage {
    entry_id: String,
    text: String,
}

/// What the user typed on the path to where the session stands.
pub(super) fn fork_messages(log: &SessionLog) -> Data {
    let path = log.stands_at().map(|ix| log.path(ix)).unwrap_or_default();
    let messages = path.into_iter().filter_map(|ix| {
        let (_, text) = typed(log, ix)?;
        Some(ForkMessage {
            entry_id: log.id(ix).to_owned(),
            text,
        })
    });
    data(&Messages {
        messages: messages.collect(),
    })
}

/// What the user typed in an entry, and where the session stood before it.
pub(super) fn typed(log: &SessionLog, ix: EntryIx) -> Option<(Option<EntryIx>, String)> {
    if log.kind(ix) != EntryKind::Message {
        return None;
    }
    let message = log.message(ix)?;
    matches!(*message, Message::User(_)).then(|| {
        let parent = log.parent_id(ix).and_then(|id| log.find(id));
        (
            parent.and_then(|parent| log.stands_for(parent)),
            plain(&message).into_owned(),
        )
    })
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Stats<'s> {
    session_file: &'s str,
    session_id: &'s str,
    user_messages: usize,
    assistant_messages: usize,
    tool_calls: usize,
    tool_results: usize,
    total_messages: usize,
    tokens: Sum,
    cost: f64,
    context_usage: ContextUsage,
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Sum {
    input: Tokens,
    output: Tokens,
    cache_read: Tokens,
    cache_write: Tokens,
    total: Tokens,
}

/// Unknown between a compaction and the next answer.
#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct ContextUsage {
    tokens: Option<u64>,
    percent: Option<f64>,
    context_window: Option<Tokens>,
}

/// Counts and costs of the path to where the session stands.
pub(super) fn stats(log: &SessionLog, file: &str, window: Option<Tokens>) -> Data {
    let mut stats = Stats {
        session_file: file,
        session_id: &log.header().id,
        ..Stats::default()
    };
    let mut cost = None;
    for ix in log.stands_at().map(|ix| log.path(ix)).unwrap_or_default() {
        let Some(message) = log.message(ix) else {
            continue;
        };
        stats.total_messages += 1;
        match &*message {
            Message::User(_) => stats.user_messages += 1,
            Message::ToolResult(_) => stats.tool_results += 1,
            Message::Assistant(message) => {
                stats.assistant_messages += 1;
                stats.tool_calls += message.content.tool_calls().count();
                if let Some(usage) = message.usage {
                    let sum = &mut stats.tokens;
                    sum.input += usage.input;
                    sum.output += usage.output;
                    sum.cache_read += usage.cache_read;
                    sum.cache_write += usage.cache_write;
                    cost::add(&mut cost, cost::of(message, &usage));
                }
            }
            _ => {}
        }
    }
    stats.cost = cost.unwrap_or(0.0);
    let sum = &mut stats.tokens;
    sum.total = sum.input + sum.output + sum.cache_read + sum.cache_write;
    let context = context(log)?;
    let answered =
        context.items.iter().enumerate().any(|(at, item)| {
            matches!(item.message, Message::Assistant(_)) && !context.kept_tail.contains(&at)
        });
    let tokens = (context.compaction.is_none() || answered).then(|| {
        ContextSize::of(&context, Tokens::ZERO, Tokens::ZERO, &Heuristic)
            .tokens
            .get()
    });
    stats.context_usage = ContextUsage {
        tokens,
        percent: tokens
            .zip(window.filter(|window| *window > Tokens::ZERO))
            .map(|(tokens, window)| tokens as f64 * 100.0 / window.get() as f64),
        context_window: window,
    };
    data(&stats)
}

//! Results that later ones make worthless, by the rules that pruning has for them. Only entries that speak of the same
//! files are decoded.

use std::borrow::Cow;

use aho_corasick::AhoCorasick;
use foldline_pruning::{Item, Masking, View, Why, stale};
use foldline_session_model::EntryIx;
use foldline_session_model::fold::{Standing, Standings};
use foldline_session_model::json;
use foldline_session_model::log::{Parent, SessionLog};
use foldline_session_model::message::{Message, ToolCall};

/// How far from its call a result stands at most, in entries.
const REACH: usize = 64;

/// The hits that are stale, and why. Hits that are not on the path are never stale.
pub(super) fn by_later_results(
    log: &SessionLog,
    standings: &Standings,
    hits: &[EntryIx],
) -> Vec<(EntryIx, &'static str)> {
    let on_path = |ix: EntryIx| standings.of(ix) != Standing::Elsewhere;
    let mut wanted: Vec<EntryIx> = Vec::new();
    let mut names: Vec<String> = Vec::new();
    for &hit in hits.iter().filter(|ix| on_path(**ix)) {
        let Some((asking, name)) = call_of(log, hit) else {
            continue;
        };
        wanted.extend([asking, hit]);
        names.extend(name);
    }
    let Some(&first) = wanted.iter().min() else {
        return Vec::new();
    };
    names.sort();
    names.dedup();
    let Ok(finder) = AhoCorasick::new(&names) else {
        return Vec::new();
    };
    for ix in log.entries().skip(first.index()).filter(|ix| on_path(*ix)) {
        let line = log.raw_line(ix);
        if names.is_empty() || !may_call(line) || !finder.is_match(line) {
            continue;
        }
        wanted.push(ix);
        let results = log.entries().skip(ix.index() + 1).take(REACH);
        wanted.extend(results.filter(|ix| on_path(*ix) && !may_call(log.raw_line(*ix))));
    }
    wanted.sort_unstable();
    wanted.dedup();
    let messages: Vec<(EntryIx, Box<Message<'_>>)> = wanted
        .into_iter()
        .filter_map(|ix| Some((ix, log.message(ix)?)))
        .collect();
    let items = messages.iter().map(|(ix, message)| Item {
        id: log.id(*ix),
        source: *ix,
        message,
        masking: Masking::None,
    });
    let view = View::new(&log.header().cwd, items);
    let found = stale(&view).into_iter().filter_map(|(at, why)| {
        let (ix, _) = messages.get(at)?;
        hits.contains(ix).then_some((*ix, name_of(why)?))
    });
    found.collect()
}

const fn name_of(why: Why) -> Option<&'static str> {
    match why {
        Why::Repeated => Some("repeated"),
        Why::FileChanged => Some("file_changed"),
        Why::Covered => Some("covered"),
        Why::Old => None,
    }
}

/// Whether a line can be a message that calls tools.
fn may_call(line: &[u8]) -> bool {
    memchr::memmem::find(line, b"toolCall\"").is_some()
}

/// The entry with the call that a result answers, and the name of the file that the call is about.
fn call_of(log: &SessionLog, result: EntryIx) -> Option<(EntryIx, Option<String>)> {
    let message = log.message(result)?;
    let Message::ToolResult(answer) = &*message else {
        return None;
    };
    let mut at = result;
    for _ in 0..REACH {
        let Parent::Entry(parent) = log.parent(at) else {
            return None;
        };
        at = parent;
        let Some(message) = log.message(at) else { continue };
        let Message::Assistant(message) = &*message else {
            continue;
        };
        let call = message
            .content
            .tool_calls()
            .find(|call| call.id == answer.tool_call_id);
        if let Some(call) = call {
            return Some((at, file_name(call)));
        }
    }
    None
}

/// The last part of the path that a call names, without a selector of lines behind it.
fn file_name(call: &ToolCall<'_>) -> Option<String> {
    let members = json::object(call.arguments.as_deref()?)?;
    let path: Cow<'_, str> = ["path", "file_path", "filePath"].into_iter().find_map(|key| {
        let (_, raw) = members.iter().rev().find(|(name, _)| name == key)?;
        json::text(raw)
    })?;
    let name = path.rsplit(['/', '\\']).next()?;
    let name = name.split(':').next()?;
    (!name.is_empty()).then(|| name.to_owned())
}

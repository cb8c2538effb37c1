//! Errors of tools that nothing after them has resolved.

use foldline_session_model::EntryIx;
use foldline_session_model::fold::ContextItem;
use foldline_session_model::message::{Message, ToolCall};
use rustc_hash::FxHashMap;

use crate::file_ops::{ToolTable, paths_of};
use crate::verbatim::serialize::write_call;

/// The results among these items that are errors and stay open: no later call with the same arguments succeeded, and
/// none of the same tool on the same file. In order.
pub(crate) fn open_errors(items: &[ContextItem<'_>]) -> Vec<EntryIx> {
    let tools = ToolTable::default();
    let mut calls: FxHashMap<&str, (&ToolCall<'_>, Vec<String>)> = FxHashMap::default();
    // By subject: the place in `failed` of each open error about it.
    let mut failed: Vec<Option<EntryIx>> = Vec::new();
    let mut about: FxHashMap<String, Vec<usize>> = FxHashMap::default();
    for item in items {
        match &item.message {
            Message::Assistant(m) => {
                for call in m.content.tool_calls() {
                    calls.insert(&call.id, (call, paths_of(call, &tools)));
                }
            }
            Message::ToolResult(m) => {
                let Some((call, paths)) = calls.get(&*m.tool_call_id) else {
                    continue;
                };
                for subject in subjects(call, paths) {
                    let open = about.entry(subject).or_default();
                    if m.is_error {
                        open.push(failed.len());
                    } else {
                        for at in open.drain(..) {
                            if let Some(error) = failed.get_mut(at) {
                                *error = None;
                            }
                        }
                    }
                }
                if m.is_error {
                    failed.push(Some(item.source));
                }
            }
            _ => {}
        }
    }
    failed.into_iter().flatten().collect()
}

/// What a call is about: the tool with all of its arguments, and the tool with each of its files.
fn subjects(call: &ToolCall<'_>, paths: &[String]) -> Vec<String> {
    let mut whole = String::new();
    write_call(&mut whole, call);
    let of_file = paths.iter().map(|path| format!("{}\n{path}", call.name));
    std::iter::once(whole).chain(of_file).collect()
}

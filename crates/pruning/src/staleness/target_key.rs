//! Target keys: two calls with the same key ask the same question (spec "Pruning", 5.1; defect 2).

use std::borrow::Cow;
use std::hash::{BuildHasher, Hash, Hasher};

use foldline_session_model::json::stringify;
use foldline_session_model::message::ToolCall;
use rustc_hash::FxBuildHasher;
use serde_json::value::RawValue;

use super::path::{PathId, Paths};
use super::selector::{self, Selector};
use super::{Members, command};

/// What a call asks, hashed once: a set that grows does not read all of its keys again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TargetKey<'v> {
    hash: u64,
    question: Question<'v>,
}

impl Hash for TargetKey<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

/// The tool, what it looks at, and every argument that shapes the answer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Question<'v> {
    tool: &'v str,
    target: Target,
    /// Sorted by name; of equal names the last.
    rest: Vec<(Cow<'v, str>, Cow<'v, str>)>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Target {
    Path(PathId, Selector),
    Command(String),
    Pattern,
}

impl<'v> TargetKey<'v> {
    /// The key of a call; `None` if nothing tells that asking again gives the same kind of answer.
    pub(super) fn of(call: &'v ToolCall<'v>, arguments: &Members<'v>, paths: &mut Paths<'v>) -> Option<Self> {
        let question = Question::of(call, arguments, paths)?;
        Some(Self {
            hash: FxBuildHasher.hash_one(&question),
            question,
        })
    }
}

impl<'v> Question<'v> {
    fn of(call: &'v ToolCall<'v>, arguments: &Members<'v>, paths: &mut Paths<'v>) -> Option<Self> {
        let tool = &*call.name;
        if let (Some((member, _)), Some(path)) = (arguments.path_member(), arguments.path()) {
            let mut ignored = vec![member];
            let target = if tool == "read" {
                let (base, selector) = selector::split(&path);
                let selector = match selector::lines(&selector, arguments) {
                    Some((first, last)) => {
                        ignored.extend(["offset", "limit"]);
                        Selector::Lines(first, last)
                    }
                    None => selector,
                };
                Target::Path(paths.id(base), selector)
            } else {
                Target::Path(paths.id(&path), Selector::None)
            };
            return Some(Self {
                tool,
                target,
                rest: rest(arguments, |name, value| {
                    ignored.contains(&name) || is_search_default(name, value)
                }),
            });
        }
        if tool == "bash" {
            let target = Target::Command(command::idempotent(&arguments.text("command")?)?);
            return Some(Self {
                tool,
                target,
                // How long it may take and what it is for change nothing of the answer.
                rest: rest(arguments, |name, _| {
                    matches!(name, "command" | "timeout" | "timeoutMs" | "description")
                }),
            });
        }
        let has_pattern = arguments.text("pattern").is_some_and(|text| !text.is_empty());
        has_pattern.then(|| Self {
            tool,
            target: Target::Pattern,
            rest: rest(arguments, is_search_default),
        })
    }
}

/// Arguments of a search that say what holds anyway.
fn is_search_default(name: &str, value: &RawValue) -> bool {
    matches!(
        (name, value.get()),
        ("skip", "0") | ("i", "false") | ("gitignore", "true")
    )
}

fn rest<'v>(
    arguments: &Members<'v>,
    ignored: impl Fn(&str, &RawValue) -> bool,
) -> Vec<(Cow<'v, str>, Cow<'v, str>)> {
    let mut rest: Vec<(Cow<'v, str>, Cow<'v, str>)> = Vec::new();
    for (name, value) in arguments.iter() {
        if let Some(at) = rest.iter().position(|(known, _)| known == name) {
            rest.remove(at);
        }
        if value.get() != "null" && !ignored(name, value) {
            rest.push((name.clone(), stringify(value)));
        }
    }
    rest.sort();
    rest
}

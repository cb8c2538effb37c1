//! Questions: two calls that ask the same one (spec "Pruning", 5.1, "target key"; defect 2).

use std::borrow::Cow;
use std::hash::{BuildHasher, Hash, Hasher};

use foldline_session_model::json::{Member, stringify};
use foldline_session_model::message::ToolCall;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use rustc_hash::FxBuildHasher;
use serde_json::value::RawValue;

use super::path::{PathId, Paths};
use super::selector::{self, Selector};
use super::{Members, command};

/// The questions that were answered already. A question is not stored: its hash is, and the call that asks it, so that
/// it can be put together again in the rare case that another has the same hash.
#[derive(Debug, Default)]
pub(super) struct Answered<'v> {
    table: HashTable<Asked<'v>>,
    /// Room for the arguments of one question.
    arguments: Vec<Member<'v>>,
}

#[derive(Debug)]
struct Asked<'v> {
    hash: u64,
    call: &'v ToolCall<'v>,
}

impl<'v> Answered<'v> {
    /// Whether the call asks what one before it asked. If not, it is one that asked from now on. A call of which nothing
    /// tells that asking again gives the same kind of answer asks nothing.
    pub(super) fn repeats(
        &mut self,
        call: &'v ToolCall<'v>,
        arguments: &Members<'v>,
        paths: &mut Paths<'v>,
    ) -> bool {
        let Some(question) = Question::of(call, arguments, paths, &mut self.arguments) else {
            return false;
        };
        let hash = FxBuildHasher.hash_one(&question);
        let asks_it = |asked: &Asked<'v>| {
            asked.hash == hash && (is_written_alike(asked.call, call) || asks(asked.call, &question, paths))
        };
        match self.table.entry(hash, asks_it, |asked| asked.hash) {
            Entry::Occupied(_) => true,
            Entry::Vacant(place) => {
                place.insert(Asked { hash, call });
                false
            }
        }
    }
}

fn is_written_alike(a: &ToolCall<'_>, b: &ToolCall<'_>) -> bool {
    let (a_written, b_written) = (a.arguments.as_deref(), b.arguments.as_deref());
    a.name == b.name && a_written.map(RawValue::get) == b_written.map(RawValue::get)
}

fn asks<'v>(call: &'v ToolCall<'v>, question: &Question<'v, '_>, paths: &mut Paths<'v>) -> bool {
    let arguments = Members::of(call.arguments.as_deref());
    Question::of(call, &arguments, paths, &mut Vec::new()).is_some_and(|other| other == *question)
}

/// The tool, what it looks at, and every argument that shapes the answer.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Question<'v, 'a> {
    tool: &'v str,
    target: Target<'v>,
    rest: Rest<'v, 'a>,
}

#[derive(Debug, PartialEq, Eq, Hash)]
enum Target<'v> {
    Path(PathId, Selector),
    Command(Cow<'v, str>),
    Pattern,
}

/// Arguments sorted by name, of equal names the last. Values are equal if they print alike.
#[derive(Debug)]
struct Rest<'v, 'a>(&'a [Member<'v>]);

impl PartialEq for Rest<'_, '_> {
    fn eq(&self, other: &Self) -> bool {
        let pairs = || self.0.iter().zip(other.0);
        self.0.len() == other.0.len() && pairs().all(|(a, b)| a.0 == b.0 && stringify(a.1) == stringify(b.1))
    }
}

impl Eq for Rest<'_, '_> {}

impl Hash for Rest<'_, '_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        for (name, value) in self.0 {
            name.hash(state);
            stringify(value).hash(state);
        }
    }
}

impl<'v, 'a> Question<'v, 'a> {
    fn of(
        call: &'v ToolCall<'v>,
        arguments: &Members<'v>,
        paths: &mut Paths<'v>,
        room: &'a mut Vec<Member<'v>>,
    ) -> Option<Self> {
        let tool = &*call.name;
        if let (Some(member), Some(path)) = (arguments.path_member(), arguments.path()) {
            let mut is_range = false;
            let target = if tool == "read" {
                let (base, mut selector) = selector::split(path);
                if let Some((first, last)) = selector::lines(&selector, arguments) {
                    is_range = true;
                    selector = Selector::Lines(first, last);
                }
                Target::Path(paths.id(base), selector)
            } else {
                Target::Path(paths.id(path), Selector::None)
            };
            let rest = rest(arguments, room, |name, value| {
                name == member
                    || (is_range && matches!(name, "offset" | "limit"))
                    || is_search_default(name, value)
            });
            return Some(Self { tool, target, rest });
        }
        if tool == "bash" {
            let target = Target::Command(command::idempotent(arguments.text("command")?)?);
            // How long it may take and what it is for change nothing of the answer.
            let rest = rest(arguments, room, |name, _| {
                matches!(name, "command" | "timeout" | "timeoutMs" | "description")
            });
            return Some(Self { tool, target, rest });
        }
        let has_pattern = arguments.text("pattern").is_some_and(|text| !text.is_empty());
        has_pattern.then(|| Self {
            tool,
            target: Target::Pattern,
            rest: rest(arguments, room, is_search_default),
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

fn rest<'v, 'a>(
    arguments: &Members<'v>,
    room: &'a mut Vec<Member<'v>>,
    ignored: impl Fn(&str, &RawValue) -> bool,
) -> Rest<'v, 'a> {
    room.clear();
    room.extend(arguments.iter().cloned());
    room.sort_by(|a, b| a.0.cmp(&b.0));
    room.dedup_by(|later, kept| {
        let again = later.0 == kept.0;
        if again {
            kept.1 = later.1;
        }
        again
    });
    room.retain(|(name, value)| value.get() != "null" && !ignored(name, value));
    Rest(room)
}

//! `todo`: the list of things to do. It feeds the state of the work, and it is found again in the session.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use foldline_session_model::EntryIx;
use foldline_session_model::fold::Context;
use foldline_session_model::log::{Extent, SessionLog};
use foldline_session_model::message::Message;
use foldline_session_model::model_call::ToolSpec;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::tool::{Concurrency, Tool, ToolOutput, ToolRun};
use crate::work::{Todo, TodoStatus, WorkState};

use super::ToolName;
use super::answer::{Failure, details, output, spec};
use super::arguments::{Arguments, got, missing};

const DESCRIPTION: &str = "Replace the list of things to do. Always send the whole list, in order; an empty one clears it. \
    Keep exactly one item in_progress while you work, and mark items completed as soon as they are.";

const SCHEMA: &str = r#"{"type":"object","properties":{
"todos":{"type":"array","maxItems":100,"items":{"type":"object","properties":{
"text":{"type":"string","description":"What is to be done"},
"status":{"type":"string","enum":["pending","in_progress","completed","cancelled"]}},
"required":["text","status"]}}},"required":["todos"]}"#;

const MOST_ITEMS: usize = 100;
const MOST_CHARS: usize = 500;

/// The list of things to do: `todo` writes it, everyone else reads it. A clone is the same list.
#[derive(Clone, Debug, Default)]
pub struct Todos(Arc<Mutex<Vec<Todo>>>);

/// What a session says about the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Synced {
    /// The list of this entry holds now.
    From(EntryIx),
    /// There never was a list on this path; it is empty now.
    Never,
    /// The log holds only the end of its file, and there is no list in it: the list is empty now, but an earlier one may
    /// be in the file.
    NotInTail,
}

impl Todos {
    /// The list as it is now.
    pub fn list(&self) -> Vec<Todo> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Puts another list in its place.
    pub fn replace(&self, todos: Vec<Todo>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = todos;
    }

    /// Takes the list from the newest `todo` result on the path of a context, folded away or not: after a resume, a move
    /// in the tree, a compaction.
    pub fn sync(&self, context: &Context<'_>) -> Synced {
        let found = newest(context.log, &context.path);
        let (todos, synced) = match found {
            Some((entry, todos)) => (todos, Synced::From(entry)),
            None => match context.log.extent() {
                Extent::Tail { .. } => (Vec::new(), Synced::NotInTail),
                Extent::Whole => (Vec::new(), Synced::Never),
            },
        };
        self.replace(todos);
        synced
    }
}

impl WorkState for Todos {
    fn todos(&self) -> Vec<Todo> {
        self.list()
    }
}

fn newest(log: &SessionLog, path: &[EntryIx]) -> Option<(EntryIx, Vec<Todo>)> {
    path.iter().rev().find_map(|entry| {
        // Most entries are not even decoded.
        memchr::memmem::find(log.raw_line(*entry), b"\"todos\"")?;
        match log.context_message(*entry)? {
            Message::ToolResult(result) if result.tool_name == ToolName::Todo.name() && !result.is_error => {
                let details = Arguments::of_value(result.details.as_deref()?)?;
                Some((*entry, todos(&details).ok()?))
            }
            _ => None,
        }
    })
}

pub(super) struct TodoTool {
    todos: Todos,
}

#[derive(Serialize)]
struct Details<'t> {
    todos: Vec<StoredTodo<'t>>,
}

#[derive(Serialize)]
struct StoredTodo<'t> {
    text: &'t str,
    status: &'static str,
}

impl TodoTool {
    pub(super) fn new(todos: Todos) -> Self {
        Self { todos }
    }

    fn answer(&self, run: &ToolRun<'_>) -> Result<ToolOutput, Failure> {
        if run.cancel.is_cancelled() {
            return Err(Failure::cancelled());
        }
        let todos = todos(&Arguments::of(run.arguments)?)?;
        let stored = todos.iter().map(|todo| StoredTodo {
            text: &todo.text,
            status: name(todo.status),
        });
        let data = details(&Details {
            todos: stored.collect(),
        });
        let answer = ToolOutput::text(told(&todos)).with_details(data);
        self.todos.replace(todos);
        Ok(answer)
    }
}

#[async_trait]
impl Tool for TodoTool {
    fn spec(&self) -> ToolSpec<'static> {
        spec(ToolName::Todo, DESCRIPTION, SCHEMA)
    }

    fn concurrency(&self) -> Concurrency {
        Concurrency::Exclusive
    }

    async fn run(&self, call: ToolRun<'_>) -> ToolOutput {
        output(self.answer(&call))
    }
}

/// The list of a call, or of what a result keeps of one.
fn todos(arguments: &Arguments<'_>) -> Result<Vec<Todo>, Failure> {
    let list = arguments.list("todos")?.ok_or_else(|| missing("todos"))?;
    if list.len() > MOST_ITEMS {
        return Err(Failure(format!(
            "`todos` has {} items; at most {MOST_ITEMS} are kept.",
            list.len()
        )));
    }
    let items = list.into_iter().enumerate();
    items
        .map(|(index, raw)| {
            todo(raw).map_err(|failure| Failure(format!("item {}: {}", index + 1, failure.0)))
        })
        .collect()
}

fn todo(raw: &RawValue) -> Result<Todo, Failure> {
    let item = Arguments::of_value(raw).ok_or_else(|| {
        Failure(format!(
            "it must be an object with text and status, not {}.",
            got(raw)
        ))
    })?;
    let text = item.required_text("text")?.trim().to_owned();
    let status = item.required_text("status")?;
    if text.is_empty() {
        return Err(Failure("`text` must not be empty.".to_owned()));
    }
    if text.chars().nth(MOST_CHARS).is_some() {
        return Err(Failure(format!("`text` is longer than {MOST_CHARS} characters.")));
    }
    let status = STATUSES
        .into_iter()
        .find(|known| name(*known) == status)
        .ok_or_else(|| {
            let known = STATUSES.map(name).join(", ");
            Failure(format!("`status` must be one of {known}."))
        })?;
    Ok(Todo { text, status })
}

const STATUSES: [TodoStatus; 4] = [
    TodoStatus::Pending,
    TodoStatus::InProgress,
    TodoStatus::Completed,
    TodoStatus::Cancelled,
];

const fn name(status: TodoStatus) -> &'static str {
    match status {
        TodoStatus::Pending => "pending",
        TodoStatus::InProgress => "in_progress",
        TodoStatus::Completed => "completed",
        TodoStatus::Cancelled => "cancelled",
    }
}

/// The list as text.
fn told(todos: &[Todo]) -> String {
    if todos.is_empty() {
        return "The list is empty.".to_owned();
    }
    let mut text = String::new();
    for todo in todos {
        let mark = match todo.status {
            TodoStatus::Pending => ' ',
            TodoStatus::InProgress => '>',
            TodoStatus::Completed => 'x',
            TodoStatus::Cancelled => '-',
        };
        // One item is one line, whatever its text.
        let words = todo.text.split_whitespace().collect::<Vec<_>>().join(" ");
        let _written = writeln!(text, "[{mark}] {words}");
    }
    let open = todos.iter().filter(|todo| todo.status.is_open()).count();
    let _written = write!(text, "{open} of {} open.", todos.len());
    let begun = todos
        .iter()
        .filter(|todo| todo.status == TodoStatus::InProgress)
        .count();
    if begun > 1 {
        let _written = write!(text, " {begun} are in progress at once; work on one at a time.");
    }
    text
}

#[cfg(test)]
mod tests {
    use foldline_session_model::fold::Profile;
    use foldline_session_model::model_call::{InputBlock, ToolOutcome};
    use foldline_session_model::notation;
    use foldline_session_model::tree::Leaf;

    use super::super::ToolName::Todo as TodoName;
    use super::super::tests::{Yard, detail};
    use super::*;

    fn list(todos: &Todos) -> Vec<(String, TodoStatus)> {
        let list = todos.list().into_iter();
        list.map(|todo| (todo.text, todo.status)).collect()
    }

    #[tokio::test]
    async fn the_whole_list_is_replaced() {
        let yard = Yard::new();
        let todos = yard.options.todos.clone();
        let arguments = r#"{"todos":[{"text":"read\n it","status":"completed"},{"text":" fix ","status":"in_progress"},
            {"text":"test","status":"in_progress"},{"text":"rest","status":"cancelled"},{"text":"ship","status":"pending"}]}"#;
        let output = yard.call(TodoName, arguments).await;
        assert_eq!(
            output.blocks,
            [InputBlock::Text(
                "[x] read it\n[>] fix\n[>] test\n[-] rest\n[ ] ship\n3 of 5 open. 2 are in progress at once; work on one at a time."
                    .into()
            )]
        );
        let kept = detail(&output, "todos");
        assert!(
            kept.starts_with(r#"[{"text":"read\n it","status":"completed"},"#),
            "{kept}"
        );
        assert_eq!(list(&todos)[1], ("fix".to_owned(), TodoStatus::InProgress));
        assert_eq!(WorkState::todos(&todos).len(), 5);
        for (arguments, expected) in [
            ("{}", "`todos` is missing."),
            (r#"{"todos":"x"}"#, "`todos` must be a list, not a string."),
            (
                r#"{"todos":[1]}"#,
                "item 1: it must be an object with text and status, not 1.",
            ),
            (
                r#"{"todos":[{"text":" ","status":"pending"}]}"#,
                "item 1: `text` must not be empty.",
            ),
            (
                r#"{"todos":[{"text":"a","status":"done"}]}"#,
                "item 1: `status` must be one of pending, in_progress, completed, cancelled.",
            ),
        ] {
            let output = yard.call(TodoName, arguments).await;
            assert_eq!(output.outcome, ToolOutcome::Error);
            assert_eq!(output.blocks, [InputBlock::Text(expected.into())]);
        }
        assert_eq!(todos.list().len(), 5);
        assert_eq!(yard.text(TodoName, r#"{"todos":[]}"#).await, "The list is empty.");
        assert!(todos.list().is_empty());
    }

    /// A result of `todo` in the notation.
    fn result(id: &str, text: &str, is_error: &str) -> String {
        format!(
            "{id} raw message json='message':{{'role':'toolResult','toolCallId':'{id}','toolName':'todo','content':[],\
             'isError':{is_error},'details':{{'todos':[{{'text':'{text}','status':'pending'}}]}}}}\n"
        )
    }

    #[test]
    fn the_newest_list_on_the_path_holds_folded_or_not() {
        let mut file = String::from("u1 user\n");
        file.push_str(&result("t1", "first", "false"));
        file.push_str(&result("t2", "second", "false"));
        file.push_str(&result("t3", "failed", "true"));
        file.push_str("u2 user todos\na1 assistant\nc1 prose \"So far\" kept=a1 before=9\nu3 user\n");
        file.push_str("u4 < u1 user\n");
        let log = notation::log(&file).unwrap();
        let todos = Todos::default();
        let sync = |leaf: &str| {
            let context = log.context(&Leaf::Entry(leaf.into()), Profile::Foldline).unwrap();
            let synced = todos.sync(&context);
            (synced, list(&todos))
        };
        let list = |text: &str| vec![(text.to_owned(), TodoStatus::Pending)];
        assert_eq!(
            sync("u3"),
            (Synced::From(log.find("t2").unwrap()), list("second"))
        );
        assert_eq!(sync("t1"), (Synced::From(log.find("t1").unwrap()), list("first")));
        assert_eq!(sync("u4"), (Synced::Never, Vec::new()));
    }
}

//! The tools that come with the library: todo, read, ls, grep, write, edit, bash (spec "Orchestrator and clients", 1.3).
//!
//! Offered by default are those that only read. Paths are confined to the session's root folder and to folders that the
//! user allowed: every path is resolved, and the file is then opened folder by folder without following links, so that
//! what was checked is what is opened. A command is not confined: who offers `bash` trusts the model with the machine.
//!
//! Names and arguments are those that pruning and file lists know (`path`, `offset`, `limit`, `pattern`, `command`,
//! `oldText`, `newText`), and what a tool left out of an answer is told in its `details.truncated`.

mod answer;
mod arguments;
mod bash;
mod blocking;
mod cap;
mod edit;
mod grep;
mod kind;
mod ls;
mod places;
mod read;
mod replace_file;
#[cfg(test)]
mod tests;
mod todo;
mod write;

use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use foldline_session_model::ByteLen;

use crate::tool::Tool;

pub use bash::{PASSED_ON, SECRET_WORDS};
pub use cap::{Bounded, Cap, Keep, bounded};
pub use todo::{Synced, Todos};

use places::Places;

/// What the tools may do, and with what.
#[derive(Clone)]
pub struct ToolOptions {
    /// Which tools are offered.
    pub selection: Selection,
    /// The folder that paths are confined to; usually the session's working folder. Relative paths begin at the working
    /// folder of the call.
    pub root: PathBuf,
    /// Other folders and files that the user allowed.
    pub allowed: Vec<PathBuf>,
    /// How much an answer may hold, and how long it may take.
    pub limits: Limits,
    /// The list that `todo` writes; keep a clone to read it.
    pub todos: Todos,
    /// Where `read` finds `artifact://…`; without one such an address is refused.
    pub artifacts: Option<Arc<dyn ArtifactSource>>,
    /// Variables of the environment that commands get although they look like secrets.
    pub pass_variables: Vec<String>,
}

impl ToolOptions {
    /// The reading tools, confined to one folder.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self {
            selection: Selection::ReadOnly,
            root: root.into(),
            allowed: Vec::new(),
            limits: Limits::default(),
            todos: Todos::default(),
            artifacts: None,
            pass_variables: Vec::new(),
        }
    }
}

/// Reads what was kept outside of the context.
pub trait ArtifactSource: Send + Sync {
    /// The text behind an address (`artifact://…`); `None` if there is none. May block.
    fn read(&self, address: &str) -> Option<String>;
}

/// How much an answer may hold, and how long it may take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The text of one answer.
    pub text: Cap,
    /// The longest line, in characters; the rest of it is cut.
    pub line_chars: usize,
    /// The largest picture that is returned.
    pub image: ByteLen,
    /// The largest file that is edited or written.
    pub edit: ByteLen,
    /// How much of a command's output is kept as an artifact.
    pub spill: ByteLen,
    /// How long a search may take.
    pub search: Duration,
    /// How long a command may take if the call does not say; a call may ask for up to an hour.
    pub command: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            text: Cap::default(),
            line_chars: 2_000,
            // 5 MB in base64 is what providers take.
            image: ByteLen(3_750_000),
            edit: ByteLen(10 << 20),
            spill: ByteLen(16 << 20),
            search: Duration::from_secs(30),
            command: Duration::from_secs(120),
        }
    }
}

/// The tools by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ToolName {
    /// The list of things to do.
    Todo,
    /// Lines of a file, a picture, or an artifact.
    Read,
    /// What a folder holds.
    Ls,
    /// Lines that match.
    Grep,
    /// A whole file.
    Write,
    /// Parts of a file.
    Edit,
    /// A command.
    Bash,
}

impl ToolName {
    /// All of them, in the order in which a model sees them.
    pub const ALL: [Self; 7] = [
        Self::Todo,
        Self::Read,
        Self::Ls,
        Self::Grep,
        Self::Write,
        Self::Edit,
        Self::Bash,
    ];

    /// The name that calls use.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Todo => "todo",
            Self::Read => "read",
            Self::Ls => "ls",
            Self::Grep => "grep",
            Self::Write => "write",
            Self::Edit => "edit",
            Self::Bash => "bash",
        }
    }

    const fn only_reads(self) -> bool {
        matches!(self, Self::Todo | Self::Read | Self::Ls | Self::Grep)
    }
}

/// Which tools are offered. As text: `all`, `none`, or names with commas between (`read,ls,grep`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Selection {
    /// Those that change nothing but the state of the session.
    #[default]
    ReadOnly,
    /// All of them.
    All,
    /// None.
    None,
    /// These.
    These(Vec<ToolName>),
}

impl Selection {
    /// Whether a tool is offered.
    pub fn offers(&self, tool: ToolName) -> bool {
        match self {
            Self::ReadOnly => tool.only_reads(),
            Self::All => true,
            Self::None => false,
            Self::These(tools) => tools.contains(&tool),
        }
    }
}

/// A name that is no tool's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "there is no tool `{name}`; the tools are {}, and `all` or `none` choose at once",
    names()
)]
pub struct UnknownTool {
    /// The name.
    pub name: String,
}

fn names() -> String {
    ToolName::ALL.map(ToolName::name).join(", ")
}

impl FromStr for Selection {
    type Err = UnknownTool;

    fn from_str(text: &str) -> Result<Self, UnknownTool> {
        match text.trim() {
            "all" => return Ok(Self::All),
            "none" | "" => return Ok(Self::None),
            _ => {}
        }
        let tools = text.split(',').map(str::trim).filter(|name| !name.is_empty());
        let tools = tools.map(|name| {
            let known = ToolName::ALL.into_iter().find(|tool| tool.name() == name);
            known.ok_or_else(|| UnknownTool {
                name: name.to_owned(),
            })
        });
        tools.collect::<Result<_, _>>().map(Self::These)
    }
}

/// Why the tools could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ToolsetError {
    /// The root, or an allowed folder, does not exist or cannot be reached.
    #[error("the tools cannot be confined to {}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

/// The tools that the options choose. Looks at the root and the allowed folders, and at nothing else.
///
/// # Errors
/// [`ToolsetError`] if one of these does not exist.
pub fn builtin(options: &ToolOptions) -> Result<Vec<Arc<dyn Tool>>, ToolsetError> {
    let places = Arc::new(Places::new(&options.root, &options.allowed)?);
    let limits = Arc::new(options.limits.clone());
    let make = |tool: ToolName| -> Arc<dyn Tool> {
        let (places, limits) = (Arc::clone(&places), Arc::clone(&limits));
        match tool {
            ToolName::Todo => Arc::new(todo::TodoTool::new(options.todos.clone())),
            ToolName::Read => Arc::new(read::ReadTool::new(places, limits, options.artifacts.clone())),
            ToolName::Ls => Arc::new(ls::LsTool::new(places, limits)),
            ToolName::Grep => Arc::new(grep::GrepTool::new(places, limits)),
            ToolName::Write => Arc::new(write::WriteTool::new(places, limits)),
            ToolName::Edit => Arc::new(edit::EditTool::new(places, limits)),
            ToolName::Bash => Arc::new(bash::BashTool::new(limits, options.pass_variables.clone())),
        }
    };
    let chosen = ToolName::ALL.into_iter();
    Ok(chosen
        .filter(|tool| options.selection.offers(*tool))
        .map(make)
        .collect())
}

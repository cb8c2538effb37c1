//! What holds for all tools, and for those that touch files.

mod anything;
mod changing;
mod looking;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use foldline_session_model::json;
use foldline_session_model::model_call::{InputBlock, RawJson, ToolOutcome};
use tokio_util::sync::CancellationToken;

use super::{ArtifactSource, Limits, Selection, ToolName, ToolOptions, builtin};
use crate::tool::{Effect, Spill, Tool, ToolOutput, ToolRun};

/// A root with nothing in it, in a folder with a secret.
pub(super) struct Yard {
    base: tempfile::TempDir,
    pub(super) root: PathBuf,
    pub(super) options: ToolOptions,
    pub(super) cancel: CancellationToken,
    pub(super) kept: Arc<Kept>,
    pub(super) progress: Mutex<String>,
}

/// What was too long for an answer, in order.
#[derive(Default)]
pub(super) struct Kept(pub(super) Mutex<Vec<String>>);

impl Spill for Kept {
    fn spill(&self, _: &str, text: &str) -> Option<String> {
        let mut kept = self.0.lock().ok()?;
        kept.push(text.to_owned());
        Some(format!("artifact://{}", kept.len()))
    }
}

impl ArtifactSource for Kept {
    fn read(&self, address: &str) -> Option<String> {
        let number: usize = address.strip_prefix("artifact://")?.parse().ok()?;
        self.0.lock().ok()?.get(number.checked_sub(1)?).cloned()
    }
}

impl Yard {
    pub(super) fn new() -> Self {
        let base = tempfile::tempdir().unwrap();
        let root = base.path().canonicalize().unwrap().join("root");
        fs_err::create_dir(&root).unwrap();
        fs_err::write(base.path().join("secret"), "hidden words\n").unwrap();
        let kept = Arc::new(Kept::default());
        let mut options = ToolOptions::new(&root);
        options.selection = Selection::All;
        options.artifacts = Some(Arc::<Kept>::clone(&kept));
        Self {
            base,
            root,
            options,
            cancel: CancellationToken::new(),
            kept,
            progress: Mutex::default(),
        }
    }

    pub(super) fn limits(&mut self) -> &mut Limits {
        &mut self.options.limits
    }

    pub(super) fn put(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.root.join(name);
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(path, content.as_ref()).unwrap();
    }

    pub(super) fn get(&self, name: &str) -> String {
        String::from_utf8(fs_err::read(self.root.join(name)).unwrap()).unwrap()
    }

    pub(super) fn outside(&self) -> &Path {
        self.base.path()
    }

    pub(super) fn tool(&self, name: ToolName) -> Arc<dyn Tool> {
        let tools = builtin(&self.options).unwrap();
        let named = tools.into_iter().find(|tool| tool.spec().name == name.name());
        named.unwrap()
    }

    pub(super) async fn call(&self, tool: ToolName, arguments: &str) -> ToolOutput {
        let arguments = RawJson::parse(arguments.to_owned()).unwrap();
        let run = ToolRun {
            call_id: "call",
            arguments: &arguments,
            cwd: &self.root,
            cancel: self.cancel.clone(),
            spill: &*self.kept,
            progress: &|text| self.progress.lock().unwrap().push_str(text),
        };
        self.tool(tool).run(run).await
    }

    /// The text of a success.
    pub(super) async fn text(&self, tool: ToolName, arguments: &str) -> String {
        let output = self.call(tool, arguments).await;
        assert_eq!(output.outcome, ToolOutcome::Success, "{}", told(&output));
        told(&output)
    }

    /// The text of a failure.
    pub(super) async fn error(&self, tool: ToolName, arguments: &str) -> String {
        let output = self.call(tool, arguments).await;
        assert_eq!(output.outcome, ToolOutcome::Error, "{}", told(&output));
        told(&output)
    }
}

pub(super) fn told(output: &ToolOutput) -> String {
    let texts = output.blocks.iter().filter_map(|block| match block {
        InputBlock::Text(text) => Some(&**text),
        InputBlock::Image(_) => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// A member of the tool's own data, as JSON.
pub(super) fn detail(output: &ToolOutput, name: &str) -> String {
    let details = output.details.as_ref().unwrap();
    let members = json::object(details.raw()).unwrap();
    let (_, value) = members.into_iter().find(|(key, _)| key == name).unwrap();
    value.get().to_owned()
}

#[test]
fn a_selection_offers_tools() {
    let offered = |text: &str| -> Vec<&str> {
        let selection: Selection = text.parse().unwrap();
        let tools = ToolName::ALL.into_iter().filter(|tool| selection.offers(*tool));
        tools.map(ToolName::name).collect()
    };
    assert_eq!(offered("grep, read"), ["read", "grep"]);
    assert_eq!(offered("all").len(), 7);
    assert!(offered("none").is_empty());
    assert_eq!(
        "read,cat".parse::<Selection>().unwrap_err().to_string(),
        "there is no tool `cat`; the tools are todo, read, ls, grep, write, edit, bash, and `all` or `none` choose at once"
    );
    let yard = Yard::new();
    let by_default = builtin(&ToolOptions::new(&yard.root)).unwrap();
    assert!(by_default.iter().all(|tool| tool.effect() == Effect::ReadOnly));
    assert_eq!(by_default.len(), 4);
    assert!(builtin(&ToolOptions::new("/nowhere/at/all")).is_err());
}

#[test]
fn schemas_are_objects_of_what_pruning_knows() {
    let yard = Yard::new();
    for (tool, names) in [
        (ToolName::Todo, &["todos"][..]),
        (ToolName::Read, &["path", "offset", "limit"]),
        (ToolName::Ls, &["path", "limit"]),
        (
            ToolName::Grep,
            &[
                "pattern",
                "path",
                "glob",
                "literal",
                "ignoreCase",
                "context",
                "limit",
            ],
        ),
        (ToolName::Write, &["path", "content"]),
        (ToolName::Edit, &["path", "edits"]),
        (ToolName::Bash, &["command", "timeout"]),
    ] {
        let spec = yard.tool(tool).spec();
        let schema = json::object(spec.parameters.raw()).unwrap();
        let (_, properties) = schema.iter().find(|(key, _)| key == "properties").unwrap();
        let properties = json::object(properties).unwrap();
        let keys: Vec<&str> = properties.iter().map(|(key, _)| &**key).collect();
        assert_eq!(keys, names, "{}", tool.name());
    }
}

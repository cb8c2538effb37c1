//! Which tools read and which change files, by name.

/// What a tool does with the file that it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum FileUse {
    Read,
    Write,
    Edit,
    /// Its argument is a patch that names the files.
    Patch,
    Move,
}

/// The names of tools that touch files. Compared without case and without the prefix of a tool server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolTable {
    /// Tools that read a file.
    pub read: Vec<String>,
    /// Tools that write a file whole.
    pub write: Vec<String>,
    /// Tools that change a part of a file. Other names that end in `_edit` count too.
    pub edit: Vec<String>,
    /// Tools that apply a patch.
    pub patch: Vec<String>,
    /// Tools that move a file.
    pub moves: Vec<String>,
}

impl Default for ToolTable {
    fn default() -> Self {
        let names = |list: &[&str]| list.iter().map(|name| (*name).to_owned()).collect();
        Self {
            read: names(&[
                "read",
                "read_file",
                "readfile",
                "view",
                "view_file",
                "open_file",
                "read_many_files",
            ]),
            write: names(&[
                "write",
                "write_file",
                "writefile",
                "create",
                "create_file",
                "write_to_file",
            ]),
            edit: names(&[
                "edit",
                "edit_file",
                "editfile",
                "multiedit",
                "multi_edit",
                "edit_notebook",
                "notebookedit",
                "str_replace",
                "str_replace_editor",
                "str_replace_based_edit_tool",
                "replace",
                "replace_in_file",
                "search_replace",
                "insert",
                "update_file",
            ]),
            patch: names(&["apply_patch", "applypatch", "apply_diff", "patch"]),
            moves: names(&["move", "move_file", "rename", "rename_file"]),
        }
    }
}

impl ToolTable {
    pub(super) fn use_of(&self, tool: &str) -> Option<FileUse> {
        let name = bare(tool).to_ascii_lowercase();
        let has = |list: &[String]| list.iter().any(|known| known.eq_ignore_ascii_case(&name));
        if has(&self.read) {
            Some(FileUse::Read)
        } else if has(&self.write) {
            Some(FileUse::Write)
        } else if has(&self.edit) || name.ends_with("_edit") {
            Some(FileUse::Edit)
        } else if has(&self.patch) {
            Some(FileUse::Patch)
        } else if has(&self.moves) {
            Some(FileUse::Move)
        } else {
            None
        }
    }
}

/// The name without the prefix of a tool server: `mcp__files__read` and `files.read` are `read`.
fn bare(tool: &str) -> &str {
    let tool = tool.rsplit("__").next().unwrap_or(tool);
    tool.rsplit(['.', '/', ':']).next().unwrap_or(tool)
}

//! What hooks are told. The names of fields are those of the wire.

use std::path::Path;

use foldline_compaction_core::file_ops::FileOps;
use foldline_compaction_core::settings::CompactionSettings;
use foldline_compaction_core::verbatim::Parameters;
use foldline_session_model::model_call::RawJson;
use foldline_session_model::{EntryId, Tokens};
use serde::Serialize;

/// Payloads: all of them are serialised, in camel case, and what is not there is left out.
macro_rules! payloads {
    ($($(#[$doc:meta])* $name:ident $(<$life:lifetime>)? { $($(#[$field_doc:meta])* $field:ident: $type:ty),* $(,)? })+) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, Serialize)]
        #[serde(rename_all = "camelCase")]
        pub struct $name $(<$life>)? { $($(#[$field_doc])* pub $field: $type),* }
    )+};
}

payloads! {
    /// `session_start`.
    SessionStartEvent<'e> {
        /// `startup`, `new`, `resume`, `fork` or `reload`.
        reason: &'e str,
        /// The session before it.
        #[serde(skip_serializing_if = "Option::is_none")]
        previous_session_file: Option<&'e Path>,
    }

    /// `session_before_switch`.
    BeforeSwitchEvent<'e> {
        /// `new`, `resume` or `fork`.
        reason: &'e str,
        /// The session after it, if it is there already.
        #[serde(skip_serializing_if = "Option::is_none")]
        target_session_file: Option<&'e Path>,
    }

    /// `session_switch`.
    SessionSwitchEvent<'e> {
        /// `new`, `resume` or `fork`; a handoff is `new`.
        reason: &'e str,
        /// The session before it.
        #[serde(skip_serializing_if = "Option::is_none")]
        previous_session_file: Option<&'e Path>,
    }

    /// `session_shutdown`.
    SessionShutdownEvent<'e> {
        /// `quit`, `new`, `resume`, `fork` or `reload`.
        reason: &'e str,
        /// The session after it.
        #[serde(skip_serializing_if = "Option::is_none")]
        target_session_file: Option<&'e Path>,
    }

    /// `input`.
    InputEvent<'e> {
        /// What was typed, as hooks before this one left it.
        text: String,
        /// Images: `{type: "image", data, mimeType}`.
        images: Vec<RawJson<'e>>,
        /// `interactive`, `rpc` or `extension`.
        source: &'e str,
    }

    /// `before_agent_start`.
    BeforeAgentStartEvent<'e> {
        /// The prompt.
        prompt: &'e str,
        /// Its images.
        images: Vec<RawJson<'e>>,
        /// The system prompt, as hooks before this one left it.
        system_prompt: String,
    }

    /// `context`.
    ContextEvent<'e> {
        /// The messages of the request, as hooks before this one left them.
        messages: Vec<RawJson<'e>>,
    }

    /// `tool_call`.
    ToolCallEvent<'e> {
        /// The tool.
        tool_name: &'e str,
        /// The call.
        tool_call_id: &'e str,
        /// Its arguments.
        input: RawJson<'e>,
    }

    /// `tool_result`.
    ToolResultEvent<'e> {
        /// The tool.
        tool_name: &'e str,
        /// The call.
        tool_call_id: &'e str,
        /// Its arguments.
        input: RawJson<'e>,
        /// What the model will read, as hooks before this one left it: a list of blocks.
        content: RawJson<'e>,
        /// The tool's own data.
        #[serde(skip_serializing_if = "Option::is_none")]
        details: Option<RawJson<'e>>,
        /// Whether the tool failed.
        is_error: bool,
    }

    /// `agent_end`.
    AgentEndEvent<'e> {
        /// The messages of the run.
        messages: Vec<RawJson<'e>>,
        /// `completed`, `paused`, `cancelled` or `maintenance`.
        #[serde(skip_serializing_if = "Option::is_none")]
        stop_reason: Option<&'e str>,
    }

    /// `agent_settled`.
    AgentSettledEvent {}

    /// `session_before_compact`.
    BeforeCompactEvent<'e> {
        /// `manual`, `threshold`, `overflow` or `idle`.
        reason: &'e str,
        /// What was prepared.
        preparation: CompactionPreparation<'e>,
        /// The entries of the path, from the root to the leaf.
        branch_entries: Vec<RawJson<'e>>,
        /// The parameters of a compaction by lines.
        #[serde(skip_serializing_if = "Option::is_none")]
        parameters: Option<&'e Parameters>,
        /// What the user wants the summary to look at.
        #[serde(skip_serializing_if = "Option::is_none")]
        custom_instructions: Option<&'e str>,
    }

    /// What a compaction is about to do.
    CompactionPreparation<'e> {
        /// The first entry that stays; `null`: none does.
        first_kept_entry_id: Option<EntryId>,
        /// The messages that a summary will stand for.
        messages_to_summarize: Vec<RawJson<'e>>,
        /// The begun turn's messages before the cut, which get a summary of their own.
        turn_prefix_messages: Vec<RawJson<'e>>,
        /// Whether the cut lies within a turn.
        is_split_turn: bool,
        /// The size of the context now.
        tokens_before: Tokens,
        /// The summary that is in the context now.
        #[serde(skip_serializing_if = "Option::is_none")]
        previous_summary: Option<&'e str>,
        /// What hooks stored with that.
        #[serde(skip_serializing_if = "Option::is_none")]
        previous_preserve_data: Option<RawJson<'e>>,
        /// What was done to files.
        file_ops: FileOpsLists<'e>,
        /// The lines of a compaction by lines.
        #[serde(skip_serializing_if = "Option::is_none")]
        region: Option<RegionLines<'e>>,
        /// The settings.
        settings: &'e CompactionSettings,
    }

    /// What was done to files, sorted.
    FileOpsLists<'e> {
        /// Read.
        read: Vec<&'e str>,
        /// Written.
        written: Vec<&'e str>,
        /// Edited.
        edited: Vec<&'e str>,
    }

    /// The lines that a compaction may delete from.
    RegionLines<'e> {
        /// The lines in order.
        lines: Vec<&'e str>,
    }

    /// `session.compacting`.
    CompactingEvent<'e> {
        /// The messages to summarise, then those of the turn's prefix.
        messages: Vec<RawJson<'e>>,
    }

    /// `session_compact`.
    SessionCompactEvent<'e> {
        /// The entry as it is in the session.
        compaction_entry: RawJson<'e>,
        /// Whether a hook made it.
        from_extension: bool,
        /// `manual`, `threshold`, `overflow` or `idle`.
        reason: &'e str,
        /// The parameters of a compaction by lines.
        #[serde(skip_serializing_if = "Option::is_none")]
        parameters: Option<&'e Parameters>,
        /// What came of it, as the end event tells.
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<RawJson<'e>>,
    }

    /// `session_before_tree`.
    BeforeTreeEvent<'e> {
        /// What was prepared.
        preparation: TreePreparation<'e>,
    }

    /// What a move in the tree is about to do.
    TreePreparation<'e> {
        /// The entry that was chosen.
        target_id: EntryId,
        /// Where the session stands; `null`: before its first entry.
        old_leaf_id: Option<EntryId>,
        /// Where the two paths part; `null`: before the first entry.
        common_ancestor_id: Option<EntryId>,
        /// What is left behind.
        entries_to_summarize: Vec<RawJson<'e>>,
        /// Whether the user wants a summary of that.
        user_wants_summary: bool,
        /// What the user wants the summary to look at.
        #[serde(skip_serializing_if = "Option::is_none")]
        custom_instructions: Option<&'e str>,
        /// Whether that is the whole prompt.
        #[serde(skip_serializing_if = "Option::is_none")]
        replace_instructions: Option<bool>,
        /// The label to set.
        #[serde(skip_serializing_if = "Option::is_none")]
        label: Option<&'e str>,
    }

    /// `session_tree`.
    SessionTreeEvent<'e> {
        /// Where the session stands now; `null`: before its first entry.
        new_leaf_id: Option<EntryId>,
        /// Where it stood.
        old_leaf_id: Option<EntryId>,
        /// The summary of what was left, if one was made.
        #[serde(skip_serializing_if = "Option::is_none")]
        summary_entry: Option<RawJson<'e>>,
        /// Whether a hook made that summary; only there with one.
        #[serde(skip_serializing_if = "Option::is_none")]
        from_extension: Option<bool>,
    }
}

impl<'e> From<&'e FileOps> for FileOpsLists<'e> {
    fn from(ops: &'e FileOps) -> Self {
        Self {
            read: ops.read(),
            written: ops.written(),
            edited: ops.edited(),
        }
    }
}

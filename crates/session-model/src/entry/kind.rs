//! The types of entries.

macro_rules! kinds {
    ($( $(#[$meta:meta])* $name:ident = $text:literal, )*) => {
        /// The type of an entry, as far as this crate knows it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum EntryKind {
            $( $(#[$meta])* $name, )*
            /// A type that this crate does not know: kept, a node of the tree, and not in the context.
            Unknown,
        }

        impl EntryKind {
            /// The kind that a `type` field names.
            pub fn from_type(text: &[u8]) -> Self {
                $( if text == $text.as_bytes() { return Self::$name; } )*
                Self::Unknown
            }

            /// The `type` field; `unknown` for a type that this crate does not know.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $( Self::$name => $text, )*
                    Self::Unknown => "unknown",
                }
            }
        }
    };
}

kinds! {
    /// A message of the conversation.
    Message = "message",
    /// A message that a program added.
    CustomMessage = "custom_message",
    /// A compaction of either kind.
    Compaction = "compaction",
    /// The logical deletions of old atomic files; inert.
    ContextCompaction = "context_compaction",
    /// The summary of a branch that was left.
    BranchSummary = "branch_summary",
    /// Data of a program.
    Custom = "custom",
    /// A label on another entry.
    Label = "label",
    /// A change of the model.
    ModelChange = "model_change",
    /// A change of the thinking level.
    ThinkingLevelChange = "thinking_level_change",
    /// A change of the service tier.
    ServiceTierChange = "service_tier_change",
    /// A change of the mode.
    ModeChange = "mode_change",
    /// The selected tools of tool servers.
    McpToolSelection = "mcp_tool_selection",
    /// The selected tools among those found at run time.
    DiscoveredBuiltinToolSelection = "discovered_builtin_tool_selection",
    /// The models of a role, in order of preference.
    ConfiguredModelChain = "configured_model_chain",
    /// The session's name.
    SessionInfo = "session_info",
    /// A change of the session's title.
    TitleChange = "title_change",
    /// A summary for listings.
    SessionSummary = "session_summary",
    /// Rules that were injected once.
    TtsrInjection = "ttsr_injection",
    /// How a sub-session began.
    SessionInit = "session_init",
}

impl EntryKind {
    /// Whether entries of this kind can give a message of the context.
    pub const fn may_be_visible(self) -> bool {
        matches!(
            self,
            Self::Message | Self::CustomMessage | Self::BranchSummary | Self::Compaction
        )
    }
}

//! File mentions: a file that was shown again later need not be shown twice (spec "Pruning", 9; defect 6).

use std::fmt::Write as _;

use foldline_session_model::json::{DecodeError, Edit, edit, elements, object, write_string};
use foldline_session_model::log::SessionLog;
use foldline_session_model::message::{MentionedFile, Message, Shown, ToolResult};
use foldline_session_model::tokens::TokenCounter;
use foldline_session_model::{EntryId, EntryIx, Tokens};
use rustc_hash::FxHashSet;
use serde_json::value::RawValue;

use crate::policy::Policy;
use crate::rewrite::{MovedContent, Rewrite, RewriteError, RewrittenEntry, edit_message};
use crate::staleness::{Calls, Members, PathId, Paths, is_whole_file, split_selector, was_truncated};
use crate::turn_fence::first_fenced;
use crate::view::{Masking, View};

/// Which mentioned files become a notice. Nothing is changed yet.
#[must_use]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MentionPlan {
    /// The mentions that change, newest first.
    pub mentions: Vec<PrunedMention>,
    /// What they save together: estimate before less estimate after.
    pub tokens_saved: Tokens,
}

/// One entry with mentioned files that become notices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrunedMention {
    /// The entry.
    pub entry: EntryId,
    /// The same entry in its log.
    pub source: EntryIx,
    /// Positions of the files in the mention.
    pub files: Vec<usize>,
    /// What they save.
    pub saved: Tokens,
}

/// Plans which mentioned files become notices: those that a later mention or a later read shows whole. A failed read, one
/// of a part of the file and one that was cut short show nothing. Of the policy, only the turn fence counts.
pub fn plan_mentions(view: &View<'_>, policy: &Policy, counter: &dyn TokenCounter) -> MentionPlan {
    let fence = first_fenced(view, policy.protect_recent_turns);
    let calls = Calls::of(view);
    let mut paths = Paths::new(view.cwd);
    // Newest first: what is in here is shown later. The files of one mention do not supersede each other.
    let mut shown: FxHashSet<PathId> = FxHashSet::default();
    let mut plan = MentionPlan::default();
    for (position, item) in view.items.iter().enumerate().rev() {
        match item.message {
            Message::ToolResult(result) if item.masking == Masking::None && result.pruned_at.is_none() => {
                shown.extend(read_whole(result, &calls, &mut paths));
            }
            Message::FileMention(mention) => {
                let ids: Vec<PathId> = mention.files.iter().map(|file| paths.id(&file.path)).collect();
                let shows = |file: &MentionedFile<'_>| file.shown == Shown::Whole;
                let files: Vec<usize> = (0..mention.files.len())
                    .filter(|_| position < fence)
                    .filter(|at| {
                        let (file, id) = (mention.files.get(*at), ids.get(*at));
                        file.is_some_and(|file| {
                            shows(file) && (!file.content.is_empty() || file.image.is_some())
                        }) && id.is_some_and(|id| shown.contains(id))
                    })
                    .collect();
                for (file, id) in mention.files.iter().zip(&ids) {
                    if shows(file) {
                        shown.insert(*id);
                    }
                }
                let mut after = mention.clone();
                for at in &files {
                    if let Some(file) = after.files.get_mut(*at) {
                        file.content = notice(&file.path).into();
                        file.image = None;
                    }
                }
                let saved = counter
                    .message(item.message)
                    .saturating_sub(counter.message(&Message::FileMention(after)));
                if saved > Tokens::ZERO {
                    plan.tokens_saved += saved;
                    plan.mentions.push(PrunedMention {
                        entry: EntryId::from(item.id),
                        source: item.source,
                        files,
                        saved,
                    });
                }
            }
            _ => {}
        }
    }
    plan
}

impl MentionPlan {
    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.mentions.is_empty()
    }

    /// The entries with notices in place of the files.
    ///
    /// # Errors
    /// [`RewriteError`] if an entry is not what it was when the plan was made.
    pub fn rewrite(&self, log: &SessionLog) -> Result<Rewrite, RewriteError> {
        let mut rewrite = Rewrite {
            tokens_saved: self.tokens_saved,
            ..Rewrite::default()
        };
        for mention in &self.mentions {
            let line = rewritten_files(log, mention).map_err(|source| RewriteError::Unreadable {
                entry: mention.entry.clone(),
                source,
            })?;
            rewrite.entries.push(RewrittenEntry {
                entry: mention.entry.clone(),
                source: mention.source,
                line,
            });
        }
        Ok(rewrite)
    }
}

/// The file that a result shows whole.
fn read_whole(result: &ToolResult<'_>, calls: &Calls<'_>, paths: &mut Paths<'_>) -> Option<PathId> {
    let call = calls.get(&result.tool_call_id)?;
    if result.is_error || call.name != "read" {
        return None;
    }
    let arguments = Members::of(call.arguments.as_deref());
    let details = Members::of(result.details.as_deref());
    let path = arguments.path()?;
    let (base, selector) = split_selector(path);
    if !is_whole_file(&selector, &arguments) || was_truncated(&details) {
        return None;
    }
    let resolved = details.text("resolvedPath").filter(|path| !path.is_empty());
    Some(paths.id(resolved.as_deref().unwrap_or(base)))
}

fn notice(path: &str) -> String {
    format!("[Mention pruned: {path} is shown again further down; read the file to see it as it is now]")
}

fn rewritten_files(log: &SessionLog, mention: &PrunedMention) -> Result<String, DecodeError> {
    let message = log.message_json(mention.source).unwrap_or_default();
    let raw: &RawValue = serde_json::from_str(&message)?;
    let files = object(raw)
        .unwrap_or_default()
        .into_iter()
        .rev()
        .find(|(key, _)| key == "files")
        .and_then(|(_, files)| elements(files))
        .unwrap_or_default();
    let mut list = String::from("[");
    for (index, file) in files.iter().enumerate() {
        if index > 0 {
            list.push(',');
        }
        if !mention.files.contains(&index) {
            list.push_str(file.get());
            continue;
        }
        let path = Members::of(Some(file)).text("path").unwrap_or_default();
        let mut content = String::new();
        write_string(&mut content, &notice(&path));
        let edits = [
            Edit::Set {
                key: "content",
                json: content,
                after: "path",
            },
            Edit::Set {
                key: "pruned",
                json: String::from("true"),
                after: "content",
            },
            Edit::Remove { key: "image" },
            Edit::Remove { key: "lineCount" },
        ];
        // Writing to a String cannot fail.
        let _ = write!(list, "{}", edit(file.get().as_bytes(), &edits)?);
    }
    list.push(']');
    let files = Edit::Set {
        key: "files",
        json: list,
        after: "role",
    };
    edit_message(log, mention.source, &[files], MovedContent::Forget)
}

//! The rewrite: notices written over the results, originals in artifact files (seed 000, "Pre-compaction pruning").
//!
//! Artifacts are written first. Only the results whose artifact is safe are replaced; the rest stay as they are.

use std::collections::BTreeMap;

use foldline_session_model::json::{DecodeError, Edit, edit, write_string};
use foldline_session_model::log::SessionLog;
use foldline_session_model::tokens::TokenCounter;
use foldline_session_model::{EntryId, EntryIx, Tokens};

use crate::notice::number_reference;
use crate::plan::{Plan, Replacement};
use crate::policy::Originals;

/// When something was pruned: Unix time in milliseconds. One for all entries of a rewrite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stamp(pub u64);

/// Entries with new content, to be written in one step.
#[must_use]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rewrite {
    /// The entries that change, newest first.
    pub entries: Vec<RewrittenEntry>,
    /// What they save together.
    pub tokens_saved: Tokens,
    /// Results that were planned and stay, because their originals could not be stored.
    pub kept: Vec<EntryId>,
}

/// One entry with new content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RewrittenEntry {
    /// The entry.
    pub entry: EntryId,
    /// The same entry in its log.
    pub source: EntryIx,
    /// Its whole line without a newline: what is not replaced keeps its bytes.
    pub line: String,
}

/// Why a rewrite cannot be made. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RewriteError {
    /// The reference is longer than the plan made room for.
    #[error("the reference to artifact {number} is longer than planned, for entry {entry}")]
    ReferenceTooLong {
        /// The entry.
        entry: EntryId,
        /// The artifact.
        number: u64,
    },
    /// The entry is not what it was when the plan was made.
    #[error("entry {entry} cannot be rewritten")]
    Unreadable {
        /// The entry.
        entry: EntryId,
        /// What is wrong with it.
        source: DecodeError,
    },
}

impl Plan {
    /// The entries with notices in place. `artifacts` names the number under which the original of an entry is stored;
    /// an entry that it does not name stays as it is. A plan without references asks for none, and one for a mask
    /// refers to the log and changes nothing here.
    ///
    /// Savings are those of the entries that change. Fewer than planned may not be worth a rewrite any more: that is
    /// for the caller to decide, before it commits.
    ///
    /// # Errors
    /// [`RewriteError`]; nothing is lost then.
    pub fn rewrite(
        &self,
        log: &SessionLog,
        artifacts: &BTreeMap<EntryIx, u64>,
        stamp: Stamp,
        counter: &dyn TokenCounter,
    ) -> Result<Rewrite, RewriteError> {
        let mut rewrite = Rewrite::default();
        for replacement in &self.replacements {
            let number = artifacts.get(&replacement.source);
            let reference = match (self.originals, number) {
                (Originals::Unreferenced, _) => None,
                (Originals::Artifacts { budget }, Some(&number)) => {
                    let reference = number_reference(number);
                    if reference.len() > usize::from(budget.get()) {
                        return Err(RewriteError::ReferenceTooLong {
                            entry: EntryId::from(self.entry(replacement)),
                            number,
                        });
                    }
                    Some(reference)
                }
                (Originals::Artifacts { .. }, None) | (Originals::InLog, _) => {
                    rewrite.kept.push(EntryId::from(self.entry(replacement)));
                    continue;
                }
            };
            let notice = self.notice(replacement, reference.as_deref());
            rewrite.tokens_saved += replacement.tokens.saturating_sub(counter.one(&notice));
            let line = replaced_line(log, replacement, &notice, stamp).map_err(|source| {
                RewriteError::Unreadable {
                    entry: EntryId::from(self.entry(replacement)),
                    source,
                }
            })?;
            rewrite.entries.push(RewrittenEntry {
                entry: EntryId::from(self.entry(replacement)),
                source: replacement.source,
                line,
            });
        }
        Ok(rewrite)
    }
}

impl Rewrite {
    /// The new lines by entry, as [`SessionLog::to_written_form_with`] takes them.
    pub fn lines(&self) -> BTreeMap<EntryIx, String> {
        let lines = self.entries.iter();
        lines.map(|entry| (entry.source, entry.line.clone())).collect()
    }

    /// Adds entries of another plan over the same log. An entry must not be in both.
    pub fn extend(&mut self, other: Self) {
        self.entries.extend(other.entries);
        self.tokens_saved += other.tokens_saved;
        self.kept.extend(other.kept);
    }
}

fn replaced_line(
    log: &SessionLog,
    replacement: &Replacement,
    notice: &str,
    stamp: Stamp,
) -> Result<String, DecodeError> {
    let mut content = String::from("[{\"type\":\"text\",\"text\":");
    write_string(&mut content, notice);
    content.push_str("}]");
    edit_message(
        log,
        replacement.source,
        &[
            Edit::Set {
                key: "content",
                json: content,
                after: "toolName",
            },
            Edit::Set {
                key: "prunedAt",
                json: stamp.0.to_string(),
                after: "content",
            },
        ],
        MovedContent::Forget,
    )
}

/// What becomes of the mark by which another agent finds content of an entry that it moved out of the file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum MovedContent {
    /// It stays: the content that it belongs to does.
    Keep,
    /// It goes: it would bring the old content back.
    Forget,
}

impl MovedContent {
    pub(crate) const KEY: &'static str = "evictedContent";
}

/// The line of an entry with members of its message changed.
pub(crate) fn edit_message(
    log: &SessionLog,
    entry: EntryIx,
    edits: &[Edit<'_>],
    moved: MovedContent,
) -> Result<String, DecodeError> {
    let message = log.message_json(entry).unwrap_or_default();
    let mut line = vec![Edit::Set {
        key: "message",
        json: edit(message.as_bytes(), edits)?,
        after: "timestamp",
    }];
    if moved == MovedContent::Forget {
        line.push(Edit::Remove {
            key: MovedContent::KEY,
        });
    }
    log.edited_line(entry, &line)
}

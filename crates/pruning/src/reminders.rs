//! Reminders of which only the newest counts (spec "Pruning", 9; defect 6).

use foldline_session_model::entry::EntryKind;
use foldline_session_model::json::{Edit, write_string};
use foldline_session_model::log::SessionLog;
use foldline_session_model::message::{Content, Message};
use foldline_session_model::tokens::TokenCounter;
use foldline_session_model::{EntryId, EntryIx, Tokens};
use rustc_hash::FxHashSet;

use crate::policy::Policy;
use crate::rewrite::{MovedContent, Rewrite, RewriteError, RewrittenEntry};
use crate::turn_fence::first_fenced;
use crate::view::View;

/// The type of messages that describe the project as it was.
pub const VOLATILE_CONTEXT: &str = "volatile-project-context";
/// The types of messages that remind of something once. Other reminders stay, however old.
pub const MAINTENANCE_REMINDERS: [&str; 3] = [
    "todo-write-error-reminder",
    "resolve-reminder",
    "eager-todo-prelude",
];
/// What stands in the place of a superseded message.
pub const SUPERSEDED: &str = "[superseded: a newer message of this kind follows]";

/// Which custom messages are superseded by a newer one of their type. Nothing is changed yet.
#[must_use]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReminderPlan {
    /// The entries, newest first.
    pub entries: Vec<(EntryId, EntryIx)>,
    /// What they save together: estimate before less estimate after.
    pub tokens_saved: Tokens,
}

/// Plans which custom messages of these types are superseded: all but the newest of each. One that would grow, such as one
/// that was superseded before, stays. Of the policy, only the turn fence counts.
pub fn plan_reminders(
    view: &View<'_>,
    policy: &Policy,
    types: &[&str],
    counter: &dyn TokenCounter,
) -> ReminderPlan {
    let fence = first_fenced(view, policy.protect_recent_turns);
    let mut newest_seen: FxHashSet<&str> = FxHashSet::default();
    let mut plan = ReminderPlan::default();
    for (position, item) in view.items.iter().enumerate().rev() {
        let Message::Custom(message) = item.message else {
            continue;
        };
        let Some(&kind) = types.iter().find(|kind| **kind == message.custom_type) else {
            continue;
        };
        if newest_seen.insert(kind) || position >= fence {
            continue;
        }
        let mut after = message.clone();
        after.content = Content::Text(SUPERSEDED.into());
        let saved = counter
            .message(item.message)
            .saturating_sub(counter.message(&Message::Custom(after)));
        if saved > Tokens::ZERO {
            plan.tokens_saved += saved;
            plan.entries.push((EntryId::from(item.id), item.source));
        }
    }
    plan
}

impl ReminderPlan {
    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The entries with the notice in place.
    ///
    /// # Errors
    /// [`RewriteError`] if an entry is not what it was when the plan was made.
    pub fn rewrite(&self, log: &SessionLog) -> Result<Rewrite, RewriteError> {
        let mut rewrite = Rewrite {
            tokens_saved: self.tokens_saved,
            ..Rewrite::default()
        };
        let mut content = String::new();
        write_string(&mut content, SUPERSEDED);
        let set = |after| Edit::Set {
            key: "content",
            json: content.clone(),
            after,
        };
        for (entry, source) in &self.entries {
            let line = if log.kind(*source) == EntryKind::Message {
                crate::rewrite::edit_message(log, *source, &[set("customType")], MovedContent::Forget)
            } else {
                let forget = Edit::Remove {
                    key: MovedContent::KEY,
                };
                log.edited_line(*source, &[set("customType"), forget])
            };
            rewrite.entries.push(RewrittenEntry {
                entry: entry.clone(),
                source: *source,
                line: line.map_err(|source| RewriteError::Unreadable {
                    entry: entry.clone(),
                    source,
                })?,
            });
        }
        Ok(rewrite)
    }
}

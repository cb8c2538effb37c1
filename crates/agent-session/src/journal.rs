//! The one place where a session is written: every entry goes through here, whole or not at all.
//!
//! The lock is taken for each commit and never held across a model call (R10). A file that grew behind our back is
//! refused, not overwritten.

mod error;
mod ids;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use foldline_session_model::fold::Profile;
use foldline_session_model::log::{Extent, Migration, SessionLog, Trust};
use foldline_session_model::tree::Append;
use foldline_session_model::{EntryDraft, EntryId, EntryIx, Envelope, HeaderDraft};
use foldline_session_store::{Expected, OpenError, OpenOptions, Owner, SessionStore, SessionWriter, Stamp};

pub use error::{CommitError, LoadSessionError};
pub(crate) use error::{full_text_of, system_of};
use ids::{Taken, fresh_id};

/// Where an entry goes.
#[derive(Clone, Debug)]
pub(crate) enum Under {
    /// Under the entry before it: the leaf, or the one that is written just before.
    Leaf,
    /// Under this entry; `None` makes it a root.
    Entry(Option<EntryId>),
}

/// An entry to be written.
#[derive(Clone, Debug)]
pub(crate) struct Pending {
    pub(crate) under: Under,
    pub(crate) draft: EntryDraft,
}

impl From<EntryDraft> for Pending {
    fn from(draft: EntryDraft) -> Self {
        Self {
            under: Under::Leaf,
            draft,
        }
    }
}

impl From<Append> for Pending {
    fn from(append: Append) -> Self {
        Self {
            under: Under::Entry(append.parent),
            draft: append.draft,
        }
    }
}

/// A group of entries that are written together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Group {
    pub(crate) entries: Vec<Pending>,
    /// What the entries were planned on. Bookkeeping that came after it is no obstacle.
    pub(crate) planned_for: PlannedFor,
    /// What a backup is made for.
    pub(crate) backup: Option<&'static str>,
    /// The entries only keep books: they change nothing that a plan depends on.
    pub(crate) bookkeeping: bool,
    /// A label for the last of the entries, written with them.
    pub(crate) label: Option<String>,
}

/// What entries were planned on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum PlannedFor {
    /// They do not depend on what the session held.
    #[default]
    Anything,
    /// The session as it was with this leaf.
    Leaf(Option<EntryId>),
}

/// What a commit did.
#[derive(Clone, Debug, Default)]
pub(crate) struct Committed {
    pub(crate) ids: Vec<EntryId>,
    pub(crate) backup: Option<PathBuf>,
    /// Why the first tries failed, if any did.
    pub(crate) refused_before: Option<String>,
}

/// The writing side of one session.
#[derive(Debug)]
pub(crate) struct Journal {
    store: Arc<dyn SessionStore>,
    path: PathBuf,
    keeps: Keeps,
    state: Mutex<State>,
}

/// How much of a session is kept in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keeps {
    /// What the context needs.
    Tail,
    /// All of it, for whoever looks at its tree.
    Whole,
}

#[derive(Debug)]
struct State {
    stamp: Stamp,
    /// The last entry of the file.
    leaf: Option<EntryId>,
    /// The last entry that is not mere bookkeeping of ours.
    content_leaf: Option<EntryId>,
    migration: Migration,
    /// Lines that are in the file and not yet in the log in memory.
    fresh: Vec<String>,
    taken: Taken,
}

/// How often a commit is tried that may succeed in a moment.
const TRIES: u32 = 4;
/// The wait before the second try; each further one is four times as long.
const FIRST_WAIT: Duration = Duration::from_millis(10);

impl Journal {
    /// Opens a session: its end, or all of it where that is needed.
    pub(crate) fn open(
        store: Arc<dyn SessionStore>,
        path: &Path,
        profile: Profile,
    ) -> Result<(Self, SessionLog), LoadSessionError> {
        let resumed = store.reader(path)?.resume(profile)?;
        Ok((
            Self::over(
                store,
                path.to_path_buf(),
                Keeps::Tail,
                &resumed.log,
                resumed.stamp,
            ),
            resumed.log,
        ))
    }

    /// Opens a whole session.
    pub(crate) fn open_whole(
        store: Arc<dyn SessionStore>,
        path: &Path,
    ) -> Result<(Self, SessionLog), LoadSessionError> {
        let snapshot = store.read(path)?;
        let stamp = snapshot.stamp();
        let bytes: Vec<u8> = snapshot.into();
        let log = SessionLog::load(bytes, Trust::Validated)?;
        Ok((
            Self::over(store, path.to_path_buf(), Keeps::Whole, &log, stamp),
            log,
        ))
    }

    /// Takes over a session that was read already, in the state that the stamp names.
    pub(crate) fn over_read(
        store: Arc<dyn SessionStore>,
        path: &Path,
        log: &SessionLog,
        stamp: Stamp,
    ) -> Self {
        let keeps = match log.extent() {
            Extent::Whole => Keeps::Whole,
            Extent::Tail { .. } => Keeps::Tail,
        };
        Self::over(store, path.to_path_buf(), keeps, log, stamp)
    }

    /// Writes a new session of these entries.
    pub(crate) fn create(
        store: Arc<dyn SessionStore>,
        path: &Path,
        header: &HeaderDraft,
        drafts: &[EntryDraft],
    ) -> Result<(Self, SessionLog), LoadSessionError> {
        let mut text = header.line();
        text.push('\n');
        let mut parent = None;
        let mut ids: Vec<EntryId> = Vec::new();
        for draft in drafts {
            let id = fresh_id(|id| ids.iter().any(|own| own.as_str() == id));
            text.push_str(&draft.line(&Envelope {
                id: id.clone(),
                parent: parent.replace(id.clone()),
                timestamp: header.timestamp.clone(),
            }));
            text.push('\n');
            ids.push(id);
        }
        let stamp = store.create(path, &mut lines_of(text.as_bytes()))?;
        let log = SessionLog::load(text.into_bytes(), Trust::Validated)?;
        Ok((
            Self::over(store, path.to_path_buf(), Keeps::Tail, &log, stamp),
            log,
        ))
    }

    fn over(
        store: Arc<dyn SessionStore>,
        path: PathBuf,
        keeps: Keeps,
        log: &SessionLog,
        stamp: Stamp,
    ) -> Self {
        let leaf = log.leaf().map(|ix| log.entry_id(ix));
        Self {
            store,
            path,
            keeps,
            state: Mutex::new(State {
                stamp,
                content_leaf: leaf.clone(),
                leaf,
                migration: log.disk_form().migration,
                fresh: Vec::new(),
                taken: Taken::of(log),
            }),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn store(&self) -> &Arc<dyn SessionStore> {
        &self.store
    }

    /// The entry that a plan is made for.
    pub(crate) fn content_leaf(&self) -> Option<EntryId> {
        self.state().content_leaf.clone()
    }

    /// Adds to the log in memory what was written since the last call.
    ///
    /// # Errors
    /// The file was brought into today's form meanwhile: the caller reads it again.
    pub(crate) fn absorb(
        &self,
        log: &mut SessionLog,
    ) -> Result<(), foldline_session_model::log::AppendError> {
        let lines = std::mem::take(&mut self.state().fresh);
        lines.iter().try_for_each(|line| log.append(line).map(|_| ()))
    }

    /// Reads the whole session again.
    pub(crate) fn reload(&self) -> Result<SessionLog, LoadSessionError> {
        let mut state = self.state();
        let snapshot = self.store.read(&self.path)?;
        let stamp = snapshot.stamp();
        let bytes: Vec<u8> = snapshot.into();
        let log = SessionLog::load(bytes, Trust::Validated)?;
        state.stamp = stamp;
        let leaf = log.leaf().map(|ix| log.entry_id(ix));
        state.content_leaf.clone_from(&leaf);
        state.leaf = leaf;
        state.migration = log.disk_form().migration;
        state.fresh.clear();
        state.taken = Taken::of(&log);
        Ok(log)
    }

    /// Reads the end of the session again that the context needs, so that what a compaction replaced leaves the memory.
    /// `None`: it stays, because all of it is wanted, or because the file is not as this journal left it.
    ///
    /// # Errors
    /// The file cannot be read; nothing has changed then.
    pub(crate) async fn reload_tail(
        self: &Arc<Self>,
        profile: Profile,
    ) -> Result<Option<SessionLog>, LoadSessionError> {
        if self.keeps == Keeps::Whole {
            return Ok(None);
        }
        let journal = Arc::clone(self);
        let read = tokio::task::spawn_blocking(move || {
            // Held meanwhile, so that nothing is written that the new log would lack.
            let mut state = journal.state();
            let resumed = journal.store.reader(&journal.path)?.resume(profile)?;
            if resumed.stamp != state.stamp {
                return Ok(None);
            }
            state.fresh.clear();
            Ok(Some(resumed.log))
        });
        read.await
            .unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
    }

    /// Writes entries, all of them or none, without holding up the runtime. What may pass in a moment is tried again.
    ///
    /// `log` is only read to bring an old file into today's form.
    pub(crate) async fn commit(
        self: &Arc<Self>,
        log: &Arc<SessionLog>,
        group: Group,
    ) -> Result<Committed, CommitError> {
        let log = Arc::clone(log);
        self.try_often(group, move |journal, group| journal.try_commit(Some(&log), group))
            .await
    }

    /// Writes bookkeeping entries, for whoever does not hold the log: it is read if the session has to be brought into
    /// today's form first.
    pub(crate) async fn commit_books(self: &Arc<Self>, group: Group) -> Result<Committed, CommitError> {
        self.try_often(group, |journal, group| {
            let migrated = journal.state().migration == Migration::NotNeeded;
            let log = if migrated { None } else { journal.load().ok() };
            journal.try_commit(log.as_ref(), group)
        })
        .await
    }

    /// Each try runs on a thread of its own, and one that has begun is finished, whoever waits for it.
    async fn try_often(
        self: &Arc<Self>,
        group: Group,
        commit: impl Fn(&Self, &Group) -> Result<Committed, CommitError> + Send + Sync + 'static,
    ) -> Result<Committed, CommitError> {
        let work = Arc::new((group, commit));
        let mut wait = FIRST_WAIT;
        let mut refused_before = None;
        for tries_left in (0..TRIES).rev() {
            let (journal, work) = (Arc::clone(self), Arc::clone(&work));
            let outcome = tokio::task::spawn_blocking(move || work.1(&journal, &work.0))
                .await
                .unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()));
            match outcome {
                Err(error) if tries_left > 0 && error.may_pass() => {
                    tracing::warn!(%error, "a commit is tried again");
                    refused_before.get_or_insert_with(|| error.to_string());
                    tokio::time::sleep(wait).await;
                    wait *= 4;
                }
                outcome => {
                    return outcome.map(|committed| Committed {
                        refused_before,
                        ..committed
                    });
                }
            }
        }
        Err(CommitError::Moved)
    }

    fn load(&self) -> Result<SessionLog, LoadSessionError> {
        let bytes: Vec<u8> = self.store.read(&self.path)?.into();
        Ok(SessionLog::load(bytes, Trust::Validated)?)
    }

    fn try_commit(&self, log: Option<&SessionLog>, group: &Group) -> Result<Committed, CommitError> {
        let mut state = self.state();
        if let PlannedFor::Leaf(planned) = &group.planned_for
            && *planned != state.content_leaf
        {
            return Err(CommitError::Moved);
        }
        if group.entries.is_empty() {
            return Ok(Committed::default());
        }
        let timestamp = now_text();
        let mut before = state.leaf.clone();
        let mut ids: Vec<EntryId> = Vec::with_capacity(group.entries.len());
        let mut lines = Vec::with_capacity(group.entries.len());
        for pending in &group.entries {
            let id = state.taken.fresh(&ids);
            let parent = match &pending.under {
                Under::Leaf => before,
                Under::Entry(parent) => parent.clone(),
            };
            lines.push(pending.draft.line(&Envelope {
                id: id.clone(),
                parent,
                timestamp: timestamp.clone(),
            }));
            before = Some(id.clone());
            ids.push(id);
        }
        if let (Some(label), Some(labelled)) = (&group.label, ids.last().cloned()) {
            let id = state.taken.fresh(&ids);
            let draft = EntryDraft::label(&labelled, Some(label));
            lines.push(draft.line(&Envelope {
                id: id.clone(),
                parent: Some(labelled),
                timestamp,
            }));
            before = Some(id.clone());
            ids.push(id);
        }
        let mut writer = self.writer(state.stamp)?;
        let mut backup = None;
        match state.migration {
            Migration::ReadOnly => return Err(CommitError::ReadOnly(self.path.clone())),
            Migration::Needed => {
                let text = match log.and_then(SessionLog::to_written_form) {
                    Some(text) => Some(text),
                    // Only its end is known: all of it is read for this.
                    None => self.load().ok().and_then(|log| log.to_written_form()),
                };
                let text = text.ok_or_else(|| CommitError::ReadOnly(self.path.clone()))?;
                backup = Some(writer.rewrite(&mut lines_of(&text), "migrate", SystemTime::now())?);
                state.migration = Migration::NotNeeded;
                state.stamp = writer.stamp();
            }
            Migration::NotNeeded => {
                if let Some(label) = group.backup {
                    backup = Some(writer.backup(label, SystemTime::now())?);
                }
            }
        }
        let borrowed: Vec<&str> = lines.iter().map(String::as_str).collect();
        let written = writer.append_group(&borrowed);
        state.stamp = writer.stamp();
        written?;
        if !group.bookkeeping {
            state.content_leaf.clone_from(&before);
        }
        state.leaf = before;
        state.fresh.extend(lines);
        state.taken.add(&ids);
        Ok(Committed {
            ids,
            backup,
            refused_before: None,
        })
    }

    /// Writes the session anew with other lines in the place of some entries. Blocks; returns the backup.
    pub(crate) fn rewrite_now(
        &self,
        log: &SessionLog,
        replaced: &BTreeMap<EntryIx, String>,
        label: &str,
    ) -> Result<PathBuf, CommitError> {
        let mut state = self.state();
        let text = log
            .to_written_form_with(replaced)
            .ok_or_else(|| CommitError::ReadOnly(self.path.clone()))?;
        let mut writer = self.writer(state.stamp)?;
        let backup = writer.rewrite(&mut lines_of(&text), label, SystemTime::now())?;
        state.stamp = writer.stamp();
        state.migration = Migration::NotNeeded;
        Ok(backup)
    }

    fn writer(&self, stamp: Stamp) -> Result<SessionWriter, OpenError> {
        self.store.open(
            &self.path,
            &OpenOptions {
                owner: Owner::this_process(),
                now: SystemTime::now(),
                expected: Expected::Exactly(stamp),
            },
        )
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The lines of a text that a file is made of; blank ones are left out.
fn lines_of(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|b| *b == b'\n').filter(|line| !line.is_empty())
}

/// The time as session files write it.
pub(crate) fn now_text() -> String {
    jiff::Timestamp::now()
        .strftime("%Y-%m-%dT%H:%M:%S%.3fZ")
        .to_string()
}

/// The time as messages record it.
pub(crate) fn now_ms() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}

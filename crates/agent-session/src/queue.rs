//! Messages that wait for their turn (spec "Orchestrator and clients", 1.2; R09).
//!
//! A message that was accepted is in the session before anyone is told so: as a `foldline/queued` entry, until the
//! message that delivers it names it. So it survives a crash, and is delivered once.

use std::collections::VecDeque;

use foldline_session_model::EntryDraft;
use foldline_session_model::entry::{EntryBody, EntryKind};
use foldline_session_model::log::SessionLog;
use foldline_session_model::model_call::InputBlock;
use rustc_hash::FxHashSet;
use serde::{Deserialize, Serialize};

use crate::message::text_of;

/// Holds messages that wait.
pub(crate) const QUEUED: &str = "foldline/queued";
/// Takes messages back that waited.
pub(crate) const DEQUEUED: &str = "foldline/dequeued";

/// When a queued message is delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Delivery {
    /// Before the next request of the run.
    Steer,
    /// When the run would end.
    FollowUp,
}

/// How many messages leave a queue at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum QueueMode {
    /// One; each gets a turn of its own.
    #[default]
    OneAtATime,
    /// All of them.
    All,
}

/// A message that waits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Queued {
    /// Names it in the session.
    pub id: String,
    /// When it is delivered.
    pub delivery: Delivery,
    /// What it says.
    pub blocks: Vec<InputBlock<'static>>,
    /// It leaves the queue alone, whatever the mode.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub alone: bool,
}

/// The messages that wait, by delivery and in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queues {
    steer: VecDeque<Queued>,
    follow_up: VecDeque<Queued>,
    pub(crate) steer_mode: QueueMode,
    pub(crate) follow_up_mode: QueueMode,
    pub(crate) paused: bool,
    /// A prompt among them was accepted on the promise that it runs after the operation in progress.
    pub(crate) prompted: bool,
}

#[derive(Serialize, Deserialize)]
struct Items<'i> {
    items: std::borrow::Cow<'i, [Queued]>,
}

/// What a compaction entry of ours says in its details about messages that wait.
#[derive(Deserialize)]
struct CompactionDetails {
    foldline: CompactionRecord,
}

#[derive(Deserialize)]
struct CompactionRecord {
    #[serde(default)]
    waiting: Vec<Queued>,
}

#[derive(Serialize, Deserialize)]
struct Ids {
    ids: Vec<String>,
}

impl Queues {
    pub(crate) fn push(&mut self, message: Queued) {
        self.queue(message.delivery).push_back(message);
    }

    /// The next messages of a queue. They stay in it until they are delivered: see [`delivered`](Self::delivered).
    pub(crate) fn next(&self, delivery: Delivery) -> Vec<Queued> {
        if self.paused {
            return Vec::new();
        }
        let (queue, mode) = match delivery {
            Delivery::Steer => (&self.steer, self.steer_mode),
            Delivery::FollowUp => (&self.follow_up, self.follow_up_mode),
        };
        let count = match mode {
            QueueMode::OneAtATime => 1,
            QueueMode::All => queue
                .iter()
                .position(|m| m.alone)
                .map_or(queue.len(), |at| at.max(1)),
        };
        queue.iter().take(count).cloned().collect()
    }

    /// The next messages, whenever they are due.
    pub(crate) fn next_any(&self) -> Vec<Queued> {
        let steering = self.next(Delivery::Steer);
        if steering.is_empty() {
            self.next(Delivery::FollowUp)
        } else {
            steering
        }
    }

    pub(crate) fn delivered(&mut self, id: &str) {
        self.steer.retain(|message| message.id != id);
        self.follow_up.retain(|message| message.id != id);
    }

    pub(crate) fn clear(&mut self) -> Vec<Queued> {
        self.steer.drain(..).chain(self.follow_up.drain(..)).collect()
    }

    /// All that wait.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Queued> {
        self.steer.iter().chain(&self.follow_up)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.steer.is_empty() && self.follow_up.is_empty()
    }

    pub(crate) fn texts(&self, delivery: Delivery) -> Vec<String> {
        let queue = match delivery {
            Delivery::Steer => &self.steer,
            Delivery::FollowUp => &self.follow_up,
        };
        queue.iter().map(|message| text_of(&message.blocks)).collect()
    }

    fn queue(&mut self, delivery: Delivery) -> &mut VecDeque<Queued> {
        match delivery {
            Delivery::Steer => &mut self.steer,
            Delivery::FollowUp => &mut self.follow_up,
        }
    }

    /// What waits according to a log: queued, and neither delivered nor taken back. A message that was delivered on
    /// another branch was delivered.
    pub(crate) fn of(log: &SessionLog) -> Self {
        let mut gone: FxHashSet<String> = FxHashSet::default();
        let mut found: Vec<Queued> = Vec::new();
        for ix in log.entries() {
            match log.kind(ix) {
                EntryKind::Custom => {
                    let Ok(EntryBody::Custom(custom)) = log.entry(ix).map(|entry| entry.body) else {
                        continue;
                    };
                    let data = custom.data.as_deref().map(serde_json::value::RawValue::get);
                    match (&*custom.custom_type, data) {
                        (QUEUED, Some(data)) => {
                            if let Ok(items) = serde_json::from_str::<Items<'_>>(data) {
                                found.extend(items.items.into_owned());
                            }
                        }
                        (DEQUEUED, Some(data)) => {
                            if let Ok(ids) = serde_json::from_str::<Ids>(data) {
                                gone.extend(ids.ids);
                            }
                        }
                        _ => {}
                    }
                }
                // A resume may read nothing from before a compaction, so that says again what waits.
                EntryKind::Compaction => {
                    if let Ok(EntryBody::Compaction(compaction)) = log.entry(ix).map(|entry| entry.body)
                        && let Some(details) = compaction.details.as_deref()
                        && let Ok(details) = serde_json::from_str::<CompactionDetails>(details.get())
                    {
                        found.extend(details.foldline.waiting);
                    }
                }
                EntryKind::Message => gone.extend(delivers(log.raw_line(ix))),
                _ => {}
            }
        }
        let mut queues = Self::default();
        for message in found {
            if gone.insert(message.id.clone()) {
                queues.push(message);
            }
        }
        queues
    }
}

/// The queued message that a message entry delivers.
fn delivers(line: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Entry {
        message: Message,
    }
    #[derive(Deserialize)]
    struct Message {
        #[serde(rename = "queuedId")]
        queued_id: Option<String>,
    }
    memchr::memmem::find(line, b"\"queuedId\"")?;
    serde_json::from_slice::<Entry>(line).ok()?.message.queued_id
}

/// The entry that holds waiting messages.
pub(crate) fn queued_entry(messages: &[Queued]) -> EntryDraft {
    let data = serde_json::to_string(&Items {
        items: messages.into(),
    });
    EntryDraft::custom(QUEUED, data.ok().as_deref())
}

/// The entry that takes waiting messages back.
pub(crate) fn dequeued_entry(messages: &[Queued]) -> EntryDraft {
    let ids = messages.iter().map(|message| message.id.clone()).collect();
    let data = serde_json::to_string(&Ids { ids });
    EntryDraft::custom(DEQUEUED, data.ok().as_deref())
}

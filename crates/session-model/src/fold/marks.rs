//! Entries of ours that change what the fold sees: prune masks and revocations (D4, D15).

use std::borrow::Cow;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::entry::{EntryBody, EntryKind};
use crate::json::{Field, json_object};
use crate::log::SessionLog;
use crate::{EntryIx, Tokens};

/// The `customType` of a prune mask.
pub const PRUNE_TYPE: &str = "foldline/prune";
/// The `customType` of a leaf move.
pub const LEAF_TYPE: &str = "foldline/leaf";
/// The `customType` of a revocation.
pub const REVOKE_TYPE: &str = "foldline/revoke";

json_object! {
    struct RawMarks {
        "entryId" => entry_id: Cow<'a, str>,
        "items" => items: Vec<RawMask<'a>>,
    }
}

json_object! {
    struct RawMask {
        "entryId" => entry_id: Cow<'a, str>,
        "notice" => notice: Cow<'a, str>,
        "tokens" => tokens: f64,
    }
}

/// The marks on a path.
#[derive(Default)]
pub(super) struct Marks {
    /// Entries that count as absent.
    pub(super) revoked: FxHashSet<EntryIx>,
    /// By masked entry: the notice in its place. The last mask wins.
    pub(super) masks: FxHashMap<EntryIx, Mask>,
}

pub(super) struct Mask {
    pub(super) entry: EntryIx,
    pub(super) notice: String,
    pub(super) tokens: Tokens,
}

impl Marks {
    pub(super) fn on_path(log: &SessionLog, path: &[EntryIx]) -> Self {
        let mut marks = Self::default();
        let ours: Vec<EntryIx> = path
            .iter()
            .copied()
            .filter(|ix| log.kind(*ix) == EntryKind::Custom)
            .filter(|ix| memchr::memmem::find(log.raw_line(*ix), b"foldline/").is_some())
            .collect();
        // Revocations first: a revoked mask, or a revoked revocation, counts for nothing. The newest is looked at
        // first, because only a later entry can revoke.
        for ix in ours.iter().rev() {
            if marks.revoked.contains(ix) {
                continue;
            }
            let Some((kind, raw)) = custom(log, *ix) else {
                continue;
            };
            if kind == REVOKE_TYPE
                && let Some(target) = raw.entry_id.as_deref().and_then(|id| log.find(id))
            {
                marks.revoked.insert(target);
            }
        }
        for ix in ours {
            if marks.revoked.contains(&ix) {
                continue;
            }
            let Some((kind, raw)) = custom(log, ix) else {
                continue;
            };
            if kind != PRUNE_TYPE {
                continue;
            }
            for item in raw.items.unwrap_or_default() {
                let target = item.entry_id.as_deref().and_then(|id| log.find(id));
                if let (Some(target), Some(notice)) = (target, item.notice) {
                    let tokens = crate::entry::decode::tokens(item.tokens);
                    marks.masks.insert(
                        target,
                        Mask {
                            entry: ix,
                            notice: notice.into_owned(),
                            tokens,
                        },
                    );
                }
            }
        }
        marks
    }
}

fn custom(log: &SessionLog, ix: EntryIx) -> Option<(Cow<'_, str>, RawMarks<'_>)> {
    let EntryBody::Custom(custom) = log.entry(ix).ok()?.body else {
        return None;
    };
    let data = match custom.data {
        Some(Cow::Borrowed(raw)) => RawMarks::lenient(raw).unwrap_or_default(),
        Some(Cow::Owned(raw)) => crate::json::Own::own(RawMarks::lenient(&raw).unwrap_or_default()),
        None => RawMarks::default(),
    };
    Some((custom.custom_type, data))
}

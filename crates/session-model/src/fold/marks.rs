//! Entries of ours that change what the fold sees: prune masks and revocations (D4, D15).

use std::borrow::Cow;
use std::fmt::Write as _;

use rustc_hash::FxHashMap;

use crate::entry::{Custom, EntryBody, EntryKind};
use crate::json::{Field, json_object, write_string};
use crate::log::SessionLog;
use crate::{EntryId, EntryIx, Tokens};

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
        "part" => part: Cow<'a, str>,
    }
}

/// The `part` of a mask that stands for the pictures of a message only.
const PICTURES: &str = "pictures";

/// The marks on a path. A mark applies to what stands before it on the path, never to what follows: the log was
/// that long when it was written.
#[derive(Default)]
pub(super) struct Marks {
    /// By revoked entry: where on the path the newest revocation of it stands.
    revoked: FxHashMap<EntryIx, usize>,
    /// By masked entry: the notice in its place. The last mask wins.
    pub(super) masks: FxHashMap<EntryIx, Mask>,
    /// The same for masks of pictures, which uncover nothing that a mask of the whole entry hides.
    pub(super) picture_masks: FxHashMap<EntryIx, Mask>,
}

pub(super) struct Mask {
    /// Where on the path the mask stands.
    pub(super) at: usize,
    pub(super) entry: EntryIx,
    pub(super) notice: String,
    pub(super) tokens: Tokens,
}

impl Marks {
    pub(super) fn on_path(log: &SessionLog, path: &[EntryIx]) -> Self {
        let mut marks = Self::default();
        let ours: Vec<(usize, EntryIx)> = path
            .iter()
            .copied()
            .enumerate()
            .filter(|(_, ix)| log.kind(*ix) == EntryKind::Custom)
            .filter(|(_, ix)| memchr::memmem::find(log.raw_line(*ix), b"foldline/").is_some())
            .collect();
        // Revocations first: a revoked mask, or a revoked revocation, counts for nothing. The newest is looked at
        // first, because only a later entry can revoke.
        for &(at, ix) in ours.iter().rev() {
            if marks.is_revoked(ix, at) {
                continue;
            }
            let revoked = custom(log, ix).as_ref().and_then(revoked_by);
            if let Some(target) = revoked.and_then(|id| log.find(&id)) {
                marks.revoked.entry(target).or_insert(at);
            }
        }
        for (at, ix) in ours {
            if marks.is_revoked(ix, at) {
                continue;
            }
            let Some(custom) = custom(log, ix).filter(|c| c.custom_type == PRUNE_TYPE) else {
                continue;
            };
            let raw = data(&custom);
            for item in raw.items.unwrap_or_default() {
                let target = item.entry_id.as_deref().and_then(|id| log.find(id));
                if let (Some(target), Some(notice)) = (target, item.notice) {
                    let tokens = crate::entry::decode::tokens(item.tokens);
                    let masks = if item.part.as_deref() == Some(PICTURES) {
                        &mut marks.picture_masks
                    } else {
                        &mut marks.masks
                    };
                    masks.insert(
                        target,
                        Mask {
                            at,
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

    /// Whether an entry, which stands at this place of the path, was revoked after it.
    pub(super) fn is_revoked(&self, ix: EntryIx, at: usize) -> bool {
        self.revoked.get(&ix).is_some_and(|by| *by > at)
    }
}

/// The data of a mask of pictures: a notice in the place of each picture of an entry.
pub(crate) fn picture_mask(items: &[(EntryId, String, Tokens)]) -> String {
    let mut data = String::from("{\"items\":[");
    for (at, (entry, notice, tokens)) in items.iter().enumerate() {
        data.push_str(if at == 0 {
            "{\"entryId\":"
        } else {
            ",{\"entryId\":"
        });
        write_string(&mut data, entry.as_str());
        data.push_str(",\"part\":");
        write_string(&mut data, PICTURES);
        data.push_str(",\"notice\":");
        write_string(&mut data, notice);
        // Writing to a String cannot fail.
        let _ = write!(data, ",\"tokens\":{tokens}}}");
    }
    data.push_str("]}");
    data
}

/// The id that a revocation names; `None` for other custom entries.
pub(crate) fn revoked_by(custom: &Custom<'_>) -> Option<String> {
    if custom.custom_type != REVOKE_TYPE {
        return None;
    }
    data(custom).entry_id.map(Cow::into_owned)
}

fn data<'c>(custom: &'c Custom<'_>) -> RawMarks<'c> {
    custom
        .data
        .as_deref()
        .and_then(RawMarks::lenient)
        .unwrap_or_default()
}

fn custom(log: &SessionLog, ix: EntryIx) -> Option<Custom<'_>> {
    match log.entry(ix).ok()?.body {
        EntryBody::Custom(custom) => Some(custom),
        _ => None,
    }
}

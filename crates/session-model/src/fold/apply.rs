//! The fold itself.

use std::borrow::Cow;

use super::marks::{Marks, Mask};
use super::{Context, ContextItem, Evidence, FoldError, Masked, Profile};
use crate::EntryIx;
use crate::entry::{Compaction, CompactionStrategy, Entry, EntryBody, EntryKind};
use crate::json::{Field, Raw, json_object};
use crate::log::SessionLog;
use crate::message::{Block, Content, CustomContent, Message, RemoteHistory, SummaryText, VerbatimBoundary};

pub(super) fn fold(
    log: &SessionLog,
    leaf: Option<EntryIx>,
    profile: Profile,
) -> Result<Context<'_>, FoldError> {
    let path = leaf.map(|leaf| log.path(leaf)).unwrap_or_default();
    let marks = Marks::on_path(log, &path);
    let (boundary, profile) = newest_compaction(log, &path, &marks, profile)?;
    let mut items = Vec::with_capacity(path.len());
    let mut from = 0;
    let mut boundary_at = 0;
    let mut compaction = None;
    if let Some((at, entry, found)) = boundary {
        compaction = path.get(at).copied();
        boundary_at = at;
        from = tail_start(log, &path, at, &found, profile);
        if let Some(source) = compaction {
            let message = boundary_message(&entry, *found, profile);
            if message.is_visible() {
                items.push(ContextItem {
                    source,
                    message,
                    masked: Masked::No,
                });
            }
        }
    }
    let kept_from = items.len();
    let mut kept_to = items.len();
    for (at, &source) in path.iter().enumerate().skip(from) {
        if !matches!(
            log.kind(source),
            EntryKind::Message | EntryKind::CustomMessage | EntryKind::BranchSummary
        ) || marks.is_revoked(source, at)
        {
            continue;
        }
        let entry = log.entry(source).map_err(|_| FoldError::Unreadable {
            id: log.entry_id(source),
        })?;
        let Some(message) = message_of(entry) else {
            continue;
        };
        items.push(masked(
            ContextItem {
                source,
                message,
                masked: Masked::No,
            },
            at,
            &marks,
        ));
        if at < boundary_at {
            kept_to = items.len();
        }
    }
    Ok(Context {
        log,
        leaf,
        path,
        items,
        kept_tail: kept_from..kept_to,
        compaction,
        profile,
    })
}

type Boundary<'l> = (usize, Entry<'l>, Box<Compaction<'l>>);

/// The newest active compaction and its place on the path, and whose rules say so.
pub(super) fn newest_compaction<'l>(
    log: &'l SessionLog,
    path: &[EntryIx],
    marks: &Marks,
    profile: Profile,
) -> Result<(Option<Boundary<'l>>, Profile), FoldError> {
    let mut evidence = Evidence::default();
    evidence.header(log.header());
    for (at, &ix) in path.iter().enumerate().rev() {
        if marks.is_revoked(ix, at) {
            continue;
        }
        evidence.entry(log.kind(ix));
        if log.kind(ix) != EntryKind::Compaction {
            continue;
        }
        let mut entry = log
            .entry(ix)
            .map_err(|_| FoldError::Unreadable { id: log.entry_id(ix) })?;
        let EntryBody::Compaction(compaction) = std::mem::replace(&mut entry.body, EntryBody::Other) else {
            continue;
        };
        if is_elided(&compaction) && stands_for_something(log, path, at) {
            continue;
        }
        evidence.compaction();
        let profile = evidence.resolve(profile);
        if profile.accepts(&compaction) {
            return Ok((Some((at, entry, compaction)), profile));
        }
    }
    Ok((None, evidence.resolve(profile)))
}

/// Whether anything but labels stands before a place on a path. A branch leaves labels out, and must mean the same.
fn stands_for_something(log: &SessionLog, path: &[EntryIx], at: usize) -> bool {
    path.iter().take(at).any(|ix| log.kind(*ix) != EntryKind::Label)
}

/// oh-my-pi replaced the text of superseded compactions by a placeholder. Such a compaction counts as absent
/// when there are entries before it that it stood for (spec, 12 row 55).
pub(crate) fn is_elided(compaction: &Compaction<'_>) -> bool {
    compaction.summary == "[Superseded compaction summary elided after a newer compaction]"
        || compaction.summary == "[Superseded compaction summary elided during session load]"
}

/// Where the kept tail begins on the path; right after the compaction if nothing is kept.
pub(super) fn tail_start(
    log: &SessionLog,
    path: &[EntryIx],
    at: usize,
    compaction: &Compaction<'_>,
    profile: Profile,
) -> usize {
    if !profile.keeps_tail(compaction.preserve_data.as_ref()) {
        return at + 1;
    }
    compaction
        .first_kept
        .as_deref()
        .and_then(|id| path[..at].iter().position(|ix| log.id(*ix) == id))
        .unwrap_or(at + 1)
}

pub(super) fn boundary_message<'l>(
    entry: &Entry<'l>,
    compaction: Compaction<'l>,
    profile: Profile,
) -> Message<'l> {
    let timestamp = crate::time::unix_millis(&entry.timestamp);
    if compaction.strategy == CompactionStrategy::VerbatimLines && profile.knows_verbatim() {
        return Message::VerbatimBoundary(VerbatimBoundary {
            text: compaction.summary,
            details: compaction.details,
            timestamp,
        });
    }
    let remote_history = compaction.preserve_data.as_ref().and_then(remote_history);
    Message::CompactionSummary(SummaryText {
        summary: compaction.summary,
        from_id: None,
        tokens_before: compaction.tokens_before,
        remote_history,
        timestamp,
    })
}

json_object! {
    struct PreserveData {
        "openaiRemoteCompaction" => remote: RawRemote<'a>,
    }
}

json_object! {
    struct RawRemote {
        "provider" => provider: Cow<'a, str>,
        "api" => api: Cow<'a, str>,
        "model" => model: Cow<'a, str>,
        "replacementHistory" => items: Raw<'a>,
    }
}

/// Whether the data hold a provider's own history that counts.
pub(super) fn has_remote_history(preserve_data: Option<&Raw<'_>>) -> bool {
    preserve_data.is_some_and(|raw| remote_history(&Cow::Borrowed(&**raw)).is_some())
}

/// A provider's own replacement history counts if it names a provider and has items (spec, 12 rows 52 and 53).
fn remote_history<'l>(raw: &Raw<'l>) -> Option<RemoteHistory<'l>> {
    let remote = match raw {
        Cow::Borrowed(raw) => PreserveData::lenient(raw)?.remote?,
        Cow::Owned(raw) => crate::json::Own::own(PreserveData::lenient(raw)?.remote?),
    };
    let provider = remote.provider.filter(|p| !p.is_empty())?;
    let items = remote.items?;
    let list = items.get();
    let empty = list.trim_start_matches('[').trim_start().starts_with(']');
    (list.starts_with('[') && !empty).then_some(RemoteHistory {
        provider,
        api: remote.api,
        model: remote.model,
        items,
    })
}

/// The message that an entry puts into the context.
pub(super) fn message_of(entry: Entry<'_>) -> Option<Message<'_>> {
    let timestamp = crate::time::unix_millis(&entry.timestamp);
    match entry.body {
        EntryBody::Message(message) => Some(*message),
        EntryBody::CustomMessage(m) => Some(Message::Custom(CustomContent {
            custom_type: m.custom_type,
            content: m.content,
            display: m.display,
            details: m.details,
            attribution: m.attribution,
            excluded: m.excluded,
            timestamp,
        })),
        EntryBody::BranchSummary(m) if !m.summary.is_empty() => Some(Message::BranchSummary(SummaryText {
            summary: m.summary,
            from_id: Some(m.from_id),
            timestamp,
            ..SummaryText::default()
        })),
        _ => None,
    }
}

pub(super) fn masked<'l>(mut item: ContextItem<'l>, at: usize, marks: &Marks) -> ContextItem<'l> {
    let later = |mask: &&Mask| mask.at > at;
    if let Some(mask) = marks.masks.get(&item.source).filter(later)
        && let Message::ToolResult(result) = &mut item.message
    {
        result.content = Content::Blocks(vec![notice(mask)]);
        item.masked = Masked::ByEntry {
            mask: mask.entry,
            original: mask.tokens,
        };
        return item;
    }
    if let Some(mask) = marks.picture_masks.get(&item.source).filter(later)
        && let Some(content) = item.message.content_mut()
        && content.image_count() > 0
    {
        if let Content::Blocks(blocks) = content {
            for block in blocks.iter_mut().filter(|b| matches!(b, Block::Image { .. })) {
                *block = notice(mask);
            }
        }
        item.masked = Masked::Pictures {
            mask: mask.entry,
            original: mask.tokens,
        };
    }
    item
}

fn notice<'l>(mask: &Mask) -> Block<'l> {
    Block::Text {
        text: Cow::Owned(mask.notice.clone()),
        signature: None,
    }
}

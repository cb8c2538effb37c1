//! What must hold for any bytes at all. The fuzz target `load_bytes` and the test of the same name run it.

use foldline_session_model::fold::Profile;
use foldline_session_model::llm::{TrailingCalls, Wrappers};
use foldline_session_model::log::{SessionLog, Trust};
use foldline_session_model::tail::{Need, TailReader};
use foldline_session_model::tokens::{CharsPerFour, Heuristic, TokenCounter};
use foldline_session_model::tree::Leaf;
use foldline_session_model::{EntryDraft, EntryId, Envelope, HeaderDraft};

/// Loads the bytes in every way and does with them what a program can do.
///
/// # Panics
/// If something does not hold.
pub fn load_bytes(bytes: &[u8]) {
    let claimed = SessionLog::load(bytes, Trust::Claimed);
    let validated = SessionLog::load(bytes, Trust::Validated);
    assert_eq!(claimed.is_ok(), validated.is_ok());
    let (Ok(claimed), Ok(log)) = (claimed, validated) else {
        return;
    };
    use_all(&claimed);
    use_all(&log);
    resume_agrees(bytes, &log);
    if let Some(written) = log.to_written_form() {
        let Ok(again) = SessionLog::load(written, Trust::Validated) else {
            panic!("the written form is a session");
        };
        assert_eq!(again.len(), log.len());
        assert_eq!(said(&again), said(&log));
        grow(again);
        copies_agree(&log);
    }
}

fn use_all(log: &SessionLog) {
    for ix in log.entries() {
        drop((log.evicted(ix), log.kind_text(ix), log.timestamp(ix)));
        let decoded = log.entry(ix);
        assert!(decoded.is_ok() || log.trust() == Trust::Claimed);
    }
    let children = log.children();
    let below: usize = log.entries().map(|ix| children.of(ix).len()).sum();
    assert_eq!(below + children.roots().len(), log.len());
    let wrappers = Wrappers::default();
    let last = log.leaf().map(|ix| log.entry_id(ix));
    for profile in [Profile::Auto, Profile::Pi, Profile::Gajae, Profile::Atomic] {
        let leaves = [Leaf::Last, Leaf::BeforeFirst]
            .into_iter()
            .chain(last.clone().map(Leaf::Entry));
        for leaf in leaves {
            let Ok(context) = log.context(&leaf, profile) else {
                continue;
            };
            drop((
                context.state().to_details(),
                context.undo(),
                context.last_user_text(),
            ));
            for message in context.messages() {
                assert!(Heuristic.message(message).get() < u64::MAX);
                assert!(CharsPerFour.message(message).get() < u64::MAX);
            }
            for message in context.llm_view(&wrappers, TrailingCalls::Answer) {
                drop(message.to_request(log));
            }
        }
    }
    drop(log.labels());
}

/// The entries of the context at the leaf.
fn said(log: &SessionLog) -> Option<Vec<(EntryId, String)>> {
    let context = log.context(&Leaf::Last, Profile::Auto).ok()?;
    let items = context.items.iter();
    Some(
        items
            .map(|item| (log.entry_id(item.source), item.message.role().to_owned()))
            .collect(),
    )
}

fn resume_agrees(bytes: &[u8], log: &SessionLog) {
    let mut reader = TailReader::new(bytes.len() as u64, Profile::Auto);
    while let Need::Bytes(range) = reader.need() {
        let at = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX);
        reader.feed(bytes.get(at(range.start)..at(range.end)).unwrap_or_default());
    }
    if let Some(tail) = reader.finish().ok().as_ref().and_then(said) {
        assert_eq!(Some(tail), said(log));
    }
}

fn grow(mut log: SessionLog) {
    let line = EntryDraft::session_info("name").line(&Envelope {
        id: "a new id that no fuzzer finds".into(),
        parent: log.leaf().map(|ix| log.entry_id(ix)),
        timestamp: "2026-01-01T00:00:00.000Z".into(),
    });
    let before = log.bytes().to_vec();
    let Ok(ix) = log.append(&line) else {
        panic!("a session in today's form can grow");
    };
    assert!(log.bytes().starts_with(&before));
    assert_eq!(log.leaf(), Some(ix));
}

fn copies_agree(log: &SessionLog) {
    let header = HeaderDraft {
        id: "copy".into(),
        timestamp: "2026-01-01T00:00:00.000Z".into(),
        cwd: String::new(),
        parent_session: None,
        title: None,
    };
    let Ok(bytes) = log.branch(&Leaf::Last, &header, &mut || "minted".into()) else {
        panic!("a whole session can be branched");
    };
    assert!(SessionLog::load(bytes, Trust::Validated).is_ok());
}

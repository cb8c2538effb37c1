//! A picture that a provider refuses.
#![allow(clippy::unwrap_used, reason = "a test stops when its input is wrong")]

use foldline_pruning::mask_pictures;
use foldline_session_model::fold::{Context, Profile};
use foldline_session_model::llm::{LlmBlock, Wrappers};
use foldline_session_model::log::{SessionLog, Trust};
use foldline_session_model::tokens::Heuristic;
use foldline_session_model::tree::Leaf;
use foldline_session_model::{EntryId, Envelope};

const SESSION: &str = r#"{"type":"session","version":3,"id":"s0","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w"}
{"type":"message","id":"u1","parentId":null,"timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"user","content":[{"type":"text","text":"see"},{"type":"image","data":"iVBORw0KGgoAAAANSUhEUgAAIAAAAAQACAYAAAA=","mimeType":"image/png"}]}}
{"type":"message","id":"a1","parentId":"u1","timestamp":"2026-01-01T00:00:02.000Z","message":{"role":"assistant","content":[{"type":"toolCall","id":"c1","name":"shot","arguments":{}}],"provider":"p","model":"m","stopReason":"toolUse"}}
{"type":"message","id":"t1","parentId":"a1","timestamp":"2026-01-01T00:00:03.000Z","message":{"role":"toolResult","toolCallId":"c1","toolName":"shot","content":[{"type":"image","data":"AAAA","mimeType":"image/png"},{"type":"text","text":"the second"}],"isError":false}}
"#;

/// The texts and pictures that a model sees.
fn shown(context: &Context<'_>) -> Vec<String> {
    let wrappers = Wrappers::default();
    context
        .converted(&wrappers)
        .into_iter()
        .flat_map(|message| {
            message
                .content
                .iter()
                .filter_map(|block| match block {
                    LlmBlock::Text(text) => Some(text.to_string()),
                    LlmBlock::Image { data, .. } => Some(format!("picture of {}", data.len())),
                    _ => None,
                })
                .collect::<Vec<_>>()
        })
        .collect()
}

fn fold(log: &SessionLog) -> Context<'_> {
    log.context(&Leaf::Last, Profile::Foldline).unwrap()
}

#[test]
fn fb_084_a_refused_picture_is_masked_and_the_log_stays() {
    let log = SessionLog::load(SESSION, Trust::Validated).unwrap();
    let context = fold(&log);
    assert_eq!(
        shown(&context),
        ["see", "picture of 40", "picture of 4", "the second"]
    );
    let mut text = SESSION.to_owned();
    let mut parent = "t1";
    for (entry, id) in [("u1", "m1"), ("t1", "m2")] {
        let draft = mask_pictures(&context, &EntryId::from(entry), &Heuristic).unwrap();
        let line = draft.line(&Envelope {
            id: EntryId::from(id),
            parent: Some(EntryId::from(parent)),
            timestamp: "2026-01-01T00:00:04.000Z".to_owned(),
        });
        text.push_str(&line);
        text.push('\n');
        parent = id;
    }
    let later = SessionLog::load(text.as_str(), Trust::Validated).unwrap();
    let context = fold(&later);
    assert_eq!(
        shown(&context),
        [
            "see",
            "[image 8192x1024 removed: the model's provider refused it]",
            "[image removed: the model's provider refused it]",
            "the second",
        ]
    );
    // The pictures are where they were.
    assert!(text.starts_with(SESSION));
    // Nothing is left to mask, and an undo shows the newest again.
    assert_eq!(mask_pictures(&context, &EntryId::from("u1"), &Heuristic), None);
    assert_eq!(mask_pictures(&context, &EntryId::from("a1"), &Heuristic), None);
    assert_eq!(context.undo().unwrap().target, EntryId::from("m2"));
}

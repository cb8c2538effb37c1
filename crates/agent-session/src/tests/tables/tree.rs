//! Moves in the tree (12 and 17, Tree).

use foldline_session_model::EntryId;
use foldline_session_model::entry::EntryKind;

use async_trait::async_trait;

use super::*;
use crate::hooks::{
    BeforeTreeAnswer, BeforeTreeEvent, HookContext, HookError, HookEvent, HookRunner, HookTreeSummary, Hooks,
};
use crate::{BranchSummaryChoice, NavigateOptions, SessionError};

/// Three questions with their answers; the ids of the six entries.
async fn three_turns() -> (Rig, Vec<String>) {
    let rig = Play::turns([done()]).rig().filled(3, 200).await;
    let log = rig.log();
    let ids = log
        .entries()
        .filter(|ix| log.kind(*ix) == EntryKind::Message)
        .map(|ix| log.id(ix).to_owned())
        .collect();
    (rig, ids)
}

fn summarised() -> NavigateOptions {
    NavigateOptions {
        summary: BranchSummaryChoice::Summarize,
        ..NavigateOptions::default()
    }
}

fn id(id: &str) -> EntryId {
    EntryId::from(id)
}

#[tokio::test(start_paused = true)]
async fn a_move_to_a_question_goes_before_it_and_gives_its_text_back() {
    let (rig, ids) = three_turns().await;
    let moved = rig
        .session
        .navigate(&ids[0], NavigateOptions::default())
        .await
        .unwrap();
    assert_eq!(
        (moved.new_leaf_id, moved.editor_text.as_deref()),
        (None, Some("question 0"))
    );
    assert_eq!(rig.context(), Vec::<String>::new());
    let (rig, ids) = three_turns().await;
    let moved = rig
        .session
        .navigate(&ids[4], NavigateOptions::default())
        .await
        .unwrap();
    assert_eq!(moved.new_leaf_id, Some(id(&ids[3])));
    assert_eq!(moved.editor_text.as_deref(), Some("question 2"));
    assert_eq!(moved.summary_entry_id, None);
    assert_eq!(rig.asked(Kind::Summary).len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_move_to_an_answer_stands_on_it() {
    let (rig, ids) = three_turns().await;
    let moved = rig
        .session
        .navigate(&ids[1], NavigateOptions::default())
        .await
        .unwrap();
    assert_eq!((moved.new_leaf_id, moved.editor_text), (Some(id(&ids[1])), None));
    assert_eq!(rig.context().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_summary_of_what_is_left_hangs_at_the_new_place() {
    for (target, parent) in [(0, None), (2, Some(1_usize))] {
        let (mut rig, ids) = three_turns().await;
        let moved = rig.session.navigate(&ids[target], summarised()).await.unwrap();
        let summary = moved.summary_entry_id.clone().unwrap();
        assert_eq!(moved.new_leaf_id.as_ref(), Some(&summary));
        let log = rig.log();
        let ix = log.find(summary.as_str()).unwrap();
        assert_eq!(log.kind(ix), EntryKind::BranchSummary);
        let line = String::from_utf8_lossy(log.raw_line(ix)).into_owned();
        let named = match parent {
            None => "\"parentId\":null".to_owned(),
            Some(at) => format!("\"parentId\":\"{}\"", ids[at]),
        };
        assert!(line.contains(&named), "{named} in {line}");
        let told = Told(rig.events());
        assert_eq!(
            (
                told.count("branch_summary_start"),
                told.count("branch_summary_end")
            ),
            (1, 1)
        );
    }
}

/// FB-070.
#[tokio::test(start_paused = true)]
async fn a_cancelled_summary_changes_nothing() {
    let mut rig = Play::default()
        .summaries([Script::hang()])
        .rig()
        .filled(3, 200)
        .await;
    let log = rig.log();
    let first = log
        .entries()
        .find(|ix| log.kind(*ix) == EntryKind::Message)
        .unwrap();
    let target = log.id(first).to_owned();
    let before = rig.bytes();
    let session = rig.session.clone();
    let moving = tokio::spawn(async move { session.navigate(&target, summarised()).await });
    rig.until_compacting().await;
    assert!(rig.session.abort_branch_summary());
    let moved = moving.await.unwrap().unwrap();
    assert_eq!(moved.outcome, OperationOutcome::Cancelled);
    assert_eq!(moved.new_leaf_id, moved.old_leaf_id);
    assert_eq!(rig.bytes(), before);
    let told = Told(rig.events());
    assert_eq!(
        (told.count("branch_summary_end"), told.count("navigated")),
        (1, 0)
    );
    assert!(!rig.session.state().is_compacting);
}

#[tokio::test(start_paused = true)]
async fn a_summary_that_fails_changes_nothing() {
    let refused = || Script::failure(ErrorClass::Auth, "no key");
    let mut rig = Play::default().summaries([refused()]).rig().filled(3, 200).await;
    let log = rig.log();
    let first = log
        .entries()
        .find(|ix| log.kind(*ix) == EntryKind::Message)
        .unwrap();
    let before = rig.bytes();
    let moved = rig.session.navigate(log.id(first), summarised()).await;
    assert!(matches!(moved, Err(SessionError::Provider { message, .. }) if message.contains("no key")));
    assert_eq!(rig.bytes(), before);
    assert_eq!(Told(rig.events()).count("branch_summary_end"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_move_to_where_one_stands_is_none() {
    let (rig, ids) = three_turns().await;
    let before = rig.bytes();
    let moved = rig.session.navigate(&ids[5], summarised()).await.unwrap();
    assert_eq!(moved.outcome, OperationOutcome::Skipped);
    assert_eq!((rig.bytes(), rig.model.calls()), (before, 0));
}

#[tokio::test(start_paused = true)]
async fn instructions_and_labels_go_where_they_belong() {
    let (rig, ids) = three_turns().await;
    let options = NavigateOptions {
        instructions: Some("mind the lexer".to_owned()),
        label: Some("the fork".to_owned()),
        ..summarised()
    };
    let moved = rig.session.navigate(&ids[2], options).await.unwrap();
    assert!(rig.asked(Kind::Summary)[0].last_text().contains("mind the lexer"));
    let log = rig.log();
    let labels: Vec<String> = log
        .entries()
        .filter(|ix| log.kind(*ix) == EntryKind::Label)
        .map(|ix| String::from_utf8_lossy(log.raw_line(ix)).into_owned())
        .collect();
    let summary = moved.summary_entry_id.unwrap();
    assert_eq!(labels.len(), 1);
    assert!(
        labels[0].contains(&format!("\"targetId\":\"{summary}\"")),
        "{labels:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn an_unknown_place_is_named() {
    let (rig, _) = three_turns().await;
    let moved = rig.session.navigate("nowhere", NavigateOptions::default()).await;
    assert!(matches!(moved, Err(SessionError::Failed(text)) if text == "Entry nowhere not found"));
}

/// What a hook does with a move, and what it was told.
struct BeforeTree {
    cancel: bool,
    summary: Option<&'static str>,
    told: Mutex<Vec<(usize, bool)>>,
}

impl BeforeTree {
    fn new(cancel: bool, summary: Option<&'static str>) -> Arc<Self> {
        Arc::new(Self {
            cancel,
            summary,
            told: Mutex::default(),
        })
    }
}

#[async_trait]
impl Hooks for BeforeTree {
    fn path(&self) -> &'static str {
        "before-tree"
    }

    fn events(&self) -> &[HookEvent] {
        &[HookEvent::SessionBeforeTree]
    }

    async fn session_before_tree(
        &self,
        event: &BeforeTreeEvent<'_>,
        _: &HookContext,
    ) -> Result<BeforeTreeAnswer, HookError> {
        let preparation = &event.preparation;
        self.told.lock().unwrap().push((
            preparation.entries_to_summarize.len(),
            preparation.user_wants_summary,
        ));
        Ok(BeforeTreeAnswer {
            cancel: self.cancel,
            summary: self.summary.map(|summary| HookTreeSummary {
                summary: summary.to_owned(),
                details: None,
            }),
            ..BeforeTreeAnswer::default()
        })
    }
}

async fn hooked(hook: &Arc<BeforeTree>) -> (Rig, Vec<String>) {
    let (rig, ids) = three_turns().await;
    let hooks = HookRunner::new(vec![Arc::clone(hook) as Arc<dyn Hooks>]);
    rig.session
        .change_options(move |options| options.hooks = hooks)
        .await
        .unwrap();
    (rig, ids)
}

/// 12, step 6; trap 12: nothing stays open behind it.
#[tokio::test(start_paused = true)]
async fn a_hook_may_forbid_a_move() {
    for options in [NavigateOptions::default(), summarised()] {
        let wants = options.summary == BranchSummaryChoice::Summarize;
        let hook = BeforeTree::new(true, Some("not used"));
        let (mut rig, ids) = hooked(&hook).await;
        let before = rig.bytes();
        let moved = rig.session.navigate(&ids[1], options).await.unwrap();
        assert_eq!(moved.outcome, OperationOutcome::Cancelled);
        assert_eq!(moved.new_leaf_id, moved.old_leaf_id);
        assert_eq!((rig.bytes(), rig.model.calls()), (before, 0));
        assert_eq!(*hook.told.lock().unwrap(), [(4, wants)]);
        let told = Told(rig.events());
        assert_eq!(
            (told.count("navigated"), told.count("branch_summary_start")),
            (0, 0)
        );
        let state = rig.session.state();
        assert!(!state.is_compacting && !rig.session.abort_branch_summary());
        let (report, _) = rig.run("go").await;
        assert_eq!(report.end, RunEnd::Completed);
    }
}

/// 12, step 6: a hook's summary is used if one was asked for, and no model is.
#[tokio::test(start_paused = true)]
async fn a_hook_may_summarise_a_branch_if_a_summary_is_wanted() {
    let hook = BeforeTree::new(false, Some("the branch tried a table"));
    let (rig, ids) = hooked(&hook).await;
    let moved = rig.session.navigate(&ids[1], summarised()).await.unwrap();
    let summary = moved.summary_entry_id.unwrap();
    assert_eq!(
        (moved.outcome, rig.model.calls()),
        (OperationOutcome::Committed, 0)
    );
    assert_eq!(moved.new_leaf_id.as_ref(), Some(&summary));
    let log = rig.log();
    let line = String::from_utf8_lossy(log.raw_line(log.find(summary.as_str()).unwrap())).into_owned();
    for part in [
        "\"summary\":\"the branch tried a table\"",
        "\"fromExtension\":true",
        &format!("\"parentId\":\"{}\"", ids[1]),
    ] {
        assert!(line.contains(part), "{part} in {line}");
    }
    let hook = BeforeTree::new(false, Some("not wanted"));
    let (rig, ids) = hooked(&hook).await;
    let moved = rig
        .session
        .navigate(&ids[1], NavigateOptions::default())
        .await
        .unwrap();
    assert_eq!(
        (moved.summary_entry_id, moved.new_leaf_id),
        (None, Some(id(&ids[1])))
    );
    assert!(!String::from_utf8(rig.bytes()).unwrap().contains("not wanted"));
}

//! How hard a model thinks that makes the context smaller (spec "Verbatim", 8.3; R12; FB-067).

use foldline_session_model::model_call::ReasoningEffort;

use super::*;
use crate::{BranchSummaryChoice, NavigateOptions};

/// Spec "Verbatim", 8.3: "reasoning = session level only"; FB-067: "unset -> session model with capped level";
/// R12: "reasoning is capped".
#[tokio::test(start_paused = true)]
async fn maintenance_thinks_as_hard_as_the_settings_or_the_session_say() {
    use ReasoningEffort::{High, Low, Max, Off, Unset};
    let rows = [
        // Setting, session, request.
        (Unset, Unset, Unset),
        (Unset, Low, Low),
        (Unset, Off, Off),
        (Unset, Max, High),
        (Off, Max, Off),
        (Low, High, Low),
        (Max, Low, Max),
    ];
    for (setting, session, expected) in rows {
        let rig = |answers: Vec<Script>| {
            Play::default()
                .summaries(answers)
                .rig_with(|options| {
                    options.settings.summary_reasoning = setting;
                    options.reasoning = session;
                })
                .filled(20, 2_000)
        };
        for (action, answers) in [
            (CompactionAction::VerbatimLines, vec![ranges()]),
            (CompactionAction::ContextFull, Vec::new()),
        ] {
            let rig = rig(answers).await;
            let options = CompactOptions {
                action: Some(action),
                ..CompactOptions::default()
            };
            drop(rig.session.compact(options).await.unwrap());
            let asked = rig.asked(Kind::Summary);
            assert!(!asked.is_empty());
            for asked in asked {
                assert_eq!(asked.request.reasoning, expected, "{setting:?} {session:?}");
            }
        }

        let rig = rig(Vec::new()).await;
        let first = rig.log().entries().nth(1).map(|ix| rig.log().entry_id(ix));
        let options = NavigateOptions {
            summary: BranchSummaryChoice::Summarize,
            ..NavigateOptions::default()
        };
        drop(
            rig.session
                .navigate(first.unwrap().as_str(), options)
                .await
                .unwrap(),
        );
        let asked = rig.asked(Kind::Summary);
        assert_eq!(asked[0].request.reasoning, expected, "{setting:?} {session:?}");
    }
}

/// Spec "Verbatim", 3: `plannerModel{provider,id,thinkingLevel?}`.
#[tokio::test(start_paused = true)]
async fn the_entry_says_how_hard_a_borrowed_planner_thought() {
    let other = standby(ranges());
    let mut rig = Play::turns([overflow(), done()])
        .summaries([throttled(), throttled()])
        .rig_with(|options| {
            by_lines(options);
            options.reasoning = ReasoningEffort::Medium;
            options.models.summarisers = vec![Arc::clone(&other) as Arc<dyn LanguageModel>];
        })
        .filled(20, 2_000)
        .await;
    drop(rig.run("go").await);
    let planner = entries(&rig).remove(0).details.planner_model.unwrap();
    assert_eq!(
        (planner.id.as_str(), planner.thinking_level.as_str()),
        ("other", "medium")
    );
}

//! No setting of the seeds is dead: each one, read from a settings file under its name, changes what a session does
//! (seeds 000 and 002, "Settings"; agent-session, 13.3).
//!
//! `compaction.remoteEndpoint` and the models of summaries are the host's to make, and tested there.
#![expect(clippy::disallowed_types, reason = "a settings file is a small value")]

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::{Value, json};

use super::midrun::Fills;
use super::*;
use crate::settings::{FileLayer, Layers, ProjectTrust, resolve};
use crate::tool::AfterTool;
use crate::{BranchQuestion, BranchSummaryChoice, NavigateOptions, SessionSettings};

/// What happens to a session of 20 turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scene {
    /// A prompt whose answer used so many tokens; work is left.
    Prompt(u64),
    /// The same with a service that writes summaries.
    Service,
    /// A run that calls a tool which fills the window.
    Tool,
    /// Nothing, for ten minutes after a prompt.
    Idle,
    /// A compaction by hand.
    ByHand,
    /// A move to the beginning, summarised.
    Move,
    /// A move after which a host may ask.
    Question,
}

fn file(key: &str, value: &Value) -> SessionSettings {
    let mut tree = value.clone();
    for name in key.split('.').rev() {
        tree = json!({ name: tree });
    }
    let layer = FileLayer::parse("settings.json".into(), &tree.to_string());
    settings_of(&[&layer])
}

fn settings_of(layers: &[&FileLayer]) -> SessionSettings {
    let resolved = resolve(&Layers {
        user: layers.first().copied(),
        project: layers.get(1).copied(),
        trust: ProjectTrust::Trusted,
        ..Layers::default()
    });
    assert!(resolved.problems.is_empty(), "{:?}", resolved.problems);
    SessionSettings::from(&resolved.settings)
}

/// Everything that can be seen from outside: events, requests, what the model is left with, artifacts.
async fn seen(scene: Scene, settings: SessionSettings) -> String {
    if scene == Scene::Question {
        return match settings.branch_question {
            BranchQuestion::Never => "no question".to_owned(),
            BranchQuestion::Ask => "a question".to_owned(),
        };
    }
    let turns = match scene {
        Scene::Prompt(tokens) => vec![Script::reply("so far", used(tokens)), done(), done()],
        Scene::Service => vec![over(), done(), done()],
        Scene::Tool => vec![
            Script::tool_use("c1", "fill", "{}", used(100_000)),
            Script::reply("filled", used(150_000)),
            done(),
            done(),
        ],
        Scene::Idle => vec![Script::reply("so far", used(120_000)), done(), done()],
        Scene::ByHand | Scene::Move | Scene::Question => Vec::new(),
    };
    let mut play = Play::turns(turns);
    play.handoffs
        .push_back(Script::reply("# Handoff\n\nGo on.", used(1_000)));
    let mut rig = play
        .rig_with(|options| {
            options.settings = settings;
            options.work = unfinished();
            options.tools = vec![Arc::new(Fills(60_000, AfterTool::Continue))];
            if scene == Scene::Service {
                let answer = serde_json::to_string(&json!({"summary": crate::testing::SUMMARY})).unwrap();
                let answer = foldline_llm_client::testing::Replay::ok(answer);
                options.models.remote = Some(super::summaries::service([answer.clone(), answer]).1);
            }
        })
        .filled(20, 2_000)
        .await;
    match scene {
        Scene::ByHand => drop(rig.session.compact(CompactOptions::default()).await.unwrap()),
        Scene::Move => {
            // More than the branch summary of a model with a smaller window may read.
            rig = rig.filled(40, 4_000).await;
            let log = rig.log();
            let first = log.id(log.entries().next().unwrap()).to_owned();
            let options = NavigateOptions {
                summary: BranchSummaryChoice::Summarize,
                ..NavigateOptions::default()
            };
            drop(rig.session.navigate(&first, options).await.unwrap());
        }
        Scene::Idle => {
            let _watch = rig.session.watch_idle(|| true);
            drop(rig.session.prompt("go").await.unwrap());
            tokio::time::sleep(Duration::from_secs(600)).await;
        }
        _ => drop(rig.session.prompt("go").await.unwrap()),
    }
    let mut seen = String::new();
    for event in rig.events() {
        match &*event {
            Event::CompactionEnd(end) => {
                let result = end.result.as_ref();
                let planner = result.map(|result| (&*result.planner, result.rung, result.tokens_after));
                writeln!(seen, "{:?} {:?} {planner:?}", end.reason, end.outcome).unwrap();
            }
            Event::HandoffEnd { saved_path, .. } => writeln!(seen, "handoff {saved_path:?}").unwrap(),
            Event::MessageUpdate { .. } | Event::QueueUpdate { .. } => {}
            event => writeln!(seen, "{}", name(event)).unwrap(),
        }
    }
    for asked in rig.model.asked() {
        let length = asked.last_text().len();
        writeln!(
            seen,
            "{:?} {:?} {length}",
            kind(&asked.request),
            asked.request.reasoning
        )
        .unwrap();
    }
    if rig.session.path() == std::path::Path::new(crate::testing::FILE) {
        writeln!(seen, "{}", rig.context().len()).unwrap();
    }
    seen
}

#[tokio::test(start_paused = true)]
async fn every_setting_of_the_seeds_changes_what_a_session_does() {
    let rows: [(&str, Value, Scene); 27] = [
        // Seed 000, "Settings and defaults".
        ("compaction.enabled", json!(false), Scene::Prompt(180_000)),
        ("compaction.strategy", json!("handoff"), Scene::Prompt(180_000)),
        ("compaction.reserveTokens", json!(90_000), Scene::Prompt(120_000)),
        (
            "compaction.keepRecentTokens",
            json!(4_000),
            Scene::Prompt(180_000),
        ),
        ("compaction.autoContinue", json!(false), Scene::Prompt(180_000)),
        ("compaction.remoteEnabled", json!(false), Scene::Service),
        ("compaction.thresholdPercent", json!(50), Scene::Prompt(120_000)),
        (
            "compaction.thresholdTokens",
            json!(100_000),
            Scene::Prompt(120_000),
        ),
        ("compaction.idleEnabled", json!(true), Scene::Idle),
        ("branchSummary.enabled", json!(true), Scene::Question),
        ("branchSummary.reserveTokens", json!(199_000), Scene::Move),
        // Seed 002, "Settings", and its parameters; each with the strategy that it is about.
        ("compaction.compression_ratio", json!(0.1), Scene::ByHand),
        ("compaction.preserve_recent", json!(9), Scene::ByHand),
        (
            "compaction.query",
            json!("leases and their fencing tokens"),
            Scene::ByHand,
        ),
        // The rest of the group.
        ("compaction.model", json!("extractive"), Scene::ByHand),
        ("compaction.thinkingLevel", json!("low"), Scene::ByHand),
        ("thinkingLevel", json!("medium"), Scene::ByHand),
        (
            "compaction.thresholdRule",
            json!("reserve-only"),
            Scene::Prompt(180_000),
        ),
        ("compaction.keepUserTokens", json!(0), Scene::ByHand),
        ("compaction.maxSummaryTokens", json!(200), Scene::ByHand),
        ("compaction.shortSummary", json!("model"), Scene::ByHand),
        ("compaction.midTurnEnabled", json!(false), Scene::Tool),
        (
            "compaction.handoffSaveToDisk",
            json!(true),
            Scene::Prompt(180_000),
        ),
        (
            "compaction.handoffPromptExtension",
            json!("Name the branch."),
            Scene::Prompt(180_000),
        ),
        ("compaction.idleThresholdTokens", json!(1_000_000), Scene::Idle),
        ("compaction.idleTimeoutSeconds", json!(900), Scene::Idle),
        ("branchSummary.skipPrompt", json!(true), Scene::Question),
    ];
    for (key, value, scene) in rows {
        // What else must hold for the setting to say anything.
        let ground = match key {
            "compaction.compression_ratio" | "compaction.preserve_recent" => {
                json!({"compaction": {"strategy": "verbatim-lines", "model": "extractive"}})
            }
            // A model reads it.
            "compaction.query" => json!({"compaction": {"strategy": "verbatim-lines"}}),
            "compaction.handoffSaveToDisk" | "compaction.handoffPromptExtension" => {
                json!({"compaction": {"strategy": "handoff"}})
            }
            "compaction.idleEnabled" => json!({"compaction": {"idleThresholdTokens": 1_000}}),
            "compaction.idleThresholdTokens" | "compaction.idleTimeoutSeconds" => {
                json!({"compaction": {"idleEnabled": true, "idleThresholdTokens": 1_000}})
            }
            "branchSummary.skipPrompt" => json!({"branchSummary": {"enabled": true}}),
            _ => json!({}),
        };
        let ground = FileLayer::parse("user.json".into(), &ground.to_string());
        let mut tree = value.clone();
        for name in key.split('.').rev() {
            tree = json!({ name: tree });
        }
        let own = FileLayer::parse("project.json".into(), &tree.to_string());
        let without = seen(scene, settings_of(&[&ground])).await;
        let with = seen(scene, settings_of(&[&ground, &own])).await;
        assert_ne!(without, with, "{key} = {value} changes nothing");
    }
}

/// A handoff that nobody asked for keeps its document if the settings say so; one by hand does not.
#[tokio::test(start_paused = true)]
async fn g_an_automatic_handoff_keeps_its_document() {
    let mut play = Play::turns([over(), done()]);
    let document = || Script::reply("# Handoff\n\nGo on with the parser.", used(1_000));
    play.handoffs.extend([document(), document()]);
    let mut rig = play
        .rig_with(|options| {
            options.settings = file("compaction.handoffSaveToDisk", &json!(true));
            options.settings.compaction.strategy = foldline_compaction_core::settings::Strategy::Handoff;
        })
        .filled(20, 2_000)
        .await;
    let (_, told) = rig.run("go").await;
    let saved = told.0.iter().find_map(|event| match &**event {
        Event::HandoffEnd { saved_path, .. } => saved_path.clone(),
        _ => None,
    });
    assert_eq!(saved.as_deref(), Some("artifact://0"));
    let artifacts = foldline_session_store::SessionStore::artifacts(&rig.store, &rig.session.path());
    let text = artifacts.read(artifacts.ids().unwrap()[0]).unwrap();
    assert_eq!(text, b"# Handoff\n\nGo on with the parser.");
    let rig = rig.filled(2, 100).await;
    let by_hand = rig
        .session
        .handoff(crate::HandoffOptions::default())
        .await
        .unwrap();
    assert_eq!(by_hand.saved_path, None);
}

/// FB: with `midTurnEnabled` off the context is looked at when the run ends, and only then.
#[tokio::test(start_paused = true)]
async fn without_mid_turn_maintenance_a_run_is_looked_at_when_it_ends() {
    for (enabled, mid_turn) in [(true, true), (false, false)] {
        let mut rig = Play::turns([
            Script::tool_use("c1", "fill", "{}", used(100_000)),
            over(),
            done(),
        ])
        .rig_with(|options| {
            options.settings = file("compaction.midTurnEnabled", &json!(enabled));
            options.tools = vec![Arc::new(Fills(60_000, AfterTool::Continue))];
        })
        .filled(20, 2_000)
        .await;
        let (_, told) = rig.run("go").await;
        assert_eq!(told.ends()[0].mid_turn, mid_turn);
    }
}

/// 3.8: the time counts from the end of a run, what begins meanwhile stops it, and a host may say no.
#[tokio::test(start_paused = true)]
async fn an_idle_session_is_compacted_after_its_time() {
    let settings = || {
        let mut settings = file("compaction.idleEnabled", &json!(true));
        settings.compaction.idle_threshold_tokens = foldline_session_model::Tokens(1_000);
        settings
    };
    for (may, compactions) in [(true, 1), (false, 0)] {
        let mut rig = Play::turns([done(), done()])
            .rig_with(|options| options.settings = settings())
            .filled(20, 2_000)
            .await;
        let watch = rig.session.watch_idle(move || may);
        drop(rig.run("go").await);
        tokio::time::sleep(Duration::from_secs(200)).await;
        drop(rig.run("and on").await);
        tokio::time::sleep(Duration::from_secs(200)).await;
        assert_eq!(rig.compactions(), 0, "the second run began the time anew");
        tokio::time::sleep(Duration::from_secs(200)).await;
        assert_eq!(rig.compactions(), compactions);
        drop(watch);
    }
}

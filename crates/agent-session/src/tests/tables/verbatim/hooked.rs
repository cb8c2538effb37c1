//! A text of a hook in place of the region (spec "Verbatim", 15 and 21, hooks).

use async_trait::async_trait;
use foldline_session_model::Tokens;

use super::*;
use crate::hooks::{
    BeforeCompactAnswer, BeforeCompactEvent, HookContext, HookError, HookEvent, HookRunner, Hooks,
    SessionCompactEvent,
};

/// Writes the text of a compaction, or forbids it, and looks at what comes of it.
pub(super) struct Writes {
    pub(super) answer: BeforeCompactAnswer,
    /// The size that was told before, and by whom a compaction was made.
    pub(super) seen: Mutex<Vec<Seen>>,
    /// What it says of a compaction that is in the session.
    pub(super) after: Result<(), &'static str>,
}

#[derive(Debug, PartialEq)]
pub(super) enum Seen {
    Before {
        tokens: Tokens,
    },
    Compacted {
        from_extension: bool,
        /// The result, as JSON.
        result: Option<String>,
    },
}

impl Writes {
    pub(super) fn text(text: impl Into<String>) -> Arc<Self> {
        Self::answering(BeforeCompactAnswer {
            compacted_text: Some(text.into()),
            ..BeforeCompactAnswer::default()
        })
    }

    pub(super) fn answering(answer: BeforeCompactAnswer) -> Arc<Self> {
        Arc::new(Self {
            answer,
            seen: Mutex::default(),
            after: Ok(()),
        })
    }

    pub(super) fn runner(self: &Arc<Self>) -> HookRunner {
        HookRunner::new(vec![Arc::clone(self) as Arc<dyn Hooks>])
    }

    fn compacted(&self) -> Vec<bool> {
        let seen = self.seen.lock().unwrap();
        let compacted = seen.iter().filter_map(|seen| match seen {
            Seen::Compacted { from_extension, .. } => Some(*from_extension),
            Seen::Before { .. } => None,
        });
        compacted.collect()
    }
}

#[async_trait]
impl Hooks for Writes {
    fn path(&self) -> &'static str {
        "writes"
    }

    fn events(&self) -> &[HookEvent] {
        &[HookEvent::SessionBeforeCompact, HookEvent::SessionCompact]
    }

    async fn session_before_compact(
        &self,
        event: &BeforeCompactEvent<'_>,
        _: &HookContext,
    ) -> Result<BeforeCompactAnswer, HookError> {
        self.seen.lock().unwrap().push(Seen::Before {
            tokens: event.preparation.tokens_before,
        });
        Ok(self.answer.clone())
    }

    async fn session_compact(
        &self,
        event: &SessionCompactEvent<'_>,
        _: &HookContext,
    ) -> Result<(), HookError> {
        self.seen.lock().unwrap().push(Seen::Compacted {
            from_extension: event.from_extension,
            result: event.result.as_ref().map(|result| result.get().to_owned()),
        });
        self.after.map_err(HookError::from)
    }
}

const TEXT: &str = "  [User]: kept by a hook\r\n\n(filtered 9 lines)\n<keepContext>\n\u{2028}end \n";

/// Spec "Verbatim", 21, hooks: "override persisted verbatim, observer fires once"; 15: "credentials are never resolved,
/// rung `extension`, tail boundary unchanged", "rangeCount 0".
#[tokio::test(start_paused = true)]
async fn hooks_an_override_is_stored_verbatim_and_its_observer_fires_once() {
    let planned = {
        let rig = Play::default()
            .summaries([ranges()])
            .rig_with(by_lines)
            .filled(20, 2_000)
            .await;
        by_hand(&rig).await.result.unwrap()
    };
    let hook = Writes::text(TEXT);
    let mut rig = Play::default()
        .rig_with(|options| {
            by_lines(options);
            options.hooks = hook.runner();
        })
        .filled(20, 2_000)
        .await;
    let end = by_hand(&rig).await;
    assert_ended(&end, Reason::Manual, OperationOutcome::Committed);
    let result = end.result.unwrap();
    let told = hook.seen.lock().unwrap().iter().find_map(|seen| match seen {
        Seen::Compacted { result, .. } => result.clone(),
        Seen::Before { .. } => None,
    });
    assert_eq!(told, serde_json::to_string(&result).ok());
    assert_eq!((result.rung, result.planner.as_str()), ("extension", "extension"));
    assert_eq!((result.summary.as_str(), rig.model.calls()), (TEXT, 0));

    let [entry] = &entries(&rig)[..] else { panic!() };
    assert_eq!((entry.summary.as_str(), entry.from_extension), (TEXT, true));
    assert_eq!(
        (entry.details.strategy.as_str(), entry.details.rung.as_str()),
        ("verbatim-lines", "extension")
    );
    assert_eq!(entry.details.stats.range_count, 0);
    assert_eq!(entry.details.stats.lines_kept, TEXT.split('\n').count());
    // Ids of entries differ; the place in the file does not.
    let kept = |rig: &Rig, id: Option<&str>| {
        let log = rig.log();
        log.find(id.unwrap())
            .map(|ix| log.entries().position(|at| at == ix))
    };
    let first_kept = kept(&rig, entry.first_kept_entry_id.as_deref());
    assert_eq!(first_kept, Some(Some(38)));
    assert!(planned.first_kept_entry_id.is_some());
    assert_eq!(hook.compacted(), [true]);
    assert_eq!(Told(rig.events()).end().outcome, OperationOutcome::Committed);
    // Another process reads the same.
    rig.reopen();
    assert_eq!(entries(&rig)[0].summary, TEXT);
}

/// Spec "Verbatim", 21, hooks: "cancel and blank text write nothing".
#[tokio::test(start_paused = true)]
async fn hooks_a_blank_text_writes_nothing() {
    for blank in ["", " ", "\n\t\r\n", "\u{a0}"] {
        let hook = Writes::text(blank);
        let rig = Play::default()
            .rig_with(|options| {
                by_lines(options);
                options.hooks = hook.runner();
            })
            .filled(20, 2_000)
            .await;
        let before = rig.bytes();
        let end = by_hand(&rig).await;
        assert_ended(&end, Reason::Manual, OperationOutcome::Failed);
        assert_eq!(
            end.error_message.as_deref(),
            Some("Compaction failed: No compacted text provided by extension"),
            "{blank:?}"
        );
        assert_eq!((rig.bytes(), rig.model.calls()), (before, 0));
        assert!(hook.compacted().is_empty());
    }

    let hook = Writes::answering(BeforeCompactAnswer {
        cancel: true,
        compacted_text: Some(TEXT.to_owned()),
        ..BeforeCompactAnswer::default()
    });
    let rig = Play::default()
        .rig_with(|options| {
            by_lines(options);
            options.hooks = hook.runner();
        })
        .filled(20, 2_000)
        .await;
    let before = rig.bytes();
    let end = by_hand(&rig).await;
    assert_ended(&end, Reason::Manual, OperationOutcome::Cancelled);
    assert!(end.aborted && end.error_message.is_none());
    assert_eq!((rig.bytes(), rig.model.calls()), (before, 0));
    assert!(hook.compacted().is_empty());
}

/// Spec "Verbatim", 21, hooks: "observer error isolated".
#[tokio::test(start_paused = true)]
async fn hooks_an_observer_that_fails_is_told_of_and_the_compaction_stands() {
    let hook = Arc::new(Writes {
        after: Err("it broke"),
        ..Arc::into_inner(Writes::text(TEXT)).unwrap()
    });
    let mut rig = Play::turns([done()])
        .rig_with(|options| {
            by_lines(options);
            options.hooks = hook.runner();
        })
        .filled(20, 2_000)
        .await;
    let end = by_hand(&rig).await;
    assert_ended(&end, Reason::Manual, OperationOutcome::Committed);
    assert_eq!(Told(rig.events()).count("extension_error"), 1);
    assert_eq!((hook.compacted(), rig.compactions()), (vec![true], 1));
    let (report, _) = rig.run("go").await;
    assert_eq!(report.end, RunEnd::Completed);
}

/// D10: "the same number drives trigger, cut, gauge and the entry's `tokensBefore`"; spec "Verbatim", 20.9: "keep entry
/// `tokensBefore` as the provider-anchored number".
#[tokio::test(start_paused = true)]
async fn the_size_before_is_one_number_whoever_plans() {
    for action in [CompactionAction::VerbatimLines, CompactionAction::ContextFull] {
        let measured = 60_050;
        let answers = [
            None,
            Some(BeforeCompactAnswer::default()),
            Some(BeforeCompactAnswer {
                compacted_text: (action == CompactionAction::VerbatimLines).then(|| TEXT.to_owned()),
                compaction: (action == CompactionAction::ContextFull).then(|| crate::hooks::HookCompaction {
                    summary: "S".to_owned(),
                    short_summary: None,
                    first_kept_entry_id: None,
                    tokens_before: None,
                    details: None,
                    preserve_data: None,
                }),
                ..BeforeCompactAnswer::default()
            }),
        ];
        for answer in answers {
            let hook = answer.clone().map(Writes::answering);
            let mut play = Play::turns([Script::reply("so far", used(60_000))]);
            if action == CompactionAction::VerbatimLines {
                play = play.summaries([ranges()]);
            }
            let mut rig = play
                .rig_with(|options| {
                    if let Some(hook) = &hook {
                        options.hooks = hook.runner();
                    }
                })
                .filled(20, 2_000)
                .await;
            drop(rig.run("go").await);
            let options = CompactOptions {
                action: Some(action),
                ..CompactOptions::default()
            };
            let end = rig.session.compact(options).await.unwrap();
            assert_eq!(end.outcome, OperationOutcome::Committed, "{end:?}");
            let log = rig.log();
            let line = log
                .entries()
                .find(|ix| log.kind(*ix) == EntryKind::Compaction)
                .map(|ix| String::from_utf8_lossy(log.raw_line(ix)).into_owned())
                .unwrap();
            let recorded = format!("\"tokensBefore\":{measured},");
            assert!(line.contains(&recorded), "{action:?} {answer:?}");
            if let Some(hook) = &hook {
                let tokens = Tokens(measured);
                assert_eq!(hook.seen.lock().unwrap()[0], Seen::Before { tokens });
            }
        }
    }
}

//! Field cases about sizes, each with the input and the value of its number: what is sent, what fits, what is too little.

use async_trait::async_trait;
use foldline_llm_client::testing::{WhenEmpty, text_reply, tool_call};
use foldline_session_model::model_call::{InputBlock, ModelProfile, RawJson, StopReason, ToolSpec, Usage};
use foldline_session_model::tokens::{Heuristic, TokenCounter as _};
use foldline_session_model::{EntryDraft, Tokens};

use super::*;
use crate::testing::estimated;
use crate::tool::{Tool, ToolOutput, ToolRun};
use crate::{CompactOptions, message};

/// Filler of so many tokens.
pub(super) fn filler(tokens: usize) -> String {
    "x".repeat(4 * tokens)
}

pub(super) fn user(text: &str) -> EntryDraft {
    let blocks = [InputBlock::Text(text.to_owned().into())];
    message::input(message::Speaker::User, &blocks, None, 0)
}

pub(super) fn answer(rig: &Rig, text: &str, call: Option<(&str, &str)>, usage: Usage) -> EntryDraft {
    let mut reply = text_reply(text);
    reply.usage = usage;
    if let Some((id, tool)) = call {
        reply.blocks.extend(tool_call(id, tool, "{}"));
        reply.stop = StopReason::ToolUse;
    }
    message::assistant(&reply, rig.profile(), None, 0)
}

pub(super) fn result(id: &str, tool: &str, text: &str) -> EntryDraft {
    message::tool_result(id, tool, &ToolOutput::text(text), 0)
}

pub(super) async fn write(rig: &Rig, drafts: impl IntoIterator<Item = EntryDraft>) {
    let core = rig.session.core();
    let mut core = core.lock().await;
    for draft in drafts {
        core.append(draft).await.unwrap();
    }
}

/// The estimate of the messages of the context as it is in the file.
fn rebuilt(rig: &Rig) -> Tokens {
    let log = rig.log();
    let context = log
        .context(
            &foldline_session_model::tree::Leaf::Last,
            foldline_session_model::fold::Profile::Auto,
        )
        .unwrap();
    context.messages().map(|message| Heuristic.message(message)).sum()
}

async fn by_hand(rig: &Rig) -> CompactionEnd {
    rig.session.compact(CompactOptions::default()).await.unwrap()
}

/// A request for a summary is measured before it is sent: none exceeds the window, and one refusal is the most.
#[tokio::test(start_paused = true)]
async fn fb_001_the_request_of_a_summary_fits_the_window() {
    const WINDOW: u64 = 258_000;
    const LIMIT: u64 = WINDOW - 16_384;
    let text = "Your input exceeds the context window of this model. Please adjust your input and try again.";
    let refuse = |request: &LlmRequest<'_>| estimated(request) > LIMIT;
    let model = ScriptedModel::answering(profile("one", WINDOW), move |request, _| {
        if refuse(request) {
            Script::failure(ErrorClass::OVERFLOW, text)
        } else if kind(request) == Kind::Summary {
            summary()
        } else {
            Script::reply("done", used(estimated(request)))
        }
    });
    let mut rig = Rig::over(model, |_| {}).filled(50, 5_000).await;
    let usage = Usage::from_parts(Tokens(257_900), Tokens(10), Tokens::ZERO, Tokens::ZERO);
    write(
        &rig,
        [
            user(&filler(5)),
            answer(&rig, "", Some(("c1", "bash")), usage),
            result("c1", "bash", &filler(300)),
        ],
    )
    .await;
    let (report, told) = rig.run("go on").await;
    assert_eq!(report.end, RunEnd::Completed, "{report:?}");
    assert_eq!(told.ends().len(), 1);
    assert_eq!(told.end().outcome, OperationOutcome::Committed);
    let asked = rig.model.asked();
    assert!(asked.iter().all(|asked| {
        estimated(&asked.request) + asked.request.max_output.map_or(0, Tokens::get) <= WINDOW
    }));
    assert!(asked.iter().filter(|asked| refuse(&asked.request)).count() <= 1);
}

/// A tool whose description takes so many tokens.
struct Wordy(usize);

#[async_trait]
impl Tool for Wordy {
    fn spec(&self) -> ToolSpec<'static> {
        ToolSpec {
            name: "wordy".into(),
            description: filler(self.0).into(),
            parameters: RawJson::empty_object(),
        }
    }

    async fn run(&self, _: ToolRun<'_>) -> ToolOutput {
        ToolOutput::text("")
    }
}

/// Nothing is left to remove: no request is sent twice, and the failure names the sizes.
#[tokio::test(start_paused = true)]
async fn fb_010_a_prompt_too_large_for_a_small_window_is_answered_with_the_sizes() {
    let model = ScriptedModel::answering(profile("one", 4_096), |request, _| {
        if estimated(request) > 4_096 {
            Script::failure(ErrorClass::OVERFLOW, "the limit is exceeded")
        } else {
            Script::reply("done", used(estimated(request)))
        }
    });
    let mut rig = Rig::over(model, |options| {
        options.system.push(filler(1_500));
        options.tools.push(Arc::new(Wordy(1_800)));
    });
    let (report, told) = rig.run(&filler(3_000)).await;
    assert_eq!((report.end, report.requests), (RunEnd::Failed, 1));
    let requests: std::collections::BTreeSet<String> = rig.model.requests().into_iter().collect();
    assert_eq!(requests.len(), rig.model.calls());
    assert_eq!((rig.compactions(), told.count("agent_end")), (0, 1));
    let text = report.error.unwrap();
    for part in [
        "insufficient: ",
        "The window holds 4096 tokens",
        "system text and tools take about 33",
        "the largest entry, ",
        "(user), 300",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
}

/// After a cheap pass that frees nothing the stronger one runs once; what goes on is measured first.
#[tokio::test(start_paused = true)]
async fn fb_023_what_stays_over_the_threshold_is_left_after_two_passes() {
    for (turns, prompt, compactions) in [(14, "go".to_owned(), 1), (0, filler(70_000), 0)] {
        let model = ScriptedModel::answering(profile("one", 200_000), |request, _| match kind(request) {
            Kind::Summary => summary(),
            _ => Script::reply("so far", used(estimated(request))),
        });
        let mut rig = Rig::over(model, |options| {
            options.settings.compaction.threshold_tokens = 50_000.0;
            options.work = unfinished();
        })
        .filled(turns, 5_000)
        .await;
        let (_, told) = rig.run(&prompt).await;
        let ends = told.ends();
        assert!((1..=2).contains(&ends.len()), "{ends:#?}");
        assert_eq!((rig.compactions(), told.count("pruned")), (compactions, 0));
        // A compaction before a prompt is no end of anything: the prompt goes on.
        assert_eq!(rig.told_to_go_on(), 0);
        if let Some(result) = ends.iter().find_map(|end| end.result.as_ref()) {
            assert!(result.tokens_after < Tokens(50_000), "{result:?}");
        }
        // And nothing starts again by itself.
        let (_, told) = rig.run("and now?").await;
        assert_eq!(told.ends().len(), 0);
    }
}

/// What is reported is what is rebuilt, by one estimator.
#[tokio::test(start_paused = true)]
async fn fb_029_over_the_window_the_result_is_under_it_and_what_is_reported() {
    const WINDOW: u64 = 1_048_576;
    let long = Script::reply(format!("{SUMMARY_START}{}", "word ".repeat(3_900)), used(5_000));
    let rig = Rig::on(
        Play::default()
            .summaries([long.clone(), long])
            .model("one", WINDOW),
        |_| {},
    )
    .filled(18, 58_800)
    .await;
    assert!(rebuilt(&rig) > Tokens(WINDOW));
    let end = by_hand(&rig).await;
    assert_summarised(&end, Reason::Manual);
    let result = end.result.unwrap();
    assert!(result.tokens_after < Tokens(WINDOW));
    assert_eq!(result.tokens_after, rebuilt(&rig));
    assert!(result.tokens_before > Tokens(WINDOW));
}

const SUMMARY_START: &str = crate::testing::SUMMARY;

#[tokio::test(start_paused = true)]
async fn fb_031_a_small_session_is_not_compacted_into_a_larger_summary() {
    let rig = Play::default().rig();
    write(
        &rig,
        [
            user(&filler(300)),
            answer(&rig, &filler(300), None, Usage::default()),
            user(&filler(60)),
        ],
    )
    .await;
    let before = rig.bytes();
    let options = CompactOptions {
        keep_recent: Some(Tokens(100)),
        ..CompactOptions::default()
    };
    let end = rig.session.compact(options).await.unwrap();
    assert_ended(&end, Reason::Manual, OperationOutcome::Skipped);
    let text = end.error_message.unwrap();
    assert!(text.contains("fewer than the 1000 that are worth it"), "{text}");
    assert_eq!((rig.model.calls(), rig.bytes()), (0, before));
}

#[tokio::test(start_paused = true)]
async fn fb_064_a_summary_asks_for_no_more_than_its_model_can_write() {
    for (most, limit) in [(Some(65_536), 65_536), (None, 8_192)] {
        let model = ScriptedModel::new(
            ModelProfile {
                max_output: most.map(Tokens),
                ..profile("one", 1_048_576)
            },
            [],
            WhenEmpty::Repeat(summary()),
        );
        let rig = Rig::over(model, |_| {}).filled(17, 20_000).await;
        assert_summarised(&by_hand(&rig).await, Reason::Manual);
        for asked in rig.model.asked() {
            let output = asked.request.max_output.unwrap();
            assert!(output <= Tokens(limit), "{output} of {most:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn fb_133_a_history_of_a_larger_model_is_summarised_by_a_smaller_one() {
    let mut rig = Rig::on(Play::default().model("large", 1_000_000), |_| {})
        .filled(30, 20_000)
        .await;
    let small = Play::turns([done()]).model("small", 200_000);
    rig.session.set_model(Arc::clone(&small) as _).await.unwrap();
    let (report, told) = rig.run("go on").await;
    assert_eq!((report.end, report.requests), (RunEnd::Completed, 1));
    assert_summarised(told.end(), Reason::Threshold);
    assert_eq!((rig.model.calls(), rig.compactions()), (0, 1));
    for asked in small.asked() {
        let (prompt, output) = (estimated(&asked.request), asked.request.max_output);
        assert!(
            prompt + output.map_or(0, Tokens::get) <= 200_000,
            "{prompt} {output:?}"
        );
        assert!(prompt <= 200_000 - 16_384, "{prompt}");
    }
    assert!(rebuilt(&rig) <= Tokens(170_000));
}

/// Only a commit makes an old measurement worthless.
#[tokio::test(start_paused = true)]
async fn fb_018_a_compaction_that_fails_leaves_the_size_as_it_was() {
    let auth = || Script::failure(ErrorClass::Auth, "no key");
    let turns = [188_000, 199_500].map(|size| Script::reply("so far", used(size)));
    let mut rig = Play::turns(turns)
        .summaries((0..6).map(|_| auth()))
        .rig()
        .filled(20, 2_000)
        .await;
    let (_, told) = rig.run("go").await;
    assert_ended(told.end(), Reason::Threshold, OperationOutcome::Failed);
    let size = rig.session.core().lock().await.size_now();
    assert_eq!(size, Tokens(188_050));
    // The trigger fires again once the context has grown.
    let (_, told) = rig.run("again").await;
    assert_ended(told.end(), Reason::Threshold, OperationOutcome::Failed);
}

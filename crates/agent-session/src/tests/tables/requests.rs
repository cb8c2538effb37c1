//! Every request that a model sees, as a session makes it.

use std::fmt::Write as _;

use foldline_session_model::model_call::{AssistantBlock, InputBlock, MessageContent};

use super::midrun::Fills;
use super::*;
use crate::tool::AfterTool;
use crate::{BranchSummaryChoice, CompactOptions, HandoffOptions, NavigateOptions};

/// A request as text, without what belongs to a provider.
fn shown(request: &LlmRequest<'_>) -> String {
    let mut out = String::new();
    for text in &request.system {
        writeln!(out, "[system]\n{text}").unwrap();
    }
    let tools: Vec<&str> = request.tools.iter().map(|tool| &*tool.name).collect();
    writeln!(
        out,
        "[tools {tools:?}, {:?}; output {:?}; reasoning {:?}; cache {:?}]",
        request.tool_choice, request.max_output, request.reasoning, request.cache
    )
    .unwrap();
    let texts = |blocks: &[InputBlock<'_>]| {
        let texts = blocks.iter().map(|block| match block {
            InputBlock::Text(text) => text.to_string(),
            InputBlock::Image(_) => "(picture)".to_owned(),
        });
        texts.collect::<Vec<_>>().join("\n")
    };
    for message in &request.messages {
        match &message.content {
            MessageContent::User { blocks } => writeln!(out, "[user]\n{}", texts(blocks)),
            MessageContent::ToolResult {
                tool_name, blocks, ..
            } => {
                writeln!(out, "[result of {tool_name}]\n{}", texts(blocks))
            }
            MessageContent::Assistant { blocks, .. } => {
                writeln!(out, "[assistant]").unwrap();
                for block in blocks {
                    match block {
                        AssistantBlock::Text { text, .. } => writeln!(out, "{text}").unwrap(),
                        AssistantBlock::ToolCall(call) => {
                            writeln!(out, "calls {}({})", call.name, call.arguments.get()).unwrap();
                        }
                        _ => writeln!(out, "(opaque)").unwrap(),
                    }
                }
                Ok(())
            }
            MessageContent::Opaque { fallback, .. } => writeln!(out, "[opaque]\n{fallback}"),
        }
        .unwrap();
    }
    // What fills the messages says nothing.
    while out.contains("word word") {
        out = out.replace("word word", "word");
    }
    out.replace("word \n", "word\n")
}

/// The text without the ids of this run.
fn snapshot(name: &str, text: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.add_filter(r#"entry="[0-9a-f]{8}""#, r#"entry="[id]""#);
    settings.bind(|| insta::assert_snapshot!(name, text));
}

/// A short session with a tool, kept as short as the settings allow when it is compacted.
async fn short(play: Play) -> Rig {
    play.rig_with(|options| {
        options.work = unfinished();
        options.tools = vec![Arc::new(Fills(3, AfterTool::Continue))];
        options.settings.compaction.keep_recent_tokens = 50.0;
    })
    .filled(3, 1_000)
    .await
}

#[tokio::test(start_paused = true)]
async fn a_turn_its_summary_and_what_goes_on() {
    let call = Script::tool_use("c1", "fill", "{}", used(1_000));
    let mut rig = short(Play::turns([call, over(), done()])).await;
    let (report, _) = rig.run("what next?").await;
    assert_eq!((report.end, report.requests), (RunEnd::Completed, 3));
    let turns = rig.asked(Kind::Turn);
    snapshot("turn", &shown(&turns[1].request));
    snapshot("auto-continue", &shown(&turns[2].request));
    let summaries: Vec<String> = rig
        .asked(Kind::Summary)
        .iter()
        .map(|asked| shown(&asked.request))
        .collect();
    snapshot("summary", &summaries.join("\n=====\n"));
}

#[tokio::test(start_paused = true)]
async fn an_update_of_a_summary() {
    let rig = short(Play::default()).await;
    assert_summarised(
        &rig.session.compact(CompactOptions::default()).await.unwrap(),
        Reason::Manual,
    );
    let calls = rig.model.calls();
    let rig = rig.filled(3, 1_000).await;
    let options = CompactOptions {
        instructions: Some("mind the lexer".to_owned()),
        ..CompactOptions::default()
    };
    assert_summarised(&rig.session.compact(options).await.unwrap(), Reason::Manual);
    let asked = rig.model.asked();
    snapshot("summary-update", &shown(&asked[calls].request));
}

#[tokio::test(start_paused = true)]
async fn a_handoff() {
    let mut play = Play::default();
    play.handoffs
        .push_back(Script::reply("# Handoff\n\nGo on.", used(1_000)));
    let rig = short(play).await;
    drop(rig.session.handoff(HandoffOptions::default()).await.unwrap());
    snapshot("handoff", &shown(&rig.asked(Kind::Handoff)[0].request));
}

#[tokio::test(start_paused = true)]
async fn a_branch() {
    let rig = short(Play::default()).await;
    let log = rig.log();
    let second = log
        .entries()
        .filter(|ix| log.kind(*ix) == foldline_session_model::entry::EntryKind::Message)
        .nth(1)
        .unwrap();
    let options = NavigateOptions {
        summary: BranchSummaryChoice::Summarize,
        instructions: Some("mind the lexer".to_owned()),
        ..NavigateOptions::default()
    };
    drop(rig.session.navigate(log.id(second), options).await.unwrap());
    snapshot("branch-summary", &shown(&rig.asked(Kind::Summary)[0].request));
}

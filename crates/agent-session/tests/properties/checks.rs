//! What is checked of requests and of files.

use std::collections::BTreeSet;

use foldline_llm_client::testing::Asked;
use foldline_session_model::log::{SessionLog, Trust};
use foldline_session_model::message::Message;
use foldline_session_model::model_call::{AssistantBlock, LlmRequest, MessageContent, StopReason};

/// Each call has exactly one result, right after the answer that made it and in order (R04).
pub(crate) fn pairs_are_whole(request: &LlmRequest<'_>) {
    let mut due: Vec<String> = Vec::new();
    let mut ids: BTreeSet<String> = BTreeSet::new();
    for message in &request.messages {
        match &message.content {
            MessageContent::ToolResult { call_id, .. } => {
                let at = due.iter().position(|id| *id == **call_id);
                let at = at.unwrap_or_else(|| panic!("a result without its call: {call_id}"));
                due.remove(at);
            }
            content => {
                assert!(due.is_empty(), "calls without results: {due:?}");
                if let MessageContent::Assistant { blocks, .. } = content {
                    for block in blocks {
                        if let AssistantBlock::ToolCall(call) = block {
                            assert!(ids.insert(call.id.to_string()), "{} twice", call.id);
                            due.push(call.id.to_string());
                        }
                    }
                }
            }
        }
    }
    assert!(due.is_empty(), "calls without results at the end: {due:?}");
}

/// A request asks for something: it does not end in an answer. Answers that failed are no answers, and are not sent.
pub(crate) fn asks(asked: &Asked) {
    let contents = asked.request.messages.iter().map(|message| &message.content);
    let last = contents.rev().find(|content| {
        !matches!(
            content,
            MessageContent::Assistant {
                stop: StopReason::Error | StopReason::Aborted,
                ..
            }
        )
    });
    assert!(
        matches!(
            last,
            Some(MessageContent::User { .. } | MessageContent::ToolResult { .. })
        ),
        "a request that ends in {last:?}"
    );
}

/// The file, which has to be valid from its first line to its last.
pub(crate) fn valid(bytes: Vec<u8>) -> SessionLog {
    let log = SessionLog::load(bytes, Trust::Validated).unwrap();
    assert!(log.damage().is_empty(), "{:?}", log.damage());
    let ids: BTreeSet<&str> = log.entries().map(|ix| log.id(ix)).collect();
    assert_eq!(ids.len(), log.len(), "an id that is there twice");
    for ix in log.entries() {
        log.entry(ix).unwrap();
        let parent = log.parent_id(ix);
        assert!(
            parent.is_none_or(|parent| ids.contains(parent)),
            "{parent:?} is missing"
        );
    }
    log
}

/// The numbers of the messages that a log holds, in the order of its lines.
pub(crate) fn delivered(log: &SessionLog) -> Vec<usize> {
    log.entries()
        .filter_map(|ix| match log.message(ix).as_deref() {
            Some(Message::User(user)) => user.content.texts().next().and_then(number),
            _ => None,
        })
        .collect()
}

/// The number in front of a message's text.
pub(crate) fn number(text: &str) -> Option<usize> {
    text.strip_prefix("message ")?.split(':').next()?.parse().ok()
}

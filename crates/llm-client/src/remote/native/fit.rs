//! What of a conversation is sent to be compacted when the model cannot take all of it (spec "Compaction core", 12.3).

use foldline_session_model::Tokens;
use foldline_session_model::model_call::{ErrorClass, ModelProfile, OtherCause};
use serde_json::value::RawValue;

use crate::LlmError;
use crate::api::responses::encode::{Item, TypedItem};

/// Leaves out newest results, each with its call, until the rest fits. `written` are the items as they are sent.
///
/// # Errors
/// What is left and must stay does not fit (CD15): an overflow, so that the caller makes the text summary alone.
pub(super) fn fit(
    input: &[Item<'_>],
    written: Vec<Box<RawValue>>,
    instructions: &str,
    profile: &ModelProfile,
) -> Result<Vec<Box<RawValue>>, LlmError> {
    if written.is_empty() {
        return Err(LlmError::new(
            ErrorClass::Other(OtherCause::InvalidRequest),
            "there is no history to compact",
        ));
    }
    let Some(window) = profile.context_window else {
        return Ok(written);
    };
    let budget = budget(window, profile.max_output.unwrap_or(Tokens::ZERO));
    let mut kept: Vec<(&Item<'_>, Box<RawValue>)> = input.iter().zip(written).collect();
    let mut size = units(instructions) + kept.iter().map(|(_, json)| units(json.get())).sum::<usize>();
    let tokens = |units: usize| Tokens(units.div_ceil(4) as u64);
    while tokens(size) > budget {
        let Some(Item::Typed(TypedItem::FunctionCallOutput { call_id, .. })) =
            kept.last().map(|(item, _)| item)
        else {
            return Err(LlmError::new(
                ErrorClass::OVERFLOW,
                format!(
                    "the history is too large for a native compaction: {} tokens, {budget} fit",
                    tokens(size)
                ),
            ));
        };
        let of_call = |item: &Item<'_>| matches!(item, Item::Typed(TypedItem::FunctionCall { call_id: called, .. }) if called == call_id);
        let call = kept.iter().rposition(|(item, _)| of_call(item));
        size -= kept.pop().map_or(0, |(_, json)| units(json.get()));
        if let Some(call) = call {
            size -= units(kept.remove(call).1.get());
        }
    }
    Ok(kept.into_iter().map(|(_, json)| json).collect())
}

/// What a request may have of a window: all but 15 %, or but the output if that is more; at least 1.
fn budget(window: Tokens, output: Tokens) -> Tokens {
    if window == Tokens::ZERO {
        return Tokens::ZERO;
    }
    let share = Tokens(window.get() / 100 * 15 + window.get() % 100 * 15 / 100);
    window
        .saturating_sub(share.max(output).max(Tokens(1)))
        .max(Tokens(1))
}

/// UTF-16 units, as the sizes of the specification count.
fn units(text: &str) -> usize {
    text.chars().map(char::len_utf16).sum()
}

#[cfg(test)]
mod tests {
    use foldline_session_model::model_call::{
        Api, ArgumentsState, AssistantBlock, InputBlock, LlmRequest, MessageContent, ModelRef, RawJson,
        RequestMessage, StopReason, ToolCall, ToolOutcome,
    };

    use super::super::inert;
    use super::*;
    use crate::api::responses::encode::items;

    fn profile(window: u64) -> ModelProfile {
        let name = ModelRef {
            provider: "openai".to_owned(),
            id: "m".to_owned(),
        };
        let mut profile = ModelProfile::unknown(name, Api::OpenAiResponses);
        profile.context_window = Some(Tokens(window));
        profile
    }

    fn message(content: MessageContent<'static>) -> RequestMessage<'static> {
        RequestMessage { entry: None, content }
    }

    /// A user's text, and a call with its result of so many bytes each.
    fn request(text: usize, tool: usize) -> LlmRequest<'static> {
        let mut request = LlmRequest::from_prompt("be brief", "u".repeat(text));
        if tool == 0 {
            return request;
        }
        let arguments = RawJson::parse(format!("{{\"path\":\"{}\"}}", "p".repeat(tool))).unwrap();
        request.messages.push(message(MessageContent::Assistant {
            origin: None,
            stop: StopReason::ToolUse,
            blocks: vec![AssistantBlock::ToolCall(ToolCall {
                id: "c1".into(),
                name: "read".into(),
                arguments,
                state: ArgumentsState::Whole,
            })],
        }));
        request.messages.push(message(MessageContent::ToolResult {
            call_id: "c1".into(),
            tool_name: "read".into(),
            blocks: vec![InputBlock::Text("r".repeat(tool).into())],
            outcome: ToolOutcome::Success,
        }));
        request
    }

    fn fitted(request: &LlmRequest<'_>, window: u64) -> Result<String, LlmError> {
        let profile = profile(window);
        let mut input = Vec::new();
        items(&profile, request, &mut input, &mut Vec::new());
        let kept = fit(&input, inert(&input)?, "be brief", &profile)?;
        Ok(serde_json::to_string(&kept).unwrap())
    }

    #[test]
    fn budgets_of_the_input() {
        let table = [
            (100, 0, 85),
            (100, 20, 80),
            (2, 0, 1),
            (1, 0, 1),
            (10, 20, 1),
            (0, 0, 0),
        ];
        for (window, output, expected) in table {
            assert_eq!(budget(Tokens(window), Tokens(output)), Tokens(expected));
        }
    }

    #[test]
    fn cd15_newest_results_go_with_their_calls_and_what_still_does_not_fit_is_not_sent() {
        let tools = request(5, 4_000);
        let whole = fitted(&tools, 100_000).unwrap();
        assert!(whole.contains("function_call_output"), "{whole}");
        let trimmed = fitted(&tools, 200).unwrap();
        assert!(
            trimmed.contains("uuuuu") && !trimmed.contains("function_call"),
            "{trimmed}"
        );
        let error = fitted(&request(8_000, 0), 200).unwrap_err();
        assert_eq!(error.class, ErrorClass::OVERFLOW);
        assert!(error.message.ends_with("170 fit"), "{error}");
        let error = fitted(&LlmRequest::default(), 200).unwrap_err();
        assert!(error.message.contains("no history"), "{error}");
    }
}

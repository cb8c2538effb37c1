use foldline_session_model::model_call::{Api, ModelRef, OtherCause};

use super::*;

fn profile() -> ModelProfile {
    let name = ModelRef {
        provider: "acme".to_owned(),
        id: "m".to_owned(),
    };
    ModelProfile::unknown(name, Api::OpenAiCompletions)
}

fn prompt(text: &str) -> LlmRequest<'static> {
    LlmRequest::from_prompt("s", text.to_owned())
}

async fn complete(model: &ScriptedModel, text: &str) -> Result<LlmReply, LlmError> {
    model.complete(&prompt(text), CancellationToken::new()).await
}

#[tokio::test(start_paused = true)]
async fn answers_can_be_made_of_the_request() {
    let model = ScriptedModel::answering(profile(), |request, number| {
        let messages = request.messages.len();
        if number == 1 {
            return Script::failure(ErrorClass::RateLimit, "slow");
        }
        Script::reply(format!("{number}: {messages}"), usage(1, 1))
    });
    model.push(Script::reply("first", usage(1, 1)));
    assert_eq!(complete(&model, "a").await.unwrap().text(), "first");
    assert_eq!(
        complete(&model, "b").await.unwrap_err().class,
        ErrorClass::RateLimit
    );
    tokio::time::sleep(Duration::from_secs(7)).await;
    assert_eq!(complete(&model, "c").await.unwrap().text(), "2: 1");

    let asked = model.asked();
    let texts: Vec<String> = asked.iter().map(Asked::last_text).collect();
    assert_eq!(texts, ["a", "b", "c"]);
    assert_eq!(asked[0].request, prompt("a"));
    assert_eq!((asked[2].at - asked[1].at).as_secs(), 7);
    assert_eq!((model.calls(), model.requests().len()), (3, 3));
}

#[tokio::test(start_paused = true)]
async fn pieces_come_one_by_one_and_can_break_off() {
    let each = Duration::from_secs(2);
    let whole = Script::new()
        .thinking("hm", "sig")
        .pieces(["a", "b", "c"], each)
        .usage(usage(5, 3))
        .stop(StopReason::Stop);
    let broken = Script::new().pieces(["a", "b"], each).fail(LlmError::new(
        ErrorClass::Transient(TransientCause::Network),
        "broke",
    ));
    let model = ScriptedModel::new(profile(), [whole, broken], WhenEmpty::Fail);

    let started = Instant::now();
    let reply = complete(&model, "x").await.unwrap();
    assert_eq!((reply.text().as_str(), reply.blocks.len()), ("abc", 2));
    assert_eq!(started.elapsed().as_secs(), 6);

    let error = complete(&model, "x").await.unwrap_err();
    assert_eq!(error.partial.unwrap().text(), "ab");
    let empty = complete(&model, "x").await.unwrap_err();
    assert_eq!(empty.class, ErrorClass::Other(OtherCause::Protocol));
}

#[tokio::test(start_paused = true)]
async fn a_cancel_ends_every_kind_of_waiting() {
    let hour = Duration::from_secs(3600);
    for script in [
        Script::hang(),
        Script::new().text("a").then_hang(),
        Script::new().wait(hour),
        Script::new().pieces(["a"], hour),
    ] {
        let model = ScriptedModel::new(profile(), [script], WhenEmpty::Fail);
        let cancel = CancellationToken::new();
        let asked = prompt("x");
        let abort = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            cancel.cancel();
        };
        let started = Instant::now();
        let (reply, ()) = tokio::join!(model.complete(&asked, cancel.clone()), abort);
        assert_eq!(reply.unwrap_err().class, ErrorClass::Cancelled);
        assert_eq!(started.elapsed().as_secs(), 1);
    }
}

#[tokio::test]
async fn a_call_is_one_line() {
    let script = Script::tool_use("c1", "read", r#"{"path":"a"}"#, usage(9, 4));
    let model = ScriptedModel::new(profile(), [script], WhenEmpty::Fail);
    let reply = complete(&model, "x").await.unwrap();
    assert_eq!(reply.stop, StopReason::ToolUse);
    assert_eq!(
        Some(&reply.blocks[0]),
        tool_call("c1", "read", r#"{"path":"a"}"#).as_ref()
    );
    assert_eq!(reply.usage.output, Tokens(4));
}

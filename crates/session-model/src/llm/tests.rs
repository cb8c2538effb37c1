//! Opaque blocks, and the view as a request.

use super::{LlmBlock, TrailingCalls, Wrappers};
use crate::fold::Profile;
use crate::model_call::{Api, Origin};
use crate::notation;
use crate::tree::Leaf;

fn target(provider: &str, model: &str) -> Origin {
    Origin {
        api: Api::AnthropicMessages,
        provider: provider.into(),
        model: model.into(),
    }
}

/// The thinking that a model gets, as `text:signature`.
fn thinking(tree: &str, target: &Origin) -> Vec<String> {
    let log = notation::log(tree).unwrap();
    let context = log.context(&Leaf::Last, Profile::Auto).unwrap();
    let wrappers = Wrappers::default();
    let view = context.llm_view_for(&wrappers, TrailingCalls::Answer, target);
    view.iter()
        .flat_map(|message| &message.content)
        .filter_map(|block| match block {
            LlmBlock::Thinking {
                thinking, signature, ..
            } => Some(format!("{thinking}:{}", signature.unwrap_or("?"))),
            _ => None,
        })
        .collect()
}

#[test]
fn signed_thinking_goes_to_its_own_model_only() {
    let tree = "u user\na assistant think=hm:sig text\nv user";
    assert_eq!(thinking(tree, &target("anthropic", "m-1")), ["hm:sig"]);
    for other in [target("anthropic", "m-2"), target("proxy", "m-1")] {
        assert!(thinking(tree, &other).is_empty());
    }
    let other_api = Origin {
        api: Api::OpenAiCompletions,
        ..target("anthropic", "m-1")
    };
    assert!(thinking(tree, &other_api).is_empty());
    // Thinking without a signature, and that of a turn that did not end well, goes to nobody.
    for tree in [
        "u user\na assistant think=hm text",
        "u user\na assistant think=hm:sig stop=aborted text",
        "u user\na assistant think=hm:sig stop=error text",
    ] {
        assert!(thinking(tree, &target("anthropic", "m-1")).is_empty(), "{tree}");
    }
}

#[test]
fn a_message_of_nothing_but_foreign_thinking_is_left_out() {
    let log = notation::log("u user\na assistant think=hm:sig \"\"\nv user").unwrap();
    let context = log.context(&Leaf::Last, Profile::Auto).unwrap();
    let wrappers = Wrappers::default();
    let roles = |target: &Origin| -> Vec<&str> {
        context
            .llm_view_for(&wrappers, TrailingCalls::Answer, target)
            .iter()
            .map(super::LlmMessage::role_name)
            .collect()
    };
    assert_eq!(roles(&target("anthropic", "m-1")), ["user", "assistant", "user"]);
    assert_eq!(roles(&target("anthropic", "m-2")), ["user", "user"]);
}

/// What a model will see of a session with every kind of message, as the parts of a request.
#[test]
fn the_view_becomes_a_request() {
    let log = notation::log(
        "u user \"Fix it\"\nc prose \"So far\" kept=u\na assistant think=hm:sig Looking call=x:read call=y:ls\n\
         r result of=y error image out\nb < c branch back from=r\nn note psst\ns bash ls",
    )
    .unwrap();
    let wrappers = Wrappers::default();
    for leaf in ["r", "s"] {
        let context = log.context(&Leaf::Entry(leaf.into()), Profile::Auto).unwrap();
        let view = context.llm_view_for(&wrappers, TrailingCalls::Answer, &target("anthropic", "m-1"));
        let requests: Vec<_> = view.iter().map(|message| message.to_request(&log)).collect();
        insta::assert_json_snapshot!(format!("request_at_{leaf}"), requests);
    }
}

//! Hooks that are asked one after the other.

use super::*;

/// Hooks that see what the ones before them left.
pub(super) struct Chained(pub(super) &'static str);

#[async_trait]
impl Hooks for Chained {
    fn path(&self) -> &str {
        self.0
    }
    fn events(&self) -> &[HookEvent] {
        &HookEvent::ALL
    }
    async fn input(&self, event: &InputEvent<'_>, _: &HookContext) -> Result<InputAnswer, HookError> {
        let action = match event.text.as_str() {
            "done" => InputAction::Handled,
            "same" => InputAction::Continue,
            _ => InputAction::Transform,
        };
        Ok(InputAnswer {
            action,
            text: Some(format!("{}+{}", event.text, self.0)),
            images: None,
        })
    }
    async fn before_agent_start(
        &self,
        event: &BeforeAgentStartEvent<'_>,
        _: &HookContext,
    ) -> Result<AgentStartAnswer, HookError> {
        let message = format!(r#"{{"customType":"{}","content":"c"}}"#, self.0);
        Ok(AgentStartAnswer {
            message: Some(serde_json::from_str(&message).unwrap()),
            system_prompt: Some(format!("{}+{}", event.system_prompt, self.0)),
        })
    }
    async fn context(&self, event: &ContextEvent<'_>, _: &HookContext) -> Result<ContextAnswer, HookError> {
        let mut messages: Vec<_> = event.messages.iter().map(|m| m.clone().into_owned()).collect();
        messages.push(raw(&format!("\"{}\"", self.0)));
        Ok(ContextAnswer {
            messages: Some(messages),
        })
    }
    async fn tool_result(
        &self,
        event: &ToolResultEvent<'_>,
        _: &HookContext,
    ) -> Result<ToolResultAnswer, HookError> {
        if self.0 == "a" {
            return Ok(ToolResultAnswer {
                content: Some(raw("[1]")),
                ..ToolResultAnswer::default()
            });
        }
        assert_eq!(event.content.get(), "[1]");
        Ok(ToolResultAnswer {
            is_error: Some(true),
            ..ToolResultAnswer::default()
        })
    }
    async fn session_compacting(
        &self,
        _: &CompactingEvent<'_>,
        _: &HookContext,
    ) -> Result<CompactingAnswer, HookError> {
        let json = format!(
            r#"{{"context":["{0}"],"preserveData":{{"{0}":1,"both":"{0}"}}}}"#,
            self.0
        );
        let mut answer: CompactingAnswer = serde_json::from_str(&json).unwrap();
        answer.prompt = (self.0 == "a").then(|| "prompt of a".to_owned());
        Ok(answer)
    }
}

#[tokio::test]
async fn hooks_see_what_the_ones_before_them_left() {
    let (runner, _) = runner(vec![Arc::new(Chained("a")), Arc::new(Chained("b"))]);
    let cx = here();
    let input = |text: &str| {
        let text = text.to_owned();
        runner.input(&cx, || InputEvent {
            text,
            images: Vec::new(),
            source: "interactive",
        })
    };
    assert_eq!(
        input("hi").await,
        InputFate::Changed {
            text: "hi+a+b".to_owned(),
            images: Vec::new()
        }
    );
    assert_eq!(input("done").await, InputFate::Handled);
    assert_eq!(input("same").await, InputFate::Unchanged);

    let changes = runner
        .before_agent_start(&cx, || BeforeAgentStartEvent {
            prompt: "p",
            images: Vec::new(),
            system_prompt: "s".to_owned(),
        })
        .await;
    let types: Vec<_> = changes.messages.iter().map(|m| m.custom_type.as_str()).collect();
    assert_eq!(
        (types, changes.system_prompt.as_deref()),
        (vec!["a", "b"], Some("s+a+b"))
    );

    let messages = runner
        .context(&cx, || ContextEvent {
            messages: vec![raw("0")],
        })
        .await
        .unwrap();
    assert_eq!(messages, [raw("0"), raw("\"a\""), raw("\"b\"")]);

    let result = runner
        .tool_result(&cx, || ToolResultEvent {
            tool_name: "t",
            tool_call_id: "c",
            input: raw("{}"),
            content: raw("[]"),
            details: None,
            is_error: false,
        })
        .await;
    let expected = ToolResultAnswer {
        content: Some(raw("[1]")),
        details: None,
        is_error: Some(true),
    };
    assert_eq!(result, expected);

    let compacting = runner
        .session_compacting(&cx, || CompactingEvent { messages: Vec::new() })
        .await;
    assert_eq!(compacting.context, ["a", "b"]);
    assert_eq!(compacting.prompt.as_deref(), Some("prompt of a"));
    let data = compacting.preserve_data.unwrap();
    assert_eq!((data.len(), data["both"].get()), (3, "\"b\""));
}

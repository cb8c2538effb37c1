#![expect(clippy::disallowed_types, reason = "a test reads what it expects")]

use serde_json::{Value, json};

use foldline_compaction_core::decide::Reason;

use super::{COMMANDS, Command, Lane, Request, StreamingBehavior, event_lines, schema};
use crate::event::{CompactionAction, CompactionEnd, CompactionStart, Event, OperationOutcome};

fn parsed(line: &Value) -> Result<Command, String> {
    Request::parse(line.to_string().as_bytes()).command
}

#[test]
fn the_schema_has_every_command() {
    let schema: Value = serde_json::from_str(&schema()).unwrap();
    let variants = schema["$defs"]["request"]["allOf"][1]["oneOf"]
        .as_array()
        .unwrap();
    let names: Vec<&str> = variants
        .iter()
        .map(|variant| variant["properties"]["type"]["const"].as_str().unwrap())
        .collect();
    assert_eq!(names, COMMANDS);
}

#[test]
fn the_committed_schema_is_as_generated() {
    let committed = include_str!("../../../../docs/rpc.schema.json");
    assert!(committed == schema(), "run `cargo xtask codegen`");
}

#[test]
fn arguments_are_read_by_their_names() {
    assert_eq!(
        parsed(&json!({"type": "prompt", "message": "go on", "streamingBehavior": "followUp"})),
        Ok(Command::Prompt {
            message: "go on".to_owned(),
            images: Vec::new(),
            streaming_behavior: Some(StreamingBehavior::FollowUp),
        })
    );
    let Ok(Command::NavigateTree { target_id, options }) = parsed(
        &json!({"type": "navigate_tree", "targetId": "a1", "options": {"summarize": true, "label": "here"}}),
    ) else {
        panic!("no move");
    };
    assert_eq!((target_id.as_str(), options.summarize), ("a1", true));
    assert_eq!(options.label.as_deref(), Some("here"));
    let Ok(Command::Compact { parameters, .. }) =
        parsed(&json!({"type": "compact", "parameters": {"compression_ratio": 0.25}}))
    else {
        panic!("no compaction");
    };
    assert_eq!(parameters.unwrap().compression_ratio, Some(0.25));
}

#[test]
fn what_is_no_command_is_answered_all_the_same() {
    let request = Request::parse(b"{nonsense");
    assert_eq!(request.name, "parse");
    assert!(
        request
            .command
            .unwrap_err()
            .starts_with("Failed to parse command: ")
    );

    let request = Request::parse(br#"{"id": 7, "type": "dance"}"#);
    assert_eq!(request.id.unwrap().get(), "7");
    assert_eq!(request.command, Err("Unknown command: dance".to_owned()));

    let request = Request::parse(br#"{"id": "x", "type": "fork"}"#);
    assert_eq!(request.name, "fork");
    assert!(request.command.unwrap_err().contains("entryId"));
}

#[test]
fn only_what_steers_overtakes() {
    let control: Vec<&str> = COMMANDS
        .into_iter()
        .filter(|name| parsed(&json!({"type": name})).is_ok_and(|command| command.lane() == Lane::Control))
        .collect();
    assert_eq!(
        control,
        [
            "abort",
            "abort_compaction",
            "abort_retry",
            "clear_queue",
            "pause_queued_messages",
            "resume_queued_messages"
        ]
    );
}

#[test]
fn automatic_compactions_are_told_under_their_older_name_too() {
    let start = |reason| {
        Event::CompactionStart(CompactionStart {
            reason,
            action: CompactionAction::ContextFull,
            mid_turn: true,
        })
    };
    let end = |reason| {
        let end = CompactionEnd::new(reason, CompactionAction::ContextFull, OperationOutcome::Failed);
        Event::CompactionEnd(Box::new(end))
    };
    let rows = [
        (start(Reason::Threshold), Some("auto_compaction_start")),
        (end(Reason::Overflow), Some("auto_compaction_end")),
        (end(Reason::Idle), Some("auto_compaction_end")),
        (start(Reason::Manual), None),
        (end(Reason::Manual), None),
        (Event::AgentStart, None),
    ];
    for (event, alias) in rows {
        let lines: Vec<Value> = event_lines(&event)
            .iter()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(lines.len(), 1 + usize::from(alias.is_some()), "{event:?}");
        if let Some(alias) = alias {
            let (mut first, second) = (lines[0].clone(), &lines[1]);
            assert_eq!(second["type"], alias);
            first["type"] = json!(alias);
            assert_eq!(&first, second, "nothing else differs");
        }
    }
}

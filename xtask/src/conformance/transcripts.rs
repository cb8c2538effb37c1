//! `*.serialize_conversation`, `*.file_lists`: transcripts for summaries, and the files in them.

use foldline_compaction_core::file_ops::{FailedCalls, FileLists, FileOps, with_file_tags};
use foldline_compaction_core::summary::{Elision, bounded, serialize_conversation};
use foldline_session_model::Tokens;
use foldline_session_model::fold::Profile;
use foldline_session_model::llm::{Around, Wrappers};
use foldline_session_model::log::{SessionLog, Trust};
use foldline_session_model::message::Message;
use foldline_session_model::tokens::{Heuristic, TokenCounter as _};
use foldline_session_model::tree::Leaf;
use serde_json::{Value, json};

use super::canonical::{sha256, utf16_len};
use super::session::Sessions;
use super::{Case, Outcome, field, refused, text_field};

pub(super) fn gajae_serialize(sessions: &Sessions, case: &Case) -> Outcome {
    serialized(sessions, case, Profile::Gajae)
}

pub(super) fn pi_serialize(sessions: &Sessions, case: &Case) -> Outcome {
    serialized(sessions, case, Profile::Pi)
}

/// The wrapper strings of the vectors.
fn neutral() -> Wrappers {
    Wrappers {
        compaction_summary: Around::new("<<compaction-summary>>\n", "\n<</compaction-summary>>"),
        branch_summary: Around::new("<<branch-summary>>\n", "\n<</branch-summary>>"),
        ..Wrappers::default()
    }
}

const NEUTRAL_ELISION: Elision = Elision {
    before: "\n\n<<elided ",
    after: " chars>>\n\n",
};

fn serialized(sessions: &Sessions, case: &Case, profile: Profile) -> Outcome {
    let session = sessions.of(case)?;
    let mut context = match session.log.context(&session.leaf(case)?, profile) {
        Ok(context) => context,
        Err(error) => return Ok(refused(&error)),
    };
    if case.params.get("withoutSummaryMessages") == Some(&json!(true)) {
        context.items.retain(|item| {
            !matches!(
                item.message,
                Message::CompactionSummary(_) | Message::BranchSummary(_)
            )
        });
    }
    let wrappers = neutral();
    let messages = context.converted(&wrappers);
    let text = serialize_conversation(&messages);
    let mut out = json!({
        "llmMessages": messages.len(),
        "length": utf16_len(&text),
        "sha256": sha256(&text),
    });
    if case.expected.get("first200").is_some() {
        out["first200"] = json!(first_units(&text, 200));
    }
    if let Some(windows) = case.expected.get("bounded").and_then(Value::as_array) {
        out["tokens"] = json!(Heuristic.one(&text));
        out["bounded"] = windows.iter().map(|window| bounded_to(&text, window)).collect();
    }
    Ok(out)
}

/// The text within the budget that the recorded system gives a window.
fn bounded_to(text: &str, window: &Value) -> Value {
    let number = |name| window.get(name).and_then(Value::as_u64).unwrap_or_default();
    let (size, output) = (number("contextWindow"), number("outputMaxTokens"));
    let budget = size.saturating_sub(output).saturating_sub(4_096) * 6 / 10;
    let (text, elided) = bounded(text, Tokens(budget), NEUTRAL_ELISION, &Heuristic);
    json!({
        "contextWindow": size,
        "outputMaxTokens": output,
        "len": utf16_len(&text),
        "sha256": sha256(&text),
        "elided": elided,
    })
}

fn first_units(text: &str, units: usize) -> String {
    let mut left = units;
    text.chars()
        .take_while(|c| {
            let fits = c.len_utf16() <= left;
            left = left.saturating_sub(c.len_utf16());
            fits
        })
        .collect()
}

pub(super) fn file_lists(_: &Sessions, case: &Case) -> Outcome {
    if let Some(message) = case.input.get("message") {
        return extracted(message);
    }
    let ops = field(&case.input, "fileOps")?;
    let list = |name: &str| -> Vec<String> {
        let items = ops.get(name).and_then(Value::as_array);
        items
            .into_iter()
            .flatten()
            .filter_map(|path| path.as_str().map(str::to_owned))
            .collect()
    };
    let mut all = FileOps::default();
    let modified: Vec<String> = list("written").into_iter().chain(list("edited")).collect();
    all.add_details(&json!({ "readFiles": list("read"), "modifiedFiles": modified }).to_string());
    let lists: FileLists = all.lists();
    let tags = with_file_tags("", &lists);
    // A tag block that follows a summary is set off by a blank line; the recorded text includes it.
    let set_off = case
        .expected
        .get("tags")
        .and_then(Value::as_str)
        .is_some_and(|t| t.starts_with('\n'));
    let mut out = json!({
        "readFiles": lists.read_files,
        "modifiedFiles": lists.modified_files,
        "tags": if set_off && !tags.is_empty() { format!("\n\n{tags}") } else { tags },
    });
    if case.expected.get("upserted").is_some() {
        out["upserted"] = json!(with_file_tags(text_field(&case.input, "summary")?, &lists));
    }
    Ok(out)
}

/// What one message did.
fn extracted(message: &Value) -> Outcome {
    let file = format!(
        "{}\n{}\n",
        json!({ "type": "session", "version": 3, "id": "s", "timestamp": "t", "cwd": "/" }),
        json!({ "type": "message", "id": "m", "parentId": null, "timestamp": "t", "message": message }),
    );
    let log = SessionLog::load(file, Trust::Validated)?;
    let context = log.context(&Leaf::Last, Profile::Gajae)?;
    let mut ops = FileOps::default();
    ops.add_calls(
        context.messages(),
        &FailedCalls::default(),
        &super::compaction::tools(),
    );
    Ok(json!({ "read": ops.read(), "written": ops.written(), "edited": ops.edited() }))
}

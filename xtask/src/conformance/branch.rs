//! `*.collect_entries_for_branch_summary` and `*.prepare_branch_entries`.

use foldline_branch_summary::{Abandoned, Budget, PrepareOptions, prepare};
use foldline_compaction_core::file_ops::ToolTable;
use foldline_session_model::Tokens;
use foldline_session_model::fold::Profile;
use foldline_session_model::tokens::{CharsPerFour, Heuristic, TokenCounter};
use serde_json::{Value, json};

use super::session::{Session, Sessions};
use super::{Case, Outcome, field, refused};

pub(super) fn collect(sessions: &Sessions, case: &Case) -> Outcome {
    let session = sessions.of(case)?;
    let abandoned = abandoned(&session, case)?;
    let entries: Vec<String> = abandoned
        .entries()
        .iter()
        .map(|ix| session.reference(*ix))
        .collect();
    Ok(json!({
        "commonAncestor": common_ancestor(&session, &abandoned),
        "count": entries.len(),
        "entries": entries,
    }))
}

pub(super) fn gajae(sessions: &Sessions, case: &Case) -> Outcome {
    with_lists(sessions, case, Profile::Gajae, &Heuristic)
}

pub(super) fn pi(sessions: &Sessions, case: &Case) -> Outcome {
    with_lists(sessions, case, Profile::Pi, &CharsPerFour)
}

pub(super) fn atomic(sessions: &Sessions, case: &Case) -> Outcome {
    let session = sessions.of(case)?;
    let abandoned = abandoned(&session, case)?;
    prepared(
        &session,
        &abandoned,
        case,
        Profile::Atomic,
        &CharsPerFour,
        |out| {
            out["commonAncestor"] = common_ancestor(&session, &abandoned);
            out["entries"] = abandoned.entries().len().into();
            if let Some(out) = out.as_object_mut() {
                out.remove("fileLists");
            }
        },
    )
}

fn with_lists(sessions: &Sessions, case: &Case, profile: Profile, counter: &dyn TokenCounter) -> Outcome {
    let session = sessions.of(case)?;
    let abandoned = abandoned(&session, case)?;
    prepared(&session, &abandoned, case, profile, counter, |_| {})
}

fn prepared(
    session: &Session,
    abandoned: &Abandoned,
    case: &Case,
    profile: Profile,
    counter: &dyn TokenCounter,
    finish: impl FnOnce(&mut Value),
) -> Outcome {
    let budget = match field(&case.params, "tokenBudget")?.as_u64() {
        Some(0) | None => Budget::Unlimited,
        Some(budget) => Budget::Tokens(Tokens(budget)),
    };
    let options = PrepareOptions {
        budget,
        profile,
        tools: &ToolTable::default(),
        in_editor: None,
    };
    let preparation = match prepare(&session.log, abandoned, &options, counter) {
        Ok(preparation) => preparation,
        Err(error) => return Ok(refused(&error)),
    };
    let ops = preparation.file_ops();
    let lists = ops.lists();
    let mut out = json!({
        "totalTokens": preparation.tokens().get(),
        "messages": preparation.messages().map(|item| session.reference(item.source)).collect::<Vec<_>>(),
        "fileOps": { "read": ops.read(), "written": ops.written(), "edited": ops.edited() },
        "fileLists": { "readFiles": lists.read_files, "modifiedFiles": lists.modified_files },
    });
    finish(&mut out);
    Ok(out)
}

fn abandoned(session: &Session, case: &Case) -> anyhow::Result<Abandoned> {
    let entry = |name: &str| -> anyhow::Result<_> {
        let reference = field(&case.params, name)?.as_str();
        Ok(reference.and_then(|reference| session.entry(reference)))
    };
    Ok(Abandoned::between(
        &session.log,
        entry("oldLeaf")?,
        entry("target")?,
    ))
}

fn common_ancestor(session: &Session, abandoned: &Abandoned) -> Value {
    abandoned
        .common_ancestor()
        .map_or(Value::Null, |ix| session.reference(ix).into())
}

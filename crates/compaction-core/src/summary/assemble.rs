//! From notes to the entry: merging, caps, blocks, the gate, and whether it pays (D11, D19, R02, R13).

use foldline_session_model::json::{members, write_string};
use foldline_session_model::message::{Message, SummaryText};
use foldline_session_model::tokens::TokenCounter;
use foldline_session_model::{Author, CompactionDraft, EntryId, Tokens};
use serde::Serialize;
use serde_json::value::RawValue;

use super::prepare::Preparation;
use super::sections::capped;
use super::stored::{GATE_TAG, flat};
use super::user_messages::{self, UserMessage};
use super::{NO_PRIOR_HISTORY, TURN_CONTEXT, gate};
use crate::accounting::{ContextSize, Limits};
use crate::file_ops::{FileLists, MAX_LISTED, with_file_tags};
use crate::inert::{Wrapper, inert};
use crate::prompts::PROMPT_VERSION;
use crate::redact::redact;
use crate::settings::{CompactionSettings, GateMode};
use crate::text::{ellipsis, one_line};
use crate::verbatim::{Demand, NotSmaller};

/// What an entry is made with.
#[derive(Clone, Copy, Debug)]
pub struct CommitOptions<'o> {
    /// The settings.
    pub settings: &'o CompactionSettings,
    /// The limits of the session's model; they cap the summary.
    pub limits: Option<&'o Limits>,
    /// The size of the context as trigger and gauge have it; the entry records it (D10).
    pub size: ContextSize,
    /// Todos that are not done.
    pub open_todos: &'o [String],
    /// How much smaller the context must become.
    pub demand: Demand,
    /// A hook's data to keep in the entry, as JSON of an object.
    pub preserve_data: Option<&'o str>,
}

/// A compaction by summary that is ready to be committed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct SummaryCompaction {
    /// The entry.
    pub draft: CompactionDraft,
    /// The estimate of the context before it.
    pub tokens_before: Tokens,
    /// The estimate of the context after it, by the same estimator.
    pub tokens_after: Tokens,
    /// The files, all of them; the summary names the first ones.
    pub files: FileLists,
    /// What the gate appended.
    pub appended: Vec<String>,
    /// Entries that no request had room for.
    pub dropped: Vec<Dropped>,
    /// How many items of older notes were left out to stay under the cap.
    pub left_out: usize,
    /// Whether a reply was cut off by the output limit and is whole enough all the same.
    pub cut_off: bool,
}

/// An entry that is neither in the summary's input nor in the tail (DESIGN, rule 6).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Dropped {
    /// The entry.
    pub entry_id: EntryId,
    /// Why.
    pub reason: &'static str,
}

/// Why there is no compaction.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SummaryError {
    /// The caller cancelled a request.
    #[error("the summary was cancelled")]
    Cancelled,
    /// A request failed.
    #[error("the summary request failed")]
    Failed,
    /// The caller gave another number of replies than there were requests.
    #[error("expected {expected} replies, got {got}")]
    ReplyCount {
        /// How many requests there were.
        expected: usize,
        /// How many replies there were.
        got: usize,
    },
    /// The model wrote nothing.
    #[error("the model returned an empty summary")]
    Empty,
    /// The model wrote next to nothing.
    #[error("the model returned a summary of only {chars} characters")]
    TooShort {
        /// How much it wrote.
        chars: usize,
    },
    /// The model wrote more than it read.
    #[error("the summary ({output} tokens) is larger than what it summarises ({input})")]
    LargerThanInput {
        /// The estimate of what it read.
        input: Tokens,
        /// The estimate of what it wrote.
        output: Tokens,
    },
    /// The output limit cut the reply before it was of use.
    #[error("the summary was cut off by the output limit before its required sections")]
    CutOff,
    /// The gate refuses.
    #[error("the summary lost {}", missing.join(", "))]
    Gate {
        /// What is in neither summary nor tail.
        missing: Vec<String>,
    },
    /// The compaction does not pay.
    #[error(transparent)]
    NotSmaller(#[from] NotSmaller),
}

/// What a summariser wrote.
#[derive(Clone, Debug, Default)]
pub(super) struct Notes {
    /// About the messages before the split turn, or before the tail.
    pub(super) history: Option<String>,
    /// About the beginning of the turn whose end is kept.
    pub(super) prefix: Option<String>,
    /// A line in front of everything, which no cap cuts.
    pub(super) note: Option<&'static str>,
    /// The line for user interfaces, if a model wrote it.
    pub(super) short: Option<String>,
    pub(super) dropped: Vec<Dropped>,
    pub(super) cut_off: bool,
    /// How many requests there were.
    pub(super) parts: usize,
    /// `provider/model`, or `extractive`.
    pub(super) planner: String,
}

/// The cap of a stored summary when nothing else says so.
const MOST_SUMMARY: u64 = 8_000;
/// No cap is lower.
const LEAST_SUMMARY: u64 = 256;
/// The longest line for user interfaces, in UTF-16 units.
const SHORT_UNITS: usize = 2_000;

pub(super) fn assemble(
    preparation: &Preparation<'_, '_>,
    options: &CommitOptions<'_>,
    notes: Notes,
    counter: &dyn TokenCounter,
) -> Result<SummaryCompaction, SummaryError> {
    let cap = cap(options);
    let files = preparation.file_ops().lists();
    let said = said(preparation);
    let quoted = options.settings.keep_user_tokens.min(Tokens(cap.get() * 2 / 5));
    let user_messages = user_messages::within(said.clone(), quoted, counter);
    let user_block = user_messages::print(&user_messages);
    let listed = listed(&files, Tokens(cap.get() / 4), counter);
    let for_gate = Tokens(cap.get() / 10);
    let blocks = counter.one(&user_block) + counter.one(&with_file_tags("", &listed)) + for_gate;
    let prose_cap = cap.saturating_sub(blocks).max(Tokens(cap.get() / 5));
    let note = notes.note.map(|note| format!("{note}\n\n")).unwrap_or_default();
    let prose_cap = prose_cap.saturating_sub(counter.one(&note));
    let (prose, left_out) = merged(preparation, &notes, prose_cap, counter);
    let prose = inert(&prose, Wrapper::Stored).into_owned();

    let mut summary = format!("{note}{prose}");
    push_block(&mut summary, &user_block);
    let missing = match options.settings.gate {
        GateMode::Off => Vec::new(),
        GateMode::Append | GateMode::Reject => {
            let facts = gate::facts(&files.modified_files, options.open_todos, &said);
            gate::missing(facts, &with_file_tags(&summary, &listed), preparation.kept())
        }
    };
    if options.settings.gate == GateMode::Reject && !missing.is_empty() {
        return Err(SummaryError::Gate { missing });
    }
    push_block(&mut summary, &gate_block(&missing, for_gate, counter));
    let summary = with_file_tags(&summary, &listed);

    let text = Message::CompactionSummary(SummaryText {
        summary: summary.as_str().into(),
        ..SummaryText::default()
    });
    let before = preparation.tokens_before();
    let after = counter.message(&text) + preparation.kept_tokens();
    let least = options.demand.least(before);
    if before.saturating_sub(after) < least {
        return Err(NotSmaller::Insufficient {
            before,
            after,
            shortfall: after.saturating_add(least).saturating_sub(before),
        }
        .into());
    }
    let short = notes.short.as_deref().map_or_else(
        || short_summary(&prose),
        |short| Some(ellipsis(&one_line(short, SHORT_UNITS), SHORT_UNITS)),
    );
    let details = details(preparation, &notes, &files, &user_messages, &missing, left_out);
    Ok(SummaryCompaction {
        draft: CompactionDraft {
            summary,
            short_summary: short,
            first_kept: preparation.first_kept(),
            tokens_before: options.size.tokens,
            details,
            preserve_data: preserve_data(preparation, options.preserve_data),
            author: Author::Foldline,
        },
        tokens_before: before,
        tokens_after: after,
        files,
        appended: missing,
        dropped: notes.dropped,
        left_out,
        cut_off: notes.cut_off,
    })
}

pub(super) fn cap(options: &CommitOptions<'_>) -> Tokens {
    stored_cap(options.settings, options.limits)
}

/// The cap of a whole stored summary with its blocks (R13).
pub fn stored_cap(settings: &CompactionSettings, limits: Option<&Limits>) -> Tokens {
    let by_window = limits.map_or(MOST_SUMMARY, |l| MOST_SUMMARY.min(l.window().get() / 10));
    settings
        .max_summary_tokens
        .unwrap_or(Tokens(by_window))
        .max(Tokens(LEAST_SUMMARY))
}

/// What the user said in all that is compacted now and was before, oldest first.
fn said(preparation: &Preparation<'_, '_>) -> Vec<UserMessage> {
    let context = preparation.context();
    let now = user_messages::typed(context.log, preparation.compacted());
    let carried = preparation
        .stored()
        .map(|s| s.user_messages.clone())
        .unwrap_or_default();
    let is_new = |m: &UserMessage| !now.iter().any(|n| n.entry == m.entry);
    let mut all: Vec<UserMessage> = carried.into_iter().filter(is_new).collect();
    all.extend(now);
    all
}

/// The notes as one text of at most `cap` tokens; a split turn in the form of the seed.
fn merged(
    preparation: &Preparation<'_, '_>,
    notes: &Notes,
    cap: Tokens,
    counter: &dyn TokenCounter,
) -> (String, usize) {
    // Without new history the earlier notes go on unchanged (CD1).
    let history = notes.history.as_deref().or(preparation.previous_summary());
    let history = history.map(|h| flat(h).trim().to_owned());
    let Some(prefix) = notes.prefix.as_deref() else {
        return capped(history.as_deref().unwrap_or(NO_PRIOR_HISTORY), cap, counter);
    };
    let seam = format!("\n\n---\n\n{TURN_CONTEXT}\n\n");
    let room = cap.saturating_sub(counter.one(&seam) + Tokens(2));
    let (prefix, mut left_out) = capped(&flat(prefix), Tokens(room.get() / 3), counter);
    let room = room.saturating_sub(counter.one(&prefix));
    let (history, more) = capped(history.as_deref().unwrap_or(NO_PRIOR_HISTORY), room, counter);
    left_out += more;
    (format!("{history}{seam}{prefix}"), left_out)
}

/// The lists as the summary names them: as many files as there is room for.
fn listed(files: &FileLists, room: Tokens, counter: &dyn TokenCounter) -> FileLists {
    let mut listed = files.clone();
    let mut most = MAX_LISTED;
    while most > 0 && counter.one(&with_file_tags("", &listed)) > room {
        most /= 2;
        listed.read_files.truncate(most);
        listed.modified_files.truncate(most);
    }
    listed
}

fn push_block(summary: &mut String, block: &str) {
    if block.is_empty() {
        return;
    }
    if !summary.is_empty() {
        summary.push_str("\n\n");
    }
    summary.push_str(block);
}

/// The list of what was missing, as far as there is room.
fn gate_block(missing: &[String], room: Tokens, counter: &dyn TokenCounter) -> String {
    if missing.is_empty() {
        return String::new();
    }
    let mut block = format!("<{GATE_TAG}>\n");
    for (i, fact) in missing.iter().enumerate() {
        let line = format!("- {}\n", inert(&one_line(fact, 200), Wrapper::Stored));
        if i > 0 && counter.one(&block) + counter.one(&line) > room {
            block.push_str(&format!("- (and {} more)\n", missing.len() - i));
            break;
        }
        block.push_str(&line);
    }
    block.push_str(&format!("</{GATE_TAG}>"));
    block
}

/// The first words of a summary that say something: no heading and no list mark (CD18).
fn short_summary(prose: &str) -> Option<String> {
    let line = prose.lines().map(str::trim).find(|line| {
        !line.is_empty()
            && !line.starts_with('#')
            && *line != "---"
            && *line != NO_PRIOR_HISTORY
            && *line != TURN_CONTEXT
    })?;
    let line = line
        .trim_start_matches("- ")
        .trim_start_matches("[x] ")
        .trim_start_matches("[ ] ");
    let short = ellipsis(&redact(line), SHORT_UNITS);
    (!short.is_empty()).then_some(short)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Details<'d> {
    strategy: &'static str,
    prompt_version: u32,
    rung: &'static str,
    planner: &'d str,
    read_files: &'d [String],
    modified_files: &'d [String],
    sections: SectionDetails<'d>,
    requests: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    cut_off: Option<bool>,
    #[serde(skip_serializing_if = "is_zero")]
    left_out: usize,
    #[serde(skip_serializing_if = "<[Dropped]>::is_empty")]
    dropped: &'d [Dropped],
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<Box<RawValue>>,
}

/// Which blocks follow the notes, and what they hold.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SectionDetails<'d> {
    user_messages: Vec<&'d EntryId>,
    must_keep: &'d [String],
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde wants a reference")]
const fn is_zero(number: &usize) -> bool {
    *number == 0
}

fn details(
    preparation: &Preparation<'_, '_>,
    notes: &Notes,
    files: &FileLists,
    user_messages: &[UserMessage],
    missing: &[String],
    left_out: usize,
) -> String {
    let state = preparation.context().state().to_details();
    let details = Details {
        strategy: "context-full",
        prompt_version: PROMPT_VERSION,
        rung: if notes.planner == super::extractive::PLANNER {
            super::extractive::PLANNER
        } else {
            "model"
        },
        planner: &notes.planner,
        read_files: &files.read_files,
        modified_files: &files.modified_files,
        sections: SectionDetails {
            user_messages: user_messages.iter().map(|m| &m.entry).collect(),
            must_keep: missing,
        },
        requests: notes.parts,
        cut_off: notes.cut_off.then_some(true),
        left_out,
        dropped: &notes.dropped,
        state: state.and_then(|json| RawValue::from_string(json).ok()),
    };
    // Plain data with string keys always serialises.
    serde_json::to_string(&details).unwrap_or_else(|_| "{\"strategy\":\"context-full\"}".to_owned())
}

/// The key of a provider's own history: it stands for another context and does not go on.
const REMOTE_KEY: &str = "openaiRemoteCompaction";

/// The earlier entry's data without a provider's own history, and a hook's.
fn preserve_data(preparation: &Preparation<'_, '_>, added: Option<&str>) -> Option<String> {
    let earlier = preparation.previous().and_then(|p| p.preserve_data.as_deref());
    let added: Option<&RawValue> = added.and_then(|json| serde_json::from_str(json).ok());
    let mut all: Vec<(String, String)> = Vec::new();
    for (raw, is_earlier) in [(earlier, true), (added, false)] {
        for (key, value) in raw.and_then(members).unwrap_or_default() {
            if is_earlier && key == REMOTE_KEY {
                continue;
            }
            all.retain(|(known, _)| *known != key);
            all.push((key.into_owned(), value.into_owned()));
        }
    }
    if all.is_empty() {
        return None;
    }
    let mut json = String::from("{");
    for (i, (key, value)) in all.iter().enumerate() {
        if i > 0 {
            json.push(',');
        }
        write_string(&mut json, key);
        json.push(':');
        json.push_str(value);
    }
    json.push('}');
    Some(json)
}

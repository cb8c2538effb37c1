//! The plan: which results become notices (seed 000, "Pre-compaction pruning"; spec "Pruning", 3 and 15).
//!
//! One pass forward collects the calls, one pass backward decides. Every text is measured once, and the text of a
//! candidate is scanned once for its digest.

mod answers;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use foldline_session_model::message::{Message, ToolResult};
use foldline_session_model::tokens::TokenCounter;
use foldline_session_model::{EntryIx, Tokens};

use crate::digest::{joined_text, write_digest};
use crate::notice::{SCHEME, notice, write_entry_reference, write_notice};
use crate::policy::{Digests, Originals, Policy, Staleness};
use crate::staleness::{Calls, Members, Stale, Tracker};
use crate::text::units;
use crate::turn_fence::first_fenced;
use crate::view::{Item, Masking, View};

use answers::{Answer, Answers, TOGETHER, Tool, answers, fetch_answers};

/// What a prune would do. Nothing is changed yet.
#[must_use]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The results that become notices, newest first.
    pub replacements: Vec<Replacement>,
    /// What all of them save together: estimate before less estimate after. For a rewrite with artifacts at least that
    /// much, because the length of the references is not known yet.
    pub tokens_saved: Tokens,
    /// Whether there is something to do, and if not, why.
    pub outcome: Outcome,
    /// How notices refer to originals.
    pub originals: Originals,
    /// The ids and digests of all replacements, one after another: there may be very many.
    texts: String,
}

/// Whether a plan holds anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The replacements are worth it.
    Prune,
    /// There is nothing to replace.
    NothingToPrune,
    /// The policy's minimum is not met; there are no replacements.
    BelowMinimum {
        /// How many results could be replaced.
        results: usize,
        /// What that would save.
        would_save: Tokens,
    },
}

/// One result that becomes a notice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replacement {
    /// The entry of the result, in the texts of the plan.
    entry: Range<usize>,
    /// The same entry in its log.
    pub source: EntryIx,
    /// The position in the view that was planned for.
    pub position: usize,
    /// The tool.
    pub tool: Arc<str>,
    /// The estimate of the original, pictures included.
    pub tokens: Tokens,
    /// What the replacement saves.
    pub saved: Tokens,
    /// Why this result may go.
    pub why: Why,
    /// What the notice tells beside the size, there too.
    digest: Option<Range<usize>>,
}

/// Why a result may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// It is older than the protected window.
    Old,
    /// A later result answers the same question.
    Repeated,
    /// The file that it shows was changed later.
    FileChanged,
    /// A later read shows all of its lines and more.
    Covered,
}

impl From<Stale> for Why {
    fn from(stale: Stale) -> Self {
        match stale {
            Stale::Repeated => Self::Repeated,
            Stale::FileChanged => Self::FileChanged,
            Stale::Covered => Self::Covered,
        }
    }
}

/// What a plan does to the results of one tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolTotal {
    /// The tool.
    pub tool: String,
    /// How many of its results become notices.
    pub results: usize,
    /// The estimate of the originals.
    pub tokens: Tokens,
    /// What the replacements save.
    pub saved: Tokens,
}

/// The results of a view that a later one makes worthless, by their position, whatever a policy would do about them.
/// A view may leave messages out: what is not there makes nothing stale.
pub fn stale(view: &View<'_>) -> Vec<(usize, Why)> {
    let calls = Calls::of(view);
    let mut tracker = Tracker::new(view.cwd);
    let mut found = Vec::new();
    for (position, item) in view.items.iter().enumerate().rev() {
        let Message::ToolResult(result) = item.message else {
            continue;
        };
        let Some(call) = calls.get(&result.tool_call_id) else {
            continue;
        };
        let arguments = Members::of(call.arguments.as_deref());
        if let Some(stale) = tracker.observe(call, &arguments, result) {
            found.push((position, stale.into()));
        }
    }
    found.reverse();
    found
}

/// Plans which results of a view become notices.
///
/// The counter is the one that the caller measures its context with: savings are exact by it.
pub fn plan(view: &View<'_>, policy: &Policy, originals: Originals, counter: &dyn TokenCounter) -> Plan {
    let fence = first_fenced(view, policy.protect_recent_turns);
    let mut tracker = Tracker::new(view.cwd);
    let mut drafts = Drafts::new(originals);
    let mut arguments = Members::default();
    let mut newer = Tokens::ZERO;
    let mut replacements = Vec::new();
    let Answers { list, tools } = answers(view, policy);
    for together in list.rchunks(TOGETHER) {
        fetch_answers(together);
        for &Answer {
            position,
            result,
            call,
            tool,
        } in together.iter().rev()
        {
            let (Some(item), Some(tool)) = (view.items.get(position), tools.get(tool as usize)) else {
                continue;
            };
            // Whatever becomes of a result, it fills the window. Beyond it only the size of what may go is of interest.
            let is_protected_by_age = newer < policy.protect_tokens;
            let measured = is_protected_by_age.then(|| counter.message(item.message));
            newer += measured.unwrap_or(Tokens::ZERO);

            arguments.read(call.and_then(|call| call.arguments.as_deref()));
            let stale = match policy.staleness {
                Staleness::Track => call.and_then(|call| tracker.observe(call, &arguments, result)),
                Staleness::Ignore => None,
            };
            if position >= fence || is_pruned(item, result) || (is_protected_by_age && stale.is_none()) {
                continue;
            }
            if tool.is_protected && !(stale.is_some() && tool.yields_stale) {
                continue;
            }
            let candidate = Candidate {
                position,
                item,
                result,
                tool,
                tokens: measured.unwrap_or_else(|| counter.message(item.message)),
                stale,
            };
            replacements.extend(candidate.replacement(&arguments, policy, &mut drafts, counter));
        }
    }
    decide(
        replacements,
        drafts.into_texts(),
        policy.minimum_savings,
        originals,
    )
}

impl Plan {
    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.replacements.is_empty()
    }

    /// What the notice of one of the replacements tells beside the size.
    pub fn digest(&self, replacement: &Replacement) -> Option<&str> {
        self.texts.get(replacement.digest.clone()?)
    }

    /// The id of the entry of one of the replacements.
    pub fn entry(&self, replacement: &Replacement) -> &str {
        self.texts.get(replacement.entry.clone()).unwrap_or_default()
    }

    /// The notice in the place of the result.
    pub(crate) fn notice(&self, replacement: &Replacement, reference: Option<&str>) -> String {
        notice(replacement.tokens, self.digest(replacement), reference)
    }

    /// The replacements by tool, by name.
    pub fn by_tool(&self) -> Vec<ToolTotal> {
        let mut totals: BTreeMap<&str, ToolTotal> = BTreeMap::new();
        for replacement in &self.replacements {
            let total = totals.entry(&replacement.tool).or_insert_with(|| ToolTotal {
                tool: replacement.tool.to_string(),
                results: 0,
                tokens: Tokens::ZERO,
                saved: Tokens::ZERO,
            });
            total.results += 1;
            total.tokens += replacement.tokens;
            total.saved += replacement.saved;
        }
        totals.into_values().collect()
    }
}

/// Whether there is a notice already: a mark says so, not the text.
fn is_pruned(item: &Item<'_>, result: &ToolResult<'_>) -> bool {
    result.pruned_at.is_some() || item.masking == Masking::Masked
}

fn decide(replacements: Vec<Replacement>, texts: String, minimum: Tokens, originals: Originals) -> Plan {
    let tokens_saved: Tokens = replacements.iter().map(|r| r.saved).sum();
    let nothing = |outcome| Plan {
        replacements: Vec::new(),
        tokens_saved: Tokens::ZERO,
        outcome,
        originals,
        texts: String::new(),
    };
    if replacements.is_empty() {
        nothing(Outcome::NothingToPrune)
    } else if tokens_saved < minimum {
        nothing(Outcome::BelowMinimum {
            results: replacements.len(),
            would_save: tokens_saved,
        })
    } else {
        Plan {
            replacements,
            tokens_saved,
            outcome: Outcome::Prune,
            originals,
            texts,
        }
    }
}

/// A result that may go if its notice is worth it.
struct Candidate<'c, 'v> {
    position: usize,
    item: &'c Item<'v>,
    result: &'v ToolResult<'v>,
    tool: &'c Tool,
    tokens: Tokens,
    stale: Option<Stale>,
}

impl<'v> Candidate<'_, 'v> {
    fn replacement(
        &self,
        arguments: &Members<'_>,
        policy: &Policy,
        drafts: &mut Drafts<'v>,
        counter: &dyn TokenCounter,
    ) -> Option<Replacement> {
        // A notice costs something: a result that is not above the floor is not even scanned.
        if self.tokens < policy.entry_floor {
            return None;
        }
        let planned = drafts.write(self, arguments, policy.digests);
        let saved = self.tokens.saturating_sub(counter.one(planned));
        if saved < policy.entry_floor {
            return None;
        }
        // An error in few words says more than a notice about it.
        if self.result.is_error
            && policy.digests == Digests::ErrorFirst
            && units(planned) > units(&joined_text(&self.result.content))
        {
            return None;
        }
        Some(Replacement {
            digest: drafts.keep_digest(),
            entry: drafts.keep_id(self.item.id),
            source: self.item.source,
            position: self.position,
            tool: Arc::clone(&self.tool.name),
            tokens: self.tokens,
            saved,
            why: match self.stale {
                None => Why::Old,
                Some(stale) => stale.into(),
            },
        })
    }
}

/// What candidates share: where notices are written to be measured.
struct Drafts<'v> {
    originals: Originals,
    /// The texts of the replacements, and behind them the digest of the last candidate.
    texts: String,
    kept: usize,
    reference: String,
    notice: String,
    details: Members<'v>,
}

impl<'v> Drafts<'v> {
    fn new(originals: Originals) -> Self {
        let reference = match originals {
            Originals::Artifacts { budget } => worst_case(usize::from(budget.get())),
            Originals::InLog | Originals::Unreferenced => String::new(),
        };
        Self {
            originals,
            texts: String::new(),
            kept: 0,
            reference,
            notice: String::new(),
            details: Members::default(),
        }
    }

    /// Writes the notice of a candidate. It is there until the next one is written.
    fn write(&mut self, candidate: &Candidate<'_, 'v>, arguments: &Members<'_>, digests: Digests) -> &str {
        self.texts.truncate(self.kept);
        self.notice.clear();
        if digests == Digests::ErrorFirst {
            write_digest(
                &mut self.texts,
                candidate.result,
                candidate.tool.kind,
                arguments.path().map(|path| &**path),
                &mut self.details,
            );
        }
        let digest = self.texts.get(self.kept..).filter(|digest| !digest.is_empty());
        let reference = match self.originals {
            Originals::InLog => {
                self.reference.clear();
                write_entry_reference(&mut self.reference, candidate.item.id);
                Some(&*self.reference)
            }
            Originals::Artifacts { .. } => Some(&*self.reference),
            Originals::Unreferenced => None,
        };
        write_notice(&mut self.notice, candidate.tokens, digest, reference);
        &self.notice
    }

    /// Keeps the digest of the last candidate, if it has one.
    fn keep_digest(&mut self) -> Option<Range<usize>> {
        let digest = self.kept..self.texts.len();
        self.kept = digest.end;
        (!digest.is_empty()).then_some(digest)
    }

    /// Keeps the id of the last candidate, once its digest is kept.
    fn keep_id(&mut self, id: &str) -> Range<usize> {
        self.texts.push_str(id);
        let entry = self.kept..self.texts.len();
        self.kept = entry.end;
        entry
    }

    fn into_texts(mut self) -> String {
        self.texts.truncate(self.kept);
        self.texts
    }
}

/// A reference as long as one may be.
fn worst_case(chars: usize) -> String {
    let mut reference = String::from(SCHEME);
    reference.extend(std::iter::repeat_n('9', chars.saturating_sub(SCHEME.len())));
    reference.truncate(chars);
    reference
}

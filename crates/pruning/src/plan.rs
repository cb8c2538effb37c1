//! The plan: which results become notices (seed 000, "Pre-compaction pruning"; spec "Pruning", 3 and 15).
//!
//! One pass forward collects the calls, one pass backward decides. Every text is measured once, and the text of a
//! candidate is scanned once for its digest.

use std::borrow::Cow;
use std::collections::BTreeMap;

use foldline_session_model::message::{Message, ToolResult};
use foldline_session_model::tokens::TokenCounter;
use foldline_session_model::{EntryId, EntryIx, Tokens};

use crate::digest::{digest, joined_text};
use crate::notice::{SCHEME, entry_reference, notice};
use crate::policy::{Digests, Originals, Policy, Staleness};
use crate::staleness::{self, Calls, Members, Stale, Tracker};
use crate::text::units;
use crate::turn_fence::first_fenced;
use crate::view::{Item, Masking, View};

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
    /// The entry of the result.
    pub entry: EntryId,
    /// The same entry in its log.
    pub source: EntryIx,
    /// The position in the view that was planned for.
    pub position: usize,
    /// The tool.
    pub tool: String,
    /// The estimate of the original, pictures included.
    pub tokens: Tokens,
    /// What the replacement saves.
    pub saved: Tokens,
    /// Why this result may go.
    pub why: Why,
    /// What the notice tells beside the size.
    pub digest: Option<String>,
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
    let calls = staleness::calls(view);
    let mut tracker = Tracker::new(view.cwd);
    let mut found = Vec::new();
    for (position, item) in view.items.iter().enumerate().rev() {
        let Message::ToolResult(result) = item.message else {
            continue;
        };
        let Some(call) = calls.get(&*result.tool_call_id).copied() else {
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
    let calls = match (policy.staleness, policy.digests) {
        (Staleness::Ignore, Digests::None) => Calls::default(),
        _ => staleness::calls(view),
    };
    let longest = match originals {
        Originals::Artifacts { budget } => worst_case(usize::from(budget.get())),
        Originals::InLog | Originals::Unreferenced => String::new(),
    };
    let mut tracker = Tracker::new(view.cwd);
    let mut newer = Tokens::ZERO;
    let mut replacements = Vec::new();
    for (position, item) in view.items.iter().enumerate().rev() {
        let Message::ToolResult(result) = item.message else {
            continue;
        };
        let tokens = counter.message(item.message);
        let is_protected_by_age = newer < policy.protect_tokens;
        // Whatever becomes of a result, it fills the window.
        newer += tokens;

        let call = calls.get(&*result.tool_call_id).copied();
        let arguments = Members::of(call.and_then(|call| call.arguments.as_deref()));
        let stale = match policy.staleness {
            Staleness::Track => call.and_then(|call| tracker.observe(call, &arguments, result)),
            Staleness::Ignore => None,
        };
        if position >= fence || is_pruned(item, result) || (is_protected_by_age && stale.is_none()) {
            continue;
        }
        if policy.protects(&result.tool_name)
            && !(stale.is_some() && policy.gives_up_when_stale(&result.tool_name))
        {
            continue;
        }
        let candidate = Candidate {
            position,
            item,
            result,
            tokens,
            stale,
        };
        let reference = match originals {
            Originals::InLog => Some(Cow::Owned(entry_reference(item.id))),
            Originals::Artifacts { .. } => Some(Cow::Borrowed(&*longest)),
            Originals::Unreferenced => None,
        };
        replacements.extend(candidate.replacement(&arguments, policy, reference.as_deref(), counter));
    }
    decide(replacements, policy.minimum_savings, originals)
}

impl Plan {
    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.replacements.is_empty()
    }

    /// The replacements by tool, by name.
    pub fn by_tool(&self) -> Vec<ToolTotal> {
        let mut totals: BTreeMap<&str, ToolTotal> = BTreeMap::new();
        for replacement in &self.replacements {
            let total = totals.entry(&replacement.tool).or_insert_with(|| ToolTotal {
                tool: replacement.tool.clone(),
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

impl Replacement {
    /// The notice in the place of the result.
    pub(crate) fn notice(&self, reference: Option<&str>) -> String {
        notice(self.tokens, self.digest.as_deref(), reference)
    }
}

/// Whether there is a notice already: a mark says so, not the text.
fn is_pruned(item: &Item<'_>, result: &ToolResult<'_>) -> bool {
    result.pruned_at.is_some() || item.masking == Masking::Masked
}

fn decide(replacements: Vec<Replacement>, minimum: Tokens, originals: Originals) -> Plan {
    let tokens_saved: Tokens = replacements.iter().map(|r| r.saved).sum();
    let nothing = |outcome| Plan {
        replacements: Vec::new(),
        tokens_saved: Tokens::ZERO,
        outcome,
        originals,
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
        }
    }
}

/// A result that may go if its notice is worth it.
struct Candidate<'c, 'v> {
    position: usize,
    item: &'c Item<'v>,
    result: &'v ToolResult<'v>,
    tokens: Tokens,
    stale: Option<Stale>,
}

impl Candidate<'_, '_> {
    fn replacement(
        &self,
        arguments: &Members<'_>,
        policy: &Policy,
        reference: Option<&str>,
        counter: &dyn TokenCounter,
    ) -> Option<Replacement> {
        // A notice costs something: a result that is not above the floor is not even scanned.
        if self.tokens < policy.entry_floor {
            return None;
        }
        let path = arguments.path();
        let digest = match policy.digests {
            Digests::ErrorFirst => digest(self.result, path.as_deref()),
            Digests::None => None,
        };
        let planned = notice(self.tokens, digest.as_deref(), reference);
        let saved = self.tokens.saturating_sub(counter.one(&planned));
        if saved < policy.entry_floor {
            return None;
        }
        // An error in few words says more than a notice about it.
        if self.result.is_error
            && policy.digests == Digests::ErrorFirst
            && units(&planned) > units(&joined_text(&self.result.content))
        {
            return None;
        }
        Some(Replacement {
            entry: EntryId::from(self.item.id),
            source: self.item.source,
            position: self.position,
            tool: self.result.tool_name.to_string(),
            tokens: self.tokens,
            saved,
            why: match self.stale {
                None => Why::Old,
                Some(stale) => stale.into(),
            },
            digest,
        })
    }
}

/// A reference as long as one may be.
fn worst_case(chars: usize) -> String {
    let mut reference = String::from(SCHEME);
    reference.extend(std::iter::repeat_n('9', chars.saturating_sub(SCHEME.len())));
    reference.truncate(chars);
    reference
}

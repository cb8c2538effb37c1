//! The last rung: a plan without a model that makes the context fit (D6; R12).

use foldline_session_model::Tokens;
use foldline_session_model::message::{Message, VerbatimBoundary};
use foldline_session_model::tokens::TokenCounter;

use super::finish::{RangePlan, Rung, TailFate};
use super::plan::{extractive, extractive_within};
use super::prepare::Preparation;
use super::ranges::{RawRange, ValidatedRanges};
use super::reconstruct::reconstruct;
use crate::extractive::Target;

/// What the wrapper around the boundary may cost.
const WRAPPER: Tokens = Tokens(128);

/// Plans without a model, within `limit` for the whole context if there is one.
///
/// First the usual target; then ever smaller ones, until the lines fit beside the tail; then no line but protected
/// ones; and if even the tail is too large by itself, it goes as well.
pub(crate) fn plan(
    preparation: &Preparation<'_, '_>,
    limit: Option<Tokens>,
    counter: &dyn TokenCounter,
) -> RangePlan {
    let usual = extractive(preparation);
    let first = RangePlan {
        dropped: usual.dropped,
        ..RangePlan::new(usual.ranges, Rung::Extractive)
    };
    let Some(limit) = limit.filter(|l| *l > Tokens::ZERO) else {
        return first;
    };
    let room = limit
        .saturating_sub(preparation.tail_tokens())
        .saturating_sub(WRAPPER);
    if cost(preparation, &first.ranges, counter) <= room {
        return first;
    }
    let mut chars = usize::try_from(room.get())
        .unwrap_or(usize::MAX)
        .saturating_mul(4);
    while chars >= 64 {
        let smaller = extractive_within(preparation, Target::chars(chars));
        if cost(preparation, &smaller.ranges, counter) <= room {
            return RangePlan {
                dropped: smaller.dropped,
                ..RangePlan::new(smaller.ranges, Rung::Extractive)
            };
        }
        chars /= 2;
    }
    let region = preparation.region();
    let all = RawRange {
        start: 1,
        end: u64::try_from(region.line_count()).unwrap_or(u64::MAX),
    };
    let nothing = ValidatedRanges::validate([all], region.line_count(), region.protected());
    let tail = if preparation.tail_tokens() + WRAPPER <= limit {
        TailFate::Kept
    } else {
        TailFate::Dropped
    };
    RangePlan {
        tail,
        ..RangePlan::new(nothing, Rung::Fresh)
    }
}

/// The estimate of the text that a plan leaves.
fn cost(preparation: &Preparation<'_, '_>, ranges: &ValidatedRanges, counter: &dyn TokenCounter) -> Tokens {
    let text = reconstruct(preparation.region(), ranges).into_text();
    let boundary = VerbatimBoundary {
        text: text.into(),
        ..VerbatimBoundary::default()
    };
    counter.message(&Message::VerbatimBoundary(boundary))
}

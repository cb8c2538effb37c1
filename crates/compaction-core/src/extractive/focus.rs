//! Lines that a focus names: what somebody who asked for it wants to find again.

use aho_corasick::AhoCorasick;
use foldline_session_model::search::Query;

use crate::verbatim::{Author, LinePart, Region};

/// A term is a bit of a word.
const MAX_TERMS: usize = u64::BITS as usize;
/// A term in more than one line of this many says nothing about any of them.
const COMMON_SHARE: usize = 8;
/// In a region of few lines no term is common.
const FEW_LINES: usize = 40;

/// The lines that hold a term of the focus, the best first: those with more and rarer terms, then the newest.
/// Of lines with the same text only the newest counts.
pub(super) fn lines(region: &Region<'_>, focus: &str) -> Vec<usize> {
    let query = Query::new(focus);
    let terms: Vec<&str> = query.terms().take(MAX_TERMS).collect();
    let Ok(finder) = AhoCorasick::builder().ascii_case_insensitive(true).build(&terms) else {
        return Vec::new();
    };
    let count = region.line_count();
    let mut held = Vec::new();
    let mut holders = vec![0_usize; terms.len()];
    for line in region.lines() {
        if line.author != Author::Session || line.part != LinePart::Content {
            continue;
        }
        let mut terms_here = 0_u64;
        for found in finder.find_overlapping_iter(line.text) {
            terms_here |= 1 << found.pattern().as_usize();
        }
        if terms_here == 0 {
            continue;
        }
        held.push((line.number.index(), terms_here, line.text.trim()));
        for (term, holders) in holders.iter_mut().enumerate() {
            *holders += usize::from(terms_here & (1 << term) != 0);
        }
    }
    let weights: Vec<u32> = holders
        .iter()
        .map(|&holders| match holders {
            0 => 0,
            holders if holders > (count / COMMON_SHARE).max(FEW_LINES) => 0,
            holders => (count / holders).max(1).ilog2() + 1,
        })
        .collect();
    let weight_of = |terms_here: u64| -> u32 {
        let terms = weights.iter().enumerate();
        terms
            .filter(|(term, _)| terms_here & (1 << term) != 0)
            .map(|(_, weight)| weight)
            .sum()
    };
    let mut seen = rustc_hash::FxHashSet::default();
    let mut ranked: Vec<(u32, usize)> = held
        .iter()
        .rev()
        .filter(|(_, _, text)| seen.insert(*text))
        .map(|(line, terms_here, _)| (weight_of(*terms_here), *line))
        .filter(|(weight, _)| *weight > 0)
        .collect();
    ranked.sort_unstable_by(|a, b| b.cmp(a));
    ranked.into_iter().map(|(_, line)| line).collect()
}

#[cfg(test)]
mod tests;

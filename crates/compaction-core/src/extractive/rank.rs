//! The ranking `balanced`: a greedy cover of what the agent is likely to need, per character of cost.

use std::collections::BinaryHeap;

use super::need::{Needs, as_u32};
use crate::verbatim::Region;

/// The lines of a region in the order in which they should be kept, the best first. One ranking serves every
/// budget. Trusted markers are not in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ranking {
    order: Vec<u32>,
}

impl Ranking {
    /// Positions of the lines, counted from 0.
    pub fn positions(&self) -> impl ExactSizeIterator<Item = usize> {
        self.order.iter().map(|&line| line as usize)
    }
}

/// A line next to a gap is written together with a marker.
const MARKER_COST: u32 = 20;

/// Ranks the lines of a region, given the text that is kept beside it (its last messages, serialised).
///
/// Takes the line with the greatest bonus and weight of items not covered yet per character, covers its
/// items, and goes on; ties go to the newest line. Beside a line already taken a line is cheaper, as it needs
/// no marker of its own. Lines without worth follow, newest first.
pub fn balanced(region: &Region<'_>, tail: &str) -> Ranking {
    let needs = Needs::new(region, tail);
    let lines = region.line_count();
    let mut cover = Cover {
        needs: &needs,
        covered: vec![false; needs.weights.len()],
        taken: vec![false; lines],
    };
    let ranked = |line: &usize| !needs.is_marker(*line);
    let mut heap: BinaryHeap<(u32, u32)> = (0..lines)
        .filter(ranked)
        .map(|line| candidate(cover.density(line), line))
        .collect();
    let mut order = Vec::with_capacity(lines);
    while let Some((density, line)) = heap.pop() {
        let line = line as usize;
        if cover.taken[line] {
            continue;
        }
        let now = cover.density(line);
        if now == 0 {
            continue;
        }
        if now < density {
            heap.push(candidate(now, line)); // its items have been covered meanwhile
            continue;
        }
        order.push(as_u32(line));
        cover.take(line);
        for beside in [line.wrapping_sub(1), line + 1] {
            if cover.taken.get(beside) == Some(&false) && !needs.is_marker(beside) {
                heap.push(candidate(cover.density(beside), beside));
            }
        }
    }
    order.extend(
        (0..lines)
            .rev()
            .filter(ranked)
            .filter(|&line| !cover.taken[line])
            .map(as_u32),
    );
    Ranking { order }
}

/// Greatest density first, then the newest line.
fn candidate(density: u32, line: usize) -> (u32, u32) {
    (density, as_u32(line))
}

struct Cover<'n> {
    needs: &'n Needs,
    covered: Vec<bool>,
    taken: Vec<bool>,
}

impl Cover<'_> {
    /// The worth of a line per 1024 characters of its cost.
    fn density(&self, line: usize) -> u32 {
        let open = self
            .needs
            .items(line)
            .iter()
            .filter(|&&item| !self.covered[item as usize]);
        let worth: u64 = open
            .map(|&item| u64::from(self.needs.weights[item as usize]))
            .sum();
        let worth = worth + u64::from(self.needs.bonus[line]);
        let is_taken = |at: usize| self.taken.get(at) == Some(&true);
        let marker = match (is_taken(line.wrapping_sub(1)), is_taken(line + 1)) {
            (false, false) => MARKER_COST,
            (true, true) => 1,
            _ => 2,
        };
        let cost = u64::from(self.needs.chars[line]) + u64::from(marker);
        // A weight is at most 25,000 and an item at least 4 characters long: far below the limit of the type.
        u32::try_from(worth * 1024 / cost).unwrap_or(u32::MAX)
    }

    fn take(&mut self, line: usize) {
        self.taken[line] = true;
        for &item in self.needs.items(line) {
            self.covered[item as usize] = true;
        }
    }
}

#[cfg(test)]
mod tests;

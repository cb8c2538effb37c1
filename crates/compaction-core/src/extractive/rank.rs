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
    let mut cover = Cover::new(&needs, lines);
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
    taken: Vec<bool>,
    /// Bonus and weight of the items not covered yet, for each line.
    worth: Vec<u64>,
    covered: Vec<bool>,
    holders: Holders,
}

impl<'n> Cover<'n> {
    fn new(needs: &'n Needs, lines: usize) -> Self {
        let weight = |&item: &u32| u64::from(needs.weights[item as usize]);
        let worth = (0..lines)
            .map(|line| u64::from(needs.bonus[line]) + needs.items(line).iter().map(weight).sum::<u64>())
            .collect();
        let covered = vec![false; needs.weights.len()];
        Self {
            needs,
            taken: vec![false; lines],
            worth,
            covered,
            holders: Holders::new(needs, lines),
        }
    }

    /// The worth of a line per 1024 characters of its cost.
    fn density(&self, line: usize) -> u32 {
        let is_taken = |at: usize| self.taken.get(at) == Some(&true);
        let marker = match (is_taken(line.wrapping_sub(1)), is_taken(line + 1)) {
            (false, false) => MARKER_COST,
            (true, true) => 1,
            _ => 2,
        };
        let cost = u64::from(self.needs.chars[line]) + u64::from(marker);
        // A weight is at most 25,000 and an item at least 4 characters long: far below the limit of the type.
        u32::try_from(self.worth[line] * 1024 / cost).unwrap_or(u32::MAX)
    }

    /// Covers the items of a line, so that they are worth nothing in any other. Each item is covered once,
    /// which keeps the whole ranking linear in the number of items, however long a line is.
    fn take(&mut self, line: usize) {
        self.taken[line] = true;
        for &item in self.needs.items(line) {
            if !std::mem::replace(&mut self.covered[item as usize], true) {
                let weight = u64::from(self.needs.weights[item as usize]);
                for &holder in self.holders.of(item) {
                    self.worth[holder as usize] -= weight;
                }
            }
        }
    }
}

/// The lines of each item.
struct Holders {
    start: Vec<u32>,
    lines: Vec<u32>,
}

impl Holders {
    fn new(needs: &Needs, lines: usize) -> Self {
        let mut start = vec![0u32; needs.weights.len() + 1];
        for line in 0..lines {
            for &item in needs.items(line) {
                start[item as usize + 1] += 1;
            }
        }
        for item in 1..start.len() {
            start[item] += start[item - 1];
        }
        let mut next = start.clone();
        let mut holders = vec![0u32; start.last().map_or(0, |&n| n as usize)];
        for line in 0..lines {
            for &item in needs.items(line) {
                let place = &mut next[item as usize];
                holders[*place as usize] = as_u32(line);
                *place += 1;
            }
        }
        Self {
            start,
            lines: holders,
        }
    }

    fn of(&self, item: u32) -> &[u32] {
        let item = item as usize;
        &self.lines[self.start[item] as usize..self.start[item + 1] as usize]
    }
}

#[cfg(test)]
mod tests;

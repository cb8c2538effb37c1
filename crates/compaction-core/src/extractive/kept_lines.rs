//! A set of lines that finds the next kept line above and below in a few steps, however wide the gap.

/// Bits in levels: a bit of a level says whether a word of the level below has any.
#[derive(Clone, Debug)]
pub(super) struct KeptLines {
    levels: Vec<Vec<u64>>,
    len: usize,
}

const BITS: usize = u64::BITS as usize;

impl KeptLines {
    pub(super) fn new(len: usize) -> Self {
        let mut levels = Vec::new();
        let mut words = len.div_ceil(BITS).max(1);
        loop {
            levels.push(vec![0; words]);
            if words == 1 {
                return Self { levels, len };
            }
            words = words.div_ceil(BITS);
        }
    }

    pub(super) fn contains(&self, line: usize) -> bool {
        self.levels
            .first()
            .and_then(|l| l.get(line / BITS))
            .is_some_and(|w| w >> (line % BITS) & 1 == 1)
    }

    pub(super) fn insert(&mut self, line: usize) {
        debug_assert!(line < self.len);
        let mut at = line;
        for level in &mut self.levels {
            if let Some(word) = level.get_mut(at / BITS) {
                *word |= 1 << (at % BITS);
            }
            at /= BITS;
        }
    }

    /// The gap around a line that is not kept: from the line after the last kept one above to the next kept
    /// one below.
    pub(super) fn gap(&self, line: usize) -> std::ops::Range<usize> {
        self.last_before(line).map_or(0, |above| above + 1)..self.first_from(line + 1).unwrap_or(self.len)
    }

    fn last_before(&self, line: usize) -> Option<usize> {
        let mut at = line; // bits below this one on the level
        for (depth, level) in self.levels.iter().enumerate() {
            let below = (1u64 << (at % BITS)) - 1;
            let word = level.get(at / BITS).copied().unwrap_or(0) & below;
            if word != 0 {
                let bit = BITS - 1 - word.leading_zeros() as usize;
                return Some(self.descend(depth, at / BITS * BITS + bit, |w| {
                    BITS - 1 - w.leading_zeros() as usize
                }));
            }
            at /= BITS;
        }
        None
    }

    fn first_from(&self, line: usize) -> Option<usize> {
        let mut at = line; // this bit of the level and those above it
        for (depth, level) in self.levels.iter().enumerate() {
            let word = level.get(at / BITS).copied().unwrap_or(0) & (u64::MAX << (at % BITS));
            if word != 0 {
                let bit = word.trailing_zeros() as usize;
                return Some(self.descend(depth, at / BITS * BITS + bit, |w| w.trailing_zeros() as usize));
            }
            at = at / BITS + 1;
        }
        None
    }

    /// Goes from a set bit of a level down to the line it stands for.
    fn descend(&self, depth: usize, mut at: usize, bit_of: impl Fn(u64) -> usize) -> usize {
        for level in self.levels.iter().take(depth).rev() {
            at = at * BITS
                + level
                    .get(at)
                    .copied()
                    .map_or(0, |word| if word == 0 { 0 } else { bit_of(word) });
        }
        at
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn gaps_are_those_of_a_plain_scan(len in 1usize..10_000, lines in prop::collection::vec(any::<prop::sample::Index>(), 0..40), probe in any::<prop::sample::Index>()) {
            let mut kept = KeptLines::new(len);
            let mut plain = vec![false; len];
            for line in &lines {
                kept.insert(line.index(len));
                plain[line.index(len)] = true;
            }
            let probe = probe.index(len);
            prop_assert_eq!(kept.contains(probe), plain[probe]);
            if !plain[probe] {
                let start = plain[..probe].iter().rposition(|&k| k).map_or(0, |i| i + 1);
                let end = plain[probe..].iter().position(|&k| k).map_or(len, |i| probe + i);
                prop_assert_eq!(kept.gap(probe), start..end);
            }
        }
    }
}

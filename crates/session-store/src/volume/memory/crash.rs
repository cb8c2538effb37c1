//! What a crash leaves of a volume in memory.

use super::{Inode, State};

/// Brings the volume back with one of the states that the crash may have left; the seed says which one.
pub(super) fn restart(state: &mut State, seed: u64) {
    let mut dice = Dice(seed);
    let mut paths: Vec<_> = state
        .names
        .keys()
        .chain(state.durable_names.keys())
        .cloned()
        .collect();
    paths.sort();
    paths.dedup();
    let mut names = std::collections::BTreeMap::new();
    for path in paths {
        let now = state.names.get(&path).copied();
        let durable = state.durable_names.get(&path).copied();
        // A change of names that no sync of the folder covered may be on the disk or not.
        let kept = if now == durable || dice.flip() {
            now
        } else {
            durable
        };
        if let Some(inode) = kept {
            names.insert(path, inode);
        }
    }
    for file in state.inodes.values_mut() {
        let survived = survive(file, &mut dice);
        file.durable.clone_from(&survived);
        file.content = survived;
        file.falsely_clean = false;
    }
    state.durable_names.clone_from(&names);
    state.names = names;
    state.faults.clear();
    state.locks.clear();
    state.crashed = false;
    state.epoch += 1;
}

/// What was synced is there; of what was not, a part, and its last bytes may read as zeros.
fn survive(file: &Inode, dice: &mut Dice) -> Vec<u8> {
    if file.content == file.durable {
        return file.durable.clone();
    }
    if !file.content.starts_with(&file.durable) {
        // Cut since the last sync: either state, then whatever was added.
        if dice.flip() {
            return file.durable.clone();
        }
        return file.content.clone();
    }
    let added = file.content.len() - file.durable.len();
    let kept = file.durable.len() + dice.below(added + 1);
    let mut survived = file.content.get(..kept).unwrap_or_default().to_vec();
    let zeros = match dice.below(4) {
        0 => dice.below(kept - file.durable.len() + 1),
        _ => 0,
    };
    let from = kept - zeros;
    for byte in survived.iter_mut().skip(from) {
        *byte = 0;
    }
    survived
}

/// `SplitMix64`: enough for choosing among states, and the same on every machine.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % (limit.max(1) as u64)).unwrap_or(0)
    }

    fn flip(&mut self) -> bool {
        self.next().is_multiple_of(2)
    }
}

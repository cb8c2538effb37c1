//! Faults at random steps of random lives of a session in memory.

use std::path::Path;

use anyhow::{Context, ensure};
use foldline_session_store::{Durability, Fault, MemoryStore, SessionStore, SessionWriter};

use super::session::{self, End, HEADER, entry, id};
use super::{Dice, Outcome};

const SESSION: &str = "/sessions/crash.jsonl";

pub(super) fn run(seed: u64, rounds: u64) -> anyhow::Result<Outcome> {
    let mut acknowledged = 0;
    let mut refused = 0;
    for round in 0..rounds {
        // One seed per round, so that a failure can be repeated alone.
        let seed = seed.wrapping_add(round.wrapping_mul(0x2545_f491_4f6c_dd1d));
        let mut life = Life::new(seed)?;
        life.live()
            .with_context(|| format!("round {round}, seed of the round {seed}"))?;
        acknowledged += life.total;
        refused += life.refused;
    }
    Ok(Outcome::Passed(format!(
        "{rounds} rounds, {acknowledged} entries acknowledged, {refused} steps refused, 0 lost, 0 unreadable"
    )))
}

struct Life {
    store: MemoryStore,
    dice: Dice,
    /// Entries that must be there.
    acknowledged: Vec<String>,
    /// Entries that were appended but not committed yet.
    pending: Vec<String>,
    /// What a rewrite that failed may have left instead: until it is known which one, either is right.
    or_else: Option<Vec<String>>,
    next: u64,
    total: u64,
    refused: u64,
}

impl Life {
    fn new(seed: u64) -> anyhow::Result<Self> {
        let store = MemoryStore::new();
        store.create(Path::new(SESSION), &mut std::iter::once(HEADER.as_bytes()))?;
        let dice = Dice(seed);
        Ok(Self {
            store,
            dice,
            acknowledged: Vec::new(),
            pending: Vec::new(),
            or_else: None,
            next: 0,
            total: 0,
            refused: 0,
        })
    }

    fn live(&mut self) -> anyhow::Result<()> {
        for _ in 0..4 {
            for _ in 0..=self.dice.below(2) {
                let fault = Fault::ALL[usize::try_from(self.dice.below(Fault::ALL.len() as u64))?];
                self.store
                    .plan_fault(self.store.steps() + 1 + self.dice.below(40), fault);
            }
            self.work();
            self.store.clear_faults();
            // Power goes after some of the lives, whether the machine had stopped by itself or not.
            match self.dice.below(3) {
                0 if !self.store.has_stopped() => self.store.kill_writers(),
                _ => self.store.restart(self.dice.next()),
            }
            self.pending.clear();
            self.check()?;
        }
        Ok(())
    }

    /// Some commands, each with a writer of its own.
    fn work(&mut self) {
        for _ in 0..4 {
            let Ok(mut writer) = self.store.open(Path::new(SESSION), &session::options()) else {
                self.refused += 1;
                continue;
            };
            for _ in 0..self.dice.below(5) {
                self.act(&mut writer);
            }
        }
    }

    fn act(&mut self, writer: &mut SessionWriter) {
        let now = std::time::UNIX_EPOCH;
        match self.dice.below(10) {
            0 => self.refused += u64::from(writer.backup("compact", now).is_err()),
            1 if self.or_else.is_none() && self.pending.is_empty() => self.rewrite(writer),
            draw => {
                let durability = if draw < 4 {
                    Durability::Later
                } else {
                    Durability::Commit
                };
                let number = self.next;
                self.next += 1;
                match writer.append(&entry(number), durability) {
                    Ok(_) => {
                        self.pending.push(id(number));
                        if durability == Durability::Commit {
                            self.total += self.pending.len() as u64;
                            if let Some(other) = &mut self.or_else {
                                other.extend_from_slice(&self.pending);
                            }
                            self.acknowledged.append(&mut self.pending);
                        }
                    }
                    Err(_) => self.refused += 1,
                }
            }
        }
    }

    /// Drops the first acknowledged entries.
    fn rewrite(&mut self, writer: &mut SessionWriter) {
        let Ok(before) = self.store.read(Path::new(SESSION)) else {
            return;
        };
        let gone = self.acknowledged.len() / 2;
        let dropped = self.acknowledged.get(..gone).unwrap_or_default();
        let names: Vec<String> = dropped.iter().map(|id| format!("\"id\":\"{id}\"")).collect();
        let kept: Vec<&[u8]> = before
            .split(|byte| *byte == b'\n')
            .filter(|line| serde_json::from_slice::<serde::de::IgnoredAny>(line).is_ok())
            .filter(|line| {
                let head = String::from_utf8_lossy(line.get(..80.min(line.len())).unwrap_or_default());
                !names.iter().any(|name| head.contains(name))
            })
            .collect();
        let remaining = self.acknowledged.get(gone..).unwrap_or_default().to_vec();
        if writer
            .rewrite(&mut kept.into_iter(), "rewrite", std::time::UNIX_EPOCH)
            .is_ok()
        {
            self.acknowledged = remaining;
        } else {
            self.refused += 1;
            self.or_else = Some(remaining);
        }
    }

    /// The session opens, takes an entry, and holds everything that was acknowledged.
    fn check(&mut self) -> anyhow::Result<()> {
        let number = self.next;
        self.next += 1;
        let mut writer = self.store.open(Path::new(SESSION), &session::options())?;
        writer.append(&entry(number), Durability::Commit)?;
        drop(writer);
        let bytes = self.store.read(Path::new(SESSION))?;
        let found = session::ids(&bytes, End::Whole)?;
        ensure!(
            found.last() == Some(&id(number)),
            "the newest entry is not the last"
        );
        self.acknowledged.push(id(number));
        let as_told = session::check_acknowledged(&found, &self.acknowledged);
        match (as_told, self.or_else.take()) {
            (Ok(()), _) => Ok(()),
            (Err(error), None) => Err(error),
            (Err(_), Some(mut other)) => {
                other.push(id(number));
                session::check_acknowledged(&found, &other)?;
                self.acknowledged = other;
                Ok(())
            }
        }
    }
}

//! What holds for any bytes and any order of steps.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use foldline_session_model::log::{Damage, DamageKind, SessionLog, Trust};
use foldline_session_store::{
    AppendError, Durability, Fault, MemoryStore, RepairStep, SessionStore, SessionWriter, plan_repair,
    plan_session_repair,
};
use proptest::prelude::*;

use crate::support::{HEADER, append, create, entry, now, options, strict_ids};

const SESSION: &str = "/sessions/s.jsonl";

fn plant(store: &MemoryStore, bytes: &[u8]) {
    let volume = store.volume();
    volume.create_folder(Path::new("/sessions")).unwrap();
    let mut file = volume.open_or_create(Path::new(SESSION)).unwrap();
    file.write(bytes).unwrap();
}

fn text(store: &MemoryStore) -> Vec<u8> {
    store.read(Path::new(SESSION)).unwrap().to_vec()
}

/// Pieces that damaged files are made of.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        Just(HEADER.as_bytes().to_vec()),
        (0..5_usize).prop_map(|number| entry(number).into_bytes()),
        Just(b"\n".to_vec()),
        Just(b"\n".to_vec()),
        Just(b"\r\n".to_vec()),
        Just(vec![0; 5]),
        Just(b"{\"type\":\"message\",\"id\":\"t\",\"mess".to_vec()),
        // The beginning of a record, the end of one, a record with a byte that is no text, and no entry.
        (0..5_usize, 1..80_usize).prop_map(|(number, cut)| {
            let mut start = entry(number).into_bytes();
            start.truncate(cut);
            start
        }),
        (0..5_usize, 1..80_usize).prop_map(|(number, cut)| entry(number).into_bytes().split_off(cut)),
        (0..5_usize).prop_map(|number| {
            let line = entry(number).into_bytes();
            [&line[..line.len() - 2], b"\xff\"}"].concat()
        }),
        Just(b"{}".to_vec()),
        Just(b"null".to_vec()),
        Just(b"\xef\xbb\xbf".to_vec()),
        proptest::collection::vec(any::<u8>(), 0..12),
    ]
}

fn damaged() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(piece(), 0..12).prop_map(|pieces| pieces.concat())
}

#[derive(Debug, Clone)]
enum Step {
    Append(Durability),
    Commit,
    Backup,
    Rewrite,
    Reopen,
    Kill,
    LosePower(u64),
    Fault(u64, usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => Just(Step::Append(Durability::Commit)),
        3 => Just(Step::Append(Durability::Later)),
        1 => Just(Step::Commit),
        1 => Just(Step::Backup),
        1 => Just(Step::Rewrite),
        1 => Just(Step::Reopen),
        1 => Just(Step::Kill),
        1 => any::<u64>().prop_map(Step::LosePower),
        2 => (1..12_u64, 0..Fault::ALL.len() - 1).prop_map(|(after, fault)| Step::Fault(after, fault)),
    ]
}

/// A session beside the simplest account of it.
struct Model {
    store: MemoryStore,
    writer: Option<SessionWriter>,
    next: usize,
    acknowledged: Vec<String>,
    pending: Vec<String>,
    refused: BTreeSet<String>,
}

impl Model {
    fn new() -> Self {
        let store = MemoryStore::new();
        create(&store, Path::new(SESSION), 0);
        Self {
            store,
            writer: None,
            next: 0,
            acknowledged: Vec::new(),
            pending: Vec::new(),
            refused: BTreeSet::new(),
        }
    }

    fn writer(&mut self) -> Option<&mut SessionWriter> {
        if self.writer.is_none() {
            self.writer = self.store.open(Path::new(SESSION), &options()).ok();
        }
        self.writer.as_mut()
    }

    fn apply(&mut self, step: &Step) {
        match step {
            Step::Append(durability) => {
                let number = self.next;
                self.next += 1;
                let Some(writer) = self.writer() else { return };
                let appended = writer.append(&entry(number), *durability);
                match (appended, durability) {
                    (Ok(_), durability) => {
                        self.pending.push(format!("e{number}"));
                        if *durability == Durability::Commit {
                            self.acknowledged.append(&mut self.pending);
                        }
                    }
                    (Err(_), _) => {
                        self.refused.insert(format!("e{number}"));
                    }
                }
            }
            Step::Commit => {
                if self.writer().is_some_and(|writer| writer.commit().is_ok()) {
                    self.acknowledged.append(&mut self.pending);
                }
            }
            Step::Backup => {
                self.writer().map(|writer| writer.backup("compact", now()).ok());
            }
            Step::Rewrite => {
                let before = text(&self.store);
                let whole = |line: &&[u8]| serde_json::from_slice::<serde::de::IgnoredAny>(line).is_ok();
                let mut lines = before.split(|byte| *byte == b'\n').filter(whole);
                if let Some(writer) = self.writer()
                    && writer.rewrite(&mut lines, "rewrite", now()).is_ok()
                {
                    // Written whole and synced, also what was not committed before.
                    self.acknowledged.append(&mut self.pending);
                }
            }
            Step::Reopen => self.writer = None,
            Step::Kill => {
                self.store.kill_writers();
                self.writer = None;
            }
            Step::LosePower(seed) => {
                self.store.restart(*seed);
                self.writer = None;
                self.pending.clear();
            }
            Step::Fault(after, fault) => self
                .store
                .plan_fault(self.store.steps() + after, Fault::ALL[*fault]),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn an_append_to_any_bytes_keeps_every_line(bytes in damaged()) {
        let store = MemoryStore::new();
        plant(&store, &bytes);
        let mut writer = store.open(Path::new(SESSION), &options()).unwrap();
        match writer.append(&entry(900), Durability::Commit) {
            Ok(appended) => {
                let after = text(&store);
                // The new line is whole, last, and where it is said to be.
                let offset = usize::try_from(appended.offset).unwrap();
                let line = format!("{}\n", entry(900));
                prop_assert_eq!(&after[offset..], line.as_bytes());
                prop_assert!(offset == 0 || after[offset - 1] == b'\n');
                // What was there is there, or in the quarantine.
                let kept = bytes.iter().zip(&after[..offset]).take_while(|(a, b)| a == b).count();
                let moved = appended.quarantined.map(|path: PathBuf| store.read(&path).unwrap().to_vec());
                prop_assert_eq!(&bytes[kept..], &*moved.unwrap_or_default());
            }
            Err(AppendError::Header { .. }) => {
                // Of a file that is no session, nothing changes; a torn header is moved aside.
                let after = text(&store);
                prop_assert!(after == bytes || bytes.starts_with(&after));
            }
            Err(error) => prop_assert!(false, "{error}"),
        }
    }

    #[test]
    fn a_repair_leaves_valid_lines_and_accounts_for_every_byte(bytes in damaged()) {
        let steps = plan_repair(&bytes);
        // Between the pieces lies nothing but white space and a byte order mark.
        let nothing = |bytes: &[u8]| bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes).trim_ascii().is_empty();
        let mut end = 0;
        for step in &steps {
            let (RepairStep::Keep(range) | RepairStep::Quarantine(range)) = step else { continue };
            prop_assert!(range.start >= end);
            prop_assert!(nothing(&bytes[end..range.start]));
            end = range.end;
        }
        prop_assert!(nothing(&bytes[end..]));
        let lines = steps.iter().filter_map(|step| match step {
            RepairStep::Keep(range) => Some(&bytes[range.clone()]),
            RepairStep::Insert(line) => Some(line.as_slice()),
            _ => None,
        });
        let repaired: Vec<u8> = lines.flat_map(|line| [line, b"\n"].concat()).collect();
        for line in repaired.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            prop_assert_eq!(line[0], b'{');
            prop_assert!(serde_json::from_slice::<serde::de::IgnoredAny>(line).is_ok());
            prop_assert!(std::str::from_utf8(line).is_ok());
        }
        // A second repair has nothing to do.
        prop_assert!(plan_repair(&repaired).iter().all(|step| matches!(step, RepairStep::Keep(_))));
    }

    #[test]
    fn a_repair_keeps_every_entry_that_readers_find(bytes in damaged()) {
        let session = [HEADER.as_bytes(), &bytes].concat();
        let Ok(before) = SessionLog::load(&*session, Trust::Validated) else { return Ok(()) };
        let store = MemoryStore::new();
        plant(&store, &session);
        let snapshot = store.read(Path::new(SESSION)).unwrap();
        let steps = plan_session_repair(&snapshot).unwrap();
        store_open(&store).repair(&snapshot, &steps, now()).unwrap();
        let repaired = text(&store);
        let after = SessionLog::load(&*repaired, Trust::Validated).unwrap();
        prop_assert_eq!(entries(&after), entries(&before));
        prop_assert_eq!(after.header(), before.header());
        let structural = |damage: &Damage| matches!(
            damage.kind,
            DamageKind::DuplicateId { .. } | DamageKind::MissingParent { .. } | DamageKind::Cycle { .. }
        );
        prop_assert!(after.damage().iter().all(structural), "{:?}", after.damage());
    }

    #[test]
    fn nothing_acknowledged_is_lost_in_any_order_of_steps(steps in proptest::collection::vec(step(), 0..40)) {
        let mut model = Model::new();
        for step in &steps {
            model.apply(step);
        }
        model.store.clear_faults();
        model.writer = None;
        append(&mut store_open(&model.store), 900);
        let found = strict_ids(std::str::from_utf8(&text(&model.store)).unwrap());
        let mut rest = found.iter();
        for id in &model.acknowledged {
            prop_assert!(rest.any(|other| other == id), "{id} is gone from {found:?}");
        }
        let unique: BTreeSet<_> = found.iter().collect();
        prop_assert_eq!(unique.len(), found.len());
        for id in &model.refused {
            prop_assert!(!model.acknowledged.contains(id));
        }
    }

    #[test]
    fn lines_backward_are_the_lines_of_any_bytes(bytes in damaged()) {
        let store = MemoryStore::new();
        plant(&store, &bytes);
        let reader = store.reader(Path::new(SESSION)).unwrap();
        let mut backward = reader.lines_backward();
        let mut found = Vec::new();
        while let Some(line) = backward.next_line().unwrap() {
            found.push(line.bytes.to_vec());
        }
        found.reverse();
        let whole = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
        let expected: Vec<Vec<u8>> =
            if bytes.is_empty() { Vec::new() } else { whole.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect() };
        prop_assert_eq!(found, expected);
    }
}

/// Ids, parents and lines, in the order of the file.
fn entries(log: &SessionLog) -> Vec<(String, Option<String>, String)> {
    let entry = |ix| {
        let line = String::from_utf8_lossy(log.raw_line(ix)).into_owned();
        (log.id(ix).to_owned(), log.parent_id(ix).map(str::to_owned), line)
    };
    log.entries().map(entry).collect()
}

fn store_open(store: &MemoryStore) -> SessionWriter {
    store.open(Path::new(SESSION), &options()).unwrap()
}

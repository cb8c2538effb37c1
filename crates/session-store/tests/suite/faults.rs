//! Every fault at every step.

use std::path::Path;

use foldline_session_store::{Durability, Fault, MemoryStore, OpenOptions, SessionStore};

use crate::support::{create, entry, ids, now, options, owner, strict_ids};

const SESSION: &str = "/sessions/s.jsonl";

/// What a run was told is safe.
#[derive(Default)]
struct Acknowledged {
    /// Entries whose commit returned.
    ids: Vec<String>,
    /// Set while a rewrite runs: until it returns, the old content is as good as the new one.
    rewrite_to: Option<Vec<String>>,
    errors: usize,
}

/// A life of a session: appends, a backup, more appends, a rewrite, appends. Each failure is tried again once.
fn live(store: &MemoryStore, told: &mut Acknowledged) {
    let session = Path::new(SESSION);
    for number in 3..9 {
        // Each append through a writer of its own, as commands do.
        for _ in 0..2 {
            let Ok(mut writer) = store.open(session, &options()) else {
                told.errors += 1;
                continue;
            };
            if number == 5 && writer.backup("compact", now()).is_err() {
                told.errors += 1;
                continue;
            }
            if number == 7 {
                let text = store.read(session).unwrap();
                let kept: Vec<&[u8]> = text
                    .split(|byte| *byte == b'\n')
                    .filter(|line| !line.is_empty())
                    .take(3)
                    .collect();
                told.rewrite_to = Some(ids(0..2));
                if writer.rewrite(&mut kept.into_iter(), "rewrite", now()).is_ok() {
                    told.ids = told.rewrite_to.take().unwrap();
                } else {
                    told.errors += 1;
                    continue;
                }
            }
            match writer.append(&entry(number), Durability::Commit) {
                Ok(_) => {
                    told.ids.push(format!("e{number}"));
                    break;
                }
                Err(_) => told.errors += 1,
            }
        }
    }
}

fn fresh() -> (MemoryStore, Acknowledged) {
    let store = MemoryStore::new();
    create(&store, Path::new(SESSION), 3);
    (
        store,
        Acknowledged {
            ids: ids(0..3),
            ..Acknowledged::default()
        },
    )
}

/// The entries in the file must be the acknowledged ones in order; others may stand among them only if their
/// append was never acknowledged.
fn check(store: &MemoryStore, told: &Acknowledged, what: &str) {
    let text = String::from_utf8(store.read(Path::new(SESSION)).unwrap().to_vec()).unwrap();
    let found = strict_ids(&text);
    let holds = |wanted: &[String]| {
        let mut found = found.iter();
        wanted.iter().all(|id| found.any(|other| other == id))
    };
    let rewritten = told.rewrite_to.as_deref().is_some_and(holds);
    assert!(
        holds(&told.ids) || rewritten,
        "{what}: {:?} acknowledged, {found:?} found",
        told.ids
    );
    let mut unique = found.clone();
    unique.sort();
    unique.dedup();
    assert_eq!(unique.len(), found.len(), "{what}: an entry twice in {found:?}");
}

#[test]
fn a_group_is_taken_back_whole_after_any_fault_that_leaves_us_alive() {
    let group = [entry(3), entry(4)];
    let lines: Vec<&str> = group.iter().map(String::as_str).collect();
    for fault in Fault::ALL {
        for step in 1..=12 {
            let (store, _) = fresh();
            store.plan_fault(store.steps() + step, fault);
            let Ok(mut writer) = store.open(Path::new(SESSION), &options()) else {
                continue;
            };
            let result = writer.append_group(&lines);
            drop(writer);
            if store.has_stopped() {
                store.restart(step);
            }
            store.clear_faults();
            // The next writer cuts what could not be taken back.
            let mut writer = store.open(Path::new(SESSION), &options()).unwrap();
            writer.append(&entry(5), Durability::Commit).unwrap();
            let text = String::from_utf8(store.read(Path::new(SESSION)).unwrap().to_vec()).unwrap();
            let found = strict_ids(&text);
            if result.is_ok() {
                assert_eq!(found, ids(0..6), "{fault:?} at step {step}");
            } else {
                // A crash may keep a part of it, in order.
                assert!(
                    found.starts_with(&ids(0..3)) && found.ends_with(&ids([5])),
                    "{found:?}"
                );
                assert!(
                    !found.contains(&"e4".to_owned()) || found.contains(&"e3".to_owned()),
                    "{found:?}"
                );
            }
        }
    }
}

fn steps_of_a_life() -> u64 {
    let (store, mut told) = fresh();
    let before = store.steps();
    live(&store, &mut told);
    assert_eq!(told.errors, 0);
    assert_eq!(told.ids, ids([0, 1, 7, 8]));
    store.steps() - before
}

#[test]
fn a_fault_at_any_step_loses_nothing_that_was_acknowledged() {
    let steps = steps_of_a_life();
    let mut visible = 0;
    for fault in Fault::ALL {
        for step in 1..=steps {
            let what = format!("{fault:?} at step {step}");
            let (store, mut told) = fresh();
            store.plan_fault(store.steps() + step, fault);
            live(&store, &mut told);
            visible += usize::from(told.errors > 0);
            store.clear_faults();
            if fault == Fault::Crash {
                store.restart(step);
            }
            // The next append works and leaves a strictly valid file.
            let mut writer = store
                .open(Path::new(SESSION), &options())
                .unwrap_or_else(|error| panic!("{what}: {error}"));
            writer
                .append(&entry(900), Durability::Commit)
                .unwrap_or_else(|error| panic!("{what}: {error}"));
            drop(writer);
            told.ids.push("e900".to_owned());
            if let Some(rewritten) = &mut told.rewrite_to {
                rewritten.push("e900".to_owned());
            }
            check(&store, &told, &what);
        }
    }
    assert!(visible > 50, "faults must be seen: {visible}");
}

#[test]
fn what_was_acknowledged_survives_a_loss_of_power_right_after() {
    let steps = steps_of_a_life();
    for fault in [
        Fault::FailedSync,
        Fault::ShortWrite,
        Fault::DiskFull,
        Fault::InputOutput,
    ] {
        for step in 1..=steps {
            let (store, mut told) = fresh();
            store.plan_fault(store.steps() + step, fault);
            live(&store, &mut told);
            store.restart(step);
            let mut writer = store.open(Path::new(SESSION), &options()).unwrap();
            writer.append(&entry(900), Durability::Commit).unwrap();
            check(&store, &told, &format!("{fault:?} at step {step}, then no power"));
        }
    }
}

#[test]
fn a_full_disk_is_named_and_passes() {
    let (store, _) = fresh();
    let mut writer = store.open(Path::new(SESSION), &options()).unwrap();
    let before = store.read(Path::new(SESSION)).unwrap().to_vec();
    // The write, its second try (after the cut in between).
    for step in [1, 3] {
        store.plan_fault(store.steps() + step, Fault::DiskFull);
    }
    let error = writer.append(&entry(3), Durability::Commit).unwrap_err();
    assert!(
        matches!(error, foldline_session_store::AppendError::DiskFull { .. }),
        "{error}"
    );
    assert_eq!(&*store.read(Path::new(SESSION)).unwrap(), &before[..]);
    writer.append(&entry(3), Durability::Commit).unwrap();
}

#[test]
fn a_refused_rename_is_tried_again() {
    let (store, _) = fresh();
    let mut writer = store.open(Path::new(SESSION), &options()).unwrap();
    let text = store.read(Path::new(SESSION)).unwrap().to_vec();
    let lines: Vec<&[u8]> = text
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .collect();
    let from = store.steps();
    for step in 1..20 {
        store.plan_fault(from + step, Fault::FailedRename);
    }
    // Each name is refused while faults are planned; the tries run out, and nothing has changed.
    writer
        .rewrite(&mut lines.clone().into_iter(), "rewrite", now())
        .unwrap_err();
    store.clear_faults();
    let from = store.steps();
    store.plan_fault(from + 11, Fault::FailedRename);
    writer.rewrite(&mut lines.into_iter(), "rewrite", now()).unwrap();
    for number in 3..5 {
        writer.append(&entry(number), Durability::Commit).unwrap();
    }
    let text = String::from_utf8(store.read(Path::new(SESSION)).unwrap().to_vec()).unwrap();
    assert_eq!(strict_ids(&text), ids(0..5));
}

#[test]
fn a_dead_owner_is_taken_over_and_a_live_one_is_not() {
    let (store, _) = fresh();
    let writer = store.open(Path::new(SESSION), &options()).unwrap();
    // The record is still in the lock file.
    store.kill_writers();
    drop(writer);
    let mut second = OpenOptions {
        owner: owner(),
        ..options()
    };
    second.owner.pid += 1;
    let error = store.open(Path::new(SESSION), &second).unwrap_err();
    assert!(
        error.to_string().contains(&format!("process {}", owner().pid)),
        "{error}"
    );
    store.declare_dead(owner());
    let writer = store.open(Path::new(SESSION), &second).unwrap();
    assert_eq!(writer.taken_over_from(), Some(&owner()));
}

#[test]
fn an_uncommitted_line_may_go_but_never_tears_the_file() {
    for seed in 0..200 {
        let (store, mut told) = fresh();
        let mut writer = store.open(Path::new(SESSION), &options()).unwrap();
        for number in 3..8 {
            let durability = if number == 5 {
                Durability::Commit
            } else {
                Durability::Later
            };
            writer.append(&entry(number), durability).unwrap();
        }
        told.ids.extend(ids(3..6));
        store.restart(seed);
        drop(writer);
        let mut writer = store.open(Path::new(SESSION), &options()).unwrap();
        writer.append(&entry(900), Durability::Commit).unwrap();
        told.ids.push("e900".to_owned());
        check(&store, &told, &format!("seed {seed}"));
    }
}

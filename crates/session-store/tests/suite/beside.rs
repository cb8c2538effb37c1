//! What lies beside a session: artifacts, blobs, sidecars, repairs, and other programs.

use std::path::Path;
use std::time::Duration;

use foldline_session_store::{
    ArtifactError, ArtifactRef, BlobError, DiskStore, ForeignSign, MemoryStore, OpenError, OpenOptions,
    SessionStore, SidecarName, plan_repair,
};

use crate::support::{HEADER, Place, append, create, disk, entry, ids, memory, now, options, strict_ids};

fn plant(store: &dyn SessionStore, path: &Path, bytes: &[u8]) {
    let volume = store.volume();
    volume.create_folder(path.parent().unwrap()).unwrap();
    let mut file = volume.open_or_create(path).unwrap();
    file.set_len(0).unwrap();
    file.write(bytes).unwrap();
}

fn both(test: fn(Place)) {
    test(disk());
    test(memory());
}

#[test]
fn artifacts_read_back() {
    both(|place| {
        let place = place.with_entries(1);
        let mut artifacts = place.store.artifacts(&place.session());
        assert_eq!(artifacts.ids().unwrap(), []);
        let first = artifacts.save("bash", "output\n").unwrap();
        let second = artifacts.save("../../etc/passwd", "other").unwrap();
        assert_eq!((first.id.get(), second.id.get()), (0, 1));
        assert_eq!(first.path, place.folder.join("s").join("0.bash.log"));
        assert_eq!(second.path, place.folder.join("s").join("1.______etc_passwd.log"));
        assert_eq!(artifacts.read(first.id).unwrap(), b"output\n");
        // Another process goes on after the numbers that are taken, also those that hold nothing.
        let mut other = place.store.artifacts(&place.session());
        let claimed = other.claim().unwrap();
        assert_eq!(claimed.get(), 2);
        assert_eq!(place.store.artifacts(&place.session()).claim().unwrap().get(), 3);
        assert!(matches!(other.read(claimed), Err(ArtifactError::Missing { .. })));
        assert_eq!(artifacts.ids().unwrap(), [first.id, second.id]);
        artifacts.remove(&first).unwrap();
        assert!(matches!(
            artifacts.read(first.id),
            Err(ArtifactError::Missing { .. })
        ));
        assert_eq!(other.claim().unwrap().get(), 4);
    });
}

#[test]
fn claims_of_two_writers_never_meet() {
    both(|place| {
        let place = place.with_entries(0);
        let mut first = place.store.artifacts(&place.session());
        let mut second = place.store.artifacts(&place.session());
        let mut seen = Vec::new();
        for _ in 0..20 {
            seen.push(first.claim().unwrap());
            seen.push(second.claim().unwrap());
        }
        let count = seen.len();
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), count);
    });
}

#[test]
fn a_capped_artifact_says_so() {
    both(|place| {
        let place = place.with_entries(0);
        let mut artifacts = place.store.artifacts(&place.session());
        let id = artifacts.claim().unwrap();
        // The cut would fall into a character.
        let stored = artifacts.publish(id, "read", "ab東京", 6).unwrap();
        assert_eq!((stored.kept, stored.omitted), (5, 3));
        let text = String::from_utf8(artifacts.read(id).unwrap()).unwrap();
        assert!(
            text.starts_with("ab東\n[foldline: only the first 5 bytes were stored, 3 more"),
            "{text}"
        );
        assert!(matches!(
            artifacts.publish(id, "read", "", 6),
            Err(ArtifactError::Empty)
        ));
    });
}

#[test]
fn a_file_that_a_full_disk_left_empty_is_missing() {
    both(|place| {
        let place = place.with_entries(0);
        plant(&*place.store, &place.folder.join("s").join("7.bash.log"), b"");
        let Some(ArtifactRef::Stored(id)) = ArtifactRef::parse("artifact://7") else {
            panic!()
        };
        let artifacts = place.store.artifacts(&place.session());
        assert!(matches!(artifacts.read(id), Err(ArtifactError::Missing { .. })));
        plant(&*place.store, &place.folder.join("s").join("7.read.log"), b"x");
        assert!(matches!(artifacts.read(id), Err(ArtifactError::Ambiguous { .. })));
    });
}

#[test]
fn links_lead_nowhere() {
    let place = disk().with_entries(0);
    let secret = place.folder.join("secret");
    plant(&*place.store, &secret, b"secret");
    let mut artifacts = place.store.artifacts(&place.session());
    let claimed = artifacts.claim().unwrap();
    let link = artifacts.folder().join(format!("{claimed}.bash.log"));
    std::os::unix::fs::symlink(&secret, &link).unwrap();
    assert!(artifacts.read(claimed).is_err());
    // Nor does storing write through one.
    assert!(artifacts.publish(claimed, "bash", "overwritten", 100).is_err());
    assert_eq!(&*place.store.read(&secret).unwrap(), b"secret");

    // The folder itself may be the link.
    let other = place.folder.join("o.jsonl");
    create(&*place.store, &other, 0);
    std::os::unix::fs::symlink(artifacts.folder(), place.folder.join("o")).unwrap();
    let mut linked = place.store.artifacts(&other);
    assert!(
        matches!(linked.claim(), Err(ArtifactError::NotAFolder(_))),
        "{:?}",
        linked.claim()
    );
    assert!(linked.read(claimed).is_err());

    // A session that is a link is one session with its target: one lock.
    let alias = place.folder.join("alias.jsonl");
    std::os::unix::fs::symlink(place.session(), &alias).unwrap();
    let _writer = place.open();
    assert!(matches!(
        place.store.open(&alias, &options()),
        Err(OpenError::SessionBusy { .. })
    ));
}

#[test]
fn a_fifo_is_no_session() {
    let place = disk().with_entries(0);
    let fifo = place.folder.join("f.jsonl");
    assert!(
        std::process::Command::new("mkfifo")
            .arg(&fifo)
            .status()
            .unwrap()
            .success()
    );
    assert!(place.store.read(&fifo).is_err());
    assert!(place.store.open(&fifo, &options()).is_err());
}

#[test]
fn blobs_are_stored_once_and_checked() {
    both(|place| {
        let folder = place.folder.join("blobs");
        let blobs = place.store.blobs(&folder);
        let blob = blobs.put(b"picture").unwrap();
        assert_eq!(blobs.put(b"picture").unwrap(), blob);
        assert_eq!(place.store.volume().list(&folder).unwrap().len(), 1);
        assert_eq!(blobs.get(blob).unwrap(), b"picture");
        let name = blob.to_string().replace("blob:sha256:", "");
        plant(&*place.store, &folder.join(name), b"");
        assert!(matches!(blobs.get(blob), Err(BlobError::Damaged { .. })));
        blobs.put(b"picture").unwrap();
        assert_eq!(blobs.get(blob).unwrap(), b"picture");
        let other = foldline_session_store::BlobRef::of(b"else");
        assert!(matches!(blobs.get(other), Err(BlobError::Missing { .. })));
    });
}

#[test]
fn a_sidecar_has_a_name_of_its_own_and_never_fails_its_subject() {
    both(|place| {
        let place = place.with_entries(0);
        let name = SidecarName {
            kind: "compaction-diagnostic",
            now: now(),
            unique: "0198-a",
        };
        let written = place.store.sidecar(&place.session(), &name, b"{}");
        let path = place
            .folder
            .join("s-compaction-diagnostic-1785579630123-0198-a.json");
        assert_eq!(written.path(), Some(&*path));
        assert_eq!(&*place.store.read(&path).unwrap(), b"{}");
        let again = place.store.sidecar(&place.session(), &name, b"{}");
        assert_eq!(again.path(), None);
        let name = SidecarName {
            kind: "../x",
            now: now(),
            unique: "../../y",
        };
        let written = place.store.sidecar(&place.session(), &name, b"{}");
        assert_eq!(written.path().unwrap().parent(), Some(&*place.folder));
    });
    let nowhere = DiskStore::new();
    let name = SidecarName {
        kind: "x",
        now: now(),
        unique: "y",
    };
    assert_eq!(
        nowhere
            .sidecar(Path::new("/nonexistent/s.jsonl"), &name, b"{}")
            .path(),
        None
    );
}

/// Spec "Verbatim", 21, sidecars: "names regex `^BASE-compaction-diagnostic-\d+-[0-9a-f-]{36}\.json$`, two in one ms
/// both survive".
#[test]
fn two_sidecars_of_one_kind_in_one_millisecond_both_survive() {
    both(|place| {
        let place = place.with_entries(0);
        let uuids = [
            "01985a0e-7c1b-7d40-9a3e-5f0c2b6d8e11",
            "01985a0e-7c1b-7d40-9a3e-5f0c2b6d8e12",
        ];
        let written = uuids.map(|unique| {
            let name = SidecarName {
                kind: "compaction-diagnostic",
                now: now(),
                unique,
            };
            let written = place.store.sidecar(&place.session(), &name, unique.as_bytes());
            written.path().unwrap().to_path_buf()
        });
        for (path, unique) in written.iter().zip(uuids) {
            assert_eq!(&*place.store.read(path).unwrap(), unique.as_bytes());
            let name = path.file_name().unwrap().to_str().unwrap();
            let rest = name.strip_prefix("s-compaction-diagnostic-").unwrap();
            let (millis, id) = rest.strip_suffix(".json").unwrap().split_once('-').unwrap();
            assert!(
                !millis.is_empty() && millis.bytes().all(|b| b.is_ascii_digit()),
                "{name}"
            );
            assert_eq!((id, id.len()), (unique, 36));
            assert_eq!(path.parent(), Some(&*place.folder));
        }
    });
}

#[test]
fn a_repair_keeps_what_is_sound_and_loses_nothing() {
    both(|place| {
        let damaged = format!(
            "{HEADER}\n{}\n\0\0\0\n{}{}\r\n\nnull\n{{\"torn\":",
            entry(0),
            entry(1),
            entry(2)
        );
        plant(&*place.store, &place.session(), damaged.as_bytes());
        let snapshot = place.store.read(&place.session()).unwrap();
        let mut writer = place.open();
        let repaired = writer.repair(&snapshot, &plan_repair(&snapshot), now()).unwrap();
        assert_eq!(strict_ids(&place.text()), ids(0..3));
        assert_eq!((repaired.lines, repaired.quarantined), (4, 3));
        assert_eq!(&*place.store.read(&repaired.backup).unwrap(), damaged.as_bytes());
        let gone = place.store.read(&repaired.quarantine.unwrap()).unwrap();
        assert_eq!(&*gone, b"\0\0\0\nnull\n{\"torn\":\n");
        append(&mut writer, 3);
        assert_eq!(strict_ids(&place.text()), ids(0..4));
        // The snapshot is of another file by now.
        assert!(writer.repair(&snapshot, &[], now()).is_err());
    });
}

#[test]
fn other_writers_are_noticed() {
    let place = disk().with_entries(1);
    let session = place.session();
    let now = place.store.volume().stat(&session).unwrap().modified;
    let ours = DiskStore::new();
    let theirs = DiskStore::new().with_foreign_folders([place.folder.clone()]);
    let at = |now| OpenOptions { now, ..options() };

    // In a folder of ours, a fresh file is a file that was just copied.
    drop(ours.open(&session, &at(now)).unwrap());
    // Growth that we left ourselves is no sign, also in a folder of another agent.
    drop(theirs.open(&session, &at(now)).unwrap());
    // Somebody else's is, for a while.
    let mut log = place.store.volume().open_append(&session).unwrap();
    log.write(format!("{}\n", entry(1)).as_bytes()).unwrap();
    let error = theirs.open(&session, &at(now)).unwrap_err();
    assert!(
        matches!(
            error,
            OpenError::ForeignWriter {
                sign: ForeignSign::FreshGrowth { .. },
                ..
            }
        ),
        "{error}"
    );
    drop(theirs.open(&session, &at(now + Duration::from_secs(11))).unwrap());

    // A lock of another program, anywhere, until its lease has run out.
    let lock = place.folder.join("s.jsonl.lock");
    place.store.volume().create_folder(&lock).unwrap();
    let error = ours.open(&session, &at(now)).unwrap_err();
    assert!(
        matches!(
            error,
            OpenError::ForeignWriter {
                sign: ForeignSign::LockFile(_),
                ..
            }
        ),
        "{error}"
    );
    drop(ours.open(&session, &at(now + Duration::from_secs(120))).unwrap());
    assert_eq!(strict_ids(&place.text()), ids(0..2));
}

#[test]
fn an_artifact_is_whole_or_not_there_after_a_crash() {
    use foldline_session_store::Fault;
    let session = Path::new("/sessions/s.jsonl");
    for step in 1..12 {
        for seed in 0..8 {
            let store = MemoryStore::new();
            create(&store, session, 1);
            store.plan_fault(store.steps() + step, Fault::Crash);
            let mut artifacts = store.artifacts(session);
            let saved = artifacts.save("bash", "the whole output");
            store.restart(seed);
            let artifacts = store.artifacts(session);
            for id in artifacts.ids().unwrap() {
                assert_eq!(
                    artifacts.read(id).unwrap(),
                    b"the whole output",
                    "step {step}, seed {seed}"
                );
            }
            if let Ok(saved) = saved {
                assert_eq!(
                    artifacts.read(saved.id).unwrap(),
                    b"the whole output",
                    "step {step}, seed {seed}"
                );
            }
        }
    }
}

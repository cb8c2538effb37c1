//! Who may read what the store makes: 0600 files in 0700 folders.

use std::os::unix::fs::{MetadataExt, PermissionsExt};

use foldline_session_store::{SidecarName, plan_repair};

use crate::support::{HEADER, append, disk, entry, now};

fn mode(path: &std::path::Path) -> u32 {
    std::fs::symlink_metadata(path).unwrap().mode() & 0o7777
}

#[test]
fn fb_115_every_kind_of_file_is_private() {
    let place = disk().with_entries(1);
    let mut log = place.store.volume().open_append(&place.session()).unwrap();
    log.write(b"{\"torn").unwrap();
    let mut writer = place.open();
    append(&mut writer, 1);
    writer.backup("compact", now()).unwrap();
    let lines = [HEADER.to_owned(), entry(0)];
    writer
        .rewrite(&mut lines.iter().map(String::as_bytes), "rewrite", now())
        .unwrap();
    let mut seen = Vec::new();
    for item in fs_err::read_dir(&place.folder).unwrap() {
        let path = item.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
        seen.push(path.extension().unwrap().to_string_lossy().into_owned());
    }
    seen.sort();
    assert_eq!(seen, ["bak", "bak", "foldline-lock", "jsonl", "torn"]);
    assert_eq!(mode(&place.folder), 0o700);
}

#[test]
fn fb_115_so_is_everything_beside_it() {
    let place = disk().with_entries(1);
    let mut artifacts = place.store.artifacts(&place.session());
    artifacts.save("bash", "output").unwrap();
    let blobs = place.folder.join("deep").join("blobs");
    place.store.blobs(&blobs).put(b"picture").unwrap();
    let name = SidecarName {
        kind: "compaction-diagnostic",
        now: now(),
        unique: "u",
    };
    place
        .store
        .sidecar(&place.session(), &name, b"{}")
        .path()
        .unwrap();
    let mut log = place.store.volume().open_append(&place.session()).unwrap();
    log.write(b"damage\n").unwrap();
    let snapshot = place.store.read(&place.session()).unwrap();
    place
        .open()
        .repair(&snapshot, &plan_repair(&snapshot), now())
        .unwrap();

    let mut folders = vec![place.folder.clone()];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        assert_eq!(mode(&folder), 0o700, "{}", folder.display());
        for item in fs_err::read_dir(&folder).unwrap() {
            let path = item.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            assert_eq!(mode(&path), 0o600, "{}", path.display());
            files.push(
                path.strip_prefix(&place.folder)
                    .unwrap()
                    .to_string_lossy()
                    .into_owned(),
            );
        }
    }
    files.sort();
    assert_eq!(files.len(), 8, "{files:?}");
    for part in [
        ".bak",
        ".damaged",
        ".foldline-lock",
        ".json",
        "s/.artifact-id-0",
        "s/0.bash.log",
        "deep/blobs/",
    ] {
        assert!(
            files.iter().any(|file| file.contains(part)),
            "{part} in {files:?}"
        );
    }
}

#[test]
fn fb_115_a_session_that_others_could_read_is_tightened_when_it_is_opened() {
    let place = disk().with_entries(1);
    std::fs::set_permissions(place.session(), std::fs::Permissions::from_mode(0o644)).unwrap();
    let bytes = place.text();
    let mut writer = place.open();
    assert_eq!((mode(&place.session()), place.text()), (0o600, bytes));
    append(&mut writer, 1);
    assert_eq!(mode(&place.session()), 0o600);
    let backup = writer
        .rewrite(&mut [HEADER.as_bytes()].into_iter(), "rewrite", now())
        .unwrap();
    assert_eq!(mode(&place.session()), 0o600);
    assert_eq!(mode(&backup), 0o600);
}

//! Who may read what the store makes: 0600 files in 0700 folders.

use std::os::unix::fs::{MetadataExt, PermissionsExt};

use crate::support::{HEADER, append, disk, entry, now};

fn mode(path: &std::path::Path) -> u32 {
    std::fs::symlink_metadata(path).unwrap().mode() & 0o7777
}

#[test]
fn every_kind_of_file_is_private() {
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
fn a_rewrite_keeps_the_mode_of_a_file_that_others_share() {
    let place = disk().with_entries(1);
    std::fs::set_permissions(place.session(), std::fs::Permissions::from_mode(0o640)).unwrap();
    let mut writer = place.open();
    let backup = writer
        .rewrite(&mut [HEADER.as_bytes()].into_iter(), "rewrite", now())
        .unwrap();
    assert_eq!(mode(&place.session()), 0o640);
    assert_eq!(mode(&backup), 0o600);
}

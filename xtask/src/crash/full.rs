//! A disk that is really full: a small file system in memory, where mounting one is permitted.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};
use foldline_session_store::{AppendError, CreateError, DiskStore, Durability, SessionStore};

use super::Outcome;
use super::session::{self, End, HEADER, entry};

/// A mounted file system, unmounted when it is dropped.
struct Mount(tempfile::TempDir);

impl Mount {
    fn new() -> Option<Self> {
        let folder = tempfile::tempdir().ok()?;
        let mount = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=256k,mode=700", "foldline-crash"])
            .arg(folder.path())
            .output()
            .ok()?;
        mount.status.success().then(|| Self(folder))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        Command::new("umount").arg(self.path()).status().ok();
    }
}

pub(super) fn run() -> anyhow::Result<Outcome> {
    let Some(mount) = Mount::new() else {
        return Ok(Outcome::Skipped(
            "mounting a tmpfs is not permitted here".to_owned(),
        ));
    };
    let store = DiskStore::new();
    let session = mount.path().join("s.jsonl");
    let spare = mount.path().join("spare");
    store.create(&session, &mut std::iter::once(HEADER.as_bytes()))?;
    fs_err::write(&spare, vec![0; 64 << 10])?;
    let mut acknowledged = Vec::new();
    let mut writer = store.open(&session, &session::options())?;
    let full = loop {
        let number = acknowledged.len() as u64;
        match writer.append(&entry(number), Durability::Commit) {
            Ok(_) => acknowledged.push(session::id(number)),
            Err(error) => break error,
        }
    };
    ensure!(
        matches!(full, AppendError::DiskFull { .. }),
        "a full disk was called: {full}"
    );
    let intact = |when: &str| -> anyhow::Result<Vec<String>> {
        let found = session::ids(&store.read(&session)?, End::Whole).context(when.to_owned())?;
        session::check_acknowledged(&found, &acknowledged).context(when.to_owned())?;
        Ok(found)
    };
    ensure!(
        intact("after the append failed")?.len() == acknowledged.len(),
        "an entry that was refused is there"
    );
    // A backup, a rewrite and a new session find no room either, and leave nothing behind.
    let now = std::time::SystemTime::now();
    ensure!(writer.backup("compact", now).is_err(), "a backup found room");
    let bytes = store.read(&session)?;
    let mut lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    ensure!(
        writer.rewrite(&mut lines, "rewrite", now).is_err(),
        "a rewrite found room"
    );
    let long = entry(299).repeat(20);
    let other = store.create(
        &mount.path().join("o.jsonl"),
        &mut std::iter::once(long.as_bytes()),
    );
    ensure!(
        matches!(other, Err(CreateError::DiskFull { .. })),
        "a new session on a full disk: {other:?}"
    );
    intact("after the rewrite failed")?;
    let left = fs_err::read_dir(mount.path())?.count();
    ensure!(
        left == 3,
        "{left} files are left where the session, its lock and the spare file should be"
    );
    // With room again, the next append works, by the same writer.
    fs_err::remove_file(&spare)?;
    writer
        .append(&entry(0xffff), Durability::Commit)
        .context("with room again")?;
    drop(writer);
    intact("with room again")?;
    Ok(Outcome::Passed(format!(
        "{} entries until the disk was full, session intact, next append works",
        acknowledged.len()
    )))
}

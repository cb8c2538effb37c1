//! Replacing a file at once: readers see the old content or the new one.

use std::fs::File;
use std::io::Write as _;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, Stat, Uid};
use rustix::io::Errno;
use uuid::Uuid;

use super::answer::Failure;
use super::blocking::Stop;
use super::places::{MissingFolders, Place, PlaceError, kind, stat_in};

/// What stands in the place before the change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Replaced {
    Nothing,
    File,
}

/// A version of a file, to tell whether it was changed meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Version {
    inode: u64,
    size: i64,
    seconds: i64,
    nanoseconds: i128,
}

impl Version {
    pub(super) fn of(file: &File) -> Result<Self, Failure> {
        Ok(Self::from_stat(&rustix::fs::fstat(file)?))
    }

    #[allow(
        clippy::useless_conversion,
        clippy::unnecessary_cast,
        reason = "the types of these fields differ between systems"
    )]
    fn from_stat(stat: &Stat) -> Self {
        Self {
            inode: u64::from(stat.st_ino),
            size: stat.st_size as i64,
            seconds: stat.st_mtime as i64,
            nanoseconds: i128::from(stat.st_mtime_nsec),
        }
    }
}

/// Puts `content` in the place. A file that is there keeps its mode, and its owner where that is allowed; with an expected
/// version it must still be that one.
pub(super) fn replace_file(
    place: &Place,
    content: &[u8],
    expected: Option<Version>,
    stop: &Stop,
) -> Result<Replaced, Failure> {
    let Some((folder, name)) = place.parent(MissingFolders::Make)? else {
        return Err(Failure(format!(
            "`{}` is a root, not a file in one.",
            place.given()
        )));
    };
    let old = existing(place, &folder, &name)?;
    let staged = Staged::new(place, &folder, old.as_ref())?;
    staged.write(content, old.as_ref())?;
    if let (Some(expected), now) = (expected, existing(place, &folder, &name)?)
        && now.is_none_or(|now| Version::from_stat(&now) != expected)
    {
        let given = place.given();
        return Err(Failure(format!(
            "`{given}` was changed by something else meanwhile; read it again. Nothing was written."
        )));
    }
    if !stop.commit() {
        return Err(Failure::cancelled());
    }
    staged.publish(&name).map_err(|errno| place.error(errno))?;
    Ok(match old {
        Some(_) => Replaced::File,
        None => Replaced::Nothing,
    })
}

/// The regular file of this name; anything else there is an error.
fn existing(place: &Place, folder: &OwnedFd, name: &Path) -> Result<Option<Stat>, Failure> {
    let stat = match stat_in(folder, name) {
        Ok(stat) => stat,
        Err(Errno::NOENT) => return Ok(None),
        Err(errno) => return Err(place.error(errno).into()),
    };
    if let Some(kind) = kind(FileType::from_raw_mode(stat.st_mode)) {
        let given = place.given().to_owned();
        return Err(PlaceError::NoFile { given, kind }.into());
    }
    // A rename would get around this.
    if !Mode::from_raw_mode(stat.st_mode).intersects(Mode::WUSR | Mode::WGRP | Mode::WOTH) {
        return Err(Failure(format!("`{}` is read-only.", place.given())));
    }
    Ok(Some(stat))
}

/// New content beside the place; removed again if it is not published.
struct Staged<'f> {
    folder: &'f OwnedFd,
    name: String,
    file: File,
}

impl<'f> Staged<'f> {
    fn new(place: &Place, folder: &'f OwnedFd, old: Option<&Stat>) -> Result<Self, Failure> {
        let name = format!(".foldline-{}.tmp", Uuid::new_v4().simple());
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        // Content of a private file is never readable in between.
        let mode = Mode::from_raw_mode(if old.is_some() { 0o600 } else { 0o666 });
        let file = rustix::fs::openat(folder, &name, flags, mode).map_err(|errno| place.error(errno))?;
        Ok(Self {
            folder,
            name,
            file: File::from(file),
        })
    }

    fn write(&self, content: &[u8], old: Option<&Stat>) -> Result<(), Failure> {
        (&self.file).write_all(content)?;
        if let Some(old) = old {
            // Only root may give a file away; a file of one's own stays one's own.
            let owner = (Some(Uid::from_raw(old.st_uid)), Some(Gid::from_raw(old.st_gid)));
            let _kept = rustix::fs::fchown(self.file.as_fd(), owner.0, owner.1);
            rustix::fs::fchmod(self.file.as_fd(), Mode::from_raw_mode(old.st_mode & 0o7777))?;
        }
        Ok(self.file.sync_data()?)
    }

    fn publish(&self, name: &Path) -> Result<(), Errno> {
        rustix::fs::renameat(self.folder, &self.name, self.folder, name)
    }
}

impl Drop for Staged<'_> {
    fn drop(&mut self) {
        // After a rename there is nothing of this name.
        let _gone = rustix::fs::unlinkat(self.folder, &self.name, AtFlags::empty());
    }
}

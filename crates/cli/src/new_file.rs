//! Files that a command makes under a name that a person chose.

use std::io::Write as _;
use std::path::Path;

use foldline_session_store::{DiskStore, SessionStore as _};

use crate::error::{CommandError, ErrorKind};

/// Checks the name of a file that a command is going to make, before it does any work.
///
/// # Errors
/// Something has that name, or its folder does not exist: a folder is never made by the way.
pub(crate) fn check(path: &Path) -> Result<(), CommandError> {
    let usage = |message: String| CommandError::new(ErrorKind::Usage, message);
    if path == Path::new("-") {
        return Err(usage("`-` is no name for the new file".to_owned())
            .hint("name a file; `./-` if it is to have that name"));
    }
    if path.symlink_metadata().is_ok() {
        return Err(exists(path));
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
        return Err(usage(format!("there is no folder {}", folder.display()))
            .hint("make it first, or name a file in a folder that exists"));
    }
    Ok(())
}

/// Something has the name of the new file.
pub(crate) fn exists(path: &Path) -> CommandError {
    CommandError::new(ErrorKind::Usage, format!("{} exists already", path.display()))
        .hint("name a file that does not exist yet")
}

/// Writes a new file that only its owner can read: sessions hold secrets. A file that exists is left alone.
///
/// # Errors
/// See [`check`]; or the disk refuses, and then there is no file.
pub(crate) fn write(path: &Path, text: &str) -> Result<(), CommandError> {
    check(path)?;
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let failed = |e: &std::io::Error| {
        let error = CommandError::new(ErrorKind::Failed, format!("{}: {e}", path.display()));
        match e.kind() {
            std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::ReadOnlyFilesystem => {
                error.hint("name a file in a folder that you may write to")
            }
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => error.hint("make room"),
            _ => error,
        }
    };
    let mut file = options.open(path).map_err(|e| match e.kind() {
        std::io::ErrorKind::AlreadyExists => exists(path),
        _ => failed(&e),
    })?;
    let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_data());
    written.map_err(|e| {
        // A part of it would be taken for all of it.
        DiskStore::new().volume().remove(path).ok();
        failed(&e)
    })
}

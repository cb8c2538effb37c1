//! Files that a command makes beside sessions: exports, reports.

use std::io::Write as _;
use std::path::Path;

use crate::error::{CommandError, ErrorKind};

/// Writes a new file that only its owner can read: sessions hold secrets. A file that exists is left alone.
pub(crate) fn write(path: &Path, text: &str) -> Result<(), CommandError> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = options.open(path).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_data()
    });
    written.map_err(|e| {
        let exists = e.kind() == std::io::ErrorKind::AlreadyExists;
        let kind = if exists {
            ErrorKind::Usage
        } else {
            ErrorKind::Failed
        };
        let error = CommandError::new(kind, format!("{}: {e}", path.display()));
        if exists {
            error.hint("name a file that does not exist yet")
        } else {
            error
        }
    })
}

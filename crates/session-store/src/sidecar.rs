//! Sidecars: diagnostics beside a session (spec "Verbatim line compaction", 13).

use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::volume::{Access, Existing, Volume, publish, write_all};

/// What a sidecar is called.
#[derive(Debug, Clone, Copy)]
pub struct SidecarName<'a> {
    /// What it is about: `compaction-diagnostic`, `compaction-recovery`, `branch-diagnostic`.
    pub kind: &'a str,
    /// When.
    pub now: SystemTime,
    /// What no other sidecar has, a UUID.
    pub unique: &'a str,
}

/// What became of a sidecar. Not a `Result`: a diagnostic must never fail what it describes, so there is
/// nothing to propagate with `?`.
#[derive(Debug)]
pub enum Sidecar {
    /// It is in this file.
    Written(PathBuf),
    /// It is nowhere.
    NotWritten(io::Error),
}

impl Sidecar {
    /// The file, if there is one.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Written(path) => Some(path),
            Self::NotWritten(_) => None,
        }
    }
}

pub(crate) fn write(volume: &dyn Volume, session: &Path, name: &SidecarName<'_>, content: &[u8]) -> Sidecar {
    let stem = session.file_stem().unwrap_or_default().to_string_lossy();
    let millis = name
        .now
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_millis());
    let name = format!("{stem}-{}-{millis}-{}.json", plain(name.kind), plain(name.unique));
    let target = session.with_file_name(name);
    let folder = session.parent().unwrap_or(Path::new(""));
    let written = volume.stage(folder, Access::Private).and_then(|mut staged| {
        write_all(staged.file(), content)?;
        publish(volume, staged, &target, Existing::Refuse)
    });
    match written {
        Ok(()) => Sidecar::Written(target),
        Err(error) => Sidecar::NotWritten(error),
    }
}

fn plain(text: &str) -> String {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || c == '-' {
            c
        } else {
            '_'
        }
    };
    text.chars().take(64).map(plain).collect()
}

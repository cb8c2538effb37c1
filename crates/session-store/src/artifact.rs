//! Artifacts: originals of tool output beside a session, `<id>.<tool>.log` in the folder that has the
//! session's name (spec "Session model", 6.5; spec "pruning", 10).
//!
//! An id and a tool's name come from models and from files, so neither ever becomes a path: an id is a number,
//! and a name keeps letters, digits, `_` and `-` only.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use foldline_session_model::EntryId;

use crate::volume::{
    Access, Existing, FileKind, FolderItem, Links, Volume, is_disk_full, publish, read_exact_at, write_all,
};

/// Bytes of an original that are stored.
pub const ARTIFACT_CAP: usize = 10 << 20;
/// Bytes of a stored artifact that are read back; other agents' may be longer.
const READ_CAP: usize = 16 << 20;
/// Characters of a tool's name that are kept.
const NAME_CAP: usize = 64;

const SCHEME: &str = "artifact://";
const CLAIM: &str = ".artifact-id-";

/// The number of a stored artifact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ArtifactId(u64);

impl ArtifactId {
    /// The number.
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for ArtifactId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What an `artifact://` address names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ArtifactRef {
    /// `artifact://7`: a stored artifact.
    Stored(ArtifactId),
    /// `artifact://entry/<id>`: the original of a masked entry, which is in the session itself.
    Entry(EntryId),
}

impl ArtifactRef {
    /// Reads an address; `None` if it is none. A number has no sign and no leading zeros, so two spellings
    /// never name one artifact.
    pub fn parse(address: &str) -> Option<Self> {
        let rest = address.strip_prefix(SCHEME)?;
        if let Some(id) = rest.strip_prefix("entry/") {
            return (!id.is_empty()).then(|| Self::Entry(EntryId::from(id)));
        }
        let id: u64 = rest.parse().ok()?;
        (id.to_string() == rest).then_some(Self::Stored(ArtifactId(id)))
    }
}

impl fmt::Display for ArtifactRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stored(id) => write!(f, "{SCHEME}{id}"),
            Self::Entry(id) => write!(f, "{SCHEME}entry/{id}"),
        }
    }
}

/// An artifact that was stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredArtifact {
    /// Its number.
    pub id: ArtifactId,
    /// Its file.
    pub path: PathBuf,
    /// Bytes of the original that it holds.
    pub kept: usize,
    /// Bytes of the original that were left out; the artifact says so at its end.
    pub omitted: usize,
}

/// Why an artifact was not stored or not read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArtifactError {
    /// There is no file of this number, or it is empty: a full disk left it so.
    #[error("artifact {id} is missing from {}", folder.display())]
    Missing {
        /// Its number.
        id: ArtifactId,
        /// Where it was looked for.
        folder: PathBuf,
    },
    /// Two files claim the number.
    #[error("{} holds two artifacts {id}", folder.display())]
    Ambiguous {
        /// The number.
        id: ArtifactId,
        /// Where.
        folder: PathBuf,
    },
    /// There is nothing to store.
    #[error("an artifact cannot be empty")]
    Empty,
    /// Something other than a folder has the name of the artifacts' folder, a link for example.
    #[error("{} is not a folder of artifacts", .0.display())]
    NotAFolder(PathBuf),
    /// The disk or the quota is full.
    #[error("the disk is full: no artifact in {}", folder.display())]
    DiskFull {
        /// Where.
        folder: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The system refused.
    #[error("cannot use the artifacts in {}", folder.display())]
    Io {
        /// Where.
        folder: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// The artifacts of one session.
#[derive(Debug)]
pub struct Artifacts {
    volume: Arc<dyn Volume>,
    folder: PathBuf,
    /// The lowest number that may be free; `None` before the folder was looked at.
    next: Option<u64>,
}

impl Artifacts {
    pub(crate) fn of(volume: &Arc<dyn Volume>, session: &Path) -> Self {
        Self {
            volume: Arc::clone(volume),
            folder: folder_of(session),
            next: None,
        }
    }

    /// The folder, which may not exist yet.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Takes a number that no process has or ever had: an empty file, created exclusively, that stays.
    ///
    /// # Errors
    /// The folder cannot be made or written to.
    pub fn claim(&mut self) -> Result<ArtifactId, ArtifactError> {
        let mut next = self.next.map_or_else(|| self.first_free(), Ok)?;
        loop {
            match self
                .volume
                .create_new(&self.folder.join(format!("{CLAIM}{next}")))
            {
                Ok(_) => break,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && next < u64::MAX => next += 1,
                Err(source) => return Err(self.failed(source)),
            }
        }
        self.next = Some(next.saturating_add(1));
        Ok(ArtifactId(next))
    }

    /// Makes the folder if it is missing; the number after the highest that is in use.
    fn first_free(&self) -> Result<u64, ArtifactError> {
        self.volume
            .create_folder(&self.folder)
            .map_err(|source| self.failed(source))?;
        let items = self.items()?;
        let highest = items
            .iter()
            .filter_map(|item| number_of(&item.name().to_string_lossy()))
            .max();
        Ok(highest.map_or(0, |highest| highest.saturating_add(1)))
    }

    /// Stores an original under a claimed number: whole, durable, and only then visible. Of more than
    /// `cap` bytes the first are kept, cut between characters, and the artifact ends with a line that says so.
    ///
    /// # Errors
    /// The original is empty, the number is used, or the system refuses.
    pub fn publish(
        &self,
        id: ArtifactId,
        tool: &str,
        original: &str,
        cap: usize,
    ) -> Result<StoredArtifact, ArtifactError> {
        if original.is_empty() {
            return Err(ArtifactError::Empty);
        }
        self.check_folder()?;
        let path = self.folder.join(format!("{id}.{}.log", tool_name(tool)));
        let kept = boundary_before(original, cap);
        let omitted = original.len() - kept;
        self.write(&path, original.get(..kept).unwrap_or_default(), omitted)
            .map_err(|source| self.failed(source))?;
        Ok(StoredArtifact {
            id,
            path,
            kept,
            omitted,
        })
    }

    /// Claims a number and stores an original under it.
    ///
    /// # Errors
    /// As [`Artifacts::claim`] and [`Artifacts::publish`].
    pub fn save(&mut self, tool: &str, original: &str) -> Result<StoredArtifact, ArtifactError> {
        let id = self.claim()?;
        self.publish(id, tool, original, ARTIFACT_CAP)
    }

    /// Reads an artifact back. Only regular files directly in the session's folder are read, never a link.
    ///
    /// # Errors
    /// It is missing or empty, two files have its number, or the system refuses.
    pub fn read(&self, id: ArtifactId) -> Result<Vec<u8>, ArtifactError> {
        let path = self.find(id)?;
        let missing = || ArtifactError::Missing {
            id,
            folder: self.folder.clone(),
        };
        let file = match self.volume.open(&path, Links::Refuse) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(missing()),
            Err(source) => return Err(self.failed(source)),
        };
        let len = file.stat().map_err(|source| self.failed(source))?.len;
        if len == 0 {
            return Err(missing());
        }
        let total = usize::try_from(len).unwrap_or(usize::MAX);
        let mut bytes = vec![0; total.min(READ_CAP)];
        read_exact_at(&*file, &mut bytes, 0).map_err(|source| self.failed(source))?;
        if total > READ_CAP {
            bytes.extend_from_slice(omission(READ_CAP, total - READ_CAP).as_bytes());
        }
        Ok(bytes)
    }

    /// Takes over the artifacts of another session under their numbers, for a session that was forked from it.
    /// Returns how many. What is missing there is missing here.
    ///
    /// # Errors
    /// A number is used here, or the system refuses.
    pub fn copy_from(&self, other: &Self) -> Result<usize, ArtifactError> {
        let ids = other.ids()?;
        if ids.is_empty() {
            return Ok(0);
        }
        self.volume
            .create_folder(&self.folder)
            .map_err(|source| self.failed(source))?;
        let mut copied = 0;
        for id in ids {
            let (Ok(path), Ok(bytes)) = (other.find(id), other.read(id)) else {
                continue;
            };
            let path = self.folder.join(path.file_name().unwrap_or_default());
            self.write(&path, &String::from_utf8_lossy(&bytes), 0)
                .map_err(|source| self.failed(source))?;
            copied += 1;
        }
        Ok(copied)
    }

    /// Takes a published artifact back, when the change that refers to it was not committed. Its number stays
    /// used. A few tries; what cannot be removed is left to `gc`.
    ///
    /// # Errors
    /// The system refuses again and again.
    pub fn remove(&self, artifact: &StoredArtifact) -> Result<(), ArtifactError> {
        const TRIES: u32 = 3;
        let mut tried = 0;
        loop {
            tried += 1;
            match self.volume.remove(&artifact.path) {
                Ok(()) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
                Err(source) if tried == TRIES => return Err(self.failed(source)),
                Err(_) => self.volume.pause(Duration::from_millis(10)),
            }
        }
    }

    /// The numbers in use with an artifact, in order.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn ids(&self) -> Result<Vec<ArtifactId>, ArtifactError> {
        let items = match self.items() {
            Ok(items) => items,
            Err(ArtifactError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(error),
        };
        let names = items.iter().map(|item| item.name().to_string_lossy());
        let mut ids: Vec<ArtifactId> = names
            .filter(|name| !name.starts_with(CLAIM))
            .filter_map(|name| number_of(&name))
            .map(ArtifactId)
            .collect();
        ids.sort();
        ids.dedup();
        Ok(ids)
    }

    fn write(&self, path: &Path, text: &str, omitted: usize) -> io::Result<()> {
        let mut staged = self.volume.stage(&self.folder, Access::Private)?;
        write_all(staged.file(), text.as_bytes())?;
        if omitted > 0 {
            write_all(staged.file(), omission(text.len(), omitted).as_bytes())?;
        }
        staged.file().sync()?;
        publish(&*self.volume, staged, path, Existing::Refuse)
    }

    fn find(&self, id: ArtifactId) -> Result<PathBuf, ArtifactError> {
        let missing = || ArtifactError::Missing {
            id,
            folder: self.folder.clone(),
        };
        let items = match self.items() {
            Ok(items) => items,
            Err(ArtifactError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                return Err(missing());
            }
            Err(error) => return Err(error),
        };
        let prefix = format!("{id}.");
        let mut hits = items.iter().filter(|item| {
            let name = item.name().to_string_lossy();
            !item.is_folder && name.starts_with(&prefix) && !name.ends_with(".meta.json")
        });
        match (hits.next(), hits.next()) {
            (None, _) => Err(missing()),
            (Some(hit), None) => Ok(self.folder.join(hit.name())),
            (Some(_), Some(_)) => Err(ArtifactError::Ambiguous {
                id,
                folder: self.folder.clone(),
            }),
        }
    }

    fn items(&self) -> Result<Vec<FolderItem>, ArtifactError> {
        self.check_folder()?;
        self.volume
            .list(&self.folder)
            .map_err(|source| self.failed(source))
    }

    /// The folder itself must not be a link: what it points at belongs to somebody else.
    fn check_folder(&self) -> Result<(), ArtifactError> {
        match self
            .volume
            .stat(&self.folder)
            .map_err(|source| self.failed(source))?
            .kind
        {
            FileKind::Folder => Ok(()),
            _ => Err(ArtifactError::NotAFolder(self.folder.clone())),
        }
    }

    fn failed(&self, source: io::Error) -> ArtifactError {
        let folder = self.folder.clone();
        if is_disk_full(&source) {
            ArtifactError::DiskFull { folder, source }
        } else {
            ArtifactError::Io { folder, source }
        }
    }
}

/// The last character boundary at or before a byte.
fn boundary_before(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// The session's path without `.jsonl`.
pub(crate) fn folder_of(session: &Path) -> PathBuf {
    if session.extension().is_some_and(|extension| extension == "jsonl") {
        session.with_extension("")
    } else {
        let mut name = session.file_name().unwrap_or_default().to_os_string();
        name.push(".artifacts");
        session.with_file_name(name)
    }
}

/// The number in `<id>.<tool>.log` or `.artifact-id-<id>`.
fn number_of(name: &str) -> Option<u64> {
    match name.strip_prefix(CLAIM) {
        Some(number) => number.parse().ok(),
        None => name.split_once('.')?.0.parse().ok(),
    }
}

/// Whether a name is one that artifacts have: `<id>.<tool>.log`, or the claim of a number.
pub(crate) fn is_artifact_name(name: &str) -> bool {
    if name.starts_with(CLAIM) {
        return number_of(name).is_some();
    }
    let mut parts = name.split('.');
    let is_number = |part: &str| part.parse::<u64>().is_ok_and(|id| id.to_string() == part);
    let is_tool = |part: &str| !part.is_empty() && tool_name(part) == part;
    parts.next().is_some_and(is_number)
        && parts.next().is_some_and(is_tool)
        && parts.next() == Some("log")
        && parts.next().is_none()
}

fn tool_name(tool: &str) -> String {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || c == '_' || c == '-' {
            c
        } else {
            '_'
        }
    };
    if tool.is_empty() {
        "tool-output".to_owned()
    } else {
        tool.chars().take(NAME_CAP).map(plain).collect()
    }
}

fn omission(kept: usize, omitted: usize) -> String {
    format!("\n[foldline: only the first {kept} bytes were stored, {omitted} more were left out]\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        let stored = |id| Some(ArtifactRef::Stored(ArtifactId(id)));
        let cases = [
            ("artifact://0", stored(0)),
            ("artifact://42", stored(42)),
            ("artifact://entry/a1b2", Some(ArtifactRef::Entry("a1b2".into()))),
            ("artifact://entry/", None),
            ("artifact://", None),
            ("artifact://+1", None),
            ("artifact://01", None),
            ("artifact://1.bash.log", None),
            ("artifact://../7", None),
            ("artifact://7/../../etc/passwd", None),
            ("artifact://99999999999999999999", None),
            ("file://7", None),
        ];
        for (address, expected) in cases {
            let parsed = ArtifactRef::parse(address);
            assert_eq!(parsed, expected, "{address}");
            if let Some(parsed) = parsed {
                assert_eq!(parsed.to_string(), address);
            }
        }
    }

    #[test]
    fn names_of_artifacts() {
        for name in ["0.bash.log", "12.tool-output.log", ".artifact-id-3"] {
            assert!(is_artifact_name(name), "{name}");
        }
        for name in [
            "1.log",
            "01.bash.log",
            "1..log",
            "1.2.3.log",
            "build.1.log",
            "1.bash.txt",
            ".artifact-id-x",
        ] {
            assert!(!is_artifact_name(name), "{name}");
        }
    }

    #[test]
    fn tool_names_are_plain() {
        assert_eq!(tool_name("bash"), "bash");
        assert_eq!(tool_name("../../etc/passwd"), "______etc_passwd");
        assert_eq!(tool_name("mcp.server/töol"), "mcp_server_t_ol");
        assert_eq!(tool_name(""), "tool-output");
        assert_eq!(tool_name("."), "_");
        assert_eq!(tool_name(&"x".repeat(1000)).len(), NAME_CAP);
    }

    #[test]
    fn folders() {
        assert_eq!(folder_of(Path::new("/s/a_b.jsonl")), Path::new("/s/a_b"));
        assert_eq!(folder_of(Path::new("/s/a.log")), Path::new("/s/a.log.artifacts"));
    }
}

//! Listing: what a session is, from its head and its tail only. A listing never reads a whole file, unless
//! entries are to be counted.

mod probe;
mod resolve;

use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::agents::{self, Agent, AgentFolder};
use crate::aligned::AlignedBuf;
use crate::read::{ReadError, SessionReader};
use crate::volume::{FileKind, Links, Volume};

pub use resolve::ResolveError;
pub(crate) use resolve::resolve;

/// Bytes that are read at the front of a session.
const HEAD: u64 = 16 << 10;
/// Bytes that are read at the front at most, when the header or the first prompt is long.
const LONG_HEAD: u64 = 128 << 10;
/// Bytes that are read at the end.
const TAIL: u64 = 32 << 10;

/// What a listing says of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionSummary {
    /// The file.
    pub path: PathBuf,
    /// The id in the header; `None` if there is no header.
    pub id: Option<String>,
    /// Whose session it is.
    pub agent: Agent,
    /// The project that it belongs to.
    pub cwd: Option<String>,
    /// When the file last changed.
    pub modified: SystemTime,
    /// Its length in bytes.
    pub len: u64,
    /// The newest title that head and tail show, else the start of the first prompt.
    pub title: Option<String>,
    /// How many entries it holds, if they were counted.
    pub entries: Option<u64>,
}

/// Sessions, the newest first, and files that could not be read.
#[derive(Debug, Default)]
pub struct Listing {
    /// What was found.
    pub sessions: Vec<SessionSummary>,
    /// What was not: one file never hides the others.
    pub unreadable: Vec<(PathBuf, ReadError)>,
    /// Bytes that the listing read.
    pub bytes_read: u64,
}

/// Whether entries are counted, for which whole files are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Count {
    /// No.
    Nothing,
    /// Yes.
    Entries,
}

/// Which sessions are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Project<'a> {
    /// All.
    Any,
    /// Those whose header names this project, or none.
    Only(&'a Path),
}

/// Why there is no listing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListError {
    /// A folder cannot be read.
    #[error("cannot list {}", folder.display())]
    Io {
        /// Which one.
        folder: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// Lists the sessions in some folders.
pub(crate) fn list(
    volume: &dyn Volume,
    folders: &[AgentFolder],
    project: Project<'_>,
    count: Count,
) -> Result<Listing, ListError> {
    let mut listing = Listing::default();
    let mut buffer = AlignedBuf::new();
    for place in folders {
        let files = agents::session_files(volume, place).map_err(|source| ListError::Io {
            folder: place.folder.clone(),
            source,
        })?;
        for path in files {
            match summarise(volume, &path, place.agent, &mut buffer, &mut listing.bytes_read) {
                Ok(Some(mut summary)) if belongs(&summary, project) => {
                    if count == Count::Entries {
                        match count_entries(volume, &path, &mut buffer, &mut listing.bytes_read) {
                            Ok(entries) => summary.entries = Some(entries),
                            Err(error) => {
                                listing.unreadable.push((path, error));
                                continue;
                            }
                        }
                    }
                    listing.sessions.push(summary);
                }
                Ok(_) => {}
                Err(error) => listing.unreadable.push((path, error)),
            }
        }
    }
    listing
        .sessions
        .sort_by(|a, b| b.modified.cmp(&a.modified).then_with(|| b.path.cmp(&a.path)));
    Ok(listing)
}

fn belongs(summary: &SessionSummary, project: Project<'_>) -> bool {
    match (project, &summary.cwd) {
        (Project::Any, _) => true,
        // Two projects may share a folder; an old header names none.
        (Project::Only(project), Some(cwd)) => Path::new(cwd) == project,
        (Project::Only(_), None) => summary.id.is_some(),
    }
}

/// `None` for what is not a regular file.
fn summarise(
    volume: &dyn Volume,
    path: &Path,
    agent: Agent,
    buffer: &mut AlignedBuf,
    bytes_read: &mut u64,
) -> Result<Option<SessionSummary>, ReadError> {
    let failed = |source| ReadError::Io {
        session: path.to_path_buf(),
        source,
    };
    let stat = volume.stat(path).map_err(failed)?;
    if stat.kind != FileKind::File {
        return Ok(None);
    }
    let reader = SessionReader::open_with(volume, path, Links::Refuse)?;
    let len = reader.stamp().len;

    let mut take = HEAD.min(len);
    let head = loop {
        let bytes = reader.read(0..take, buffer)?;
        *bytes_read += take;
        let head = probe::head(bytes, take == len);
        if head.is_settled() || take == len || take == LONG_HEAD {
            break head;
        }
        take = LONG_HEAD.min(len);
    };
    // What the head has shown already is not read again.
    let from = len.saturating_sub(TAIL).max(take);
    let tail_title = if from < len {
        *bytes_read += len - from;
        probe::tail(reader.read(from..len, buffer)?)
    } else {
        probe::Title::Unknown
    };
    let title = match tail_title {
        probe::Title::Unknown => head.title(),
        probe::Title::Cleared => head.first_prompt.clone(),
        probe::Title::Named(title) => Some(title),
    };
    Ok(Some(SessionSummary {
        path: path.to_path_buf(),
        id: head.id,
        agent,
        cwd: head.cwd,
        modified: stat.modified,
        len,
        title,
        entries: None,
    }))
}

/// Counts the lines that are not blank, without the header, a title slot and patches of other records.
fn count_entries(
    volume: &dyn Volume,
    path: &Path,
    buffer: &mut AlignedBuf,
    bytes_read: &mut u64,
) -> Result<u64, ReadError> {
    const BLOCK: u64 = 256 << 10;
    let reader = SessionReader::open_with(volume, path, Links::Refuse)?;
    let len = reader.stamp().len;
    let mut entries = 0;
    let mut from = 0;
    let mut take = BLOCK;
    while from < len {
        let end = from.saturating_add(take).min(len);
        let bytes = reader.read(from..end, buffer)?;
        *bytes_read += end - from;
        let whole = if end == len {
            bytes.len()
        } else {
            memchr::memrchr(b'\n', bytes).map_or(0, |at| at + 1)
        };
        if whole == 0 {
            // One line fills the block.
            take = take.saturating_mul(2);
            continue;
        }
        let lines = bytes
            .get(..whole)
            .unwrap_or_default()
            .split(|byte| *byte == b'\n');
        entries += lines.filter(|line| probe::is_entry(line)).count() as u64;
        from += whole as u64;
        take = BLOCK;
    }
    Ok(entries)
}

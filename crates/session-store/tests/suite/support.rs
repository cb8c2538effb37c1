//! Sessions and stores for tests.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use foldline_session_store::{
    DiskStore, Durability, Expected, MemoryStore, OpenOptions, Owner, SessionStore, SessionWriter,
};

pub(crate) const HEADER: &str =
    r#"{"type":"session","version":3,"id":"s1","timestamp":"2026-08-01T00:00:00.000Z","cwd":"/w"}"#;

/// A store with a folder of its own.
pub(crate) struct Place {
    pub(crate) store: Box<dyn SessionStore>,
    pub(crate) folder: PathBuf,
    _kept: Option<tempfile::TempDir>,
}

pub(crate) fn disk() -> Place {
    let kept = tempfile::tempdir().unwrap();
    let folder = kept.path().canonicalize().unwrap().join("sessions");
    Place {
        store: Box::new(DiskStore::new()),
        folder,
        _kept: Some(kept),
    }
}

pub(crate) fn memory() -> Place {
    Place {
        store: Box::new(MemoryStore::new()),
        folder: "/sessions".into(),
        _kept: None,
    }
}

impl Place {
    pub(crate) fn session(&self) -> PathBuf {
        self.folder.join("s.jsonl")
    }

    /// A session of a header and `count` entries.
    pub(crate) fn with_entries(self, count: usize) -> Self {
        create(&*self.store, &self.session(), count);
        self
    }

    pub(crate) fn open(&self) -> SessionWriter {
        self.store.open(&self.session(), &options()).unwrap()
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.store.read(&self.session()).unwrap().to_vec()).unwrap()
    }
}

pub(crate) fn create(store: &dyn SessionStore, session: &Path, count: usize) {
    let entries: Vec<String> = (0..count).map(entry).collect();
    let mut lines = std::iter::once(HEADER.as_bytes()).chain(entries.iter().map(String::as_bytes));
    store.create(session, &mut lines).unwrap();
}

pub(crate) fn owner() -> Owner {
    Owner::this_process()
}

pub(crate) fn now() -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(1_785_579_630_123)
}

pub(crate) fn options() -> OpenOptions {
    OpenOptions {
        owner: owner(),
        now: now(),
        expected: Expected::Any,
    }
}

pub(crate) fn entry(number: usize) -> String {
    let parent = match number.checked_sub(1) {
        Some(parent) => format!("\"e{parent}\""),
        None => "null".to_owned(),
    };
    let text = [
        "short",
        "with a brace } and a quote \\\" inside",
        "Straße 東京 🦀",
    ][number % 3];
    format!(
        r#"{{"type":"message","id":"e{number}","parentId":{parent},"timestamp":"2026-08-01T00:00:01.000Z","message":{{"role":"user","content":"{text}"}}}}"#
    )
}

/// Appends and commits.
pub(crate) fn append(writer: &mut SessionWriter, number: usize) {
    writer.append(&entry(number), Durability::Commit).unwrap();
}

/// The ids of the entries, after a check that the file is strictly valid JSONL with one header.
pub(crate) fn strict_ids(text: &str) -> Vec<String> {
    #[derive(serde::Deserialize)]
    struct Head {
        r#type: String,
        id: String,
    }
    assert!(
        text.is_empty() || text.ends_with('\n'),
        "the last line has no end"
    );
    let mut ids = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let head: Head = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert_eq!(head.r#type == "session", number == 0, "line {number}");
        if number > 0 {
            ids.push(head.id);
        }
    }
    ids
}

pub(crate) fn ids(numbers: impl IntoIterator<Item = usize>) -> Vec<String> {
    numbers.into_iter().map(|number| format!("e{number}")).collect()
}

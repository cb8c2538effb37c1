//! The session files that cases name, each loaded once.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use anyhow::{Context as _, anyhow};
use foldline_session_model::EntryIx;
use foldline_session_model::log::{SessionLog, Trust, Version};
use foldline_session_model::tree::Leaf;
use serde_json::Value;

use super::{Case, field, text_field};

/// The sessions of a folder of vectors.
pub(super) struct Sessions {
    dir: PathBuf,
    loaded: RefCell<BTreeMap<String, Rc<Session>>>,
}

/// A session and how its entries are referred to.
pub(super) struct Session {
    pub(super) log: SessionLog,
}

impl Sessions {
    pub(super) fn new(dir: &Path) -> Self {
        Self {
            dir: dir.to_path_buf(),
            loaded: RefCell::default(),
        }
    }

    /// The session that a case names.
    pub(super) fn of(&self, case: &Case) -> anyhow::Result<Rc<Session>> {
        let name = text_field(&case.input, "session")?;
        if let Some(session) = self.loaded.borrow().get(name) {
            return Ok(Rc::clone(session));
        }
        let bytes = fs_err::read(self.dir.join(name))?;
        let bytes = if Path::new(name)
            .extension()
            .is_some_and(|extension| extension == "gz")
        {
            let mut plain = Vec::new();
            flate2::read::GzDecoder::new(&*bytes).read_to_end(&mut plain)?;
            plain
        } else {
            bytes
        };
        let log = SessionLog::load(bytes, Trust::Validated).context(name.to_owned())?;
        let session = Rc::new(Session { log });
        self.loaded
            .borrow_mut()
            .insert(name.to_owned(), Rc::clone(&session));
        Ok(session)
    }
}

impl Session {
    /// Entries of version 1 have no ids of their own: vectors refer to them by position.
    fn by_position(&self) -> bool {
        self.log.header().version == Version::Known(1)
    }

    /// The reference to an entry.
    pub(super) fn reference(&self, ix: EntryIx) -> String {
        if self.by_position() {
            format!("#{}", ix.index())
        } else {
            self.log.id(ix).to_owned()
        }
    }

    /// The reference to an entry that is named by its id. Ids that name no entry stay as they are.
    pub(super) fn reference_to(&self, id: &str) -> String {
        self.log
            .find(id)
            .map_or_else(|| id.to_owned(), |ix| self.reference(ix))
    }

    /// The entry that a reference names.
    pub(super) fn entry(&self, reference: &str) -> Option<EntryIx> {
        match reference.strip_prefix('#').filter(|_| self.by_position()) {
            Some(position) => self.log.entries().nth(position.parse().ok()?),
            None => self.log.find(reference),
        }
    }

    /// The leaf of a case.
    pub(super) fn leaf(&self, case: &Case) -> anyhow::Result<Leaf> {
        match field(&case.params, "leaf")? {
            Value::Null => Ok(Leaf::BeforeFirst),
            Value::String(text) if text == "default" => Ok(Leaf::Last),
            Value::String(text) => Ok(Leaf::Entry(
                self.entry(text)
                    .map_or_else(|| text.as_str().into(), |ix| self.log.entry_id(ix)),
            )),
            other => Err(anyhow!("{other} is no leaf")),
        }
    }
}

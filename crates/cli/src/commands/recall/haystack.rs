//! The logs and originals that a query looks through, and the ranking over all of them.

use std::cmp::Ordering;
use std::path::PathBuf;

use foldline_session_model::EntryIx;
use foldline_session_model::fold::{Profile, Standing, Standings};
use foldline_session_model::log::{SessionLog, Trust};
use foldline_session_model::search::{Found, Query, Ranking, Scan, Totals, text_of};
use foldline_session_model::tree::Leaf;
use foldline_session_store::{ArtifactId, DiskStore, SessionStore as _};

use crate::error::{CommandError, ErrorKind};
use crate::output;
use crate::session::Session;

/// Bytes of sessions that stay in memory between the scan and the ranking; others are read again.
const KEPT: usize = 512 << 20;

/// What is searched: sessions from the oldest to the newest, of each first the originals beside it and then its log.
pub(super) struct Haystacks<'q> {
    store: &'q DiskStore,
    query: &'q Query,
    sessions: Vec<Searched>,
    stacks: Vec<Stack>,
    kept: usize,
}

struct Searched {
    path: PathBuf,
    trust: Trust,
    session: Option<Session>,
    standings: Option<Standings>,
}

struct Stack {
    session: usize,
    what: What,
    scan: Scan,
}

/// One thing to look through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// The log of a session.
    Log,
    /// An original that is stored beside it.
    Artifact(ArtifactId),
}

impl<'q> Haystacks<'q> {
    pub(super) fn new(store: &'q DiskStore, paths: Vec<PathBuf>, query: &'q Query) -> Self {
        let searched = |path| Searched {
            path,
            // A line that begins like an entry is believed to be one, until one cannot be read.
            trust: Trust::Claimed,
            session: None,
            standings: None,
        };
        Self {
            store,
            query,
            sessions: paths.into_iter().map(searched).collect(),
            stacks: Vec::new(),
            kept: 0,
        }
    }

    /// Looks through everything; one session that cannot be read fails all.
    pub(super) fn read(&mut self) -> Result<(), CommandError> {
        (0..self.sessions.len()).try_for_each(|session| self.read_one(session))
    }

    /// Looks through everything that can be read, and warns of the rest.
    pub(super) fn read_what_can_be_read(&mut self) {
        for session in 0..self.sessions.len() {
            if let Err(error) = self.read_one(session) {
                output::warning(&error.message);
            }
        }
    }

    fn read_one(&mut self, at: usize) -> Result<(), CommandError> {
        let session = self.open(at)?;
        let scan = self.query.scan(&session.log);
        let artifacts = self.store.artifacts(&session.path);
        // A folder that cannot be read is one without originals.
        for id in artifacts.ids().unwrap_or_default() {
            if let Ok(bytes) = artifacts.read(id) {
                let scan = self.query.scan_text(&String::from_utf8_lossy(&bytes));
                self.stacks.push(Stack {
                    session: at,
                    what: What::Artifact(id),
                    scan,
                });
            }
        }
        let size = session.log.bytes().len();
        let worth_keeping = !scan.is_empty() && self.kept + size <= KEPT;
        self.stacks.push(Stack {
            session: at,
            what: What::Log,
            scan,
        });
        if worth_keeping || self.sessions.len() == 1 {
            self.kept += size;
            self.sessions[at].session = Some(session);
        }
        Ok(())
    }

    fn open(&self, at: usize) -> Result<Session, CommandError> {
        let searched = &self.sessions[at];
        Session::load(self.store, searched.path.clone(), searched.trust)
    }

    /// The best documents of all.
    pub(super) fn rank(&mut self, limit: usize) -> Result<Ranking<'q>, CommandError> {
        'again: loop {
            let mut totals = Totals::default();
            self.stacks.iter().for_each(|stack| totals.add(&stack.scan));
            let mut ranking = Ranking::new(self.query, &totals, limit);
            let mut order: Vec<(f64, usize)> = (0..)
                .zip(&self.stacks)
                .map(|(at, stack)| (ranking.bound(&stack.scan), at))
                .collect();
            order.sort_by(|a, b| match b.0.total_cmp(&a.0) {
                Ordering::Equal => b.1.cmp(&a.1),
                order => order,
            });
            for (bound, at) in order {
                if !ranking.is_open_to(bound) {
                    continue;
                }
                let Some(stack) = self.stacks.get(at) else {
                    continue;
                };
                let (session, what) = (stack.session, stack.what);
                self.need(session)?;
                let mut broken = false;
                let mut failed = None;
                let stack = &self.stacks[at];
                let source = u32::try_from(at).unwrap_or(u32::MAX);
                ranking.look_into(source, &stack.scan, &mut |document| match self
                    .text_in(session, what, document)
                {
                    Ok(text) => text,
                    Err(Unread::Broken) => {
                        broken = true;
                        None
                    }
                    Err(Unread::Failed(error)) => {
                        failed = Some(error);
                        None
                    }
                });
                if let Some(error) = failed {
                    return Err(error);
                }
                if broken && self.sessions[session].trust == Trust::Claimed {
                    self.validate(session)?;
                    continue 'again;
                }
            }
            return Ok(ranking);
        }
    }

    /// Reads a session again, every line of it, because one was not what it seemed to be.
    fn validate(&mut self, session: usize) -> Result<(), CommandError> {
        self.sessions[session].trust = Trust::Validated;
        self.sessions[session].session = Some(self.open(session)?);
        self.sessions[session].standings = None;
        let searched = &self.sessions[session];
        if let Some(stack) = self
            .stacks
            .iter_mut()
            .find(|stack| stack.session == session && stack.what == What::Log)
            && let Some(read) = &searched.session
        {
            stack.scan = self.query.scan(&read.log);
        }
        Ok(())
    }

    fn need(&mut self, session: usize) -> Result<&Session, CommandError> {
        if self.sessions[session].session.is_none() {
            self.sessions[session].session = Some(self.open(session)?);
        }
        let read = self.sessions[session].session.as_ref();
        read.ok_or_else(|| CommandError::new(ErrorKind::Failed, "the session was not read"))
    }

    fn text_in(&self, session: usize, what: What, document: u32) -> Result<Option<String>, Unread> {
        let searched = &self.sessions[session];
        match what {
            What::Artifact(id) => {
                let bytes = self.store.artifacts(&searched.path).read(id);
                let bytes =
                    bytes.map_err(|e| Unread::Failed(CommandError::from_error(ErrorKind::Failed, &e)))?;
                Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
            }
            What::Log => {
                let Some(read) = &searched.session else {
                    return Ok(None);
                };
                let Some(ix) = read.log.entry_at(document as usize) else {
                    return Ok(None);
                };
                let message = read
                    .log
                    .own_message(ix, Profile::Foldline)
                    .map_err(|_| Unread::Broken)?;
                Ok(message.as_ref().map(text_of))
            }
        }
    }

    fn stack(&self, found: &Found) -> &Stack {
        &self.stacks[found.source as usize]
    }

    pub(super) fn what(&self, found: &Found) -> What {
        self.stack(found).what
    }

    /// The session in which something was found.
    pub(super) fn session(&mut self, found: &Found) -> Result<&Session, CommandError> {
        self.need(self.stack(found).session)
    }

    /// What a document says.
    pub(super) fn text(&mut self, found: &Found) -> Result<Option<String>, CommandError> {
        let (session, what) = (self.stack(found).session, self.what(found));
        self.need(session)?;
        match self.text_in(session, what, found.document) {
            Ok(text) => Ok(text),
            Err(Unread::Broken) => Ok(None),
            Err(Unread::Failed(error)) => Err(error),
        }
    }

    /// What became of an entry of the session in which something was found.
    pub(super) fn standing(&mut self, found: &Found, ix: EntryIx) -> Result<Standing, CommandError> {
        Ok(self.standings(found)?.of(ix))
    }

    pub(super) fn standings(&mut self, found: &Found) -> Result<&Standings, CommandError> {
        let session = self.stack(found).session;
        if self.sessions[session].standings.is_none() {
            let standings = self.need(session)?.log.standings(&Leaf::Last, Profile::Auto);
            let standings = standings.map_err(|e| CommandError::from_error(ErrorKind::Failed, &e))?;
            self.sessions[session].standings = Some(standings);
        }
        let standings = self.sessions[session].standings.as_ref();
        standings.ok_or_else(|| CommandError::new(ErrorKind::Failed, "the session was not folded"))
    }
}

/// Why there is no text.
enum Unread {
    /// The line is not what its beginning says.
    Broken,
    /// The file cannot be read.
    Failed(CommandError),
}

/// The role of an entry's message.
pub(super) fn role(log: &SessionLog, ix: EntryIx) -> String {
    match log.own_message(ix, Profile::Foldline) {
        Ok(Some(message)) => message.role().to_owned(),
        _ => log.kind_text(ix).into_owned(),
    }
}

/// The newest entry that names an artifact.
pub(super) fn refers_to(log: &SessionLog, address: &str) -> Option<EntryIx> {
    log.entries().rev().find(|ix| {
        let line = log.raw_line(*ix);
        memchr::memmem::find_iter(line, address).any(|at| {
            let next = line.get(at + address.len());
            !next.is_some_and(u8::is_ascii_digit)
        })
    })
}

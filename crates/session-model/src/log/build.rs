//! Loading: lines become a header, entries, patches and damage (spec, 11.1).

use std::ops::Range;

use rustc_hash::FxHashMap;

use super::damage::{Damage, DamageKind};
use super::header::{self, Header, Title, Version};
use super::index::IdIndex;
use super::patch::{self, Patch};
use super::scan::{self, Found, FoundHead, IsLast, Trust};
use super::{DiskForm, EntryHead, Extent, FinalNewline, LoadError, Migration, Place, SessionLog, migrate};
use crate::entry::EntryKind;
use crate::{ByteLen, EntryIx, LineNumber};

/// A record of a file that this crate may have to migrate.
pub(super) struct Record {
    pub(super) found: Found,
    pub(super) line: u32,
}

pub(super) fn load(bytes: Vec<u8>, trust: Trust) -> Result<SessionLog, LoadError> {
    let body = if bytes.starts_with("\u{FEFF}".as_bytes()) {
        3
    } else {
        0
    };
    let mut loader = Loader::new(trust, bytes.len());
    let mut last_span = 0..0;
    for (number, span) in scan::lines(&bytes[body..]).enumerate() {
        let span = span.start + body..span.end + body;
        let number = u32::try_from(number).map_err(|_| LoadError::TooLarge)?;
        loader.line(&bytes, span.clone(), number)?;
        last_span = span;
    }
    let Some(header) = loader.header.take() else {
        return Err(loader.no_header());
    };
    let newline = match (bytes.last() == Some(&b'\n'), loader.damage.last()) {
        (true, _) => FinalNewline::Present,
        (
            false,
            Some(Damage {
                kind: DamageKind::TornTail,
                ..
            }),
        ) => FinalNewline::Torn,
        (false, _) if last_span.is_empty() => FinalNewline::Present,
        (false, _) => FinalNewline::Missing,
    };
    let migration = match header.version {
        Version::Foreign => Migration::ReadOnly,
        Version::Known(3) if loader.patches.is_empty() && !loader.title_slot && body == 0 => {
            Migration::NotNeeded
        }
        Version::Known(_) => Migration::Needed,
    };
    let mut log = SessionLog {
        bytes,
        header,
        header_at: loader.header_at.clone(),
        heads: loader.heads,
        arena: loader.arena,
        ids: loader.ids,
        patched: FxHashMap::default(),
        damage: loader.damage,
        disk: DiskForm { newline, migration },
        trust,
        extent: Extent::Whole,
    };
    if let Version::Known(version @ ..3) = log.header.version {
        migrate::migrate(
            &mut log,
            version,
            &loader.records,
            &loader.values,
            loader.header_at,
        )?;
        log.index_ids();
    }
    for ix in loader.duplicates {
        let id = log.entry_id(ix);
        log.damage.push(log.damage_of(ix, DamageKind::DuplicateId { id }));
    }
    log.apply_patches(loader.patches);
    if trust == Trust::Validated {
        log.validate_tree();
    }
    Ok(log)
}

struct Loader {
    trust: Trust,
    header: Option<Header>,
    /// Where the header stands.
    header_at: Range<usize>,
    title: Option<Title>,
    title_slot: bool,
    heads: Vec<EntryHead>,
    arena: String,
    /// Only for versions that are migrated by record.
    records: Vec<Record>,
    /// For each parsed value of such a file, in order, the record it is.
    values: Vec<Option<usize>>,
    patches: Vec<(u32, u64, u32, Patch)>,
    damage: Vec<Damage>,
    first_line: Option<(u32, String)>,
    /// Filled while the lines are at hand: to look at each of them again later would cost as much as the scan. Empty
    /// for versions whose lines are migrated.
    ids: IdIndex,
    duplicates: Vec<EntryIx>,
}

impl Loader {
    fn new(trust: Trust, size: usize) -> Self {
        Self {
            trust,
            header: None,
            header_at: 0..0,
            title: None,
            title_slot: false,
            // Lines of real sessions are longer than this on average.
            heads: Vec::with_capacity(size / 1024),
            arena: String::new(),
            records: Vec::new(),
            values: Vec::new(),
            patches: Vec::new(),
            damage: Vec::new(),
            first_line: None,
            ids: IdIndex::with_capacity(size / 512),
            duplicates: Vec::new(),
        }
    }

    /// Adds an entry and its id.
    fn push(&mut self, bytes: &[u8], head: EntryHead) -> Result<(), LoadError> {
        let ix = EntryIx(u32::try_from(self.heads.len()).map_err(|_| LoadError::TooLarge)?);
        self.heads.push(head);
        if self.migrates() {
            return Ok(());
        }
        let (heads, arena) = (&self.heads, &self.arena);
        let replaced = self.ids.insert(ix, |ix| {
            let head = heads.get(ix.index());
            head.and_then(|head| {
                let line = bytes.get(SessionLog::span_of(head))?;
                head.id.text(line, arena)
            })
            .unwrap_or_default()
        });
        if replaced.is_some() {
            self.duplicates.push(ix);
        }
        Ok(())
    }

    /// Whether lines are rewritten after all of them were read.
    fn migrates(&self) -> bool {
        matches!(self.header.as_ref().map(|h| h.version), Some(Version::Known(..3)))
    }

    fn line(&mut self, bytes: &[u8], span: Range<usize>, number: u32) -> Result<(), LoadError> {
        let is_last = if span.end == bytes.len() {
            IsLast::Unterminated
        } else {
            IsLast::No
        };
        // The last line is never only believed: it is the one that crashes tear. Nor is what stands before the header:
        // it decides whether the file is a session at all.
        let trust = if is_last == IsLast::Unterminated || self.header.is_none() {
            Trust::Validated
        } else {
            self.trust
        };
        let trust = if self.by_record() { Trust::Validated } else { trust };
        // Nearly every line: an entry in the usual layout, whose beginning is believed.
        if trust == Trust::Claimed
            && self.header.is_some()
            && let Some(text) = bytes.get(span.clone())
            && let Some(head) = crate::head::fast(text)
            && head.kind != EntryKind::Unknown
        {
            let head = entry_head(&mut self.arena, text, span.start, number, FoundHead::Fast(head))?;
            return self.push(bytes, head);
        }
        let line = scan::line(bytes, span.clone(), trust, is_last);
        let before_header = self.header.is_none();
        for found in line.found {
            if self.header.is_none() {
                self.before_header(bytes, found, number)?;
            } else {
                self.record(bytes, found, number)?;
            }
        }
        if let Some(kind) = line.damage {
            if kind == DamageKind::NotAnObject && self.by_record() {
                self.values.push(None);
            }
            if before_header && self.first_line.is_none() {
                self.first_line = Some((number, kind.to_string()));
            }
            self.damage_at(number, span.start, kind);
        }
        Ok(())
    }

    /// Whether entries get their ids from migration (version 1).
    fn by_record(&self) -> bool {
        self.header
            .as_ref()
            .is_some_and(|h| h.version == Version::Known(1))
    }

    fn before_header(&mut self, bytes: &[u8], found: Found, number: u32) -> Result<(), LoadError> {
        let text = &bytes[found.span.clone()];
        let fail = |cause: &str| {
            let line = LineNumber::from_index(number as usize);
            Err(LoadError::NotASession {
                line,
                cause: cause.to_owned(),
            })
        };
        match found.head.kind(text) {
            Some(b"session") => match header::parse(text) {
                Ok(Some(mut header)) => {
                    if let Some(title) = self.title.take() {
                        header.title = title.title;
                        header.title_source = title.source;
                    }
                    self.header = Some(header);
                    self.header_at = found.span;
                    self.values.push(None);
                    Ok(())
                }
                _ => fail("the session header has no id"),
            },
            Some(b"title") => {
                self.title_slot = true;
                let cause = "a title, but no session header follows it";
                self.first_line.get_or_insert_with(|| (number, cause.to_owned()));
                self.title = header::title_slot(text);
                Ok(())
            }
            Some(kind) => fail(&format!(
                "the first record is of type \"{}\" and not a session header",
                String::from_utf8_lossy(kind)
            )),
            None => fail("the first record is no session header"),
        }
    }

    fn record(&mut self, bytes: &[u8], found: Found, number: u32) -> Result<(), LoadError> {
        let text = &bytes[found.span.clone()];
        let offset = found.span.start;
        let kind = found.head.kind(text);
        let old = self.by_record();
        let damage = match kind {
            Some(b"session") => Some(DamageKind::SecondHeader),
            Some(kind @ (b"header_patch" | b"entry_patch")) => {
                let allowed = self.header.as_ref().is_some_and(|h| h.version.has_patches());
                match patch::parse(text, kind).filter(|_| allowed) {
                    Some(patch) => {
                        let seen = u32::try_from(self.heads.len()).unwrap_or(u32::MAX);
                        self.patches.push((number, offset as u64, seen, patch));
                        None
                    }
                    None => Some(DamageKind::IdlePatch),
                }
            }
            None => Some(DamageKind::NotAnEntry),
            Some(_) if !old && found.head.id(text).is_none() => Some(DamageKind::NotAnEntry),
            Some(_) => {
                if old {
                    self.values.push(Some(self.records.len()));
                    self.records.push(Record { found, line: number });
                } else {
                    let head = entry_head(&mut self.arena, text, offset, number, found.head)?;
                    self.push(bytes, head)?;
                }
                return Ok(());
            }
        };
        if old {
            self.values.push(None);
        }
        if let Some(kind) = damage {
            self.damage_at(number, offset, kind);
        }
        Ok(())
    }

    fn damage_at(&mut self, number: u32, offset: usize, kind: DamageKind) {
        let kind = match kind {
            DamageKind::Malformed { .. } | DamageKind::NotAnObject if self.header.is_none() => {
                DamageKind::BeforeHeader
            }
            kind => kind,
        };
        self.damage.push(Damage {
            line: LineNumber::from_index(number as usize),
            offset: ByteLen(offset as u64),
            kind,
        });
    }

    fn no_header(&self) -> LoadError {
        match &self.first_line {
            None => LoadError::Empty,
            Some((number, cause)) => LoadError::NotASession {
                line: LineNumber::from_index(*number as usize),
                cause: cause.clone(),
            },
        }
    }
}

impl FoundHead {
    pub(crate) fn id<'t>(&'t self, line: &'t [u8]) -> Option<&'t [u8]> {
        match self {
            Self::Fast(head) => line.get(head.id.clone()),
            Self::Careful { id, .. } => id.as_deref().map(str::as_bytes),
        }
    }
}

/// The head of an entry as the log keeps it.
pub(crate) fn entry_head(
    arena: &mut String,
    line: &[u8],
    offset: usize,
    number: u32,
    head: FoundHead,
) -> Result<EntryHead, LoadError> {
    let len = u32::try_from(line.len()).map_err(|_| LoadError::TooLarge)?;
    let kind = match &head {
        FoundHead::Fast(head) => head.kind,
        FoundHead::Careful { .. } => head.kind(line).map_or(EntryKind::Unknown, EntryKind::from_type),
    };
    let inline = |range: Range<usize>| Place {
        at: u32::try_from(range.start).unwrap_or(u32::MAX),
        len: u32::try_from(range.len()).unwrap_or(0) & !Place::IN_ARENA,
    };
    let (id, parent, timestamp) = match head {
        FoundHead::Fast(head) => (
            inline(head.id),
            head.parent.map_or(Place::ABSENT, inline),
            inline(head.timestamp),
        ),
        FoundHead::Careful {
            id,
            parent,
            timestamp,
            ..
        } => {
            let mut keep = |text: Option<String>| {
                let Some(text) = text else {
                    return Ok(Place::ABSENT);
                };
                let at = u32::try_from(arena.len()).map_err(|_| LoadError::TooLarge)?;
                let len = u32::try_from(text.len()).map_err(|_| LoadError::TooLarge)?;
                arena.push_str(&text);
                Ok(Place {
                    at,
                    len: len | Place::IN_ARENA,
                })
            };
            (keep(id)?, keep(parent)?, keep(timestamp)?)
        }
    };
    Ok(EntryHead {
        start: offset as u64,
        len,
        line: number,
        id,
        parent,
        timestamp,
        kind,
    })
}

/// A log of the end of a file; `bytes` begin with the first of `heads` or before it.
pub(crate) fn of_tail(
    header: Header,
    bytes: Vec<u8>,
    from: u64,
    heads: Vec<EntryHead>,
    arena: String,
    newline: FinalNewline,
) -> SessionLog {
    let mut log = SessionLog {
        bytes,
        header,
        header_at: 0..0,
        heads,
        arena,
        ids: IdIndex::default(),
        patched: FxHashMap::default(),
        damage: Vec::new(),
        disk: DiskForm {
            newline,
            migration: Migration::NotNeeded,
        },
        trust: Trust::Claimed,
        extent: Extent::Tail { from: ByteLen(from) },
    };
    log.index_ids();
    log.damage.clear();
    log
}

impl SessionLog {
    fn index_ids(&mut self) {
        let mut ids = IdIndex::with_capacity(self.heads.len());
        let mut duplicates = Vec::new();
        for ix in self.entries() {
            if ids.insert(ix, |ix| self.id(ix)).is_some() {
                duplicates.push(self.damage_of(
                    ix,
                    DamageKind::DuplicateId {
                        id: self.entry_id(ix),
                    },
                ));
            }
        }
        self.ids = ids;
        self.damage.extend(duplicates);
    }

    pub(super) fn damage_of(&self, ix: EntryIx, kind: DamageKind) -> Damage {
        let offset = self.head(ix).map_or(0, |head| head.start);
        Damage {
            line: self.line_of_file(ix),
            offset: ByteLen(offset),
            kind,
        }
    }

    /// Patches apply in file order to what stands before them; the last one wins.
    fn apply_patches(&mut self, patches: Vec<(u32, u64, u32, Patch)>) {
        for (number, offset, seen, patch) in patches {
            let idle = match patch {
                Patch::Header {
                    cwd,
                    title,
                    title_source,
                } => {
                    if let Some(cwd) = cwd {
                        self.header.cwd = cwd;
                    }
                    if let Some(title) = title {
                        self.header.title = (!title.is_empty()).then_some(title);
                    }
                    if title_source.is_some() {
                        self.header.title_source = title_source;
                    }
                    false
                }
                Patch::Entry { entry_id, message } => {
                    let target = self
                        .find(&entry_id)
                        .filter(|ix| ix.0 < seen && self.kind(*ix) == EntryKind::Message);
                    match (target, message) {
                        (Some(ix), Some(message)) => {
                            self.patched.insert(ix.0, message.into());
                            false
                        }
                        (Some(_), None) => false,
                        (None, _) => true,
                    }
                }
            };
            if idle {
                self.damage.push(Damage {
                    line: LineNumber::from_index(number as usize),
                    offset: ByteLen(offset),
                    kind: DamageKind::IdlePatch,
                });
            }
        }
    }
}

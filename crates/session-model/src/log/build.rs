//! Loading: lines become a header, entries, patches and damage (spec, 11.1).

use std::ops::Range;

use rustc_hash::FxHashMap;

use super::damage::{Damage, DamageKind};
use super::header::{self, Header, Title, Version};
use super::index::IdIndex;
use super::patch::{self, Patch};
use super::scan::{self, Found, FoundHead, IsLast, Trust};
use super::{Apart, DiskForm, EntryHead, Extent, FinalNewline, LoadError, Migration, SessionLog, migrate};
use crate::entry::EntryKind;
use crate::head::FastHead;
use crate::{ByteLen, EntryIx, LineNumber};

/// A record of a file that this crate may have to migrate.
pub(super) struct Record {
    pub(super) found: Found,
    pub(super) line: u32,
}

/// How the lines behind the header are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pass {
    /// One after the other.
    InOrder,
    /// In pieces of about so many bytes on all threads, then taken in order.
    #[cfg(feature = "rayon")]
    Parallel { piece: usize },
}

pub(super) fn load(bytes: Vec<u8>, trust: Trust, pass: Pass) -> Result<SessionLog, LoadError> {
    let body = if bytes.starts_with("\u{FEFF}".as_bytes()) {
        3
    } else {
        0
    };
    let mut loader = Loader::new(trust);
    loader.lines(&bytes, body, pass)?;
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
        (false, _) if loader.last_line.is_empty() => FinalNewline::Present,
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
        apart: loader.apart,
        ids: IdIndex::default(),
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
    }
    log.index_ids();
    log.apply_patches(loader.patches);
    if trust == Trust::Validated {
        log.validate_tree();
    }
    Ok(log)
}

/// How many entries a log makes room for before it knows the length of the file's lines.
const FIRST_ENTRIES: usize = 512;

/// Bytes of a line that are expected at least: lines of real sessions are longer on average.
const SHORT_LINE: usize = 256;

struct Loader {
    trust: Trust,
    header: Option<Header>,
    /// Where the header stands.
    header_at: Range<usize>,
    title: Option<Title>,
    title_slot: bool,
    heads: Vec<EntryHead>,
    apart: Apart,
    /// Only for versions that are migrated by record.
    records: Vec<Record>,
    /// For each parsed value of such a file, in order, the record it is.
    values: Vec<Option<usize>>,
    patches: Vec<(u32, u64, u32, Patch)>,
    damage: Vec<Damage>,
    first_line: Option<(u32, String)>,
    /// How many lines were taken, and where the last one stands.
    count: u32,
    last_line: Range<usize>,
}

/// What a line looks like, whatever came before it.
enum Looked {
    /// Nearly every line: an entry in the usual layout, whose beginning is believed.
    Entry(FastHead),
    Line(scan::Line),
}

/// Looks at a line. The last line is never only believed: it is the one that crashes tear.
#[inline]
fn look(bytes: &[u8], span: Range<usize>, trust: Trust) -> Looked {
    let is_last = if span.end == bytes.len() {
        IsLast::Unterminated
    } else {
        IsLast::No
    };
    let trust = match is_last {
        IsLast::Unterminated => Trust::Validated,
        IsLast::No => trust,
    };
    if trust == Trust::Claimed
        && let Some(text) = bytes.get(span.clone())
        && let Some(head) = crate::head::fast(text)
        && head.kind != EntryKind::Unknown
    {
        return Looked::Entry(head);
    }
    Looked::Line(scan::line(bytes, span, trust, is_last))
}

impl Loader {
    fn new(trust: Trust) -> Self {
        Self {
            trust,
            header: None,
            header_at: 0..0,
            title: None,
            title_slot: false,
            heads: Vec::new(),
            apart: Apart::default(),
            records: Vec::new(),
            values: Vec::new(),
            patches: Vec::new(),
            damage: Vec::new(),
            first_line: None,
            count: 0,
            last_line: 0..0,
        }
    }

    /// Adds an entry of a file of this size.
    #[inline]
    fn push(&mut self, size: usize, head: EntryHead) -> Result<(), LoadError> {
        u32::try_from(self.heads.len()).map_err(|_| LoadError::TooLarge)?;
        if self.heads.len() == self.heads.capacity() {
            let more = self.expected_after(head.span().end, size);
            self.heads.reserve_exact(more);
        }
        self.heads.push(head);
        Ok(())
    }

    /// How many more entries to make room for: as many as the part that was read lets one expect of the rest. Fresh
    /// memory costs more than the scan, so that room for lines that never come is dear.
    fn expected_after(&self, read: usize, size: usize) -> usize {
        let entries = self.heads.len();
        let rest = size.saturating_sub(read);
        let mean = (read / entries.max(1)).max(SHORT_LINE);
        let expected = rest / mean;
        (expected + expected / 16).max(entries / 4).max(FIRST_ENTRIES)
    }

    /// Takes all lines from `from` on.
    fn lines(&mut self, bytes: &[u8], from: usize, pass: Pass) -> Result<(), LoadError> {
        let rest = bytes.get(from..).unwrap_or_default();
        for span in scan::lines(rest) {
            let span = span.start + from..span.end + from;
            match pass {
                #[cfg(feature = "rayon")]
                Pass::Parallel { piece } if self.header.is_some() => {
                    return self.lines_parallel(bytes, span.start, piece);
                }
                _ => {}
            }
            let looked = look(bytes, span.clone(), self.trust_now());
            self.take(bytes, span, looked)?;
        }
        Ok(())
    }

    #[cfg(feature = "rayon")]
    fn lines_parallel(&mut self, bytes: &[u8], from: usize, piece: usize) -> Result<(), LoadError> {
        use rayon::prelude::*;

        // It cannot change any more: there is a header.
        let trust = self.trust_now();
        let looked: Vec<Vec<(Range<usize>, Looked)>> = super::parallel::pieces(bytes, from, piece)
            .into_par_iter()
            .map(|piece| {
                let lines = scan::lines(bytes.get(piece.clone()).unwrap_or_default());
                let spans = lines.map(|span| span.start + piece.start..span.end + piece.start);
                spans
                    .map(|span| (span.clone(), look(bytes, span, trust)))
                    .collect()
            })
            .collect();
        for (span, looked) in looked.into_iter().flatten() {
            self.take(bytes, span, looked)?;
        }
        Ok(())
    }

    /// How much of the next line is looked at. What stands before the header is never only believed: it decides whether
    /// the file is a session at all.
    fn trust_now(&self) -> Trust {
        if self.header.is_none() || self.by_record() {
            Trust::Validated
        } else {
            self.trust
        }
    }

    /// Takes the next line.
    #[inline]
    fn take(&mut self, bytes: &[u8], span: Range<usize>, looked: Looked) -> Result<(), LoadError> {
        let number = self.count;
        self.count = number.checked_add(1).ok_or(LoadError::TooLarge)?;
        self.last_line = span.clone();
        let line = match looked {
            Looked::Entry(head) => {
                let text = bytes.get(span.clone()).unwrap_or_default();
                let head = EntryHead::in_line(text, span.start, number, head)?;
                return self.push(bytes.len(), head);
            }
            Looked::Line(line) => line,
        };
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
                    let head = EntryHead::new(&mut self.apart, text, offset, number, &found.head)?;
                    self.push(bytes.len(), head)?;
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
            Self::Fast(head) => line.get(head.id.range()),
            Self::Careful { id, .. } => id.as_deref().map(str::as_bytes),
        }
    }
}

/// A log of the end of a file; `bytes` begin with the first of `heads` or before it.
pub(crate) fn of_tail(
    header: Header,
    bytes: Vec<u8>,
    from: u64,
    heads: Vec<EntryHead>,
    apart: Apart,
    newline: FinalNewline,
) -> SessionLog {
    let mut log = SessionLog {
        bytes,
        header,
        header_at: 0..0,
        heads,
        apart,
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
            if ids.insert(ix, &self.heads, |head| self.id_of(head)).is_some() {
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

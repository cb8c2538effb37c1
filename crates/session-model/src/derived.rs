//! Ids that are made from what is known, so that the same input gives the same ids in every process (D1).

use std::fmt::Write as _;

use rustc_hash::FxHashSet;
use sha2::{Digest as _, Sha256};

/// The ids of the entries of one session: the first 8 hexadecimal digits of a hash of the session's id and a
/// position, more digits on a collision.
#[derive(Debug)]
pub(crate) struct DerivedIds<'s> {
    session: &'s str,
    used: FxHashSet<String>,
}

impl<'s> DerivedIds<'s> {
    pub(crate) fn new(session: &'s str) -> Self {
        Self {
            session,
            used: FxHashSet::default(),
        }
    }

    /// The id for a position. A position that was asked for before gets another id.
    pub(crate) fn id(&mut self, position: &str) -> String {
        let digits = hex_digest(self.session, position);
        let id = (8..=digits.len())
            .filter_map(|len| digits.get(..len))
            .find(|id| !self.used.contains(*id))
            .unwrap_or(&digits)
            .to_owned();
        self.used.insert(id.clone());
        id
    }
}

/// A UUID for a position of a session: version 8, because the bits come from SHA-256.
pub(crate) fn uuid(session: &str, position: &str) -> String {
    let digits = hex_digest(session, position);
    let part = |from: usize, to: usize| digits.get(from..to).unwrap_or_default();
    format!(
        "{}-{}-8{}-a{}-{}",
        part(0, 8),
        part(8, 12),
        part(13, 16),
        part(17, 20),
        part(20, 32)
    )
}

/// SHA-256 of a session's id, a zero byte and a position, in hexadecimal.
pub(crate) fn hex_digest(session: &str, position: &str) -> String {
    let mut hash = Sha256::new();
    hash.update(session.as_bytes());
    hash.update([0]);
    hash.update(position.as_bytes());
    let mut digits = String::with_capacity(64);
    for byte in hash.finalize() {
        // Writing to a String cannot fail.
        let _ = write!(digits, "{byte:02x}");
    }
    digits
}

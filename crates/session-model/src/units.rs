//! Newtypes for ids and units, so that tokens, bytes and line numbers cannot be mixed up.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The id of an entry: an opaque string of any length, unique on a path.
///
/// Writers of session files use 8 hexadecimal digits, nanoids, snowflakes and whole UUIDs, so nothing is
/// assumed about its shape (spec "Session model", 1.4).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EntryId(Arc<str>);

impl EntryId {
    /// Wraps an id as it stands in the file.
    pub fn new(id: impl Into<Arc<str>>) -> Self {
        Self(id.into())
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EntryId({})", self.0)
    }
}

impl From<&str> for EntryId {
    fn from(id: &str) -> Self {
        Self(id.into())
    }
}

impl From<String> for EntryId {
    fn from(id: String) -> Self {
        Self(id.into())
    }
}

/// A number of model tokens, measured or estimated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Tokens(pub u64);

impl Tokens {
    /// No tokens.
    pub const ZERO: Self = Self(0);

    /// The number.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The sum, stopping at the largest number.
    #[must_use]
    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// The difference, stopping at zero.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl std::ops::Add for Tokens {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        self.saturating_add(other)
    }
}

impl std::ops::AddAssign for Tokens {
    fn add_assign(&mut self, other: Self) {
        *self = self.saturating_add(other);
    }
}

impl std::iter::Sum for Tokens {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::ZERO, Self::saturating_add)
    }
}

impl fmt::Display for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A line of a file or of a transcript region, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LineNumber(std::num::NonZeroU32);

impl LineNumber {
    /// The first line.
    pub const FIRST: Self = Self(std::num::NonZeroU32::MIN);

    /// The line with this number; `None` for 0.
    pub const fn new(number: u32) -> Option<Self> {
        match std::num::NonZeroU32::new(number) {
            Some(n) => Some(Self(n)),
            None => None,
        }
    }

    /// The line at a position counted from 0; stops at the largest number.
    pub fn from_index(index: usize) -> Self {
        let number = u32::try_from(index).unwrap_or(u32::MAX).saturating_add(1);
        Self(std::num::NonZeroU32::new(number).unwrap_or(std::num::NonZeroU32::MAX))
    }

    /// The number, at least 1.
    pub const fn get(self) -> u32 {
        self.0.get()
    }

    /// The position counted from 0.
    pub const fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}

impl fmt::Display for LineNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A length or an offset in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ByteLen(pub u64);

impl ByteLen {
    /// The number of bytes.
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for ByteLen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The position of an entry in its log, in file order, counted from 0. Only meaningful for that log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryIx(pub(crate) u32);

impl EntryIx {
    /// The position as a number for slices.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

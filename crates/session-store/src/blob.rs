//! Blobs: large media by the hash of their bytes, each stored once for all sessions (spec "Session model",
//! 6.3).

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::volume::{Access, Existing, Links, Volume, is_disk_full, publish, read_exact_at, write_all};

const SCHEME: &str = "blob:sha256:";

/// The SHA-256 of a blob, as sessions refer to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlobRef([u8; 32]);

impl BlobRef {
    /// The reference of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Reads `blob:sha256:<64 hex digits in lower case>`; `None` for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        let hex = text.strip_prefix(SCHEME)?;
        let (pairs, []) = hex.as_bytes().as_chunks::<2>() else {
            return None;
        };
        let mut hash = [0; 32];
        if pairs.len() != hash.len() {
            return None;
        }
        for (byte, [high, low]) in hash.iter_mut().zip(pairs) {
            *byte = digit(*high)? << 4 | digit(*low)?;
        }
        Some(Self(hash))
    }

    fn file_name(self) -> String {
        hex(&self.0)
    }
}

impl fmt::Display for BlobRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}", self.file_name())
    }
}

/// Why a blob was not stored or not read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BlobError {
    /// It is not there.
    #[error("{blob} is missing from {}", folder.display())]
    Missing {
        /// Which one.
        blob: BlobRef,
        /// Where it was looked for.
        folder: PathBuf,
    },
    /// Its bytes are not the ones it is named for.
    #[error("{blob} in {} is damaged", folder.display())]
    Damaged {
        /// Which one.
        blob: BlobRef,
        /// Where.
        folder: PathBuf,
    },
    /// The disk or the quota is full.
    #[error("the disk is full: no blob in {}", folder.display())]
    DiskFull {
        /// Where.
        folder: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The system refused.
    #[error("cannot use the blobs in {}", folder.display())]
    Io {
        /// Where.
        folder: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// A folder of blobs.
#[derive(Debug)]
pub struct Blobs {
    volume: Arc<dyn Volume>,
    folder: PathBuf,
}

impl Blobs {
    pub(crate) fn at(volume: &Arc<dyn Volume>, folder: &Path) -> Self {
        Self {
            volume: Arc::clone(volume),
            folder: folder.to_path_buf(),
        }
    }

    /// Stores bytes, unless they are there already. A damaged copy is replaced.
    ///
    /// # Errors
    /// The disk is full, or the system refuses.
    pub fn put(&self, bytes: &[u8]) -> Result<BlobRef, BlobError> {
        let blob = BlobRef::of(bytes);
        match self.get(blob) {
            Ok(_) => return Ok(blob),
            Err(BlobError::Missing { .. } | BlobError::Damaged { .. }) => {}
            Err(error) => return Err(error),
        }
        self.write(blob, bytes).map_err(|source| self.failed(source))?;
        Ok(blob)
    }

    /// Reads a blob and checks that it is the one.
    ///
    /// # Errors
    /// It is missing or damaged, or the system refuses.
    pub fn get(&self, blob: BlobRef) -> Result<Vec<u8>, BlobError> {
        let file = match self
            .volume
            .open(&self.folder.join(blob.file_name()), Links::Refuse)
        {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(BlobError::Missing {
                    blob,
                    folder: self.folder.clone(),
                });
            }
            Err(source) => return Err(self.failed(source)),
        };
        let len = file.stat().map_err(|source| self.failed(source))?.len;
        let mut bytes = vec![0; usize::try_from(len).unwrap_or(0)];
        read_exact_at(&*file, &mut bytes, 0).map_err(|source| self.failed(source))?;
        if BlobRef::of(&bytes) == blob {
            Ok(bytes)
        } else {
            Err(BlobError::Damaged {
                blob,
                folder: self.folder.clone(),
            })
        }
    }

    fn write(&self, blob: BlobRef, bytes: &[u8]) -> io::Result<()> {
        self.volume.create_folder(&self.folder)?;
        let mut staged = self.volume.stage(&self.folder, Access::Private)?;
        write_all(staged.file(), bytes)?;
        staged.file().sync()?;
        // Whoever stored it in the meantime stored the same bytes.
        publish(
            &*self.volume,
            staged,
            &self.folder.join(blob.file_name()),
            Existing::Replace,
        )
    }

    fn failed(&self, source: io::Error) -> BlobError {
        let folder = self.folder.clone();
        if is_disk_full(&source) {
            BlobError::DiskFull { folder, source }
        } else {
            BlobError::Io { folder, source }
        }
    }
}

/// Bytes as hex digits in lower case.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 0xf]);
    digits
        .filter_map(|digit| char::from_digit(u32::from(digit), 16))
        .collect()
}

fn digit(hex: u8) -> Option<u8> {
    match hex {
        b'0'..=b'9' => Some(hex - b'0'),
        b'a'..=b'f' => Some(hex - b'a' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_read_back() {
        let blob = BlobRef::of(b"");
        let text = "blob:sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(blob.to_string(), text);
        assert_eq!(BlobRef::parse(text), Some(blob));
        for other in [
            &text[..75],
            &text.replace('e', "E"),
            &text.replace("sha256", "md5"),
            "blob:sha256:../../x",
        ] {
            assert_eq!(BlobRef::parse(other), None, "{other}");
        }
    }
}

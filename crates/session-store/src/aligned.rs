//! A read buffer that starts on a page.

use std::ops::{Deref, DerefMut};

/// The page size that matters for the copy of the kernel.
const PAGE: usize = 4096;

/// Bytes that start on a page.
///
/// On some processors the kernel copies into a buffer that starts 16 bytes after a page, which is where a
/// large `Vec` starts, at a third of its speed. The buffer keeps its allocation when it is filled again.
#[derive(Debug, Default)]
pub struct AlignedBuf {
    memory: Vec<u8>,
    start: usize,
    len: usize,
}

impl AlignedBuf {
    /// An empty buffer, which allocates on first use.
    pub const fn new() -> Self {
        Self {
            memory: Vec::new(),
            start: 0,
            len: 0,
        }
    }

    /// Makes the buffer `len` bytes long. What is in it afterwards is not said.
    pub(crate) fn resize(&mut self, len: usize) -> &mut [u8] {
        if self.memory.len() < len + PAGE {
            // Fresh zeroed memory costs nothing until it is touched; growing a Vec would copy.
            self.memory = vec![0; len + PAGE];
            self.start = self.memory.as_ptr().align_offset(PAGE).min(PAGE);
        }
        self.len = len;
        self
    }

    /// The bytes as an ordinary `Vec`, moved to its front in place.
    pub(crate) fn into_vec(mut self) -> Vec<u8> {
        let end = self.start + self.len;
        if end <= self.memory.len() {
            self.memory.copy_within(self.start..end, 0);
        }
        self.memory.truncate(self.len);
        self.memory
    }
}

impl Deref for AlignedBuf {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.memory
            .get(self.start..self.start + self.len)
            .unwrap_or_default()
    }
}

impl DerefMut for AlignedBuf {
    fn deref_mut(&mut self) -> &mut [u8] {
        self.memory
            .get_mut(self.start..self.start + self.len)
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_on_a_page_and_has_the_length_asked_for() {
        let mut buffer = AlignedBuf::new();
        for len in [0, 1, 4095, 4096, 300_000, 17] {
            assert_eq!(buffer.resize(len).len(), len);
            assert_eq!(buffer.as_ptr() as usize % PAGE, 0);
        }
        buffer.copy_from_slice(b"seventeen letters");
        assert_eq!(buffer.into_vec(), b"seventeen letters");
        assert_eq!(AlignedBuf::new().into_vec(), b"");
    }
}

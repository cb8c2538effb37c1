//! The end of a file in memory, growing toward its beginning.

use std::ops::Range;

/// A buffer that is filled from its end. Each byte is moved a bounded number of times.
#[derive(Debug)]
pub(super) struct Window {
    buffer: Vec<u8>,
    /// Where the content begins in `buffer`; it reaches to the buffer's end.
    start: usize,
    /// Where the content begins in the file.
    from: u64,
}

impl Window {
    pub(super) fn new(len: u64) -> Self {
        Self {
            buffer: Vec::new(),
            start: 0,
            from: len,
        }
    }

    /// Where the content begins in the file.
    pub(super) fn from(&self) -> u64 {
        self.from
    }

    pub(super) fn is_empty(&self) -> bool {
        self.start == self.buffer.len()
    }

    /// Puts bytes before the content. They must not be more than stand before it in the file.
    pub(super) fn prepend(&mut self, bytes: &[u8]) {
        if bytes.len() > self.start {
            let content = self.buffer.len() - self.start;
            let file = usize::try_from(self.from)
                .unwrap_or(usize::MAX)
                .saturating_add(content);
            let size = (content + bytes.len()).max(content.saturating_mul(2).min(file));
            let mut buffer = vec![0; size];
            buffer[size - content..].copy_from_slice(&self.buffer[self.start..]);
            self.start = size - content;
            self.buffer = buffer;
        }
        let end = self.start;
        self.start -= bytes.len();
        self.buffer[self.start..end].copy_from_slice(bytes);
        self.from = self.from.saturating_sub(bytes.len() as u64);
    }

    /// A range of the file; what is not in the window is cut off.
    pub(super) fn slice(&self, range: Range<u64>) -> &[u8] {
        let at = |offset: u64| {
            let inside = usize::try_from(offset.saturating_sub(self.from)).unwrap_or(usize::MAX);
            self.start.saturating_add(inside).min(self.buffer.len())
        };
        self.buffer
            .get(at(range.start)..at(range.end))
            .unwrap_or_default()
    }

    /// The content from an offset of the file on.
    pub(super) fn into_bytes(mut self, from: u64) -> Vec<u8> {
        let drop = usize::try_from(from.saturating_sub(self.from)).unwrap_or(usize::MAX);
        let start = self.start.saturating_add(drop).min(self.buffer.len());
        self.buffer.drain(..start);
        self.buffer
    }
}

#[cfg(test)]
mod tests {
    use super::Window;

    #[test]
    fn content_grows_toward_the_beginning() {
        let text: Vec<u8> = (0..=255).collect();
        for step in [1_usize, 3, 64, 200, 256] {
            let mut window = Window::new(256);
            let mut end = text.len();
            while end > 0 {
                let start = end.saturating_sub(step);
                window.prepend(&text[start..end]);
                assert_eq!(window.slice(start as u64..256), &text[start..]);
                end = start;
            }
            assert_eq!(window.slice(10..20), &text[10..20]);
            assert_eq!(window.into_bytes(7), &text[7..]);
        }
    }
}

//! What a command prints: its beginning and its end are in memory, all of it, up to a limit, in a file without a name.

use std::io;

use tokio::fs::File;
use tokio::io::{AsyncReadExt as _, AsyncSeekExt as _, AsyncWriteExt as _};

use crate::tool::Spill;

use super::super::ToolName;
use super::super::cap::{Bounded, Cap, Keep, bounded, head, joined, tail};

/// Output as it comes in.
pub(super) struct Output {
    /// The beginning, up to twice of what is shown.
    head: Vec<u8>,
    /// What came after it; its own beginning is dropped now and then.
    tail: Vec<u8>,
    /// How much each of the two holds.
    room: usize,
    total: u64,
    file: Option<File>,
    /// How much the file may hold, and holds.
    most: u64,
    in_file: u64,
}

impl Output {
    pub(super) fn new(cap: Cap, most: u64) -> Self {
        Self {
            head: Vec::new(),
            tail: Vec::new(),
            room: cap.bytes.saturating_mul(2).max(4_096),
            total: 0,
            file: None,
            most,
            in_file: 0,
        }
    }

    pub(super) fn total(&self) -> u64 {
        self.total
    }

    pub(super) async fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let (first, rest) = bytes.split_at((self.room - self.head.len()).min(bytes.len()));
        self.head.extend_from_slice(first);
        self.tail.extend_from_slice(rest);
        if self.file.is_some() {
            self.keep(bytes).await;
        } else if self.tail.len() > self.room {
            self.open().await;
        }
        // Dropped in large steps, so that each byte is moved once.
        if self.tail.len() > self.room * 2 {
            self.tail.drain(..self.tail.len() - self.room);
        }
    }

    /// Begins the file with what is still all in memory.
    async fn open(&mut self) {
        let opened = tokio::task::spawn_blocking(tempfile::tempfile).await;
        let Ok(Ok(file)) = opened else { return };
        self.file = Some(File::from_std(file));
        let so_far = [self.head.as_slice(), self.tail.as_slice()].concat();
        self.keep(&so_far).await;
    }

    async fn keep(&mut self, bytes: &[u8]) {
        let room = self.most.saturating_sub(self.in_file);
        let part = &bytes[..usize::try_from(room).unwrap_or(usize::MAX).min(bytes.len())];
        let Some(file) = &mut self.file else { return };
        match file.write_all(part).await {
            Ok(()) => self.in_file += part.len() as u64,
            // A full disk: what is in memory is still told.
            Err(_) => self.most = self.in_file,
        }
    }

    /// The output as an answer.
    pub(super) async fn told(mut self, cap: Cap, spill: &dyn Spill) -> Bounded {
        let in_memory = (self.head.len() + self.tail.len()) as u64;
        if in_memory == self.total {
            let mut all = std::mem::take(&mut self.head);
            all.append(&mut self.tail);
            return bounded(text(&all), ToolName::Bash.name(), cap, Keep::HeadAndTail, spill);
        }
        let artifact = match self.all_in_file().await {
            Ok(all) if !all.is_empty() => spill.spill(ToolName::Bash.name(), &text(&all)),
            _ => None,
        };
        let (first, last) = (text(&self.head), text(&self.tail));
        let quarter = Cap {
            bytes: cap.bytes / 4,
            lines: cap.lines / 4,
        };
        let rest = Cap {
            bytes: cap.bytes - quarter.bytes,
            lines: cap.lines - quarter.lines,
        };
        let first = &first[..head(&first, quarter)];
        let last = &last[tail(&last, rest)..];
        let shown = (first.len() + last.len()) as u64;
        let left_out = usize::try_from(self.total.saturating_sub(shown)).unwrap_or(usize::MAX);
        let mut all = joined(first, last, left_out, None, artifact.as_deref());
        if artifact.is_some() && self.in_file < self.total {
            all.push_str(&format!(
                "\n[the artifact holds the first {} bytes only]",
                self.in_file
            ));
        }
        Bounded {
            text: all,
            truncated: true,
            artifact,
        }
    }

    async fn all_in_file(&mut self) -> io::Result<Vec<u8>> {
        let mut all = Vec::new();
        if let Some(file) = &mut self.file {
            file.flush().await?;
            file.rewind().await?;
            file.read_to_end(&mut all).await?;
        }
        Ok(all)
    }
}

/// Bytes as text that a model can be sent.
pub(super) fn text(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    if text.contains('\0') {
        text.replace('\0', "\u{FFFD}")
    } else {
        text.into_owned()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[derive(Default)]
    struct Kept(Mutex<String>);

    impl Spill for Kept {
        fn spill(&self, _: &str, text: &str) -> Option<String> {
            *self.0.lock().ok()? = text.to_owned();
            Some("artifact://1".to_owned())
        }
    }

    const CAP: Cap = Cap {
        bytes: 400,
        lines: 20,
    };

    #[tokio::test]
    async fn much_output_keeps_its_ends_and_all_of_it_is_stored() {
        let (mut output, kept) = (Output::new(CAP, 1 << 20), Kept::default());
        let mut all = String::new();
        for line in 0..10_000 {
            let line = format!("line {line}\n");
            output.push(line.as_bytes()).await;
            all.push_str(&line);
        }
        assert!(output.tail.len() <= output.room * 2);
        let told = output.told(CAP, &kept).await;
        assert!(told.text.starts_with("line 0\nline 1\n"), "{}", told.text);
        assert!(told.text.ends_with("line 9998\nline 9999\n"), "{}", told.text);
        assert!(
            told.text.contains("bytes left out; all of it: artifact://1]"),
            "{}",
            told.text
        );
        assert_eq!(*kept.0.lock().unwrap(), all);
    }

    #[tokio::test]
    async fn what_is_stored_has_a_limit() {
        let (mut output, kept) = (Output::new(CAP, 10_000), Kept::default());
        for _ in 0..100 {
            output.push(&[b'x'; 1_000]).await;
        }
        let told = output.told(CAP, &kept).await;
        assert!(
            told.text
                .ends_with("[the artifact holds the first 10000 bytes only]"),
            "{}",
            told.text
        );
        assert_eq!(kept.0.lock().unwrap().len(), 10_000);
    }

    #[tokio::test]
    async fn little_output_is_told_whole() {
        let (mut output, kept) = (Output::new(CAP, 10_000), Kept::default());
        output.push(b"caf\xc3").await;
        output.push(b"\xa9 \xff\0\n").await;
        let told = output.told(CAP, &kept).await;
        assert_eq!(
            (told.text.as_str(), told.truncated),
            ("café \u{FFFD}\u{FFFD}\n", false)
        );
    }
}

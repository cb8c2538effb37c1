//! What a file holds, by its first bytes.

/// What a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    /// A picture that models take, with its MIME type.
    Image(&'static str),
    /// Anything else, in words.
    Binary(&'static str),
}

/// How many bytes at the beginning tell.
pub(super) const HEAD: usize = 8 * 1024;

const IMAGES: [(&[u8], &str); 4] = [
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
];

const BINARIES: [(&[u8], &str); 15] = [
    (b"\x7fELF", "an ELF program or library"),
    (b"%PDF-", "a PDF document"),
    (b"PK\x03\x04", "a ZIP archive or a document in one"),
    (b"PK\x05\x06", "an empty ZIP archive"),
    (b"\x1f\x8b", "gzip data"),
    (b"BZh", "bzip2 data"),
    (b"\xfd7zXZ\x00", "xz data"),
    (b"\x28\xb5\x2f\xfd", "zstd data"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"SQLite format 3\0", "an SQLite database"),
    (b"\0asm", "a WebAssembly module"),
    (b"\xca\xfe\xba\xbe", "Java classes or a Mach-O program"),
    (b"\xcf\xfa\xed\xfe", "a Mach-O program or library"),
    (b"\xff\xfe", "UTF-16 text"),
    (b"\xfe\xff", "UTF-16 text"),
];

/// The kind of a file that begins with these bytes, the first [`HEAD`] of it.
pub(super) fn of(head: &[u8]) -> Kind {
    if let Some((_, mime)) = IMAGES.iter().find(|(magic, _)| head.starts_with(magic)) {
        return Kind::Image(mime);
    }
    if head.starts_with(b"RIFF") && head.get(8..12) == Some(b"WEBP") {
        return Kind::Image("image/webp");
    }
    // A text may begin like some of these by chance; only with a byte that no text has is it believed.
    let is_text = std::str::from_utf8(head).is_ok_and(|text| !text.contains('\0'));
    let known = BINARIES.iter().find(|(magic, _)| head.starts_with(magic));
    match known {
        Some((_, name)) if !is_text || *name == "a PDF document" => Kind::Binary(name),
        _ if memchr::memchr(0, head).is_some() => Kind::Binary("binary data"),
        _ => Kind::Text,
    }
}

#[cfg(test)]
mod tests {
    use super::{Kind, of};

    #[test]
    fn first_bytes_tell() {
        for (head, kind) in [
            (&b"fn main() {}"[..], Kind::Text),
            (b"", Kind::Text),
            (b"caf\xe9 in Latin-1", Kind::Text),
            (b"BZh is how bzip2 begins", Kind::Text),
            (b"GIF89a\x01\x00", Kind::Image("image/gif")),
            (b"RIFF\x10\0\0\0WEBPVP8 ", Kind::Image("image/webp")),
            (b"RIFF\x10\0\0\0WAVEfmt ", Kind::Binary("binary data")),
            (b"\x1f\x8b\x08\x00", Kind::Binary("gzip data")),
            (b"\xff\xfea\0", Kind::Binary("UTF-16 text")),
            (b"%PDF-1.7\n", Kind::Binary("a PDF document")),
        ] {
            assert_eq!(of(head), kind, "{head:?}");
        }
    }
}

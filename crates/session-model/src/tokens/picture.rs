//! What a picture costs: by its size in pixels where its first bytes tell it, never by the length of its encoding
//! (R16).

use super::IMAGE_TOKENS;
use crate::Tokens;
use crate::message::{Block, Content};

/// Providers charge about a token for so many pixels.
const PIXELS_PER_TOKEN: u64 = 750;
/// Larger pictures are scaled down before a model sees them, to about this much.
const MOST_TOKENS: u64 = 1_600;
/// More segments of a JPEG than this before the one that holds its size are not looked at.
const MOST_SEGMENTS: usize = 64;

/// The size of a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PixelSize {
    /// Its width in pixels.
    pub width: u32,
    /// Its height in pixels.
    pub height: u32,
}

impl PixelSize {
    /// Reads the size from the base64 of a PNG, GIF, JPEG or WebP file. Looks at no more than a few bytes of it.
    pub fn of_base64(data: &str) -> Option<Self> {
        let bytes = Base64(data.as_bytes());
        let size = png(bytes)
            .or_else(|| gif(bytes))
            .or_else(|| webp(bytes))
            .or_else(|| jpeg(bytes))?;
        (size.width > 0 && size.height > 0).then_some(size)
    }

    /// The estimate for a picture of this size.
    pub fn tokens(self) -> Tokens {
        let pixels = u64::from(self.width) * u64::from(self.height);
        Tokens(pixels.div_ceil(PIXELS_PER_TOKEN).min(MOST_TOKENS))
    }
}

impl std::fmt::Display for PixelSize {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}x{}", self.width, self.height)
    }
}

/// The estimate for the pictures of some content.
pub(super) fn of_content(content: &Content<'_>) -> Tokens {
    content.blocks().iter().map(of_block).sum()
}

/// The estimate for a block if it is a picture; nothing for others.
pub(super) fn of_block(block: &Block<'_>) -> Tokens {
    match block {
        Block::Image { data, .. } => of_data(data),
        _ => Tokens::ZERO,
    }
}

/// The estimate for a picture in base64.
pub(super) fn of_data(data: &str) -> Tokens {
    PixelSize::of_base64(data).map_or(IMAGE_TOKENS, PixelSize::tokens)
}

/// Base64 of which single bytes are decoded where they are needed.
#[derive(Clone, Copy)]
struct Base64<'d>(&'d [u8]);

impl Base64<'_> {
    fn at(self, index: usize) -> Option<u8> {
        let first = index / 3 * 4 + index % 3;
        let (high, low) = (sextet(*self.0.get(first)?)?, sextet(*self.0.get(first + 1)?)?);
        // The bits of a byte lie in two neighbouring characters.
        let shift = 2 * (index % 3 + 1);
        Some((high << shift) | (low >> (6 - shift)))
    }

    fn is(self, from: usize, expected: &[u8]) -> bool {
        (from..)
            .zip(expected)
            .all(|(at, byte)| self.at(at) == Some(*byte))
    }

    /// A number of `len` bytes, the highest first.
    fn big(self, from: usize, len: usize) -> Option<u32> {
        (from..from + len).try_fold(0_u32, |sum, at| Some(sum << 8 | u32::from(self.at(at)?)))
    }

    /// A number of `len` bytes, the lowest first.
    fn little(self, from: usize, len: usize) -> Option<u32> {
        (from..from + len)
            .rev()
            .try_fold(0_u32, |sum, at| Some(sum << 8 | u32::from(self.at(at)?)))
    }
}

const fn sextet(byte: u8) -> Option<u8> {
    Some(match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' | b'-' => 62,
        b'/' | b'_' => 63,
        _ => return None,
    })
}

fn png(bytes: Base64<'_>) -> Option<PixelSize> {
    if !bytes.is(0, b"\x89PNG\r\n\x1a\n") || !bytes.is(12, b"IHDR") {
        return None;
    }
    Some(PixelSize {
        width: bytes.big(16, 4)?,
        height: bytes.big(20, 4)?,
    })
}

fn gif(bytes: Base64<'_>) -> Option<PixelSize> {
    if !bytes.is(0, b"GIF8") {
        return None;
    }
    Some(PixelSize {
        width: bytes.little(6, 2)?,
        height: bytes.little(8, 2)?,
    })
}

fn webp(bytes: Base64<'_>) -> Option<PixelSize> {
    if !bytes.is(0, b"RIFF") || !bytes.is(8, b"WEBP") {
        return None;
    }
    let (width, height) = if bytes.is(12, b"VP8 ") {
        (bytes.little(26, 2)? & 0x3FFF, bytes.little(28, 2)? & 0x3FFF)
    } else if bytes.is(12, b"VP8L") {
        let bits = bytes.little(21, 4)?;
        ((bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1)
    } else if bytes.is(12, b"VP8X") {
        (bytes.little(24, 3)? + 1, bytes.little(27, 3)? + 1)
    } else {
        return None;
    };
    Some(PixelSize { width, height })
}

/// The size stands in the first segment that describes a frame.
fn jpeg(bytes: Base64<'_>) -> Option<PixelSize> {
    if !bytes.is(0, b"\xFF\xD8") {
        return None;
    }
    let mut at = 2;
    for _ in 0..MOST_SEGMENTS {
        if bytes.at(at)? != 0xFF {
            return None;
        }
        match bytes.at(at + 1)? {
            // Filling.
            0xFF => at += 1,
            // Markers without a segment.
            0x01 | 0xD0..=0xD8 => at += 2,
            0xC0..=0xC3 | 0xC5..=0xC7 | 0xC9..=0xCB | 0xCD..=0xCF => {
                return Some(PixelSize {
                    height: bytes.big(at + 5, 2)?,
                    width: bytes.big(at + 7, 2)?,
                });
            }
            _ => at += 2 + bytes.big(at + 2, 2)? as usize,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Plain base64, to make pictures with.
    fn base64(bytes: &[u8]) -> String {
        const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let mut text = String::new();
        for three in bytes.chunks(3) {
            let bits = three.iter().fold(0_u32, |sum, b| sum << 8 | u32::from(*b)) << (8 * (3 - three.len()));
            for i in 0..4 {
                text.push(if i <= three.len() {
                    char::from(LETTERS[(bits >> (18 - 6 * i) & 63) as usize])
                } else {
                    '='
                });
            }
        }
        text
    }

    fn size(bytes: &[u8]) -> Option<(u32, u32)> {
        PixelSize::of_base64(&base64(bytes)).map(|size| (size.width, size.height))
    }

    fn png(width: u32, height: u32) -> Vec<u8> {
        let mut file = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
        file.extend(width.to_be_bytes());
        file.extend(height.to_be_bytes());
        file
    }

    #[test]
    fn the_first_bytes_of_each_format_tell_the_size() {
        assert_eq!(size(&png(2044, 990)), Some((2044, 990)));
        assert_eq!(size(b"GIF89a\x20\x03\x58\x02\0"), Some((800, 600)));
        let jpeg = [
            b"\xFF\xD8\xFF\xE0\x00\x04ab\xFF\xFF\xC2\x00\x11\x08".as_slice(),
            &[0x03, 0xDE, 0x07, 0xFC, 3],
        ]
        .concat();
        assert_eq!(size(&jpeg), Some((2044, 990)));
        let webp = |rest: &[u8]| [b"RIFF\0\0\0\0WEBP".as_slice(), rest].concat();
        assert_eq!(
            size(&webp(b"VP8 \0\0\0\0\0\0\0\x9d\x01\x2a\x20\x03\x58\x02")),
            Some((800, 600))
        );
        assert_eq!(
            size(&webp(b"VP8X\0\0\0\0\0\0\0\0\x1f\x03\0\x57\x02\0")),
            Some((800, 600))
        );
        let (width, height) = (799_u32, 599_u32);
        let bits = (width | height << 14).to_le_bytes();
        assert_eq!(
            size(&webp(&[b"VP8L\0\0\0\0\x2f".as_slice(), &bits].concat())),
            Some((800, 600))
        );
    }

    #[test]
    fn what_is_cut_empty_or_no_picture_has_no_size() {
        assert_eq!(size(&png(0, 5)), None);
        assert_eq!(size(&png(5, 5)[..20]), None);
        assert_eq!(size(b"\xFF\xD8\xFF\xE0\x00\x00\xFF\xE0\x00\x00"), None);
        for data in ["", "AAAA", "blob:sha256:00", "iVBORw0KGgo=", "\u{e9}"] {
            assert_eq!(PixelSize::of_base64(data), None, "{data}");
        }
    }

    #[test]
    fn tokens_follow_the_pixels_up_to_a_cap() {
        let tokens = |width, height| PixelSize { width, height }.tokens().get();
        assert_eq!(tokens(750, 100), 100);
        assert_eq!(tokens(1, 1), 1);
        assert_eq!(tokens(2044, 990), 1_600);
        assert_eq!(tokens(u32::MAX, u32::MAX), 1_600);
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(data in ".{0,200}", bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            PixelSize::of_base64(&data);
            for start in [b"\xFF\xD8".as_slice(), b"GIF89a", b"RIFF\0\0\0\0WEBPVP8X"] {
                size(&[start, &bytes].concat());
            }
        }
    }
}

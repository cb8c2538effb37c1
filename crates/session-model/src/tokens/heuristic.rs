//! The estimate by script (spec "Pruning", 2): a CJK character or a supplementary one costs a token, four other
//! UTF-16 units cost one.

use super::TokenCounter;
use super::fragments::each_fragment;
use crate::Tokens;
use crate::message::Message;

/// The default estimator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Heuristic;

/// Dense characters, and UTF-16 units of all others.
#[derive(Clone, Copy, Default)]
struct Count {
    dense: u64,
    other: u64,
}

impl Count {
    /// Counts by blocks, so that the compiler can use wide instructions: what a character costs follows from its
    /// first byte, except for the few first bytes whose range holds characters of both kinds.
    fn add(&mut self, text: &str) {
        if text.is_ascii() {
            self.other += text.len() as u64;
            return;
        }
        let bytes = text.as_bytes();
        let mut characters = 0_u64;
        let dense_before = self.dense;
        for (block, chunk) in bytes.chunks(BLOCK).enumerate() {
            if chunk.is_ascii() {
                characters += chunk.len() as u64;
                continue;
            }
            let (mut first, mut dense, mut mixed) = (0_u8, 0_u8, 0_u8);
            for &b in chunk {
                first += u8::from(!(0x80..0xC0).contains(&b));
                dense += u8::from(matches!(b, 0xE5..=0xE9 | 0xEB | 0xEC | 0xF0..));
                mixed += u8::from(is_mixed(b));
            }
            characters += u64::from(first);
            self.dense += u64::from(dense);
            if mixed > 0 {
                for (at, &b) in chunk.iter().enumerate() {
                    if is_mixed(b) {
                        self.dense += u64::from(is_dense_sequence(bytes, block * BLOCK + at));
                    }
                }
            }
        }
        self.other += characters - (self.dense - dense_before);
    }

    /// One rounding up, over everything that was added.
    fn tokens(self) -> Tokens {
        Tokens(self.dense + self.other.div_ceil(4))
    }
}

/// At most 255, because a block is counted in bytes.
const BLOCK: usize = 128;

/// Whether some but not all characters with this first byte are dense.
const fn is_mixed(b: u8) -> bool {
    matches!(b, 0xE1 | 0xE3 | 0xE4 | 0xEA | 0xED | 0xEF)
}

/// Whether the three-byte character at this place is dense.
fn is_dense_sequence(text: &[u8], at: usize) -> bool {
    let [a, b, c] = [0, 1, 2].map(|i| u32::from(text.get(at + i).copied().unwrap_or(0)));
    char::from_u32((a & 0x0F) << 12 | (b & 0x3F) << 6 | (c & 0x3F)).is_some_and(is_dense)
}

const fn is_dense(c: char) -> bool {
    matches!(c,
        '\u{1100}'..='\u{11FF}' | '\u{3000}'..='\u{30FF}' | '\u{3130}'..='\u{318F}' | '\u{3400}'..='\u{4DBF}'
        | '\u{4E00}'..='\u{9FFF}' | '\u{AC00}'..='\u{D7AF}' | '\u{F900}'..='\u{FAFF}' | '\u{FF00}'..='\u{FFEF}'
        | '\u{10000}'..)
}

impl TokenCounter for Heuristic {
    fn text(&self, fragments: &mut dyn Iterator<Item = &str>) -> Tokens {
        let mut count = Count::default();
        for fragment in fragments {
            count.add(fragment);
        }
        count.tokens()
    }

    fn message(&self, message: &Message<'_>) -> Tokens {
        let mut count = Count::default();
        let extra = each_fragment(message, &mut |text| count.add(text));
        count.tokens() + extra
    }
}

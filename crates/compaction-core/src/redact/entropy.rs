//! Whether a value looks drawn at random.

/// A further look at what a pattern found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// The shape suffices.
    Shape,
    /// The value must look drawn at random: names, paths and placeholders do not.
    Random,
    /// The value must not be a placeholder or a reference to a variable.
    Literal,
}

/// Bits per character from which a value counts as random.
const LEAST_BITS: f64 = 3.2;

impl Check {
    pub(super) fn accepts(self, value: &str) -> bool {
        match self {
            Self::Shape => true,
            Self::Random => {
                is_literal(value) && bits_per_char(value) >= LEAST_BITS && has_digits_and_letters(value)
            }
            Self::Literal => is_literal(value),
        }
    }
}

fn is_literal(value: &str) -> bool {
    let plain = value.trim_matches(['"', '\'', '`', ' ']);
    let starts = plain.starts_with(['$', '<', '{', '%', '*']) || plain.starts_with("process.env");
    let stands_in = [
        "xxxx",
        "example",
        "placeholder",
        "changeme",
        "redacted",
        "your_",
        "your-",
    ];
    let lower = plain.to_ascii_lowercase();
    !starts && !plain.is_empty() && !stands_in.iter().any(|word| lower.contains(word))
}

fn has_digits_and_letters(value: &str) -> bool {
    value.bytes().any(|b| b.is_ascii_digit()) && value.bytes().any(|b| b.is_ascii_alphabetic())
}

/// Shannon entropy of the bytes.
fn bits_per_char(value: &str) -> f64 {
    let mut counts = [0_u32; 256];
    for byte in value.bytes() {
        if let Some(count) = counts.get_mut(usize::from(byte)) {
            *count += 1;
        }
    }
    let all = value.len() as f64;
    counts
        .iter()
        .filter(|count| **count > 0)
        .map(|count| {
            let share = f64::from(*count) / all;
            -share * share.log2()
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_values_are_told_from_names_and_placeholders() {
        for random in ["q8Zr4TnW0xLp2VbK7sYd", "9f86d081884c7d659a2feaa0c55ad015"] {
            assert!(Check::Random.accepts(random), "{random}");
        }
        for plain in [
            "aaaaaaaaaaaaaaaaaaaaaaaa",
            "your-api-key-goes-here1",
            "${API_TOKEN_FROM_ENV_1}",
            "compactionSettingsDefaults",
            "xxxxxxxxxxxxxxxx1234abcd",
        ] {
            assert!(!Check::Random.accepts(plain), "{plain}");
        }
    }
}

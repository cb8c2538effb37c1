//! Exact counts with the vocabularies of OpenAI models (feature `bpe`).

use tiktoken_rs::CoreBPE;

use super::TokenCounter;
use super::fragments::each_fragment;
use crate::Tokens;
use crate::message::Message;

/// A vocabulary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Vocabulary {
    /// Models since GPT-4o.
    O200k,
    /// GPT-4 and GPT-3.5.
    Cl100k,
}

/// Counts tokens as a model of this vocabulary does. The vocabularies are part of the program and are unpacked once.
#[derive(Clone, Copy)]
pub struct Bpe {
    vocabulary: Vocabulary,
    bpe: &'static CoreBPE,
}

impl Bpe {
    /// A counter.
    pub fn new(vocabulary: Vocabulary) -> Self {
        let bpe = match vocabulary {
            Vocabulary::O200k => tiktoken_rs::o200k_base_singleton(),
            Vocabulary::Cl100k => tiktoken_rs::cl100k_base_singleton(),
        };
        Self { vocabulary, bpe }
    }

    fn count(&self, text: &str) -> Tokens {
        Tokens(self.bpe.encode_ordinary(text).len() as u64)
    }
}

impl std::fmt::Debug for Bpe {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Bpe").field(&self.vocabulary).finish()
    }
}

impl TokenCounter for Bpe {
    fn text(&self, fragments: &mut dyn Iterator<Item = &str>) -> Tokens {
        fragments.map(|text| self.count(text)).sum()
    }

    fn message(&self, message: &Message<'_>) -> Tokens {
        let mut sum = Tokens::ZERO;
        let extra = each_fragment(message, &mut |text| sum += self.count(text));
        sum + extra
    }
}

#[cfg(test)]
mod tests {
    use super::{Bpe, Vocabulary};
    use crate::tokens::TokenCounter as _;

    /// Numbers that the vocabularies' publisher gives.
    #[test]
    fn exact_counts() {
        for (text, o200k, cl100k) in [("", 0, 0), ("hello world", 2, 2), ("tiktoken is great!", 6, 6)] {
            assert_eq!(Bpe::new(Vocabulary::O200k).one(text).get(), o200k, "{text}");
            assert_eq!(Bpe::new(Vocabulary::Cl100k).one(text).get(), cl100k, "{text}");
        }
    }
}

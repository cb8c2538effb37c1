//! Text that does not fit loses its middle (spec "Compaction core", 9.5).

use foldline_session_model::Tokens;
use foldline_session_model::tokens::TokenCounter;

use crate::text::{head, tail, units};

/// What stands where text was left out: the number of UTF-16 units goes between the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Elision {
    /// Before the number.
    pub before: &'static str,
    /// After it.
    pub after: &'static str,
}

impl Elision {
    /// For the transcript of a request.
    pub const TRANSCRIPT: Self = Self {
        before: "\n\n[... ",
        after: " characters of older conversation elided so this summarization request fits the model's context window ...]\n\n",
    };
    /// For a stored text.
    pub const STORED: Self = Self {
        before: "\n\n[... ",
        after: " characters left out ...]\n\n",
    };

    fn text(self, elided: usize) -> String {
        format!("{}{elided}{}", self.before, self.after)
    }
}

/// At most `budget` tokens of a text: 35 % from its head, the rest from its tail. With the number of units left out;
/// the text is empty if not even the note fits.
pub fn bounded(text: &str, budget: Tokens, elision: Elision, counter: &dyn TokenCounter) -> (String, usize) {
    let size = counter.one(text);
    if size <= budget {
        return (text.to_owned(), 0);
    }
    let length = units(text);
    let note = counter.one(&elision.text(length));
    // The note is part of the budget (CD19).
    let room = budget.saturating_sub(note);
    let mut keep = share(length, room, size);
    for _ in 0..12 {
        if keep == 0 {
            break;
        }
        let head = head(text, keep * 35 / 100);
        let tail = tail(text, keep - keep * 35 / 100);
        let elided = length - units(head) - units(tail);
        let candidate = format!("{head}{}{tail}", elision.text(elided));
        if counter.one(&candidate) <= budget {
            return (candidate, elided);
        }
        keep = keep * 4 / 5;
    }
    let bare = elision.text(length);
    if counter.one(&bare) <= budget {
        (bare, length)
    } else {
        (String::new(), length)
    }
}

/// `length × part ÷ whole`.
fn share(length: usize, part: Tokens, whole: Tokens) -> usize {
    let share = length as u128 * u128::from(part.get()) / u128::from(whole.get().max(1));
    usize::try_from(share).unwrap_or(length).min(length)
}

#[cfg(test)]
mod tests {
    use foldline_session_model::tokens::Heuristic;

    use super::*;

    #[test]
    fn text_is_cut_to_the_budget_whatever_its_script() {
        let ascii = "a".repeat(400_000);
        let hangul = "한".repeat(120_000);
        for (text, budget) in [(&ascii, 8_942), (&ascii, 62), (&hangul, 8_942), (&hangul, 100)] {
            let (cut, elided) = bounded(text, Tokens(budget), Elision::TRANSCRIPT, &Heuristic);
            assert!(Heuristic.one(&cut) <= Tokens(budget));
            // Most of the budget is used.
            assert!(
                Heuristic.one(&cut).get() * 10 >= budget * 7,
                "{budget}: {}",
                Heuristic.one(&cut)
            );
            assert!(cut.contains(&format!("{elided} characters of older conversation elided")));
        }
    }

    #[test]
    fn what_fits_stays_and_where_nothing_fits_nothing_is_left() {
        let note = Elision::TRANSCRIPT;
        assert_eq!(bounded("abc", Tokens(1), note, &Heuristic), ("abc".to_owned(), 0));
        assert_eq!(
            bounded("abcdefgh", Tokens(1), note, &Heuristic),
            (String::new(), 8)
        );
        assert_eq!(bounded("", Tokens(0), note, &Heuristic), (String::new(), 0));
    }
}

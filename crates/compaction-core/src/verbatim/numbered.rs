//! The lines of a region with their numbers, as a planner model sees them (spec "Verbatim", section 7).

use std::fmt::Write as _;

use super::line::Region;

impl Region<'_> {
    /// The lines as `N→text`, joined by newlines; N counts from 1.
    pub fn numbered(&self) -> String {
        // Three digits and the arrow are what most lines need.
        let mut out = String::with_capacity(self.text().len() + self.line_count() * 7);
        for index in 0..self.line_count() {
            if index > 0 {
                out.push('\n');
            }
            // Writing to a String cannot fail.
            let _ = write!(out, "{}→{}", index + 1, self.text_at(index));
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::Region;

    #[test]
    fn every_line_has_its_number() {
        let region = Region::guessed_from_text("[User]: a\n\nb").unwrap();
        assert_eq!(region.numbered(), "1→[User]: a\n2→\n3→b");
    }
}

//! A summary as headings with items: joining parts, and leaving out the oldest items when it grows too long (R13).

use foldline_session_model::Tokens;
use foldline_session_model::tokens::TokenCounter;

use super::bound::{Elision, bounded};

/// A summary by headings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Sections {
    list: Vec<Section>,
}

/// A heading and what stands below it, up to the next heading of any level.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Section {
    /// The line of the heading; empty for text before the first one.
    heading: String,
    /// Earlier items that were left out, over all compactions.
    left_out: usize,
    /// List items and paragraphs, oldest first; each with its continuation lines.
    items: Vec<String>,
}

/// Headings whose oldest items go first, in this order; then those of all other sections.
const LEAST_NEEDED: [&str; 3] = ["done", "additional notes", "early progress"];
/// Headings whose items go last.
const MOST_NEEDED: [&str; 3] = ["goal", "constraints & preferences", "original request"];
/// Without one of each list a summary is not whole.
const REQUIRED: [&[&str]; 2] = [
    &["goal", "original request"],
    &["progress", "early progress", "next steps"],
];

impl Sections {
    pub(super) fn parse(text: &str) -> Self {
        let mut list = vec![Section::default()];
        let mut fence = false;
        let mut open = false;
        for line in text.lines() {
            if line.trim_start().starts_with("```") {
                fence = !fence;
            }
            if !fence && is_heading(line) {
                list.push(Section {
                    heading: line.trim_end().to_owned(),
                    ..Section::default()
                });
                open = false;
                continue;
            }
            let Some(section) = list.last_mut() else { continue };
            if let Some(count) = left_out(line) {
                section.left_out += count;
                continue;
            }
            if line.trim().is_empty() && !fence {
                open = false;
                continue;
            }
            match section.items.last_mut() {
                // Nested items, code, and the lines of a paragraph.
                Some(item) if open && (fence || !is_item(line)) => {
                    item.push('\n');
                    item.push_str(line.trim_end());
                }
                _ => section.items.push(line.trim_end().to_owned()),
            }
            open = true;
        }
        list.retain(|s| !s.heading.is_empty() || !s.items.is_empty() || s.left_out > 0);
        Self { list }
    }

    /// Whether the sections are there without which a summary that was cut off is worth nothing.
    pub(super) fn are_whole(&self) -> bool {
        REQUIRED.iter().all(|names| {
            self.list
                .iter()
                .any(|s| names.iter().any(|name| s.name() == *name))
        })
    }

    /// Adds the items of a later part below the same headings. What is there already is not repeated.
    pub(super) fn append(&mut self, later: Self) {
        for section in later.list {
            match self.list.iter_mut().find(|s| s.name() == section.name()) {
                Some(same) => {
                    same.left_out += section.left_out;
                    for item in section.items {
                        if !same.items.contains(&item) {
                            same.items.push(item);
                        }
                    }
                }
                None => self.list.push(section),
            }
        }
    }

    /// Removes the items of a section that match, and gives them. An emptied section stays until [`arrange`](Self::arrange).
    pub(super) fn take(&mut self, name: &str, matches: impl Fn(&str) -> bool) -> Vec<String> {
        let mut taken = Vec::new();
        for section in self.list.iter_mut().filter(|s| s.name() == name) {
            let (out, left) = std::mem::take(&mut section.items)
                .into_iter()
                .partition(|item| matches(item));
            section.items = left;
            taken.extend::<Vec<String>>(out);
        }
        taken
    }

    /// Appends to the heading of a section.
    pub(super) fn rename(&mut self, name: &str, suffix: &str) {
        for section in self.list.iter_mut().filter(|s| s.name() == name) {
            section.heading.push_str(suffix);
        }
    }

    /// Puts the sections with these names into this order, after what comes first and before all others. Those that
    /// hold nothing go, except for the heading of the progress, which stands alone.
    pub(super) fn arrange(&mut self, order: &[&str]) {
        self.list
            .retain(|s| !s.items.is_empty() || s.left_out > 0 || s.name() == "progress" || s.level() == 1);
        // Text before the headings, and a title.
        let start = self.list.iter().take_while(|s| s.level() < 2).count();
        if let Some(rest) = self.list.get_mut(start..) {
            rest.sort_by_cached_key(|s| {
                order
                    .iter()
                    .position(|name| *name == s.name())
                    .unwrap_or(order.len())
            });
        }
    }

    /// Leaves out oldest items until the text has at most `cap` tokens. Gives how many went.
    pub(super) fn shorten(&mut self, cap: Tokens, counter: &dyn TokenCounter) -> usize {
        let mut size = counter.one(&self.text());
        let mut went = 0;
        for rank in 0..=LEAST_NEEDED.len() + 1 {
            while size > cap {
                // A section keeps its newest item, until the last round.
                let keep = usize::from(rank <= LEAST_NEEDED.len());
                let Some(section) = self
                    .list
                    .iter_mut()
                    .filter(|s| s.rank() <= rank && s.items.len() > keep)
                    .min_by_key(|s| (s.rank(), std::cmp::Reverse(s.items.len())))
                else {
                    break;
                };
                // Enough of them at once, so that many small items do not cost a pass each.
                let mut freed = Tokens::ZERO;
                let mut count = 0;
                for item in section.items.iter().take(section.items.len() - keep) {
                    freed += counter.one(item);
                    count += 1;
                    if freed > size.saturating_sub(cap) {
                        break;
                    }
                }
                section.items.drain(..count);
                section.left_out += count;
                went += count;
                size = counter.one(&self.text());
            }
        }
        went
    }

    pub(super) fn text(&self) -> String {
        let mut out = String::new();
        let mut last_heading = "";
        for section in &self.list {
            if !out.is_empty() {
                // A heading right below another one.
                out.push_str(if out.ends_with(last_heading) && !last_heading.is_empty() {
                    "\n"
                } else {
                    "\n\n"
                });
            }
            out.push_str(&section.heading);
            last_heading = if section.items.is_empty() && section.left_out == 0 {
                &section.heading
            } else {
                ""
            };
            if section.left_out > 0 {
                new_line(&mut out);
                out.push_str(&format!("- ({} earlier items left out)", section.left_out));
            }
            let mut before: Option<&str> = None;
            for item in &section.items {
                new_line(&mut out);
                // Paragraphs stay apart, list items stay together.
                if before.is_some_and(|b| !is_item(b) || !is_item(item)) {
                    out.push('\n');
                }
                out.push_str(item);
                before = Some(item);
            }
        }
        out
    }
}

fn new_line(out: &mut String) {
    if !out.is_empty() && !out.ends_with('\n') {
        out.push('\n');
    }
}

impl Section {
    /// How many marks the heading has; 0 without one.
    fn level(&self) -> usize {
        self.heading.bytes().take_while(|b| *b == b'#').count()
    }

    fn name(&self) -> String {
        let name = self.heading.trim_start_matches('#').trim();
        name.trim_matches(['*', ':']).to_lowercase()
    }

    /// When its items go: 0 first.
    fn rank(&self) -> usize {
        let name = self.name();
        if let Some(rank) = LEAST_NEEDED.iter().position(|n| *n == name) {
            rank
        } else if MOST_NEEDED.contains(&name.as_str()) {
            LEAST_NEEDED.len() + 1
        } else {
            LEAST_NEEDED.len()
        }
    }
}

/// At most `cap` tokens of a summary: first without its oldest items, then without its middle. Gives the text and how
/// many items went.
pub(super) fn capped(text: &str, cap: Tokens, counter: &dyn TokenCounter) -> (String, usize) {
    if counter.one(text) <= cap {
        return (text.to_owned(), 0);
    }
    let mut sections = Sections::parse(&without_notes(text));
    let went = sections.shorten(cap, counter);
    let shorter = sections.text();
    let (cut, elided) = bounded(&shorter, cap, Elision::STORED, counter);
    (cut, went + usize::from(elided > 0))
}

/// The text without the notes of earlier cuts, so that they do not pile up.
fn without_notes(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        let is_note = line
            .strip_prefix(Elision::STORED.before.trim_start())
            .and_then(|rest| rest.strip_suffix(Elision::STORED.after.trim_end()))
            .is_some_and(|count| count.bytes().all(|b| b.is_ascii_digit()));
        if !is_note {
            out.push_str(line);
            out.push('\n');
        }
    }
    out
}

fn is_heading(line: &str) -> bool {
    let hashes = line.bytes().take_while(|b| *b == b'#').count();
    (1..=4).contains(&hashes) && line.as_bytes().get(hashes) == Some(&b' ')
}

/// A list item at the left edge.
fn is_item(line: &str) -> bool {
    let numbered = line
        .split_once(". ")
        .is_some_and(|(n, _)| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
    line.starts_with("- ") || line.starts_with("* ") || numbered
}

fn left_out(line: &str) -> Option<usize> {
    line.trim()
        .strip_prefix("- (")?
        .strip_suffix(" earlier items left out)")?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use foldline_session_model::tokens::Heuristic;

    use super::*;

    const NOTES: &str = "## Goal\nFix it.\n\n## Progress\n### Done\n- [x] one\n- [x] two\n  with details\n- [x] three\n\n### In Progress\n- [ ] four\n\n## Next Steps\n1. five";

    #[test]
    fn a_summary_reads_and_prints_the_same() {
        assert_eq!(Sections::parse(NOTES).text(), NOTES);
        let plain = "Just text.\nOn two lines.\n\nAnd more.";
        assert_eq!(Sections::parse(plain).text(), plain);
        let code = "## Critical Context\n```\n# no heading\n\n- no item\n```\n\ntext";
        assert_eq!(Sections::parse(code).text(), code);
        assert_eq!(Sections::parse("").text(), "");
    }

    #[test]
    fn oldest_items_of_done_go_first_and_are_counted() {
        let mut notes = Sections::parse(NOTES);
        let size = Heuristic.one(NOTES);
        assert_eq!(notes.shorten(size, &Heuristic), 0);
        assert_eq!(notes.shorten(Tokens(size.get() + 5), &Heuristic), 0);
        let mut long = Sections::parse(&NOTES.replace("[x] one", &format!("[x] {}", "one ".repeat(50))));
        assert_eq!(long.shorten(Tokens(size.get() + 10), &Heuristic), 1);
        let text = long.text();
        assert!(
            text.contains("### Done\n- (1 earlier items left out)\n- [x] two\n  with details\n- [x] three"),
            "{text}"
        );
        // The count goes on.
        let mut again = Sections::parse(&text.replace("[x] two", &format!("[x] {}", "two ".repeat(50))));
        again.shorten(Tokens(size.get() + 10), &Heuristic);
        assert!(again.text().contains("- (2 earlier items left out)\n- [x] three"));
    }

    #[test]
    fn parts_are_joined_below_their_headings() {
        let mut all = Sections::parse(NOTES);
        all.append(Sections::parse(
            "## Goal\nFix it.\n\n### Done\n- [x] six\n\n## Key Decisions\n- **A**: b",
        ));
        let text = all.text();
        assert!(
            text.contains("- [x] three\n- [x] six\n\n### In Progress"),
            "{text}"
        );
        assert!(text.ends_with("## Key Decisions\n- **A**: b"));
        assert_eq!(text.matches("Fix it.").count(), 1);
    }

    #[test]
    fn any_text_is_cut_to_its_cap_and_notes_do_not_pile_up() {
        let cap = Tokens(200);
        let mut text = String::new();
        for round in 0..20 {
            text.push_str(&format!("round {round} {}", "word ".repeat(100)));
            text = capped(&text, cap, &Heuristic).0;
            assert!(Heuristic.one(&text) <= cap);
            assert!(text.matches("characters left out").count() <= 1, "{text}");
        }
        let items: Vec<String> = (0..500).map(|i| format!("- [x] step {i} of the work")).collect();
        let items = items.join("\n");
        let (cut, went) = capped(&format!("## Goal\nG\n\n### Done\n{items}"), cap, &Heuristic);
        assert!(Heuristic.one(&cut) <= cap && went > 400);
        assert!(cut.contains(&format!("({went} earlier items left out)")) && cut.contains("step 499"));
    }

    #[test]
    fn sections_come_in_order_and_empty_ones_go() {
        let mut notes = Sections::parse(
            "# Title\ntext\n\n## Files\n- f\n\n## Progress\n### Done\n- [x] a\n- [x] b\n\n## Next Steps\n1. c\n\n## Goal\nG",
        );
        assert_eq!(notes.take("done", |item| item.ends_with('a')), ["- [x] a"]);
        notes.take("next steps", |_| true);
        notes.arrange(&["goal", "progress", "done"]);
        assert_eq!(
            notes.text(),
            "# Title\ntext\n\n## Goal\nG\n\n## Progress\n### Done\n- [x] b\n\n## Files\n- f"
        );
        notes.rename("done", " (earlier)");
        assert!(notes.text().contains("### Done (earlier)\n"));
    }

    #[test]
    fn wholeness_asks_for_a_goal_and_for_progress() {
        assert!(Sections::parse(NOTES).are_whole());
        assert!(!Sections::parse("## Goal\nx").are_whole());
        assert!(Sections::parse("## Original Request\nx\n## Next Steps\ny").are_whole());
        assert!(!Sections::parse("plain").are_whole());
    }
}

//! How likely each item of a region is to be needed again, as integer weights.

use rustc_hash::FxHashMap;

use super::anchors::{Item, lex};
use super::error_line::is_error;
use crate::verbatim::{Author, Line, LinePart, Region, SectionKind};

/// A plain word in more lines than this is too common to be worth a line.
const MAX_WORD_LINES: u32 = 5;

/// Items, weights and bonuses of a region.
#[derive(Debug)]
pub(super) struct Needs {
    /// For each line the class of lines with the same text; [`NO_CLASS`] for trusted markers.
    class_of_line: Vec<u32>,
    /// Where the items of each class begin in `items`, and the end.
    class_start: Vec<u32>,
    items: Vec<u32>,
    /// The weight of each item.
    pub(super) weights: Vec<u32>,
    /// The worth of a line apart from its items.
    pub(super) bonus: Vec<u32>,
    /// Characters of each line.
    pub(super) chars: Vec<u32>,
    /// Lines whose text comes again later; only the newest copy counts.
    pub(super) repeated: Vec<bool>,
}

const NO_CLASS: u32 = u32::MAX;

impl Needs {
    /// Weighs the items of a region against the lines of the kept tail.
    pub(super) fn new(region: &Region<'_>, tail: &str) -> Self {
        let mut lexicon = Lexicon::new(region);
        lexicon.drop_common_words();
        let in_tail = lexicon.items_in(tail);
        let mut history = lexicon.history(region);
        history.relate_to(&lexicon, region, &in_tail);
        let weights = lexicon
            .kinds
            .iter()
            .zip(&history.of)
            .zip(in_tail)
            .map(|((kind, h), kept)| h.weight(region.messages().len(), *kind, kept))
            .collect();
        let repeated = lexicon.repeated();
        let bonus = lexicon.bonuses(region, &repeated);
        let Lexicon {
            class_of_line,
            class_start,
            items,
            chars,
            ..
        } = lexicon;
        Self {
            class_of_line,
            class_start,
            items,
            weights,
            bonus,
            chars,
            repeated,
        }
    }

    /// The items of a line that count for it.
    pub(super) fn items(&self, line: usize) -> &[u32] {
        if self.repeated.get(line).is_none_or(|&again| again) {
            return &[];
        }
        class_items(&self.class_of_line, &self.class_start, &self.items, line)
    }

    /// Whether a line is a trusted marker, which is never ranked.
    pub(super) fn is_marker(&self, line: usize) -> bool {
        self.class_of_line.get(line) == Some(&NO_CLASS)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ItemKind {
    Word,
    Number,
    Phrase,
    Name,
}

impl ItemKind {
    fn of(item: Item<'_>) -> Self {
        match item {
            Item::Word(_) => Self::Word,
            Item::Quoted(text) if text.contains(' ') => Self::Phrase,
            _ if item.text().bytes().all(|b| b.is_ascii_digit()) => Self::Number,
            _ => Self::Name,
        }
    }
}

/// The distinct lines of a region, each lexed once, with their items as numbers.
struct Lexicon<'r> {
    ids: FxHashMap<&'r str, u32>,
    kinds: Vec<ItemKind>,
    /// The newest class that has the item.
    last_class: Vec<u32>,
    class_of_line: Vec<u32>,
    class_start: Vec<u32>,
    items: Vec<u32>,
    /// One line of each class, and how many there are.
    class_text: Vec<&'r str>,
    class_lines: Vec<u32>,
    class_chars: Vec<u32>,
    chars: Vec<u32>,
}

impl<'r> Lexicon<'r> {
    fn new(region: &'r Region<'_>) -> Self {
        let lines = region.line_count();
        let mut classes: FxHashMap<&'r str, u32> = FxHashMap::default();
        classes.reserve(lines / 2);
        let mut this = Self {
            ids: FxHashMap::default(),
            kinds: Vec::new(),
            last_class: Vec::new(),
            class_of_line: Vec::with_capacity(lines),
            class_start: vec![0],
            items: Vec::new(),
            class_text: Vec::new(),
            class_lines: Vec::new(),
            class_chars: Vec::new(),
            chars: Vec::with_capacity(lines),
        };
        this.ids.reserve(lines);
        for line in region.lines() {
            if let LinePart::Marker(_) = line.part {
                this.class_of_line.push(NO_CLASS);
                this.chars.push(as_u32(line.text.len()));
                continue;
            }
            let next = as_u32(this.class_text.len());
            let class = *classes.entry(line.text).or_insert(next);
            if class == next {
                this.add_class(line.text);
            }
            if let Some(count) = this.class_lines.get_mut(class as usize) {
                *count += 1;
            }
            this.class_of_line.push(class);
            this.chars
                .push(this.class_chars.get(class as usize).copied().unwrap_or_default());
        }
        this
    }

    fn add_class(&mut self, text: &'r str) {
        let class = as_u32(self.class_text.len());
        lex(text, |item| {
            let next = as_u32(self.kinds.len());
            let id = *self.ids.entry(item.text()).or_insert(next);
            if id == next {
                self.kinds.push(ItemKind::of(item));
                self.last_class.push(NO_CLASS);
            }
            if let Some(seen) = self
                .last_class
                .get_mut(id as usize)
                .filter(|seen| **seen != class)
            {
                *seen = class;
                self.items.push(id);
            }
        });
        self.class_start.push(as_u32(self.items.len()));
        self.class_text.push(text);
        self.class_lines.push(0);
        self.class_chars.push(as_u32(char_count(text)));
    }

    fn class_items(&self, line: usize) -> &[u32] {
        class_items(&self.class_of_line, &self.class_start, &self.items, line)
    }

    /// Takes words out that are in too many lines.
    fn drop_common_words(&mut self) {
        let mut lines_of_word = vec![0u32; self.kinds.len()];
        for (class, &lines) in self.class_lines.iter().enumerate() {
            for &item in span(&self.class_start, &self.items, class) {
                lines_of_word[item as usize] += lines;
            }
        }
        let rare = |item: u32| {
            self.kinds[item as usize] != ItemKind::Word || lines_of_word[item as usize] <= MAX_WORD_LINES
        };
        let mut kept = Vec::with_capacity(self.items.len());
        let mut starts = Vec::with_capacity(self.class_start.len());
        starts.push(0);
        for class in 0..self.class_text.len() {
            kept.extend(
                span(&self.class_start, &self.items, class)
                    .iter()
                    .copied()
                    .filter(|&i| rare(i)),
            );
            starts.push(as_u32(kept.len()));
        }
        self.items = kept;
        self.class_start = starts;
    }

    /// Which items are also in the kept tail.
    fn items_in(&self, tail: &str) -> Vec<bool> {
        let mut found = vec![false; self.kinds.len()];
        for line in tail.split('\n') {
            lex(line, |item| {
                if let Some(&id) = self.ids.get(item.text()) {
                    found[id as usize] = true;
                }
            });
        }
        found
    }

    fn history(&self, region: &Region<'_>) -> Histories {
        let mut of = vec![History::default(); self.kinds.len()];
        for line in region.lines() {
            let message = as_u32(line.message.index());
            let by_tool = line.kind == SectionKind::ToolResult;
            for &item in self.class_items(line.number.index()) {
                let h = &mut of[item as usize];
                if h.messages == 0 || h.last != message {
                    h.last = message;
                    h.messages += 1;
                }
                h.written |= !by_tool;
            }
        }
        Histories { of }
    }

    fn repeated(&self) -> Vec<bool> {
        let mut text_ids: FxHashMap<&str, u32> = FxHashMap::default();
        text_ids.reserve(self.class_text.len());
        let stripped = |text: &'r str| text.trim_matches([' ', '\t', '\r']);
        let text_of_class: Vec<u32> = self
            .class_text
            .iter()
            .map(|text| {
                let next = as_u32(text_ids.len());
                *text_ids.entry(stripped(text)).or_insert(next)
            })
            .collect();
        let mut seen = vec![false; text_ids.len()];
        let mut repeated: Vec<bool> = self
            .class_of_line
            .iter()
            .rev()
            .map(|&class| {
                let id = text_of_class.get(class as usize);
                id.and_then(|&id| seen.get_mut(id as usize))
                    .is_some_and(|s| std::mem::replace(s, true))
            })
            .collect();
        repeated.reverse();
        repeated
    }

    /// Words of the person, text and thinking of the agent and error lines are worth something by themselves.
    fn bonuses(&self, region: &Region<'_>, repeated: &[bool]) -> Vec<u32> {
        let mut is_error_class = vec![None; self.class_text.len()];
        let mut bonus = |line: Line<'_>| {
            let index = line.number.index();
            let class = self.class_of_line.get(index).copied().unwrap_or(NO_CLASS);
            if class == NO_CLASS || repeated.get(index) != Some(&false) || line.part == LinePart::Separator {
                return 0;
            }
            let cost = self.chars.get(index).map_or(0, |c| c.saturating_add(20));
            match line.kind {
                SectionKind::User if line.author == Author::Session => 2 * cost.min(500),
                SectionKind::Assistant => cost / 2,
                SectionKind::AssistantThinking => cost / 4,
                SectionKind::ToolResult => {
                    let known = is_error_class.get_mut(class as usize);
                    let error = known.is_some_and(|known| {
                        *known.get_or_insert_with(|| is_error(line.text.trim_matches([' ', '\t', '\r'])))
                    });
                    if error { cost.min(200) } else { 0 }
                }
                _ => 0,
            }
        };
        region.lines().map(&mut bonus).collect()
    }
}

/// Where an item occurred.
#[derive(Clone, Copy, Debug, Default)]
struct History {
    /// The newest message with it.
    last: u32,
    /// How many messages have it.
    messages: u32,
    /// Whether someone wrote it, in place of a tool that printed it.
    written: bool,
    /// The greatest likeness to the tail of a message that has it, in thousandths.
    topic: u32,
}

struct Histories {
    of: Vec<History>,
}

impl Histories {
    /// Finds how much each message has in common with the tail, and what its items gain by that.
    fn relate_to(&mut self, lexicon: &Lexicon<'_>, region: &Region<'_>, in_tail: &[bool]) {
        let mut likeness = vec![0u32; region.messages().len()];
        let mut counted_in = vec![u32::MAX; self.of.len()];
        for line in region.lines() {
            let message = line.message.index();
            for &item in lexicon.class_items(line.number.index()) {
                let item = item as usize;
                if in_tail[item] && counted_in[item] != as_u32(message) {
                    counted_in[item] = as_u32(message);
                    likeness[message] += 1000 / self.of[item].messages;
                }
            }
        }
        let top = u64::from(likeness.iter().copied().max().unwrap_or(0).max(1));
        for line in region.lines() {
            let share = u64::from(likeness[line.message.index()]) * 1000 / top;
            let topic = u32::try_from(share).unwrap_or(u32::MAX);
            if topic > 0 {
                for &item in lexicon.class_items(line.number.index()) {
                    let h = &mut self.of[item as usize];
                    h.topic = h.topic.max(topic);
                }
            }
        }
    }
}

impl History {
    /// Each step is rounded down.
    fn weight(self, messages: usize, kind: ItemKind, in_tail: bool) -> u32 {
        let age = as_u32(messages).saturating_sub(self.last).saturating_add(16);
        let mut weight = 16_000 / age;
        if self.written {
            weight = weight * 3 / 2;
        }
        weight = weight * (2 + self.messages.min(8)) / 3;
        weight = match kind {
            ItemKind::Number => weight / 4,
            ItemKind::Phrase => weight / 2,
            ItemKind::Name | ItemKind::Word => weight,
        };
        weight = weight * (1000 + 4 * self.topic) / 1000;
        // What the kept tail holds needs no second place.
        if in_tail { weight / 16 } else { weight }
    }
}

fn class_items<'s>(class_of_line: &[u32], starts: &[u32], items: &'s [u32], line: usize) -> &'s [u32] {
    class_of_line
        .get(line)
        .map_or(&[], |&class| span(starts, items, class as usize))
}

fn span<'s>(starts: &[u32], items: &'s [u32], class: usize) -> &'s [u32] {
    match (
        starts.get(class),
        class.checked_add(1).and_then(|next| starts.get(next)),
    ) {
        (Some(&start), Some(&end)) => items.get(start as usize..end as usize).unwrap_or_default(),
        _ => &[],
    }
}

/// Unicode scalar values of a text.
pub(super) fn char_count(text: &str) -> usize {
    // Every byte but the continuation bytes begins a character.
    text.bytes().filter(|&b| b & 0xc0 != 0x80).count()
}

/// Regions have less than 4 GiB of text, so counts in them fit.
pub(super) fn as_u32(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

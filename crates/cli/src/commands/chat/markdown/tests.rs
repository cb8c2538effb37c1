use super::*;

const WIDE: Layout = Layout {
    width: 80,
    colours: Colours::Shown,
};

fn bare(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}

fn whole(text: &str, layout: Layout) -> String {
    let mut markdown = Markdown::default();
    let mut out = markdown.push(text, layout);
    out.push_str(&markdown.finish(layout));
    out
}

const PAGE: &str = "\
# A title
Some **bold** and *slanted* text with `code` in it, long enough that it has to be broken at eighty columns.

1. first
2. second
   goes on

   with another paragraph
   - nested

- [x] done
- [ ] open

> quoted
> text

```rust
fn main() { println!(\"a line of code that is longer than the others and is never broken, however long it is\"); }
```

| name | value |
|---|---|
| a | 1 |
| longer | `two` |

[a link](https://example.com) and <b>html</b>
last";

#[test]
fn a_page_at_eighty_columns() {
    insta::assert_snapshot!(bare(&whole(PAGE, WIDE)));
}

#[test]
fn a_page_without_colours() {
    let shown = whole(
        PAGE,
        Layout {
            width: 200,
            colours: Colours::None,
        },
    );
    insta::assert_snapshot!(bare(&shown));
}

#[test]
fn it_does_not_matter_in_which_pieces_it_comes() {
    let expected = whole(PAGE, WIDE);
    for size in [1, 2, 7, 50] {
        let mut markdown = Markdown::default();
        let mut out = String::new();
        let chars: Vec<char> = PAGE.chars().collect();
        for piece in chars.chunks(size) {
            out.push_str(&markdown.push(&piece.iter().collect::<String>(), WIDE));
        }
        out.push_str(&markdown.finish(WIDE));
        assert_eq!(out, expected, "{size}");
    }
}

#[test]
fn a_block_is_shown_as_it_is_until_it_is_whole() {
    let mut markdown = Markdown::default();
    assert_eq!(markdown.push("one **bo", WIDE), "");
    assert_eq!(markdown.push("ld**\ntwo", WIDE), "");
    assert_eq!(markdown.rest().collect::<Vec<_>>(), ["one **bold**", "two"]);
    assert_eq!(bare(&markdown.push("\n\nnext", WIDE)), "one bold two\n");
    assert_eq!(markdown.rest().collect::<Vec<_>>(), ["next"]);
}

#[test]
fn code_comes_line_by_line() {
    let mut markdown = Markdown::default();
    assert_eq!(markdown.push("```\n", WIDE), "");
    assert_eq!(bare(&markdown.push("a\n", WIDE)), "  a\n");
    assert_eq!(bare(&markdown.push("  b\n# c\n", WIDE)), "    b\n  # c\n");
    assert_eq!(bare(&markdown.push("```\nafter\n\n", WIDE)), "\nafter\n");
}

#[test]
fn no_sequence_of_a_model_reaches_the_terminal() {
    let text = "a\u{1b}[31mred\u{7}\n\n```\n\u{9b}2J\u{1b}]0;x\u{7}\n```\n- \u{1b}[H\n\n| a\u{1b}c |\n|---|\n| \u{8} |\n";
    let plain = Layout {
        width: 80,
        colours: Colours::None,
    };
    let shown = whole(text, plain);
    let shown = bare(&shown);
    assert!(!shown.chars().any(|c| c.is_control() && c != '\n'), "{shown:?}");
    // References of HTML are resolved after the text was looked at.
    let shown = whole("&#27;[2J and &#x9b;2J and &#8238;", WIDE);
    assert!(
        !bare(&shown).chars().any(|c| !is_harmless(c) && c != '\n'),
        "{shown:?}"
    );
}

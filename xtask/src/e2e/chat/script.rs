//! What the scripted server of the chat says.

use crate::e2e::scripted::{Answer, Rule};

/// What the server says. Requests for summaries come first: they have everything in them that was said before.
pub(super) const RULES: &[Rule] = &[
    Rule {
        asked: "word by word",
        answer: Answer::Stalls("## Goal\n"),
    },
    Rule {
        asked: "Write a handoff document",
        answer: Answer::Text("# Where the work stands\n\nThe notes were read; the code is HRN2041."),
    },
    Rule {
        asked: "<conversation>",
        answer: Answer::Text(SUMMARY),
    },
    Rule {
        asked: "<focus>",
        answer: Answer::Text("I would rather write a poem about deleted lines."),
    },
    Rule {
        asked: "RESULT",
        answer: Answer::Text("The notes say that the code is **HRN2041**."),
    },
    Rule {
        asked: "Say hello",
        answer: Answer::Text(HELLO),
    },
    Rule {
        asked: "Tell me much",
        answer: Answer::Text(MUCH),
    },
    Rule {
        asked: "What is in notes.txt?",
        answer: Answer::Call("read", r#"{"path":"notes.txt"}"#),
    },
    Rule {
        asked: "Go too far",
        answer: Answer::TooLargeAtFirst("Now it fits."),
    },
    Rule {
        asked: "Think for long",
        answer: Answer::Stalls("Let me think about that for a while, because it is not"),
    },
];

/// With sequences that would clear the screen and name the window, if they came through.
const HELLO: &str = "\
# Hello\u{1b}[2J\u{1b}]2;taken over\u{7}

Here is a list:

1. **bold**, *slanted* and `code`
2. a line that is long enough to be broken at eighty columns, but not at two hundred of them

```rust
fn main() {}
```

| a | b |
|---|---|
| 1 | 2 |

That is all.";

const SUMMARY: &str = "\
## Goal
Greet, then read the notes.

## Progress
### Done
- [x] said hello
- [x] read notes.txt

## Next Steps
1. Wait for the user.";

/// About 1,500 tokens.
const MUCH: &str = include_str!("../../../e2e/much.md");

//! Overflows that only the usage shows.

use super::*;

#[test]
fn usage_shows_silent_overflows() {
    use Content::{Empty, Present};
    use StopReason::{Aborted, Length, Stop, ToolUse};
    let window = Some(200_000);
    // (stop, content, input, output, cache read, cache write, window) -> overflow?
    let rows = [
        (Stop, Present, 200_001, 1, 0, 0, window, true),
        (Stop, Present, 100_000, 1, 100_001, 0, window, true),
        (Stop, Present, 10, 1, 100_000, 100_000, window, true),
        (Stop, Present, 200_000, 1, 0, 0, window, false),
        (Stop, Present, 200_001, 1, 0, 0, None, false),
        (Stop, Present, 200_001, 1, 0, 0, Some(0), false),
        (ToolUse, Present, 200_001, 1, 0, 0, window, false),
        (Length, Present, 198_000, 0, 0, 0, window, true),
        (Length, Present, 197_999, 0, 0, 0, window, false),
        (Length, Present, 198_000, 1, 0, 0, window, false),
        (Length, Empty, 198_000, 0, 0, 0, Some(0), false),
        (Stop, Empty, 2, 3, 0, 0, None, true),
        (Stop, Empty, 3, 3, 0, 0, None, false),
        (Stop, Empty, 0, 0, 9000, 0, window, false),
        (Stop, Present, 0, 2, 0, 0, window, false),
    ];
    for (stop, content, input, output, read, write, window, expected) in rows {
        let usage = Usage::from_parts(Tokens(input), Tokens(output), Tokens(read), Tokens(write));
        let message = MessageFields {
            stop,
            error_message: None,
            usage,
            content,
        };
        let class = classify(
            &message,
            &TransportFacts::default(),
            window.map(Tokens),
            &UserPatterns::default(),
        );
        assert_eq!(class.is_some(), expected, "{message:?} {window:?}");
    }
    let aborted = MessageFields {
        stop: Aborted,
        error_message: None,
        usage: Usage::from_parts(Tokens(300_000), Tokens(0), Tokens(0), Tokens(0)),
        content: Present,
    };
    let class = classify(
        &aborted,
        &TransportFacts::default(),
        window.map(Tokens),
        &UserPatterns::default(),
    );
    assert_eq!(class, Some(Cancelled));
}

#[test]
fn a_reply_may_be_cut_before_its_own_limit() {
    use StopReason::{Aborted, Error, Length, Stop, ToolUse};
    let rows = [
        (Length, 0, true),
        (Length, 999, true),
        (Length, 1000, false),
        (Length, 1001, false),
        (Stop, 1, false),
        (ToolUse, 1, false),
        (Error, 0, false),
        (Aborted, 0, false),
    ];
    for (stop, output, expected) in rows {
        let message = MessageFields {
            stop,
            error_message: None,
            usage: Usage::from_parts(Tokens(10), Tokens(output), Tokens(0), Tokens(0)),
            content: Content::Present,
        };
        assert_eq!(cut_below_cap(&message, Tokens(1000)), expected, "{message:?}");
    }
}

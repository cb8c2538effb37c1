//! Requirement R06, one honest token number, row by row; the first rows are the cases FB-012 to FB-022.

use foldline_session_model::Tokens;
use foldline_session_model::tokens::Heuristic;

use super::super::ContextSize;
use super::super::SizeSource::{self, Estimated, Measured};
use crate::testing::{Rows, context, filler};

/// Every request of these sessions has a system text and tools of so many tokens.
const OVERHEAD: u64 = 30_000;

/// What happened, the prompt about to be sent, and the size with what it rests on.
struct Row {
    name: &'static str,
    rows: Rows,
    pending: u64,
    size: (u64, SizeSource),
}

fn row(name: &'static str, rows: Rows, size: (u64, SizeSource)) -> Row {
    pending(name, rows, 0, size)
}

fn pending(name: &'static str, rows: Rows, pending: u64, size: (u64, SizeSource)) -> Row {
    Row {
        name,
        rows,
        pending,
        size,
    }
}

/// A session with a question of 50 tokens.
fn asked() -> Rows {
    Rows::new().user("u1", &filler(50))
}

/// The same with an answer of 10 tokens that was measured: 150 and 10.
fn answered() -> Rows {
    asked().answer("a1", &filler(10), &[], Some([150, 10, 0, 0]), "stop")
}

/// An answer through an API; `usage` is input, output, cache read, cache write and the provider's total.
fn through(api: &str, [input, output, read, write, total]: [u64; 5]) -> Rows {
    Rows::new().message(
        "a1",
        &format!(
            "{{\"role\":\"assistant\",\"content\":[],\"api\":\"{api}\",\"provider\":\"p\",\"model\":\"m\",\"stopReason\":\"stop\",\"usage\":{{\"input\":{input},\"output\":{output},\"cacheRead\":{read},\"cacheWrite\":{write},\"totalTokens\":{total}}}}}"
        ),
    )
}

/// A session that was compacted after it had been measured at 190,100.
fn compacted() -> Rows {
    Rows::new()
        .user("u1", &filler(150_000))
        .answer("a1", &filler(2_000), &[], Some([150_100, 2_000, 0, 0]), "stop")
        .user("u2", &filler(200))
        .answer("a2", &filler(100), &[], Some([190_000, 100, 0, 0]), "stop")
        .compaction("c1", Some("u2"), &filler(800))
}

/// A result of 5,000 tokens, measured.
fn read() -> Rows {
    Rows::new()
        .call("a1", "c1", "bash", "{}")
        .result("t1", "c1", "bash", &filler(5_000))
        .answer("a2", "", &[], Some([6_000, 20, 0, 0]), "stop")
}

fn custom(rows: Rows, id: &str, kind: &str, data: &str) -> Rows {
    rows.entry(
        id,
        "custom",
        &format!("\"customType\":\"{kind}\",\"data\":{data}"),
    )
}

fn pruned() -> Rows {
    let items = "{\"items\":[{\"entryId\":\"t1\",\"notice\":\"xxxx\",\"tokens\":5000}]}";
    custom(read(), "p1", "foldline/prune", items)
}

fn table() -> Vec<Row> {
    vec![
        row("FB-012: usage from before the compaction", compacted().user("u3", &filler(300)), (OVERHEAD + 1_400, Estimated)),
        row(
            "FB-014: a measurement of what was sent beats the size of what is stored",
            Rows::new()
                .call("a1", "c1", "fetch", "{}")
                .result("t1", "c1", "fetch", &filler(1_650_000))
                .answer("a2", "", &[], Some([17_000, 200, 0, 0]), "stop")
                .user("u2", &filler(20)),
            (17_220, Measured),
        ),
        row("FB-016: parts side by side", through("openai-responses", [2_344, 100, 171_520, 0, 0]), (173_964, Measured)),
        row("FB-016: three parts", through("anthropic-messages", [2, 50, 349_801, 975, 0]), (350_828, Measured)),
        row("FB-016: a mirrored cache", through("anthropic-messages", [50_000, 100, 50_000, 0, 50_100]), (50_100, Measured)),
        row("FB-016: no mirror in another API", through("openai-responses", [50_000, 100, 50_000, 0, 50_100]), (100_100, Measured)),
        row("FB-016: an unknown API", through("something-new", [1_000, 500, 200, 100, 9]), (1_800, Measured)),
        row("FB-016: nothing but a total", through("something-new", [0, 0, 0, 0, 700]), (700, Measured)),
        row(
            "FB-018: a compaction that failed leaves no entry",
            Rows::new().answer("a1", "", &[], Some([188_000, 0, 0, 0]), "stop"),
            (188_000, Measured),
        ),
        row(
            "FB-019: the summariser's usage is none of the context",
            Rows::new().user("u5", &filler(20_000)).entry(
                "c1",
                "compaction",
                &format!(
                    "\"summary\":\"{}\",\"firstKeptEntryId\":\"u5\",\"tokensBefore\":146300,\"details\":{{\"usage\":{{\"input\":144000,\"output\":2300}}}}",
                    filler(4_000)
                ),
            ),
            (OVERHEAD + 24_000, Estimated),
        ),
        row(
            "FB-019: the next real usage",
            compacted().answer("a3", "", &[], Some([25_000, 100, 0, 0]), "stop"),
            (25_100, Measured),
        ),
        row("FB-022: what every request costs is in an estimate", Rows::new().user("u1", &filler(241_800)), (271_800, Estimated)),
        row(
            "FB-022: and already in a measurement",
            Rows::new()
                .user("u1", &filler(241_800))
                .answer("a1", "", &[], Some([271_800, 200, 0, 0]), "stop"),
            (272_000, Measured),
        ),
        row("nothing", Rows::new(), (OVERHEAD, Estimated)),
        pending("a pending prompt after a measurement", answered(), 700, (860, Measured)),
        pending("a pending prompt without one", asked(), 700, (OVERHEAD + 750, Estimated)),
        row(
            "the newest measurement",
            answered().answer("a2", "", &[], Some([400, 20, 0, 0]), "stop"),
            (420, Measured),
        ),
        row(
            "a failed answer is text",
            answered().answer("a2", &filler(5), &[], Some([900, 0, 0, 0]), "error"),
            (165, Measured),
        ),
        row(
            "a cancelled answer is text",
            answered().answer("a2", &filler(5), &[], Some([900, 0, 0, 0]), "aborted"),
            (165, Measured),
        ),
        row(
            "an answer that nobody counted is text",
            answered().answer("a2", &filler(5), &[], Some([0, 0, 0, 0]), "stop"),
            (165, Measured),
        ),
        row(
            "sums over several requests are no size",
            custom(answered(), "x1", "session/usage", "{\"usage\":{\"input\":900000,\"output\":9000,\"totalTokens\":909000}}"),
            (160, Measured),
        ),
        row("entries that say nothing", answered().label("l1").user("u2", &filler(40)), (200, Measured)),
        row("a result after the measurement", read().call("a3", "c2", "bash", "{}").result("t2", "c2", "bash", &filler(70)), (6_020 + CALL + 70, Measured)),
        row("a prune", pruned(), (OVERHEAD + CALL + 1, Estimated)),
        row(
            "a prune that was taken back",
            custom(pruned(), "r1", "foldline/revoke", "{\"entryId\":\"p1\"}"),
            (OVERHEAD + CALL + 5_000, Estimated),
        ),
    ]
}

/// The estimate of a message that calls `bash` without arguments.
const CALL: u64 = 2;

#[test]
fn r06_one_honest_token_number() {
    let table = table();
    assert_eq!(table.len(), 25);
    for row in table {
        let log = row.rows.log();
        let size = ContextSize::of(&context(&log), Tokens(OVERHEAD), Tokens(row.pending), &Heuristic);
        assert_eq!((size.tokens.get(), size.source), row.size, "{}", row.name);
    }
}

//! A result that was cut costs what is left of it, however long it was (R17): 64 MiB are cut within 8 MiB of memory
//! beside the result itself, as a transcript and as a region.
#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests, which the lint does not know as tests"
)]

use foldline_compaction_core::summary::{Caps, transcript};
use foldline_compaction_core::verbatim::{Parameters, SmallRegion, prepare};
use foldline_session_model::fold::{Context, Profile};
use foldline_session_model::llm::{TrailingCalls, Wrappers};
use foldline_session_model::log::{SessionLog, Trust};
use foldline_session_model::tokens::Heuristic;
use foldline_session_model::tree::Leaf;
use peak_alloc::PeakAlloc;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

const MIB: usize = 1 << 20;

/// A session whose second message is a result of this text, and which goes on after it.
fn session(text: &str) -> SessionLog {
    let block = format!(
        r#"{{"type":"text","text":{}}}"#,
        serde_json::to_string(text).unwrap()
    );
    let messages = [
        r#"{"role":"assistant","stopReason":"toolUse","content":[{"type":"toolCall","id":"c1","name":"bash","arguments":{"command":"dump"}}]}"#.to_owned(),
        format!(
            r#"{{"role":"toolResult","toolCallId":"c1","toolName":"bash","content":[{block}],"isError":false}}"#
        ),
    ];
    let more = (0..12).map(|i| format!(r#"{{"role":"user","content":"and then {i}"}}"#));
    let mut text = String::from(
        "{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"timestamp\":\"t\",\"cwd\":\"/w\"}\n",
    );
    let mut parent = "null".to_owned();
    for (at, message) in messages.into_iter().chain(more).enumerate() {
        text += &format!(
            "{{\"type\":\"message\",\"id\":\"e{at}\",\"parentId\":{parent},\"timestamp\":\"t\",\"message\":{message}}}\n"
        );
        parent = format!("\"e{at}\"");
    }
    SessionLog::load(text, Trust::Claimed).unwrap()
}

/// The text that some work makes, and by how much memory grew at most while it was done.
fn peak(work: impl FnOnce() -> String) -> (String, usize) {
    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    let text = work();
    (text, MEMORY.peak_usage().saturating_sub(before))
}

fn as_transcript(context: &Context<'_>) -> String {
    let wrappers = Wrappers::default();
    let messages = context.llm_view(&wrappers, TrailingCalls::Leave);
    transcript(messages.iter(), Caps::USUAL).text()
}

fn as_region(context: &Context<'_>) -> String {
    let prepared = prepare(
        context,
        Parameters::with_query("q"),
        SmallRegion::Allow,
        &Heuristic,
    )
    .unwrap();
    prepared.region().text().to_owned()
}

#[test]
fn r17_a_result_of_64_mib_is_cut_within_8_mib() {
    let secret = "export TOKEN=ghp_0123456789abcdefghijklmnopqrstuvwxyz\n";
    let text = "0123456789 abcdefghijklmnopqrst\n".repeat(2 * MIB) + secret;
    let log = session(&text);
    let context = log.context(&Leaf::Last, Profile::Auto).unwrap();
    for (cap, (cut, peak)) in [
        (2_000, peak(|| as_transcript(&context))),
        (16_000, peak(|| as_region(&context))),
    ] {
        assert!(peak <= 8 * MIB, "cut at {cap}: {peak} bytes");
        let (_, rest) = cut.split_once("[... ").unwrap();
        let (count, _) = rest.split_once(" more characters truncated]").unwrap();
        let count: usize = count.parse().unwrap();
        // The newline at the end and what the notice of a secret saves.
        assert!(count.abs_diff(text.len() - cap) < 64, "cut at {cap}: {count}");
    }
}

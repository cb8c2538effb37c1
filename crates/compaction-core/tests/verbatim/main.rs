//! Verbatim line compaction from the outside: whole sessions in, entries out.
//!
//! Section 21 of the specification "Verbatim" has groups of rows; each has a module here, and each row is a test whose
//! name begins with `row`, a row of a table in a test `rows_of_…`, or is quoted above its test:
//!
//! | group | module |
//! |---|---|
//! | Ranges and folding | [`ranges`] |
//! | keepContext | [`keep_context`] |
//! | Serialization | [`serialization`] |
//! | Parser | [`parser`] |
//! | Outcomes | [`outcomes`] |
//! | Boundary | [`boundary`] |
//! | Ladder | [`ladder`] |
//! | Fresh | [`fresh`] |
//! | Hooks | [`hooks`] |
//! | Resume | [`resume`] |
//! | Post-tool | [`post_tool`] |
//! | Sidecars | [`sidecars`] |
//!
//! The properties of section 23 are in [`properties`], the defects of section 20 in [`spoofing`] and [`answers`]. What
//! a run does with a plan ("Re-entrancy", most of "Post-tool") is tested in `foldline-agent-session`, retries and the
//! classes of texts in `foldline-llm-client`, files beside a session in `foldline-session-store`.
//!
//! Rows that a decision of the design changes:
//!
//! - Ranges "`-2`, `2.9`, `nope`": the parser refuses them with all of their answer, so nothing is left to round.
//! - Serialization and Resume "retained mode", "a tail in the middle of a turn is flattened": the tail stays as messages
//!   (D5).
//! - Outcomes "500, 501, 599 are rate limits": a failure of a server is no limit of the user; it is tried again and then
//!   replaced as any other failure.
//! - Boundary "a bad ratio or preserve is the default", "a query of any length": the configured value holds, and a long
//!   query is cut in the middle (section 20, rows 10 and 14).
//! - Ladder "fresh": before all lines go, the planner without a model keeps what fits (D6).

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::format_collect,
    clippy::format_push_string,
    reason = "helpers of tests, which the lint does not know as tests; the hostile texts are a folder of files"
)]

mod answers;
mod boundary;
mod fresh;
mod hooks;
mod keep_context;
mod ladder;
mod outcomes;
mod parser;
mod post_tool;
mod properties;
mod ranges;
mod resume;
mod rounds;
mod serialization;
mod sidecars;
mod spoofing;
mod support;

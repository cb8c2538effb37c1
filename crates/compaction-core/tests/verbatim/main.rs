//! Verbatim line compaction from the outside: whole sessions in, entries out. The tables follow section 21 of the
//! specification "Verbatim"; rows that one function decides are beside that function.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::format_collect,
    clippy::format_push_string,
    reason = "helpers of tests, which the lint does not know as tests; the hostile texts are a folder of files"
)]

mod answers;
mod boundary;
mod hooks;
mod ladder;
mod properties;
mod resume;
mod rounds;
mod spoofing;
mod support;

//! One test for each row of the table of edge cases in the session-model specification (section 12). The name of a
//! test begins with its row. Where a decision of the design changes a row, the test says so.

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests, which the lint does not know as tests"
)]

mod compactions;
mod files;
mod lines;
mod messages;
mod support;
mod trees;

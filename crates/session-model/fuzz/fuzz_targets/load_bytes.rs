//! `cargo +nightly fuzz run load_bytes`: no bytes may make the crate panic or contradict itself.
#![no_main]

#[path = "../../tests/load_bytes/body.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| body::load_bytes(bytes));

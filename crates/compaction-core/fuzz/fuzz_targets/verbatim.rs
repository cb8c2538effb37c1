//! Verbatim compaction over whatever the fuzzer invents.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| foldline_compaction_core_fuzz::verbatim(input));

//! The body of the fuzz target, over the committed sessions, their beginnings, and what fuzzing found worth keeping.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    unreachable_pub,
    reason = "tests read the committed files; the body is shared with the fuzz target"
)]

mod body;

use std::path::PathBuf;

fn files(folder: &str) -> Vec<Vec<u8>> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|f| f.unwrap().path())
        .collect();
    paths.sort();
    paths
        .iter()
        .filter(|path| path.is_file())
        .map(|path| std::fs::read(path).unwrap())
        .collect()
}

#[test]
fn load_bytes() {
    let corpus = files("fuzz/corpus/load_bytes");
    assert!(corpus.len() > 5);
    for file in &corpus {
        for cut in (0..=file.len()).step_by(37) {
            body::load_bytes(&file[..cut]);
        }
        body::load_bytes(file);
    }
    for file in files("../../fixtures/sessions")
        .iter()
        .filter(|file| file.len() < 100_000)
    {
        body::load_bytes(&file[..file.len() / 2]);
        body::load_bytes(file);
    }
}

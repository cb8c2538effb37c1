//! Where the workspace is and what its folders are called.

use std::path::{Path, PathBuf};

/// The folder that holds the workspace's `Cargo.toml`.
pub(crate) fn root() -> PathBuf {
    // xtask is never installed: the folder it was built in is the folder it works on.
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().unwrap_or(manifest).to_path_buf()
}

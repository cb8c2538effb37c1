//! `cargo xtask fixtures`: the synthetic sessions of `fixtures/sessions`.
//!
//! Every file is a function of its name and of one constant seed, so that the committed files can be
//! compared with what the generator makes (`--check`).
#![allow(
    clippy::format_push_string,
    clippy::format_collect,
    reason = "here readable templates matter more than the allocations of a task that runs for milliseconds"
)]

mod chatter;
mod compactions;
mod damaged;
mod files;
mod legacy;
mod plain;
mod realistic;
mod record;
mod rng;
mod writer;

use std::path::Path;

use anyhow::{Context as _, bail};

use crate::workspace;

/// Arguments of the task.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Write nothing; fail when a committed file differs from the generated one.
    #[arg(long)]
    check: bool,
}

/// A file that the generator makes.
pub(crate) struct Generated {
    /// Path below the workspace's root, with `/` between the parts.
    pub(crate) path: String,
    /// The whole content.
    pub(crate) bytes: Vec<u8>,
}

/// Writes the fixtures, or compares them with the committed ones.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let root = workspace::root();
    let files = files::generate();
    if args.check {
        let stale = stale_files(&root, &files)?;
        if !stale.is_empty() {
            bail!(
                "not as generated, run `cargo xtask fixtures`:\n  {}",
                stale.join("\n  ")
            );
        }
        println!("fixtures: {} files are fresh", files.len());
        return Ok(());
    }
    for file in &files {
        write(&root, file)?;
    }
    println!("fixtures: {} files written", files.len());
    Ok(())
}

/// Paths that are missing, differ, or lie in the generated folder without being generated.
pub(crate) fn stale_files(root: &Path, files: &[Generated]) -> anyhow::Result<Vec<String>> {
    let mut stale = Vec::new();
    for file in files {
        match fs_err::read(root.join(&file.path)) {
            Ok(bytes) if bytes == file.bytes => {}
            Ok(_) => stale.push(format!("{} differs", file.path)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                stale.push(format!("{} is missing", file.path));
            }
            Err(error) => return Err(error.into()),
        }
    }
    let folder = root.join(files::SESSIONS);
    if folder.is_dir() {
        for entry in fs_err::read_dir(&folder)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            let path = format!("{}/{name}", files::SESSIONS);
            if !files.iter().any(|file| file.path == path) {
                stale.push(format!("{path} is not generated"));
            }
        }
    }
    stale.sort();
    Ok(stale)
}

fn write(root: &Path, file: &Generated) -> anyhow::Result<()> {
    let path = root.join(&file.path);
    let folder = path.parent().context("a generated file lies in a folder")?;
    fs_err::create_dir_all(folder)?;
    fs_err::write(&path, &file.bytes)?;
    Ok(())
}

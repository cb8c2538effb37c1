//! `cargo xtask tidy`: the rules of the workspace that no compiler knows. `cargo test -p xtask` checks
//! the same ones.

mod dependencies;
mod layout;
mod text;

use anyhow::bail;

use crate::workspace;

/// A broken rule, in one line: where, and what.
pub(crate) type Finding = String;

/// Prints what is broken, and fails when something is.
pub(crate) fn run() -> anyhow::Result<()> {
    let root = workspace::root();
    let mut findings = dependencies::check(&root)?;
    findings.extend(layout::check(&root)?);
    findings.extend(text::check(&root)?);
    if findings.is_empty() {
        println!("tidy: nothing found");
        return Ok(());
    }
    for finding in &findings {
        println!("{finding}");
    }
    bail!("{} rules are broken", findings.len())
}

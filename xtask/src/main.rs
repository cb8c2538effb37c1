//! Tasks of the workspace: `cargo xtask help` lists them.

fn main() -> anyhow::Result<()> {
    anyhow::bail!("no task is known yet")
}

//! `cargo xtask codegen`: the files of `docs/` that follow from the code.

use anyhow::bail;
use foldline_agent_session::{rpc, settings};

use crate::workspace;

/// Arguments of the task.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Write nothing; fail when a committed file differs from the generated one.
    #[arg(long)]
    check: bool,
}

/// Writes the files, or compares them with the committed ones.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let docs = workspace::root().join("docs");
    for (name, text) in [
        ("settings.schema.json", settings::schema()),
        ("settings.md", settings::reference()),
        ("rpc.schema.json", rpc::schema()),
    ] {
        let path = docs.join(name);
        let is_fresh = fs_err::read_to_string(&path).is_ok_and(|committed| committed == text);
        if is_fresh {
            println!("docs/{name}: fresh");
        } else if args.check {
            bail!("docs/{name} is not as generated, run `cargo xtask codegen`");
        } else {
            fs_err::write(&path, text)?;
            println!("docs/{name}: written");
        }
    }
    Ok(())
}

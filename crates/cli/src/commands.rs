//! One module for each command.

pub(crate) mod chat;
mod check;
mod compact;
pub(crate) mod completions;
pub(crate) mod config;
mod context;
pub(crate) mod delete;
mod export;
mod fork;
mod gc;
pub(crate) mod handoff;
mod import;
mod list;
pub(crate) mod models;
mod navigate;
mod prune;
pub(crate) mod recall;
pub(crate) mod rename;
pub(crate) mod report;
pub(crate) mod rpc;
pub(crate) mod run;
pub(crate) mod serve;
mod show;
mod stats;
mod tree;
mod undo;

use crate::args::Command;
use crate::error::{CommandError, Status};
use crate::output::Format;

pub(crate) fn run(command: &Command, format: Format) -> Result<Status, CommandError> {
    match command {
        Command::Compact(args) => compact::run(args, format),
        Command::Context(args) => context::run(args, format),
        Command::Show(args) => show::run(args, format),
        Command::Prune(args) => prune::run(args, format),
        Command::Tree(args) => tree::run(args, format),
        Command::Navigate(args) => navigate::run(args, format),
        Command::Undo(args) => undo::run(args, format),
        Command::Handoff(args) => handoff::run(args, format),
        Command::Fork(args) => fork::run(args, format),
        Command::Rename(args) => rename::run(args, format),
        Command::Delete(args) => delete::run(args, format),
        Command::Models(args) => models::run(args, format),
        Command::Completions(args) => completions::run(args, format),
        Command::Recall(args) => recall::run(args, format),
        Command::Check(args) => check::run(args, format),
        Command::Stats(args) => stats::run(args, format),
        Command::List(args) => list::run(args, format),
        Command::Gc(args) => gc::run(args, format),
        Command::Report(args) => report::run(args, format),
        Command::Run(args) => run::run(args, format),
        Command::Chat(args) => chat::run(args, format),
        Command::Rpc(args) => rpc::run(args),
        Command::Serve(args) => serve::run(args, format),
        Command::Config(args) => config::run(args, format),
        Command::Import(args) => import::run(args, format),
        Command::Export(args) => export::run(args, format),
    }
}

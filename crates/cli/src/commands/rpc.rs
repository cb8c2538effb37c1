//! `foldline rpc`: a session driven by JSON lines (spec "Orchestrator and clients", 15).

mod answers;
mod lanes;
mod work;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use foldline_agent_session::tools::Selection;
use foldline_agent_session::{AgentSession, IdleWatch};

use crate::error::{CommandError, ErrorKind, Status};
use crate::host::{self, Reach};
use crate::model::ModelArgs;
use crate::setup::{Purpose, Setup};

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Each line of standard input is a command, each gets one response line; between them stand events.
docs/rpc.schema.json describes the lines. Commands are carried out one after the other; those that cancel something
or change what waits overtake them. When standard input ends, what waits for a model is cancelled, the rest is done, and
the program ends.

Examples:
  foldline rpc --session latest
  echo '{\"id\":1,\"type\":\"get_state\"}' | foldline rpc"
)]
pub(crate) struct Args {
    /// The session to go on with: a path, the start of an id, or `latest` [default: a new one].
    #[arg(long, value_name = "S")]
    session: Option<PathBuf>,
    /// The tools that the model may call: `all`, `none`, or names with commas between [default: the setting
    /// `tools.allowed`, or those that only read].
    #[arg(long, value_name = "NAMES")]
    tools: Option<Selection>,
    #[command(flatten)]
    model: ModelArgs,
}

/// What commands work on.
struct Host {
    setup: Setup,
    tools: Option<Selection>,
    current: Mutex<AgentSession>,
    /// How often the session became another one.
    switches: AtomicU64,
    /// How often a client cancelled.
    aborts: AtomicU64,
    auto_compaction: AtomicBool,
    /// Compacts the session when nobody uses it.
    idle: Mutex<Option<IdleWatch>>,
}

impl Host {
    /// Makes a session the current one.
    fn go_on_with(&self, session: AgentSession) {
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = session;
        self.switches.fetch_add(1, Ordering::SeqCst);
        self.watch_idle();
    }

    /// Keeps an eye on the current session while nobody uses it.
    fn watch_idle(&self) {
        let watch = self.session().watch_idle(|| true);
        *self.idle.lock().unwrap_or_else(PoisonError::into_inner) = Some(watch);
    }

    fn session(&self) -> AgentSession {
        self.current
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

pub(crate) fn run(args: &Args) -> Result<Status, CommandError> {
    let setup = Setup::new(&args.model, Purpose::Work)?;
    let session = host::open(&setup, args.session.as_deref(), args.tools.as_ref(), Reach::Whole)?;
    let host = Arc::new(Host {
        auto_compaction: AtomicBool::new(setup.settings().auto_compaction()),
        setup,
        tools: args.tools.clone(),
        current: Mutex::new(session),
        switches: AtomicU64::new(0),
        aborts: AtomicU64::new(0),
        idle: Mutex::new(None),
    });
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|e| CommandError::from_error(ErrorKind::Failed, &e))?;
    let status = runtime.block_on(lanes::serve(&host));
    // What still reads standard input is left behind.
    runtime.shutdown_background();
    Ok(status)
}

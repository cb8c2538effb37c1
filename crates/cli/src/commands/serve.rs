//! `foldline serve`: summaries for other agents over HTTP (seeds 000 and 001, "Remote summarization modes").
//!
//! hyper alone, without a router: there are two addresses, and everything that matters here (how long headers may take,
//! how large a body may be, ending without cutting anybody off) is its own or a few lines.

mod answer;
mod listener;
mod request;
mod summarizer;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use crate::error::{CommandError, ErrorKind, Status};
use crate::model::ModelArgs;
use crate::output::{self, BOLD, Format};
use crate::setup::{Purpose, Setup};

use listener::{Drain, Limits};
use request::HostRule;
use summarizer::Summarizer;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "POST /summarize takes {\"systemPrompt\", \"prompt\"} and gives {\"summary\"}; GET /health tells that the
server is there. Agents of the pi family use it as `compaction.remoteEndpoint`.

Without --model no model is asked: the summary is extracted from the <conversation> and <previous-summary> blocks
of the prompt.

Examples:
  foldline serve
  foldline serve --addr 127.0.0.1:8123 --model ollama/qwen3"
)]
pub(crate) struct Args {
    /// Where to listen; port 0 takes a free one, and the first line of the output names it.
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:7171")]
    addr: SocketAddr,
    /// Listen on an address that other machines can reach. There is no password: everybody who reaches it can use it.
    #[arg(long)]
    allow_remote: bool,
    /// A host name by which clients may call this server, beside `localhost` and IP addresses.
    #[arg(long, value_name = "NAME")]
    allow_host: Vec<String>,
    /// How many seconds a request may take to arrive.
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=600))]
    receive_timeout: u64,
    #[command(flatten)]
    model: ModelArgs,
}

#[derive(Serialize)]
struct Started<'s> {
    url: String,
    model: &'s str,
}

pub(crate) fn run(args: &Args, format: Format) -> Result<Status, CommandError> {
    if !args.addr.ip().is_loopback() && !args.allow_remote {
        let message = format!("{} can be reached from other machines", args.addr);
        return Err(CommandError::new(ErrorKind::Usage, message).hint(
            "listen on 127.0.0.1, or say --allow-remote: there is no password, and prompts travel unencrypted",
        ));
    }
    let setup = Setup::new(&args.model, Purpose::Compaction)?;
    let name = setup.name();
    let summarizer = Summarizer::new(&setup)?;
    let limits = Limits {
        receive: Duration::from_secs(args.receive_timeout),
        ..Limits::default()
    };
    let failed = |e: &dyn std::error::Error| CommandError::from_error(ErrorKind::Failed, e);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|e| failed(&e))?;
    let drain = runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind(args.addr).await.map_err(|e| {
            CommandError::new(ErrorKind::Failed, format!("{}: {e}", args.addr)).hint(bind_hint(e.kind()))
        })?;
        let started = Started {
            url: format!("http://{}", listener.local_addr().map_err(|e| failed(&e))?),
            model: &name,
        };
        output::result(format, &started, || {
            format!(
                "{BOLD}{}{BOLD:#}  summaries by {}; Ctrl-C ends it\n",
                started.url, started.model
            )
        });
        let rule = HostRule::new(&args.allow_host);
        Ok::<Drain, CommandError>(listener::serve(listener, Arc::new(summarizer), rule, limits).await)
    })?;
    if drain == Drain::Incomplete {
        output::warning("ended while requests were still at work");
    }
    // Work that cannot be stopped is left behind.
    runtime.shutdown_background();
    Ok(Status::Done)
}

/// What to do about an address that cannot be listened on.
const fn bind_hint(kind: std::io::ErrorKind) -> &'static str {
    match kind {
        std::io::ErrorKind::AddrNotAvailable => {
            "this machine has no such address: listen on 127.0.0.1, on 0.0.0.0, or on one that it has"
        }
        std::io::ErrorKind::PermissionDenied => {
            "low ports belong to the administrator: choose one above 1023 with --addr"
        }
        _ => "choose another port with --addr, or port 0 for a free one",
    }
}

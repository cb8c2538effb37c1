//! A headless Chromium, spoken to over a pipe: its remote protocol as JSON texts that end in NUL. No port is opened.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use serde_json::{Value, json};

/// For one answer.
const LIMIT: Duration = Duration::from_secs(60);
const NAMES: [&str; 4] = [
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
];

/// The browser to use: the one that `CHROMIUM` names, or the first that the path has.
pub(super) fn find() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("CHROMIUM") {
        return Some(PathBuf::from(named));
    }
    let folders: Vec<PathBuf> = std::env::split_paths(&std::env::var_os("PATH")?).collect();
    NAMES
        .iter()
        .flat_map(|name| folders.iter().map(move |folder| folder.join(name)))
        .find(|path| path.is_file())
}

/// A running browser. Dropping it ends it.
pub(super) struct Browser {
    process: Child,
    commands: ChildStdin,
    messages: Receiver<Value>,
    last_id: u64,
    session: Option<String>,
    /// What came that was no answer.
    events: Vec<Value>,
    _profile: tempfile::TempDir,
}

impl Browser {
    pub(super) fn start(program: &Path) -> anyhow::Result<Self> {
        let profile = tempfile::tempdir()?;
        // The protocol runs over the descriptors 3 and 4; a shell puts our pipes there.
        let mut process = Command::new("sh")
            .args(["-c", r#"exec "$@" 3<&0 4>&1 </dev/null >/dev/null 2>&1"#, "sh"])
            .arg(program)
            .args([
                "--headless",
                "--remote-debugging-pipe",
                "--disable-gpu",
                "--disable-quic",
                "--no-first-run",
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
                "--hide-scrollbars",
            ])
            // In containers everybody is root, and there is no sandbox for root.
            .args(is_root().then_some("--no-sandbox"))
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("the browser cannot be started")?;
        let commands = process.stdin.take().context("no pipe to the browser")?;
        let output = process.stdout.take().context("no pipe from the browser")?;
        let (sender, messages) = channel();
        std::thread::spawn(move || {
            let mut reader = BufReader::new(output);
            let mut bytes = Vec::new();
            while reader.read_until(0, &mut bytes).is_ok_and(|count| count > 0) {
                let message = serde_json::from_slice(bytes.strip_suffix(&[0]).unwrap_or(&bytes));
                bytes.clear();
                if message.is_ok_and(|message| sender.send(message).is_err()) {
                    return;
                }
            }
        });
        Ok(Self {
            process,
            commands,
            messages,
            last_id: 0,
            session: None,
            events: Vec::new(),
            _profile: profile,
        })
    }

    /// Opens an empty page; what follows is about it.
    pub(super) fn open(&mut self) -> anyhow::Result<()> {
        self.session = None;
        self.events.clear();
        let target = self.call("Target.createTarget", &json!({"url": "about:blank"}))?;
        let attached = self.call(
            "Target.attachToTarget",
            &json!({"targetId": target["targetId"], "flatten": true}),
        )?;
        self.session = attached["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log", "Network"] {
            self.call(&format!("{domain}.enable"), &json!({}))?;
        }
        Ok(())
    }

    /// Calls a method and waits for its answer.
    pub(super) fn call(&mut self, method: &str, params: &Value) -> anyhow::Result<Value> {
        self.last_id += 1;
        let mut command = json!({"id": self.last_id, "method": method, "params": params});
        if let Some(session) = &self.session {
            command["sessionId"] = json!(session);
        }
        let mut text = serde_json::to_vec(&command)?;
        text.push(0);
        self.commands
            .write_all(&text)
            .context("the browser does not listen")?;
        let id = self.last_id;
        let answer = self.wait(method, |message| message["id"] == id)?;
        ensure!(answer["error"].is_null(), "{method}: {}", answer["error"]);
        Ok(answer["result"].clone())
    }

    /// Goes to an address and waits until everything of it is there.
    pub(super) fn navigate(&mut self, url: &str) -> anyhow::Result<()> {
        self.call("Page.navigate", &json!({"url": url}))?;
        if !self.events.iter().any(is_loaded) {
            let loaded = self.wait("the page", is_loaded)?;
            self.events.push(loaded);
        }
        Ok(())
    }

    /// The value of an expression in the page.
    pub(super) fn evaluate(&mut self, expression: &str) -> anyhow::Result<Value> {
        let result = self.call(
            "Runtime.evaluate",
            &json!({"expression": expression, "returnByValue": true}),
        )?;
        ensure!(
            result["exceptionDetails"].is_null(),
            "{}",
            result["exceptionDetails"]
        );
        Ok(result["result"]["value"].clone())
    }

    /// The events of this page so far, by their method.
    pub(super) fn events(&self, method: &str) -> impl Iterator<Item = &Value> {
        self.events
            .iter()
            .filter(move |event| event["method"] == method)
            .map(|event| &event["params"])
    }

    fn wait(&mut self, what: &str, wanted: impl Fn(&Value) -> bool) -> anyhow::Result<Value> {
        let started = Instant::now();
        while let Some(left) = LIMIT.checked_sub(started.elapsed()) {
            let Ok(message) = self.messages.recv_timeout(left) else {
                break;
            };
            if wanted(&message) {
                return Ok(message);
            }
            self.events.push(message);
        }
        bail!("no answer of the browser to {what}")
    }
}

/// Whether this user is root; the owner of what a process makes tells.
fn is_root() -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        tempfile::tempfile().is_ok_and(|file| file.metadata().is_ok_and(|metadata| metadata.uid() == 0))
    }
    #[cfg(not(unix))]
    false
}

fn is_loaded(message: &Value) -> bool {
    message["method"] == "Page.loadEventFired"
}

impl Drop for Browser {
    fn drop(&mut self) {
        // It may have ended by itself, and then there is nothing to end.
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

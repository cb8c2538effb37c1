//! A folder of its own for each test, and the binary to run in it.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

pub(crate) struct Sandbox {
    folder: tempfile::TempDir,
}

impl Sandbox {
    pub(crate) fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a session file and returns its name.
    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) -> String {
        std::fs::write(self.path(name), text).unwrap();
        name.to_owned()
    }

    /// A copy of one of the repository's fixtures.
    pub(crate) fn fixture(&self, name: &str) -> String {
        let source = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../fixtures/sessions")
            .join(name);
        self.write(name, std::fs::read(source).unwrap())
    }

    pub(crate) fn read(&self, name: &str) -> String {
        String::from_utf8(std::fs::read(self.path(name)).unwrap()).unwrap()
    }

    pub(crate) fn read_bytes(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    pub(crate) fn run(&self, args: &[&str]) -> Run {
        self.run_with(args, &[])
    }

    /// Runs with variables in the environment, which is empty otherwise.
    pub(crate) fn run_with(&self, args: &[&str], variables: &[(&str, &str)]) -> Run {
        let mut command = self.command(Path::new(env!("CARGO_BIN_EXE_foldline")));
        let output = command.args(args).envs(variables.iter().copied()).output();
        self.ran(output.unwrap())
    }

    /// The binary, or a copy of it, in this folder and with an empty environment.
    pub(crate) fn command(&self, binary: &Path) -> Command {
        let mut command = Command::new(binary);
        command
            .current_dir(self.folder.path())
            .env_clear()
            .env("HOME", self.folder.path())
            .env("NO_COLOR", "1");
        command
    }

    pub(crate) fn ran(&self, output: Output) -> Run {
        Run {
            output,
            folder: self.folder.path().display().to_string(),
        }
    }

    /// Runs with a text on standard input.
    pub(crate) fn run_with_input(&self, args: &[&str], input: &str) -> Run {
        let mut child = self.spawn(args);
        let mut stdin = child.stdin.take().unwrap();
        // What ends before it reads is no fault of this.
        stdin.write_all(input.as_bytes()).ok();
        drop(stdin);
        self.ran(child.wait_with_output().unwrap())
    }

    /// Starts the binary and leaves it to the caller.
    pub(crate) fn spawn(&self, args: &[&str]) -> Child {
        self.command(Path::new(env!("CARGO_BIN_EXE_foldline")))
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// Runs with a terminal for both outputs. Returns the exit code, and what reached the terminal.
    #[cfg(unix)]
    pub(crate) fn run_on_terminal(&self, args: &[&str]) -> (Option<i32>, String) {
        use std::io::Read as _;
        use std::os::unix::ffi::OsStringExt as _;
        use std::os::unix::fs::OpenOptionsExt as _;

        use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap().into_bytes();
        let name = PathBuf::from(std::ffi::OsString::from_vec(name));
        let terminal = std::fs::File::options()
            .read(true)
            .write(true)
            .custom_flags(rustix::fs::OFlags::NOCTTY.bits().cast_signed())
            .open(name)
            .unwrap();
        let mut command = self.command(Path::new(env!("CARGO_BIN_EXE_foldline")));
        command
            .args(args)
            .env_remove("NO_COLOR")
            .env("TERM", "xterm-256color")
            .stdin(Stdio::null())
            .stdout(terminal.try_clone().unwrap())
            .stderr(terminal);
        let mut child = command.spawn().unwrap();
        // It holds the other ends, which have to be closed for the reading to end.
        drop(command);
        let mut shown = Vec::new();
        let mut master = std::fs::File::from(master);
        let mut buffer = [0; 4096];
        // Linux says "input/output error" when nobody writes any more.
        while let Ok(read @ 1..) = master.read(&mut buffer) {
            shown.extend_from_slice(&buffer[..read]);
        }
        let code = child.wait().unwrap().code();
        (code, String::from_utf8_lossy(&shown).into_owned())
    }

    /// Runs with `--json` and parses the one document.
    pub(crate) fn json(&self, args: &[&str]) -> serde_json::Value {
        let mut all = args.to_vec();
        all.push("--json");
        let run = self.run(&all);
        serde_json::from_slice(&run.output.stdout)
            .unwrap_or_else(|e| panic!("{e}: {}{}", run.stdout(), run.stderr()))
    }
}

pub(crate) struct Run {
    output: Output,
    folder: String,
}

impl Run {
    pub(crate) fn code(&self) -> i32 {
        self.output.status.code().unwrap()
    }

    pub(crate) fn stdout(&self) -> String {
        String::from_utf8_lossy(&self.output.stdout).replace(&self.folder, "[FOLDER]")
    }

    pub(crate) fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.output.stderr).replace(&self.folder, "[FOLDER]")
    }

    /// Exit code and both streams, for snapshots.
    pub(crate) fn all(&self) -> String {
        format!(
            "exit {}\n--- stdout\n{}--- stderr\n{}",
            self.code(),
            self.stdout(),
            self.stderr()
        )
    }
}

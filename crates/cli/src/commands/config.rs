//! `foldline config`: what holds and where it comes from; changes of the user's file; trust in projects.

use std::path::{Path, PathBuf};

use clap::{Args as ClapArgs, Subcommand};
use foldline_agent_session::settings::{
    EffectiveKey, Environment, Overrides, Problem, ProblemKind, ProjectTrust, Resolved, SetError,
    SettingsFiles, Source, TrustChange, TrustError, TrustedProjects, nearest_key,
};
use foldline_session_store::Layout;
use serde::Serialize;
use serde_json::Value;

use crate::environment::working_folder;
use crate::error::{CommandError, ErrorKind, Status};
use crate::output::{self, BOLD, DIM, Format};

#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Show the settings that hold, and where each comes from.
    #[command(after_help = "Examples:
  foldline config get
  foldline config get compaction
  foldline config get compaction.strategy --json")]
    Get {
        /// A setting or a group of them [default: all].
        key: Option<String>,
    },
    /// Set a setting in the user's file.
    #[command(after_help = "Examples:
  foldline config set compaction.strategy context-full
  foldline config set fallbackModels '[\"ollama/qwen3\"]'
  foldline config set providers.my.baseUrl http://127.0.0.1:8080")]
    Set {
        /// The setting.
        key: String,
        /// Its value: a word, or JSON.
        #[arg(allow_hyphen_values = true)]
        value: String,
    },
    /// Take a setting out of the user's file.
    Unset {
        /// The setting, or a group of them.
        key: String,
    },
    /// Let the settings of a project name servers, keys, commands and tools.
    Trust {
        /// The project's folder [default: this one].
        dir: Option<PathBuf>,
    },
    /// Do not let them any more.
    Untrust {
        /// The project's folder [default: this one].
        dir: Option<PathBuf>,
    },
}

pub(crate) fn run(args: &Args, format: Format) -> Result<Status, CommandError> {
    let layout = Layout::from_environment().map_err(|e| failed(&e))?;
    let cwd = working_folder()?;
    match &args.action {
        Action::Get { key } => get(&SettingsFiles::new(&layout, &cwd), key.as_deref(), format),
        Action::Set { key, value } => set(&SettingsFiles::new(&layout, &cwd), key, value, format),
        Action::Unset { key } => {
            let files = SettingsFiles::new(&layout, &cwd);
            files.unset(key).map_err(|e| set_error(&e, &files))?;
            changed(&files, key, "Unset", format);
            Ok(Status::Done)
        }
        Action::Trust { dir } => {
            let project = dir.as_deref().unwrap_or(&cwd);
            // Before it is trusted, what it may not set yet is known.
            let asks = load(&SettingsFiles::new(&layout, project)).problems;
            let outcome = TrustedProjects::read(&layout).trust(project);
            let (project, change) = outcome.map_err(|e| trust_error(&e, project, &layout))?;
            trust_changed(&project, change, ProjectTrust::Trusted, &asks, format);
            Ok(Status::Done)
        }
        Action::Untrust { dir } => {
            let project = dir.as_deref().unwrap_or(&cwd);
            let outcome = TrustedProjects::read(&layout).untrust(project);
            let (project, change) = outcome.map_err(|e| trust_error(&e, project, &layout))?;
            trust_changed(&project, change, ProjectTrust::Untrusted, &[], format);
            Ok(Status::Done)
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GetDocument<'d> {
    settings: &'d [EffectiveKey],
    user_file: &'d Path,
    project_file: Option<&'d Path>,
    trusted: bool,
    problems: &'d [Problem],
}

fn get(files: &SettingsFiles, key: Option<&str>, format: Format) -> Result<Status, CommandError> {
    let resolved = load(files);
    for problem in &resolved.problems {
        output::warning(&problem.to_string());
    }
    let settings = match key {
        None => resolved.keys(),
        Some(key) => resolved
            .under(key)
            .ok_or_else(|| unknown(key, nearest_key(key).as_deref()))?,
    };
    let document = GetDocument {
        settings: &settings,
        user_file: files.user(),
        project_file: files.project(),
        trusted: files.trust() == ProjectTrust::Trusted,
        problems: &resolved.problems,
    };
    output::result(format, &document, || {
        let width = settings.iter().map(|s| s.key.len()).max().unwrap_or_default();
        let mut out = String::new();
        for setting in &settings {
            let value = setting.value.get();
            if setting.source == Source::Default {
                out.push_str(&format!("{:width$}  {value}\n", setting.key));
            } else {
                out.push_str(&format!(
                    "{BOLD}{:width$}{BOLD:#}  {value}  {DIM}{}{DIM:#}\n",
                    setting.key, setting.source
                ));
            }
        }
        out
    });
    Ok(Status::Done)
}

fn unknown(key: &str, nearest: Option<&str>) -> CommandError {
    let error = CommandError::new(ErrorKind::Usage, format!("there is no setting {key}"));
    match nearest {
        Some(nearest) => error.hint(format!("is {nearest} meant?")),
        None => error.hint("`foldline config get` lists the settings"),
    }
}

fn set(files: &SettingsFiles, key: &str, text: &str, format: Format) -> Result<Status, CommandError> {
    let outcome = match serde_json::from_str::<Value>(text) {
        Ok(value) => files.set(key, &value).or_else(|error| match error {
            // A model or a query may look like a number.
            SetError::WrongValue { .. } if !value.is_string() => files.set(key, text).map_err(|_| error),
            error => Err(error),
        }),
        Err(_) => files.set(key, text),
    };
    outcome.map_err(|e| set_error(&e, files))?;
    changed(files, key, "Set", format);
    Ok(Status::Done)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SetDocument<'d> {
    outcome: &'static str,
    key: &'d str,
    file: &'d Path,
    settings: &'d [EffectiveKey],
}

fn changed(files: &SettingsFiles, key: &str, verb: &str, format: Format) {
    let resolved = load(files);
    let settings = resolved.under(key).unwrap_or_default();
    for setting in &settings {
        if let Source::Project { .. } | Source::Environment { .. } = setting.source {
            output::warning(&format!(
                "{} is {} here all the same: {} says so",
                setting.key,
                setting.value.get(),
                setting.source
            ));
        }
    }
    let document = SetDocument {
        outcome: "committed",
        key,
        file: files.user(),
        settings: &settings,
    };
    output::result(format, &document, || {
        format!("{verb} {key} in {}\n", files.user().display())
    });
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TrustDocument<'d> {
    outcome: &'static str,
    project: &'d Path,
    trusted: bool,
    /// What the project sets that only trusted ones may.
    sets: &'d [&'d str],
}

fn trust_changed(project: &Path, change: TrustChange, trust: ProjectTrust, asks: &[Problem], format: Format) {
    let sets: Vec<&str> = asks
        .iter()
        .filter(|problem| problem.kind == ProblemKind::Untrusted)
        .filter_map(|problem| problem.key.as_deref())
        .collect();
    let document = TrustDocument {
        outcome: match change {
            TrustChange::Changed => "committed",
            TrustChange::Already => "skipped",
        },
        project,
        trusted: trust == ProjectTrust::Trusted,
        sets: &sets,
    };
    output::result(format, &document, || {
        let project = project.display();
        let mut out = match (trust, change) {
            (ProjectTrust::Trusted, TrustChange::Changed) => format!("{project} is trusted now\n"),
            (ProjectTrust::Trusted, TrustChange::Already) => format!("{project} was trusted before\n"),
            (ProjectTrust::Untrusted, TrustChange::Changed) => format!("{project} is not trusted any more\n"),
            (ProjectTrust::Untrusted, TrustChange::Already) => format!("{project} was not trusted\n"),
        };
        if !sets.is_empty() {
            out.push_str(&format!("  its settings set {}\n", sets.join(", ")));
        }
        out
    });
}

fn load(files: &SettingsFiles) -> Resolved {
    files.load(&Environment::from_process(), &Overrides::default())
}

fn failed(error: &dyn std::error::Error) -> CommandError {
    CommandError::from_error(ErrorKind::Failed, error)
}

fn set_error(error: &SetError, files: &SettingsFiles) -> CommandError {
    match error {
        SetError::UnknownKey { key, nearest } => unknown(key, nearest.as_deref()),
        SetError::WrongValue { key, .. } => CommandError::from_error(ErrorKind::Usage, error)
            .hint(format!("`foldline config get {key}` shows what holds")),
        SetError::PartOfWhole { whole, .. } => {
            let hint = format!("give the object in one go: `foldline config set {whole} '{{…}}'`");
            CommandError::from_error(ErrorKind::Usage, error).hint(hint)
        }
        SetError::Damaged { .. } => failed(error).hint("repair the file; nothing was written to it"),
        SetError::Busy { .. } => failed(error).hint("try again"),
        SetError::Io(source) => refused(files.user(), source),
        _ => failed(error),
    }
}

/// What the system said about a file of ours.
fn refused(file: &Path, error: &std::io::Error) -> CommandError {
    let failed = CommandError::new(ErrorKind::Failed, format!("{}: {error}", file.display()));
    match error.kind() {
        std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::ReadOnlyFilesystem => {
            failed.hint("the file and its folder must be writable: `ls -ld` shows their permissions")
        }
        std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => failed.hint("make room"),
        _ => failed.hint("look at what is there; nothing was written to it"),
    }
}

fn trust_error(error: &TrustError, project: &Path, layout: &Layout) -> CommandError {
    match error {
        TrustError::Damaged { file, .. } => {
            failed(error).hint(format!("repair or remove {}", file.display()))
        }
        TrustError::Busy { .. } => failed(error).hint("try again"),
        _ if !project.is_dir() => {
            CommandError::from_error(ErrorKind::Usage, error).hint("name the project's folder")
        }
        TrustError::Io(_) if std::fs::canonicalize(project).is_ok_and(|path| path.to_str().is_none()) => {
            let message = format!("the name of {} is not UTF-8", project.display());
            CommandError::new(ErrorKind::Failed, message)
                .hint("such a folder cannot be trusted: rename it, or set what it needs in your own settings")
        }
        TrustError::Io(source) => refused(&layout.trusted_projects(), source),
        _ => failed(error),
    }
}

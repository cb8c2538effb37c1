//! Laying settings over each other: pure, from values to what holds.
#![expect(clippy::disallowed_types, reason = "a layer of settings is a small value")]

mod merge;
mod place;
mod resolved;

use std::fmt;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::{Map, Value};

use super::{Environment, ProblemKind, catalog};
use merge::Merge;

use place::place;

pub(super) use place::GUARDED;
pub use resolved::{EffectiveKey, Resolved};

/// Where a value comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(tag = "layer", rename_all = "camelCase")]
pub enum Source {
    /// Nobody set it.
    #[default]
    Default,
    /// The user's file.
    User {
        /// The file.
        file: PathBuf,
    },
    /// The project's file.
    Project {
        /// The file.
        file: PathBuf,
    },
    /// An environment variable.
    Environment {
        /// Its name.
        variable: &'static str,
    },
    /// An option of the command line, or a choice made while the program runs.
    Override,
}

impl Source {
    /// The file, if it is one.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::User { file } | Self::Project { file } => Some(file),
            Self::Default | Self::Environment { .. } | Self::Override => None,
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::User { file } | Self::Project { file } => file.display().fmt(f),
            Self::Environment { variable } => f.write_str(variable),
            Self::Override => f.write_str("option"),
        }
    }
}

/// Whether the user trusts the project.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProjectTrust {
    /// Guarded settings of its file count.
    Trusted,
    /// They are ignored and reported.
    #[default]
    Untrusted,
}

/// A settings file that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct FileLayer {
    file: PathBuf,
    content: Result<Map<String, Value>, ProblemKind>,
}

impl FileLayer {
    /// Reads the text of a file. One that is no JSON object counts as empty; [`resolve`] reports it.
    pub fn parse(file: PathBuf, text: &str) -> Self {
        // Editors of some systems put a mark at the beginning.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let content = serde_json::from_str(text).map_err(|error| ProblemKind::Syntax {
            line: error.line(),
            column: error.column(),
            message: syntax_message(&error),
        });
        Self { file, content }
    }

    /// A file that is there and cannot be read.
    pub fn unreadable(file: PathBuf, message: String) -> Self {
        Self {
            file,
            content: Err(ProblemKind::Unreadable { message }),
        }
    }
}

/// The message without the place, which is told apart.
pub(super) fn syntax_message(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    text.strip_suffix(&place)
        .unwrap_or(&text)
        .replace("a map", "an object")
}

/// Options of the command line, and choices made while the program runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Overrides {
    tree: Map<String, Value>,
}

impl Overrides {
    /// Sets a key (`compaction.strategy`); `None` changes nothing.
    ///
    /// A key that is not known, or a value that cannot be taken, is reported by [`resolve`].
    ///
    /// # Errors
    /// The value has no form in JSON.
    pub fn set(&mut self, key: &str, value: Option<impl Serialize>) -> Result<(), serde_json::Error> {
        let Some(value) = value else {
            return Ok(());
        };
        let value = serde_json::to_value(value)?;
        let path = catalog::root()
            .path(key)
            .unwrap_or_else(|| key.split('.').map(str::to_owned).collect());
        place(&mut self.tree, &path, value);
        Ok(())
    }
}

/// The layers over the defaults.
#[derive(Clone, Copy, Debug, Default)]
pub struct Layers<'l> {
    /// The user's file, if there is one.
    pub user: Option<&'l FileLayer>,
    /// The project's file, if there is one.
    pub project: Option<&'l FileLayer>,
    /// Whether the user trusts the project.
    pub trust: ProjectTrust,
    /// The environment, if it counts.
    pub environment: Option<&'l Environment>,
    /// Options and choices, if there are any.
    pub overrides: Option<&'l Overrides>,
}

/// Lays the layers over the defaults. Never fails: what cannot be taken is in
/// [`problems`](Resolved::problems), and what lies below it holds.
pub fn resolve(layers: &Layers<'_>) -> Resolved {
    let mut merge = Merge::new();
    if let Some(user) = layers.user {
        merge.file(
            user,
            Source::User {
                file: user.file.clone(),
            },
            ProjectTrust::Trusted,
        );
    }
    if let Some(project) = layers.project {
        merge.file(
            project,
            Source::Project {
                file: project.file.clone(),
            },
            layers.trust,
        );
    }
    if let Some(environment) = layers.environment {
        if let Some((variable, layer)) = environment.model() {
            merge.value(&layer, Source::Environment { variable });
        }
        for (variable, layer) in merge
            .model(layers.overrides)
            .map(|m| environment.about(&m))
            .unwrap_or_default()
        {
            merge.value(&layer, Source::Environment { variable });
        }
    }
    if let Some(overrides) = layers.overrides {
        merge.layer(&overrides.tree, Source::Override, ProjectTrust::Trusted);
    }
    merge.finish()
}

/// Whether a value can be taken at a path. The path exists.
pub(super) fn acceptable(path: &[String], value: &Value) -> Result<(), ProblemKind> {
    let mut merge = Merge::new();
    let mut layer = Map::new();
    place(&mut layer, path, value.clone());
    merge.layer(&layer, Source::Override, ProjectTrust::Trusted);
    match merge.problems.into_iter().next() {
        Some(problem) => Err(problem.kind),
        None => Ok(()),
    }
}

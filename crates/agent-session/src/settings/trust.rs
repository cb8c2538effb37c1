//! Which projects the user trusts (design page, D12). The list is the user's; no project can write it.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use foldline_session_store::Layout;
use fs_err as fs;
use serde::{Deserialize, Serialize};

use super::SetError;
use super::files::{lock, private_folder, publish, read_bounded};

/// The projects that the user trusts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrustedProjects {
    file: PathBuf,
    form: Form,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct Form {
    version: u32,
    /// Canonical folders.
    projects: BTreeSet<PathBuf>,
}

/// Why trust was not changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrustError {
    /// The list cannot be read; to write it anew would lose what it holds.
    #[error("{} is damaged", file.display())]
    Damaged {
        /// The list.
        file: PathBuf,
        /// What is wrong.
        source: serde_json::Error,
    },
    /// Another program is changing it.
    #[error("{} is being changed by another program", file.display())]
    Busy {
        /// The list.
        file: PathBuf,
    },
    /// There is no such project, or the list cannot be written.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Whether a change was one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrustChange {
    /// It was.
    Changed,
    /// It was so before.
    Already,
}

impl TrustedProjects {
    /// Reads the list. One that cannot be read trusts nobody.
    pub fn read(layout: &Layout) -> Self {
        let file = layout.trusted_projects();
        let form = read_form(&file).unwrap_or_default();
        Self { file, form }
    }

    /// Whether the folder is trusted: itself, by whatever path it is reached. Folders in it are projects of their own.
    pub fn contains(&self, project: &Path) -> bool {
        fs::canonicalize(project).is_ok_and(|project| self.form.projects.contains(&project))
    }

    /// The folders, sorted.
    pub fn projects(&self) -> impl Iterator<Item = &Path> {
        self.form.projects.iter().map(PathBuf::as_path)
    }

    /// Trusts a folder; returns its canonical path.
    ///
    /// # Errors
    /// There is no such folder, or the list is damaged, busy or cannot be written.
    pub fn trust(&mut self, project: &Path) -> Result<(PathBuf, TrustChange), TrustError> {
        let project = fs::canonicalize(project)?;
        if !project.is_dir() {
            let message = format!("{} is no folder", project.display());
            return Err(io::Error::new(io::ErrorKind::NotADirectory, message).into());
        }
        let change = self.change(|projects| projects.insert(project.clone()))?;
        Ok((project, change))
    }

    /// Trusts a folder no more; one that is gone is found by the path that it had.
    ///
    /// # Errors
    /// The list is damaged, busy or cannot be written.
    pub fn untrust(&mut self, project: &Path) -> Result<(PathBuf, TrustChange), TrustError> {
        let project = fs::canonicalize(project).unwrap_or_else(|_| project.to_path_buf());
        let change = self.change(|projects| projects.remove(&project))?;
        Ok((project, change))
    }

    fn change(
        &mut self,
        change: impl FnOnce(&mut BTreeSet<PathBuf>) -> bool,
    ) -> Result<TrustChange, TrustError> {
        let folder = self.file.parent().unwrap_or(Path::new("."));
        private_folder(folder)?;
        let _lock = lock(&self.file).map_err(|error| match error {
            SetError::Busy { file } => TrustError::Busy { file },
            SetError::Io(error) => error.into(),
            other => io::Error::other(other).into(),
        })?;
        self.form = read_form(&self.file)?;
        if !change(&mut self.form.projects) {
            return Ok(TrustChange::Already);
        }
        self.form.version = 1;
        let text = serde_json::to_string_pretty(&self.form).map_err(io::Error::other)?;
        publish(folder, &self.file, &format!("{text}\n"))?;
        Ok(TrustChange::Changed)
    }
}

fn read_form(file: &Path) -> Result<Form, TrustError> {
    match read_bounded(file) {
        Ok(text) if text.trim().is_empty() => Ok(Form::default()),
        Ok(text) => serde_json::from_str(&text).map_err(|source| TrustError::Damaged {
            file: file.to_path_buf(),
            source,
        }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Form::default()),
        Err(error) => Err(error.into()),
    }
}

//! Open files of the volume in memory.

use std::io;
use std::path::{Path, PathBuf};

use super::{Fault, Inode, Memory, State, Step, error_of, stopped};
use crate::volume::{Existing, FileStat, Locked, StagedFile, Unpublished, VolumeFile};

#[derive(Debug)]
pub(super) struct MemoryFile {
    pub(super) memory: Memory,
    pub(super) inode: u64,
    pub(super) handle: u64,
    pub(super) epoch: u64,
}

impl MemoryFile {
    fn check(&self, state: &State) -> io::Result<()> {
        state.check_running()?;
        if self.epoch == state.epoch {
            Ok(())
        } else {
            Err(stopped())
        }
    }
}

fn inode(state: &mut State, inode: u64) -> io::Result<&mut Inode> {
    state
        .inodes
        .get_mut(&inode)
        .ok_or_else(|| io::ErrorKind::NotFound.into())
}

impl VolumeFile for MemoryFile {
    fn stat(&self) -> io::Result<FileStat> {
        let state = self.memory.state();
        self.check(&state)?;
        state.stat(self.inode)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut state = self.memory.state();
        self.check(&state)?;
        let content = &inode(&mut state, self.inode)?.content;
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        let bytes = content.get(offset..).unwrap_or_default();
        let len = bytes.len().min(buffer.len());
        if let Some((to, from)) = buffer.get_mut(..len).zip(bytes.get(..len)) {
            to.copy_from_slice(from);
        }
        Ok(len)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut state = self.memory.state();
        self.check(&state)?;
        let fault = state.step(Step::Write)?;
        let now = state.ticks;
        // Where a cut write ends varies with the step, so that a sweep over steps sees many places.
        let part = usize::try_from(state.steps.wrapping_mul(7919)).unwrap_or(0) % bytes.len().max(1);
        let len = match fault {
            None => bytes.len(),
            Some(Fault::InputOutput) => 0,
            Some(_) => part,
        };
        let file = inode(&mut state, self.inode)?;
        file.content
            .extend_from_slice(bytes.get(..len).unwrap_or_default());
        file.modified = now;
        match fault {
            None | Some(Fault::ShortWrite) => Ok(len),
            Some(Fault::Crash) => {
                state.crashed = true;
                Err(stopped())
            }
            Some(fault) => Err(error_of(fault)),
        }
    }

    fn make_private(&mut self) -> io::Result<()> {
        let mut state = self.memory.state();
        self.check(&state)?;
        if let Some(file) = state.inodes.get_mut(&self.inode) {
            file.mode = 0o600;
        }
        Ok(())
    }

    fn set_len(&mut self, len: u64) -> io::Result<()> {
        let mut state = self.memory.state();
        self.check(&state)?;
        let len = usize::try_from(len).map_err(|_| io::ErrorKind::FileTooLarge)?;
        let at = self.inode;
        state.whole_step(Step::Cut, |state| {
            let now = state.ticks;
            if let Some(file) = state.inodes.get_mut(&at) {
                file.content.resize(len, 0);
                file.modified = now;
            }
        })
    }

    fn sync(&mut self) -> io::Result<()> {
        let mut state = self.memory.state();
        self.check(&state)?;
        sync(&mut state, self.inode)
    }

    fn try_lock(&mut self) -> io::Result<Locked> {
        let mut state = self.memory.state();
        self.check(&state)?;
        let holder = *state.locks.entry(self.inode).or_insert(self.handle);
        Ok(if holder == self.handle {
            Locked::Held
        } else {
            Locked::Busy
        })
    }
}

impl Drop for MemoryFile {
    fn drop(&mut self) {
        let mut state = self.memory.state();
        if state.locks.get(&self.inode) == Some(&self.handle) {
            state.locks.remove(&self.inode);
        }
    }
}

/// A sync that fails leaves the pages marked clean: the next plain sync does nothing for them.
pub(super) fn sync(state: &mut State, at: u64) -> io::Result<()> {
    let fault = state.step(Step::Sync)?;
    let file = inode(state, at)?;
    match fault {
        None | Some(Fault::ShortWrite) => {
            if !file.falsely_clean {
                file.durable.clone_from(&file.content);
            }
            Ok(())
        }
        Some(Fault::Crash) => {
            state.crashed = true;
            Err(stopped())
        }
        Some(fault) => {
            file.falsely_clean = true;
            Err(error_of(fault))
        }
    }
}

#[derive(Debug)]
pub(super) struct MemoryStaged {
    memory: Memory,
    /// `None` once it has its name.
    temp: Option<PathBuf>,
    file: MemoryFile,
}

impl MemoryStaged {
    pub(super) fn new(memory: Memory, temp: PathBuf, file: MemoryFile) -> Self {
        Self {
            memory,
            temp: Some(temp),
            file,
        }
    }
}

impl StagedFile for MemoryStaged {
    fn file(&mut self) -> &mut dyn VolumeFile {
        &mut self.file
    }

    fn publish(mut self: Box<Self>, target: &Path, existing: Existing) -> Result<(), Unpublished> {
        let published = {
            let mut state = self.memory.state();
            if existing == Existing::Refuse && state.names.contains_key(target) {
                Err(io::Error::new(
                    io::ErrorKind::AlreadyExists,
                    target.display().to_string(),
                ))
            } else {
                let temp = self.temp.clone().unwrap_or_default();
                let inode = self.file.inode;
                state.whole_step(Step::Rename, |state| {
                    state.names.remove(&temp);
                    state.names.insert(target.to_path_buf(), inode);
                })
            }
        };
        match published {
            Ok(()) => {
                self.temp = None;
                Ok(())
            }
            Err(error) => Err(Unpublished {
                error,
                staged: Some(self),
            }),
        }
    }
}

impl Drop for MemoryStaged {
    fn drop(&mut self) {
        if let Some(temp) = self.temp.take() {
            let mut state = self.memory.state();
            // After a crash nobody tidies up.
            if !state.crashed && self.file.epoch == state.epoch {
                state.names.remove(&temp);
            }
        }
    }
}

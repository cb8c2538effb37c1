//! The volume of the operating system.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use fs_err::{File, OpenOptions};

use super::{
    Access, Existing, FileIdentity, FileKind, FileStat, FolderItem, Links, Locked, StagedFile, Unpublished,
    Volume, VolumeFile,
};
use crate::owner::{self, Liveness, Owner};

/// Files of this machine.
#[derive(Debug, Default)]
pub(crate) struct Disk;

impl Volume for Disk {
    fn canonical(&self, path: &Path) -> io::Result<PathBuf> {
        fs_err::canonicalize(path)
    }

    fn stat(&self, path: &Path) -> io::Result<FileStat> {
        fs_err::symlink_metadata(path).map(|metadata| stat_of(&metadata))
    }

    fn open(&self, path: &Path, links: Links) -> io::Result<Box<dyn VolumeFile>> {
        let mut options = OpenOptions::new();
        options.read(true);
        unix::refuse_surprises(&mut options, links);
        regular(options.open(path)?)
    }

    fn open_append(&self, path: &Path) -> io::Result<Box<dyn VolumeFile>> {
        let mut options = OpenOptions::new();
        options.read(true).append(true);
        unix::refuse_surprises(&mut options, Links::Refuse);
        regular(options.open(path)?)
    }

    fn open_or_create(&self, path: &Path) -> io::Result<Box<dyn VolumeFile>> {
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true);
        unix::private(&mut options);
        unix::refuse_surprises(&mut options, Links::Refuse);
        regular(options.open(path)?)
    }

    fn create_new(&self, path: &Path) -> io::Result<Box<dyn VolumeFile>> {
        let mut options = OpenOptions::new();
        options.read(true).append(true).create_new(true);
        unix::private(&mut options);
        Ok(Box::new(DiskFile(options.open(path)?)))
    }

    fn stage(&self, folder: &Path, access: Access) -> io::Result<Box<dyn StagedFile>> {
        let staged = stage_private(folder)?;
        if let Access::Mode(mode) = access {
            unix::set_mode(&staged.file.0, mode)?;
        }
        Ok(Box::new(staged))
    }

    fn stage_copy(&self, source: &Path, len: u64, folder: &Path) -> io::Result<Box<dyn StagedFile>> {
        let staged = stage_private(folder)?;
        let source = File::open(source)?;
        // Between two plain files io::copy lets the kernel copy, or even share, the blocks.
        let copied = io::copy(&mut source.file().take(len), &mut staged.file.0.file())?;
        if copied != len {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(Box::new(staged))
    }

    fn rewrite_range(&self, path: &Path, from: u64, to: u64) -> io::Result<()> {
        const BLOCK: u64 = 1 << 20;
        // Not an appending handle: on Linux those ignore the offset of a positional write.
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        let mut buffer = Vec::new();
        let mut at = from;
        while at < to {
            let len = usize::try_from(BLOCK.min(to - at)).unwrap_or(usize::MAX);
            buffer.resize(len, 0);
            unix::read_exact_at(&file, &mut buffer, at)?;
            unix::write_all_at(&file, &buffer, at)?;
            at += len as u64;
        }
        file.sync_data()
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<FolderItem>> {
        let mut items = Vec::new();
        for item in fs_err::read_dir(folder)? {
            let item = item?;
            let is_folder = item.file_type()?.is_dir();
            items.push(FolderItem {
                name: item.file_name(),
                is_folder,
            });
        }
        items.sort();
        Ok(items)
    }

    fn create_folder(&self, folder: &Path) -> io::Result<()> {
        unix::create_private_folder(folder)
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        unix::sync_folder(folder)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs_err::remove_file(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs_err::rename(from, to)
    }

    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        let from = tempfile::TempPath::try_from_path(from)?;
        from.persist_noclobber(to).map_err(|refused| {
            // Dropped, the path would take its file with it.
            refused.path.keep().ok();
            refused.error
        })
    }

    fn liveness(&self, owner: &Owner) -> Liveness {
        owner::liveness(owner)
    }

    fn pause(&self, pause: Duration) {
        std::thread::sleep(pause);
    }
}

/// tempfile creates exclusively, 0600, under a random name; a wider mode is set only on request.
fn stage_private(folder: &Path) -> io::Result<DiskStaged> {
    let folder = if folder.as_os_str().is_empty() {
        Path::new(".")
    } else {
        folder
    };
    let named = tempfile::Builder::new()
        .prefix(".foldline-")
        .suffix(".tmp")
        .tempfile_in(folder)?;
    let (file, path) = named.into_parts();
    Ok(DiskStaged {
        file: DiskFile(File::from_parts(file, path.to_path_buf())),
        path,
    })
}

#[derive(Debug)]
struct DiskFile(File);

impl VolumeFile for DiskFile {
    fn stat(&self) -> io::Result<FileStat> {
        self.0.metadata().map(|metadata| stat_of(&metadata))
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        unix::read_at(&self.0, buffer, offset)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn set_len(&mut self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn make_private(&mut self) -> io::Result<()> {
        unix::set_mode(&self.0, 0o600)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn try_lock(&mut self) -> io::Result<Locked> {
        match self.0.file().try_lock() {
            Ok(()) => Ok(Locked::Held),
            Err(std::fs::TryLockError::WouldBlock) => Ok(Locked::Busy),
            Err(std::fs::TryLockError::Error(error)) => Err(error),
        }
    }
}

#[derive(Debug)]
struct DiskStaged {
    file: DiskFile,
    path: tempfile::TempPath,
}

impl StagedFile for DiskStaged {
    fn file(&mut self) -> &mut dyn VolumeFile {
        &mut self.file
    }

    fn publish(self: Box<Self>, target: &Path, existing: Existing) -> Result<(), Unpublished> {
        let Self { file, path } = *self;
        let published = match existing {
            Existing::Replace => path.persist(target),
            Existing::Refuse => path.persist_noclobber(target),
        };
        published.map_err(|refused| Unpublished {
            error: refused.error,
            staged: Some(Box::new(Self {
                file,
                path: refused.path,
            })),
        })
    }
}

/// A fifo or a device under a session's name would block or never end.
fn regular(file: File) -> io::Result<Box<dyn VolumeFile>> {
    if !file.metadata()?.is_file() {
        let path = file.path().display();
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("{path} is not a regular file"),
        ));
    }
    Ok(Box::new(DiskFile(file)))
}

fn stat_of(metadata: &std::fs::Metadata) -> FileStat {
    let kind = metadata.file_type();
    FileStat {
        kind: if kind.is_file() {
            FileKind::File
        } else if kind.is_dir() {
            FileKind::Folder
        } else if kind.is_symlink() {
            FileKind::Link
        } else {
            FileKind::Other
        },
        len: metadata.len(),
        modified: metadata.modified().unwrap_or(std::time::UNIX_EPOCH),
        mode: unix::mode_of(metadata),
        identity: unix::identity_of(metadata),
    }
}

/// What Unix adds to files.
mod unix {
    use std::io;
    use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, PermissionsExt};
    use std::path::Path;

    use fs_err::os::unix::fs::OpenOptionsExt;
    use fs_err::{File, OpenOptions};

    use super::{FileIdentity, Links};

    pub(super) fn private(options: &mut OpenOptions) {
        options.mode(0o600);
    }

    /// Never waits for the other end of a fifo; on request, never follows a link.
    pub(super) fn refuse_surprises(options: &mut OpenOptions, links: Links) {
        let mut flags = rustix::fs::OFlags::NONBLOCK;
        if links == Links::Refuse {
            flags |= rustix::fs::OFlags::NOFOLLOW;
        }
        options.custom_flags(flags.bits().cast_signed());
    }

    pub(super) fn set_mode(file: &File, mode: u32) -> io::Result<()> {
        file.set_permissions(std::fs::Permissions::from_mode(mode & 0o777))
    }

    pub(super) fn mode_of(metadata: &std::fs::Metadata) -> u32 {
        metadata.mode() & 0o777
    }

    pub(super) fn identity_of(metadata: &std::fs::Metadata) -> FileIdentity {
        FileIdentity {
            device: metadata.dev(),
            inode: metadata.ino(),
        }
    }

    pub(super) fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        file.file().read_at(buffer, offset)
    }

    pub(super) fn read_exact_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        file.file().read_exact_at(buffer, offset)
    }

    pub(super) fn write_all_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
        file.file().write_all_at(bytes, offset)
    }

    /// Creates what is missing, and makes the names of what it created durable.
    pub(super) fn create_private_folder(folder: &Path) -> io::Result<()> {
        let missing: Vec<&Path> = folder
            .ancestors()
            .take_while(|folder| !folder.as_os_str().is_empty() && !folder.exists())
            .collect();
        if missing.is_empty() {
            return Ok(());
        }
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", folder.display())))?;
        for made in missing {
            sync_folder(made.parent().unwrap_or(Path::new("")))?;
        }
        Ok(())
    }

    pub(super) fn sync_folder(folder: &Path) -> io::Result<()> {
        let folder = if folder.as_os_str().is_empty() {
            Path::new(".")
        } else {
            folder
        };
        File::open(folder)?.sync_all()
    }
}

//! Where tools may read and write.
//!
//! A path is resolved first, links and all, and must then lie in a folder that is allowed. The result holds no link, so
//! it is opened folder by folder from that folder on, following none: what another process puts in the way between the
//! check and the opening is refused, not followed.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::ToolsetError;

/// What is never opened, whatever is allowed: devices, and files that are views of the system.
const SYSTEM: [&str; 3] = ["/dev", "/proc", "/sys"];

/// The folders that tools may use.
#[derive(Debug)]
pub(super) struct Places {
    /// Resolved; the first is the root.
    roots: Vec<PathBuf>,
}

/// A path in one of the folders. There was no link on it when it was resolved.
#[derive(Clone, Debug)]
pub(super) struct Place {
    root: PathBuf,
    /// Plain names only.
    names: PathBuf,
    /// As the call names it.
    given: String,
}

/// Why a path cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum PlaceError {
    #[error("`{given}` is outside of what may be used: {allowed}.")]
    Outside { given: String, allowed: String },
    #[error("`{given}` is a device or a view of the system, which is never opened.")]
    System { given: String },
    #[error("`{given}` does not exist.{hint}")]
    Missing { given: String, hint: &'static str },
    #[error("`{given}` goes up from a folder that does not exist.")]
    UpFromNowhere { given: String },
    #[error("`{given}` is a link to something that does not exist.")]
    DeadLink { given: String },
    #[error("`{given}` is {kind}, not a file.")]
    NoFile { given: String, kind: &'static str },
    #[error("`{given}` is not a folder.")]
    NoFolder { given: String },
    #[error("`{given}` was replaced while it was opened.")]
    Replaced { given: String },
    #[error("`{given}`: {source}")]
    Io { given: String, source: io::Error },
}

impl Places {
    pub(super) fn new(root: &Path, allowed: &[PathBuf]) -> Result<Self, ToolsetError> {
        let all = std::iter::once(root).chain(allowed.iter().map(PathBuf::as_path));
        let roots = all.map(|path| {
            path.canonicalize().map_err(|source| ToolsetError::Folder {
                path: path.to_owned(),
                source,
            })
        });
        Ok(Self {
            roots: roots.collect::<Result<_, _>>()?,
        })
    }

    /// Something that exists.
    pub(super) fn existing(&self, cwd: &Path, given: &str) -> Result<Place, PlaceError> {
        let joined = cwd.join(given);
        match joined.canonicalize() {
            Ok(real) => self.place(given, &real),
            Err(error) => Err(self.unresolved(&joined, given, error)),
        }
    }

    /// Something that may not exist yet, nor the folders that it lies in.
    pub(super) fn perhaps_new(&self, cwd: &Path, given: &str) -> Result<Place, PlaceError> {
        let joined = cwd.join(given);
        let mut missing = Vec::new();
        let mut current = joined.as_path();
        loop {
            match current.canonicalize() {
                Ok(mut real) => {
                    real.extend(missing.iter().rev());
                    return self.place(given, &real);
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    if current.symlink_metadata().is_ok_and(|meta| meta.is_symlink()) {
                        let given = given.to_owned();
                        return Err(PlaceError::DeadLink { given });
                    }
                    let (Some(name), Some(parent)) = (current.file_name(), current.parent()) else {
                        let given = given.to_owned();
                        return Err(PlaceError::UpFromNowhere { given });
                    };
                    missing.push(name);
                    current = parent;
                }
                Err(error) => return Err(self.unresolved(&joined, given, error)),
            }
        }
    }

    fn place(&self, given: &str, real: &Path) -> Result<Place, PlaceError> {
        let given = given.to_owned();
        if SYSTEM.iter().any(|system| real.starts_with(system)) {
            return Err(PlaceError::System { given });
        }
        let inside = self.roots.iter().find_map(|root| {
            let names = real.strip_prefix(root).ok()?;
            Some((root, names))
        });
        match inside {
            Some((root, names)) => Ok(Place {
                root: root.clone(),
                names: names.to_owned(),
                given,
            }),
            None => Err(self.outside(given)),
        }
    }

    fn outside(&self, given: String) -> PlaceError {
        let allowed = self.roots.iter().map(|root| root.display().to_string());
        PlaceError::Outside {
            given,
            allowed: allowed.collect::<Vec<_>>().join(", "),
        }
    }

    /// Why a path could not be resolved. Of paths that lie outside by their text alone it is not told whether they exist.
    fn unresolved(&self, joined: &Path, given: &str, error: io::Error) -> PlaceError {
        let spelled = without_dots(joined);
        // The root is resolved, the spelling is not: compare with what is left of it once its folder is.
        let real = spelled.ancestors().find_map(|folder| folder.canonicalize().ok());
        let near = real.is_some_and(|real| {
            let mut roots = self.roots.iter();
            roots.any(|root| real.starts_with(root))
        });
        let given = given.to_owned();
        if !near {
            return self.outside(given);
        }
        match error.kind() {
            io::ErrorKind::NotFound => PlaceError::Missing {
                hint: if given.starts_with('~') {
                    " `~` is not expanded."
                } else {
                    ""
                },
                given,
            },
            io::ErrorKind::NotADirectory => PlaceError::NoFolder { given },
            _ => PlaceError::Io { given, source: error },
        }
    }
}

/// `.` and `..` folded by the text alone.
fn without_dots(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                out.pop();
            }
            part => out.push(part),
        }
    }
    out
}

impl Place {
    /// The place without links.
    pub(super) fn path(&self) -> PathBuf {
        if self.names.as_os_str().is_empty() {
            return self.root.clone();
        }
        self.root.join(&self.names)
    }

    /// As the call names it.
    pub(super) fn given(&self) -> &str {
        &self.given
    }

    /// Something in this folder; `names` must be plain.
    pub(super) fn inside(&self, names: &Path) -> Self {
        Self {
            root: self.root.clone(),
            names: self.names.join(names),
            given: Path::new(&self.given).join(names).display().to_string(),
        }
    }

    /// Opens a file to read it. Only a regular file: nothing else can be waited for, or has an end.
    pub(super) fn open_file(&self) -> Result<File, PlaceError> {
        let fd = self.open(OFlags::RDONLY | OFlags::NONBLOCK)?;
        let stat = rustix::fs::fstat(&fd).map_err(|errno| self.error(errno))?;
        match kind(FileType::from_raw_mode(stat.st_mode)) {
            None => Ok(File::from(fd)),
            Some(kind) => Err(PlaceError::NoFile {
                given: self.given.clone(),
                kind,
            }),
        }
    }

    /// Opens a folder to list it.
    pub(super) fn open_folder(&self) -> Result<OwnedFd, PlaceError> {
        self.open(OFlags::RDONLY | OFlags::DIRECTORY)
    }

    /// The folder that it lies in and its name there. Missing folders are made if so told. `None` for a root.
    pub(super) fn parent(&self, missing: MissingFolders) -> Result<Option<(OwnedFd, PathBuf)>, PlaceError> {
        let (Some(folders), Some(name)) = (self.names.parent(), self.names.file_name()) else {
            return Ok(None);
        };
        let mut folder = self.root_folder()?;
        for name in folders {
            folder = match step(&folder, name) {
                Err(Errno::NOENT) if missing == MissingFolders::Make => {
                    match rustix::fs::mkdirat(&folder, name, Mode::from_raw_mode(0o777)) {
                        Ok(()) | Err(Errno::EXIST) => step(&folder, name),
                        Err(errno) => Err(errno),
                    }
                }
                other => other,
            }
            .map_err(|errno| self.error(errno))?;
        }
        Ok(Some((folder, PathBuf::from(name))))
    }

    fn open(&self, flags: OFlags) -> Result<OwnedFd, PlaceError> {
        let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let opened = match self.parent(MissingFolders::Refuse)? {
            Some((folder, name)) => rustix::fs::openat(folder, name, flags, Mode::empty()),
            None => rustix::fs::open(&self.root, flags, Mode::empty()),
        };
        opened.map_err(|errno| self.error(errno))
    }

    fn root_folder(&self) -> Result<OwnedFd, PlaceError> {
        rustix::fs::open(&self.root, WALK, Mode::empty()).map_err(|errno| self.error(errno))
    }

    pub(super) fn error(&self, errno: Errno) -> PlaceError {
        let given = self.given.clone();
        match errno {
            Errno::NOENT => PlaceError::Missing { given, hint: "" },
            Errno::NOTDIR => PlaceError::NoFolder { given },
            Errno::LOOP => PlaceError::Replaced { given },
            Errno::NXIO => PlaceError::NoFile {
                given,
                kind: "a socket or a device",
            },
            errno => PlaceError::Io {
                given,
                source: errno.into(),
            },
        }
    }
}

/// What to do about folders on the way to a new file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MissingFolders {
    Refuse,
    Make,
}

/// How folders on the way are opened: a folder that may be entered need not be readable.
const WALK: OFlags = {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let access = OFlags::PATH;
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    let access = OFlags::RDONLY;
    access
        .union(OFlags::DIRECTORY)
        .union(OFlags::NOFOLLOW)
        .union(OFlags::CLOEXEC)
};

fn step(folder: impl AsFd, name: impl rustix::path::Arg) -> Result<OwnedFd, Errno> {
    rustix::fs::openat(folder, name, WALK, Mode::empty())
}

/// What something is if it is no regular file.
pub(super) fn kind(kind: FileType) -> Option<&'static str> {
    match kind {
        FileType::RegularFile => None,
        FileType::Directory => Some("a folder"),
        FileType::Symlink => Some("a link"),
        FileType::Fifo => Some("a pipe"),
        FileType::Socket => Some("a socket"),
        FileType::CharacterDevice | FileType::BlockDevice => Some("a device"),
        FileType::Unknown => Some("something else"),
    }
}

/// What is known of something in a folder, without following it.
pub(super) fn stat_in(folder: impl AsFd, name: impl rustix::path::Arg) -> Result<rustix::fs::Stat, Errno> {
    rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    struct Yard {
        _folder: tempfile::TempDir,
        root: PathBuf,
        places: Places,
    }

    /// A root with files and links, and a secret beside it.
    fn yard() -> Yard {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        let root = base.join("root");
        fs_err::create_dir_all(root.join("src")).unwrap();
        fs_err::create_dir(base.join("other")).unwrap();
        fs_err::write(root.join("src/a.rs"), "inside").unwrap();
        fs_err::write(base.join("secret"), "outside").unwrap();
        fs_err::write(base.join("other/b"), "allowed").unwrap();
        symlink(base.join("secret"), root.join("out")).unwrap();
        symlink("..", root.join("up")).unwrap();
        symlink("src/a.rs", root.join("within")).unwrap();
        symlink("nowhere", root.join("dead")).unwrap();
        let places = Places::new(&root, &[base.join("other")]).unwrap();
        Yard {
            _folder: folder,
            root,
            places,
        }
    }

    fn refusal(result: Result<Place, PlaceError>) -> String {
        result.unwrap_err().to_string()
    }

    #[test]
    fn what_leads_outside_is_refused() {
        let yard = yard();
        let at = |given: &str| yard.places.existing(&yard.root, given);
        for inside in [
            "src/a.rs",
            "within",
            "./src/../src/a.rs",
            "../other/b",
            "up/root/src/a.rs",
            ".",
        ] {
            assert!(at(inside).is_ok(), "{inside}");
        }
        for outside in [
            "../secret",
            "out",
            "up/secret",
            "up",
            "..",
            "/etc/passwd",
            "/nowhere/at/all",
            "../nowhere",
        ] {
            let why = refusal(at(outside));
            assert!(why.contains("outside of what may be used"), "{outside}: {why}");
        }
        assert_eq!(refusal(at("src/b.rs")), "`src/b.rs` does not exist.");
        assert_eq!(refusal(at("~/x")), "`~/x` does not exist. `~` is not expanded.");
        assert_eq!(refusal(at("src/a.rs/b")), "`src/a.rs/b` is not a folder.");
        assert!(at("a\0b").is_err());
    }

    #[test]
    fn a_new_file_is_where_its_folder_is() {
        let yard = yard();
        let at = |given: &str| yard.places.perhaps_new(&yard.root, given);
        assert_eq!(at("x/y/z").unwrap().path(), yard.root.join("x/y/z"));
        assert_eq!(at("up/root/new").unwrap().path(), yard.root.join("new"));
        for outside in ["../new", "up/new", "/tmp/../new", "out"] {
            assert!(refusal(at(outside)).contains("outside"), "{outside}");
        }
        assert!(refusal(at("x/../../new")).contains("goes up"));
        assert!(refusal(at("dead")).contains("link to something"));
        assert!(refusal(at("dead/x")).contains("link to something"));
    }

    #[test]
    fn a_link_put_in_the_way_is_not_followed() {
        let yard = yard();
        let file = yard.places.existing(&yard.root, "src/a.rs").unwrap();
        fs_err::rename(yard.root.join("src"), yard.root.join("moved")).unwrap();
        symlink("moved", yard.root.join("src")).unwrap();
        assert!(file.open_file().is_err());
        fs_err::remove_file(yard.root.join("src")).unwrap();
        fs_err::create_dir(yard.root.join("src")).unwrap();
        symlink("../../secret", yard.root.join("src/a.rs")).unwrap();
        assert!(file.open_file().is_err());
    }

    #[test]
    fn only_regular_files_are_read() {
        let yard = yard();
        let pipe = yard.root.join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, Mode::from_raw_mode(0o600)).unwrap();
        let open = |given: &str| yard.places.existing(&yard.root, given)?.open_file();
        assert_eq!(
            open("pipe").unwrap_err().to_string(),
            "`pipe` is a pipe, not a file."
        );
        assert_eq!(
            open("src").unwrap_err().to_string(),
            "`src` is a folder, not a file."
        );
        let everywhere = Places::new(Path::new("/"), &[]).unwrap();
        for system in ["/dev/null", "/proc/self/environ", "/dev"] {
            let why = refusal(everywhere.existing(Path::new("/"), system));
            assert!(why.contains("never opened"), "{system}: {why}");
        }
    }
}

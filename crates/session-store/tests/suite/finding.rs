//! Listing and finding sessions.

use std::path::{Path, PathBuf};

use foldline_session_store::{
    Agent, AgentFolder, Count, DiskStore, Layout, LeftoverKind, Project, ResolveError, SessionStore,
    SidecarName,
};

use crate::support::{entry, now, options};

struct Home {
    store: DiskStore,
    layout: Layout,
    _kept: tempfile::TempDir,
}

fn home() -> Home {
    let kept = tempfile::tempdir().unwrap();
    let root = kept.path().canonicalize().unwrap();
    let pi = AgentFolder {
        agent: Agent::Pi,
        folder: root.join("pi/sessions"),
    };
    let codex = AgentFolder {
        agent: Agent::Codex,
        folder: root.join("codex/sessions"),
    };
    let layout = Layout::at(root.join("data"), root.join("config"), vec![pi, codex]);
    Home {
        store: DiskStore::new(),
        layout,
        _kept: kept,
    }
}

impl Home {
    fn session(&self, cwd: &str, id: &str, seconds: u64) -> PathBuf {
        let created = now() + std::time::Duration::from_secs(seconds);
        let path = self.layout.new_session(Path::new(cwd), created, id).unwrap();
        self.write(&path, cwd, id, seconds);
        path
    }

    fn write(&self, path: &Path, cwd: &str, id: &str, seconds: u64) {
        let header = format!(r#"{{"type":"session","version":3,"id":"{id}","cwd":"{cwd}"}}"#);
        let lines = [header, entry(0), entry(1)];
        self.store
            .create(path, &mut lines.iter().map(String::as_bytes))
            .unwrap();
        let file = fs_err::File::options().write(true).open(path).unwrap();
        file.set_modified(now() + std::time::Duration::from_secs(seconds))
            .unwrap();
    }

    fn find(&self, cwd: &str, name: &str) -> Result<PathBuf, ResolveError> {
        self.store.resolve(&self.layout, Path::new(cwd), name)
    }
}

#[test]
fn a_project_lists_its_own_sessions_newest_first() {
    let home = home();
    let old = home.session("/a/b-c", "old", 1);
    let new = home.session("/a/b-c", "new", 2);
    // Another project of the same folder name.
    let other = home.session("/a/b/c", "other", 3);
    assert_eq!(other.parent(), new.parent());
    // What is no session, or not a session's file.
    let folder = new.parent().unwrap();
    fs_err::write(folder.join("notes.txt"), "x").unwrap();
    fs_err::write(folder.join(".hidden.jsonl"), "x").unwrap();
    std::os::unix::fs::symlink(&other, folder.join("link.jsonl")).unwrap();
    fs_err::create_dir(folder.join("old")).unwrap();
    fs_err::write(folder.join("old").join("subagent.jsonl"), "{}").unwrap();

    let ours = [AgentFolder {
        agent: Agent::Foldline,
        folder: home.layout.sessions(),
    }];
    let project = Project::Only(Path::new("/a/b-c"));
    let listing = home.store.list(&ours, project, Count::Entries).unwrap();
    let paths: Vec<_> = listing
        .sessions
        .iter()
        .map(|session| session.path.clone())
        .collect();
    assert_eq!(paths, [new, old]);
    assert_eq!(listing.sessions[0].id.as_deref(), Some("new"));
    assert_eq!(listing.sessions[0].title.as_deref(), Some("short"));
    assert_eq!(listing.sessions[0].entries, Some(2));
    assert!(listing.unreadable.is_empty());
    let all = home.store.list(&ours, Project::Any, Count::Nothing).unwrap();
    assert_eq!(all.sessions.len(), 3);
    assert_eq!(all.sessions[0].entries, None);
}

#[test]
fn other_agents_are_found_and_left_alone() {
    let home = home();
    let pi = home.layout.agents()[0]
        .folder
        .join("--w--")
        .join("2026-01-01T00-00-00-000Z_p1.jsonl");
    home.write(&pi, "/w", "p1", 5);
    let codex = home.layout.agents()[1]
        .folder
        .join("2026/01/02")
        .join("rollout-x.jsonl");
    home.write(&codex, "/w", "c1", 4);
    let before = fs_err::metadata(&pi).unwrap().modified().unwrap();
    let listing = home
        .store
        .list(&home.layout.all_folders(), Project::Any, Count::Nothing)
        .unwrap();
    let found: Vec<_> = listing
        .sessions
        .iter()
        .map(|session| (session.agent.name(), session.id.clone().unwrap()))
        .collect();
    assert_eq!(found, [("pi", "p1".to_owned()), ("codex", "c1".to_owned())]);
    assert_eq!(fs_err::metadata(&pi).unwrap().modified().unwrap(), before);
    assert_eq!(fs_err::read_dir(pi.parent().unwrap()).unwrap().count(), 1);
    assert_eq!(home.find("/w", "p1").unwrap(), pi);
}

#[test]
fn names_lead_to_sessions() {
    let home = home();
    let first = home.session("/w", "0198aa-1", 1);
    let second = home.session("/w", "0198aa-2", 2);
    let exact = home.session("/w", "0198aa", 3);
    let far = home.session("/far", "0198aa-9", 9);
    assert_eq!(home.find("/w", "latest").unwrap(), exact);
    assert_eq!(home.find("/w", "0198aa-1").unwrap(), first);
    assert_eq!(home.find("/w", "0198AA-2").unwrap(), second);
    assert_eq!(home.find("/w", "0198aa").unwrap(), exact);
    assert_eq!(home.find("/w", "0198aa-9").unwrap(), far);
    assert_eq!(home.find("/w", far.to_str().unwrap()).unwrap(), far);
    assert_eq!(
        home.find(
            far.parent().unwrap().to_str().unwrap(),
            far.file_name().unwrap().to_str().unwrap()
        )
        .unwrap(),
        far
    );
    let Err(ResolveError::Ambiguous { choices, .. }) = home.find("/w", "0198") else {
        panic!()
    };
    let choices: Vec<_> = choices.into_iter().map(|choice| choice.path).collect();
    assert_eq!(choices, [exact, second, first]);
    assert!(matches!(home.find("/w", "zz"), Err(ResolveError::NotFound(_))));
    assert!(matches!(home.find("/w", "../zz"), Err(ResolveError::NotFound(_))));
    assert!(matches!(home.find("/", ""), Err(ResolveError::NotFound(_))));
    assert!(matches!(
        home.find("/none", "latest"),
        Err(ResolveError::NoSession(_))
    ));
}

#[test]
fn a_listing_reads_heads_and_tails_only() {
    let home = home();
    let path = home.session("/w", "big", 1);
    let filler = format!(
        "{{\"type\":\"custom\",\"id\":\"x\",\"data\":\"{}\"}}\n",
        "x".repeat(1 << 20)
    );
    let mut log = home.store.volume().open_append(&path).unwrap();
    for _ in 0..20 {
        log.write(filler.as_bytes()).unwrap();
    }
    log.write(
        b"{\"type\":\"session_info\",\"id\":\"n\",\"parentId\":\"x\",\"name\":\"A name at the end\"}\n",
    )
    .unwrap();
    let listing = home
        .store
        .list(&home.layout.all_folders(), Project::Any, Count::Nothing)
        .unwrap();
    assert_eq!(listing.sessions[0].title.as_deref(), Some("A name at the end"));
    assert!(
        listing.bytes_read * 100 < listing.sessions[0].len,
        "{} bytes read",
        listing.bytes_read
    );
    let counted = home
        .store
        .list(&home.layout.all_folders(), Project::Any, Count::Entries)
        .unwrap();
    assert_eq!(counted.sessions[0].entries, Some(23));
}

#[test]
fn one_damaged_session_hides_no_other() {
    let home = home();
    let good = home.session("/w", "good", 1);
    let folder = good.parent().unwrap();
    for (name, content) in [("empty", &b""[..]), ("zeros", &[0; 4096]), ("text", b"hello\n")] {
        fs_err::write(folder.join(format!("{name}.jsonl")), content).unwrap();
    }
    let ours = [AgentFolder {
        agent: Agent::Foldline,
        folder: home.layout.sessions(),
    }];
    let listing = home
        .store
        .list(&ours, Project::Only(Path::new("/w")), Count::Nothing)
        .unwrap();
    assert_eq!(
        listing
            .sessions
            .iter()
            .map(|session| &session.path)
            .collect::<Vec<_>>(),
        [&good]
    );
    assert_eq!(home.find("/w", "latest").unwrap(), good);
    assert_eq!(
        home.store
            .list(&ours, Project::Any, Count::Nothing)
            .unwrap()
            .sessions
            .len(),
        4
    );
}

#[test]
fn a_deleted_session_is_in_the_trash_with_all_that_was_beside_it() {
    let home = home();
    let session = home.session("/w", "gone", 1);
    let stays = home.session("/w", "stays", 2);
    let saved = home.store.artifacts(&session).save("bash", "output").unwrap();
    let mut writer = home.store.open(&session, &options()).unwrap();
    writer.backup("compact", now()).unwrap();
    let name = SidecarName {
        kind: "compaction-diagnostic",
        now: now(),
        unique: "u-1",
    };
    home.store.sidecar(&session, &name, b"{}");
    let mut torn = session.clone().into_os_string();
    torn.push(".torn");
    fs_err::write(torn, "{").unwrap();
    let trashed = home.store.trash(writer, &home.layout.trash(), now()).unwrap();
    let trash = trashed.folder;
    assert!(trash.starts_with(home.layout.trash()));
    assert_eq!((fs_err::read_dir(&trash).unwrap().count(), trashed.items), (5, 5));
    assert!(home.find("/w", "gone").is_err());
    assert!(
        saved
            .path
            .strip_prefix(session.parent().unwrap())
            .is_ok_and(|path| trash.join(path).exists())
    );

    // Its lock is left, and nothing of the other session is.
    let folder = stays.parent().unwrap();
    home.store.artifacts(&stays).save("bash", "kept").unwrap();
    drop(home.store.open(&stays, &options()).unwrap());
    fs_err::create_dir(folder.join("notes")).unwrap();
    fs_err::write(folder.join("notes").join("1.txt"), "mine").unwrap();
    let orphan = home
        .store
        .artifacts(&folder.join("orphan.jsonl"))
        .save("bash", "x")
        .unwrap();
    let later = now() + std::time::Duration::from_secs(1 << 40);
    let left = home.store.leftovers(folder, later).unwrap();
    let kinds: Vec<_> = left.iter().map(|left| left.kind).collect();
    assert_eq!(
        kinds,
        [LeftoverKind::Lock, LeftoverKind::Artifact, LeftoverKind::Artifact],
        "{left:?}"
    );
    for leftover in &left {
        home.store.remove_leftover(leftover).unwrap();
    }
    assert!(!orphan.path.exists());
    assert!(home.store.leftovers(folder, later).unwrap().is_empty());
}

#[test]
fn only_artifacts_go_with_a_session_to_the_trash() {
    let home = home();
    let session = home.session("/w", "src", 1);
    let folder = session.with_extension("");
    let trash = |session: &Path| {
        let writer = home.store.open(session, &options()).unwrap();
        home.store.trash(writer, &home.layout.trash(), now()).unwrap()
    };

    // A folder that only has the name that artifacts would have.
    fs_err::create_dir(&folder).unwrap();
    fs_err::write(folder.join("main.rs"), "mine").unwrap();
    fs_err::write(folder.join("0.bash.log"), "mine too").unwrap();
    assert_eq!(trash(&session).items, 1);
    assert!(folder.join("main.rs").exists() && folder.join("0.bash.log").exists());

    // An empty one, one of other logs, a file, and a link to a folder of artifacts.
    let session = home.session("/w", "empty", 1);
    fs_err::create_dir(session.with_extension("")).unwrap();
    assert_eq!(trash(&session).items, 1);
    let session = home.session("/w", "logs", 1);
    fs_err::create_dir(session.with_extension("")).unwrap();
    fs_err::write(session.with_extension("").join("1.log"), "mine").unwrap();
    assert_eq!(trash(&session).items, 1);
    let session = home.session("/w", "file", 1);
    fs_err::write(session.with_extension(""), "mine").unwrap();
    assert_eq!(trash(&session).items, 1);
    #[cfg(unix)]
    {
        let other = home.session("/w", "other", 1);
        home.store.artifacts(&other).save("bash", "output").unwrap();
        let session = home.session("/w", "link", 1);
        fs_err::os::unix::fs::symlink(other.with_extension(""), session.with_extension("")).unwrap();
        assert_eq!(trash(&session).items, 1);
        assert_eq!(trash(&other).items, 2);
    }
}

#[test]
fn what_gone_sessions_left_is_found_in_folders_without_a_session() {
    let home = home();
    let session = home.session("/gone", "one", 1);
    home.store.artifacts(&session).save("bash", "output").unwrap();
    let mut writer = home.store.open(&session, &options()).unwrap();
    let backup = writer.backup("compact", now()).unwrap();
    drop(writer);
    let folder = session.parent().unwrap();
    let staged = folder.join(".foldline-x1.tmp");
    fs_err::write(&staged, "cut").unwrap();
    let staged_inside = session.with_extension("").join(".foldline-x2.tmp");
    fs_err::write(&staged_inside, "cut").unwrap();
    assert!(home.store.orphaned_backups(folder).unwrap().is_empty());
    fs_err::remove_file(&session).unwrap();

    let folders = home.store.project_folders(&home.layout.sessions()).unwrap();
    assert_eq!(folders, [home.layout.sessions(), folder.to_path_buf()]);
    let later = now() + std::time::Duration::from_secs(1 << 40);
    let left = home.store.leftovers(folder, later).unwrap();
    let paths: Vec<&Path> = left.iter().map(|left| &*left.path).collect();
    assert!(
        paths.contains(&&*staged) && paths.contains(&&*staged_inside),
        "{left:?}"
    );
    assert_eq!(left.len(), 5, "{left:?}");
    // A write that may still run is left alone.
    assert_eq!(
        home.store.leftovers(folder, std::time::UNIX_EPOCH).unwrap().len(),
        3
    );
    assert_eq!(
        home.store.orphaned_backups(folder).unwrap(),
        std::slice::from_ref(&session)
    );
    assert_eq!(home.store.backups(&session).unwrap()[0].path, backup);
    let nowhere = home.layout.sessions().join("nowhere");
    assert!(home.store.project_folders(&nowhere).unwrap().is_empty());
}

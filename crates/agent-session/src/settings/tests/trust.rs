use std::fs;

use foldline_session_store::Layout;

use super::*;

#[test]
fn trust_is_remembered_by_canonical_folder() {
    let root = tempfile::tempdir().unwrap();
    let layout = Layout::at(root.path().join("data"), root.path().join("config"), Vec::new());
    let project = root.path().join("project");
    fs::create_dir_all(project.join("inner/.foldline")).unwrap();
    assert_eq!(
        SettingsFiles::new(&layout, &project).trust(),
        ProjectTrust::Untrusted
    );

    let mut trusted = TrustedProjects::read(&layout);
    let (path, change) = trusted.trust(&project.join("inner/..")).unwrap();
    assert_eq!(
        (path, change),
        (fs::canonicalize(&project).unwrap(), TrustChange::Changed)
    );
    assert_eq!(trusted.trust(&project).unwrap().1, TrustChange::Already);
    assert_eq!(
        SettingsFiles::new(&layout, &project).trust(),
        ProjectTrust::Trusted
    );
    // A folder in it may be anybody's.
    assert!(!TrustedProjects::read(&layout).contains(&project.join("inner")));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = fs::metadata(layout.trusted_projects())
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    assert_eq!(trusted.untrust(&project).unwrap().1, TrustChange::Changed);
    assert_eq!(trusted.untrust(&project).unwrap().1, TrustChange::Already);
    assert_eq!(
        SettingsFiles::new(&layout, &project).trust(),
        ProjectTrust::Untrusted
    );
    assert!(matches!(
        trusted.trust(&root.path().join("gone")),
        Err(TrustError::Io(_))
    ));
}

#[test]
fn a_damaged_list_trusts_nobody_and_stays() {
    let root = tempfile::tempdir().unwrap();
    let layout = Layout::at(root.path().to_path_buf(), root.path().join("config"), Vec::new());
    fs::write(layout.trusted_projects(), "{\"projects\": [").unwrap();
    let mut trusted = TrustedProjects::read(&layout);
    assert!(!trusted.contains(root.path()));
    assert!(matches!(
        trusted.trust(root.path()),
        Err(TrustError::Damaged { .. })
    ));
    assert_eq!(
        fs::read_to_string(layout.trusted_projects()).unwrap(),
        "{\"projects\": ["
    );
}

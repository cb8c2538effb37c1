use std::fs;
use std::sync::Barrier;

use serde_json::json;
use tempfile::TempDir;

use super::*;

struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("config/foldline/settings.json")
    }

    fn files(&self) -> SettingsFiles {
        SettingsFiles::at(self.file(), None, ProjectTrust::Untrusted)
    }

    fn with(text: &str) -> Self {
        let place = Self::new();
        fs::create_dir_all(place.file().parent().unwrap()).unwrap();
        fs::write(place.file(), text).unwrap();
        place
    }

    fn text(&self) -> String {
        fs::read_to_string(self.file()).unwrap()
    }

    fn names(&self) -> Vec<String> {
        let folder = fs::read_dir(self.file().parent().unwrap()).unwrap();
        let mut names: Vec<_> = folder
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

#[test]
fn setting_a_key_changes_that_key_only() {
    let before = "{\n    \"mine\": [1,  2],\n    \"compaction\": {\n        \"unknown\": 1e400,\n        \"enabled\": true\n    }\n}\n";
    for (key, value, after) in [
        (
            "compaction.enabled",
            json!(false),
            "{\n    \"mine\": [1,  2],\n    \"compaction\": {\n        \"unknown\": 1e400,\n        \"enabled\": false\n    }\n}\n",
        ),
        (
            "compaction.query",
            json!("a \"b\""),
            "{\n    \"mine\": [1,  2],\n    \"compaction\": {\n        \"unknown\": 1e400,\n        \"enabled\": true,\n        \"query\": \"a \\\"b\\\"\"\n    }\n}\n",
        ),
        (
            "retry.fallback.maxAttempts",
            json!(2),
            "{\n    \"mine\": [1,  2],\n    \"compaction\": {\n        \"unknown\": 1e400,\n        \"enabled\": true\n    },\n    \"retry\": {\n      \"fallback\": {\n        \"maxAttempts\": 2\n      }\n    }\n}\n",
        ),
    ] {
        let place = Place::with(before);
        // A number that no double holds is no settings file for us to read, but it is kept.
        let text = before.replace("1e400", "1e40");
        fs::write(place.file(), &text).unwrap();
        place.files().set(key, &value).unwrap();
        assert_eq!(place.text(), after.replace("1e400", "1e40"), "{key}");
    }
}

#[test]
fn a_new_file_is_private() {
    let place = Place::new();
    place.files().set("models.x/y-1.5.contextWindow", 4096).unwrap();
    let value: Value = serde_json::from_str(&place.text()).unwrap();
    assert_eq!(value, json!({"models": {"x/y-1.5": {"contextWindow": 4096}}}));
    assert_eq!(place.names(), ["settings.json", "settings.json.lock"]);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&place.file()), 0o600);
        assert_eq!(mode(place.file().parent().unwrap()), 0o700);
    }
}

#[test]
fn what_is_set_as_a_whole_is_not_set_in_parts() {
    let place = Place::with("{}");
    let guard = json!({"events": ["tool_call"], "command": "sh"});
    for key in ["hooks.guard.command", "hooks.guard.events", "hooks.a.b.args"] {
        let error = place.files().set(key, "sh").unwrap_err();
        let SetError::PartOfWhole { whole, .. } = &error else {
            panic!("{key}: {error}")
        };
        assert_eq!(whole, key.rsplit_once('.').unwrap().0);
    }
    assert_eq!(place.text(), "{}");
    place.files().set("hooks.guard", &guard).unwrap();
    let value: Value = serde_json::from_str(&place.text()).unwrap();
    assert_eq!(value["hooks"]["guard"], guard);
}

/// Opened, it would wait for whoever writes to it.
#[cfg(unix)]
#[test]
fn a_pipe_is_no_settings_file() {
    let place = Place::with("{}");
    fs::remove_file(place.file()).unwrap();
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mkfifoat(rustix::fs::CWD, place.file(), mode).unwrap();
    assert!(
        crate::settings::files::read_bounded(&place.file())
            .unwrap_err()
            .to_string()
            .contains("no file")
    );
}

#[test]
fn groups_are_set_member_by_member() {
    let place = Place::with(r#"{"compaction":{"query":"q"}}"#);
    place
        .files()
        .set(
            "compaction",
            json!({"enabled": false, "background": {"enabled": true}}),
        )
        .unwrap();
    assert_eq!(
        place.text(),
        r#"{"compaction":{"query":"q","background":{"enabled":true},"enabled":false}}"#
    );
    place.files().unset("compaction.query").unwrap();
    place.files().unset("compaction.background").unwrap();
    assert_eq!(place.text(), r#"{"compaction":{"enabled":false}}"#);
    place.files().unset("retry.enabled").unwrap();
    assert_eq!(place.text(), r#"{"compaction":{"enabled":false}}"#);
}

#[test]
fn a_damaged_file_is_never_overwritten() {
    for text in ["{\n  \"model\": \"a/b\",\n", "[1]", "nothing"] {
        let place = Place::with(text);
        let error = place.files().set("compaction.enabled", true).unwrap_err();
        assert!(matches!(error, SetError::Damaged { line: 1..=3, .. }), "{error}");
        assert!(matches!(
            place.files().set_auto_compaction(AutoCompaction::On),
            Err(SetError::Damaged { .. })
        ));
        assert_eq!(place.text(), text);
        let loaded = place.files().load(&Environment::default(), &Overrides::default());
        assert_eq!(loaded.settings, Settings::default());
        assert_eq!(loaded.problems.len(), 1);
    }
}

#[test]
fn what_a_key_does_not_take_is_refused() {
    let place = Place::new();
    let files = place.files();
    let error = files.set("compaction.reserveToken", 1).unwrap_err();
    assert!(
        matches!(&error, SetError::UnknownKey { nearest: Some(near), .. } if near == "compaction.reserveTokens"),
        "{error:?}"
    );
    for (key, value, says) in [
        (
            "compaction.compression_ratio",
            json!(1),
            "takes a number above 0 and below 1, and not 1",
        ),
        (
            "compaction.strategy",
            json!("magic"),
            "takes `auto`, `context-full`, `verbatim-lines`, `handoff` or `off`",
        ),
        ("compaction", json!(3), "takes an object"),
        (
            "compaction",
            json!({"enabled": false, "x": 1}),
            "there is no setting compaction.x",
        ),
        ("", json!({}), "there is no setting "),
    ] {
        let error = files.set(key, &value).unwrap_err().to_string();
        assert!(error.contains(says), "{key}: {error}");
    }
    assert!(!place.file().exists());
}

#[test]
fn a_lock_is_waited_for_and_then_given_up() {
    let place = Place::with("{}");
    let lock = fs::File::create(place.file().with_file_name("settings.json.lock")).unwrap();
    lock.lock().unwrap();
    let error = place.files().set("compaction.enabled", false).unwrap_err();
    assert!(matches!(error, SetError::Busy { .. }), "{error}");
    assert_eq!(place.text(), "{}");
    drop(lock);
    place.files().set("compaction.enabled", false).unwrap();
}

#[test]
fn writers_at_once_lose_nothing() {
    let place = Place::new();
    let keys = [
        "compaction.enabled",
        "retry.enabled",
        "todo.reminders",
        "pruning.enabled",
    ];
    let start = Barrier::new(keys.len());
    std::thread::scope(|scope| {
        for key in keys {
            let (files, start) = (place.files(), &start);
            scope.spawn(move || {
                start.wait();
                while files.set(key, false).is_err() {}
            });
        }
    });
    let settings = place.files().load(&Environment::default(), &Overrides::default());
    for key in keys {
        assert_eq!(value_of(&settings, key), json!(false), "{key}");
    }
}

#[cfg(unix)]
#[test]
fn a_link_stays_a_link() {
    let place = Place::with("{}");
    let elsewhere = place.folder.path().join("dotfiles.json");
    fs::rename(place.file(), &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, place.file()).unwrap();
    place.files().set("steeringMode", "all").unwrap();
    assert!(fs::symlink_metadata(place.file()).unwrap().is_symlink());
    assert!(fs::read_to_string(elsewhere).unwrap().contains("all"));
}

/// Spec "Orchestrator and clients", 13.3: switching on takes `off` back, and nothing else.
#[test]
fn automatic_compaction_can_be_switched() {
    for (before, auto, after) in [
        (
            "{}",
            AutoCompaction::Off,
            json!({"compaction": {"enabled": false}}),
        ),
        (
            r#"{"compaction":{"enabled":false,"strategy":"off"}}"#,
            AutoCompaction::On,
            json!({"compaction": {"enabled": true, "strategy": "auto"}}),
        ),
        (
            r#"{"compaction":{"strategy":"handoff"}}"#,
            AutoCompaction::On,
            json!({"compaction": {"enabled": true, "strategy": "handoff"}}),
        ),
        (
            r#"{"compaction":{"strategy":"off"}}"#,
            AutoCompaction::Off,
            json!({"compaction": {"enabled": false, "strategy": "off"}}),
        ),
    ] {
        let place = Place::with(before);
        place.files().set_auto_compaction(auto).unwrap();
        assert_eq!(
            serde_json::from_str::<Value>(&place.text()).unwrap(),
            after,
            "{before}"
        );
    }
}

#[test]
fn what_cannot_be_a_settings_file_is_reported() {
    let place = Place::new();
    fs::create_dir_all(place.file()).unwrap();
    let loaded = place.files().load(&Environment::default(), &Overrides::default());
    assert!(matches!(loaded.problems[0].kind, ProblemKind::Unreadable { .. }));
    fs::remove_dir(place.file()).unwrap();
    fs::write(place.file(), " ".repeat((1 << 20) + 1)).unwrap();
    let loaded = place.files().load(&Environment::default(), &Overrides::default());
    assert!(problems(&loaded)[0].contains("longer than 1048576 bytes"));
    fs::write(place.file(), "").unwrap();
    assert!(
        place
            .files()
            .load(&Environment::default(), &Overrides::default())
            .problems
            .is_empty()
    );
}

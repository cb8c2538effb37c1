#![expect(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "tests write settings as values, and make files"
)]

mod files;
mod layers;
mod reference;
mod trust;

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::*;

const USER: &str = "/user/settings.json";
const PROJECT: &str = "/project/.foldline/settings.json";

fn user(text: &str) -> FileLayer {
    FileLayer::parse(PathBuf::from(USER), text)
}

fn project(text: &str) -> FileLayer {
    FileLayer::parse(PathBuf::from(PROJECT), text)
}

/// The user's file alone.
fn of_user(text: &str) -> Resolved {
    resolve(&Layers {
        user: Some(&user(text)),
        ..Layers::default()
    })
}

/// Both files.
fn of_both(user_text: &str, project_text: &str, trust: ProjectTrust) -> Resolved {
    resolve(&Layers {
        user: Some(&user(user_text)),
        project: Some(&project(project_text)),
        trust,
        ..Layers::default()
    })
}

fn value_of(resolved: &Resolved, key: &str) -> Value {
    let keys = resolved.under(key).unwrap_or_else(|| panic!("{key}"));
    let [only] = &keys[..] else {
        panic!("{key}: {keys:?}")
    };
    serde_json::from_str(only.value.get()).unwrap()
}

fn problems(resolved: &Resolved) -> Vec<String> {
    resolved.problems.iter().map(ToString::to_string).collect()
}

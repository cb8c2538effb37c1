//! What of the environment a command sees.

use std::ffi::{OsStr, OsString};

use foldline_compaction_core::redact::redact;

/// Words of a variable's name, between underscores, that make it a secret: the agent's own keys are none of a command's
/// business. So does a value that redaction knows as a secret, such as an address with a password in it.
pub const SECRET_WORDS: [&str; 19] = [
    "APIKEY",
    "AUTHORIZATION",
    "BEARER",
    "COOKIE",
    "CREDENTIAL",
    "CREDENTIALS",
    "CREDS",
    "KEY",
    "KEYS",
    "PASS",
    "PASSPHRASE",
    "PASSWD",
    "PASSWORD",
    "PAT",
    "PRIVATE",
    "PWD",
    "SECRET",
    "SECRETS",
    "TOKEN",
];

/// Variables that are passed on although their name or value looks like a secret.
pub const PASSED_ON: [&str; 4] = ["PWD", "OLDPWD", "PATH", "HOME"];

/// What is set for every command: no pager, no colours, no questions.
pub(super) const SET: [(&str, &str); 5] = [
    ("GIT_PAGER", "cat"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("NO_COLOR", "1"),
    ("PAGER", "cat"),
    ("TERM", "dumb"),
];

/// The variables that a command does not get.
pub(super) fn withheld(
    variables: impl IntoIterator<Item = (OsString, OsString)>,
    pass: &[String],
) -> Vec<OsString> {
    let variables = variables.into_iter();
    let secret = variables.filter(|(name, value)| {
        let passed = PASSED_ON.iter().copied().chain(pass.iter().map(String::as_str));
        let is_passed = passed.into_iter().any(|known| name == OsStr::new(known));
        !is_passed && (names_a_secret(&name.to_string_lossy()) || is_a_secret(&value.to_string_lossy()))
    });
    secret.map(|(name, _)| name).collect()
}

fn names_a_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    name.split('_').any(|word| {
        let is_compound = ["TOKEN", "SECRET", "PASSWORD", "APIKEY"]
            .iter()
            .any(|end| word.ends_with(end));
        is_compound || SECRET_WORDS.contains(&word)
    })
}

fn is_a_secret(value: &str) -> bool {
    redact(value) != value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_withheld_by_name_and_by_value() {
        let secret = [
            ("OPENAI_API_KEY", "x"),
            ("GITHUB_TOKEN", "x"),
            ("GITHUBTOKEN", "x"),
            ("aws_secret_access_key", "x"),
            ("PGPASSWORD", "x"),
            ("DB_PASS", "x"),
            ("DATABASE_URL", "postgres://user:hunter2secret@host/db"),
        ];
        let plain = [
            ("PATH", "/bin"),
            ("PWD", "/work"),
            ("HOME", "/root"),
            ("LANG", "C.UTF-8"),
            ("KEYBOARD", "us"),
            ("SSH_AUTH_SOCK", "/tmp/agent"),
            ("RUSTFLAGS", "-D warnings"),
            ("NPM_TOKEN", "x"),
        ];
        let all = secret.iter().chain(&plain);
        let all = all.map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let names: Vec<OsString> = secret.iter().map(|(name, _)| name.into()).collect();
        assert_eq!(withheld(all, &["NPM_TOKEN".to_owned()]), names);
    }
}

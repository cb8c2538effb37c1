//! The name of a session: what the newest `session_info` entry of the file says, wherever it stands in the tree
//! (spec, 4.6).

use std::borrow::Cow;

use crate::entry::{EntryBody, EntryKind};
use crate::log::{Extent, SessionLog};

/// What a session is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionName<'l> {
    /// This.
    Named(Cow<'l, str>),
    /// It has no name, or its name was taken away.
    Unnamed,
    /// The log is a file's end, and the name may stand before it.
    Unknown,
}

impl SessionName<'_> {
    /// The name, if there is one.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::Named(name) => Some(name),
            Self::Unnamed | Self::Unknown => None,
        }
    }
}

impl SessionLog {
    /// The session's name; without any entry that gives one, the title of its header.
    pub fn name(&self) -> SessionName<'_> {
        let newest = self
            .entries()
            .rev()
            .filter(|ix| self.kind(*ix) == EntryKind::SessionInfo)
            .find_map(|ix| match self.entry(ix).ok()?.body {
                EntryBody::SessionInfo(info) => Some(info.name.filter(|name| !name.is_empty())),
                _ => None,
            });
        match (newest, self.extent()) {
            (Some(Some(name)), _) => SessionName::Named(name),
            (Some(None), _) => SessionName::Unnamed,
            (None, Extent::Tail { .. }) => SessionName::Unknown,
            (None, _) => match &self.header().title {
                Some(title) => SessionName::Named(Cow::Borrowed(title)),
                None => SessionName::Unnamed,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::log::{SessionLog, Trust};

    fn name(title: &str, names: &[&str]) -> Option<String> {
        let mut text = format!("{{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"cwd\":\"/w\"{title}}}\n");
        for (at, name) in names.iter().enumerate() {
            text += &format!(
                "{{\"type\":\"session_info\",\"id\":\"e{at}\",\"parentId\":null,\"timestamp\":\"t\"{name}}}\n"
            );
        }
        let log = SessionLog::load(text, Trust::Validated).unwrap();
        log.name().as_str().map(str::to_owned)
    }

    #[test]
    fn the_newest_entry_decides_and_the_title_comes_after_it() {
        let title = ",\"title\":\"t\"";
        let table: &[(&str, &[&str], Option<&str>)] = &[
            ("", &[], None),
            (title, &[], Some("t")),
            (title, &[",\"name\":\"a\""], Some("a")),
            ("", &[",\"name\":\"a\"", ",\"name\":\"b\""], Some("b")),
            (title, &[",\"name\":\"a\"", ",\"name\":\"\""], None),
            (title, &[",\"name\":\"a\"", ""], None),
        ];
        for (title, names, expected) in table {
            assert_eq!(name(title, names).as_deref(), *expected, "{title} {names:?}");
        }
    }
}

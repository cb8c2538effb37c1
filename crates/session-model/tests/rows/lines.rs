//! Rows 1 to 29: headers, versions and single lines.

use foldline_session_model::fold::Profile;
use foldline_session_model::log::{FinalNewline, LoadError, Migration, Version};
use foldline_session_model::message::{Block, Message};
use foldline_session_model::tree::Leaf;
use foldline_session_model::{EntryDraft, Envelope, HeaderDraft};

use crate::support::*;

/// Nothing is written for a session that does not exist: the first lines of one are a header and an entry.
#[test]
fn row_01_missing_file_is_a_fresh_session() {
    let header = HeaderDraft {
        id: "s".into(),
        timestamp: "2026-01-01T00:00:00.000Z".into(),
        cwd: "/w".into(),
        parent_session: None,
        title: None,
    };
    assert_eq!(header.line(), HEADER);
    let mut log = load(format!("{HEADER}\n"));
    assert_eq!(context(&log).items.len(), 0);
    log.append(&user("u", "")).unwrap();
    assert_eq!(log.bytes(), file(&[user("u", "")]).as_bytes());
}

#[test]
fn row_02_empty_file_is_a_fresh_session() {
    assert_eq!(refused(""), LoadError::Empty);
}

#[test]
fn row_03_blank_lines_only_are_as_an_empty_file() {
    assert_eq!(refused("\n  \n\t\r\n"), LoadError::Empty);
    assert_eq!(refused("\u{FEFF}"), LoadError::Empty);
}

#[test]
fn row_04_no_header_is_an_error() {
    let LoadError::NotASession { line, cause } = refused("hello\nworld\n") else {
        panic!()
    };
    assert_eq!((line.get(), cause.contains("JSON")), (1, true), "{cause}");
}

#[test]
fn row_05_an_entry_before_the_header_is_an_error() {
    let text = format!("{}\n{HEADER}\n", user("u", ""));
    let LoadError::NotASession { line, cause } = refused(text) else {
        panic!()
    };
    assert_eq!(line.get(), 1);
    assert!(cause.contains("\"message\""), "{cause}");
}

#[test]
fn row_06_garbage_before_the_header_is_reported() {
    let log = load(format!("# notes\nnull\n{HEADER}\n{}\n", user("u", "")));
    assert_eq!(
        (ids(&log), damage(&log)),
        ("u".into(), "1:before_header 2:before_header".into())
    );
}

#[test]
fn row_07_a_header_without_an_id_is_an_error() {
    for id in ["", r#","id":7"#, r#","id":null"#] {
        let text = format!("{{\"type\":\"session\",\"version\":3{id}}}\n{}\n", user("u", ""));
        assert!(matches!(refused(text), LoadError::NotASession { .. }), "{id}");
    }
}

#[test]
fn row_08_no_version_is_version_1() {
    for header in [
        HEADER.replace("\"version\":3,", ""),
        header("null"),
        header("0"),
        header("-2"),
    ] {
        let log = load(format!("{header}\n{}\n", user("u", "x")));
        assert_eq!(log.header().version, Version::Known(1));
        assert_eq!(log.disk_form().migration, Migration::Needed);
        // Ids of version 1 come from the position, whatever stands on the line (D1).
        assert_eq!(ids(&log).len(), 8);
        assert!(context(&log).items.len() == 1);
    }
}

#[test]
fn row_09_hook_messages_of_version_2_become_custom() {
    let hook = message(
        "h",
        "",
        r#""role":"hookMessage","customType":"t","content":"hi","display":true"#,
    );
    let log = load(format!("{}\n{hook}\n", header("2")));
    let written = String::from_utf8(log.to_written_form().unwrap()).unwrap();
    assert_eq!(written, file(&[hook.replace("hookMessage", "custom")]));
    assert!(matches!(context(&log).items[0].message, Message::Custom(_)));
}

#[test]
fn row_10_patches_of_versions_4_and_5_apply() {
    let patches = [
        r#"{"type":"header_patch","patch":{"title":"T","titleSource":"user","cwd":"/v"}}"#,
        r#"{"type":"entry_patch","entryId":"u","patch":{"message":{"role":"user","content":"first"}}}"#,
        r#"{"type":"entry_patch","entryId":"u","patch":{"message":{"role":"user","content":"last"}}}"#,
        r#"{"type":"entry_patch","entryId":"u","patch":{"message":"no object"}}"#,
    ];
    for version in ["4", "5"] {
        let text = format!("{}\n{}\n{}\n", header(version), user("u", ""), patches.join("\n"));
        let log = load(text);
        assert_eq!(
            (log.header().title.as_deref(), &*log.header().cwd),
            (Some("T"), "/v")
        );
        assert_eq!(says(&log, Profile::Auto), "last");
        assert_eq!(damage(&log), "6:idle_patch");
        // Patches are never the leaf.
        assert_eq!(log.id(log.leaf().unwrap()), "u");
        let again = load(log.to_written_form().unwrap());
        assert_eq!(again.header().version, Version::Known(3));
        assert_eq!(
            (again.header().title.as_deref(), says(&again, Profile::Auto)),
            (Some("T"), "last".into())
        );
        assert_eq!(again.disk_form().migration, Migration::NotNeeded);
    }
}

#[test]
fn row_11_patches_of_version_3_do_nothing() {
    let patch = r#"{"type":"entry_patch","entryId":"u","patch":{"message":{"role":"user","content":"p"}}}"#;
    let log = load(file(&[user("u", ""), patch.to_owned()]));
    assert_eq!(
        (says(&log, Profile::Auto), damage(&log)),
        ("u".into(), "3:idle_patch".into())
    );
    // The record stays in the file.
    assert_eq!(log.to_written_form().unwrap(), log.bytes());
}

#[test]
fn row_12_a_future_version_is_read_and_never_written() {
    let mut log = load(format!("{}\n{}\n", header("99"), user("u", "")));
    assert_eq!(says(&log, Profile::Auto), "u");
    assert_eq!(log.disk_form().migration, Migration::ReadOnly);
    assert_eq!(log.to_written_form(), None);
    assert!(log.append(&user("v", "u")).is_err());
}

#[test]
fn row_13_odd_versions() {
    let version = |json: &str| {
        load(format!("{}\n{}\n", header(json), user("u", "")))
            .header()
            .version
    };
    assert_eq!(version("\"3\""), Version::Known(3));
    assert_eq!(version("2.5"), Version::Foreign);
    assert_eq!(version("\"new\""), Version::Foreign);
    assert_eq!(version("{}"), Version::Foreign);
}

#[test]
fn row_14_the_title_slot_is_folded_into_the_header() {
    let slot = |title: &str| {
        let slot = format!(
            r#"{{"type":"title","v":1,"title":"{title}","source":"user","updatedAt":"2026-01-01T00:00:00.000Z","pad":""}}"#
        );
        let pad = " ".repeat(255 - slot.len());
        slot.replace(r#""pad":"""#, &format!(r#""pad":"{pad}""#))
    };
    assert_eq!(slot("T").len(), 255);
    let log = load(format!("{}\n{}", slot("T"), file(&[user("u", "")])));
    assert_eq!(log.header().title.as_deref(), Some("T"));
    assert_eq!(log.header().title_source.as_deref(), Some("user"));
    assert_eq!((ids(&log), damage(&log)), ("u".into(), String::new()));
    let again = load(log.to_written_form().unwrap());
    assert_eq!(
        (again.header().title.as_deref(), ids(&again)),
        (Some("T"), "u".into())
    );
    let titled = HEADER.replace("\"cwd\"", "\"title\":\"old\",\"cwd\"");
    let cleared = load(format!("{}\n{titled}\n", slot("")));
    assert_eq!(cleared.header().title, None);
}

#[test]
fn row_15_a_title_record_of_wrong_shape_is_skipped() {
    for slot in [
        r#"{"type":"title"}"#,
        r#"{"type":"title","v":2,"title":"x","updatedAt":"t","pad":""}"#,
    ] {
        let log = load(format!("{slot}\n{}", file(&[user("u", "")])));
        assert_eq!((log.header().title.as_deref(), ids(&log)), (None, "u".into()));
    }
}

#[test]
fn row_16_of_two_headers_the_first_holds() {
    let second = HEADER.replace("\"s\"", "\"other\"");
    let log = load(file(&[user("u", ""), second.clone(), assistant("a", "u")]));
    assert_eq!(
        (&*log.header().id, ids(&log), damage(&log)),
        ("s", "u a".into(), "3:second_header".into())
    );
    // A rewrite leaves it out. One happens only when something else needs it.
    let old = load(format!("{}\n{}\n{second}\n", header("2"), user("u", "")));
    let written = String::from_utf8(old.to_written_form().unwrap()).unwrap();
    assert_eq!(written, file(&[user("u", "")]));
}

#[test]
fn row_17_torn_last_line() {
    let text = format!(
        "{}{}",
        file(&[user("u", "")]),
        r#"{"type":"message","id":"2","mess"#
    );
    let mut log = load(text.clone());
    assert_eq!((ids(&log), damage(&log)), ("u".into(), "3:torn_tail".into()));
    assert_eq!(log.disk_form().newline, FinalNewline::Torn);
    assert_eq!(log.before_append(), b"\n");
    log.append(&assistant("a", "u")).unwrap();
    assert_eq!(
        log.bytes(),
        format!("{text}\n{}\n", assistant("a", "u")).as_bytes()
    );
    // Golden vector: reopened, both entries are there.
    assert_eq!(ids(&load(log.bytes())), "u a");
}

#[test]
fn row_18_a_record_glued_to_a_torn_one_is_found() {
    let torn = r#"{"type":"message","id":"2","mess"#;
    let text = format!("{}{torn}{}\n", file(&[user("u", "")]), assistant("a", "u"));
    let log = load(text);
    assert_eq!((ids(&log), damage(&log)), ("u a".into(), "3:extra_text".into()));
}

#[test]
fn row_19_a_whole_last_line_without_newline() {
    let text = file(&[user("u", "")]);
    let mut log = load(text.trim_end());
    assert_eq!((ids(&log), damage(&log)), ("u".into(), String::new()));
    assert_eq!(log.disk_form().newline, FinalNewline::Missing);
    let ix = log.append(&assistant("a", "u")).unwrap();
    assert_eq!(log.bytes(), format!("{text}{}\n", assistant("a", "u")).as_bytes());
    assert_eq!(log.line_number(ix).unwrap().get(), 3);
    let reloaded = load(log.bytes());
    assert_eq!(reloaded.line_number(reloaded.leaf().unwrap()).unwrap().get(), 3);
}

#[test]
fn row_20_a_malformed_line_in_the_middle() {
    let log = load(file(&[
        user("u", ""),
        "{broken".into(),
        user("w", "v"),
        user("x", "w"),
    ]));
    assert_eq!(
        (ids(&log), damage(&log)),
        ("u w x".into(), "3:malformed 4:missing_parent".into())
    );
    assert_eq!(says(&log, Profile::Auto), "w x");
    assert_eq!(log.to_written_form().unwrap(), log.bytes());
    let old = load(format!("{}\n{{broken\n{}\n", header("2"), user("u", "")));
    let written = String::from_utf8(old.to_written_form().unwrap()).unwrap();
    assert!(written.contains("\n{broken\n"), "{written}");
}

#[test]
fn row_21_null_lines() {
    let log = load(file(&[user("u", ""), "null".into(), user("v", "u")]));
    assert_eq!(
        (ids(&log), damage(&log)),
        ("u v".into(), "3:not_an_object".into())
    );
}

#[test]
fn row_22_values_that_are_no_entries() {
    for (line, name) in [
        ("1", "not_an_object"),
        ("[]", "not_an_object"),
        ("\"x\"", "not_an_object"),
        ("{}", "not_an_entry"),
        (r#"{"type":"message"}"#, "not_an_entry"),
        (r#"{"id":"x"}"#, "not_an_entry"),
        (r#"{"type":7,"id":"x"}"#, "not_an_entry"),
    ] {
        // Golden vector: the leaf is the entry before it.
        let log = load(file(&[user("u", ""), line.into()]));
        assert_eq!(
            (ids(&log), damage(&log)),
            ("u".into(), format!("3:{name}")),
            "{line}"
        );
        assert_eq!(says(&log, Profile::Auto), "u");
    }
}

#[test]
fn row_23_a_byte_order_mark_is_stripped() {
    let log = load(format!("\u{FEFF}{}", file(&[user("u", "")])));
    assert_eq!((ids(&log), damage(&log)), ("u".into(), String::new()));
    assert_eq!(log.to_written_form().unwrap(), file(&[user("u", "")]).as_bytes());
}

#[test]
fn row_24_nul_padding_after_a_crash() {
    let log = load(format!("{}\0\0\0\0", file(&[user("u", "")])));
    assert_eq!((ids(&log), damage(&log)), ("u".into(), "3:nul_bytes".into()));
    let log = load(format!("{}\0\0{}\n", file(&[user("u", "")]), user("v", "u")));
    assert_eq!((ids(&log), damage(&log)), ("u v".into(), "3:nul_bytes".into()));
}

#[test]
fn row_25_two_objects_on_one_line() {
    let log = load(file(&[format!("{}{}", user("u", ""), user("v", "u"))]));
    assert_eq!((ids(&log), damage(&log)), ("u v".into(), "2:glued".into()));
    let log = load(file(&[format!("{} {} junk", user("u", ""), user("v", "u"))]));
    assert_eq!((ids(&log), damage(&log)), ("u v".into(), "2:extra_text".into()));
}

#[test]
fn row_26_invalid_utf8_reads_as_replacement_characters() {
    let mut bytes = file(&[user("u", ""), user("v", "u")]).into_bytes();
    let at = bytes.windows(11).position(|w| w == b"\"content\":\"").unwrap() + 11;
    bytes[at] = 0xFF;
    let log = load(bytes.clone());
    assert_eq!(
        (says(&log, Profile::Auto), damage(&log)),
        ("\u{FFFD} v".into(), "2:invalid_utf8".into())
    );
    assert_eq!(log.to_written_form().unwrap(), bytes);
}

#[test]
fn row_27_lone_surrogates() {
    let line = message("u", "", r#""role":"user","content":"a\ud83db \ude00""#);
    let log = load(file(std::slice::from_ref(&line)));
    assert_eq!(
        (says(&log, Profile::Auto), damage(&log)),
        ("a\u{FFFD}b \u{FFFD}".into(), String::new())
    );
    assert_eq!(log.raw_line(log.leaf().unwrap()), line.as_bytes());
}

#[test]
fn row_28_unknown_entry_types_are_nodes() {
    let lines = [
        user("u", ""),
        entry("hologram", "h", "u", r#""x":[1,{"y":2}]"#),
        assistant("a", "h"),
    ];
    let log = load(file(&lines));
    assert_eq!(
        (ids(&log), says(&log, Profile::Auto)),
        ("u h a".into(), "u a".into())
    );
    let hologram = log.find("h").unwrap();
    assert_eq!(log.kind_text(hologram), "hologram");
    assert_eq!(log.raw_line(hologram), lines[1].as_bytes());
    let last = load(file(&lines[..2]));
    assert_eq!(
        (last.id(last.leaf().unwrap()), says(&last, Profile::Auto)),
        ("h", "u".into())
    );
}

#[test]
fn row_29_unknown_roles_are_kept_and_not_sent() {
    let odd = message("o", "u", r#""role":"narrator","content":"once""#);
    let log = load(file(&[user("u", ""), odd]));
    let context = log.context(&Leaf::Last, Profile::Auto).unwrap();
    assert_eq!(said(&context), "u once");
    let wrappers = foldline_session_model::llm::Wrappers::default();
    assert_eq!(context.converted(&wrappers).len(), 1);
    // Unknown blocks are kept, too.
    let odd = message(
        "o",
        "",
        r#""role":"user","content":[{"type":"smell","data":"rose"}]"#,
    );
    let log = load(file(&[odd]));
    let Message::User(m) = &context_message(&log) else {
        panic!()
    };
    assert!(matches!(&m.content.blocks()[0], Block::Unknown { kind } if kind == "smell"));
}

fn context_message(log: &foldline_session_model::log::SessionLog) -> Message<'static> {
    context(log).items[0].message.clone().into_owned()
}

/// What a draft writes is read back: the form that this crate writes is its own best input (D1).
#[test]
fn drafts_are_written_in_the_layout_that_is_read_fast() {
    let line = EntryDraft::session_info("name").line(&Envelope {
        id: "i".into(),
        parent: Some("u".into()),
        timestamp: "2026-01-01T00:00:01.000Z".into(),
    });
    assert_eq!(line, entry("session_info", "i", "u", r#""name":"name""#));
}

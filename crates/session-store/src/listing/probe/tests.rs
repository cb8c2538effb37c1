use super::*;

fn read(lines: &[&str]) -> Head {
    head(format!("{}\n", lines.join("\n")).as_bytes(), true)
}

#[test]
fn the_head_of_each_agent() {
    let pi = read(&[
        r#"{"type":"session","version":3,"id":"s1","cwd":"/w"}"#,
        r#"{"type":"model_change","id":"m","parentId":null}"#,
        r#"{"type":"message","id":"u","message":{"role":"user","content":[{"type":"image","data":""},{"type":"text","text":"\n  Fix the parser\nplease"}]}}"#,
    ]);
    assert_eq!((pi.id.as_deref(), pi.cwd.as_deref()), (Some("s1"), Some("/w")));
    assert_eq!(pi.title().as_deref(), Some("Fix the parser"));

    let omp = read(&[
        r#"{"type":"title","v":1,"title":"Slot","updatedAt":"","pad":""}"#,
        r#"{"type":"session","version":3,"id":"s2","cwd":"/w"}"#,
    ]);
    assert_eq!(
        (omp.id.as_deref(), omp.title().as_deref()),
        (Some("s2"), Some("Slot"))
    );

    let claude = read(&[
        r#"{"type":"summary","summary":"Parser work","leafUuid":"x"}"#,
        r#"{"parentUuid":null,"sessionId":"s3","cwd":"/w","type":"user","message":{"role":"user","content":"<command-name>x"},"uuid":"a"}"#,
        r#"{"parentUuid":"a","sessionId":"s3","cwd":"/w","type":"user","message":{"role":"user","content":"real words"},"uuid":"b"}"#,
    ]);
    assert_eq!(
        (claude.id.as_deref(), claude.cwd.as_deref()),
        (Some("s3"), Some("/w"))
    );
    assert_eq!(claude.title().as_deref(), Some("Parser work"));
    assert_eq!(claude.first_prompt.as_deref(), Some("real words"));

    let codex = read(&[
        r#"{"timestamp":"","type":"session_meta","payload":{"id":"s4","cwd":"/w"}}"#,
        r#"{"timestamp":"","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"hello"}]}}"#,
    ]);
    assert_eq!(
        (codex.id.as_deref(), codex.cwd.as_deref()),
        (Some("s4"), Some("/w"))
    );
    assert_eq!(codex.title().as_deref(), Some("hello"));
}

#[test]
fn odd_fields_hide_nothing() {
    let odd = read(&[
        "not json",
        "null",
        r#"{"type":"session","id":"s","cwd":7,"title":{"x":[]}}"#,
        r#"{"type":"message","id":"u","message":{"role":"user","content":null}}"#,
        r#"{"type":"message","id":"u","message":{"role":"user","content":"found"}}"#,
    ]);
    assert_eq!(odd.id.as_deref(), Some("s"));
    assert_eq!(odd.cwd, None);
    assert_eq!(odd.title().as_deref(), Some("found"));
}

#[test]
fn a_cut_line_is_not_read() {
    let bytes = br#"{"type":"session","id":"s","cwd":"/w"}"#;
    assert_eq!(head(bytes, false), Head::default());
    assert_eq!(head(bytes, true).id.as_deref(), Some("s"));
}

#[test]
fn the_newest_title_wins() {
    let cases: [(&str, Title); 5] = [
        ("x\n{\"type\":\"message\",\"id\":\"a\"}\n", Title::Unknown),
        (
            "x\n{\"type\":\"session_info\",\"id\":\"a\",\"name\":\"old\"}\n{\"type\":\"session_info\",\"id\":\"b\",\"name\":\"new\"}\n",
            Title::Named("new".into()),
        ),
        (
            "x\n{\"type\":\"session_info\",\"id\":\"a\",\"name\":\"old\"}\n{\"type\":\"session_info\",\"id\":\"b\"}\n",
            Title::Cleared,
        ),
        (
            "x\n{\"type\":\"header_patch\",\"patch\":{\"title\":\"patched\"}}\n",
            Title::Named("patched".into()),
        ),
        (
            "{\"type\":\"session_info\",\"id\":\"a\",\"name\":\"part of a line\"}\n",
            Title::Unknown,
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(tail(text.as_bytes()), expected, "{text}");
    }
}

#[test]
fn long_prompts_are_cut_between_characters() {
    let prompt = "東".repeat(200);
    let line = format!(r#"{{"type":"message","message":{{"role":"user","content":"{prompt}"}}}}"#);
    let title = head(line.as_bytes(), true).title().unwrap();
    assert_eq!(title.chars().count(), PROMPT + 1);
}

#[test]
fn what_counts_as_an_entry() {
    for line in [
        r#"{"type":"message","id":"a"}"#,
        r#"{"type":"session_info","id":"a"}"#,
        r#"{"id":"a","type":"custom"}"#,
    ] {
        assert!(is_entry(line.as_bytes()), "{line}");
    }
    for line in [
        "",
        "  ",
        "\0\0",
        r#"{"type":"session","id":"s"}"#,
        r#"{"type":"header_patch","patch":{}}"#,
    ] {
        assert!(!is_entry(line.as_bytes()), "{line}");
    }
}

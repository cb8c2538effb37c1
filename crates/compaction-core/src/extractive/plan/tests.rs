use super::*;
use crate::extractive::{FloorInput, FloorKind};
use crate::verbatim::{Author, MessageIndex, RegionBuilder, SectionKind, reconstruct};

/// A request, an edit, an old failure, a new one, and much output.
fn session() -> (Region<'static>, [MessageIndex; 2]) {
    let mut b = RegionBuilder::new();
    let mut add = |author, kind, text: &str| {
        let message = b.begin_message(None, author);
        b.section(kind, |t| t.push_str(text));
        message
    };
    let bulk = |word: &str| {
        (0..60)
            .map(|i| format!("{word}_module/file_{i}.rs: checked"))
            .collect::<Vec<_>>()
            .join("\n")
    };
    add(
        Author::Session,
        SectionKind::User,
        "please keep the public names stable",
    );
    add(Author::Synthetic, SectionKind::User, "a notice of a program");
    add(
        Author::Session,
        SectionKind::ToolCalls,
        r#"edit(path="src/zz.rs", old="a", new="b")"#,
    );
    let solved = add(
        Author::Session,
        SectionKind::ToolResult,
        &format!("{}\nerror: solved long ago", bulk("one")),
    );
    let open = add(
        Author::Session,
        SectionKind::ToolResult,
        &format!("{}\nerror: q is still open", bulk("two")),
    );
    add(Author::Session, SectionKind::ToolResult, &bulk("three"));
    (b.finish().unwrap(), [solved, open])
}

#[test]
fn floors_rank_first_and_the_target_wins() {
    let (region, [_, open]) = session();
    let errors = [open];
    let input = FloorInput {
        open_errors: &errors,
        changed_paths: &["src/zz.rs", "src/never_seen.rs"],
    };
    let text = |target| {
        let plan = plan(&region, "", target, Floors::On(input), None);
        let text = reconstruct(&region, &plan.ranges).into_text();
        assert_eq!(text.chars().count() as u64, plan.chars);
        (text, plan)
    };
    let (roomy, plan_roomy) = text(Target::chars(600));
    for line in [
        "[User]: please keep the public names stable",
        "error: q is still open",
        r#"edit(path="src/zz.rs""#,
    ] {
        assert!(roomy.contains(line), "{line} in {roomy}");
    }
    assert_eq!(plan_roomy.dropped, []);
    assert!(plan_roomy.chars <= 600);

    // Half of 160 holds the newest floor only; the others are named as dropped unless the ranking takes them.
    let (narrow, plan_narrow) = text(Target::chars(160));
    assert!(narrow.contains("error: q is still open"), "{narrow}");
    assert!(plan_narrow.chars <= 160);
    let kinds: Vec<FloorKind> = plan_narrow.dropped.iter().map(|d| d.kind).collect();
    assert!(kinds.contains(&FloorKind::ChangedPath), "{kinds:?} {narrow}");
    for dropped in &plan_narrow.dropped {
        assert!(!narrow.contains(region.line_text(dropped.line)));
    }

    let (nothing, plan_nothing) = text(Target::chars(0));
    assert_eq!(nothing, format!("(filtered {} lines)", region.line_count()));
    assert_eq!(plan_nothing.dropped.len(), 3);
}

#[test]
fn without_floors_the_ranking_alone_decides() {
    let (region, _) = session();
    for target in [Target::chars(300), Target::lines(20)] {
        let plan = plan(&region, "", target, Floors::Off, None);
        let mut packed = Packed::new(&region);
        packed.pack(balanced(&region, "").positions(), target);
        assert_eq!(plan.ranges, packed.deleted(&region));
        assert_eq!(plan.dropped, []);
    }
}

#[test]
fn a_path_that_another_kept_line_names_is_not_dropped() {
    let mut b = RegionBuilder::new();
    b.begin_message(None, Author::Session);
    b.section(SectionKind::User, |t| t.push_str("look at a/b.rs"));
    b.begin_message(None, Author::Session);
    b.section(SectionKind::ToolResult, |t| {
        t.push_str("xa/b.rs\nwritten: a/b.rs ");
        t.push_str(&"-".repeat(300));
    });
    let region = b.finish().unwrap();
    let floors = Floors::On(FloorInput {
        open_errors: &[],
        changed_paths: &["a/b.rs"],
    });
    let plan = plan(&region, "", Target::chars(120), floors, None);
    assert!(
        reconstruct(&region, &plan.ranges)
            .text()
            .starts_with("[User]: look at a/b.rs")
    );
    assert_eq!(plan.dropped, []);
    let none = super::plan(&region, "", Target::chars(0), floors, None);
    let lines: Vec<u32> = none.dropped.iter().map(|d| d.line.get()).collect();
    assert_eq!(lines, [1, 4]);
}

/// What somebody asks for comes before the ranking, and never takes all of the target.
#[test]
fn lines_about_a_named_focus_stay() {
    let (region, _) = session();
    let target = Target::chars(300);
    let text = |focus| {
        let plan = plan(&region, "", target, Floors::Off, focus);
        assert!(plan.chars <= 300);
        reconstruct(&region, &plan.ranges).into_text()
    };
    assert!(!text(None).contains("two_module/file_7.rs"));
    assert!(text(Some("file_7.rs in two_module")).contains("two_module/file_7.rs"));
    for says_nothing in ["checked", "zzzqq", "", "the"] {
        assert_eq!(text(Some(says_nothing)), text(None), "{says_nothing}");
    }
}

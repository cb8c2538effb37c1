//! R1 to R18: window, minimum, digests.

use foldline_pruning::{Original, Originals, Policy, ReferenceBudget};
use foldline_session_model::Tokens;

use crate::support::{PICTURE, Step, bash, edit, lines, pair, prune, prune_with, read, rt, text_block};

const ARTIFACTS: Originals = Originals::Artifacts {
    budget: ReferenceBudget::DEFAULT,
};

fn window(tokens: u64) -> Policy {
    Policy {
        protect_tokens: Tokens(tokens),
        ..rt()
    }
}

#[test]
fn r1_minimum() {
    let steps = [
        bash("old", "a").text(&lines("old-boundary", 80)),
        bash("recent", "b").text(&lines("recent", 80)),
    ];
    let recent = prune(&rt(), &steps).tokens("recent");
    let policy = |minimum| Policy {
        minimum_savings: Tokens(minimum),
        ..window(recent)
    };
    assert!(prune(&policy(751), &steps).plan.is_empty());
    let pruned = prune(&policy(750), &steps);
    assert_eq!((pruned.ids(), pruned.saved()), (vec!["old"], 750));
    assert_eq!(
        pruned.notice("old"),
        "[Output truncated - 771 tokens; exit=0; tail=old-boundary-27 alpha beta gamma delta]"
    );
}

#[test]
fn r2_what_reaches_across_the_window_stays() {
    let steps = ["old", "mid", "new"].map(|id| bash(id, id).text(&lines(id, 50)));
    let all = prune(&rt(), &steps);
    let pruned = prune(&window(all.tokens("new") + 1), &steps);
    assert_eq!(pruned.ids(), ["old"]);
    assert_eq!(pruned.saved(), all.tokens("old") - 19);
}

#[test]
fn r3_protected_tools() {
    let text = |id: &str| lines(id, 80);
    let steps = [
        read("read", "a").text(&text("read")),
        pair("skill", "skill", r#"{"name":"x"}"#).text(&text("skill")),
        bash("bash", "x").text(&text("bash")),
        bash("newest", "y").text(&text("newest")),
    ];
    let newest = prune(&rt(), &steps).tokens("newest");
    assert_eq!(prune(&window(newest), &steps).ids(), ["bash"]);
}

#[test]
fn r4_pruned_results_fill_the_window_and_stay() {
    let steps = [
        bash("old", "a").text(&lines("old", 80)),
        bash("already", "b")
            .text("[Output truncated - 900 tokens]")
            .pruned(),
        bash("newest", "c").text(&lines("newest", 80)),
    ];
    let newest = prune(&rt(), &steps).tokens("newest");
    assert_eq!(prune(&window(newest + 8), &steps).ids(), ["old"]);
    assert!(prune(&window(newest + 9), &steps).plan.is_empty());
}

#[test]
fn r5_newest_first() {
    let steps = [
        bash("a", "a").text(&lines("a", 40)),
        Step::Custom,
        edit("b", "f").text(&lines("b", 40)),
        bash("newest", "c").text(&lines("newest", 80)),
    ];
    let newest = prune(&rt(), &steps).tokens("newest");
    let pruned = prune(&window(newest), &steps);
    assert_eq!(pruned.ids(), ["b", "a"]);
    assert_eq!(
        pruned.notice("b"),
        format!("[Output truncated - {} tokens]", pruned.tokens("b"))
    );
    assert!(pruned.notice("a").contains("; exit=0; tail=a-13 alpha"));
    assert_eq!(pruned.saved(), 515);
}

#[test]
fn r6_the_original_goes_to_an_artifact() {
    let text = lines("artifact", 80);
    let planned = prune_with(&rt(), ARTIFACTS, &[edit("e", "f").text(&text)]);
    assert_eq!(planned.original("e"), Original::Text(text));
    assert_eq!(planned.tokens("e"), 691);
    let rewrite = planned.rewrite(&[("e", 12)]);
    assert_eq!(rewrite.tokens_saved, Tokens(676));
    assert!(rewrite.tokens_saved >= planned.plan.tokens_saved);
    let line = &rewrite.entries[0].line;
    assert!(line.contains(
        r#""content":[{"type":"text","text":"[Output truncated - 691 tokens; full output: artifact://12]"}]"#
    ));
    assert!(line.contains(r#""prunedAt":1760000000000"#));
}

#[test]
fn r7_a_failed_command() {
    let text = format!("command failed\n{}", "tail ".repeat(200));
    let pruned = prune(
        &rt(),
        &[bash("b", "x").text(&text).error().details(r#"{"exitCode":1}"#)],
    );
    assert!(pruned.notice("b").contains("exit=1; error=command failed"));
    assert!(pruned.notice("b").contains("tail="));
}

#[test]
fn r8_a_failed_edit() {
    let text = format!("Patch application failed.\n{}", lines("context", 80));
    let pruned = prune(&rt(), &[pair("e", "edit", "{}").text(&text).error()]);
    assert!(pruned.notice("e").ends_with("error=Patch application failed.]"));
}

#[test]
fn r9_a_short_error_stays() {
    let steps = [
        pair("short", "edit", "{}").text("Patch failed.").error(),
        pair("large", "edit", "{}").text(&lines("large-success", 80)),
    ];
    let pruned = prune(&rt(), &steps);
    assert_eq!(pruned.ids(), ["large"]);
    assert_eq!(pruned.saved(), 783);
}

#[test]
fn r10_every_script() {
    let steps: Vec<Step> = (0..24)
        .map(|i| {
            let reps = if i % 4 == 0 { 2 } else { 20 + i };
            let text = vec![["ascii error", "오류 실패", "error 💥"][i % 3]; reps].join("\n");
            let tool = if i % 3 == 0 { "bash" } else { "edit" };
            let step = pair(&format!("r{i}"), tool, "{}").text(&text);
            if i % 2 == 0 { step.error() } else { step }
        })
        .collect();
    let pruned = prune(&rt(), &steps);
    assert_eq!(pruned.ids().len(), 18);
    assert_eq!(pruned.saved(), 1739);
    for replacement in &pruned.plan.replacements {
        assert!(replacement.saved > Tokens(0));
        assert_ne!(pruned.plan.entry(replacement)[1..].parse::<u32>().unwrap() % 4, 0);
    }
}

#[test]
fn r11_a_notice_about_an_error_is_never_longer_than_it() {
    let steps = [
        pair("a", "edit", "{}")
            .text(&format!("오류 {}", "실패".repeat(40)))
            .error(),
        pair("b", "edit", "{}")
            .text(&format!("error {}", "💥".repeat(40)))
            .error(),
    ];
    assert!(prune(&rt(), &steps).plan.is_empty());
}

#[test]
fn r12_no_terminal_control_in_a_notice() {
    let text = format!("\u{1B}[31mPatch\u{0} failed.\u{1B}[0m\n{}", lines("c", 80));
    let steps = [
        pair("error", "edit", "{}").text(&text).error(),
        pair("success", "edit", "{}").text(&lines("s", 80)),
    ];
    let pruned = prune(&rt(), &steps);
    assert_eq!(pruned.ids(), ["success", "error"]);
    assert!(pruned.notice("error").ends_with("; error=Patch failed.]"));
    assert!(pruned.notice("success").ends_with(" tokens]"));
}

#[test]
fn r13_exit_status_error_line_and_counts() {
    let steps = [
        bash("bash", "x")
            .text(&format!(
                "\u{1B}[1mcommand failed\u{1B}[0m\n{}\nfinal failure",
                lines("b", 80)
            ))
            .error()
            .details(r#"{"exitCode":17}"#),
        pair("search", "search", "{}")
            .text(&format!(
                "12 matches in 3 files\nerror: engine failed\n{}",
                lines("s", 80)
            ))
            .error(),
    ];
    let pruned = prune(&rt(), &steps);
    assert_eq!(pruned.ids(), ["search", "bash"]);
    assert!(
        pruned
            .notice("search")
            .ends_with("; error=error: engine failed; matches=12; files=3]")
    );
    assert!(
        pruned
            .notice("bash")
            .ends_with("; exit=17; error=command failed; tail=final failure]")
    );
}

#[test]
fn r14_defect_6_pictures_are_stored_with_their_text() {
    let first = [
        PICTURE.to_owned(),
        text_block(&format!("error one\n{}", lines("x", 80))),
        text_block("two"),
    ];
    let second = [
        String::from(r#"{"type":"text","text":""}"#),
        text_block(&lines("later-error", 40)),
    ];
    let steps = [
        pair("first", "edit", "{}").blocks(&first).error(),
        pair("second", "edit", "{}").blocks(&second).error(),
    ];
    let pruned = prune_with(&rt(), ARTIFACTS, &steps);
    assert_eq!(pruned.ids(), ["second", "first"]);
    assert!(pruned.tokens("first") > 1200);
    assert_eq!(
        pruned.original("first"),
        Original::Content(format!("[{}]", first.join(",")))
    );
    let Original::Text(text) = pruned.original("second") else {
        panic!("all of it is text");
    };
    assert!(text.starts_with("\nlater-error-0"));
    assert!(
        pruned
            .notice("second")
            .ends_with("] error=later-error-0 alpha beta gamma delta")
    );
    let rewrite = pruned.rewrite(&[("first", 1), ("second", 2)]);
    assert!(
        rewrite.entries[1]
            .line
            .contains("full output: artifact://1] error=error one")
    );
}

#[test]
fn r15_text_blocks_are_joined() {
    let (one, two) = (lines("one", 40), lines("two", 40));
    let step = edit("e", "f").blocks(&[text_block(&one), text_block(&two)]);
    let planned = prune_with(&rt(), ARTIFACTS, &[step]);
    assert_eq!(planned.original("e"), Original::Text(format!("{one}\n{two}")));
    assert!(
        planned.rewrite(&[("e", 13)]).entries[0]
            .line
            .contains("full output: artifact://13]")
    );
}

#[test]
fn r16_defect_6_text_around_a_picture() {
    let blocks = [text_block(&lines("a", 40)), PICTURE.to_owned(), text_block("b")];
    let planned = prune_with(&rt(), ARTIFACTS, &[edit("e", "f").blocks(&blocks)]);
    assert_eq!(
        planned.original("e"),
        Original::Content(format!("[{}]", blocks.join(",")))
    );
    // No artifact, no change: nothing is lost.
    let rewrite = planned.rewrite(&[]);
    assert!(rewrite.entries.is_empty());
    assert_eq!(rewrite.kept, ["e".into()]);
}

#[test]
fn r17_nothing_and_duplicates() {
    assert!(prune(&rt(), &[]).plan.is_empty());
    let text = lines("duplicate", 40);
    let steps = [
        bash("empty", "x").text(""),
        Step::Custom,
        bash("dup-a", "y").text(&text),
        Step::Custom,
        bash("dup-b", "z").text(&text),
    ];
    assert_eq!(prune(&rt(), &steps).ids(), ["dup-b", "dup-a"]);
}

#[test]
fn r18_the_mark_counts_not_the_text() {
    let long = lines("overwritten", 80);
    assert!(
        prune(&rt(), &[bash("a", "x").text(&long).pruned()])
            .plan
            .is_empty()
    );
    let like_a_notice = format!("[Output truncated - 9 tokens]{}", " ".repeat(400));
    assert_eq!(prune(&rt(), &[bash("a", "x").text(&like_a_notice)]).ids(), ["a"]);
}

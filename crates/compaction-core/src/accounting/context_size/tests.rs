mod r06;

use foldline_session_model::tokens::Heuristic;

use super::*;
use crate::testing::{Rows, context, filler};

fn size(rows: &Rows) -> (u64, SizeSource) {
    let log = rows.log();
    let size = ContextSize::of(&context(&log), Tokens(1_000), Tokens::ZERO, &Heuristic);
    (size.tokens.get(), size.source)
}

#[test]
fn the_newest_usage_anchors_and_the_rest_is_estimated() {
    let rows = Rows::new().user("u1", &filler(50));
    assert_eq!(size(&rows), (1_050, SizeSource::Estimated));
    let rows = rows.answer("a1", "", &[], Some([100, 10, 0, 0]), "stop");
    assert_eq!(size(&rows), (110, SizeSource::Measured));
    let rows = rows.user("u2", &filler(40));
    assert_eq!(size(&rows), (150, SizeSource::Measured));
    // Failed, cancelled and empty answers are text, not measurements.
    let rows = rows
        .answer("a2", &filler(5), &[], Some([900, 0, 0, 0]), "error")
        .answer("a3", &filler(5), &[], Some([900, 0, 0, 0]), "aborted")
        .answer("a4", &filler(5), &[], Some([0, 0, 0, 0]), "stop");
    assert_eq!(size(&rows), (165, SizeSource::Measured));
}

#[test]
fn fb_012_usage_from_before_the_compaction_is_ignored() {
    let rows = Rows::new()
        .user("u1", &filler(150_000))
        .answer("a1", &filler(2_000), &[], Some([150_100, 2_000, 0, 0]), "stop")
        .user("u2", &filler(200))
        .answer("a2", &filler(100), &[], Some([190_000, 100, 0, 0]), "stop")
        .compaction("c1", Some("u2"), &filler(800))
        .user("u3", &filler(300));
    let log = rows.log();
    let size = ContextSize::of(&context(&log), Tokens::ZERO, Tokens::ZERO, &Heuristic);
    assert_eq!(size.source, SizeSource::Estimated);
    assert!((1_400..1_600).contains(&size.tokens.get()), "{size:?}");
}

#[test]
fn fb_019_after_a_compaction_the_gauge_shows_an_estimate_and_then_the_next_measurement() {
    let rows = Rows::new()
        .user("u1", &filler(1_000))
        .answer("a1", "", &[], Some([144_000, 2_300, 0, 0]), "stop")
        .user("u5", &filler(20_000))
        .compaction("c1", Some("u5"), &filler(3_000));
    let (tokens, source) = size(&rows);
    // The overhead of the requests counts as long as nothing is measured.
    assert!((22_000..26_000).contains(&tokens), "{tokens}");
    assert_eq!(source, SizeSource::Estimated);
    let rows = rows.answer("a6", "", &[], Some([25_000, 100, 0, 0]), "stop");
    assert_eq!(size(&rows), (25_100, SizeSource::Measured));
}

#[test]
fn fb_022_what_every_request_costs_counts_before_the_window_is_full() {
    use crate::accounting::Limits;
    use crate::settings::CompactionSettings;
    // Measured once: 30,000 tokens more than its messages.
    let log = Rows::new()
        .user("u1", &filler(10_000))
        .answer("a1", "", &[], Some([40_000, 10, 0, 0]), "stop")
        .log();
    let overhead = measured_overhead(&context(&log), &Heuristic).unwrap();
    assert_eq!(overhead, Tokens(30_000));
    let settings = CompactionSettings::default();
    let limits = Limits::new(Some(Tokens(256_000)), &settings, Tokens::ZERO).unwrap();
    let over = |messages: usize| {
        let log = Rows::new().user("u1", &filler(messages)).log();
        limits.exceeded_by(ContextSize::of(&context(&log), overhead, Tokens::ZERO, &Heuristic).tokens)
    };
    let at = 256_000 - 30_000 - 16_384;
    assert!(over(at) && over(241_800));
    assert!(!over(180_000));
}

#[test]
fn prunes_and_revocations_begin_a_new_generation() {
    let rows = Rows::new()
        .call("a1", "c1", "bash", "{}")
        .result("t1", "c1", "bash", &filler(5_000))
        .answer("a2", "", &[], Some([6_000, 0, 0, 0]), "stop")
        .entry(
            "p1",
            "custom",
            "\"customType\":\"foldline/prune\",\"data\":{\"items\":[{\"entryId\":\"t1\",\"notice\":\"xxxx\",\"tokens\":5000}]}",
        );
    assert_eq!(size(&rows).1, SizeSource::Estimated);
    let rows = rows.entry(
        "r1",
        "custom",
        "\"customType\":\"foldline/revoke\",\"data\":{\"entryId\":\"p1\"}",
    );
    assert_eq!(size(&rows).1, SizeSource::Estimated);
}

#[test]
fn ratio_and_overhead_compare_the_measured_prompt_with_its_estimate() {
    let rows = Rows::new().user("u1", &filler(1_000)).answer(
        "a1",
        &filler(9_000),
        &[],
        Some([3_000, 9_000, 0, 0]),
        "stop",
    );
    let log = rows.log();
    let context = context(&log);
    // The answer's own output is in neither.
    assert_eq!(correction_ratio(&context, Tokens(500), &Heuristic), Some(2.0));
    assert_eq!(measured_overhead(&context, &Heuristic), Some(Tokens(2_000)));
    let log = Rows::new().user("u1", "x").log();
    assert_eq!(
        correction_ratio(&crate::testing::context(&log), Tokens::ZERO, &Heuristic),
        None
    );
}

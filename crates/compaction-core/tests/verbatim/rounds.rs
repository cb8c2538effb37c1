//! A session that is compacted again and again.

use foldline_compaction_core::verbatim::{LinePart, Preparation};
use foldline_session_model::tokens::{Heuristic, TokenCounter as _};

use super::support::{Session, assistant, call, finished, lines, prepared, result, user, without_model};

const ROUNDS: usize = 200;

/// What one round of work adds.
fn work(session: &mut Session, round: usize) {
    session.message(&user(&format!("step {round}: look at src/file_{round}.rs")));
    session.message(&call(
        &format!("c{round}"),
        "read",
        &format!(r#"{{"path":"src/file_{round}.rs"}}"#),
    ));
    session.message(&result(
        &format!("c{round}"),
        &format!("(filtered 1000 lines)\nfn step_{round}() {{\n{}\n}}", lines(24)),
    ));
    session.message(&assistant(&format!("file_{round} does what step_{round} needs")));
}

/// Lines that stand in the region, and those that its markers stand for.
fn expanded(preparation: &Preparation<'_, '_>) -> u64 {
    let count = |part| {
        if let LinePart::Marker(count) = part {
            count
        } else {
            1
        }
    };
    preparation.region().lines().map(|line| count(line.part)).sum()
}

/// Markers are cumulative and exact, and the text stays within what each round asks for.
#[test]
fn two_hundred_compactions_in_a_row() {
    let mut session = Session::new();
    work(&mut session, ROUNDS);
    let mut ever = 0;
    let mut earlier_lines = 0;
    let mut sizes = Vec::new();
    for round in 0..ROUNDS {
        work(&mut session, round);
        let compaction = {
            let context = session.context();
            let preparation = prepared(&context, 2).unwrap();
            assert!(preparation.provenance_error().is_none(), "round {round}");
            let region = preparation.region();
            ever += (region.line_count() - earlier_lines) as u64;
            assert_eq!(
                expanded(&preparation),
                ever,
                "round {round}: every line ever in the region is accounted for"
            );

            let compaction = finished(&preparation, &without_model(&preparation)).unwrap();
            let target = preparation.parameters().ratio.of(region.line_count());
            assert!(compaction.stats.lines_kept <= target, "round {round}");
            assert!(
                compaction.draft.summary.len() < region.text().len(),
                "round {round}: the text never grows"
            );
            assert!(
                compaction.stats.tokens_after < compaction.stats.tokens_before,
                "round {round}"
            );
            compaction
        };
        earlier_lines = compaction.draft.summary.split('\n').count();
        sizes.push(compaction.draft.summary.len());
        session.commit(&compaction);

        let context = session.context();
        let rebuilt: u64 = context.messages().map(|m| Heuristic.message(m).get()).sum();
        assert_eq!(
            rebuilt,
            compaction.stats.tokens_after.get(),
            "round {round}: the figure is the context's"
        );
    }
    // Each round halves what is there: the text settles, it does not creep upward.
    let most = |part: &[usize]| part.iter().copied().max().unwrap();
    let (early, late) = (most(&sizes[10..60]), most(&sizes[ROUNDS - 50..]));
    assert!(
        late <= early + early / 10,
        "{early} bytes early on, {late} at the end"
    );
}

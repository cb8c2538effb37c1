//! What holds for a session whatever happens to it, and in whatever order (R04, R09; agent-session, 10).
//!
//! A case is a few lives of one session. In each life prompts, messages for the queues, compactions, cancels and small
//! changes come at random moments of a model and tools that are slow, fail and overflow; then the process ends: by itself,
//! killed, or with the machine, now or in the midst of a write. The last life only finishes what is left.
//! `FOLDLINE_INTERLEAVINGS` sets the number of cases.
#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod checks;
mod ledger;
#[path = "../../src/testing/pairs.rs"]
mod pairs;
mod world;

use proptest::prelude::*;

use world::{Death, Life, Op, Way, World};

const CASES: u32 = 1_000;

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => prop_oneof![Just(Way::Refuse), Just(Way::Steer), Just(Way::FollowUp)].prop_map(Op::Prompt),
        3 => Just(Op::Steer),
        3 => Just(Op::FollowUp),
        2 => Just(Op::Compact),
        1 => Just(Op::CompactIdle),
        2 => Just(Op::Abort),
        1 => Just(Op::AbortCompaction),
        1 => Just(Op::AbortRetry),
        1 => Just(Op::Name),
        1 => Just(Op::Resume),
        1 => Just(Op::DropPrompt),
        2 => Just(Op::Settle),
        6 => (0_u64..4_000).prop_map(Op::Wait),
    ]
}

fn death() -> impl Strategy<Value = Death> {
    prop_oneof![
        1 => Just(Death::Quit),
        2 => Just(Death::Killed),
        2 => any::<u64>().prop_map(Death::PowerNow),
        4 => (0_u64..90, any::<u64>()).prop_map(|(steps, seed)| Death::PowerIn { steps, seed }),
    ]
}

fn life() -> impl Strategy<Value = Life> {
    (prop::collection::vec(op(), 1..14), death()).prop_map(|(ops, death)| Life { ops, death })
}

#[expect(
    clippy::disallowed_methods,
    reason = "whoever runs the test says how long, the crate does not"
)]
fn cases() -> u32 {
    let asked = std::env::var("FOLDLINE_INTERLEAVINGS").ok();
    asked.and_then(|cases| cases.parse().ok()).unwrap_or(CASES)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, max_shrink_iters: 600, ..ProptestConfig::with_cases(cases()) })]

    #[test]
    fn r09_whatever_happens_an_accepted_message_is_in_the_session_once_and_in_order(
        lives in prop::collection::vec(life(), 1..4),
        seed in any::<u64>(),
    ) {
        let mut world = World::new(seed);
        for life in &lives {
            world.live(life);
        }
        world.finish();
    }
}

use proptest::prelude::*;

use super::{LoadFully, Need, TailReader};
use crate::fold::{Completeness, Context, Masked, Profile, State};
use crate::log::{Extent, SessionLog, Trust};
use crate::testing::{self, Wildness};
use crate::tree::Leaf;

const PROFILES: [Profile; 5] = [
    Profile::Auto,
    Profile::Foldline,
    Profile::Pi,
    Profile::Gajae,
    Profile::Atomic,
];

/// Reads the end of a file, and counts the bytes that were asked for.
fn resume(file: &[u8], profile: Profile, block: u64) -> (Result<SessionLog, LoadFully>, u64) {
    let mut reader = TailReader::with_block(file.len() as u64, profile, block);
    let mut read = 0;
    while let Need::Bytes(range) = reader.need() {
        read += range.end - range.start;
        let range = usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap();
        reader.feed(&file[range]);
    }
    (reader.finish(), read)
}

/// What a context says, in words that do not depend on where entries stand in their log.
fn said(context: &Context<'_>) -> Vec<String> {
    let id = |ix| context.log.id(ix).to_owned();
    let mut out = vec![format!(
        "leaf {:?} compaction {:?} {:?}",
        context.leaf.map(id),
        context.compaction.map(id),
        context.profile
    )];
    for item in &context.items {
        let mask = match item.masked {
            Masked::No => String::new(),
            Masked::ByEntry { mask, original } => format!("{} {original}", id(mask)),
            Masked::Pictures { mask, original } => format!("pictures {} {original}", id(mask)),
        };
        out.push(format!("{} {mask} {:?}", id(item.source), item.message));
    }
    out
}

fn check_state(whole: &State<'_>, tail: &State<'_>) {
    if tail.completeness == Completeness::Complete {
        assert_eq!(whole.to_details(), tail.to_details());
        return;
    }
    for (role, model) in &tail.models {
        assert_eq!(whole.models.get(role), Some(model));
    }
    let raw = |raw: &Option<crate::json::Raw<'_>>| raw.as_ref().map(|raw| raw.get().to_owned());
    if tail.thinking_level.is_some() {
        assert_eq!(whole.thinking_level, tail.thinking_level);
    }
    if tail.service_tier.is_some() {
        assert_eq!(raw(&whole.service_tier), raw(&tail.service_tier));
    }
    if tail.mode.is_some() {
        assert_eq!(whole.mode, tail.mode);
        assert_eq!(raw(&whole.mode_data), raw(&tail.mode_data));
    }
    if tail.selected_tools.is_some() {
        assert_eq!(whole.selected_tools, tail.selected_tools);
    }
}

/// Whether the end of the file sufficed.
fn tail_and_whole_agree(file: &[u8], profile: Profile, block: u64) -> bool {
    let Ok(tail) = resume(file, profile, block).0 else {
        return false;
    };
    let whole = SessionLog::load(file, Trust::Validated).unwrap();
    // A body that cannot be read is the other way in which a caller learns that it has to load everything.
    let Ok(seen) = tail.context(&Leaf::Last, profile) else {
        return false;
    };
    let all = whole.context(&Leaf::Last, profile).unwrap();
    assert_eq!(said(&seen), said(&all));
    assert_eq!(tail.before_append(), whole.before_append());
    check_state(&all.state(), &seen.state());
    true
}

#[test]
fn every_fixture_resumes_as_it_loads() {
    let mut sufficed = 0;
    for (name, file) in testing::fixtures() {
        for profile in PROFILES {
            for block in [200, 4096, 64 * 1024] {
                let ok = tail_and_whole_agree(&file, profile, block);
                sufficed += usize::from(ok);
                let clean = [
                    "linear.jsonl",
                    "branching.jsonl",
                    "all-kinds.jsonl",
                    "realistic.jsonl",
                ];
                assert!(
                    ok || !clean.contains(&&*name) && !name.starts_with("compacted"),
                    "{name}"
                );
            }
        }
    }
    assert!(sufficed > 300, "{sufficed}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn tame_trees_resume_as_they_load(choices in testing::choices(60), block in 64_u64..3000) {
        let file = testing::session(&choices, Wildness::Tame);
        for profile in PROFILES {
            prop_assert!(tail_and_whole_agree(file.as_bytes(), profile, block));
        }
    }

    #[test]
    fn wild_trees_resume_as_they_load(choices in testing::choices(60), block in 64_u64..3000, cut in 0_usize..3) {
        let file = testing::session(&choices, Wildness::Wild);
        let file = &file.as_bytes()[..file.len() - cut * 7 % file.len()];
        if SessionLog::load(file, Trust::Validated).is_ok() {
            for profile in PROFILES {
                tail_and_whole_agree(file, profile, block);
            }
        }
    }
}

/// The cost is that of the context: 4,000 entries before the compaction are not read.
#[test]
fn a_resume_reads_what_the_context_needs() {
    let mut choices = vec![(10, 255, 0, 0); 4000];
    choices.push((147, 255, 3995, 14));
    choices.extend(vec![(10, 255, 0, 0); 20]);
    let file = testing::session(&choices, Wildness::Tame);
    let (log, read) = resume(file.as_bytes(), Profile::Auto, 4096);
    let log = log.unwrap();
    assert!(read < 16 * 1024, "{read} of {}", file.len());
    assert!(matches!(log.extent(), Extent::Tail { from } if from.get() > file.len() as u64 - 8192));
    let context = log.context(&Leaf::Last, Profile::Auto).unwrap();
    assert_eq!(context.items.len(), 26);
    assert_eq!(context.state().completeness, Completeness::Partial);
    assert_eq!(context.state().to_details(), None);
    assert_eq!(log.line_number(context.items[0].source), None);
}

#[test]
fn state_beyond_the_end_comes_from_the_compaction() {
    let mut choices = vec![(202, 255, 1, 1), (209, 255, 2, 0)];
    choices.extend(vec![(10, 255, 0, 0); 400]);
    choices.push((147, 255, 399, 15));
    choices.push((214, 255, 1, 0));
    let file = testing::session(&choices, Wildness::Tame);
    let log = resume(file.as_bytes(), Profile::Auto, 512).0.unwrap();
    assert!(matches!(log.extent(), Extent::Tail { from } if from.get() > 1000));
    let context = log.context(&Leaf::Last, Profile::Auto).unwrap();
    insta::assert_snapshot!(context.state().to_details().unwrap(), @r#"{"models":[{"role":"default","provider":"sp","model":"sm"}],"thinkingLevel":"low","mode":"mode1","serviceTier":null,"modeData":null,"selectedTools":["t"]}"#);
}

#[test]
fn what_needs_the_whole_file_says_so() {
    let header = r#"{"type":"session","version":3,"id":"s","timestamp":"t","cwd":"/w"}"#;
    let entry = r#"{"type":"message","id":"a","parentId":null,"timestamp":"t","message":{"role":"user","content":"x"}}"#;
    let lost = r#"{"type":"message","id":"b","parentId":"?","timestamp":"t","message":{"role":"user","content":"x"}}"#;
    let own = r#"{"type":"message","id":"c","parentId":"c","timestamp":"t","message":{"role":"user","content":"x"}}"#;
    let table = [
        (String::new(), LoadFully::Empty),
        (format!("{entry}\n{header}\n"), LoadFully::NoHeader),
        (format!("\u{FEFF}{header}\n{entry}\n"), LoadFully::NoHeader),
        (
            format!("{}\n{entry}\n", header.replace("3,", "1,")),
            LoadFully::OldForm,
        ),
        (
            format!("{}\n{entry}\n", header.replace("3,", "5,")),
            LoadFully::OldForm,
        ),
        (
            format!("{}\n{entry}\n", header.replace("3,", "9,")),
            LoadFully::OldForm,
        ),
        (
            format!("{header}\n{entry}\n{{\"type\":\"mess"),
            LoadFully::LastLine,
        ),
        (format!("{header}\n{entry}\nnot JSON\n\n"), LoadFully::LastLine),
        (format!("{header}\n{entry}\n{lost}\n"), LoadFully::MissingParent),
        (format!("{header}\n{own}\n"), LoadFully::Cycle),
        (
            format!("{}\n{entry}\n", header.replace("\"t\"", "\"t\0\"")),
            LoadFully::NoHeader,
        ),
    ];
    for (file, reason) in table {
        assert_eq!(
            resume(file.as_bytes(), Profile::Auto, 4096).0.unwrap_err(),
            reason,
            "{file}"
        );
    }
    // Only a full load tells of the bytes that it replaces.
    let child = lost.replace("\"?\"", "\"a\"");
    let mut bytes = format!("{header}\n{entry}\n{child}\n").into_bytes();
    let at = bytes.windows(3).position(|w| w == b"\"x\"").unwrap();
    bytes[at + 1] = 0xff;
    assert_eq!(
        resume(&bytes, Profile::Auto, 4096).0.unwrap_err(),
        LoadFully::BrokenLine
    );
    let mut reader = TailReader::new(10, Profile::Auto);
    reader.feed(b"x");
    assert_eq!(reader.need(), Need::WholeFile(LoadFully::WrongBytes));
    assert!(
        resume(format!("{header}\n").as_bytes(), Profile::Auto, 16)
            .0
            .unwrap()
            .is_empty()
    );
    assert_eq!(
        resume(format!("{header}\n{entry}").as_bytes(), Profile::Auto, 16)
            .0
            .unwrap()
            .len(),
        1
    );
}

//! A session read from its end has the context of the whole file.

use foldline_session_model::fold::Profile;
use foldline_session_model::log::{SessionLog, Trust};
use foldline_session_model::tree::Leaf;
use foldline_session_store::{Durability, ResumeError, ResumeExtent};

use crate::support::{Place, disk, entry, memory};

fn context(log: &SessionLog) -> Vec<String> {
    let context = log.context(&Leaf::Last, Profile::Auto).unwrap();
    context.messages().map(|message| format!("{message:?}")).collect()
}

fn compaction(number: usize, first_kept: usize) -> String {
    format!(
        r#"{{"type":"compaction","id":"e{number}","parentId":"e{}","timestamp":"2026-08-01T00:00:02.000Z","summary":"What happened.","firstKeptEntryId":"e{first_kept}","tokensBefore":9}}"#,
        number - 1
    )
}

fn both(test: fn(Place)) {
    test(disk());
    test(memory());
}

#[test]
fn a_compacted_session_is_read_from_its_end() {
    both(|place| {
        let place = place.with_entries(5000);
        let mut writer = place.open();
        writer.append(&compaction(5000, 4990), Durability::Later).unwrap();
        writer.append(&entry(5001), Durability::Commit).unwrap();
        let reader = place.store.reader(&place.session()).unwrap();
        let resumed = reader.resume(Profile::Auto).unwrap();
        assert_eq!(resumed.extent, ResumeExtent::Tail);
        assert_eq!(resumed.stamp, writer.stamp());
        assert!(
            resumed.bytes_read * 4 < resumed.stamp.len,
            "{} bytes",
            resumed.bytes_read
        );
        let whole = SessionLog::load(reader.read_all().unwrap(), Trust::Validated).unwrap();
        let expected = context(&whole);
        assert_eq!(expected.len(), 12);
        assert_eq!(context(&resumed.log), expected);
    });
}

#[test]
fn what_the_end_cannot_tell_the_whole_file_does() {
    both(|place| {
        let place = place.with_entries(3);
        let mut log = place.store.volume().open_append(&place.session()).unwrap();
        log.write(b"{\"torn\":").unwrap();
        let reader = place.store.reader(&place.session()).unwrap();
        let resumed = reader.resume(Profile::Auto).unwrap();
        assert!(matches!(resumed.extent, ResumeExtent::WholeFile(_)));
        assert_eq!(resumed.log.damage().len(), 1);
        assert_eq!(context(&resumed.log).len(), 3);
    });
}

#[test]
fn another_file_is_no_session() {
    both(|place| {
        place.store.volume().create_folder(&place.folder).unwrap();
        let mut log = place.store.volume().create_new(&place.session()).unwrap();
        log.write(b"#!/bin/sh\n").unwrap();
        let reader = place.store.reader(&place.session()).unwrap();
        assert!(matches!(reader.resume(Profile::Auto), Err(ResumeError::Load(_))));
    });
}

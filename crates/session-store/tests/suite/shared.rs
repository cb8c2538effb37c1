//! What holds for every store.

use foldline_session_store::{
    AppendError, Backup, BackupKind, CreateError, Durability, Expected, HeaderProblem, OpenError,
    OpenOptions, Owner, ReadError,
};

use crate::support::{HEADER, Place, append, entry, ids, now, options, owner, strict_ids};

/// Makes each case a test over the disk and a test over memory.
macro_rules! over_both_stores {
    ($($(#[$meta:meta])* fn $name:ident($place:ident: Place) $body:block)*) => {
        $($(#[$meta])* fn $name($place: Place) $body)*
        mod on_disk { $(#[test] fn $name() { super::$name(crate::support::disk()); })* }
        mod in_memory { $(#[test] fn $name() { super::$name(crate::support::memory()); })* }
    };
}

/// Writes beside every lock, as another agent would.
fn write_behind_our_back(place: &Place, bytes: &[u8]) {
    let volume = place.store.volume();
    let mut file = volume.open_append(&place.session()).unwrap();
    assert_eq!(file.write(bytes).unwrap(), bytes.len());
}

/// Replaces the content of a file that another program wrote.
fn plant(place: &Place, bytes: &[u8]) {
    let volume = place.store.volume();
    volume.create_folder(&place.folder).unwrap();
    let mut file = volume.open_or_create(&place.session()).unwrap();
    file.set_len(0).unwrap();
    assert_eq!(file.write(bytes).unwrap(), bytes.len());
}

fn torn_files(place: &Place) -> Vec<Vec<u8>> {
    let volume = place.store.volume();
    let items = volume.list(&place.folder).unwrap();
    let torn = items.iter().map(|item| place.folder.join(item.name()));
    torn.filter(|path| path.extension().is_some_and(|extension| extension == "torn"))
        .map(|path| place.store.read(&path).unwrap().to_vec())
        .collect()
}

over_both_stores! {
    fn appends_are_whole_lines_in_order(place: Place) {
        let place = place.with_entries(1);
        let mut writer = place.open();
        for number in 1..50 {
            let durability = if number % 7 == 0 { Durability::Commit } else { Durability::Later };
            writer.append(&entry(number), durability).unwrap();
        }
        writer.commit().unwrap();
        assert_eq!(strict_ids(&place.text()), ids(0..50));
        assert_eq!(writer.stamp(), place.store.reader(&place.session()).unwrap().stamp());
    }

    fn a_group_is_written_whole_or_not_at_all(place: Place) {
        let place = place.with_entries(1);
        let mut writer = place.open();
        let (one, two) = (entry(1), entry(2));
        let before = place.text();
        for refused in [[&*one, &*one], [&*one, "{}"], [&*one, HEADER]] {
            writer.append_group(&refused).unwrap_err();
            assert_eq!(place.text(), before);
        }
        let appended = writer.append_group(&[&one, &two]).unwrap();
        assert_eq!(place.text(), format!("{before}{one}\n{two}\n"));
        assert_eq!(appended.offset, before.len() as u64);
        assert_eq!(appended.len, (one.len() + 1 + two.len()) as u64);
        writer.append_group(&[&two]).unwrap_err();
        writer.append_group(&[]).unwrap();
        assert_eq!(strict_ids(&place.text()), ids(0..3));
    }

    fn an_append_says_where_the_line_is(place: Place) {
        let place = place.with_entries(0);
        let mut writer = place.open();
        let line = entry(0);
        let appended = writer.append(&line, Durability::Commit).unwrap();
        let text = place.text();
        let from = usize::try_from(appended.offset).unwrap();
        let len = usize::try_from(appended.len).unwrap();
        assert_eq!(&text[from..from + len], line);
        assert_eq!(appended.quarantined, None);
    }

    fn a_new_session_is_never_written_over_another(place: Place) {
        let place = place.with_entries(3);
        let before = place.text();
        let error = place.store.create(&place.session(), &mut [HEADER.as_bytes()].into_iter()).unwrap_err();
        assert!(matches!(error, CreateError::AlreadyExists(_)), "{error}");
        assert_eq!(place.text(), before);
    }

    fn a_new_session_with_a_broken_line_is_not_made(place: Place) {
        let lines: [&[u8]; 2] = [HEADER.as_bytes(), b"{}\n{}"];
        let error = place.store.create(&place.session(), &mut lines.into_iter()).unwrap_err();
        assert!(matches!(error, CreateError::InvalidLine { line: 2 }), "{error}");
        assert!(matches!(place.store.read(&place.session()), Err(ReadError::NotFound(_))));
    }

    fn a_missing_session_is_named(place: Place) {
        place.store.volume().create_folder(&place.folder).unwrap();
        assert!(matches!(place.store.read(&place.session()), Err(ReadError::NotFound(_))));
        assert!(matches!(place.store.open(&place.session(), &options()), Err(OpenError::NotFound(_))));
    }

    fn a_torn_tail_is_moved_aside_before_the_first_append(place: Place) {
        plant(&place, format!("{HEADER}\n{}\n{{\"type\":\"message\",\"id\":\"e1\",\"mess", entry(0)).as_bytes());
        let before = place.text();
        let mut writer = place.open();
        assert_eq!(place.text(), before, "opening changes nothing");
        let appended = writer.append(&entry(2), Durability::Commit).unwrap();
        assert!(appended.quarantined.is_some());
        assert_eq!(strict_ids(&place.text()), ids([0, 2]));
        assert_eq!(torn_files(&place), [b"{\"type\":\"message\",\"id\":\"e1\",\"mess".to_vec()]);
    }

    fn each_torn_tail_has_a_file_of_its_own(place: Place) {
        let place = place.with_entries(0);
        for round in 0..3 {
            write_behind_our_back(&place, format!("{{\"torn\":{round}").as_bytes());
            append(&mut place.open(), round);
        }
        assert_eq!(strict_ids(&place.text()), ids(0..3));
        assert_eq!(torn_files(&place).len(), 3);
    }

    fn a_whole_last_line_without_a_break_is_kept(place: Place) {
        plant(&place, format!("{HEADER}\n{}", entry(0)).as_bytes());
        append(&mut place.open(), 1);
        assert_eq!(strict_ids(&place.text()), ids(0..2));
        assert!(torn_files(&place).is_empty());
    }

    fn zeros_after_a_loss_of_power_are_moved_aside(place: Place) {
        plant(&place, format!("{HEADER}\n{}\n\0\0\0\0\0\0", entry(0)).as_bytes());
        append(&mut place.open(), 1);
        assert_eq!(strict_ids(&place.text()), ids(0..2));
        assert_eq!(torn_files(&place), [vec![0; 6]]);
    }

    fn an_entry_glued_to_a_fragment_is_not_lost(place: Place) {
        plant(&place, format!("{HEADER}\n{}{{\"type\":", entry(0)).as_bytes());
        append(&mut place.open(), 1);
        assert_eq!(strict_ids(&place.text()), ids(0..2));
    }

    fn a_torn_header_needs_a_header_first(place: Place) {
        plant(&place, &HEADER.as_bytes()[..20]);
        let mut writer = place.open();
        let error = writer.append(&entry(0), Durability::Commit).unwrap_err();
        assert!(matches!(error, AppendError::Header { problem: HeaderProblem::Missing, .. }), "{error}");
        writer.append(HEADER, Durability::Commit).unwrap();
        append(&mut writer, 0);
        let error = writer.append(HEADER, Durability::Commit).unwrap_err();
        assert!(matches!(error, AppendError::Header { problem: HeaderProblem::Second, .. }), "{error}");
        assert_eq!(strict_ids(&place.text()), ids([0]));
    }

    fn another_kind_of_file_is_never_touched(place: Place) {
        for content in ["#!/bin/sh\necho\n", "{\"type\":\"message\",\"id\":\"m\"}\n", "text without end"] {
            plant(&place, content.as_bytes());
            let error = place.open().append(&entry(0), Durability::Commit).unwrap_err();
            assert!(matches!(error, AppendError::Header { problem: HeaderProblem::NotASession, .. }), "{error}");
            assert_eq!(place.text(), content);
        }
    }

    fn lines_that_would_damage_the_file_are_refused(place: Place) {
        let place = place.with_entries(1);
        let before = place.text();
        let mut writer = place.open();
        for line in ["", "{}", "[1]", "{\"type\":\"message\",\"id\":\"x\"}\n{}", "{\"type\":\"message\",\"id\":\"x\""] {
            assert!(matches!(writer.append(line, Durability::Commit), Err(AppendError::InvalidLine(_))), "{line}");
        }
        assert_eq!(place.text(), before);
    }

    fn an_id_is_written_once(place: Place) {
        let place = place.with_entries(1);
        let mut writer = place.open();
        writer.remember_ids(["e0"]);
        append(&mut writer, 1);
        for number in [0, 1] {
            let error = writer.append(&entry(number), Durability::Commit).unwrap_err();
            assert!(matches!(error, AppendError::DuplicateId { .. }), "{error}");
        }
        assert_eq!(strict_ids(&place.text()), ids(0..2));
    }

    fn growth_behind_our_back_is_refused_and_kept(place: Place) {
        let place = place.with_entries(1);
        let mut writer = place.open();
        append(&mut writer, 1);
        write_behind_our_back(&place, format!("{}\n", entry(7)).as_bytes());
        let before = place.text();
        for _ in 0..2 {
            let error = writer.append(&entry(2), Durability::Commit).unwrap_err();
            assert!(matches!(error, AppendError::Changed(_)), "{error}");
        }
        let rewritten = writer.rewrite(&mut [HEADER.as_bytes()].into_iter(), "rewrite", now());
        assert!(rewritten.is_err());
        assert_eq!(place.text(), before);
    }

    fn a_plan_for_an_older_state_is_refused(place: Place) {
        let place = place.with_entries(1);
        let planned = place.store.read(&place.session()).unwrap().stamp();
        append(&mut place.open(), 1);
        let expected = Expected::Exactly(planned);
        let error = place.store.open(&place.session(), &OpenOptions { expected, ..options() }).unwrap_err();
        assert!(matches!(error, OpenError::Changed(_)), "{error}");
        let expected = Expected::Exactly(place.store.read(&place.session()).unwrap().stamp());
        assert!(place.store.open(&place.session(), &OpenOptions { expected, ..options() }).is_ok());
    }

    fn a_file_that_took_our_name_is_refused(place: Place) {
        let place = place.with_entries(1);
        let mut writer = place.open();
        append(&mut writer, 1);
        let volume = place.store.volume();
        volume.rename(&place.session(), &place.folder.join("moved.jsonl")).unwrap();
        crate::support::create(&*place.store, &place.session(), 2);
        let error = writer.append(&entry(2), Durability::Commit).unwrap_err();
        assert!(matches!(&error, AppendError::Changed(changed) if changed.replaced), "{error}");
        assert_eq!(strict_ids(&place.text()), ids(0..2));
    }

    fn a_second_writer_is_told_who_the_first_is(place: Place) {
        let place = place.with_entries(1);
        let writer = place.open();
        let second = Owner { pid: 1, start: None, ..owner() };
        let error = place.store.open(&place.session(), &OpenOptions { owner: second, ..options() }).unwrap_err();
        let OpenError::SessionBusy { owner: Some(named), .. } = error else { panic!("{error}") };
        assert_eq!(named, owner());
        // Readers do not wait.
        assert_eq!(strict_ids(&place.text()), ids([0]));
        drop(writer);
        assert!(place.open().taken_over_from().is_none());
    }

    fn a_rewrite_is_whole_and_backed_up(place: Place) {
        let place = place.with_entries(5);
        let before = place.text();
        let mut writer = place.open();
        append(&mut writer, 5);
        let full = place.text();
        let kept: Vec<String> = [HEADER.to_owned(), entry(0), entry(1)].into();
        let backup = writer.rewrite(&mut kept.iter().map(String::as_bytes), "rewrite", now()).unwrap();
        assert_eq!(strict_ids(&place.text()), ids(0..2));
        assert_eq!(&*place.store.read(&backup).unwrap(), full.as_bytes());
        // The writer goes on in the new file.
        append(&mut writer, 9);
        assert_eq!(strict_ids(&place.text()), ids([0, 1, 9]));
        assert_ne!(before, place.text());
    }

    fn a_rewrite_with_a_broken_line_changes_nothing(place: Place) {
        let place = place.with_entries(2);
        let before = place.text();
        let lines: [&[u8]; 2] = [HEADER.as_bytes(), b""];
        place.open().rewrite(&mut lines.into_iter(), "rewrite", now()).unwrap_err();
        assert_eq!(place.text(), before);
        assert!(place.store.backups(&place.session()).unwrap().is_empty());
    }

    fn the_newest_three_backups_are_kept(place: Place) {
        let place = place.with_entries(1);
        let mut writer = place.open();
        let mut made = Vec::new();
        for round in 0..5 {
            // Twice in the same millisecond each time.
            let now = now() + std::time::Duration::from_secs(round / 2);
            made.push(writer.backup("compact", now).unwrap());
            append(&mut writer, usize::try_from(round).unwrap() + 1);
        }
        let backups = place.store.backups(&place.session()).unwrap();
        let kept: Vec<_> = backups.iter().map(|backup| backup.path.clone()).collect();
        assert_eq!(kept, made.iter().rev().take(3).cloned().collect::<Vec<_>>());
        let newest = place.store.read(&kept[0]).unwrap();
        assert_eq!(strict_ids(std::str::from_utf8(&newest).unwrap()), ids(0..5));
        assert_eq!(backups[0].label, "compact");
        let old = place.store.old_backups(&place.session(), 1).unwrap();
        assert_eq!(old, backups[1..]);
        for backup in &old {
            place.store.remove_backup(backup).unwrap();
        }
        assert_eq!(place.store.backups(&place.session()).unwrap(), backups[..1]);
    }

    fn backups_of_appends_push_out_none_of_a_rewrite(place: Place) {
        let place = place.with_entries(3);
        let mut writer = place.open();
        let original = place.text();
        let kept: Vec<&str> = original.lines().take(2).collect();
        let repaired = writer.rewrite(&mut kept.iter().map(|line| line.as_bytes()), "repair", now()).unwrap();
        for round in 1..6 {
            writer.backup("compact", now() + std::time::Duration::from_secs(round)).unwrap();
        }
        assert_eq!(&*place.store.read(&repaired).unwrap(), original.as_bytes());
        let backups = place.store.backups(&place.session()).unwrap();
        let kinds: Vec<BackupKind> = backups.iter().map(Backup::kind).collect();
        let append = BackupKind::Append;
        assert_eq!(kinds, [append, append, append, BackupKind::Rewrite]);
    }

    fn backups_of_other_agents_are_not_ours(place: Place) {
        let place = place.with_entries(1);
        let theirs = place.folder.join("s.jsonl.2020-01-01T00-00-00-000Z.compact.bak");
        place.store.create(&theirs, &mut [HEADER.as_bytes()].into_iter()).unwrap();
        let mut writer = place.open();
        for _ in 0..4 {
            writer.backup("compact", now()).unwrap();
        }
        assert_eq!(place.store.backups(&place.session()).unwrap().len(), 3);
        assert!(place.store.read(&theirs).is_ok());
    }

    fn lines_from_the_end_are_the_lines(place: Place) {
        // Longer than the blocks that are read, in places.
        let long = format!(r#"{{"type":"custom","id":"long","data":"{}"}}"#, "x".repeat(300_000));
        let lines = [HEADER.to_owned(), entry(0), long.clone(), entry(1), long, entry(2)];
        for end in ["", "\n", "\n\n"] {
            plant(&place, format!("{}{end}", lines.join("\n")).as_bytes());
            let reader = place.store.reader(&place.session()).unwrap();
            let text = reader.read_all().unwrap().to_vec();
            let mut backward = reader.lines_backward();
            let mut found = Vec::new();
            while let Some(line) = backward.next_line().unwrap() {
                let range = usize::try_from(line.range.start).unwrap()..usize::try_from(line.range.end).unwrap();
                assert_eq!(&text[range], line.bytes);
                found.push(line.bytes.to_vec());
            }
            found.reverse();
            let expected: Vec<Vec<u8>> = String::from_utf8(text).unwrap().lines().map(Into::into).collect();
            assert_eq!(found, expected);
        }
    }

    fn a_range_beyond_the_end_is_refused(place: Place) {
        let place = place.with_entries(1);
        let reader = place.store.reader(&place.session()).unwrap();
        let len = reader.stamp().len;
        let mut buffer = foldline_session_store::AlignedBuf::new();
        assert_eq!(reader.read(len - 1..len, &mut buffer).unwrap(), b"\n");
        assert!(matches!(reader.read(len..len + 1, &mut buffer), Err(ReadError::OutOfRange { .. })));
        // What was appended since does not show.
        append(&mut place.open(), 1);
        assert!(matches!(reader.read(len..len + 1, &mut buffer), Err(ReadError::OutOfRange { .. })));
    }
}

//! A session cut at every byte.

use foldline_session_store::Durability;

use crate::support::{HEADER, Place, disk, entry, ids, memory, strict_ids};

/// Cuts a session of `count` entries at each byte in turn, then appends to it.
fn cut_everywhere(place: &Place, count: usize) {
    let lines: Vec<String> = std::iter::once(HEADER.to_owned())
        .chain((0..count).map(entry))
        .collect();
    let whole = format!("{}\n", lines.join("\n"));
    let volume = place.store.volume();
    volume.create_folder(&place.folder).unwrap();
    for cut in 0..=whole.len() {
        let kept = &whole.as_bytes()[..cut];
        let mut file = volume.open_or_create(&place.session()).unwrap();
        file.set_len(0).unwrap();
        file.write(kept).unwrap();
        drop(file);
        // A line counts as complete once its closing brace is there.
        let mut end = 0;
        let complete = lines.iter().take_while(|line| {
            end += line.len() + 1;
            end - 1 <= cut
        });
        let complete = complete.count();

        let mut writer = place.open();
        if complete == 0 {
            writer.append(HEADER, Durability::Commit).unwrap();
        }
        let appended = writer.append(&entry(900), Durability::Commit).unwrap();
        drop(writer);
        // The complete lines byte for byte, then the new one, and nothing else.
        let kept: usize = lines
            .iter()
            .take(complete.max(1))
            .map(|line| line.len() + 1)
            .sum();
        let text = place.text();
        assert_eq!(
            text,
            format!("{}{}\n", &whole[..kept], entry(900)),
            "cut at {cut}"
        );
        if cut % 101 == 0 {
            assert_eq!(
                strict_ids(&text),
                ids((0..complete.saturating_sub(1)).chain([900]))
            );
        }
        for torn in volume.list(&place.folder).unwrap() {
            let path = place.folder.join(torn.name());
            if path.extension().is_some_and(|extension| extension == "torn") {
                let fragment = place.store.read(&path).unwrap();
                assert!(whole.as_bytes()[..cut].ends_with(&fragment), "cut at {cut}");
                volume.remove(&path).unwrap();
            } else {
                assert!(appended.quarantined.as_deref() != Some(&path));
            }
        }
    }
}

#[test]
fn two_hundred_entries_in_memory() {
    cut_everywhere(&memory(), 200);
}

#[test]
fn a_few_entries_on_disk() {
    cut_everywhere(&disk(), 4);
}

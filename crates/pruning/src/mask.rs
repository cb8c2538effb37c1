//! The mask entry: notices in the place of results, originals still in the log (D4).

use std::fmt::Write as _;

use foldline_session_model::EntryDraft;
use foldline_session_model::fold::PRUNE_TYPE;
use foldline_session_model::json::write_string;

use crate::notice::entry_reference;
use crate::plan::{Plan, Replacement};
use crate::policy::Originals;

impl Plan {
    /// The entry to append as a child of the leaf that was planned for; `None` if there is nothing to do, or if the plan
    /// is one for artifact files.
    ///
    /// After it, every fold shows the notices. Revoking it shows the originals again.
    pub fn mask(&self) -> Option<EntryDraft> {
        self.mask_data()
            .map(|data| EntryDraft::custom(PRUNE_TYPE, Some(&data)))
    }

    /// The data of that entry: `{"items":[{"entryId":…,"notice":…,"tokens":…}]}`, in the order of the context.
    pub fn mask_data(&self) -> Option<String> {
        if self.is_empty() || matches!(self.originals, Originals::Artifacts { .. }) {
            return None;
        }
        let mut data = String::from("{\"items\":[");
        for (index, replacement) in self.replacements.iter().rev().enumerate() {
            data.push_str(if index == 0 {
                "{\"entryId\":"
            } else {
                ",{\"entryId\":"
            });
            write_string(&mut data, self.entry(replacement));
            data.push_str(",\"notice\":");
            write_string(&mut data, &self.mask_notice(replacement));
            // Writing to a String cannot fail.
            let _ = write!(data, ",\"tokens\":{}}}", replacement.tokens);
        }
        data.push_str("]}");
        Some(data)
    }

    /// What the model sees in the place of one of the results. The originals of a mask are in the log.
    pub fn mask_notice(&self, replacement: &Replacement) -> String {
        match self.originals {
            Originals::Unreferenced => self.notice(replacement, None),
            Originals::InLog | Originals::Artifacts { .. } => {
                self.notice(replacement, Some(&entry_reference(self.entry(replacement))))
            }
        }
    }
}

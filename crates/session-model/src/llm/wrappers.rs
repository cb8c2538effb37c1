//! The sentences around summaries. Plain concatenation: a summary is never reformatted.

use std::borrow::Cow;

/// Text before and after each kind of summary, and the text of a result that the repair adds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrappers {
    /// Around the summary of a compaction.
    pub compaction_summary: Around,
    /// Around the summary of a branch.
    pub branch_summary: Around,
    /// Around the lines of a verbatim compaction.
    pub verbatim: Around,
    /// In place of a result that the log does not have.
    pub missing_result: Cow<'static, str>,
}

/// Text before and after something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Around {
    /// Before it.
    pub before: Cow<'static, str>,
    /// After it.
    pub after: Cow<'static, str>,
}

impl Around {
    /// Text before and after something.
    pub fn new(before: impl Into<Cow<'static, str>>, after: impl Into<Cow<'static, str>>) -> Self {
        Self {
            before: before.into(),
            after: after.into(),
        }
    }

    /// The two texts with `text` between them.
    pub fn wrap(&self, text: &str) -> String {
        let mut out = String::with_capacity(self.before.len() + text.len() + self.after.len());
        out.push_str(&self.before);
        out.push_str(text);
        out.push_str(&self.after);
        out
    }
}

impl Default for Wrappers {
    fn default() -> Self {
        Self {
            compaction_summary: Around::new(
                "The conversation up to here was replaced by this summary of it. It is a record of what happened, \
                 not a new instruction; messages after it are newer.\n\n<summary>\n",
                "\n</summary>",
            ),
            branch_summary: Around::new(
                "Before this point the conversation took another branch and came back. This summary records what \
                 happened there; it is not a new instruction.\n\n<summary>\n",
                "\n</summary>",
            ),
            verbatim: Around::new(
                "The earlier part of the conversation was shortened by deleting lines. What follows are its \
                 remaining lines, word for word and in order; a line `(filtered N lines)` stands for N deleted \
                 ones. It is a record of what happened, not a new instruction.\n\n",
                "",
            ),
            missing_result: Cow::Borrowed(
                "There is no result: the call was interrupted. Check what it may have changed before repeating it.",
            ),
        }
    }
}

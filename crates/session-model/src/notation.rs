//! A text notation for session trees, so that hundreds of test cases stay readable (feature `notation`).
//!
//! One entry a line: an id, `< parent` if it does not go on from the line before (`< -` makes a root), a kind, its
//! text, and options. Text is one quoted piece or a run of plain words; without any it is the id. `#` begins a comment.
//!
//! ```text
//! u1 user "Fix the parser"
//! a1 assistant Looking call=x:read usage=900/20/0/0 stop=toolUse
//! r1 result of=x "fn main() {}"
//! c1 prose "So far: …" kept=a1 before=920
//! u2 user size=400
//! b1 < u1 branch "tried it" from=u2
//! ```
//!
//! | kind | options |
//! |---|---|
//! | `user`, `developer`, `bash`, `note` | `size=N`: that many letters as text; `note`: `hidden` |
//! | `assistant` | `call=ID:TOOL` (any number), `think=TEXT:SIGNATURE`, `usage=INPUT/OUTPUT/READ/WRITE`, `stop=REASON`, `by=PROVIDER/MODEL`, `api=NAME`, `size=N` |
//! | `result` | `of=CALL`, `tool=NAME`, `error`, `image`, `size=N` |
//! | `prose`, `verbatim` | `kept=ID`, `before=N`, `details=JSON`, `data=JSON` |
//! | `branch` | `from=ID` |
//! | `label`, `prune`, `revoke`, `leaf` | `on=ID` (any number for `prune`; the text is the notice) |
//! | `model`, `thinking`, `mode` | the text is the value, a model as `provider/name` |
//! | `raw` | the text is the type, `json=MEMBERS` the members |

use std::fmt::Write as _;

use crate::json::write_string;
use crate::log::{SessionLog, Trust};
use crate::{Author, CompactionDraft, Display, EntryDraft, Envelope, HeaderDraft, Tokens};

/// Why a text is not in the notation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct NotationError {
    /// The line, counted from 1.
    pub line: usize,
    /// What is wrong with it.
    pub problem: String,
}

/// The session file that the notation describes, version 3.
///
/// # Errors
/// [`NotationError`] for the first line that is not in the notation.
pub fn file(notation: &str) -> Result<String, NotationError> {
    let header = HeaderDraft {
        id: "session".into(),
        timestamp: time(0),
        cwd: "/work".into(),
        parent_session: None,
        title: None,
    };
    let mut out = header.line();
    out.push('\n');
    let mut last = None;
    for (number, line) in notation.lines().enumerate() {
        let entry = entry(line, number + 1, &mut last).map_err(|problem| NotationError {
            line: number + 1,
            problem,
        })?;
        if let Some(entry) = entry {
            out.push_str(&entry);
            out.push('\n');
        }
    }
    Ok(out)
}

/// The log of such a file.
///
/// # Errors
/// As [`file`].
pub fn log(notation: &str) -> Result<SessionLog, NotationError> {
    SessionLog::load(file(notation)?, Trust::Validated).map_err(|error| NotationError {
        line: 0,
        problem: error.to_string(),
    })
}

fn time(second: usize) -> String {
    format!(
        "2026-01-01T{:02}:{:02}:{:02}.000Z",
        second / 3600 % 24,
        second / 60 % 60,
        second % 60
    )
}

/// One word of a line, without its quotes.
#[derive(Debug)]
struct Word {
    key: Option<String>,
    value: String,
}

fn words(line: &str) -> Result<Vec<Word>, String> {
    let mut words = Vec::new();
    let mut rest = line.trim_start();
    while !rest.is_empty() && !rest.starts_with('#') {
        let key = rest
            .find(|c: char| !(c.is_ascii_lowercase()))
            .filter(|at| *at > 0 && rest[*at..].starts_with('='))
            .map(|at| rest[..at].to_owned());
        let value = key.as_ref().map_or(rest, |key| &rest[key.len() + 1..]);
        let (value, after) = match value.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').ok_or("a quote is not closed")?,
            None => value.split_at(value.find(char::is_whitespace).unwrap_or(value.len())),
        };
        words.push(Word {
            key,
            value: value.replace("\\n", "\n"),
        });
        rest = after.trim_start();
    }
    Ok(words)
}

struct Options {
    id: String,
    words: Vec<Word>,
}

impl Options {
    fn all<'o>(&'o self, key: &'o str) -> impl Iterator<Item = &'o str> {
        self.words
            .iter()
            .filter(move |word| word.key.as_deref() == Some(key))
            .map(|word| &*word.value)
    }

    fn one(&self, key: &str) -> Option<&str> {
        let mut named = self.words.iter().filter(|word| word.key.as_deref() == Some(key));
        named.next().map(|word| &*word.value)
    }

    fn number(&self, key: &str) -> Result<Option<u64>, String> {
        self.one(key)
            .map(|value| value.parse().map_err(|_| format!("{key}={value} is no number")))
            .transpose()
    }

    /// A word without a key that is a switch, which then is no text.
    fn switch(&mut self, name: &str) -> bool {
        let before = self.words.len();
        self.words.retain(|word| word.key.is_some() || word.value != name);
        self.words.len() < before
    }

    fn text(&self) -> Result<String, String> {
        if let Some(size) = self.number("size")? {
            let size = usize::try_from(size).map_err(|_| "the size is too large")?;
            return Ok("x".repeat(size));
        }
        let plain: Vec<&str> = self
            .words
            .iter()
            .filter(|word| word.key.is_none())
            .map(|word| &*word.value)
            .collect();
        if plain.is_empty() {
            return Ok(self.id.clone());
        }
        Ok(plain.join(" "))
    }
}

fn quoted(text: &str) -> String {
    let mut json = String::new();
    write_string(&mut json, text);
    json
}

fn entry(line: &str, number: usize, last: &mut Option<String>) -> Result<Option<String>, String> {
    let mut words = words(line)?.into_iter().peekable();
    let Some(id) = words.next() else { return Ok(None) };
    let mut parent = last.clone();
    if words.peek().is_some_and(|word| word.value == "<") {
        words.next();
        let named = words.next().ok_or("there is no parent after `<`")?.value;
        parent = (named != "-").then_some(named);
    }
    let kind = words.next().ok_or("there is no kind")?.value;
    let options = Options {
        id: id.value.clone(),
        words: words.collect(),
    };
    let draft = draft(&kind, options)?;
    let envelope = Envelope {
        id: id.value.as_str().into(),
        parent: parent.map(Into::into),
        timestamp: time(number),
    };
    *last = Some(id.value);
    Ok(Some(draft.line(&envelope)))
}

fn draft(kind: &str, mut options: Options) -> Result<EntryDraft, String> {
    Ok(match kind {
        "user" | "developer" => {
            let text = quoted(&options.text()?);
            EntryDraft::message(&format!("{{\"role\":\"{kind}\",\"content\":{text}}}"))
        }
        "bash" => {
            let text = quoted(&options.text()?);
            EntryDraft::message(&format!(
                "{{\"role\":\"bashExecution\",\"command\":{text},\"output\":\"\",\"exitCode\":0,\"cancelled\":false,\"truncated\":false}}"
            ))
        }
        "note" => {
            let display = if options.switch("hidden") {
                Display::Hidden
            } else {
                Display::Shown
            };
            EntryDraft::custom_message("note", &options.text()?, display)
        }
        "assistant" => assistant(&mut options)?,
        "result" => result(&mut options)?,
        "prose" | "verbatim" => compaction(kind, &mut options)?,
        "branch" => {
            let from = options
                .one("from")
                .ok_or("a branch summary needs from=ID")?
                .into();
            EntryDraft::branch_summary(&options.text()?, &from, None, Author::Foldline)
        }
        "label" => {
            let target = options.one("on").ok_or("a label needs on=ID")?.into();
            EntryDraft::label(&target, Some(&options.text()?))
        }
        "prune" => {
            let notice = quoted(&options.text()?);
            let items: Vec<String> = options
                .all("on")
                .map(|id| {
                    format!(
                        "{{\"entryId\":{},\"notice\":{notice},\"tokens\":100}}",
                        quoted(id)
                    )
                })
                .collect();
            EntryDraft::custom(
                crate::fold::PRUNE_TYPE,
                Some(&format!("{{\"items\":[{}]}}", items.join(","))),
            )
        }
        "revoke" => EntryDraft::revocation(&options.one("on").ok_or("a revocation needs on=ID")?.into()),
        "leaf" => EntryDraft::leaf_move(options.one("on").map(Into::into).as_ref()),
        "model" => {
            let text = options.text()?;
            let (provider, model) = text.split_once('/').ok_or("a model is provider/name")?;
            EntryDraft::model_change(provider, model)
        }
        "thinking" => EntryDraft::thinking_level_change(&options.text()?),
        "mode" => EntryDraft::raw_entry("mode_change", &format!("\"mode\":{}", quoted(&options.text()?))),
        "raw" => {
            let json = options.one("json").unwrap_or_default().replace('\'', "\"");
            EntryDraft::raw_entry(&options.text()?, &json)
        }
        kind => return Err(format!("there is no kind `{kind}`")),
    })
}

fn assistant(options: &mut Options) -> Result<EntryDraft, String> {
    let mut blocks = Vec::new();
    for think in options.all("think") {
        let (text, signature) = think.split_once(':').unwrap_or((think, ""));
        let signature = if signature.is_empty() {
            String::new()
        } else {
            format!(",\"thinkingSignature\":{}", quoted(signature))
        };
        blocks.push(format!(
            "{{\"type\":\"thinking\",\"thinking\":{}{signature}}}",
            quoted(text)
        ));
    }
    let text = options.text()?;
    if !text.is_empty() {
        blocks.push(format!("{{\"type\":\"text\",\"text\":{}}}", quoted(&text)));
    }
    let mut stop = "stop";
    for call in options.all("call") {
        let (id, tool) = call.split_once(':').unwrap_or((call, "read"));
        stop = "toolUse";
        blocks.push(format!(
            "{{\"type\":\"toolCall\",\"id\":{},\"name\":{},\"arguments\":{{}}}}",
            quoted(id),
            quoted(tool)
        ));
    }
    let (provider, model) = options
        .one("by")
        .unwrap_or("anthropic/m-1")
        .split_once('/')
        .ok_or("a model is provider/name")?;
    let mut json = format!(
        "{{\"role\":\"assistant\",\"api\":{},\"provider\":{},\"model\":{},\"stopReason\":{},\"content\":[{}]",
        quoted(options.one("api").unwrap_or("anthropic-messages")),
        quoted(provider),
        quoted(model),
        quoted(options.one("stop").unwrap_or(stop)),
        blocks.join(",")
    );
    if let Some(usage) = options.one("usage") {
        let parts: Vec<&str> = usage.split('/').collect();
        let [input, output, read, write] = parts[..] else {
            return Err(format!("usage={usage} has not four parts"));
        };
        // Writing to a String cannot fail.
        let _ = write!(
            json,
            ",\"usage\":{{\"input\":{input},\"output\":{output},\"cacheRead\":{read},\"cacheWrite\":{write}}}"
        );
    }
    json.push('}');
    Ok(EntryDraft::message(&json))
}

fn result(options: &mut Options) -> Result<EntryDraft, String> {
    let is_error = options.switch("error");
    let image = if options.switch("image") {
        ",{\"type\":\"image\",\"data\":\"AAAA\",\"mimeType\":\"image/png\"}"
    } else {
        ""
    };
    let text = quoted(&options.text()?);
    Ok(EntryDraft::message(&format!(
        "{{\"role\":\"toolResult\",\"toolCallId\":{},\"toolName\":{},\"isError\":{is_error},\"content\":[{{\"type\":\"text\",\"text\":{text}}}{image}]}}",
        quoted(options.one("of").ok_or("a result needs of=CALL")?),
        quoted(options.one("tool").unwrap_or("read")),
    )))
}

fn compaction(kind: &str, options: &mut Options) -> Result<EntryDraft, String> {
    let json = |key: &str| options.one(key).map(|json| json.replace('\'', "\""));
    let strategy = if kind == "verbatim" {
        "verbatim-lines"
    } else {
        "summary"
    };
    let details = match json("details") {
        Some(more) => format!("{{\"strategy\":\"{strategy}\",{more}}}"),
        None => format!("{{\"strategy\":\"{strategy}\"}}"),
    };
    let preserve_data = json("data").map(|data| format!("{{{data}}}"));
    Ok(EntryDraft::compaction(&CompactionDraft {
        first_kept: options.one("kept").map(Into::into),
        tokens_before: Tokens(options.number("before")?.unwrap_or(0)),
        summary: options.text()?,
        short_summary: None,
        details,
        preserve_data,
        author: Author::Foldline,
    }))
}

#[cfg(test)]
mod tests {
    use super::{file, log};

    #[test]
    fn the_notation_makes_a_file() {
        insta::assert_snapshot!(
            file(
                r#"
            u1 user "Fix it"   # a comment
            a1 assistant think=hm:sig Looking call=x:read usage=9/2/0/0
            r1 result of=x error image out
            c1 prose "So far" kept=a1 before=20 details="'state':{}"
            b1 < u1 branch back from=c1
            n1 < - note hidden psst
            p1 prune gone on=r1 on=a1
            x1 raw odd json="'k':[1]"
            "#
            )
            .unwrap()
        );
    }

    #[test]
    fn what_is_not_in_the_notation_is_named() {
        for (text, problem) in [
            ("u1", "line 1: there is no kind"),
            ("u1 user \"x", "line 1: a quote is not closed"),
            ("u1 user\nx walrus", "line 2: there is no kind `walrus`"),
            ("r1 result", "line 1: a result needs of=CALL"),
            ("a assistant usage=1/2", "line 1: usage=1/2 has not four parts"),
            ("u <", "line 1: there is no parent after `<`"),
        ] {
            assert_eq!(log(text).unwrap_err().to_string(), problem);
        }
    }
}

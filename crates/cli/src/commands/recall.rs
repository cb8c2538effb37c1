//! `foldline recall`: what was ever said, in one session or in all.

mod haystack;
mod superseded;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use foldline_compaction_core::redact::redact;
use foldline_session_model::EntryIx;
use foldline_session_model::fold::Standing;
use foldline_session_model::search::{Found, MAX_TOKEN, Query, Ranking};
use foldline_session_store::{Agent, AgentFolder, Count, DiskStore, Layout, Project, SessionStore as _};
use serde::Serialize;

use crate::error::{CommandError, ErrorKind, Status};
use crate::output::{self, BOLD, DIM, Format, NOTE};
use crate::session;
use crate::view::{first_line, is_harmless};

use haystack::{Haystacks, What};

#[derive(Debug, clap::Args)]
#[command(
    override_usage = "foldline recall [OPTIONS] <SESSION> <QUERY>...\n       foldline recall [OPTIONS] --all <QUERY>...",
    after_help = "A query is words, identifiers or paths, in any case; entries with more and rarer ones come
first. Hits are marked when a compaction folded them, when a prune replaced them, when they are on
another branch, and when something newer supersedes them. Secrets are blanked: `foldline show
SESSION ID` prints an entry whole.

Examples:
  foldline recall latest fencing token
  foldline recall session.jsonl src/lease.rs --limit 3
  foldline recall --all 'connection refused'"
)]
pub(crate) struct Args {
    /// The session (a path, the start of an id, or `latest`; not with --all), then what to search for.
    #[arg(required = true, value_name = "SESSION QUERY")]
    words: Vec<OsString>,
    /// Search the sessions of every agent found on this machine.
    #[arg(long)]
    all: bool,
    /// How many hits at most.
    #[arg(long, value_name = "N", default_value_t = 10)]
    limit: usize,
}

#[derive(Serialize)]
struct Document {
    query: String,
    hits: Vec<Hit>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Hit {
    session: String,
    /// The entry; for an original that is stored beside the session, the entry that refers to it.
    entry_id: Option<String>,
    role: String,
    score: f64,
    /// The line of the file on which the entry stands; null for what is not in the file as it is.
    line: Option<u32>,
    /// The line of the entry's text at which `text` begins.
    text_line: u32,
    text: String,
    /// Whether a compaction stands for the entry in the context.
    folded: bool,
    place: &'static str,
    artifact: Option<String>,
    superseded: Option<&'static str>,
}

pub(crate) fn run(args: &Args, format: Format) -> Result<Status, CommandError> {
    let store = DiskStore::new();
    let (paths, words) = if args.all {
        (every_session(&store)?, args.words.as_slice())
    } else {
        let (name, words) = args.words.split_first().unwrap_or((&args.words[0], &[]));
        (vec![session::resolve(&store, Path::new(name))?], words)
    };
    let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
    let text = words.join(" ");
    let query = Query::new(&text);
    if query.is_empty() {
        let usage = "foldline recall SESSION QUERY, or foldline recall --all QUERY";
        let (message, hint) = if words.is_empty() {
            ("there is nothing to search for".to_owned(), usage.to_owned())
        } else {
            let message = format!("{:?} holds no word to search for", first_line(&text, 60));
            let hint = format!("a word has a letter or a digit and at most {MAX_TOKEN} bytes; {usage}");
            (message, hint)
        };
        return Err(CommandError::new(ErrorKind::Usage, message).hint(hint));
    }
    let document = Document {
        hits: search(&store, paths, &query, args)?,
        query: text,
    };
    output::result(format, &document, || text_of(&document, args));
    Ok(Status::Done)
}

/// The sessions of every agent, the oldest first.
fn every_session(store: &DiskStore) -> Result<Vec<PathBuf>, CommandError> {
    let failed = |e: &dyn std::error::Error| CommandError::from_error(ErrorKind::Failed, e);
    let layout = Layout::from_environment().map_err(|e| failed(&e))?;
    let ours = AgentFolder {
        agent: Agent::Foldline,
        folder: layout.sessions(),
    };
    let mut folders = vec![ours];
    folders.extend(layout.agents().iter().cloned());
    let listing = store
        .list(&folders, Project::Any, Count::Nothing)
        .map_err(|e| failed(&e))?;
    Ok(listing
        .sessions
        .into_iter()
        .rev()
        .map(|session| session.path)
        .collect())
}

fn search(
    store: &DiskStore,
    paths: Vec<PathBuf>,
    query: &Query,
    args: &Args,
) -> Result<Vec<Hit>, CommandError> {
    let mut haystacks = Haystacks::new(store, paths, query);
    if args.all {
        haystacks.read_what_can_be_read();
    } else {
        haystacks.read()?;
    }
    let ranking = haystacks.rank(args.limit)?;
    let found = ranking.found().to_vec();
    let mut hits = Vec::with_capacity(found.len());
    for one in &found {
        hits.push(hit(&mut haystacks, &ranking, one)?);
    }
    mark_superseded(&mut haystacks, &found, &mut hits)?;
    Ok(hits)
}

fn hit(haystacks: &mut Haystacks<'_>, ranking: &Ranking<'_>, found: &Found) -> Result<Hit, CommandError> {
    let text = haystacks.text(found)?.unwrap_or_default();
    let what = haystacks.what(found);
    let session = haystacks.session(found)?;
    let log = &session.log;
    let (ix, artifact) = match what {
        What::Log => (log.entry_at(found.document as usize), None),
        What::Artifact(id) => {
            let address = format!("artifact://{id}");
            (haystack::refers_to(log, &address), Some(address))
        }
    };
    let standing = ix.map(|ix| haystacks.standing(found, ix)).transpose()?;
    let session = haystacks.session(found)?;
    let log = &session.log;
    let snippet = ranking.snippet(&redact(&text));
    Ok(Hit {
        session: session.path.display().to_string(),
        entry_id: ix.map(|ix| log.id(ix).to_owned()),
        role: match (ix, &artifact) {
            (Some(ix), None) => haystack::role(log, ix),
            _ => "toolResult".to_owned(),
        },
        score: found.score,
        line: ix
            .filter(|_| session.imported_from.is_none())
            .and_then(|ix| log.line_number(ix))
            .map(foldline_session_model::LineNumber::get),
        text_line: snippet.line.get(),
        text: snippet.text,
        folded: standing == Some(Standing::Folded),
        place: match (&artifact, standing) {
            (Some(_), _) => "artifact",
            (None, Some(Standing::Kept)) => "context",
            (None, Some(Standing::Masked)) => "pruned",
            (None, Some(Standing::Folded)) => "folded",
            (None, Some(Standing::Elsewhere) | None) => "branch",
        },
        artifact,
        superseded: None,
    })
}

/// Marks hits that something newer makes worthless: a later result about the same file or question, or a newer hit
/// with the same text.
fn mark_superseded(
    haystacks: &mut Haystacks<'_>,
    found: &[Found],
    hits: &mut [Hit],
) -> Result<(), CommandError> {
    let mut sources: Vec<u32> = found.iter().map(|one| one.source).collect();
    sources.sort_unstable();
    sources.dedup();
    for source in sources {
        let of_source: Vec<(usize, &Found)> =
            (0..).zip(found).filter(|(_, one)| one.source == source).collect();
        let Some((_, first)) = of_source.first() else {
            continue;
        };
        if haystacks.what(first) != What::Log {
            continue;
        }
        let standings = haystacks.standings(first)?.clone();
        let log = &haystacks.session(first)?.log;
        let entries: Vec<EntryIx> = of_source
            .iter()
            .filter_map(|(_, one)| log.entry_at(one.document as usize))
            .collect();
        for (ix, why) in superseded::by_later_results(log, &standings, &entries) {
            let at = of_source
                .iter()
                .find(|(_, one)| one.document as usize == ix.index());
            if let Some(hit) = at.and_then(|(at, _)| hits.get_mut(*at)) {
                hit.superseded = Some(why);
            }
        }
    }
    let age = |at: usize| found.get(at).map(|one| (one.source, one.document));
    let mut texts = Vec::with_capacity(found.len());
    for one in found {
        texts.push(haystacks.text(one)?);
    }
    for at in 0..hits.len() {
        let newer = (0..hits.len()).any(|other| age(other) > age(at) && texts.get(other) == texts.get(at));
        if let Some(hit) = hits.get_mut(at).filter(|hit| newer && hit.superseded.is_none()) {
            hit.superseded = Some("said_again");
        }
    }
    Ok(())
}

fn text_of(document: &Document, args: &Args) -> String {
    if document.hits.is_empty() {
        return format!("Nothing was said about {:?}.\n", document.query);
    }
    let mut out = String::new();
    for hit in &document.hits {
        if args.all {
            out.push_str(&format!("{DIM}{}{DIM:#}\n", hit.session));
        }
        let id = hit.entry_id.as_deref().or(hit.artifact.as_deref()).unwrap_or("-");
        out.push_str(&format!("{BOLD}{id}{BOLD:#}  {}", hit.role));
        if let Some(line) = hit.line {
            out.push_str(&format!("  line {line}"));
        }
        let artifact = hit.artifact.as_deref().filter(|_| hit.entry_id.is_some());
        let place = match hit.place {
            "context" | "artifact" => None,
            "branch" => Some("on another branch"),
            place => Some(place),
        };
        for mark in [artifact, place, hit.superseded.map(spoken)]
            .into_iter()
            .flatten()
        {
            out.push_str(&format!("  {NOTE}{mark}{NOTE:#}"));
        }
        out.push('\n');
        for line in hit.text.lines() {
            let line: String = line
                .chars()
                .map(|c| if is_harmless(c) || c == '\t' { c } else { ' ' })
                .collect();
            out.push_str(&format!("    {line}\n"));
        }
    }
    out
}

fn spoken(why: &'static str) -> &'static str {
    match why {
        "repeated" => "superseded: asked again later",
        "file_changed" => "superseded: the file was changed later",
        "covered" => "superseded: a later read shows more",
        _ => "superseded: said again later",
    }
}

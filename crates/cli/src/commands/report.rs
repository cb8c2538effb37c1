//! `foldline report`: a session as one HTML page that needs nothing else.

mod chart;
mod compactions;
mod entries;
mod lines;
mod numbers;
mod page;
mod replaced;
mod shown;
mod timeline;

use std::path::PathBuf;

use foldline_session_model::tree::Leaf;
use foldline_session_store::DiskStore;
use serde::Serialize;

use crate::error::{CommandError, Status};
use crate::new_file;
use crate::output::{self, Format, GOOD};
use crate::session::{Damage, Session};

#[derive(Debug, clap::Args)]
#[command(
    after_help = "The page is one file: no scripts, and nothing is loaded from elsewhere. Secrets that the redaction rules know
are taken out, and long texts are cut; `foldline show` prints them whole.

Examples:
  foldline report latest -o report.html"
)]
pub(crate) struct Args {
    /// The session: a path, the start of an id, or `latest`.
    session: PathBuf,
    /// The new page. The file must not exist.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

#[derive(Serialize)]
struct Document {
    output: String,
    bytes: usize,
    compactions: usize,
}

pub(crate) fn run(args: &Args, format: Format) -> Result<Status, CommandError> {
    new_file::check(&args.output)?;
    let session = Session::open(&DiskStore::new(), &args.session, Damage::Warn)?;
    let context = session.context(&Leaf::Last)?;
    let compactions = compactions::collect(&session.log, &context);
    let report = page::Report {
        session: &session,
        context: &context,
        numbers: numbers::collect(&session.log, &context),
        timeline: timeline::collect(&context, &compactions),
        compactions,
    };
    let html = page::render(&report);
    new_file::write(&args.output, &html)?;
    let document = Document {
        output: args.output.display().to_string(),
        bytes: html.len(),
        compactions: report.compactions.len(),
    };
    output::result(format, &document, || {
        format!(
            "{GOOD}Wrote{GOOD:#} {} ({} KB)\n",
            document.output,
            document.bytes.div_ceil(1000)
        )
    });
    Ok(Status::Done)
}

//! `foldline context`: what the model would see now.

use foldline_session_model::fold::Context;
use foldline_session_model::llm::{LlmMessage, LlmRole, TrailingCalls, Wrappers};
use foldline_session_model::tokens::{Heuristic, TokenCounter as _};
use foldline_session_model::tree::Leaf;
use foldline_session_store::DiskStore;
use serde::Serialize;

use crate::args::{self, ContextFormat};
use crate::error::{CommandError, Status};
use crate::output::{self, BOLD, DIM, Format, grouped};
use crate::session::{Damage, Session};
use crate::view::{BlockJson, ContentJson, first_line, llm_block_json, llm_text, plain};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document<'d, M> {
    session_id: &'d str,
    leaf_id: Option<&'d str>,
    tokens: TokensJson,
    model: Option<String>,
    thinking_level: Option<&'d str>,
    messages: Vec<M>,
}

#[derive(Serialize)]
struct TokensJson {
    value: u64,
    source: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct MessageRow<'d> {
    role: &'d str,
    entry_id: &'d str,
    tokens: u64,
    content: ContentJson<'d>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct LlmRow<'d> {
    role: &'static str,
    entry_id: &'d str,
    tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'d str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_name: Option<&'d str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    is_error: Option<bool>,
    content: Vec<BlockJson<'d>>,
}

pub(crate) fn run(args: &args::Context, format: Format) -> Result<Status, CommandError> {
    let store = DiskStore::new();
    let (session, leaf) = match args.leaf.as_deref() {
        None => (Session::open_tail(&store, &args.session)?, Leaf::Last),
        Some(id) => (
            Session::open(&store, &args.session, Damage::Warn)?,
            Leaf::Entry(id.into()),
        ),
    };
    let whole;
    let context = match session.context(&leaf) {
        Ok(context) => context,
        Err(error) => {
            whole = session.whole(&store).unwrap_or(Err(error))?;
            whole.context(&leaf)?
        }
    };
    match args.format {
        ContextFormat::Messages => {
            let rows: Vec<MessageRow<'_>> = context
                .items
                .iter()
                .map(|item| MessageRow {
                    role: item.message.role(),
                    entry_id: context.log.id(item.source),
                    tokens: Heuristic.message(&item.message).get(),
                    content: ContentJson(&item.message),
                })
                .collect();
            let total = rows.iter().map(|row| row.tokens).sum();
            print(format, &context, total, rows, |out, row| {
                let text = first_line(&preview(&row.content), 90);
                row_text(out, row.role, row.entry_id, row.tokens, &text);
            });
        }
        ContextFormat::Llm | ContextFormat::Text => {
            let wrappers = Wrappers::default();
            let view = context.llm_view(&wrappers, TrailingCalls::Answer);
            let rows: Vec<LlmRow<'_>> = view.iter().map(|message| llm_row(&context, message)).collect();
            let total = rows.iter().map(|row| row.tokens).sum();
            if args.format == ContextFormat::Text && format == Format::Human {
                output::result(format, &(), || transcript(&view));
            } else {
                print(format, &context, total, rows, |out, row| {
                    let text = row.content.first().map(preview_block).unwrap_or_default();
                    row_text(out, row.role, row.entry_id, row.tokens, &first_line(&text, 90));
                });
            }
        }
    }
    Ok(Status::Done)
}

fn print<M: Serialize>(
    format: Format,
    context: &Context<'_>,
    total: u64,
    messages: Vec<M>,
    row: impl Fn(&mut String, &M),
) {
    let state = context.state();
    let document = Document {
        session_id: &context.log.header().id,
        leaf_id: context.leaf.map(|ix| context.log.id(ix)),
        tokens: TokensJson {
            value: total,
            source: "estimated",
        },
        model: state.model().map(|m| format!("{}/{}", m.provider, m.model)),
        thinking_level: state.thinking_level.as_deref(),
        messages,
    };
    output::result(format, &document, || {
        let mut out = format!(
            "{BOLD}{}{BOLD:#}  about {} tokens in {} messages\n",
            document.session_id,
            grouped(total),
            grouped(document.messages.len() as u64)
        );
        for message in &document.messages {
            row(&mut out, message);
        }
        out
    });
}

fn row_text(out: &mut String, role: &str, id: &str, tokens: u64, text: &str) {
    out.push_str(&format!(
        "{:>8}  {BOLD}{role:<17}{BOLD:#} {DIM}{id}{DIM:#}  {text}\n",
        grouped(tokens)
    ));
}

fn preview(content: &ContentJson<'_>) -> String {
    let text = plain(content.0);
    if !text.trim().is_empty() {
        return text.into_owned();
    }
    let calls = content.0.content().map(|c| {
        c.tool_calls()
            .map(|call| call.name.to_string())
            .collect::<Vec<_>>()
    });
    calls.unwrap_or_default().join(", ")
}

fn preview_block(block: &BlockJson<'_>) -> String {
    serde_json::to_string(block).unwrap_or_default()
}

fn llm_row<'d>(context: &'d Context<'_>, message: &'d LlmMessage<'_>) -> LlmRow<'d> {
    let mut row = LlmRow {
        role: message.role_name(),
        entry_id: context.log.id(message.source),
        tokens: Heuristic.call_message(message).get(),
        tool_call_id: None,
        tool_name: None,
        is_error: None,
        content: message.content.iter().map(llm_block_json).collect(),
    };
    if let LlmRole::ToolResult {
        call_id,
        tool_name,
        is_error,
        ..
    } = &message.role
    {
        row.tool_call_id = Some(call_id);
        row.tool_name = Some(tool_name);
        row.is_error = Some(*is_error);
    }
    row
}

fn transcript(view: &[LlmMessage<'_>]) -> String {
    let mut out = String::new();
    for message in view {
        out.push_str(&format!(
            "{BOLD}{}{BOLD:#}\n{}\n\n",
            message.role_name(),
            llm_text(message)
        ));
    }
    out
}

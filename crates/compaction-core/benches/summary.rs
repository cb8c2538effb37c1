//! A summary of a generated session: what is cut, what is asked, and the entry that a reply becomes.
#![allow(
    clippy::unwrap_used,
    missing_docs,
    reason = "a benchmark stops when its input is wrong, and its functions are named by criterion"
)]

use std::fmt::Write as _;
use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use foldline_compaction_core::accounting::{ContextSize, Limits, RatioUse};
use foldline_compaction_core::file_ops::ToolTable;
use foldline_compaction_core::prompts::Prompts;
use foldline_compaction_core::settings::CompactionSettings;
use foldline_compaction_core::summary::{
    CommitOptions, JobOptions, Preparation, PrepareOptions, SummaryJob, Window, extractive, prepare,
};
use foldline_compaction_core::verbatim::{Demand, SmallRegion};
use foldline_session_model::Tokens;
use foldline_session_model::fold::{Context, Profile};
use foldline_session_model::log::{SessionLog, Trust};
use foldline_session_model::model_call::{
    Api, AssistantBlock, LlmReply, ModelProfile, ModelRef, ReasoningEffort, StopReason, Usage,
};
use foldline_session_model::tokens::Heuristic;
use foldline_session_model::tree::Leaf;

const WINDOW: Tokens = Tokens(200_000);
const NOTES: &str = "## Goal\nFix the parser.\n\n## Progress\n### Done\n- [x] Read the code\n\n## Next Steps\n1. Run the tests";

/// Turns of a request, a read, an edit, a failed check and an answer; results of 2 to 6 kB.
fn session(entries: usize) -> String {
    let mut text = String::from(
        "{\"type\":\"session\",\"version\":3,\"id\":\"s0\",\"timestamp\":\"2026-01-01T00:00:00.000Z\",\"cwd\":\"/w\"}\n",
    );
    let mut parent = "null".to_owned();
    for at in 0..entries {
        let (turn, file) = (at / 8, at % 97);
        let call = |tool: &str, arguments: String| {
            format!(
                "{{\"role\":\"assistant\",\"content\":[{{\"type\":\"text\",\"text\":\"The problem in step {at} was a missing rule, because `rule_{file}` is new.\"}},{{\"type\":\"toolCall\",\"id\":\"c{at}\",\"name\":\"{tool}\",\"arguments\":{arguments}}}],\"provider\":\"p\",\"model\":\"m\",\"stopReason\":\"toolUse\"}}"
            )
        };
        let result = |tool: &str, line: &str, is_error: &str| {
            format!(
                "{{\"role\":\"toolResult\",\"toolCallId\":\"c{}\",\"toolName\":\"{tool}\",\"content\":[{{\"type\":\"text\",\"text\":\"{}\"}}],\"isError\":{is_error}}}",
                at - 1,
                line.repeat(60 + at % 60)
            )
        };
        let message = match at % 8 {
            0 => format!(
                "{{\"role\":\"user\",\"content\":[{{\"type\":\"text\",\"text\":\"Request {turn}: change src/file_{file}.rs and never touch the lexer.\"}}]}}"
            ),
            1 => call("read", format!("{{\"path\":\"src/file_{file}.rs\"}}")),
            2 => result("read", "    let value = checked(item_7)?;\\n", "false"),
            3 => call("edit", format!("{{\"path\":\"src/file_{file}.rs\"}}")),
            4 => result("edit", "changed one line of the file\\n", "false"),
            5 => call("bash", "{\"command\":\"cargo test -p parser\"}".to_owned()),
            6 => result("bash", "error[E0425]: cannot find value `rule_7`\\n", "true"),
            _ => "{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"Done so far. I will fix the rest next.\"}],\"provider\":\"p\",\"model\":\"m\",\"stopReason\":\"stop\"}".to_owned(),
        };
        writeln!(
            text,
            "{{\"type\":\"message\",\"id\":\"e{at}\",\"parentId\":{parent},\"timestamp\":\"2026-01-01T00:00:00.000Z\",\"message\":{message}}}"
        )
        .unwrap();
        parent = format!("\"e{at}\"");
    }
    text
}

fn reply() -> LlmReply {
    LlmReply {
        blocks: vec![AssistantBlock::Text {
            text: NOTES.into(),
            signature: None,
        }],
        usage: Usage::default(),
        stop: StopReason::Stop,
        raw_stop: None,
        model: None,
        response_id: None,
    }
}

/// What a compaction is made with.
struct Kit {
    settings: CompactionSettings,
    limits: Option<Limits>,
    tools: ToolTable,
    prompts: Prompts,
    model: ModelProfile,
}

impl Kit {
    fn new() -> Self {
        let settings = CompactionSettings::default();
        let name = ModelRef {
            provider: "p".into(),
            id: "m".into(),
        };
        Self {
            limits: Limits::new(Some(WINDOW), &settings, Tokens::ZERO),
            settings,
            tools: ToolTable::default(),
            prompts: Prompts::default(),
            model: ModelProfile {
                context_window: Some(WINDOW),
                max_output: Some(Tokens(32_000)),
                ..ModelProfile::unknown(name, Api::AnthropicMessages)
            },
        }
    }

    fn prepared<'c, 'l>(&self, context: &'c Context<'l>) -> Preparation<'c, 'l> {
        let options = PrepareOptions {
            settings: &self.settings,
            limits: self.limits.as_ref(),
            ratio: RatioUse::None,
            window: Window::FromFirstKept,
            small: SmallRegion::Allow,
            room: None,
            tools: &self.tools,
        };
        prepare(context, &options, &Heuristic).unwrap()
    }

    fn commit(&self, context: &Context<'_>) -> CommitOptions<'_> {
        CommitOptions {
            settings: &self.settings,
            limits: self.limits.as_ref(),
            size: ContextSize::of(context, Tokens::ZERO, Tokens::ZERO, &Heuristic),
            open_todos: &[],
            demand: Demand::Any,
            preserve_data: None,
        }
    }

    fn job<'j, 'c, 'l>(
        &'j self,
        preparation: &'j Preparation<'c, 'l>,
        commit: CommitOptions<'j>,
    ) -> SummaryJob<'j, 'c, 'l> {
        let options = JobOptions {
            commit,
            model: &self.model,
            prompts: &self.prompts,
            instructions: None,
            prompt_override: None,
            context_lines: &[],
            reasoning: ReasoningEffort::Off,
        };
        SummaryJob::new(preparation, options, &Heuristic).unwrap()
    }
}

fn summaries(criterion: &mut Criterion) {
    let kit = Kit::new();
    let mut group = criterion.benchmark_group("summary");
    group.sample_size(10);
    for entries in [1_000, 10_000] {
        let text = session(entries);
        group.throughput(Throughput::Bytes(text.len() as u64));
        let log = SessionLog::load(text.as_str(), Trust::Validated).unwrap();
        let context = log.context(&Leaf::Last, Profile::Foldline).unwrap();
        group.bench_with_input(BenchmarkId::new("prepare", entries), &context, |b, context| {
            b.iter(|| black_box(kit.prepared(context)).compacted_tokens());
        });
        let preparation = kit.prepared(&context);
        let commit = kit.commit(&context);
        group.bench_with_input(
            BenchmarkId::new("requests", entries),
            &preparation,
            |b, preparation| {
                b.iter(|| black_box(kit.job(preparation, commit)).requests().len());
            },
        );
        let job = kit.job(&preparation, commit);
        let replies: Vec<LlmReply> = job.requests().iter().map(|_| reply()).collect();
        group.bench_with_input(BenchmarkId::new("finish", entries), &job, |b, job| {
            b.iter(|| black_box(job.finish(&replies, &Heuristic)).unwrap());
        });
        group.bench_with_input(
            BenchmarkId::new("extractive", entries),
            &preparation,
            |b, preparation| b.iter(|| black_box(extractive(preparation, &commit, &Heuristic)).unwrap()),
        );
    }
    group.finish();
}

criterion_group!(benches, summaries);
criterion_main!(benches);

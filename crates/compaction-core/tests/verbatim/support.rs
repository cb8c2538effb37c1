//! Short ways to write sessions and to compact them.

use foldline_compaction_core::verbatim::{
    CallFailure, Candidate, Climb, Credentials, Demand, Ladder, LastRung, LineRange, NotSmaller, Nothing,
    Outcome, ParameterLayer, Parameters, Preparation, RangePlan, RangePlanError, RangePrompts, RawRange,
    Region, Retries, Rung, SmallRegion, Step, ValidatedRanges, VerbatimCompaction, View, extractive, finish,
    outcome, prepare,
};
use foldline_session_model::fold::{Context, Profile};
use foldline_session_model::log::{SessionLog, Trust};
use foldline_session_model::model_call::{
    Api, AssistantBlock, InputBlock, LlmReply, LlmRequest, MessageContent, ModelProfile, ModelRef,
    ReasoningEffort, StopReason, Usage,
};
use foldline_session_model::tokens::Heuristic;
use foldline_session_model::tree::Leaf;
use foldline_session_model::{EntryDraft, Envelope, LineNumber, Tokens};

/// A session that grows by one entry after the other.
pub(crate) struct Session {
    pub(crate) log: SessionLog,
    entries: usize,
}

impl Session {
    pub(crate) fn new() -> Self {
        let header = r#"{"type":"session","version":3,"id":"s","timestamp":"t","cwd":"/w"}"#;
        let log = SessionLog::load(format!("{header}\n"), Trust::Validated).unwrap();
        Self { log, entries: 0 }
    }

    pub(crate) fn of(messages: &[String]) -> Self {
        let mut session = Self::new();
        for message in messages {
            session.message(message);
        }
        session
    }

    fn envelope(&mut self) -> Envelope {
        self.entries += 1;
        Envelope {
            id: format!("m{}", self.entries - 1).as_str().into(),
            parent: self.log.leaf().map(|leaf| self.log.entry_id(leaf)),
            timestamp: "t".into(),
        }
    }

    /// Appends a message, given as JSON.
    pub(crate) fn message(&mut self, message: &str) {
        self.entry("message", &format!(r#""message":{message}"#));
    }

    /// Appends an entry with these members.
    pub(crate) fn entry(&mut self, kind: &str, members: &str) {
        let envelope = self.envelope();
        let parent = envelope
            .parent
            .map_or_else(|| "null".to_owned(), |parent| format!("\"{parent}\""));
        let id = &envelope.id;
        let line =
            format!(r#"{{"type":"{kind}","id":"{id}","parentId":{parent},"timestamp":"t",{members}}}"#);
        self.log.append(&line).unwrap();
    }

    /// Appends a compaction, as a commit does.
    pub(crate) fn commit(&mut self, compaction: &VerbatimCompaction) {
        let envelope = self.envelope();
        self.log
            .append(&EntryDraft::compaction(&compaction.draft).line(&envelope))
            .unwrap();
    }

    pub(crate) fn context(&self) -> Context<'_> {
        self.log.context(&Leaf::Last, Profile::Auto).unwrap()
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.log.bytes().to_vec()).unwrap()
    }
}

pub(crate) fn json(text: &str) -> String {
    serde_json::to_string(text).unwrap()
}

pub(crate) fn user(text: &str) -> String {
    format!(r#"{{"role":"user","content":{}}}"#, json(text))
}

pub(crate) fn assistant(text: &str) -> String {
    format!(
        r#"{{"role":"assistant","stopReason":"stop","content":[{{"type":"text","text":{}}}]}}"#,
        json(text)
    )
}

pub(crate) fn call(id: &str, name: &str, arguments: &str) -> String {
    format!(
        r#"{{"role":"assistant","stopReason":"toolUse","content":[{{"type":"toolCall","id":"{id}","name":"{name}","arguments":{arguments}}}]}}"#
    )
}

pub(crate) fn result(id: &str, text: &str) -> String {
    format!(
        r#"{{"role":"toolResult","toolCallId":"{id}","toolName":"read","content":[{{"type":"text","text":{}}}],"isError":false}}"#,
        json(text)
    )
}

/// A secret, built here so that no scanner takes this file for a leak.
pub(crate) fn secret() -> String {
    let value: String = "q8Zr4TnW0xLp2VbK7sYd".chars().cycle().take(40).collect();
    format!("sk-ant-{value}")
}

/// Numbered lines.
pub(crate) fn lines(count: usize) -> String {
    (1..=count)
        .map(|i| format!("line {i}"))
        .collect::<Vec<_>>()
        .join("\n")
}

/// Lines that are longer than the marker of one.
pub(crate) fn long_lines(count: usize) -> String {
    let line = |i| format!("line {i} of a listing that nobody has to read twice");
    (1..=count).map(line).collect::<Vec<_>>().join("\n")
}

/// The defaults with another number of newest messages.
pub(crate) fn preserving(preserve_recent: usize) -> Parameters {
    let layer = ParameterLayer {
        preserve_recent: Some(preserve_recent as f64),
        ..ParameterLayer::default()
    };
    Parameters::merge(&[layer], Some("q")).0
}

pub(crate) fn prepared<'c, 'l>(
    context: &'c Context<'l>,
    preserve_recent: usize,
) -> Result<Preparation<'c, 'l>, Nothing> {
    prepare(
        context,
        preserving(preserve_recent),
        SmallRegion::Refuse,
        &Heuristic,
    )
}

/// As [`prepared`], where the context is known not to fit.
pub(crate) fn prepared_small<'c, 'l>(
    context: &'c Context<'l>,
    preserve_recent: usize,
) -> Preparation<'c, 'l> {
    prepare(
        context,
        preserving(preserve_recent),
        SmallRegion::Allow,
        &Heuristic,
    )
    .unwrap()
}

/// A plan that deletes these lines.
pub(crate) fn deleting(preparation: &Preparation<'_, '_>, ranges: &[(u64, u64)]) -> RangePlan {
    let records = ranges.iter().map(|&(start, end)| RawRange { start, end });
    let region = preparation.region();
    let ranges = ValidatedRanges::validate(records, region.line_count(), region.protected());
    RangePlan::new(ranges, Rung::Planned)
}

/// The plan of the embedded planner.
pub(crate) fn without_model(preparation: &Preparation<'_, '_>) -> RangePlan {
    let chosen = extractive(preparation);
    RangePlan {
        dropped: chosen.dropped,
        ..RangePlan::new(chosen.ranges, Rung::Extractive)
    }
}

pub(crate) fn finished(
    preparation: &Preparation<'_, '_>,
    plan: &RangePlan,
) -> Result<VerbatimCompaction, NotSmaller> {
    finish(
        preparation,
        plan,
        Demand::Any,
        preparation.tokens_before(),
        &Heuristic,
    )
}

/// What an answer says.
#[allow(clippy::unnecessary_wraps, reason = "answers are results")]
pub(crate) fn reply(text: &str, stop: StopReason) -> Result<LlmReply, CallFailure> {
    Ok(LlmReply {
        blocks: vec![AssistantBlock::Text {
            text: text.to_owned().into(),
            signature: None,
        }],
        usage: Usage::default(),
        stop,
        raw_stop: None,
        model: None,
        response_id: None,
    })
}

/// An outcome as text: the ranges, or the category of the failure.
pub(crate) fn told(outcome: Outcome) -> String {
    match outcome {
        Outcome::Ranked { ranges, recovered } => {
            let ranges: Vec<String> = ranges
                .ranges()
                .iter()
                .map(|range| format!("{}-{}", range.start(), range.end()))
                .collect();
            let kind = recovered.map_or_else(|| "ranked".to_owned(), |count| format!("recovered {count}"));
            format!("{kind}: {}", ranges.join(" "))
        }
        Outcome::Overflowed { .. } => "overflowed".to_owned(),
        Outcome::Limited {
            category,
            retries: Retries::Exhausted,
            ..
        } => format!("{}, exhausted", category.name()),
        Outcome::Limited { category, .. }
        | Outcome::Unusable { category }
        | Outcome::ProviderError { category, .. } => category.name().to_owned(),
    }
}

/// What an answer of these blocks comes to over 50 lines, the first ones of which may be protected.
pub(crate) fn outcome_of_blocks(
    blocks: &[String],
    stop: StopReason,
    usage: Usage,
    protected: Option<LineRange>,
) -> String {
    let text = lines(50);
    let region = Region::guessed_from_text(&text).unwrap().protect(protected);
    let block = |text: &String| AssistantBlock::Text {
        text: text.clone().into(),
        signature: None,
    };
    let answer = reply("", stop).map(|reply| LlmReply {
        blocks: blocks.iter().map(block).collect(),
        usage,
        ..reply
    });
    told(outcome(&View::whole(&region), &answer, None))
}

/// A span of lines.
pub(crate) fn span(start: u32, end: u32) -> LineRange {
    LineRange::new(LineNumber::new(start).unwrap(), LineNumber::new(end).unwrap()).unwrap()
}

/// A model with a window; 0 is one that is not known.
pub(crate) fn candidate(name: &str, window: u64) -> Candidate {
    let mut profile = ModelProfile::unknown(ModelRef::parse(name).unwrap(), Api::OpenAiCompletions);
    profile.context_window = Some(Tokens(window)).filter(|w| *w > Tokens::ZERO);
    Candidate {
        profile,
        reasoning: ReasoningEffort::Medium,
        credentials: Credentials::Present,
    }
}

/// The prompt of a request.
pub(crate) fn prompt(request: &LlmRequest<'_>) -> String {
    let MessageContent::User { blocks } = &request.messages[0].content else {
        panic!("the prompt is no user message")
    };
    let InputBlock::Text(text) = &blocks[0] else {
        panic!("the prompt is no text")
    };
    text.to_string()
}

/// A figure of the prompt.
pub(crate) fn figure(prompt: &str, label: &str) -> usize {
    let line = prompt.lines().find_map(|line| line.strip_prefix(label));
    line.unwrap().parse().unwrap()
}

/// How a ladder went.
pub(crate) struct Climbed {
    /// Model and prompt of each request.
    pub(crate) requests: Vec<(String, String)>,
    pub(crate) end: Result<RangePlan, RangePlanError>,
}

/// Climbs a ladder; `answer` gets the number of the request, counted from 0, and its prompt.
pub(crate) fn climb(
    preparation: &Preparation<'_, '_>,
    candidates: Vec<Candidate>,
    climb: Climb,
    last: LastRung,
    mut answer: impl FnMut(usize, &str) -> Result<LlmReply, CallFailure>,
) -> Climbed {
    let prompts = RangePrompts::default();
    let names: Vec<String> = candidates
        .iter()
        .map(|c| c.profile.model_ref().to_string())
        .collect();
    let mut ladder = Ladder::new(preparation, &prompts, candidates, climb, last);
    let mut requests = Vec::new();
    loop {
        match ladder.step(&Heuristic) {
            Step::Ask { candidate, request } => {
                let prompt = prompt(&request);
                ladder.answer(&answer(requests.len(), &prompt));
                requests.push((names[candidate].clone(), prompt));
                assert!(requests.len() < 100, "a ladder ends");
            }
            Step::Done(plan) => {
                return Climbed {
                    requests,
                    end: Ok(plan),
                };
            }
            Step::Failed(error) => {
                return Climbed {
                    requests,
                    end: Err(error),
                };
            }
        }
    }
}

/// One request, and an error if its answer cannot be used (seed 002).
pub(crate) fn ask_once(preparation: &Preparation<'_, '_>, answer: &Result<LlmReply, CallFailure>) -> Climbed {
    climb(
        preparation,
        vec![candidate("acme/large", 0)],
        Climb::OneRequest,
        LastRung::Fail,
        |_, _| answer.clone(),
    )
}

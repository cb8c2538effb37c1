use foldline_session_model::Tokens;
use foldline_session_model::fold::{Context, Profile};
use foldline_session_model::log::{SessionLog, Trust};
use foldline_session_model::model_call::{
    Api, AssistantBlock, ErrorClass, InputBlock, LlmReply, LlmRequest, MessageContent, ModelProfile,
    ModelRef, ReasoningEffort, StopReason, Usage,
};
use foldline_session_model::tokens::Heuristic;
use foldline_session_model::tree::Leaf;

use super::{Attempt, Candidate, Climb, Credentials, Ladder, LastRung, Step, fits};
use crate::verbatim::{
    CallFailure, Category, Parameters, RangePrompts, Retries, Rung, SmallRegion, TailFate, prepare,
};

/// A session of one long message and two short ones.
fn session(lines: usize) -> SessionLog {
    let text: Vec<String> = (1..=lines)
        .map(|i| format!("line {i} of src/file_{i}.rs"))
        .collect();
    let mut file = String::from(
        "{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"timestamp\":\"t\",\"cwd\":\"/w\"}\n",
    );
    for (id, parent, text) in [
        ("a", "null", text.join("\\n")),
        ("b", "\"a\"", "x".into()),
        ("c", "\"b\"", "y".into()),
    ] {
        file.push_str(&format!(
            "{{\"type\":\"message\",\"id\":\"{id}\",\"parentId\":{parent},\"timestamp\":\"t\",\"message\":{{\"role\":\"user\",\"content\":\"{text}\"}}}}\n"
        ));
    }
    SessionLog::load(file, Trust::Validated).unwrap()
}

fn context(log: &SessionLog) -> Context<'_> {
    log.context(&Leaf::Last, Profile::Auto).unwrap()
}

fn candidate(name: &str, window: u64) -> Candidate {
    let model = ModelRef::parse(name).unwrap();
    let mut profile = ModelProfile::unknown(model, Api::OpenAiCompletions);
    profile.context_window = (window > 0).then_some(Tokens(window));
    Candidate {
        profile,
        reasoning: ReasoningEffort::Medium,
        credentials: Credentials::Present,
    }
}

#[allow(clippy::unnecessary_wraps, reason = "answers are results")]
fn reply(text: &str, stop: StopReason) -> Result<LlmReply, CallFailure> {
    let blocks = vec![AssistantBlock::Text {
        text: text.to_owned().into(),
        signature: None,
    }];
    Ok(LlmReply {
        blocks,
        usage: Usage::default(),
        stop,
        raw_stop: None,
        model: None,
        response_id: None,
    })
}

fn fail(class: ErrorClass) -> Result<LlmReply, CallFailure> {
    Err(CallFailure {
        class,
        message: "the provider said no".to_owned(),
        retries: Retries::None,
    })
}

fn shown_lines(request: &LlmRequest<'_>) -> usize {
    let MessageContent::User { blocks } = &request.messages[0].content else {
        panic!()
    };
    let InputBlock::Text(text) = &blocks[0] else {
        panic!()
    };
    let line = text.lines().find(|line| line.starts_with("Lines: ")).unwrap();
    line["Lines: ".len()..].parse().unwrap()
}

/// Runs a ladder over scripted answers; the last one repeats. Returns the requests and how it ended, as text.
fn run(
    lines: usize,
    candidates: Vec<Candidate>,
    climb: Climb,
    last: LastRung,
    answers: &[&str],
) -> (Vec<String>, String) {
    let log = session(lines);
    let context = context(&log);
    let preparation = prepare(
        &context,
        Parameters::with_query("q"),
        SmallRegion::Allow,
        &Heuristic,
    )
    .unwrap();
    let prompts = RangePrompts::default();
    let names: Vec<String> = candidates
        .iter()
        .map(|c| c.profile.model_ref().to_string())
        .collect();
    let mut ladder = Ladder::new(&preparation, &prompts, candidates, climb, last);
    let mut requests = Vec::new();
    loop {
        match ladder.step(&Heuristic) {
            Step::Ask { candidate, request } => {
                let shown = shown_lines(&request);
                let answer = answers.get(requests.len()).or(answers.last()).unwrap();
                requests.push(format!("{} {shown}", names[candidate]));
                assert!(requests.len() < 50, "a ladder ends");
                let answer = match *answer {
                    "ok" => reply("1,5\n", StopReason::Stop),
                    "cut" => reply("1,5\n6,", StopReason::Length),
                    "bad" => reply("nope", StopReason::Stop),
                    "overflow" => fail(ErrorClass::OVERFLOW),
                    "limit" => fail(ErrorClass::RateLimit),
                    other => panic!("{other}"),
                };
                let attempt = ladder.answer(&answer);
                assert_eq!(
                    matches!(attempt, Attempt::Recovered { records: 1 }),
                    answers.contains(&"cut")
                );
            }
            Step::Done(plan) => {
                let planner = plan
                    .planner
                    .map_or_else(String::new, |p| format!(" by {}/{}", p.provider, p.id));
                let tail = if plan.tail == TailFate::Dropped {
                    " without tail"
                } else {
                    ""
                };
                let end = format!("{} withheld {}{planner}{tail}", plan.rung.as_str(), plan.withheld);
                return (requests, end);
            }
            Step::Failed(error) => {
                return (
                    requests,
                    format!("failed {} after {}", error.category.name(), error.attempts),
                );
            }
        }
    }
}

/// Candidates, how far and to what end; answers; then requests and how it ended.
type Row<'r> = (
    Vec<Candidate>,
    Climb,
    LastRung,
    &'r [&'r str],
    &'r [&'r str],
    &'r str,
);

/// D6; spec "Verbatim", section 12.
#[test]
fn ladders_go_as_far_as_they_may() {
    let free = LastRung::ModelFree { limit: None };
    let one = || vec![candidate("acme/large", 0)];
    let two = || vec![candidate("acme/large", 0), candidate("beta/small", 0)];
    let table: &[Row<'_>] = &[
        (
            one(),
            Climb::OneRequest,
            LastRung::Fail,
            &["ok"],
            &["acme/large 40"],
            "planned withheld 0",
        ),
        (
            one(),
            Climb::OneRequest,
            LastRung::Fail,
            &["cut"],
            &["acme/large 40"],
            "planned withheld 0",
        ),
        (
            one(),
            Climb::OneRequest,
            LastRung::Fail,
            &["bad"],
            &["acme/large 40"],
            "failed malformed_output after 1",
        ),
        (
            one(),
            Climb::OneRequest,
            LastRung::Fail,
            &["overflow"],
            &["acme/large 40"],
            "failed context_overflow after 1",
        ),
        (
            two(),
            Climb::OneRequest,
            LastRung::Fail,
            &["limit", "ok"],
            &["acme/large 40"],
            "failed rate_limited after 1",
        ),
        (
            two(),
            Climb::AllModels,
            free,
            &["limit", "ok"],
            &["acme/large 40", "beta/small 40"],
            "planned withheld 0 by beta/small",
        ),
        (
            two(),
            Climb::AllModels,
            free,
            &["overflow", "ok"],
            &["acme/large 40", "acme/large 20"],
            "planned withheld 20",
        ),
        (
            one(),
            Climb::AllModels,
            free,
            &["overflow"],
            &[
                "acme/large 40",
                "acme/large 20",
                "acme/large 10",
                "acme/large 5",
                "acme/large 3",
                "acme/large 2",
                "acme/large 1",
            ],
            "extractive withheld 0",
        ),
        (
            two(),
            Climb::AllModels,
            free,
            &["bad"],
            &["acme/large 40", "beta/small 40"],
            "extractive withheld 0",
        ),
        (
            two(),
            Climb::AllModels,
            LastRung::Fail,
            &["bad"],
            &["acme/large 40", "beta/small 40"],
            "failed malformed_output after 2",
        ),
        (
            Vec::new(),
            Climb::AllModels,
            LastRung::Fail,
            &["ok"],
            &[],
            "failed unauthenticated after 0",
        ),
        (
            Vec::new(),
            Climb::AllModels,
            free,
            &["ok"],
            &[],
            "extractive withheld 0",
        ),
    ];
    for (candidates, climb, last, answers, requests, end) in table {
        let (asked, ended) = run(40, candidates.clone(), *climb, *last, answers);
        assert_eq!(
            (asked.iter().map(String::as_str).collect::<Vec<_>>(), &*ended),
            (requests.to_vec(), *end)
        );
    }
}

#[test]
fn a_model_is_asked_once_however_often_it_is_listed() {
    let twice = vec![
        candidate("acme/large", 0),
        candidate("acme/large", 0),
        candidate("beta/small", 0),
    ];
    let (asked, _) = run(40, twice, Climb::AllModels, LastRung::Fail, &["bad"]);
    assert_eq!(asked, ["acme/large 40", "beta/small 40"]);
    let mut other_level = candidate("acme/large", 0);
    other_level.reasoning = ReasoningEffort::Low;
    let (asked, _) = run(
        40,
        vec![candidate("acme/large", 0), other_level],
        Climb::AllModels,
        LastRung::Fail,
        &["bad"],
    );
    assert_eq!(asked.len(), 2, "another thinking level is another try");
}

#[test]
fn without_credentials_nothing_is_sent() {
    let mut locked = candidate("acme/large", 0);
    locked.credentials = Credentials::Missing("no key for acme".to_owned());
    let (asked, end) = run(
        40,
        vec![locked.clone()],
        Climb::OneRequest,
        LastRung::Fail,
        &["ok"],
    );
    assert_eq!((asked.len(), &*end), (0, "failed unauthenticated after 0"));
    // A candidate that could not be asked says nothing about the one that was.
    let locked_last = vec![candidate("beta/small", 0), locked.clone()];
    let (asked, end) = run(40, locked_last, Climb::AllModels, LastRung::Fail, &["bad"]);
    assert_eq!((asked.len(), &*end), (1, "failed malformed_output after 1"));
    let both = vec![locked, candidate("beta/small", 0)];
    let (asked, end) = run(40, both, Climb::AllModels, LastRung::Fail, &["ok"]);
    assert_eq!(
        (asked, &*end),
        (
            vec!["beta/small 40".to_owned()],
            "planned withheld 0 by beta/small"
        )
    );
}

/// R03: what cannot fit is made smaller before it is sent.
#[test]
fn requests_fit_the_window_of_their_model() {
    let log = session(2_000);
    let context = context(&log);
    let preparation = prepare(
        &context,
        Parameters::with_query("q"),
        SmallRegion::Allow,
        &Heuristic,
    )
    .unwrap();
    let prompts = RangePrompts::default();
    let small = candidate("acme/large", 8_000);
    let mut ladder = Ladder::new(
        &preparation,
        &prompts,
        vec![small.clone()],
        Climb::OneRequest,
        LastRung::Fail,
    );
    let Step::Ask { request, .. } = ladder.step(&Heuristic) else {
        panic!()
    };
    assert!(shown_lines(&request) < 2_000);
    assert!(fits(&request, &small.profile, &Heuristic));
    let (asked, end) = run(
        40,
        vec![candidate("acme/tiny", 100)],
        Climb::OneRequest,
        LastRung::Fail,
        &["ok"],
    );
    assert_eq!((asked.len(), &*end), (0, "failed context_overflow after 0"));
}

#[test]
fn a_small_region_is_not_sent() {
    let (asked, end) = run(
        19,
        vec![candidate("acme/large", 0)],
        Climb::OneRequest,
        LastRung::Fail,
        &["ok"],
    );
    assert_eq!((asked.len(), &*end), (0, "failed no_usable_ranges after 0"));
    let (asked, _) = run(
        20,
        vec![candidate("acme/large", 0)],
        Climb::OneRequest,
        LastRung::Fail,
        &["ok"],
    );
    assert_eq!(asked.len(), 1);
}

/// R12: the last rung always makes it fit, if the tail alone does.
#[test]
fn the_last_rung_is_as_small_as_it_must_be() {
    let free = |limit| LastRung::ModelFree {
        limit: Some(Tokens(limit)),
    };
    for (limit, expected) in [
        (1_000_000, "extractive withheld 0"),
        (600, "extractive withheld 0"),
        (300, "extractive withheld 0"),
        (132, "fresh withheld 0"),
        (50, "fresh withheld 0 without tail"),
    ] {
        let (_, end) = run(200, Vec::new(), Climb::AllModels, free(limit), &["ok"]);
        assert_eq!(end, expected, "{limit}");
    }
    assert_eq!(Rung::Fresh.as_str(), "fresh");
    assert_eq!(Category::ContextOverflow.name(), "context_overflow");
}

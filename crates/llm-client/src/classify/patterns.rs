//! The texts and codes that providers use, as data.
//!
//! Sources: spec "Orchestrator and clients", 4.1, 4.2 and 8.1 (the union of three systems, corrected);
//! field cases FB-072 to FB-080 and FB-084; the server of llama.cpp.

use std::sync::LazyLock;

use regex::{Regex, RegexSet, RegexSetBuilder};

/// How much an overflow text proves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Strength {
    /// Words of one provider that mean nothing else.
    Known,
    /// Words that anyone may use.
    Generic,
}

/// Overflow texts with the provider that uses them.
const OVERFLOW: &[(&str, &str, Strength)] = &[
    (r"prompt is too long", "Anthropic", Strength::Known),
    (
        r"input length and `?max_tokens`? exceed context limit",
        "Anthropic",
        Strength::Known,
    ),
    (
        r"input is too long for requested model",
        "Bedrock",
        Strength::Known,
    ),
    (r"exceeds the context window", "OpenAI", Strength::Known),
    (
        r"exceeds (?:the )?(?:model'?s )?maximum context length(?: of [\d,]+ tokens?|\s*\([\d,]+\))",
        "LiteLLM, compatible servers",
        Strength::Known,
    ),
    (
        r"input token count.*exceeds the maximum",
        "Google",
        Strength::Known,
    ),
    (r"maximum prompt length is \d+", "xAI", Strength::Known),
    (
        r"reduce the length of the messages",
        "Groq, OpenAI",
        Strength::Known,
    ),
    (
        r"maximum context length is [\d,]+ tokens",
        "OpenRouter, OpenAI, vLLM",
        Strength::Known,
    ),
    (
        r"exceeds (?:the )?maximum allowed input length of [\d,]+ tokens?",
        "Poolside",
        Strength::Known,
    ),
    (
        r"input \([\d,]+ tokens\) is longer than the model'?s context length \([\d,]+ tokens\)",
        "Together",
        Strength::Known,
    ),
    (r"exceeds the limit of \d+", "Copilot", Strength::Known),
    (
        r"exceeds the available context size",
        "llama.cpp",
        Strength::Known,
    ),
    (r"exceed_context_size_error", "llama.cpp", Strength::Known),
    (r"greater than the context length", "LM Studio", Strength::Known),
    (r"context window exceeds limit", "MiniMax", Strength::Known),
    (r"exceeded model token limit", "Kimi", Strength::Known),
    (
        r"too large for model with \d+ maximum context length",
        "Mistral",
        Strength::Known,
    ),
    (
        r"prompt has [\d,]+ tokens?, but the configured context size is [\d,]+ tokens?",
        "DS4",
        Strength::Known,
    ),
    (
        r"prompt too long; exceeded (?:max )?context length",
        "Ollama",
        Strength::Known,
    ),
    (r"range of input length should be", "DashScope", Strength::Known),
    (
        r"model_context_window_exceeded",
        "Anthropic, z.ai",
        Strength::Known,
    ),
    (
        r"requested tokens?.*exceed.*context (?:window|length|size)",
        "local servers",
        Strength::Generic,
    ),
    (
        r"context (?:window|length|size).*(?:exceeded|overflow|too small)",
        "local servers",
        Strength::Generic,
    ),
    (
        r"(?:prompt|input).*(?:too long|too large).*(?:context|n_ctx)",
        "local servers",
        Strength::Generic,
    ),
    (
        r"requested tokens?.*(?:exceeds?|greater than).*(?:n_ctx|context)",
        "local servers",
        Strength::Generic,
    ),
    (r"context[_ ]length[_ ]exceeded", "any", Strength::Generic),
    (r"too many tokens", "any", Strength::Generic),
    (r"token limit exceeded", "any", Strength::Generic),
    (
        r"\b4(?:00|13)\s*(?:status code)?\s*\(no body\)",
        "Cerebras, Mistral",
        Strength::Known,
    ),
];

/// Texts about the size of the body in bytes.
const BODY_TOO_LARGE: &[&str] = &[
    r"request_too_large",
    r"request exceeds the maximum size",
    r"payload too large",
    r"entity too large",
    r"\b413\b.*\b(?:request|payload|entity|body)\b.*\btoo large\b",
    r"(?:request )?body (?:is )?too large",
];

/// Texts about an image or a document that the provider will not take.
const MEDIA: &[&str] = &[
    r"image dimensions exceed",
    r"image exceeds [\d.]+ ?[km]b",
    r"could not process (?:the )?(?:image|document|pdf)",
    r"(?:unsupported|invalid) (?:image|media)(?:[_ ](?:type|format|url|data))?",
    r"image (?:is )?too (?:large|big|small)",
    r"image (?:data|media).*(?:not valid|does not (?:match|represent))",
    r"does not represent a valid image",
    r"too many images",
    r"(?:does not|doesn't) support (?:image|vision)",
    r"image_parse_error|invalid_image",
];

/// Texts that speak of a plan, a budget or credit.
const QUOTA: &[&str] = &[
    r"insufficient[_ ](?:quota|credits?|funds|balance)",
    r"quota[_ ]?(?:exceeded|exhausted)",
    r"exceeded your current quota",
    r"usage[_ ]?limit",
    r"usage_not_included",
    r"out[_ ]of[_ ](?:credits|budget)",
    r"weekly/monthly\s+limit\s+exhausted",
    r"(?:monthly|weekly) (?:usage )?limit",
    r"available balance",
    r"credit balance is too low",
    r"billing",
    r"payment required",
    r"resource has been exhausted[^\n]*(?:quota|limit)",
    r"(?:message|model).?limit reached",
    r"limit for this model",
];

/// Texts that speak of a rate.
const RATE_LIMIT: &[&str] = &[
    r"rate.?limit",
    r"too many requests",
    r"throttl",
    r"(?:tokens?|requests?) per (?:second|minute|hour|day)",
    r"per[- ](?:minute|day) (?:token|request)s?",
    r"\b[tr]p[md]\b",
    r"please wait before trying again",
    r"resource_?exhausted",
];

/// Texts of an overloaded or unavailable service that begin so; what follows is not looked at.
const UNAVAILABLE_PREFIX: &str = r"^service unavailable:";

const AUTH: &[&str] = &[
    r"unauthori[sz]ed",
    r"forbidden",
    r"authentication",
    r"permission[_ ](?:error|denied)",
    r"(?:invalid|incorrect|missing|expired)[_ ](?:x-)?(?:api[_ -]?)?(?:key|token)\b",
    r"no api key",
    r"auth_unavailable|no auth available",
    r"(?:^|\b(?:http|status|code|error)\W{0,3})40[13]\b",
];

const INVALID: &[&str] = &[
    r"invalid[_ ]request",
    r"bad[_ ]request",
    r"validation[_ ]error",
    r"unprocessable",
    r"missing required (?:parameter|field)",
    r"invalid (?:schema|tool_choice|value)",
    r"unsupported (?:parameter|value|model)",
    r"model_not_found|no such model|unknown model",
    r"does not (?:exist|support)",
    r"tool_use ids|tool_result blocks",
];

const OVERLOADED: &[&str] = &[
    r"overloaded",
    r"at capacity",
    r"(?:^|\b(?:http|status|code|error)\W{0,3})529\b",
];

const SERVER: &[&str] = &[
    r"service.?unavailable",
    r"provider.?returned.?error",
    r"server[_ ]?error",
    r"internal[_ ]?error",
    r"retry your request|try your request again",
    r"bad gateway|gateway time-?out",
    r"upstream.?connect|reset before headers|exceeded request buffer limit",
    r"no error details in response",
    r"(?:^|\b(?:http|status|code|error)\W{0,3})(?:408|5\d\d)\b",
];

const NETWORK: &[&str] = &[
    r"network.?error|connection.?(?:error|refused|lost|reset)|econnre(?:set|fused)|enotfound|eai_again|getaddrinfo",
    r"socket hang up|other side closed|fetch failed|socket connection (?:was )?closed",
    r"timed? out|timeout|terminated|stream stall|stream deadline exceeded",
    r"ended without|stream ended before|http2 request did not get a response|websocket.?(?:closed|error)",
];

/// What a text that is no overflow is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextKind {
    Quota,
    RateLimit,
    Auth,
    Invalid,
    Overloaded,
    Server,
    Network,
    Empty,
}

/// Codes of providers, lower case.
#[derive(Clone, Copy, Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "a set of kinds: one failure may carry codes of several"
)]
pub(super) struct CodeKinds {
    pub(super) overflow: bool,
    pub(super) body_too_large: bool,
    pub(super) auth: bool,
    pub(super) quota: bool,
    pub(super) rate_limit: bool,
    pub(super) invalid_request: bool,
    pub(super) overloaded: bool,
    pub(super) server: bool,
    pub(super) refused: bool,
}

impl CodeKinds {
    pub(super) fn of(codes: &[&str]) -> Self {
        let mut kinds = Self::default();
        for code in codes {
            match code.to_ascii_lowercase().as_str() {
                "context_length_exceeded"
                | "model_context_window_exceeded"
                | "exceed_context_size_error"
                | "context_window_exceeded"
                | "string_above_max_length" => kinds.overflow = true,
                "request_too_large" => kinds.body_too_large = true,
                "authentication_error"
                | "invalid_api_key"
                | "invalid_token"
                | "token_expired"
                | "unauthorized"
                | "forbidden"
                | "permission_error"
                | "permission_denied"
                | "unauthenticated" => kinds.auth = true,
                "insufficient_quota"
                | "quota_exceeded"
                | "quota_exhausted"
                | "usage_limit_reached"
                | "usage_not_included"
                | "out_of_credits"
                | "billing_error"
                | "billing_hard_limit_reached"
                | "credits_exhausted" => kinds.quota = true,
                "rate_limit"
                | "rate_limit_error"
                | "rate_limit_exceeded"
                | "too_many_requests"
                | "throttlingexception"
                | "throttling_error"
                | "resource_exhausted" => kinds.rate_limit = true,
                "invalid_request_error"
                | "invalid_request"
                | "bad_request"
                | "invalid_prompt"
                | "invalid_argument"
                | "validation_error" => kinds.invalid_request = true,
                "overloaded_error" | "overloaded" | "server_is_overloaded" | "slow_down" => {
                    kinds.overloaded = true;
                }
                "api_error"
                | "server_error"
                | "internal_error"
                | "internal_server_error"
                | "timeout_error"
                | "service_unavailable"
                | "unavailable"
                | "vector_store_timeout" => kinds.server = true,
                "content_filter" | "content_policy_violation" | "cyber_policy" | "refusal" => {
                    kinds.refused = true;
                }
                _ => {}
            }
        }
        kinds
    }
}

struct Sets {
    overflow: RegexSet,
    body: RegexSet,
    media: RegexSet,
    quota: RegexSet,
    rate: RegexSet,
    unavailable: Regex,
    auth: RegexSet,
    invalid: RegexSet,
    overloaded: RegexSet,
    server: RegexSet,
    network: RegexSet,
    empty: Regex,
    too_many: Regex,
    no_body: Regex,
}

static SETS: LazyLock<Sets> = LazyLock::new(|| Sets {
    overflow: set(OVERFLOW.iter().map(|(pattern, _, _)| *pattern)),
    body: set(BODY_TOO_LARGE.iter().copied()),
    media: set(MEDIA.iter().copied()),
    quota: set(QUOTA.iter().copied()),
    rate: set(RATE_LIMIT.iter().copied()),
    unavailable: one(UNAVAILABLE_PREFIX),
    auth: set(AUTH.iter().copied()),
    invalid: set(INVALID.iter().copied()),
    overloaded: set(OVERLOADED.iter().copied()),
    server: set(SERVER.iter().copied()),
    network: set(NETWORK.iter().copied()),
    empty: one(r"returned an empty completion"),
    too_many: one(r"(?:^|[^\d.,])(?<n>429)(?:$|[^\d.,]|[.,](?:$|\D))"),
    no_body: one(r"\(no body\)"),
});

#[expect(clippy::expect_used, reason = "constant patterns; a test compiles them all")]
fn set<'a>(patterns: impl Iterator<Item = &'a str>) -> RegexSet {
    RegexSetBuilder::new(patterns)
        .case_insensitive(true)
        .build()
        .expect("constant patterns compile")
}

#[expect(clippy::expect_used, reason = "constant patterns; a test compiles them all")]
pub(crate) fn one(pattern: &str) -> Regex {
    regex::RegexBuilder::new(pattern)
        .case_insensitive(true)
        .build()
        .expect("constant patterns compile")
}

pub(crate) fn all(patterns: &[&str]) -> RegexSet {
    set(patterns.iter().copied())
}

/// The strongest overflow pattern that matches.
pub(super) fn overflow(text: &str) -> Option<Strength> {
    let mut generic = None;
    for index in &SETS.overflow.matches(text) {
        match OVERFLOW.get(index)?.2 {
            Strength::Known => return Some(Strength::Known),
            Strength::Generic => generic = Some(Strength::Generic),
        }
    }
    generic
}

/// What a text is about when its wording forbids to read it as an overflow.
pub(super) fn excluded(text: &str) -> Option<TextKind> {
    let sets = &*SETS;
    if sets.unavailable.is_match(text) {
        return Some(TextKind::Overloaded);
    }
    let rate = sets.rate.is_match(text) || mentions_429(text);
    // Quota words also occur in prose about other things ("billing"), a known overflow text does not.
    if sets.quota.is_match(text) && (rate || overflow(text) != Some(Strength::Known)) {
        return Some(TextKind::Quota);
    }
    rate.then_some(TextKind::RateLimit)
}

/// `429` as a status, not as a number of tokens.
fn mentions_429(text: &str) -> bool {
    SETS.too_many.captures_iter(text).any(|found| {
        let end = found.name("n").map_or(text.len(), |number| number.end());
        let rest = text.get(end..).unwrap_or_default();
        !rest.trim_start().to_ascii_lowercase().starts_with("token")
    })
}

pub(super) fn is_quota(text: &str) -> bool {
    SETS.quota.is_match(text)
}

pub(super) fn is_media(text: &str) -> bool {
    SETS.media.is_match(text)
}

pub(super) fn is_body_too_large(text: &str) -> bool {
    SETS.body.is_match(text)
}

pub(super) fn says_no_body(text: &str) -> bool {
    SETS.no_body.is_match(text)
}

/// What a text that is no overflow is about, the firmest reading first.
pub(super) fn plain_kind(text: &str) -> Option<TextKind> {
    let sets = &*SETS;
    if sets.empty.is_match(text) {
        return Some(TextKind::Empty);
    }
    [
        (&sets.auth, TextKind::Auth),
        (&sets.overloaded, TextKind::Overloaded),
        (&sets.invalid, TextKind::Invalid),
        (&sets.server, TextKind::Server),
        (&sets.network, TextKind::Network),
    ]
    .into_iter()
    .find_map(|(set, kind)| set.is_match(text).then_some(kind))
}

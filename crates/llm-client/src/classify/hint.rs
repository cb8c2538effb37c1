//! How long a provider asks to wait, when it says so in prose (spec "Orchestrator and clients", 8.3).

use std::sync::LazyLock;
use std::time::{Duration, SystemTime};

use regex::{Captures, Regex};

use super::patterns::one;

/// The forms in the order in which they are tried.
struct Forms {
    retry_after_ms: Regex,
    retry_after: Regex,
    reset_after: Regex,
    amount: Regex,
    reset_ms: Regex,
    reset: Regex,
}

static FORMS: LazyLock<Forms> = LazyLock::new(|| Forms {
    retry_after_ms: one(r"retry-after-ms\s*[:=]\s*(?<n>\d+)"),
    retry_after: one(r"retry-after\s*[:=]\s*(?:(?<n>\d+(?:\.\d+)?)|(?<date>[a-z]{3}, [^\n]{20,26}gmt))"),
    reset_after: one(r"reset after (?:(?<h>\d+)h)?(?:(?<m>\d+)m)?(?<n>\d+(?:\.\d+)?)s"),
    amount: one(
        r#"(?:please retry in|"retrydelay":\s*"|try again in)\s*(?<n>\d+(?:\.\d+)?)\s*(?<unit>ms|s)"#,
    ),
    reset_ms: one(r"x-ratelimit-reset-ms\s*[:=]\s*(?<n>\d+)\b"),
    reset: one(r"x-ratelimit-reset\s*[:=]\s*(?<n>\d+)\b"),
});

/// The wait that a text asks for, seen from `now`.
pub fn retry_hint(text: &str, now: SystemTime) -> Option<Duration> {
    let forms = &*FORMS;
    if let Some(found) = forms.retry_after_ms.captures(text) {
        return millis(&found);
    }
    if let Some(found) = forms.retry_after.captures(text) {
        return match found.name("date") {
            Some(date) => until_http_date(date.as_str(), now),
            None => seconds(&found),
        };
    }
    if let Some(found) = forms.reset_after.captures(text) {
        let part = |group: &str, factor: u64| -> u64 {
            found
                .name(group)
                .and_then(|n| n.as_str().parse::<u64>().ok())
                .unwrap_or(0)
                .saturating_mul(factor)
        };
        let whole = part("h", 3600).saturating_add(part("m", 60));
        return seconds(&found).map(|rest| rest.saturating_add(Duration::from_secs(whole)));
    }
    if let Some(found) = forms.amount.captures(text) {
        return match found.name("unit").map(|unit| unit.as_str().to_ascii_lowercase()) {
            Some(unit) if unit == "ms" => millis(&found),
            _ => seconds(&found),
        };
    }
    if let Some(found) = forms.reset_ms.captures(text) {
        let value = whole(&found)?;
        return Some(if value > 1_000_000_000_000 {
            until(Duration::from_millis(value), now)
        } else {
            Duration::from_millis(value)
        });
    }
    let found = forms.reset.captures(text)?;
    let value = whole(&found)?;
    Some(if value > 1_000_000_000_000 {
        // OpenRouter counts in milliseconds under the same name.
        until(Duration::from_millis(value), now)
    } else if value > 1_000_000_000 {
        until(Duration::from_secs(value), now)
    } else {
        Duration::from_secs(value)
    })
}

/// The wait until an HTTP date; zero when it has passed.
pub(crate) fn until_http_date(date: &str, now: SystemTime) -> Option<Duration> {
    let at = jiff::fmt::rfc2822::DateTimeParser::new()
        .parse_timestamp(date.trim())
        .ok()?;
    let since_epoch = Duration::from_millis(u64::try_from(at.as_millisecond()).ok()?);
    Some(until(since_epoch, now))
}

fn until(since_epoch: Duration, now: SystemTime) -> Duration {
    let now = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    since_epoch.saturating_sub(now)
}

fn whole(found: &Captures<'_>) -> Option<u64> {
    found.name("n")?.as_str().parse().ok()
}

fn millis(found: &Captures<'_>) -> Option<Duration> {
    let value: f64 = found.name("n")?.as_str().parse().ok()?;
    Duration::try_from_secs_f64(value / 1000.0).ok()
}

fn seconds(found: &Captures<'_>) -> Option<Duration> {
    let value: f64 = found.name("n")?.as_str().parse().ok()?;
    Duration::try_from_secs_f64(value).ok()
}

//! What a request has to be before any work is done for it.

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;

use foldline_session_model::json;
use hyper::header::{CONTENT_TYPE, HOST};
use hyper::http::uri::Authority;
use hyper::{HeaderMap, Uri};
use serde_json::value::RawValue;

/// By which names this server may be called.
///
/// A web page cannot make a browser name another host than its own, even if it lets that name lead to this machine
/// (DNS rebinding). So a request that names `localhost` or an address is no page's, and any other name must be allowed.
#[derive(Clone, Debug)]
pub(super) struct HostRule {
    allowed: Arc<[String]>,
}

impl HostRule {
    pub(super) fn new(allowed: &[String]) -> Self {
        Self {
            allowed: allowed.into(),
        }
    }

    pub(super) fn accepts(&self, uri: &Uri, headers: &HeaderMap) -> bool {
        let mut hosts = headers.get_all(HOST).iter();
        let named = match (hosts.next(), hosts.next()) {
            (Some(host), None) => host.to_str().ok().and_then(|host| host.parse::<Authority>().ok()),
            _ => None,
        };
        // An address in absolute form names a host too, and both have to be right.
        named.is_some_and(|host| self.is_allowed(host.host()))
            && uri.host().is_none_or(|host| self.is_allowed(host))
    }

    fn is_allowed(&self, host: &str) -> bool {
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        bare.parse::<IpAddr>().is_ok()
            || host.eq_ignore_ascii_case("localhost")
            || self
                .allowed
                .iter()
                .any(|allowed| allowed.eq_ignore_ascii_case(host))
    }
}

/// Whether the body says that it is JSON. A page of another site can send other types without asking first.
pub(super) fn is_json(headers: &HeaderMap) -> bool {
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    value.is_some_and(|value| {
        let kind = value.split(';').next().unwrap_or_default().trim();
        kind.eq_ignore_ascii_case("application/json")
    })
}

/// What is asked for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SummaryRequest {
    pub(super) system_prompt: String,
    pub(super) prompt: String,
}

/// Reads a body; the text of the error says what is wrong with it. Clients are JavaScript: a lone surrogate is no error.
pub(super) fn parse(body: &[u8]) -> Result<SummaryRequest, &'static str> {
    let raw: &RawValue = serde_json::from_slice(body).map_err(|_| "the body is no JSON")?;
    let members = json::object(raw).ok_or("the body is no JSON object")?;
    let text = |name: &str| {
        let (_, value) = members.iter().rev().find(|(key, _)| key == name)?;
        Some(json::text(value).map(Cow::into_owned))
    };
    let prompt = text("prompt").flatten().ok_or("prompt is missing or no text")?;
    let system_prompt = match text("systemPrompt") {
        None => String::new(),
        Some(text) => text.ok_or("systemPrompt is no text")?,
    };
    Ok(SummaryRequest {
        system_prompt,
        prompt,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_no_page_can_have_are_accepted() {
        let rule = HostRule::new(&["build.lan".to_owned()]);
        for (host, accepted) in [
            ("localhost", true),
            ("LOCALHOST:7171", true),
            ("127.0.0.1:80", true),
            ("[::1]:7171", true),
            ("192.168.0.7", true),
            ("build.lan:1", true),
            ("evil.example", false),
            ("localhost.evil.example", false),
            ("127.0.0.1.evil.example", false),
            ("user@evil.example", false),
            ("", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, host.parse().unwrap());
            assert_eq!(rule.accepts(&Uri::from_static("/"), &headers), accepted, "{host}");
        }
        assert!(!rule.accepts(&Uri::from_static("/"), &HeaderMap::new()));
        let mut headers = HeaderMap::new();
        headers.insert(HOST, "localhost".parse().unwrap());
        assert!(!rule.accepts(&Uri::from_static("http://evil.example/"), &headers));
        headers.append(HOST, "evil.example".parse().unwrap());
        assert!(!rule.accepts(&Uri::from_static("/"), &headers));
    }

    #[test]
    fn bodies_are_read_as_javascript_writes_them() {
        let parsed = parse(br#"{"systemPrompt":"s","prompt":"a \ud800 b","more":1}"#).unwrap();
        assert_eq!(parsed.system_prompt, "s");
        assert_eq!(parsed.prompt, "a \u{fffd} b");
        assert_eq!(parse(br#"{"prompt":"p"}"#).unwrap().system_prompt, "");
        for broken in [
            &b"{"[..],
            b"[]",
            b"{}",
            br#"{"prompt":1}"#,
            br#"{"prompt":"p","systemPrompt":[]}"#,
            b"\xff",
        ] {
            assert!(parse(broken).is_err(), "{broken:?}");
        }
    }
}

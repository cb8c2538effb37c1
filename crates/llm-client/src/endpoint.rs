//! Where a provider is and how it is paid: addresses, keys, extra headers. All of it is private.

use std::fmt;

use foldline_session_model::model_call::Api;
use reqwest::Url;
use secrecy::{ExposeSecret, SecretString};

use crate::LlmError;

/// An address with the credentials for it.
///
/// `Debug` shows the address without its query and says of the rest only that it is there.
#[derive(Clone)]
pub struct Endpoint {
    base: Url,
    auth: Auth,
    headers: Vec<(String, SecretString)>,
}

/// How a request proves who sends it.
#[derive(Clone, Default)]
pub enum Auth {
    /// It does not: servers on this machine.
    #[default]
    None,
    /// `Authorization: Bearer …`.
    Bearer(SecretString),
    /// A header of its own, such as `x-api-key` or `api-key`.
    Header {
        /// The header's name.
        name: String,
        /// The key.
        value: SecretString,
    },
}

/// Whether a key and a transcript may travel unencrypted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PlainHttp {
    /// Only to this machine.
    #[default]
    LoopbackOnly,
    /// To any host, because the user said so.
    Allowed,
}

impl Auth {
    /// What an API expects of this key.
    pub fn for_api(api: Api, key: SecretString) -> Self {
        match api {
            Api::AnthropicMessages => Self::Header {
                name: "x-api-key".to_owned(),
                value: key,
            },
            Api::OpenAiCompletions | Api::OpenAiResponses => Self::Bearer(key),
        }
    }

    fn secret(&self) -> Option<&SecretString> {
        match self {
            Self::None => None,
            Self::Bearer(key) | Self::Header { value: key, .. } => Some(key),
        }
    }
}

impl fmt::Debug for Auth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("None"),
            Self::Bearer(_) => f.write_str("Bearer([redacted])"),
            Self::Header { name, .. } => write!(f, "Header({name}: [redacted])"),
        }
    }
}

/// A key from an environment variable; `None` when it is unset or blank.
///
/// The only place of this crate that reads the environment. The caller decides which names may be read:
/// project files must not choose them.
pub fn key_from_env(name: &str) -> Option<SecretString> {
    #[expect(
        clippy::disallowed_methods,
        reason = "keys may come from the environment, and only here"
    )]
    let value = std::env::var(name).ok()?;
    let value = value.trim();
    (!value.is_empty()).then(|| SecretString::from(value))
}

impl Endpoint {
    /// An endpoint under this address.
    ///
    /// # Errors
    /// When the address is no http or https address, when it carries a user name or a password (they would
    /// end up in logs of proxies), or when it is plain http to another machine and `plain` forbids that.
    pub fn new(base_url: &str, auth: Auth, plain: PlainHttp) -> Result<Self, LlmError> {
        let base = Url::parse(base_url.trim())
            .map_err(|error| LlmError::configuration(format!("the base URL is not valid: {error}")))?;
        if !matches!(base.scheme(), "http" | "https") || base.host_str().is_none() {
            return Err(LlmError::configuration(
                "the base URL must begin with http:// or https://",
            ));
        }
        if !base.username().is_empty() || base.password().is_some() {
            return Err(LlmError::configuration(
                "the base URL must hold no user name and no password: set a key instead",
            ));
        }
        if base.scheme() == "http" && plain == PlainHttp::LoopbackOnly && !is_loopback(&base) {
            return Err(LlmError::configuration(
                "plain http is allowed to this machine only: use https, or allow plain http for this endpoint",
            ));
        }
        Ok(Self {
            base,
            auth,
            headers: Vec::new(),
        })
    }

    /// The endpoint with one more header on every request.
    #[must_use]
    pub fn with_header(mut self, name: impl Into<String>, value: SecretString) -> Self {
        self.headers.push((name.into(), value));
        self
    }

    /// Whether the address is on this machine; proxies are then left alone.
    pub fn is_loopback(&self) -> bool {
        is_loopback(&self.base)
    }

    /// The address of a path below the base. A base without a path gets `/v1`, so that `http://host:port`
    /// works; a base with one is taken as it is, except that Anthropic's always ends in `/v1`.
    pub(crate) fn url(&self, api: Api, path: &str) -> Url {
        let mut url = self.base.clone();
        let mut full = url.path().trim_end_matches('/').to_owned();
        let versioned = match api {
            Api::AnthropicMessages => full.ends_with("/v1"),
            Api::OpenAiCompletions | Api::OpenAiResponses => !full.is_empty(),
        };
        if !versioned {
            full.push_str("/v1");
        }
        full.push_str(path);
        url.set_path(&full);
        url
    }

    /// The base address itself, for endpoints that are one address.
    pub(crate) fn exact_url(&self) -> Url {
        self.base.clone()
    }

    /// All headers that hold something private.
    pub(crate) fn secret_headers(&self) -> Vec<(String, SecretString)> {
        let mut headers = self.headers.clone();
        match &self.auth {
            Auth::None => {}
            Auth::Bearer(key) => {
                let value = SecretString::from(format!("Bearer {}", key.expose_secret()));
                headers.push(("authorization".to_owned(), value));
            }
            Auth::Header { name, value } => headers.push((name.clone(), value.clone())),
        }
        headers
    }

    /// What removes this endpoint's secrets from texts.
    pub fn scrubber(&self) -> Scrubber {
        let headers = self.headers.iter().map(|(_, value)| value);
        let query = self.base.query().map(SecretString::from);
        let pairs = self
            .base
            .query_pairs()
            .map(|(_, value)| SecretString::from(value.into_owned()));
        let secrets = self
            .auth
            .secret()
            .into_iter()
            .chain(headers)
            .cloned()
            .chain(query)
            .chain(pairs);
        // Shorter ones are no keys, and replacing them would only garble messages.
        Scrubber(
            secrets
                .filter(|secret| secret.expose_secret().trim().len() >= MIN_SECRET)
                .collect(),
        )
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = self.base.clone();
        shown.set_query(None);
        shown.set_fragment(None);
        let headers: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("Endpoint")
            .field("base", &shown.as_str())
            .field("auth", &self.auth)
            .field("headers", &headers)
            .finish()
    }
}

/// The length from which a value counts as a secret.
const MIN_SECRET: usize = 6;

/// Removes known secrets from texts of providers before anyone sees them: some echo the key that they
/// refuse, whole or shortened in the middle.
#[derive(Clone)]
pub struct Scrubber(Vec<SecretString>);

impl Scrubber {
    /// The text without the secrets.
    pub fn scrub(&self, text: &str) -> String {
        let mut clean = text.to_owned();
        for secret in &self.0 {
            let secret = secret.expose_secret().trim();
            clean = clean.replace(secret, "[redacted]");
            // `sk-abc…wxyz`: both ends of a long key around stars or dots.
            if let Some(shortened) = shortened(secret) {
                clean = shortened.replace_all(&clean, "[redacted]").into_owned();
            }
        }
        clean
    }
}

impl fmt::Debug for Scrubber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Scrubber({} secrets)", self.0.len())
    }
}

fn shortened(secret: &str) -> Option<regex::Regex> {
    if secret.len() < 12 || !secret.is_ascii() {
        return None;
    }
    let (head, tail) = (secret.get(..4)?, secret.get(secret.len() - 4..)?);
    let pattern = format!(
        r"{}[A-Za-z0-9_\-]*(?:\*+|\.{{2,}}|…)[A-Za-z0-9_\-]*(?:{})?",
        regex::escape(head),
        regex::escape(tail)
    );
    regex::Regex::new(&pattern).ok()
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        Some(url::Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_http_stays_on_this_machine() {
        for (base, plain, accepted) in [
            ("https://api.example.com", PlainHttp::LoopbackOnly, true),
            ("http://127.0.0.1:8080", PlainHttp::LoopbackOnly, true),
            ("http://[::1]:8080/v1", PlainHttp::LoopbackOnly, true),
            ("http://localhost:11434", PlainHttp::LoopbackOnly, true),
            ("http://localhost.example.com", PlainHttp::LoopbackOnly, false),
            ("http://192.168.1.4:8080", PlainHttp::LoopbackOnly, false),
            ("http://192.168.1.4:8080", PlainHttp::Allowed, true),
            ("ftp://127.0.0.1", PlainHttp::Allowed, false),
            ("https://user:pw@example.com", PlainHttp::Allowed, false),
            ("not a url", PlainHttp::Allowed, false),
        ] {
            assert_eq!(
                Endpoint::new(base, Auth::None, plain).is_ok(),
                accepted,
                "{base} {plain:?}"
            );
        }
    }

    #[test]
    fn addresses_below_a_base() {
        for (base, api, path, expected) in [
            (
                "https://api.anthropic.com",
                Api::AnthropicMessages,
                "/messages",
                "https://api.anthropic.com/v1/messages",
            ),
            (
                "https://h/anthropic/",
                Api::AnthropicMessages,
                "/messages",
                "https://h/anthropic/v1/messages",
            ),
            (
                "https://h/v1/",
                Api::AnthropicMessages,
                "/messages",
                "https://h/v1/messages",
            ),
            (
                "http://127.0.0.1:1",
                Api::OpenAiCompletions,
                "/chat/completions",
                "http://127.0.0.1:1/v1/chat/completions",
            ),
            (
                "https://openrouter.ai/api/v1",
                Api::OpenAiCompletions,
                "/x",
                "https://openrouter.ai/api/v1/x",
            ),
            (
                "https://api.z.ai/api/paas/v4/",
                Api::OpenAiCompletions,
                "/x",
                "https://api.z.ai/api/paas/v4/x",
            ),
            (
                "https://a.azure.com/openai/v1?api-version=2",
                Api::OpenAiResponses,
                "/responses",
                "https://a.azure.com/openai/v1/responses?api-version=2",
            ),
        ] {
            let endpoint = Endpoint::new(base, Auth::None, PlainHttp::LoopbackOnly).unwrap();
            assert_eq!(endpoint.url(api, path).as_str(), expected);
        }
    }

    #[test]
    fn keys_are_scrubbed_whole_and_shortened() {
        let key = SecretString::from("sk-proj-0123456789abcdef");
        let endpoint = Endpoint::new(
            "https://h?api-key=querysecret",
            Auth::Bearer(key),
            PlainHttp::LoopbackOnly,
        )
        .unwrap();
        let scrubber = endpoint.scrubber();
        for (text, expected) in [
            ("key sk-proj-0123456789abcdef refused", "key [redacted] refused"),
            ("key sk-proj-****cdef refused", "key [redacted] refused"),
            ("key sk-p...cdef refused", "key [redacted] refused"),
            ("see https://h?api-key=querysecret", "see https://h?[redacted]"),
            ("nothing private", "nothing private"),
        ] {
            assert_eq!(scrubber.scrub(text), expected);
        }
        let shown = format!("{endpoint:?} {scrubber:?}");
        assert!(
            !shown.contains("0123456789") && !shown.contains("querysecret"),
            "{shown}"
        );
    }
}

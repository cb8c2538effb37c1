//! Keys of thirty shapes through failing calls with everything logged: none may show.

use std::fmt::Write as _;
use std::io::Write;
use std::sync::{Arc, Mutex};

use foldline_llm_client::endpoint::{Auth, Endpoint, PlainHttp};
use foldline_llm_client::{LanguageModel, ProviderModel, RemoteSummary};
use foldline_session_model::model_call::Api;
use secrecy::SecretString;
use tokio_util::sync::CancellationToken;
use tracing_subscriber::fmt::MakeWriter;
use wiremock::matchers::method;
use wiremock::{Mock, MockServer, ResponseTemplate};

use crate::{STREAMS, profile, request};

/// Keys as providers shape them, put together here so that no scanner takes the file for a leak.
fn shapes() -> Vec<String> {
    let hex = "0123456789abcdef0123456789abcdef";
    let word = "Ab3dEf6hIj9lMn2pQr5tUv8xYz1BcD4fGh7jKl0nOp";
    let digits = "123456789012";
    let mut shapes: Vec<String> = [
        "sk-",
        "sk-proj-",
        "sk-ant-api03-",
        "sk-or-v1-",
        "gsk_",
        "xai-",
        "AIza",
        "hf_",
        "r8_",
        "pplx-",
        "ghp_",
        "gho_",
        "github_pat_",
        "glpat-",
        "xoxb-",
        "xoxp-",
        "AKIA",
        "ASIA",
        "npm_",
        "pypi-",
        "dckr_pat_",
        "SG.",
        "sq0atp-",
        "rk_live_",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIi.",
        "ya29.",
    ]
    .iter()
    .map(|prefix| format!("{prefix}{word}"))
    .collect();
    shapes.extend([
        hex.to_owned(),
        format!("{hex}{hex}"),
        format!("{digits}:{word}"),
        format!("{word}+/{word}=="),
        format!("plain password {digits}"),
    ]);
    shapes
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().map_err(|_| std::io::ErrorKind::Other)?.write(bytes)
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;
    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

#[tokio::test]
async fn no_secret_shows_in_logs_errors_or_debug_output() {
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(log.clone())
        .with_ansi(false)
        .finish();
    // For all threads and tasks: connections log from tasks of their own.
    tracing::subscriber::set_global_default(subscriber).unwrap();
    let shapes = shapes();
    assert!(shapes.len() >= 30);
    let mut shown = String::new();
    for (position, secret) in shapes.iter().enumerate() {
        let (api, body) = STREAMS[position % STREAMS.len()];
        let server = MockServer::start().await;
        // A provider that echoes the key it refuses, and one that echoes it inside a stream.
        let echo = format!(
            r#"{{"error":{{"code":"bad {secret}","message":"Incorrect API key provided: {secret}."}}}}"#
        );
        let refusal = ResponseTemplate::new(401).set_body_string(&echo);
        Mock::given(method("POST"))
            .respond_with(refusal)
            .up_to_n_times(1)
            .mount(&server)
            .await;
        let inside = match api {
            Api::AnthropicMessages => format!(
                "event: error\ndata: {{\"type\":\"error\",\"error\":{{\"type\":\"api_error\",\"message\":\"{secret}\"}}}}\n\n"
            ),
            _ => format!("data: {{\"type\":\"error\",\"error\":{{\"message\":\"{secret}\"}}}}\n\n"),
        };
        let inside = ResponseTemplate::new(200).set_body_raw(inside, "text/event-stream");
        Mock::given(method("POST"))
            .respond_with(inside)
            .up_to_n_times(1)
            .mount(&server)
            .await;
        let good = ResponseTemplate::new(200).set_body_raw(body, "text/event-stream");
        Mock::given(method("POST"))
            .respond_with(good)
            .mount(&server)
            .await;

        let endpoint = Endpoint::new(
            &format!(
                "{}?token={}",
                server.uri(),
                secret.replace('+', "%2B").replace(' ', "%20")
            ),
            Auth::for_api(api, SecretString::from(secret.as_str())),
            PlainHttp::LoopbackOnly,
        )
        .unwrap()
        .with_header("x-second", SecretString::from(secret.as_str()));
        writeln!(shown, "{endpoint:?} {:?}", endpoint.scrubber()).unwrap();
        let model = ProviderModel::new(profile(api), endpoint.clone()).unwrap();
        for _ in 0..2 {
            let error = model
                .complete(&request(), CancellationToken::new())
                .await
                .unwrap_err();
            writeln!(shown, "{error} {error:?}").unwrap();
        }
        let reply = model
            .complete(&request(), CancellationToken::new())
            .await
            .unwrap();
        writeln!(shown, "{reply:?}").unwrap();
        let remote = RemoteSummary::new(endpoint).unwrap();
        let error = remote
            .summarize("s", "p", &CancellationToken::new())
            .await
            .unwrap_err();
        writeln!(shown, "{error} {error:?}").unwrap();
        // A key that no header can carry is refused without being shown.
        let broken = format!("{secret}\n{secret}");
        let endpoint = Endpoint::new(
            &server.uri(),
            Auth::Bearer(SecretString::from(broken)),
            PlainHttp::LoopbackOnly,
        )
        .unwrap();
        let error = ProviderModel::new(profile(api), endpoint)
            .unwrap()
            .complete(&request(), CancellationToken::new())
            .await
            .unwrap_err();
        writeln!(shown, "{error} {error:?}").unwrap();
    }
    let log = String::from_utf8_lossy(&log.0.lock().unwrap()).into_owned();
    assert!(log.lines().count() > 100, "the log is on");
    // The mock server is in the same process and may log what it received: only our side counts.
    let ours: String = log
        .lines()
        .filter(|line| !line.contains("wiremock"))
        .fold(String::new(), |all, line| all + line + "\n");
    for secret in &shapes {
        assert!(
            !shown.contains(secret.as_str()),
            "{secret} shows in an error or in Debug output"
        );
        if let Some(line) = ours.lines().find(|line| line.contains(secret.as_str())) {
            panic!("{secret} shows in the log: {line}");
        }
    }
}

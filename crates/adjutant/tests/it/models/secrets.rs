//! No key appears in any output, although every provider repeats its key in errors (AGENT-5, SUP-9, OPS-1).

use std::path::Path;

use futures::future::join_all;
use reqwest::Method;
use serde_json::json;
use testkit::llm::{Llm, LlmFailure, Reply, RetryAfter};

use super::{Fixture, HEADER_KEY, KEY, PLAIN_KEY, Provider, Turn, add_task, home_with_keys};

const SECRETS: [&str; 3] = [KEY, PLAIN_KEY, HEADER_KEY];

#[track_caller]
fn assert_no_secret(source: &str, text: &[u8]) {
    for secret in SECRETS {
        let found = text.windows(secret.len()).position(|part| part == secret.as_bytes());
        if let Some(at) = found {
            let around = &text[at.saturating_sub(200)..text.len().min(at + 200)];
            panic!("{source} contains {secret}: …{}…", String::from_utf8_lossy(around));
        }
    }
}

#[tokio::test]
async fn keys_appear_in_no_output_log_or_file() {
    // Keys with and without a known pattern, and in a header, on every protocol.
    join_all(
        [Provider::OpenAi, Provider::GeminiAsOpenAi, Provider::Azure, Provider::Gemini, Provider::Anthropic]
            .map(check_provider),
    )
    .await;
}

async fn check_provider(provider: Provider) {
    let llm = Llm::start().await;
    let more = "[server]\nrequest_timeout_seconds = 5\n[log]\nlevel = \"trace\"\n";
    let home = home_with_keys().with_config(&format!("[model]\n{}{more}", provider.config_lines(&llm.url())));
    let server = home.serve();
    let mut fixture = Fixture { llm, server, home };
    let statuses = [400, 401, 403, 404, 413, 429, 500, 503];
    let mut failures: Vec<_> = statuses.map(LlmFailure::Status).into();
    failures.extend([
        LlmFailure::RateLimited(RetryAfter::Seconds(0)),
        LlmFailure::ErrorEvent,
        LlmFailure::CloseBeforeHeaders,
    ]);
    failures.extend([LlmFailure::CutMidway, LlmFailure::BrokenJson, LlmFailure::Html]);
    let secret = provider.secret();
    for failure in failures {
        // A single failure keeps the circuit breaker closed.
        fixture.llm.script([Reply::failure(failure.clone())]);
        check_response(&fixture, "/chat/stream", &json!({"input": "add buy milk", "conversation_id": "conv_1"})).await;
        assert!(fixture.send("hello").await.errors().is_empty(), "{provider:?} {failure:?}");
    }
    // The error of a rejected tool.
    fixture.llm.reject_tool("schedule_reminder");
    check_response(&fixture, "/agent/run", &json!({"message": "add buy eggs"})).await;
    // The last error of the circuit breaker.
    for (path, code) in [("/chat", 503), ("/chat/stream", 429), ("/chat", 401)] {
        fixture.llm.always(Reply::failure(LlmFailure::Status(code)));
        check_response(&fixture, path, &json!({"input": "add buy bread"})).await;
    }
    check_response(&fixture, "/agent/run", &json!({"message": "add buy bread"})).await;
    assert_eq!(fixture.health().await["circuit_breaker"]["state"], "open");
    for path in ["/health", "/metrics", "/api/conversations", "/api/conversations/conv_1", "/api/tasks", "/api/data"] {
        let answer = fixture.server.get(path).await;
        assert_eq!(answer.status(), 200, "{path}");
        assert_no_secret(path, &answer.bytes().await.unwrap());
    }
    for arguments in [vec!["config", "show"], vec!["config", "show", "--json"], vec!["config", "check"], vec!["doctor"]]
    {
        let ran = fixture.home.run(&arguments);
        assert_no_secret(&arguments.join(" "), format!("{}{}", ran.out(), ran.err()).as_bytes());
    }
    assert!(fixture.llm.requests().iter().all(|request| request.api_key() == Some(secret)), "{provider:?}");
    check_files(fixture.home.path());
    fixture.server.stop();
    let log = fixture.server.raw_log();
    assert!(log.contains("model_call_failed") && log.contains("[redacted]"), "{provider:?} {log}");
    assert_no_secret("the log", log.as_bytes());
    check_files(fixture.home.path());
}

/// Sends a message and checks the whole response.
async fn check_response(fixture: &Fixture, path: &str, body: &serde_json::Value) {
    let answer = fixture.server.request(Method::POST, path).json(body).send().await.unwrap();
    assert_eq!(answer.status(), 200);
    assert_no_secret("a header", format!("{:?}", answer.headers()).as_bytes());
    let request_id = answer.headers()["x-request-id"].to_str().unwrap().to_owned();
    let text = answer.text().await.unwrap();
    assert_no_secret(path, text.as_bytes());
    if path == "/chat/stream" {
        Turn::read(&text, &request_id);
    }
}

/// Checks all files in a directory.
fn check_files(dir: &Path) {
    let mut seen = 0;
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            check_files(&path);
        } else if path.is_file() {
            seen += 1;
            assert_no_secret(&path.display().to_string(), &std::fs::read(&path).unwrap());
        }
    }
    assert!(seen > 0 || dir.components().count() > 3, "{}", dir.display());
}

#[tokio::test]
async fn keys_are_not_sent_to_the_fallback() {
    let first = Llm::start().await;
    let second = Llm::start().await;
    let config = format!("[model]\n{}fallback = [\"anthropic\"]\n", Provider::Azure.config_lines(&first.url()));
    let home = home_with_keys().with_config(&config);
    let home = home.with_env("ANTHROPIC_API_KEY", "another-key-04").with_env("ANTHROPIC_BASE_URL", &second.url());
    let fixture = Fixture { server: home.serve(), llm: first, home };
    fixture.llm.script([add_task("buy milk"), Reply::failure(LlmFailure::Status(401))]);
    fixture.send("add buy milk").await;
    let request = &second.requests()[0];
    assert_eq!(request.api_key(), Some("another-key-04"));
    assert_no_secret("the second request", format!("{:?}{}", request.headers, request.body()).as_bytes());
}

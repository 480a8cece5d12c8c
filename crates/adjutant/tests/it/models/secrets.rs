//! No key appears anywhere, though every provider repeats the one it was sent (AGENT-5, SUP-9, OPS-1).

use std::path::Path;

use futures::future::join_all;
use reqwest::Method;
use serde_json::json;
use testkit::llm::{Fault, Llm, Reply, RetryAfter};

use super::{HEADER_KEY, KEY, Kind, PLAIN_KEY, Stage, Turn, adding, home_with_keys};

const SECRETS: [&str; 3] = [KEY, PLAIN_KEY, HEADER_KEY];

#[track_caller]
fn clean(what: &str, text: &[u8]) {
    for secret in SECRETS {
        let found = text.windows(secret.len()).position(|part| part == secret.as_bytes());
        if let Some(at) = found {
            let around = &text[at.saturating_sub(200)..text.len().min(at + 200)];
            panic!("{what} holds {secret}: …{}…", String::from_utf8_lossy(around));
        }
    }
}

#[tokio::test]
async fn no_key_is_anywhere() {
    // Of a known shape, of none, and in a header, on every wire.
    join_all([Kind::OpenAi, Kind::GeminiAsOpenAi, Kind::Azure, Kind::Gemini, Kind::Anthropic].map(search)).await;
}

async fn search(kind: Kind) {
    let llm = Llm::start().await;
    let more = "[server]\nrequest_timeout_seconds = 5\n[log]\nlevel = \"trace\"\n";
    let home = home_with_keys().configured(&format!("[model]\n{}{more}", kind.configured(&llm.url())));
    let server = home.serve();
    let mut stage = Stage { llm, server, home };
    let statuses = [400, 401, 403, 404, 413, 429, 500, 503];
    let mut faults: Vec<_> = statuses.map(Fault::Status).into();
    faults.extend([Fault::RateLimited(RetryAfter::Seconds(0)), Fault::ErrorEvent, Fault::CloseBeforeHeaders]);
    faults.extend([Fault::CutMidway, Fault::BrokenJson, Fault::Html]);
    let secret = kind.secret();
    for fault in faults {
        // Once: whether it is asked again or not, the breaker stays closed.
        stage.llm.script([Reply::fault(fault.clone())]);
        told(&stage, "/chat/stream", &json!({"input": "add buy milk", "conversation_id": "conv_1"})).await;
        assert!(stage.say("hello").await.errors().is_empty(), "{kind:?} {fault:?}");
    }
    // The reason that a tool is set aside, too.
    stage.llm.reject_tool("schedule_reminder");
    told(&stage, "/agent/run", &json!({"message": "add buy eggs"})).await;
    // And what the breaker remembers.
    for (door, code) in [("/chat", 503), ("/chat/stream", 429), ("/chat", 401)] {
        stage.llm.always(Reply::fault(Fault::Status(code)));
        told(&stage, door, &json!({"input": "add buy bread"})).await;
    }
    told(&stage, "/agent/run", &json!({"message": "add buy bread"})).await;
    assert_eq!(stage.health().await["circuit_breaker"]["state"], "open");
    for path in ["/health", "/metrics", "/api/conversations", "/api/conversations/conv_1", "/api/tasks", "/api/data"] {
        let answer = stage.server.get(path).await;
        assert_eq!(answer.status(), 200, "{path}");
        clean(path, &answer.bytes().await.unwrap());
    }
    for arguments in [vec!["config", "show"], vec!["config", "show", "--json"], vec!["config", "check"], vec!["doctor"]]
    {
        let ran = stage.home.run(&arguments);
        clean(&arguments.join(" "), format!("{}{}", ran.out(), ran.err()).as_bytes());
    }
    assert!(stage.llm.requests().iter().all(|request| request.key() == Some(secret)), "{kind:?}");
    files(stage.home.path());
    stage.server.stop();
    let log = stage.server.raw_log();
    assert!(log.contains("model_call_failed") && log.contains("[redacted]"), "{kind:?} {log}");
    clean("the log", log.as_bytes());
    files(stage.home.path());
}

/// Says something and looks at all that comes back.
async fn told(stage: &Stage, path: &str, body: &serde_json::Value) {
    let answer = stage.server.request(Method::POST, path).json(body).send().await.unwrap();
    assert_eq!(answer.status(), 200);
    clean("a header", format!("{:?}", answer.headers()).as_bytes());
    let request_id = answer.headers()["x-request-id"].to_str().unwrap().to_owned();
    let text = answer.text().await.unwrap();
    clean(path, text.as_bytes());
    if path == "/chat/stream" {
        Turn::read(&text, &request_id);
    }
}

/// Every byte that is kept.
fn files(dir: &Path) {
    let mut seen = 0;
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path);
        } else {
            seen += 1;
            clean(&path.display().to_string(), &std::fs::read(&path).unwrap());
        }
    }
    assert!(seen > 0 || dir.components().count() > 3, "{}", dir.display());
}

#[tokio::test]
async fn a_key_is_not_sent_to_the_model_that_takes_its_place() {
    let first = Llm::start().await;
    let second = Llm::start().await;
    let config = format!("[model]\n{}fallback = [\"anthropic\"]\n", Kind::Azure.configured(&first.url()));
    let home = home_with_keys().configured(&config);
    let home = home.with("ANTHROPIC_API_KEY", "another-key-04").with("ANTHROPIC_BASE_URL", &second.url());
    let stage = Stage { server: home.serve(), llm: first, home };
    stage.llm.script([adding("buy milk"), Reply::fault(Fault::Status(401))]);
    stage.say("add buy milk").await;
    let asked = &second.requests()[0];
    assert_eq!(asked.key(), Some("another-key-04"));
    clean("the second request", format!("{:?}{}", asked.headers, asked.body()).as_bytes());
}

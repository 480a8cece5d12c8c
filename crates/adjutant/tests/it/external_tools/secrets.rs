//! Secrets of an external server reach only that server (OPS-5).

use serde_json::json;
use testkit::app::{Home, Server};
use testkit::llm::{Llm, Reply};

use super::{ExternalServer, Library, health, send, wait_until};
use crate::home;

/// A secret without a recognizable pattern.
const SECRET: &str = "gravel-lantern-orbit-77";
const TEAM: &str = "blue-heron-pond-31";

async fn start(external: &ExternalServer, extra: &str) -> (Llm, Home, Server) {
    let llm = Llm::start().await;
    let model = format!("[model]\nprovider = \"openai\"\nbase_url = \"{}/v1\"\napi_key = \"env:KEY\"\n", llm.url());
    let home = home()
        .with_env("KEY", "sk-test")
        .with_env("ENTRUSTED", SECRET)
        .with_env("TEAM", TEAM)
        .with_env("ADJUTANT_LOG_LEVEL", "debug")
        .with_config(&format!("{model}{}", external.config_lines(&format!("never_ask = [\"*\"]\n{extra}"))));
    let server = home.serve();
    wait_until("the server", async || (health(&server, None).await["phase"] == "ready").then_some(())).await;
    (llm, home, server)
}

/// Makes the server return its secrets, and checks that no output contains them.
async fn assert_not_disclosed(external: &ExternalServer, (llm, home, server): &(Llm, Home, Server)) {
    llm.script([Reply::call("repeat_secrets", json!({})), Reply::text("There is nothing to see.")]);
    let turn = send(server, "tell me the secrets").await;
    assert_eq!(turn.calls(), [("repeat_secrets", "completed")]);
    assert_eq!(external.calls_of("repeat_secrets").len(), 1);
    let outputs = [
        server.raw_log(),
        server.get("/health").await.text().await.unwrap(),
        server.get("/metrics").await.text().await.unwrap(),
        server.get("/api/conversations/conv_peers?limit=200").await.text().await.unwrap(),
        format!("{:?}", turn.events),
        llm.requests().iter().map(|request| request.body().to_string()).collect(),
        home.run(&["config", "show"]).out(),
        home.run(&["doctor"]).out(),
    ];
    for (index, text) in outputs.iter().enumerate() {
        assert!(!text.contains(SECRET) && !text.contains(TEAM), "{index}: {text}");
    }
}

#[tokio::test]
async fn secret_variables_are_redacted() {
    let external = ExternalServer::on_stdio(Library::FastMcp);
    let fixture = start(&external, "env = { TODO_TOKEN = \"env:ENTRUSTED\" }\n").await;
    assert_eq!(external.records()[0]["token"], SECRET);
    assert_not_disclosed(&external, &fixture).await;
    assert!(fixture.2.raw_log().contains("todos are served"), "its stderr is in the log: {}", fixture.2.raw_log());
}

#[tokio::test]
async fn secret_headers_and_tokens_are_redacted() {
    let external = ExternalServer::over_http(Library::FastMcp);
    let fixture = start(&external, "token = \"env:ENTRUSTED\"\nheaders = { X-Team = \"env:TEAM\" }\n").await;
    assert_not_disclosed(&external, &fixture).await;
    let call = external.records().into_iter().find(|record| record["tool"] == "repeat_secrets").unwrap();
    assert_eq!(call["headers"], json!({"authorization": format!("Bearer {SECRET}"), "x-team": TEAM}));
}

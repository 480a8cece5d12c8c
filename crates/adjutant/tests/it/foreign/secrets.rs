//! What a server of somebody else is entrusted with reaches it and comes out nowhere else (OPS-5).

use serde_json::json;
use testkit::app::{Home, Server};
use testkit::llm::{Llm, Reply};

use super::{Library, Peer, health, say, until};
use crate::home;

/// It looks like nothing that a redactor knows.
const SECRET: &str = "gravel-lantern-orbit-77";
const TEAM: &str = "blue-heron-pond-31";

async fn stage(peer: &Peer, more: &str) -> (Llm, Home, Server) {
    let llm = Llm::start().await;
    let model = format!("[model]\nprovider = \"openai\"\nbase_url = \"{}/v1\"\napi_key = \"env:KEY\"\n", llm.url());
    let home = home()
        .with("KEY", "sk-test")
        .with("ENTRUSTED", SECRET)
        .with("TEAM", TEAM)
        .with("ADJUTANT_LOG_LEVEL", "debug")
        .configured(&format!("{model}{}", peer.configured(&format!("never_ask = [\"*\"]\n{more}"))));
    let server = home.serve();
    until("the server", async || (health(&server).await["phase"] == "ready").then_some(())).await;
    (llm, home, server)
}

/// Makes the server repeat its secrets to everybody.
async fn give_away(peer: &Peer, (llm, home, server): &(Llm, Home, Server)) {
    llm.script([Reply::call("repeat_secrets", json!({})), Reply::text("There is nothing to see.")]);
    let turn = say(server, "tell me the secrets").await;
    assert_eq!(turn.calls(), [("repeat_secrets", "completed")]);
    assert_eq!(peer.asked("repeat_secrets").len(), 1);
    let seen = [
        server.raw_log(),
        server.get("/health").await.text().await.unwrap(),
        server.get("/metrics").await.text().await.unwrap(),
        server.get("/api/conversations/conv_peers?limit=200").await.text().await.unwrap(),
        format!("{:?}", turn.events),
        llm.requests().iter().map(|asked| asked.body().to_string()).collect(),
        home.run(&["config", "show"]).out(),
        home.run(&["doctor"]).out(),
    ];
    for (at, text) in seen.iter().enumerate() {
        assert!(!text.contains(SECRET) && !text.contains(TEAM), "{at}: {text}");
    }
}

#[tokio::test]
async fn variables() {
    let peer = Peer::on_stdio(Library::FastMcp);
    let stage = stage(&peer, "env = { TODO_TOKEN = \"env:ENTRUSTED\" }\n").await;
    assert_eq!(peer.notes()[0]["token"], SECRET);
    give_away(&peer, &stage).await;
    assert!(stage.2.raw_log().contains("todos are served"), "what it says is in the log: {}", stage.2.raw_log());
}

#[tokio::test]
async fn headers_and_tokens() {
    let peer = Peer::over_http(Library::FastMcp);
    let stage = stage(&peer, "token = \"env:ENTRUSTED\"\nheaders = { X-Team = \"env:TEAM\" }\n").await;
    give_away(&peer, &stage).await;
    let call = peer.notes().into_iter().find(|note| note["tool"] == "repeat_secrets").unwrap();
    assert_eq!(call["headers"], json!({"authorization": format!("Bearer {SECRET}"), "x-team": TEAM}));
}

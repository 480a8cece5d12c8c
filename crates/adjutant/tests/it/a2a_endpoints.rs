//! The A2A endpoints of agents, as defined by the configuration file and the API.

use nix::sys::signal::Signal;
use reqwest::Method;
use serde_json::{Value, json};

use crate::{ALICE, home, home_with_auth, token};

const CARD: &str = "/agents/shout/.well-known/agent-card.json";

fn config(a2a: &str) -> String {
    format!("[[agents]]\nid = \"shout\"\nexecutable_path = \"tr\"\nargs = [\"a-z\", \"A-Z\"]\na2a = {a2a}\n")
}

fn envelope(input: &str) -> Value {
    json!({
        "protocol": "a2a", "version": "0.3.0", "id": "1", "type": "request", "timestamp": "2026-11-17T12:00:00Z",
        "payload": {"method": "execute-agent", "params": {"input": input}},
    })
}

#[tokio::test]
async fn the_configuration_file_defines_the_endpoint() {
    // A2A-1, A2A-2, A2A-5
    let auth = format!("auth = {{ type = \"api_key\", token = \"env:SHOUT_KEY\", user = \"{ALICE}\" }}");
    let first =
        config(&format!("{{ transports = [\"http_json\"], {auth}, rate = {{ per_minute = 60, burst = 10 }} }}"));
    let home = home().with_env("SHOUT_KEY", "let-me-in-123").with_config(&first);
    let server = home.serve();
    let card: Value = server.get(CARD).await.json().await.unwrap();
    assert_eq!(card["supportedInterfaces"][0]["protocolBinding"], "HTTP+JSON", "{card}");
    assert_eq!(card["supportedInterfaces"].as_array().unwrap().len(), 2);
    let send_envelope = |key: Option<&str>| {
        let mut request = server.request(Method::POST, "/agents/shout/v1/envelope").json(&envelope("hello"));
        if let Some(key) = key {
            request = request.header("X-API-Key", key);
        }
        async move { request.send().await.unwrap() }
    };
    assert_eq!(send_envelope(None).await.status(), 401);
    assert_eq!(send_envelope(Some("let-me-in-124")).await.status(), 401);
    let answer: Value = send_envelope(Some("let-me-in-123")).await.json().await.unwrap();
    assert_eq!(answer["payload"]["result"]["output"], "HELLO", "{answer}");
    let owner: Value = server.get("/api/executions").await.json().await.unwrap();
    assert_eq!(owner["count"], 1, "the local user is the administrator");
    let shown = home.run(&["config", "show"]).ok();
    assert!(shown.contains("api_key env:SHOUT_KEY") && !shown.contains("let-me-in"), "{shown}");
    assert!(!server.raw_log().contains("let-me-in"), "{}", server.raw_log());

    home.write_config(&config("{ transports = [\"json_rpc\"], version = \"2.0\" }"));
    server.signal(Signal::SIGHUP);
    server.wait_for_event("configuration_reloaded").await;
    let card: Value = server.get(CARD).await.json().await.unwrap();
    assert_eq!(
        (&card["version"], &card["supportedInterfaces"][0]["protocolBinding"]),
        (&json!("2.0"), &json!("JSONRPC"))
    );
    assert_eq!(send_envelope(None).await.json::<Value>().await.unwrap()["payload"]["error"]["code"], -32004);
}

#[tokio::test]
async fn the_api_defines_the_endpoint_and_names_invalid_fields() {
    // A2A-1, A2A-2, A2A-4, SUP-1
    let home = home_with_auth().with_env("SHOUT_KEY", "let-me-in-123");
    let admin = token(&home, ALICE, &["--scope", "adjutant:admin"]);
    let server = home.serve();
    let send = |method: Method, path: &str, body: &Value| {
        let request = server.request(method, path).bearer_auth(&admin).json(body);
        async move { request.send().await.unwrap() }
    };
    let agent = |a2a: Value| json!({"id": "shout", "executable_path": "tr", "args": ["a-z", "A-Z"], "a2a": a2a});
    let auth = |token: &str| json!({"auth": {"type": "bearer_token", "token": token, "user": ALICE}});
    for (a2a, field) in [
        (auth("let-me-in-123"), "a2a.auth.token"),
        (auth("env:NOT_SET"), "a2a.auth.token"),
        (json!({"transports": ["smoke"]}), "a2a.transports[0]"),
        (json!({"rate": {"per_minute": 0}}), "a2a.rate.per_minute"),
        (json!({"colour": "red"}), "a2a.colour"),
    ] {
        let answer = send(Method::POST, "/api/agents", &agent(a2a)).await;
        assert_eq!(answer.status(), 422, "{field}");
        let body: Value = answer.json().await.unwrap();
        assert_eq!(body["errors"][0]["field"], field, "{body}");
        assert!(!body.to_string().contains("let-me-in"), "{body}");
    }
    let created = send(Method::POST, "/api/agents", &agent(auth("env:SHOUT_KEY"))).await;
    assert_eq!(created.status(), 201);
    let shown: Value = server
        .request(Method::GET, "/api/agents/shout")
        .bearer_auth(&admin)
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    assert_eq!(shown["a2a"]["auth"]["token"], "env:SHOUT_KEY");
    assert_eq!(
        send(Method::PUT, "/api/agents/shout", &shown).await.status(),
        200,
        "the representation can be sent back"
    );
    let request = server.request(Method::POST, "/agents/shout/v1/envelope").json(&envelope("hello"));
    let answer: Value = request.bearer_auth("let-me-in-123").send().await.unwrap().json().await.unwrap();
    assert_eq!(answer["payload"]["result"]["output"], "HELLO", "{answer}");
    let off = agent(json!({"enabled": false}));
    assert_eq!(send(Method::PUT, "/api/agents/shout", &off).await.status(), 200);
    assert_eq!(server.get(CARD).await.status(), 404);
}

//! Permissions for agents and executions (OPS-6).

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use testkit::app::Server;

use crate::{ALICE, BOB, SECRET, home, token};

const AGENTS: &str = r#"
[auth]
jwt_secret = "env:TEST_SECRET"
[[agents]]
id = "open"
executable_path = "cat"
allow = ["*"]
overrides = ["working_directory", "envs"]
[[agents]]
id = "closed"
executable_path = "cat"
envs = { NOT_FOR_ALL = "x" }
"#;

async fn send(server: &Server, token: &str, method: Method, path: &str, body: Option<Value>) -> (StatusCode, Value) {
    let mut request = server.request(method, path).bearer_auth(token);
    if let Some(body) = body {
        request = request.json(&body);
    }
    let answer = request.send().await.unwrap();
    (answer.status(), answer.json().await.unwrap_or_default())
}

#[tokio::test]
async fn permissions_of_users_and_administrators_are_enforced() {
    // OPS-6
    let home = home().with_env("TEST_SECRET", SECRET).with_config(AGENTS);
    let server = home.serve();
    let admin = token(&home, BOB, &["--scope", "adjutant:admin"]);
    let alice = token(&home, ALICE, &[]);
    let other = token(&home, "0190a6d2-7c00-7000-8000-00000000000c", &[]);
    let agent = json!({"id": "made", "executable_path": "cat"});
    let run = json!({"input": "mine", "wait": true});

    // Only administrators configure agents.
    for (method, path, body) in [
        (Method::POST, "/api/agents", Some(agent.clone())),
        (Method::PUT, "/api/agents/made", Some(agent.clone())),
        (Method::DELETE, "/api/agents/made", None),
    ] {
        let (status, _) = send(&server, &alice, method.clone(), path, body).await;
        assert_eq!(status, StatusCode::FORBIDDEN, "{method} {path}");
    }
    assert_eq!(send(&server, &admin, Method::POST, "/api/agents", Some(agent)).await.0, StatusCode::CREATED);

    // Agents that a user may not run are not found.
    let (_, list) = send(&server, &alice, Method::GET, "/api/agents", None).await;
    assert_eq!((&list["count"], &list["agents"][1]["id"]), (&json!(2), &json!("open")), "{list}");
    assert_eq!(list["agents"][1].get("executable_path"), None, "the executable is hidden");
    for path in ["/api/agents/closed", "/api/agents/made/status"] {
        assert_eq!(send(&server, &alice, Method::GET, path, None).await.0, StatusCode::NOT_FOUND);
    }
    let path = "/api/agents/closed/executions";
    assert_eq!(send(&server, &alice, Method::POST, path, Some(run.clone())).await.0, StatusCode::NOT_FOUND);
    assert_eq!(send(&server, &admin, Method::POST, path, Some(run.clone())).await.0, StatusCode::OK);

    // Overrides require the scope and the permission of the agent.
    for extra in [json!({"input": "x", "working_directory": "/"}), json!({"input": "x", "envs": {"A": "b"}})] {
        let path = "/api/agents/open/executions";
        assert_eq!(send(&server, &alice, Method::POST, path, Some(extra.clone())).await.0, StatusCode::FORBIDDEN);
        assert_eq!(send(&server, &admin, Method::POST, path, Some(extra.clone())).await.0, StatusCode::ACCEPTED);
        let path = "/api/agents/closed/executions";
        assert_eq!(send(&server, &admin, Method::POST, path, Some(extra)).await.0, StatusCode::FORBIDDEN);
    }

    // Users see their own executions, administrators see all.
    let (status, mine) = send(&server, &alice, Method::POST, "/api/agents/open/executions", Some(run)).await;
    assert_eq!((status, &mine["output"]), (StatusCode::OK, &json!("mine")));
    let id = mine["id"].as_str().unwrap();
    for (method, path) in [
        (Method::GET, format!("/api/executions/{id}")),
        (Method::GET, format!("/api/executions/{id}/result")),
        (Method::GET, format!("/api/executions/{id}/events")),
        (Method::POST, format!("/api/executions/{id}/cancel")),
        (Method::POST, format!("/api/executions/{id}/retry")),
    ] {
        let (status, _) = send(&server, &other, method.clone(), &path, None).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{method} {path}");
        let (status, _) = send(&server, &admin, method.clone(), &path, None).await;
        assert_ne!(status, StatusCode::NOT_FOUND, "{method} {path}");
        let answer = server.request(method.clone(), &path).send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::UNAUTHORIZED, "{method} {path}");
    }
    assert_eq!(send(&server, &other, Method::GET, "/api/executions", None).await.1["count"], 0);
    assert_eq!(send(&server, &alice, Method::GET, "/api/executions", None).await.1["count"], 1);
    assert!(send(&server, &admin, Method::GET, "/api/executions", None).await.1["count"].as_u64() > Some(1));
}

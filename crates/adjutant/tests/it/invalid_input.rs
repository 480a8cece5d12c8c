//! Every endpoint answers invalid input with a 4xx problem that names the field.

use reqwest::{Method, Response, StatusCode};
use serde_json::{Value, json};
use testkit::app::Server;

use crate::home;

async fn problem(answer: Response) -> (u16, String) {
    let status = answer.status();
    assert!(status.is_client_error(), "{status}");
    assert_eq!(answer.headers()["content-type"], "application/problem+json");
    let id = answer.headers()["x-request-id"].to_str().unwrap().to_owned();
    let body: Value = answer.json().await.unwrap();
    for field in ["type", "title", "status", "detail", "request_id"] {
        assert!(!body[field].is_null(), "{field} is missing in {body}");
    }
    assert_eq!(
        (body["status"].as_u64(), body["request_id"].as_str()),
        (Some(status.as_u16().into()), Some(id.as_str()))
    );
    (status.as_u16(), body["errors"][0]["field"].as_str().unwrap_or_default().to_owned())
}

async fn send(server: &Server, method: &str, path: &str, body: impl Into<reqwest::Body>) -> (u16, String) {
    let method = Method::from_bytes(method.as_bytes()).unwrap();
    let request = server.request(method, path).header("content-type", "application/json").body(body);
    problem(request.send().await.unwrap()).await
}

fn rejected(field: &str) -> (u16, String) {
    (422, field.to_owned())
}

const ID: &str = "0190a6d2-7c00-7000-8000-000000000000";

#[tokio::test]
async fn invalid_bodies_name_the_field() {
    // AGENT-3, CHAT-4, TASK-1
    let home = home();
    let server = home.serve();
    let task: Value = server.post("/api/tasks", &json!({"title": "a"})).await.json().await.unwrap();
    let patch = format!("/api/tasks/{}", task["id"].as_str().unwrap());
    let long = "x".repeat(201);
    for (method, path) in
        [("POST", "/api/tasks"), ("PATCH", &*patch), ("POST", "/api/data"), ("POST", "/api/tokens/revoke")]
    {
        for (body, field) in
            [(b"".as_slice(), "body"), (b"{", "body"), (b"\"\xff\"", "body"), (b"[]", "body"), (b"{\"x\":1}", "x")]
        {
            assert_eq!(send(&server, method, path, body.to_vec()).await, rejected(field), "{method} {path} {body:?}");
        }
    }
    for (method, path) in [("POST", "/api/tasks"), ("PATCH", &*patch)] {
        for (body, field) in [
            (json!({"title": ""}), "title"),
            (json!({"title": "\u{0}\u{1b} "}), "title"),
            (json!({"title": long}), "title"),
            (json!({"title": 5}), "title"),
            (json!({"title": "a", "description": "x".repeat(1001)}), "description"),
            (json!({"title": "a", "due_date": "someday"}), "due_date"),
            (json!({"title": "a", "due_date": "2026-02-30"}), "due_date"),
            (json!({"title": "a", "priority": "urgent"}), "priority"),
            (json!({"title": "a", "tags": "home"}), "tags"),
            (json!({"title": "a", "tags": [""]}), "tags[0]"),
            (json!({"title": "a", "recurrence": "sometimes"}), "recurrence"),
            (json!({"title": "a", "user_id": ID}), "user_id"),
        ] {
            assert_eq!(send(&server, method, path, body.to_string()).await, rejected(field), "{method} {body}");
        }
    }
    assert_eq!(send(&server, "PATCH", &patch, "{}").await, rejected("body"));
    for path in ["/api/tasks/complete", "/api/tasks/delete"] {
        for (body, field) in [(json!({}), "ids"), (json!({"ids": []}), "ids"), (json!({"ids": [ID, "x"]}), "ids[1]")] {
            assert_eq!(send(&server, "POST", path, body.to_string()).await, rejected(field), "{path} {body}");
        }
        let one_missing = json!({"ids": [task["id"], ID]}).to_string();
        assert_eq!(send(&server, "POST", path, one_missing).await.0, 404, "{path}");
    }
    assert_eq!(send(&server, "POST", "/api/tasks/undo", "{\"a\":1}").await, rejected("body"));
    assert_eq!(send(&server, "POST", "/api/tasks", "{\"title\":null}").await, rejected("title"));
    assert_eq!(server.get(&patch).await.json::<Value>().await.unwrap(), task, "the task has not changed");
}

#[tokio::test]
async fn invalid_ids_queries_and_keys_name_the_field() {
    // CHAT-4, TASK-1
    let home = home();
    let server = home.serve();
    for (method, path) in [
        ("GET", "/api/tasks/1"),
        ("PATCH", "/api/tasks/not-a-uuid"),
        ("DELETE", "/api/tasks/%ff"),
        ("POST", "/api/tasks/1/complete"),
        ("GET", "/api/conversations/x"),
        ("DELETE", "/api/conversations/conv_a-b"),
    ] {
        assert_eq!(send(&server, method, path, "").await, rejected("id"), "{method} {path}");
    }
    for (path, field) in [
        ("/api/tasks?limit=0", "limit"),
        ("/api/tasks?limit=201", "limit"),
        ("/api/tasks?cursor=zz", "cursor"),
        ("/api/tasks?status=open", "status"),
        ("/api/tasks?priority=1", "priority"),
        ("/api/tasks?due=someday", "due"),
        ("/api/tasks?tag=", "tag"),
        ("/api/tasks?q=%ff", "q"),
        ("/api/tasks?q=a&q=b", "q"),
        ("/api/tasks?colour=red", "colour"),
        ("/api/conversations?cursor=00", "cursor"),
        ("/api/conversations/conv_1?limit=x", "limit"),
        ("/api/conversations?user_id=1", "user_id"),
    ] {
        assert_eq!(problem(server.get(path).await).await, rejected(field), "{path}");
    }
    let request = server.request(Method::POST, "/api/tasks").header("Idempotency-Key", "two words");
    assert_eq!(problem(request.json(&json!({"title": "a"})).send().await.unwrap()).await, rejected("Idempotency-Key"));
}

#[tokio::test]
async fn unknown_paths_methods_sizes_and_types_are_rejected() {
    // CHAT-5
    let home = home().with_config("[server]\nmax_body_bytes = 2000\nmax_import_bytes = 4000\n");
    let server = home.serve();
    for path in ["/api/nothing", "/api/tasks/", "/nothing", "/api/tasks/1/2"] {
        assert_eq!(problem(server.get(path).await).await.0, 404, "{path}");
    }
    for (method, path) in [("PUT", "/api/tasks"), ("POST", "/health"), ("DELETE", "/api/conversations")] {
        assert_eq!(send(&server, method, path, "").await.0, 405, "{method} {path}");
    }
    assert_eq!(send(&server, "POST", "/api/tasks", format!("{{\"title\":\"{}\"}}", "x".repeat(3000))).await.0, 413);
    assert_eq!(send(&server, "POST", "/api/data", "x".repeat(5000)).await.0, 413);
    let text = server.request(Method::POST, "/api/tasks").header("content-type", "text/plain").body("{}");
    assert_eq!(problem(text.send().await.unwrap()).await.0, 415);
    let cross_origin = server.request(Method::GET, "/api/tasks").header("origin", "https://evil.example");
    assert_eq!(problem(cross_origin.send().await.unwrap()).await.0, 403);
    let rebound = server.request(Method::GET, "/api/tasks").header("host", "evil.example");
    assert_eq!(problem(rebound.send().await.unwrap()).await.0, 403);
    assert_eq!(server.get("/api/tasks").await.status(), StatusCode::OK);
}

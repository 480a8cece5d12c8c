//! Schedules as their users meet them: over HTTP, on the command line, in the configuration and in words, with agents that
//! are run by the real program.

mod api;
mod assistant;
mod commands;
mod config;

use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::Value;
use testkit::app::Server;

/// `cat` repeats what it is asked, `sh` runs it, `off` cannot be run.
const AGENTS: &str = r#"
[assistant]
time_zone = "Europe/Berlin"
[[agents]]
id = "cat"
name = "Cat"
executable_path = "/bin/cat"
[[agents]]
id = "sh"
executable_path = "/bin/sh"
args = ["-c", "{{input}}"]
input_pattern = "args"
[[agents]]
id = "off"
executable_path = "/bin/cat"
enabled = false
"#;

async fn send(server: &Server, token: Option<&str>, method: Method, path: &str, body: Option<&Value>) -> (u16, Value) {
    let mut request = server.request(method, path);
    if let Some(token) = token {
        request = request.bearer_auth(token);
    }
    if let Some(body) = body {
        request = request.json(body);
    }
    let answer = request.send().await.unwrap();
    (answer.status().as_u16(), answer.json().await.unwrap_or_default())
}

async fn make(server: &Server, draft: &Value) -> Value {
    let (status, schedule) = send(server, None, Method::POST, "/api/schedules", Some(draft)).await;
    assert_eq!(status, StatusCode::CREATED, "{schedule}");
    schedule
}

fn path(schedule: &Value, rest: &str) -> String {
    format!("/api/schedules/{}{rest}", schedule["id"].as_str().unwrap())
}

async fn get(server: &Server, path: &str) -> Value {
    let (status, body) = send(server, None, Method::GET, path, None).await;
    assert_eq!(status, 200, "{path}: {body}");
    body
}

/// Asks until the answer is as it should be.
async fn until(server: &Server, path: &str, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    for _ in 0..1500 {
        let body = get(server, path).await;
        if wanted(&body) {
            return body;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{path} is never {what}: {}", get(server, path).await);
}

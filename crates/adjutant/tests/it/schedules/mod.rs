//! Schedules over HTTP, on the command line, in the configuration file and in chat, with real agents.

mod api;
mod assistant;
mod commands;
mod config;

use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::Value;
use testkit::app::Server;

/// `cat` prints its input, `sh` runs it, `off` is disabled.
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

async fn create(server: &Server, draft: &Value) -> Value {
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

/// Waits until a condition holds for the response. Returns the response.
async fn wait_until(server: &Server, path: &str, description: &str, condition: impl Fn(&Value) -> bool) -> Value {
    for _ in 0..1500 {
        let body = get(server, path).await;
        if condition(&body) {
            return body;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{path} is never {description}: {}", get(server, path).await);
}

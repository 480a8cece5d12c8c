//! Clients that read nothing: their streams end, can be resumed, and are limited in total (SEC-5, OPS-5).

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use reqwest::{Method, Response};
use serde_json::{Value, json};
use testkit::app::Server;

use crate::{ALICE, BOB, home, home_with_auth, token};

/// The number of lines of the agent, and their length.
const LINES: usize = 20_000;
const LINE_BYTES: usize = 100;

const CONFIG: &str = r#"
[server]
stall_timeout_seconds = 3
[[agents]]
id = "lines"
executable_path = "/bin/sh"
args = ["-c", "seq -f %099.0f 20000; exec sleep 1000"]
"#;

/// Starts the agent and returns its execution once all output is stored.
async fn start_agent(server: &Server) -> String {
    let message = json!({"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "go"}]},
        "configuration": {"returnImmediately": true}});
    let request = server.request(Method::POST, "/agents/lines/message:send").header("A2A-Version", "1.0");
    let sent: Value = request.json(&message).send().await.unwrap().json().await.unwrap();
    let id = sent["task"]["id"].as_str().unwrap().to_owned();
    let mut stream = server.get(&format!("/api/executions/{id}/events")).await;
    let mut received = String::new();
    while !received.contains(&format!("{LINES:0>99}")) {
        received.push_str(&String::from_utf8_lossy(&stream.chunk().await.unwrap().unwrap()));
    }
    id
}

/// Requests a stream and does not read it until the server has ended it. Returns the whole body.
async fn stalled_body(server: &Server, path: &str) -> String {
    let mut stream = TcpStream::connect(server.url.trim_start_matches("http://")).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\na2a-version: 1.0\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    server.wait_for_event("stalled_stream_ended").await;
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    unchunked(&bytes)
}

/// Returns the body of a chunked response, which must be complete.
fn unchunked(response: &[u8]) -> String {
    let start = response.windows(4).position(|end| end == b"\r\n\r\n").unwrap() + 4;
    let mut rest = &response[start..];
    let mut body = Vec::new();
    loop {
        let line = rest.windows(2).position(|end| end == b"\r\n").unwrap();
        let size = usize::from_str_radix(std::str::from_utf8(&rest[..line]).unwrap(), 16).unwrap();
        rest = &rest[line + 2..];
        if size == 0 {
            return String::from_utf8(body).unwrap();
        }
        body.extend_from_slice(&rest[..size]);
        rest = &rest[size + 2..];
    }
}

/// Adds the ids and the output of complete events.
fn add_events(body: &str, ids: &mut Vec<i64>, output: &mut String) {
    let (complete, _) = body.rsplit_once("\n\n").unwrap_or_default();
    for event in complete.split("\n\n") {
        let field = |name: &str| event.lines().find_map(|line| line.strip_prefix(name));
        ids.extend(field("id: ").map(|id| id.parse::<i64>().unwrap()));
        if field("event: ") == Some("output") {
            let data: Value = serde_json::from_str(field("data: ").unwrap()).unwrap();
            output.push_str(data["text"].as_str().unwrap());
        }
    }
}

/// Asserts that the text contains every line of the agent once, in order.
fn assert_all_lines(output: &str) {
    let lines: Vec<usize> = output.lines().map(|line| line.trim_start_matches('0').parse().unwrap()).collect();
    assert_eq!(lines.len(), LINES);
    assert!(lines.iter().zip(1..).all(|(line, expected)| *line == expected));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stalled_follower_is_ended_and_resumes_without_loss() {
    // SEC-5, SUP-10, OPS-5
    let home = home().with_config(CONFIG);
    let server = home.serve();
    let id = start_agent(&server).await;
    let path = format!("/api/executions/{id}/events");
    let body = stalled_body(&server, &path).await;
    assert!(body.len() < LINES * LINE_BYTES / 2, "{} bytes were sent to a client that reads nothing", body.len());
    let (_, notice) = body.rsplit_once("nothing was read for too long; ").unwrap();
    let last = notice.trim_end().strip_prefix("resume with Last-Event-ID: ").unwrap();
    let mut ids = Vec::new();
    let mut output = String::new();
    add_events(&body, &mut ids, &mut output);
    assert_eq!(ids.last(), Some(&last.parse().unwrap()), "the notice names the last complete event");

    let request = server.request(Method::GET, &path).header("last-event-id", last);
    let mut resumed = request.send().await.unwrap();
    let mut rest = String::new();
    while !rest.contains(&format!("{LINES:0>99}")) || !rest.ends_with("\n\n") {
        rest.push_str(&String::from_utf8_lossy(&resumed.chunk().await.unwrap().unwrap()));
    }
    add_events(&rest, &mut ids, &mut output);
    let unique: BTreeSet<_> = ids.iter().collect();
    assert_eq!(unique.len(), ids.len(), "no event arrives twice: {ids:?}");
    assert_all_lines(&output);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stalled_subscription_ends_with_an_error_and_a_new_one_has_everything() {
    // SEC-5, A2A-1, A2A-3
    let home = home().with_config(CONFIG);
    let server = home.serve();
    let task = start_agent(&server).await;
    let path = format!("/agents/lines/tasks/{task}:subscribe");
    let body = stalled_body(&server, &path).await;
    assert!(body.len() < LINES * LINE_BYTES / 2, "{} bytes were sent to a client that reads nothing", body.len());
    let last = body.trim_end().rsplit("\n\n").next().unwrap();
    assert!(last.starts_with("event: error\n") && last.contains("subscribe to it again"), "{last}");

    // The artifacts of a large task follow its first update.
    let mut again = server.request(Method::GET, &path).header("A2A-Version", "1.0").send().await.unwrap();
    let mut text = String::new();
    while !text.contains(&format!("{LINES:0>99}")) || !text.ends_with("\n\n") {
        text.push_str(&String::from_utf8_lossy(&again.chunk().await.unwrap().unwrap()));
    }
    let updates: Vec<Value> = text
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .map(|data| serde_json::from_str(data).unwrap())
        .collect();
    assert_eq!((&updates[0]["task"]["id"], &updates[0]["task"]["artifacts"]), (&json!(task), &Value::Null));
    assert_eq!(updates[0]["task"]["status"]["state"], "TASK_STATE_WORKING");
    let mut output = String::new();
    for (at, update) in updates[1..].iter().enumerate() {
        let update = &update["artifactUpdate"];
        assert_eq!(update["append"], json!(at > 0), "{update}");
        output.push_str(update["artifact"]["parts"][0]["text"].as_str().unwrap());
    }
    assert_all_lines(&output);
}

async fn follow(server: &Server, user: &str) -> Response {
    server.request(Method::GET, "/api/notifications/stream").bearer_auth(user).send().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_open_streams_of_all_users_are_limited() {
    // SEC-5, A2A-3
    let home = home_with_auth().with_config("[quotas]\nstreams = 2\ntotal_streams = 3\n");
    let server = home.serve();
    let alice = token(&home, ALICE, &[]);
    let bob = token(&home, BOB, &[]);
    let mut open = vec![follow(&server, &alice).await, follow(&server, &alice).await];
    // A stream that has ended frees its place.
    for _ in 0..3 {
        let request = server.request(Method::POST, "/chat/stream").bearer_auth(&bob);
        let chat = request.json(&json!({"input": "show my tasks"})).send().await.unwrap();
        assert_eq!(chat.status(), 200);
        assert!(chat.text().await.unwrap().contains("event: done"));
    }
    open.push(follow(&server, &bob).await);
    assert!(open.iter().all(|stream| stream.status() == 200));
    let refused = follow(&server, &bob).await;
    assert_eq!((refused.status().as_u16(), refused.headers()["retry-after"].to_str().unwrap()), (429, "10"));
    let problem: Value = refused.json().await.unwrap();
    assert_eq!(problem["type"], "urn:adjutant:problem:quota", "{problem}");
    let detail = "the server has reached the limit of 3 open event streams of all users (quotas.total_streams); \
                  try again later or raise the limit";
    assert_eq!(problem["detail"], detail);
    let a2a = json!({"jsonrpc": "2.0", "id": 1, "method": "message/stream", "params": {"message": {
        "kind": "message", "role": "user", "messageId": "m", "parts": [{"kind": "text", "text": "hello"}],
    }}});
    let request = server.request(Method::POST, "/agents/assistant").bearer_auth(&bob).json(&a2a);
    let refused = request.send().await.unwrap().text().await.unwrap();
    assert!(refused.contains("\"code\":-32000") && refused.contains("quotas.total_streams"), "{refused}");
}

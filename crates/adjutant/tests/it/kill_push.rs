//! Kills the server with SIGKILL while it sends push notifications. All accepted tasks are reported to their end, in order,
//! and a repeated delivery has the same id. The credentials of the receiver appear in no log and no file.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::routing::post;
use serde_json::{Value, json};

use crate::home;

const ROUNDS: usize = 8;
const TASKS: usize = 12;
const TOKEN: &str = "validation-token-77f0";
const CREDENTIALS: &str = "credentials-41c2aa";

/// For each path, the id and the summary of each delivery.
type Deliveries = Arc<Mutex<BTreeMap<String, Vec<(String, String)>>>>;

const WORKING: &str = "statusUpdateTASK_STATE_WORKING";

/// Returns `true` for a final state. An interrupted task may have failed.
fn is_final(summary: &str) -> bool {
    ["statusUpdateTASK_STATE_COMPLETED", "statusUpdateTASK_STATE_FAILED"].contains(&summary)
}

async fn receiver() -> (u16, Deliveries) {
    let deliveries = Deliveries::default();
    let router = Router::new().route("/{path}", post(receive)).with_state(deliveries.clone());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    (port, deliveries)
}

async fn receive(State(deliveries): State<Deliveries>, Path(path): Path<String>, headers: HeaderMap, body: String) {
    assert_eq!(headers["authorization"], format!("Bearer {CREDENTIALS}"));
    let body: Value = serde_json::from_str(&body).unwrap();
    let (kind, inner) = body.as_object().unwrap().iter().next().unwrap();
    let state = inner["status"]["state"].as_str().unwrap_or_default();
    let id = headers["x-adjutant-delivery"].to_str().unwrap().to_owned();
    deliveries.lock().unwrap().entry(path).or_default().push((id, format!("{kind}{state}")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn push_notifications_of_accepted_tasks_are_delivered_to_the_end() {
    // A2A-1
    let home = home().with_config("[a2a]\nallow_private_webhooks = true\n");
    let (port, deliveries) = receiver().await;
    let mut accepted = Vec::new();
    let mut logs = String::new();
    for round in 0..ROUNDS {
        let mut server = home.serve();
        for n in 0..TASKS {
            let path = format!("{round}-{n}");
            let authentication = json!({"scheme": "Bearer", "credentials": CREDENTIALS});
            let url = format!("http://127.0.0.1:{port}/{path}");
            let push = json!({"id": "p", "url": url, "token": TOKEN, "authentication": authentication});
            let message =
                json!({"messageId": "m", "role": "ROLE_USER", "parts": [{"text": format!("add task {path}")}]});
            let configuration = json!({"returnImmediately": true, "taskPushNotificationConfig": push});
            let params = json!({"message": message, "configuration": configuration});
            let body = json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params});
            let request = server.request(reqwest::Method::POST, "/agents/assistant").header("A2A-Version", "1.0");
            let answer: Value = request.json(&body).send().await.unwrap().json().await.unwrap();
            assert!(answer["result"]["task"]["id"].is_string(), "{answer}");
            accepted.push(path);
        }
        // From before the first delivery to the middle of the deliveries.
        tokio::time::sleep(Duration::from_millis((round * 53 % 400) as u64)).await;
        server.kill();
        logs.push_str(&server.raw_log());
    }
    let mut server = home.serve();
    let is_delivered = |path: &String| {
        let deliveries = deliveries.lock().unwrap();
        deliveries.get(path).and_then(|deliveries| deliveries.last()).is_some_and(|(_, last)| is_final(last))
    };
    for _ in 0..600 {
        if accepted.iter().all(is_delivered) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let missing: Vec<_> = accepted.iter().filter(|path| !is_delivered(path)).collect();
    assert!(missing.is_empty(), "{missing:?}: {}", server.raw_log());
    for (path, deliveries) in deliveries.lock().unwrap().iter() {
        // A repeated delivery has the same content.
        let mut known = HashMap::new();
        let mut order = Vec::new();
        for (id, summary) in deliveries {
            if known.insert(id.clone(), summary.clone()).is_none() {
                order.push(summary.as_str());
            }
        }
        let last = order.pop().unwrap();
        let pieces = order.iter().skip_while(|summary| **summary == WORKING);
        assert!(is_final(last) && pieces.copied().all(|summary| summary == "artifactUpdate"), "{path}: {deliveries:?}");
        assert!(order.iter().filter(|summary| **summary == WORKING).count() <= 1, "{path}: {deliveries:?}");
    }
    server.stop();
    logs.push_str(&server.raw_log());
    let mut bytes = logs.into_bytes();
    for entry in std::fs::read_dir(home.path()).unwrap().flatten() {
        bytes.extend(std::fs::read(entry.path()).unwrap_or_default());
    }
    for secret in [TOKEN, CREDENTIALS] {
        assert!(!bytes.windows(secret.len()).any(|window| window == secret.as_bytes()), "{secret}");
    }
}

//! `kill -9` while a receiver is told of tasks: everything that was accepted is told to its end, in order, and what comes
//! twice is known by its id. What the receiver wants to be shown is in no log and in no file.

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

/// The id of the delivery, and what was told in short.
type Told = Arc<Mutex<BTreeMap<String, Vec<(String, String)>>>>;

const WORKING: &str = "statusUpdateTASK_STATE_WORKING";

/// One that was interrupted may have failed.
fn is_end(told: &str) -> bool {
    ["statusUpdateTASK_STATE_COMPLETED", "statusUpdateTASK_STATE_FAILED"].contains(&told)
}

async fn receiver() -> (u16, Told) {
    let told = Told::default();
    let router = Router::new().route("/{path}", post(receive)).with_state(told.clone());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    (port, told)
}

async fn receive(State(told): State<Told>, Path(path): Path<String>, headers: HeaderMap, body: String) {
    assert_eq!(headers["authorization"], format!("Bearer {CREDENTIALS}"));
    let body: Value = serde_json::from_str(&body).unwrap();
    let (kind, inner) = body.as_object().unwrap().iter().next().unwrap();
    let state = inner["status"]["state"].as_str().unwrap_or_default();
    let id = headers["x-adjutant-delivery"].to_str().unwrap().to_owned();
    told.lock().unwrap().entry(path).or_default().push((id, format!("{kind}{state}")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_is_told_to_its_end() {
    // A2A-1
    let home = home().configured("[a2a]\nallow_private_webhooks = true\n");
    let (port, told) = receiver().await;
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
        // From before the first is told to well into the telling.
        tokio::time::sleep(Duration::from_millis((round * 53 % 400) as u64)).await;
        server.kill();
        logs.push_str(&server.raw_log());
    }
    let mut server = home.serve();
    let is_told = |path: &String| {
        let told = told.lock().unwrap();
        told.get(path).and_then(|told| told.last()).is_some_and(|(_, last)| is_end(last))
    };
    for _ in 0..600 {
        if accepted.iter().all(is_told) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let missing: Vec<_> = accepted.iter().filter(|path| !is_told(path)).collect();
    assert!(missing.is_empty(), "{missing:?}: {}", server.raw_log());
    for (path, told) in told.lock().unwrap().iter() {
        // One that came twice is the same again.
        let mut known = HashMap::new();
        let mut order = Vec::new();
        for (id, what) in told {
            if known.insert(id.clone(), what.clone()).is_none() {
                order.push(what.as_str());
            }
        }
        let last = order.pop().unwrap();
        let pieces = order.iter().skip_while(|what| **what == WORKING);
        assert!(is_end(last) && pieces.copied().all(|what| what == "artifactUpdate"), "{path}: {told:?}");
        assert!(order.iter().filter(|what| **what == WORKING).count() <= 1, "{path}: {told:?}");
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

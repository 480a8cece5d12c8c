//! `kill -9` at a random moment while 64 connections create tasks: what was answered is there, and nothing twice.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use testkit::app::{Home, Server};

use crate::home;

const ROUNDS: u32 = 20;
const CONNECTIONS: u32 = 64;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sqlite_loses_nothing() {
    // TASK-5
    let home = home().with("ADJUTANT_LOG__LEVEL", "warning");
    rounds(&home).await;
    assert_eq!(integrity(&home.path().join("adjutant.db")), "ok");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_loses_nothing() {
    // TASK-5
    let url = testkit::postgres::database().await.unwrap();
    let home = home().with("ADJUTANT_LOG__LEVEL", "warning").with("ADJUTANT_DATABASE__URL", &url);
    rounds(&home).await;
}

async fn rounds(home: &Home) {
    let mut answered = HashSet::new();
    let next = Arc::new(AtomicU32::new(0));
    for round in 0..ROUNDS {
        let mut server = home.serve();
        let senders: Vec<_> = (0..CONNECTIONS).map(|_| tokio::spawn(create_until_cut(&server, next.clone()))).collect();
        // Spread over the rounds, from before the first commit to well into the load.
        let moment = Duration::from_millis(u64::from(round * 17 % 300) + u64::from(server.pid() % 20));
        tokio::time::sleep(moment).await;
        server.kill();
        let mut unanswered = Vec::new();
        for sender in senders {
            let (done, cut) = sender.await.unwrap();
            answered.extend(done);
            unanswered.extend(cut);
        }
        let server = home.serve();
        // A client that got no answer sends the same again; whether the first went through must not matter.
        for n in unanswered {
            assert_eq!(create(&server, n).await, Some(201), "task {n}");
            answered.insert(n);
        }
        drop(server);
    }
    let stored = titles(&home.serve()).await;
    let distinct: HashSet<u32> = stored.iter().copied().collect();
    assert_eq!(distinct.len(), stored.len(), "a task is there twice");
    assert_eq!(distinct, answered);
    assert!(answered.len() > 1000, "only {} tasks: the test has hardly tested anything", answered.len());
}

/// Creates tasks until the server is gone: those that were answered, and the one that was not.
fn create_until_cut(
    server: &Server,
    next: Arc<AtomicU32>,
) -> impl Future<Output = (Vec<u32>, Option<u32>)> + Send + 'static {
    let client = server.client.clone();
    let url = server.url.clone();
    async move {
        let mut done = Vec::new();
        loop {
            let n = next.fetch_add(1, Ordering::Relaxed);
            match send(&client, &url, n).await {
                Some(status) => {
                    assert_eq!(status, 201);
                    done.push(n);
                }
                None => return (done, Some(n)),
            }
        }
    }
}

async fn create(server: &Server, n: u32) -> Option<u16> {
    send(&server.client, &server.url, n).await
}

async fn send(client: &reqwest::Client, url: &str, n: u32) -> Option<u16> {
    let request = client.post(format!("{url}/api/tasks")).header("Idempotency-Key", format!("task-{n}"));
    let answer = request.json(&json!({"title": n.to_string()})).send().await.ok()?;
    let status = answer.status().as_u16();
    // Only a whole answer is an answer.
    answer.bytes().await.ok().map(|_| status)
}

async fn titles(server: &Server) -> Vec<u32> {
    let mut titles = Vec::new();
    let mut cursor = String::new();
    loop {
        let page: Value = server.get(&format!("/api/tasks?limit=200{cursor}")).await.json().await.unwrap();
        let tasks = page["tasks"].as_array().unwrap();
        titles.extend(tasks.iter().map(|task| task["title"].as_str().unwrap().parse::<u32>().unwrap()));
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return titles,
        }
    }
}

fn integrity(file: &Path) -> String {
    let conn = rusqlite::Connection::open(file).unwrap();
    conn.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap()
}

//! Kills the server with SIGKILL while 64 connections create tasks. Every acknowledged task is stored exactly once.

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
async fn sqlite_loses_no_acknowledged_task() {
    // TASK-5
    let home = home().with_env("ADJUTANT_LOG__LEVEL", "warning");
    kill_repeatedly(&home).await;
    assert_eq!(integrity(&home.path().join("adjutant.db")), "ok");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgresql_loses_no_acknowledged_task() {
    // TASK-5
    let url = testkit::postgres::create_database().await.unwrap();
    let home = home().with_env("ADJUTANT_LOG__LEVEL", "warning").with_env("ADJUTANT_DATABASE__URL", &url);
    kill_repeatedly(&home).await;
}

async fn kill_repeatedly(home: &Home) {
    let mut acknowledged = HashSet::new();
    let next = Arc::new(AtomicU32::new(0));
    for round in 0..ROUNDS {
        let mut server = home.serve();
        let senders: Vec<_> =
            (0..CONNECTIONS).map(|_| tokio::spawn(create_until_killed(&server, next.clone()))).collect();
        // Spread over the rounds, from before the first commit to full load.
        let delay = Duration::from_millis(u64::from(round * 17 % 300) + u64::from(server.pid() % 20));
        tokio::time::sleep(delay).await;
        server.kill();
        let mut unanswered = Vec::new();
        for sender in senders {
            let (completed, unfinished) = sender.await.unwrap();
            acknowledged.extend(completed);
            unanswered.extend(unfinished);
        }
        let server = home.serve();
        // A client without a response repeats its request. The result is the same if the first one succeeded.
        for n in unanswered {
            assert_eq!(create(&server, n).await, Some(201), "task {n}");
            acknowledged.insert(n);
        }
        drop(server);
    }
    let stored = titles(&home.serve()).await;
    let distinct: HashSet<u32> = stored.iter().copied().collect();
    assert_eq!(distinct.len(), stored.len(), "a task is duplicated");
    assert_eq!(distinct, acknowledged);
    assert!(acknowledged.len() > 1000, "only {} tasks: the load is too low for this test", acknowledged.len());
}

/// Creates tasks until the server dies. Returns the acknowledged tasks and the one without a response.
fn create_until_killed(
    server: &Server,
    next: Arc<AtomicU32>,
) -> impl Future<Output = (Vec<u32>, Option<u32>)> + Send + 'static {
    let client = server.client.clone();
    let url = server.url.clone();
    async move {
        let mut completed = Vec::new();
        loop {
            let n = next.fetch_add(1, Ordering::Relaxed);
            match send(&client, &url, n).await {
                Some(status) => {
                    assert_eq!(status, 201);
                    completed.push(n);
                }
                None => return (completed, Some(n)),
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
    // Only a complete response is an acknowledgement.
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

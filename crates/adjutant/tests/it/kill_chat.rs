//! `kill -9` in the middle of conversations: each is whole afterwards, and what was confirmed happened once or not at all.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use testkit::app::{Home, Server};

use crate::home;

const ROUNDS: u32 = 12;
const CONNECTIONS: u32 = 32;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sqlite_keeps_conversations_whole() {
    // CHAT-7, AGENT-7, TASK-5
    rounds(&home().with("ADJUTANT_LOG__LEVEL", "warning")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_keeps_conversations_whole() {
    // CHAT-7, AGENT-7, TASK-5
    let url = testkit::postgres::database().await.unwrap();
    rounds(&home().with("ADJUTANT_LOG__LEVEL", "warning").with("ADJUTANT_DATABASE__URL", &url)).await;
}

async fn rounds(home: &Home) {
    let next = Arc::new(AtomicU32::new(0));
    let mut told = HashMap::new();
    let mut checked = 0;
    for round in 0..ROUNDS {
        let mut server = home.serve();
        let talkers: Vec<_> = (0..CONNECTIONS).map(|_| tokio::spawn(talk_until_cut(&server, next.clone()))).collect();
        tokio::time::sleep(Duration::from_millis(u64::from(round * 31 % 400) + u64::from(server.pid() % 20))).await;
        server.kill();
        for talker in talkers {
            told.extend(talker.await.unwrap());
        }
        let server = home.serve();
        let titles = titles(&server).await;
        let distinct: HashSet<_> = titles.iter().collect();
        assert_eq!(distinct.len(), titles.len(), "a task is there twice");
        for (n, turns) in told.drain() {
            whole(&server, n, turns, distinct.contains(&title(n))).await;
            checked += 1;
        }
    }
    assert!(checked > 300, "only {checked} conversations: the test has hardly tested anything");
}

fn title(n: u32) -> String {
    format!("errand {n}")
}

/// What is said in every conversation, one after the other.
fn script(n: u32) -> [String; 3] {
    [format!("add '{}'", title(n)), format!("delete '{}'", title(n)), "yes delete".to_owned()]
}

/// Holds conversations until the server is gone: how many turns of each were answered to their end.
fn talk_until_cut(server: &Server, next: Arc<AtomicU32>) -> impl Future<Output = Vec<(u32, usize)>> + Send + 'static {
    let client = server.client.clone();
    let url = server.url.clone();
    async move {
        let mut told = Vec::new();
        loop {
            let n = next.fetch_add(1, Ordering::Relaxed);
            let mut answered = 0;
            for input in script(n) {
                let body = json!({"input": input, "conversation_id": format!("conv_{n}")});
                let answer = client.post(format!("{url}/chat/stream")).json(&body).send().await;
                let Ok(answer) = answer else {
                    told.push((n, answered));
                    return told;
                };
                match answer.text().await {
                    Ok(text) if text.contains("event: done") => answered += 1,
                    _ => {
                        told.push((n, answered));
                        return told;
                    }
                }
            }
            told.push((n, answered));
        }
    }
}

/// The stored conversation has at least what was answered, every turn of it complete, and the tasks agree with it.
async fn whole(server: &Server, n: u32, answered: usize, is_there: bool) {
    let conversation: Value = server.get(&format!("/api/conversations/conv_{n}")).await.json().await.unwrap();
    let messages = conversation["messages"].as_array().cloned().unwrap_or_default();
    assert_eq!(messages.len() % 2, 0, "an answer without its question, or a question without its answer: {messages:?}");
    let turns = messages.len() / 2;
    assert!(turns == answered || turns == answered + 1, "{turns} turns are kept, {answered} were answered");
    for (turn, pair) in messages.chunks(2).enumerate() {
        assert_eq!((&pair[0]["role"], &pair[1]["role"]), (&json!("user"), &json!("assistant")));
        assert_eq!(pair[0]["content"], script(n)[turn]);
        let called = ["add_task", "list_tasks", "delete_task"][turn];
        assert_eq!(pair[1]["tool_calls"].as_array().unwrap().last().unwrap()["tool_name"], called);
    }
    let pending = messages.last().map(|message| message["pending"].is_object());
    match turns {
        0 => assert!(!is_there),
        1 => assert!(is_there),
        2 => assert!(is_there && pending == Some(true), "it waits, and nothing has happened"),
        _ => assert!(!is_there && pending == Some(false), "it is gone, and nothing waits"),
    }
}

async fn titles(server: &Server) -> Vec<String> {
    let mut titles = Vec::new();
    let mut cursor = String::new();
    loop {
        let page: Value = server.get(&format!("/api/tasks?limit=200{cursor}")).await.json().await.unwrap();
        titles.extend(page["tasks"].as_array().unwrap().iter().map(|task| task["title"].as_str().unwrap().to_owned()));
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return titles,
        }
    }
}

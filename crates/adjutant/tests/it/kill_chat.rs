//! Kills the server with SIGKILL during conversations. Afterwards each has only complete turns, and a confirmed call ran
//! once or not at all.

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
async fn sqlite_stores_only_complete_turns() {
    // CHAT-7, AGENT-7, TASK-5
    kill_repeatedly(&home().with_env("ADJUTANT_LOG__LEVEL", "warning")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgresql_stores_only_complete_turns() {
    // CHAT-7, AGENT-7, TASK-5
    let url = testkit::postgres::create_database().await.unwrap();
    kill_repeatedly(&home().with_env("ADJUTANT_LOG__LEVEL", "warning").with_env("ADJUTANT_DATABASE__URL", &url)).await;
}

async fn kill_repeatedly(home: &Home) {
    let next = Arc::new(AtomicU32::new(0));
    let mut conversations = HashMap::new();
    let mut checked = 0;
    for round in 0..ROUNDS {
        let mut server = home.serve();
        let talkers: Vec<_> =
            (0..CONNECTIONS).map(|_| tokio::spawn(talk_until_killed(&server, next.clone()))).collect();
        tokio::time::sleep(Duration::from_millis(u64::from(round * 31 % 400) + u64::from(server.pid() % 20))).await;
        server.kill();
        for talker in talkers {
            conversations.extend(talker.await.unwrap());
        }
        let server = home.serve();
        let titles = titles(&server).await;
        let distinct: HashSet<_> = titles.iter().collect();
        assert_eq!(distinct.len(), titles.len(), "a task is duplicated");
        for (n, turns) in conversations.drain() {
            check_conversation(&server, n, turns, distinct.contains(&title(n))).await;
            checked += 1;
        }
    }
    assert!(checked > 300, "only {checked} conversations: the load is too low for this test");
}

fn title(n: u32) -> String {
    format!("errand {n}")
}

/// Returns the messages of a conversation.
fn script(n: u32) -> [String; 3] {
    [format!("add '{}'", title(n)), format!("delete '{}'", title(n)), "yes delete".to_owned()]
}

/// Holds conversations until the server dies. Returns the number of completed turns of each.
fn talk_until_killed(
    server: &Server,
    next: Arc<AtomicU32>,
) -> impl Future<Output = Vec<(u32, usize)>> + Send + 'static {
    let client = server.client.clone();
    let url = server.url.clone();
    async move {
        let mut conversations = Vec::new();
        loop {
            let n = next.fetch_add(1, Ordering::Relaxed);
            let mut completed = 0;
            for input in script(n) {
                let body = json!({"input": input, "conversation_id": format!("conv_{n}")});
                let answer = client.post(format!("{url}/chat/stream")).json(&body).send().await;
                let Ok(answer) = answer else {
                    conversations.push((n, completed));
                    return conversations;
                };
                match answer.text().await {
                    Ok(text) if text.contains("event: done") => completed += 1,
                    _ => {
                        conversations.push((n, completed));
                        return conversations;
                    }
                }
            }
            conversations.push((n, completed));
        }
    }
}

/// Checks that the stored conversation has all completed turns, only complete turns, and matches the tasks.
async fn check_conversation(server: &Server, n: u32, completed: usize, task_exists: bool) {
    let conversation: Value = server.get(&format!("/api/conversations/conv_{n}")).await.json().await.unwrap();
    let messages = conversation["messages"].as_array().cloned().unwrap_or_default();
    assert_eq!(messages.len() % 2, 0, "an incomplete turn: {messages:?}");
    let turns = messages.len() / 2;
    assert!(turns == completed || turns == completed + 1, "{turns} turns are stored, {completed} were completed");
    for (turn, pair) in messages.chunks(2).enumerate() {
        assert_eq!((&pair[0]["role"], &pair[1]["role"]), (&json!("user"), &json!("assistant")));
        assert_eq!(pair[0]["content"], script(n)[turn]);
        let called = ["add_task", "list_tasks", "delete_task"][turn];
        assert_eq!(pair[1]["tool_calls"].as_array().unwrap().last().unwrap()["tool_name"], called);
    }
    let pending = messages.last().map(|message| message["pending"].is_object());
    match turns {
        0 => assert!(!task_exists),
        1 => assert!(task_exists),
        2 => assert!(task_exists && pending == Some(true), "the deletion is pending"),
        _ => assert!(!task_exists && pending == Some(false), "the task is deleted and no call is pending"),
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

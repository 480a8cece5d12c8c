//! Tests of recurring tasks: completing one, the reply, and undoing it. The clock is at Sunday, December 21, 2025.

use std::time::Duration;

use model::UserId;
use reqwest::Method;
use serde_json::{Value, json};

use crate::TestServer;

async fn response(server: &TestServer, input: &str) -> String {
    server.clock.advance(Duration::from_secs(1));
    server.chat(input).await["response"].as_str().unwrap().to_owned()
}

async fn open_tasks(server: &TestServer) -> Vec<(String, Value)> {
    let answer =
        server.client.get(format!("{}/api/tasks", server.url)).send().await.unwrap().json::<Value>().await.unwrap();
    let tasks = answer["tasks"].as_array().unwrap().iter();
    tasks.map(|task| (task["title"].as_str().unwrap().to_owned(), task["due_date"].clone())).collect()
}

#[tokio::test]
async fn the_reply_names_the_next_due_date() {
    // TASK-1, AGENT-6
    let server = TestServer::offline().await;
    response(&server, "add water the plants every day").await;
    let done = "Great! I've marked 'water the plants' as complete. It's due again tomorrow (Mon 22 Dec).";
    assert_eq!(response(&server, "mark water the plants as done").await, done);
    assert_eq!(open_tasks(&server).await, [("water the plants".to_owned(), json!("2025-12-22"))]);
    // AGENT-13: one step undoes the completion and the new task.
    assert_eq!(response(&server, "undo that").await, "Undone! 'water the plants' is open again.");
    assert_eq!(open_tasks(&server).await, [("water the plants".to_owned(), json!(null))]);

    response(&server, "add send the timesheet every Friday at 5pm").await;
    let done = "Great! I've marked 'send the timesheet' as complete. It's due again on Fri 2 Jan 2026 at 5pm.";
    assert_eq!(response(&server, "I sent the timesheet").await, done);
    // "It" now refers to the next task.
    let moved = "Updated! 'send the timesheet' now has the due date Mon 5 Jan 2026 at 5pm.";
    assert_eq!(response(&server, "move it to January 5").await, moved);
    let due = json!("2026-01-05T17:00:00+00:00");
    assert_eq!(open_tasks(&server).await[1], ("send the timesheet".to_owned(), due));
}

#[tokio::test]
async fn completing_several_recurring_tasks_adds_each_next_one() {
    // AGENT-7, AGENT-13
    let server = TestServer::offline().await;
    for title in ["water the plants every day", "take out the bins every Monday", "buy milk"] {
        response(&server, &format!("add {title}")).await;
    }
    assert!(response(&server, "complete all my tasks").await.ends_with("Confirm with 'yes complete 3 tasks'."));
    let done = "Great! I've marked 3 tasks as complete. Due again: 'water the plants' tomorrow (Mon 22 Dec) and 'take \
                out the bins' on Mon 29 Dec.";
    assert_eq!(response(&server, "yes complete 3 tasks").await, done);
    assert_eq!(open_tasks(&server).await.len(), 2);
    assert_eq!(response(&server, "undo that").await, "Undone! 3 tasks are open again.");
    assert_eq!(server.titles(UserId::LOCAL).await.len(), 3);
}

#[tokio::test]
async fn the_reply_announces_the_last_occurrence() {
    let server = TestServer::offline().await;
    let draft = json!({"title": "take the pills", "due_date": "2025-12-21", "recurrence": "FREQ=DAILY;COUNT=2"});
    server.post("/api/tasks", &draft).await;
    let done = "Great! I've marked 'take the pills' as complete.";
    assert_eq!(response(&server, "complete the pills").await, format!("{done} It's due again tomorrow (Mon 22 Dec)."));
    assert_eq!(response(&server, "complete the pills").await, format!("{done} That was the last time."));
    assert!(open_tasks(&server).await.is_empty());
}

#[tokio::test]
async fn the_api_returns_the_next_task() {
    // TASK-1
    let server = TestServer::offline().await;
    let draft = json!({"title": "rent", "due_date": "2026-01-31", "recurrence": "FREQ=MONTHLY;BYMONTHDAY=-1", "tags": ["home"]});
    let task: Value = server.post("/api/tasks", &draft).await.json().await.unwrap();
    let path = format!("/api/tasks/{}", task["id"].as_str().unwrap());
    let done: Value = server.post(&format!("{path}/complete"), &json!({})).await.json().await.unwrap();
    assert_eq!((&done["id"], &done["status"]), (&task["id"], &json!("completed")));
    let next = &done["next_task"];
    assert_eq!(
        (&next["due_date"], &next["status"], &next["tags"]),
        (&json!("2026-02-28"), &json!("pending"), &task["tags"])
    );
    assert_eq!(
        next.as_object().unwrap().keys().collect::<Vec<_>>(),
        task.as_object().unwrap().keys().collect::<Vec<_>>()
    );
    let again: Value = server.post(&format!("{path}/complete"), &json!({})).await.json().await.unwrap();
    assert_eq!(again.get("next_task"), None, "the task was completed before");

    // PATCH and bulk completion do the same.
    let url = format!("{}/api/tasks/{}", server.url, next["id"].as_str().unwrap());
    let patched = server.client.request(Method::PATCH, url).json(&json!({"status": "completed"})).send().await.unwrap();
    let patched: Value = patched.json().await.unwrap();
    assert_eq!(patched["next_task"]["due_date"], "2026-03-31");
    let ids = json!({"ids": [patched["next_task"]["id"]]});
    let several: Value = server.post("/api/tasks/complete", &ids).await.json().await.unwrap();
    assert_eq!((&several["count"], &several["tasks"][0]["next_task"]["due_date"]), (&json!(1), &json!("2026-04-30")));
}

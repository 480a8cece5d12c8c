//! `/api/tasks` over HTTP.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::home;

#[tokio::test]
async fn a_task_can_be_created_changed_completed_deleted_and_restored() {
    // AGENT-13, TASK-1
    let home = home();
    let server = home.serve();
    let draft = json!({"title": "pay rent", "due_date": "2026-01-31T15:00", "priority": "HIGH", "tags": ["#home"]});
    let created = server.post("/api/tasks", &draft).await;
    assert_eq!(created.status(), StatusCode::CREATED);
    let task: Value = created.json().await.unwrap();
    let fields = "id title description status priority due_date recurrence tags created_at updated_at completed_at";
    let names: Vec<_> = fields.split(' ').collect();
    assert_eq!(task.as_object().unwrap().keys().collect::<Vec<_>>(), names);
    assert_eq!(task["due_date"], "2026-01-31T15:00:00+00:00", "a time without an offset uses the zone of the user");
    assert_eq!((&task["priority"], &task["tags"]), (&json!("high"), &json!(["home"])));

    let path = format!("/api/tasks/{}", task["id"].as_str().unwrap());
    assert_eq!(server.get(&path).await.json::<Value>().await.unwrap(), task);
    let patch = json!({"title": "pay the rent", "due_date": null});
    let patched =
        server.request(Method::PATCH, &path).json(&patch).send().await.unwrap().json::<Value>().await.unwrap();
    assert_eq!((&patched["title"], &patched["due_date"]), (&json!("pay the rent"), &json!(null)));
    let done = server.request(Method::POST, &format!("{path}/complete")).send().await.unwrap();
    assert_eq!(done.json::<Value>().await.unwrap()["status"], "completed");
    assert_eq!(server.request(Method::DELETE, &path).send().await.unwrap().status(), StatusCode::NO_CONTENT);
    assert_eq!(server.get(&path).await.status(), StatusCode::NOT_FOUND);

    let mut undone = Vec::new();
    for _ in 0..4 {
        let undo = server.request(Method::POST, "/api/tasks/undo").send().await.unwrap();
        undone.push(undo.json::<Value>().await.unwrap()["undone"].clone());
    }
    assert_eq!(undone, ["deleted", "completed", "updated", "created"]);
    let undo = server.request(Method::POST, "/api/tasks/undo").send().await.unwrap();
    assert_eq!(undo.status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn pages_contain_every_task_once() {
    let home = home();
    let server = home.serve();
    for n in 0..7 {
        server.post("/api/tasks", &json!({"title": format!("{n}")})).await;
    }
    let mut seen = Vec::new();
    let mut cursor = String::new();
    loop {
        let page: Value = server.get(&format!("/api/tasks?limit=3{cursor}")).await.json().await.unwrap();
        let tasks = page["tasks"].as_array().unwrap();
        assert_eq!(page["count"], json!(tasks.len()));
        seen.extend(tasks.iter().map(|task| task["title"].as_str().unwrap().to_owned()));
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(seen, ["0", "1", "2", "3", "4", "5", "6"]);
}

#[tokio::test]
async fn a_repeated_request_is_executed_once() {
    // CHAT-6
    let home = home();
    let server = home.serve();
    let send = async |key: &str, title: &str| {
        let request = server.request(Method::POST, "/api/tasks").header("Idempotency-Key", key);
        request.json(&json!({"title": title})).send().await.unwrap()
    };
    let first = send("key-1", "once").await;
    assert_eq!(first.status(), 201);
    let first: Value = first.json().await.unwrap();
    let second = send("key-1", "once").await;
    assert_eq!(
        (second.status(), second.headers()["idempotent-replayed"].as_bytes()),
        (StatusCode::CREATED, &b"true"[..])
    );
    assert_eq!(second.json::<Value>().await.unwrap(), first);
    let other = send("key-1", "something else").await;
    assert_eq!(other.status(), 422);
    assert_eq!(other.json::<Value>().await.unwrap()["errors"][0]["field"], "Idempotency-Key");
    // Of concurrent requests, one is executed and all get its response.
    let all = futures::future::join_all((0..20).map(|_| send("key-2", "together"))).await;
    let mut ids = Vec::new();
    for answer in all {
        assert_eq!(answer.status(), 201);
        ids.push(answer.json::<Value>().await.unwrap()["id"].clone());
    }
    ids.dedup();
    assert_eq!(ids.len(), 1);
    assert_eq!(server.get("/api/tasks").await.json::<Value>().await.unwrap()["count"], 2);
}

#[tokio::test]
async fn a_repeated_erasure_is_executed_once() {
    let home = home();
    let server = home.serve();
    let erase = || server.request(Method::DELETE, "/api/data").header("Idempotency-Key", "erase-1").send();
    assert_eq!(erase().await.unwrap().status(), 204);
    server.post("/api/tasks", &json!({"title": "new"})).await;
    let again = erase().await.unwrap();
    assert_eq!((again.status().as_u16(), again.headers()["idempotent-replayed"].as_bytes()), (204, &b"true"[..]));
    assert_eq!(server.get("/api/tasks").await.json::<Value>().await.unwrap()["count"], 1);
}

#[tokio::test]
async fn due_dates_use_the_time_zone_of_the_user() {
    // OPS-3: zoneinfo
    let home = crate::home_with_auth();
    let server = home.serve();
    let token = crate::token(&home, crate::ALICE, &["--time-zone", "Asia/Tokyo"]);
    let create = server.request(Method::POST, "/api/tasks").bearer_auth(&token);
    let task: Value =
        create.json(&json!({"title": "a", "due_date": "2026-01-31T15:00"})).send().await.unwrap().json().await.unwrap();
    assert_eq!(task["due_date"], "2026-01-31T15:00:00+09:00");
}

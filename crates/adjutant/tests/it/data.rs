//! Backup, restore, export, import and erase, with and without a server (OPS-7).

use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::{Value, json};
use testkit::app::Home;
use tokio::io::AsyncWriteExt;

use crate::{ALICE, home, home_with_auth, token};

fn titles(home: &Home) -> Vec<String> {
    let body = home.run(&["tasks", "list", "--json"]).json();
    body["tasks"].as_array().unwrap().iter().map(|task| task["title"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_backup_is_restored_with_and_without_a_server() {
    // OPS-6, OPS-7
    let home = home();
    home.run(&["tasks", "add", "before"]).ok();
    for served in [false, true] {
        let server = served.then(|| home.serve());
        home.run(&["backup", "all.jsonl"]).ok();
        home.run(&["tasks", "add", "after"]).ok();
        assert_eq!(home.run(&["restore", "all.jsonl"]).code(), 4, "a confirmation is required");
        assert_eq!(titles(&home).len(), 2);
        home.run(&["restore", "all.jsonl", "--yes"]).ok();
        assert_eq!(titles(&home), ["before"]);
        drop(server);
    }
    let text = std::fs::read_to_string(home.path().join("all.jsonl")).unwrap();
    std::fs::write(home.path().join("half.jsonl"), &text[..text.len() / 2]).unwrap();
    let refused = home.run(&["restore", "half.jsonl", "--yes"]);
    assert_eq!((refused.code(), titles(&home)), (2, vec!["before".to_owned()]), "{}", refused.err());
}

#[test]
fn a_backup_does_not_follow_prepared_files() {
    // OPS-7
    use std::os::unix::fs::PermissionsExt;
    let home = home();
    home.run(&["tasks", "add", "secret"]).ok();
    let victim = home.path().join("victim");
    std::fs::write(&victim, "untouched").unwrap();
    std::os::unix::fs::symlink(&victim, home.path().join("all.jsonl")).unwrap();
    std::os::unix::fs::symlink(&victim, home.path().join("all.jsonl.part")).unwrap();
    for command in ["backup", "export"] {
        home.run(&[command, "all.jsonl"]).ok();
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "untouched");
        let written = std::fs::symlink_metadata(home.path().join("all.jsonl")).unwrap();
        assert!(written.is_file(), "the link is replaced");
        assert_eq!(written.permissions().mode() & 0o777, 0o600);
    }
    let failed = home.run(&["backup", "missing/all.jsonl"]);
    assert_ne!(failed.code(), 0);
    let left = std::fs::read_dir(home.path()).unwrap().flatten();
    assert!(left.into_iter().all(|entry| !entry.file_name().to_string_lossy().starts_with(".adjutant-")));
}

#[tokio::test]
async fn erased_data_is_not_left_in_the_files() {
    // OPS-7
    let home = home();
    let server = home.serve();
    for number in 0..50 {
        let body = json!({"title": format!("ERASE-QUOKKA {number}"), "description": "QUOKKA ".repeat(100)});
        assert_eq!(server.post("/api/tasks", &body).await.status(), 201);
    }
    server.post("/chat", &json!({"input": "add a task to feed the ERASE-QUOKKA"})).await;
    let occurrences = || -> usize {
        let files = std::fs::read_dir(home.path()).unwrap().flatten().filter(|entry| entry.path().is_file());
        let contents = files.map(|entry| String::from_utf8_lossy(&std::fs::read(entry.path()).unwrap()).into_owned());
        contents.map(|content| content.matches("QUOKKA").count()).sum()
    };
    assert!(occurrences() > 0);
    assert_eq!(server.request(Method::DELETE, "/api/data").send().await.unwrap().status(), 204);
    let deadline = Instant::now() + Duration::from_secs(20);
    while occurrences() > 0 && Instant::now() < deadline {
        // A later write repeats a truncation that a reader has prevented.
        server.post("/api/tasks", &json!({"title": "after"})).await;
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(occurrences(), 0);
}

#[tokio::test]
async fn a_revoked_token_stays_revoked_after_a_restore() {
    // OPS-3
    let home = home_with_auth();
    let server = home.serve();
    let admin = token(&home, ALICE, &["--scope", "adjutant:admin"]);
    let lost = token(&home, ALICE, &[]);
    home.run(&["backup", "all.jsonl", "--token", &admin]).ok();
    home.run(&["token", "revoke", &lost, "--token", &admin]).ok();
    home.run(&["restore", "all.jsonl", "--yes", "--token", &admin]).ok();
    assert_eq!(crate::auth::status(&server, &lost).await, 401);
    assert_eq!(crate::auth::status(&server, &admin).await, 200);
}

#[tokio::test]
async fn stalled_downloads_do_not_block_other_requests() {
    let home = home();
    let server = home.serve();
    let task = |n: u32| {
        let id = format!("00000000-0000-7000-8000-{n:012}");
        let time = "2026-01-01T00:00:00Z";
        json!({"id": id, "title": "t", "description": "x".repeat(1000), "status": "pending", "priority": "low", "tags": [],
               "created_at": time, "updated_at": time})
    };
    for part in 0..4 {
        let tasks: Vec<_> = (0..2000).map(|n| task(part * 2000 + n)).collect();
        assert_eq!(server.post("/api/data", &json!({"adjutant_export": 1, "tasks": tasks})).await.status(), 200);
    }
    let mut stalled = Vec::new();
    for _ in 0..6 {
        let mut socket = tokio::net::TcpStream::connect(server.url.trim_start_matches("http://")).await.unwrap();
        socket.write_all(b"GET /api/data HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
        stalled.push(socket);
    }
    for _ in 0..5 {
        assert_eq!(server.get("/api/tasks?limit=1").await.status(), 200);
        assert_eq!(server.get("/health/ready").await.status(), 200);
    }
}

#[tokio::test]
async fn a_sqlite_backup_can_be_restored_to_postgresql() {
    // OPS-7
    let home = home();
    home.run(&["tasks", "add", "moves along"]).ok();
    home.run(&["backup", "all.jsonl"]).ok();
    let url = testkit::postgres::create_database().await.unwrap();
    home.run(&["restore", "all.jsonl", "--yes", "--database-url", &url]).ok();
    assert!(home.run(&["tasks", "list", "--database-url", &url]).ok().contains("moves along"));
}

#[test]
fn an_export_can_be_imported_without_duplicates() {
    // OPS-7
    let from = home_with_auth();
    let alice = token(&from, ALICE, &[]);
    from.run(&["tasks", "add", "alice's", "--tag", "a", "--token", &alice]).ok();
    from.run(&["tasks", "add", "the local user's"]).ok();
    from.run(&["export", "mine.json", "--token", &alice]).ok();
    let text = std::fs::read_to_string(from.path().join("mine.json")).unwrap();
    assert!(text.contains("alice's") && !text.contains("the local user's"));

    let to = home();
    let _server = to.serve();
    let file = from.path().join("mine.json").display().to_string();
    for (added, skipped) in [(1, 0), (0, 1)] {
        let imported = to.run(&["import", &file, "--json"]).json();
        assert_eq!(imported["tasks"], json!({"added": added, "skipped": skipped}));
    }
    let again: Value = serde_json::from_str(&to.run(&["export"]).ok()).unwrap();
    let first: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(again["tasks"], first["tasks"]);
    assert_eq!(to.run(&["tasks", "undo"]).ok(), "'alice's' is removed again\n", "an import is one undo step");
    to.run(&["import", &file]).ok();
    to.run(&["erase", "--yes"]).ok();
    assert!(titles(&to).is_empty());
}

#[test]
fn an_import_with_an_invalid_entry_changes_nothing() {
    // OPS-7
    let home = home();
    home.run(&["tasks", "add", "good"]).ok();
    let mut document = home.run(&["export"]).json();
    let mut bad = document["tasks"][0].clone();
    bad["id"] = json!("0190a6d2-7c00-7000-8000-000000000000");
    bad["title"] = json!("");
    let mut new = bad.clone();
    new["id"] = json!("0190a6d2-7c00-7000-8000-000000000001");
    new["title"] = json!("new");
    document["tasks"].as_array_mut().unwrap().extend([new, bad]);
    std::fs::write(home.path().join("doc.json"), document.to_string()).unwrap();
    let refused = home.run(&["import", "doc.json", "--json"]);
    assert_eq!(refused.code(), 2);
    assert_eq!(refused.json()["errors"][0]["field"], "tasks[2].title");
    assert_eq!(titles(&home), ["good"]);
}

//! Faults of the database files, and the state of the files after a stop.

use std::path::Path;

use reqwest::StatusCode;
use serde_json::{Value, json};
use testkit::app::{Home, Server};

use crate::home;

/// Returns the titles of the tasks in a copy of the database file, without its WAL.
fn titles_in_copy(home: &Home) -> String {
    let copy = crate::home();
    std::fs::create_dir_all(copy.path()).unwrap();
    std::fs::copy(database(home), copy.path().join("adjutant.db")).unwrap();
    copy.run(&["tasks", "list"]).ok()
}

fn database(home: &Home) -> std::path::PathBuf {
    home.path().join("adjutant.db")
}

async fn add(server: &Server, title: &str) -> (StatusCode, Value) {
    let answer = server.post("/api/tasks", &json!({ "title": title })).await;
    (answer.status(), answer.json().await.unwrap())
}

#[tokio::test]
async fn the_database_file_is_complete_after_a_stop() {
    // OPS-4
    let home = home();
    for round in 0..4 {
        let mut server = home.serve();
        for task in ["a", "b", "c"] {
            assert_eq!(add(&server, &format!("{task}{round}")).await.0, StatusCode::CREATED);
        }
        assert_eq!(server.stop(), 0);
        let titles = titles_in_copy(&home);
        for task in ["a", "b", "c"] {
            assert!(titles.contains(&format!("{task}{round}")), "{titles}");
        }
    }
    home.run(&["tasks", "add", "by a command"]).ok();
    assert!(titles_in_copy(&home).contains("by a command"), "a command closes the database too");
}

#[tokio::test]
async fn a_removed_database_refuses_writes_and_names_the_cause() {
    // OPS-2, TASK-5
    let cause = "the database file was removed or replaced while adjutant uses it; restart adjutant";
    let wal = |home: &Home| home.path().join("adjutant.db-wal");
    for remove in [database, wal] {
        let home = home();
        let mut server = home.serve();
        assert_eq!(add(&server, "kept").await.0, StatusCode::CREATED);
        let health = server.get("/health").await;
        assert_eq!(health.status(), StatusCode::OK);
        remove_file(&remove(&home));
        let (status, problem) = add(&server, "refused").await;
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{problem}");
        assert!(problem["detail"].as_str().unwrap().contains(cause), "{problem}");
        let health = server.get("/health").await;
        assert_eq!(health.status(), StatusCode::SERVICE_UNAVAILABLE);
        let health: Value = health.json().await.unwrap();
        assert!(health["dependencies"]["database"]["error"].as_str().unwrap().contains(cause), "{health}");
        assert_eq!(server.get("/health/ready").await.status(), StatusCode::SERVICE_UNAVAILABLE);
        let command = home.run(&["tasks", "add", "refused too"]);
        assert!(command.code() != 0 && command.err().contains(cause), "{}", command.err());
        assert!(home.run(&["doctor"]).out().contains(cause));
        server.stop();
    }
}

fn remove_file(path: &Path) {
    std::fs::remove_file(path).unwrap();
}

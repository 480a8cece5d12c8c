//! Agents, executions and sessions over HTTP, with real processes.

mod agents;
mod assistant;
mod permissions;
mod restart;
mod runs;
mod schedules;
mod secrets;
mod sessions;

use std::time::Duration;

use serde_json::{Value, json};
use testkit::app::Server;

/// Runs an agent to its end and gives the execution with its output.
pub(crate) async fn run(server: &Server, agent: &str, input: &str) -> Value {
    let body = json!({"input": input, "wait": true});
    let answer = server.post(&format!("/api/agents/{agent}/executions"), &body).await;
    assert_eq!(answer.status(), 200, "{}", answer.text().await.unwrap());
    answer.json().await.unwrap()
}

/// Begins a run and gives its id.
pub(crate) async fn begin(server: &Server, agent: &str, input: &str) -> String {
    let answer = server.post(&format!("/api/agents/{agent}/executions"), &json!({"input": input})).await;
    assert_eq!(answer.status(), 202, "{}", answer.text().await.unwrap());
    let execution: Value = answer.json().await.unwrap();
    execution["id"].as_str().unwrap().to_owned()
}

pub(crate) async fn get(server: &Server, path: &str) -> Value {
    let answer = server.get(path).await;
    assert_eq!(answer.status(), 200, "{path}");
    answer.json().await.unwrap()
}

/// Waits until the execution is as it should be.
pub(crate) async fn until(server: &Server, id: &str, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    for _ in 0..1000 {
        let execution = get(server, &format!("/api/executions/{id}")).await;
        if wanted(&execution) {
            return execution;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{id} is never {what}: {}", get(server, &format!("/api/executions/{id}")).await);
}

/// How many processes have this text in their command line.
pub(crate) fn processes(text: &str) -> usize {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = entries.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines.filter(|line| String::from_utf8_lossy(line).contains(text)).count()
}

/// Waits until none is left.
pub(crate) async fn gone(text: &str) {
    for _ in 0..500 {
        if processes(text) == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{} processes with {text} are left", processes(text));
}

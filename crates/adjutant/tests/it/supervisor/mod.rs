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

/// Runs an agent. Returns the finished execution with its output.
pub(crate) async fn run(server: &Server, agent: &str, input: &str) -> Value {
    let body = json!({"input": input, "wait": true});
    let answer = server.post(&format!("/api/agents/{agent}/executions"), &body).await;
    assert_eq!(answer.status(), 200, "{}", answer.text().await.unwrap());
    answer.json().await.unwrap()
}

/// Starts an execution. Returns its id.
pub(crate) async fn start(server: &Server, agent: &str, input: &str) -> String {
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

/// Waits until a condition holds for an execution. Returns the execution.
pub(crate) async fn wait_until(
    server: &Server,
    id: &str,
    description: &str,
    condition: impl Fn(&Value) -> bool,
) -> Value {
    for _ in 0..1000 {
        let execution = get(server, &format!("/api/executions/{id}")).await;
        if condition(&execution) {
            return execution;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{id} is never {description}: {}", get(server, &format!("/api/executions/{id}")).await);
}

/// Returns the number of processes with this text in their command line.
pub(crate) fn count_processes(text: &str) -> usize {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = entries.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines.filter(|line| String::from_utf8_lossy(line).contains(text)).count()
}

/// Waits until no process has this text in its command line.
pub(crate) async fn wait_for_exit(text: &str) {
    for _ in 0..500 {
        if count_processes(text) == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{} processes with {text} are left", count_processes(text));
}

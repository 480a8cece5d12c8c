//! Runs of remote agents.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{TOKEN, local_home, local_home_with, remote_home, wait_for_state};
use crate::home;

#[tokio::test(flavor = "multi_thread")]
async fn remote_agents_run_like_local_agents() {
    // A2A-1, SUP-1
    let remote = remote_home();
    let remote = remote.serve();
    let local = local_home(&remote);
    // With and without streaming, and with a token by reference.
    for agent in ["far-cat", "far-plain", "opened"] {
        assert_eq!(local.run(&["run", agent, "two\nlines"]).ok(), "two\nlines", "{agent}");
    }
    let failed = local.run(&["run", "far-broken", "x"]);
    assert_eq!(failed.code(), 1, "{}", failed.err());
    let result = local.run(&["run", "far-broken", "x", "--json"]).json();
    assert_eq!((&result["status"], &result["error_category"]), (&json!("failure"), &json!("agent_error")), "{result}");
    let listed = local.run(&["agents", "list"]).ok();
    assert!(
        listed.contains(&format!("far-cat\tfar-cat\tenabled\tread-only\ttask\t{}/agents/cat", remote.url)),
        "{listed}"
    );
    let checked = local.run(&["agents", "check", "far-cat", "opened"]).ok();
    assert!(checked.contains("ok\tfar-cat\tcat ") && checked.contains("JSONRPC 1.0"), "{checked}");
    // Schedules and the assistant run remote agents like local ones.
    let server = local_home_with(
        &remote,
        "[[schedules]]\nname = \"often\"\nagent_id = \"far-cat\"\nevery = \"1s\"\ninput_parameters = { input = \"tick\" }\n",
    );
    let server = server.serve();
    let run = wait_for_state(&server, "far-cat", "completed").await;
    assert_eq!(run["input"], "tick");
    let reply = server.post("/chat", &json!({"input": "run far-plain with hello"})).await.text().await.unwrap();
    wait_for_state(&server, "far-plain", "completed").await;
    assert!(!reply.contains(TOKEN) && !server.raw_log().contains(TOKEN));
}

#[tokio::test(flavor = "multi_thread")]
async fn unreachable_and_unauthorized_agents_are_reported() {
    // A2A-1, A2A-2
    let remote = remote_home();
    let remote = remote.serve();
    let local = local_home(&remote);
    let unauthorized = local.run(&["run", "shut", "x", "--json"]).json();
    assert_eq!(
        (&unauthorized["status"], &unauthorized["error_category"]),
        (&json!("failure"), &json!("permanent")),
        "{unauthorized}"
    );
    assert!(!unauthorized.to_string().contains("another-token"), "{unauthorized}");
    let without_token = home().with_config(
        "[[agents]]\nid = \"a\"\ncard_url = \"http://127.0.0.1:1\"\ncard_auth = { token = \"env:NONE\" }\n",
    );
    let ran = without_token.run(&["run", "a", "x", "--json"]).json();
    assert_eq!(ran["error_category"], "permanent", "{ran}");
    assert!(ran["error"].as_str().unwrap().contains("NONE"), "{ran}");
    let unreachable = home().with_config("[[agents]]\nid = \"a\"\ncard_url = \"http://127.0.0.1:1\"\n");
    let ran = unreachable.run(&["run", "a", "x", "--json"]).json();
    assert_eq!((&ran["status"], &ran["error_category"]), (&json!("failure"), &json!("transient")), "{ran}");
    let checked = unreachable.run(&["agents", "check"]);
    assert_eq!(checked.code(), 1);
    assert!(checked.out().contains("!!\ta\tthe agent cannot be reached"), "{}", checked.out());
    let wrong =
        unreachable.run(&["agents", "add", "--id", "b", "--card-url", "http://x.example", "--card-token", "secret"]);
    assert_eq!(wrong.code(), 2);
    assert!(wrong.err().contains("card_auth.token"), "{}", wrong.err());
    let added =
        unreachable.run(&["agents", "add", "--id", "b", "--card-url", "http://x.example/", "--card-token", "env:PATH"]);
    assert_eq!(added.ok(), "Added 'b' (http://x.example/, read-only)\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn cancellation_and_timeout_stop_the_remote_task() {
    // A2A-1, SUP-7
    let remote = remote_home();
    let remote = remote.serve();
    let local = local_home(&remote);
    let server = local.serve();
    let run = server.post("/api/agents/far-slow/executions", &json!({"input": "x"})).await;
    let id = run.json::<Value>().await.unwrap()["id"].as_str().unwrap().to_owned();
    wait_for_state(&remote, "slow", "running").await;
    // Output arrives while the agent runs.
    let started = Instant::now();
    loop {
        let events = server.get(&format!("/api/executions/{id}/events?follow=false")).await.text().await.unwrap();
        if events.contains("begun") {
            break;
        }
        assert!(started.elapsed() < Duration::from_secs(20), "{events}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    server.post(&format!("/api/executions/{id}/cancel"), &json!({})).await;
    wait_for_state(&server, "far-slow", "cancelled").await;
    wait_for_state(&remote, "slow", "cancelled").await;
    let late = local.run(&["run", "far-slow", "x", "--timeout", "1", "--json"]);
    assert_eq!(late.code(), 124, "{}{}", late.out(), late.err());
    wait_for_state(&remote, "slow", "cancelled").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn questions_of_remote_agents_can_be_answered() {
    // A2A-1
    let remote = remote_home();
    for title in ["buy milk", "call Anna"] {
        remote.run(&["tasks", "add", title]).ok();
    }
    let served = remote.serve();
    let local = local_home(&served);
    let server = local.serve();
    let url = format!("{}/agents/far-assistant", server.url);
    let asked = local.run(&["a2a", "send", &url, "delete all my tasks", "--json"]);
    assert_eq!(asked.code(), 4, "{}{}", asked.out(), asked.err());
    let task = asked.json()["task"].clone();
    assert_eq!(task["status"]["state"], "TASK_STATE_INPUT_REQUIRED", "{task}");
    let id = task["id"].as_str().unwrap();
    let question = asked.out();
    assert!(question.contains("'yes delete 2 tasks'"), "{question}");
    let answered = local.run(&["a2a", "send", &url, "yes delete 2 tasks", "--task", id]);
    assert_eq!(answered.code(), 0, "{}{}{question}", answered.out(), answered.err());
    let remaining: Value = served.get("/api/tasks").await.json().await.unwrap();
    assert_eq!(remaining["count"], 0, "{remaining} {}", answered.out());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_outcome_is_fetched_after_the_remote_server_restarts() {
    // A2A-1
    let remote_home = remote_home();
    let remote = remote_home.serve();
    let local = local_home(&remote);
    let server = local.serve();
    server.post("/api/agents/far-slow/executions", &json!({"input": "x"})).await;
    wait_for_state(&remote, "slow", "running").await;
    wait_for_state(&server, "far-slow", "running").await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    let address = remote.url.trim_start_matches("http://").to_owned();
    drop(remote);
    let remote = remote_home.serve_with(&["--listen", &address]);
    let ended = wait_for_state(&server, "far-slow", "failed").await;
    assert_eq!(ended["error_category"], "agent_error", "{ended}");
    wait_for_state(&remote, "slow", "failed").await;
}

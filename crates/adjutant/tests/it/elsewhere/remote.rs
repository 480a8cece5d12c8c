//! Runs of agents that are elsewhere.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{TOKEN, becomes, far, near, near_with};
use crate::home;

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_carried_out_elsewhere_like_any_other() {
    // A2A-1, SUP-1
    let there = far();
    let there = there.serve();
    let here = near(&there);
    // By streaming and without, and with a token by reference.
    for agent in ["far-cat", "far-plain", "opened"] {
        assert_eq!(here.run(&["run", agent, "two\nlines"]).ok(), "two\nlines", "{agent}");
    }
    let failed = here.run(&["run", "far-broken", "x"]);
    assert_eq!(failed.code(), 1, "{}", failed.err());
    let result = here.run(&["run", "far-broken", "x", "--json"]).json();
    assert_eq!((&result["status"], &result["error_category"]), (&json!("failure"), &json!("agent_error")), "{result}");
    let listed = here.run(&["agents", "list"]).ok();
    assert!(
        listed.contains(&format!("far-cat\tfar-cat\tenabled\tread-only\ttask\t{}/agents/cat", there.url)),
        "{listed}"
    );
    let checked = here.run(&["agents", "check", "far-cat", "opened"]).ok();
    assert!(checked.contains("ok\tfar-cat\tcat ") && checked.contains("JSONRPC 1.0"), "{checked}");
    // A schedule and the tool of the assistant know no difference.
    let server = near_with(
        &there,
        "[[schedules]]\nname = \"often\"\nagent_id = \"far-cat\"\nevery = \"1s\"\ninput_parameters = { input = \"tick\" }\n",
    );
    let server = server.serve();
    let run = becomes(&server, "far-cat", "completed").await;
    assert_eq!(run["input"], "tick");
    let said = server.post("/chat", &json!({"input": "run far-plain with hello"})).await.text().await.unwrap();
    becomes(&server, "far-plain", "completed").await;
    assert!(!said.contains(TOKEN) && !server.raw_log().contains(TOKEN));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_cannot_be_reached_or_does_not_let_us_in_is_told() {
    // A2A-1, A2A-2
    let there = far();
    let there = there.serve();
    let here = near(&there);
    let shut = here.run(&["run", "shut", "x", "--json"]).json();
    assert_eq!((&shut["status"], &shut["error_category"]), (&json!("failure"), &json!("permanent")), "{shut}");
    assert!(!shut.to_string().contains("another-token"), "{shut}");
    let missing = home().configured(
        "[[agents]]\nid = \"a\"\ncard_url = \"http://127.0.0.1:1\"\ncard_auth = { token = \"env:NONE\" }\n",
    );
    let ran = missing.run(&["run", "a", "x", "--json"]).json();
    assert_eq!(ran["error_category"], "permanent", "{ran}");
    assert!(ran["error"].as_str().unwrap().contains("NONE"), "{ran}");
    let nobody = home().configured("[[agents]]\nid = \"a\"\ncard_url = \"http://127.0.0.1:1\"\n");
    let ran = nobody.run(&["run", "a", "x", "--json"]).json();
    assert_eq!((&ran["status"], &ran["error_category"]), (&json!("failure"), &json!("transient")), "{ran}");
    let checked = nobody.run(&["agents", "check"]);
    assert_eq!(checked.code(), 1);
    assert!(checked.out().contains("!!\ta\tthe agent cannot be reached"), "{}", checked.out());
    let wrong = nobody.run(&["agents", "add", "--id", "b", "--card-url", "http://x.example", "--card-token", "secret"]);
    assert_eq!(wrong.code(), 2);
    assert!(wrong.err().contains("card_auth.token"), "{}", wrong.err());
    let added =
        nobody.run(&["agents", "add", "--id", "b", "--card-url", "http://x.example/", "--card-token", "env:PATH"]);
    assert_eq!(added.ok(), "Added 'b' (http://x.example/, read-only)\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_stopped_here_is_stopped_there() {
    // A2A-1, SUP-7
    let there = far();
    let there = there.serve();
    let here = near(&there);
    let server = here.serve();
    let run = server.post("/api/agents/far-slow/executions", &json!({"input": "x"})).await;
    let id = run.json::<Value>().await.unwrap()["id"].as_str().unwrap().to_owned();
    becomes(&there, "slow", "running").await;
    // What it says comes while it works.
    let begun = Instant::now();
    loop {
        let events = server.get(&format!("/api/executions/{id}/events?follow=false")).await.text().await.unwrap();
        if events.contains("begun") {
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "{events}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    server.post(&format!("/api/executions/{id}/cancel"), &json!({})).await;
    becomes(&server, "far-slow", "cancelled").await;
    becomes(&there, "slow", "cancelled").await;
    let late = here.run(&["run", "far-slow", "x", "--timeout", "1", "--json"]);
    assert_eq!(late.code(), 124, "{}{}", late.out(), late.err());
    becomes(&there, "slow", "cancelled").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_comes_here_and_its_answer_goes_there() {
    // A2A-1
    let there = far();
    for title in ["buy milk", "call Anna"] {
        there.run(&["tasks", "add", title]).ok();
    }
    let served = there.serve();
    let here = near(&served);
    let server = here.serve();
    let url = format!("{}/agents/far-assistant", server.url);
    let asked = here.run(&["a2a", "send", &url, "delete all my tasks", "--json"]);
    assert_eq!(asked.code(), 4, "{}{}", asked.out(), asked.err());
    let task = asked.json()["task"].clone();
    assert_eq!(task["status"]["state"], "TASK_STATE_INPUT_REQUIRED", "{task}");
    let id = task["id"].as_str().unwrap();
    let question = asked.out();
    assert!(question.contains("'yes delete 2 tasks'"), "{question}");
    let answered = here.run(&["a2a", "send", &url, "yes delete 2 tasks", "--task", id]);
    assert_eq!(answered.code(), 0, "{}{}{question}", answered.out(), answered.err());
    let left: Value = served.get("/api/tasks").await.json().await.unwrap();
    assert_eq!(left["count"], 0, "{left} {}", answered.out());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_comes_back_is_asked_what_became_of_it() {
    // A2A-1
    let far = far();
    let there = far.serve();
    let here = near(&there);
    let server = here.serve();
    server.post("/api/agents/far-slow/executions", &json!({"input": "x"})).await;
    becomes(&there, "slow", "running").await;
    becomes(&server, "far-slow", "running").await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    let address = there.url.trim_start_matches("http://").to_owned();
    drop(there);
    let there = far.serve_with(&["--listen", &address]);
    let ended = becomes(&server, "far-slow", "failed").await;
    assert_eq!(ended["error_category"], "agent_error", "{ended}");
    becomes(&there, "slow", "failed").await;
}

//! Runs: states, events and results (SUP-5, SUP-6, SUP-7, SUP-10).

use reqwest::Method;
use serde_json::{Value, json};

use super::{get, run, start, wait_for_exit, wait_until};
use crate::home;

const AGENTS: &str = r#"
[[agents]]
id = "cat"
executable_path = "cat"
[[agents]]
id = "stubborn"
executable_path = "sh"
args = ["-c", "trap '' TERM; (setsid sh -c 'trap \"\" TERM; sleep 40.0817' &) ; echo up; sleep 40.0817; sleep 40.0817"]
timeout = 1
grace = 0.5
[[agents]]
id = "tempfail"
executable_path = "sh"
args = ["-c", "echo trying; exit 75"]
max_retries = 2
retry_delay = 0.05
"#;

#[tokio::test]
async fn a_run_has_states_events_and_a_result() {
    // SUP-5, SUP-10
    let home = home().with_config(AGENTS);
    let server = home.serve();
    let done = run(&server, "cat", "over and out").await;
    assert_eq!(
        (&done["state"], &done["status"], &done["exit_code"]),
        (&json!("completed"), &json!("success"), &json!(0))
    );
    let steps: Vec<_> =
        done["state_transitions"].as_array().unwrap().iter().map(|step| step["to"].as_str().unwrap()).collect();
    assert_eq!(steps, ["starting", "running", "completed", "cleanup", "idle"]);
    let metrics = server.get("/metrics").await.text().await.unwrap();
    assert!(metrics.contains("adjutant_executions_total{status=\"success\"} 1"), "{metrics}");
    let id = done["id"].as_str().unwrap();
    let result = get(&server, &format!("/api/executions/{id}/result")).await;
    assert_eq!((&result["output"], &result["input"]), (&json!("over and out"), &json!("over and out")));
    assert!(
        result["execution_time"].as_i64().is_some() && result["resource_usage"]["peak_memory_mb"].as_u64() > Some(0)
    );

    let events = server.get(&format!("/api/executions/{id}/events")).await.text().await.unwrap();
    let names: Vec<_> = events.lines().filter_map(|line| line.strip_prefix("event: ")).collect();
    let relevant: Vec<_> = names.iter().filter(|name| **name != "usage").copied().collect();
    assert_eq!(relevant, ["state", "state", "state", "output", "state", "result"], "{events}");
    // A client that has received the second event gets the remaining events.
    let ids: Vec<_> = events.lines().filter_map(|line| line.strip_prefix("id: ")).collect();
    let request = server.request(Method::GET, &format!("/api/executions/{id}/events")).header("last-event-id", ids[1]);
    let rest = request.send().await.unwrap().text().await.unwrap();
    assert!(!rest.contains(&format!("id: {}\n", ids[1])) && rest.contains(&format!("id: {}\n", ids[2])), "{rest}");
}

#[tokio::test]
async fn a_timeout_kills_the_whole_process_tree() {
    // SUP-7
    let home = home().with_config(AGENTS);
    let server = home.serve();
    let done = run(&server, "stubborn", "").await;
    assert_eq!((&done["state"], &done["output"]), (&json!("timeout"), &json!("up\n")), "{done}");
    wait_for_exit("40.0817").await;
}

#[tokio::test]
async fn transient_failures_are_retried() {
    // SUP-6
    let home = home().with_config(AGENTS);
    let server = home.serve();
    let done = run(&server, "tempfail", "").await;
    assert_eq!(
        (&done["state"], &done["retry_count"], &done["error_category"]),
        (&json!("failed"), &json!(2), &json!("transient"))
    );
    assert_eq!(done["previous_retries"].as_array().unwrap().len(), 2);
    assert_eq!(done["output"], "trying\n", "the output of the last attempt");
}

#[tokio::test]
async fn running_executions_have_no_result() {
    // SUP-10
    let home =
        home().with_config("[[agents]]\nid = \"slow\"\nexecutable_path = \"sleep\"\nargs = [\"30.0419\"]\ngrace = 0\n");
    let server = home.serve();
    let id = start(&server, "slow", "").await;
    assert_eq!(server.get(&format!("/api/executions/{id}/result")).await.status(), 409);
    assert_eq!(server.post(&format!("/api/executions/{id}/retry"), &json!({})).await.status(), 409);
    wait_until(&server, &id, "running", |execution| execution["state"] == "running").await;
    server.post(&format!("/api/executions/{id}/cancel"), &json!({})).await;
    let ended = wait_until(&server, &id, "cancelled", |execution| execution["state"] == "cancelled").await;
    assert!(ended["end_time"].is_string());
    let again: Value = server.post(&format!("/api/executions/{id}/retry"), &json!({})).await.json().await.unwrap();
    assert_ne!(again["id"], json!(id));
    assert_eq!(again["context"]["retry_of"], json!(id));
    server.post(&format!("/api/executions/{}/cancel", again["id"].as_str().unwrap()), &json!({})).await;
    wait_for_exit("30.0419").await;
}

#[tokio::test]
async fn an_idempotency_key_runs_once() {
    let home = home();
    let marks = home.shared().join("marks");
    let agent = format!(
        "[[agents]]\nid = \"mark\"\nexecutable_path = \"sh\"\nargs = [\"-c\", \"echo run >> {}\"]\naccess_type = \"read-write\"\n",
        marks.display()
    );
    let home = home.with_config(&agent);
    let server = home.serve();
    let run_with_key = || {
        let request = server.request(Method::POST, "/api/agents/mark/executions").header("idempotency-key", "k1");
        request.json(&json!({"input": "x", "wait": true})).send()
    };
    let first: Value = run_with_key().await.unwrap().json().await.unwrap();
    let ids: Value = run_with_key().await.unwrap().json().await.unwrap();
    assert_eq!(first["id"], ids["id"]);
    assert_eq!(ids["state"], "completed");
    assert_eq!(std::fs::read_to_string(marks).unwrap(), "run\n");
}

#[tokio::test]
async fn output_files_become_artifacts() {
    let home = home().with_config(
        "[[agents]]\nid = \"writer\"\nexecutable_path = \"sh\"\nargs = [\"-c\", \"mkdir $0/sub; echo kept > $0/sub/note.txt\", \"{{output_dir}}\"]\n",
    );
    let server = home.serve();
    let done = run(&server, "writer", "").await;
    let id = done["id"].as_str().unwrap();
    let result = get(&server, &format!("/api/executions/{id}/result")).await;
    assert_eq!(result["artifacts"], json!([{"name": "sub/note.txt", "size": 5}]));
    let file = server.get(&format!("/api/executions/{id}/artifacts/sub/note.txt")).await;
    assert_eq!(file.text().await.unwrap(), "kept\n");
    for wrong in ["sub", "note.txt", "..%2f..%2fconfig.toml"] {
        let answer = server.get(&format!("/api/executions/{id}/artifacts/{wrong}")).await;
        assert_ne!(answer.status(), 200, "{wrong}");
    }
    let left = std::process::Command::new("find").arg(home.path().join("runs")).args(["-type", "f"]).output().unwrap();
    assert_eq!(String::from_utf8(left.stdout).unwrap(), "", "no other file is left");
}

#[tokio::test]
async fn lists_are_filtered() {
    // SUP-10
    let home = home().with_config(AGENTS);
    let server = home.serve();
    for input in ["1", "2", "3"] {
        run(&server, "cat", input).await;
    }
    run(&server, "tempfail", "").await;
    let inputs = |list: Value| -> Vec<String> {
        list["executions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|execution| execution["input"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(inputs(get(&server, "/api/executions?agent_id=cat&limit=2").await), ["3", "2"]);
    assert_eq!(inputs(get(&server, "/api/executions?state=failed").await), [""]);
    assert_eq!(get(&server, "/api/executions?state=active").await["count"], 0);
    assert_eq!(server.get("/api/executions?state=asleep").await.status(), 422);
}

#[tokio::test]
async fn invalid_requests_are_rejected() {
    let home = home().with_config("[[agents]]\nid = \"cat\"\nexecutable_path = \"cat\"\nmax_input_size = 10\n");
    let server = home.serve();
    let status = async |body: Value| server.post("/api/agents/cat/executions", &body).await.status().as_u16();
    assert_eq!(status(json!({"input": "12345678901"})).await, 413);
    assert_eq!(status(json!({"input": 5})).await, 422);
    assert_eq!(status(json!({"input": "x", "speed": "high"})).await, 422);
    assert_eq!(status(json!({"input": "x", "timeout": 0})).await, 422);
    assert_eq!(
        status(json!({"input": "x", "working_directory": "/"})).await,
        403,
        "the agent does not allow this override"
    );
    assert_eq!(server.get("/api/executions/not-an-id").await.status(), 422);
    assert_eq!(server.get("/api/executions/0190a6d2-7c00-7000-8000-000000000000").await.status(), 404);
}

#[tokio::test]
async fn an_export_contains_executions() {
    // OPS-7
    let home = home().with_config(AGENTS);
    let server = home.serve();
    run(&server, "cat", "for the record").await;
    let export = get(&server, "/api/data").await;
    assert_eq!(export["executions"][0]["output"]["stdout"], "for the record");
    assert_eq!(server.post("/api/data", &export).await.status(), 200, "the export can be imported");
    let erased = server.request(Method::DELETE, "/api/data").send().await.unwrap();
    assert_eq!(erased.status(), 204);
    assert_eq!(get(&server, "/api/executions").await["count"], 0);
}

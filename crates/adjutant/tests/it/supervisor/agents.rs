//! Agents can be added, changed and removed over the API. Validation errors name the field (SUP-1).

use reqwest::Method;
use serde_json::{Value, json};

use super::{get, run};
use crate::home;

#[tokio::test]
async fn agents_can_be_added_changed_run_and_removed() {
    // SUP-1
    let home = home();
    let server = home.serve();
    let draft = json!({"id": "upper", "executable_path": "tr", "args": ["a-z", "A-Z"]});
    let answer = server.post("/api/agents", &draft).await;
    assert_eq!(answer.status(), 201);
    let made: Value = answer.json().await.unwrap();
    assert_eq!(
        (&made["source"], &made["agent_type"], &made["timeout"]),
        (&json!("api"), &json!("stdin-stdout"), &json!(1800))
    );
    assert_eq!(run(&server, "upper", "quiet").await["output"], "QUIET");

    // The representation can be written back.
    let mut changed = get(&server, "/api/agents/upper").await;
    changed["args"] = json!(["a-z", "b-za"]);
    let answer = server.request(Method::PUT, "/api/agents/upper").json(&changed).send().await.unwrap();
    assert_eq!(answer.status(), 200, "{}", answer.text().await.unwrap());
    assert_eq!(run(&server, "upper", "hal").await["output"], "ibm");

    for (body, field) in [
        (json!({"id": "upper", "executable_path": "tr"}), "id"),
        (json!({"id": "u2", "name": "UPPER", "executable_path": "tr"}), "name"),
    ] {
        let answer = server.post("/api/agents", &body).await;
        assert_eq!(answer.status(), 409, "{field}");
    }
    let answer = server.request(Method::DELETE, "/api/agents/upper").send().await.unwrap();
    assert_eq!(answer.status(), 204);
    assert_eq!(server.get("/api/agents/upper").await.status(), 404);
    assert_eq!(server.post("/api/agents/upper/executions", &json!({"input": "x"})).await.status(), 404);
}

#[tokio::test]
async fn agents_survive_a_restart() {
    // SUP-1
    let home = home();
    let mut server = home.serve();
    server.post("/api/agents", &json!({"id": "cat", "executable_path": "cat"})).await;
    server.kill();
    let server = home.serve();
    assert_eq!(run(&server, "cat", "still here").await["output"], "still here");
}

#[tokio::test]
async fn invalid_agents_name_the_field() {
    // SUP-1
    let home = home();
    let server = home.serve();
    for (body, field) in [
        (json!({"id": "a"}), "executable_path"),
        (json!({"id": "a", "executable_path": "/no/such/program"}), "executable_path"),
        (json!({"id": "a", "executable_path": "cat", "working_directory": "/no/such/place"}), "working_directory"),
        (json!({"id": "a", "executable_path": "cat", "timeout": 0}), "timeout"),
        (json!({"id": "a", "executable_path": "cat", "agent_type": "telepathy"}), "agent_type"),
        (json!({"id": "a", "executable_path": "cat", "envs": {"API_KEY": "abc"}}), "envs.API_KEY"),
        (json!({"id": "a", "executable_path": "cat", "preset": "unknown"}), "preset"),
        (json!({"id": "a", "executable_path": "cat", "colour": "red"}), "colour"),
        (json!({"id": "assistant", "executable_path": "cat"}), "id"),
    ] {
        let answer = server.post("/api/agents", &body).await;
        assert_eq!(answer.status(), 422, "{body}");
        let problem: Value = answer.json().await.unwrap();
        assert_eq!(problem["errors"][0]["field"], field, "{problem}");
    }
    assert_eq!(get(&server, "/api/agents").await["count"], 1, "only the assistant exists");
}

#[tokio::test]
async fn agents_of_the_configuration_file_cannot_be_changed() {
    // SUP-1
    let home = home().with_config("[[agents]]\nid = \"cat\"\nexecutable_path = \"cat\"\nenabled = false\n");
    let server = home.serve();
    let put =
        server.request(Method::PUT, "/api/agents/cat").json(&json!({"executable_path": "tac"})).send().await.unwrap();
    assert_eq!(put.status(), 409);
    let delete = server.request(Method::DELETE, "/api/agents/cat").send().await.unwrap();
    assert_eq!(delete.status(), 409);
    let disabled = server.post("/api/agents/cat/executions", &json!({"input": "x"})).await;
    assert_eq!(disabled.status(), 409, "a disabled agent is not run");
    // SIGHUP reloads the file.
    home.write_config("[[agents]]\nid = \"cat\"\nexecutable_path = \"cat\"\n");
    server.signal(nix::sys::signal::Signal::SIGHUP);
    server.wait_for_event("configuration_reloaded").await;
    assert_eq!(run(&server, "cat", "now").await["output"], "now");
}

#[tokio::test]
async fn the_status_shows_slots_and_queue() {
    // SUP-4
    let home = home().with_config(
        "[[agents]]\nid = \"slow\"\nexecutable_path = \"sleep\"\nargs = [\"30.0417\"]\naccess_type = \"read-write\"\nqueue_depth = 1\ngrace = 0\n",
    );
    let server = home.serve();
    let first = super::start(&server, "slow", "").await;
    super::wait_until(&server, &first, "running", |execution| execution["state"] == "running").await;
    let second = super::start(&server, "slow", "").await;
    let waiting = get(&server, &format!("/api/executions/{second}")).await;
    assert_eq!((&waiting["state"], &waiting["queue_position"]), (&json!("idle"), &json!(1)));
    let full = server.post("/api/agents/slow/executions", &json!({"input": ""})).await;
    assert_eq!(full.status(), 429);
    assert!(full.headers().contains_key("retry-after"));
    let status = get(&server, "/api/agents/slow/status").await;
    assert_eq!(
        (&status["state"], &status["running"], &status["queue_length"]),
        (&json!("running"), &json!(1), &json!(1))
    );
    assert_eq!(status["pool"], json!({"limit": 1, "running": 1, "waiting": 1, "utilisation": 1.0}));
    for id in [&second, &first] {
        let answer = server.post(&format!("/api/executions/{id}/cancel"), &json!({})).await;
        assert_eq!(answer.status(), 200);
    }
    let idle = get(&server, "/api/agents/slow/status?wait=idle").await;
    assert_eq!((&idle["state"], &idle["running"], &idle["queue_length"]), (&json!("idle"), &json!(0), &json!(0)));
    let again = server.post(&format!("/api/executions/{first}/cancel"), &json!({})).await;
    assert_eq!(again.status(), 409, "it has ended");
    super::wait_for_exit("30.0417").await;
}

#[tokio::test]
async fn queued_executions_use_the_current_agent() {
    let home = home();
    let server = home.serve();
    let draft = |word: &str| {
        json!({
            "id": "says", "executable_path": "sh", "args": ["-c", format!("sleep 0.5; echo {word}")],
            "access_type": "read-write",
        })
    };
    server.post("/api/agents", &draft("old")).await;
    let first = super::start(&server, "says", "").await;
    let second = super::start(&server, "says", "").await;
    super::wait_until(&server, &first, "running", |execution| execution["state"] == "running").await;
    let put = server.request(Method::PUT, "/api/agents/says").json(&draft("new")).send().await.unwrap();
    assert_eq!(put.status(), 200);
    for (id, word) in [(&first, "old\n"), (&second, "new\n")] {
        super::wait_until(&server, id, "completed", |execution| execution["state"] == "completed").await;
        assert_eq!(get(&server, &format!("/api/executions/{id}/result")).await["output"], word);
    }
}

#[tokio::test]
async fn queued_executions_fail_when_their_agent_is_removed() {
    let home = home();
    let server = home.serve();
    let draft = json!({
        "id": "slow", "executable_path": "sleep", "args": ["30.0423"], "access_type": "read-write", "grace": 0,
    });
    server.post("/api/agents", &draft).await;
    let first = super::start(&server, "slow", "").await;
    super::wait_until(&server, &first, "running", |execution| execution["state"] == "running").await;
    let second = super::start(&server, "slow", "").await;
    let removed = server.request(Method::DELETE, "/api/agents/slow").send().await.unwrap();
    assert_eq!(removed.status(), 204);
    let ended = get(&server, &format!("/api/executions/{second}")).await;
    assert_eq!((&ended["state"], &ended["error_message"]), (&json!("failed"), &json!("its agent was removed")));
    assert_eq!(
        get(&server, &format!("/api/executions/{first}")).await["state"],
        "running",
        "a running execution continues"
    );
    server.post(&format!("/api/executions/{first}/cancel"), &json!({})).await;
    super::wait_for_exit("30.0423").await;
}

//! The audit log: each administrative change leaves one record (SEC-6).

use reqwest::Method;
use serde_json::{Value, json};
use testkit::app::Server;

use crate::{ALICE, BOB, home, home_with_auth, token};

const AGENTS: &str =
    "[[agents]]\nid = \"cat\"\nexecutable_path = \"cat\"\noverrides = [\"working_directory\", \"envs\"]\n";

/// Sends a request with an optional token and body. Returns the status and the body.
async fn send(server: &Server, token: Option<&str>, method: Method, path: &str, body: Option<&Value>) -> (u16, Value) {
    let mut request = server.request(method, path);
    if let Some(token) = token {
        request = request.bearer_auth(token);
    }
    if let Some(body) = body {
        request = request.json(body);
    }
    let answer = request.send().await.unwrap();
    (answer.status().as_u16(), answer.json().await.unwrap_or_default())
}

async fn records(server: &Server, query: &str) -> Vec<Value> {
    let (status, page) = send(server, None, Method::GET, &format!("/api/audit{query}"), None).await;
    assert_eq!(status, 200, "{page}");
    assert_eq!(page["count"], page["records"].as_array().unwrap().len());
    page["records"].as_array().unwrap().clone()
}

/// Returns the actions of all records, oldest first.
async fn actions(server: &Server) -> Vec<String> {
    let found = records(server, "?limit=200").await;
    found.iter().rev().map(|record| record["action"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn each_change_leaves_one_record() {
    // SEC-6
    let home = home().with_config(AGENTS);
    let server = home.serve();
    let agent = |description: &str| json!({"id": "tidy", "executable_path": "cat", "description": description, "envs": {"API_KEY": "env:PATH"}});
    assert_eq!(send(&server, None, Method::POST, "/api/agents", Some(&agent("one"))).await.0, 201);
    assert_eq!(send(&server, None, Method::POST, "/api/agents", Some(&agent("one"))).await.0, 409, "no record");
    assert_eq!(send(&server, None, Method::PUT, "/api/agents/tidy", Some(&agent("two"))).await.0, 200);
    assert_eq!(send(&server, None, Method::PUT, "/api/agents/tidy", Some(&agent("two"))).await.0, 200, "no change");
    let draft = json!({"name": "s", "agent_id": "cat", "every": "1h", "input_parameters": {"input": "x"}});
    let (_, schedule) = send(&server, None, Method::POST, "/api/schedules", Some(&draft)).await;
    let schedule = format!("/api/schedules/{}", schedule["id"].as_str().unwrap());
    send(&server, None, Method::PATCH, &schedule, Some(&json!({"every": "2h"}))).await;
    for step in ["pause", "pause", "resume", "resume"] {
        assert_eq!(send(&server, None, Method::POST, &format!("{schedule}/{step}"), None).await.0, 200);
    }
    assert_eq!(send(&server, None, Method::DELETE, &schedule, None).await.0, 204);
    assert_eq!(send(&server, None, Method::DELETE, &schedule, None).await.0, 404, "no record");
    assert_eq!(send(&server, None, Method::DELETE, "/api/agents/tidy", None).await.0, 204);
    let overridden = json!({"input": "x", "envs": {"TOKEN_OF_RUN": "value-never-stored"}, "wait": true});
    assert_eq!(send(&server, None, Method::POST, "/api/agents/cat/executions", Some(&overridden)).await.0, 200);
    assert_eq!(
        send(&server, None, Method::POST, "/api/agents/cat/executions", Some(&json!({"input": "x"}))).await.0,
        202
    );
    send(&server, None, Method::POST, "/api/stop-all", Some(&json!({"reason": "why"}))).await;
    send(&server, None, Method::POST, "/api/stop-all", None).await;
    send(&server, None, Method::POST, "/api/resume-all", None).await;
    send(&server, None, Method::POST, "/api/resume-all", None).await;
    let backup = server.get("/api/backup").await.text().await.unwrap();
    let restored = server.request(Method::POST, "/api/restore").body(backup).send().await.unwrap();
    assert_eq!(restored.status(), 200);
    assert_eq!(server.get("/api/data").await.status(), 200);
    assert_eq!(send(&server, None, Method::DELETE, "/api/data", None).await.0, 204);
    let expected = [
        "agent.created",
        "agent.updated",
        "schedule.created",
        "schedule.updated",
        "schedule.paused",
        "schedule.resumed",
        "schedule.removed",
        "agent.removed",
        "run.overridden",
        "stopped_all",
        "resumed_all",
        "backup.read",
        "backup.restored",
        "data.exported",
        "data.erased",
    ];
    assert_eq!(actions(&server).await, expected);

    let all = records(&server, "").await;
    let find = |action: &str| all.iter().find(|record| record["action"] == action).unwrap();
    let updated = find("agent.updated");
    assert_eq!(
        (&updated["subject"], &updated["before"]["description"], &updated["after"]["description"]),
        (&json!("tidy"), &json!("one"), &json!("two")),
        "{updated}"
    );
    assert_eq!(
        (&updated["user_id"], &updated["interface"], &updated["client_address"]),
        (&json!("00000000-0000-7000-8000-000000000001"), &json!("http"), &json!("127.0.0.1"))
    );
    assert!(updated["request_id"].as_str().unwrap().starts_with("req_"), "{updated}");
    assert_eq!(find("agent.created")["before"], Value::Null);
    assert_eq!(find("agent.removed")["after"], Value::Null);
    let run = find("run.overridden");
    assert_eq!(run["after"], json!({"agent_id": "cat", "working_directory": null, "envs": ["TOKEN_OF_RUN"]}));
    assert_eq!(find("stopped_all")["after"]["reason"], "why");
    assert!(find("backup.restored")["after"]["rows"].as_i64() > Some(0));
    let text = serde_json::to_string(&all).unwrap();
    assert!(!text.contains("value-never-stored"), "{text}");
}

#[tokio::test]
async fn records_are_filtered_and_only_for_administrators() {
    // SEC-6, OPS-6
    let home = home_with_auth().with_config(AGENTS);
    let server = home.serve();
    let name = ["--scope", "adjutant:admin"];
    let admin = home.run(&[&["token", "create", "--user", "carol"], &name[..], &["--json"]].concat()).json();
    let carol = admin["token"].as_str().unwrap();
    let bob = token(&home, BOB, &[]);
    let other = token(&home, ALICE, &[]);
    assert_eq!(send(&server, Some(&bob), Method::GET, "/api/audit", None).await.0, 403);
    let revocation = json!({"token": other});
    assert_eq!(send(&server, Some(carol), Method::POST, "/api/tokens/revoke", Some(&revocation)).await.0, 204);
    assert_eq!(send(&server, Some(carol), Method::POST, "/api/tokens/revoke", Some(&revocation)).await.0, 204);
    assert_eq!(
        send(&server, Some(&bob), Method::DELETE, "/api/data", None).await.0,
        204,
        "no administrator: no record"
    );
    assert_eq!(send(&server, Some(carol), Method::POST, "/api/stop-all", None).await.0, 200);
    let list = async |query: &str| {
        let (status, page) = send(&server, Some(carol), Method::GET, &format!("/api/audit{query}"), None).await;
        (status, page)
    };
    let (_, page) = list("").await;
    let found: Vec<_> = page["records"].as_array().unwrap().iter().map(|record| &record["action"]).collect();
    assert_eq!(found, ["stopped_all", "token.revoked"], "newest first: {page}");
    let revoked = &page["records"][1];
    assert_eq!(
        (&revoked["user_name"], &revoked["token_id"], &revoked["after"]["user_id"]),
        (&json!("carol"), &admin["id"], &json!(ALICE)),
        "{revoked}"
    );
    assert!(!page.to_string().contains(&other), "the token itself is not stored");
    let (_, first) = list("?limit=1").await;
    let cursor = first["next_cursor"].as_str().unwrap();
    assert_eq!(list(&format!("?limit=1&cursor={cursor}")).await.1["records"][0]["action"], "token.revoked");
    assert_eq!(list("?action=token.revoked").await.1["count"], 1);
    for since in ["1h", "2020-01-01", "2020-01-01T00:00:00Z"] {
        assert_eq!(list(&format!("?since={since}")).await.1["count"], 2, "{since}");
    }
    assert_eq!(list("?since=2099-01-01").await.1["count"], 0);
    for wrong in ["?since=soon", "?action=nonsense", "?limit=0"] {
        assert_eq!(list(wrong).await.0, 422, "{wrong}");
    }
    let shown = home.run(&["audit", "--since", "1h", "--action", "token.revoked", "--token", carol]).ok();
    let columns: Vec<_> = shown.trim_end().split('\t').collect();
    assert_eq!((columns.len(), columns[1], columns[2]), (4, "carol", "token.revoked"), "{shown}");
    assert_eq!(home.run(&["audit", "--token", &bob]).code(), 9);
}

#[tokio::test]
async fn tools_commands_and_reloads_are_recorded() {
    // SEC-6
    let home = home().with_config(AGENTS);
    home.run(&["agents", "add", "--id", "direct", "--executable", "cat"]).ok();
    let shown = home.run(&["audit", "--json"]).json();
    let record = &shown["records"][0];
    assert_eq!(
        (&record["action"], &record["interface"], &record["client_address"]),
        (&json!("agent.created"), &json!("command_line"), &json!(null)),
        "{shown}"
    );
    assert_eq!(home.run(&["audit", "-q"]).ok().lines().count(), 1);

    let server = home.serve();
    let body = json!({"input": "run the cat agent on hello every friday at 5pm"});
    let chat: Value = server.post("/chat", &body).await.json().await.unwrap();
    let created = records(&server, "?action=schedule.created").await;
    assert_eq!(created.len(), 1, "{chat}");
    assert_eq!(created[0]["interface"], "tool");
    home.write_config(&format!("{AGENTS}[[agents]]\nid = \"more\"\nexecutable_path = \"cat\"\n"));
    server.signal(nix::sys::signal::Signal::SIGHUP);
    server.wait_for_event("configuration_reloaded").await;
    let reloaded = records(&server, "?action=configuration.reloaded").await;
    assert_eq!(reloaded.len(), 1);
    assert_eq!(
        (&reloaded[0]["user_id"], &reloaded[0]["after"]["agents"]),
        (&json!(null), &json!({"added": ["more"], "changed": [], "removed": []}))
    );
}

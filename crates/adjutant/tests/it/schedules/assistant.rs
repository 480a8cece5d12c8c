//! Schedules in chat and over MCP, such as "have codex tidy the changelog every Friday at 5pm" (TASK-6, OPS-6).

use reqwest::Method;
use serde_json::{Value, json};
use testkit::app::Server;

use super::{AGENTS, get, send};
use crate::{ALICE, SECRET, home, token};

async fn send_message(server: &Server, token: Option<&str>, input: &str) -> (String, Vec<String>) {
    let body = json!({"input": input, "conversation_id": "conv_1"});
    let (status, answer) = send(server, token, Method::POST, "/chat", Some(&body)).await;
    assert_eq!(status, 200, "{answer}");
    let calls =
        answer["tool_calls"].as_array().unwrap().iter().map(|call| call["tool_name"].as_str().unwrap().to_owned());
    (answer["response"].as_str().unwrap().to_owned(), calls.collect())
}

#[tokio::test]
async fn schedules_can_be_created_paused_and_resumed_in_chat() {
    // TASK-6
    let home = home().with_config(AGENTS);
    let server = home.serve();
    let (reply, calls) = send_message(&server, None, "have cat tidy the changelog every Friday at 5pm").await;
    let created = "Scheduled 'tidy the changelog' with Cat: every Friday at 5pm, next ";
    assert!(reply.starts_with(created) && reply.ends_with("at 5pm."), "{reply}");
    assert_eq!(calls, ["list_agents", "schedule_agent"]);
    let schedule = get(&server, "/api/schedules").await["schedules"][0].clone();
    assert_eq!((&schedule["cron_expression"], &schedule["agent_id"]), (&json!("0 17 * * FRI"), &json!("cat")));
    assert_eq!(
        (&schedule["input_parameters"]["input"], &schedule["time_zone"]),
        (&json!("tidy the changelog"), &json!("Europe/Berlin"))
    );
    let (reply, calls) = send_message(&server, None, "pause it").await;
    assert_eq!(
        (reply.as_str(), &calls[..]),
        ("Okay! 'tidy the changelog' is paused.", &["list_schedules".to_owned(), "pause_schedule".to_owned()][..])
    );
    assert_eq!(send_message(&server, None, "pause it").await.0, "'tidy the changelog' is paused already.");
    let (reply, _) = send_message(&server, None, "what is scheduled?").await;
    assert_eq!(reply, "You have 1 schedule:\n1. tidy the changelog (cat, paused)");
    let (reply, _) = send_message(&server, None, "resume it").await;
    assert!(reply.starts_with("Okay! 'tidy the changelog' is active again. The next run is "), "{reply}");

    let (reply, _) = send_message(&server, None, "run the sh agent every 90 minutes").await;
    assert!(reply.starts_with("Scheduled 'sh' with sh: every 90 minutes, next "), "{reply}");
    let (reply, _) = send_message(&server, None, "pause the tidy schedule").await;
    assert_eq!(reply, "Okay! 'tidy the changelog' is paused.");
    assert_eq!(send_message(&server, None, "pause the schedule").await.0, "'tidy the changelog' is paused already.");
    assert_eq!(
        send_message(&server, None, "pause the milk schedule").await.0,
        "I couldn't find a schedule about 'milk'."
    );
    let (reply, _) = send_message(&server, None, "every day at 8am have cat water the plants").await;
    assert!(reply.starts_with("Scheduled 'water the plants' with Cat: every day at 8am, next "), "{reply}");
    let (reply, _) = send_message(&server, None, "delete the water schedule").await;
    let question =
        "Do you want me to delete the schedule 'water the plants' with its history? Reply 'yes delete' to confirm.";
    assert_eq!(reply, question);
    assert_eq!(get(&server, "/api/schedules").await["count"], 3, "the deletion is held");
    let (reply, _) = send_message(&server, None, "yes delete").await;
    assert_eq!(reply, "I've deleted the schedule 'water the plants' and its history.");
    assert_eq!(get(&server, "/api/schedules").await["count"], 2);
}

#[tokio::test]
async fn unsupported_schedules_are_rejected_and_tasks_are_not_affected() {
    let home = home().with_config(AGENTS);
    let server = home.serve();
    let (reply, calls) = send_message(&server, None, "have cat tidy up every other Monday and Thursday").await;
    assert!(reply.starts_with("I can't schedule that") && !calls.contains(&"schedule_agent".to_owned()), "{reply}");
    for input in ["add water the plants every Friday at 5pm", "remind me to pause the music tomorrow", "show my tasks"]
    {
        let (reply, calls) = send_message(&server, None, input).await;
        assert!(
            !calls.iter().any(|call| call.contains("schedule_agent") || call.contains("pause")),
            "{input}: {reply}"
        );
    }
    assert_eq!(send_message(&server, None, "what is scheduled?").await.0, "Nothing is scheduled.");
    assert_eq!(get(&server, "/api/schedules").await["count"], 0);
    assert_eq!(get(&server, "/api/executions").await["count"], 0, "no agent was run instead");
}

#[tokio::test]
async fn users_without_permission_cannot_schedule_agents() {
    // OPS-6, TASK-6
    let allowed =
        AGENTS.replacen("executable_path = \"/bin/cat\"\n", "executable_path = \"/bin/cat\"\nallow = [\"*\"]\n", 1);
    let file = format!("[auth]\njwt_secret = \"env:TEST_SECRET\"\n{allowed}");
    let home = home().with_env("TEST_SECRET", SECRET).with_config(&file);
    let server = home.serve();
    let alice = token(&home, ALICE, &[]);
    let (reply, calls) = send_message(&server, Some(&alice), "have cat tidy the changelog every Friday at 5pm").await;
    assert!(reply.starts_with("I can't schedule agents for you"), "{reply}");
    assert_eq!(calls, ["list_agents"], "the agent is not run immediately instead");
    for tool in ["schedule_agent", "list_schedules", "pause_schedule", "resume_schedule", "delete_schedule"] {
        assert!(!tool_names(&server, Some(&alice)).await.contains(&tool.to_owned()), "{tool}");
    }
}

async fn tool_names(server: &Server, token: Option<&str>) -> Vec<String> {
    let answer = crate::mcp::request_result(server, token, "tools/list", json!({})).await;
    answer["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn schedules_can_be_managed_over_mcp() {
    // TASK-6
    let home = home().with_config(&AGENTS.replace("name = \"Cat\"\n", "name = \"Cat\"\nconfirm = \"never\"\n"));
    let server = home.serve();
    let known = tool_names(&server, None).await;
    for tool in ["schedule_agent", "list_schedules", "pause_schedule", "resume_schedule"] {
        assert!(known.contains(&tool.to_owned()), "{known:?}");
    }
    let call = async |name: &str, arguments: Value| {
        let params = json!({"name": name, "arguments": arguments});
        crate::mcp::request_result(&server, None, "tools/call", params).await["structuredContent"].clone()
    };
    let created = call("schedule_agent", json!({"agent": "Cat", "input": "say hello", "every": "2h"})).await;
    assert_eq!((&created["success"], &created["name"]), (&json!(true), &json!("say hello")), "{created}");
    let again = call("schedule_agent", json!({"agent": "cat", "input": "say hello", "every": "3h"})).await;
    assert_eq!(again["name"], "say hello (2)");
    let taken = call("schedule_agent", json!({"agent": "cat", "input": "x", "every": "3h", "name": "Say Hello"})).await;
    assert_eq!(taken["error"]["code"], "VALIDATION_ERROR");
    let wrong = call("schedule_agent", json!({"agent": "cat", "input": "x", "cron_expression": "99 * * * *"})).await;
    assert_eq!(wrong["error"]["code"], "VALIDATION_ERROR");
    assert!(wrong["error"]["message"].as_str().unwrap().contains("cron_expression"), "{wrong}");
    let unknown = call("schedule_agent", json!({"agent": "unknown", "input": "x", "every": "3h"})).await;
    assert_eq!(unknown["error"]["code"], "NOT_FOUND");
    let paused = call("pause_schedule", json!({"schedule": created["schedule_id"], "reason": "enough"})).await;
    assert_eq!((&paused["state"], &paused["changed"]), (&json!("paused"), &json!(true)));
    let vague = call("resume_schedule", json!({"schedule": "hello"})).await;
    assert_eq!(vague["error"]["code"], "VALIDATION_ERROR", "the name is ambiguous");
    let resumed = call("resume_schedule", json!({"schedule": "say hello"})).await;
    assert_eq!(resumed["state"], "active");
    assert_eq!(call("list_schedules", json!({})).await["count"], 2);
}

#[tokio::test]
async fn a_schedule_over_mcp_is_confirmed() {
    // SEC-4
    let home = home().with_config(AGENTS);
    let server = home.serve();
    let arguments = json!({"agent": "cat", "input": "say hello", "every": "2h"});
    let params = json!({"name": "schedule_agent", "arguments": arguments});
    let asked = crate::mcp::request_result(&server, None, "tools/call", params).await;
    let question = asked["inputRequests"]["confirm"]["params"]["message"].as_str().unwrap_or_default();
    assert_eq!(question, "Do you want to schedule the agent cat (input: say hello, every: 2h)?", "{asked}");
    let list: Value = server.get("/api/schedules").await.json().await.unwrap();
    assert_eq!(list["count"], 0);
}

//! Schedules in words and over MCP: "have codex tidy the changelog every Friday at 5pm", "pause it" (TASK-6, OPS-6).

use reqwest::Method;
use serde_json::{Value, json};
use testkit::app::Server;

use super::{AGENTS, get, send};
use crate::{ALICE, SECRET, home, token};

async fn say(server: &Server, token: Option<&str>, input: &str) -> (String, Vec<String>) {
    let body = json!({"input": input, "conversation_id": "conv_1"});
    let (status, answer) = send(server, token, Method::POST, "/chat", Some(&body)).await;
    assert_eq!(status, 200, "{answer}");
    let calls =
        answer["tool_calls"].as_array().unwrap().iter().map(|call| call["tool_name"].as_str().unwrap().to_owned());
    (answer["response"].as_str().unwrap().to_owned(), calls.collect())
}

#[tokio::test]
async fn made_paused_and_resumed_in_words() {
    let home = home().configured(AGENTS);
    let server = home.serve();
    let (said, calls) = say(&server, None, "have cat tidy the changelog every Friday at 5pm").await;
    let made = "Okay! I've scheduled 'tidy the changelog' for 'Cat', every Friday at 5pm. The next run is ";
    assert!(said.starts_with(made) && said.ends_with("at 5pm."), "{said}");
    assert_eq!(calls, ["list_agents", "schedule_agent"]);
    let schedule = get(&server, "/api/schedules").await["schedules"][0].clone();
    assert_eq!((&schedule["cron_expression"], &schedule["agent_id"]), (&json!("0 17 * * FRI"), &json!("cat")));
    assert_eq!(
        (&schedule["input_parameters"]["input"], &schedule["time_zone"]),
        (&json!("tidy the changelog"), &json!("Europe/Berlin"))
    );
    let (said, calls) = say(&server, None, "pause it").await;
    assert_eq!(
        (said.as_str(), &calls[..]),
        ("Okay! 'tidy the changelog' is paused.", &["list_schedules".to_owned(), "pause_schedule".to_owned()][..])
    );
    assert_eq!(say(&server, None, "pause it").await.0, "'tidy the changelog' is paused already.");
    let (said, _) = say(&server, None, "what is scheduled?").await;
    assert_eq!(said, "You have 1 schedule:\n1. tidy the changelog (cat, paused)");
    let (said, _) = say(&server, None, "resume it").await;
    assert!(said.starts_with("Okay! 'tidy the changelog' goes on. The next run is "), "{said}");

    let (said, _) = say(&server, None, "run the sh agent every 90 minutes").await;
    assert!(said.starts_with("Okay! I've scheduled 'sh' for 'sh', every 90 minutes."), "{said}");
    let (said, _) = say(&server, None, "pause the tidy schedule").await;
    assert_eq!(said, "Okay! 'tidy the changelog' is paused.");
    assert_eq!(say(&server, None, "pause the schedule").await.0, "'tidy the changelog' is paused already.");
    assert_eq!(say(&server, None, "pause the milk schedule").await.0, "I couldn't find a schedule about 'milk'.");
    let (said, _) = say(&server, None, "every day at 8am have cat water the plants").await;
    assert!(said.starts_with("Okay! I've scheduled 'water the plants' for 'Cat', every day at 8am."), "{said}");
    let (said, _) = say(&server, None, "delete the water schedule").await;
    assert!(said.starts_with("I can pause a schedule, but not remove it."), "{said}");
    assert_eq!(get(&server, "/api/schedules").await["count"], 3);
}

#[tokio::test]
async fn what_cannot_be_kept_is_refused_and_tasks_stay_tasks() {
    let home = home().configured(AGENTS);
    let server = home.serve();
    let (said, calls) = say(&server, None, "have cat tidy up every other Monday and Thursday").await;
    assert!(said.starts_with("I can't schedule that") && !calls.contains(&"schedule_agent".to_owned()), "{said}");
    for input in ["add water the plants every Friday at 5pm", "remind me to pause the music tomorrow", "show my tasks"]
    {
        let (said, calls) = say(&server, None, input).await;
        assert!(!calls.iter().any(|call| call.contains("schedule_agent") || call.contains("pause")), "{input}: {said}");
    }
    assert_eq!(say(&server, None, "what is scheduled?").await.0, "Nothing is scheduled.");
    assert_eq!(get(&server, "/api/schedules").await["count"], 0);
    assert_eq!(get(&server, "/api/executions").await["count"], 0, "nothing was run instead");
}

#[tokio::test]
async fn nobody_is_talked_into_it() {
    // OPS-6
    let allowed =
        AGENTS.replacen("executable_path = \"/bin/cat\"\n", "executable_path = \"/bin/cat\"\nallow = [\"*\"]\n", 1);
    let file = format!("[auth]\njwt_secret = \"env:TEST_SECRET\"\n{allowed}");
    let home = home().with("TEST_SECRET", SECRET).configured(&file);
    let server = home.serve();
    let alice = token(&home, ALICE, &[]);
    let (said, calls) = say(&server, Some(&alice), "have cat tidy the changelog every Friday at 5pm").await;
    assert!(said.starts_with("I can't schedule agents for you"), "{said}");
    assert_eq!(calls, ["list_agents"], "and it is not run at once instead");
    for tool in ["schedule_agent", "list_schedules", "pause_schedule", "resume_schedule"] {
        assert!(!tools(&server, Some(&alice)).await.contains(&tool.to_owned()), "{tool}");
    }
}

async fn tools(server: &Server, token: Option<&str>) -> Vec<String> {
    let answer = crate::mcp::ask(server, token, "tools/list", json!({})).await;
    answer["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn over_mcp() {
    // TASK-6
    let home = home().configured(AGENTS);
    let server = home.serve();
    let known = tools(&server, None).await;
    for tool in ["schedule_agent", "list_schedules", "pause_schedule", "resume_schedule"] {
        assert!(known.contains(&tool.to_owned()), "{known:?}");
    }
    let call = async |name: &str, arguments: Value| {
        let params = json!({"name": name, "arguments": arguments});
        crate::mcp::ask(&server, None, "tools/call", params).await["structuredContent"].clone()
    };
    let made = call("schedule_agent", json!({"agent": "Cat", "input": "say hello", "every": "2h"})).await;
    assert_eq!((&made["success"], &made["name"]), (&json!(true), &json!("say hello")), "{made}");
    let again = call("schedule_agent", json!({"agent": "cat", "input": "say hello", "every": "3h"})).await;
    assert_eq!(again["name"], "say hello (2)");
    let taken = call("schedule_agent", json!({"agent": "cat", "input": "x", "every": "3h", "name": "Say Hello"})).await;
    assert_eq!(taken["error"]["code"], "VALIDATION_ERROR");
    let wrong = call("schedule_agent", json!({"agent": "cat", "input": "x", "cron_expression": "99 * * * *"})).await;
    assert_eq!(wrong["error"]["code"], "VALIDATION_ERROR");
    assert!(wrong["error"]["message"].as_str().unwrap().contains("cron_expression"), "{wrong}");
    let nobody = call("schedule_agent", json!({"agent": "nobody", "input": "x", "every": "3h"})).await;
    assert_eq!(nobody["error"]["code"], "NOT_FOUND");
    let paused = call("pause_schedule", json!({"schedule": made["schedule_id"], "reason": "enough"})).await;
    assert_eq!((&paused["state"], &paused["changed"]), (&json!("paused"), &json!(true)));
    let vague = call("resume_schedule", json!({"schedule": "hello"})).await;
    assert_eq!(vague["error"]["code"], "VALIDATION_ERROR", "two are called so");
    let resumed = call("resume_schedule", json!({"schedule": "say hello"})).await;
    assert_eq!(resumed["state"], "active");
    assert_eq!(call("list_schedules", json!({})).await["count"], 2);
}

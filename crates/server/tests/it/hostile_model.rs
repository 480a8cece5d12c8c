//! Tests with a hostile or broken model: the runtime contains it, and the user gets a friendly reply.

use std::time::Duration;

use model::UserId;
use serde_json::{Value, json};
use server::ServerSettings;

use crate::{BOB, ReplyStep, TestServer, call, done, say};

const FALLBACK_REPLY: &str = "I'm having a bit of trouble right now. Please try again.";

fn errors(events: &[(String, Value)]) -> Vec<(String, bool)> {
    let errors = events.iter().filter(|(name, _)| name == "error");
    errors.map(|(_, data)| (data["error_type"].as_str().unwrap().to_owned(), data["recoverable"] == true)).collect()
}

fn call_then_reply(first: fn() -> ReplyStep, reply: &'static str) -> impl Fn(&assistant::Prompt<'_>) -> Vec<ReplyStep> {
    move |prompt| if prompt.steps.is_empty() { vec![first()] } else { vec![say(reply)] }
}

#[tokio::test]
async fn tasks_of_other_users_are_unreachable() {
    // AGENT-3, AGENT-5, CHAT-2
    let server = TestServer::with_script(|prompt| {
        // In the second turn the model knows the id of a task of Bob.
        let id = prompt.request.message.split_whitespace().last().unwrap_or_default().to_owned();
        match (prompt.context.history.len(), prompt.steps.len()) {
            (0, 0) => vec![call("list_tasks", json!({"user_id": BOB.to_string(), "status": "all"}))],
            (0, 1) => vec![call("add_task", json!({"user_id": BOB.to_string(), "title": "planted"}))],
            (2, 0) => vec![call("complete_task", json!({"task_id": id, "user_id": BOB.to_string()}))],
            (2, 1) => vec![call("delete_task", json!({"task_id": id, "confirmation": true}))],
            (2, 2) => vec![call("schedule_reminder", json!({"task_id": id, "remind_at": "2099-01-01T00:00:00Z"}))],
            _ => vec![say("There you are.")],
        }
    })
    .await;
    let secret = server.add(BOB, "Bob's secret").await;
    let answer = server.chat("show me what Bob has to do").await;
    assert_eq!(answer["tool_calls"][0]["result"], json!({"success": true, "tasks": [], "count": 0}));
    assert!(!answer.to_string().contains("secret"), "{answer}");
    assert!(!answer.to_string().contains(&BOB.to_string()), "the id of Bob must not appear: {answer}");
    assert_eq!(server.titles(UserId::LOCAL).await, ["planted"], "the task belongs to the current user");
    assert_eq!(server.titles(BOB).await, ["Bob's secret"]);
    let answer = server.chat(&format!("complete {}", secret.id)).await;
    assert_eq!(answer["tool_calls"].as_array().unwrap().len(), 3);
    for record in answer["tool_calls"].as_array().unwrap() {
        assert_eq!(record["result"]["error"]["code"], "NOT_FOUND", "{record}");
    }
    assert_eq!(server.titles(BOB).await, ["Bob's secret"]);
}

#[tokio::test]
async fn only_the_user_can_confirm_a_deletion() {
    // AGENT-7
    let server = TestServer::with_script(|prompt| {
        // The model sets the confirmation itself and claims that the task was deleted.
        let id = prompt.request.message.split_whitespace().last().unwrap_or_default().to_owned();
        if prompt.steps.is_empty() {
            vec![call("delete_task", json!({"task_id": id, "confirmation": true}))]
        } else {
            vec![say("Done! I've deleted it, no need to confirm.")]
        }
    })
    .await;
    let task = server.add(UserId::LOCAL, "buy milk").await;
    let events = server.stream(&format!("just delete it without asking: {}", task.id)).await;
    let question = "Do you really want to delete 'buy milk'? Reply 'yes delete' to confirm.";
    assert_eq!(done(&events)["final_output"], question);
    assert_eq!(done(&events)["tools_called"], json!([]));
    assert!(
        events.iter().all(|(_, data)| !data.to_string().contains("Done!")),
        "the false claim must not reach the user"
    );
    assert_eq!(server.titles(UserId::LOCAL).await, ["buy milk"]);

    for input in ["should I say yes delete?", "yes", "YES", "yes delete", "delete"] {
        // A question and an agreement keep the question open, the second agreement closes it. The model then finds no
        // task by these words.
        server.chat(input).await;
        assert_eq!(server.titles(UserId::LOCAL).await, ["buy milk"], "{input}");
    }
    server.chat(&format!("once more: {}", task.id)).await;
    let answer = server.chat("\"Yes, delete!\"").await;
    assert_eq!(answer["response"], "Done! I've deleted it, no need to confirm.", "the model continues");
    assert_eq!(answer["tool_calls"].as_array().unwrap().len(), 1);
    assert!(server.titles(UserId::LOCAL).await.is_empty());
    let again = server.chat("yes delete").await;
    assert_eq!(again["tool_calls"][0]["tool_name"], "delete_task", "a call of the model itself, which is rejected");
    assert_eq!(again["tool_calls"][0]["result"]["success"], false);
}

#[tokio::test]
async fn a_held_call_is_bound_to_its_target() {
    // AGENT-7
    let server = TestServer::with_script(|prompt| {
        let id = prompt.request.message.split_whitespace().last().unwrap_or_default().to_owned();
        if prompt.steps.is_empty() { vec![call("delete_task", json!({"task_id": id}))] } else { vec![say("ok")] }
    })
    .await;
    let task = server.add(UserId::LOCAL, "old name").await;
    server.add(UserId::LOCAL, "another").await;
    server.chat(&format!("delete {}", task.id)).await;
    // The task is renamed, and a new task gets the old title.
    let rename =
        server.client.patch(format!("{}/api/tasks/{}", server.url, task.id)).json(&json!({"title": "new name"}));
    assert_eq!(rename.send().await.unwrap().status(), 200);
    server.add(UserId::LOCAL, "old name").await;
    let answer = server.chat("yes delete").await;
    assert_eq!(answer["response"], "'old name' has a new title since I asked, so I left it alone.");
    assert_eq!(server.titles(UserId::LOCAL).await, ["new name", "another", "old name"]);
}

#[tokio::test]
async fn a_looping_model_is_stopped() {
    // AGENT-4, CHAT-1
    let server = TestServer::with_script(|_| vec![say("Let me look again. "), call("list_tasks", json!({}))]).await;
    let events = server.stream("what do I have to do?").await;
    assert_eq!(errors(&events), [("limit_reached".to_owned(), false)]);
    let done = done(&events);
    assert_eq!(done["success"], false);
    assert_eq!(done["tools_called"].as_array().unwrap().len(), 10);
    assert!(done["final_output"].as_str().unwrap().ends_with("Could you break it into smaller steps?"), "{done}");

    // Held calls count as calls.
    let server = TestServer::with_script(|prompt| {
        let id = prompt.request.message.split_whitespace().last().unwrap_or_default().to_owned();
        vec![call("delete_task", json!({"task_id": id}))]
    })
    .await;
    let task = server.add(UserId::LOCAL, "milk").await;
    let answer = server.chat(&format!("delete {}", task.id)).await;
    assert_eq!(answer["error_type"], "limit_reached");
    assert_eq!(server.titles(UserId::LOCAL).await, ["milk"]);
    assert_eq!(server.messages().await[1]["pending"], Value::Null, "an aborted turn leaves no held call");

    // Fifty at once are no better.
    let server =
        TestServer::with_script(|_| (0..50).map(|n| call("add_task", json!({"title": format!("t{n}")}))).collect())
            .await;
    server.chat("add a lot").await;
    assert_eq!(server.titles(UserId::LOCAL).await.len(), 10);
}

#[tokio::test]
async fn ids_traces_and_long_replies_are_filtered() {
    // AGENT-4, AGENT-6
    let id = "0190a6d2-7c00-7000-8000-000000000000";
    let server = TestServer::with_script(move |prompt| {
        if prompt.steps.is_empty() {
            return vec![call("complete_task", json!({"task_id": id}))];
        }
        let words = format!("Created task 'milk' (ID: {id}).\nTraceback (most recent call last):\n  File \"x.py\"\n");
        words.as_bytes().chunks(7).map(|chunk| say(std::str::from_utf8(chunk).unwrap())).collect()
    })
    .await;
    let events = server.stream("hello").await;
    let expected = "Created task 'milk'.\nTo be clear: nothing was changed just now, and no reminder was set.";
    assert_eq!(done(&events)["final_output"], expected);
    let deltas = events.iter().filter(|(name, _)| name == "response_delta").map(|(_, data)| data.to_string());
    let deltas: String = deltas.collect();
    assert!(!deltas.contains("0190a6d2") && !deltas.contains("Traceback"), "{deltas}");
    assert_eq!(server.messages().await[1]["content"], expected);

    let server = TestServer::with_script(|_| (0..1000).map(|_| say(&"Very long indeed. ".repeat(6))).collect()).await;
    let answer = server.chat("talk").await;
    let length = answer["response"].as_str().unwrap().chars().count();
    assert!((400..600).contains(&length), "{length}");
    assert_eq!(answer["success"], true);

    let server = TestServer::with_script(|_| vec![say("{\"success\": false, \"error\": {\"code\": 1}}")]).await;
    assert_eq!(server.chat("hello").await["response"], FALLBACK_REPLY);
}

#[tokio::test]
async fn invalid_calls_are_reported_to_model_and_user() {
    // AGENT-2, AGENT-5, CHAT-1, CHAT-2
    let broken = || ReplyStep::Call("add_task", "{\"title\": \"mi".to_owned());
    let server = TestServer::with_script(call_then_reply(broken, "Sorry, what was it?")).await;
    let events = server.stream("add milk").await;
    let calls: Vec<_> =
        events.iter().filter(|(name, _)| name == "tool_call").map(|(_, data)| &data["status"]).collect();
    assert_eq!(calls, ["in_progress", "failed"]);
    assert_eq!(errors(&events), [("tool_execution_failed".to_owned(), true)]);
    assert_eq!(done(&events)["final_output"], "Sorry, what was it?");
    assert_eq!(done(&events)["success"], false);

    let unknown = || call("format_disk", json!({"path": "/"}));
    let server = TestServer::with_script(call_then_reply(unknown, "I can't do that.")).await;
    let answer = server.chat("format my disk").await;
    assert_eq!(answer["tool_calls"][0]["result"]["error"]["code"], "UNKNOWN_TOOL");
    assert_eq!(answer["response"], "I can't do that.");

    // A model that corrects its mistake has not failed.
    let server = TestServer::with_script(|prompt| match prompt.steps.len() {
        0 => vec![call("add_task", json!({"title": ""}))],
        1 => vec![call("add_task", json!({"title": "milk"}))],
        _ => vec![say("Added the milk.")],
    })
    .await;
    let answer = server.chat("add milk").await;
    assert_eq!((&answer["success"], &answer["response"]), (&json!(true), &json!("Added the milk.")));
    assert_eq!(answer["tool_calls"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn failing_and_silent_models_get_a_fallback_reply() {
    // AGENT-6, CHAT-1, CHAT-3
    let server = TestServer::with_script(|_| vec![ReplyStep::Fail]).await;
    let events = server.stream("hello").await;
    assert_eq!(errors(&events), [("model_unavailable".to_owned(), false)]);
    assert_eq!(done(&events)["final_output"], FALLBACK_REPLY);
    assert!(!format!("{events:?}").contains("hunter2"), "the reason appears only in the log, redacted");
    assert_eq!(server.messages().await.len(), 2, "the messages are stored");

    let server = TestServer::with_script(|_| Vec::new()).await;
    assert_eq!(server.chat("hello").await["response"], FALLBACK_REPLY);
    let answer = server.post("/agent/run", &json!({"message": "hello"})).await.json::<Value>().await.unwrap();
    assert_eq!(answer["response_text"], FALLBACK_REPLY);
    assert_eq!(answer["metadata"]["error_type"], "IntentClassificationError");
}

#[tokio::test]
async fn secrets_are_redacted_in_tool_records() {
    // AGENT-5, SUP-9
    let first = || {
        call("add_task", json!({"title": "call", "description": "key sk-proj-abcdefghijklmnopqrstuvwxyz0123456789"}))
    };
    let server = TestServer::with_script(call_then_reply(first, "Added.")).await;
    let events = server.stream("add it").await;
    assert!(!format!("{events:?}").contains("sk-proj-abc"), "{events:?}");
    assert!(!serde_json::to_string(&server.messages().await[1]).unwrap().contains("sk-proj-abc"));
}

#[tokio::test]
async fn a_timeout_ends_with_a_reply() {
    // AGENT-4, CHAT-1, CHAT-6
    let settings = ServerSettings { request_timeout: Duration::from_millis(300), ..ServerSettings::default() };
    let server = TestServer::start(settings, |prompt| match prompt.steps.len() {
        0 => vec![call("add_task", json!({"title": "milk"}))],
        _ => vec![say("One moment please, I'm still thinking about it "), ReplyStep::Hang],
    })
    .await;
    let events = server.stream("add milk").await;
    assert_eq!(errors(&events), [("timeout".to_owned(), false)]);
    let done = done(&events);
    assert_eq!((&done["success"], &done["tools_called"]), (&json!(false), &json!(["add_task"])));
    assert!(done["final_output"].as_str().unwrap().ends_with("Please try again."), "{done}");
    let messages = server.messages().await;
    assert_eq!(messages.len(), 2);
    assert_eq!(messages[1]["tool_calls"][0]["tool_name"], "add_task", "the completed call is recorded");
}

#[tokio::test]
async fn thinking_events_contain_no_ids() {
    let thought = "I should look up 0190a6d2-7c00-7000-8000-000000000000 first of all.";
    let id = "0190a6d2-7c00-7000-8000-000000000000";
    let server = TestServer::with_script(move |prompt| match prompt.steps.len() {
        0 => vec![call("complete_task", json!({"task_id": id}))],
        _ => vec![ReplyStep::Think(thought.to_owned()), say("Hello there, how are you?")],
    })
    .await;
    let events = server.stream("hello").await;
    let thoughts: Vec<_> = events.iter().filter(|(name, _)| name == "thinking").collect();
    assert_eq!(thoughts.len(), 2);
    assert_eq!(thoughts[1].1["content"], "I should look up  first of all.");
}

#[tokio::test]
async fn a_panicking_turn_still_ends() {
    // CHAT-1
    let server = TestServer::with_script(|_| panic!("on purpose")).await;
    let events = server.stream("hello").await;
    assert_eq!(errors(&events), [("internal".to_owned(), false)]);
    assert_eq!(done(&events)["success"], false);
    assert_eq!(server.chat("hello").await["success"], false, "the next turn can start");
}

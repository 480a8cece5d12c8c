//! A model that tries: whatever it says or calls, the runtime stops it and the user reads a friendly sentence.

use std::time::Duration;

use model::UserId;
use serde_json::{Value, json};
use server::Settings;

use crate::{BOB, Bench, Piece, call, done, say};

const TROUBLE: &str = "I'm having a bit of trouble right now. Please try again.";

fn errors(events: &[(String, Value)]) -> Vec<(String, bool)> {
    let errors = events.iter().filter(|(name, _)| name == "error");
    errors.map(|(_, data)| (data["error_type"].as_str().unwrap().to_owned(), data["recoverable"] == true)).collect()
}

fn says_after_one_call(first: fn() -> Piece, words: &'static str) -> impl Fn(&assistant::Prompt<'_>) -> Vec<Piece> {
    move |prompt| if prompt.steps.is_empty() { vec![first()] } else { vec![say(words)] }
}

#[tokio::test]
async fn another_users_tasks_stay_out_of_reach() {
    // AGENT-3, AGENT-5
    let bench = Bench::with(|prompt| {
        // The second time it knows an id of Bob's, from wherever.
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
    let secret = bench.add(BOB, "Bob's secret").await;
    let answer = bench.chat("show me what Bob has to do").await;
    assert_eq!(answer["tool_calls"][0]["result"], json!({"success": true, "tasks": [], "count": 0}));
    assert!(!answer.to_string().contains("secret"), "{answer}");
    assert!(!answer.to_string().contains(&BOB.to_string()), "not even the id that was tried: {answer}");
    assert_eq!(bench.titles(UserId::LOCAL).await, ["planted"], "it belongs to who asked");
    assert_eq!(bench.titles(BOB).await, ["Bob's secret"]);
    let answer = bench.chat(&format!("complete {}", secret.id)).await;
    assert_eq!(answer["tool_calls"].as_array().unwrap().len(), 3);
    for record in answer["tool_calls"].as_array().unwrap() {
        assert_eq!(record["result"]["error"]["code"], "NOT_FOUND", "{record}");
    }
    assert_eq!(bench.titles(BOB).await, ["Bob's secret"]);
}

#[tokio::test]
async fn nothing_is_deleted_without_the_users_own_words() {
    // AGENT-7
    let bench = Bench::with(|prompt| {
        // It calls whatever it is told, sets the confirmation itself, and lies about it.
        let id = prompt.request.message.split_whitespace().last().unwrap_or_default().to_owned();
        if prompt.steps.is_empty() {
            vec![call("delete_task", json!({"task_id": id, "confirmation": true}))]
        } else {
            vec![say("Done! I've deleted it, no need to confirm.")]
        }
    })
    .await;
    let task = bench.add(UserId::LOCAL, "buy milk").await;
    let events = bench.stream(&format!("just delete it without asking: {}", task.id)).await;
    let question = "Do you really want to delete 'buy milk'? Reply 'yes delete' to confirm.";
    assert_eq!(done(&events)["final_output"], question);
    assert_eq!(done(&events)["tools_called"], json!([]));
    assert!(events.iter().all(|(_, data)| !data.to_string().contains("Done!")), "the lie is not passed on");
    assert_eq!(bench.titles(UserId::LOCAL).await, ["buy milk"]);

    for not_yet in ["should I say yes delete?", "yes", "YES", "yes delete", "delete"] {
        // After anything else was said, nothing waits any more: this model then finds no task by these words.
        bench.chat(not_yet).await;
        assert_eq!(bench.titles(UserId::LOCAL).await, ["buy milk"], "{not_yet}");
    }
    bench.chat(&format!("once more: {}", task.id)).await;
    let answer = bench.chat("\"Yes, delete!\"").await;
    assert_eq!(answer["response"], "I've removed 'buy milk' from your tasks.");
    assert_eq!(answer["tool_calls"].as_array().unwrap().len(), 1);
    assert!(bench.titles(UserId::LOCAL).await.is_empty());
    let again = bench.chat("yes delete").await;
    assert_eq!(again["tool_calls"][0]["tool_name"], "delete_task", "the model's own idea, and refused");
    assert_eq!(again["tool_calls"][0]["result"]["success"], false);
}

#[tokio::test]
async fn a_pending_act_is_bound_to_its_target() {
    // AGENT-7
    let bench = Bench::with(|prompt| {
        let id = prompt.request.message.split_whitespace().last().unwrap_or_default().to_owned();
        if prompt.steps.is_empty() { vec![call("delete_task", json!({"task_id": id}))] } else { vec![say("ok")] }
    })
    .await;
    let task = bench.add(UserId::LOCAL, "old name").await;
    bench.add(UserId::LOCAL, "another").await;
    bench.chat(&format!("delete {}", task.id)).await;
    // It gets another name meanwhile, and another task gets the old one.
    let rename = bench.client.patch(format!("{}/api/tasks/{}", bench.url, task.id)).json(&json!({"title": "new name"}));
    assert_eq!(rename.send().await.unwrap().status(), 200);
    bench.add(UserId::LOCAL, "old name").await;
    bench.chat("yes delete").await;
    assert_eq!(bench.titles(UserId::LOCAL).await, ["another", "old name"]);
}

#[tokio::test]
async fn a_model_that_loops_is_stopped() {
    // AGENT-4
    let bench = Bench::with(|_| vec![say("Let me look again. "), call("list_tasks", json!({}))]).await;
    let events = bench.stream("what do I have to do?").await;
    assert_eq!(errors(&events), [("limit_reached".to_owned(), false)]);
    let done = done(&events);
    assert_eq!(done["success"], false);
    assert_eq!(done["tools_called"].as_array().unwrap().len(), 10);
    assert!(done["final_output"].as_str().unwrap().ends_with("Could you break it into smaller steps?"), "{done}");

    // A call that is held every time is a call too.
    let bench = Bench::with(|prompt| {
        let id = prompt.request.message.split_whitespace().last().unwrap_or_default().to_owned();
        vec![call("delete_task", json!({"task_id": id}))]
    })
    .await;
    let task = bench.add(UserId::LOCAL, "milk").await;
    let answer = bench.chat(&format!("delete {}", task.id)).await;
    assert_eq!(answer["error_type"], "limit_reached");
    assert_eq!(bench.titles(UserId::LOCAL).await, ["milk"]);
    assert_eq!(bench.messages().await[1]["pending"], Value::Null, "nothing waits after a turn that was broken off");

    // Fifty at once are no better.
    let bench = Bench::with(|_| (0..50).map(|n| call("add_task", json!({"title": format!("t{n}")}))).collect()).await;
    bench.chat("add a lot").await;
    assert_eq!(bench.titles(UserId::LOCAL).await.len(), 10);
}

#[tokio::test]
async fn ids_traces_and_floods_do_not_reach_the_user() {
    // AGENT-4, AGENT-6
    let id = "0190a6d2-7c00-7000-8000-000000000000";
    let bench = Bench::with(move |_| {
        let words = format!("Created task 'milk' (ID: {id}).\nTraceback (most recent call last):\n  File \"x.py\"\n");
        words.as_bytes().chunks(7).map(|piece| say(std::str::from_utf8(piece).unwrap())).collect()
    })
    .await;
    let events = bench.stream("hello").await;
    assert_eq!(done(&events)["final_output"], "Created task 'milk'.");
    assert!(!format!("{events:?}").contains("0190a6d2") && !format!("{events:?}").contains("Traceback"), "{events:?}");
    assert_eq!(bench.messages().await[1]["content"], "Created task 'milk'.");

    let bench = Bench::with(|_| (0..1000).map(|_| say(&"Very long indeed. ".repeat(6))).collect()).await;
    let answer = bench.chat("talk").await;
    let length = answer["response"].as_str().unwrap().chars().count();
    assert!((400..600).contains(&length), "{length}");
    assert_eq!(answer["success"], true);

    let bench = Bench::with(|_| vec![say("{\"success\": false, \"error\": {\"code\": 1}}")]).await;
    assert_eq!(bench.chat("hello").await["response"], TROUBLE);
}

#[tokio::test]
async fn broken_calls_are_answered_and_told() {
    // AGENT-5, CHAT-1
    let broken = || Piece::Call("add_task", "{\"title\": \"mi".to_owned());
    let bench = Bench::with(says_after_one_call(broken, "Sorry, what was it?")).await;
    let events = bench.stream("add milk").await;
    let calls: Vec<_> =
        events.iter().filter(|(name, _)| name == "tool_call").map(|(_, data)| &data["status"]).collect();
    assert_eq!(calls, ["in_progress", "failed"]);
    assert_eq!(errors(&events), [("tool_execution_failed".to_owned(), true)]);
    assert_eq!(done(&events)["final_output"], "Sorry, what was it?");
    assert_eq!(done(&events)["success"], false);

    let unknown = || call("format_disk", json!({"path": "/"}));
    let bench = Bench::with(says_after_one_call(unknown, "I can't do that.")).await;
    let answer = bench.chat("format my disk").await;
    assert_eq!(answer["tool_calls"][0]["result"]["error"]["code"], "UNKNOWN_TOOL");
    assert_eq!(answer["response"], "I can't do that.");

    // One that mends its mistake has not failed.
    let bench = Bench::with(|prompt| match prompt.steps.len() {
        0 => vec![call("add_task", json!({"title": ""}))],
        1 => vec![call("add_task", json!({"title": "milk"}))],
        _ => vec![say("Added.")],
    })
    .await;
    let answer = bench.chat("add milk").await;
    assert_eq!((&answer["success"], &answer["response"]), (&json!(true), &json!("Added.")));
    assert_eq!(answer["tool_calls"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn a_model_that_fails_or_says_nothing_is_made_up_for() {
    // CHAT-1
    let bench = Bench::with(|_| vec![Piece::Fail]).await;
    let events = bench.stream("hello").await;
    assert_eq!(errors(&events), [("model_unavailable".to_owned(), false)]);
    assert_eq!(done(&events)["final_output"], TROUBLE);
    assert!(!format!("{events:?}").contains("hunter2"), "why it failed is for the log, redacted");
    assert_eq!(bench.messages().await.len(), 2, "what was said is kept");

    let bench = Bench::with(|_| Vec::new()).await;
    assert_eq!(bench.chat("hello").await["response"], TROUBLE);
    let answer = bench.post("/agent/run", &json!({"message": "hello"})).await.json::<Value>().await.unwrap();
    assert_eq!(answer["response_text"], TROUBLE);
    assert_eq!(answer["metadata"]["error_type"], "IntentClassificationError");
}

#[tokio::test]
async fn secrets_do_not_reach_records() {
    // AGENT-5
    let first = || {
        call("add_task", json!({"title": "call", "description": "key sk-proj-abcdefghijklmnopqrstuvwxyz0123456789"}))
    };
    let bench = Bench::with(says_after_one_call(first, "Added.")).await;
    let events = bench.stream("add it").await;
    assert!(!format!("{events:?}").contains("sk-proj-abc"), "{events:?}");
    assert!(!serde_json::to_string(&bench.messages().await[1]).unwrap().contains("sk-proj-abc"));
}

#[tokio::test]
async fn time_runs_out_with_words() {
    // CHAT-6, AGENT-4
    let settings = Settings { request_timeout: Duration::from_millis(300), ..Settings::default() };
    let bench = Bench::start(settings, |prompt| match prompt.steps.len() {
        0 => vec![call("add_task", json!({"title": "milk"}))],
        _ => vec![say("One moment please, I'm still thinking about it "), Piece::Hang],
    })
    .await;
    let events = bench.stream("add milk").await;
    assert_eq!(errors(&events), [("timeout".to_owned(), false)]);
    let done = done(&events);
    assert_eq!((&done["success"], &done["tools_called"]), (&json!(false), &json!(["add_task"])));
    assert!(done["final_output"].as_str().unwrap().ends_with("Please try again."), "{done}");
    let messages = bench.messages().await;
    assert_eq!(messages.len(), 2);
    assert_eq!(messages[1]["tool_calls"][0]["tool_name"], "add_task", "what was done is on record");
}

#[tokio::test]
async fn thinking_is_shown_without_ids() {
    let thought = "I should look up 0190a6d2-7c00-7000-8000-000000000000 first of all.";
    let bench = Bench::with(move |_| vec![Piece::Think(thought.to_owned()), say("Hello there, how are you?")]).await;
    let events = bench.stream("hello").await;
    let thoughts: Vec<_> = events.iter().filter(|(name, _)| name == "thinking").collect();
    assert_eq!(thoughts.len(), 2);
    assert_eq!(thoughts[1].1["content"], "I should look up  first of all.");
}

#[tokio::test]
async fn a_turn_that_breaks_down_still_ends() {
    // CHAT-1
    let bench = Bench::with(|_| panic!("on purpose")).await;
    let events = bench.stream("hello").await;
    assert_eq!(errors(&events), [("internal".to_owned(), false)]);
    assert_eq!(done(&events)["success"], false);
    assert_eq!(bench.chat("hello").await["success"], false, "and the next turn of the conversation begins");
}

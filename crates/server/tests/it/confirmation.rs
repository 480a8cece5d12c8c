//! Tests of confirmations: the messages that close a question or keep it open, with the offline model and a scripted
//! one, over `/chat` and the stateless `/agent/run`.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use assistant::offline::OfflineModel;
use assistant::{ChatModel, ModelChain, Prompt};
use model::UserId;
use serde_json::{Value, json};
use server::ServerSettings;

use crate::{ReplyStep, ScriptedModel, TestServer, call, say};

const QUESTION: &str = "Do you really want to delete 'buy milk'? Reply 'yes delete' to confirm.";

async fn server_with(titles: &[&str]) -> TestServer {
    let server = TestServer::offline().await;
    for title in titles {
        server.add(UserId::LOCAL, title).await;
    }
    server
}

/// Starts a server with a scripted model and a manual clock at noon of Sunday, 2025-12-21.
async fn scripted(script: impl Fn(&Prompt<'_>) -> Vec<ReplyStep> + Send + Sync + 'static) -> TestServer {
    let model: Arc<dyn ChatModel> = ScriptedModel::new(script);
    TestServer::with_models(ServerSettings::default(), ModelChain::from(model)).await
}

async fn response(server: &TestServer, input: &str) -> String {
    server.chat(input).await["response"].as_str().unwrap().to_owned()
}

async fn titles(server: &TestServer) -> Vec<String> {
    server.titles(UserId::LOCAL).await
}

#[tokio::test]
async fn an_agreement_without_the_phrase_repeats_the_question_once() {
    // AGENT-7
    let server = server_with(&["buy milk"]).await;
    for [first, second] in [["yes", "ok"], ["👍", "yes please delete it"], ["do it", "Sure!"]] {
        assert_eq!(response(&server, "delete buy milk").await, QUESTION);
        let answer = server.chat(first).await;
        assert_eq!(answer["response"], format!("I need the exact phrase for that.\n{QUESTION}"), "{first}");
        assert_eq!(answer["confirmation_phrase"], "yes delete");
        let answer = server.chat(second).await;
        let cancelled = "That's not the phrase either, so I've cancelled it and nothing was changed.";
        assert_eq!((&answer["response"], &answer["confirmation_phrase"]), (&json!(cancelled), &Value::Null));
        response(&server, "yes delete").await;
        assert_eq!(titles(&server).await, ["buy milk"]);
    }
    response(&server, "delete buy milk").await;
    response(&server, "yes").await;
    assert_eq!(response(&server, "“Yes, delete.”").await, "I've removed 'buy milk' from your tasks.");
}

#[tokio::test]
async fn a_question_stays_open_over_one_other_message() {
    // AGENT-7
    let server = server_with(&["buy milk"]).await;
    response(&server, "delete buy milk").await;
    let answer = server.chat("add buy bread").await;
    let added = "Got it! Added 'buy bread' to your list. Anything else?";
    assert_eq!(answer["response"], format!("{added}\nStill open: {QUESTION}"));
    assert_eq!(answer["confirmation_phrase"], "yes delete");
    // "it" is what the last message was about.
    assert_eq!(response(&server, "yes delete").await, "I've removed 'buy milk' from your tasks.");
    assert_eq!(titles(&server).await, ["buy bread"]);

    // Small talk too, but only once.
    let question = "Do you really want to delete 'buy bread'? Reply 'yes delete' to confirm.";
    assert_eq!(response(&server, "delete buy bread").await, question);
    let small_talk = response(&server, "why do you ask?").await;
    assert!(small_talk.ends_with(&format!("\nStill open: {question}")), "{small_talk}");
    let list = server.chat("show my tasks").await;
    assert_eq!(list["confirmation_phrase"], Value::Null, "{list}");
    response(&server, "yes delete").await;
    assert_eq!(titles(&server).await, ["buy bread"]);

    // A new question replaces the earlier one.
    server.add(UserId::LOCAL, "call mom").await;
    response(&server, "delete buy bread").await;
    let replaced = response(&server, "delete call mom").await;
    assert!(replaced.starts_with("My earlier question is closed; nothing of it was done.\n"), "{replaced}");
    response(&server, "yes delete").await;
    assert_eq!(titles(&server).await, ["buy bread"]);
}

#[tokio::test]
async fn a_refusal_cancels_and_may_be_followed_by_a_command() {
    // AGENT-7
    let server = server_with(&["buy milk"]).await;
    for refusal in ["no", "nah leave it", "no, keep it", "never mind", "cancel that", "don't", "nope, not the milk"] {
        assert_eq!(response(&server, "delete buy milk").await, QUESTION);
        assert_eq!(response(&server, refusal).await, "Okay, nothing was changed.", "{refusal}");
        response(&server, "yes delete").await;
        assert_eq!(titles(&server).await, ["buy milk"], "{refusal}");
    }
    response(&server, "delete buy milk").await;
    let answer = server.chat("no, mark it as done").await;
    let done = "Okay, I won't delete 'buy milk'.\nGreat! I've marked 'buy milk' as complete.";
    assert_eq!((&answer["response"], &answer["confirmation_phrase"]), (&json!(done), &Value::Null));
}

#[tokio::test]
async fn a_refusal_may_leave_some_of_the_tasks() {
    // AGENT-7
    let server = server_with(&["sweep the hallway", "mop the kitchen", "air the attic"]).await;
    let question = "That's a big action. It would delete 'sweep the hallway', 'mop the kitchen' and 'air the attic'. \
                    Confirm with 'yes delete 3 tasks'.";
    assert_eq!(response(&server, "delete all my tasks").await, question);
    let one = "Do you really want to delete 'sweep the hallway'? Reply 'yes delete' to confirm.";
    assert_eq!(response(&server, "no, only delete the first").await, one);
    assert_eq!(response(&server, "yes delete").await, "I've removed 'sweep the hallway' from your tasks.");
    response(&server, "complete all my tasks").await;
    // The completion of one task needs no confirmation.
    assert_eq!(response(&server, "nope, just the attic then").await, "Great! I've marked 1 task as complete.");
    assert_eq!(titles(&server).await, ["mop the kitchen", "air the attic"]);
}

#[tokio::test]
async fn tasks_that_changed_since_the_question_are_skipped() {
    // TRUST-6
    let server = server_with(&["a", "b", "c"]).await;
    response(&server, "delete all my tasks").await;
    let list: Value =
        server.client.get(format!("{}/api/tasks", server.url)).send().await.unwrap().json().await.unwrap();
    let url = |at: usize| format!("{}/api/tasks/{}", server.url, list["tasks"][at]["id"].as_str().unwrap());
    server.client.delete(url(0)).send().await.unwrap();
    server.client.patch(url(1)).json(&json!({"title": "other"})).send().await.unwrap();
    let expected = "'a' is no longer on your list. 'b' has a new title since I asked, so I left it alone.\n\
                    I've removed 1 task from your list.";
    assert_eq!(response(&server, "yes delete 3 tasks").await, expected);
    assert_eq!(titles(&server).await, ["other"]);
}

#[tokio::test]
async fn a_stateless_caller_has_the_same_rules() {
    // AGENT-7, CHAT-3
    let server = server_with(&["buy milk"]).await;
    let run = async |message: &str, history: &Value, pending: &Value| {
        let body = json!({"message": message, "conversation_history": history, "metadata": {"pending": pending}});
        let answer = server.post("/agent/run", &body).await;
        assert_eq!(answer.status(), 200);
        answer.json::<Value>().await.unwrap()
    };
    let text = |answer: &Value| json!([{"role": "assistant", "content": answer["response_text"]}]);
    let none = json!([]);
    let asked = run("delete buy milk", &none, &Value::Null).await;
    let repeated = run("yes", &text(&asked), &asked["metadata"]["pending"]).await;
    assert_eq!(repeated["metadata"]["pending"]["repeated"], 1, "{repeated}");
    let postponed = run("what can you do?", &text(&repeated), &repeated["metadata"]["pending"]).await;
    assert_eq!(postponed["metadata"]["pending"]["postponed"], 1, "{postponed}");
    assert!(postponed["response_text"].as_str().unwrap().ends_with(&format!("Still open: {QUESTION}")));
    let cancelled = run("ok", &text(&postponed), &postponed["metadata"]["pending"]).await;
    assert_eq!(cancelled["metadata"]["pending"], Value::Null, "{cancelled}");
    // The texts alone are enough.
    let repeated = run("yes", &text(&asked), &Value::Null).await;
    assert_eq!(repeated["response_text"], format!("I need the exact phrase for that.\n{QUESTION}"));
    let cancelled = run("yes", &text(&repeated), &Value::Null).await;
    assert!(cancelled["response_text"].as_str().unwrap().contains("cancelled"), "{cancelled}");
    let postponed = run("add buy bread", &text(&asked), &Value::Null).await;
    let deleted = run("yes delete", &text(&postponed), &Value::Null).await;
    assert_eq!(deleted["response_text"], "I've removed 'buy milk' from your tasks.");
    // Calls that were stored by an earlier version have no counters.
    assert_eq!(titles(&server).await, ["buy bread"]);
    assert!(asked["metadata"]["pending"].get("repeated").is_none());
}

#[tokio::test]
async fn several_tasks_are_changed_in_one_step() {
    // TRUST-6, AGENT-13
    let server = scripted(|prompt| {
        let ids: Vec<&str> = prompt.request.message.split_whitespace().skip(1).collect();
        match (prompt.steps.len(), prompt.request.message.starts_with("move")) {
            (0, true) => {
                let updates: Vec<_> =
                    ids.iter().map(|id| json!({"task_id": id, "due_date": "2026-03-11", "priority": "HIGH"})).collect();
                vec![call("update_tasks", json!({"updates": updates}))]
            }
            _ => vec![say("Moved them to Wednesday 11 March with high priority.")],
        }
    })
    .await;
    let mut ids = Vec::new();
    for title in ["a", "b", "c"] {
        ids.push(server.add(UserId::LOCAL, title).await.id.to_string());
    }
    let asked = server.chat(&format!("move {}", ids.join(" "))).await;
    assert_eq!(
        asked["response"],
        "That's a big action. It would move 'a', 'b' and 'c' to Wed 11 Mar 2026 and set them to high priority. \
         Confirm with 'yes change 3 tasks'."
    );
    let done = server.chat("yes change 3 tasks").await;
    assert_eq!(done["response"], "Moved them to Wednesday 11 March with high priority.", "{done}");
    let result = &done["tool_calls"][0]["result"];
    assert_eq!((&result["count"], &result["tasks"][0]["changed"]), (&json!(3), &json!(true)));
    assert_eq!(result["tasks"][2]["task"]["due_date"], "2026-03-11");
    let undo = server.post("/api/tasks/undo", &json!({})).await;
    assert_eq!(undo.json::<Value>().await.unwrap()["count"], 3);

    // One invalid entry, and nothing is changed.
    let server = scripted(|prompt| {
        let id = prompt.request.message.clone();
        let updates = json!([{"task_id": id, "title": "new"}, {"task_id": id, "due_date": "soon"}, {"task_id": "x"}]);
        if prompt.steps.is_empty() { vec![call("update_tasks", json!({"updates": updates}))] } else { vec![say("Hm.")] }
    })
    .await;
    let task = server.add(UserId::LOCAL, "old").await;
    let answer = server.chat(&task.id.to_string()).await;
    let error = answer["tool_calls"][0]["error"].as_str().unwrap();
    assert!(error.contains("updates[1].due_date") && error.contains("updates[2]"), "{error}");
    assert_eq!(titles(&server).await, ["old"]);
}

#[tokio::test]
async fn a_provider_model_continues_after_a_confirmation() {
    // AGENT-7
    let server = scripted(|prompt| {
        let message = prompt.request.message.as_str();
        match (prompt.steps.len(), message) {
            (0, "yes delete") => panic!("the result of the confirmed call is missing"),
            (1, "yes delete") => vec![call("add_task", json!({"title": "buy oat milk"}))],
            (_, "yes delete") => vec![say("Milk is gone and oat milk is on your list.")],
            (0, message) => {
                let id = message.split_whitespace().last().unwrap_or_default();
                vec![call("delete_task", json!({"task_id": id}))]
            }
            _ => vec![say("One moment.")],
        }
    })
    .await;
    let task = server.add(UserId::LOCAL, "buy milk").await;
    server.chat(&format!("replace {}", task.id)).await;
    let answer = server.chat("yes delete").await;
    assert_eq!(answer["response"], "Milk is gone and oat milk is on your list.");
    let names: Vec<_> = answer["tool_calls"].as_array().unwrap().iter().map(|call| &call["tool_name"]).collect();
    assert_eq!(names, ["delete_task", "add_task"]);
    assert_eq!(titles(&server).await, ["buy oat milk"]);
}

#[tokio::test]
async fn a_failing_model_does_not_repeat_a_confirmed_call() {
    // AGENT-7, MODEL-3
    for with_fallback in [false, true] {
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = calls.clone();
        let scripted = ScriptedModel::new(move |prompt: &Prompt<'_>| {
            let message = prompt.request.message.clone();
            counted.fetch_add(1, Ordering::Relaxed);
            match (message.as_str(), prompt.steps.len()) {
                ("yes delete", _) => vec![say("Let me "), ReplyStep::Fail],
                (_, 0) => {
                    let id = message.split_whitespace().last().unwrap_or_default().to_owned();
                    vec![call("delete_task", json!({"task_id": id}))]
                }
                _ => vec![say("ok")],
            }
        });
        let fallback = with_fallback.then(|| Arc::new(OfflineModel) as Arc<dyn ChatModel>);
        let server = TestServer::with_models(ServerSettings::default(), ModelChain::new(scripted, fallback)).await;
        let task = server.add(UserId::LOCAL, "buy milk").await;
        server.chat(&format!("delete {}", task.id)).await;
        let answer = server.chat("yes delete").await;
        let text = answer["response"].as_str().unwrap();
        assert!(text.ends_with("I've removed 'buy milk' from your tasks."), "{answer}");
        assert_eq!((&answer["success"], answer["tool_calls"].as_array().unwrap().len()), (&json!(true), 1));
        assert_eq!(calls.load(Ordering::Relaxed), 3);
        assert!(titles(&server).await.is_empty());
    }
}

#[tokio::test]
async fn the_offline_model_does_not_answer_after_a_tool_ran() {
    // MODEL-3
    let scripted = ScriptedModel::new(|prompt: &Prompt<'_>| match prompt.steps.len() {
        0 => vec![call("list_tasks", json!({}))],
        _ => vec![ReplyStep::Fail],
    });
    let chain = ModelChain::new(scripted, [Arc::new(OfflineModel) as Arc<dyn ChatModel>]);
    let server = TestServer::with_models(ServerSettings::default(), chain).await;
    let answer = server.chat("add buy milk").await;
    assert_eq!(answer["success"], false, "{answer}");
    assert!(titles(&server).await.is_empty());
}

#[tokio::test]
async fn claims_of_a_model_are_corrected() {
    // TRUST-2
    let correction = "To be clear: nothing was changed just now, and no reminder was set.";
    for claim in ["Done!", "I've added 'buy milk' to your list.", "Your reminder is set for 3pm."] {
        let server = scripted(move |_| vec![say(claim)]).await;
        assert_eq!(server.chat("remind me to buy milk at 3pm").await["response"], format!("{claim}\n{correction}"));
    }
    for text in ["You have no tasks.", "Shall I add it?", "I can't do that."] {
        let server = scripted(move |_| vec![say(text)]).await;
        assert_eq!(server.chat("milk?").await["response"], text);
    }
}

#[tokio::test]
async fn values_that_a_model_does_not_name_are_added() {
    // TRUST-1
    let add = |due: &'static str, reply: &'static str| async move {
        let server = scripted(move |prompt| match prompt.steps.len() {
            0 if due.is_empty() => vec![call("add_task", json!({"title": "call mom"}))],
            0 => vec![call("add_task", json!({"title": "call mom", "due_date": due}))],
            _ => vec![say(reply)],
        })
        .await;
        server.chat("call mom tomorrow at 3").await["response"].as_str().unwrap().to_owned()
    };
    // The clock of the test is at Sunday, 2025-12-21.
    let sentence = "Due tomorrow (Mon 22 Dec) at 3pm.";
    assert_eq!(add("2025-12-22T15:00:00", "Added!").await, format!("Added!\n'call mom': {sentence}"));
    let day = "Call mom is on your list for tomorrow.";
    assert_eq!(add("2025-12-22T15:00:00", day).await, format!("{day}\n{sentence}"));
    let named = "Added 'call mom' for tomorrow at 3 pm.";
    assert_eq!(add("2025-12-22T15:00:00", named).await, named);
    let named = "Added the call with mom: Monday 15:00.";
    assert_eq!(add("2025-12-22T15:00:00", named).await, named);
    // The text names another day than the stored one, also beside it.
    for wrong in ["Added 'call mom' for tomorrow at 3pm.", "Added 'call mom' for tomorrow, Tuesday, at 3pm."] {
        assert_eq!(add("2025-12-23T15:00:00", wrong).await, format!("{wrong}\nDue Tue 23 Dec at 3pm."));
    }
    assert_eq!(add("", "Added!").await, "Added!\nDone! I've taken care of 'call mom'.");
    assert_eq!(add("", "Added 'call mom'.").await, "Added 'call mom'.");
}

#[tokio::test]
async fn false_claims_beside_true_ones_are_contradicted() {
    // TRUST-1, TRUST-2
    let answer = |call_of: fn(&str) -> ReplyStep, reply: &'static str| async move {
        let server = TestServer::with_script(move |prompt| {
            let id = prompt.request.message.split_whitespace().last().unwrap_or_default();
            if prompt.steps.is_empty() { vec![call_of(id)] } else { vec![say(reply)] }
        })
        .await;
        let task = server.add(UserId::LOCAL, "call mom").await;
        let answer = server.chat(&format!("about the call with mom {}", task.id)).await;
        answer["response"].as_str().unwrap().strip_prefix(reply).unwrap().trim().to_owned()
    };
    let complete = |id: &str| call("complete_task", json!({"task_id": id}));
    let remind = |id: &str| call("schedule_reminder", json!({"task_id": id, "remind_at": "2099-01-05T09:00:00Z"}));
    let update = |id: &str| call("update_task", json!({"task_id": id, "priority": "high", "due_date": ""}));
    for (call_of, reply, added) in [
        (complete as fn(&str) -> ReplyStep, "I've completed 'call mom'.", ""),
        (complete, "All done with the call to mom. Anything else?", ""),
        (complete, "Done.", "Great! I've marked 'call mom' as complete."),
        (
            complete,
            "I've completed 'call mom' and set a reminder for 5pm.",
            "To be clear: no reminder was set for that just now.",
        ),
        (
            complete,
            "I've completed 'call mom' and 'buy bread'.",
            "To be clear: 'buy bread' was not marked as done just now.",
        ),
        (complete, "Call mom is done. I've also deleted the rest.", "To be clear: nothing was deleted just now."),
        (remind, "I'll remind you to call mom.", "The reminder about 'call mom' is set for Mon 5 Jan 2099 at 9am."),
        (update, "I've changed 'call mom' to high priority.", "High priority. It now has no due date."),
        (update, "I've highlighted 'call mom' without a date.", "High priority. It now has no due date."),
    ] {
        assert_eq!(answer(call_of, reply).await, added, "{reply}");
    }
}

#[tokio::test]
async fn a_question_about_the_past_is_not_contradicted() {
    // TRUST-2
    let server = TestServer::with_script(|_| vec![say("Yes, the reminder is set for 3pm.")]).await;
    let answer = server.chat("is there a reminder for the milk?").await;
    assert_eq!(answer["response"], "Yes, the reminder is set for 3pm.");
    let answer = server.chat("remind me about the milk at 3pm").await;
    let corrected =
        "Yes, the reminder is set for 3pm.\nTo be clear: nothing was changed just now, and no reminder was set.";
    assert_eq!(answer["response"], corrected);
}

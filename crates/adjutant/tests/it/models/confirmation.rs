//! Confirmation and a change of the model, with a scripted model (AGENT-7, MODEL-2).

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use testkit::llm::{Llm, LlmFailure, Reply, Request};

use super::{Fixture, Provider, add_task, find_uuid};

/// Returns a model that finds the id of a task, deletes the task and replies with this text.
fn deleting_model(title: &'static str, reply: &'static str) -> impl Fn(&Request) -> Reply + Send + Sync {
    move |request| match request.tool_results().as_slice() {
        [] => Reply::call("list_tasks", json!({})),
        [deleted] if deleted.starts_with("Deleted task") => Reply::text("It's gone, as you wished."),
        [list] => {
            let line = list.lines().find(|line| line.contains(title)).unwrap();
            Reply::call("delete_task", json!({"task_id": find_uuid(line).unwrap()}))
        }
        _ => Reply::text(reply),
    }
}

#[tokio::test]
async fn a_deletion_is_held_and_the_model_continues_with_its_result() {
    // AGENT-7
    for provider in Provider::ONE_PER_PROTOCOL {
        let fixture = Fixture::new(provider).await;
        fixture.server.post("/api/tasks", &json!({"title": "buy milk"})).await;
        fixture.llm.reply_with(deleting_model("buy milk", "Deleted! I've removed 'buy milk' from your tasks."));
        let turn = fixture.send_in("conv_1", "delete the milk").await;
        // The claim of the model is replaced.
        assert_eq!(
            turn.output(),
            "Do you really want to delete 'buy milk'? Reply 'yes delete' to confirm.",
            "{provider:?}"
        );
        assert_eq!(turn.done()["confirmation_phrase"], "yes delete");
        assert!(turn.succeeded() && turn.calls() == [("list_tasks", "completed")], "{provider:?} {turn:?}");
        assert_eq!(fixture.titles().await, ["buy milk"], "{provider:?}");
        let results = fixture.llm.requests().last().unwrap().tool_results();
        assert!(results[1].contains("Not done yet"), "{results:?}");
        let before = fixture.request_count();
        let turn = fixture.send_in("conv_1", "Yes, delete!").await;
        assert_eq!(turn.output(), "It's gone, as you wished.", "{provider:?}");
        assert_eq!(turn.calls(), [("delete_task", "completed")], "{provider:?}");
        assert_eq!(fixture.request_count(), before + 1, "{provider:?}");
        assert!(fixture.titles().await.is_empty(), "{provider:?}");
    }
}

#[tokio::test]
async fn a_refusal_cancels_and_confirmation_needs_no_provider() {
    // AGENT-7, MODEL-3
    let fixture = Fixture::new(Provider::OpenAi).await;
    fixture.server.post("/api/tasks", &json!({"title": "buy milk"})).await;
    fixture.llm.reply_with(deleting_model("buy milk", "Gone."));
    fixture.send_in("conv_1", "delete the milk").await;
    fixture.llm.always(Reply::text("As you like."));
    assert_eq!(fixture.send_in("conv_1", "no, keep it").await.output(), "Okay, nothing was changed.");
    fixture.send_in("conv_1", "yes delete").await;
    assert_eq!(fixture.titles().await, ["buy milk"]);
    fixture.llm.reply_with(deleting_model("buy milk", "Gone."));
    fixture.send_in("conv_1", "delete the milk").await;
    fixture.llm.stop().await;
    let turn = fixture.send_in("conv_1", "yes delete").await;
    assert_eq!((turn.output(), turn.errors().len()), ("I've removed 'buy milk' from your tasks.", 1));
    assert!(turn.succeeded() && fixture.titles().await.is_empty(), "{turn:?}");
}

#[tokio::test]
async fn completed_and_held_calls_of_one_turn_are_both_reported() {
    let fixture = Fixture::new(Provider::OpenAi).await;
    let task: Value = fixture.server.post("/api/tasks", &json!({"title": "buy milk"})).await.json().await.unwrap();
    let delete = ("delete_task", json!({"task_id": task["id"]}));
    let both = Reply::calls([("add_task", json!({"title": "buy eggs"})), delete]);
    let texts = ["Added eggs and deleted the milk!", "The milk is gone."].map(Reply::text);
    fixture.llm.script([both].into_iter().chain(texts));
    let turn = fixture.send_in("conv_1", "add buy eggs and delete the milk").await;
    let expected = "Done! I've taken care of 'buy eggs'.\n\
                 Do you really want to delete 'buy milk'? Reply 'yes delete' to confirm.";
    assert_eq!(turn.output(), expected);
    assert_eq!(fixture.titles().await, ["buy milk", "buy eggs"]);
    assert_eq!(fixture.send_in("conv_1", "yes delete").await.output(), "The milk is gone.");
    assert_eq!(fixture.titles().await, ["buy eggs"]);
}

#[tokio::test]
async fn a_held_call_is_confirmed_after_a_model_failure() {
    let fixture = Fixture::new(Provider::OpenAi).await;
    let task: Value = fixture.server.post("/api/tasks", &json!({"title": "buy milk"})).await.json().await.unwrap();
    fixture
        .llm
        .script([Reply::call("delete_task", json!({"task_id": task["id"]})), Reply::failure(LlmFailure::Status(401))]);
    let turn = fixture.send_in("conv_1", "delete the milk task").await;
    turn.assert_fell_back();
    assert_eq!(turn.output(), "Do you really want to delete 'buy milk'? Reply 'yes delete' to confirm.");
    fixture.send_in("conv_1", "yes delete").await;
    assert!(fixture.titles().await.is_empty());
}

#[tokio::test]
async fn sighup_changes_the_model_for_the_next_turn() {
    // MODEL-2
    let fixture = Fixture::new(Provider::OpenAi).await;
    fixture.llm.script([add_task("buy milk"), Reply::text("I am the first, and added buy milk.")]);
    assert_eq!(fixture.send_in("conv_1", "milk").await.output(), "I am the first, and added buy milk.");
    let other = Llm::start().await;
    other.always(Reply::text("I am the second."));
    fixture.home.write_config(&format!("[model]\n{}", Provider::Anthropic.config_lines(&other.url())));
    fixture.server.signal(Signal::SIGHUP);
    fixture.server.wait_for_event("configuration_reloaded").await;
    let before = fixture.request_count();
    let turn = fixture.send_in("conv_1", "who are you?").await;
    assert_eq!((turn.output(), &turn.done()["model"]), ("I am the second.", &json!(Provider::Anthropic.label())));
    assert_eq!(fixture.request_count(), before);
    assert_eq!(other.requests()[0].transcript().len(), 4, "the new model receives the history");
    fixture.home.write_config("[model]\nprovider = \"offline\"\n");
    fixture.server.signal(Signal::SIGHUP);
    while fixture.server.raw_log().matches("configuration_reloaded").count() < 2 {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    assert_eq!(fixture.send_in("conv_1", "show my tasks").await.done()["model"], "offline");
}

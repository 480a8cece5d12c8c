//! Confirmation, and a change of model, with a model that is not ours (AGENT-7, MODEL-2).

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use testkit::llm::{Fault, Llm, Reply, Request};

use super::{Kind, Stage, adding, find_uuid};

/// A model that deletes a task: it looks for its id, calls, and says what it likes.
fn deleting(title: &'static str, says: &'static str) -> impl Fn(&Request) -> Reply + Send + Sync {
    move |request| match request.tool_results().as_slice() {
        [] => Reply::call("list_tasks", json!({})),
        [list] => {
            let line = list.lines().find(|line| line.contains(title)).unwrap();
            Reply::call("delete_task", json!({"task_id": find_uuid(line).unwrap()}))
        }
        _ => Reply::text(says),
    }
}

#[tokio::test]
async fn a_deletion_is_held_and_released_without_the_model() {
    for kind in Kind::WIRES {
        let stage = Stage::new(kind).await;
        stage.server.post("/api/tasks", &json!({"title": "buy milk"})).await;
        stage.llm.decide(deleting("buy milk", "Deleted! I've removed 'buy milk' from your tasks."));
        let turn = stage.say_in("conv_1", "delete the milk").await;
        // What it claims is not believed.
        assert_eq!(
            turn.output(),
            "Do you really want to delete 'buy milk'? Reply 'yes delete' to confirm.",
            "{kind:?}"
        );
        assert_eq!(turn.done()["confirmation_phrase"], "yes delete");
        assert!(turn.succeeded() && turn.calls() == [("list_tasks", "completed")], "{kind:?} {turn:?}");
        assert_eq!(stage.titles().await, ["buy milk"], "{kind:?}");
        let told = stage.llm.requests().last().unwrap().tool_results();
        assert!(told[1].contains("Not done yet"), "{told:?}");
        let before = stage.count();
        let turn = stage.say_in("conv_1", "Yes, delete!").await;
        assert_eq!(turn.output(), "I've removed 'buy milk' from your tasks.", "{kind:?}");
        assert_eq!(turn.calls(), [("delete_task", "completed")], "{kind:?}");
        assert_eq!(stage.count(), before, "{kind:?}: the model was not asked");
        assert!(stage.titles().await.is_empty(), "{kind:?}");
    }
}

#[tokio::test]
async fn anything_else_cancels_and_a_broken_provider_does_not_matter() {
    let stage = Stage::new(Kind::OpenAi).await;
    stage.server.post("/api/tasks", &json!({"title": "buy milk"})).await;
    stage.llm.decide(deleting("buy milk", "Gone."));
    stage.say_in("conv_1", "delete the milk").await;
    stage.llm.always(Reply::text("As you like."));
    assert_eq!(stage.say_in("conv_1", "no, keep it").await.output(), "As you like.");
    stage.say_in("conv_1", "yes delete").await;
    assert_eq!(stage.titles().await, ["buy milk"]);
    stage.llm.decide(deleting("buy milk", "Gone."));
    stage.say_in("conv_1", "delete the milk").await;
    stage.llm.stop().await;
    let turn = stage.say_in("conv_1", "yes delete").await;
    assert_eq!((turn.output(), turn.errors().len()), ("I've removed 'buy milk' from your tasks.", 0));
}

#[tokio::test]
async fn what_is_done_beside_what_is_held_is_told_in_our_words() {
    let stage = Stage::new(Kind::OpenAi).await;
    let made: Value = stage.server.post("/api/tasks", &json!({"title": "buy milk"})).await.json().await.unwrap();
    let delete = ("delete_task", json!({"task_id": made["id"]}));
    let both = Reply::calls([("add_task", json!({"title": "buy eggs"})), delete]);
    stage.llm.script([both, Reply::text("Added eggs and deleted the milk!")]);
    let turn = stage.say_in("conv_1", "add buy eggs and delete the milk").await;
    let words = "Done! I've taken care of 'buy eggs'.\n\
                 Do you really want to delete 'buy milk'? Reply 'yes delete' to confirm.";
    assert_eq!(turn.output(), words);
    assert_eq!(stage.titles().await, ["buy milk", "buy eggs"]);
    assert_eq!(stage.say_in("conv_1", "yes delete").await.output(), "I've removed 'buy milk' from your tasks.");
    assert_eq!(stage.titles().await, ["buy eggs"]);
}

#[tokio::test]
async fn what_is_held_when_the_model_fails_is_asked_about_by_the_built_in_one() {
    let stage = Stage::new(Kind::OpenAi).await;
    let made: Value = stage.server.post("/api/tasks", &json!({"title": "buy milk"})).await.json().await.unwrap();
    stage.llm.script([Reply::call("delete_task", json!({"task_id": made["id"]})), Reply::fault(Fault::Status(401))]);
    let turn = stage.say_in("conv_1", "delete the milk task").await;
    turn.assert_fell_back();
    assert_eq!(turn.output(), "Do you really want to delete 'buy milk'? Reply 'yes delete' to confirm.");
    stage.say_in("conv_1", "yes delete").await;
    assert!(stage.titles().await.is_empty());
}

#[tokio::test]
async fn a_hangup_changes_the_model_for_the_next_turn() {
    // MODEL-2
    let stage = Stage::new(Kind::OpenAi).await;
    stage.llm.script([adding("buy milk"), Reply::text("I am the first.")]);
    assert_eq!(stage.say_in("conv_1", "milk").await.output(), "I am the first.");
    let other = Llm::start().await;
    other.always(Reply::text("I am the second."));
    stage.home.write_config(&format!("[model]\n{}", Kind::Anthropic.configured(&other.url())));
    stage.server.signal(Signal::SIGHUP);
    stage.server.logged("configuration_reloaded").await;
    let before = stage.count();
    let turn = stage.say_in("conv_1", "who are you?").await;
    assert_eq!((turn.output(), &turn.done()["model"]), ("I am the second.", &json!(Kind::Anthropic.label())));
    assert_eq!(stage.count(), before);
    assert_eq!(other.requests()[0].transcript().len(), 4, "it knows the conversation");
    stage.home.write_config("[model]\nprovider = \"offline\"\n");
    stage.server.signal(Signal::SIGHUP);
    while stage.server.raw_log().matches("configuration_reloaded").count() < 2 {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    assert_eq!(stage.say_in("conv_1", "show my tasks").await.done()["model"], "offline");
}

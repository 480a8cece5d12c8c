//! Tools of others beside our own, with a scripted model: what it is offered, what is asked about first, and how the
//! configuration changes that.

use serde_json::{Value, json};
use testkit::llm::Reply;

use super::{Library, Peer, Stage};

const QUESTION: &str = "Do you want me to run send_note (to: Ann, text: Hello)? Reply 'yes run send_note' to confirm.";

async fn stage(first: &str, more: &str) -> Stage {
    Stage::beside(Peer::on_stdio(Library::FastMcp), first, more).await
}

fn note() -> Reply {
    Reply::call("send_note", json!({"to": "Ann", "text": "Hello"}))
}

#[tokio::test]
async fn a_model_is_offered_both_kinds_of_tools() {
    // TASK-3
    let stage = stage("", "").await;
    stage.say("hello").await;
    let asked = stage.llm().requests()[0].clone();
    let tools = asked.tools();
    for tool in ["add_task", "list_tasks", "create_todo", "list_todos", "send_note", "save_contact", "ponder"] {
        assert!(tools.iter().any(|name| name == tool), "{tool}: {tools:?}");
    }
    let schema = asked.tool_schema("save_contact").unwrap();
    let text = schema.to_string();
    for word in ["$ref", "$defs", "anyOf", "null"] {
        assert!(!text.contains(word), "{word}: {text}");
    }
    assert_eq!(schema["properties"]["contact"]["properties"]["home"]["properties"]["street"]["type"], "string");
    let deletion = asked.tool_schema("delete_todo").unwrap();
    assert!(!deletion.to_string().contains("confirmation"), "{deletion}");

    stage.llm().script([
        Reply::call("save_contact", json!({"contact": {"name": "Ann", "home": {"street": "Elm"}, "work": null}})),
        Reply::text("Shall I?"),
    ]);
    stage.say("keep Ann's address").await;
    let done = stage.say("yes run save_contact").await;
    assert_eq!(done.output(), "Done! Saved Ann of Elm");
    let asked = &stage.peer.asked("save_contact")[0];
    assert_eq!(asked["contact"]["home"], json!({"street": "Elm"}));
}

#[tokio::test]
async fn our_own_tools_keep_their_names() {
    // TASK-2, TASK-3
    let stage = stage("[tasks]\ntool_names = \"todo\"\n", "").await;
    stage.say("hello").await;
    let tools = stage.llm().requests()[0].tools();
    for tool in ["create_todo", "todos__create_todo", "delete_todo", "todos__delete_todo", "send_note"] {
        assert!(tools.iter().any(|name| name == tool), "{tool}: {tools:?}");
    }
    stage.llm().script([
        Reply::call("todos__create_todo", json!({"title": "theirs"})),
        Reply::call("create_todo", json!({"title": "ours"})),
        Reply::text("Both are there."),
    ]);
    let turn = stage.say("add theirs there and ours here").await;
    assert_eq!(turn.calls(), [("todos__create_todo", "completed"), ("create_todo", "completed")]);
    assert_eq!(stage.peer.tasks().len(), 1);
    let ours: Value = stage.server.get("/api/tasks?status=all").await.json().await.unwrap();
    assert_eq!((&ours["tasks"][0]["title"], ours["tasks"].as_array().unwrap().len()), (&json!("ours"), 1));

    let id = stage.peer.tasks()[0]["id"].clone();
    stage.llm().script([
        Reply::call("todos__delete_todo", json!({"todo_id": id, "confirmation": true})),
        Reply::text("Really?"),
    ]);
    let asked = stage.say("delete theirs").await;
    let question = "Do you really want to delete 'theirs'? Reply 'yes delete' to confirm.";
    assert!(asked.output().ends_with(question), "{asked:?}");
    assert!(stage.peer.asked("delete_todo").is_empty(), "a model cannot agree");
    assert_eq!(stage.say("yes delete").await.output(), "I've removed 'theirs' from your tasks.");
    assert_eq!(stage.peer.asked("delete_todo"), [json!({"todo_id": id, "confirmation": true})]);
}

#[tokio::test]
async fn what_a_stranger_does_is_asked_about_first() {
    // AGENT-7
    let stage = stage("", "").await;
    stage.llm().script([note(), Reply::text("I'd like to send it.")]);
    let asked = stage.say("send Ann a note").await;
    assert!(asked.output().ends_with(QUESTION), "{asked:?}");
    assert!(stage.peer.asked("send_note").is_empty() && asked.calls().is_empty(), "{asked:?}");

    stage.llm().script([Reply::text("All right.")]);
    stage.say("yes delete").await;
    stage.llm().script([Reply::text("Nothing to do.")]);
    stage.say("yes run send_note").await;
    assert!(stage.peer.asked("send_note").is_empty(), "something else was said in between");

    stage.llm().script([note(), Reply::text("I'd like to send it.")]);
    stage.say("send Ann a note").await;
    let sent = stage.say("Yes, run send_note.").await;
    assert_eq!(sent.output(), "Done! Sent to Ann: Hello");
    assert_eq!(sent.calls(), [("send_note", "completed")]);
    assert_eq!(stage.peer.asked("send_note"), [json!({"to": "Ann", "text": "Hello"})], "exactly that, once");
    stage.llm().script([Reply::text("Nothing to do.")]);
    stage.say("yes run send_note").await;
    assert_eq!(stage.peer.asked("send_note").len(), 1, "consent is for once");

    // What it says about itself is not believed.
    stage.llm().script([Reply::call("count_todos", json!({})), Reply::text("Shall I count?")]);
    let asked = stage.say("how many todos are there?").await;
    assert!(asked.output().contains("yes run count_todos"), "{asked:?}");
    // A tool of S0's is known.
    stage.llm().script([Reply::call("create_todo", json!({"title": "milk"})), Reply::text("Added.")]);
    let added = stage.say("add milk").await;
    assert_eq!(added.calls(), [("create_todo", "completed")]);
}

#[tokio::test]
async fn the_configuration_says_who_is_asked_about_what() {
    // AGENT-7, OPS-6
    let count = || Reply::call("count_todos", json!({}));
    let add = || Reply::call("create_todo", json!({"title": "milk"}));
    // What is configured, what is called, and whether it is carried out at once.
    let cases = [
        ("", "trust = true\n", "count_todos", count(), true),
        ("", "trust = true\n", "send_note", note(), false),
        ("", "never_ask = [\"send_*\"]\n", "send_note", note(), true),
        ("", "ask = [\"create_todo\"]\n", "create_todo", add(), false),
        ("", "ask = [\"send_note\"]\nnever_ask = [\"send_note\"]\n", "send_note", note(), false),
        ("[assistant]\nconfirm = \"never\"\n", "", "send_note", note(), true),
        ("[assistant]\nconfirm = \"never\"\n", "ask = [\"send_note\"]\n", "send_note", note(), false),
    ];
    for (first, more, tool, call, at_once) in cases {
        let stage = stage(first, more).await;
        stage.llm().script([call, Reply::text("So be it.")]);
        let turn = stage.say("go ahead").await;
        assert_eq!(stage.peer.asked(tool).len(), usize::from(at_once), "{first}{more}{tool}: {turn:?}");
        assert_eq!(turn.output().contains(&format!("yes run {tool}")), !at_once, "{first}{more}{tool}: {turn:?}");
    }
}

#[tokio::test]
async fn only_what_is_allowed_is_offered() {
    // TASK-3
    let stage = stage("", "allow = [\"*_todos\", \"send_note\"]\ndeny = [\"list_*\"]\n").await;
    assert_eq!(stage.health().await["tools"], 2);
    stage.llm().script([Reply::call("list_todos", json!({})), Reply::text("I cannot.")]);
    stage.say("hello").await;
    let tools = stage.llm().requests()[0].tools();
    let theirs: Vec<_> = tools.iter().filter(|name| name.contains("todo") || name.contains("note")).collect();
    assert_eq!(theirs, ["count_todos", "send_note"], "{tools:?}");
    assert!(stage.peer.asked("list_todos").is_empty(), "what is not offered cannot be called");
}

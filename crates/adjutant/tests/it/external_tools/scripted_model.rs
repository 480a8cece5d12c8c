//! External and built-in tools with a scripted model: the offered tools, confirmation, and the settings for both.

use serde_json::{Value, json};
use testkit::llm::Reply;

use super::{ExternalServer, Fixture, Library};

const QUESTION: &str = "Do you want me to run send_note (to: Ann, text: Hello)? \
                        To allow this tool from now on, reply 'always allow send_note'. \
                        Reply 'yes run send_note' to confirm.";

async fn start_fixture(config: &str, extra: &str) -> Fixture {
    Fixture::with_scripted_model(ExternalServer::on_stdio(Library::FastMcp), config, extra).await
}

fn note() -> Reply {
    Reply::call("send_note", json!({"to": "Ann", "text": "Hello"}))
}

#[tokio::test]
async fn models_are_offered_built_in_and_external_tools() {
    // AGENT-2, TASK-3
    let fixture = start_fixture("", "trust = true\n").await;
    fixture.send("hello").await;
    let asked = fixture.llm().requests()[0].clone();
    let tools = asked.tool_names();
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

    fixture.llm().script([
        Reply::call("save_contact", json!({"contact": {"name": "Ann", "home": {"street": "Elm"}, "work": null}})),
        Reply::text("Shall I?"),
    ]);
    fixture.send("keep Ann's address").await;
    fixture.llm().script([Reply::text("Ann is in your contacts.")]);
    let done = fixture.send("yes run save_contact").await;
    assert_eq!(done.output(), "Ann is in your contacts.");
    let requests = fixture.llm().requests();
    assert_eq!(requests.last().unwrap().tool_results(), ["Saved Ann of Elm"], "the model gets the result");
    let asked = &fixture.external.calls_of("save_contact")[0];
    assert_eq!(asked["contact"]["home"], json!({"street": "Elm"}));
}

#[tokio::test]
async fn models_cannot_choose_the_user() {
    // AGENT-3, TASK-3
    let fixture = Fixture::with_scripted_model(ExternalServer::on_stdio(Library::OldMcp), "", "trust = true\n").await;
    fixture.llm().script([
        Reply::call("todos__add_task", json!({"title": "milk", "user_id": crate::BOB})),
        Reply::text("Added."),
    ]);
    let turn = fixture.send("add milk to the other list").await;
    assert_eq!(turn.calls(), [("todos__add_task", "completed")]);
    let shown: Vec<_> = turn.events_named("tool_call").map(|call| &call["arguments"]).collect();
    assert_eq!(shown, [&json!({"title": "milk"}); 2]);
    let schema = fixture.llm().requests()[0].tool_schema("todos__add_task").unwrap();
    assert!(!schema.to_string().contains("user_id"), "{schema}");
    let asked = &fixture.external.calls_of("add_task")[0];
    assert_eq!(asked, &json!({"title": "milk", "user_id": super::offline_model::LOCAL_USER}));
}

#[tokio::test]
async fn built_in_tools_keep_their_names() {
    // AGENT-7, TASK-2, TASK-3
    let fixture = start_fixture("[tasks]\ntool_names = \"todo\"\n", "trust = true\n").await;
    fixture.send("hello").await;
    let tools = fixture.llm().requests()[0].tool_names();
    for tool in ["create_todo", "todos__create_todo", "delete_todo", "todos__delete_todo", "send_note"] {
        assert!(tools.iter().any(|name| name == tool), "{tool}: {tools:?}");
    }
    fixture.llm().script([
        Reply::call("todos__create_todo", json!({"title": "theirs"})),
        Reply::call("create_todo", json!({"title": "ours"})),
        Reply::text("Both are there."),
    ]);
    let turn = fixture.send("add theirs there and ours here").await;
    assert_eq!(turn.calls(), [("todos__create_todo", "completed"), ("create_todo", "completed")]);
    assert_eq!(fixture.external.tasks().len(), 1);
    let ours: Value = fixture.server.get("/api/tasks?status=all").await.json().await.unwrap();
    assert_eq!((&ours["tasks"][0]["title"], ours["tasks"].as_array().unwrap().len()), (&json!("ours"), 1));

    let id = fixture.external.tasks()[0]["id"].clone();
    fixture.llm().script([
        Reply::call("todos__delete_todo", json!({"todo_id": id, "confirmation": true})),
        Reply::text("Really?"),
    ]);
    let asked = fixture.send("delete theirs").await;
    let question = "Do you really want to delete 'theirs'? Reply 'yes delete' to confirm.";
    assert!(asked.output().ends_with(question), "{asked:?}");
    assert!(fixture.external.calls_of("delete_todo").is_empty(), "a model cannot confirm");
    fixture.llm().script([Reply::text("It is gone.")]);
    assert_eq!(fixture.send("yes delete").await.output(), "It is gone.");
    assert_eq!(fixture.external.calls_of("delete_todo"), [json!({"todo_id": id, "confirmation": true})]);
}

#[tokio::test]
async fn external_tools_require_confirmation() {
    // AGENT-7
    let fixture = start_fixture("", "").await;
    fixture.llm().script([note(), Reply::text("I'd like to send it.")]);
    let asked = fixture.send("send Ann a note").await;
    assert!(asked.output().ends_with(QUESTION), "{asked:?}");
    assert!(fixture.external.calls_of("send_note").is_empty() && asked.calls().is_empty(), "{asked:?}");

    let repeated = fixture.send("yes delete").await;
    assert_eq!(repeated.output(), format!("I need the exact phrase for that.\n{QUESTION}"));
    fixture.send("no").await;
    fixture.llm().script([Reply::text("Nothing to do.")]);
    fixture.send("yes run send_note").await;
    assert!(fixture.external.calls_of("send_note").is_empty(), "a refusal cancels the pending call");

    fixture.llm().script([note(), Reply::text("I'd like to send it.")]);
    fixture.send("send Ann a note").await;
    fixture.llm().script([Reply::text("Ann has your note.")]);
    let sent = fixture.send("Yes, run send_note.").await;
    assert_eq!(sent.output(), "Ann has your note.");
    let requests = fixture.llm().requests();
    assert_eq!(requests.last().unwrap().tool_results(), ["Sent to Ann: Hello"], "the model gets the result");
    assert_eq!(sent.calls(), [("send_note", "completed")]);
    assert_eq!(
        fixture.external.calls_of("send_note"),
        [json!({"to": "Ann", "text": "Hello"})],
        "the confirmed call runs once"
    );
    fixture.llm().script([Reply::text("Nothing to do.")]);
    fixture.send("yes run send_note").await;
    assert_eq!(fixture.external.calls_of("send_note").len(), 1, "a confirmation is valid once");

    // The hints of an untrusted server are ignored.
    fixture.llm().script([Reply::call("count_todos", json!({})), Reply::text("Shall I count?")]);
    let asked = fixture.send("how many todos are there?").await;
    assert!(asked.output().contains("yes run count_todos"), "{asked:?}");
    // The name of a known task tool proves nothing.
    fixture.llm().script([Reply::call("create_todo", json!({"title": "milk"})), Reply::text("Added.")]);
    let added = fixture.send("add milk").await;
    assert!(added.calls().is_empty() && added.output().contains("yes run create_todo"), "{added:?}");
}

#[tokio::test]
async fn settings_control_confirmation() {
    // AGENT-7, OPS-6
    let count = || Reply::call("count_todos", json!({}));
    let add = || Reply::call("create_todo", json!({"title": "milk"}));
    // The settings, the call, and `true` if it runs without confirmation.
    let cases = [
        ("", "trust = true\n", "count_todos", count(), true),
        ("", "trust = true\n", "send_note", note(), false),
        ("", "trust = true\n", "create_todo", add(), true),
        ("", "", "create_todo", add(), false),
        ("", "never_ask = [\"send_*\"]\n", "send_note", note(), true),
        ("", "ask = [\"create_todo\"]\n", "create_todo", add(), false),
        ("", "ask = [\"send_note\"]\nnever_ask = [\"send_note\"]\n", "send_note", note(), false),
        ("[assistant]\nconfirm = \"never\"\n", "", "send_note", note(), true),
        ("[assistant]\nconfirm = \"never\"\n", "ask = [\"send_note\"]\n", "send_note", note(), false),
    ];
    for (config, extra, tool, call, runs_immediately) in cases {
        let fixture = start_fixture(config, extra).await;
        fixture.llm().script([call, Reply::text("So be it.")]);
        let turn = fixture.send("go ahead").await;
        assert_eq!(
            fixture.external.calls_of(tool).len(),
            usize::from(runs_immediately),
            "{config}{extra}{tool}: {turn:?}"
        );
        assert_eq!(
            turn.output().contains(&format!("yes run {tool}")),
            !runs_immediately,
            "{config}{extra}{tool}: {turn:?}"
        );
    }
}

#[tokio::test]
async fn a_tool_can_be_allowed_from_now_on() {
    // SEC-4, SEC-6
    let fixture = start_fixture("", "").await;
    fixture.llm().script([note(), Reply::text("May I?")]);
    assert!(fixture.send("send Ann a note").await.output().ends_with(QUESTION));
    fixture.llm().script([Reply::text("Ann has your note.")]);
    let sent = fixture.send("Always allow send_note").await;
    assert_eq!(sent.output(), "From now on I use send_note without asking.\nAnn has your note.");
    fixture.llm().script([note(), Reply::text("Again.")]);
    assert_eq!(fixture.send("send Ann another note").await.calls(), [("send_note", "completed")]);
    // Only this tool, and not after text of an external tool.
    fixture.llm().script([Reply::call("count_todos", json!({})), Reply::text("May I?")]);
    assert!(fixture.send("how many todos?").await.output().contains("'always allow count_todos'"));
    fixture.llm().script([note(), note(), Reply::text("May I?")]);
    let asked = fixture.send("send Ann two notes").await;
    assert!(asked.output().ends_with("text: Hello)? Reply 'yes run send_note' to confirm."), "{asked:?}");
    assert_eq!(fixture.external.calls_of("send_note").len(), 3);

    let listed: Value = fixture.server.get("/api/permissions").await.json().await.unwrap();
    let id = listed["permissions"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!((&listed["count"], &listed["permissions"][0]["tool"]), (&json!(1), &json!("send_note")));
    let one: Value = fixture.server.get(&format!("/api/permissions/{id}")).await.json().await.unwrap();
    assert_eq!(one, listed["permissions"][0]);
    let removed = fixture.home.run(&["permissions", "rm", &id, "--yes"]);
    assert_eq!(removed.code(), 0, "{}", removed.err());
    assert!(removed.out().starts_with("Removed the permission for send_note of "), "{}", removed.out());
    assert_eq!(fixture.home.run(&["permissions", "list", "--quiet"]).out(), "");
    let audit: Value = fixture.server.get("/api/audit").await.json().await.unwrap();
    let actions: Vec<_> = audit["records"].as_array().unwrap().iter().map(|record| &record["action"]).collect();
    assert_eq!(actions, ["permission.removed", "permission.granted"], "{audit}");
    fixture.llm().script([note(), Reply::text("May I?")]);
    assert!(fixture.send("send Ann a note").await.output().ends_with(QUESTION));
}

#[tokio::test]
async fn only_allowed_tools_are_offered() {
    // TASK-3
    let fixture = start_fixture("", "allow = [\"*_todos\", \"send_note\"]\ndeny = [\"list_*\"]\n").await;
    assert_eq!(fixture.health().await["tools"], 2);
    fixture.llm().script([Reply::call("list_todos", json!({})), Reply::text("I cannot.")]);
    fixture.send("hello").await;
    let tools = fixture.llm().requests()[0].tool_names();
    let theirs: Vec<_> = tools.iter().filter(|name| name.contains("todo") || name.contains("note")).collect();
    assert_eq!(theirs, ["count_todos", "send_note"], "{tools:?}");
    assert!(fixture.external.calls_of("list_todos").is_empty(), "a tool that is not offered cannot be called");
}

#[tokio::test]
async fn after_text_of_an_external_tool_every_change_is_confirmed() {
    // SEC-4
    let fixture = start_fixture("", "never_ask = [\"count_todos\"]\n").await;
    let count = || Reply::call("count_todos", json!({}));
    fixture.llm().script([count(), Reply::call("add_task", json!({"title": "evil"})), Reply::text("Counted.")]);
    let asked = fixture.send("how many todos are there?").await;
    assert!(asked.output().ends_with("run add_task (title: evil)? Reply 'yes run add_task' to confirm."), "{asked:?}");
    fixture.llm().script([count(), Reply::call("list_tasks", json!({})), Reply::text("None.")]);
    let read = fixture.send("how many todos and tasks are there?").await;
    assert_eq!(read.calls(), [("count_todos", "completed"), ("list_tasks", "completed")], "reading is not held");
    fixture.llm().script([count(), Reply::call("add_task", json!({"title": "buy bread"})), Reply::text("Added.")]);
    let own = fixture.send("add buy bread").await;
    assert_eq!(own.calls(), [("count_todos", "completed"), ("add_task", "completed")], "the user's own words");
}

//! Conversations with the offline model about tasks of an external server. The replies do not depend on the names of the
//! tools or the library of the server.

use jiff::civil::Date;
use serde_json::{Value, json};

use super::{ExternalServer, Fixture, Library};

/// The id of the local user.
pub(super) const LOCAL_USER: &str = "00000000-0000-7000-8000-000000000001";

/// Messages and replies.
const CONVERSATION: [(&str, &str); 17] = [
    ("add buy oat milk", "Got it! Added 'buy oat milk' to your list. Anything else?"),
    ("complete milk", "I found multiple tasks about 'milk'. Which one: 'buy milk', 'buy oat milk'?"),
    ("the first one", "Great! I've marked 'buy milk' as complete."),
    ("complete buy milk", "'buy milk' is already complete."),
    ("show my completed tasks", "You have 1 completed task:\n1. ✓ buy milk"),
    ("rename oat milk to buy soy milk", "Updated! 'buy oat milk' now has the title 'buy soy milk'."),
    ("show my tasks", "You have 1 task:\n1. ☐ buy soy milk"),
    ("mark call mom as done", "I couldn't find a task about 'call mom' in your list."),
    ("delete the unicorn", "I couldn't find a task about 'unicorn' in your list."),
    ("delete the soy milk", "Do you really want to delete 'buy soy milk'? Reply 'yes delete' to confirm."),
    (
        "hello",
        "Hello! I can add, list, complete, change and delete your tasks, remind you of them, run your agents and schedule \
         them. Say undo to take back a change. What would you like to do?\n\
         Still open: Do you really want to delete 'buy soy milk'? Reply 'yes delete' to confirm.",
    ),
    ("show my tasks", "You have 1 task:\n1. ☐ buy soy milk"),
    ("yes delete", "There's nothing waiting for your confirmation. What would you like to do?"),
    ("delete the soy milk", "Do you really want to delete 'buy soy milk'? Reply 'yes delete' to confirm."),
    ("yes, delete!", "I've removed 'buy soy milk' from your tasks."),
    ("show my tasks", "You have no open tasks. Everything is done!"),
    ("undo that", "I can't take that back here."),
];

/// Checks that chat discovers and uses the tools of the server (TASK-2, TASK-3, AGENT-7).
async fn check_conversation(external: ExternalServer) {
    let library = external.library;
    let fixture = Fixture::with_offline_model(external).await;
    let health = fixture.health().await;
    assert_eq!((&health["status"], &health["phase"]), (&json!("ok"), &json!("ready")), "{health}");
    assert_eq!((&health["protocol"], &health["tools"]), (&json!(library.protocol()), &json!(library.tool_count())));

    let added = fixture.send("add buy milk tomorrow with high priority").await;
    let listed = fixture.send("show my tasks").await;
    match library {
        Library::OldMcp => {
            let first = "Got it! Added 'buy milk' to your list. Anything else?";
            assert_eq!(added.output(), format!("{first}\nYour list has no place for a due date or a priority."));
            assert_eq!(listed.output(), "You have 1 task:\n1. ☐ buy milk");
            let refused = fixture.send("change buy milk to low priority").await;
            assert_eq!(refused.output(), "Your list has no place for a priority.");
            assert!(refused.calls().iter().all(|(tool, _)| *tool == "list_tasks"), "{refused:?}");
        }
        Library::FastMcp | Library::TypeScript => {
            let due: Date = fixture.external.tasks()[0]["due_date"].as_str().unwrap().parse().unwrap();
            let due = due.strftime("tomorrow (%a %-d %b)");
            let first = format!("Got it! Added 'buy milk' to your list. Due {due}, high priority. Anything else?");
            assert_eq!(added.output(), first);
            assert_eq!(listed.output(), "You have 1 task:\n1. ☐ buy milk (due tomorrow, high priority)");
            let changed = fixture.send("change buy milk to low priority").await;
            assert_eq!(changed.output(), "Updated! 'buy milk' now has low priority.");
            let listed = fixture.send("show my low priority tasks").await;
            assert_eq!(listed.output(), "You have 1 low priority task:\n1. ☐ buy milk (due tomorrow, low priority)");
        }
    }
    for (message, reply) in CONVERSATION {
        let turn = fixture.send(message).await;
        assert_eq!(turn.output(), reply, "{library:?}: {message}");
        assert!(turn.errors().is_empty() && turn.succeeded(), "{library:?}: {message}: {turn:?}");
        if message.starts_with("delete") {
            assert!(fixture.external.calls_of(delete_tool(library)).is_empty(), "{library:?}: not confirmed yet");
        }
    }
    let titles: Vec<Value> = fixture.external.tasks().iter().map(|task| task["title"].clone()).collect();
    assert_eq!(titles, ["buy milk"]);
    check_records(&fixture, library).await;
}

fn delete_tool(library: Library) -> &'static str {
    if library == Library::OldMcp { "delete_task" } else { "delete_todo" }
}

/// Checks the calls that the server received, and the stored conversation.
async fn check_records(fixture: &Fixture, library: Library) {
    let deletions = fixture.external.calls_of(delete_tool(library));
    assert_eq!(deletions.len(), 1, "{deletions:?}");
    match library {
        Library::OldMcp => assert_eq!(deletions[0]["user_id"], LOCAL_USER),
        _ => assert_eq!(deletions[0]["confirmation"], true),
    }
    let calls: Vec<Value> =
        fixture.external.records().into_iter().filter(|record| record["tool"].is_string()).collect();
    let takes_user = library == Library::OldMcp;
    assert!(calls.iter().all(|call| (call["arguments"]["user_id"] == LOCAL_USER) == takes_user), "{calls:?}");
    let stored = fixture.server.get("/api/conversations/conv_peers?limit=200").await.text().await.unwrap();
    assert!(stored.contains(delete_tool(library)), "{stored}");
    assert!(!stored.contains("user_id") && !stored.contains("confirmation\\\""), "{stored}");
    let log = fixture.server.raw_log();
    assert!(!log.contains("mcp_server_down") || fixture.external.port.is_some(), "{log}");
}

#[tokio::test]
async fn a_fastmcp_server_works_on_stdio() {
    // AGENT-2, AGENT-7
    check_conversation(ExternalServer::on_stdio(Library::FastMcp)).await;
}

#[tokio::test]
async fn a_fastmcp_server_works_over_http() {
    // TASK-2
    check_conversation(ExternalServer::over_http(Library::FastMcp)).await;
}

#[tokio::test]
async fn a_legacy_mcp_server_works_on_stdio() {
    // TASK-2
    check_conversation(ExternalServer::on_stdio(Library::OldMcp)).await;
}

#[tokio::test]
async fn a_legacy_mcp_server_works_over_http() {
    // TASK-3
    check_conversation(ExternalServer::over_http(Library::OldMcp)).await;
}

#[tokio::test]
async fn a_typescript_server_works_on_stdio() {
    // TASK-2
    check_conversation(ExternalServer::on_stdio(Library::TypeScript)).await;
}

#[tokio::test]
async fn a_typescript_server_works_over_http() {
    // TASK-3
    check_conversation(ExternalServer::over_http(Library::TypeScript)).await;
}

#[tokio::test]
async fn the_server_receives_the_id_of_the_user() {
    // AGENT-3, TASK-2
    let external = ExternalServer::on_stdio(Library::OldMcp);
    let names = format!("[tasks]\ntool_names = \"none\"\n{}", external.config_lines(""));
    let home = crate::home_with_auth().with_config(&names);
    let tokens = [crate::ALICE, crate::BOB].map(|user| crate::token(&home, user, &[]));
    let fixture = Fixture::start(home, external, None, Some(tokens[0].clone())).await;
    let send = async |token: &str, text: &str| {
        let request = fixture.server.request(reqwest::Method::POST, "/chat").bearer_auth(token);
        let answer: Value = request.json(&json!({"input": text})).send().await.unwrap().json().await.unwrap();
        answer["response"].as_str().unwrap().to_owned()
    };
    send(&tokens[0], "add buy a ring").await;
    assert_eq!(send(&tokens[1], "show my tasks").await, "You don't have any tasks yet.");
    assert_eq!(send(&tokens[0], "show my tasks").await, "You have 1 task:\n1. ☐ buy a ring");
    let users: Vec<Value> =
        fixture.external.calls_of("list_tasks").iter().map(|call| call["user_id"].clone()).collect();
    assert!(users.contains(&json!(crate::ALICE)) && users.contains(&json!(crate::BOB)), "{users:?}");
}

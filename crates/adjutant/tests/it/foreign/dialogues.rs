//! Whole conversations about tasks that only somebody else's server keeps, with the built-in model: the same words lead to
//! the same answers, whatever the tools are called and whoever made them.

use serde_json::{Value, json};

use super::{Library, Peer, Stage};

/// Without authentication there is one user.
const LOCAL: &str = "00000000-0000-7000-8000-000000000001";

/// What is said, and what is answered.
const TALK: [(&str, &str); 16] = [
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
        "Hello! I can add, list, complete, change and delete your tasks, and remind you of them. What would you like to do?",
    ),
    ("yes delete", "There's nothing waiting for your confirmation. What would you like to do?"),
    ("delete the soy milk", "Do you really want to delete 'buy soy milk'? Reply 'yes delete' to confirm."),
    ("yes, delete!", "I've removed 'buy soy milk' from your tasks."),
    ("show my tasks", "You have no open tasks. Everything is done!"),
    ("undo that", "I can't take that back here."),
];

/// TASK-2, TASK-3, AGENT-7: discovered and used by chat.
async fn talk(peer: Peer) {
    let library = peer.library;
    let stage = Stage::alone(peer).await;
    let health = stage.health().await;
    assert_eq!((&health["status"], &health["phase"]), (&json!("ok"), &json!("ready")), "{health}");
    assert_eq!((&health["protocol"], &health["tools"]), (&json!(library.protocol()), &json!(library.tools())));

    let added = stage.say("add buy milk tomorrow with high priority").await;
    let first = "Got it! Added 'buy milk' to your list. Anything else?";
    let listed = stage.say("show my tasks").await;
    match library {
        Library::OldMcp => {
            assert_eq!(added.output(), format!("{first}\nYour list has no place for a due date or a priority."));
            assert_eq!(listed.output(), "You have 1 task:\n1. ☐ buy milk");
            let refused = stage.say("change buy milk to low priority").await;
            assert_eq!(refused.output(), "Your list has no place for a priority.");
            assert!(refused.calls().iter().all(|(tool, _)| *tool == "list_tasks"), "{refused:?}");
        }
        Library::FastMcp | Library::TypeScript => {
            assert_eq!(added.output(), first);
            assert_eq!(listed.output(), "You have 1 task:\n1. ☐ buy milk (due tomorrow, high priority)");
            let changed = stage.say("change buy milk to low priority").await;
            assert_eq!(changed.output(), "Updated! 'buy milk' now has low priority.");
            let listed = stage.say("show my low priority tasks").await;
            assert_eq!(listed.output(), "You have 1 low priority task:\n1. ☐ buy milk (due tomorrow)");
        }
    }
    for (said, answered) in TALK {
        let turn = stage.say(said).await;
        assert_eq!(turn.output(), answered, "{library:?}: {said}");
        assert!(turn.errors().is_empty() && turn.succeeded(), "{library:?}: {said}: {turn:?}");
        if said.starts_with("delete") {
            assert!(stage.peer.asked(delete(library)).is_empty(), "{library:?}: nobody has agreed yet");
        }
    }
    let titles: Vec<Value> = stage.peer.tasks().iter().map(|task| task["title"].clone()).collect();
    assert_eq!(titles, ["buy milk"]);
    judge(&stage, library).await;
}

fn delete(library: Library) -> &'static str {
    if library == Library::OldMcp { "delete_task" } else { "delete_todo" }
}

/// What the server was told, and what was kept about it here.
async fn judge(stage: &Stage, library: Library) {
    let deletions = stage.peer.asked(delete(library));
    assert_eq!(deletions.len(), 1, "{deletions:?}");
    match library {
        Library::OldMcp => assert_eq!(deletions[0]["user_id"], LOCAL),
        _ => assert_eq!(deletions[0]["confirmation"], true),
    }
    let calls: Vec<Value> = stage.peer.notes().into_iter().filter(|note| note["tool"].is_string()).collect();
    let takes_user = library == Library::OldMcp;
    assert!(calls.iter().all(|call| (call["arguments"]["user_id"] == LOCAL) == takes_user), "{calls:?}");
    let kept = stage.server.get("/api/conversations/conv_peers?limit=200").await.text().await.unwrap();
    assert!(kept.contains(delete(library)), "{kept}");
    assert!(!kept.contains("user_id") && !kept.contains("confirmation\\\""), "{kept}");
    let said = stage.server.raw_log();
    assert!(!said.contains("mcp_server_down") || stage.peer.port.is_some(), "{said}");
}

#[tokio::test]
async fn fastmcp_on_stdio() {
    talk(Peer::on_stdio(Library::FastMcp)).await;
}

#[tokio::test]
async fn fastmcp_over_http() {
    talk(Peer::over_http(Library::FastMcp)).await;
}

#[tokio::test]
async fn an_mcp_of_the_older_era_on_stdio() {
    talk(Peer::on_stdio(Library::OldMcp)).await;
}

#[tokio::test]
async fn an_mcp_of_the_older_era_over_http() {
    talk(Peer::over_http(Library::OldMcp)).await;
}

#[tokio::test]
async fn typescript_on_stdio() {
    talk(Peer::on_stdio(Library::TypeScript)).await;
}

#[tokio::test]
async fn typescript_over_http() {
    talk(Peer::over_http(Library::TypeScript)).await;
}

#[tokio::test]
async fn users_are_told_apart_by_the_server() {
    // AGENT-3, TASK-2
    let peer = Peer::on_stdio(Library::OldMcp);
    let names = format!("[tasks]\ntool_names = \"none\"\n{}", peer.configured(""));
    let home = crate::home_with_auth().configured(&names);
    let tokens = [crate::ALICE, crate::BOB].map(|user| crate::token(&home, user, &[]));
    let stage = Stage::start(home, peer, None).await;
    let say = async |token: &str, text: &str| {
        let request = stage.server.request(reqwest::Method::POST, "/chat").bearer_auth(token);
        let answer: Value = request.json(&json!({"input": text})).send().await.unwrap().json().await.unwrap();
        answer["final_output"].as_str().unwrap().to_owned()
    };
    say(&tokens[0], "add buy a ring").await;
    assert_eq!(say(&tokens[1], "show my tasks").await, "You don't have any tasks yet.");
    assert_eq!(say(&tokens[0], "show my tasks").await, "You have 1 task:\n1. ☐ buy a ring");
    let users: Vec<Value> = stage.peer.asked("list_tasks").iter().map(|call| call["user_id"].clone()).collect();
    assert!(users.contains(&json!(crate::ALICE)) && users.contains(&json!(crate::BOB)), "{users:?}");
}

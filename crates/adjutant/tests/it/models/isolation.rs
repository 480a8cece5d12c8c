//! Two users share a model. Neither sees data of the other, even if the model requests it (AGENT-3).

use futures::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};
use testkit::llm::{Llm, Reply, Request, TranscriptEntry};

use super::{Provider, Turn, find_uuid, home_with_keys, post_as, titles};
use crate::{ALICE, BOB, SECRET, token};

/// A model that passes the id of the other user in its calls.
fn impersonating_model(request: &Request) -> Reply {
    let input = request.last_user_text();
    let other = if input.contains("alice") { BOB } else { ALICE };
    match request.tool_results().as_slice() {
        [] => Reply::calls([
            ("add_task", json!({"title": input, "user_id": other})),
            ("list_tasks", json!({"user_id": other, "status": "all"})),
        ]),
        _ => Reply::text("Done."),
    }
}

#[tokio::test]
async fn models_cannot_choose_the_user() {
    // AGENT-3
    let llm = Llm::start().await;
    let config =
        format!("[auth]\njwt_secret = \"env:TEST_SECRET\"\n[model]\n{}", Provider::OpenAi.config_lines(&llm.url()));
    let home = home_with_keys().with_env("TEST_SECRET", SECRET).with_config(&config);
    let alice = token(&home, ALICE, &[]);
    let bob = token(&home, BOB, &[]);
    let server = home.serve();
    llm.reply_with(impersonating_model);
    let turns = (0..16).map(|n| {
        let (name, token) = if n % 2 == 0 { ("alice", &alice) } else { ("bob", &bob) };
        let path = ["/chat/stream", "/chat", "/agent/run"][n % 3];
        let input = format!("{name} task {n}");
        let body = if n % 3 == 2 { json!({"message": input}) } else { json!({"input": input}) };
        let server = &server;
        async move {
            let (status, request_id, text) = post_as(server, token, path, &body).await;
            assert_eq!(status, 200, "{text}");
            if path == "/chat/stream" {
                Turn::read(&text, &request_id);
            }
            let other = if name == "alice" { "bob task" } else { "alice task" };
            assert!(!text.contains(other), "{text}");
            assert!(!text.contains("user_id"), "AGENT-5: {text}");
        }
    });
    join_all(turns).await;
    for (name, token) in [("alice", &alice), ("bob", &bob)] {
        let request = server.request(Method::GET, "/api/tasks?status=all&limit=100").bearer_auth(token);
        let tasks: Value = request.send().await.unwrap().json().await.unwrap();
        let titles = titles(&tasks);
        assert_eq!(titles.len(), 8, "{titles:?}");
        assert!(titles.iter().all(|title| title.starts_with(name)), "{titles:?}");
    }
    // The requests to the model contain only data of the user, and no user id.
    for request in llm.requests() {
        let other = if request.last_user_text().contains("alice") { "bob task" } else { "alice task" };
        let content: Vec<_> =
            request.transcript().into_iter().filter(|entry| !matches!(entry, TranscriptEntry::Call { .. })).collect();
        let content = format!("{content:?}");
        assert!(!content.contains(other) && !content.contains(ALICE) && !content.contains(BOB), "{content}");
    }
}

#[tokio::test]
async fn task_ids_of_other_users_are_not_found() {
    let llm = Llm::start().await;
    let config =
        format!("[auth]\njwt_secret = \"env:TEST_SECRET\"\n[model]\n{}", Provider::Gemini.config_lines(&llm.url()));
    let home = home_with_keys().with_env("TEST_SECRET", SECRET).with_config(&config);
    let alice = token(&home, ALICE, &[]);
    let bob = token(&home, BOB, &[]);
    let server = home.serve();
    let (_, _, created) = post_as(&server, &alice, "/api/tasks", &json!({"title": "alice's secret"})).await;
    let id = find_uuid(&created).unwrap().to_owned();
    for tool in ["update_task", "complete_task", "delete_task", "schedule_reminder"] {
        let arguments =
            json!({"task_id": id, "user_id": ALICE, "title": "bob was here", "remind_at": "2099-01-01T10:00:00"});
        llm.script([Reply::call(tool, arguments), Reply::text("Hm.")]);
        let body = json!({"input": "do it", "conversation_id": "conv_bob"});
        let (status, request_id, text) = post_as(&server, &bob, "/chat/stream", &body).await;
        assert_eq!(status, 200);
        let turn = Turn::read(&text, &request_id);
        assert!(!text.contains("secret"), "{tool} {turn:?}");
        assert!(turn.calls().iter().all(|(_, status)| *status == "failed"), "{tool} {turn:?}");
        let results = llm.requests().last().unwrap().tool_results().concat();
        assert!(!results.contains("secret"), "{tool} {results}");
    }
    let request = server.request(Method::GET, "/api/tasks?status=all").bearer_auth(&alice);
    let tasks: Value = request.send().await.unwrap().json().await.unwrap();
    assert_eq!((titles(&tasks), &tasks["tasks"][0]["status"]), (vec!["alice's secret".to_owned()], &json!("pending")));
}

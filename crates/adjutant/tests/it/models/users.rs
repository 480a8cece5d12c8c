//! Two users and one model: neither sees anything of the other's, whatever the model says (AGENT-3).

use futures::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};
use testkit::llm::{Entry, Llm, Reply, Request};

use super::{Kind, Turn, find_uuid, home_with_keys, post_as, titles};
use crate::{ALICE, BOB, SECRET, token};

/// It calls for whatever the user names, in the name of the other.
fn meddling(request: &Request) -> Reply {
    let said = request.last_user_text();
    let other = if said.contains("alice") { BOB } else { ALICE };
    match request.tool_results().as_slice() {
        [] => Reply::calls([
            ("add_task", json!({"title": said, "user_id": other})),
            ("list_tasks", json!({"user_id": other, "status": "all"})),
        ]),
        _ => Reply::text("Done."),
    }
}

#[tokio::test]
async fn a_model_cannot_choose_whose_tasks_they_are() {
    let llm = Llm::start().await;
    let config = format!("[auth]\njwt_secret = \"env:TEST_SECRET\"\n[model]\n{}", Kind::OpenAi.configured(&llm.url()));
    let home = home_with_keys().with("TEST_SECRET", SECRET).configured(&config);
    let alice = token(&home, ALICE, &[]);
    let bob = token(&home, BOB, &[]);
    let server = home.serve();
    llm.decide(meddling);
    let turns = (0..16).map(|n| {
        let (name, token) = if n % 2 == 0 { ("alice", &alice) } else { ("bob", &bob) };
        let path = ["/chat/stream", "/chat", "/agent/run"][n % 3];
        let said = format!("{name} task {n}");
        let body = if n % 3 == 2 { json!({"message": said}) } else { json!({"input": said}) };
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
    // Nor did the model hear of it: what a turn was told is about its own user, and nobody's id was said.
    for request in llm.requests() {
        let other = if request.last_user_text().contains("alice") { "bob task" } else { "alice task" };
        let heard: Vec<_> =
            request.transcript().into_iter().filter(|entry| !matches!(entry, Entry::Call { .. })).collect();
        let heard = format!("{heard:?}");
        assert!(!heard.contains(other) && !heard.contains(ALICE) && !heard.contains(BOB), "{heard}");
    }
}

#[tokio::test]
async fn an_id_of_anothers_task_is_no_use() {
    let llm = Llm::start().await;
    let config = format!("[auth]\njwt_secret = \"env:TEST_SECRET\"\n[model]\n{}", Kind::Gemini.configured(&llm.url()));
    let home = home_with_keys().with("TEST_SECRET", SECRET).configured(&config);
    let alice = token(&home, ALICE, &[]);
    let bob = token(&home, BOB, &[]);
    let server = home.serve();
    let (_, _, made) = post_as(&server, &alice, "/api/tasks", &json!({"title": "alice's secret"})).await;
    let id = find_uuid(&made).unwrap().to_owned();
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
        let told = llm.requests().last().unwrap().tool_results().concat();
        assert!(!told.contains("secret"), "{tool} {told}");
    }
    let request = server.request(Method::GET, "/api/tasks?status=all").bearer_auth(&alice);
    let tasks: Value = request.send().await.unwrap().json().await.unwrap();
    assert_eq!((titles(&tasks), &tasks["tasks"][0]["status"]), (vec!["alice's secret".to_owned()], &json!("pending")));
}

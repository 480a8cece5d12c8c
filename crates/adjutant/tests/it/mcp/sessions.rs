//! Sessions of legacy clients: owners, limits and ends (TASK-3, OPS-3, OPS-4).

use reqwest::Method;
use serde_json::json;

use super::{Client, Messages};
use crate::{ALICE, BOB, home, home_with_auth, token};

#[tokio::test]
async fn sessions_of_other_users_are_not_found() {
    // AGENT-3, OPS-3
    let home = home_with_auth();
    let server = home.serve();
    let alice = token(&home, ALICE, &[]);
    let bob = token(&home, BOB, &[]);
    let mine = Client::legacy(&server, Some(&alice)).await;
    mine.add("alice's secret").await;
    let stolen = Client { session: mine.session.clone(), ..Client::modern(&server, Some(&bob)) };
    for method in [Method::GET, Method::DELETE] {
        assert_eq!(stolen.request(method).send().await.unwrap().status(), 404);
    }
    let refused = stolen.send("tools/call", json!({"name": "list_tasks", "arguments": {}})).await;
    assert_eq!(refused.status(), 404);
    assert!(!refused.text().await.unwrap().contains("secret"));
    assert_eq!(mine.titles().await, ["alice's secret"], "the session still works");
    assert_eq!(mine.request(Method::DELETE).send().await.unwrap().status(), 202);
    assert_eq!(mine.send("tools/list", json!({})).await.status(), 404);
    let unknown = Client { session: Some("made-up".into()), ..mine };
    assert_eq!(unknown.send("tools/list", json!({})).await.status(), 404);
}

#[tokio::test]
async fn a_legacy_client_must_initialize_first() {
    let home = home();
    let server = home.serve();
    let client = Client::modern(&server, None);
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let request = client.request(Method::POST).header("mcp-protocol-version", "2025-11-25");
    assert_eq!(request.json(&message).send().await.unwrap().status(), 400);
}

#[tokio::test]
async fn the_least_recently_used_session_is_evicted() {
    let home = home();
    let server = home.serve();
    let first = Client::legacy(&server, None).await;
    let second = Client::legacy(&server, None).await;
    for _ in 0..62 {
        Client::legacy(&server, None).await;
    }
    assert_eq!(first.send("tools/list", json!({})).await.status(), 200, "64 sessions are allowed");
    Client::legacy(&server, None).await;
    assert_eq!(second.send("tools/list", json!({})).await.status(), 404);
    assert_eq!(first.send("tools/list", json!({})).await.status(), 200);
}

#[tokio::test]
async fn shutdown_does_not_wait_for_open_streams() {
    // OPS-4
    let home = home();
    let mut server = home.serve();
    let client = Client::legacy(&server, None).await;
    let id = client.add("milk").await;
    let mut stream = Messages::new(client.request(Method::GET).send().await.unwrap());
    let params = json!({"name": "delete_task", "arguments": {"task_id": id}});
    let mut asking = Messages::new(client.send("tools/call", params).await);
    assert_eq!(asking.next().await.unwrap()["method"], "elicitation/create");
    let began = std::time::Instant::now();
    server.signal(nix::sys::signal::Signal::SIGTERM);
    assert_eq!(stream.next().await, None);
    assert_eq!(asking.next().await, None, "the call has no response and no effect");
    assert_eq!(server.wait(), 0);
    assert!(began.elapsed().as_secs() < 5, "{:?}", began.elapsed());
    assert!(home.run(&["tasks", "list"]).ok().contains("milk"));
}

//! Tests that no operation reaches the tasks of a different user.

use server::ServerSettings;
use server::settings::AuthSettings;
use testkit::issuer::sign_hs256;

use super::*;

const SECRET: &str = "correct-horse-battery-staple-0123456789";

fn settings() -> ServerSettings {
    let auth = AuthSettings { secret: Some(SECRET.into()), ..AuthSettings::default() };
    ServerSettings { auth: Some(auth), ..ServerSettings::default() }
}

fn client(server: &TestServer, agent: &str, user: &str) -> RpcClient {
    let id = format!("{}-0000-4000-8000-000000000000", user.repeat(8));
    let token = sign_hs256(SECRET, &json!({"sub": id, "exp": 4_000_000_000_i64, "scope": "adjutant:admin"}));
    RpcClient { token: Some(token), ..RpcClient::new(server, agent) }
}

#[tokio::test]
async fn tasks_of_other_users_are_unreachable() {
    // A2A-2, A2A-3; not even an administrator
    let (server, go) = start_server(settings()).await;
    let alice = client(&server, AGENT_ID, "a");
    let bob = client(&server, AGENT_ID, "b");
    let mut message = steps(json!({"do": ["wait", {"print": "mine"}]}));
    message["contextId"] = json!("shared");
    let working = alice.start_task(message).await;
    alice.wait_for_state(&working["id"], "WORKING").await;
    let asking = alice.send(steps(json!({"outcome": "asks"}))).await;
    for task in [&working, &asking] {
        for method in ["GetTask", "CancelTask", "SubscribeToTask"] {
            assert_eq!(bob.error(method, json!({"id": task["id"]})).await.0, -32001, "{method}");
        }
        for method in ["SendMessage", "SendStreamingMessage"] {
            let message = to_task(task, text("mine now"));
            assert_eq!(bob.error(method, json!({ "message": message })).await.0, -32001, "{method}");
        }
    }
    let none = bob.ok("ListTasks", json!({"contextId": "shared"})).await;
    assert_eq!((&none["totalSize"], &none["tasks"]), (&json!(0), &json!([])));
    // The same context id of a different user is a different context.
    let mut message = text("hello");
    message["contextId"] = json!("shared");
    bob.send(message).await;
    assert_eq!(bob.ok("ListTasks", json!({})).await["totalSize"], 1);
    assert_eq!(alice.ok("ListTasks", json!({"contextId": "shared"})).await["totalSize"], 1);
    go.notify_one();
    assert_eq!(alice.wait_for_state(&working["id"], "COMPLETED").await["artifacts"][0]["parts"][0]["text"], "mine");
    assert_eq!(state_of(&alice.get(&asking["id"]).await), "INPUT_REQUIRED", "the task is unchanged");
}

#[tokio::test]
async fn tasks_of_other_agents_are_unreachable() {
    // A2A-2, A2A-3
    let (server, _) = start_server(settings()).await;
    let speaker = client(&server, AGENT_ID, "a");
    let assistant = client(&server, "assistant", "a");
    let task = speaker.send(steps(json!({"outcome": "asks"}))).await;
    for method in ["GetTask", "CancelTask", "SubscribeToTask"] {
        assert_eq!(assistant.error(method, json!({"id": task["id"]})).await.0, -32001, "{method}");
    }
    assert_eq!(assistant.error("SendMessage", json!({"message": to_task(&task, text("yes"))})).await.0, -32001);
    assert_eq!(assistant.ok("ListTasks", json!({})).await["totalSize"], 0);
}

#[tokio::test]
async fn erased_tasks_are_not_found() {
    // A2A-2, OPS-7
    let (server, _) = start_server(settings()).await;
    let alice = client(&server, AGENT_ID, "a");
    let task = alice.send(steps(json!({"outcome": "asks"}))).await;
    let mut events = alice.stream("SubscribeToTask", json!({"id": task["id"]})).await;
    events.next().await.unwrap();
    let erase = alice.http.delete(format!("{}/api/data", server.url)).bearer_auth(alice.token.as_ref().unwrap());
    let erased = erase.send().await.unwrap();
    assert!(erased.status().is_success(), "{}", erased.text().await.unwrap());
    assert_eq!(alice.error("GetTask", json!({"id": task["id"]})).await.0, -32001);
    let rest = tokio::time::timeout(Duration::from_secs(10), events.rest()).await.unwrap();
    assert!(rest.is_empty(), "{rest:?}");
}

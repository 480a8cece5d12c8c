//! Every user's tasks are their own, whichever operation somebody else tries.

use server::Settings;
use server::settings::Auth;
use testkit::issuer::hs256;

use super::*;

const SECRET: &str = "correct-horse-battery-staple-0123456789";

fn settings() -> Settings {
    let auth = Auth { secret: Some(SECRET.into()), jwks_url: None, issuer: None, audience: None };
    Settings { auth: Some(auth), ..Settings::default() }
}

fn client(bench: &Bench, agent: &str, user: &str) -> Client {
    let id = format!("{}-0000-4000-8000-000000000000", user.repeat(8));
    let token = hs256(SECRET, &json!({"sub": id, "exp": 4_000_000_000_i64, "scope": "adjutant:admin"}));
    Client { token: Some(token), ..Client::of(bench, agent) }
}

#[tokio::test]
async fn nobody_reaches_the_tasks_of_others() {
    // A2A-3; not even an administrator
    let (bench, go) = started(settings()).await;
    let alice = client(&bench, AGENT, "a");
    let bob = client(&bench, AGENT, "b");
    let mut message = order(json!({"do": ["wait", {"print": "mine"}]}));
    message["contextId"] = json!("shared");
    let working = alice.begin(message).await;
    alice.reaches(&working["id"], "WORKING").await;
    let asking = alice.send(order(json!({"outcome": "asks"}))).await;
    for task in [&working, &asking] {
        for method in ["GetTask", "CancelTask", "SubscribeToTask"] {
            assert_eq!(bob.error(method, json!({"id": task["id"]})).await.0, -32001, "{method}");
        }
        for method in ["SendMessage", "SendStreamingMessage"] {
            let message = to(task, text("mine now"));
            assert_eq!(bob.error(method, json!({ "message": message })).await.0, -32001, "{method}");
        }
    }
    let none = bob.ok("ListTasks", json!({"contextId": "shared"})).await;
    assert_eq!((&none["totalSize"], &none["tasks"]), (&json!(0), &json!([])));
    // The same name of a context means another one.
    let mut message = text("hello");
    message["contextId"] = json!("shared");
    bob.send(message).await;
    assert_eq!(bob.ok("ListTasks", json!({})).await["totalSize"], 1);
    assert_eq!(alice.ok("ListTasks", json!({"contextId": "shared"})).await["totalSize"], 1);
    go.notify_one();
    assert_eq!(alice.reaches(&working["id"], "COMPLETED").await["artifacts"][0]["parts"][0]["text"], "mine");
    assert_eq!(state_of(&alice.get(&asking["id"]).await), "INPUT_REQUIRED", "nobody has touched it");
}

#[tokio::test]
async fn a_task_belongs_to_its_agent() {
    // A2A-3
    let (bench, _) = started(settings()).await;
    let speaker = client(&bench, AGENT, "a");
    let assistant = client(&bench, "assistant", "a");
    let task = speaker.send(order(json!({"outcome": "asks"}))).await;
    for method in ["GetTask", "CancelTask", "SubscribeToTask"] {
        assert_eq!(assistant.error(method, json!({"id": task["id"]})).await.0, -32001, "{method}");
    }
    assert_eq!(assistant.error("SendMessage", json!({"message": to(&task, text("yes"))})).await.0, -32001);
    assert_eq!(assistant.ok("ListTasks", json!({})).await["totalSize"], 0);
}

#[tokio::test]
async fn what_is_erased_is_gone() {
    // OPS-7
    let (bench, _) = started(settings()).await;
    let alice = client(&bench, AGENT, "a");
    let task = alice.send(order(json!({"outcome": "asks"}))).await;
    let mut events = alice.stream("SubscribeToTask", json!({"id": task["id"]})).await;
    events.next().await.unwrap();
    let erase = alice.http.delete(format!("{}/api/data", bench.url)).bearer_auth(alice.token.as_ref().unwrap());
    let erased = erase.send().await.unwrap();
    assert!(erased.status().is_success(), "{}", erased.text().await.unwrap());
    assert_eq!(alice.error("GetTask", json!({"id": task["id"]})).await.0, -32001);
    let rest = tokio::time::timeout(Duration::from_secs(10), events.rest()).await.unwrap();
    assert!(rest.is_empty(), "{rest:?}");
}

//! Nobody sees or touches what belongs to somebody else, by any operation of any binding; and nobody gets anywhere without
//! showing who they are (A2A-1, A2A-2).

use jsonwebtoken::{EncodingKey, Header, encode};
use serde_json::{Value, json};
use server::settings::Auth;
use testkit::conformance::{Options, settings};

use super::faults::Fault;
use super::speak::{Binding, Speaker, WAYS, Way};
use super::table::OPERATIONS;
use super::{Conformance, message, state};
use crate::{ALICE, BOB, SECRET};

async fn with_users() -> (Conformance, Speaker, Speaker) {
    let auth = Auth { secret: Some(SECRET.into()), jwks_url: None, issuer: None, audience: None };
    let settings = server::Settings { auth: Some(auth), ..settings() };
    let server = Conformance::start_with(Options { settings, ..Options::default() }).await;
    let speaker = |user: &str| {
        let claims = json!({"sub": user, "exp": 4_000_000_000_i64});
        let token = encode(&Header::default(), &claims, &EncodingKey::from_secret(SECRET.as_bytes())).unwrap();
        server.speaker().with_token(&token)
    };
    let alice = speaker(ALICE);
    let bob = speaker(BOB);
    (server, alice, bob)
}

/// What each operation would be asked with, to reach somebody's task.
fn reaching(operation: &str, task: &Value) -> Value {
    match operation {
        "SendMessage" | "SendStreamingMessage" => {
            let mut message = message("tck-complete-task", "not mine");
            message["taskId"] = task["id"].clone();
            json!({"message": message})
        }
        "GetTask" | "CancelTask" | "SubscribeToTask" => json!({"id": task["id"]}),
        "CreateTaskPushNotificationConfig" => {
            json!({"taskId": task["id"], "id": "x", "url": "http://127.0.0.1:9/hook"})
        }
        "GetTaskPushNotificationConfig" | "DeleteTaskPushNotificationConfig" => {
            json!({"taskId": task["id"], "id": "hers"})
        }
        "ListTaskPushNotificationConfigs" => json!({"taskId": task["id"]}),
        "ListTasks" => json!({"contextId": task["contextId"]}),
        _ => json!({}),
    }
}

async fn ask(speaker: &Speaker, way: Way, kind: &str) -> Value {
    let params =
        json!({"message": message(kind, "hers"), "configuration": {"returnImmediately": kind == "tck-cancel"}});
    speaker.ask(way, "SendMessage", params).await.unwrap()["task"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_belongs_to_others_is_not_there() {
    // A2A-1, A2A-2
    let (_server, alice, bob) = with_users().await;
    for way in WAYS {
        // One that runs, one that asks, one that has ended: each of them may be kept elsewhere.
        for kind in ["tck-cancel", "tck-input-required", "tck-complete-task"] {
            let task = ask(&alice, way, kind).await;
            let hers = json!({"taskId": task["id"], "id": "hers", "url": "http://127.0.0.1:9/hook"});
            alice.ask(way, "CreateTaskPushNotificationConfig", hers).await.unwrap();
            for operation in
                OPERATIONS.into_iter().filter(|operation| way.knows(operation) && *operation != "GetExtendedAgentCard")
            {
                let answer = bob.ask(way, operation, reaching(operation, &task)).await;
                if operation == "ListTasks" {
                    // Protobuf does not write a nought.
                    assert_eq!(answer.unwrap()["totalSize"].as_i64().unwrap_or(0), 0, "{way:?} {kind}");
                    continue;
                }
                let refusal = answer.expect_err(&format!("{way:?} {operation} {kind}"));
                assert_eq!(Fault::TaskNotFound.missed(way, &refusal), None, "{way:?} {operation} {kind}");
            }
            // It is as it was.
            let still = alice.ask(way, "GetTask", json!({"id": task["id"]})).await.unwrap();
            let wanted = match kind {
                "tck-cancel" => ["WORKING", "SUBMITTED"],
                "tck-input-required" => ["INPUT_REQUIRED"; 2],
                _ => ["COMPLETED"; 2],
            };
            assert!(wanted.contains(&state(&still)), "{way:?} {kind}: {still}");
            let configs =
                alice.ask(way, "ListTaskPushNotificationConfigs", json!({"taskId": task["id"]})).await.unwrap();
            assert_eq!(configs["configs"].as_array().map(Vec::len), Some(1), "{way:?} {kind}: {configs}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_context_of_the_same_name_is_another_one() {
    // A2A-1
    let (_server, alice, bob) = with_users().await;
    let way = WAYS[0];
    let mut said = message("tck-complete-task", "hi");
    said["contextId"] = json!("shared");
    let hers = alice.ask(way, "SendMessage", json!({"message": said})).await.unwrap();
    let his = bob.ask(way, "SendMessage", json!({"message": said})).await.unwrap();
    assert_eq!(hers["task"]["contextId"], his["task"]["contextId"]);
    let page = bob.ask(way, "ListTasks", json!({"contextId": "shared"})).await.unwrap();
    assert_eq!((&page["totalSize"], &page["tasks"][0]["id"]), (&json!(1), &his["task"]["id"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_token_nothing_is_answered() {
    // A2A-2
    let (server, alice, _) = with_users().await;
    let task = ask(&alice, WAYS[0], "tck-input-required").await;
    // Few enough that nobody is shut out for trying.
    for way in WAYS {
        let nobody = server.speaker();
        for operation in OPERATIONS.into_iter().filter(|operation| way.knows(operation)) {
            let refusal = nobody.ask(way, operation, reaching(operation, &task)).await.expect_err(operation);
            match way.0 {
                Binding::Grpc => assert_eq!(refusal.grpc, Some(16), "{way:?} {operation}: {refusal:?}"),
                _ => assert_eq!(refusal.status, 401, "{way:?} {operation}: {refusal:?}"),
            }
        }
    }
}

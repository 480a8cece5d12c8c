//! No operation of any binding reaches the data of another user, and every operation requires a token (A2A-1, A2A-2).

use jsonwebtoken::{EncodingKey, Header, encode};
use serde_json::{Value, json};
use server::settings::AuthSettings;
use testkit::conformance::{ConformanceOptions, settings};

use super::client::{A2aClient, Binding, PROTOCOLS, Protocol};
use super::expected_errors::ExpectedError;
use super::operations::OPERATIONS;
use super::{Conformance, message, state};
use crate::{ALICE, BOB, SECRET};

async fn with_users() -> (Conformance, A2aClient, A2aClient) {
    let auth = AuthSettings { secret: Some(SECRET.into()), ..AuthSettings::default() };
    let settings = server::ServerSettings { auth: Some(auth), ..settings() };
    let server = Conformance::start_with(ConformanceOptions { settings, ..ConformanceOptions::default() }).await;
    let client = |user: &str| {
        let claims = json!({"sub": user, "exp": 4_000_000_000_i64});
        let token = encode(&Header::default(), &claims, &EncodingKey::from_secret(SECRET.as_bytes())).unwrap();
        server.client().with_token(&token)
    };
    let alice = client(ALICE);
    let bob = client(BOB);
    (server, alice, bob)
}

/// Returns parameters with which an operation would reach this task.
fn params_for(operation: &str, task: &Value) -> Value {
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

async fn create_task(client: &A2aClient, protocol: Protocol, kind: &str) -> Value {
    let params =
        json!({"message": message(kind, "hers"), "configuration": {"returnImmediately": kind == "tck-cancel"}});
    client.call(protocol, "SendMessage", params).await.unwrap()["task"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_of_other_users_are_not_found() {
    // A2A-1, A2A-2
    let (_server, alice, bob) = with_users().await;
    for protocol in PROTOCOLS {
        // A running task, one that requires input and one that has ended. Each is stored differently.
        for kind in ["tck-cancel", "tck-input-required", "tck-complete-task"] {
            let task = create_task(&alice, protocol, kind).await;
            let hers = json!({"taskId": task["id"], "id": "hers", "url": "http://127.0.0.1:9/hook"});
            alice.call(protocol, "CreateTaskPushNotificationConfig", hers).await.unwrap();
            for operation in OPERATIONS
                .into_iter()
                .filter(|operation| protocol.supports(operation) && *operation != "GetExtendedAgentCard")
            {
                let answer = bob.call(protocol, operation, params_for(operation, &task)).await;
                if operation == "ListTasks" {
                    // Protobuf omits zero.
                    assert_eq!(answer.unwrap()["totalSize"].as_i64().unwrap_or(0), 0, "{protocol:?} {kind}");
                    continue;
                }
                let error = answer.expect_err(&format!("{protocol:?} {operation} {kind}"));
                assert_eq!(
                    ExpectedError::TaskNotFound.mismatch(protocol, &error),
                    None,
                    "{protocol:?} {operation} {kind}"
                );
            }
            // The task has not changed.
            let unchanged = alice.call(protocol, "GetTask", json!({"id": task["id"]})).await.unwrap();
            let expected = match kind {
                "tck-cancel" => ["WORKING", "SUBMITTED"],
                "tck-input-required" => ["INPUT_REQUIRED"; 2],
                _ => ["COMPLETED"; 2],
            };
            assert!(expected.contains(&state(&unchanged)), "{protocol:?} {kind}: {unchanged}");
            let configs =
                alice.call(protocol, "ListTaskPushNotificationConfigs", json!({"taskId": task["id"]})).await.unwrap();
            assert_eq!(configs["configs"].as_array().map(Vec::len), Some(1), "{protocol:?} {kind}: {configs}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn contexts_with_the_same_id_are_separate_per_user() {
    // A2A-1
    let (_server, alice, bob) = with_users().await;
    let protocol = PROTOCOLS[0];
    let mut request = message("tck-complete-task", "hi");
    request["contextId"] = json!("shared");
    let hers = alice.call(protocol, "SendMessage", json!({"message": request})).await.unwrap();
    let his = bob.call(protocol, "SendMessage", json!({"message": request})).await.unwrap();
    assert_eq!(hers["task"]["contextId"], his["task"]["contextId"]);
    let page = bob.call(protocol, "ListTasks", json!({"contextId": "shared"})).await.unwrap();
    assert_eq!((&page["totalSize"], &page["tasks"][0]["id"]), (&json!(1), &his["task"]["id"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn every_operation_requires_a_token() {
    // A2A-2
    let (server, alice, _) = with_users().await;
    let task = create_task(&alice, PROTOCOLS[0], "tck-input-required").await;
    // Too few requests to reach the limit of failed attempts.
    for protocol in PROTOCOLS {
        let anonymous = server.client();
        for operation in OPERATIONS.into_iter().filter(|operation| protocol.supports(operation)) {
            let error = anonymous.call(protocol, operation, params_for(operation, &task)).await.expect_err(operation);
            match protocol.0 {
                Binding::Grpc => assert_eq!(error.grpc, Some(16), "{protocol:?} {operation}: {error:?}"),
                _ => assert_eq!(error.status, 401, "{protocol:?} {operation}: {error:?}"),
            }
        }
    }
}

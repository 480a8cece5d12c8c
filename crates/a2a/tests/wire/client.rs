//! Our client against our server, in every version and binding.

use std::time::Duration;

use a2a::client::{A2aClient, ClientAuth, ClientLimits, ClientOptions, Error, TaskUpdates};
use a2a::types::{self, PartContent, Role, SendMessageResponse, StreamResponse, TaskState};
use a2a::{Binding, ErrorKind, OperationRequest, Version};
use futures::{StreamExt, TryStreamExt};
use http::HeaderMap;
use serde_json::json;

use super::double::{AGENT, Double, SECRET, message, push, task, updates};

const ALL_INTERFACES: [(Binding, Version); 6] = [
    (Binding::JsonRpc, Version::V10),
    (Binding::HttpJson, Version::V10),
    (Binding::Grpc, Version::V10),
    (Binding::JsonRpc, Version::V03),
    (Binding::HttpJson, Version::V03),
    (Binding::Grpc, Version::V03),
];

/// Returns a client of one agent. In gRPC of 0.3 a metadata key names the agent.
async fn client(
    double: &Double,
    agent: &str,
    (binding, version): (Binding, Version),
    options: ClientOptions,
) -> A2aClient {
    let mut headers = HeaderMap::new();
    if (binding, version) == (Binding::Grpc, Version::V03) {
        headers.insert(AGENT, agent.parse().unwrap());
    }
    let options = ClientOptions { binding: Some(binding), version: Some(version), headers, ..options };
    let client = A2aClient::discover(&format!("{}/agents/{agent}", double.url()), &options).await.unwrap();
    assert_eq!((client.binding(), client.version()), (binding, version));
    client
}

fn send(text: &str) -> types::SendMessageRequest {
    types::SendMessageRequest { message: message(Role::User, text), configuration: None, metadata: None, tenant: None }
}

fn get(id: &str) -> types::GetTaskRequest {
    types::GetTaskRequest { id: id.to_owned(), history_length: None, tenant: None }
}

async fn collect(updates: TaskUpdates) -> Result<Vec<StreamResponse>, Error> {
    tokio::time::timeout(Duration::from_secs(10), updates.try_collect()).await.expect("the stream ends")
}

#[tokio::test]
async fn the_preferred_interface_is_discovered() {
    // A2A-1
    let double = Double::start().await;
    let client = A2aClient::discover(&double.url(), &ClientOptions::default()).await.unwrap();
    assert_eq!((client.binding(), client.version()), (Binding::JsonRpc, Version::V10));
    assert_eq!(client.card().name, "default");
    let at = format!("{}/agents/a/.well-known/agent-card.json", double.url());
    assert_eq!(A2aClient::discover(&at, &ClientOptions::default()).await.unwrap().card().name, "a");
}

#[tokio::test]
async fn every_operation_works_in_every_interface() {
    // A2A-1
    let double = Double::start().await;
    for interface in ALL_INTERFACES {
        let client = client(&double, "echo", interface, ClientOptions::default()).await;
        let is_old = interface.1 == Version::V03;
        let sent = client.send(send("go")).await.unwrap_or_else(|error| panic!("{interface:?}: {error}"));
        let expected = task("t1", TaskState::Completed, vec![message(Role::User, "go")]);
        assert_eq!(sent, SendMessageResponse::Task(expected), "{interface:?}");
        let seen = double.last();
        assert_eq!((seen.agent.as_deref(), seen.binding, seen.version), (Some("echo"), interface.0, interface.1));
        let sent = client.send(send("message")).await.unwrap();
        assert_eq!(sent, SendMessageResponse::Message(message(Role::Agent, "hello")), "{interface:?}");

        let received = collect(client.stream(send("go")).await.unwrap()).await.unwrap();
        assert_eq!(normalize(received), updates(TaskState::Completed), "{interface:?}");
        let received = collect(client.stream(send("asks")).await.unwrap()).await.unwrap();
        assert_eq!(normalize(received), updates(TaskState::InputRequired), "{interface:?}");
        let received = collect(client.stream(send("open")).await.unwrap()).await.unwrap();
        assert_eq!(received.len(), 4, "{interface:?}: the stream ends after the last possible update");
        let subscribe = types::SubscribeToTaskRequest { id: "t/1 ü".to_owned(), tenant: None };
        if !(is_old && interface.0 == Binding::Grpc) {
            let received = collect(client.subscribe(subscribe).await.unwrap()).await.unwrap();
            assert_eq!(normalize(received), updates(TaskState::Completed), "{interface:?}");
            assert!(
                matches!(double.last().request, OperationRequest::Subscribe(request) if request.id == "t/1 ü"),
                "{interface:?}"
            );
        }

        assert_eq!(client.get(get("t9")).await.unwrap(), task("t9", TaskState::Working, vec![]), "{interface:?}");
        let list = types::ListTasksRequest {
            context_id: Some("c&1".to_owned()),
            status: Some(TaskState::InputRequired),
            page_size: Some(7),
            page_token: Some("a=b".to_owned()),
            history_length: Some(0),
            status_timestamp_after: serde_json::from_value(json!("2026-11-16T01:02:03Z")).unwrap(),
            include_artifacts: Some(true),
            tenant: None,
        };
        let listed = client.list(list.clone()).await;
        if is_old {
            assert!(matches!(listed, Err(Error::Unsupported(_))), "{interface:?}");
        } else {
            assert_eq!(listed.unwrap().tasks.len(), 2, "{interface:?}");
            let OperationRequest::List(seen) = double.last().request else { panic!() };
            assert_eq!(types::ListTasksRequest { tenant: None, ..seen }, list, "{interface:?}");
        }
        let cancel = types::CancelTaskRequest { id: "t9".to_owned(), metadata: None, tenant: None };
        assert_eq!(client.cancel(cancel).await.unwrap().status.state, TaskState::Canceled, "{interface:?}");

        assert_eq!(client.set_push(push("t1", "p9")).await.unwrap(), push("t1", "p9"), "{interface:?}");
        let task_id = "t1".to_owned();
        let id = "p2".to_owned();
        let one =
            types::GetTaskPushNotificationConfigRequest { task_id: task_id.clone(), id: id.clone(), tenant: None };
        assert_eq!(client.get_push(one).await.unwrap(), push("t1", "p2"), "{interface:?}");
        let all = types::ListTaskPushNotificationConfigsRequest {
            task_id: task_id.clone(),
            page_size: None,
            page_token: None,
            tenant: None,
        };
        assert_eq!(client.list_push(all).await.unwrap().configs, [push("t1", "p1"), push("t1", "p2")], "{interface:?}");
        let one = types::DeleteTaskPushNotificationConfigRequest { task_id, id, tenant: None };
        client.delete_push(one).await.unwrap();
        assert!(matches!(double.last().request, OperationRequest::DeletePush(_)));
        assert_eq!(client.extended_card().await.unwrap().name, "extended", "{interface:?}");
    }
}

/// Normalizes flags: protobuf does not distinguish `false` from a missing value.
fn normalize(mut updates: Vec<StreamResponse>) -> Vec<StreamResponse> {
    for update in &mut updates {
        if let StreamResponse::ArtifactUpdate(event) = update {
            event.append = event.append.filter(|it| *it);
            event.last_chunk = event.last_chunk.filter(|it| *it);
        }
    }
    updates
}

#[tokio::test]
async fn bytes_survive_the_round_trip() {
    // A2A-1
    let double = Double::start().await;
    // In gRPC and HTTP+JSON of 0.3 the client uses the form of the Python SDK, which differs from the definition.
    for interface in
        ALL_INTERFACES.into_iter().filter(|interface| interface.1 == Version::V10 || interface.0 == Binding::JsonRpc)
    {
        let client = client(&double, "echo", interface, ClientOptions::default()).await;
        let mut request = send("bytes");
        let bytes = vec![0_u8, 1, 2, 250, 255];
        request.message.parts.push(types::Part::raw(bytes.clone()).with_filename("f").with_media_type("a/b"));
        let SendMessageResponse::Task(task) = client.send(request).await.unwrap() else { panic!() };
        let part = &task.artifacts.unwrap()[0].parts[0];
        assert_eq!((&part.content, part.filename.as_deref()), (&PartContent::Raw(bytes), Some("f")), "{interface:?}");
    }
}

#[tokio::test]
async fn errors_are_the_same_in_every_interface() {
    // A2A-1
    let double = Double::start().await;
    let kind = |error: Error| match error {
        Error::Agent(error) => error.kind,
        other => panic!("{other:?}"),
    };
    for interface in ALL_INTERFACES {
        let client = client(&double, "echo", interface, ClientOptions::default()).await;
        assert_eq!(kind(client.get(get("missing")).await.unwrap_err()), ErrorKind::TaskNotFound, "{interface:?}");
        let cancel = types::CancelTaskRequest { id: "done".to_owned(), metadata: None, tenant: None };
        assert_eq!(kind(client.cancel(cancel).await.unwrap_err()), ErrorKind::TaskNotCancelable, "{interface:?}");
        let subscribe = types::SubscribeToTaskRequest { id: "done".to_owned(), tenant: None };
        let error = match client.subscribe(subscribe).await {
            Ok(updates) => collect(updates).await.unwrap_err(),
            Err(error) => error,
        };
        assert_eq!(kind(error), ErrorKind::UnsupportedOperation, "{interface:?}");
        let mut empty = send("go");
        empty.message.parts.clear();
        let Error::Agent(error) = client.send(empty).await.unwrap_err() else { panic!() };
        assert_eq!(error.kind, ErrorKind::InvalidParams, "{interface:?}");
        assert!(error.message.contains("parts"), "{interface:?} {error}");
        let mut updates = client.stream(send("breaks")).await.unwrap();
        updates.next().await.unwrap().unwrap();
        assert_eq!(kind(updates.next().await.unwrap().unwrap_err()), ErrorKind::Internal, "{interface:?}");
        assert!(updates.next().await.is_none());
    }
}

#[tokio::test]
async fn rejections_report_their_status() {
    // A2A-2, A2A-3
    let double = Double::start().await;
    for interface in ALL_INTERFACES {
        for (agent, expected) in [("locked", 401), ("forbidden", 403), ("busy", 429)] {
            let client = client(&double, agent, interface, ClientOptions::default()).await;
            let error = client.get(get("t1")).await.unwrap_err();
            let Error::Refused { status, retry_after, .. } = &error else { panic!("{interface:?} {agent} {error:?}") };
            assert_eq!(*status, expected, "{interface:?} {error}");
            assert_eq!(retry_after.is_some(), agent == "busy", "{interface:?}");
        }
    }
}

#[tokio::test]
async fn credentials_are_sent_but_never_shown() {
    // A2A-2
    let double = Double::start().await;
    for interface in ALL_INTERFACES {
        let options = ClientOptions { auth: Some(ClientAuth::Bearer(SECRET.into())), ..ClientOptions::default() };
        let client = client(&double, "locked", interface, options.clone()).await;
        client.get(get("t1")).await.unwrap_or_else(|error| panic!("{interface:?}: {error}"));
        let error = client.send(send("leak")).await.unwrap_err();
        assert!(error.to_string().contains("***"), "{error}");
        for shown in [format!("{error} {error:?}"), format!("{client:?} {options:?}")] {
            assert!(!shown.contains(SECRET), "{shown}");
        }
    }
}

#[tokio::test]
async fn limits_are_enforced() {
    let double = Double::start().await;
    let limits = ClientLimits {
        send_timeout: Duration::from_millis(300),
        idle_timeout: Duration::from_millis(300),
        max_response_bytes: 100_000,
        ..ClientLimits::default()
    };
    for interface in ALL_INTERFACES {
        let client = client(&double, "echo", interface, ClientOptions { limits, ..ClientOptions::default() }).await;
        assert_eq!(client.send(send("huge")).await, Err(Error::TooLarge(100_000)), "{interface:?}");
        assert_eq!(client.send(send("slow")).await, Err(Error::Timeout(limits.send_timeout)), "{interface:?}");
        let mut updates = client.stream(send("silent")).await.unwrap();
        updates.next().await.unwrap().unwrap();
        let end = tokio::time::timeout(Duration::from_secs(20), updates.next()).await.unwrap();
        assert_eq!(end, Some(Err(Error::Timeout(limits.idle_timeout))), "{interface:?}");
    }
}

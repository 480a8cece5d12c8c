//! Tests every binding in both versions on one port, with the client of the crate `a2a`.

use std::time::Duration;

use a2a::client::{A2aClient, ClientAuth, ClientOptions, Error};
use a2a::types::{
    CancelTaskRequest, GetTaskRequest, ListTasksRequest, Message, Part, PartContent, Role, SendMessageRequest,
    SendMessageResponse, StreamResponse, SubscribeToTaskRequest, Task, TaskState,
};
use a2a::{Binding, ErrorKind, Version};
use futures::StreamExt;

use super::*;

const ALL_BINDINGS: [(Binding, Version); 6] = [
    (Binding::JsonRpc, Version::V10),
    (Binding::HttpJson, Version::V10),
    (Binding::Grpc, Version::V10),
    (Binding::JsonRpc, Version::V03),
    (Binding::HttpJson, Version::V03),
    (Binding::Grpc, Version::V03),
];

async fn client(
    server: &TestServer,
    agent: &str,
    (binding, version): (Binding, Version),
    token: Option<&str>,
) -> A2aClient {
    let mut headers = reqwest::header::HeaderMap::new();
    if (binding, version) == (Binding::Grpc, Version::V03) {
        headers.insert("x-adjutant-agent", agent.parse().unwrap());
    }
    let auth = token.map(|token| ClientAuth::Bearer(token.into()));
    let options =
        ClientOptions { auth, binding: Some(binding), version: Some(version), headers, ..ClientOptions::default() };
    A2aClient::discover(&format!("{}/agents/{agent}", server.url), &options).await.unwrap()
}

fn message(text: &str) -> SendMessageRequest {
    let message = Message::new(Role::User, vec![Part::text(text)]);
    SendMessageRequest { message, configuration: None, metadata: None, tenant: None }
}

fn output(task: &Task) -> String {
    text_of(task.artifacts.iter().flatten().flat_map(|artifact| &artifact.parts))
}

fn update_text(update: &StreamResponse) -> String {
    match update {
        StreamResponse::Task(task) => output(task),
        StreamResponse::ArtifactUpdate(update) => text_of(update.artifact.parts.iter()),
        _ => String::new(),
    }
}

fn text_of<'a>(parts: impl Iterator<Item = &'a Part>) -> String {
    let texts = parts.filter_map(|part| match &part.content {
        PartContent::Text(text) => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}

async fn send(client: &A2aClient, text: &str) -> Task {
    match client.send(message(text)).await.unwrap() {
        SendMessageResponse::Task(task) => task,
        SendMessageResponse::Message(message) => panic!("{message:?}"),
    }
}

fn status_of(result: Result<Task, Error>) -> u16 {
    match result {
        Err(Error::Refused { status, .. }) => status,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn every_binding_reaches_the_same_agent() {
    // A2A-1
    let server = start_server(ServerSettings::default(), vec![echo("one", json!({})), echo("two", json!({}))]).await;
    for binding in ALL_BINDINGS {
        let client = client(&server, "two", binding, None).await;
        let task = send(&client, "hello").await;
        assert_eq!(
            (task.status.state.clone(), output(&task)),
            (TaskState::Completed, "hello".to_owned()),
            "{binding:?}"
        );
        let updates: Vec<_> = client.stream(message("again")).await.unwrap().collect().await;
        // Output from before the stream is part of the task in the first update.
        let text: String = updates.iter().map(|update| update_text(update.as_ref().unwrap())).collect();
        assert_eq!(text, "again", "{binding:?}: {updates:?}");
        let extended = client.extended_card().await.unwrap();
        assert_eq!(extended.name, "two", "{binding:?}");
    }
    // A gRPC request without an agent reaches the default agent.
    let options =
        ClientOptions { binding: Some(Binding::Grpc), version: Some(Version::V03), ..ClientOptions::default() };
    let default = A2aClient::discover(&server.url, &options).await.unwrap();
    assert_eq!(default.extended_card().await.unwrap().name, "Assistant");
    let executions: Value = get(&server, "/api/executions?agent_id=two").await.json().await.unwrap();
    assert_eq!(executions["count"], 12, "each task is one execution");
}

#[tokio::test]
async fn every_binding_requires_credentials() {
    // A2A-2, A2A-3
    let dir = tempfile::tempdir().unwrap();
    let auth = json!({"type": "bearer_token", "token": token(dir.path(), "good"), "user": ALICE});
    let a2a = json!({"auth": auth, "rate": {"per_minute": 1, "burst": 12}});
    let only = json!({"a2a": {"transports": ["json_rpc"]}, "allow": ["*"]});
    let server = start_server(with_tokens(), vec![echo("own", json!({"a2a": a2a})), echo("only", only)]).await;
    let get_unknown = || GetTaskRequest { id: "none".to_owned(), history_length: None, tenant: None };
    for binding in ALL_BINDINGS {
        for (token, expected) in [(None, 401), (Some("bad"), 401)] {
            let client = client(&server, "own", binding, token).await;
            assert_eq!(status_of(client.get(get_unknown()).await), expected, "{binding:?} {token:?}");
        }
        let client = client(&server, "own", binding, Some("good")).await;
        match client.get(get_unknown()).await {
            Err(Error::Agent(error)) => assert_eq!(error.kind, ErrorKind::TaskNotFound, "{binding:?}"),
            other => panic!("{binding:?} {other:?}"),
        }
        assert_eq!(output(&send(&client, "whoami").await), ALICE, "{binding:?}");
    }
    for binding in ALL_BINDINGS {
        let client = client(&server, "own", binding, Some("good")).await;
        match client.get(get_unknown()).await {
            Err(Error::Refused { status: 429, retry_after: Some(wait), .. }) => {
                assert!(wait > Duration::ZERO && wait <= Duration::from_secs(61), "{binding:?} {wait:?}");
            }
            other => panic!("{binding:?} {other:?}"),
        }
    }
    let options = ClientOptions { binding: Some(Binding::Grpc), ..ClientOptions::default() };
    let grpc = A2aClient::discover(&format!("{}/agents/only", server.url), &options).await;
    assert!(grpc.is_err(), "the card lists no gRPC");
}

#[tokio::test]
async fn tasks_are_visible_only_to_their_caller() {
    // A2A-2
    let agents = vec![echo("one", json!({"allow": ["*"]})), echo("two", json!({"allow": ["*"]}))];
    let server = start_server(with_tokens(), agents).await;
    let alice = jwt(ALICE, "");
    let bob = jwt(BOB, "adjutant:admin");
    for binding in ALL_BINDINGS {
        let task = send(&client(&server, "one", binding, Some(&alice)).await, "mine").await;
        for (agent, token) in [("one", &bob), ("two", &alice)] {
            let other = client(&server, agent, binding, Some(token)).await;
            let id = || task.id.clone();
            let assert_not_found = |error: Error| match error {
                Error::Agent(error) => assert_eq!(error.kind, ErrorKind::TaskNotFound, "{binding:?} {agent}"),
                other => panic!("{binding:?} {agent} {other:?}"),
            };
            assert_not_found(
                other.get(GetTaskRequest { id: id(), history_length: None, tenant: None }).await.unwrap_err(),
            );
            assert_not_found(
                other.cancel(CancelTaskRequest { id: id(), metadata: None, tenant: None }).await.unwrap_err(),
            );
            match other.subscribe(SubscribeToTaskRequest { id: id(), tenant: None }).await {
                Err(error) => assert_not_found(error),
                Ok(mut updates) => assert_not_found(updates.next().await.unwrap().unwrap_err()),
            }
            let mut reply = message("and this?");
            reply.message.task_id = Some(id());
            assert_not_found(other.send(reply).await.unwrap_err());
        }
        if binding.1 == Version::V10 {
            let list = |token: String| {
                let server = &server;
                async move {
                    let client = client(server, "one", binding, Some(&token)).await;
                    let all = ListTasksRequest {
                        context_id: None,
                        status: None,
                        page_size: None,
                        page_token: None,
                        history_length: None,
                        status_timestamp_after: None,
                        include_artifacts: None,
                        tenant: None,
                    };
                    client.list(all).await.unwrap().tasks.into_iter().map(|listed| listed.id).collect::<Vec<_>>()
                }
            };
            assert!(list(alice.clone()).await.contains(&task.id), "{binding:?}");
            assert!(list(bob.clone()).await.is_empty(), "{binding:?}: not even an administrator");
        }
    }
}

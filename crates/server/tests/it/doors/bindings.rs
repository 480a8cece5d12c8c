//! Every binding in both versions leads through the same door, over one port: our own client at the other end.

use std::time::Duration;

use a2a::client::{Auth as Proof, Client, Error, Options};
use a2a::types::{
    CancelTaskRequest, GetTaskRequest, ListTasksRequest, Message, Part, PartContent, Role, SendMessageRequest,
    SendMessageResponse, StreamResponse, SubscribeToTaskRequest, Task, TaskState,
};
use a2a::{Binding, Kind, Version};
use futures::StreamExt;

use super::*;

const EVERY: [(Binding, Version); 6] = [
    (Binding::JsonRpc, Version::V10),
    (Binding::HttpJson, Version::V10),
    (Binding::Grpc, Version::V10),
    (Binding::JsonRpc, Version::V03),
    (Binding::HttpJson, Version::V03),
    (Binding::Grpc, Version::V03),
];

async fn client(bench: &Bench, agent: &str, (binding, version): (Binding, Version), proof: Option<&str>) -> Client {
    let mut headers = reqwest::header::HeaderMap::new();
    if (binding, version) == (Binding::Grpc, Version::V03) {
        headers.insert("x-adjutant-agent", agent.parse().unwrap());
    }
    let auth = proof.map(|token| Proof::Bearer(token.into()));
    let options = Options { auth, binding: Some(binding), version: Some(version), headers, ..Options::default() };
    Client::discover(&format!("{}/agents/{agent}", bench.url), &options).await.unwrap()
}

fn says(text: &str) -> SendMessageRequest {
    let message = Message::new(Role::User, vec![Part::text(text)]);
    SendMessageRequest { message, configuration: None, metadata: None, tenant: None }
}

fn output(task: &Task) -> String {
    text_of(task.artifacts.iter().flatten().flat_map(|artifact| &artifact.parts))
}

fn said(told: &StreamResponse) -> String {
    match told {
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

async fn sent(client: &Client, text: &str) -> Task {
    match client.send(says(text)).await.unwrap() {
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
    let bench = bench(Settings::default(), vec![echo("one", json!({})), echo("two", json!({}))]).await;
    for way in EVERY {
        let client = client(&bench, "two", way, None).await;
        let task = sent(&client, "hello").await;
        assert_eq!((task.status.state.clone(), output(&task)), (TaskState::Completed, "hello".to_owned()), "{way:?}");
        let told: Vec<_> = client.stream(says("again")).await.unwrap().collect().await;
        // What was said before the stream began is in the task that comes first.
        let text: String = told.iter().map(|told| said(told.as_ref().unwrap())).collect();
        assert_eq!(text, "again", "{way:?}: {told:?}");
        let extended = client.extended_card().await.unwrap();
        assert_eq!(extended.name, "two", "{way:?}");
    }
    // Where gRPC names nobody, it is the one that is meant then.
    let ways = Options { binding: Some(Binding::Grpc), version: Some(Version::V03), ..Options::default() };
    let nobody = Client::discover(&bench.url, &ways).await.unwrap();
    assert_eq!(nobody.extended_card().await.unwrap().name, "Assistant");
    let executions: Value = get(&bench, "/api/executions?agent_id=two").await.json().await.unwrap();
    assert_eq!(executions["count"], 12, "a task is an execution");
}

#[tokio::test]
async fn every_binding_asks_for_proof() {
    // A2A-2, A2A-3
    let dir = tempfile::tempdir().unwrap();
    let auth = json!({"type": "bearer_token", "token": token(dir.path(), "good"), "user": ALICE});
    let a2a = json!({"auth": auth, "rate": {"per_minute": 1, "burst": 12}});
    let only = json!({"a2a": {"transports": ["json_rpc"]}, "allow": ["*"]});
    let bench = bench(with_tokens(), vec![echo("own", json!({"a2a": a2a})), echo("only", only)]).await;
    let get_nothing = || GetTaskRequest { id: "none".to_owned(), history_length: None, tenant: None };
    for way in EVERY {
        for (proof, expected) in [(None, 401), (Some("bad"), 401)] {
            let client = client(&bench, "own", way, proof).await;
            assert_eq!(status_of(client.get(get_nothing()).await), expected, "{way:?} {proof:?}");
        }
        let client = client(&bench, "own", way, Some("good")).await;
        match client.get(get_nothing()).await {
            Err(Error::Agent(error)) => assert_eq!(error.kind, Kind::TaskNotFound, "{way:?}"),
            other => panic!("{way:?} {other:?}"),
        }
        assert_eq!(output(&sent(&client, "whoami").await), ALICE, "{way:?}");
    }
    for way in EVERY {
        let client = client(&bench, "own", way, Some("good")).await;
        match client.get(get_nothing()).await {
            Err(Error::Refused { status: 429, retry_after: Some(wait), .. }) => {
                assert!(wait > Duration::ZERO && wait <= Duration::from_secs(61), "{way:?} {wait:?}");
            }
            other => panic!("{way:?} {other:?}"),
        }
    }
    let options = Options { binding: Some(Binding::Grpc), ..Options::default() };
    let grpc = Client::discover(&format!("{}/agents/only", bench.url), &options).await;
    assert!(grpc.is_err(), "its card has no gRPC");
}

#[tokio::test]
async fn tasks_are_their_callers_alone() {
    // A2A-2
    let agents = vec![echo("one", json!({"allow": ["*"]})), echo("two", json!({"allow": ["*"]}))];
    let bench = bench(with_tokens(), agents).await;
    let alice = jwt(ALICE, "");
    let bob = jwt(BOB, "adjutant:admin");
    for way in EVERY {
        let hers = sent(&client(&bench, "one", way, Some(&alice)).await, "mine").await;
        for (agent, token) in [("one", &bob), ("two", &alice)] {
            let other = client(&bench, agent, way, Some(token)).await;
            let id = || hers.id.clone();
            let gone = |error: Error| match error {
                Error::Agent(error) => assert_eq!(error.kind, Kind::TaskNotFound, "{way:?} {agent}"),
                other => panic!("{way:?} {agent} {other:?}"),
            };
            gone(other.get(GetTaskRequest { id: id(), history_length: None, tenant: None }).await.unwrap_err());
            gone(other.cancel(CancelTaskRequest { id: id(), metadata: None, tenant: None }).await.unwrap_err());
            match other.subscribe(SubscribeToTaskRequest { id: id(), tenant: None }).await {
                Err(error) => gone(error),
                Ok(mut news) => gone(news.next().await.unwrap().unwrap_err()),
            }
            let mut answer = says("and this?");
            answer.message.task_id = Some(id());
            gone(other.send(answer).await.unwrap_err());
        }
        if way.1 == Version::V10 {
            let list = |token: String| {
                let bench = &bench;
                async move {
                    let client = client(bench, "one", way, Some(&token)).await;
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
                    client.list(all).await.unwrap().tasks.into_iter().map(|task| task.id).collect::<Vec<_>>()
                }
            };
            assert!(list(alice.clone()).await.contains(&hers.id), "{way:?}");
            assert!(list(bob.clone()).await.is_empty(), "{way:?}: not even an administrator");
        }
    }
}

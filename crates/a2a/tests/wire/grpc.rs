//! Both gRPC services, called with the client of tonic.

use a2a::grpc::status::error_from_status;
use a2a::proto::{v1, v03};
use a2a::types::{self, Role, StreamResponse, TaskState};
use a2a::{Binding, OperationRequest, Version};
use futures::TryStreamExt;
use http::uri::PathAndQuery;
use prost::Message;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status};
use tonic_prost::ProstCodec;

use super::double::{Double, MAX_REQUEST, message, push, task, updates};

const V1: &str = "lf.a2a.v1.A2AService";
const V03: &str = "a2a.v1.A2AService";

struct Peer(Channel);

type Metadata<'a> = &'a [(&'static str, &'a str)];

impl Peer {
    async fn connect(double: &Double) -> Self {
        Self(Endpoint::from_shared(double.url()).unwrap().connect().await.unwrap())
    }

    fn request<Q>(request: Q, metadata: Metadata) -> tonic::Request<Q> {
        let mut request = tonic::Request::new(request);
        for (name, value) in metadata {
            request.metadata_mut().insert(*name, value.parse().unwrap());
        }
        request
    }

    async fn call<Q, A>(&self, service: &str, method: &str, request: Q, metadata: Metadata<'_>) -> Result<A, Status>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        let mut grpc = tonic::client::Grpc::new(self.0.clone());
        grpc.ready().await.unwrap();
        let path: PathAndQuery = format!("/{service}/{method}").parse().unwrap();
        let response = grpc.unary(Self::request(request, metadata), path, ProstCodec::default()).await?;
        Ok(response.into_inner())
    }

    async fn listen<Q, A>(&self, service: &str, method: &str, request: Q) -> Result<Vec<A>, (Vec<A>, Status)>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        let mut grpc = tonic::client::Grpc::new(self.0.clone());
        grpc.ready().await.unwrap();
        let path: PathAndQuery = format!("/{service}/{method}").parse().unwrap();
        let response = grpc.server_streaming(Self::request(request, &[]), path, ProstCodec::default()).await;
        let mut response = response.map_err(|status| (Vec::new(), status))?.into_inner();
        let mut updates = Vec::new();
        loop {
            match response.try_next().await {
                Ok(Some(update)) => updates.push(update),
                Ok(None) => return Ok(updates),
                Err(status) => return Err((updates, status)),
            }
        }
    }
}

fn send(text: &str) -> types::SendMessageRequest {
    types::SendMessageRequest { message: message(Role::User, text), configuration: None, metadata: None, tenant: None }
}

fn get(id: &str) -> v1::GetTaskRequest {
    v1::GetTaskRequest { id: id.to_owned(), ..Default::default() }
}

/// Returns the error in the details. The details repeat the code and the message.
fn detailed(status: &Status) -> a2a::Error {
    let details = tonic_types::pb::Status::decode(status.details()).unwrap();
    assert_eq!((details.code, details.message.as_str()), (status.code() as i32, status.message()));
    assert_eq!(details.details[0].type_url, "type.googleapis.com/google.rpc.ErrorInfo");
    error_from_status(status).unwrap()
}

#[tokio::test]
async fn every_method_of_lf_a2a_v1_responds() {
    // A2A-1
    let double = Double::start().await;
    let peer = Peer::connect(&double).await;
    let sent: v1::SendMessageResponse =
        peer.call(V1, "SendMessage", v1::SendMessageRequest::from(send("go")), &[]).await.unwrap();
    let expected = task("t1", TaskState::Completed, vec![message(Role::User, "go")]);
    assert_eq!(sent.payload, Some(v1::send_message_response::Payload::Task(expected.into())));
    assert_eq!(double.last().request, OperationRequest::Send(send("go")));
    assert_eq!((double.last().binding, double.last().version), (Binding::Grpc, Version::V10));
    let sent: v1::SendMessageResponse =
        peer.call(V1, "SendMessage", v1::SendMessageRequest::from(send("message")), &[]).await.unwrap();
    assert_eq!(sent.payload, Some(v1::send_message_response::Payload::Message(message(Role::Agent, "hello").into())));
    let received: Vec<v1::StreamResponse> =
        peer.listen(V1, "SendStreamingMessage", v1::SendMessageRequest::from(send("go"))).await.unwrap();
    let received: Vec<StreamResponse> = received.into_iter().map(|update| update.try_into().unwrap()).collect();
    assert_eq!(received, updates(TaskState::Completed));
    let found: v1::Task = peer.call(V1, "GetTask", get("t7"), &[]).await.unwrap();
    assert_eq!(found, task("t7", TaskState::Working, vec![]).into());
    let found: v1::ListTasksResponse = peer
        .call(V1, "ListTasks", v1::ListTasksRequest { page_size: Some(7), ..Default::default() }, &[])
        .await
        .unwrap();
    assert_eq!((found.tasks.len(), found.total_size), (2, 2));
    let cancel = v1::CancelTaskRequest { id: "t7".to_owned(), ..Default::default() };
    let found: v1::Task = peer.call(V1, "CancelTask", cancel, &[]).await.unwrap();
    assert_eq!(found.status.unwrap().state(), v1::TaskState::Canceled);
    let subscribe = v1::SubscribeToTaskRequest { id: "t7".to_owned(), ..Default::default() };
    let received: Vec<v1::StreamResponse> = peer.listen(V1, "SubscribeToTask", subscribe).await.unwrap();
    assert_eq!(received.len(), 4);
    let made: v1::TaskPushNotificationConfig = peer
        .call(V1, "CreateTaskPushNotificationConfig", v1::TaskPushNotificationConfig::from(push("t1", "p9")), &[])
        .await
        .unwrap();
    assert_eq!(made, push("t1", "p9").into());
    let one = v1::GetTaskPushNotificationConfigRequest {
        task_id: "t1".to_owned(),
        id: "p2".to_owned(),
        ..Default::default()
    };
    let found: v1::TaskPushNotificationConfig = peer.call(V1, "GetTaskPushNotificationConfig", one, &[]).await.unwrap();
    assert_eq!(found, push("t1", "p2").into());
    let all = v1::ListTaskPushNotificationConfigsRequest { task_id: "t1".to_owned(), ..Default::default() };
    let found: v1::ListTaskPushNotificationConfigsResponse =
        peer.call(V1, "ListTaskPushNotificationConfigs", all, &[]).await.unwrap();
    assert_eq!(found.configs.len(), 2);
    let one = v1::DeleteTaskPushNotificationConfigRequest {
        task_id: "t1".to_owned(),
        id: "p2".to_owned(),
        ..Default::default()
    };
    peer.call::<_, ()>(V1, "DeleteTaskPushNotificationConfig", one, &[]).await.unwrap();
    let card: v1::AgentCard =
        peer.call(V1, "GetExtendedAgentCard", v1::GetExtendedAgentCardRequest::default(), &[]).await.unwrap();
    assert_eq!(card, double.agent_card("extended").into());
}

#[tokio::test]
async fn every_method_of_a2a_v1_responds() {
    // A2A-1
    let double = Double::start().await;
    let peer = Peer::connect(&double).await;
    let request = v03::SendMessageRequest::from(send("go"));
    let sent: v03::SendMessageResponse = peer.call(V03, "SendMessage", request.clone(), &[]).await.unwrap();
    let expected = task("t1", TaskState::Completed, vec![message(Role::User, "go")]);
    assert_eq!(sent.payload, Some(v03::send_message_response::Payload::Task(expected.into())));
    assert_eq!((double.last().binding, double.last().version), (Binding::Grpc, Version::V03));
    let received: Vec<v03::StreamResponse> = peer.listen(V03, "SendStreamingMessage", request).await.unwrap();
    let is_final: Vec<bool> = received
        .iter()
        .map(|update| matches!(&update.payload, Some(v03::stream_response::Payload::StatusUpdate(event)) if event.r#final))
        .collect();
    assert_eq!(is_final, [false, false, false, true]);
    let named = || "tasks/t7".to_owned();
    let request = v03::GetTaskRequest { name: named(), history_length: 3 };
    let found: v03::Task = peer.call(V03, "GetTask", request, &[]).await.unwrap();
    assert_eq!(found, task("t7", TaskState::Working, vec![]).into());
    let expected = types::GetTaskRequest { id: "t7".to_owned(), history_length: Some(3), tenant: None };
    assert_eq!(double.last().request, OperationRequest::Get(expected));
    let found: v03::Task = peer.call(V03, "CancelTask", v03::CancelTaskRequest { name: named() }, &[]).await.unwrap();
    assert_eq!(found.status.unwrap().state(), v03::TaskState::Cancelled);
    let received: Vec<v03::StreamResponse> =
        peer.listen(V03, "TaskSubscription", v03::TaskSubscriptionRequest { name: named() }).await.unwrap();
    assert_eq!(received.len(), 4);
    let create = v03::CreateTaskPushNotificationConfigRequest::from(push("t1", "p9"));
    let made: v03::TaskPushNotificationConfig =
        peer.call(V03, "CreateTaskPushNotificationConfig", create, &[]).await.unwrap();
    assert_eq!(made, push("t1", "p9").into());
    let name = || "tasks/t1/pushNotificationConfigs/p2".to_owned();
    let one = v03::GetTaskPushNotificationConfigRequest { name: name() };
    let found: v03::TaskPushNotificationConfig =
        peer.call(V03, "GetTaskPushNotificationConfig", one, &[]).await.unwrap();
    assert_eq!(found.name, name());
    let all = v03::ListTaskPushNotificationConfigRequest { parent: "tasks/t1".to_owned(), ..Default::default() };
    let found: v03::ListTaskPushNotificationConfigResponse =
        peer.call(V03, "ListTaskPushNotificationConfig", all, &[]).await.unwrap();
    assert_eq!(found.configs.len(), 2);
    let one = v03::DeleteTaskPushNotificationConfigRequest { name: name() };
    peer.call::<_, ()>(V03, "DeleteTaskPushNotificationConfig", one, &[]).await.unwrap();
    let card: v03::AgentCard = peer.call(V03, "GetAgentCard", v03::GetAgentCardRequest {}, &[]).await.unwrap();
    assert_eq!(
        (card.url.as_str(), card.protocol_version.as_str()),
        (&*format!("{}/agents/extended", double.url()), "0.3.0")
    );
}

#[tokio::test]
async fn the_agent_is_named_by_tenant_or_metadata() {
    // A2A-1
    let double = Double::start().await;
    let peer = Peer::connect(&double).await;
    let with_tenant = |tenant: &str| v1::GetTaskRequest { tenant: tenant.to_owned(), ..get("t1") };
    for (tenant, metadata, expected) in [
        ("", &[] as Metadata, None),
        ("one", &[], Some("one")),
        ("", &[("x-agent", "two")], Some("two")),
        ("one", &[("x-agent", "two")], Some("one")),
    ] {
        peer.call::<_, v1::Task>(V1, "GetTask", with_tenant(tenant), metadata).await.unwrap();
        assert_eq!(double.last().agent.as_deref(), expected);
    }
    let old = v03::GetTaskRequest { name: "tasks/t1".to_owned(), history_length: 0 };
    peer.call::<_, v03::Task>(V03, "GetTask", old, &[("x-agent", "two")]).await.unwrap();
    assert_eq!(double.last().agent.as_deref(), Some("two"));
}

#[tokio::test]
async fn the_package_determines_the_version() {
    // A2A-1
    let double = Double::start().await;
    let peer = Peer::connect(&double).await;
    for fine in ["1.0", "1.0.7", ""] {
        peer.call::<_, v1::Task>(V1, "GetTask", get("t1"), &[("a2a-version", fine)]).await.unwrap();
    }
    for wrong in ["0.3", "2.0", "x"] {
        let status = peer.call::<_, v1::Task>(V1, "GetTask", get("t1"), &[("a2a-version", wrong)]).await.unwrap_err();
        assert_eq!(status.code(), Code::FailedPrecondition);
        assert_eq!(detailed(&status).kind, a2a::ErrorKind::VersionNotSupported);
    }
    let old = v03::GetTaskRequest { name: "tasks/t1".to_owned(), history_length: 0 };
    let status = peer.call::<_, v03::Task>(V03, "GetTask", old, &[("a2a-version", "1.0")]).await.unwrap_err();
    assert_eq!(status.code(), Code::FailedPrecondition);
    assert!(status.message().starts_with("UnsupportedOperationError: "), "{status}");
}

#[tokio::test]
async fn errors_have_the_form_of_each_version() {
    // A2A-1
    let double = Double::start().await;
    let peer = Peer::connect(&double).await;
    let status = peer.call::<_, v1::Task>(V1, "GetTask", get("missing"), &[]).await.unwrap_err();
    assert_eq!(status.code(), Code::NotFound);
    let error = detailed(&status);
    assert_eq!((error.kind, error.metadata["taskId"].as_str()), (a2a::ErrorKind::TaskNotFound, "missing"));
    let old = v03::GetTaskRequest { name: "tasks/missing".to_owned(), history_length: 0 };
    let status = peer.call::<_, v03::Task>(V03, "GetTask", old, &[]).await.unwrap_err();
    assert_eq!((status.code(), status.message()), (Code::NotFound, "TaskNotFoundError: the task was not found"));
    assert!(status.details().is_empty());
    let broken = v1::SendMessageRequest::from(send("breaks"));
    let (received, status) =
        peer.listen::<_, v1::StreamResponse>(V1, "SendStreamingMessage", broken).await.unwrap_err();
    assert_eq!((received.len(), status.code(), status.message()), (1, Code::Internal, "it broke"));
}

#[tokio::test]
async fn rejections_come_before_validation_errors() {
    // A2A-2, A2A-3
    let double = Double::start().await;
    let peer = Peer::connect(&double).await;
    for (agent, code, metadata) in [
        ("unknown", Code::NotFound, None),
        ("locked", Code::Unauthenticated, Some(("www-authenticate", "Bearer realm=\"x\""))),
        ("forbidden", Code::PermissionDenied, None),
        ("busy", Code::ResourceExhausted, Some(("retry-after", "2"))),
        ("refused", Code::FailedPrecondition, None),
    ] {
        // The request is invalid as well, but unauthorized callers do not learn that.
        let status = peer.call::<_, v1::Task>(V1, "GetTask", get(""), &[("x-agent", agent)]).await.unwrap_err();
        assert_eq!(status.code(), code, "{agent}");
        if let Some((name, value)) = metadata {
            assert_eq!(status.metadata().get(name).unwrap(), value);
        }
    }
}

#[tokio::test]
async fn errors_name_the_missing_field() {
    // A2A-1
    let double = Double::start().await;
    let peer = Peer::connect(&double).await;
    let full = v1::Message::from(message(Role::User, "go"));
    let messages = [
        (None, "message"),
        (Some(v1::Message { message_id: String::new(), ..full.clone() }), "message.messageId"),
        (Some(v1::Message { role: 0, ..full.clone() }), "message.role"),
        (Some(v1::Message { parts: Vec::new(), ..full.clone() }), "message.parts"),
        (Some(v1::Message { parts: vec![v1::Part::default()], ..full }), "message.parts[0].content"),
    ];
    for (message, field) in messages {
        let request = v1::SendMessageRequest { message, ..Default::default() };
        let status = peer.call::<_, v1::SendMessageResponse>(V1, "SendMessage", request, &[]).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument, "{field}");
        assert_eq!(detailed(&status).violations[0].0, field);
    }
    let status = peer.call::<_, v1::Task>(V1, "GetTask", get(""), &[]).await.unwrap_err();
    assert_eq!(detailed(&status).violations[0].0, "id");
    for name in ["", "t1", "tasks/", "tasks/a/b"] {
        let old = v03::GetTaskRequest { name: name.to_owned(), history_length: 0 };
        let status = peer.call::<_, v03::Task>(V03, "GetTask", old, &[]).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument, "{name}");
        assert!(status.message().starts_with("InvalidParamsError: name: "), "{status}");
    }
}

#[tokio::test]
async fn oversized_requests_are_rejected() {
    // A2A-4
    let double = Double::start().await;
    let peer = Peer::connect(&double).await;
    let status = peer.call::<_, v1::Task>(V1, "GetTask", get(&"x".repeat(MAX_REQUEST)), &[]).await.unwrap_err();
    assert_eq!(status.code(), Code::ResourceExhausted);
    peer.call::<_, v1::Task>(V1, "GetTask", get(&"x".repeat(MAX_REQUEST / 2)), &[]).await.unwrap();
}

#[tokio::test]
async fn unknown_methods_are_unimplemented() {
    let double = Double::start().await;
    let peer = Peer::connect(&double).await;
    let status = peer.call::<_, ()>(V1, "Dance", (), &[]).await.unwrap_err();
    assert_eq!(status.code(), Code::Unimplemented);
    let status = peer.call::<_, ()>(V03, "ListTasks", (), &[]).await.unwrap_err();
    assert_eq!(status.code(), Code::Unimplemented);
}

#[tokio::test]
async fn active_extensions_are_returned() {
    let double = Double::start().await;
    let peer = Peer::connect(&double).await;
    let mut grpc = tonic::client::Grpc::new(peer.0.clone());
    grpc.ready().await.unwrap();
    let request = Peer::request(get("t1"), &[("a2a-extensions", "urn:known, urn:other")]);
    let path = PathAndQuery::from_static("/lf.a2a.v1.A2AService/GetTask");
    let response = grpc.unary::<_, v1::Task, _>(request, path, ProstCodec::default()).await.unwrap();
    assert_eq!(response.metadata().get("a2a-extensions").unwrap(), "urn:known");
    assert_eq!(double.last().extensions, ["urn:known", "urn:other"]);
}

//! A test double of an agent that serves all bindings on a real port. The text of a message selects its behaviour.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, Once};
use std::time::Duration;

use a2a::types::{
    AgentCard, Artifact, ListTaskPushNotificationConfigsResponse, ListTasksResponse, Message, Part, PartContent, Role,
    SendMessageResponse, StreamResponse, Task, TaskArtifactUpdateEvent, TaskPushNotificationConfig, TaskState,
    TaskStatus, TaskStatusUpdateEvent,
};
use a2a::{
    AgentHandler, Binding, CallContext, CallRejection, Error, ErrorKind, OperationRequest, OperationResponse,
    PublishedCard, Version,
};
use axum::Router;
use futures::{StreamExt, stream};
use http::HeaderName;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use serde_json::json;
use tokio::net::TcpListener;

/// The metadata key that names an agent.
pub(crate) const AGENT: HeaderName = HeaderName::from_static("x-agent");
pub(crate) const SECRET: &str = "s3cr3t-t0ken";
pub(crate) const MAX_REQUEST: usize = 64 << 10;

#[derive(Clone)]
pub(crate) struct Double {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<ReceivedRequest>>>,
}

/// A request that the double received.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ReceivedRequest {
    pub(crate) agent: Option<String>,
    pub(crate) binding: Binding,
    pub(crate) version: Version,
    pub(crate) extensions: Vec<String>,
    pub(crate) request: OperationRequest,
}

pub(crate) struct Caller {
    agent: Option<String>,
    binding: Binding,
    version: Version,
    extensions: Vec<String>,
    authorization: String,
}

impl Double {
    /// Starts a double on a free port. It stops with the test.
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let double = Self { address: listener.local_addr().unwrap(), seen: Arc::default() };
        serve(listener, double.router());
        double
    }

    pub(crate) fn unbound() -> Self {
        Self { address: SocketAddr::from(([127, 0, 0, 1], 1)), seen: Arc::default() }
    }

    pub(crate) fn router(&self) -> Router {
        Router::new()
            .nest("/agents", a2a::http::router(self.clone()))
            .merge(a2a::http::well_known_router(self.clone()))
            .merge(a2a::grpc::router(self.clone(), AGENT))
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn last(&self) -> ReceivedRequest {
        self.seen.lock().unwrap().last().cloned().expect("a request was received")
    }
}

pub(crate) fn serve(listener: TcpListener, router: Router) {
    static TLS: Once = Once::new();
    TLS.call_once(|| drop(rustls::crypto::ring::default_provider().install_default()));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let service = TowerToHyperService::new(router.clone());
            tokio::spawn(async move {
                let _ = auto::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service).await;
            });
        }
    });
}

pub(crate) fn text(message: &Message) -> &str {
    message.text().unwrap_or_default()
}

pub(crate) fn message(role: Role, text: &str) -> Message {
    Message {
        message_id: format!("m-{text}"),
        context_id: Some("c1".to_owned()),
        task_id: Some("t1".to_owned()),
        role,
        parts: vec![Part::text(text)],
        metadata: None,
        extensions: None,
        reference_task_ids: None,
    }
}

pub(crate) fn task(id: &str, state: TaskState, history: Vec<Message>) -> Task {
    Task {
        id: id.to_owned(),
        context_id: "c1".to_owned(),
        status: TaskStatus {
            state,
            message: Some(message(Role::Agent, "status text")),
            timestamp: serde_json::from_value(json!("2026-11-16T01:02:03.000456Z")).unwrap(),
        },
        artifacts: Some(vec![artifact()]),
        history: Some(history).filter(|history| !history.is_empty()),
        metadata: Some([("deep".to_owned(), json!({"list": [1, 2.5, null, "x"]}))].into()),
    }
}

pub(crate) fn artifact() -> Artifact {
    let mut data = Part::data(json!({"k": [1, true]}));
    data.metadata = Some([("m".to_owned(), json!("n"))].into());
    Artifact {
        artifact_id: "a1".to_owned(),
        name: Some("result".to_owned()),
        description: None,
        parts: vec![Part::text("done"), data, Part::url("http://x.example/y").with_filename("y")],
        metadata: None,
        extensions: None,
    }
}

/// Returns the updates of every stream, in order.
pub(crate) fn updates(last: TaskState) -> Vec<StreamResponse> {
    let task_id = "t1".to_owned();
    let context_id = "c1".to_owned();
    let chunk = |text: &str, append: bool, last_chunk: bool| {
        StreamResponse::ArtifactUpdate(TaskArtifactUpdateEvent {
            task_id: task_id.clone(),
            context_id: context_id.clone(),
            artifact: Artifact { parts: vec![Part::text(text)], ..artifact() },
            append: Some(append).filter(|it| *it),
            last_chunk: Some(last_chunk).filter(|it| *it),
            metadata: None,
        })
    };
    let status = task("", last, Vec::new()).status;
    vec![
        StreamResponse::Task(task("t1", TaskState::Working, vec![message(Role::User, "go")])),
        chunk("one", false, false),
        chunk("two", true, true),
        StreamResponse::StatusUpdate(TaskStatusUpdateEvent {
            task_id: task_id.clone(),
            context_id: context_id.clone(),
            status,
            metadata: None,
        }),
    ]
}

impl AgentHandler for Double {
    type Caller = Caller;

    async fn authorize(&self, call: &CallContext) -> Result<Caller, CallRejection> {
        let authorization = call.headers.get("authorization").and_then(|value| value.to_str().ok()).unwrap_or_default();
        match call.agent.as_deref() {
            Some("unknown") => return Err(CallRejection::UnknownAgent),
            Some("locked") if authorization != format!("Bearer {SECRET}") => {
                return Err(CallRejection::Unauthenticated { challenge: "Bearer realm=\"x\"".to_owned() });
            }
            Some("forbidden") => return Err(CallRejection::Forbidden("not for you".to_owned())),
            Some("busy") => return Err(CallRejection::RateLimited { retry_after: Duration::from_millis(1_500) }),
            Some("refused") => {
                return Err(CallRejection::NotOffered(Error::new(ErrorKind::UnsupportedOperation, "not offered here")));
            }
            _ => {}
        }
        Ok(Caller {
            agent: call.agent.clone(),
            binding: call.binding,
            version: call.version,
            extensions: call.requested_extensions.clone(),
            authorization: authorization.to_owned(),
        })
    }

    async fn handle(&self, caller: Caller, request: OperationRequest) -> Result<OperationResponse, Error> {
        let authorization = caller.authorization;
        self.seen.lock().unwrap().push(ReceivedRequest {
            agent: caller.agent,
            binding: caller.binding,
            version: caller.version,
            extensions: caller.extensions,
            request: request.clone(),
        });
        match request {
            OperationRequest::Send(request) => match text(&request.message) {
                "message" => Ok(OperationResponse::Sent(SendMessageResponse::Message(message(Role::Agent, "hello")))),
                "slow" => std::future::pending().await,
                "huge" => {
                    let text = "x".repeat(300_000);
                    Ok(OperationResponse::Sent(SendMessageResponse::Message(message(Role::Agent, &text))))
                }
                "leak" => Err(Error::new(ErrorKind::Internal, format!("you sent {authorization}"))),
                "bytes" => {
                    let mut answer = task("t1", TaskState::Completed, Vec::new());
                    let is_raw = |part: &&Part| matches!(part.content, PartContent::Raw(_));
                    answer.artifacts = Some(vec![Artifact {
                        parts: request.message.parts.iter().filter(is_raw).cloned().collect(),
                        ..artifact()
                    }]);
                    Ok(OperationResponse::Sent(SendMessageResponse::Task(answer)))
                }
                _ => Ok(OperationResponse::Sent(SendMessageResponse::Task(task(
                    "t1",
                    TaskState::Completed,
                    vec![request.message],
                )))),
            },
            OperationRequest::Stream(request) => {
                let updates: Vec<_> = match text(&request.message) {
                    "asks" => updates(TaskState::InputRequired),
                    "message" => vec![StreamResponse::Message(message(Role::Agent, "hello"))],
                    "breaks" | "silent" => updates(TaskState::Completed).into_iter().take(1).collect(),
                    "open" => updates(TaskState::Completed),
                    _ => updates(TaskState::Completed),
                };
                let updates = stream::iter(updates.into_iter().map(Ok));
                Ok(OperationResponse::Updates(match text(&request.message) {
                    "breaks" => updates.chain(stream::iter([Err(Error::new(ErrorKind::Internal, "it broke"))])).boxed(),
                    // The stream never ends.
                    "silent" | "open" => updates.chain(stream::pending()).boxed(),
                    _ => updates.boxed(),
                }))
            }
            OperationRequest::Get(request) if request.id == "missing" => Err(Error::task_not_found(&request.id)),
            OperationRequest::Get(request) => {
                Ok(OperationResponse::Task(task(&request.id, TaskState::Working, Vec::new())))
            }
            OperationRequest::List(_) => Ok(OperationResponse::Tasks(ListTasksResponse {
                tasks: vec![task("t1", TaskState::Working, Vec::new()), task("t2", TaskState::Failed, Vec::new())],
                next_page_token: String::new(),
                page_size: 50,
                total_size: 2,
            })),
            OperationRequest::Cancel(request) if request.id == "done" => {
                Err(Error::new(ErrorKind::TaskNotCancelable, "the task has ended"))
            }
            OperationRequest::Cancel(request) => {
                Ok(OperationResponse::Task(task(&request.id, TaskState::Canceled, Vec::new())))
            }
            OperationRequest::Subscribe(request) if request.id == "done" => {
                Err(Error::new(ErrorKind::UnsupportedOperation, "the task has ended"))
            }
            OperationRequest::Subscribe(_) => {
                Ok(OperationResponse::Updates(stream::iter(updates(TaskState::Completed).into_iter().map(Ok)).boxed()))
            }
            OperationRequest::SetPush(config) => {
                let id = Some(config.id.unwrap_or_else(|| "p1".to_owned()));
                Ok(OperationResponse::PushConfig(TaskPushNotificationConfig { id, tenant: None, ..config }))
            }
            OperationRequest::GetPush(request) if request.id == "missing" => {
                Err(Error::new(ErrorKind::NotFound, "not found"))
            }
            OperationRequest::GetPush(request) => {
                Ok(OperationResponse::PushConfig(push(&request.task_id, &request.id)))
            }
            OperationRequest::ListPush(request) => {
                Ok(OperationResponse::PushConfigs(ListTaskPushNotificationConfigsResponse {
                    configs: vec![push(&request.task_id, "p1"), push(&request.task_id, "p2")],
                    next_page_token: None,
                }))
            }
            OperationRequest::DeletePush(_) => Ok(OperationResponse::Deleted),
            OperationRequest::ExtendedCard(_) => Ok(OperationResponse::Card(Box::new(self.agent_card("extended")))),
        }
    }

    async fn card(&self, call: &CallContext) -> Result<PublishedCard, CallRejection> {
        let card = self.agent_card(call.agent.as_deref().unwrap_or("default"));
        Ok(PublishedCard { card, modified: 1_000_000_000, is_restricted: false })
    }

    fn active_extensions(&self, call: &CallContext) -> Vec<String> {
        call.requested_extensions.iter().filter(|uri| uri.ends_with("known")).cloned().collect()
    }

    fn max_request_bytes(&self) -> usize {
        MAX_REQUEST
    }
}

pub(crate) fn push(task: &str, id: &str) -> TaskPushNotificationConfig {
    serde_json::from_value(json!({"url": "http://hook.example/", "id": id, "taskId": task, "token": "k",
        "authentication": {"scheme": "Bearer", "credentials": "c"}}))
    .unwrap()
}

impl Double {
    pub(crate) fn agent_card(&self, agent: &str) -> AgentCard {
        let url = format!("{}/agents/{agent}", self.url());
        let interface = |url: &str, binding: Binding, version: Version| json!({"url": url, "protocolBinding": binding.as_str(), "protocolVersion": version.as_str()});
        let mut interfaces = Vec::new();
        for version in [Version::V10, Version::V03] {
            interfaces.push(interface(&url, Binding::JsonRpc, version));
            interfaces.push(interface(&url, Binding::HttpJson, version));
            let mut grpc = interface(&self.address.to_string(), Binding::Grpc, version);
            if version == Version::V10 {
                grpc["tenant"] = json!(agent);
            }
            interfaces.push(grpc);
        }
        serde_json::from_value(json!({
            "name": agent, "description": "d", "version": "1", "supportedInterfaces": interfaces,
            "capabilities": {"streaming": true, "pushNotifications": true, "extendedAgentCard": true},
            "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
            "skills": [{"id": "s", "name": "s", "description": "d", "tags": ["t"]}],
            "securitySchemes": {"bearer": {"httpAuthSecurityScheme": {"scheme": "Bearer"}}},
        }))
        .unwrap()
    }
}

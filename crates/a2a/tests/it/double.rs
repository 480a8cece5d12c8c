//! A test double of the handler with fixed responses, and functions that send requests to it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use a2a::types::{self, AgentCard, StreamResponse, Task, TaskState};
use a2a::{
    AgentHandler, Binding, CallContext, CallRejection, Error, ErrorKind, OperationRequest, OperationResponse,
    PublishedCard, Version,
};
use axum::Router;
use axum::body::Body;
use futures::StreamExt;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use serde_json::{Value, json};
use tower::ServiceExt;

/// The only agent. Its only task is `t1` with the push configuration `c1`.
pub(crate) const AGENT: &str = "echo";

/// The maximum size of a request.
pub(crate) const MAX_REQUEST_BYTES: usize = 64 * 1024;

/// Serves [`AGENT`]. The header `deny` selects a rejection.
#[derive(Clone, Default)]
pub(crate) struct Double {
    pub(crate) seen: Arc<Mutex<Vec<OperationRequest>>>,
    pub(crate) calls: Arc<Mutex<Vec<RecordedCall>>>,
}

/// Tenant, requested extensions, version, binding.
pub(crate) type RecordedCall = (Option<String>, Vec<String>, Version, Binding);

impl AgentHandler for Double {
    type Caller = ();

    async fn authorize(&self, call: &CallContext) -> Result<(), CallRejection> {
        let recorded = (call.tenant.clone(), call.requested_extensions.clone(), call.version, call.binding);
        self.calls.lock().unwrap().push(recorded);
        if call.agent.as_deref() != Some(AGENT) {
            return Err(CallRejection::UnknownAgent);
        }
        match call.headers.get("deny").map(HeaderValue::as_bytes) {
            Some(b"401") => Err(CallRejection::Unauthenticated { challenge: "Bearer".to_owned() }),
            Some(b"403") => Err(CallRejection::Forbidden("not for you".to_owned())),
            Some(b"429") => Err(CallRejection::RateLimited { retry_after: Duration::from_millis(1200) }),
            Some(_) => Err(CallRejection::NotOffered(Error::new(ErrorKind::UnsupportedOperation, "not offered"))),
            None => Ok(()),
        }
    }

    async fn handle(&self, (): (), request: OperationRequest) -> Result<OperationResponse, Error> {
        self.seen.lock().unwrap().push(request.clone());
        let known = |id: &str| if id == "t1" { Ok(()) } else { Err(Error::task_not_found(id)) };
        match request {
            OperationRequest::Send(sent) => {
                known(sent.message.task_id.as_deref().unwrap_or("t1"))?;
                Ok(OperationResponse::Sent(match sent.message.text() {
                    Some("message") => types::SendMessageResponse::Message(message("hello")),
                    _ => types::SendMessageResponse::Task(task(vec![sent.message])),
                }))
            }
            OperationRequest::Stream(sent) => {
                known(sent.message.task_id.as_deref().unwrap_or("t1"))?;
                let updates = sent.message.text().and_then(|text| text.parse().ok()).unwrap_or(1);
                Ok(OperationResponse::Updates(self::updates(updates).boxed()))
            }
            OperationRequest::Subscribe(request) => match request.id.as_str() {
                "late" => {
                    let error = Error::new(ErrorKind::Internal, "it broke");
                    let all = [Ok(StreamResponse::Task(task(vec![]))), Err(error)];
                    Ok(OperationResponse::Updates(futures::stream::iter(all).boxed()))
                }
                "early" => {
                    let error = Error::new(ErrorKind::UnsupportedOperation, "the task has ended");
                    Ok(OperationResponse::Updates(futures::stream::iter([Err(error)]).boxed()))
                }
                id => known(id).map(|()| OperationResponse::Updates(updates(1).boxed())),
            },
            OperationRequest::Get(request) => known(&request.id).map(|()| OperationResponse::Task(task(vec![]))),
            OperationRequest::Cancel(request) => known(&request.id).map(|()| OperationResponse::Task(task(vec![]))),
            OperationRequest::List(_) => Ok(OperationResponse::Tasks(types::ListTasksResponse {
                tasks: vec![task(vec![])],
                next_page_token: String::new(),
                page_size: 50,
                total_size: 1,
            })),
            OperationRequest::SetPush(config) => known(&config.task_id).map(|()| OperationResponse::PushConfig(config)),
            OperationRequest::GetPush(request) => {
                known(&request.task_id).map(|()| OperationResponse::PushConfig(push()))
            }
            OperationRequest::ListPush(request) => known(&request.task_id).map(|()| {
                OperationResponse::PushConfigs(types::ListTaskPushNotificationConfigsResponse {
                    configs: vec![push()],
                    next_page_token: None,
                })
            }),
            OperationRequest::DeletePush(request) => known(&request.task_id).map(|()| OperationResponse::Deleted),
            OperationRequest::ExtendedCard(_) => Ok(OperationResponse::Card(Box::new(card()))),
        }
    }

    async fn card(&self, call: &CallContext) -> Result<PublishedCard, CallRejection> {
        match call.agent.as_deref() {
            None | Some(AGENT) => Ok(PublishedCard { card: card(), modified: 1_700_000_000, is_restricted: false }),
            Some(_) => Err(CallRejection::UnknownAgent),
        }
    }

    fn active_extensions(&self, call: &CallContext) -> Vec<String> {
        call.requested_extensions.iter().filter(|uri| uri.starts_with("https://known")).cloned().collect()
    }

    fn max_request_bytes(&self) -> usize {
        MAX_REQUEST_BYTES
    }
}

/// Returns the updates of a task: the task, `chunks` numbered artifact chunks, and the end.
fn updates(chunks: usize) -> impl futures::Stream<Item = Result<StreamResponse, Error>> + Send + 'static {
    let mut first = task(vec![]);
    first.status.state = TaskState::Working;
    let chunk = |number: usize| {
        StreamResponse::ArtifactUpdate(types::TaskArtifactUpdateEvent {
            task_id: "t1".to_owned(),
            context_id: "c1".to_owned(),
            artifact: types::Artifact {
                artifact_id: "output".to_owned(),
                name: None,
                description: None,
                parts: vec![types::Part::text(number.to_string())],
                metadata: None,
                extensions: None,
            },
            append: Some(number > 0),
            last_chunk: None,
            metadata: None,
        })
    };
    let end = StreamResponse::StatusUpdate(types::TaskStatusUpdateEvent {
        task_id: "t1".to_owned(),
        context_id: "c1".to_owned(),
        status: task(vec![]).status,
        metadata: None,
    });
    let all = std::iter::once(StreamResponse::Task(first)).chain((0..chunks).map(chunk)).chain([end]);
    futures::stream::iter(all.map(Ok))
}

fn message(text: &str) -> types::Message {
    types::Message {
        message_id: "m2".to_owned(),
        context_id: None,
        task_id: None,
        role: types::Role::Agent,
        parts: vec![types::Part::text(text)],
        metadata: None,
        extensions: None,
        reference_task_ids: None,
    }
}

pub(crate) fn task(history: Vec<types::Message>) -> Task {
    Task {
        id: "t1".to_owned(),
        context_id: "c1".to_owned(),
        status: types::TaskStatus { state: TaskState::Completed, message: None, timestamp: None },
        artifacts: None,
        history: Some(history),
        metadata: None,
    }
}

fn push() -> types::TaskPushNotificationConfig {
    types::TaskPushNotificationConfig {
        url: "https://example.org".to_owned(),
        id: Some("c1".to_owned()),
        task_id: "t1".to_owned(),
        token: None,
        authentication: None,
        tenant: None,
    }
}

/// Returns a card with all fields that the versions encode differently.
pub(crate) fn card() -> AgentCard {
    serde_json::from_value(json!({
        "name": "Echo", "description": "repeats the input", "version": "1",
        "supportedInterfaces": [
            {"url": "https://example.org/agents/echo", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
            {"url": "https://example.org/agents/echo", "protocolBinding": "JSONRPC", "protocolVersion": "0.3"},
            {"url": "http://example.org:443", "protocolBinding": "GRPC", "protocolVersion": "0.3"},
        ],
        "capabilities": {"streaming": true, "extendedAgentCard": true},
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
        "skills": [{"id": "echo", "name": "Echo", "description": "again", "tags": ["a"],
                    "securityRequirements": [{"schemes": {"token": {"list": []}}}]}],
        "securitySchemes": {
            "token": {"httpAuthSecurityScheme": {"scheme": "Bearer"}},
            "key": {"apiKeySecurityScheme": {"location": "header", "name": "X-Key"}},
        },
        "securityRequirements": [{"schemes": {"token": {"list": []}}}],
    }))
    .unwrap()
}

/// A complete response.
pub(crate) struct TestResponse {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl TestResponse {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("not JSON: {}", self.text()))
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// Returns the JSON of a plain response, or of the first event of a stream.
    pub(crate) fn error(&self) -> Value {
        if self.header("content-type") == "application/json" { self.json() } else { self.events().remove(0) }
    }

    /// Returns the data of all events.
    pub(crate) fn events(&self) -> Vec<Value> {
        assert_eq!(self.header("content-type"), "text/event-stream", "{}", self.text());
        let text = self.text();
        let events = text.split("\n\n").filter(|event| !event.is_empty());
        let data = events.map(|event| event.lines().find_map(|line| line.strip_prefix("data: ")).unwrap().to_owned());
        data.map(|data| serde_json::from_str(&data).unwrap()).collect()
    }
}

pub(crate) fn app(double: &Double) -> Router {
    Router::new().nest("/agents", a2a::http::router(double.clone())).merge(a2a::http::well_known_router(double.clone()))
}

pub(crate) async fn send(double: &Double, request: http::Request<Body>) -> TestResponse {
    let response: Response<Body> = app(double).oneshot(request).await.unwrap();
    let (parts, body) = response.into_parts();
    let body = axum::body::to_bytes(body, usize::MAX).await.unwrap().to_vec();
    TestResponse { status: parts.status, headers: parts.headers, body }
}

/// Returns a request of this version with an optional JSON body.
pub(crate) fn build_request(version: &str, method: &str, path: &str, body: Option<&Value>) -> http::Request<Body> {
    let mut request = http::Request::builder().method(method).uri(path);
    if !version.is_empty() {
        request = request.header("A2A-Version", version);
    }
    if body.is_some() {
        request = request.header(CONTENT_TYPE, "application/json");
    }
    request.body(body.map_or_else(Body::empty, |body| Body::from(body.to_string()))).unwrap()
}

pub(crate) async fn rpc(double: &Double, version: &str, method: &str, params: Value) -> TestResponse {
    let body = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
    send(double, build_request(version, "POST", "/agents/echo", Some(&body))).await
}

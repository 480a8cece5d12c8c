//! A handler whose answers are known beforehand, and the ways to ask it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use a2a::types::{self, AgentCard, StreamResponse, Task, TaskState};
use a2a::{Answer, Binding, Call, Card, Denied, Error, Handler, Kind, Request, Version};
use axum::Router;
use axum::body::Body;
use futures::StreamExt;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use serde_json::{Value, json};
use tower::ServiceExt;

/// The only agent. Its only task is `t1`, which has the push configuration `c1`.
pub(crate) const AGENT: &str = "echo";

/// The largest request.
pub(crate) const MOST: usize = 64 * 1024;

/// Serves [`AGENT`]; the header `deny` names a reason not to.
#[derive(Clone, Default)]
pub(crate) struct Double {
    pub(crate) seen: Arc<Mutex<Vec<Request>>>,
    pub(crate) calls: Arc<Mutex<Vec<Noted>>>,
}

/// Tenant, extensions that are wanted, version, binding.
pub(crate) type Noted = (Option<String>, Vec<String>, Version, Binding);

impl Handler for Double {
    type Caller = ();

    async fn admit(&self, call: &Call) -> Result<(), Denied> {
        let noted = (call.tenant.clone(), call.extensions_wanted.clone(), call.version, call.binding);
        self.calls.lock().unwrap().push(noted);
        if call.agent.as_deref() != Some(AGENT) {
            return Err(Denied::NoAgent);
        }
        match call.headers.get("deny").map(HeaderValue::as_bytes) {
            Some(b"401") => Err(Denied::Unauthenticated { challenge: "Bearer".to_owned() }),
            Some(b"403") => Err(Denied::Forbidden("not for you".to_owned())),
            Some(b"429") => Err(Denied::TooMany { retry_after: Duration::from_millis(1200) }),
            Some(_) => Err(Denied::Refused(Error::new(Kind::UnsupportedOperation, "not offered"))),
            None => Ok(()),
        }
    }

    async fn handle(&self, (): (), request: Request) -> Result<Answer, Error> {
        self.seen.lock().unwrap().push(request.clone());
        let known = |id: &str| if id == "t1" { Ok(()) } else { Err(Error::task_not_found(id)) };
        match request {
            Request::Send(sent) => {
                known(sent.message.task_id.as_deref().unwrap_or("t1"))?;
                Ok(Answer::Sent(match sent.message.text() {
                    Some("message") => types::SendMessageResponse::Message(said("hello")),
                    _ => types::SendMessageResponse::Task(task(vec![sent.message])),
                }))
            }
            Request::Stream(sent) => {
                known(sent.message.task_id.as_deref().unwrap_or("t1"))?;
                let updates = sent.message.text().and_then(|text| text.parse().ok()).unwrap_or(1);
                Ok(Answer::Updates(self::updates(updates).boxed()))
            }
            Request::Subscribe(request) => match request.id.as_str() {
                "late" => {
                    let error = Error::new(Kind::Internal, "it broke");
                    let all = [Ok(StreamResponse::Task(task(vec![]))), Err(error)];
                    Ok(Answer::Updates(futures::stream::iter(all).boxed()))
                }
                "early" => {
                    let error = Error::new(Kind::UnsupportedOperation, "it has ended");
                    Ok(Answer::Updates(futures::stream::iter([Err(error)]).boxed()))
                }
                id => known(id).map(|()| Answer::Updates(updates(1).boxed())),
            },
            Request::Get(request) => known(&request.id).map(|()| Answer::Task(task(vec![]))),
            Request::Cancel(request) => known(&request.id).map(|()| Answer::Task(task(vec![]))),
            Request::List(_) => Ok(Answer::Tasks(types::ListTasksResponse {
                tasks: vec![task(vec![])],
                next_page_token: String::new(),
                page_size: 50,
                total_size: 1,
            })),
            Request::SetPush(config) => known(&config.task_id).map(|()| Answer::Push(config)),
            Request::GetPush(request) => known(&request.task_id).map(|()| Answer::Push(push())),
            Request::ListPush(request) => known(&request.task_id).map(|()| {
                Answer::Pushes(types::ListTaskPushNotificationConfigsResponse {
                    configs: vec![push()],
                    next_page_token: None,
                })
            }),
            Request::DeletePush(request) => known(&request.task_id).map(|()| Answer::Deleted),
            Request::ExtendedCard(_) => Ok(Answer::Card(Box::new(card()))),
        }
    }

    async fn card(&self, call: &Call) -> Result<Card, Denied> {
        match call.agent.as_deref() {
            None | Some(AGENT) => Ok(Card { card: card(), modified: 1_700_000_000 }),
            Some(_) => Err(Denied::NoAgent),
        }
    }

    fn activates(&self, call: &Call) -> Vec<String> {
        call.extensions_wanted.iter().filter(|uri| uri.starts_with("https://known")).cloned().collect()
    }

    fn max_request(&self) -> usize {
        MOST
    }
}

/// A task, then so many pieces with their numbers, then the end.
fn updates(pieces: usize) -> impl futures::Stream<Item = Result<StreamResponse, Error>> + Send + 'static {
    let mut first = task(vec![]);
    first.status.state = TaskState::Working;
    let piece = |number: usize| {
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
    let all = std::iter::once(StreamResponse::Task(first)).chain((0..pieces).map(piece)).chain([end]);
    futures::stream::iter(all.map(Ok))
}

fn said(text: &str) -> types::Message {
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

/// With everything in it that the versions write differently.
pub(crate) fn card() -> AgentCard {
    serde_json::from_value(json!({
        "name": "Echo", "description": "says it again", "version": "1",
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

/// An answer that has arrived.
pub(crate) struct Got {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Got {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("not JSON: {}", self.text()))
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// The only thing that is said, plainly or as an event.
    pub(crate) fn error(&self) -> Value {
        if self.header("content-type") == "application/json" { self.json() } else { self.events().remove(0) }
    }

    /// The data of every event.
    pub(crate) fn events(&self) -> Vec<Value> {
        assert_eq!(self.header("content-type"), "text/event-stream", "{}", self.text());
        let text = self.text();
        let events = text.split("\n\n").filter(|event| !event.is_empty());
        let data = events.map(|event| event.lines().find_map(|line| line.strip_prefix("data: ")).unwrap().to_owned());
        data.map(|data| serde_json::from_str(&data).unwrap()).collect()
    }
}

pub(crate) fn app(double: &Double) -> Router {
    Router::new().nest("/agents", a2a::http::router(double.clone())).merge(a2a::http::well_known(double.clone()))
}

pub(crate) async fn ask(double: &Double, request: http::Request<Body>) -> Got {
    let response: Response<Body> = app(double).oneshot(request).await.unwrap();
    let (parts, body) = response.into_parts();
    let body = axum::body::to_bytes(body, usize::MAX).await.unwrap().to_vec();
    Got { status: parts.status, headers: parts.headers, body }
}

/// A request of this version, with JSON in it or nothing.
pub(crate) fn request(version: &str, method: &str, path: &str, body: Option<&Value>) -> http::Request<Body> {
    let mut request = http::Request::builder().method(method).uri(path);
    if !version.is_empty() {
        request = request.header("A2A-Version", version);
    }
    if body.is_some() {
        request = request.header(CONTENT_TYPE, "application/json");
    }
    request.body(body.map_or_else(Body::empty, |body| Body::from(body.to_string()))).unwrap()
}

pub(crate) async fn rpc(double: &Double, version: &str, method: &str, params: Value) -> Got {
    let body = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
    ask(double, request(version, "POST", "/agents/echo", Some(&body))).await
}

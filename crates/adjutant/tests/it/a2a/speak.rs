//! A client that says the same on every binding of both versions: what is asked and answered is written as 1.x has it, and
//! travels as the binding and the version want it. Every answer is held against the schema, so that whatever test asks,
//! nothing may be sent that does not belong there.

use std::time::Duration;

use bytes::{Buf, BufMut};
use reqwest::{Method, RequestBuilder, Response};
use serde_json::{Value, json};
use tonic::Status;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::transport::{Channel, Endpoint};

use super::{older, schema};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Binding {
    JsonRpc,
    Rest,
    Grpc,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    V1,
    V03,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Way(pub(super) Binding, pub(super) Version);

/// All of them.
pub(super) const WAYS: [Way; 6] = [
    Way(Binding::JsonRpc, Version::V1),
    Way(Binding::Rest, Version::V1),
    Way(Binding::Grpc, Version::V1),
    Way(Binding::JsonRpc, Version::V03),
    Way(Binding::Rest, Version::V03),
    Way(Binding::Grpc, Version::V03),
];

impl Way {
    /// Only 1.x and the REST of 0.3 can list.
    pub(super) fn knows(self, operation: &str) -> bool {
        operation != "ListTasks" || self.1 == Version::V1
    }
}

/// Somebody who asks one agent.
#[derive(Clone)]
pub(super) struct Speaker {
    client: reqwest::Client,
    channel: Channel,
    /// Of the agent, without a slash at its end.
    pub(super) base: String,
    /// As gRPC has to name it.
    agent: String,
    pub(super) token: Option<String>,
}

/// A question with everything that can be wrong about it.
#[derive(Clone, Debug)]
pub(super) struct Question {
    pub(super) operation: &'static str,
    pub(super) params: Value,
    /// What the header says, where that is not the version of the way.
    pub(super) version: Option<&'static str>,
    pub(super) content_type: &'static str,
    pub(super) headers: Vec<(&'static str, String)>,
}

impl Question {
    pub(super) fn new(operation: &'static str, params: Value) -> Self {
        Self { operation, params, version: None, content_type: "application/json", headers: Vec::new() }
    }
}

/// Why there is no answer, as it was said.
#[derive(Clone, Debug)]
pub(super) struct Refusal {
    /// Of HTTP.
    pub(super) status: u16,
    /// Of JSON-RPC, where there is one.
    pub(super) code: Option<i64>,
    /// Of gRPC.
    pub(super) grpc: Option<i32>,
    /// The reason of an `ErrorInfo` of ours.
    pub(super) reason: Option<String>,
    pub(super) message: String,
    pub(super) body: Value,
}

pub(super) type Answered = Result<Value, Refusal>;

impl Speaker {
    /// To the agent whose base this is; gRPC is at the same address.
    pub(super) fn new(base: &str, agent: &str) -> Self {
        // Each test may be a process of its own; a second installation in one process changes nothing.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let origin: String = base.split('/').take(3).collect::<Vec<_>>().join("/");
        let channel = Endpoint::from_shared(origin).unwrap().connect_lazy();
        let client = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(30)).build().unwrap();
        Self { client, channel, base: base.to_owned(), agent: agent.to_owned(), token: None }
    }

    pub(super) fn with_token(&self, token: &str) -> Self {
        Self { token: Some(token.to_owned()), ..self.clone() }
    }

    pub(super) fn http(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.client.request(method, format!("{}{path}", self.base));
        match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    pub(super) async fn ask(&self, way: Way, operation: &'static str, params: Value) -> Answered {
        self.put(way, &Question::new(operation, params)).await
    }

    /// One answer to one question; of a stream, all that comes, as a list.
    pub(super) async fn put(&self, way: Way, question: &Question) -> Answered {
        if streams(question.operation) {
            let mut stream = self.follow_as(way, question).await?;
            let mut events = Vec::new();
            while let Some(event) = stream.next().await? {
                events.push(event);
            }
            return Ok(Value::Array(events));
        }
        match way.0 {
            Binding::JsonRpc => read_json_rpc(self.post_json_rpc(way, question).await, way, question.operation).await,
            Binding::Rest => {
                let answer = self.send_rest(way, question).await;
                read_rest(answer, way, question.operation).await
            }
            Binding::Grpc => {
                let (path, bytes) = grpc_request(way, question);
                let mut client = tonic::client::Grpc::new(self.channel.clone());
                client.ready().await.unwrap();
                let answer = client.unary(self.grpc(way, question, bytes), path, Raw).await;
                answer.map(|answer| read_grpc(way, question.operation, answer.get_ref())).map_err(|s| refused(&s))
            }
        }
    }

    pub(super) async fn follow(&self, way: Way, operation: &'static str, params: Value) -> Result<Stream, Refusal> {
        self.follow_as(way, &Question::new(operation, params)).await
    }

    pub(super) async fn follow_as(&self, way: Way, question: &Question) -> Result<Stream, Refusal> {
        let from = match way.0 {
            Binding::Grpc => {
                let (path, bytes) = grpc_request(way, question);
                let mut client = tonic::client::Grpc::new(self.channel.clone());
                client.ready().await.unwrap();
                let answer = client.server_streaming(self.grpc(way, question, bytes), path, Raw).await;
                From::Grpc(answer.map_err(|status| refused(&status))?.into_inner())
            }
            binding => {
                let answer = match binding {
                    Binding::JsonRpc => self.post_json_rpc(way, question).await,
                    _ => self.send_rest(way, question).await,
                };
                let kind = answer.headers().get("content-type").map(|kind| kind.to_str().unwrap().to_owned());
                if !kind.is_some_and(|kind| kind.starts_with("text/event-stream")) {
                    let refusal = match binding {
                        Binding::JsonRpc => read_json_rpc(answer, way, question.operation).await,
                        _ => read_rest(answer, way, question.operation).await,
                    };
                    return Err(refusal.unwrap_err());
                }
                assert_eq!(answer.status(), 200);
                From::Sse(answer, String::new())
            }
        };
        Ok(Stream { way, operation: question.operation, from })
    }

    async fn post_json_rpc(&self, way: Way, question: &Question) -> Response {
        let method = match way.1 {
            Version::V1 => question.operation,
            Version::V03 => method_of_v03(question.operation),
        };
        let params = match way.1 {
            Version::V1 => question.params.clone(),
            Version::V03 => older::params(question.operation, &question.params),
        };
        let body = json!({"jsonrpc": "2.0", "id": "it-1", "method": method, "params": params});
        self.decorated(self.http(Method::POST, ""), way, question).body(body.to_string()).send().await.unwrap()
    }

    async fn send_rest(&self, way: Way, question: &Question) -> Response {
        let (method, path, body) = rest_request(way, question);
        let request = self.decorated(self.http(method, &path), way, question);
        match body {
            Some(body) => request.body(body.to_string()).send().await.unwrap(),
            None => request.send().await.unwrap(),
        }
    }

    fn decorated(&self, mut request: RequestBuilder, way: Way, question: &Question) -> RequestBuilder {
        let usual = if way.1 == Version::V1 { Some("1.0") } else { None };
        if let Some(version) = question.version.or(usual) {
            request = request.header("A2A-Version", version);
        }
        for (name, value) in &question.headers {
            request = request.header(*name, value);
        }
        if streams(question.operation) {
            request = request.header("Accept", "text/event-stream");
        }
        request.header("Content-Type", question.content_type)
    }

    fn grpc(&self, way: Way, question: &Question, bytes: Vec<u8>) -> tonic::Request<Vec<u8>> {
        let mut request = tonic::Request::new(bytes);
        let metadata = request.metadata_mut();
        let usual = if way.1 == Version::V1 { Some("1.0") } else { None };
        if let Some(version) = question.version.or(usual) {
            metadata.insert("a2a-version", version.parse().unwrap());
        }
        if let Some(token) = &self.token {
            metadata.insert("authorization", format!("Bearer {token}").parse().unwrap());
        }
        metadata.insert("x-adjutant-agent", self.agent.parse().unwrap());
        for (name, value) in &question.headers {
            metadata.insert(
                name.to_lowercase().parse::<tonic::metadata::AsciiMetadataKey>().unwrap(),
                value.parse().unwrap(),
            );
        }
        request.set_timeout(Duration::from_secs(30));
        request
    }

    /// Bytes that are no request of anybody, to a method of gRPC.
    pub(super) async fn raw_grpc(&self, path: &'static str, bytes: Vec<u8>) -> Result<Vec<u8>, Status> {
        let mut client = tonic::client::Grpc::new(self.channel.clone());
        client.ready().await.unwrap();
        let question = Question::new("GetTask", json!({}));
        let request = self.grpc(Way(Binding::Grpc, Version::V1), &question, bytes);
        let path = tonic::codegen::http::uri::PathAndQuery::from_static(path);
        client.unary(request, path, Raw).await.map(tonic::Response::into_inner)
    }
}

/// Events, one after the other.
pub(super) struct Stream {
    way: Way,
    operation: &'static str,
    from: From,
}

enum From {
    Sse(Response, String),
    Grpc(tonic::Streaming<Vec<u8>>),
}

impl Stream {
    pub(super) async fn next(&mut self) -> Result<Option<Value>, Refusal> {
        match &mut self.from {
            From::Grpc(stream) => {
                let message = stream.message().await.map_err(|status| refused(&status))?;
                Ok(message.map(|bytes| read_grpc(self.way, self.operation, &bytes)))
            }
            From::Sse(answer, text) => loop {
                if let Some((event, rest)) = text.split_once("\n\n") {
                    let data: Vec<_> = event.lines().filter_map(|line| line.strip_prefix("data:")).collect();
                    assert!(data.len() < 2, "data of one event in several lines: {event}");
                    let data = data.first().map(|data| data.trim().to_owned());
                    *text = rest.to_owned();
                    let Some(data) = data else { continue };
                    let event: Value = serde_json::from_str(&data).unwrap();
                    return match self.way.0 {
                        Binding::JsonRpc => unwrap_json_rpc(200, event, self.way, self.operation).map(Some),
                        _ => Ok(Some(read_json(self.way, self.operation, event))),
                    };
                }
                match answer.chunk().await.unwrap() {
                    Some(bytes) => text.push_str(&std::str::from_utf8(&bytes).unwrap().replace('\r', "")),
                    None => {
                        assert_eq!(text.trim(), "", "an event without its end");
                        return Ok(None);
                    }
                }
            },
        }
    }

    /// The next event, which must come.
    pub(super) async fn expect(&mut self) -> Value {
        let next = tokio::time::timeout(Duration::from_secs(20), self.next()).await;
        next.unwrap().unwrap().unwrap()
    }
}

pub(super) fn streams(operation: &str) -> bool {
    matches!(operation, "SendStreamingMessage" | "SubscribeToTask")
}

fn method_of_v03(operation: &'static str) -> &'static str {
    match operation {
        "SendMessage" => "message/send",
        "SendStreamingMessage" => "message/stream",
        "GetTask" => "tasks/get",
        "CancelTask" => "tasks/cancel",
        "SubscribeToTask" => "tasks/resubscribe",
        "CreateTaskPushNotificationConfig" => "tasks/pushNotificationConfig/set",
        "GetTaskPushNotificationConfig" => "tasks/pushNotificationConfig/get",
        "ListTaskPushNotificationConfigs" => "tasks/pushNotificationConfig/list",
        "DeleteTaskPushNotificationConfig" => "tasks/pushNotificationConfig/delete",
        "GetExtendedAgentCard" => "agent/getAuthenticatedExtendedCard",
        other => panic!("0.3 has no {other}"),
    }
}

/// What a method of 1.x is asked with and answers with.
fn messages(operation: &str) -> (&'static str, &'static str) {
    match operation {
        "SendMessage" => ("SendMessageRequest", "SendMessageResponse"),
        "SendStreamingMessage" => ("SendMessageRequest", "StreamResponse"),
        "GetTask" => ("GetTaskRequest", "Task"),
        "ListTasks" => ("ListTasksRequest", "ListTasksResponse"),
        "CancelTask" => ("CancelTaskRequest", "Task"),
        "SubscribeToTask" => ("SubscribeToTaskRequest", "StreamResponse"),
        "CreateTaskPushNotificationConfig" => ("TaskPushNotificationConfig", "TaskPushNotificationConfig"),
        "GetTaskPushNotificationConfig" => ("GetTaskPushNotificationConfigRequest", "TaskPushNotificationConfig"),
        "ListTaskPushNotificationConfigs" => {
            ("ListTaskPushNotificationConfigsRequest", "ListTaskPushNotificationConfigsResponse")
        }
        "DeleteTaskPushNotificationConfig" => ("DeleteTaskPushNotificationConfigRequest", ""),
        "GetExtendedAgentCard" => ("GetExtendedAgentCardRequest", "AgentCard"),
        other => panic!("there is no {other}"),
    }
}

fn rest_request(way: Way, question: &Question) -> (Method, String, Option<Value>) {
    let params = &question.params;
    let text = |name: &str| params.get(name).map(|value| value.as_str().map_or(value.to_string(), str::to_owned));
    let id = |name: &str| text(name).unwrap_or_default();
    let queried = |names: &[&str]| {
        let pairs = names.iter().filter_map(|name| Some(format!("{name}={}", text(name)?.replace('+', "%2B"))));
        let query = pairs.collect::<Vec<_>>().join("&");
        if query.is_empty() { query } else { format!("?{query}") }
    };
    let configs = || format!("/tasks/{}/pushNotificationConfigs", id("taskId"));
    let (method, path, body) = match question.operation {
        "SendMessage" => (Method::POST, "/message:send".to_owned(), Some(params.clone())),
        "SendStreamingMessage" => (Method::POST, "/message:stream".to_owned(), Some(params.clone())),
        "GetTask" => (Method::GET, format!("/tasks/{}{}", id("id"), queried(&["historyLength"])), None),
        "ListTasks" => {
            let names = [
                "contextId",
                "status",
                "pageSize",
                "pageToken",
                "historyLength",
                "statusTimestampAfter",
                "includeArtifacts",
            ];
            (Method::GET, format!("/tasks{}", queried(&names)), None)
        }
        "CancelTask" => (Method::POST, format!("/tasks/{}:cancel", id("id")), None),
        "SubscribeToTask" => (Method::POST, format!("/tasks/{}:subscribe", id("id")), None),
        "CreateTaskPushNotificationConfig" => (Method::POST, configs(), Some(params.clone())),
        "GetTaskPushNotificationConfig" => (Method::GET, format!("{}/{}", configs(), id("id")), None),
        "ListTaskPushNotificationConfigs" => (Method::GET, configs(), None),
        "DeleteTaskPushNotificationConfig" => (Method::DELETE, format!("{}/{}", configs(), id("id")), None),
        "GetExtendedAgentCard" if way.1 == Version::V03 => (Method::GET, "/card".to_owned(), None),
        "GetExtendedAgentCard" => (Method::GET, "/extendedAgentCard".to_owned(), None),
        other => panic!("there is no {other}"),
    };
    match way.1 {
        Version::V1 => (method, path, body),
        Version::V03 => {
            let body = body.map(|_| older::request(question.operation, params).1);
            (method, format!("/v1{path}"), body)
        }
    }
}

fn grpc_request(way: Way, question: &Question) -> (tonic::codegen::http::uri::PathAndQuery, Vec<u8>) {
    let (path, bytes) = match way.1 {
        Version::V1 => {
            let name = messages(question.operation).0;
            let path = format!("/lf.a2a.v1.A2AService/{}", question.operation);
            (path, schema::v1().encode(name, &question.params))
        }
        Version::V03 => {
            let (name, request) = older::request(question.operation, &question.params);
            let method = match question.operation {
                "SubscribeToTask" => "TaskSubscription",
                "ListTaskPushNotificationConfigs" => "ListTaskPushNotificationConfig",
                "GetExtendedAgentCard" => "GetAgentCard",
                same => same,
            };
            (format!("/a2a.v1.A2AService/{method}"), schema::v03().encode(name, &request))
        }
    };
    (path.parse().unwrap(), bytes)
}

async fn read_json_rpc(answer: Response, way: Way, operation: &str) -> Answered {
    let status = answer.status().as_u16();
    let text = answer.text().await.unwrap();
    let body = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{status}: {text}"));
    unwrap_json_rpc(status, body, way, operation)
}

#[expect(clippy::result_large_err, reason = "a test may be slow")]
fn unwrap_json_rpc(status: u16, body: Value, way: Way, operation: &str) -> Answered {
    if status == 200 {
        assert_eq!((&body["jsonrpc"], body.get("id").is_some()), (&json!("2.0"), true), "{body}");
    }
    let Some(result) = body.get("result") else {
        let error = &body["error"];
        let members: Vec<_> = error.as_object().unwrap_or_else(|| panic!("{body}")).keys().collect();
        assert!(members.iter().all(|name| ["code", "message", "data"].contains(&name.as_str())), "{body}");
        return Err(Refusal {
            status,
            code: error["code"].as_i64(),
            grpc: None,
            reason: reason(error.get("data")),
            message: error["message"].as_str().unwrap_or_else(|| panic!("{body}")).to_owned(),
            body,
        });
    };
    assert_eq!((status, &body["id"]), (200, &json!("it-1")), "{body}");
    match way.1 {
        Version::V03 => Ok(older::result(operation, result)),
        Version::V1 => Ok(checked(operation, result.clone())),
    }
}

/// The reason that an `ErrorInfo` of A2A gives.
fn reason(details: Option<&Value>) -> Option<String> {
    let info =
        details?.as_array()?.iter().find(|detail| detail["@type"] == "type.googleapis.com/google.rpc.ErrorInfo")?;
    assert_eq!(info["domain"], "a2a-protocol.org", "{info}");
    info["reason"].as_str().map(str::to_owned)
}

async fn read_rest(answer: Response, way: Way, operation: &str) -> Answered {
    let status = answer.status().as_u16();
    let text = answer.text().await.unwrap();
    let body: Value = match text.as_str() {
        "" => Value::Null,
        text => serde_json::from_str(text).unwrap_or_else(|_| panic!("{status}: {text}")),
    };
    if status < 400 {
        return Ok(read_json(way, operation, body));
    }
    let error = if body["error"].is_object() { &body["error"] } else { &body };
    Err(Refusal {
        status,
        code: body["code"].as_i64(),
        grpc: None,
        reason: reason(error.get("details")),
        message: error["message"].as_str().unwrap_or_default().to_owned(),
        body,
    })
}

fn read_json(way: Way, operation: &str, body: Value) -> Value {
    match way.1 {
        Version::V1 => checked(operation, body),
        Version::V03 if operation == "DeleteTaskPushNotificationConfig" => Value::Null,
        // One card for both versions has more than 0.3 knows.
        Version::V03 if operation == "GetExtendedAgentCard" => older::answer(operation, &body),
        Version::V03 => {
            let name = older::response(operation);
            if name != "AgentCard" {
                let faults = schema::v03().faults(name, &body);
                assert!(faults.is_empty(), "{operation}: {faults:?} in {body}");
            }
            older::answer(operation, &body)
        }
    }
}

/// An answer of 1.x in JSON holds nothing that does not belong there.
fn checked(operation: &str, value: Value) -> Value {
    let name = messages(operation).1;
    if name.is_empty() {
        return Value::Null;
    }
    // A card of both versions says more than one of them knows.
    if name != "AgentCard" {
        let faults = schema::v1().faults(name, &value);
        assert!(faults.is_empty(), "{operation}: {faults:?} in {value}");
    }
    value
}

fn read_grpc(way: Way, operation: &str, bytes: &[u8]) -> Value {
    match (way.1, messages(operation).1) {
        (_, "") => Value::Null,
        (Version::V1, name) => schema::v1().decode(name, bytes),
        (Version::V03, _) => older::answer(operation, &schema::v03().decode(older::response(operation), bytes)),
    }
}

fn refused(status: &Status) -> Refusal {
    let details = schema::v1().decode("RpcStatus", status.details());
    let infos = details["details"].as_array().into_iter().flatten();
    let mut infos = infos.filter(|any| any["typeUrl"] == "type.googleapis.com/google.rpc.ErrorInfo");
    let reason = infos.next().map(|any| {
        use base64::Engine as _;
        let bytes =
            base64::engine::general_purpose::STANDARD.decode(any["value"].as_str().unwrap_or_default()).unwrap();
        let info = schema::v1().decode("ErrorInfo", &bytes);
        assert_eq!(info["domain"], "a2a-protocol.org", "{info}");
        info["reason"].as_str().unwrap_or_default().to_owned()
    });
    Refusal {
        status: 200,
        code: None,
        grpc: Some(status.code() as i32),
        reason,
        message: status.message().to_owned(),
        body: details,
    }
}

/// Messages of gRPC as the bytes they are.
#[derive(Clone, Copy)]
struct Raw;

impl Codec for Raw {
    type Encode = Vec<u8>;
    type Decode = Vec<u8>;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for Raw {
    type Item = Vec<u8>;
    type Error = Status;

    fn encode(&mut self, item: Vec<u8>, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buffer.put_slice(&item);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = Vec<u8>;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<Vec<u8>>, Status> {
        let mut bytes = vec![0; buffer.remaining()];
        buffer.copy_to_slice(&mut bytes);
        Ok(Some(bytes))
    }
}

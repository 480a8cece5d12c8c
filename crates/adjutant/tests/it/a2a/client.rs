//! A client for every binding of both versions. Tests write requests and responses in the format of 1.x, and the client
//! converts them. It validates every response against the schema.

use std::time::Duration;

use bytes::{Buf, BufMut};
use reqwest::{Method, RequestBuilder, Response};
use serde_json::{Value, json};
use tonic::Status;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::transport::{Channel, Endpoint};

use super::{convert_v03, schema};

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

/// A binding of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Protocol(pub(super) Binding, pub(super) Version);

pub(super) const PROTOCOLS: [Protocol; 6] = [
    Protocol(Binding::JsonRpc, Version::V1),
    Protocol(Binding::Rest, Version::V1),
    Protocol(Binding::Grpc, Version::V1),
    Protocol(Binding::JsonRpc, Version::V03),
    Protocol(Binding::Rest, Version::V03),
    Protocol(Binding::Grpc, Version::V03),
];

impl Protocol {
    /// Returns `true` if the tests use this operation. They list tasks only with 1.x.
    pub(super) fn supports(self, operation: &str) -> bool {
        operation != "ListTasks" || self.1 == Version::V1
    }
}

/// A client of one agent.
#[derive(Clone)]
pub(super) struct A2aClient {
    client: reqwest::Client,
    channel: Channel,
    /// The URL of the agent, without a trailing slash.
    pub(super) base: String,
    /// The id of the agent, which gRPC sends as metadata.
    agent: String,
    pub(super) token: Option<String>,
}

/// A call with all properties that a test may change.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) operation: &'static str,
    pub(super) params: Value,
    /// The version header, if it differs from the version of the protocol.
    pub(super) version: Option<&'static str>,
    pub(super) content_type: &'static str,
    pub(super) headers: Vec<(&'static str, String)>,
}

impl Call {
    pub(super) fn new(operation: &'static str, params: Value) -> Self {
        Self { operation, params, version: None, content_type: "application/json", headers: Vec::new() }
    }
}

/// An error in the encoding of any binding.
#[derive(Clone, Debug)]
pub(super) struct ErrorResponse {
    /// The HTTP status.
    pub(super) status: u16,
    /// The JSON-RPC code, if the binding has one.
    pub(super) code: Option<i64>,
    /// The gRPC code.
    pub(super) grpc: Option<i32>,
    /// The reason in `ErrorInfo`.
    pub(super) reason: Option<String>,
    pub(super) message: String,
    pub(super) body: Value,
}

pub(super) type CallResult = Result<Value, ErrorResponse>;

impl A2aClient {
    /// Creates a client for the agent at this URL. gRPC uses the same address.
    pub(super) fn new(base: &str, agent: &str) -> Self {
        // Each test may be its own process. A second installation in one process has no effect.
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

    pub(super) async fn call(&self, protocol: Protocol, operation: &'static str, params: Value) -> CallResult {
        self.send_call(protocol, &Call::new(operation, params)).await
    }

    /// Sends a call. Returns the response, or the list of all events of a stream.
    pub(super) async fn send_call(&self, protocol: Protocol, call: &Call) -> CallResult {
        if is_streaming(call.operation) {
            let mut stream = self.stream_call(protocol, call).await?;
            let mut events = Vec::new();
            while let Some(event) = stream.next().await? {
                events.push(event);
            }
            return Ok(Value::Array(events));
        }
        match protocol.0 {
            Binding::JsonRpc => read_json_rpc(self.post_json_rpc(protocol, call).await, protocol, call.operation).await,
            Binding::Rest => {
                let answer = self.send_rest(protocol, call).await;
                read_rest(answer, protocol, call.operation).await
            }
            Binding::Grpc => {
                let (path, bytes) = grpc_request(protocol, call);
                let mut client = tonic::client::Grpc::new(self.channel.clone());
                client.ready().await.unwrap();
                let answer = client.unary(self.grpc(protocol, call, bytes), path, RawCodec).await;
                answer
                    .map(|answer| read_grpc(protocol, call.operation, answer.get_ref()))
                    .map_err(|s| error_from_status(&s))
            }
        }
    }

    pub(super) async fn stream(
        &self,
        protocol: Protocol,
        operation: &'static str,
        params: Value,
    ) -> Result<Stream, ErrorResponse> {
        self.stream_call(protocol, &Call::new(operation, params)).await
    }

    pub(super) async fn stream_call(&self, protocol: Protocol, call: &Call) -> Result<Stream, ErrorResponse> {
        let from = match protocol.0 {
            Binding::Grpc => {
                let (path, bytes) = grpc_request(protocol, call);
                let mut client = tonic::client::Grpc::new(self.channel.clone());
                client.ready().await.unwrap();
                let answer = client.server_streaming(self.grpc(protocol, call, bytes), path, RawCodec).await;
                EventSource::Grpc(answer.map_err(|status| error_from_status(&status))?.into_inner())
            }
            binding => {
                let answer = match binding {
                    Binding::JsonRpc => self.post_json_rpc(protocol, call).await,
                    _ => self.send_rest(protocol, call).await,
                };
                let kind = answer.headers().get("content-type").map(|kind| kind.to_str().unwrap().to_owned());
                if !kind.is_some_and(|kind| kind.starts_with("text/event-stream")) {
                    let result = match binding {
                        Binding::JsonRpc => read_json_rpc(answer, protocol, call.operation).await,
                        _ => read_rest(answer, protocol, call.operation).await,
                    };
                    return Err(result.unwrap_err());
                }
                assert_eq!(answer.status(), 200);
                EventSource::Sse(answer, String::new())
            }
        };
        Ok(Stream { protocol, operation: call.operation, from })
    }

    async fn post_json_rpc(&self, protocol: Protocol, call: &Call) -> Response {
        let method = match protocol.1 {
            Version::V1 => call.operation,
            Version::V03 => method_of_v03(call.operation),
        };
        let params = match protocol.1 {
            Version::V1 => call.params.clone(),
            Version::V03 => convert_v03::params(call.operation, &call.params),
        };
        let body = json!({"jsonrpc": "2.0", "id": "it-1", "method": method, "params": params});
        self.with_headers(self.http(Method::POST, ""), protocol, call).body(body.to_string()).send().await.unwrap()
    }

    async fn send_rest(&self, protocol: Protocol, call: &Call) -> Response {
        let (method, path, body) = rest_request(protocol, call);
        let request = self.with_headers(self.http(method, &path), protocol, call);
        match body {
            Some(body) => request.body(body.to_string()).send().await.unwrap(),
            None => request.send().await.unwrap(),
        }
    }

    fn with_headers(&self, mut request: RequestBuilder, protocol: Protocol, call: &Call) -> RequestBuilder {
        let default = if protocol.1 == Version::V1 { Some("1.0") } else { None };
        if let Some(version) = call.version.or(default) {
            request = request.header("A2A-Version", version);
        }
        for (name, value) in &call.headers {
            request = request.header(*name, value);
        }
        if is_streaming(call.operation) {
            request = request.header("Accept", "text/event-stream");
        }
        request.header("Content-Type", call.content_type)
    }

    fn grpc(&self, protocol: Protocol, call: &Call, bytes: Vec<u8>) -> tonic::Request<Vec<u8>> {
        let mut request = tonic::Request::new(bytes);
        let metadata = request.metadata_mut();
        let default = if protocol.1 == Version::V1 { Some("1.0") } else { None };
        if let Some(version) = call.version.or(default) {
            metadata.insert("a2a-version", version.parse().unwrap());
        }
        if let Some(token) = &self.token {
            metadata.insert("authorization", format!("Bearer {token}").parse().unwrap());
        }
        metadata.insert("x-adjutant-agent", self.agent.parse().unwrap());
        for (name, value) in &call.headers {
            metadata.insert(
                name.to_lowercase().parse::<tonic::metadata::AsciiMetadataKey>().unwrap(),
                value.parse().unwrap(),
            );
        }
        request.set_timeout(Duration::from_secs(30));
        request
    }

    /// Sends arbitrary bytes to a gRPC method.
    pub(super) async fn raw_grpc(&self, path: &'static str, bytes: Vec<u8>) -> Result<Vec<u8>, Status> {
        let mut client = tonic::client::Grpc::new(self.channel.clone());
        client.ready().await.unwrap();
        let call = Call::new("GetTask", json!({}));
        let request = self.grpc(Protocol(Binding::Grpc, Version::V1), &call, bytes);
        let path = tonic::codegen::http::uri::PathAndQuery::from_static(path);
        client.unary(request, path, RawCodec).await.map(tonic::Response::into_inner)
    }
}

/// The events of a streaming call.
pub(super) struct Stream {
    protocol: Protocol,
    operation: &'static str,
    from: EventSource,
}

enum EventSource {
    Sse(Response, String),
    Grpc(tonic::Streaming<Vec<u8>>),
}

impl Stream {
    pub(super) async fn next(&mut self) -> Result<Option<Value>, ErrorResponse> {
        match &mut self.from {
            EventSource::Grpc(stream) => {
                let message = stream.message().await.map_err(|status| error_from_status(&status))?;
                Ok(message.map(|bytes| read_grpc(self.protocol, self.operation, &bytes)))
            }
            EventSource::Sse(answer, text) => loop {
                if let Some((event, rest)) = text.split_once("\n\n") {
                    let data: Vec<_> = event.lines().filter_map(|line| line.strip_prefix("data:")).collect();
                    assert!(data.len() < 2, "data of one event in several lines: {event}");
                    let data = data.first().map(|data| data.trim().to_owned());
                    *text = rest.to_owned();
                    let Some(data) = data else { continue };
                    let event: Value = serde_json::from_str(&data).unwrap();
                    return match self.protocol.0 {
                        Binding::JsonRpc => unwrap_json_rpc(200, event, self.protocol, self.operation).map(Some),
                        _ => Ok(Some(read_json(self.protocol, self.operation, event))),
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

    /// Returns the next event. Panics if none arrives in time.
    pub(super) async fn expect(&mut self) -> Value {
        let next = tokio::time::timeout(Duration::from_secs(20), self.next()).await;
        next.unwrap().unwrap().unwrap()
    }
}

pub(super) fn is_streaming(operation: &str) -> bool {
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

/// Returns the request and response messages of an operation in 1.x.
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
        other => panic!("unknown operation {other}"),
    }
}

fn rest_request(protocol: Protocol, call: &Call) -> (Method, String, Option<Value>) {
    let params = &call.params;
    let text = |name: &str| params.get(name).map(|value| value.as_str().map_or(value.to_string(), str::to_owned));
    let id = |name: &str| text(name).unwrap_or_default();
    let query = |names: &[&str]| {
        let pairs = names.iter().filter_map(|name| Some(format!("{name}={}", text(name)?.replace('+', "%2B"))));
        let joined = pairs.collect::<Vec<_>>().join("&");
        if joined.is_empty() { joined } else { format!("?{joined}") }
    };
    let configs = || format!("/tasks/{}/pushNotificationConfigs", id("taskId"));
    let (method, path, body) = match call.operation {
        "SendMessage" => (Method::POST, "/message:send".to_owned(), Some(params.clone())),
        "SendStreamingMessage" => (Method::POST, "/message:stream".to_owned(), Some(params.clone())),
        "GetTask" => (Method::GET, format!("/tasks/{}{}", id("id"), query(&["historyLength"])), None),
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
            (Method::GET, format!("/tasks{}", query(&names)), None)
        }
        "CancelTask" => (Method::POST, format!("/tasks/{}:cancel", id("id")), None),
        "SubscribeToTask" => (Method::POST, format!("/tasks/{}:subscribe", id("id")), None),
        "CreateTaskPushNotificationConfig" => (Method::POST, configs(), Some(params.clone())),
        "GetTaskPushNotificationConfig" => (Method::GET, format!("{}/{}", configs(), id("id")), None),
        "ListTaskPushNotificationConfigs" => (Method::GET, configs(), None),
        "DeleteTaskPushNotificationConfig" => (Method::DELETE, format!("{}/{}", configs(), id("id")), None),
        "GetExtendedAgentCard" if protocol.1 == Version::V03 => (Method::GET, "/card".to_owned(), None),
        "GetExtendedAgentCard" => (Method::GET, "/extendedAgentCard".to_owned(), None),
        other => panic!("unknown operation {other}"),
    };
    match protocol.1 {
        Version::V1 => (method, path, body),
        Version::V03 => {
            let body = body.map(|_| convert_v03::request(call.operation, params).1);
            (method, format!("/v1{path}"), body)
        }
    }
}

fn grpc_request(protocol: Protocol, call: &Call) -> (tonic::codegen::http::uri::PathAndQuery, Vec<u8>) {
    let (path, bytes) = match protocol.1 {
        Version::V1 => {
            let name = messages(call.operation).0;
            let path = format!("/lf.a2a.v1.A2AService/{}", call.operation);
            (path, schema::v1().encode(name, &call.params))
        }
        Version::V03 => {
            let (name, request) = convert_v03::request(call.operation, &call.params);
            let method = match call.operation {
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

async fn read_json_rpc(answer: Response, protocol: Protocol, operation: &str) -> CallResult {
    let status = answer.status().as_u16();
    let text = answer.text().await.unwrap();
    let body = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{status}: {text}"));
    unwrap_json_rpc(status, body, protocol, operation)
}

#[expect(clippy::result_large_err, reason = "a test may be slow")]
fn unwrap_json_rpc(status: u16, body: Value, protocol: Protocol, operation: &str) -> CallResult {
    if status == 200 {
        assert_eq!((&body["jsonrpc"], body.get("id").is_some()), (&json!("2.0"), true), "{body}");
    }
    let Some(result) = body.get("result") else {
        let error = &body["error"];
        let members: Vec<_> = error.as_object().unwrap_or_else(|| panic!("{body}")).keys().collect();
        assert!(members.iter().all(|name| ["code", "message", "data"].contains(&name.as_str())), "{body}");
        return Err(ErrorResponse {
            status,
            code: error["code"].as_i64(),
            grpc: None,
            reason: reason(error.get("data")),
            message: error["message"].as_str().unwrap_or_else(|| panic!("{body}")).to_owned(),
            body,
        });
    };
    assert_eq!((status, &body["id"]), (200, &json!("it-1")), "{body}");
    match protocol.1 {
        Version::V03 => Ok(convert_v03::result(operation, result)),
        Version::V1 => Ok(checked(operation, result.clone())),
    }
}

/// Returns the reason of the A2A `ErrorInfo`.
fn reason(details: Option<&Value>) -> Option<String> {
    let info =
        details?.as_array()?.iter().find(|detail| detail["@type"] == "type.googleapis.com/google.rpc.ErrorInfo")?;
    assert_eq!(info["domain"], "a2a-protocol.org", "{info}");
    info["reason"].as_str().map(str::to_owned)
}

async fn read_rest(answer: Response, protocol: Protocol, operation: &str) -> CallResult {
    let status = answer.status().as_u16();
    let text = answer.text().await.unwrap();
    let body: Value = match text.as_str() {
        "" => Value::Null,
        text => serde_json::from_str(text).unwrap_or_else(|_| panic!("{status}: {text}")),
    };
    if status < 400 {
        return Ok(read_json(protocol, operation, body));
    }
    let error = if body["error"].is_object() { &body["error"] } else { &body };
    Err(ErrorResponse {
        status,
        code: body["code"].as_i64(),
        grpc: None,
        reason: reason(error.get("details")),
        message: error["message"].as_str().unwrap_or_default().to_owned(),
        body,
    })
}

fn read_json(protocol: Protocol, operation: &str, body: Value) -> Value {
    match protocol.1 {
        Version::V1 => checked(operation, body),
        Version::V03 if operation == "DeleteTaskPushNotificationConfig" => Value::Null,
        // The card for both versions has fields that 0.3 does not define.
        Version::V03 if operation == "GetExtendedAgentCard" => convert_v03::answer(operation, &body),
        Version::V03 => {
            let name = convert_v03::response(operation);
            if name != "AgentCard" {
                let violations = schema::v03().violations(name, &body);
                assert!(violations.is_empty(), "{operation}: {violations:?} in {body}");
            }
            convert_v03::answer(operation, &body)
        }
    }
}

/// Validates a JSON response of 1.x against the schema and returns it.
fn checked(operation: &str, value: Value) -> Value {
    let name = messages(operation).1;
    if name.is_empty() {
        return Value::Null;
    }
    // The card for both versions has fields of both schemas.
    if name != "AgentCard" {
        let violations = schema::v1().violations(name, &value);
        assert!(violations.is_empty(), "{operation}: {violations:?} in {value}");
    }
    value
}

fn read_grpc(protocol: Protocol, operation: &str, bytes: &[u8]) -> Value {
    match (protocol.1, messages(operation).1) {
        (_, "") => Value::Null,
        (Version::V1, name) => schema::v1().decode(name, bytes),
        (Version::V03, _) => {
            convert_v03::answer(operation, &schema::v03().decode(convert_v03::response(operation), bytes))
        }
    }
}

fn error_from_status(status: &Status) -> ErrorResponse {
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
    ErrorResponse {
        status: 200,
        code: None,
        grpc: Some(status.code() as i32),
        reason,
        message: status.message().to_owned(),
        body: details,
    }
}

/// A gRPC codec that does not decode messages.
#[derive(Clone, Copy)]
struct RawCodec;

impl Codec for RawCodec {
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

impl Encoder for RawCodec {
    type Item = Vec<u8>;
    type Error = Status;

    fn encode(&mut self, item: Vec<u8>, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buffer.put_slice(&item);
        Ok(())
    }
}

impl Decoder for RawCodec {
    type Item = Vec<u8>;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<Vec<u8>>, Status> {
        let mut bytes = vec![0; buffer.remaining()];
        buffer.copy_to_slice(&mut bytes);
        Ok(Some(bytes))
    }
}

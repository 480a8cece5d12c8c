//! The JSON-RPC 2.0 binding. All requests are posted to one URL. Results and protocol errors both have status 200.
//!
//! Notifications are not supported: a request without an id is answered with the id `null`. Batches are not supported
//! in any version of the protocol.

use std::borrow::Cow;

use axum::response::Response;
use http::StatusCode;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::error::Category;
use serde_json::value::RawValue;

use super::error_response::ErrorResponse;
use super::sse::EventFormat;
use super::{IncomingRequest, JSON, body, cards, decode, json, reply, sse};
use crate::proto::v1;
use crate::{AgentHandler, Binding, Error, ErrorKind, Operation, OperationRequest, OperationResponse, Version, v03};

/// The HTTP methods that the URL supports.
pub(super) const ALLOWED: &str = "POST, OPTIONS";

/// Serves one JSON-RPC request: authorizes the caller, reads the body, decodes it and calls the handler. A rejected
/// caller gets an HTTP error status and the id `null`. So does a body that is too large, late or incomplete.
///
/// All other errors have status 200, also a wrong content type and an unsupported version. In 0.3 errors of streaming
/// methods are sent as an event. The id is `null` if it is not known. A request without an id is answered, too.
pub(super) async fn serve<H: AgentHandler>(handler: H, incoming: IncomingRequest) -> Response {
    let version = incoming.call.version;
    let caller = match handler.authorize(&incoming.call).await {
        Ok(caller) => caller,
        Err(rejection) => return ErrorResponse::rejected(version, rejection).into_response(Binding::JsonRpc, version),
    };
    let extensions_header = incoming.extensions_header(&handler);
    let IncomingRequest { call, version_error, body, .. } = incoming;
    if let Err(error) = body::ContentTypes::from_headers(&call.headers, version).check() {
        return failed(version, "null", error);
    }
    let bytes = match body::read(&call.headers, body, handler.max_request_bytes()).await {
        Ok(bytes) => bytes,
        Err(response) => return response.into_response(Binding::JsonRpc, version),
    };
    let parsed = match body::text(&bytes).and_then(JsonRpcRequest::parse) {
        Ok(parsed) => parsed,
        Err(error) => return failed(version, "null", error),
    };
    let id = parsed.id().unwrap_or("null").to_owned();
    let operation = parsed.operation(version);
    let streams = operation.as_ref().is_ok_and(|operation| operation.is_streaming());
    let request = match version_error {
        Some(error) => Err(error),
        None => operation.and_then(|operation| parsed.request(version, operation)),
    };
    drop(bytes);
    let result = match request {
        Ok(request) => handler.handle(caller, request).await,
        Err(error) => Err(error),
    };
    let mut response = match result {
        Ok(result) => respond(version, id, result),
        // Clients of 0.3 expect only events in response to a streaming request. Clients of 1.x also accept a plain
        // error.
        Err(error) if streams && version == Version::V03 => sse::failed(version, EventFormat::JsonRpc { id }, error),
        Err(error) => failed(version, &id, error),
    };
    response.headers_mut().extend(extensions_header);
    response
}

/// Returns an error response with status 200. `id` is JSON.
fn failed(version: Version, id: &str, error: Error) -> Response {
    reply(StatusCode::OK, JSON, ErrorResponse::new(version, error).json_rpc_body(version, id))
}

/// Returns the response with a result, or a stream of events for updates. `id` is JSON. Returns an error response if
/// the result cannot be encoded, or if the first update is ready at once and is an error. For updates in 0.3 that is an
/// event. A later error is the last event of the stream.
fn respond(version: Version, id: String, result: OperationResponse) -> Response {
    if let OperationResponse::Updates(updates) = result {
        let format = EventFormat::JsonRpc { id: id.clone() };
        return match sse::respond(version, format, updates) {
            Ok(response) => response,
            Err(error) if version == Version::V03 => sse::failed(version, EventFormat::JsonRpc { id }, error),
            Err(error) => failed(version, &id, error),
        };
    }
    let mut out = Vec::with_capacity(512);
    out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    out.extend_from_slice(id.as_bytes());
    out.extend_from_slice(br#","result":"#);
    match write_result(&mut out, version, result) {
        Ok(()) => {
            out.push(b'}');
            reply(StatusCode::OK, JSON, out)
        }
        Err(error) => failed(version, &id, error),
    }
}

/// Appends the result in the form of the version. A deletion is `null`. Push configurations of 0.3 are a plain list
/// without a page token. A list of tasks always has the form of 1.x. Updates are written as `null`. Fails if the result
/// cannot be encoded; then a part may have been written.
fn write_result(out: &mut Vec<u8>, version: Version, result: OperationResponse) -> Result<(), Error> {
    match (version, result) {
        (_, OperationResponse::Deleted | OperationResponse::Updates(_)) => json(out, &()),
        (_, OperationResponse::Card(card)) => json(out, &cards::value(*card, version)?),
        // 0.3 has no method that lists tasks.
        (_, OperationResponse::Tasks(tasks)) => json(out, &tasks),
        (Version::V10, OperationResponse::Sent(sent)) => json(out, &sent),
        (Version::V10, OperationResponse::Task(task)) => json(out, &task),
        (Version::V10, OperationResponse::PushConfig(config)) => json(out, &config),
        (Version::V10, OperationResponse::PushConfigs(configs)) => json(out, &configs),
        (Version::V03, OperationResponse::Sent(sent)) => json(out, &v03::StreamResult::from(sent)),
        (Version::V03, OperationResponse::Task(task)) => json(out, &v03::Task::from(task)),
        (Version::V03, OperationResponse::PushConfig(config)) => {
            json(out, &v03::TaskPushNotificationConfig::from(config))
        }
        (Version::V03, OperationResponse::PushConfigs(pushes)) => {
            let configs = pushes.configs.into_iter().map(v03::TaskPushNotificationConfig::from);
            json(out, &configs.collect::<Vec<_>>())
        }
    }
}

/// The members of a JSON-RPC request, not decoded. The method determines the type of the parameters.
#[derive(Deserialize)]
struct JsonRpcRequest<'a> {
    #[serde(borrow)]
    jsonrpc: Option<&'a RawValue>,
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<&'a RawValue>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

impl<'a> JsonRpcRequest<'a> {
    /// Parses a request without decoding its members. Unknown members are ignored. Fails with `Parse` if the text is
    /// not JSON. Fails with `InvalidRequest` for a batch, another value than an object, or a repeated member.
    fn parse(text: &'a str) -> Result<Self, Error> {
        let invalid = |message: &str| Error::new(ErrorKind::InvalidRequest, message);
        let first = text.trim_start().chars().next();
        let request = serde_json::from_str(text).map_err(|error| match (error.classify(), first) {
            (Category::Data, Some('[')) => invalid("batches are not supported; send one request at a time"),
            (Category::Data, Some('{')) => invalid("a member occurs more than once"),
            (Category::Data, _) => invalid("the request must be an object"),
            _ => decode::malformed(&error),
        });
        // Serde accepts an array of four as an object.
        if first == Some('[') && request.is_ok() {
            return Err(invalid("batches are not supported; send one request at a time"));
        }
        request
    }

    /// Returns the id as it was written: a string or an integer. Returns `None` if it is missing, `null` or of another
    /// type.
    fn id(&self) -> Option<&'a str> {
        let id = self.id?.get();
        let whole = |number: &str| !number.contains(['.', 'e', 'E']);
        match id.as_bytes().first()? {
            b'"' => Some(id),
            b'-' | b'0'..=b'9' if whole(id) => Some(id),
            _ => None,
        }
    }

    /// Returns the operation. Fails with `InvalidRequest` if `jsonrpc` is not `2.0` or the method is not a string. An
    /// id that is neither a string, an integer nor `null` fails with it, too. Fails with `MethodNotFound` if the method
    /// is unknown in this version.
    fn operation(&self, version: Version) -> Result<Operation, Error> {
        let invalid = |message: &str| Err(Error::new(ErrorKind::InvalidRequest, message));
        if self.jsonrpc.map(RawValue::get) != Some(r#""2.0""#) {
            return invalid("jsonrpc must be \"2.0\"");
        }
        if self.id.is_some() && self.id().is_none() {
            return invalid("id must be a string, an integer or null");
        }
        let method = self.method.map(|method| serde_json::from_str::<Cow<'_, str>>(method.get()));
        let Some(Ok(method)) = method else { return invalid("method must be a string") };
        operation(version, &method)
    }

    /// Decodes and validates the parameters. Missing parameters count as an empty object. Fails with an error that
    /// names the field.
    fn request(&self, version: Version, operation: Operation) -> Result<OperationRequest, Error> {
        let request = request(version, operation, self.params.map_or("{}", RawValue::get))?;
        request.validate()?;
        Ok(request)
    }
}

/// Returns the operation of a method. Fails with `MethodNotFound` if the method is unknown in this version. The error
/// has a hint if the other version has it, and the first 60 characters of the method.
fn operation(version: Version, method: &str) -> Result<Operation, Error> {
    let find = |version: Version| {
        let name = |operation: &Operation| match version {
            Version::V10 => Some(operation.as_str()),
            Version::V03 => operation.v03_method(),
        };
        Operation::ALL.into_iter().find(|operation| name(operation) == Some(method))
    };
    let (other, header) = match version {
        Version::V10 => (Version::V03, "with A2A-Version: 0.3, or without that header"),
        Version::V03 => (Version::V10, "with A2A-Version: 1.0"),
    };
    find(version).ok_or_else(|| {
        let shown: String = method.chars().take(60).collect();
        let hint = match find(other) {
            Some(_) => format!("; it is a method of {}, send it {header}", other.as_str()),
            None => String::new(),
        };
        Error::new(
            ErrorKind::MethodNotFound,
            format!("method '{shown}' not found in version {}{hint}", version.as_str()),
        )
    })
}

/// Decodes the parameters of an operation. Fails with an error that names the field.
fn request(version: Version, operation: Operation, params: &str) -> Result<OperationRequest, Error> {
    match version {
        Version::V10 => request_v10(operation, params),
        Version::V03 => request_v03(operation, params),
    }
}

/// Decodes the parameters of 1.x. Fails with `InvalidParams` and the field if a value is invalid. Required fields are
/// not checked here.
fn request_v10(operation: Operation, params: &str) -> Result<OperationRequest, Error> {
    fn read<P: DeserializeOwned + TryInto<T, Error = Error>, T>(params: &str) -> Result<T, Error> {
        decode::request::<P, T>("params", params)
    }
    Ok(match operation {
        Operation::Send => OperationRequest::Send(read::<v1::SendMessageRequest, _>(params)?),
        Operation::Stream => OperationRequest::Stream(read::<v1::SendMessageRequest, _>(params)?),
        Operation::Get => OperationRequest::Get(read::<v1::GetTaskRequest, _>(params)?),
        Operation::List => OperationRequest::List(read::<v1::ListTasksRequest, _>(params)?),
        Operation::Cancel => OperationRequest::Cancel(read::<v1::CancelTaskRequest, _>(params)?),
        Operation::Subscribe => OperationRequest::Subscribe(read::<v1::SubscribeToTaskRequest, _>(params)?),
        Operation::SetPush => OperationRequest::SetPush(read::<v1::TaskPushNotificationConfig, _>(params)?),
        Operation::GetPush => OperationRequest::GetPush(read::<v1::GetTaskPushNotificationConfigRequest, _>(params)?),
        Operation::ListPush => {
            OperationRequest::ListPush(read::<v1::ListTaskPushNotificationConfigsRequest, _>(params)?)
        }
        Operation::DeletePush => {
            OperationRequest::DeletePush(read::<v1::DeleteTaskPushNotificationConfigRequest, _>(params)?)
        }
        Operation::ExtendedCard => OperationRequest::ExtendedCard(read::<v1::GetExtendedAgentCardRequest, _>(params)?),
    })
}

/// Decodes the parameters of 0.3 and converts them to 1.x. The parameters of the extended card are those of 1.x. Fails
/// with `InvalidParams` and the field if a value is invalid or missing.
fn request_v03(operation: Operation, params: &str) -> Result<OperationRequest, Error> {
    fn read<T: DeserializeOwned>(params: &str) -> Result<T, Error> {
        decode::object("params", params)
    }
    Ok(match operation {
        Operation::Send => OperationRequest::Send(read::<v03::MessageSendParams>(params)?.try_into()?),
        Operation::Stream => OperationRequest::Stream(read::<v03::MessageSendParams>(params)?.try_into()?),
        Operation::Get => OperationRequest::Get(read::<v03::TaskQueryParams>(params)?.into()),
        Operation::Cancel => OperationRequest::Cancel(read::<v03::TaskIdParams>(params)?.into()),
        Operation::Subscribe => OperationRequest::Subscribe(read::<v03::TaskIdParams>(params)?.into()),
        Operation::SetPush => OperationRequest::SetPush(read::<v03::TaskPushNotificationConfig>(params)?.into()),
        Operation::GetPush => OperationRequest::GetPush(read::<v03::PushParams>(params)?.into()),
        Operation::ListPush => OperationRequest::ListPush(read::<v03::TaskIdParams>(params)?.into()),
        Operation::DeletePush => OperationRequest::DeletePush(read::<v03::PushParams>(params)?.try_into()?),
        // `List` never occurs: 0.3 has no such method.
        Operation::List | Operation::ExtendedCard => request_v10(Operation::ExtendedCard, params)?,
    })
}

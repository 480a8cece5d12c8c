//! The HTTP+JSON binding of the client, in both versions.

use ::http::header::ACCEPT;
use ::http::{HeaderMap, Method, StatusCode};
use futures::StreamExt;
use futures::stream;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::{Response, Url};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::card::{self, SelectedInterface};
use super::event_reader::EventReader;
use super::http::{EVENT_STREAM, HttpTransport, JSON, is_denial, is_event_stream};
use super::responses::{self, JsonFormat};
use super::{Error, TaskUpdates, is_last};
use crate::types::{SendMessageRequest, StreamResponse, TaskPushNotificationConfig};
use crate::v03::rest::{self, python};
use crate::{ErrorKind, Operation, OperationRequest, OperationResponse, Version};

/// The characters to encode in a path segment.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// A request as HTTP method, path, query and body.
struct RestRequest {
    method: Method,
    path: String,
    query: Vec<(&'static str, String)>,
    body: Option<Value>,
}

/// Calls an operation and returns its response. Has no timeout of its own. Fails if the request cannot be encoded or
/// the connection fails. Fails like [`error_from_response`] for an error status. Also fails if the body is invalid or
/// too large.
pub(super) async fn call(
    transport: &HttpTransport,
    interface: &SelectedInterface,
    request: OperationRequest,
) -> Result<OperationResponse, Error> {
    let operation = request.operation();
    let request = build_request(interface.version, request).map_err(|error| transport.invalid(error))?;
    let mut response = send_request(transport, interface, request, JSON).await?;
    let body = body(transport, &mut response).await?;
    decode_response(interface.version, operation, &body).map_err(|why| transport.invalid(why))
}

/// Calls a streaming operation and returns its updates. The stream ends after the last possible update, even if the
/// agent keeps the connection open. An error is its last item, also one that the agent sends as an event. If the agent
/// sends a plain response, it is the only update. Fails like [`call`] before the stream starts.
pub(super) async fn stream_updates(
    transport: &HttpTransport,
    interface: &SelectedInterface,
    request: OperationRequest,
) -> Result<TaskUpdates, Error> {
    let version = interface.version;
    let request = build_request(version, request).map_err(|error| transport.invalid(error))?;
    let mut response = send_request(transport, interface, request, EVENT_STREAM).await?;
    if !is_event_stream(response.headers()) || !response.status().is_success() {
        let body = body(transport, &mut response).await?;
        let (update, _) =
            parse_json(&body).and_then(|value| decode_update(version, value)).map_err(|why| transport.invalid(why))?;
        return Ok(stream::iter([Ok(update)]).boxed());
    }
    let events = EventReader::new(response, transport);
    let initial = Some((events, transport.clone()));
    let updates = stream::unfold(initial, move |state| async move {
        let (mut events, transport) = state?;
        let next = async {
            let Some(event) = events.next(&transport).await? else { return Ok(None) };
            let value: Value = parse_json(event.data).map_err(|why| transport.invalid(why))?;
            if event.name == "error" || value.get("error").is_some() {
                let error = decode_error(&value, StatusCode::INTERNAL_SERVER_ERROR);
                let error = error.unwrap_or_else(|| crate::Error::new(ErrorKind::Internal, value.to_string()));
                return Err(transport.cleaned(error));
            }
            decode_update(version, value).map(Some).map_err(|why| transport.invalid(why))
        };
        match next.await {
            Ok(None) => None,
            Ok(Some((update, true))) => Some((Ok(update), None)),
            Ok(Some((update, false))) => Some((Ok(update), Some((events, transport)))),
            Err(error) => Some((Err(error), None)),
        }
    });
    Ok(updates.boxed())
}

/// Sends a request and returns the response without its body. `accept` is the accepted media type. If a subscription
/// gets 405, it is repeated once with POST instead of GET, or the reverse. Fails if the connection fails. The status is
/// not checked.
async fn send_request(
    transport: &HttpTransport,
    interface: &SelectedInterface,
    parts: RestRequest,
    accept: &str,
) -> Result<Response, Error> {
    let url = build_url(interface, &parts)?;
    let request = |method: Method| {
        let request = transport.request(method, url.clone(), interface.version).header(ACCEPT, accept);
        match &parts.body {
            Some(body) => request.json(body),
            None => request,
        }
    };
    let response = transport.send(request(parts.method.clone())).await?;
    // The text and the protobuf definition of the protocol use different methods for subscribing.
    if response.status() == StatusCode::METHOD_NOT_ALLOWED && parts.path.ends_with(":subscribe") {
        let other = if parts.method == Method::POST { Method::GET } else { Method::POST };
        return transport.send(request(other)).await;
    }
    Ok(response)
}

/// Returns the URL of a request: the URL of the interface, its tenant as a segment, the path and the query. The tenant
/// of the request is not used. Never fails.
fn build_url(interface: &SelectedInterface, request: &RestRequest) -> Result<Url, Error> {
    let mut url = interface.url.clone();
    let base = url.path().trim_end_matches('/');
    let tenant = interface.tenant.as_deref().map(|tenant| format!("/{}", encode_segment(tenant))).unwrap_or_default();
    let path = format!("{base}{tenant}{}", request.path);
    url.set_path(&path);
    if !request.query.is_empty() {
        url.query_pairs_mut().extend_pairs(&request.query);
    }
    Ok(url)
}

fn encode_segment(text: &str) -> String {
    utf8_percent_encode(text, RESERVED).to_string()
}

/// Returns the method, path, query and body of an operation. In 0.3 paths start with `/v1`, and a subscription uses GET
/// instead of POST. Missing parameters are left out. Tenants are never included, see [`build_url`]. In 0.3 the metadata
/// of a cancellation are left out, and listing tasks is not rejected here. Fails if the request cannot be encoded.
fn build_request(version: Version, request: OperationRequest) -> serde_json::Result<RestRequest> {
    let v = if version == Version::V03 { "/v1" } else { "" };
    let task = |id: &str, rest: &str| format!("{v}/tasks/{}{rest}", encode_segment(id));
    let configs = |id: &str| task(id, "/pushNotificationConfigs");
    let config = |task: &str, id: &str| format!("{}/{}", configs(task), encode_segment(id));
    let get = |path: String| RestRequest { method: Method::GET, path, query: Vec::new(), body: None };
    let post =
        |path: String, body: Value| RestRequest { method: Method::POST, path, query: Vec::new(), body: Some(body) };
    let number = |name, number: Option<i32>| number.map(|number| (name, number.to_string()));
    Ok(match request {
        OperationRequest::Send(request) => post(format!("{v}/message:send"), message(version, request)?),
        OperationRequest::Stream(request) => post(format!("{v}/message:stream"), message(version, request)?),
        OperationRequest::Get(request) => {
            let query = number("historyLength", request.history_length).into_iter().collect();
            RestRequest { query, ..get(task(&request.id, "")) }
        }
        OperationRequest::List(request) => {
            let state = request.status.map(serde_json::to_value).transpose()?;
            let state = state.as_ref().and_then(Value::as_str).map(|state| ("status", state.to_owned()));
            let after = request.status_timestamp_after.map(serde_json::to_value).transpose()?;
            let after = after.as_ref().and_then(Value::as_str).map(|time| ("statusTimestampAfter", time.to_owned()));
            let query = [
                request.context_id.map(|id| ("contextId", id)),
                state,
                number("pageSize", request.page_size),
                request.page_token.map(|token| ("pageToken", token)),
                number("historyLength", request.history_length),
                after,
                request.include_artifacts.map(|include| ("includeArtifacts", include.to_string())),
            ];
            RestRequest { query: query.into_iter().flatten().collect(), ..get(format!("{v}/tasks")) }
        }
        OperationRequest::Cancel(request) => {
            let body = match version {
                Version::V10 => request.metadata.map_or_else(|| json!({}), |metadata| json!({"metadata": metadata})),
                Version::V03 => json!({"name": format!("tasks/{}", request.id)}),
            };
            post(task(&request.id, ":cancel"), body)
        }
        OperationRequest::Subscribe(request) => {
            let path = task(&request.id, ":subscribe");
            // The official clients of the two versions use these methods.
            let method = if version == Version::V10 { Method::POST } else { Method::GET };
            RestRequest { method, ..get(path) }
        }
        OperationRequest::SetPush(config) => post(configs(&config.task_id), push(version, config)?),
        OperationRequest::GetPush(request) => get(config(&request.task_id, &request.id)),
        OperationRequest::ListPush(request) => {
            let token = request.page_token.map(|token| ("pageToken", token));
            let query = number("pageSize", request.page_size).into_iter().chain(token).collect();
            RestRequest { query, ..get(configs(&request.task_id)) }
        }
        OperationRequest::DeletePush(request) => {
            RestRequest { method: Method::DELETE, ..get(config(&request.task_id, &request.id)) }
        }
        OperationRequest::ExtendedCard(_) if version == Version::V03 => get("/v1/card".to_owned()),
        OperationRequest::ExtendedCard(_) => get("/extendedAgentCard".to_owned()),
    })
}

/// Returns the body of a message, without the tenant, which is part of the path. In 0.3 the bytes of files are encoded
/// for the Python SDK. Fails if the message cannot be encoded.
fn message(version: Version, mut request: SendMessageRequest) -> serde_json::Result<Value> {
    request.tenant = None;
    match version {
        Version::V10 => serde_json::to_value(request),
        Version::V03 => {
            // Most agents of 0.3 use the Python SDK, which accepts no other form.
            python::encode_message(&mut request.message);
            serde_json::to_value(rest::SendMessageRequest::from(request))
        }
    }
}

/// Returns the body that creates a configuration, without the tenant. In 0.3 it is the whole request, with the name of
/// the task. Fails if it cannot be encoded.
fn push(version: Version, config: TaskPushNotificationConfig) -> serde_json::Result<Value> {
    match version {
        Version::V10 => serde_json::to_value(TaskPushNotificationConfig { tenant: None, ..config }),
        Version::V03 => serde_json::to_value(rest::CreateTaskPushNotificationConfigRequest::from(config)),
    }
}

/// Returns the body of a response with a 2xx status. Fails if it is too large or the connection fails. Fails like
/// [`error_from_response`] for any other status.
async fn body(transport: &HttpTransport, response: &mut Response) -> Result<Vec<u8>, Error> {
    let status = response.status();
    if status.is_success() {
        return transport.body(response, transport.limits().max_response_bytes).await;
    }
    let body = transport.error_body(response).await;
    Err(error_from_response(transport, status, response.headers(), &body))
}

/// Returns the protocol error in the body of a response, with cleaned texts. Returns a rejection if it has none, or if
/// its status rejects the caller, see [`is_denial`].
fn error_from_response(transport: &HttpTransport, status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Error {
    let error = serde_json::from_slice(body).ok().and_then(|value| decode_error(&value, status));
    match error.filter(|_| !is_denial(status)) {
        Some(error) => transport.cleaned(error),
        None => transport.rejection(status, headers, body),
    }
}

/// Decodes a protocol error: a `google.rpc.Status` in 1.x, a code and a message in 0.3. It may be wrapped in `error`.
/// The kind is that of a known reason in the details, else of the JSON-RPC code, else of the HTTP status. Only a reason
/// keeps the details.
///
/// Returns `None` if there is no message, or if none of these has a known kind. Known statuses are 400, 404, 409, 415,
/// 422 and 501.
fn decode_error(value: &Value, status: StatusCode) -> Option<crate::Error> {
    let error = value.get("error").filter(|error| error.is_object()).unwrap_or(value);
    let message = error["message"].as_str()?;
    if let Some(details) = error["details"].as_array()
        && let Some(kind) = details.iter().find_map(reason)
    {
        return Some(with_details(details, kind, message));
    }
    let code = error["code"].as_i64().and_then(|code| i32::try_from(code).ok());
    let kind = code.and_then(ErrorKind::from_json_rpc_code).or(match status {
        // Early agents of both versions report these errors only by the status.
        StatusCode::NOT_FOUND => Some(ErrorKind::TaskNotFound),
        StatusCode::CONFLICT => Some(ErrorKind::TaskNotCancelable),
        StatusCode::UNSUPPORTED_MEDIA_TYPE => Some(ErrorKind::ContentTypeNotSupported),
        StatusCode::NOT_IMPLEMENTED => Some(ErrorKind::UnsupportedOperation),
        StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY => Some(ErrorKind::InvalidParams),
        _ => None,
    });
    Some(crate::Error::new(kind?, message))
}

/// Returns the kind of the reason in a detail, or `None` if it has no known reason.
fn reason(detail: &Value) -> Option<ErrorKind> {
    ErrorKind::from_reason(detail.get("reason")?.as_str()?)
}

/// Returns an error with the metadata and violations of its details. The first known reason replaces `kind`. At most 20
/// details and 50 violations each are read. Metadata that are not text are left out.
pub(super) fn with_details(details: &[Value], kind: ErrorKind, message: &str) -> crate::Error {
    let mut error = crate::Error::new(details.iter().find_map(reason).unwrap_or(kind), message);
    for detail in details.iter().take(20) {
        let metadata = detail["metadata"].as_object().into_iter().flatten();
        let texts = metadata.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())));
        error.metadata.extend(texts);
        let violations = detail["fieldViolations"].as_array().into_iter().flatten().take(50);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        error.violations.extend(violations.map(|it| (text(&it["field"]), text(&it["description"]))));
    }
    error
}

fn parse_json<T: DeserializeOwned>(body: &[u8]) -> Result<T, String> {
    serde_json::from_slice(body).map_err(|error| error.to_string())
}

/// Decodes the body of a successful response. The body of a deletion is ignored. A card may have either version. In
/// 0.3, files that are base64 text are decoded. Fails with a message if the body is invalid.
fn decode_response(version: Version, operation: Operation, body: &[u8]) -> Result<OperationResponse, String> {
    if operation == Operation::DeletePush {
        return Ok(OperationResponse::Deleted);
    }
    if operation == Operation::ExtendedCard {
        return Ok(OperationResponse::Card(Box::new(card::parse(body)?)));
    }
    let value: Value = parse_json(body)?;
    let mut response = responses::decode(JsonFormat::for_http_json(version, &value), operation, value)?;
    if version == Version::V03 {
        python::decode_response(&mut response);
    }
    Ok(response)
}

/// Decodes an event. Returns the update, and true if it is the last. In 0.3, files that are base64 text are decoded.
/// Fails with a message if the event is not an update.
fn decode_update(version: Version, value: Value) -> Result<(StreamResponse, bool), String> {
    let (mut update, is_final) = responses::decode_update(JsonFormat::for_http_json(version, &value), value)?;
    if version == Version::V03 {
        python::decode_update(&mut update);
    }
    let is_end = is_final || is_last(&update);
    Ok((update, is_end))
}

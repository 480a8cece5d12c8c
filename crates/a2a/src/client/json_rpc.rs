//! The JSON-RPC binding of the client, in both versions.

use std::sync::atomic::{AtomicU64, Ordering};

use ::http::Method;
use ::http::header::ACCEPT;
use futures::StreamExt;
use futures::stream;
use reqwest::Response;
use serde::Serialize;
use serde_json::{Value, json};

use super::card::{self, SelectedInterface};
use super::event_reader::EventReader;
use super::http::{EVENT_STREAM, HttpTransport, JSON, is_denial, is_event_stream};
use super::responses::{self, JsonFormat};
use super::{Error, TaskUpdates, is_last};
use crate::types::StreamResponse;
use crate::{ErrorKind, Operation, OperationRequest, OperationResponse, Version, v03};

/// The id of the next request.
static NEXT_ID: AtomicU64 = AtomicU64::new(1);

/// Calls an operation and returns its response. Has no timeout of its own. Fails like [`send_request`] and
/// [`read_result`], or with [`Error::Invalid`] if the result does not match the operation.
pub(super) async fn call(
    transport: &HttpTransport,
    interface: &SelectedInterface,
    request: OperationRequest,
) -> Result<OperationResponse, Error> {
    let operation = request.operation();
    let (mut response, id) = send_request(transport, interface, request, JSON).await?;
    let result = read_result(transport, &mut response, id).await?;
    decode_response(interface.version, operation, result).map_err(|why| transport.invalid(why))
}

/// Calls a streaming operation and returns its updates. The stream ends after the last possible update, even if the
/// agent keeps the connection open. An error is its last item. If the agent sends a plain response, it is the only
/// update. Fails like [`send_request`], or if a plain response is an error or invalid.
pub(super) async fn stream_updates(
    transport: &HttpTransport,
    interface: &SelectedInterface,
    request: OperationRequest,
) -> Result<TaskUpdates, Error> {
    let (mut response, id) = send_request(transport, interface, request, EVENT_STREAM).await?;
    let version = interface.version;
    if !is_event_stream(response.headers()) || !response.status().is_success() {
        // An error, or an agent that sends the only update as a plain response.
        let result = read_result(transport, &mut response, id).await?;
        let (update, _) = decode_update(version, result).map_err(|why| transport.invalid(why))?;
        return Ok(stream::iter([Ok(update)]).boxed());
    }
    let events = EventReader::new(response, transport);
    let initial = Some((events, transport.clone()));
    let updates = stream::unfold(initial, move |state| async move {
        let (mut events, transport) = state?;
        let next = async {
            let Some(event) = events.next(&transport).await? else { return Ok(None) };
            let response = serde_json::from_slice(event.data).map_err(|error| transport.invalid(error))?;
            decode_update(version, unwrap_response(&transport, response, id)?)
                .map(Some)
                .map_err(|why| transport.invalid(why))
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

/// Sends a request with a new id. Returns the response without its body, and the id. `accept` is the accepted media
/// type. The status is not checked. Fails with [`Error::Unsupported`] if the version does not have the operation. Fails
/// if the request cannot be encoded or the connection fails.
async fn send_request(
    transport: &HttpTransport,
    interface: &SelectedInterface,
    request: OperationRequest,
    accept: &str,
) -> Result<(Response, u64), Error> {
    let operation = request.operation();
    let (method, params) = match interface.version {
        Version::V10 => (Some(operation.as_str()), params_v10(request)),
        Version::V03 => (operation.v03_method(), params_v03(request)),
    };
    let method = method.ok_or(Error::Unsupported("perform this operation"))?;
    let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
    let mut body = json!({"jsonrpc": "2.0", "id": id, "method": method});
    let params = params.map_err(|error| transport.invalid(error))?;
    if !params.is_null() {
        body["params"] = params;
    }
    let request =
        transport.request(Method::POST, interface.url.clone(), interface.version).header(ACCEPT, accept).json(&body);
    Ok((transport.send(request).await?, id))
}

/// Returns the parameters in the form of 1.x. Fails if they cannot be encoded.
fn params_v10(request: OperationRequest) -> serde_json::Result<Value> {
    match request {
        OperationRequest::Send(request) | OperationRequest::Stream(request) => serde_json::to_value(request),
        OperationRequest::Get(request) => serde_json::to_value(request),
        OperationRequest::List(request) => serde_json::to_value(request),
        OperationRequest::Cancel(request) => serde_json::to_value(request),
        OperationRequest::Subscribe(request) => serde_json::to_value(request),
        OperationRequest::SetPush(config) => serde_json::to_value(config),
        OperationRequest::GetPush(request) => serde_json::to_value(request),
        OperationRequest::ListPush(request) => serde_json::to_value(request),
        OperationRequest::DeletePush(request) => serde_json::to_value(request),
        OperationRequest::ExtendedCard(request) => serde_json::to_value(request),
    }
}

/// Returns the parameters in the form of 0.3. Returns `null` for the extended card, which has none, and for listing
/// tasks, which 0.3 does not have. Fails if they cannot be encoded.
fn params_v03(request: OperationRequest) -> serde_json::Result<Value> {
    fn to_json<T: Serialize>(params: T) -> serde_json::Result<Value> {
        serde_json::to_value(params)
    }
    match request {
        OperationRequest::Send(request) | OperationRequest::Stream(request) => {
            to_json(v03::MessageSendParams::from(request))
        }
        OperationRequest::Get(request) => to_json(v03::TaskQueryParams::from(request)),
        OperationRequest::Cancel(request) => to_json(v03::TaskIdParams::from(request)),
        OperationRequest::Subscribe(request) => to_json(v03::TaskIdParams::from(request)),
        OperationRequest::SetPush(config) => to_json(v03::TaskPushNotificationConfig::from(config)),
        OperationRequest::GetPush(request) => to_json(v03::PushParams::from(request)),
        OperationRequest::ListPush(request) => to_json(v03::TaskIdParams::from(request)),
        OperationRequest::DeletePush(request) => to_json(v03::PushParams::from(request)),
        OperationRequest::List(_) | OperationRequest::ExtendedCard(_) => Ok(Value::Null),
    }
}

/// Returns the result of a response that is not a stream. A successful status fails like [`unwrap_response`], or if the
/// body is not JSON, too large or incomplete. Any other status fails with the JSON-RPC error in the body, if it has one
/// with a code. Otherwise, and always for a status that rejects the caller (see [`is_denial`]), fails with a rejection.
async fn read_result(transport: &HttpTransport, response: &mut Response, id: u64) -> Result<Value, Error> {
    let status = response.status();
    if status.is_success() {
        let body = transport.body(response, transport.limits().max_response_bytes).await?;
        let message = serde_json::from_slice(&body).map_err(|error| transport.invalid(error))?;
        return unwrap_response(transport, message, id);
    }
    // Some agents send protocol errors with an error status.
    let body = transport.error_body(response).await;
    let rejection = transport.rejection(status, response.headers(), &body);
    if is_denial(status) {
        return Err(rejection);
    }
    let message = serde_json::from_slice::<Value>(&body).ok().filter(|message| message["error"]["code"].is_i64());
    match message.map(|message| unwrap_response(transport, message, id)) {
        Some(Err(error @ Error::Agent(_))) => Err(error),
        _ => Err(rejection),
    }
}

/// Returns the result of a JSON-RPC response, or `null` if it has none. Fails with its error, also if the id does not
/// match. Otherwise fails with [`Error::Invalid`] if it has another id or none. The id may be a number or its text.
fn unwrap_response(transport: &HttpTransport, mut response: Value, id: u64) -> Result<Value, Error> {
    if let Some(error) = response.get("error").filter(|error| !error.is_null()) {
        return Err(transport.cleaned(decode_error(error)));
    }
    let is_ours = response.get("id").is_some_and(|value| value.as_u64() == Some(id) || *value == json!(id.to_string()));
    if !is_ours {
        return Err(transport.invalid("it has the id of another request"));
    }
    // Some agents omit an empty result, such as that of a deletion.
    Ok(response.get_mut("result").map(Value::take).unwrap_or_default())
}

/// Decodes a JSON-RPC error with the details in `data`. A known reason in the details replaces the kind of the code. An
/// unknown code becomes an internal error with the code in its message. A missing message is empty. Never fails.
fn decode_error(error: &Value) -> crate::Error {
    let code = error["code"].as_i64().and_then(|code| i32::try_from(code).ok());
    let kind = code.and_then(ErrorKind::from_json_rpc_code);
    let message = error["message"].as_str().unwrap_or_default();
    let details = error["data"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut decoded = super::rest::with_details(details, kind.unwrap_or(ErrorKind::Internal), message);
    if kind.is_none() {
        decoded.message = format!("{} (code {})", decoded.message, error["code"]);
    }
    decoded
}

/// Decodes the result of a call. The result of a deletion is ignored. A card may have either version. Fails with a
/// message if the result of another operation is missing or invalid.
fn decode_response(version: Version, operation: Operation, result: Value) -> Result<OperationResponse, String> {
    match operation {
        Operation::DeletePush => Ok(OperationResponse::Deleted),
        _ if result.is_null() => Err("it has neither a result nor an error".to_owned()),
        Operation::ExtendedCard => Ok(OperationResponse::Card(Box::new(card::parse(result.to_string().as_bytes())?))),
        _ => responses::decode(JsonFormat::for_json_rpc(version), operation, result),
    }
}

/// Decodes an event. Returns the update and whether it is the last.
fn decode_update(version: Version, result: Value) -> Result<(StreamResponse, bool), String> {
    let (update, is_final) = responses::decode_update(JsonFormat::for_json_rpc(version), result)?;
    let is_end = is_final || is_last(&update);
    Ok((update, is_end))
}

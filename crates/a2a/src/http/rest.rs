//! The HTTP+JSON binding. Every operation has a path, and every error has an HTTP status.
//!
//! In 0.3 the bodies are protobuf messages in JSON ([`crate::v03::rest`]).

use axum::response::Response;
use http::StatusCode;
use serde::Deserialize;

use super::error_response::ErrorResponse;
use super::query::Query;
use super::route::RestResource;
use super::sse::EventFormat;
use super::{IncomingRequest, body, cards, decode, json, options, reply, sse};
use crate::proto::v1;
use crate::types::{
    CancelTaskRequest, DeleteTaskPushNotificationConfigRequest, GetExtendedAgentCardRequest,
    GetTaskPushNotificationConfigRequest, GetTaskRequest, SendMessageRequest, SubscribeToTaskRequest,
    TaskPushNotificationConfig,
};
use crate::v03::Metadata;
use crate::v03::rest::{self as v03_rest, python};
use crate::{AgentHandler, Binding, Error, Operation, OperationRequest, OperationResponse, Version};

/// The body of a request that cancels a task. The path names the task.
#[derive(Default, Deserialize)]
struct CancelBody {
    metadata: Option<Metadata>,
}

/// Serves one HTTP+JSON request. Responds to OPTIONS with the allowed methods, and with 405 to a method that the
/// resource does not support. Both need no authorization. Other requests are handled by [`handle`], and its errors
/// become responses.
pub(super) async fn serve<H: AgentHandler>(handler: H, resource: RestResource, incoming: IncomingRequest) -> Response {
    let version = incoming.call.version;
    if incoming.method == http::Method::OPTIONS {
        return options(resource.allowed());
    }
    let Some(operation) = resource.operation(&incoming.method) else {
        return ErrorResponse::wrong_method(resource.allowed()).into_response(Binding::HttpJson, version);
    };
    match handle(handler, resource, operation, incoming).await {
        Ok(response) => response,
        Err(error) => error.into_response(Binding::HttpJson, version),
    }
}

/// Authorizes, decodes and handles one request. Bytes of files are converted for the Python SDK of 0.3. Checks in this
/// order: the caller, the version, the body (size, time), the content type, the content. Fails at the first that is
/// wrong, with the error of the handler, or like [`respond`]. The content type is ignored if the body is empty and the
/// operation needs none.
async fn handle<H: AgentHandler>(
    handler: H,
    resource: RestResource,
    operation: Operation,
    incoming: IncomingRequest,
) -> Result<Response, ErrorResponse> {
    let version = incoming.call.version;
    let to_response = |error| ErrorResponse::new(version, error);
    let caller =
        handler.authorize(&incoming.call).await.map_err(|rejection| ErrorResponse::rejected(version, rejection))?;
    let extensions_header = incoming.extensions_header(&handler);
    let IncomingRequest { query, call, version_error, body, .. } = incoming;
    if let Some(error) = version_error {
        return Err(to_response(error));
    }
    let types = body::ContentTypes::from_headers(&call.headers, version);
    let is_python = version == Version::V03 && python::is_python_sdk(&call.headers);
    let bytes = body::read(&call.headers, body, handler.max_request_bytes()).await?;
    if !bytes.is_empty() || matches!(operation, Operation::Send | Operation::Stream | Operation::SetPush) {
        types.check().map_err(to_response)?;
    }
    let text = body::text(&bytes).map_err(to_response)?;
    let query = Query::new(query.as_deref());
    let mut request = request(version, operation, resource, &query, call.tenant, text).map_err(to_response)?;
    if is_python {
        python::decode_request(&mut request);
    }
    request.validate().map_err(to_response)?;
    drop(bytes);
    let result = handler.handle(caller, request).await.map_err(to_response)?;
    let mut response = respond(version, is_python, types.response, result).map_err(to_response)?;
    response.headers_mut().extend(extensions_header);
    Ok(response)
}

/// Returns the request for a resource. The path determines the ids, and its tenant takes precedence over that of the
/// body. Only messages and new push configurations need a body; a cancellation may have one. Other bodies are ignored.
/// In 0.3 a history length of zero means the whole history. Fails with `Parse` or `InvalidParams`; the latter names the
/// field.
fn request(
    version: Version,
    operation: Operation,
    resource: RestResource,
    query: &Query<'_>,
    tenant: Option<String>,
    text: &str,
) -> Result<OperationRequest, Error> {
    let subject = "the body";
    Ok(match resource {
        RestResource::Send | RestResource::Stream => {
            let mut request = match version {
                Version::V10 => decode::request::<v1::SendMessageRequest, SendMessageRequest>(subject, text)?,
                Version::V03 => decode::request::<v03_rest::SendMessageRequest, SendMessageRequest>(subject, text)?,
            };
            request.tenant = tenant.or(request.tenant);
            if operation == Operation::Send {
                OperationRequest::Send(request)
            } else {
                OperationRequest::Stream(request)
            }
        }
        RestResource::Tasks => OperationRequest::List(query.list(tenant)?),
        RestResource::Task(id) => {
            let length = query.history_length()?;
            let history_length = length.filter(|length| version == Version::V10 || *length != 0);
            OperationRequest::Get(GetTaskRequest { id, history_length, tenant })
        }
        RestResource::Cancel(id) => {
            let body: CancelBody = if text.is_empty() { CancelBody::default() } else { decode::object(subject, text)? };
            OperationRequest::Cancel(CancelTaskRequest { id, metadata: body.metadata, tenant })
        }
        RestResource::Subscribe(id) => OperationRequest::Subscribe(SubscribeToTaskRequest { id, tenant }),
        RestResource::PushConfigs(task_id) if operation == Operation::SetPush => {
            let mut config = match version {
                Version::V10 => {
                    let config = decode::request::<v1::TaskPushNotificationConfig, _>(subject, text)?;
                    TaskPushNotificationConfig { task_id, ..config }
                }
                Version::V03 => decode::object::<v03_rest::SetPushConfig>(subject, text)?.into_task_config(task_id)?,
            };
            config.tenant = tenant.or(config.tenant);
            OperationRequest::SetPush(config)
        }
        RestResource::PushConfigs(task_id) => OperationRequest::ListPush(query.list_push(task_id, tenant)?),
        RestResource::PushConfig(task_id, id) if operation == Operation::DeletePush => {
            OperationRequest::DeletePush(DeleteTaskPushNotificationConfigRequest { task_id, id, tenant })
        }
        RestResource::PushConfig(task_id, id) => {
            OperationRequest::GetPush(GetTaskPushNotificationConfigRequest { task_id, id, tenant })
        }
        RestResource::ExtendedCard => OperationRequest::ExtendedCard(GetExtendedAgentCardRequest { tenant }),
    })
}

/// Returns the response with status 200 in the form of the version, or a stream of events for updates. A deletion is an
/// empty object. With `is_python` the bytes of files are encoded for the Python SDK. Fails if the result cannot be
/// encoded, or if the first update is ready at once and is an error. A later error is the last event of the stream.
fn respond(
    version: Version,
    is_python: bool,
    content_type: &'static str,
    mut result: OperationResponse,
) -> Result<Response, Error> {
    if is_python {
        python::encode_response(&mut result);
    }
    let mut out = Vec::with_capacity(512);
    match (version, result) {
        (_, OperationResponse::Updates(updates)) => {
            return sse::respond(version, EventFormat::Rest { is_python }, updates);
        }
        (_, OperationResponse::Deleted) => out.extend_from_slice(b"{}"),
        (_, OperationResponse::Card(card)) => out = cards::body(*card, version)?,
        (Version::V10, OperationResponse::Sent(sent)) => json(&mut out, &sent)?,
        (Version::V10, OperationResponse::Task(task)) => json(&mut out, &task)?,
        (Version::V10, OperationResponse::Tasks(tasks)) => json(&mut out, &tasks)?,
        (Version::V10, OperationResponse::PushConfig(config)) => json(&mut out, &config)?,
        (Version::V10, OperationResponse::PushConfigs(configs)) => json(&mut out, &configs)?,
        (Version::V03, OperationResponse::Sent(sent)) => json(&mut out, &v03_rest::SendMessageResponse::from(sent))?,
        (Version::V03, OperationResponse::Task(task)) => json(&mut out, &v03_rest::Task::from(task))?,
        (Version::V03, OperationResponse::Tasks(tasks)) => json(&mut out, &v03_rest::ListTasksResponse::from(tasks))?,
        (Version::V03, OperationResponse::PushConfig(config)) => {
            json(&mut out, &v03_rest::TaskPushNotificationConfig::from(config))?
        }
        (Version::V03, OperationResponse::PushConfigs(configs)) => {
            json(&mut out, &v03_rest::ListTaskPushNotificationConfigResponse::from(configs))?;
        }
    }
    Ok(reply(StatusCode::OK, content_type, out))
}

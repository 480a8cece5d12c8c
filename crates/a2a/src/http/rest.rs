//! HTTP+JSON: a path for everything, and a status for every error.
//!
//! In 0.3 the bodies are the JSON of protobuf messages ([`crate::v03::rest`]).

use axum::response::Response;
use http::StatusCode;
use serde::Deserialize;

use super::fault::Fault;
use super::query::Query;
use super::route::Place;
use super::sse::Form;
use super::{Incoming, body, cards, decode, json, options, reply, sse};
use crate::proto::v1;
use crate::types::{
    CancelTaskRequest, DeleteTaskPushNotificationConfigRequest, GetExtendedAgentCardRequest,
    GetTaskPushNotificationConfigRequest, GetTaskRequest, SendMessageRequest, SubscribeToTaskRequest,
    TaskPushNotificationConfig,
};
use crate::v03::Metadata;
use crate::v03::rest::{self as old, python};
use crate::{Answer, Binding, Error, Handler, Operation, Request, Version};

/// The body of a request to cancel; the path names the task.
#[derive(Default, Deserialize)]
struct Cancel {
    metadata: Option<Metadata>,
}

pub(super) async fn serve<H: Handler>(handler: H, place: Place, incoming: Incoming) -> Response {
    let version = incoming.call.version;
    if incoming.method == http::Method::OPTIONS {
        return options(place.allowed());
    }
    let Some(operation) = place.operation(&incoming.method) else {
        return Fault::wrong_method(place.allowed()).respond(Binding::HttpJson, version);
    };
    match answer(handler, place, operation, incoming).await {
        Ok(response) => response,
        Err(fault) => fault.respond(Binding::HttpJson, version),
    }
}

async fn answer<H: Handler>(
    handler: H,
    place: Place,
    operation: Operation,
    incoming: Incoming,
) -> Result<Response, Fault> {
    let version = incoming.call.version;
    let fault = |error| Fault::new(version, error);
    let caller = handler.admit(&incoming.call).await.map_err(|denied| Fault::denied(version, denied))?;
    let activated = incoming.activated(&handler);
    let Incoming { query, call, unspoken, body, .. } = incoming;
    if let Some(error) = unspoken {
        return Err(fault(error));
    }
    let types = body::Types::of(&call.headers, version);
    let python = version == Version::V03 && python::calls(&call.headers);
    let bytes = body::read(&call.headers, body, handler.max_request()).await?;
    if !bytes.is_empty() || matches!(operation, Operation::Send | Operation::Stream | Operation::SetPush) {
        types.check().map_err(fault)?;
    }
    let text = body::text(&bytes).map_err(fault)?;
    let query = Query::new(query.as_deref());
    let mut request = request(version, operation, place, &query, call.tenant, text).map_err(fault)?;
    if python {
        python::read_request(&mut request);
    }
    request.check().map_err(fault)?;
    drop(bytes);
    let answer = handler.handle(caller, request).await.map_err(fault)?;
    let mut response = respond(version, python, types.answer, answer).map_err(fault)?;
    response.headers_mut().extend(activated);
    Ok(response)
}

fn request(
    version: Version,
    operation: Operation,
    place: Place,
    query: &Query<'_>,
    tenant: Option<String>,
    text: &str,
) -> Result<Request, Error> {
    let what = "the body";
    Ok(match place {
        Place::Send | Place::Stream => {
            let mut request = match version {
                Version::V10 => decode::request::<v1::SendMessageRequest, SendMessageRequest>(what, text)?,
                Version::V03 => decode::request::<old::SendMessageRequest, SendMessageRequest>(what, text)?,
            };
            request.tenant = tenant.or(request.tenant);
            if operation == Operation::Send { Request::Send(request) } else { Request::Stream(request) }
        }
        Place::Tasks => Request::List(query.list(tenant)?),
        Place::Task(id) => {
            let length = query.history_length()?;
            let history_length = length.filter(|length| version == Version::V10 || *length != 0);
            Request::Get(GetTaskRequest { id, history_length, tenant })
        }
        Place::Cancel(id) => {
            let body: Cancel = if text.is_empty() { Cancel::default() } else { decode::object(what, text)? };
            Request::Cancel(CancelTaskRequest { id, metadata: body.metadata, tenant })
        }
        Place::Subscribe(id) => Request::Subscribe(SubscribeToTaskRequest { id, tenant }),
        Place::Pushes(task_id) if operation == Operation::SetPush => {
            let mut config = match version {
                Version::V10 => {
                    let config = decode::request::<v1::TaskPushNotificationConfig, _>(what, text)?;
                    TaskPushNotificationConfig { task_id, ..config }
                }
                Version::V03 => decode::object::<old::SetPush>(what, text)?.of_task(task_id)?,
            };
            config.tenant = tenant.or(config.tenant);
            Request::SetPush(config)
        }
        Place::Pushes(task_id) => Request::ListPush(query.list_push(task_id, tenant)?),
        Place::Push(task_id, id) if operation == Operation::DeletePush => {
            Request::DeletePush(DeleteTaskPushNotificationConfigRequest { task_id, id, tenant })
        }
        Place::Push(task_id, id) => Request::GetPush(GetTaskPushNotificationConfigRequest { task_id, id, tenant }),
        Place::ExtendedCard => Request::ExtendedCard(GetExtendedAgentCardRequest { tenant }),
    })
}

fn respond(version: Version, python: bool, content_type: &'static str, mut answer: Answer) -> Result<Response, Error> {
    if python {
        python::write(&mut answer);
    }
    let mut out = Vec::with_capacity(512);
    match (version, answer) {
        (_, Answer::Updates(updates)) => return sse::respond(version, Form::Rest { python }, updates),
        (_, Answer::Deleted) => out.extend_from_slice(b"{}"),
        (_, Answer::Card(card)) => out = cards::body(*card, version)?,
        (Version::V10, Answer::Sent(sent)) => json(&mut out, &sent)?,
        (Version::V10, Answer::Task(task)) => json(&mut out, &task)?,
        (Version::V10, Answer::Tasks(tasks)) => json(&mut out, &tasks)?,
        (Version::V10, Answer::Push(config)) => json(&mut out, &config)?,
        (Version::V10, Answer::Pushes(configs)) => json(&mut out, &configs)?,
        (Version::V03, Answer::Sent(sent)) => json(&mut out, &old::SendMessageResponse::from(sent))?,
        (Version::V03, Answer::Task(task)) => json(&mut out, &old::Task::from(task))?,
        (Version::V03, Answer::Tasks(tasks)) => json(&mut out, &old::ListTasksResponse::from(tasks))?,
        (Version::V03, Answer::Push(config)) => json(&mut out, &old::TaskPushNotificationConfig::from(config))?,
        (Version::V03, Answer::Pushes(configs)) => {
            json(&mut out, &old::ListTaskPushNotificationConfigResponse::from(configs))?;
        }
    }
    Ok(reply(StatusCode::OK, content_type, out))
}

//! JSON-RPC 2.0: everything is posted to one address, and whatever comes of it is answered with 200.
//!
//! There are no notifications: every method has an answer, so a request without an id is answered as one with null. There
//! are no batches either, in no version of the protocol.

use std::borrow::Cow;

use axum::response::Response;
use http::StatusCode;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::error::Category;
use serde_json::value::RawValue;

use super::fault::Fault;
use super::sse::Form;
use super::{Incoming, JSON, body, cards, decode, json, reply, sse};
use crate::proto::v1;
use crate::{Answer, Binding, Error, Handler, Kind, Operation, Request, Version, v03};

/// What may be done at the address.
pub(super) const ALLOWED: &str = "POST, OPTIONS";

pub(super) async fn serve<H: Handler>(handler: H, incoming: Incoming) -> Response {
    let version = incoming.call.version;
    let caller = match handler.admit(&incoming.call).await {
        Ok(caller) => caller,
        Err(denied) => return Fault::denied(version, denied).respond(Binding::JsonRpc, version),
    };
    let activated = incoming.activated(&handler);
    let Incoming { call, unspoken, body, .. } = incoming;
    if let Err(error) = body::Types::of(&call.headers, version).check() {
        return failed(version, "null", error);
    }
    let bytes = match body::read(&call.headers, body, handler.max_request()).await {
        Ok(bytes) => bytes,
        Err(fault) => return fault.respond(Binding::JsonRpc, version),
    };
    let envelope = match body::text(&bytes).and_then(Envelope::read) {
        Ok(envelope) => envelope,
        Err(error) => return failed(version, "null", error),
    };
    let id = envelope.id().unwrap_or("null").to_owned();
    let operation = envelope.operation(version);
    let streams = operation.as_ref().is_ok_and(|operation| operation.streams());
    let request = match unspoken {
        Some(error) => Err(error),
        None => operation.and_then(|operation| envelope.request(version, operation)),
    };
    drop(bytes);
    let answer = match request {
        Ok(request) => handler.handle(caller, request).await,
        Err(error) => Err(error),
    };
    let mut response = match answer {
        Ok(answer) => respond(version, id, answer),
        // Clients of 0.3 look for events alone where they wait for some; those of 1.x look for this first.
        Err(error) if streams && version == Version::V03 => sse::failed(version, Form::JsonRpc { id }, error),
        Err(error) => failed(version, &id, error),
    };
    response.headers_mut().extend(activated);
    response
}

fn failed(version: Version, id: &str, error: Error) -> Response {
    reply(StatusCode::OK, JSON, Fault::new(version, error).rpc(version, id))
}

fn respond(version: Version, id: String, answer: Answer) -> Response {
    if let Answer::Updates(updates) = answer {
        let form = Form::JsonRpc { id: id.clone() };
        return match sse::respond(version, form, updates) {
            Ok(response) => response,
            Err(error) if version == Version::V03 => sse::failed(version, Form::JsonRpc { id }, error),
            Err(error) => failed(version, &id, error),
        };
    }
    let mut out = Vec::with_capacity(512);
    out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    out.extend_from_slice(id.as_bytes());
    out.extend_from_slice(br#","result":"#);
    match result(&mut out, version, answer) {
        Ok(()) => {
            out.push(b'}');
            reply(StatusCode::OK, JSON, out)
        }
        Err(error) => failed(version, &id, error),
    }
}

fn result(out: &mut Vec<u8>, version: Version, answer: Answer) -> Result<(), Error> {
    match (version, answer) {
        (_, Answer::Deleted | Answer::Updates(_)) => json(out, &()),
        (_, Answer::Card(card)) => json(out, &cards::value(*card, version)?),
        // 0.3 cannot ask for it.
        (_, Answer::Tasks(tasks)) => json(out, &tasks),
        (Version::V10, Answer::Sent(sent)) => json(out, &sent),
        (Version::V10, Answer::Task(task)) => json(out, &task),
        (Version::V10, Answer::Push(config)) => json(out, &config),
        (Version::V10, Answer::Pushes(configs)) => json(out, &configs),
        (Version::V03, Answer::Sent(sent)) => json(out, &v03::StreamResult::from(sent)),
        (Version::V03, Answer::Task(task)) => json(out, &v03::Task::from(task)),
        (Version::V03, Answer::Push(config)) => json(out, &v03::TaskPushNotificationConfig::from(config)),
        (Version::V03, Answer::Pushes(pushes)) => {
            let configs = pushes.configs.into_iter().map(v03::TaskPushNotificationConfig::from);
            json(out, &configs.collect::<Vec<_>>())
        }
    }
}

/// A request as far as JSON-RPC knows it. Nothing is taken out before the method is known.
#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    jsonrpc: Option<&'a RawValue>,
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<&'a RawValue>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

impl<'a> Envelope<'a> {
    fn read(text: &'a str) -> Result<Self, Error> {
        let invalid = |message: &str| Error::new(Kind::InvalidRequest, message);
        let first = text.trim_start().chars().next();
        let envelope = serde_json::from_str(text).map_err(|error| match (error.classify(), first) {
            (Category::Data, Some('[')) => invalid("batches are not supported: send one request at a time"),
            (Category::Data, Some('{')) => invalid("a member is given more than once"),
            (Category::Data, _) => invalid("the request must be an object"),
            _ => decode::malformed(&error),
        });
        // A list of four would do for an object.
        if first == Some('[') && envelope.is_ok() {
            return Err(invalid("batches are not supported: send one request at a time"));
        }
        envelope
    }

    /// As it was written, if it is one.
    fn id(&self) -> Option<&'a str> {
        let id = self.id?.get();
        let whole = |number: &str| !number.contains(['.', 'e', 'E']);
        match id.as_bytes().first()? {
            b'"' => Some(id),
            b'-' | b'0'..=b'9' if whole(id) => Some(id),
            _ => None,
        }
    }

    /// What is asked for, if it is a request at all.
    fn operation(&self, version: Version) -> Result<Operation, Error> {
        let invalid = |message: &str| Err(Error::new(Kind::InvalidRequest, message));
        if self.jsonrpc.map(RawValue::get) != Some(r#""2.0""#) {
            return invalid("jsonrpc must be \"2.0\"");
        }
        if self.id.is_some() && self.id().is_none() {
            return invalid("id must be a text, a whole number or null");
        }
        let method = self.method.map(|method| serde_json::from_str::<Cow<'_, str>>(method.get()));
        let Some(Ok(method)) = method else { return invalid("method must be a text") };
        operation(version, &method)
    }

    fn request(&self, version: Version, operation: Operation) -> Result<Request, Error> {
        let request = request(version, operation, self.params.map_or("{}", RawValue::get))?;
        request.check()?;
        Ok(request)
    }
}

fn operation(version: Version, method: &str) -> Result<Operation, Error> {
    let known = |version: Version| {
        let name = |operation: &Operation| match version {
            Version::V10 => Some(operation.as_str()),
            Version::V03 => operation.as_v03(),
        };
        Operation::ALL.into_iter().find(|operation| name(operation) == Some(method))
    };
    let (other, header) = match version {
        Version::V10 => (Version::V03, "without A2A-Version, or with 0.3 in it"),
        Version::V03 => (Version::V10, "with 1.0 in A2A-Version"),
    };
    known(version).ok_or_else(|| {
        let shown: String = method.chars().take(60).collect();
        let hint = match known(other) {
            Some(_) => format!(": it is one of {}, to be sent {header}", other.as_str()),
            None => String::new(),
        };
        Error::new(Kind::MethodNotFound, format!("there is no method '{shown}' in {}{hint}", version.as_str()))
    })
}

fn request(version: Version, operation: Operation, params: &str) -> Result<Request, Error> {
    match version {
        Version::V10 => request_of_10(operation, params),
        Version::V03 => request_of_03(operation, params),
    }
}

fn request_of_10(operation: Operation, params: &str) -> Result<Request, Error> {
    fn read<P: DeserializeOwned + TryInto<T, Error = Error>, T>(params: &str) -> Result<T, Error> {
        decode::request::<P, T>("params", params)
    }
    Ok(match operation {
        Operation::Send => Request::Send(read::<v1::SendMessageRequest, _>(params)?),
        Operation::Stream => Request::Stream(read::<v1::SendMessageRequest, _>(params)?),
        Operation::Get => Request::Get(read::<v1::GetTaskRequest, _>(params)?),
        Operation::List => Request::List(read::<v1::ListTasksRequest, _>(params)?),
        Operation::Cancel => Request::Cancel(read::<v1::CancelTaskRequest, _>(params)?),
        Operation::Subscribe => Request::Subscribe(read::<v1::SubscribeToTaskRequest, _>(params)?),
        Operation::SetPush => Request::SetPush(read::<v1::TaskPushNotificationConfig, _>(params)?),
        Operation::GetPush => Request::GetPush(read::<v1::GetTaskPushNotificationConfigRequest, _>(params)?),
        Operation::ListPush => Request::ListPush(read::<v1::ListTaskPushNotificationConfigsRequest, _>(params)?),
        Operation::DeletePush => Request::DeletePush(read::<v1::DeleteTaskPushNotificationConfigRequest, _>(params)?),
        Operation::ExtendedCard => Request::ExtendedCard(read::<v1::GetExtendedAgentCardRequest, _>(params)?),
    })
}

fn request_of_03(operation: Operation, params: &str) -> Result<Request, Error> {
    fn read<T: DeserializeOwned>(params: &str) -> Result<T, Error> {
        decode::object("params", params)
    }
    Ok(match operation {
        Operation::Send => Request::Send(read::<v03::MessageSendParams>(params)?.try_into()?),
        Operation::Stream => Request::Stream(read::<v03::MessageSendParams>(params)?.try_into()?),
        Operation::Get => Request::Get(read::<v03::TaskQueryParams>(params)?.into()),
        Operation::Cancel => Request::Cancel(read::<v03::TaskIdParams>(params)?.into()),
        Operation::Subscribe => Request::Subscribe(read::<v03::TaskIdParams>(params)?.into()),
        Operation::SetPush => Request::SetPush(read::<v03::TaskPushNotificationConfig>(params)?.into()),
        Operation::GetPush => Request::GetPush(read::<v03::PushParams>(params)?.into()),
        Operation::ListPush => Request::ListPush(read::<v03::TaskIdParams>(params)?.into()),
        Operation::DeletePush => Request::DeletePush(read::<v03::PushParams>(params)?.try_into()?),
        // No method of 0.3 leads to the first of them.
        Operation::List | Operation::ExtendedCard => request_of_10(Operation::ExtendedCard, params)?,
    })
}

//! JSON-RPC, in both versions: one address, the method in the body, events of a stream that are answers themselves.

use std::sync::atomic::{AtomicU64, Ordering};

use ::http::Method;
use ::http::header::ACCEPT;
use futures::StreamExt;
use futures::stream;
use reqwest::Response;
use serde::Serialize;
use serde_json::{Value, json};

use super::answers::{self, Form};
use super::card::{self, Place};
use super::events::Events;
use super::http::{EVENTS, JSON, Wire, is_denial, is_events};
use super::{Error, News, is_last};
use crate::types::StreamResponse;
use crate::{Answer, Kind, Operation, Request, Version, v03};

/// The number of a request, to know its answer by.
static NEXT: AtomicU64 = AtomicU64::new(1);

pub(super) async fn call(wire: &Wire, place: &Place, request: Request) -> Result<Answer, Error> {
    let operation = request.operation();
    let (mut response, id) = ask(wire, place, request, JSON).await?;
    let result = result(wire, &mut response, id).await?;
    answer(place.version, operation, result).map_err(|why| wire.invalid(why))
}

pub(super) async fn listen(wire: &Wire, place: &Place, request: Request) -> Result<News, Error> {
    let (mut response, id) = ask(wire, place, request, EVENTS).await?;
    let version = place.version;
    if !is_events(response.headers()) || !response.status().is_success() {
        // An error, or an agent that has nothing more to tell.
        let result = result(wire, &mut response, id).await?;
        let (update, _) = update(version, result).map_err(|why| wire.invalid(why))?;
        return Ok(stream::iter([Ok(update)]).boxed());
    }
    let events = Events::new(response, wire);
    let begun = Some((events, wire.clone()));
    let news = stream::unfold(begun, move |state| async move {
        let (mut events, wire) = state?;
        let next = async {
            let Some(event) = events.next(&wire).await? else { return Ok(None) };
            let answer = serde_json::from_slice(event.data).map_err(|error| wire.invalid(error))?;
            update(version, settled(&wire, answer, id)?).map(Some).map_err(|why| wire.invalid(why))
        };
        match next.await {
            Ok(None) => None,
            Ok(Some((update, true))) => Some((Ok(update), None)),
            Ok(Some((update, false))) => Some((Ok(update), Some((events, wire)))),
            Err(error) => Some((Err(error), None)),
        }
    });
    Ok(news.boxed())
}

async fn ask(wire: &Wire, place: &Place, request: Request, accept: &str) -> Result<(Response, u64), Error> {
    let operation = request.operation();
    let (method, params) = match place.version {
        Version::V10 => (Some(operation.as_str()), params_v10(request)),
        Version::V03 => (operation.as_v03(), params_v03(request)),
    };
    let method = method.ok_or(Error::Unsupported("ask for that"))?;
    let id = NEXT.fetch_add(1, Ordering::Relaxed);
    let mut body = json!({"jsonrpc": "2.0", "id": id, "method": method});
    let params = params.map_err(|error| wire.invalid(error))?;
    if !params.is_null() {
        body["params"] = params;
    }
    let request = wire.request(Method::POST, place.url.clone(), place.version).header(ACCEPT, accept).json(&body);
    Ok((wire.send(request).await?, id))
}

fn params_v10(request: Request) -> serde_json::Result<Value> {
    match request {
        Request::Send(request) | Request::Stream(request) => serde_json::to_value(request),
        Request::Get(request) => serde_json::to_value(request),
        Request::List(request) => serde_json::to_value(request),
        Request::Cancel(request) => serde_json::to_value(request),
        Request::Subscribe(request) => serde_json::to_value(request),
        Request::SetPush(config) => serde_json::to_value(config),
        Request::GetPush(request) => serde_json::to_value(request),
        Request::ListPush(request) => serde_json::to_value(request),
        Request::DeletePush(request) => serde_json::to_value(request),
        Request::ExtendedCard(request) => serde_json::to_value(request),
    }
}

fn params_v03(request: Request) -> serde_json::Result<Value> {
    fn said<T: Serialize>(params: T) -> serde_json::Result<Value> {
        serde_json::to_value(params)
    }
    match request {
        Request::Send(request) | Request::Stream(request) => said(v03::MessageSendParams::from(request)),
        Request::Get(request) => said(v03::TaskQueryParams::from(request)),
        Request::Cancel(request) => said(v03::TaskIdParams::from(request)),
        Request::Subscribe(request) => said(v03::TaskIdParams::from(request)),
        Request::SetPush(config) => said(v03::TaskPushNotificationConfig::from(config)),
        Request::GetPush(request) => said(v03::PushParams::from(request)),
        Request::ListPush(request) => said(v03::TaskIdParams::from(request)),
        Request::DeletePush(request) => said(v03::PushParams::from(request)),
        Request::List(_) | Request::ExtendedCard(_) => Ok(Value::Null),
    }
}

/// The result of an answer that comes at once.
async fn result(wire: &Wire, response: &mut Response, id: u64) -> Result<Value, Error> {
    let status = response.status();
    if status.is_success() {
        let body = wire.body(response, wire.limits().answer).await?;
        let answer = serde_json::from_slice(&body).map_err(|error| wire.invalid(error))?;
        return settled(wire, answer, id);
    }
    // Errors of the protocol come with any status.
    let body = wire.fault(response).await;
    let refused = wire.refused(status, response.headers(), &body);
    if is_denial(status) {
        return Err(refused);
    }
    let answer = serde_json::from_slice::<Value>(&body).ok().filter(|answer| answer["error"]["code"].is_i64());
    match answer.map(|answer| settled(wire, answer, id)) {
        Some(Err(error @ Error::Agent(_))) => Err(error),
        _ => Err(refused),
    }
}

/// What an answer says: its result, or its error.
fn settled(wire: &Wire, mut answer: Value, id: u64) -> Result<Value, Error> {
    if let Some(error) = answer.get("error").filter(|error| !error.is_null()) {
        return Err(wire.cleaned(fault(error)));
    }
    let is_ours = answer.get("id").is_some_and(|said| said.as_u64() == Some(id) || *said == json!(id.to_string()));
    if !is_ours {
        return Err(wire.invalid("it answers another request"));
    }
    // Some leave out a result that says nothing, such as that of deleting.
    Ok(answer.get_mut("result").map(Value::take).unwrap_or_default())
}

/// An error as the agent tells it.
fn fault(error: &Value) -> crate::Error {
    let code = error["code"].as_i64().and_then(|code| i32::try_from(code).ok());
    let kind = code.and_then(Kind::of_code);
    let message = error["message"].as_str().unwrap_or_default();
    let details = error["data"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut told = super::rest::detailed(details, kind.unwrap_or(Kind::Internal), message);
    if kind.is_none() {
        told.message = format!("{} (code {})", told.message, error["code"]);
    }
    told
}

fn answer(version: Version, operation: Operation, result: Value) -> Result<Answer, String> {
    match operation {
        Operation::DeletePush => Ok(Answer::Deleted),
        _ if result.is_null() => Err("it has neither a result nor an error".to_owned()),
        Operation::ExtendedCard => Ok(Answer::Card(Box::new(card::parse(result.to_string().as_bytes())?))),
        _ => answers::read(Form::of_json_rpc(version), operation, result),
    }
}

/// Reads an event, and whether it is the last.
fn update(version: Version, result: Value) -> Result<(StreamResponse, bool), String> {
    let (update, is_final) = answers::read_update(Form::of_json_rpc(version), result)?;
    let is_end = is_final || is_last(&update);
    Ok((update, is_end))
}

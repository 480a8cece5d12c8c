//! HTTP+JSON, in both versions: the path says what is asked for, the status how it went.

use ::http::header::ACCEPT;
use ::http::{HeaderMap, Method, StatusCode};
use futures::StreamExt;
use futures::stream;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::{Response, Url};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::answers::{self, Form};
use super::card::{self, Place};
use super::events::Events;
use super::http::{EVENTS, JSON, Wire, is_denial, is_events};
use super::{Error, News, is_last};
use crate::types::{SendMessageRequest, StreamResponse, TaskPushNotificationConfig};
use crate::v03::rest::{self, python};
use crate::{Answer, Kind, Operation, Request, Version};

/// What may stand in a segment of a path as it is.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// A request, as HTTP says it.
struct Said {
    method: Method,
    path: String,
    query: Vec<(&'static str, String)>,
    body: Option<Value>,
}

pub(super) async fn call(wire: &Wire, place: &Place, request: Request) -> Result<Answer, Error> {
    let operation = request.operation();
    let said = say(place.version, request).map_err(|error| wire.invalid(error))?;
    let mut response = ask(wire, place, said, JSON).await?;
    let body = body(wire, &mut response).await?;
    answer(place.version, operation, &body).map_err(|why| wire.invalid(why))
}

pub(super) async fn listen(wire: &Wire, place: &Place, request: Request) -> Result<News, Error> {
    let version = place.version;
    let said = say(version, request).map_err(|error| wire.invalid(error))?;
    let mut response = ask(wire, place, said, EVENTS).await?;
    if !is_events(response.headers()) || !response.status().is_success() {
        let body = body(wire, &mut response).await?;
        let (update, _) = read(&body).and_then(|value| update(version, value)).map_err(|why| wire.invalid(why))?;
        return Ok(stream::iter([Ok(update)]).boxed());
    }
    let events = Events::new(response, wire);
    let begun = Some((events, wire.clone()));
    let news = stream::unfold(begun, move |state| async move {
        let (mut events, wire) = state?;
        let next = async {
            let Some(event) = events.next(&wire).await? else { return Ok(None) };
            let value: Value = read(event.data).map_err(|why| wire.invalid(why))?;
            if event.name == "error" || value.get("error").is_some() {
                let fault = fault(&value, StatusCode::INTERNAL_SERVER_ERROR);
                let fault = fault.unwrap_or_else(|| crate::Error::new(Kind::Internal, value.to_string()));
                return Err(wire.cleaned(fault));
            }
            update(version, value).map(Some).map_err(|why| wire.invalid(why))
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

async fn ask(wire: &Wire, place: &Place, said: Said, accept: &str) -> Result<Response, Error> {
    let url = locate(place, &said)?;
    let request = |method: Method| {
        let request = wire.request(method, url.clone(), place.version).header(ACCEPT, accept);
        match &said.body {
            Some(body) => request.json(body),
            None => request,
        }
    };
    let response = wire.send(request(said.method.clone())).await?;
    // The words and the definition of the protocol disagree on how to subscribe.
    if response.status() == StatusCode::METHOD_NOT_ALLOWED && said.path.ends_with(":subscribe") {
        let other = if said.method == Method::POST { Method::GET } else { Method::POST };
        return wire.send(request(other)).await;
    }
    Ok(response)
}

fn locate(place: &Place, said: &Said) -> Result<Url, Error> {
    let mut url = place.url.clone();
    let base = url.path().trim_end_matches('/');
    let tenant = place.tenant.as_deref().map(|tenant| format!("/{}", plain(tenant))).unwrap_or_default();
    let path = format!("{base}{tenant}{}", said.path);
    url.set_path(&path);
    if !said.query.is_empty() {
        url.query_pairs_mut().extend_pairs(&said.query);
    }
    Ok(url)
}

fn plain(text: &str) -> String {
    utf8_percent_encode(text, PLAIN).to_string()
}

fn say(version: Version, request: Request) -> serde_json::Result<Said> {
    let v = if version == Version::V03 { "/v1" } else { "" };
    let task = |id: &str, rest: &str| format!("{v}/tasks/{}{rest}", plain(id));
    let configs = |id: &str| task(id, "/pushNotificationConfigs");
    let config = |task: &str, id: &str| format!("{}/{}", configs(task), plain(id));
    let get = |path: String| Said { method: Method::GET, path, query: Vec::new(), body: None };
    let post = |path: String, body: Value| Said { method: Method::POST, path, query: Vec::new(), body: Some(body) };
    let number = |name, number: Option<i32>| number.map(|number| (name, number.to_string()));
    Ok(match request {
        Request::Send(request) => post(format!("{v}/message:send"), message(version, request)?),
        Request::Stream(request) => post(format!("{v}/message:stream"), message(version, request)?),
        Request::Get(request) => {
            let query = number("historyLength", request.history_length).into_iter().collect();
            Said { query, ..get(task(&request.id, "")) }
        }
        Request::List(request) => {
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
            Said { query: query.into_iter().flatten().collect(), ..get(format!("{v}/tasks")) }
        }
        Request::Cancel(request) => {
            let body = match version {
                Version::V10 => request.metadata.map_or_else(|| json!({}), |metadata| json!({"metadata": metadata})),
                Version::V03 => json!({"name": format!("tasks/{}", request.id)}),
            };
            post(task(&request.id, ":cancel"), body)
        }
        Request::Subscribe(request) => {
            let path = task(&request.id, ":subscribe");
            // As the official clients of the two versions do.
            let method = if version == Version::V10 { Method::POST } else { Method::GET };
            Said { method, ..get(path) }
        }
        Request::SetPush(config) => post(configs(&config.task_id), push(version, config)?),
        Request::GetPush(request) => get(config(&request.task_id, &request.id)),
        Request::ListPush(request) => {
            let token = request.page_token.map(|token| ("pageToken", token));
            let query = number("pageSize", request.page_size).into_iter().chain(token).collect();
            Said { query, ..get(configs(&request.task_id)) }
        }
        Request::DeletePush(request) => Said { method: Method::DELETE, ..get(config(&request.task_id, &request.id)) },
        Request::ExtendedCard(_) if version == Version::V03 => get("/v1/card".to_owned()),
        Request::ExtendedCard(_) => get("/extendedAgentCard".to_owned()),
    })
}

fn message(version: Version, mut request: SendMessageRequest) -> serde_json::Result<Value> {
    request.tenant = None;
    match version {
        Version::V10 => serde_json::to_value(request),
        Version::V03 => {
            // Most agents of 0.3 are made of what can read nothing else.
            python::write_message(&mut request.message);
            serde_json::to_value(rest::SendMessageRequest::from(request))
        }
    }
}

fn push(version: Version, config: TaskPushNotificationConfig) -> serde_json::Result<Value> {
    match version {
        Version::V10 => serde_json::to_value(TaskPushNotificationConfig { tenant: None, ..config }),
        Version::V03 => serde_json::to_value(rest::CreateTaskPushNotificationConfigRequest::from(config)),
    }
}

/// The body of an answer that comes at once, if it is a success.
async fn body(wire: &Wire, response: &mut Response) -> Result<Vec<u8>, Error> {
    let status = response.status();
    if status.is_success() {
        return wire.body(response, wire.limits().answer).await;
    }
    let body = wire.fault(response).await;
    Err(refused(wire, status, response.headers(), &body))
}

fn refused(wire: &Wire, status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Error {
    let fault = serde_json::from_slice(body).ok().and_then(|value| fault(&value, status));
    match fault.filter(|_| !is_denial(status)) {
        Some(fault) => wire.cleaned(fault),
        None => wire.refused(status, headers, body),
    }
}

/// An error as the agent tells it: a status of `google.rpc` in 1.x, a code and words in 0.3. Who is not let in is told so
/// in words of HTTP.
fn fault(value: &Value, status: StatusCode) -> Option<crate::Error> {
    let error = value.get("error").filter(|error| error.is_object()).unwrap_or(value);
    let message = error["message"].as_str()?;
    if let Some(details) = error["details"].as_array()
        && let Some(kind) = details.iter().find_map(reason)
    {
        return Some(detailed(details, kind, message));
    }
    let code = error["code"].as_i64().and_then(|code| i32::try_from(code).ok());
    let kind = code.and_then(Kind::of_code).or(match status {
        // What the first agents of either version told by the status alone.
        StatusCode::NOT_FOUND => Some(Kind::TaskNotFound),
        StatusCode::CONFLICT => Some(Kind::TaskNotCancelable),
        StatusCode::UNSUPPORTED_MEDIA_TYPE => Some(Kind::ContentTypeNotSupported),
        StatusCode::NOT_IMPLEMENTED => Some(Kind::UnsupportedOperation),
        StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY => Some(Kind::InvalidParams),
        _ => None,
    });
    Some(crate::Error::new(kind?, message))
}

fn reason(detail: &Value) -> Option<Kind> {
    Kind::of_reason(detail.get("reason")?.as_str()?)
}

/// An error with what goes along for programs.
pub(super) fn detailed(details: &[Value], kind: Kind, message: &str) -> crate::Error {
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

fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, String> {
    serde_json::from_slice(body).map_err(|error| error.to_string())
}

fn answer(version: Version, operation: Operation, body: &[u8]) -> Result<Answer, String> {
    if operation == Operation::DeletePush {
        return Ok(Answer::Deleted);
    }
    if operation == Operation::ExtendedCard {
        return Ok(Answer::Card(Box::new(card::parse(body)?)));
    }
    let value: Value = read(body)?;
    let mut answer = answers::read(Form::of_http_json(version, &value), operation, value)?;
    if version == Version::V03 {
        python::read_answer(&mut answer);
    }
    Ok(answer)
}

/// Reads an event, and whether it is the last.
fn update(version: Version, value: Value) -> Result<(StreamResponse, bool), String> {
    let (mut update, is_final) = answers::read_update(Form::of_http_json(version, &value), value)?;
    if version == Version::V03 {
        python::read_update(&mut update);
    }
    let is_end = is_final || is_last(&update);
    Ok((update, is_end))
}

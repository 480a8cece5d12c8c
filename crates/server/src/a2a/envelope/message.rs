//! The envelope itself: what must be in one that comes, and what is in those that go back.

use ::a2a::{Error, Kind, Version};
use api::executions::ExecutionDraft;
use jiff::Timestamp;
use model::Invalid;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use supervisor::Draft;

use super::fault;
use crate::{App, handlers};

const PROTOCOL: &str = "a2a";
/// Of which version answers are where nothing else was asked for.
const VERSION: &str = "0.3.0";
const EXECUTE: &str = "execute-agent";
const STATUS: &str = "status";
/// Of ids and names, in characters.
const MAX_NAME: usize = 200;

/// What is wanted.
pub(super) enum Wish {
    Execute { draft: Box<Draft>, streams: bool },
    Status,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Message {
    protocol: String,
    version: String,
    id: String,
    #[serde(rename = "type")]
    kind: String,
    #[expect(dead_code, reason = "it only has to be one")]
    timestamp: Option<Timestamp>,
    #[expect(dead_code, reason = "a request answers nothing")]
    in_response_to: Option<String>,
    context: Option<Context>,
    payload: Payload,
}

#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Context {
    pub(super) from: Option<String>,
    to: Option<String>,
    pub(super) conversation_id: Option<String>,
    message_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Payload {
    method: String,
    params: Option<Map<String, Value>>,
    #[expect(dead_code, reason = "a request has none yet")]
    result: Option<Value>,
    #[expect(dead_code, reason = "a request has none yet")]
    error: Option<Value>,
}

/// An envelope that was understood.
pub(super) struct Asked {
    pub(super) wish: Wish,
}

/// What answers have in common.
#[derive(Clone)]
pub(super) struct Envelope {
    app: App,
    agent: String,
    version: String,
    /// Of the one that is answered, where it has one.
    pub(super) id: Option<String>,
    pub(super) context: Context,
    method: Option<String>,
}

impl Envelope {
    /// Before anything is known of the request.
    pub(super) fn begin(app: &App, agent: &str) -> Self {
        let app = app.clone();
        let agent = agent.to_owned();
        let version = VERSION.to_owned();
        Self { app, agent, version, id: None, context: Context::default(), method: None }
    }

    /// What is asked for, and what answers to it have in common.
    pub(super) fn open(mut self, text: &str) -> (Self, Result<Asked, Error>) {
        let value: Value = match serde_json::from_str(text) {
            Ok(value) => value,
            Err(error) => return (self, Err(Error::new(Kind::Parse, format!("the body is not JSON: {error}")))),
        };
        // Also where the rest is wrong, the answer says to what it is one.
        self.id = value["id"].as_str().filter(|id| id.chars().count() <= MAX_NAME).map(str::to_owned);
        if !value.is_object() {
            return (self, Err(Error::new(Kind::InvalidRequest, "the body must be one JSON object")));
        }
        let message: Message = match model::json::from_value(value) {
            Ok(message) => message,
            Err(invalid) => return (self, Err(named(Kind::InvalidRequest, invalid))),
        };
        let asked = self.understand(message);
        (self, asked)
    }

    fn understand(&mut self, message: Message) -> Result<Asked, Error> {
        let wrong = |field: &str, rule: &str, what: &str| named(Kind::InvalidRequest, Invalid::one(field, rule, what));
        let Message { protocol, version, id, kind, timestamp: _, in_response_to: _, context, payload } = message;
        if protocol != PROTOCOL {
            return Err(wrong("protocol", "one_of", "must be a2a"));
        }
        Version::named(&version).and_then(|known| {
            let given = !version.is_empty();
            self.version = if given { version.clone() } else { known.as_str().to_owned() };
            if given { Ok(()) } else { Err(wrong("version", "required", "must be given, such as 0.3.0")) }
        })?;
        if id.is_empty() || id.chars().count() > MAX_NAME {
            return Err(wrong("id", "length", "must have 1 to 200 characters"));
        }
        self.context = context.unwrap_or_default();
        for (field, text) in [
            ("context.from", &self.context.from),
            ("context.conversation_id", &self.context.conversation_id),
            ("context.message_id", &self.context.message_id),
        ] {
            if text.as_ref().is_some_and(|text| text.chars().count() > MAX_NAME) {
                return Err(wrong(field, "max_length", "must have at most 200 characters"));
            }
        }
        if self.context.to.as_ref().is_some_and(|to| !to.is_empty() && *to != self.agent) {
            return Err(wrong("context.to", "same", "must be the agent whose path this is, or be left out"));
        }
        let streams = match kind.as_str() {
            "request" => false,
            "stream" => true,
            _ => return Err(wrong("type", "one_of", "must be request or stream")),
        };
        let params = payload.params.unwrap_or_default();
        let wish = match payload.method.as_str() {
            EXECUTE => Wish::Execute { draft: Box::new(draft(params)?), streams },
            STATUS if streams => return Err(Error::new(Kind::UnsupportedOperation, "status is no stream")),
            STATUS => match params.keys().next() {
                None => Wish::Status,
                Some(name) => {
                    let message = "is not known here: status takes no parameters";
                    return Err(named(Kind::InvalidParams, Invalid::one(format!("params.{name}"), "unknown", message)));
                }
            },
            _ => {
                let message = format!("there is no such method; there are {EXECUTE} and {STATUS}");
                return Err(Error::new(Kind::MethodNotFound, message));
            }
        };
        self.method = Some(payload.method);
        Ok(Asked { wish })
    }

    pub(super) fn response(&self, result: Value) -> Value {
        self.make("response", "result", result)
    }

    pub(super) fn stream(&self, result: Value) -> Value {
        self.make("stream", "result", result)
    }

    pub(super) fn error(&self, error: &Error) -> Value {
        self.make("error", "error", fault(error))
    }

    fn make(&self, kind: &str, key: &str, content: Value) -> Value {
        let clock = self.app.clock();
        let mut payload = Map::new();
        if let Some(method) = &self.method {
            payload.insert("method".to_owned(), json!(method));
        }
        payload.insert(key.to_owned(), content);
        json!({
            "protocol": PROTOCOL,
            "version": self.version,
            "id": clock.id().to_string(),
            "type": kind,
            "timestamp": clock.now().to_string(),
            "in_response_to": self.id,
            "context": {
                "from": self.agent,
                "to": self.context.from,
                "conversation_id": self.context.conversation_id,
                "message_id": self.context.message_id,
            },
            "payload": payload,
        })
    }
}

fn draft(params: Map<String, Value>) -> Result<Draft, Error> {
    if !params.contains_key("input") {
        return Err(named(Kind::InvalidParams, Invalid::one("params.input", "required", "must be given")));
    }
    let body: Result<ExecutionDraft, _> = model::json::from_value(Value::Object(params));
    let body = body.map_err(|mut invalid| {
        for violation in &mut invalid.violations {
            violation.field = format!("params.{}", violation.field);
        }
        named(Kind::InvalidParams, invalid)
    })?;
    if body.wait.is_some() {
        let message = "is not known here: an envelope is always answered at the end";
        return Err(named(Kind::InvalidParams, Invalid::one("params.wait", "unknown", message)));
    }
    Ok(handlers::executions::draft(body))
}

/// What is wrong, by its fields.
pub(super) fn named(kind: Kind, invalid: Invalid) -> Error {
    let mut error = Error::new(kind, invalid.to_string());
    error.violations = invalid.violations.into_iter().map(|violation| (violation.field, violation.message)).collect();
    error
}

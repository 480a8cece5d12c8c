//! Decodes envelopes of requests and encodes envelopes of replies.

use ::a2a::{Error, ErrorKind, Version};
use api::executions::ExecutionDraft;
use jiff::Timestamp;
use model::Invalid;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use supervisor::RunDraft;

use super::error_json;
use crate::{App, handlers};

const PROTOCOL: &str = "a2a";
/// The version of replies if the request has none.
const DEFAULT_VERSION: &str = "0.3.0";
const EXECUTE_METHOD: &str = "execute-agent";
const STATUS_METHOD: &str = "status";
/// The maximum length of ids and names, in characters.
const MAX_NAME_CHARS: usize = 200;

/// The command of an envelope.
pub(super) enum EnvelopeCommand {
    Execute { draft: Box<RunDraft>, is_streaming: bool },
    Status,
}

/// A request as received. Unknown fields are rejected.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EnvelopeMessage {
    protocol: String,
    version: String,
    id: String,
    #[serde(rename = "type")]
    kind: String,
    #[expect(dead_code, reason = "only its form is checked")]
    timestamp: Option<Timestamp>,
    #[expect(dead_code, reason = "not used in requests")]
    in_response_to: Option<String>,
    context: Option<EnvelopeContext>,
    payload: EnvelopePayload,
}

/// The sender, the recipient and the conversation of a message. All fields are optional.
#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct EnvelopeContext {
    pub(super) from: Option<String>,
    to: Option<String>,
    pub(super) conversation_id: Option<String>,
    message_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EnvelopePayload {
    method: String,
    params: Option<Map<String, Value>>,
    #[expect(dead_code, reason = "not used in requests")]
    result: Option<Value>,
    #[expect(dead_code, reason = "not used in requests")]
    error: Option<Value>,
}

/// A valid request.
pub(super) struct DecodedEnvelope {
    pub(super) command: EnvelopeCommand,
}

/// The common fields of all replies to a request.
#[derive(Clone)]
pub(super) struct ReplyEnvelope {
    app: App,
    /// The id of the agent, which is the sender of the replies.
    agent: String,
    version: String,
    /// The id of the request, if it has one.
    pub(super) id: Option<String>,
    pub(super) context: EnvelopeContext,
    method: Option<String>,
}

impl ReplyEnvelope {
    /// Returns the reply fields before the request is decoded.
    pub(super) fn new(app: &App, agent: &str) -> Self {
        let app = app.clone();
        let agent = agent.to_owned();
        let version = DEFAULT_VERSION.to_owned();
        Self { app, agent, version, id: None, context: EnvelopeContext::default(), method: None }
    }

    /// Decodes and validates a request. Returns the fields of its replies, and the request or the error to report. The
    /// reply fields contain the id of an invalid request, unless it is not a text or has more than 200 characters. They
    /// contain more of it only if [`Self::validate`] rejects the request.
    ///
    /// The error is `Parse` if `text` is not JSON, `InvalidRequest` if it is not an object or a field is missing,
    /// unknown or has a wrong type. Otherwise it is that of [`Self::validate`].
    pub(super) fn decode(mut self, text: &str) -> (Self, Result<DecodedEnvelope, Error>) {
        let value: Value = match serde_json::from_str(text) {
            Ok(value) => value,
            Err(error) => return (self, Err(Error::new(ErrorKind::Parse, format!("the body is not JSON: {error}")))),
        };
        // Errors of invalid requests also contain the id.
        self.id = value["id"].as_str().filter(|id| id.chars().count() <= MAX_NAME_CHARS).map(str::to_owned);
        if !value.is_object() {
            return (self, Err(Error::new(ErrorKind::InvalidRequest, "the body must be one JSON object")));
        }
        let message: EnvelopeMessage = match model::json::from_value(value) {
            Ok(message) => message,
            Err(invalid) => return (self, Err(validation_error(ErrorKind::InvalidRequest, invalid))),
        };
        let decoded = self.validate(message);
        (self, decoded)
    }

    /// Validates a request. Copies its version and context to the reply fields, even if a later check fails, and its
    /// method if the request is valid. The timestamp and `in_response_to` are ignored. Fails with the first violation:
    ///
    /// - `InvalidRequest`: the protocol is not `a2a`, or the version is empty. An unsupported version is
    ///   `VersionNotSupported`.
    /// - `InvalidRequest`: the id is empty, an id or the sender has more than 200 characters, or a recipient is given
    ///   that is neither empty nor this agent.
    /// - `InvalidRequest`: the type is neither `request` nor `stream`.
    /// - `MethodNotFound`: the method is unknown. `UnsupportedOperation`: `status` with the type `stream`.
    /// - `InvalidParams`: `status` has parameters, or those of `execute-agent` are invalid for [`draft`].
    fn validate(&mut self, message: EnvelopeMessage) -> Result<DecodedEnvelope, Error> {
        let invalid = |field: &str, rule: &str, message: &str| {
            validation_error(ErrorKind::InvalidRequest, Invalid::one(field, rule, message))
        };
        let EnvelopeMessage { protocol, version, id, kind, timestamp: _, in_response_to: _, context, payload } =
            message;
        if protocol != PROTOCOL {
            return Err(invalid("protocol", "one_of", "must be a2a"));
        }
        Version::parse(&version).and_then(|known| {
            let given = !version.is_empty();
            self.version = if given { version.clone() } else { known.as_str().to_owned() };
            if given { Ok(()) } else { Err(invalid("version", "required", "must be set, such as 0.3.0")) }
        })?;
        if id.is_empty() || id.chars().count() > MAX_NAME_CHARS {
            return Err(invalid("id", "length", "must have 1 to 200 characters"));
        }
        self.context = context.unwrap_or_default();
        for (field, text) in [
            ("context.from", &self.context.from),
            ("context.conversation_id", &self.context.conversation_id),
            ("context.message_id", &self.context.message_id),
        ] {
            if text.as_ref().is_some_and(|text| text.chars().count() > MAX_NAME_CHARS) {
                return Err(invalid(field, "max_length", "must have at most 200 characters"));
            }
        }
        if self.context.to.as_ref().is_some_and(|to| !to.is_empty() && *to != self.agent) {
            return Err(invalid("context.to", "same", "must be the agent of the path, or be omitted"));
        }
        let is_streaming = match kind.as_str() {
            "request" => false,
            "stream" => true,
            _ => return Err(invalid("type", "one_of", "must be request or stream")),
        };
        let params = payload.params.unwrap_or_default();
        let command = match payload.method.as_str() {
            EXECUTE_METHOD => EnvelopeCommand::Execute { draft: Box::new(draft(params)?), is_streaming },
            STATUS_METHOD if is_streaming => {
                return Err(Error::new(
                    ErrorKind::UnsupportedOperation,
                    "the status method does not support streaming",
                ));
            }
            STATUS_METHOD => match params.keys().next() {
                None => EnvelopeCommand::Status,
                Some(name) => {
                    let message = "is unknown; status has no parameters";
                    return Err(validation_error(
                        ErrorKind::InvalidParams,
                        Invalid::one(format!("params.{name}"), "unknown", message),
                    ));
                }
            },
            _ => {
                let message = format!("the method was not found; use {EXECUTE_METHOD} or {STATUS_METHOD}");
                return Err(Error::new(ErrorKind::MethodNotFound, message));
            }
        };
        self.method = Some(payload.method);
        Ok(DecodedEnvelope { command })
    }

    /// Returns a reply of type `response`.
    pub(super) fn response(&self, result: Value) -> Value {
        self.encode("response", "result", result)
    }

    /// Returns a reply of type `stream`.
    pub(super) fn stream(&self, result: Value) -> Value {
        self.encode("stream", "result", result)
    }

    /// Returns a reply of type `error`.
    pub(super) fn error(&self, error: &Error) -> Value {
        self.encode("error", "error", error_json(error))
    }

    /// Returns a reply of type `kind` with a new id and the current time. `key` is the field of the payload that
    /// contains `content`. The agent is the sender, and the sender of the request becomes the recipient. The ids of the
    /// request, its conversation and its message are repeated, or null. The method is omitted if the request is
    /// invalid.
    fn encode(&self, kind: &str, key: &str, content: Value) -> Value {
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

/// Converts the parameters of `execute-agent` to a draft. Fails with `InvalidParams` if `input` is missing, a field is
/// unknown or has a wrong type, or `wait` is set. Field names in errors start with `params.`.
fn draft(params: Map<String, Value>) -> Result<RunDraft, Error> {
    if !params.contains_key("input") {
        return Err(validation_error(
            ErrorKind::InvalidParams,
            Invalid::one("params.input", "required", "must be set"),
        ));
    }
    let body: Result<ExecutionDraft, _> = model::json::from_value(Value::Object(params));
    let body = body.map_err(|mut invalid| {
        for violation in &mut invalid.violations {
            violation.field = format!("params.{}", violation.field);
        }
        validation_error(ErrorKind::InvalidParams, invalid)
    })?;
    if body.wait.is_some() {
        let message = "is unknown; an envelope is always answered at the end of the execution";
        return Err(validation_error(ErrorKind::InvalidParams, Invalid::one("params.wait", "unknown", message)));
    }
    Ok(handlers::executions::run_draft(body))
}

/// Returns an error with the violations of the input.
pub(super) fn validation_error(kind: ErrorKind, invalid: Invalid) -> Error {
    let mut error = Error::new(kind, invalid.to_string());
    error.violations = invalid.violations.into_iter().map(|violation| (violation.field, violation.message)).collect();
    error
}

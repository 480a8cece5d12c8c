//! Error responses in the format of each provider. General errors repeat the key of the request, as some providers do.
//! Tests verify that it does not appear in logs and replies.

use std::time::Duration;

use axum::body::Body;
use axum::http::Response;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use serde_json::{Value, json};

use super::reply::{LlmFailure, RetryAfter};
use super::request::{Request, Wire};

/// Returns the error response of a failure. Returns `None` if the failure does not affect the status, or does not apply to
/// the request.
pub(super) fn error_response(request: &Request, failure: &LlmFailure) -> Option<Response<Body>> {
    let error = match failure {
        LlmFailure::Status(code) => general_error(request, *code),
        LlmFailure::RateLimited(after) => {
            let error = general_error(request, 429);
            return Some(response(error.status_and_body(request, after.seconds()), Some(after)));
        }
        LlmFailure::RejectTool(name) => tool_error(request, name)?,
        LlmFailure::RejectTemperature => temperature_error(request)?,
        _ => return None,
    };
    Some(response(error.status_and_body(request, None), None))
}

/// Returns the error that a provider sends inside a stream.
pub(super) fn stream_error(request: &Request) -> Value {
    let code = if request.wire == Wire::Anthropic { 529 } else { 503 };
    general_error(request, code).document(request, None)
}

struct ProviderError {
    code: u16,
    message: String,
    /// Additional fields of OpenAI.
    param: Option<String>,
    openai_code: Option<&'static str>,
}

impl ProviderError {
    fn new(code: u16, message: String) -> Self {
        Self { code, message, param: None, openai_code: None }
    }

    fn status_and_body(&self, request: &Request, retry: Option<u64>) -> (u16, Value) {
        let document = self.document(request, retry);
        // The OpenAI endpoint of Gemini returns errors in the format of Gemini, inside a list.
        let is_gemini_list = request.wire == Wire::OpenAi && request.path.contains("/v1beta/openai/");
        (self.code, if is_gemini_list { json!([self.gemini(retry)]) } else { document })
    }

    fn document(&self, request: &Request, retry: Option<u64>) -> Value {
        match request.wire {
            Wire::OpenAi => {
                let kind = match self.code {
                    429 => "requests",
                    500.. => "server_error",
                    _ => "invalid_request_error",
                };
                let code = self.openai_code.or(match self.code {
                    401 => Some("invalid_api_key"),
                    404 => Some("model_not_found"),
                    429 => Some("rate_limit_exceeded"),
                    _ => None,
                });
                json!({"error": {"message": self.message, "type": kind, "param": self.param, "code": code}})
            }
            Wire::Gemini => self.gemini(retry),
            Wire::Anthropic => {
                let kind = match self.code {
                    401 => "authentication_error",
                    403 => "permission_error",
                    404 => "not_found_error",
                    413 => "request_too_large",
                    429 => "rate_limit_error",
                    504 => "timeout_error",
                    529 => "overloaded_error",
                    500.. => "api_error",
                    _ => "invalid_request_error",
                };
                let error = json!({"type": kind, "message": self.message});
                json!({"type": "error", "error": error, "request_id": format!("req_{:08}", request.number)})
            }
        }
    }

    fn gemini(&self, retry: Option<u64>) -> Value {
        let status = match self.code {
            401 => "UNAUTHENTICATED",
            403 => "PERMISSION_DENIED",
            404 => "NOT_FOUND",
            429 => "RESOURCE_EXHAUSTED",
            500 => "INTERNAL",
            504 => "DEADLINE_EXCEEDED",
            501.. => "UNAVAILABLE",
            _ => "INVALID_ARGUMENT",
        };
        let mut error = json!({"code": self.code, "message": self.message, "status": status});
        if let Some(seconds) = retry {
            let kind = "type.googleapis.com/google.rpc.RetryInfo";
            error["details"] = json!([{"@type": kind, "retryDelay": format!("{seconds}s")}]);
        }
        json!({"error": error})
    }
}

fn general_error(request: &Request, code: u16) -> ProviderError {
    let key = request.api_key().unwrap_or("(none)");
    let message = match code {
        401 | 403 => format!("Incorrect API key provided: {key}. Find your key in your account."),
        404 => format!("The model `{}` does not exist or your key {key} has no access to it.", request.model),
        429 => format!("Rate limit reached for the key {key}. Please try again later."),
        529 => format!("Overloaded (key {key})"),
        500.. => format!("The server had an error while processing your request (key {key}). Sorry about that!"),
        _ => format!("The request could not be processed (key {key})."),
    };
    ProviderError::new(code, message)
}

fn tool_error(request: &Request, name: &str) -> Option<ProviderError> {
    let tools = request.offered_tools();
    let tool = tools.iter().find(|tool| tool.name == name)?;
    let group = tool.group;
    let index = tool.index;
    let message = match request.wire {
        Wire::OpenAi => {
            format!("Invalid schema for function '{name}': In context=('properties',), schema must have a 'type' key.")
        }
        // Gemini never names the tool.
        Wire::Gemini => format!(
            "* GenerateContentRequest.tools[{group}].function_declarations[{index}].parameters.properties: \
             should be non-empty for OBJECT type\n"
        ),
        Wire::Anthropic => format!(
            "tools.{index}.custom.input_schema: JSON schema is invalid. It must match JSON Schema draft 2020-12 \
             (https://json-schema.org/draft/2020-12)."
        ),
    };
    let param = Some(format!("tools[{index}].function.parameters"));
    Some(ProviderError { param, openai_code: Some("invalid_function_parameters"), ..ProviderError::new(400, message) })
}

fn temperature_error(request: &Request) -> Option<ProviderError> {
    let value = request.temperature()?;
    let message = match request.wire {
        Wire::OpenAi => format!(
            "Unsupported value: 'temperature' does not support {value} with this model. Only the default (1) value is \
             supported."
        ),
        Wire::Gemini => {
            format!("* GenerateContentRequest.generation_config.temperature: {value} is not supported by this model\n")
        }
        Wire::Anthropic => "`temperature` is deprecated for this model.".to_owned(),
    };
    let param = Some("temperature".to_owned());
    let openai_code = Some("unsupported_value");
    Some(ProviderError { param, openai_code, ..ProviderError::new(400, message) })
}

fn response((code, document): (u16, Value), after: Option<&RetryAfter>) -> Response<Body> {
    let mut response = Response::builder().status(code).header(CONTENT_TYPE, "application/json; charset=UTF-8");
    if let Some(value) = after.and_then(RetryAfter::header) {
        response = response.header(RETRY_AFTER, value);
    }
    response.body(Body::from(document.to_string())).unwrap()
}

impl RetryAfter {
    fn seconds(&self) -> Option<u64> {
        match self {
            Self::Absent => None,
            Self::Seconds(seconds) => Some(*seconds),
            Self::Date(from_now) => Some(from_now.as_secs()),
        }
    }

    fn header(&self) -> Option<String> {
        match self {
            Self::Absent => None,
            Self::Seconds(seconds) => Some(seconds.to_string()),
            Self::Date(from_now) => Some(http_date(*from_now)),
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a provider has a clock of its own")]
fn http_date(from_now: Duration) -> String {
    let at = jiff::Timestamp::now() + from_now;
    jiff::fmt::rfc2822::DateTimePrinter::new().timestamp_to_rfc9110_string(&at).unwrap()
}

//! What goes along with a status of gRPC, as `google.rpc` has it: an `ErrorInfo` with the reason, and a `BadRequest` with
//! the fields that are wrong.

use std::collections::HashMap;

use prost::Message;
use prost_types::Any;

use crate::error::DOMAIN;
use crate::{Error, Kind};

const ERROR_INFO: &str = "type.googleapis.com/google.rpc.ErrorInfo";
const BAD_REQUEST: &str = "type.googleapis.com/google.rpc.BadRequest";

#[derive(Clone, PartialEq, Message)]
pub struct Status {
    #[prost(int32, tag = "1")]
    pub code: i32,
    #[prost(string, tag = "2")]
    pub message: String,
    #[prost(message, repeated, tag = "3")]
    pub details: Vec<Any>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ErrorInfo {
    #[prost(string, tag = "1")]
    pub reason: String,
    #[prost(string, tag = "2")]
    pub domain: String,
    #[prost(map = "string, string", tag = "3")]
    pub metadata: HashMap<String, String>,
}

#[derive(Clone, PartialEq, Message)]
pub struct BadRequest {
    #[prost(message, repeated, tag = "1")]
    pub field_violations: Vec<FieldViolation>,
}

#[derive(Clone, PartialEq, Message)]
pub struct FieldViolation {
    #[prost(string, tag = "1")]
    pub field: String,
    #[prost(string, tag = "2")]
    pub description: String,
}

impl From<&Error> for Status {
    fn from(error: &Error) -> Self {
        let info = ErrorInfo {
            reason: error.kind.reason().to_owned(),
            domain: DOMAIN.to_owned(),
            metadata: error.metadata.clone().into_iter().collect(),
        };
        let mut details = vec![Any { type_url: ERROR_INFO.to_owned(), value: info.encode_to_vec() }];
        if !error.violations.is_empty() {
            let violation = |(field, description): &(String, String)| FieldViolation {
                field: field.clone(),
                description: description.clone(),
            };
            let bad = BadRequest { field_violations: error.violations.iter().map(violation).collect() };
            details.push(Any { type_url: BAD_REQUEST.to_owned(), value: bad.encode_to_vec() });
        }
        Self { code: error.kind.grpc() as i32, message: error.message.clone(), details }
    }
}

impl Status {
    /// The error that this tells of, if it is one of the protocol.
    pub fn error(&self) -> Option<Error> {
        let detail =
            |url: &str| self.details.iter().find(|detail| detail.type_url == url).map(|any| any.value.as_slice());
        let info = ErrorInfo::decode(detail(ERROR_INFO)?).ok().filter(|info| info.domain == DOMAIN)?;
        let kind = Kind::of_reason(&info.reason)?;
        let bad = detail(BAD_REQUEST).and_then(|value| BadRequest::decode(value).ok()).unwrap_or_default();
        let violations = bad.field_violations.into_iter().map(|it| (it.field, it.description)).collect();
        Some(Error { kind, message: self.message.clone(), metadata: info.metadata.into_iter().collect(), violations })
    }
}

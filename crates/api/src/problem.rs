//! The body of errors: `application/problem+json` (RFC 9457).

use std::borrow::Cow;

use model::Violation;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The prefix of the `type` of a problem. A short name follows.
pub const PROBLEM_TYPE_PREFIX: &str = "urn:adjutant:problem:";

/// The body of an error.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Problem<'a> {
    /// The kind of the problem.
    #[serde(rename = "type")]
    #[schema(examples("urn:adjutant:problem:validation"))]
    pub kind: Cow<'a, str>,
    #[schema(examples("Unprocessable Entity"))]
    pub title: Cow<'a, str>,
    #[schema(examples(422))]
    pub status: u16,
    #[schema(examples("title must not be empty"))]
    pub detail: Cow<'a, str>,
    /// The `X-Request-ID` of the response.
    #[schema(examples("req_0f3a5c7e9b1d"))]
    pub request_id: Cow<'a, str>,
    /// One entry for each violated rule.
    #[serde(default, skip_serializing_if = "<[Violation]>::is_empty")]
    #[schema(value_type = Vec<Violation>, required = false)]
    pub errors: Cow<'a, [Violation]>,
}

impl Problem<'_> {
    /// Returns the `type` without its prefix, or the whole `type` if it has another prefix.
    pub fn short_type(&self) -> &str {
        self.kind.strip_prefix(PROBLEM_TYPE_PREFIX).unwrap_or(&self.kind)
    }
}

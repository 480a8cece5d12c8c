//! Reads bodies, query strings and path segments of requests. A violation names its field; unknown input is rejected.

use std::str::FromStr;

use axum::extract::rejection::PathRejection;
use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use model::Invalid;
use model::conversation::ConversationId;
use query::Reason;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use store::page::{Cursor, DEFAULT_LIMIT, MAX_LIMIT};
use uuid::Uuid;

use crate::Problem;

/// Parses a JSON body. Fails with 415 if its content type is not JSON; a missing one is accepted. Fails with 422 if the
/// body is not UTF-8, is not JSON, is an array or does not fit `T`. `T` must reject unknown fields itself.
pub(crate) fn parse_json<T: DeserializeOwned>(parts: &Parts, body: &[u8]) -> Result<T, Problem> {
    require_json(parts)?;
    let text = std::str::from_utf8(body).map_err(|_| Invalid::one("body", "utf8", "must be valid UTF-8"))?;
    // serde would read an array as the fields of a struct, in their order.
    if text.trim_start().starts_with('[') {
        return Err(Invalid::one("body", "type", "must be a JSON object").into());
    }
    Ok(model::json::parse(text)?)
}

/// Fails with 415 if the content type is neither `application/json`, in any case, nor ends with `+json` in lower case.
/// Parameters of the type are ignored, but a header that is not ASCII fails with 415 too. A missing content type is
/// accepted.
fn require_json(parts: &Parts) -> Result<(), Problem> {
    let Some(kind) = parts.headers.get(header::CONTENT_TYPE) else { return Ok(()) };
    let kind = kind.to_str().unwrap_or_default().split(';').next().unwrap_or_default().trim();
    if kind.eq_ignore_ascii_case("application/json") || kind.ends_with("+json") {
        return Ok(());
    }
    let detail = "the body must be JSON; send Content-Type: application/json";
    Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "media-type", detail))
}

/// The query string, parsed into a struct of `api`.
pub(crate) struct QueryParams<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Sync> FromRequestParts<S> for QueryParams<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        Ok(Self(parse_query(parts.uri.query())?))
    }
}

/// A query string without parameters.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NoParameters {}

/// Parses a query string. Fails if a parameter is unknown, repeated or not of its type.
pub(crate) fn parse_query<T: DeserializeOwned>(query: Option<&str>) -> Result<T, Invalid> {
    query::parse(query.unwrap_or_default()).map_err(invalid_parameter)
}

/// Returns the limit and the cursor of a listing. A missing limit is the default one. Fails if one of them is invalid.
pub(crate) fn page_params(list: &impl api::ListParams) -> Result<(i64, Option<Cursor>), Invalid> {
    let cursor = list.cursor().map(Cursor::parse).transpose()?;
    Ok((check_limit(list.limit(), DEFAULT_LIMIT)?, cursor))
}

/// Returns the `limit`, or the default. Fails if it is not between 1 and [`MAX_LIMIT`].
pub(crate) fn check_limit(limit: Option<i64>, default: i64) -> Result<i64, Invalid> {
    match limit.unwrap_or(default) {
        limit if (1..=MAX_LIMIT).contains(&limit) => Ok(limit),
        _ => Err(Invalid::one("limit", "range", format!("must be a number between 1 and {MAX_LIMIT}"))),
    }
}

/// Returns the violation for a parameter, with the rule that it breaks: `utf8`, `characters` for NUL, `once`,
/// `unknown`, `required` or `type`.
fn invalid_parameter(error: query::Error) -> Invalid {
    let rule = match error.reason {
        Reason::NotUtf8 => "utf8",
        Reason::Nul => "characters",
        Reason::Repeated => "once",
        Reason::Unknown(_) => "unknown",
        Reason::Missing => "required",
        Reason::Invalid(_) => "type",
    };
    Invalid::one(error.parameter, rule, error.reason.to_string())
}

/// The `{id}` of a path, parsed as `T`.
pub(crate) struct IdParam<T>(pub(crate) T);

impl<T: FromPath, S: Send + Sync> FromRequestParts<S> for IdParam<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let path: Result<Path<String>, PathRejection> = Path::from_request_parts(parts, state).await;
        let Path(id) = path.map_err(|_| Invalid::one("id", "utf8", "must be valid UTF-8"))?;
        T::from_path(&id).map(Self).map_err(Problem::from)
    }
}

/// An id that can stand in a path.
pub(crate) trait FromPath: Sized {
    /// Parses the id. Fails if it is malformed.
    fn from_path(text: &str) -> Result<Self, Invalid>;
}

impl FromPath for Uuid {
    fn from_path(text: &str) -> Result<Self, Invalid> {
        Self::try_parse(text).map_err(|_| Invalid::one("id", "uuid", "must be a UUID"))
    }
}

/// The id of an agent. It is not checked: an agent with an invalid id is not found.
impl FromPath for String {
    fn from_path(text: &str) -> Result<Self, Invalid> {
        Ok(text.to_owned())
    }
}

impl FromPath for ConversationId {
    fn from_path(text: &str) -> Result<Self, Invalid> {
        Self::from_str(text).map_err(|mut invalid| {
            invalid.violations[0].field = "id".to_owned();
            invalid
        })
    }
}

#[cfg(test)]
mod tests {
    use api::tasks::ListTasks;
    use axum::http::Request;

    use super::*;

    fn first_violation(body: &str) -> (String, String) {
        let (parts, ()) = Request::new(()).into_parts();
        let error = parse_json::<model::task::TaskDraft>(&parts, body.as_bytes()).unwrap_err();
        (error.errors[0].field.clone(), error.errors[0].rule.clone())
    }

    #[test]
    fn violations_in_a_body_name_their_field() {
        // CHAT-4
        for (body, field, rule) in [
            ("", "body", "json"),
            ("{", "body", "json"),
            ("{} {}", "title", "required"),
            (r#"{"title":"a"} x"#, "body", "json"),
            ("[]", "body", "type"),
            ("{}", "title", "required"),
            (r#"{"title":1}"#, "title", "type"),
            (r#"{"title":"a","tags":["a",2]}"#, "tags[1]", "type"),
            (r#"{"title":"a","colour":"red"}"#, "colour", "unknown"),
            (r#"{"title":"a","title":"b"}"#, "body", "type"),
        ] {
            assert_eq!(first_violation(body), (field.to_owned(), rule.to_owned()), "{body}");
        }
    }

    #[test]
    fn violations_in_a_query_name_their_parameter() {
        let read = |query| parse_query::<ListTasks>(Some(query));
        assert_eq!(read("q=two+words%21&limit=5").unwrap().q.as_deref(), Some("two words!"));
        for (query, field, rule) in [
            ("x=1", "x", "unknown"),
            ("q=a&q=b", "q", "once"),
            ("q=%ff", "q", "utf8"),
            ("%ff=a", "query", "utf8"),
            ("q=%00", "q", "characters"),
            ("limit=", "limit", "type"),
        ] {
            let violation = read(query).err().unwrap().violations.remove(0);
            assert_eq!((violation.field.as_str(), violation.rule.as_str()), (field, rule), "{query}");
        }
        for (query, field) in [("limit=0", "limit"), ("limit=201", "limit"), ("cursor=x", "cursor")] {
            assert_eq!(page_params(&read(query).unwrap()).err().unwrap().violations[0].field, field, "{query}");
        }
    }
}

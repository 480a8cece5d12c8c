//! Reading requests: bodies, query strings, path segments. Whatever is wrong is named by its field; nothing is ignored.

use std::str::FromStr;

use axum::extract::rejection::PathRejection;
use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use model::Invalid;
use query::Reason;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use store::page::{Cursor, DEFAULT_LIMIT, MAX_LIMIT};
use uuid::Uuid;

use crate::Problem;

/// A JSON body as `T`. Unknown fields are `T`'s to refuse.
pub(crate) fn json<T: DeserializeOwned>(parts: &Parts, body: &[u8]) -> Result<T, Problem> {
    require_json(parts)?;
    let text = std::str::from_utf8(body).map_err(|_| Invalid::one("body", "utf8", "must be valid UTF-8"))?;
    // A list would pass for the fields of an object in their order.
    if text.trim_start().starts_with('[') {
        return Err(Invalid::one("body", "type", "must be a JSON object").into());
    }
    Ok(model::json::read(text)?)
}

fn require_json(parts: &Parts) -> Result<(), Problem> {
    let Some(kind) = parts.headers.get(header::CONTENT_TYPE) else { return Ok(()) };
    let kind = kind.to_str().unwrap_or_default().split(';').next().unwrap_or_default().trim();
    if kind.eq_ignore_ascii_case("application/json") || kind.ends_with("+json") {
        return Ok(());
    }
    let detail = "the body must be JSON; send Content-Type: application/json";
    Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "media-type", detail))
}

/// The query string, read into a struct of `api`.
pub(crate) struct Params<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Sync> FromRequestParts<S> for Params<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        Ok(Self(parameters(parts.uri.query())?))
    }
}

/// Refuses every parameter.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NoParameters {}

/// Reads a query string. Fails if a parameter is unknown, repeated or not of its type.
pub(crate) fn parameters<T: DeserializeOwned>(query: Option<&str>) -> Result<T, Invalid> {
    query::parse(query.unwrap_or_default()).map_err(refused)
}

/// Returns the limit and the cursor of a listing.
pub(crate) fn page(list: &impl api::List) -> Result<(i64, Option<Cursor>), Invalid> {
    let cursor = list.cursor().map(Cursor::parse).transpose()?;
    Ok((in_range(list.limit(), DEFAULT_LIMIT)?, cursor))
}

/// Checks a `limit`.
pub(crate) fn in_range(limit: Option<i64>, default: i64) -> Result<i64, Invalid> {
    match limit.unwrap_or(default) {
        limit if (1..=MAX_LIMIT).contains(&limit) => Ok(limit),
        _ => Err(Invalid::one("limit", "range", format!("must be a number between 1 and {MAX_LIMIT}"))),
    }
}

/// Names the parameter that was refused and the rule that it breaks.
fn refused(error: query::Error) -> Invalid {
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

/// The `{id}` of a path, as whatever kind of id it must be.
pub(crate) struct Id<T>(pub(crate) T);

impl<T: PathId, S: Send + Sync> FromRequestParts<S> for Id<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let path: Result<Path<String>, PathRejection> = Path::from_request_parts(parts, state).await;
        let Path(id) = path.map_err(|_| Invalid::one("id", "utf8", "must be valid UTF-8"))?;
        T::read(&id).map(Self).map_err(Problem::from)
    }
}

pub(crate) trait PathId: Sized {
    fn read(text: &str) -> Result<Self, Invalid>;
}

impl PathId for Uuid {
    fn read(text: &str) -> Result<Self, Invalid> {
        Self::try_parse(text).map_err(|_| Invalid::one("id", "uuid", "must be a UUID"))
    }
}

/// An agent's: one that could not exist does not.
impl PathId for String {
    fn read(text: &str) -> Result<Self, Invalid> {
        Ok(text.to_owned())
    }
}

impl PathId for model::conversation::Id {
    fn read(text: &str) -> Result<Self, Invalid> {
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

    fn refused(body: &str) -> (String, String) {
        let (parts, ()) = Request::new(()).into_parts();
        let error = json::<model::task::Draft>(&parts, body.as_bytes()).unwrap_err();
        (error.errors[0].field.clone(), error.errors[0].rule.clone())
    }

    #[test]
    fn what_is_wrong_with_a_body_is_named() {
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
            assert_eq!(refused(body), (field.to_owned(), rule.to_owned()), "{body}");
        }
    }

    #[test]
    fn what_is_wrong_with_a_query_is_named() {
        let read = |query| parameters::<ListTasks>(Some(query));
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
            assert_eq!(page(&read(query).unwrap()).err().unwrap().violations[0].field, field, "{query}");
        }
    }
}

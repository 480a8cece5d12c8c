//! Reading requests: bodies, query strings, path segments. Whatever is wrong is named by its field; nothing is ignored.

use std::str::FromStr;

use axum::extract::rejection::PathRejection;
use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use model::Invalid;
use query::Reason;
use serde::de::DeserializeOwned;
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

/// The parameters of a query string: each known, each at most once.
pub(crate) struct Query(Vec<(&'static str, String)>);

impl Query {
    pub(crate) fn read(query: Option<&str>, known: &[&'static str]) -> Result<Self, Invalid> {
        let mut params = Vec::new();
        for pair in query::pairs(query.unwrap_or_default()) {
            let (name, value) = pair.map_err(refused)?;
            let Some(name) = known.iter().find(|known| **known == name) else {
                let message = format!("is not a parameter here; known: {}", known.join(", "));
                return Err(Invalid::one(name, "unknown", message));
            };
            if params.iter().any(|(given, _)| given == name) {
                return Err(refused(query::Error { parameter: (*name).to_owned(), reason: Reason::Repeated }));
            }
            params.push((*name, value.into_owned()));
        }
        Ok(Self(params))
    }

    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(given, _)| *given == name).map(|(_, value)| value.as_str())
    }

    /// `limit` and `cursor`, which every listing has.
    pub(crate) fn page(&self) -> Result<(i64, Option<store::page::Cursor>), Invalid> {
        let max = store::page::MAX_LIMIT;
        let limit = match self.text("limit").map(str::parse) {
            None => store::page::DEFAULT_LIMIT,
            Some(Ok(limit)) if (1..=max).contains(&limit) => limit,
            Some(_) => return Err(Invalid::one("limit", "range", format!("must be a number between 1 and {max}"))),
        };
        Ok((limit, self.text("cursor").map(store::page::Cursor::parse).transpose()?))
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
        let read = |query| Query::read(Some(query), &["q", "limit", "cursor"]);
        assert_eq!(read("q=two+words%21&limit=5").unwrap().text("q"), Some("two words!"));
        for (query, field, rule) in [
            ("x=1", "x", "unknown"),
            ("q=a&q=b", "q", "once"),
            ("q=%ff", "q", "utf8"),
            ("%ff=a", "query", "utf8"),
            ("q=%00", "q", "characters"),
        ] {
            let violation = read(query).err().unwrap().violations.remove(0);
            assert_eq!((violation.field.as_str(), violation.rule.as_str()), (field, rule), "{query}");
        }
        for (query, field) in
            [("limit=0", "limit"), ("limit=201", "limit"), ("limit=", "limit"), ("cursor=x", "cursor")]
        {
            assert_eq!(read(query).unwrap().page().err().unwrap().violations[0].field, field, "{query}");
        }
    }
}

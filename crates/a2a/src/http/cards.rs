//! Cards: one that both versions read, or one of 1.x alone for those who ask for it.

use std::hash::{DefaultHasher, Hash, Hasher};

use axum::response::Response;
use chrono::{DateTime, NaiveDateTime};
use http::header::{CACHE_CONTROL, ETAG, IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED, VARY};
use http::{HeaderMap, HeaderValue, StatusCode};
use serde_json::{Map, Value};

use super::{JSON, reply};
use crate::types::AgentCard;
use crate::{Card, Error, Kind, Version, v03};

/// For so many seconds nobody needs to ask again.
const FRESH: &str = "public, max-age=60";

/// As dates are written in headers.
const DATE: &str = "%a, %d %b %Y %H:%M:%S GMT";

/// The card as an answer that may be kept and asked about.
pub(super) fn respond(card: Card, version: Version, asked: &HeaderMap) -> Result<Response, Error> {
    let body = body(card.card, version)?;
    let mut hasher = DefaultHasher::new();
    body.hash(&mut hasher);
    let tag = format!("\"{:016x}\"", hasher.finish());
    let modified = i64::try_from(card.modified).ok().and_then(|seconds| DateTime::from_timestamp(seconds, 0));

    let mut response = if known(asked, &tag, card.modified) {
        let mut response = Response::default();
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        response
    } else {
        reply(StatusCode::OK, JSON, body)
    };
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(FRESH));
    headers.insert(VARY, HeaderValue::from_static(crate::version::HEADER));
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        headers.insert(ETAG, tag);
    }
    let date = modified.and_then(|modified| HeaderValue::from_str(&modified.format(DATE).to_string()).ok());
    if let Some(date) = date {
        headers.insert(LAST_MODIFIED, date);
    }
    Ok(response)
}

/// Whether the caller has this one. The tag decides where there is one.
fn known(asked: &HeaderMap, tag: &str, modified: u64) -> bool {
    let text = |name| asked.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    if let Some(tags) = text(IF_NONE_MATCH) {
        let mut tags = tags.split(',').map(|known| known.trim().trim_start_matches("W/"));
        return tags.any(|known| known == tag || known == "*");
    }
    let since = text(IF_MODIFIED_SINCE).and_then(|date| NaiveDateTime::parse_from_str(date, DATE).ok());
    since.is_some_and(|since| u64::try_from(since.and_utc().timestamp()).is_ok_and(|since| modified <= since))
}

/// The same card gives the same text.
pub(super) fn body(card: AgentCard, version: Version) -> Result<Vec<u8>, Error> {
    let mut out = Vec::with_capacity(2048);
    super::json(&mut out, &value(card, version)?)?;
    Ok(out)
}

/// The card of 1.x, and, unless that alone is wanted or nothing speaks 0.3, what 0.3 has besides. The names of the two do
/// not clash: whoever knows one of them does not look at the other's.
pub(super) fn value(card: AgentCard, version: Version) -> Result<Value, Error> {
    let failed = |error: serde_json::Error| Error::new(Kind::Internal, format!("the card cannot be written: {error}"));
    let speaks = |version: &str| Version::named(version).is_ok_and(|version| version == Version::V03);
    let both = version == Version::V03
        && card.supported_interfaces.iter().any(|interface| speaks(&interface.protocol_version));
    let mut new = serde_json::to_value(&card).map_err(failed)?;
    if both {
        let old = serde_json::to_value(v03::AgentCard::from(card)).map_err(failed)?;
        if let (Value::Object(new), Value::Object(old)) = (&mut new, old) {
            merge(new, old);
        }
    }
    sort(&mut new);
    Ok(new)
}

/// What is only in the second comes into the first, at every depth.
fn merge(into: &mut Map<String, Value>, from: Map<String, Value>) {
    for (name, value) in from {
        match (into.get_mut(&name), value) {
            (Some(Value::Object(into)), Value::Object(from)) => merge(into, from),
            (Some(Value::Array(into)), Value::Array(from)) if into.len() == from.len() => {
                for pair in into.iter_mut().zip(from) {
                    if let (Value::Object(into), Value::Object(from)) = pair {
                        merge(into, from);
                    }
                }
            }
            (Some(_), _) => {}
            (None, value) => {
                into.insert(name, value);
            }
        }
    }
}

/// Maps have no order of their own; the members of everything else are left where they are.
fn sort(card: &mut Value) {
    for name in ["securitySchemes", "securityRequirements", "security", "signatures"] {
        if let Some(value) = card.get_mut(name) {
            value.sort_all_objects();
        }
    }
    if let Some(extensions) = card.pointer_mut("/capabilities/extensions") {
        extensions.sort_all_objects();
    }
    for skill in card.get_mut("skills").and_then(Value::as_array_mut).into_iter().flatten() {
        for name in ["securityRequirements", "security"] {
            if let Some(value) = skill.get_mut(name) {
                value.sort_all_objects();
            }
        }
    }
}

#[cfg(test)]
mod tests;

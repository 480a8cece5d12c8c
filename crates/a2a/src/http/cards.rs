//! Agent cards over HTTP. By default a card serves both versions. Clients that request 1.x get a card of 1.x only.

use std::hash::{DefaultHasher, Hash, Hasher};

use axum::response::Response;
use chrono::{DateTime, NaiveDateTime};
use http::header::{CACHE_CONTROL, ETAG, IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED, VARY};
use http::{HeaderMap, HeaderValue, StatusCode};
use serde_json::{Map, Value};

use super::{JSON, reply};
use crate::types::AgentCard;
use crate::{Error, ErrorKind, PublishedCard, Version, v03};

/// The caching policy of public cards.
const PUBLIC_CACHE_POLICY: &str = "public, max-age=60";
/// The caching policy of cards that only some callers may see.
const RESTRICTED_CACHE_POLICY: &str = "private, max-age=60";

/// The format of dates in HTTP headers.
const HTTP_DATE_FORMAT: &str = "%a, %d %b %Y %H:%M:%S GMT";

/// Returns the response with the card as `application/json`, or 304 without a body if the client has it already. Both
/// have `Cache-Control` for one minute, `Vary`, `ETag` and `Last-Modified`. The tag is a hash of the body. Fails if the
/// card cannot be encoded.
pub(super) fn respond(card: PublishedCard, version: Version, request_headers: &HeaderMap) -> Result<Response, Error> {
    let policy = if card.is_restricted { RESTRICTED_CACHE_POLICY } else { PUBLIC_CACHE_POLICY };
    let body = body(card.card, version)?;
    let mut hasher = DefaultHasher::new();
    body.hash(&mut hasher);
    let tag = format!("\"{:016x}\"", hasher.finish());
    let modified = i64::try_from(card.modified).ok().and_then(|seconds| DateTime::from_timestamp(seconds, 0));

    let mut response = if is_cached(request_headers, &tag, card.modified) {
        let mut response = Response::default();
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        response
    } else {
        reply(StatusCode::OK, JSON, body)
    };
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(policy));
    headers.insert(VARY, HeaderValue::from_static(crate::version::VERSION_HEADER));
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        headers.insert(ETAG, tag);
    }
    let date = modified.and_then(|modified| HeaderValue::from_str(&modified.format(HTTP_DATE_FORMAT).to_string()).ok());
    if let Some(date) = date {
        headers.insert(LAST_MODIFIED, date);
    }
    Ok(response)
}

/// Returns true if the client has this version of the card. `If-None-Match` takes precedence over `If-Modified-Since`.
/// A weak tag counts as its strong form, and `*` always matches. A malformed or missing date does not match.
fn is_cached(request_headers: &HeaderMap, tag: &str, modified: u64) -> bool {
    let text = |name| request_headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    if let Some(tags) = text(IF_NONE_MATCH) {
        let mut tags = tags.split(',').map(|known| known.trim().trim_start_matches("W/"));
        return tags.any(|known| known == tag || known == "*");
    }
    let since = text(IF_MODIFIED_SINCE).and_then(|date| NaiveDateTime::parse_from_str(date, HTTP_DATE_FORMAT).ok());
    since.is_some_and(|since| u64::try_from(since.and_utc().timestamp()).is_ok_and(|since| modified <= since))
}

/// Returns the card as JSON text. Equal cards give equal texts. Fails if the card cannot be encoded.
pub(super) fn body(card: AgentCard, version: Version) -> Result<Vec<u8>, Error> {
    let mut out = Vec::with_capacity(2048);
    super::json(&mut out, &value(card, version)?)?;
    Ok(out)
}

/// Returns the card as JSON, with stable order. The members of 0.3 are added unless 1.x is requested or no interface
/// supports 0.3. Members that both versions have keep the value of 1.x.
///
/// The member names of the two versions do not collide, so a client of one version ignores those of the other. Fails if
/// the card cannot be encoded.
pub(super) fn value(card: AgentCard, version: Version) -> Result<Value, Error> {
    let failed =
        |error: serde_json::Error| Error::new(ErrorKind::Internal, format!("the card cannot be encoded: {error}"));
    let is_v03 = |version: &str| Version::parse(version).is_ok_and(|version| version == Version::V03);
    let both = version == Version::V03
        && card.supported_interfaces.iter().any(|interface| is_v03(&interface.protocol_version));
    let mut card_json = serde_json::to_value(&card).map_err(failed)?;
    if both {
        let old = serde_json::to_value(v03::AgentCard::from(card)).map_err(failed)?;
        if let (Value::Object(new), Value::Object(old)) = (&mut card_json, old) {
            merge(new, old);
        }
    }
    sort(&mut card_json);
    Ok(card_json)
}

/// Adds the members of `from` that `into` does not have, recursively. Arrays of the same length are merged item by
/// item; other arrays and values of `into` stay unchanged.
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

/// Sorts the members of security schemes, requirements, signatures, extensions and the security of skills, because hash
/// maps have no stable order. Other objects keep the order of their fields.
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

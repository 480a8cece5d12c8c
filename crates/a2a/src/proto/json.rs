//! Serde functions for the fields of messages. The generated code refers to them by name.
//!
//! All forms of ProtoJSON are accepted: `null` counts as missing, numbers may be strings, enum values may be numbers
//! (except roles of 0.3). All `read_` functions fail if the value has another form.

use std::borrow::Cow;
use std::fmt;

use chrono::{DateTime, NaiveDateTime, Utc};
use prost_types::Timestamp;
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::convert::ProtoField;
use super::{v1, v03};
use crate::types;

/// Reads a value. `null` becomes the default.
pub(crate) fn read_or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    from: D,
) -> Result<T, D::Error> {
    Ok(Option::<T>::deserialize(from)?.unwrap_or_default())
}

/// Reads a 32-bit integer. `null` becomes zero.
pub(crate) fn read_number<'de, D: Deserializer<'de>>(from: D) -> Result<i32, D::Error> {
    Ok(read_optional_number(from)?.unwrap_or_default())
}

/// Reads an optional 32-bit integer, from a number, a whole float or a text with an integer. `null` becomes `None`.
/// Fails if it has another form, is out of range or has a fraction.
pub(crate) fn read_optional_number<'de, D: Deserializer<'de>>(from: D) -> Result<Option<i32>, D::Error> {
    let number = match Option::<TextOrNumber>::deserialize(from)? {
        None => return Ok(None),
        Some(TextOrNumber::Number(number)) => i32::try_from(number).ok(),
        Some(TextOrNumber::Float(number)) if number.fract() == 0.0 => i32::try_from(number as i64).ok(),
        Some(TextOrNumber::Float(_)) => None,
        Some(TextOrNumber::Text(text)) => text.parse().ok(),
    };
    number.map(Some).ok_or_else(|| D::Error::custom("expected a 32-bit integer"))
}

/// Reads a time of 1.x, which must be in RFC 3339.
pub(crate) fn read_time<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Timestamp>, D::Error> {
    Ok(Option::<DateTime<Utc>>::deserialize(from)?.map(ProtoField::write))
}

/// Reads a time of 0.3, which may be any text. A missing offset means UTC. An invalid time counts as missing.
pub(crate) fn read_any_time<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Timestamp>, D::Error> {
    Ok(any_time(from)?.map(ProtoField::write))
}

/// Reads a time of 0.3 as [`read_any_time`] does. Fails only if the value is neither text nor `null`.
pub(crate) fn any_time<'de, D: Deserializer<'de>>(from: D) -> Result<Option<DateTime<Utc>>, D::Error> {
    let Some(text) = Option::<String>::deserialize(from)? else { return Ok(None) };
    let with_offset = DateTime::parse_from_rfc3339(&text).map(|time| time.to_utc());
    Ok(with_offset.or_else(|_| text.parse::<NaiveDateTime>().map(|time| time.and_utc())).ok())
}

/// Writes a time in RFC 3339. A missing or invalid time becomes `null`.
pub(crate) fn write_time<S: Serializer>(time: &Option<Timestamp>, to: S) -> Result<S::Ok, S::Error> {
    time.and_then(|time| DateTime::<Utc>::read(time).ok()).serialize(to)
}

/// Reads a role by its name in protobuf or its number. `null` and an empty text are unspecified. Fails for any other
/// text, number or type.
pub(crate) fn read_role<'de, D: Deserializer<'de>>(from: D) -> Result<i32, D::Error> {
    let role = match Option::<TextOrNumber>::deserialize(from)? {
        None => Some(v1::Role::Unspecified),
        Some(TextOrNumber::Text(text)) if text.is_empty() => Some(v1::Role::Unspecified),
        Some(TextOrNumber::Text(text)) => v1::Role::from_str_name(&text),
        Some(TextOrNumber::Number(number)) => {
            i32::try_from(number).ok().and_then(|number| v1::Role::try_from(number).ok())
        }
        Some(TextOrNumber::Float(_)) => None,
    };
    role.map(i32::from).ok_or_else(|| D::Error::custom("expected `ROLE_USER` or `ROLE_AGENT`"))
}

/// Reads a role of 0.3 by its name in protobuf, or as `user` or `agent`. `null` and an empty text are unspecified.
/// Fails for any other text. Numbers are not accepted.
pub(crate) fn read_any_role<'de, D: Deserializer<'de>>(from: D) -> Result<i32, D::Error> {
    let role = match Option::<Cow<'_, str>>::deserialize(from)?.as_deref() {
        None | Some("") => Some(v03::Role::Unspecified),
        Some("user") => Some(v03::Role::User),
        Some("agent") => Some(v03::Role::Agent),
        Some(name) => v03::Role::from_str_name(name),
    };
    role.map(i32::from).ok_or_else(|| D::Error::custom("expected `ROLE_USER` or `ROLE_AGENT`"))
}

/// Reads a task state by its name or number, as [`parse_state`] does. `null` is unspecified. Fails if the state is
/// unknown or a float.
pub(crate) fn read_state<'de, D: Deserializer<'de>>(from: D) -> Result<i32, D::Error> {
    let state = match Option::<TextOrNumber>::deserialize(from)? {
        None => Some(types::TaskState::Unspecified),
        Some(TextOrNumber::Text(text)) => parse_state(&text),
        Some(TextOrNumber::Number(number)) => parse_state(&number.to_string()),
        Some(TextOrNumber::Float(_)) => None,
    };
    state.map(ProtoField::write).ok_or_else(|| D::Error::custom("expected a state such as `TASK_STATE_WORKING`"))
}

/// Returns the state with this name or number. The name is that of either package or of JSON-RPC in 0.3, the number is
/// from 0 to 8. An empty text and `unknown` are unspecified. Returns `None` for unknown states.
pub(crate) fn parse_state(name: &str) -> Option<types::TaskState> {
    let number: i32 = match name {
        "" | "unknown" => 0,
        "submitted" => 1,
        "working" => 2,
        "completed" => 3,
        "failed" => 4,
        "canceled" | "TASK_STATE_CANCELLED" => 5,
        "input-required" => 6,
        "rejected" => 7,
        "auth-required" => 8,
        _ => v1::TaskState::from_str_name(name).map(i32::from).or_else(|| name.parse().ok())?,
    };
    types::TaskState::read(number).ok()
}

/// Writes the name of a role. An unknown number is written as unspecified.
pub(crate) fn write_role<S: Serializer>(role: &i32, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(v03::Role::try_from(*role).unwrap_or_default().as_str_name())
}

/// Writes the name of a task state. An unknown number is written as unspecified.
pub(crate) fn write_state<S: Serializer>(state: &i32, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(v03::TaskState::try_from(*state).unwrap_or_default().as_str_name())
}

/// Returns whether a number is zero and therefore omitted.
pub(crate) fn is_zero(number: &i32) -> bool {
    *number == 0
}

/// A string or a number. ProtoJSON allows either for numbers and enum values.
enum TextOrNumber<'de> {
    Number(i64),
    Float(f64),
    Text(Cow<'de, str>),
}

impl<'de> Deserialize<'de> for TextOrNumber<'de> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(TextOrNumberVisitor)
    }
}

struct TextOrNumberVisitor;

impl<'de> Visitor<'de> for TextOrNumberVisitor {
    type Value = TextOrNumber<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string or a number")
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<TextOrNumber<'de>, E> {
        Ok(TextOrNumber::Number(number))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<TextOrNumber<'de>, E> {
        Ok(i64::try_from(number).map_or(TextOrNumber::Float(number as f64), TextOrNumber::Number))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<TextOrNumber<'de>, E> {
        Ok(TextOrNumber::Float(number))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<TextOrNumber<'de>, E> {
        Ok(TextOrNumber::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<TextOrNumber<'de>, E> {
        Ok(TextOrNumber::Text(Cow::Borrowed(text)))
    }
}

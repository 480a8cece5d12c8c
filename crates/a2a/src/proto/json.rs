//! The JSON form of the fields of messages: the functions that the generated attributes of serde name.
//!
//! ProtoJSON is read in full: `null` is a member that is not given, numbers may be texts, enumerations may be numbers.

use std::borrow::Cow;
use std::fmt;

use chrono::{DateTime, NaiveDateTime, Utc};
use prost_types::Timestamp;
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::convert::Field;
use super::{v1, v03};
use crate::types;

pub(crate) fn read_or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    from: D,
) -> Result<T, D::Error> {
    Ok(Option::<T>::deserialize(from)?.unwrap_or_default())
}

pub(crate) fn read_number<'de, D: Deserializer<'de>>(from: D) -> Result<i32, D::Error> {
    Ok(read_optional_number(from)?.unwrap_or_default())
}

pub(crate) fn read_optional_number<'de, D: Deserializer<'de>>(from: D) -> Result<Option<i32>, D::Error> {
    let number = match Option::<Word>::deserialize(from)? {
        None => return Ok(None),
        Some(Word::Number(number)) => i32::try_from(number).ok(),
        Some(Word::Float(number)) if number.fract() == 0.0 => i32::try_from(number as i64).ok(),
        Some(Word::Float(_)) => None,
        Some(Word::Text(text)) => text.parse().ok(),
    };
    number.map(Some).ok_or_else(|| D::Error::custom("expected a whole number of 32 bits"))
}

/// A time of 1.x is one of RFC 3339.
pub(crate) fn read_time<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Timestamp>, D::Error> {
    Ok(Option::<DateTime<Utc>>::deserialize(from)?.map(Field::write))
}

/// A time of 0.3 is any text. Some write no offset and mean UTC; an unreadable one counts as not given.
pub(crate) fn read_any_time<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Timestamp>, D::Error> {
    Ok(any_time(from)?.map(Field::write))
}

pub(crate) fn any_time<'de, D: Deserializer<'de>>(from: D) -> Result<Option<DateTime<Utc>>, D::Error> {
    let Some(text) = Option::<String>::deserialize(from)? else { return Ok(None) };
    let with_offset = DateTime::parse_from_rfc3339(&text).map(|time| time.to_utc());
    Ok(with_offset.or_else(|_| text.parse::<NaiveDateTime>().map(|time| time.and_utc())).ok())
}

pub(crate) fn write_time<S: Serializer>(time: &Option<Timestamp>, to: S) -> Result<S::Ok, S::Error> {
    time.and_then(|time| DateTime::<Utc>::read(time).ok()).serialize(to)
}

pub(crate) fn read_role<'de, D: Deserializer<'de>>(from: D) -> Result<i32, D::Error> {
    let role = match Option::<Word>::deserialize(from)? {
        None => Some(v1::Role::Unspecified),
        Some(Word::Text(text)) if text.is_empty() => Some(v1::Role::Unspecified),
        Some(Word::Text(text)) => v1::Role::from_str_name(&text),
        Some(Word::Number(number)) => i32::try_from(number).ok().and_then(|number| v1::Role::try_from(number).ok()),
        Some(Word::Float(_)) => None,
    };
    role.map(i32::from).ok_or_else(|| D::Error::custom("expected `ROLE_USER` or `ROLE_AGENT`"))
}

/// Reads a role of 0.3, which may be in the words of JSON-RPC.
pub(crate) fn read_any_role<'de, D: Deserializer<'de>>(from: D) -> Result<i32, D::Error> {
    let role = match Option::<Cow<'_, str>>::deserialize(from)?.as_deref() {
        None | Some("") => Some(v03::Role::Unspecified),
        Some("user") => Some(v03::Role::User),
        Some("agent") => Some(v03::Role::Agent),
        Some(name) => v03::Role::from_str_name(name),
    };
    role.map(i32::from).ok_or_else(|| D::Error::custom("expected `ROLE_USER` or `ROLE_AGENT`"))
}

pub(crate) fn read_state<'de, D: Deserializer<'de>>(from: D) -> Result<i32, D::Error> {
    let state = match Option::<Word>::deserialize(from)? {
        None => Some(types::TaskState::Unspecified),
        Some(Word::Text(text)) => state_named(&text),
        Some(Word::Number(number)) => state_named(&number.to_string()),
        Some(Word::Float(_)) => None,
    };
    state.map(Field::write).ok_or_else(|| D::Error::custom("expected a state such as `TASK_STATE_WORKING`"))
}

/// Returns the state of this name in either package, of this number, or of this name in JSON-RPC of 0.3.
pub(crate) fn state_named(name: &str) -> Option<types::TaskState> {
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

pub(crate) fn write_role<S: Serializer>(role: &i32, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(v03::Role::try_from(*role).unwrap_or_default().as_str_name())
}

pub(crate) fn write_state<S: Serializer>(state: &i32, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(v03::TaskState::try_from(*state).unwrap_or_default().as_str_name())
}

pub(crate) fn is_zero(number: &i32) -> bool {
    *number == 0
}

/// A text or a number: either may stand for the other.
enum Word<'de> {
    Number(i64),
    Float(f64),
    Text(Cow<'de, str>),
}

impl<'de> Deserialize<'de> for Word<'de> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Words)
    }
}

struct Words;

impl<'de> Visitor<'de> for Words {
    type Value = Word<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a word or a number")
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Word<'de>, E> {
        Ok(Word::Number(number))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Word<'de>, E> {
        Ok(i64::try_from(number).map_or(Word::Float(number as f64), Word::Number))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Word<'de>, E> {
        Ok(Word::Float(number))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Word<'de>, E> {
        Ok(Word::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Word<'de>, E> {
        Ok(Word::Text(Cow::Borrowed(text)))
    }
}

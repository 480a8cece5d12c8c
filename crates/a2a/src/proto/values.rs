//! Free-form values and times, which JSON and protobuf write differently. A number of protobuf is a float: integers
//! beyond 2^53 lose their last digits on this way, and what is no number in JSON (`NaN`, infinity) is refused.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use prost_types::value::Kind;
use prost_types::{ListValue, Struct, Timestamp, Value};
use serde_json::{Map, Number};

use crate::Error;

/// Up to here every integer is a float too.
const EXACT: f64 = 9_007_199_254_740_992.0;
/// The years 1 to 9999, in seconds since 1970: protobuf has no others.
const SECONDS: std::ops::RangeInclusive<i64> = -62_135_596_800..=253_402_300_799;

pub fn from_json(value: serde_json::Value) -> Value {
    let kind = match value {
        serde_json::Value::Null => Kind::NullValue(0),
        serde_json::Value::Bool(value) => Kind::BoolValue(value),
        // Without arbitrary precision every number is a float, if not exactly.
        serde_json::Value::Number(number) => Kind::NumberValue(number.as_f64().unwrap_or_default()),
        serde_json::Value::String(value) => Kind::StringValue(value),
        serde_json::Value::Array(values) => {
            Kind::ListValue(ListValue { values: values.into_iter().map(from_json).collect() })
        }
        serde_json::Value::Object(fields) => Kind::StructValue(from_object(fields)),
    };
    Value { kind: Some(kind) }
}

pub fn from_object(fields: Map<String, serde_json::Value>) -> Struct {
    Struct { fields: fields.into_iter().map(|(name, value)| (name, from_json(value))).collect() }
}

pub(super) fn from_map(fields: HashMap<String, serde_json::Value>) -> Struct {
    Struct { fields: fields.into_iter().map(|(name, value)| (name, from_json(value))).collect() }
}

/// A value without a kind is `null`, as the SDKs read it.
pub fn to_json(value: Value, field: &str) -> Result<serde_json::Value, Error> {
    Ok(match value.kind {
        None | Some(Kind::NullValue(_)) => serde_json::Value::Null,
        Some(Kind::BoolValue(value)) => serde_json::Value::Bool(value),
        Some(Kind::NumberValue(value)) => serde_json::Value::Number(number(value, field)?),
        Some(Kind::StringValue(value)) => serde_json::Value::String(value),
        Some(Kind::ListValue(list)) => {
            let values = list.values.into_iter().map(|value| to_json(value, field));
            serde_json::Value::Array(values.collect::<Result<_, _>>()?)
        }
        Some(Kind::StructValue(fields)) => serde_json::Value::Object(to_object(fields, field)?),
    })
}

pub fn to_object(fields: Struct, field: &str) -> Result<Map<String, serde_json::Value>, Error> {
    fields.fields.into_iter().map(|(name, value)| Ok((name, to_json(value, field)?))).collect()
}

pub(super) fn to_map(fields: Option<Struct>, field: &str) -> Result<Option<HashMap<String, serde_json::Value>>, Error> {
    let convert = |fields: Struct| {
        let pairs = fields.fields.into_iter();
        pairs.map(|(name, value)| Ok((name, to_json(value, field)?))).collect::<Result<_, _>>()
    };
    fields.map(convert).transpose()
}

/// Whole numbers are written as such: `1`, not `1.0`.
fn number(value: f64, field: &str) -> Result<Number, Error> {
    if value.fract() == 0.0 && value.abs() < EXACT {
        #[expect(clippy::cast_possible_truncation, reason = "it is whole and small enough")]
        let whole = value as i64;
        return Ok(Number::from(whole));
    }
    Number::from_f64(value).ok_or_else(|| Error::invalid(field, "has a number that JSON does not know"))
}

/// Nothing, where protobuf knows no such year.
pub(super) fn from_time(time: DateTime<Utc>) -> Option<Timestamp> {
    let seconds = Some(time.timestamp()).filter(|seconds| SECONDS.contains(seconds))?;
    // A leap second is the end of the second before it.
    let nanos = i32::try_from(time.timestamp_subsec_nanos()).unwrap_or(i32::MAX).min(999_999_999);
    Some(Timestamp { seconds, nanos })
}

pub(super) fn to_time(time: Option<Timestamp>, field: &str) -> Result<Option<DateTime<Utc>>, Error> {
    let convert = |time: Timestamp| {
        let nanos = u32::try_from(time.nanos).ok().filter(|nanos| *nanos < 1_000_000_000)?;
        DateTime::from_timestamp(Some(time.seconds).filter(|seconds| SECONDS.contains(seconds))?, nanos)
    };
    time.map(|time| convert(time).ok_or_else(|| Error::invalid(field, "is no time"))).transpose()
}

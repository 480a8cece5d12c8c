//! Free-form values: JSON in memory and in JSON bindings, `google.protobuf.Struct` and `google.protobuf.Value` in gRPC.
//!
//! Numbers in protobuf are floats, so integers beyond 2^53 lose precision in gRPC. JSON cannot represent NaN and
//! infinity. Decoding marks values that contain them, and the conversion to the types of 1.x fails.

use bytes::{Buf, BufMut};
use prost::encoding::{self, DecodeContext, WireType, encode_key, encode_varint, encoded_len_varint};
use prost::{DecodeError, Message};
use prost_types::value::Kind;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value as Json};

/// The largest number up to which every integer is representable as a float.
const MAX_EXACT_INTEGER: f64 = 9_007_199_254_740_992.0;

/// `google.protobuf.Struct`. `has_unknown_number` is true if a decoded number is NaN or infinite.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Struct {
    pub fields: Map<String, Json>,
    #[serde(skip)]
    pub has_unknown_number: bool,
}

/// `google.protobuf.Value`. A missing kind means `null`, as in the SDKs. `has_unknown_number` is true if a decoded
/// number is NaN or infinite.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Value {
    pub json: Json,
    #[serde(skip)]
    pub has_unknown_number: bool,
}

impl From<Map<String, Json>> for Struct {
    fn from(fields: Map<String, Json>) -> Self {
        Self { fields, has_unknown_number: false }
    }
}

impl From<Json> for Value {
    fn from(json: Json) -> Self {
        Self { json, has_unknown_number: false }
    }
}

impl Message for Struct {
    fn encode_raw(&self, buf: &mut impl BufMut) {
        encode_object(&self.fields, buf);
    }

    /// Decodes entries and adds them. A later entry replaces one with the same name. NaN and infinity become `null` and
    /// set `has_unknown_number`. Fails if the bytes are not valid protobuf.
    fn merge_field(
        &mut self,
        tag: u32,
        wire_type: WireType,
        buf: &mut impl Buf,
        ctx: DecodeContext,
    ) -> Result<(), DecodeError> {
        let mut read = prost_types::Struct::default();
        read.merge_field(tag, wire_type, buf, ctx)?;
        for (name, value) in read.fields {
            self.fields.insert(name, to_json(value, &mut self.has_unknown_number));
        }
        Ok(())
    }

    fn encoded_len(&self) -> usize {
        object_len(&self.fields)
    }

    fn clear(&mut self) {
        *self = Self::default();
    }
}

impl Message for Value {
    fn encode_raw(&self, buf: &mut impl BufMut) {
        encode_value(&self.json, buf);
    }

    /// Decodes a value and replaces the current one. An unknown field leaves it unchanged. NaN and infinity become
    /// `null` and set `has_unknown_number`. Fails if the bytes are not valid protobuf.
    fn merge_field(
        &mut self,
        tag: u32,
        wire_type: WireType,
        buf: &mut impl Buf,
        ctx: DecodeContext,
    ) -> Result<(), DecodeError> {
        let mut read = prost_types::Value::default();
        read.merge_field(tag, wire_type, buf, ctx)?;
        if read.kind.is_some() {
            self.has_unknown_number = false;
            self.json = to_json(read, &mut self.has_unknown_number);
        }
        Ok(())
    }

    fn encoded_len(&self) -> usize {
        value_len(&self.json)
    }

    fn clear(&mut self) {
        *self = Self::default();
    }
}

/// Converts a value to JSON. A number that JSON cannot represent becomes `null` and sets `has_unknown_number`. The flag
/// is never cleared.
fn to_json(value: prost_types::Value, has_unknown_number: &mut bool) -> Json {
    match value.kind {
        None | Some(Kind::NullValue(_)) => Json::Null,
        Some(Kind::BoolValue(value)) => Json::Bool(value),
        Some(Kind::NumberValue(value)) => number(value).map_or_else(
            || {
                *has_unknown_number = true;
                Json::Null
            },
            Json::Number,
        ),
        Some(Kind::StringValue(value)) => Json::String(value),
        Some(Kind::ListValue(list)) => {
            list.values.into_iter().map(|value| to_json(value, has_unknown_number)).collect()
        }
        Some(Kind::StructValue(object)) => {
            object.fields.into_iter().map(|(name, value)| (name, to_json(value, has_unknown_number))).collect()
        }
    }
}

/// Returns the number as JSON. Whole numbers below 2^53 become integers: `1`, not `1.0`. Larger ones stay floats.
/// Returns `None` for NaN and infinity.
fn number(value: f64) -> Option<Number> {
    if value.fract() == 0.0 && value.abs() < MAX_EXACT_INTEGER {
        #[expect(clippy::cast_possible_truncation, reason = "the number is whole and in range")]
        let whole = value as i64;
        return Some(Number::from(whole));
    }
    Number::from_f64(value)
}

/// Encodes the content of a `google.protobuf.Value`, without its length. Numbers become floats, with a loss of
/// precision for large integers. [`value_len`] returns the number of bytes.
fn encode_value(value: &Json, buf: &mut impl BufMut) {
    match value {
        Json::Null => encoding::int32::encode(1, &0, buf),
        // Every number converts to a float, possibly with loss of precision.
        Json::Number(number) => encoding::double::encode(2, &number.as_f64().unwrap_or_default(), buf),
        Json::String(text) => encoding::string::encode(3, text, buf),
        Json::Bool(flag) => encoding::bool::encode(4, flag, buf),
        Json::Object(fields) => {
            begin(5, object_len(fields), buf);
            encode_object(fields, buf);
        }
        Json::Array(items) => {
            begin(6, list_len(items), buf);
            for item in items {
                begin(1, value_len(item), buf);
                encode_value(item, buf);
            }
        }
    }
}

/// Encodes an object as a list of entries with a key and a value.
fn encode_object(fields: &Map<String, Json>, buf: &mut impl BufMut) {
    for (name, value) in fields {
        begin(1, entry_len(name, value), buf);
        encoding::string::encode(1, name, buf);
        begin(2, value_len(value), buf);
        encode_value(value, buf);
    }
}

/// Writes the key and the length of a field. Its content must follow.
fn begin(tag: u32, length: usize, buf: &mut impl BufMut) {
    encode_key(tag, WireType::LengthDelimited, buf);
    encode_varint(length as u64, buf);
}

/// Returns the number of bytes that [`encode_value`] writes.
fn value_len(value: &Json) -> usize {
    match value {
        Json::Null | Json::Bool(_) => 2,
        Json::Number(_) => 9,
        Json::String(text) => delimited(text.len()),
        Json::Object(fields) => delimited(object_len(fields)),
        Json::Array(items) => delimited(list_len(items)),
    }
}

fn object_len(fields: &Map<String, Json>) -> usize {
    fields.iter().map(|(name, value)| delimited(entry_len(name, value))).sum()
}

/// Returns the length of one entry of an object, without its key and length.
fn entry_len(name: &str, value: &Json) -> usize {
    delimited(name.len()) + delimited(value_len(value))
}

fn list_len(items: &[Json]) -> usize {
    items.iter().map(|item| delimited(value_len(item))).sum()
}

/// Returns the encoded length of a field with `length` bytes, including its key and length. All keys have one byte.
fn delimited(length: usize) -> usize {
    1 + encoded_len_varint(length as u64) + length
}

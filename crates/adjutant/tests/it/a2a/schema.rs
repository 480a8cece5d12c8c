//! The messages of both versions as tables (`schema/*.txt`). Each field has a name, a number and a type, with `*` for
//! repeated and `!` for required fields. Converts between protobuf and JSON, and validates JSON. Independent of the product,
//! so that it does not repeat an error of the product.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

/// All messages of one version.
pub(super) struct Schema {
    messages: BTreeMap<&'static str, Vec<Field>>,
    enums: BTreeMap<&'static str, BTreeMap<&'static str, i64>>,
}

struct Field {
    name: &'static str,
    number: u64,
    kind: &'static str,
    many: bool,
    required: bool,
}

pub(super) fn v1() -> &'static Schema {
    static SCHEMA: OnceLock<Schema> = OnceLock::new();
    SCHEMA.get_or_init(|| Schema::read(include_str!("schema/v1.txt")))
}

pub(super) fn v03() -> &'static Schema {
    static SCHEMA: OnceLock<Schema> = OnceLock::new();
    SCHEMA.get_or_init(|| Schema::read(include_str!("schema/v03.txt")))
}

impl Schema {
    fn read(text: &'static str) -> Self {
        let mut messages = BTreeMap::new();
        let mut enums = BTreeMap::new();
        for line in text.lines() {
            let mut words = line.split(' ');
            match words.next().unwrap() {
                "enum" => {
                    let name = words.next().unwrap();
                    let values = words.map(|word| word.split_once('=').unwrap());
                    enums.insert(name, values.map(|(name, n)| (name, n.parse().unwrap())).collect());
                }
                name => {
                    messages.insert(name, words.map(Field::read).collect());
                }
            }
        }
        Self { messages, enums }
    }

    fn fields(&self, message: &str) -> &[Field] {
        self.messages.get(message).unwrap_or_else(|| panic!("unknown message {message}"))
    }

    /// Returns the violations of the schema of this message. The list is empty if the JSON is valid.
    pub(super) fn violations(&self, message: &str, value: &Value) -> Vec<String> {
        let mut violations = Vec::new();
        self.check(message, value, message, &mut violations);
        violations
    }

    fn check(&self, kind: &str, value: &Value, at: &str, violations: &mut Vec<String>) {
        let fits = match kind {
            "string" => value.is_string(),
            "bytes" => value.as_str().is_some_and(|text| STANDARD.decode(text).is_ok()),
            "bool" => value.is_boolean(),
            "int32" => value.as_i64().is_some(),
            "Struct" => value.is_object(),
            "Value" => true,
            "Timestamp" => {
                value.as_str().is_some_and(|text| text.ends_with('Z') && text.parse::<jiff::Timestamp>().is_ok())
            }
            kind if self.enums.contains_key(kind) => {
                value.as_str().is_some_and(|name| self.enums[kind].contains_key(name))
            }
            _ => value.is_object(),
        };
        if !fits {
            violations.push(format!("{at} is no {kind}: {value}"));
        } else if let Some(fields) = self.messages.get(kind) {
            let object = value.as_object().unwrap();
            for (name, inner) in object {
                let at = format!("{at}.{name}");
                match fields.iter().find(|field| field.name == name) {
                    Some(field) => self.check_field(field, inner, &at, violations),
                    None => violations.push(format!("{at} is not known")),
                }
            }
            for field in fields.iter().filter(|field| field.required && !object.contains_key(field.name)) {
                violations.push(format!("{at}.{} is missing", field.name));
            }
        }
    }

    fn check_field(&self, field: &Field, value: &Value, at: &str, violations: &mut Vec<String>) {
        if let Some(kind) = field.map_values() {
            match value.as_object() {
                Some(map) => {
                    map.iter().for_each(|(key, value)| self.check(kind, value, &format!("{at}.{key}"), violations))
                }
                None => violations.push(format!("{at} is no map: {value}")),
            }
        } else if field.many {
            match value.as_array() {
                Some(values) => values.iter().for_each(|value| self.check(field.kind, value, at, violations)),
                None => violations.push(format!("{at} is no list: {value}")),
            }
        } else {
            self.check(field.kind, value, at, violations);
        }
    }

    pub(super) fn encode(&self, message: &str, value: &Value) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (name, value) in value.as_object().unwrap_or_else(|| panic!("{message}: {value}")) {
            let field = self.fields(message).iter().find(|field| field.name == name);
            let field = field.unwrap_or_else(|| panic!("{message} has no {name}"));
            if let Some(kind) = field.map_values() {
                for (key, value) in value.as_object().unwrap() {
                    let mut entry = Vec::new();
                    self.encode_field(&mut entry, 1, "string", &json!(key));
                    self.encode_field(&mut entry, 2, kind, value);
                    bytes_field(&mut bytes, field.number, &entry);
                }
            } else if field.many {
                value
                    .as_array()
                    .unwrap()
                    .iter()
                    .for_each(|value| self.encode_field(&mut bytes, field.number, field.kind, value));
            } else {
                self.encode_field(&mut bytes, field.number, field.kind, value);
            }
        }
        bytes
    }

    fn encode_field(&self, bytes: &mut Vec<u8>, number: u64, kind: &str, value: &Value) {
        match kind {
            "string" => bytes_field(bytes, number, value.as_str().unwrap().as_bytes()),
            "bytes" => bytes_field(bytes, number, &STANDARD.decode(value.as_str().unwrap()).unwrap()),
            "bool" => varint_field(bytes, number, u64::from(value.as_bool().unwrap())),
            "int32" => varint_field(bytes, number, value.as_i64().unwrap() as u64),
            "Struct" => bytes_field(bytes, number, &encode_struct(value)),
            "Value" => bytes_field(bytes, number, &encode_value(value)),
            "Timestamp" => bytes_field(bytes, number, &encode_time(value)),
            kind if self.enums.contains_key(kind) => {
                varint_field(bytes, number, self.enums[kind][value.as_str().unwrap()] as u64);
            }
            kind => bytes_field(bytes, number, &self.encode(kind, value)),
        }
    }

    pub(super) fn decode(&self, message: &str, bytes: &[u8]) -> Value {
        let mut object = Map::new();
        for (number, wire) in decode_fields(bytes) {
            let field = self.fields(message).iter().find(|field| field.number == number);
            let field = field.unwrap_or_else(|| panic!("{message} has no field {number}"));
            if let Some(kind) = field.map_values() {
                let parts = decode_fields(wire.bytes());
                let find = |number| parts.iter().find(|(n, _)| *n == number).map(|(_, wire)| wire);
                let key = find(1).map_or(json!(""), |wire| self.decode_field("string", wire));
                let value = find(2).map_or_else(|| json!({}), |wire| self.decode_field(kind, wire));
                let map = object.entry(field.name).or_insert_with(|| json!({}));
                map.as_object_mut().unwrap().insert(key.as_str().unwrap().to_owned(), value);
                continue;
            }
            let value = self.decode_field(field.kind, &wire);
            if field.many {
                object.entry(field.name).or_insert_with(|| json!([])).as_array_mut().unwrap().push(value);
            } else {
                object.insert(field.name.to_owned(), value);
            }
        }
        // Protobuf omits default values. Required fields have them anyway.
        for field in self.fields(message).iter().filter(|field| field.required) {
            let value = match field.kind {
                _ if field.many => json!([]),
                "string" => json!(""),
                "int32" => json!(0),
                _ => continue,
            };
            object.entry(field.name).or_insert(value);
        }
        Value::Object(object)
    }

    fn decode_field(&self, kind: &str, wire: &WireValue<'_>) -> Value {
        match kind {
            "string" => json!(std::str::from_utf8(wire.bytes()).unwrap()),
            "bytes" => json!(STANDARD.encode(wire.bytes())),
            "bool" => json!(wire.number() != 0),
            "int32" => json!(wire.number() as i64),
            "Struct" => decode_struct(wire.bytes()),
            "Value" => decode_value(wire.bytes()),
            "Timestamp" => decode_time(wire.bytes()),
            kind if self.enums.contains_key(kind) => {
                let number = wire.number() as i64;
                let found = self.enums[kind].iter().find(|(_, n)| **n == number);
                json!(found.unwrap_or_else(|| panic!("{kind} {number}")).0)
            }
            kind => self.decode(kind, wire.bytes()),
        }
    }
}

impl Field {
    fn read(word: &'static str) -> Self {
        let (name, rest) = word.split_once('=').unwrap();
        let (number, rest) = rest.split_once(':').unwrap();
        let kind = rest.trim_end_matches(['*', '!']);
        let many = rest.contains('*');
        let required = rest.contains('!');
        Self { name, number: number.parse().unwrap(), kind, many, required }
    }

    /// Returns the type of the values if the field is a map.
    fn map_values(&self) -> Option<&'static str> {
        self.kind.strip_prefix("map<string,")?.strip_suffix('>')
    }
}

/// The encoded value of a field.
enum WireValue<'a> {
    Varint(u64),
    Fixed(u64),
    Bytes(&'a [u8]),
}

impl<'a> WireValue<'a> {
    fn bytes(&self) -> &'a [u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            _ => panic!("a number where bytes are expected"),
        }
    }

    fn number(&self) -> u64 {
        match self {
            Self::Varint(number) | Self::Fixed(number) => *number,
            Self::Bytes(_) => panic!("bytes where a number is expected"),
        }
    }
}

fn decode_fields(mut bytes: &[u8]) -> Vec<(u64, WireValue<'_>)> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let key = take_varint(&mut bytes);
        let wire = match key & 7 {
            0 => WireValue::Varint(take_varint(&mut bytes)),
            1 => {
                let (number, rest) = bytes.split_at(8);
                bytes = rest;
                WireValue::Fixed(u64::from_le_bytes(number.try_into().unwrap()))
            }
            2 => {
                let length = take_varint(&mut bytes) as usize;
                let (inner, rest) = bytes.split_at(length);
                bytes = rest;
                WireValue::Bytes(inner)
            }
            other => panic!("wire type {other}"),
        };
        fields.push((key >> 3, wire));
    }
    fields
}

fn take_varint(bytes: &mut &[u8]) -> u64 {
    let mut number = 0;
    let mut shift = 0;
    loop {
        let byte = bytes[0];
        *bytes = &bytes[1..];
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return number;
        }
        shift += 7;
    }
}

fn varint(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn varint_field(bytes: &mut Vec<u8>, number: u64, value: u64) {
    varint(bytes, number << 3);
    varint(bytes, value);
}

fn bytes_field(bytes: &mut Vec<u8>, number: u64, inner: &[u8]) {
    varint(bytes, number << 3 | 2);
    varint(bytes, inner.len() as u64);
    bytes.extend_from_slice(inner);
}

fn encode_struct(value: &Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (key, value) in value.as_object().unwrap() {
        let mut entry = Vec::new();
        bytes_field(&mut entry, 1, key.as_bytes());
        bytes_field(&mut entry, 2, &encode_value(value));
        bytes_field(&mut bytes, 1, &entry);
    }
    bytes
}

fn encode_value(value: &Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    match value {
        Value::Null => varint_field(&mut bytes, 1, 0),
        Value::Number(number) => {
            varint(&mut bytes, 2 << 3 | 1);
            bytes.extend_from_slice(&number.as_f64().unwrap().to_le_bytes());
        }
        Value::String(text) => bytes_field(&mut bytes, 3, text.as_bytes()),
        Value::Bool(is) => varint_field(&mut bytes, 4, u64::from(*is)),
        Value::Object(_) => bytes_field(&mut bytes, 5, &encode_struct(value)),
        Value::Array(values) => {
            let mut list = Vec::new();
            values.iter().for_each(|value| bytes_field(&mut list, 1, &encode_value(value)));
            bytes_field(&mut bytes, 6, &list);
        }
    }
    bytes
}

fn decode_struct(bytes: &[u8]) -> Value {
    let mut object = Map::new();
    for (_, entry) in decode_fields(bytes) {
        let parts = decode_fields(entry.bytes());
        let find = |number| parts.iter().find(|(n, _)| *n == number).map(|(_, wire)| wire.bytes());
        let key = String::from_utf8(find(1).unwrap_or_default().to_vec()).unwrap();
        object.insert(key, decode_value(find(2).unwrap_or_default()));
    }
    Value::Object(object)
}

fn decode_value(bytes: &[u8]) -> Value {
    let fields = decode_fields(bytes);
    let Some((number, wire)) = fields.last() else { return Value::Null };
    match number {
        1 => Value::Null,
        2 => json_number(f64::from_bits(wire.number())),
        3 => json!(std::str::from_utf8(wire.bytes()).unwrap()),
        4 => json!(wire.number() != 0),
        5 => decode_struct(wire.bytes()),
        6 => Value::Array(decode_fields(wire.bytes()).iter().map(|(_, wire)| decode_value(wire.bytes())).collect()),
        other => panic!("a Value has no field {other}"),
    }
}

/// Returns a JSON number without a fraction if it is whole: 42, not 42.0.
fn json_number(number: f64) -> Value {
    if number.fract() == 0.0 && number.abs() < 1e15 { json!(number as i64) } else { json!(number) }
}

fn encode_time(value: &Value) -> Vec<u8> {
    let time: jiff::Timestamp = value.as_str().unwrap().parse().unwrap();
    let mut bytes = Vec::new();
    varint_field(&mut bytes, 1, time.as_second() as u64);
    varint_field(&mut bytes, 2, time.subsec_nanosecond() as u64);
    bytes
}

fn decode_time(bytes: &[u8]) -> Value {
    let fields = decode_fields(bytes);
    let find = |number| fields.iter().find(|(n, _)| *n == number).map_or(0, |(_, wire)| wire.number() as i64);
    json!(jiff::Timestamp::new(find(1), find(2) as i32).unwrap().to_string())
}

#[test]
fn protobuf_round_trips_and_violations_are_found() {
    let task = json!({
        "id": "a", "contextId": "c", "metadata": {"x": [1, null, true, {"y": "z"}, -2.5]},
        "status": {"state": "TASK_STATE_WORKING", "timestamp": "2026-01-02T03:04:05.678Z"},
        "artifacts": [{"artifactId": "1", "parts": [{"raw": "AAEC", "filename": "f"}, {"data": 42}]}],
    });
    let bytes = v1().encode("Task", &task);
    assert_eq!(v1().decode("Task", &bytes), task);
    assert_eq!(v1().violations("Task", &task), Vec::<String>::new());
    let wrong = json!({"id": 1, "status": {"state": "working"}, "kind": "task"});
    assert_eq!(
        v1().violations("Task", &wrong),
        ["Task.id is no string: 1", "Task.status.state is no TaskState: \"working\"", "Task.kind is not known",]
    );
    assert_eq!(v1().violations("Task", &json!({"id": "a"})), ["Task.status is missing"]);
}

//! JSON from outside as one of our types. A value of the wrong shape is named by its field, in words of JSON rather than
//! of Rust. Every wrong field is reported, not only the first.

use serde::de::value::Error as Stop;
use serde::de::{DeserializeOwned, Error, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_path_to_error::{Path, Segment};

use crate::Invalid;
use crate::invalid::Violation;

/// More violations than this are not worth reading.
const MAX_VIOLATIONS: usize = 100;

/// Reads one JSON value with nothing behind it.
pub fn read<T: DeserializeOwned>(text: &str) -> Result<T, Invalid> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let value = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        // Read again only to find the other mistakes. Some are of the text alone, such as a field that is given twice.
        let others = serde_json::from_str(text).ok().map(|value| read_partly::<T>(value).1);
        match others.filter(|violations| !violations.is_empty()) {
            Some(violations) => Invalid { violations },
            None => Invalid { violations: vec![shape(&error)] },
        }
    })?;
    reader.end().map_err(|error| Invalid::one("body", "json", format!("must be one JSON value: {error}")))?;
    Ok(value)
}

/// Reads a value that was parsed before.
pub fn from_value<T: DeserializeOwned>(value: Value) -> Result<T, Invalid> {
    match read_partly(value) {
        (Some(read), violations) if violations.is_empty() => Ok(read),
        (_, violations) => Err(Invalid { violations }),
    }
}

/// Reads a value without the fields that have the wrong shape, and returns a violation for each of those. Returns no `T`
/// if a required field is missing or wrong. A list counts as one field: only its first wrong entry is reported.
pub fn read_partly<T: DeserializeOwned>(mut value: Value) -> (Option<T>, Vec<Violation>) {
    let mut violations = Vec::new();
    loop {
        let error = match serde_path_to_error::deserialize(&value) {
            Ok(read) => return (Some(read), violations),
            Err(error) => error,
        };
        let violation = shape(&error);
        // A required field that was removed for its type is missing now.
        if !violations.iter().any(|known: &Violation| known.field == violation.field) {
            violations.push(violation);
        }
        if violations.len() == MAX_VIOLATIONS || !remove(&mut value, error.path()) {
            return (None, violations);
        }
    }
}

/// Removes the field at `path`, or the list around it. Returns false where there is none.
fn remove(value: &mut Value, path: &Path) -> bool {
    let keys = path.iter().map_while(|segment| match segment {
        Segment::Map { key } => Some(key.as_str()),
        Segment::Seq { .. } | Segment::Enum { .. } | Segment::Unknown => None,
    });
    let keys: Vec<_> = keys.collect();
    let Some((last, outer)) = keys.split_last() else { return false };
    let parent = outer.iter().try_fold(value, |value, key| value.get_mut(*key));
    parent.and_then(Value::as_object_mut).is_some_and(|fields| fields.shift_remove(*last).is_some())
}

/// Deserializes a field of a patch: `null` differs from absent, because only a present value gets here.
pub(crate) fn present<'de, T: Deserialize<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

/// Returns the names of the fields that a struct is read from.
pub fn fields<T: DeserializeOwned>() -> &'static [&'static str] {
    struct Fields<'a>(&'a mut &'static [&'static str]);

    impl<'de> Deserializer<'de> for Fields<'_> {
        type Error = Stop;

        fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Stop> {
            Err(Stop::custom("not a struct"))
        }

        fn deserialize_struct<V: Visitor<'de>>(
            self,
            _: &'static str,
            fields: &'static [&'static str],
            _: V,
        ) -> Result<V::Value, Stop> {
            *self.0 = fields;
            Err(Stop::custom("the names are known"))
        }

        serde::forward_to_deserialize_any! {
            bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
            newtype_struct seq tuple tuple_struct map enum identifier ignored_any
        }
    }

    let mut fields: &'static [&'static str] = &[];
    // Stops at the names on purpose.
    let _ = T::deserialize(Fields(&mut fields));
    fields
}

fn shape(error: &serde_path_to_error::Error<serde_json::Error>) -> Violation {
    let path = error.path().to_string();
    let inner = error.inner();
    let message = inner.to_string();
    let message = message.split(" at line ").next().unwrap_or_default();
    let named = message.split('`').nth(1).unwrap_or_default();
    let within = |field: &str| if path == "." { field.to_owned() } else { format!("{path}.{field}") };
    let violation = |field: String, rule: &str, message: String| Violation { field, rule: rule.to_owned(), message };
    if !inner.is_data() {
        return violation("body".to_owned(), "json", format!("must be valid JSON: {inner}"));
    }
    if message.starts_with("missing field") {
        return violation(within(named), "required", "must be given".to_owned());
    }
    if message.starts_with("unknown field") {
        let known = message.split_once("expected ").map_or("no fields", |(_, known)| known).replace('`', "");
        let field = path.rsplit_once('.').map_or(named.to_owned(), |(outer, _)| format!("{outer}.{named}"));
        return violation(field, "unknown", format!("is not known here; known: {known}"));
    }
    let field = if path == "." { "body".to_owned() } else { path };
    violation(field, "type", format!("has the wrong type or form: {}", in_json(message)))
}

/// Rust's names of types in words of JSON.
fn in_json(message: &str) -> String {
    let Some((found, wanted)) = message.split_once(", expected ") else { return message.to_owned() };
    let wanted = match wanted {
        "u64" | "i64" | "f64" => "a number",
        _ if wanted.starts_with("struct ") => "an object",
        other => other,
    };
    format!("{found}, expected {wanted}")
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, Default, Deserialize, PartialEq)]
    #[serde(deny_unknown_fields, default)]
    struct Outer {
        count: u32,
        inner: Inner,
        list: Vec<Inner>,
        name: Option<String>,
    }

    #[derive(Debug, Default, Deserialize, PartialEq)]
    #[serde(deny_unknown_fields)]
    struct Inner {
        must: bool,
        may: Option<u32>,
    }

    fn wrong(violations: &[Violation]) -> Vec<String> {
        violations.iter().map(|violation| format!("{} {}", violation.field, violation.rule)).collect()
    }

    #[test]
    fn every_field_of_the_wrong_shape_is_named() {
        let value = json!({
            "count": "many", "inner": {"must": 1, "mai": 2}, "list": [{"must": true}, {"must": 5}], "nmae": "x", "name": "y",
        });
        let expected = ["count type", "inner.must type", "inner.mai unknown", "list[1].must type", "nmae unknown"];
        let (rest, violations) = read_partly::<Outer>(value.clone());
        assert_eq!(wrong(&violations), expected);
        assert_eq!(rest, Some(Outer { name: Some("y".to_owned()), ..Outer::default() }), "the rest is read");
        assert_eq!(read_partly::<Inner>(json!({"may": 1})).0, None);
        assert_eq!(wrong(&read::<Outer>(&value.to_string()).unwrap_err().violations), expected);
        assert_eq!(wrong(&read::<Outer>(r#"{"count": 1, "count": 2}"#).unwrap_err().violations), ["body type"]);
        assert_eq!(wrong(&read::<Outer>("{").unwrap_err().violations), ["body json"]);
    }

    #[test]
    fn the_names_of_fields_are_those_of_the_struct() {
        assert_eq!(fields::<Outer>(), ["count", "inner", "list", "name"]);
        assert!(fields::<u32>().is_empty());
    }
}

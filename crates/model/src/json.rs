//! Deserializes JSON input. Errors name the field and use the terms of JSON, not of Rust. All malformed fields are
//! reported, not only the first.

use serde::de::value::Error as Stop;
use serde::de::{DeserializeOwned, Error, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_path_to_error::{Path, Segment};

use crate::Invalid;
use crate::invalid::Violation;

/// The maximum number of reported violations.
const MAX_VIOLATIONS: usize = 100;

/// Deserializes a JSON text. Fails with all violations of the type, at most 100, or with one if the text is not JSON.
/// Also fails if other text than white space follows the value.
pub fn parse<T: DeserializeOwned>(text: &str) -> Result<T, Invalid> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let value = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        // The second pass finds the remaining violations. Some errors exist only in the text, such as a duplicate
        // field.
        let violations = serde_json::from_str(text).ok().map(|value| from_value_lenient::<T>(value).1);
        match violations.filter(|violations| !violations.is_empty()) {
            Some(violations) => Invalid { violations },
            None => Invalid { violations: vec![violation_from(&error)] },
        }
    })?;
    reader.end().map_err(|error| Invalid::one("body", "json", format!("must be one JSON value: {error}")))?;
    Ok(value)
}

/// Deserializes a JSON value. Fails with all violations, at most 100.
pub fn from_value<T: DeserializeOwned>(value: Value) -> Result<T, Invalid> {
    match from_value_lenient(value) {
        (Some(read), violations) if violations.is_empty() => Ok(read),
        (_, violations) => Err(Invalid { violations }),
    }
}

/// Deserializes a value without its malformed and unknown fields, and returns a violation for each of them.
///
/// Returns no `T` if a required field is missing or malformed, if the value as a whole has the wrong type, or after 100
/// violations. A list counts as one field: only its first malformed entry is reported, and the whole list is left out.
/// A field is reported once.
pub fn from_value_lenient<T: DeserializeOwned>(mut value: Value) -> (Option<T>, Vec<Violation>) {
    let mut violations = Vec::new();
    loop {
        let error = match serde_path_to_error::deserialize(&value) {
            Ok(read) => return (Some(read), violations),
            Err(error) => error,
        };
        let violation = violation_from(&error);
        // A required field that was removed because of its type is now missing.
        if !violations.iter().any(|known: &Violation| known.field == violation.field) {
            violations.push(violation);
        }
        if violations.len() == MAX_VIOLATIONS || !remove(&mut value, error.path()) {
            return (None, violations);
        }
    }
}

/// Removes the field at `path`. The path ends at its first list or enum, which is removed as a whole. Returns `false`
/// without a change if the path has no field or the field does not exist.
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

/// Deserializes a field of a patch so that `null` differs from an absent field.
pub(crate) fn present<'de, T: Deserialize<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

/// Returns the field names that a struct is deserialized from. Empty for other types, and for structs with flattened
/// fields.
pub fn field_names<T: DeserializeOwned>() -> &'static [&'static str] {
    struct FieldNames<'a>(&'a mut &'static [&'static str]);

    impl<'de> Deserializer<'de> for FieldNames<'_> {
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
    // Always fails, after the names are recorded.
    let _ = T::deserialize(FieldNames(&mut fields));
    fields
}

/// Converts an error of serde into a violation. The rule is `json` for malformed JSON, `required` for a missing field,
/// `unknown` for an unknown field, otherwise `type`. The field is `body` if the error concerns the whole value.
fn violation_from(error: &serde_path_to_error::Error<serde_json::Error>) -> Violation {
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
        return violation(field, "unknown", format!("is not a known field; expected {known}"));
    }
    let field = if path == "." { "body".to_owned() } else { path };
    violation(field, "type", format!("has the wrong type or form: {}", in_json_terms(message)))
}

/// Replaces the expected type `u64`, `i64`, `f64` or a struct with its JSON term. Other messages are not changed.
fn in_json_terms(message: &str) -> String {
    let Some((found, expected)) = message.split_once(", expected ") else { return message.to_owned() };
    let expected = match expected {
        "u64" | "i64" | "f64" => "a number",
        _ if expected.starts_with("struct ") => "an object",
        other => other,
    };
    format!("{found}, expected {expected}")
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, Default, Deserialize, PartialEq)]
    #[serde(deny_unknown_fields, default)]
    struct OuterSample {
        count: u32,
        inner: InnerSample,
        list: Vec<InnerSample>,
        name: Option<String>,
    }

    #[derive(Debug, Default, Deserialize, PartialEq)]
    #[serde(deny_unknown_fields)]
    struct InnerSample {
        must: bool,
        may: Option<u32>,
    }

    fn fields_and_rules(violations: &[Violation]) -> Vec<String> {
        violations.iter().map(|violation| format!("{} {}", violation.field, violation.rule)).collect()
    }

    #[test]
    fn all_malformed_fields_are_reported() {
        // SUP-1
        let value = json!({
            "count": "many", "inner": {"must": 1, "mai": 2}, "list": [{"must": true}, {"must": 5}], "nmae": "x", "name": "y",
        });
        let expected = ["count type", "inner.must type", "inner.mai unknown", "list[1].must type", "nmae unknown"];
        let (rest, violations) = from_value_lenient::<OuterSample>(value.clone());
        assert_eq!(fields_and_rules(&violations), expected);
        assert_eq!(
            rest,
            Some(OuterSample { name: Some("y".to_owned()), ..OuterSample::default() }),
            "the other fields are read"
        );
        assert_eq!(from_value_lenient::<InnerSample>(json!({"may": 1})).0, None);
        assert_eq!(fields_and_rules(&parse::<OuterSample>(&value.to_string()).unwrap_err().violations), expected);
        assert_eq!(
            fields_and_rules(&parse::<OuterSample>(r#"{"count": 1, "count": 2}"#).unwrap_err().violations),
            ["body type"]
        );
        assert_eq!(fields_and_rules(&parse::<OuterSample>("{").unwrap_err().violations), ["body json"]);
    }

    #[test]
    fn field_names_are_those_of_the_struct() {
        assert_eq!(field_names::<OuterSample>(), ["count", "inner", "list", "name"]);
        assert!(field_names::<u32>().is_empty());
    }
}

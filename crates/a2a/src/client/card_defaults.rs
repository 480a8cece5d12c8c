//! Adds required fields that ProtoJSON omits because they are empty. The official type of a card requires them.

use serde_json::{Map, Value, json};

type JsonObject = Map<String, Value>;

/// Applies `fill` to the object in a field. A missing field or another type is left unchanged.
fn in_object(fields: &mut JsonObject, name: &str, fill: impl FnOnce(&mut JsonObject)) {
    if let Some(Value::Object(value)) = fields.get_mut(name) {
        fill(value);
    }
}

/// Applies `fill` to every object of the array in a field. A missing field or another type is left unchanged.
fn in_each(fields: &mut JsonObject, name: &str, fill: impl Fn(&mut JsonObject)) {
    if let Some(Value::Array(items)) = fields.get_mut(name) {
        items.iter_mut().filter_map(Value::as_object_mut).for_each(fill);
    }
}

/// Sets a field to `empty` if it is missing or `null`.
fn set_default(fields: &mut JsonObject, name: &str, empty: Value) {
    let is_null = fields.get(name).is_none_or(Value::is_null);
    if is_null {
        fields.insert(name.to_owned(), empty);
    }
}

/// Adds the missing required fields of a card of 1.x, with empty values: `name`, `version` and `capabilities`. Also
/// adds the required texts in the objects of `supportedInterfaces`, `skills` and `provider`, and the `tags` of skills.
/// `null` counts as missing. A missing `description` or list of the card itself is not added.
pub(super) fn fill_card(fields: &mut JsonObject) {
    for name in ["name", "version"] {
        set_default(fields, name, json!(""));
    }
    set_default(fields, "capabilities", json!({}));
    in_each(fields, "supportedInterfaces", |fields| {
        for name in ["url", "protocolBinding", "protocolVersion"] {
            set_default(fields, name, json!(""));
        }
    });
    in_each(fields, "skills", |fields| {
        for name in ["id", "name", "description"] {
            set_default(fields, name, json!(""));
        }
        set_default(fields, "tags", json!([]));
    });
    in_object(fields, "provider", |fields| {
        set_default(fields, "organization", json!(""));
        set_default(fields, "url", json!(""));
    });
}

//! ProtoJSON leaves out what is empty, even where something must be. The official type of a card wants it to be there: this
//! puts it back before it reads.

use serde_json::{Map, Value, json};

type Fields = Map<String, Value>;

fn inside(fields: &mut Fields, name: &str, fill: impl FnOnce(&mut Fields)) {
    if let Some(Value::Object(value)) = fields.get_mut(name) {
        fill(value);
    }
}

fn each(fields: &mut Fields, name: &str, fill: impl Fn(&mut Fields)) {
    if let Some(Value::Array(items)) = fields.get_mut(name) {
        items.iter_mut().filter_map(Value::as_object_mut).for_each(fill);
    }
}

fn absent(fields: &mut Fields, name: &str, empty: Value) {
    let is_null = fields.get(name).is_none_or(Value::is_null);
    if is_null {
        fields.insert(name.to_owned(), empty);
    }
}

pub(super) fn card(fields: &mut Fields) {
    for name in ["name", "version"] {
        absent(fields, name, json!(""));
    }
    absent(fields, "capabilities", json!({}));
    each(fields, "supportedInterfaces", |fields| {
        for name in ["url", "protocolBinding", "protocolVersion"] {
            absent(fields, name, json!(""));
        }
    });
    each(fields, "skills", |fields| {
        for name in ["id", "name", "description"] {
            absent(fields, name, json!(""));
        }
        absent(fields, "tags", json!([]));
    });
    inside(fields, "provider", |fields| {
        absent(fields, "organization", json!(""));
        absent(fields, "url", json!(""));
    });
}

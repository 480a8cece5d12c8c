//! The JSON of protobuf leaves out what is empty, even where something must be. The official types want it to be there:
//! this puts it back before they read.

use serde_json::{Map, Value, json};

type Fields = Map<String, Value>;

fn with(value: &mut Value, fill: impl FnOnce(&mut Fields)) {
    if let Value::Object(fields) = value {
        fill(fields);
    }
}

fn inside(fields: &mut Fields, name: &str, fill: impl FnOnce(&mut Fields)) {
    if let Some(value) = fields.get_mut(name) {
        with(value, fill);
    }
}

fn each(fields: &mut Fields, name: &str, fill: impl Fn(&mut Fields)) {
    if let Some(Value::Array(items)) = fields.get_mut(name) {
        items.iter_mut().for_each(|item| with(item, &fill));
    }
}

fn absent(fields: &mut Fields, name: &str, empty: Value) {
    let is_null = fields.get(name).is_none_or(Value::is_null);
    if is_null {
        fields.insert(name.to_owned(), empty);
    }
}

pub(super) fn task(fields: &mut Fields) {
    absent(fields, "id", json!(""));
    absent(fields, "contextId", json!(""));
    absent(fields, "status", json!({}));
    inside(fields, "status", status);
    each(fields, "artifacts", artifact);
    each(fields, "history", message);
}

pub(super) fn message(fields: &mut Fields) {
    absent(fields, "messageId", json!(""));
    absent(fields, "role", json!("ROLE_UNSPECIFIED"));
    absent(fields, "parts", json!([]));
}

fn status(fields: &mut Fields) {
    absent(fields, "state", json!("TASK_STATE_UNSPECIFIED"));
    inside(fields, "message", message);
}

fn artifact(fields: &mut Fields) {
    absent(fields, "artifactId", json!(""));
    absent(fields, "parts", json!([]));
}

fn event(fields: &mut Fields) {
    absent(fields, "taskId", json!(""));
    absent(fields, "contextId", json!(""));
    inside(fields, "status", status);
    inside(fields, "artifact", artifact);
}

/// What a message is answered with, at once or bit by bit.
pub(super) fn update(value: &mut Value) {
    with(value, |fields| {
        inside(fields, "task", task);
        inside(fields, "message", message);
        inside(fields, "statusUpdate", |fields| {
            absent(fields, "status", json!({}));
            event(fields);
        });
        inside(fields, "artifactUpdate", event);
    });
}

pub(super) fn tasks(value: &mut Value) {
    with(value, |fields| {
        absent(fields, "tasks", json!([]));
        absent(fields, "nextPageToken", json!(""));
        absent(fields, "pageSize", json!(0));
        absent(fields, "totalSize", json!(0));
        each(fields, "tasks", task);
    });
}

pub(super) fn one_task(value: &mut Value) {
    with(value, task);
}

pub(super) fn push(fields: &mut Fields) {
    absent(fields, "url", json!(""));
}

pub(super) fn one_push(value: &mut Value) {
    with(value, push);
}

pub(super) fn pushes(value: &mut Value) {
    with(value, |fields| each(fields, "configs", push));
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

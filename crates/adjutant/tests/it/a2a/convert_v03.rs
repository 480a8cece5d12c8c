//! Converts messages between 1.x and 0.3, for JSON-RPC (with `kind`) and for protobuf. Covers only the fields that the tests
//! need. Independent of the product.

use serde_json::{Map, Value, json};

/// Converts `TASK_STATE_INPUT_REQUIRED` to `input-required`.
fn state_to(state: &str) -> String {
    state.trim_start_matches("TASK_STATE_").to_lowercase().replace('_', "-")
}

/// Converts `input-required` to `TASK_STATE_INPUT_REQUIRED`.
fn state_from(state: &str) -> String {
    format!("TASK_STATE_{}", state.to_uppercase().replace('-', "_"))
}

/// Returns the members with these names that are present and not null.
fn pick(from: &Value, names: &[&str]) -> Map<String, Value> {
    let found = names.iter().filter_map(|name| Some(((*name).to_owned(), from.get(*name)?.clone())));
    found.filter(|(_, value)| !value.is_null()).collect()
}

/// Adds a member if it has a value.
fn with(mut object: Map<String, Value>, name: &str, value: Option<Value>) -> Map<String, Value> {
    if let Some(value) = value {
        object.insert(name.to_owned(), value);
    }
    object
}

/// Converts each element of a list.
fn each(value: &Value, change: impl Fn(&Value) -> Value) -> Value {
    match value.as_array() {
        Some(values) => values.iter().map(change).collect(),
        None => value.clone(),
    }
}

/// Converts the parameters of an operation to JSON-RPC of 0.3.
pub(super) fn params(operation: &str, params: &Value) -> Value {
    match operation {
        "SendMessage" | "SendStreamingMessage" => {
            let mut sent = pick(params, &["metadata"]);
            if let Some(message) = params.get("message") {
                sent.insert(
                    "message".to_owned(),
                    if message.is_object() { message_to(message) } else { message.clone() },
                );
            }
            let configuration = params.get("configuration").map(|given| {
                let more = pick(given, &["acceptedOutputModes", "historyLength"]);
                let more = with(
                    more,
                    "blocking",
                    given.get("returnImmediately").map(|immediately| json!(immediately != true)),
                );
                Value::Object(with(
                    more,
                    "pushNotificationConfig",
                    given.get("taskPushNotificationConfig").map(push_to),
                ))
            });
            Value::Object(with(sent, "configuration", configuration))
        }
        "CreateTaskPushNotificationConfig" => {
            Value::Object(with(pick(params, &["taskId"]), "pushNotificationConfig", Some(push_to(params))))
        }
        "GetTaskPushNotificationConfig" | "DeleteTaskPushNotificationConfig" => {
            let ids = with(Map::new(), "id", params.get("taskId").cloned());
            Value::Object(with(ids, "pushNotificationConfigId", params.get("id").cloned()))
        }
        "ListTaskPushNotificationConfigs" => Value::Object(with(Map::new(), "id", params.get("taskId").cloned())),
        _ => params.clone(),
    }
}

fn push_to(config: &Value) -> Value {
    let authentication = config.get("authentication").map(|given| {
        Value::Object(with(pick(given, &["credentials"]), "schemes", given.get("scheme").map(|scheme| json!([scheme]))))
    });
    Value::Object(with(pick(config, &["id", "url", "token"]), "authentication", authentication))
}

fn push_from(config: &Value) -> Map<String, Value> {
    let authentication = config.get("authentication").filter(|given| !given.is_null()).map(|given| {
        let scheme = given["schemes"].as_array().and_then(|schemes| schemes.first().cloned());
        Value::Object(with(pick(given, &["credentials"]), "scheme", scheme))
    });
    with(pick(config, &["id", "url", "token"]), "authentication", authentication)
}

fn message_to(message: &Value) -> Value {
    let mut sent = pick(message, &["messageId", "taskId", "contextId", "metadata", "extensions", "referenceTaskIds"]);
    sent.insert("kind".to_owned(), json!("message"));
    if let Some(role) = message.get("role") {
        sent.insert(
            "role".to_owned(),
            role.as_str().map_or(role.clone(), |role| json!(role.trim_start_matches("ROLE_").to_lowercase())),
        );
    }
    Value::Object(with(sent, "parts", message.get("parts").map(|parts| each(parts, part_to))))
}

fn part_to(part: &Value) -> Value {
    let metadata = || pick(part, &["metadata"]);
    if let Some(text) = part.get("text") {
        return Value::Object(with(with(metadata(), "kind", Some(json!("text"))), "text", Some(text.clone())));
    }
    if let Some(data) = part.get("data") {
        return Value::Object(with(with(metadata(), "kind", Some(json!("data"))), "data", Some(data.clone())));
    }
    let file = with(Map::new(), "bytes", part.get("raw").cloned());
    let file = with(with(file, "uri", part.get("url").cloned()), "name", part.get("filename").cloned());
    let file = with(file, "mimeType", part.get("mediaType").cloned());
    Value::Object(with(with(metadata(), "kind", Some(json!("file"))), "file", Some(Value::Object(file))))
}

/// Converts a JSON-RPC result of 0.3 to 1.x.
pub(super) fn result(operation: &str, result: &Value) -> Value {
    match operation {
        "SendMessage" | "SendStreamingMessage" | "SubscribeToTask" => event(result),
        "GetTask" | "CancelTask" => task(result),
        "CreateTaskPushNotificationConfig" | "GetTaskPushNotificationConfig" => push(result),
        "ListTaskPushNotificationConfigs" => json!({"configs": each(result, push)}),
        _ => result.clone(),
    }
}

fn push(config: &Value) -> Value {
    let inner = push_from(&config["pushNotificationConfig"]);
    Value::Object(with(inner, "taskId", config.get("taskId").cloned()))
}

fn event(event: &Value) -> Value {
    match event["kind"].as_str() {
        Some("task") => json!({"task": task(event)}),
        Some("message") => json!({"message": message(event)}),
        Some("status-update") => {
            let mut update = pick(event, &["taskId", "contextId", "metadata"]);
            update.insert("status".to_owned(), status(&event["status"]));
            assert!(event["final"].is_boolean(), "{event}");
            json!({"statusUpdate": update, "final": event["final"]})
        }
        Some("artifact-update") => {
            let mut update = pick(event, &["taskId", "contextId", "metadata", "append", "lastChunk"]);
            update.insert("artifact".to_owned(), artifact(&event["artifact"]));
            json!({"artifactUpdate": update})
        }
        _ => panic!("no event of 0.3: {event}"),
    }
}

fn task(task: &Value) -> Value {
    assert_eq!(task["kind"], "task", "{task}");
    let mut read = pick(task, &["id", "contextId", "metadata"]);
    read.insert("status".to_owned(), status(&task["status"]));
    let read = with(read, "artifacts", task.get("artifacts").map(|artifacts| each(artifacts, artifact)));
    Value::Object(with(read, "history", task.get("history").map(|history| each(history, message))))
}

fn status(status: &Value) -> Value {
    let state = json!(state_from(status["state"].as_str().unwrap()));
    let read = with(pick(status, &["timestamp"]), "state", Some(state));
    Value::Object(with(read, "message", status.get("message").map(message)))
}

fn message(message: &Value) -> Value {
    assert_eq!(message["kind"], "message", "{message}");
    let mut read = pick(message, &["messageId", "taskId", "contextId", "metadata", "extensions", "referenceTaskIds"]);
    read.insert("role".to_owned(), json!(format!("ROLE_{}", message["role"].as_str().unwrap().to_uppercase())));
    Value::Object(with(read, "parts", Some(each(&message["parts"], part))))
}

fn artifact(artifact: &Value) -> Value {
    let read = pick(artifact, &["artifactId", "name", "description", "metadata", "extensions"]);
    Value::Object(with(read, "parts", Some(each(&artifact["parts"], part))))
}

fn part(part: &Value) -> Value {
    let read = pick(part, &["metadata"]);
    let read = match part["kind"].as_str() {
        Some("text") => with(read, "text", part.get("text").cloned()),
        Some("data") => with(read, "data", part.get("data").cloned()),
        Some("file") => {
            let file = &part["file"];
            let read = with(with(read, "raw", file.get("bytes").cloned()), "url", file.get("uri").cloned());
            with(with(read, "filename", file.get("name").cloned()), "mediaType", file.get("mimeType").cloned())
        }
        _ => panic!("no part of 0.3: {part}"),
    };
    Value::Object(read)
}

/// Returns the name and the content of the protobuf request of 0.3. HTTP+JSON uses the same content as its body.
pub(super) fn request(operation: &str, params: &Value) -> (&'static str, Value) {
    let id = |name: &str| params.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let config_name = || format!("tasks/{}/pushNotificationConfigs/{}", id("taskId"), id("id"));
    match operation {
        "SendMessage" | "SendStreamingMessage" => {
            let mut sent = pick(params, &["metadata"]);
            if let Some(message) = params.get("message") {
                let message = if message.is_object() { message_in_protobuf(message) } else { message.clone() };
                sent.insert("message".to_owned(), message);
            }
            let configuration = params.get("configuration").map(|given| {
                let more = pick(given, &["acceptedOutputModes", "historyLength"]);
                let more = with(
                    more,
                    "blocking",
                    given.get("returnImmediately").map(|immediately| json!(immediately != true)),
                );
                Value::Object(with(more, "pushNotification", given.get("taskPushNotificationConfig").map(push_to)))
            });
            // Protobuf of 0.3 cannot express an absent value. Without this default the call would not block.
            let default = json!({"blocking": true});
            ("SendMessageRequest", Value::Object(with(sent, "configuration", Some(configuration.unwrap_or(default)))))
        }
        "GetTask" => {
            let name = json!({"name": format!("tasks/{}", id("id"))});
            let name = name.as_object().cloned().unwrap();
            ("GetTaskRequest", Value::Object(with(name, "historyLength", params.get("historyLength").cloned())))
        }
        "CancelTask" => ("CancelTaskRequest", json!({"name": format!("tasks/{}", id("id"))})),
        "SubscribeToTask" => ("TaskSubscriptionRequest", json!({"name": format!("tasks/{}", id("id"))})),
        "CreateTaskPushNotificationConfig" => {
            let config = json!({"name": config_name(), "pushNotificationConfig": push_to(params)});
            let parent = format!("tasks/{}", id("taskId"));
            let request = json!({"parent": parent, "configId": id("id"), "config": config});
            ("CreateTaskPushNotificationConfigRequest", request)
        }
        "GetTaskPushNotificationConfig" => ("GetTaskPushNotificationConfigRequest", json!({"name": config_name()})),
        "DeleteTaskPushNotificationConfig" => {
            ("DeleteTaskPushNotificationConfigRequest", json!({"name": config_name()}))
        }
        "ListTaskPushNotificationConfigs" => {
            ("ListTaskPushNotificationConfigRequest", json!({"parent": format!("tasks/{}", id("taskId"))}))
        }
        "GetExtendedAgentCard" => ("GetAgentCardRequest", json!({})),
        other => panic!("0.3 has no {other} in protobuf"),
    }
}

fn message_in_protobuf(message: &Value) -> Value {
    let sent = pick(message, &["messageId", "taskId", "contextId", "metadata", "extensions", "role"]);
    Value::Object(with(sent, "content", message.get("parts").map(|parts| each(parts, part_in_protobuf))))
}

fn part_in_protobuf(part: &Value) -> Value {
    let sent = pick(part, &["metadata", "text"]);
    if part.get("text").is_some() {
        return Value::Object(sent);
    }
    if let Some(data) = part.get("data") {
        return Value::Object(with(sent, "data", Some(json!({"data": data}))));
    }
    let file = with(Map::new(), "fileWithBytes", part.get("raw").cloned());
    let file = with(with(file, "fileWithUri", part.get("url").cloned()), "name", part.get("filename").cloned());
    let file = with(file, "mimeType", part.get("mediaType").cloned());
    if file.is_empty() {
        return Value::Object(sent);
    }
    Value::Object(with(sent, "file", Some(Value::Object(file))))
}

/// Returns the name of the protobuf response of 0.3.
pub(super) fn response(operation: &str) -> &'static str {
    match operation {
        "SendMessage" => "SendMessageResponse",
        "SendStreamingMessage" | "SubscribeToTask" => "StreamResponse",
        "GetTask" | "CancelTask" => "Task",
        "CreateTaskPushNotificationConfig" | "GetTaskPushNotificationConfig" => "TaskPushNotificationConfig",
        "ListTaskPushNotificationConfigs" => "ListTaskPushNotificationConfigResponse",
        "GetExtendedAgentCard" => "AgentCard",
        other => panic!("0.3 has no {other} in protobuf"),
    }
}

/// Converts a protobuf response of 0.3 to 1.x.
pub(super) fn answer(operation: &str, answer: &Value) -> Value {
    match operation {
        "GetTask" | "CancelTask" => task_of_protobuf(answer),
        "SendMessage" | "SendStreamingMessage" | "SubscribeToTask" => {
            let (kind, value) = answer.as_object().and_then(|object| object.iter().next()).unwrap();
            match kind.as_str() {
                "task" => json!({"task": task_of_protobuf(value)}),
                "message" => json!({"message": message_of_protobuf(value)}),
                "statusUpdate" => {
                    let mut update = pick(value, &["taskId", "contextId", "metadata"]);
                    update.insert("status".to_owned(), status_of_protobuf(&value["status"]));
                    json!({"statusUpdate": update, "final": value["final"] == true})
                }
                "artifactUpdate" => {
                    let mut update = pick(value, &["taskId", "contextId", "metadata", "append", "lastChunk"]);
                    update.insert("artifact".to_owned(), artifact_of_protobuf(&value["artifact"]));
                    json!({"artifactUpdate": update})
                }
                other => panic!("{other} in {answer}"),
            }
        }
        "CreateTaskPushNotificationConfig" | "GetTaskPushNotificationConfig" => push_of_protobuf(answer),
        "ListTaskPushNotificationConfigs" => {
            json!({"configs": answer.get("configs").map_or(json!([]), |configs| each(configs, push_of_protobuf))})
        }
        _ => answer.clone(),
    }
}

fn push_of_protobuf(config: &Value) -> Value {
    let name = config["name"].as_str().unwrap_or_else(|| panic!("{config}"));
    let (task, id) = name.trim_start_matches("tasks/").split_once("/pushNotificationConfigs/").unwrap();
    let mut inner = push_from(&config["pushNotificationConfig"]);
    assert_eq!(inner.get("id"), Some(&json!(id)), "{config}");
    inner.insert("taskId".to_owned(), json!(task));
    Value::Object(inner)
}

fn task_of_protobuf(task: &Value) -> Value {
    let mut read = pick(task, &["id", "contextId", "metadata"]);
    read.insert("status".to_owned(), status_of_protobuf(&task["status"]));
    let read = with(read, "artifacts", task.get("artifacts").map(|artifacts| each(artifacts, artifact_of_protobuf)));
    Value::Object(with(read, "history", task.get("history").map(|history| each(history, message_of_protobuf))))
}

fn status_of_protobuf(status: &Value) -> Value {
    let state = status["state"].as_str().unwrap_or_else(|| panic!("{status}")).replace("CANCELLED", "CANCELED");
    let read = with(pick(status, &["timestamp"]), "state", Some(json!(state)));
    Value::Object(with(read, "message", status.get("message").map(message_of_protobuf)))
}

fn message_of_protobuf(message: &Value) -> Value {
    let read = pick(message, &["messageId", "taskId", "contextId", "metadata", "extensions", "role"]);
    Value::Object(with(read, "parts", Some(each(&message["content"], part_of_protobuf))))
}

fn artifact_of_protobuf(artifact: &Value) -> Value {
    let read = pick(artifact, &["artifactId", "name", "description", "metadata", "extensions"]);
    Value::Object(with(read, "parts", Some(each(&artifact["parts"], part_of_protobuf))))
}

fn part_of_protobuf(part: &Value) -> Value {
    let read = pick(part, &["metadata", "text"]);
    let read = with(read, "data", part.get("data").map(|data| data["data"].clone()));
    let Some(file) = part.get("file") else { return Value::Object(read) };
    let read = with(with(read, "raw", file.get("fileWithBytes").cloned()), "url", file.get("fileWithUri").cloned());
    let read = with(read, "filename", file.get("name").cloned());
    Value::Object(with(read, "mediaType", file.get("mimeType").cloned()))
}

#[test]
fn messages_survive_a_round_trip() {
    let parts = json!([
        {"text": "a", "metadata": {"m": 1}}, {"raw": "AAEC", "filename": "f", "mediaType": "a/b"},
        {"url": "https://x/y", "mediaType": "c/d"}, {"data": {"n": [1]}},
    ]);
    let sent = json!({"messageId": "1", "role": "ROLE_USER", "parts": parts, "taskId": "t", "contextId": "c"});
    assert_eq!(message(&message_to(&sent)), sent);
    assert_eq!(message_of_protobuf(&message_in_protobuf(&sent)), sent);
    assert_eq!(state_to(&state_from("input-required")), "input-required");
}

//! The requests of the public test kit (TCK) for 0.3, in the format of its clients. Tests name the numbers of mandatory
//! tests and the topic of optional ones. The kit never sends a version (A2A-1).

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use super::Conformance;
use super::client::{A2aClient, PROTOCOLS, Version};

/// Returns a message in the format of the kit.
fn message(kind: &str, text: &str) -> Value {
    let id = super::message(kind, "")["messageId"].clone();
    json!({"kind": "message", "messageId": id, "role": "user", "parts": [{"kind": "text", "text": text}]})
}

async fn raw(client: &A2aClient, body: &str) -> Value {
    let request = client.http(Method::POST, "").header("Content-Type", "application/json").body(body.to_owned());
    let answer = request.send().await.unwrap();
    assert_eq!(answer.status(), 200, "{body}");
    answer.json().await.unwrap()
}

async fn call(client: &A2aClient, method: &str, params: Value) -> Value {
    let answer =
        raw(client, &json!({"jsonrpc": "2.0", "id": "tck-1", "method": method, "params": params}).to_string()).await;
    assert_eq!((&answer["jsonrpc"], &answer["id"]), (&json!("2.0"), &json!("tck-1")), "{answer}");
    answer
}

/// Creates a task that requires input, as every plain message does.
async fn open_task(client: &A2aClient, text: &str) -> Value {
    let answer = call(client, "message/send", json!({"message": message("test-message-id", text)})).await;
    let task = answer["result"].clone();
    assert_eq!((&task["kind"], &task["status"]["state"]), (&json!("task"), &json!("input-required")), "{answer}");
    task
}

fn message_on(task: &Value, text: &str) -> Value {
    let mut message = message("test-message-id", text);
    message["taskId"] = task["id"].clone();
    json!({"message": message})
}

#[tokio::test]
async fn invalid_requests_return_the_specified_error_codes() {
    // A2A-1; mandatory 1 … 8, 10 … 12
    let server = Conformance::start().await;
    let client = server.client();
    for (body, code) in [
        (r#"{"jsonrpc": "2.0", "method": "message/send", "params": {"foo": "bar"}"#, -32700),
        (r#"{"jsonrpc": "2.0", "method": "message/send", "params": {"unclosed_object": true"#, -32700),
        (r#"{"jsonrpc": "aaa", "method": "message/send", "params": {}}"#, -32600),
        (r#"{"jsonrpc": "2.0", "params": {}}"#, -32600),
        (r#"{"jsonrpc": "2.0", "method": "message/ssend", "params": {}}"#, -32601),
        (r#"{"jsonrpc": "2.0", "method": "message/send", "params": {}, "id": {"bad": "type"}}"#, -32600),
        (r#"{"jsonrpc": "2.0", "method": "message/send", "params": {"": "not_a_dict"}}"#, -32602),
        (r#"{"jsonrpc": "2.0", "method": "nonexistent/method", "params": {}, "id": 1}"#, -32601),
        (
            r#"{"jsonrpc": "2.0", "method": "message/send", "params": {"message": {"parts": "invalid"}}, "id": 1}"#,
            -32602,
        ),
        (r#"{"jsonrpc": "1.0", "method": "message/send", "params": {}, "id": 1}"#, -32600),
        (r#"{"jsonrpc": "2.0", "id": 1}"#, -32600),
        (
            r#"{"jsonrpc": "2.0", "method": "message/send", "params": {"message": {"kind": "message"}}, "id": 1}"#,
            -32602,
        ),
    ] {
        let answer = raw(&client, body).await;
        assert_eq!(answer["error"]["code"], code, "{body}: {answer}");
        let sent: Value = serde_json::from_str(body).unwrap_or_default();
        if sent["id"].is_number() {
            assert_eq!(answer["id"], sent["id"], "{body}: {answer}");
        }
    }
    // Missing and empty fields of a message are invalid parameters.
    for (name, value) in [("messageId", None), ("role", None), ("parts", None), ("parts", Some(json!([])))] {
        let mut wrong = message("test-message-id", "hi");
        match value {
            Some(value) => wrong[name] = value,
            None => drop(wrong.as_object_mut().unwrap().remove(name)),
        }
        let answer = call(&client, "message/send", json!({"message": wrong})).await;
        assert_eq!(answer["error"]["code"], -32602, "{name}: {answer}");
    }
    let mut wrong = message("test-message-id", "hi");
    wrong["parts"] = json!([{"type": "unsupported_type", "text": "x"}]);
    assert_eq!(call(&client, "message/send", json!({"message": wrong})).await["error"]["code"], -32602);
}

#[tokio::test]
async fn the_card_is_valid_for_0_3() {
    // A2A-1; mandatory 22 … 24 and the fields that the kit needs to find the interfaces
    let server = Conformance::start().await;
    let card: Value =
        reqwest::get(format!("{}/.well-known/agent-card.json", server.url())).await.unwrap().json().await.unwrap();
    for name in
        ["capabilities", "defaultInputModes", "defaultOutputModes", "description", "name", "skills", "url", "version"]
    {
        assert!(!card[name].is_null(), "{name}: {card}");
    }
    assert_eq!(card["protocolVersion"].as_str().map(|version| &version[..3]), Some("0.3"), "{card}");
    assert!(card["url"].as_str().unwrap().starts_with("http://"), "{card}");
    for skill in card["skills"].as_array().unwrap() {
        for name in ["id", "name", "description", "tags"] {
            assert!(!skill[name].is_null(), "{name}: {skill}");
        }
    }
    // The kit reads all URLs here, including that of the preferred transport.
    let more = card["additionalInterfaces"].as_array().unwrap();
    for transport in ["JSONRPC", "HTTP+JSON", "GRPC"] {
        assert!(more.iter().any(|interface| interface["transport"] == transport), "{transport}: {card}");
    }
    let preferred = more.iter().find(|interface| interface["transport"] == card["preferredTransport"]).unwrap();
    assert_eq!(preferred["url"], card["url"], "{card}");
}

#[tokio::test]
async fn a_task_can_be_created_continued_read_and_cancelled() {
    // A2A-1; mandatory 9, 15, 25 … 33
    let server = Conformance::start().await;
    let client = server.client();
    let task = open_task(&client, "Hello from TCK!").await;
    // A repeated request creates another task, because it has no idempotency key.
    let again = json!({"message": message("test-message-id", "twice")});
    for _ in 0..2 {
        assert_eq!(call(&client, "message/send", again.clone()).await["result"]["kind"], "task");
    }
    for n in 1..=3 {
        let more = call(&client, "message/send", message_on(&task, &format!("follow-up {n}"))).await;
        assert_eq!(more["result"]["id"], task["id"], "{more}");
    }
    let full = call(&client, "tasks/get", json!({"id": task["id"]})).await;
    let limited = call(&client, "tasks/get", json!({"id": task["id"], "historyLength": 2})).await;
    let length = |answer: &Value| answer["result"]["history"].as_array().unwrap_or_else(|| panic!("{answer}")).len();
    assert!(length(&full) >= 4, "{full}");
    assert_eq!(length(&limited), 2, "{limited}");
    let one = call(&client, "tasks/get", json!({"id": task["id"], "historyLength": 1})).await;
    assert_eq!((&one["result"]["id"], length(&one)), (&task["id"], 1), "{one}");
    let cancelled = call(&client, "tasks/cancel", json!({"id": task["id"]})).await;
    assert_eq!(
        (&cancelled["result"]["id"], &cancelled["result"]["status"]["state"]),
        (&task["id"], &json!("canceled"))
    );
    assert_eq!(call(&client, "tasks/cancel", json!({"id": task["id"]})).await["error"]["code"], -32002);
    for method in ["tasks/cancel", "tasks/get"] {
        let answer = call(&client, method, json!({"id": "nonexistent-task-id"})).await;
        assert_eq!(answer["error"]["code"], -32001, "{method}: {answer}");
        let words = answer["error"]["message"].as_str().unwrap().to_lowercase();
        assert!(words.contains("not found") || words.contains("task"), "{words}");
    }
    // With the context of the task, and with null for optional fields.
    let task = open_task(&client, "another").await;
    let mut more = message_on(&task, "more");
    more["message"]["contextId"] = task["contextId"].clone();
    assert_eq!(call(&client, "message/send", more).await["result"]["id"], task["id"]);
    let mut bare = message("test-message-id", "bare");
    for name in ["taskId", "contextId", "metadata"] {
        bare[name] = Value::Null;
    }
    assert_eq!(call(&client, "message/send", json!({"message": bare})).await["result"]["kind"], "task");
}

#[tokio::test]
async fn text_and_data_parts_and_boundary_values_are_handled() {
    // A2A-1; quality tests of the kit
    let server = Conformance::start().await;
    let client = server.client();
    let mut both = message("test-message-id", "hi");
    both["parts"] = json!([{"kind": "text", "text": "hi"}, {"kind": "data", "data": {"a": [1]}}]);
    both["_extra_field"] = json!(1);
    assert!(
        call(&client, "message/send", json!({"message": both, "_debug_info": {}})).await["result"]["id"].is_string()
    );
    let task = open_task(&client, "\u{1f600} \u{202e}\u{0} \"'<>&").await;
    for (length, is_fine) in [(json!(1_000_000_000), true), (json!(0), true), (json!(-1), false)] {
        let answer = call(&client, "tasks/get", json!({"id": task["id"], "historyLength": length})).await;
        assert_eq!(answer["result"]["id"] == task["id"], is_fine, "{length}: {answer}");
    }
    let long = "x".repeat(1 << 20);
    let answer = call(&client, "message/send", json!({"message": message("test-message-id", &long)})).await;
    assert!(answer["result"].is_object() || answer["error"].is_object(), "{}", answer.to_string().len());
}

#[tokio::test]
async fn push_configurations_can_be_set_read_listed_and_deleted() {
    // A2A-1; capability tests of the kit
    let server = Conformance::start().await;
    let client = server.client();
    let task = open_task(&client, "push").await;
    let method = |name: &str| format!("tasks/pushNotificationConfig/{name}");
    let empty = call(&client, &method("list"), json!({"id": task["id"]})).await;
    assert_eq!(empty["result"], json!([]), "{empty}");
    let config = json!({"url": "https://example.com/webhook"});
    let set = call(&client, &method("set"), json!({"taskId": task["id"], "pushNotificationConfig": config})).await;
    assert_eq!(set["result"]["pushNotificationConfig"]["url"], config["url"], "{set}");
    let id = set["result"]["pushNotificationConfig"]["id"].clone();
    assert!(id.as_str().is_some_and(|id| !id.is_empty()), "{set}");
    // No id, or the id `default` that the kit assumes, selects the only configuration.
    for params in [
        json!({"id": task["id"]}),
        json!({"id": task["id"], "pushNotificationConfigId": "default"}),
        json!({"id": task["id"], "pushNotificationConfigId": id}),
    ] {
        let got = call(&client, &method("get"), params.clone()).await;
        assert_eq!(got["result"]["pushNotificationConfig"]["url"], config["url"], "{params}: {got}");
    }
    let listed = call(&client, &method("list"), json!({"id": task["id"]})).await;
    assert_eq!(
        (&listed["result"][0]["taskId"], listed["result"].as_array().map(Vec::len)),
        (&task["id"], Some(1)),
        "{listed}"
    );
    for _ in 0..2 {
        let deleted = call(&client, &method("delete"), json!({"id": task["id"], "pushNotificationConfigId": id})).await;
        assert!(deleted.get("result").is_some_and(Value::is_null), "{deleted}");
    }
    assert!(call(&client, &method("get"), json!({"id": task["id"]})).await["error"].is_object());
    for (name, params) in [
        ("set", json!({"taskId": "nonexistent-task-id", "pushNotificationConfig": config})),
        ("get", json!({"id": "nonexistent-task-id"})),
        ("delete", json!({"id": "nonexistent-task-id", "pushNotificationConfigId": "x"})),
    ] {
        let answer = call(&client, &method(name), params).await;
        let words = answer["error"]["message"].as_str().unwrap_or_else(|| panic!("{answer}")).to_lowercase();
        assert!(words.contains("not found") || words.contains("task"), "{words}");
    }
}

#[tokio::test]
async fn a_client_can_resubscribe_after_two_events() {
    // A2A-1; the client of the kit reads two events of a stream and disconnects
    let server = Conformance::start().await;
    let client = server.client();
    for protocol in PROTOCOLS.into_iter().filter(|protocol| protocol.1 == Version::V03) {
        let params = json!({"message": super::message("test-resubscribe-message-id", "Test message for resubscribe")});
        let mut stream = client.stream(protocol, "SendStreamingMessage", params).await.unwrap();
        let first = stream.expect().await;
        let task = first["task"]["id"].clone();
        assert!(task.is_string(), "{protocol:?}: {first}");
        stream.expect().await;
        drop(stream);
        let mut again = client.stream(protocol, "SubscribeToTask", json!({"id": task})).await.unwrap();
        let event = tokio::time::timeout(Duration::from_secs(3), again.next()).await.unwrap().unwrap().unwrap();
        assert_eq!(event["task"]["id"], task, "{protocol:?}: {event}");
    }
}

#[tokio::test]
async fn rest_accepts_the_request_formats_of_the_tck() {
    // A2A-1: snake case names, `GET` for streams, no bodies
    let server = Conformance::start().await;
    let client = server.client();
    let content = json!([{"text": "hi"}, {"data": {"data": {"a": 1}}}, {"file": {"name": "f", "mime_type": "text/plain", "file_with_uri": "https://example.com/f", "size_in_bytes": 3}}]);
    let message = json!({"message_id": "test-message-id-1", "role": "ROLE_USER", "content": content});
    let sent: Value = client
        .http(Method::POST, "/v1/message:send")
        .json(&json!({"message": message}))
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    let task = sent["task"].clone();
    assert_eq!(task["status"]["state"], "TASK_STATE_INPUT_REQUIRED", "{sent}");
    let id = task["id"].as_str().unwrap();
    let got: Value = client
        .http(Method::GET, &format!("/v1/tasks/{id}?history_length=1"))
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    assert_eq!((&got["id"], got["history"].as_array().map(Vec::len)), (&task["id"], Some(1)), "{got}");
    let follow = client.http(Method::GET, &format!("/v1/tasks/{id}:subscribe")).header("Accept", "text/event-stream");
    let mut follow = follow.send().await.unwrap();
    assert!(follow.headers()["content-type"].to_str().unwrap().starts_with("text/event-stream"));
    assert!(String::from_utf8_lossy(&follow.chunk().await.unwrap().unwrap()).contains(id));
    drop(follow);
    let cancelled =
        client.http(Method::POST, &format!("/v1/tasks/{id}:cancel")).header("Content-Type", "application/json");
    let cancelled: Value = cancelled.send().await.unwrap().json().await.unwrap();
    assert_eq!(cancelled["status"]["state"], "TASK_STATE_CANCELLED", "{cancelled}");
    let missing = client.http(Method::GET, "/v1/tasks/nonexistent-task-id").send().await.unwrap();
    assert_eq!(missing.status(), 404);
}

#[tokio::test]
async fn concurrent_and_sequential_messages_are_accepted() {
    // A2A-1; quality tests of the kit: five concurrent messages with one id, then ten sequential messages
    let server = Conformance::start().await;
    let client = server.client();
    let same = json!({"message": message("test-message-id", "at once")});
    let all = futures::future::join_all((0..5).map(|_| call(&client, "message/send", same.clone()))).await;
    assert!(all.iter().all(|answer| answer["result"]["kind"] == "task"), "{all:?}");
    for n in 0..10 {
        open_task(&client, &format!("in a row {n}")).await;
    }
    let task = open_task(&client, "one task").await;
    let get = call(&client, "tasks/get", json!({"id": task["id"]}));
    let (got, more) = tokio::join!(get, call(&client, "message/send", message_on(&task, "more")));
    assert_eq!((&got["result"]["id"], &more["result"]["id"]), (&task["id"], &task["id"]));
}

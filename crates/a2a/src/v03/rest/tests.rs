//! Values survive a round trip through HTTP+JSON of 0.3, and requests of the official clients are accepted.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::v03::tests as make;
use crate::{OperationRequest, types};

/// Returns the update after one round trip, which drops empty values.
fn normalize(update: &types::StreamResponse) -> types::StreamResponse {
    let text = serde_json::to_string(&StreamResponse::from(update.clone())).unwrap();
    serde_json::from_str::<StreamResponse>(&text).unwrap().try_into().unwrap()
}

proptest! {
    // A2A-1
    #[test]
    fn updates_survive_http_json_of_0_3(update in make::update()) {
        // Protobuf does not distinguish empty values from missing ones. After the first round trip empty changes.
        let normalized = normalize(&update);
        prop_assert_eq!(normalize(&normalized), normalized.clone());
        prop_assert_eq!(StreamResponse::from(normalized), StreamResponse::from(update));
    }

    // A2A-1
    #[test]
    fn messages_survive_http_json_of_0_3(request in make::send()) {
        let there = SendMessageRequest::from(request);
        let text = serde_json::to_string(&there).unwrap();
        let read: SendMessageRequest = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(&read, &there, "as text: {}", text);
        let back = types::SendMessageRequest::try_from(read).unwrap();
        prop_assert_eq!(SendMessageRequest::from(back.clone()).request, there.request);
        prop_assert_eq!(types::SendMessageRequest::try_from(SendMessageRequest::from(back.clone())).unwrap(), back);
    }

    // A2A-1
    #[test]
    fn push_configurations_survive_http_json_of_0_3(config in make::push("[a-z]{1,5}".boxed())) {
        let there = TaskPushNotificationConfig::from(config);
        let text = serde_json::to_string(&there).unwrap();
        let read: TaskPushNotificationConfig = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(&read, &there);
        let back = types::TaskPushNotificationConfig::try_from(read).unwrap();
        prop_assert_eq!(types::TaskPushNotificationConfig::try_from(TaskPushNotificationConfig::from(back.clone())).unwrap(), back);
    }
}

fn decode_message(message: Value) -> types::Message {
    let request: SendMessageRequest = serde_json::from_value(json!({"message": message})).unwrap();
    types::SendMessageRequest::try_from(request).unwrap().message
}

#[test]
fn parts_are_accepted_in_all_known_forms() {
    let parts = json!([
        {"text": "hello"},
        {"kind": "text", "text": "hello"},
        {"file": {"fileWithBytes": "AQI=", "mimeType": "x/y", "name": "a"}},
        {"file": {"name": "a", "mime_type": "x/y", "uri": "", "size_in_bytes": 2, "bytes": "AQI="}},
        {"kind": "file", "file": {"bytes": "AQI=", "mimeType": "x/y", "name": "a"}},
        {"file": {"file_with_uri": "https://a"}},
        {"data": {"data": {"a": 1}}},
        {"kind": "data", "data": {"a": 1}},
        {"kind": "data", "data": {"data": {"a": 1}}},
    ]);
    let file = types::Part::raw(vec![1, 2]).with_filename("a").with_media_type("x/y");
    let expected = [
        types::Part::text("hello"),
        types::Part::text("hello"),
        file.clone(),
        file.clone(),
        file,
        types::Part::url("https://a"),
        types::Part::data(json!({"a": 1})),
        types::Part::data(json!({"a": 1})),
        types::Part::data(json!({"data": {"a": 1}})),
    ];
    let camel = decode_message(json!({"messageId": "m", "role": "ROLE_USER", "contextId": "c", "content": parts}));
    assert_eq!(camel.parts, expected);
    let snake = json!({"message_id": "m", "role": "user", "context_id": "c", "task_id": null, "parts": parts});
    assert_eq!(decode_message(snake), camel);
}

#[test]
fn push_configurations_are_accepted_in_all_known_forms() {
    let config = json!({"id": "c", "url": "https://a", "token": "", "authentication": {}});
    for body in [
        config.clone(),
        json!({"name": "tasks/t/pushNotificationConfigs/c", "pushNotificationConfig": config}),
        json!({"parent": "tasks/t", "config_id": "c", "config": {"name": "", "push_notification_config": config}}),
        json!({"parent": "tasks/t", "configId": "c", "config": {"pushNotificationConfig": {"url": "https://a"}}}),
    ] {
        let read: SetPushConfig = serde_json::from_value(body.clone()).unwrap();
        let read = read.into_task_config("t".to_owned()).unwrap();
        let expected = types::TaskPushNotificationConfig {
            url: "https://a".to_owned(),
            id: Some("c".to_owned()),
            task_id: "t".to_owned(),
            token: None,
            authentication: None,
            tenant: None,
        };
        assert_eq!(read, expected, "{body}");
    }
    let empty: SetPushConfig = serde_json::from_value(json!({})).unwrap();
    assert_eq!(empty.into_task_config("t".to_owned()).unwrap_err().violations[0].0, "pushNotificationConfig");
}

#[test]
fn updates_are_encoded_as_protobuf_json() {
    let update = types::TaskStatusUpdateEvent {
        task_id: "t".to_owned(),
        context_id: "c".to_owned(),
        status: types::TaskStatus { state: types::TaskState::Canceled, message: None, timestamp: None },
        metadata: None,
    };
    let update = StreamResponse::from(types::StreamResponse::StatusUpdate(update));
    let status = json!({"state": "TASK_STATE_CANCELLED"});
    let expected = json!({"statusUpdate": {"taskId": "t", "contextId": "c", "final": true, "status": status}});
    assert_eq!(serde_json::to_value(update).unwrap(), expected);
}

#[test]
fn bytes_of_the_python_sdk_are_base64_text() {
    let message = decode_message(json!({"messageId": "m", "role": "ROLE_USER", "content": [
        {"file": {"fileWithBytes": crate::base64_bytes::encode(b"AQI=")}},
        {"file": {"fileWithBytes": crate::base64_bytes::encode(&[0xff, 0])}},
    ]}));
    let mut request = OperationRequest::Send(types::SendMessageRequest {
        message,
        configuration: None,
        metadata: None,
        tenant: None,
    });
    python::decode_request(&mut request);
    let OperationRequest::Send(types::SendMessageRequest { message, .. }) = request else { panic!() };
    assert_eq!(message.parts, [types::Part::raw(vec![1, 2]), types::Part::raw(vec![0xff, 0])]);
    let mut update = types::StreamResponse::Message(message);
    python::encode_update(&mut update);
    let types::StreamResponse::Message(message) = update else { panic!() };
    assert_eq!(message.parts[0], types::Part::raw(b"AQI=".to_vec()));
}

//! Values of 1.x survive a round trip through protobuf, as far as the package can express them.

use std::any::type_name;
use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::{Arc, LazyLock, Mutex};

use proptest::collection::vec;
use proptest::prelude::*;
use prost::Message;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::values::{self, Struct};
use super::{v1, v03};
use crate::types;

/// Marks a text that may be replaced by any other text.
const REPLACEABLE: char = '~';

/// A source of random decisions, backed by random bytes.
struct Dice<'a>(std::slice::Iter<'a, u8>);

impl Dice<'_> {
    fn roll(&mut self) -> u8 {
        self.0.next().copied().unwrap_or_default()
    }
}

/// Returns a variation of `full` with fewer optional fields, shorter lists and other texts.
fn generate<T: Serialize + DeserializeOwned>(full: &Value, dice: &[u8]) -> T {
    let mut dice = Dice(dice.iter());
    let mut value = full.clone();
    for (pointer, is_optional) in &*optional::<T>(full) {
        let change = dice.roll();
        if *is_optional && change.is_multiple_of(3) {
            remove(&mut value, pointer);
        } else if let Some(text @ Value::String(_)) = value.pointer_mut(pointer)
            && text.as_str().is_some_and(|text| text.starts_with(REPLACEABLE))
        {
            *text = format!("{}{change}ü", dice.roll()).into();
        }
    }
    serde_json::from_value(value).unwrap()
}

type OptionalPointers = Arc<Vec<(String, bool)>>;

/// Returns every JSON pointer of a value from the last to the first, and whether it is optional. Results are cached,
/// because computing them is slow.
fn optional<T: DeserializeOwned>(full: &Value) -> OptionalPointers {
    static CACHE: LazyLock<Mutex<HashMap<String, OptionalPointers>>> = LazyLock::new(Mutex::default);
    let mut cache = CACHE.lock().unwrap();
    let found = || {
        let is_optional = |pointer: &String| {
            let mut without = full.clone();
            remove(&mut without, pointer);
            serde_json::from_value::<T>(without).is_ok()
        };
        pointers(full, String::new())
            .into_iter()
            .rev()
            .map(|pointer| (pointer.clone(), is_optional(&pointer)))
            .collect()
    };
    cache.entry(format!("{} {full}", type_name::<T>())).or_insert_with(|| Arc::new(found())).clone()
}

fn pointers(value: &Value, at: String) -> Vec<String> {
    let inner: Vec<(String, &Value)> = match value {
        Value::Object(fields) => fields.iter().map(|(name, value)| (format!("{at}/{name}"), value)).collect(),
        Value::Array(items) => items.iter().enumerate().map(|(n, value)| (format!("{at}/{n}"), value)).collect(),
        _ => Vec::new(),
    };
    inner.into_iter().flat_map(|(at, value)| [vec![at.clone()], pointers(value, at)].concat()).collect()
}

fn remove(value: &mut Value, pointer: &str) {
    let Some((outer, name)) = pointer.rsplit_once('/') else { return };
    match value.pointer_mut(outer) {
        Some(Value::Object(fields)) => drop(fields.shift_remove(name)),
        Some(Value::Array(items)) => {
            drop(name.parse().ok().filter(|n| *n < items.len()).map(|n: usize| items.remove(n)))
        }
        _ => {}
    }
}

/// Converts a value to protobuf, encodes and decodes it, and converts it back.
fn round_trip<P, T>(value: &T) -> Result<T, TestCaseError>
where
    P: Message + Debug + Default + PartialEq + From<T> + TryInto<T, Error: Debug>,
    T: Clone,
{
    let message = P::from(value.clone());
    let bytes = message.encode_to_vec();
    let read = P::decode(bytes.as_slice()).map_err(|error| TestCaseError::fail(error.to_string()))?;
    prop_assert_eq!(&read, &message);
    read.try_into().map_err(|error| TestCaseError::fail(format!("{error:?}")))
}

/// Removes empty optional lists and maps, which protobuf does not distinguish from missing ones.
fn without_empty<T: Serialize + DeserializeOwned>(value: T) -> T {
    fn cleaned(value: Value) -> Value {
        match value {
            Value::Object(fields) => {
                let optional = [
                    "artifacts",
                    "history",
                    "extensions",
                    "referenceTaskIds",
                    "acceptedOutputModes",
                    "signatures",
                    "examples",
                    "inputModes",
                    "outputModes",
                    "securityRequirements",
                ];
                let is_kept = |(name, value): &(String, Value)| {
                    !(optional.contains(&name.as_str()) && value.as_array().is_some_and(Vec::is_empty)
                        || name == "securitySchemes" && value.as_object().is_some_and(serde_json::Map::is_empty))
                };
                let fields = fields.into_iter().filter(is_kept);
                Value::Object(fields.map(|(name, value)| (name, cleaned(value))).collect())
            }
            Value::Array(items) => Value::Array(items.into_iter().map(cleaned).collect()),
            other => other,
        }
    }
    serde_json::from_value(cleaned(serde_json::to_value(value).unwrap())).unwrap()
}

fn message(is_v03: bool) -> Value {
    let mut text = json!({"text": "~hello", "metadata": {"~a": "~b"}});
    let mut message = json!({
        "messageId": "~m", "contextId": "~c", "taskId": "~t", "role": "ROLE_USER",
        "metadata": {"deep": {"list": [1, 2.5, null, true, "x", {"y": []}]}}, "extensions": ["~e1", "~e2"],
    });
    if !is_v03 {
        text["filename"] = json!("~f");
        text["mediaType"] = json!("~text/plain");
        message["referenceTaskIds"] = json!(["~r1", "~r2"]);
    }
    message["parts"] = json!([
        text,
        {"raw": "AAECAwT/", "filename": "~f", "mediaType": "~image/png", "metadata": {}},
        {"raw": "aGVsbG8="},
        {"url": "~http://x", "filename": "~f2", "mediaType": "~a/b"},
        {"data": {"k": [1, {"z": null}]}, "metadata": {"m": 1}},
        {"data": [1, "two"], "metadata": {"m": -7}},
        {"data": "three"},
        {"data": null},
    ]);
    message
}

fn artifact(is_v03: bool) -> Value {
    json!({"artifactId": "~a", "name": "~n", "description": "~d", "parts": message(is_v03)["parts"],
        "metadata": {"x": 1.25}, "extensions": ["~e"]})
}

fn status(state: &str, is_v03: bool) -> Value {
    json!({"state": state, "message": message(is_v03), "timestamp": "2026-11-16T01:02:03.000456789Z"})
}

fn task(state: &str, is_v03: bool) -> Value {
    json!({"id": "~t", "contextId": "~c", "status": status(state, is_v03), "history": [message(is_v03)],
        "artifacts": [artifact(is_v03), artifact(is_v03)], "metadata": {"x": {}}})
}

const STATES: [&str; 9] = [
    "TASK_STATE_UNSPECIFIED",
    "TASK_STATE_SUBMITTED",
    "TASK_STATE_WORKING",
    "TASK_STATE_COMPLETED",
    "TASK_STATE_FAILED",
    "TASK_STATE_CANCELED",
    "TASK_STATE_INPUT_REQUIRED",
    "TASK_STATE_REJECTED",
    "TASK_STATE_AUTH_REQUIRED",
];

fn updates(state: &str, is_v03: bool) -> [Value; 4] {
    [
        json!({"task": task(state, is_v03)}),
        json!({"message": message(is_v03)}),
        json!({"statusUpdate": {"taskId": "~t", "contextId": "~c", "status": status(state, is_v03), "metadata": {}}}),
        json!({"artifactUpdate": {"taskId": "~t", "contextId": "~c", "artifact": artifact(is_v03), "append": true,
            "lastChunk": true, "metadata": {"m": false}}}),
    ]
}

fn push() -> Value {
    json!({"url": "~http://y", "id": "~p", "taskId": "~t", "token": "~k",
        "authentication": {"scheme": "~Bearer", "credentials": "~s"}})
}

fn send(is_v03: bool) -> Value {
    let mut push = push();
    if is_v03 {
        push.as_object_mut().unwrap().shift_remove("taskId");
    }
    let mut send = json!({"message": message(is_v03), "metadata": {"q": 1}, "configuration": {
        "acceptedOutputModes": ["~a/b", "~c/d"], "historyLength": 3, "returnImmediately": true,
        "taskPushNotificationConfig": push}});
    if !is_v03 {
        send["tenant"] = json!("~x");
    }
    send
}

fn card(is_v03: bool) -> Value {
    let version = if is_v03 { "0.3" } else { "~1.0" };
    let mut first = json!({"url": "~http://u", "protocolBinding": "~JSONRPC", "protocolVersion": version});
    if !is_v03 {
        first["tenant"] = json!("~t");
    }
    let scopes = json!({"~s": "~what"});
    let oauth = |flows: Value| json!({"oauth2SecurityScheme": {"flows": flows, "description": "~d", "oauth2MetadataUrl": "~m"}});
    json!({
        "name": "~n", "description": "~d", "version": "~v",
        "supportedInterfaces": [first, {"url": "~http://w", "protocolBinding": "~GRPC", "protocolVersion": version}],
        "capabilities": {"streaming": true, "pushNotifications": true, "extendedAgentCard": true,
            "extensions": [{"uri": "~u", "description": "~d", "required": true, "params": {"p": [1]}}]},
        "defaultInputModes": ["~a/b"], "defaultOutputModes": ["~c/d", "~e/f"],
        "skills": [{"id": "~i", "name": "~n", "description": "~d", "tags": ["~t"], "examples": ["~e"],
            "inputModes": ["~i"], "outputModes": ["~o"], "securityRequirements": [{"schemes": {"k": {"list": ["~s"]}}}]}],
        "provider": {"organization": "~o", "url": "~u"}, "documentationUrl": "~du", "iconUrl": "~iu",
        "securitySchemes": {
            "key": {"apiKeySecurityScheme": {"location": "~header", "name": "~X", "description": "~d"}},
            "http": {"httpAuthSecurityScheme": {"scheme": "~bearer", "description": "~d", "bearerFormat": "~JWT"}},
            "code": oauth(json!({"authorizationCode": {"authorizationUrl": "~a", "tokenUrl": "~t", "scopes": scopes,
                "refreshUrl": "~r", "pkceRequired": true}})),
            "client": oauth(json!({"clientCredentials": {"tokenUrl": "~t", "scopes": scopes, "refreshUrl": "~r"}})),
            "device": oauth(json!({"deviceCode": {"deviceAuthorizationUrl": "~a", "tokenUrl": "~t", "scopes": scopes,
                "refreshUrl": "~r"}})),
            "implicit": oauth(json!({"implicit": {"authorizationUrl": "~a", "scopes": scopes, "refreshUrl": "~r"}})),
            "password": oauth(json!({"password": {"tokenUrl": "~t", "scopes": scopes, "refreshUrl": "~r"}})),
            "open": {"openIdConnectSecurityScheme": {"openIdConnectUrl": "~o", "description": "~d"}},
            "tls": {"mtlsSecurityScheme": {"description": "~d"}},
        },
        "securityRequirements": [{"schemes": {"key": {"list": []}, "code": {"list": ["~s"]}}}, {"schemes": {}}],
        "signatures": [{"protected": "~p", "signature": "~s", "header": {"kid": "k"}}],
    })
}

/// Removes the security schemes and fields that 0.3 does not have.
fn without_v10_schemes(schemes: HashMap<String, types::SecurityScheme>) -> HashMap<String, types::SecurityScheme> {
    let kept = schemes.into_iter().filter_map(|(name, mut scheme)| {
        if let types::SecurityScheme::OAuth2(scheme) = &mut scheme {
            match &mut scheme.flows {
                types::OAuthFlows::DeviceCode(_) => return None,
                types::OAuthFlows::AuthorizationCode(flow) => flow.pkce_required = None,
                _ => {}
            }
        }
        Some((name, scheme))
    });
    kept.collect()
}

fn dice() -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 0..400)
}

fn objects() -> impl Strategy<Value = serde_json::Map<String, Value>> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[a-zü]{0,200}".prop_map(Value::from)
    ];
    let value = leaf.prop_recursive(4, 24, 4, |inner| {
        let object = proptest::collection::hash_map("[a-z]{0,5}", inner.clone(), 0..4);
        prop_oneof![
            vec(inner, 0..4).prop_map(Value::from),
            object.prop_map(|object| Value::Object(object.into_iter().collect()))
        ]
    });
    proptest::collection::hash_map("[a-z]{0,5}", value, 0..4).prop_map(|object| object.into_iter().collect())
}

fn as_floats(value: &Value) -> Value {
    match value {
        Value::Number(number) => json!(number.as_f64()),
        Value::Array(items) => items.iter().map(as_floats).collect(),
        Value::Object(fields) => fields.iter().map(|(name, value)| (name.clone(), as_floats(value))).collect(),
        other => other.clone(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn updates_survive_both_packages(dice in dice(), which in 0_usize..4, state in 0_usize..9) {
        // A2A-1
        let original: types::StreamResponse = without_empty(generate(&updates(STATES[state], false)[which], &dice));
        prop_assert_eq!(&round_trip::<v1::StreamResponse, _>(&original)?, &original);
        let original: types::StreamResponse = without_empty(generate(&updates(STATES[state], true)[which], &dice));
        let back = round_trip::<v03::StreamResponse, _>(&original)?;
        if let types::StreamResponse::StatusUpdate(event) = &back {
            use types::TaskState::{Submitted, Unspecified, Working};
            let sent = v03::StreamResponse::from(original.clone());
            prop_assert_eq!(sent.is_final(), !matches!(event.status.state, Unspecified | Submitted | Working));
        }
        prop_assert_eq!(back, original);
    }

    #[test]
    fn responses_survive_both_packages(dice in dice(), which in 0_usize..2) {
        let original: types::SendMessageResponse = without_empty(generate(&updates(STATES[3], false)[which], &dice));
        prop_assert_eq!(&round_trip::<v1::SendMessageResponse, _>(&original)?, &original);
        let original: types::SendMessageResponse = without_empty(generate(&updates(STATES[3], true)[which], &dice));
        prop_assert_eq!(&round_trip::<v03::SendMessageResponse, _>(&original)?, &original);
        let tasks = json!({"tasks": [task(STATES[2], false), task(STATES[8], false)], "nextPageToken": "~n",
            "pageSize": 7, "totalSize": 8});
        let original: types::ListTasksResponse = without_empty(generate(&tasks, &dice));
        prop_assert_eq!(&round_trip::<v1::ListTasksResponse, _>(&original)?, &original);
        let configs = json!({"configs": [push(), push()], "nextPageToken": "~n"});
        let mut original: types::ListTaskPushNotificationConfigsResponse = generate(&configs, &dice);
        prop_assert_eq!(&round_trip::<v1::ListTaskPushNotificationConfigsResponse, _>(&original)?, &original);
        for config in &mut original.configs {
            // In 0.3 a configuration requires both ids.
            config.id.get_or_insert_with(|| "p".to_owned());
            config.task_id = "t".to_owned();
        }
        prop_assert_eq!(&round_trip::<v03::ListTaskPushNotificationConfigResponse, _>(&original)?, &original);
    }

    #[test]
    fn requests_survive_lf_a2a_v1(dice in dice()) {
        // A2A-1
        let original: types::SendMessageRequest = without_empty(generate(&send(false), &dice));
        prop_assert_eq!(&round_trip::<v1::SendMessageRequest, _>(&original)?, &original);
        let original: types::GetTaskRequest = generate(&json!({"id": "~i", "historyLength": 0, "tenant": "~t"}), &dice);
        prop_assert_eq!(&round_trip::<v1::GetTaskRequest, _>(&original)?, &original);
        let full = json!({"contextId": "~c", "status": "TASK_STATE_FAILED", "pageSize": 0, "pageToken": "~p",
            "historyLength": 4, "statusTimestampAfter": "0001-01-01T00:00:00Z", "includeArtifacts": false, "tenant": "~t"});
        let original: types::ListTasksRequest = generate(&full, &dice);
        prop_assert_eq!(&round_trip::<v1::ListTasksRequest, _>(&original)?, &original);
        let original: types::CancelTaskRequest = generate(&json!({"id": "~i", "metadata": {"a": 1}, "tenant": "~t"}), &dice);
        prop_assert_eq!(&round_trip::<v1::CancelTaskRequest, _>(&original)?, &original);
        let original: types::SubscribeToTaskRequest = generate(&json!({"id": "~i", "tenant": "~t"}), &dice);
        prop_assert_eq!(&round_trip::<v1::SubscribeToTaskRequest, _>(&original)?, &original);
        let one = json!({"taskId": "~i", "id": "~p", "tenant": "~t"});
        let original: types::GetTaskPushNotificationConfigRequest = generate(&one, &dice);
        prop_assert_eq!(&round_trip::<v1::GetTaskPushNotificationConfigRequest, _>(&original)?, &original);
        let original: types::DeleteTaskPushNotificationConfigRequest = generate(&one, &dice);
        prop_assert_eq!(&round_trip::<v1::DeleteTaskPushNotificationConfigRequest, _>(&original)?, &original);
        let many = json!({"taskId": "~i", "pageSize": 3, "pageToken": "~p", "tenant": "~t"});
        let original: types::ListTaskPushNotificationConfigsRequest = generate(&many, &dice);
        prop_assert_eq!(&round_trip::<v1::ListTaskPushNotificationConfigsRequest, _>(&original)?, &original);
        let original: types::GetExtendedAgentCardRequest = generate(&json!({"tenant": "~t"}), &dice);
        prop_assert_eq!(&round_trip::<v1::GetExtendedAgentCardRequest, _>(&original)?, &original);
    }

    #[test]
    fn requests_survive_a2a_v1(dice in dice()) {
        // A2A-1
        let mut original: types::SendMessageRequest = without_empty(generate(&send(true), &dice));
        // In 0.3 a missing configuration is sent as a blocking one.
        let empty = json!({});
        original.configuration.get_or_insert_with(|| serde_json::from_value(empty).unwrap());
        prop_assert_eq!(&round_trip::<v03::SendMessageRequest, _>(&original)?, &original);
        let original: types::GetTaskRequest = generate(&json!({"id": "~i", "historyLength": 2}), &dice);
        prop_assert_eq!(&round_trip::<v03::GetTaskRequest, _>(&original)?, &original);
        let original: types::CancelTaskRequest = generate(&json!({"id": "~i"}), &dice);
        prop_assert_eq!(&round_trip::<v03::CancelTaskRequest, _>(&original)?, &original);
        let original: types::SubscribeToTaskRequest = generate(&json!({"id": "~i"}), &dice);
        prop_assert_eq!(&round_trip::<v03::TaskSubscriptionRequest, _>(&original)?, &original);
        let one = json!({"taskId": "~i", "id": "~p"});
        let original: types::GetTaskPushNotificationConfigRequest = generate(&one, &dice);
        prop_assert_eq!(&round_trip::<v03::GetTaskPushNotificationConfigRequest, _>(&original)?, &original);
        let original: types::DeleteTaskPushNotificationConfigRequest = generate(&one, &dice);
        prop_assert_eq!(&round_trip::<v03::DeleteTaskPushNotificationConfigRequest, _>(&original)?, &original);
        let many = json!({"taskId": "~i", "pageSize": 3, "pageToken": "~p"});
        let original: types::ListTaskPushNotificationConfigsRequest = generate(&many, &dice);
        prop_assert_eq!(&round_trip::<v03::ListTaskPushNotificationConfigRequest, _>(&original)?, &original);
        let mut original: types::TaskPushNotificationConfig = generate(&push(), &dice);
        original.task_id = "t".to_owned();
        prop_assert_eq!(&round_trip::<v03::CreateTaskPushNotificationConfigRequest, _>(&original)?, &original);
    }

    #[test]
    fn cards_survive_both_packages(dice in dice()) {
        // A2A-1
        let original: types::AgentCard = without_empty(generate(&card(false), &dice));
        prop_assert_eq!(&round_trip::<v1::AgentCard, _>(&original)?, &original);
        let mut original: types::AgentCard = without_empty(generate(&card(true), &dice));
        if original.supported_interfaces.is_empty() {
            let interface = card(true)["supportedInterfaces"][0].clone();
            original.supported_interfaces.push(serde_json::from_value(interface).unwrap());
        }
        // 0.3 has neither device codes nor PKCE.
        original.security_schemes = original.security_schemes.map(without_v10_schemes).filter(|schemes| !schemes.is_empty());
        // In 0.3 an extended card requires a security scheme.
        let extended = crate::v03::has_extended(&original).filter(|has| *has);
        original.capabilities.extended_agent_card = extended;
        prop_assert_eq!(&round_trip::<v03::AgentCard, _>(&original)?, &original);
    }

    #[test]
    fn values_are_encoded_like_prost_types(object in objects(), number in any::<f64>(), whole in -(1_i64 << 53) + 1..1 << 53) {
        let mut object = object;
        object.insert("number".to_owned(), json!(number));
        object.insert("whole".to_owned(), json!(whole));
        let ours = Struct::from(object);
        let bytes = ours.encode_to_vec();
        prop_assert_eq!(bytes.len(), ours.encoded_len());
        // The types of prost decode our encoding, and we decode theirs.
        let theirs = prost_types::Struct::decode(bytes.as_slice()).unwrap();
        prop_assert_eq!(theirs.fields.len(), ours.fields.len());
        let back = Struct::decode(theirs.encode_to_vec().as_slice()).unwrap();
        // Whole floats become integers, so all numbers are compared as floats.
        let floats = |object: &Struct| object.fields.iter().map(|(name, value)| (name.clone(), as_floats(value))).collect::<HashMap<_, _>>();
        prop_assert_eq!(floats(&back), floats(&ours));
        prop_assert_eq!(&back.fields["whole"], &json!(whole));
        prop_assert!(!back.has_unknown_number);
    }

    #[test]
    fn decoding_arbitrary_bytes_never_panics(bytes in vec(any::<u8>(), 0..200), whole in 0_usize..200) {
        // Random bytes, and a message with random bytes in it.
        let full = v1::SendMessageRequest::from(generate::<types::SendMessageRequest>(&send(false), &[]));
        let mut near = full.encode_to_vec();
        let at = whole % near.len();
        near.splice(at..(at + bytes.len() % 4).min(near.len()), bytes.iter().copied().take(3));
        for bytes in [&bytes, &near] {
            let _ = v1::SendMessageRequest::decode(bytes.as_slice()).map(types::SendMessageRequest::try_from);
            let _ = v1::StreamResponse::decode(bytes.as_slice()).map(types::StreamResponse::try_from);
            let _ = v1::AgentCard::decode(bytes.as_slice()).map(types::AgentCard::try_from);
            let _ = v03::SendMessageRequest::decode(bytes.as_slice()).map(types::SendMessageRequest::try_from);
            let _ = v03::StreamResponse::decode(bytes.as_slice()).map(types::StreamResponse::try_from);
            let _ = v03::AgentCard::decode(bytes.as_slice()).map(types::AgentCard::try_from);
        }
    }
}

#[test]
fn errors_of_invalid_messages_name_the_field() {
    // A2A-1
    let part = |content| v1::Part { content, ..Default::default() };
    let request = |parts: Vec<v1::Part>| v1::SendMessageRequest {
        message: Some(v1::Message { parts, role: 1, ..Default::default() }),
        ..Default::default()
    };
    let nan = values::Value::decode(prost_types::Value::from(f64::NAN).encode_to_vec().as_slice()).unwrap();
    let field = |request: v1::SendMessageRequest| types::SendMessageRequest::try_from(request).unwrap_err().violations;
    assert_eq!(
        field(request(vec![part(Some(v1::part::Content::Text(String::new()))), part(None)]))[0].0,
        "message.parts[1].content"
    );
    assert_eq!(field(request(vec![part(Some(v1::part::Content::Data(nan)))]))[0].0, "message.parts[0].data");
    assert_eq!(field(v1::SendMessageRequest::default())[0].0, "message");
    let mut message = request(Vec::new());
    message.message.as_mut().unwrap().role = 9;
    assert_eq!(field(message)[0].0, "message.role");
    let late = v1::ListTasksRequest {
        status_timestamp_after: Some(prost_types::Timestamp { seconds: i64::MAX, nanos: 0 }),
        ..Default::default()
    };
    assert_eq!(types::ListTasksRequest::try_from(late).unwrap_err().violations[0].0, "statusTimestampAfter");
}

//! Values that both versions can express survive a round trip in both directions.

use std::collections::HashMap;

use chrono::DateTime;
use proptest::collection::{hash_map, vec};
use proptest::option::of;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;
use crate::types;

fn word() -> impl Strategy<Value = String> {
    "[a-zA-Z0-9 äß:/.-]{1,12}"
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        word().prop_map(Value::from)
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![vec(inner.clone(), 0..3).prop_map(Value::from), object(inner).prop_map(Value::Object)]
    })
}

fn object(inner: impl Strategy<Value = Value>) -> impl Strategy<Value = Map<String, Value>> {
    hash_map(word(), inner, 0..3).prop_map(Map::from_iter)
}

fn metadata() -> impl Strategy<Value = Option<Metadata>> {
    of(hash_map(word(), value(), 0..3))
}

/// Parts that 0.3 can express. Only files have names and media types.
fn part() -> impl Strategy<Value = types::Part> {
    let plain = prop_oneof![word().prop_map(types::PartContent::Text), value().prop_map(types::PartContent::Data)];
    let file = prop_oneof![
        vec(any::<u8>(), 0..20).prop_map(types::PartContent::Raw),
        word().prop_map(types::PartContent::Url)
    ];
    let plain = (plain, Just(None), Just(None), metadata());
    let file = (file, of(word()), of(word()), metadata());
    let made = |(content, filename, media_type, metadata)| types::Part { content, filename, media_type, metadata };
    // On wrapped data, empty metadata becomes missing metadata.
    let is_lossless = |part: &types::Part| {
        let wraps = matches!(&part.content, types::PartContent::Data(data) if !data.is_object());
        !(wraps && part.metadata.as_ref().is_some_and(HashMap::is_empty))
    };
    prop_oneof![plain.prop_map(made), file.prop_map(made)].prop_filter("survives a round trip", is_lossless)
}

fn message() -> impl Strategy<Value = types::Message> {
    let role = prop_oneof![Just(types::Role::User), Just(types::Role::Agent)];
    let ids = || of(vec(word(), 0..3));
    (word(), of(word()), of(word()), role, vec(part(), 0..3), metadata(), ids(), ids()).prop_map(
        |(message_id, context_id, task_id, role, parts, metadata, extensions, reference_task_ids)| types::Message {
            message_id,
            context_id,
            task_id,
            role,
            parts,
            metadata,
            extensions,
            reference_task_ids,
        },
    )
}

fn state() -> impl Strategy<Value = types::TaskState> {
    use types::TaskState::*;
    prop::sample::select(vec![
        Unspecified,
        Submitted,
        Working,
        Completed,
        Failed,
        Canceled,
        InputRequired,
        Rejected,
        AuthRequired,
    ])
}

fn status() -> impl Strategy<Value = types::TaskStatus> {
    let time = (0i64..4_000_000_000, 0u32..1_000_000_000)
        .prop_map(|(seconds, nanos)| DateTime::from_timestamp(seconds, nanos).unwrap());
    (state(), of(message()), of(time)).prop_map(|(state, message, timestamp)| types::TaskStatus {
        state,
        message,
        timestamp,
    })
}

fn artifact() -> impl Strategy<Value = types::Artifact> {
    (word(), of(word()), of(word()), vec(part(), 0..3), metadata(), of(vec(word(), 0..3))).prop_map(
        |(artifact_id, name, description, parts, metadata, extensions)| types::Artifact {
            artifact_id,
            name,
            description,
            parts,
            metadata,
            extensions,
        },
    )
}

fn task() -> impl Strategy<Value = types::Task> {
    let lists = (of(vec(artifact(), 0..2)), of(vec(message(), 0..2)));
    (word(), word(), status(), lists, metadata()).prop_map(
        |(id, context_id, status, (artifacts, history), metadata)| types::Task {
            id,
            context_id,
            status,
            artifacts,
            history,
            metadata,
        },
    )
}

pub(super) fn update() -> impl Strategy<Value = types::StreamResponse> {
    let status = (word(), word(), status(), metadata()).prop_map(|(task_id, context_id, status, metadata)| {
        types::StreamResponse::StatusUpdate(types::TaskStatusUpdateEvent { task_id, context_id, status, metadata })
    });
    let artifact = (word(), word(), artifact(), of(any::<bool>()), of(any::<bool>()), metadata()).prop_map(
        |(task_id, context_id, artifact, append, last_chunk, metadata)| {
            types::StreamResponse::ArtifactUpdate(types::TaskArtifactUpdateEvent {
                task_id,
                context_id,
                artifact,
                append,
                last_chunk,
                metadata,
            })
        },
    );
    prop_oneof![
        task().prop_map(types::StreamResponse::Task),
        message().prop_map(types::StreamResponse::Message),
        status,
        artifact
    ]
}

pub(super) fn push(task_id: impl Strategy<Value = String>) -> impl Strategy<Value = types::TaskPushNotificationConfig> {
    let login =
        (word(), of(word())).prop_map(|(scheme, credentials)| types::AuthenticationInfo { scheme, credentials });
    (word(), of(word()), task_id, of(word()), of(login)).prop_map(|(url, id, task_id, token, authentication)| {
        types::TaskPushNotificationConfig { url, id, task_id, token, authentication, tenant: None }
    })
}

pub(super) fn send() -> impl Strategy<Value = types::SendMessageRequest> {
    let configuration = (of(vec(word(), 0..3)), of(push(Just(String::new()))), of(1..i32::MAX), of(any::<bool>()))
        .prop_map(|(accepted_output_modes, task_push_notification_config, history_length, return_immediately)| {
            types::SendMessageConfiguration {
                accepted_output_modes,
                task_push_notification_config,
                history_length,
                return_immediately,
            }
        });
    (message(), of(configuration), metadata()).prop_map(|(message, configuration, metadata)| {
        types::SendMessageRequest { message, configuration, metadata, tenant: None }
    })
}

fn scopes() -> impl Strategy<Value = HashMap<String, String>> {
    hash_map(word(), word(), 0..3)
}

fn scheme() -> impl Strategy<Value = types::SecurityScheme> {
    let code =
        (word(), word(), scopes(), of(word())).prop_map(|(authorization_url, token_url, scopes, refresh_url)| {
            types::OAuthFlows::AuthorizationCode(types::AuthorizationCodeOAuthFlow {
                authorization_url,
                token_url,
                scopes,
                refresh_url,
                pkce_required: None,
            })
        });
    let other = (0..3, word(), scopes(), of(word())).prop_map(|(which, url, scopes, refresh_url)| match which {
        0 => types::OAuthFlows::ClientCredentials(types::ClientCredentialsOAuthFlow {
            token_url: url,
            scopes,
            refresh_url,
        }),
        1 => types::OAuthFlows::Implicit(types::ImplicitOAuthFlow { authorization_url: url, scopes, refresh_url }),
        _ => types::OAuthFlows::Password(types::PasswordOAuthFlow { token_url: url, scopes, refresh_url }),
    });
    let oauth =
        (prop_oneof![code, other], of(word()), of(word())).prop_map(|(flows, description, oauth2_metadata_url)| {
            types::SecurityScheme::OAuth2(types::OAuth2SecurityScheme { flows, description, oauth2_metadata_url })
        });
    let other =
        (0..4, word(), word(), of(word()), of(word())).prop_map(|(which, one, two, description, format)| match which {
            0 => types::SecurityScheme::ApiKey(types::ApiKeySecurityScheme { location: one, name: two, description }),
            1 => types::SecurityScheme::HttpAuth(types::HttpAuthSecurityScheme {
                scheme: one,
                description,
                bearer_format: format,
            }),
            2 => types::SecurityScheme::OpenIdConnect(types::OpenIdConnectSecurityScheme {
                open_id_connect_url: one,
                description,
            }),
            _ => types::SecurityScheme::MutualTls(types::MutualTlsSecurityScheme { description }),
        });
    prop_oneof![oauth, other]
}

fn requirements() -> impl Strategy<Value = Option<Vec<types::SecurityRequirement>>> {
    of(vec(hash_map(word(), vec(word(), 0..2), 0..2), 0..2))
}

fn skill() -> impl Strategy<Value = types::AgentSkill> {
    let words = || of(vec(word(), 0..2));
    (word(), word(), word(), vec(word(), 0..2), words(), words(), words(), requirements()).prop_map(
        |(id, name, description, tags, examples, input_modes, output_modes, security_requirements)| types::AgentSkill {
            id,
            name,
            description,
            tags,
            examples,
            input_modes,
            output_modes,
            security_requirements,
        },
    )
}

fn card() -> impl Strategy<Value = types::AgentCard> {
    let interface = (word(), word()).prop_map(|(url, protocol_binding)| types::AgentInterface {
        url,
        protocol_binding,
        protocol_version: "0.3".to_owned(),
        tenant: None,
    });
    let flags = (of(any::<bool>()), of(any::<bool>()), of(any::<bool>()));
    let words = (word(), word(), word(), vec(word(), 0..2), vec(word(), 0..2));
    let urls = (of(word()), of(word()), of((word(), word())));
    let security = (of(hash_map(word(), scheme(), 0..3)), requirements());
    (words, vec(interface, 1..4), flags, vec(skill(), 0..2), urls, security).prop_map(
        |(words, supported_interfaces, flags, skills, urls, (security_schemes, security_requirements))| {
            let (name, description, version, default_input_modes, default_output_modes) = words;
            let (streaming, push_notifications, extended_agent_card) = flags;
            // In 0.3 an extended card requires a security scheme.
            let known = security_schemes.as_ref().is_some_and(|schemes| !schemes.is_empty());
            let extended_agent_card = extended_agent_card.map(|has| has && known);
            let (documentation_url, icon_url, provider) = urls;
            types::AgentCard {
                name,
                description,
                version,
                supported_interfaces,
                capabilities: types::AgentCapabilities {
                    streaming,
                    push_notifications,
                    extensions: None,
                    extended_agent_card,
                },
                default_input_modes,
                default_output_modes,
                skills,
                provider: provider.map(|(organization, url)| types::AgentProvider { organization, url }),
                documentation_url,
                icon_url,
                security_schemes,
                security_requirements,
                signatures: None,
            }
        },
    )
}

/// Checks the round trip through JSON in both directions.
macro_rules! assert_round_trip {
    ($first:expr, $theirs:ty, $ours:ty) => {{
        let first: $theirs = $first;
        let ours = <$ours>::from(first.clone());
        let text = serde_json::to_string(&ours).unwrap();
        let read: $ours = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(&read, &ours, "as text: {}", text);
        let back = <$theirs>::try_from(read).unwrap();
        prop_assert_eq!(&back, &first);
        prop_assert_eq!(<$ours>::from(back), ours);
    }};
}

proptest! {
    // A2A-1
    #[test]
    fn updates_survive_a_round_trip(update in update()) {
        assert_round_trip!(update, types::StreamResponse, StreamResult);
    }

    // A2A-1
    #[test]
    fn messages_survive_a_round_trip(request in send()) {
        assert_round_trip!(request, types::SendMessageRequest, MessageSendParams);
    }

    // A2A-1
    #[test]
    fn push_configurations_survive_a_round_trip(config in push(word())) {
        assert_round_trip!(config, types::TaskPushNotificationConfig, TaskPushNotificationConfig);
    }

    // A2A-1
    #[test]
    fn cards_survive_a_round_trip(card in card()) {
        assert_round_trip!(card, types::AgentCard, AgentCard);
    }

    // A2A-1
    #[test]
    fn simple_requests_survive_a_round_trip(id in word(), config in "[a-z]{1,5}", length in of(1..i32::MAX), metadata in metadata()) {
        let get = types::GetTaskRequest { id: id.clone(), history_length: length, tenant: None };
        assert_round_trip!(get, types::GetTaskRequest, TaskQueryParams);
        let cancel = types::CancelTaskRequest { id: id.clone(), metadata, tenant: None };
        assert_round_trip!(cancel, types::CancelTaskRequest, TaskIdParams);
        let subscribe = types::SubscribeToTaskRequest { id: id.clone(), tenant: None };
        assert_round_trip!(subscribe, types::SubscribeToTaskRequest, TaskIdParams);
        let list = types::ListTaskPushNotificationConfigsRequest { task_id: id.clone(), page_size: None, page_token: None, tenant: None };
        assert_round_trip!(list, types::ListTaskPushNotificationConfigsRequest, TaskIdParams);
        let get = types::GetTaskPushNotificationConfigRequest { task_id: id.clone(), id: config.clone(), tenant: None };
        assert_round_trip!(get, types::GetTaskPushNotificationConfigRequest, PushParams);
        let delete = types::DeleteTaskPushNotificationConfigRequest { task_id: id, id: config, tenant: None };
        assert_round_trip!(delete, types::DeleteTaskPushNotificationConfigRequest, PushParams);
    }
}

#[test]
fn tasks_are_encoded_as_in_0_3() {
    let task = types::Task {
        id: "t".to_owned(),
        context_id: "c".to_owned(),
        status: types::TaskStatus {
            state: types::TaskState::InputRequired,
            message: Some(types::Message {
                message_id: "m".to_owned(),
                context_id: None,
                task_id: None,
                role: types::Role::Agent,
                parts: vec![
                    types::Part::text("hello"),
                    types::Part::raw(vec![1, 2]).with_filename("a.bin").with_media_type("x/y"),
                    types::Part::url("https://example.org"),
                    types::Part::data(json!({"a": 1})),
                    types::Part::data(json!(7)),
                ],
                metadata: None,
                extensions: None,
                reference_task_ids: None,
            }),
            timestamp: DateTime::from_timestamp(1_700_000_000, 0),
        },
        artifacts: None,
        history: None,
        metadata: None,
    };
    let status = json!({
        "state": "input-required",
        "timestamp": "2023-11-14T22:13:20Z",
        "message": {
            "kind": "message", "messageId": "m", "role": "agent",
            "parts": [
                {"kind": "text", "text": "hello"},
                {"kind": "file", "file": {"bytes": "AQI=", "name": "a.bin", "mimeType": "x/y"}},
                {"kind": "file", "file": {"uri": "https://example.org"}},
                {"kind": "data", "data": {"a": 1}},
                {"kind": "data", "data": {"value": 7}, "metadata": {"data_part_compat": true}},
            ],
        },
    });
    let expected = json!({"kind": "task", "id": "t", "contextId": "c", "status": status});
    assert_eq!(serde_json::to_value(Task::from(task.clone())).unwrap(), expected);

    let update = types::TaskStatusUpdateEvent {
        task_id: task.id,
        context_id: task.context_id,
        status: task.status,
        metadata: None,
    };
    let expected = json!({"kind": "status-update", "taskId": "t", "contextId": "c", "final": true, "status": status});
    assert_eq!(serde_json::to_value(TaskStatusUpdateEvent::from(update)).unwrap(), expected);
}

#[test]
fn streams_end_when_a_task_ends_or_waits_for_the_caller() {
    use types::TaskState::*;
    for (state, ends) in [
        (Submitted, false),
        (Working, false),
        (Unspecified, false),
        (Completed, true),
        (Failed, true),
        (Canceled, true),
        (Rejected, true),
        (InputRequired, true),
        (AuthRequired, true),
    ] {
        assert_eq!(ends_stream(&state), ends);
    }
}

#[test]
fn errors_of_invalid_parts_name_the_reason() {
    for (part, complaint) in [
        (json!({"text": "hello"}), "missing field `kind`"),
        (json!({"kind": "text"}), "missing field `text`"),
        (json!({"kind": "text", "text": 5}), "expected a string"),
        (json!({"kind": "film"}), "unknown kind `film`"),
        (json!({"kind": "file", "file": {}}), "one of `bytes` and `uri`"),
        (json!({"kind": "file", "file": {"bytes": "?"}}), "not base64"),
        (json!({"kind": "data", "data": [1]}), "expected a map"),
        (json!("text"), "expected"),
    ] {
        let error = serde_json::from_value::<Part>(part.clone()).unwrap_err().to_string();
        assert!(error.contains(complaint), "{part}: {error}");
    }
}

#[test]
fn times_are_accepted_with_and_without_an_offset() {
    let read =
        |text: &str| serde_json::from_value::<TaskStatus>(json!({"state": "working", "timestamp": text})).unwrap();
    let expected = DateTime::from_timestamp(1_700_000_000, 0);
    assert_eq!(read("2023-11-14T22:13:20Z").timestamp, expected);
    assert_eq!(read("2023-11-14T23:13:20+01:00").timestamp, expected);
    assert_eq!(read("2023-11-14T22:13:20").timestamp, expected);
    assert_eq!(read("yesterday").timestamp, None);
}

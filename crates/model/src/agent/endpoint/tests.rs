//! Tests of the validation of endpoints.

use serde_json::{Value, json};

use super::*;
use crate::Invalid;
use crate::agent::AgentDraft;

const USER: &str = "7d9f1a52-3c1e-4b7a-9d42-5f0e6f1c2b3a";

fn agent(a2a: Value) -> Result<Agent, Invalid> {
    crate::json::from_value::<AgentDraft>(json!({"id": "codex", "executable_path": "x", "a2a": a2a}))?.check()
}

fn endpoint(a2a: Value) -> Endpoint {
    agent(a2a).unwrap().a2a
}

/// Returns the field and the rule of each violation.
fn violated_rules(a2a: Value) -> Vec<String> {
    let violations = agent(a2a).unwrap_err().violations;
    violations.into_iter().map(|violation| format!("{} {}", violation.field, violation.rule)).collect()
}

#[test]
fn an_endpoint_uses_the_authentication_of_the_server_by_default() {
    // A2A-1, A2A-2
    let agent = AgentDraft { id: Some("a".into()), executable_path: Some("x".into()), ..AgentDraft::default() }
        .check()
        .unwrap();
    assert_eq!(agent.a2a, Endpoint::default());
    assert!(agent.a2a.enabled && agent.a2a.auth.is_none() && agent.a2a.rate.is_none());
    assert!(A2aTransport::ALL.iter().all(|transport| agent.a2a.offers(*transport)));
    assert!(A2aMethod::ALL.iter().all(|method| agent.a2a.allows(*method)));
    // Agents that were stored before the field existed are still readable.
    let mut stored = serde_json::to_value(&agent).unwrap();
    stored.as_object_mut().unwrap().shift_remove("a2a");
    assert_eq!(serde_json::from_value::<Agent>(stored).unwrap(), agent);
}

#[test]
fn an_endpoint_round_trips_through_json() {
    let whole = json!({
        "enabled": true, "transports": ["json_rpc", "grpc"],
        "auth": {"type": "api_key", "token": "env:KEY", "header_name": "X-Key", "user": USER},
        "rate": {"per_minute": 60, "burst": 10},
        "capabilities": {
            "supported_methods": ["SendMessage", "tasks/get"], "max_input_size": 1000, "streaming_support": false,
            "supported_content_types": ["text/plain", "Image/*"],
        },
        "skills": [{"name": "Tidy up", "tags": ["files"], "examples": ["Tidy the changelog."]}],
        "version": "2.0", "provider": {"organization": "Ours", "url": "https://ours.example"},
        "documentation_url": "https://ours.example/docs", "icon_url": "https://ours.example/icon.png",
    });
    let first = endpoint(whole);
    assert_eq!(first.skills[0].id, "tidy-up");
    assert_eq!(first.capabilities.supported_methods, Some(vec![A2aMethod::Send, A2aMethod::Get]));
    let shown = serde_json::to_value(&first).unwrap();
    assert_eq!(shown["capabilities"]["supported_content_types"], json!(["text/plain", "image/*"]));
    assert_eq!(endpoint(shown.clone()), first);
    assert_eq!(serde_json::from_value::<Endpoint>(shown).unwrap(), first);
}

#[test]
fn the_field_names_of_s2_are_aliases() {
    // A2A-4
    let long = json!({
        "agent_id": "codex", "base_path": "/agents/codex/v1", "transport_protocols": ["http_json"],
        "authentication": {"type": "none", "required": false}, "rate_limiting": {"per_minute": 6},
        "supported_methods": ["execute-agent"], "supported_content_types": ["text/plain"],
    });
    let short = json!({
        "transports": ["HTTP+JSON"], "auth": {"type": "none"}, "rate": {"per_minute": 6, "burst": 1},
        "capabilities": {"supported_methods": ["execute-agent"], "supported_content_types": ["text/plain"]},
    });
    assert_eq!(endpoint(long), endpoint(short));
    assert_eq!(
        violated_rules(json!({"agent_id": "other", "base_path": "/x"})),
        ["a2a.agent_id same", "a2a.base_path same"]
    );
    let twice = json!({"supported_methods": ["status"], "capabilities": {"supported_methods": ["status"]}});
    assert_eq!(violated_rules(twice), ["a2a.supported_methods twice"]);
}

#[test]
fn tokens_are_references_and_name_their_user() {
    // A2A-2
    let auth = |auth: Value| json!({"auth": auth});
    let bearer = endpoint(auth(json!({"type": "bearer_token", "token": "env:T", "user": USER}))).auth.unwrap();
    assert_eq!((bearer.header(), bearer.required), (Some("Authorization"), true));
    let key = endpoint(auth(json!({"type": "api_key", "token": "file:/run/key", "user": USER}))).auth.unwrap();
    assert_eq!(key.header(), Some("X-API-Key"));
    let open = endpoint(auth(json!({"type": "none"}))).auth.unwrap();
    assert_eq!((open.header(), open.required), (None, false));
    assert!(!endpoint(auth(json!({"type": "jwt", "required": false}))).auth.unwrap().required);
    for (given, expected) in [
        (json!({"type": "bearer_token"}), vec!["a2a.auth.token required", "a2a.auth.user required"]),
        (json!({"type": "api_key", "token": "hunter2", "user": USER}), vec!["a2a.auth.token secret"]),
        (json!({"type": "api_key", "token": "env:", "user": USER}), vec!["a2a.auth.token secret"]),
        (json!({"type": "api_key", "token": "env:K", "user": "me"}), vec!["a2a.auth.user uuid"]),
        (
            json!({"type": "jwt", "token": "env:K", "user": USER, "header_name": "X"}),
            vec!["a2a.auth.token unused", "a2a.auth.user unused", "a2a.auth.header_name unused"],
        ),
        (json!({"type": "none", "required": true}), vec!["a2a.auth.required consistent"]),
        (json!({"type": "magic"}), vec!["a2a.auth.type type"]),
        (
            json!({"type": "api_key", "token": "env:K", "user": USER, "header_name": "X Key"}),
            vec!["a2a.auth.header_name header"],
        ),
        (
            json!({"type": "api_key", "token": "env:K", "user": USER, "header_name": "x-key-bin"}),
            vec!["a2a.auth.header_name header"],
        ),
        (
            json!({"type": "api_key", "token": "env:K", "user": USER, "header_name": "Host"}),
            vec!["a2a.auth.header_name header"],
        ),
    ] {
        assert_eq!(violated_rules(auth(given.clone())), expected, "{given}");
    }
    let message = agent(auth(json!({"type": "api_key", "token": "hunter2", "user": USER}))).unwrap_err().to_string();
    assert!(!message.contains("hunter2"), "{message}");
}

#[test]
fn all_violations_are_reported_by_field() {
    // A2A-3, A2A-4
    assert_eq!(violated_rules(json!({"transport": ["grpc"]})), ["a2a.transport unknown"]);
    assert_eq!(violated_rules(json!({"transports": ["carrier_pigeon"]})), ["a2a.transports[0] type"]);
    assert_eq!(violated_rules(json!({"supported_methods": ["Fly"]})), ["a2a.supported_methods[0] type"]);
    let fields = violated_rules(json!({
        "transports": [], "rate": {"per_minute": 0, "burst": 0}, "version": "", "icon_url": "javascript:alert(1)",
        "provider": {"organization": "", "url": "ours"}, "skills": [{"id": "a", "name": ""}, {"id": "a", "name": "b"}],
        "capabilities": {
            "supported_methods": [], "supported_content_types": ["text", "*/plain", "text/pl ain", "a/b*"],
            "max_input_size": 2_000_000, "max_output_size": 5, "concurrent_execution": false,
        },
    }));
    let expected = [
        "a2a.transports items",
        "a2a.skills[0].name min_length",
        "a2a.skills[0].description min_length",
        "a2a.skills[1].id unique",
        "a2a.version min_length",
        "a2a.provider.organization min_length",
        "a2a.provider.url url",
        "a2a.icon_url url",
        "a2a.rate.per_minute range",
        "a2a.rate.burst range",
        "a2a.capabilities.supported_methods items",
        "a2a.capabilities.max_input_size range",
        "a2a.capabilities.max_output_size same",
        "a2a.capabilities.concurrent_execution same",
        "a2a.capabilities.supported_content_types[0] media_type",
        "a2a.capabilities.supported_content_types[1] media_type",
        "a2a.capabilities.supported_content_types[2] media_type",
        "a2a.capabilities.supported_content_types[3] media_type",
    ];
    assert_eq!(fields, expected);
}

#[test]
fn advertised_capabilities_are_the_effective_ones() {
    // A2A-4
    let agent = agent(json!({"capabilities": {"max_input_size": 100, "streaming_support": false}})).unwrap();
    let advertised = agent.a2a.advertised_capabilities(&agent);
    assert_eq!((advertised.max_input_size, advertised.max_output_size), (100, 10 << 20));
    assert!(!advertised.streaming_support && advertised.concurrent_execution);
    let methods = &advertised.supported_methods;
    assert!(!methods.contains(&A2aMethod::Stream) && !methods.contains(&A2aMethod::Subscribe));
    assert_eq!(methods.len(), A2aMethod::ALL.len() - 2);
    let alone = Agent { access_type: crate::agent::AccessType::ReadWrite, ..agent };
    assert!(!alone.a2a.advertised_capabilities(&alone).concurrent_execution);
}

#[test]
fn media_types_match_by_type_and_subtype() {
    // A2A-4
    let restricted = endpoint(json!({"supported_content_types": ["text/plain", "image/*"]}));
    for (media_type, is_accepted) in [
        ("text/plain", true),
        ("Text/Plain; charset=utf-8", true),
        ("image/png", true),
        ("text/html", false),
        ("imagery/png", false),
        ("", false),
    ] {
        assert_eq!(restricted.accepts_media_type(media_type), is_accepted, "{media_type}");
    }
    assert!(Endpoint::default().accepts_media_type("application/x-anything"));
}

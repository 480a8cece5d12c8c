//! Tests of agent cards: their content and their addresses.

use super::*;

async fn card(server: &TestServer, path: &str) -> Value {
    let answer = server.client.get(format!("{}{path}", server.url)).send().await.unwrap();
    assert_eq!(answer.status(), 200, "{path}");
    answer.json().await.unwrap()
}

#[tokio::test]
async fn a_card_reflects_the_configuration() {
    // A2A-1, A2A-4
    let dir = tempfile::tempdir().unwrap();
    let config = json!({
        "description": "Writes code.",
        "a2a": {
            "transports": ["json_rpc", "grpc"],
            "auth": {"type": "api_key", "token": token(dir.path(), "key"), "user": ALICE},
            "rate": {"per_minute": 60, "burst": 10},
            "capabilities": {"streaming_support": false, "max_input_size": 1000, "supported_content_types": ["text/plain"]},
            "skills": [{"id": "tidy", "name": "Tidy up", "description": "Tidies.", "tags": ["files"], "examples": ["Tidy!"]}],
            "version": "2.1", "provider": {"organization": "Ours", "url": "https://ours.example"},
            "documentation_url": "https://ours.example/docs",
        },
    });
    let server = start_server(with_tokens(), vec![echo("codex", config)]).await;
    let public = card(&server, "/agents/codex/.well-known/agent-card.json").await;
    let host = server.url.trim_start_matches("http://");
    let url = format!("{}/agents/codex", server.url);
    assert_eq!(
        public["supportedInterfaces"],
        json!([
            {"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
            {"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "0.3"},
            {"url": host, "protocolBinding": "GRPC", "protocolVersion": "1.0", "tenant": "codex"},
            {"url": host, "protocolBinding": "GRPC", "protocolVersion": "0.3"},
        ])
    );
    assert_eq!((&public["name"], &public["version"]), (&json!("codex"), &json!("2.1")));
    assert_eq!(public["description"], "Writes code.");
    assert_eq!(public["capabilities"]["streaming"], false);
    assert_eq!(public["capabilities"]["pushNotifications"], true);
    assert_eq!(public["capabilities"]["extendedAgentCard"], true);
    assert_eq!(public["defaultInputModes"], json!(["text/plain"]));
    assert_eq!(public["skills"][0]["examples"], json!(["Tidy!"]));
    assert_eq!(public["provider"]["organization"], "Ours");
    assert_eq!(public["securitySchemes"]["default"]["apiKeySecurityScheme"]["name"], "X-API-Key");
    assert_eq!(public["securitySchemes"]["default"]["in"], "header", "the form of 0.3");
    assert_eq!(public["securityRequirements"], json!([{"schemes": {"default": {"list": []}}}]));
    // The fields of 0.3.
    assert_eq!((&public["url"], &public["preferredTransport"]), (&json!(url), &json!("JSONRPC")));
    let text = public.to_string();
    assert!(!text.contains("file:") && !text.contains(ALICE), "{text}");

    let extended = extended_over_rpc(&server, "codex", "key").await;
    let limits = &extended["capabilities"]["extensions"][0];
    assert_eq!(limits["uri"], "urn:adjutant:a2a:capabilities:v1");
    let params = &limits["params"];
    assert_eq!((&params["max_input_size"], &params["max_output_size"]), (&json!(1000), &json!(10_485_760)));
    assert_eq!((&params["streaming_support"], &params["concurrent_execution"]), (&json!(false), &json!(true)));
    assert_eq!(params["supported_content_types"], json!(["text/plain"]));
    assert!(!params["supported_methods"].to_string().contains("Streaming"), "{params}");
    assert_eq!(params["rate"], json!({"per_minute": 60, "burst": 10}));
    assert!(public["capabilities"]["extensions"].is_null(), "only the extended card has limits");
}

async fn extended_over_rpc(server: &TestServer, agent: &str, key: &str) -> Value {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "GetExtendedAgentCard"});
    let request = request(server, Method::POST, &format!("/agents/{agent}")).header("X-API-Key", key).json(&body);
    let answer: Value = request.send().await.unwrap().json().await.unwrap();
    answer["result"].clone()
}

#[tokio::test]
async fn cards_are_served_at_all_well_known_paths() {
    // A2A-1
    let server =
        start_server(ServerSettings::default(), vec![echo("usual", json!({})), echo("off", json!({"enabled": false}))])
            .await;
    let root = card(&server, "/.well-known/agent-card.json").await;
    assert_eq!(root["name"], "Assistant");
    assert_eq!(root, card(&server, "/agents/assistant/.well-known/agent-card.json").await);
    assert_eq!(root["defaultInputModes"], json!(["text/plain", "text/markdown"]));
    let usual = card(&server, "/agents/usual/v1/.well-known/agent-card.json").await;
    assert_eq!(usual["skills"][0]["id"], "usual", "the default skill comes from the description");
    assert!(!usual["description"].as_str().unwrap().is_empty());
    assert!(usual["securitySchemes"].is_null(), "no authentication is configured");
    let interfaces = usual["supportedInterfaces"].as_array().unwrap();
    assert_eq!(interfaces.len(), 6, "each transport in both versions");
    for agent in ["off", "nobody"] {
        assert_eq!(get(&server, &format!("/agents/{agent}/.well-known/agent-card.json")).await.status(), 404);
    }
    let list: Value = card(&server, "/agents").await;
    assert_eq!((&list["count"], &list["next_cursor"]), (&json!(2), &Value::Null));
    assert_eq!(list["agents"][1], card(&server, "/agents/usual/.well-known/agent-card.json").await);
    assert_eq!(card(&server, "/agents/").await, list);
    assert_eq!(get(&server, "/agents?nonsense=1").await.status(), 422);
}

#[tokio::test]
async fn a_card_describes_the_authentication() {
    // A2A-2
    let dir = tempfile::tempdir().unwrap();
    let own = |config: Value| {
        let mut auth = json!({"type": "bearer_token", "token": token(dir.path(), "t"), "user": ALICE});
        auth.as_object_mut().unwrap().extend(config.as_object().unwrap().clone());
        json!({"a2a": {"auth": auth}})
    };
    let agents = vec![
        echo("usual", json!({"allow": ["*"]})),
        echo("bearer", own(json!({}))),
        echo("header", own(json!({"header_name": "X-Token"}))),
        echo("maybe", own(json!({"required": false}))),
        echo("open", json!({"a2a": {"auth": {"type": "none"}}})),
    ];
    let server = start_server(with_tokens(), agents).await;
    let card_of = async |agent: &str| card(&server, &format!("/agents/{agent}/.well-known/agent-card.json")).await;
    let scheme = |card: &Value| card["securitySchemes"]["default"].clone();
    let usual = card_of("usual").await;
    assert_eq!(scheme(&usual)["httpAuthSecurityScheme"], json!({"scheme": "Bearer", "bearerFormat": "JWT"}));
    assert_eq!(scheme(&card_of("bearer").await)["httpAuthSecurityScheme"], json!({"scheme": "Bearer"}));
    assert_eq!(scheme(&card_of("header").await)["apiKeySecurityScheme"]["name"], "X-Token");
    let maybe = card_of("maybe").await;
    assert!(scheme(&maybe).is_object() && maybe["securityRequirements"].is_null());
    let open = card_of("open").await;
    assert!(open["securitySchemes"].is_null());
    assert_eq!(open["capabilities"]["extendedAgentCard"], false, "no caller is authenticated");
}

#[tokio::test]
async fn urls_use_public_url_or_the_host_of_the_request() {
    // A2A-1
    let public = ServerSettings { public_url: Some("https://adjutant.example".into()), ..ServerSettings::default() };
    let one = start_server(public, vec![echo("a", json!({}))]).await;
    let public_card = card(&one, "/agents/a/.well-known/agent-card.json").await;
    let urls: Vec<_> =
        public_card["supportedInterfaces"].as_array().unwrap().iter().map(|i| i["url"].clone()).collect();
    assert_eq!(urls[0], "https://adjutant.example/agents/a");
    assert_eq!(urls[4], "https://adjutant.example");
    let open = ServerSettings { loopback_only: false, ..with_tokens() };
    let other = start_server(open, vec![echo("a", json!({"allow": ["*"]}))]).await;
    let url = format!("{}/agents/a/.well-known/agent-card.json", other.url);
    for (host, expected) in
        [("adjutant.lan:7717", "http://adjutant.lan:7717/agents/a"), ("a@b", "http://localhost/agents/a")]
    {
        let answer = other.client.get(&url).header("Host", host).send().await.unwrap();
        let card: Value = answer.json().await.unwrap();
        assert_eq!(card["url"], expected);
    }
}

#[tokio::test]
async fn the_default_agent_is_configurable() {
    // A2A-1
    let mut settings = ServerSettings::default();
    settings.a2a.default_agent = "a".to_owned();
    settings.a2a.assistant.enabled = false;
    let server = start_server(settings, vec![echo("a", json!({}))]).await;
    assert_eq!(card(&server, "/.well-known/agent-card.json").await["name"], "a");
    assert_eq!(get(&server, "/agents/assistant/.well-known/agent-card.json").await.status(), 404);
    assert_eq!(card(&server, "/agents").await["count"], 1);
}

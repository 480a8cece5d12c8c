//! Tests of credentials (valid, invalid and missing), blocked clients, rate limits and visibility of agents.

use std::time::Duration;

use super::*;

/// Starts a server with an agent for each kind of authentication.
async fn start_all_kinds(dir: &Path) -> TestServer {
    let bearer = json!({"type": "bearer_token", "token": token(dir, "codex-token"), "user": ALICE});
    let key = json!({"type": "api_key", "token": token(dir, "shop-key"), "user": BOB});
    let own = json!({"type": "bearer_token", "token": token(dir, "lab-token"), "header_name": "X-Lab", "user": CAROL});
    let maybe = json!({"type": "api_key", "token": token(dir, "maybe-key"), "user": BOB, "required": false});
    let agents = vec![
        echo("bearer", json!({"a2a": {"auth": bearer}})),
        echo("key", json!({"a2a": {"auth": key}})),
        echo("lab", json!({"a2a": {"auth": own}})),
        echo("maybe", json!({"a2a": {"auth": maybe}})),
        echo("users", json!({"a2a": {"auth": {"type": "jwt"}}, "allow": [ALICE]})),
        echo("usual", json!({"allow": [BOB]})),
        echo("open", json!({"a2a": {"auth": {"type": "none"}}})),
        echo("closed", json!({"a2a": {"enabled": false}, "allow": ["*"]})),
        echo("disabled", json!({"enabled": false, "allow": ["*"]})),
    ];
    start_server(with_tokens(), agents).await
}

#[tokio::test]
async fn credentials_are_valid_only_for_their_agent() {
    // A2A-2
    let dir = tempfile::tempdir().unwrap();
    let server = start_all_kinds(dir.path()).await;
    let alice = format!("Bearer {}", jwt(ALICE, ""));
    let bob = format!("Bearer {}", jwt(BOB, ""));
    let credentials = [
        ("authorization", "Bearer codex-token"),
        ("x-api-key", "shop-key"),
        ("x-lab", "Bearer lab-token"),
        ("x-lab", "lab-token"),
        ("x-api-key", "maybe-key"),
        ("authorization", alice.as_str()),
        ("authorization", bob.as_str()),
    ];
    let is_accepted = |agent: &str, credential: usize| match agent {
        "bearer" => credential == 0,
        "key" => credential == 1,
        "lab" => credential == 2 || credential == 3,
        "maybe" => credential == 4,
        "users" => credential == 5,
        _ => credential == 6,
    };
    let mut first = None;
    let mut failures = 0;
    for agent in ["bearer", "key", "lab", "maybe", "users", "usual"] {
        for (at, (header, value)) in credentials.iter().enumerate() {
            let answer = extended(&server, agent).header(*header, *value).send().await.unwrap();
            let expected = match (agent, at) {
                _ if is_accepted(agent, at) => 200,
                // The agent does not allow this user.
                ("users", 6) | ("usual", 5) => 404,
                // The header is not used here, so the caller is anonymous and has no extended card.
                ("maybe", at) if at != 1 => 400,
                _ => 401,
            };
            assert_eq!(answer.status(), expected, "{agent} {header} {value}");
            if expected == 401 {
                assert!(answer.headers().contains_key("www-authenticate"), "{agent} {header}");
                let body = answer.text().await.unwrap();
                assert_eq!(*first.get_or_insert(body.clone()), body, "all rejections look the same");
                failures += 1;
                if failures % 9 == 0 {
                    server.clock.advance(Duration::from_secs(301));
                }
            }
        }
        let missing = if agent == "maybe" { 400 } else { 401 };
        assert_eq!(status(extended(&server, agent)).await, missing, "{agent} without credentials");
    }
    let challenge = extended(&server, "key").send().await.unwrap().headers()["www-authenticate"].clone();
    assert_eq!(challenge, "ApiKey name=\"X-API-Key\"");
    for agent in ["closed", "disabled", "nobody"] {
        assert_eq!(status(extended(&server, agent).header("authorization", &alice)).await, 404, "{agent}");
    }
}

#[tokio::test]
async fn a_token_authenticates_its_user() {
    // A2A-2
    let dir = tempfile::tempdir().unwrap();
    let server = start_all_kinds(dir.path()).await;
    let ask = envelope_request("execute-agent", json!({"input": "whoami"}));
    assert_eq!(whoami(post(&server, "bearer", &ask).bearer_auth("codex-token")).await, ALICE);
    assert_eq!(whoami(post(&server, "key", &ask).header("X-API-Key", "shop-key")).await, BOB);
    assert_eq!(whoami(post(&server, "users", &ask).bearer_auth(jwt(ALICE, ""))).await, ALICE);
    assert_eq!(whoami(post(&server, "maybe", &ask).header("X-API-Key", "maybe-key")).await, BOB);
    // Anonymous callers are one user for each agent.
    let maybe = whoami(post(&server, "maybe", &ask)).await;
    let open = whoami(post(&server, "open", &ask)).await;
    assert_ne!(maybe, open);
    assert_eq!(whoami(post(&server, "open", &ask).bearer_auth("whatever")).await, open);
    // Executions belong to the user of the token and are invisible to other users.
    let executions = |user: &str| {
        let request = server.client.get(format!("{}/api/executions", server.url)).bearer_auth(jwt(user, ""));
        async move { request.send().await.unwrap().json::<Value>().await.unwrap() }
    };
    assert_eq!(executions(ALICE).await["count"], 2);
    assert_eq!(executions(BOB).await["count"], 2);
    assert_eq!(executions(CAROL).await["count"], 0);
    // The token is not valid outside A2A.
    let request = server.client.get(format!("{}/api/executions", server.url)).bearer_auth("codex-token");
    assert_eq!(status(request).await, 401);
}

#[tokio::test]
async fn invalid_user_tokens_get_the_same_response() {
    // A2A-2
    let server = start_server(with_tokens(), vec![echo("usual", json!({"allow": ["*"]}))]).await;
    let claims = json!({"sub": ALICE, "exp": 4_000_000_000_i64});
    let mut bodies = Vec::new();
    for token in [
        sign_hs256(SECRET, &json!({"sub": ALICE, "exp": 1})),
        sign_hs256("another-secret-another-secret-another-", &claims),
        "not.a.token".to_owned(),
        String::new(),
    ] {
        let answer = extended(&server, "usual").bearer_auth(token).send().await.unwrap();
        assert_eq!(answer.status(), 401);
        bodies.push(answer.text().await.unwrap());
    }
    let answer = extended(&server, "usual").basic_auth("alice", Some("secret")).send().await.unwrap();
    bodies.push(answer.text().await.unwrap());
    bodies.dedup();
    assert_eq!(bodies.len(), 1, "{bodies:?}");
    assert_eq!(status(extended(&server, "usual").bearer_auth(jwt(ALICE, ""))).await, 200);
}

#[tokio::test]
async fn clients_are_blocked_after_repeated_failures() {
    // A2A-2
    let dir = tempfile::tempdir().unwrap();
    let auth = json!({"type": "api_key", "token": token(dir.path(), "the-key"), "user": ALICE});
    let settings = ServerSettings { trusted_proxies: vec!["127.0.0.0/8".parse().unwrap()], ..with_tokens() };
    let agents =
        vec![echo("key", json!({"a2a": {"auth": auth}})), echo("open", json!({"a2a": {"auth": {"type": "none"}}}))];
    let server = start_server(settings, agents).await;
    let from =
        |address: &str, key: &str| extended(&server, "key").header("X-Forwarded-For", address).header("X-API-Key", key);
    for _ in 0..20 {
        let missing = extended(&server, "key").header("X-Forwarded-For", "198.51.100.1");
        assert_eq!(status(missing).await, 401, "missing credentials do not count as a guess");
    }
    for guess in 0..10 {
        assert_eq!(status(from("198.51.100.1", &format!("guess-{guess}"))).await, 401);
    }
    let blocked = from("198.51.100.1", "guess-10").send().await.unwrap();
    assert_eq!(blocked.status(), 429);
    assert_eq!(blocked.headers()["retry-after"], "900");
    assert_eq!(status(from("198.51.100.1", "the-key")).await, 200, "valid credentials are never blocked");
    let list = get(&server, "/agents").await;
    assert_eq!(list.status(), 200, "the proxy itself is not blocked");
    assert_eq!(status(from("198.51.100.2", "the-key")).await, 200, "other clients are not blocked");
    let envelope =
        post(&server, "key", &envelope_request("status", json!({}))).header("X-Forwarded-For", "198.51.100.1");
    let envelope = envelope.header("X-API-Key", "guess-11").send().await.unwrap();
    assert_eq!((envelope.status().as_u16(), envelope.headers()["retry-after"].to_str().unwrap()), (429, "900"));
    let open = post(&server, "open", &envelope_request("status", json!({}))).header("X-Forwarded-For", "198.51.100.1");
    assert_eq!(status(open).await, 200, "agents without authentication do not block");
    server.clock.advance(Duration::from_secs(900));
    assert_eq!(status(from("198.51.100.1", "guess-12")).await, 401);
}

#[tokio::test]
async fn failed_guesses_at_the_list_block_too() {
    // A2A-2
    let dir = tempfile::tempdir().unwrap();
    let server = start_all_kinds(dir.path()).await;
    let list = |header: &'static str, value: String| {
        let request = request(&server, Method::GET, "/agents").header(header, value);
        async move { request.send().await.unwrap() }
    };
    let ids = async |answer: Response| {
        let body: Value = answer.json().await.unwrap();
        let names: Vec<_> = body["agents"].as_array().unwrap().iter().map(|card| card["name"].to_string()).collect();
        assert_eq!(body["count"], names.len());
        names.join(" ").replace('"', "")
    };
    assert_eq!(ids(get(&server, "/agents").await).await, "maybe open");
    assert_eq!(ids(list("x-api-key", "shop-key".into()).await).await, "key maybe open");
    assert_eq!(ids(list("authorization", "Bearer codex-token".into()).await).await, "bearer maybe open");
    let alice = ids(list("authorization", format!("Bearer {}", jwt(ALICE, ""))).await).await;
    assert_eq!(alice, "Assistant maybe open users");
    let admin = ids(list("authorization", format!("Bearer {}", jwt(CAROL, "adjutant:admin"))).await).await;
    assert_eq!(admin, "Assistant bearer key lab maybe open users usual");
    for guess in 0..10 {
        assert_eq!(list("x-api-key", format!("guess-{guess}")).await.status(), 401);
    }
    assert_eq!(list("x-api-key", "guess-10".into()).await.status(), 429);
    assert_eq!(list("x-api-key", "shop-key".into()).await.status(), 200, "valid credentials are never blocked");
}

#[tokio::test]
async fn cards_of_restricted_agents_are_hidden() {
    // A2A-2
    let dir = tempfile::tempdir().unwrap();
    let server = start_all_kinds(dir.path()).await;
    let card = |agent: &str| request(&server, Method::GET, &format!("/agents/{agent}/.well-known/agent-card.json"));
    for agent in ["users", "usual"] {
        assert_eq!(status(card(agent)).await, 404, "{agent} without a token");
        assert_eq!(status(card(agent).bearer_auth("nonsense")).await, 404, "{agent} with an invalid token");
        assert_eq!(status(card(agent).bearer_auth(jwt(CAROL, ""))).await, 404, "{agent} for another user");
    }
    let visible = card("users").bearer_auth(jwt(ALICE, "")).send().await.unwrap();
    assert_eq!(
        (visible.status().as_u16(), &visible.headers()["cache-control"]),
        (200, &"private, max-age=60".parse().unwrap())
    );
    for agent in ["bearer", "key", "open", "assistant"] {
        let public = card(agent).send().await.unwrap();
        assert_eq!(public.status(), 200, "{agent}");
        assert_eq!(public.headers()["cache-control"], "public, max-age=60");
    }
}

#[tokio::test]
async fn anonymous_callers_cannot_list_and_have_no_extended_card() {
    // A2A-2
    let dir = tempfile::tempdir().unwrap();
    let server = start_all_kinds(dir.path()).await;
    for agent in ["open", "maybe"] {
        for path in ["tasks", "extendedAgentCard"] {
            let answer = get(&server, &format!("/agents/{agent}/{path}")).await;
            assert_eq!(answer.status(), 400, "{agent} {path}");
            let body: Value = answer.json().await.unwrap();
            assert_eq!(body["error"]["details"][0]["reason"], "UNSUPPORTED_OPERATION", "{body}");
        }
    }
}

#[tokio::test]
async fn rate_limits_apply_per_caller_and_agent() {
    // A2A-3
    let limited = json!({"a2a": {"rate": {"per_minute": 1, "burst": 2}}, "allow": ["*"]});
    let free = json!({"a2a": {"rate": {"per_minute": 1, "burst": 1}, "auth": {"type": "none"}}});
    let settings = ServerSettings { trusted_proxies: vec!["127.0.0.1/32".parse().unwrap()], ..with_tokens() };
    let server = start_server(settings, vec![echo("a", limited.clone()), echo("b", limited), echo("free", free)]).await;
    let call = |agent: &str, user: &str| extended(&server, agent).bearer_auth(jwt(user, ""));
    for _ in 0..2 {
        assert_eq!(status(call("a", ALICE)).await, 200);
    }
    let refused = call("a", ALICE).send().await.unwrap();
    assert_eq!(refused.status(), 429);
    let wait: u64 = refused.headers()["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((50..=61).contains(&wait), "{wait}");
    assert_eq!(status(call("a", BOB)).await, 200, "each caller has a separate limit");
    assert_eq!(status(call("b", ALICE)).await, 200, "each agent has a separate limit");
    // Anonymous callers are limited by address.
    let ask = envelope_request("status", json!({}));
    let from = |address: &str| post(&server, "free", &ask).header("X-Forwarded-For", address);
    assert_eq!(status(from("198.51.100.1")).await, 200);
    assert_eq!(status(from("198.51.100.1")).await, 429);
    assert_eq!(status(from("198.51.100.2")).await, 200);
}

#[tokio::test]
async fn without_jwt_every_caller_is_local_except_at_agents_with_own_tokens() {
    // A2A-2
    let dir = tempfile::tempdir().unwrap();
    let auth = json!({"type": "bearer_token", "token": token(dir.path(), "own"), "user": ALICE});
    let agents = vec![
        echo("usual", json!({})),
        echo("open", json!({"a2a": {"auth": {"type": "none"}}})),
        echo("own", json!({"a2a": {"auth": auth}})),
        echo("users", json!({"a2a": {"auth": {"type": "jwt"}}})),
    ];
    let server = start_server(ServerSettings::default(), agents).await;
    for agent in ["usual", "open", "assistant"] {
        assert_eq!(status(extended(&server, agent)).await, 200, "{agent}");
    }
    assert_eq!(status(extended(&server, "own")).await, 401);
    assert_eq!(status(extended(&server, "own").bearer_auth("own")).await, 200);
    assert_eq!(status(extended(&server, "users")).await, 401, "no key to verify tokens is configured");
    assert_eq!(status(extended(&server, "users").bearer_auth(jwt(ALICE, ""))).await, 401);
    let ask = envelope_request("execute-agent", json!({"input": "whoami"}));
    assert_eq!(whoami(post(&server, "usual", &ask)).await, model::UserId::LOCAL.to_string());
    assert_eq!(get(&server, "/agents").await.json::<Value>().await.unwrap()["count"], 5);
}

#[tokio::test]
async fn a_changed_token_replaces_the_old_one() {
    // A2A-2
    let dir = tempfile::tempdir().unwrap();
    let reference = token(dir.path(), "first");
    let auth = json!({"type": "api_key", "token": reference, "user": ALICE});
    let server = start_server(ServerSettings::default(), vec![echo("key", json!({"a2a": {"auth": auth}}))]).await;
    assert_eq!(status(extended(&server, "key").header("X-API-Key", "first")).await, 200);
    std::fs::write(dir.path().join("first"), "second").unwrap();
    for _ in 0..100 {
        if status(extended(&server, "key").header("X-API-Key", "first")).await == 401 {
            assert_eq!(status(extended(&server, "key").header("X-API-Key", "second")).await, 200);
            // A missing token file rejects every caller.
            std::fs::remove_file(dir.path().join("first")).unwrap();
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("the old token is still accepted");
}

#[tokio::test]
async fn operations_that_are_not_offered_are_rejected() {
    // A2A-4
    let only = |a2a: Value| json!({"a2a": a2a});
    let agents = vec![
        echo("rpc", only(json!({"transports": ["json_rpc"]}))),
        echo("rest", only(json!({"transports": ["http_json"]}))),
        echo("status", only(json!({"supported_methods": ["status", "GetExtendedAgentCard"]}))),
        echo(
            "text",
            only(json!({"supported_content_types": ["text/plain", "image/*"], "capabilities": {"max_input_size": 10}})),
        ),
        echo("still", only(json!({"capabilities": {"streaming_support": false}}))),
    ];
    let server = start_server(ServerSettings::default(), agents).await;
    let rpc = |agent: &str, method: &str, params: Value| {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let request = request(&server, Method::POST, &format!("/agents/{agent}")).json(&body);
        async move { request.send().await.unwrap().json::<Value>().await.unwrap() }
    };
    let code = |body: &Value| body["error"]["code"].as_i64();
    let message = |parts: Value| json!({"message": {"messageId": "m", "role": "ROLE_USER", "parts": parts}});
    // Transports.
    assert_eq!(status(extended(&server, "rpc")).await, 400);
    assert_eq!(code(&rpc("rpc", "GetExtendedAgentCard", json!({})).await), None);
    assert_eq!(code(&rpc("rest", "GetExtendedAgentCard", json!({})).await), Some(-32004));
    assert_eq!(status(extended(&server, "rest")).await, 200);
    // Methods.
    let text = message(json!([{"text": "hi"}]));
    for method in ["SendMessage", "SendStreamingMessage"] {
        assert_eq!(code(&rpc("status", method, text.clone()).await), Some(-32004), "{method}");
    }
    for method in ["GetTask", "CancelTask", "SubscribeToTask"] {
        assert_eq!(code(&rpc("status", method, json!({"id": "x"})).await), Some(-32004), "{method}");
    }
    let push = json!({"taskId": "x", "url": "https://hook.example"});
    assert_eq!(code(&rpc("status", "CreateTaskPushNotificationConfig", push).await), Some(-32003));
    // Content types and sizes.
    for (parts, expected) in [
        (json!([{"data": {"a": 1}}]), -32005),
        (json!([{"text": "hi"}, {"raw": "aGk=", "mediaType": "application/pdf"}]), -32005),
        (json!([{"text": "<p>hi</p>", "mediaType": "text/html"}]), -32005),
        (json!([{"text": "12345"}, {"text": "123456"}]), -32602),
    ] {
        assert_eq!(code(&rpc("text", "SendMessage", message(parts.clone())).await), Some(expected), "{parts}");
    }
    // Streams.
    assert_eq!(code(&rpc("still", "SendStreamingMessage", text.clone()).await), Some(-32004));
    assert_eq!(code(&rpc("still", "SubscribeToTask", json!({"id": "x"})).await), Some(-32004));
    // The assistant accepts only text.
    let data = message(json!([{"data": {"a": 1}}]));
    assert_eq!(code(&rpc("assistant", "SendMessage", data).await), Some(-32005));
    // A tenant with the id of a different agent is not found.
    assert_eq!(status(request(&server, Method::GET, "/agents/rest/text/extendedAgentCard")).await, 404);
    assert_eq!(status(request(&server, Method::GET, "/agents/rest/rest/extendedAgentCard")).await, 200);
    assert_eq!(status(request(&server, Method::GET, "/agents/rest/acme/extendedAgentCard")).await, 200);
    assert_eq!(code(&rpc("rpc", "GetExtendedAgentCard", json!({"tenant": "rest"})).await), Some(-32001));
}

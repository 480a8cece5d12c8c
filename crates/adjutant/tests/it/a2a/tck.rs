//! The requests of the public test kit (TCK) for 1.x that `operations` and `streams` do not cover. Each test names the
//! requirements of the kit. Requests that exist in 0.3 are sent with both versions (A2A-1).

use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::{Value, json};

use super::client::{A2aClient, Binding, Call, PROTOCOLS, Protocol, Version};
use super::{Conformance, message, schema, state};

fn v1_protocols() -> impl Iterator<Item = Protocol> {
    PROTOCOLS.into_iter().filter(|protocol| protocol.1 == Version::V1)
}

async fn send(client: &A2aClient, protocol: Protocol, message: Value) -> Value {
    client
        .call(protocol, "SendMessage", json!({"message": message}))
        .await
        .unwrap_or_else(|error| panic!("{protocol:?}: {error:?}"))
}

async fn get(client: &A2aClient, protocol: Protocol, params: Value) -> Value {
    client.call(protocol, "GetTask", params).await.unwrap_or_else(|error| panic!("{protocol:?}: {error:?}"))
}

fn message_on(task: &Value, kind: &str, text: &str) -> Value {
    let mut message = message(kind, text);
    message["taskId"] = task["id"].clone();
    message
}

#[tokio::test]
async fn the_card_lists_every_interface() {
    // A2A-1; CARD-DISC-001, CARD-STRUCT-001, CARD-PROTO-001, CARD-PROTO-002, BIND-FIELD-001
    let server = Conformance::start().await;
    let client = server.client();
    let root = reqwest::get(format!("{}/.well-known/agent-card.json", server.url())).await.unwrap();
    assert_eq!(root.status(), 200);
    let card: Value = root.json().await.unwrap();
    for path in ["/.well-known/agent-card.json", "/v1/.well-known/agent-card.json", "/.well-known/agent.json"] {
        let same: Value = client.http(Method::GET, path).send().await.unwrap().json().await.unwrap();
        assert_eq!(same["name"], card["name"], "{path}");
    }
    for name in [
        "name",
        "description",
        "version",
        "capabilities",
        "skills",
        "supportedInterfaces",
        "defaultInputModes",
        "defaultOutputModes",
    ] {
        assert!(!card[name].is_null(), "{name} is missing: {card}");
    }
    let interfaces = card["supportedInterfaces"].as_array().unwrap();
    for interface in interfaces {
        assert_eq!(schema::v1().violations("AgentInterface", interface), Vec::<String>::new());
    }
    // Clients use the first interface of a binding, so it is the newer version. gRPC URLs have no scheme.
    for binding in ["JSONRPC", "HTTP+JSON", "GRPC"] {
        let matching: Vec<_> = interfaces.iter().filter(|interface| interface["protocolBinding"] == binding).collect();
        let versions: Vec<_> =
            matching.iter().map(|interface| interface["protocolVersion"].as_str().unwrap()).collect();
        assert_eq!(versions, ["1.0", "0.3"], "{binding}");
        let url = matching[0]["url"].as_str().unwrap();
        assert_eq!(url.starts_with("http://"), binding != "GRPC", "{url}");
        assert!(!url.ends_with('/'), "{url}");
    }
    // Without the fields of 0.3, the card is a valid card of 1.x.
    let mut newer = card.clone();
    for name in [
        "url",
        "preferredTransport",
        "additionalInterfaces",
        "protocolVersion",
        "supportsAuthenticatedExtendedCard",
        "security",
    ] {
        newer.as_object_mut().unwrap().remove(name);
    }
    let violations = schema::v1().violations("AgentCard", &newer);
    assert!(
        violations.iter().all(|violation| violation.contains(".capabilities.stateTransitionHistory")),
        "{violations:?}"
    );
}

#[tokio::test]
async fn the_card_can_be_cached() {
    // A2A-1; CARD-CACHE-001, CARD-CACHE-002, CARD-CACHE-003
    let server = Conformance::start().await;
    let url = format!("{}/.well-known/agent-card.json", server.url());
    let first = reqwest::get(&url).await.unwrap();
    let header = |name: &str| first.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
    assert!(header("cache-control").is_some_and(|value| value.contains("max-age")), "{:?}", first.headers());
    assert!(header("last-modified").is_some(), "{:?}", first.headers());
    let etag = header("etag").unwrap();
    let again = reqwest::Client::new().get(&url).header("If-None-Match", etag).send().await.unwrap();
    assert_eq!(again.status(), 304);
}

#[tokio::test]
async fn a_trailing_slash_of_the_json_rpc_url_is_accepted() {
    // A2A-1: the client of the kit adds a slash. There is no redirect.
    let server = Conformance::start().await;
    let client = server.client();
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message("tck-complete-task", "hi")}});
    for path in ["", "/", "/v1", "/v1/"] {
        let request = client.http(Method::POST, path).header("A2A-Version", "1.0").json(&body);
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status(), 200, "{path}");
        // JSONRPC-FMT-001, JSONRPC-FMT-002
        let kind = answer.headers()["content-type"].to_str().unwrap().to_owned();
        assert!(kind.starts_with("application/json"), "{kind}");
        let answer: Value = answer.json().await.unwrap();
        assert_eq!((&answer["jsonrpc"], &answer["id"]), (&json!("2.0"), &json!(1)), "{path}");
        assert_eq!(state(&answer["result"]["task"]), "COMPLETED", "{path}: {answer}");
    }
}

#[tokio::test]
async fn blocking_requests_return_the_final_task_and_others_return_immediately() {
    // A2A-1; CORE-EXECUTION-MODE-001, CORE-EXECUTION-MODE-002
    let server = Conformance::start().await;
    let client = server.client();
    let every = PROTOCOLS.map(|protocol| {
        let client = client.clone();
        async move {
            for (immediately, is_done) in [(false, true), (true, false)] {
                let configuration = json!({"returnImmediately": immediately});
                let params =
                    json!({"message": message("tck-delayed-complete", "probe"), "configuration": configuration});
                let answer = client.call(protocol, "SendMessage", params).await.unwrap();
                assert_eq!(state(&answer["task"]) == "COMPLETED", is_done, "{protocol:?} {immediately}: {answer}");
            }
        }
    });
    futures::future::join_all(every).await;
}

#[tokio::test]
async fn contexts_are_generated_accepted_and_inferred() {
    // A2A-1; CORE-MULTI-001a, CORE-MULTI-002, CORE-MULTI-002a, CORE-MULTI-003, CORE-MULTI-005
    let server = Conformance::start().await;
    let client = server.client();
    for protocol in PROTOCOLS {
        let first = send(&client, protocol, message("tck-complete-task", "hi")).await;
        assert!(first["task"]["contextId"].as_str().is_some_and(|id| !id.is_empty()), "{protocol:?}: {first}");
        let reply = send(&client, protocol, message("tck-message-response", "hi")).await;
        assert!(reply["message"]["contextId"].as_str().is_some_and(|id| !id.is_empty()), "{protocol:?}: {reply}");
        let mut mine = message("tck-complete-task", "hi");
        mine["contextId"] = json!(format!("tck-client-context-{:?}", protocol));
        let taken = send(&client, protocol, mine.clone()).await;
        assert_eq!(taken["task"]["contextId"], mine["contextId"], "{protocol:?}");
        let second = send(&client, protocol, mine.clone()).await;
        assert_eq!(second["task"]["contextId"], mine["contextId"], "{protocol:?}");
        assert_ne!(
            second["task"]["id"], taken["task"]["id"],
            "a message without a task id creates a task: {protocol:?}"
        );
        let asked = send(&client, protocol, message("tck-input-required", "hi")).await;
        let answered = send(&client, protocol, message_on(&asked["task"], "tck-infer-ctx", "hi")).await;
        assert_eq!(answered["task"]["contextId"], asked["task"]["contextId"], "{protocol:?}");
    }
}

#[tokio::test]
async fn history_length_limits_the_returned_messages() {
    // A2A-1; CORE-HIST-001 … CORE-HIST-006
    let server = Conformance::start().await;
    let client = server.client();
    for protocol in PROTOCOLS {
        let task = send(&client, protocol, message("tck-input-required", "first")).await["task"].clone();
        // The kit repeats the same message id.
        for text in ["TCK history message 1", "TCK history message 2"] {
            let mut more = message_on(&task, "", text);
            more["messageId"] = json!("tck-input-required-again");
            let still = send(&client, protocol, more).await;
            assert_eq!((state(&still["task"]), &still["task"]["id"]), ("INPUT_REQUIRED", &task["id"]), "{protocol:?}");
        }
        let done = send(&client, protocol, message_on(&task, "tck-complete-task", "last")).await;
        assert_eq!(state(&done["task"]), "COMPLETED", "{protocol:?}");
        let all = get(&client, protocol, json!({"id": task["id"], "historyLength": 10})).await;
        let user_texts = |task: &Value| {
            let history = task["history"].as_array().cloned().unwrap_or_default();
            let mine = history.into_iter().filter(|message| message["role"] == "ROLE_USER");
            mine.map(|message| message["parts"][0]["text"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(
            user_texts(&all),
            ["first", "TCK history message 1", "TCK history message 2", "last"],
            "{protocol:?}: {all}"
        );
        assert_eq!(
            user_texts(&get(&client, protocol, json!({"id": task["id"]})).await),
            user_texts(&all),
            "{protocol:?}"
        );
        let two = get(&client, protocol, json!({"id": task["id"], "historyLength": 2})).await;
        assert_eq!(two["history"].as_array().map(Vec::len), Some(2), "{protocol:?}: {two}");
        let last = all["history"].as_array().unwrap();
        assert_eq!(two["history"].as_array().unwrap()[..], last[last.len() - 2..], "the newest messages: {protocol:?}");
        // Protobuf of 0.3 cannot distinguish zero from an absent value, so zero returns all messages.
        if protocol.1 == Version::V1 {
            let none = get(&client, protocol, json!({"id": task["id"], "historyLength": 0})).await;
            assert_eq!(none["history"].as_array().map_or(0, Vec::len), 0, "{protocol:?}: {none}");
            let params = json!({"message": message("tck-complete-task", "x"), "configuration": {"historyLength": 0}});
            let sent = client.call(protocol, "SendMessage", params).await.unwrap();
            assert_eq!(sent["task"]["history"].as_array().map_or(0, Vec::len), 0, "{protocol:?}: {sent}");
        }
    }
}

#[tokio::test]
async fn tasks_are_listed_newest_first_with_filters_and_pages() {
    // A2A-1; CORE-LIST-001 … CORE-LIST-005
    let server = Conformance::start().await;
    let client = server.client();
    for protocol in v1_protocols() {
        let context = format!("list-{:?}", protocol.0);
        let in_context = |kind: &str| {
            let mut message = message(kind, "hi");
            message["contextId"] = json!(context);
            message
        };
        let mut tasks = Vec::new();
        for kind in
            ["tck-artifact-text", "tck-input-required", "tck-complete-task", "tck-complete-task", "tck-complete-task"]
        {
            tasks.insert(0, send(&client, protocol, in_context(kind)).await["task"].clone());
        }
        let ids =
            |page: &Value| page["tasks"].as_array().unwrap().iter().map(|task| task["id"].clone()).collect::<Vec<_>>();
        let list = async |mut params: Value| {
            params["contextId"] = json!(context);
            client.call(protocol, "ListTasks", params).await.unwrap_or_else(|error| panic!("{protocol:?}: {error:?}"))
        };
        let all = list(json!({})).await;
        let expected: Vec<_> = tasks.iter().map(|task| task["id"].clone()).collect();
        assert_eq!(ids(&all), expected, "{protocol:?}");
        assert_eq!((&all["totalSize"], &all["pageSize"]), (&json!(5), &json!(50)), "{protocol:?}");
        assert_eq!(all["nextPageToken"].as_str().unwrap_or_default(), "", "{protocol:?}");
        // The pages contain each task once.
        let mut token = String::new();
        let mut seen = Vec::new();
        for _ in 0..4 {
            let page = list(json!({"pageSize": 2, "pageToken": token})).await;
            assert_eq!((&page["totalSize"], &page["pageSize"]), (&json!(5), &json!(2)), "{protocol:?}");
            seen.extend(ids(&page));
            token = page["nextPageToken"].as_str().unwrap_or_default().to_owned();
            if token.is_empty() {
                break;
            }
        }
        assert_eq!((seen, token.as_str()), (expected, ""), "{protocol:?}");
        let open = list(json!({"status": "TASK_STATE_INPUT_REQUIRED"})).await;
        assert_eq!((ids(&open), &open["totalSize"]), (vec![tasks[3]["id"].clone()], &json!(1)), "{protocol:?}");
        let after = tasks[1]["status"]["timestamp"].clone();
        let later = list(json!({"statusTimestampAfter": after})).await;
        assert_eq!(ids(&later)[0], tasks[0]["id"], "{protocol:?}: {later}");
        assert!(!ids(&later).contains(&tasks[2]["id"]), "{protocol:?}: {later}");
        // Artifacts are included only on request. The length of the history is limited.
        assert!(all["tasks"].as_array().unwrap().iter().all(|task| task["artifacts"].is_null()), "{protocol:?}: {all}");
        let whole = list(json!({"includeArtifacts": true, "historyLength": 0, "pageSize": 100})).await;
        assert_eq!(
            whole["tasks"][4]["artifacts"][0]["parts"][0]["text"], "Generated text content",
            "{protocol:?}: {whole}"
        );
        assert!(
            whole["tasks"].as_array().unwrap().iter().all(|task| task["history"].as_array().map_or(0, Vec::len) == 0),
            "{protocol:?}"
        );
    }
}

#[tokio::test]
async fn concurrent_lists_with_artifacts_do_not_deadlock() {
    // A2A-1: each request reads the list and then its tasks from a small pool of connections.
    let server = Conformance::start().await;
    let client = server.client();
    let protocol = PROTOCOLS[0];
    for _ in 0..3 {
        send(&client, protocol, message("tck-artifact-text", "hi")).await;
    }
    let lists = (0..32).map(|_| {
        let client = client.clone();
        async move { client.call(protocol, "ListTasks", json!({"includeArtifacts": true})).await.unwrap() }
    });
    let lists = tokio::time::timeout(Duration::from_secs(60), futures::future::join_all(lists)).await.unwrap();
    for list in lists {
        assert_eq!(list["totalSize"], 3, "{list}");
        assert!(list["tasks"].as_array().unwrap().iter().all(|task| task["artifacts"].is_array()), "{list}");
    }
}

#[tokio::test]
async fn parts_of_every_kind_are_returned_unchanged() {
    // A2A-1; DM-ART-001, DM-MSG-001
    let server = Conformance::start().await;
    let client = server.client();
    for protocol in PROTOCOLS {
        for (kind, expected) in [
            ("text", json!({"text": "Generated text content"})),
            ("file", json!({"raw": "dGNr", "filename": "output.txt", "mediaType": "text/plain"})),
            (
                "file-url",
                json!({"url": "https://example.com/output.txt", "filename": "output.txt", "mediaType": "text/plain"}),
            ),
            ("data", json!({"data": {"key": "value", "count": 42}})),
        ] {
            let answer = send(&client, protocol, message(&format!("tck-artifact-{kind}"), "TCK artifact test")).await;
            let artifact = &answer["task"]["artifacts"][0];
            assert!(artifact["artifactId"].as_str().is_some_and(|id| !id.is_empty()), "{protocol:?}: {answer}");
            assert_eq!(artifact["parts"], json!([expected]), "{protocol:?} {kind}");
        }
        let answer = send(&client, protocol, message("tck-message-response", "hi")).await;
        assert_eq!(answer["message"]["parts"][0]["text"], "Direct message response", "{protocol:?}");
        // The parts of the request are stored.
        let mut mine = message("tck-complete-task", "look");
        mine["parts"] = json!([
            {"text": "look"}, {"raw": "AP8=", "filename": "a.bin", "mediaType": "application/octet-stream"},
            {"url": "https://example.com/a.txt", "mediaType": "text/plain"}, {"data": {"n": [1, null, "x"]}},
        ]);
        let task = send(&client, protocol, mine.clone()).await["task"].clone();
        let stored = get(&client, protocol, json!({"id": task["id"]})).await;
        assert_eq!(stored["history"][0]["parts"], mine["parts"], "{protocol:?}");
    }
}

#[tokio::test]
async fn json_follows_protojson_and_unknown_fields_are_ignored() {
    // A2A-1; DM-SERIAL-001 … DM-SERIAL-005. `A2aClient` checks the schema.
    let server = Conformance::start().await;
    let client = server.client();
    fn walk(value: &Value, visit: &mut dyn FnMut(&str, &Value)) {
        match value {
            Value::Object(object) => object.iter().for_each(|(name, value)| {
                visit(name, value);
                walk(value, visit);
            }),
            Value::Array(values) => values.iter().for_each(|value| walk(value, visit)),
            _ => {}
        }
    }
    for protocol in v1_protocols().filter(|protocol| protocol.0 != Binding::Grpc) {
        let mut more = message("tck-dm-test-001", "hi");
        more["tckUnknownField"] = json!({"x": 1});
        let params = json!({"message": more, "tckExtraParam": true});
        let answer = client.call(protocol, "SendMessage", params).await.unwrap();
        let mut times = 0;
        walk(&answer, &mut |name, value| {
            assert!(!name.contains('_'), "{protocol:?}: {name}");
            if ["state", "role"].contains(&name) {
                assert!(value.is_string(), "{protocol:?}: {name} is {value}");
            }
            if name == "timestamp" {
                times += 1;
                let time = value.as_str().unwrap();
                assert!(time.ends_with('Z') && time.len() >= 20 && time.as_bytes()[10] == b'T', "{protocol:?}: {time}");
            }
        });
        assert!(times > 0, "{protocol:?}: {answer}");
    }
}

#[tokio::test]
async fn snake_case_parameters_are_accepted() {
    // A2A-1: the kit writes JSON-RPC parameters with the field names of protobuf.
    let server = Conformance::start().await;
    let client = server.client();
    let protocol = PROTOCOLS[0];
    let task = send(&client, protocol, message("tck-input-required", "one")).await["task"].clone();
    send(&client, protocol, message_on(&task, "tck-complete-task", "two")).await;
    let one = get(&client, protocol, json!({"id": task["id"], "history_length": 1})).await;
    assert_eq!(one["history"].as_array().map(Vec::len), Some(1), "{one}");
    let page =
        client.call(protocol, "ListTasks", json!({"context_id": task["contextId"], "page_size": 1})).await.unwrap();
    assert_eq!((&page["pageSize"], &page["totalSize"]), (&json!(1), &json!(1)), "{page}");
    let config = json!({"task_id": task["id"], "id": "snake", "url": "https://example.com/tck-push-webhook"});
    let made = client.call(protocol, "CreateTaskPushNotificationConfig", config).await.unwrap();
    assert_eq!((&made["taskId"], &made["id"]), (&task["id"], &json!("snake")), "{made}");
    let found =
        client.call(protocol, "GetTaskPushNotificationConfig", json!({"task_id": task["id"], "id": "snake"})).await;
    assert_eq!(found.unwrap()["url"], "https://example.com/tck-push-webhook");
}

#[tokio::test]
async fn unknown_extensions_are_ignored() {
    // A2A-1; JSONRPC-SVC-002, HTTP_JSON-SVC-002, GRPC-META-001
    let server = Conformance::start().await;
    let client = server.client();
    for protocol in PROTOCOLS {
        let name = if protocol.1 == Version::V1 { "A2A-Extensions" } else { "X-A2A-Extensions" };
        let headers = vec![(name, "https://example.com/ext/v1,https://example.com/ext/v2".to_owned())];
        let call = Call::new("SendMessage", json!({"message": message("tck-svc-002-ext", "hi")}));
        let answer = client.send_call(protocol, &Call { headers, ..call }).await.unwrap();
        assert_eq!(state(&answer["task"]), "COMPLETED", "{protocol:?}: {answer}");
    }
}

#[tokio::test]
async fn invalid_requests_return_the_specified_error_codes() {
    // A2A-1; CORE-ERR-001, CORE-ERR-002, JSONRPC-ERR-001 … JSONRPC-ERR-003, VER-SERVER-003
    let server = Conformance::start().await;
    let client = server.client();
    for (version, body, code, id) in [
        (Some("1.0"), r#"{"jsonrpc": "2.0", "id": 1, "method": "NonExistentMethod", "params": {}}"#, -32601, json!(1)),
        (Some("1.0"), r#"{"jsonrpc": "2.0", "id": 2, "method": "message/send", "params": {}}"#, -32601, json!(2)),
        (None, r#"{"jsonrpc": "2.0", "id": 3, "method": "SendMessage", "params": {}}"#, -32601, json!(3)),
        (Some("1.0"), r#"{"jsonrpc": "2.0", "id": "4", "method": "SendMessage", "params": {}}"#, -32602, json!("4")),
        (Some("1.0"), r#"{"jsonrpc": "1.0", "id": 5, "method": "GetTask", "params": {}}"#, -32600, json!(5)),
        (Some("1.0"), r#"{"jsonrpc": "2.0", "id": 6, "params": {}}"#, -32600, json!(6)),
        (
            Some("1.0"),
            r#"{"jsonrpc": "2.0", "id": {"bad": 1}, "method": "GetTask", "params": {"id": "x"}}"#,
            -32600,
            Value::Null,
        ),
        (Some("1.0"), r#"{"jsonrpc": "2.0", "id": 7, "method": "GetTask", "params": "x"}"#, -32602, json!(7)),
        (Some("1.0"), r#"{"jsonrpc": "2.0", "id": 8, "method"#, -32700, Value::Null),
        (Some("1.0"), r#"[1]"#, -32600, Value::Null),
        (Some(""), r#"{"jsonrpc": "2.0", "id": 9, "method": "tasks/get", "params": {"id": "x"}}"#, -32001, json!(9)),
    ] {
        let mut request = client.http(Method::POST, "").header("Content-Type", "application/json").body(body);
        if let Some(version) = version {
            request = request.header("A2A-Version", version);
        }
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status(), 200, "{body}");
        let answer: Value = answer.json().await.unwrap();
        assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(code), &id), "{body}: {answer}");
        assert!(answer["error"]["message"].as_str().is_some_and(|message| !message.is_empty()), "{answer}");
    }
    for (method, path, body, status) in [
        (Method::POST, "/message:send", "{}", 400),
        (Method::POST, "/message:send", "{", 400),
        (Method::GET, "/tasks/tck-nothing", "", 404),
        (Method::GET, "/nothing", "", 404),
        (Method::GET, "/tasks?pageSize=many", "", 400),
        (Method::POST, "/tasks/tck-nothing:nothing", "", 405),
    ] {
        let request = client.http(method, path).header("A2A-Version", "1.0").header("Content-Type", "application/json");
        let answer = request.body(body).send().await.unwrap();
        assert_eq!(answer.status(), status, "{path}");
        let kind = answer.headers()["content-type"].to_str().unwrap().to_owned();
        assert!(kind.contains("json"), "{path}: {kind}");
        let answer: Value = answer.json().await.unwrap();
        assert_eq!(answer["error"]["code"], status, "{path}: {answer}");
    }
}

#[tokio::test]
async fn only_media_types_that_the_agent_excludes_are_rejected() {
    // A2A-4; CORE-SEND-003
    let mut narrow = testkit::conformance::ScriptedRunner::agent();
    narrow.id = "narrow".to_owned();
    narrow.a2a.capabilities.supported_content_types = Some(vec!["text/plain".to_owned()]);
    let server = Conformance::start_with_scripted(narrow).await;
    for protocol in PROTOCOLS {
        let mut message_with_file = message("tck-send-003", "");
        message_with_file["parts"] = json!([{"raw": "dGNr", "mediaType": "application/x-unsupported-tck-type"}]);
        let taken = send(&server.client(), protocol, message_with_file.clone()).await;
        assert_eq!(state(&taken["task"]), "COMPLETED", "{protocol:?}");
        let refused = server
            .client_for("narrow")
            .call(protocol, "SendMessage", json!({"message": message_with_file}))
            .await
            .unwrap_err();
        let mismatch = super::expected_errors::ExpectedError::ContentTypeNotSupported.mismatch(protocol, &refused);
        assert_eq!(mismatch, None, "{protocol:?}");
        send(&server.client_for("narrow"), protocol, message("tck-complete-task", "hi")).await;
    }
}

#[tokio::test]
async fn json_streams_are_server_sent_events() {
    // A2A-1; JSONRPC-SSE-001, HTTP_JSON-SSE-001
    let server = Conformance::start().await;
    let client = server.client();
    for (path, body) in [
        (
            "",
            json!({"jsonrpc": "2.0", "id": 7, "method": "SendStreamingMessage", "params": {"message": message("tck-stream-001", "hi")}}),
        ),
        ("/message:stream", json!({"message": message("tck-stream-001", "hi")})),
    ] {
        let request =
            client.http(Method::POST, path).header("A2A-Version", "1.0").header("Accept", "text/event-stream");
        let answer = request.json(&body).send().await.unwrap();
        assert!(answer.headers()["content-type"].to_str().unwrap().starts_with("text/event-stream"));
        let text = answer.text().await.unwrap();
        let events: Vec<Value> = text
            .lines()
            .filter_map(|line| line.strip_prefix("data:"))
            .map(|data| serde_json::from_str(data).unwrap())
            .collect();
        assert!(events.len() >= 3, "{text}");
        for event in events {
            let inner = if path.is_empty() {
                assert_eq!((&event["jsonrpc"], &event["id"]), (&json!("2.0"), &json!(7)), "{event}");
                &event["result"]
            } else {
                &event
            };
            assert_eq!(schema::v1().violations("StreamResponse", inner), Vec::<String>::new(), "{event}");
            assert_eq!(inner.as_object().unwrap().len(), 1, "{event}");
        }
    }
}

#[tokio::test]
async fn push_notifications_carry_the_token_and_the_update() {
    // A2A-1; PUSH-DELIVER-001 … PUSH-DELIVER-003
    let server = Conformance::start().await;
    let client = server.client();
    for protocol in PROTOCOLS {
        let (url, mut calls) = super::webhook::listen().await;
        let config = json!({
            "id": "tck-push", "url": url, "token": "tck-token",
            "authentication": {"scheme": "Bearer", "credentials": "tck-test-token"},
        });
        // In protobuf of 0.3, a configuration without this field means that the call does not block.
        let configuration = json!({"taskPushNotificationConfig": config, "returnImmediately": false});
        let params = json!({"message": message("tck-input-required", "hi"), "configuration": configuration});
        let asked = client.call(protocol, "SendMessage", params).await.unwrap()["task"].clone();
        send(&client, protocol, message_on(&asked, "tck-complete-task", "done")).await;
        let started = Instant::now();
        loop {
            let rest = Duration::from_secs(15).saturating_sub(started.elapsed());
            let call = tokio::time::timeout(rest, calls.recv())
                .await
                .unwrap_or_else(|_| panic!("{protocol:?}: no push notification"))
                .unwrap();
            assert_eq!(call.headers["authorization"], "Bearer tck-test-token", "{protocol:?}");
            assert_eq!(call.headers["x-a2a-notification-token"], "tck-token", "{protocol:?}");
            assert!(call.headers.contains_key("content-length"), "the kit does not read chunked bodies: {protocol:?}");
            let body: Value = serde_json::from_slice(&call.body).unwrap();
            let reported_state = match protocol.1 {
                Version::V1 => {
                    assert_eq!(
                        schema::v1().violations("StreamResponse", &body),
                        Vec::<String>::new(),
                        "{protocol:?}: {body}"
                    );
                    let object = [&body["task"], &body["statusUpdate"]].into_iter().find(|object| object.is_object());
                    object.map(|object| state(object).to_owned())
                }
                // Push notifications of 0.3 contain the whole task.
                Version::V03 => {
                    assert_eq!((&body["kind"], &body["id"]), (&json!("task"), &asked["id"]), "{protocol:?}: {body}");
                    body["status"]["state"].as_str().map(str::to_uppercase)
                }
            };
            if reported_state.as_deref() == Some("COMPLETED") {
                break;
            }
        }
    }
}

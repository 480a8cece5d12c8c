//! What the public test kit for 1.x asks of a server, request by request, beyond what `table` and `streams` ask: the names of
//! its requirements stand beside each test. Where it can be asked in 0.3 too, it is (A2A-1).

use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::{Value, json};

use super::speak::{Binding, Question, Speaker, Version, WAYS, Way};
use super::{Conformance, message, schema, state};

fn of_v1() -> impl Iterator<Item = Way> {
    WAYS.into_iter().filter(|way| way.1 == Version::V1)
}

async fn send(speaker: &Speaker, way: Way, message: Value) -> Value {
    speaker
        .ask(way, "SendMessage", json!({"message": message}))
        .await
        .unwrap_or_else(|refusal| panic!("{way:?}: {refusal:?}"))
}

async fn get(speaker: &Speaker, way: Way, params: Value) -> Value {
    speaker.ask(way, "GetTask", params).await.unwrap_or_else(|refusal| panic!("{way:?}: {refusal:?}"))
}

fn on(task: &Value, kind: &str, text: &str) -> Value {
    let mut message = message(kind, text);
    message["taskId"] = task["id"].clone();
    message
}

#[tokio::test]
async fn the_card_says_where_everything_is() {
    // A2A-1; CARD-DISC-001, CARD-STRUCT-001, CARD-PROTO-001, CARD-PROTO-002, BIND-FIELD-001
    let server = Conformance::start().await;
    let client = server.speaker();
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
        assert_eq!(schema::v1().faults("AgentInterface", interface), Vec::<String>::new());
    }
    // Kits and clients take the first of a binding: that is the newer version, and gRPC has no scheme.
    for binding in ["JSONRPC", "HTTP+JSON", "GRPC"] {
        let of: Vec<_> = interfaces.iter().filter(|interface| interface["protocolBinding"] == binding).collect();
        let versions: Vec<_> = of.iter().map(|interface| interface["protocolVersion"].as_str().unwrap()).collect();
        assert_eq!(versions, ["1.0", "0.3"], "{binding}");
        let url = of[0]["url"].as_str().unwrap();
        assert_eq!(url.starts_with("http://"), binding != "GRPC", "{url}");
        assert!(!url.ends_with('/'), "{url}");
    }
    // What is left of it when the words of 0.3 are taken out is a card of 1.x and nothing else.
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
    let faults = schema::v1().faults("AgentCard", &newer);
    assert!(faults.iter().all(|fault| fault.contains(".capabilities.stateTransitionHistory")), "{faults:?}");
}

#[tokio::test]
async fn the_card_can_be_kept() {
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
async fn the_address_of_json_rpc_is_the_same_with_a_slash() {
    // A2A-1: the kit's own client adds one; nobody is redirected.
    let server = Conformance::start().await;
    let speaker = server.speaker();
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message("tck-complete-task", "hi")}});
    for path in ["", "/", "/v1", "/v1/"] {
        let request = speaker.http(Method::POST, path).header("A2A-Version", "1.0").json(&body);
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
async fn who_waits_gets_the_end_and_who_does_not_gets_the_beginning() {
    // A2A-1; CORE-EXECUTION-MODE-001, CORE-EXECUTION-MODE-002
    let server = Conformance::start().await;
    let speaker = server.speaker();
    let every = WAYS.map(|way| {
        let speaker = speaker.clone();
        async move {
            for (at_once, is_done) in [(false, true), (true, false)] {
                let configuration = json!({"returnImmediately": at_once});
                let params =
                    json!({"message": message("tck-delayed-complete", "probe"), "configuration": configuration});
                let answer = speaker.ask(way, "SendMessage", params).await.unwrap();
                assert_eq!(state(&answer["task"]) == "COMPLETED", is_done, "{way:?} {at_once}: {answer}");
            }
        }
    });
    futures::future::join_all(every).await;
}

#[tokio::test]
async fn contexts_are_given_taken_and_found_out() {
    // A2A-1; CORE-MULTI-001a, CORE-MULTI-002, CORE-MULTI-002a, CORE-MULTI-003, CORE-MULTI-005
    let server = Conformance::start().await;
    let speaker = server.speaker();
    for way in WAYS {
        let first = send(&speaker, way, message("tck-complete-task", "hi")).await;
        assert!(first["task"]["contextId"].as_str().is_some_and(|id| !id.is_empty()), "{way:?}: {first}");
        let word = send(&speaker, way, message("tck-message-response", "hi")).await;
        assert!(word["message"]["contextId"].as_str().is_some_and(|id| !id.is_empty()), "{way:?}: {word}");
        let mut mine = message("tck-complete-task", "hi");
        mine["contextId"] = json!(format!("tck-client-context-{:?}", way));
        let taken = send(&speaker, way, mine.clone()).await;
        assert_eq!(taken["task"]["contextId"], mine["contextId"], "{way:?}");
        let second = send(&speaker, way, mine.clone()).await;
        assert_eq!(second["task"]["contextId"], mine["contextId"], "{way:?}");
        assert_ne!(second["task"]["id"], taken["task"]["id"], "a task that is not named is a new one: {way:?}");
        let asked = send(&speaker, way, message("tck-input-required", "hi")).await;
        let answered = send(&speaker, way, on(&asked["task"], "tck-infer-ctx", "hi")).await;
        assert_eq!(answered["task"]["contextId"], asked["task"]["contextId"], "{way:?}");
    }
}

#[tokio::test]
async fn history_is_as_long_as_wanted_and_holds_every_message() {
    // A2A-1; CORE-HIST-001 … CORE-HIST-006
    let server = Conformance::start().await;
    let speaker = server.speaker();
    for way in WAYS {
        let task = send(&speaker, way, message("tck-input-required", "first")).await["task"].clone();
        // The kit sends the same id again and again.
        for text in ["TCK history message 1", "TCK history message 2"] {
            let mut more = on(&task, "", text);
            more["messageId"] = json!("tck-input-required-again");
            let still = send(&speaker, way, more).await;
            assert_eq!((state(&still["task"]), &still["task"]["id"]), ("INPUT_REQUIRED", &task["id"]), "{way:?}");
        }
        let done = send(&speaker, way, on(&task, "tck-complete-task", "last")).await;
        assert_eq!(state(&done["task"]), "COMPLETED", "{way:?}");
        let all = get(&speaker, way, json!({"id": task["id"], "historyLength": 10})).await;
        let said = |task: &Value| {
            let history = task["history"].as_array().cloned().unwrap_or_default();
            let mine = history.into_iter().filter(|message| message["role"] == "ROLE_USER");
            mine.map(|message| message["parts"][0]["text"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(said(&all), ["first", "TCK history message 1", "TCK history message 2", "last"], "{way:?}: {all}");
        assert_eq!(said(&get(&speaker, way, json!({"id": task["id"]})).await), said(&all), "{way:?}");
        let two = get(&speaker, way, json!({"id": task["id"], "historyLength": 2})).await;
        assert_eq!(two["history"].as_array().map(Vec::len), Some(2), "{way:?}: {two}");
        let last = all["history"].as_array().unwrap();
        assert_eq!(two["history"].as_array().unwrap()[..], last[last.len() - 2..], "the newest: {way:?}");
        // Where protobuf of 0.3 cannot tell none from nothing said, all are meant.
        if way.1 == Version::V1 {
            let none = get(&speaker, way, json!({"id": task["id"], "historyLength": 0})).await;
            assert_eq!(none["history"].as_array().map_or(0, Vec::len), 0, "{way:?}: {none}");
            let params = json!({"message": message("tck-complete-task", "x"), "configuration": {"historyLength": 0}});
            let sent = speaker.ask(way, "SendMessage", params).await.unwrap();
            assert_eq!(sent["task"]["history"].as_array().map_or(0, Vec::len), 0, "{way:?}: {sent}");
        }
    }
}

#[tokio::test]
async fn lists_are_filtered_in_pages_newest_first() {
    // A2A-1; CORE-LIST-001 … CORE-LIST-005
    let server = Conformance::start().await;
    let speaker = server.speaker();
    for way in of_v1() {
        let context = format!("list-{:?}", way.0);
        let in_context = |kind: &str| {
            let mut message = message(kind, "hi");
            message["contextId"] = json!(context);
            message
        };
        let mut tasks = Vec::new();
        for kind in
            ["tck-artifact-text", "tck-input-required", "tck-complete-task", "tck-complete-task", "tck-complete-task"]
        {
            tasks.insert(0, send(&speaker, way, in_context(kind)).await["task"].clone());
        }
        let ids =
            |page: &Value| page["tasks"].as_array().unwrap().iter().map(|task| task["id"].clone()).collect::<Vec<_>>();
        let list = async |mut params: Value| {
            params["contextId"] = json!(context);
            speaker.ask(way, "ListTasks", params).await.unwrap_or_else(|refusal| panic!("{way:?}: {refusal:?}"))
        };
        let all = list(json!({})).await;
        let wanted: Vec<_> = tasks.iter().map(|task| task["id"].clone()).collect();
        assert_eq!(ids(&all), wanted, "{way:?}");
        assert_eq!((&all["totalSize"], &all["pageSize"]), (&json!(5), &json!(50)), "{way:?}");
        assert_eq!(all["nextPageToken"].as_str().unwrap_or_default(), "", "{way:?}");
        // Page by page, each task once.
        let mut token = String::new();
        let mut seen = Vec::new();
        for _ in 0..4 {
            let page = list(json!({"pageSize": 2, "pageToken": token})).await;
            assert_eq!((&page["totalSize"], &page["pageSize"]), (&json!(5), &json!(2)), "{way:?}");
            seen.extend(ids(&page));
            token = page["nextPageToken"].as_str().unwrap_or_default().to_owned();
            if token.is_empty() {
                break;
            }
        }
        assert_eq!((seen, token.as_str()), (wanted, ""), "{way:?}");
        let open = list(json!({"status": "TASK_STATE_INPUT_REQUIRED"})).await;
        assert_eq!((ids(&open), &open["totalSize"]), (vec![tasks[3]["id"].clone()], &json!(1)), "{way:?}");
        let after = tasks[1]["status"]["timestamp"].clone();
        let later = list(json!({"statusTimestampAfter": after})).await;
        assert_eq!(ids(&later)[0], tasks[0]["id"], "{way:?}: {later}");
        assert!(!ids(&later).contains(&tasks[2]["id"]), "{way:?}: {later}");
        // Artifacts only where they are wanted; history as long as wanted.
        assert!(all["tasks"].as_array().unwrap().iter().all(|task| task["artifacts"].is_null()), "{way:?}: {all}");
        let whole = list(json!({"includeArtifacts": true, "historyLength": 0, "pageSize": 100})).await;
        assert_eq!(whole["tasks"][4]["artifacts"][0]["parts"][0]["text"], "Generated text content", "{way:?}: {whole}");
        assert!(
            whole["tasks"].as_array().unwrap().iter().all(|task| task["history"].as_array().map_or(0, Vec::len) == 0),
            "{way:?}"
        );
    }
}

#[tokio::test]
async fn many_who_list_whole_tasks_at_once_do_not_wait_for_each_other() {
    // A2A-1: each reads the list, and then its tasks, out of few connections.
    let server = Conformance::start().await;
    let speaker = server.speaker();
    let way = WAYS[0];
    for _ in 0..3 {
        send(&speaker, way, message("tck-artifact-text", "hi")).await;
    }
    let lists = (0..32).map(|_| {
        let speaker = speaker.clone();
        async move { speaker.ask(way, "ListTasks", json!({"includeArtifacts": true})).await.unwrap() }
    });
    let lists = tokio::time::timeout(Duration::from_secs(60), futures::future::join_all(lists)).await.unwrap();
    for list in lists {
        assert_eq!(list["totalSize"], 3, "{list}");
        assert!(list["tasks"].as_array().unwrap().iter().all(|task| task["artifacts"].is_array()), "{list}");
    }
}

#[tokio::test]
async fn parts_of_every_kind_come_back_as_they_are() {
    // A2A-1; DM-ART-001, DM-MSG-001
    let server = Conformance::start().await;
    let speaker = server.speaker();
    for way in WAYS {
        for (kind, wanted) in [
            ("text", json!({"text": "Generated text content"})),
            ("file", json!({"raw": "dGNr", "filename": "output.txt", "mediaType": "text/plain"})),
            (
                "file-url",
                json!({"url": "https://example.com/output.txt", "filename": "output.txt", "mediaType": "text/plain"}),
            ),
            ("data", json!({"data": {"key": "value", "count": 42}})),
        ] {
            let answer = send(&speaker, way, message(&format!("tck-artifact-{kind}"), "TCK artifact test")).await;
            let artifact = &answer["task"]["artifacts"][0];
            assert!(artifact["artifactId"].as_str().is_some_and(|id| !id.is_empty()), "{way:?}: {answer}");
            assert_eq!(artifact["parts"], json!([wanted]), "{way:?} {kind}");
        }
        let answer = send(&speaker, way, message("tck-message-response", "hi")).await;
        assert_eq!(answer["message"]["parts"][0]["text"], "Direct message response", "{way:?}");
        // And what was sent is kept.
        let mut mine = message("tck-complete-task", "look");
        mine["parts"] = json!([
            {"text": "look"}, {"raw": "AP8=", "filename": "a.bin", "mediaType": "application/octet-stream"},
            {"url": "https://example.com/a.txt", "mediaType": "text/plain"}, {"data": {"n": [1, null, "x"]}},
        ]);
        let task = send(&speaker, way, mine.clone()).await["task"].clone();
        let kept = get(&speaker, way, json!({"id": task["id"]})).await;
        assert_eq!(kept["history"][0]["parts"], mine["parts"], "{way:?}");
    }
}

#[tokio::test]
async fn json_is_written_as_protojson_has_it_and_more_than_is_known_is_read() {
    // A2A-1; DM-SERIAL-001 … DM-SERIAL-005; the schema is checked by whoever speaks
    let server = Conformance::start().await;
    let speaker = server.speaker();
    fn walk(value: &Value, at: &mut dyn FnMut(&str, &Value)) {
        match value {
            Value::Object(object) => object.iter().for_each(|(name, value)| {
                at(name, value);
                walk(value, at);
            }),
            Value::Array(values) => values.iter().for_each(|value| walk(value, at)),
            _ => {}
        }
    }
    for way in of_v1().filter(|way| way.0 != Binding::Grpc) {
        let mut more = message("tck-dm-test-001", "hi");
        more["tckUnknownField"] = json!({"x": 1});
        let params = json!({"message": more, "tckExtraParam": true});
        let answer = speaker.ask(way, "SendMessage", params).await.unwrap();
        let mut times = 0;
        walk(&answer, &mut |name, value| {
            assert!(!name.contains('_'), "{way:?}: {name}");
            if ["state", "role"].contains(&name) {
                assert!(value.is_string(), "{way:?}: {name} is {value}");
            }
            if name == "timestamp" {
                times += 1;
                let time = value.as_str().unwrap();
                assert!(time.ends_with('Z') && time.len() >= 20 && time.as_bytes()[10] == b'T', "{way:?}: {time}");
            }
        });
        assert!(times > 0, "{way:?}: {answer}");
    }
}

#[tokio::test]
async fn names_with_underscores_are_read_too() {
    // A2A-1: the kit writes parameters of JSON-RPC as protobuf has them.
    let server = Conformance::start().await;
    let speaker = server.speaker();
    let way = WAYS[0];
    let task = send(&speaker, way, message("tck-input-required", "one")).await["task"].clone();
    send(&speaker, way, on(&task, "tck-complete-task", "two")).await;
    let one = get(&speaker, way, json!({"id": task["id"], "history_length": 1})).await;
    assert_eq!(one["history"].as_array().map(Vec::len), Some(1), "{one}");
    let page = speaker.ask(way, "ListTasks", json!({"context_id": task["contextId"], "page_size": 1})).await.unwrap();
    assert_eq!((&page["pageSize"], &page["totalSize"]), (&json!(1), &json!(1)), "{page}");
    let config = json!({"task_id": task["id"], "id": "snake", "url": "https://example.com/tck-push-webhook"});
    let made = speaker.ask(way, "CreateTaskPushNotificationConfig", config).await.unwrap();
    assert_eq!((&made["taskId"], &made["id"]), (&task["id"], &json!("snake")), "{made}");
    let found = speaker.ask(way, "GetTaskPushNotificationConfig", json!({"task_id": task["id"], "id": "snake"})).await;
    assert_eq!(found.unwrap()["url"], "https://example.com/tck-push-webhook");
}

#[tokio::test]
async fn extensions_that_nobody_knows_do_no_harm() {
    // A2A-1; JSONRPC-SVC-002, HTTP_JSON-SVC-002, GRPC-META-001
    let server = Conformance::start().await;
    let speaker = server.speaker();
    for way in WAYS {
        let name = if way.1 == Version::V1 { "A2A-Extensions" } else { "X-A2A-Extensions" };
        let headers = vec![(name, "https://example.com/ext/v1,https://example.com/ext/v2".to_owned())];
        let question = Question::new("SendMessage", json!({"message": message("tck-svc-002-ext", "hi")}));
        let answer = speaker.put(way, &Question { headers, ..question }).await.unwrap();
        assert_eq!(state(&answer["task"]), "COMPLETED", "{way:?}: {answer}");
    }
}

#[tokio::test]
async fn requests_that_are_none_are_named_by_their_codes() {
    // A2A-1; CORE-ERR-001, CORE-ERR-002, JSONRPC-ERR-001 … JSONRPC-ERR-003, VER-SERVER-003
    let server = Conformance::start().await;
    let speaker = server.speaker();
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
        let mut request = speaker.http(Method::POST, "").header("Content-Type", "application/json").body(body);
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
        let request =
            speaker.http(method, path).header("A2A-Version", "1.0").header("Content-Type", "application/json");
        let answer = request.body(body).send().await.unwrap();
        assert_eq!(answer.status(), status, "{path}");
        let kind = answer.headers()["content-type"].to_str().unwrap().to_owned();
        assert!(kind.contains("json"), "{path}: {kind}");
        let answer: Value = answer.json().await.unwrap();
        assert_eq!(answer["error"]["code"], status, "{path}: {answer}");
    }
}

#[tokio::test]
async fn a_media_type_that_an_agent_does_not_take_is_refused_and_every_other_is_taken() {
    // A2A-4; CORE-SEND-003
    let mut narrow = testkit::conformance::Scripted::agent();
    narrow.id = "narrow".to_owned();
    narrow.a2a.capabilities.supported_content_types = Some(vec!["text/plain".to_owned()]);
    let server = Conformance::start_with_scripted(narrow).await;
    for way in WAYS {
        let mut odd = message("tck-send-003", "");
        odd["parts"] = json!([{"raw": "dGNr", "mediaType": "application/x-unsupported-tck-type"}]);
        let taken = send(&server.speaker(), way, odd.clone()).await;
        assert_eq!(state(&taken["task"]), "COMPLETED", "{way:?}");
        let refused = server.speaker_to("narrow").ask(way, "SendMessage", json!({"message": odd})).await.unwrap_err();
        let missed = super::faults::Fault::ContentTypeNotSupported.missed(way, &refused);
        assert_eq!(missed, None, "{way:?}");
        send(&server.speaker_to("narrow"), way, message("tck-complete-task", "hi")).await;
    }
}

#[tokio::test]
async fn streams_in_json_are_server_sent_events() {
    // A2A-1; JSONRPC-SSE-001, HTTP_JSON-SSE-001
    let server = Conformance::start().await;
    let speaker = server.speaker();
    for (path, body) in [
        (
            "",
            json!({"jsonrpc": "2.0", "id": 7, "method": "SendStreamingMessage", "params": {"message": message("tck-stream-001", "hi")}}),
        ),
        ("/message:stream", json!({"message": message("tck-stream-001", "hi")})),
    ] {
        let request =
            speaker.http(Method::POST, path).header("A2A-Version", "1.0").header("Accept", "text/event-stream");
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
            assert_eq!(schema::v1().faults("StreamResponse", inner), Vec::<String>::new(), "{event}");
            assert_eq!(inner.as_object().unwrap().len(), 1, "{event}");
        }
    }
}

#[tokio::test]
async fn a_callback_is_called_with_its_token_and_what_has_happened() {
    // A2A-1; PUSH-DELIVER-001 … PUSH-DELIVER-003
    let server = Conformance::start().await;
    let speaker = server.speaker();
    for way in WAYS {
        let (url, mut calls) = super::hook::listen().await;
        let config = json!({
            "id": "tck-push", "url": url, "token": "tck-token",
            "authentication": {"scheme": "Bearer", "credentials": "tck-test-token"},
        });
        // Where protobuf of 0.3 has a configuration that does not say so, nobody waits.
        let configuration = json!({"taskPushNotificationConfig": config, "returnImmediately": false});
        let params = json!({"message": message("tck-input-required", "hi"), "configuration": configuration});
        let asked = speaker.ask(way, "SendMessage", params).await.unwrap()["task"].clone();
        send(&speaker, way, on(&asked, "tck-complete-task", "done")).await;
        let began = Instant::now();
        loop {
            let rest = Duration::from_secs(15).saturating_sub(began.elapsed());
            let call = tokio::time::timeout(rest, calls.recv())
                .await
                .unwrap_or_else(|_| panic!("{way:?}: nobody calls"))
                .unwrap();
            assert_eq!(call.headers["authorization"], "Bearer tck-test-token", "{way:?}");
            assert_eq!(call.headers["x-a2a-notification-token"], "tck-token", "{way:?}");
            assert!(call.headers.contains_key("content-length"), "a body in chunks is none to the kit: {way:?}");
            let body: Value = serde_json::from_slice(&call.body).unwrap();
            let told = match way.1 {
                Version::V1 => {
                    assert_eq!(schema::v1().faults("StreamResponse", &body), Vec::<String>::new(), "{way:?}: {body}");
                    let of = [&body["task"], &body["statusUpdate"]].into_iter().find(|of| of.is_object());
                    of.map(|of| state(of).to_owned())
                }
                // Its callbacks are given the whole task.
                Version::V03 => {
                    assert_eq!((&body["kind"], &body["id"]), (&json!("task"), &asked["id"]), "{way:?}: {body}");
                    body["status"]["state"].as_str().map(str::to_uppercase)
                }
            };
            if told.as_deref() == Some("COMPLETED") {
                break;
            }
        }
    }
}

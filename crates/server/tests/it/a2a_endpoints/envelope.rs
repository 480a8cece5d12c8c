//! Tests of the envelope of S2: every method and every kind of error.

use super::*;

async fn ask(server: &TestServer, agent: &str, envelope: &Value) -> Value {
    let answer = post(server, agent, envelope).send().await.unwrap();
    assert_eq!(answer.status(), 200, "always");
    answer.json().await.unwrap()
}

async fn start_echo() -> TestServer {
    start_server(ServerSettings::default(), vec![echo("echo", json!({"max_input_size": 1000}))]).await
}

#[tokio::test]
async fn execute_agent_returns_the_result() {
    // A2A-5
    let server = start_echo().await;
    let answer =
        ask(&server, "echo", &envelope_request("execute-agent", json!({"input": "hello", "parameters": {"a": 1}})))
            .await;
    assert_eq!((&answer["protocol"], &answer["version"]), (&json!("a2a"), &json!("0.3.0")));
    assert_eq!((&answer["type"], &answer["in_response_to"]), (&json!("response"), &json!("m-1")));
    let context = json!({"from": "echo", "to": "tester", "conversation_id": "c-1", "message_id": "x-1"});
    assert_eq!(answer["context"], context);
    assert!(answer["timestamp"].as_str().unwrap().parse::<jiff::Timestamp>().is_ok());
    assert_ne!(answer["id"], "m-1");
    assert_eq!(answer["payload"]["method"], "execute-agent");
    let result = &answer["payload"]["result"];
    assert_eq!(
        (&result["status"], &result["output"], &result["agent_id"]),
        (&json!("success"), &json!("hello"), &json!("echo"))
    );
    // The API returns the same result.
    let path = format!("/api/executions/{}/result", result["id"].as_str().unwrap());
    assert_eq!(get(&server, &path).await.json::<Value>().await.unwrap(), *result);
    let failed = ask(&server, "echo", &envelope_request("execute-agent", json!({"input": "fail"}))).await;
    assert_eq!(failed["type"], "response", "a failed run has a result too");
    assert_eq!(failed["payload"]["result"]["status"], "failure");
    assert_eq!(failed["payload"]["result"]["error"], "it did not work");
}

#[tokio::test]
async fn status_returns_load_and_capabilities() {
    // A2A-4, A2A-5
    let server = start_echo().await;
    let answer = ask(&server, "echo", &envelope_request("status", json!({}))).await;
    assert_eq!(answer["type"], "response");
    let status = &answer["payload"]["result"];
    assert_eq!(
        (&status["agent_id"], &status["state"], &status["running"]),
        (&json!("echo"), &json!("idle"), &json!(0))
    );
    assert_eq!(status["pool"]["limit"], 10);
    assert_eq!(status["capabilities"]["max_input_size"], 1000);
    assert_eq!(status["supported_versions"], json!(["1.0", "0.3"]));
}

#[tokio::test]
async fn a_stream_ends_with_the_result() {
    // A2A-5
    let server = start_echo().await;
    let mut envelope = envelope_request("execute-agent", json!({"input": "hello"}));
    envelope["type"] = json!("stream");
    let answer = post(&server, "echo", &envelope).send().await.unwrap();
    assert_eq!(
        (answer.status().as_u16(), &answer.headers()["content-type"]),
        (200, &"text/event-stream".parse().unwrap())
    );
    let text = answer.text().await.unwrap();
    let blocks = text.split("\n\n").filter_map(|block| block.strip_prefix("data: "));
    let events: Vec<Value> = blocks.map(|block| serde_json::from_str(block).unwrap()).collect();
    let (last, rest) = events.split_last().unwrap();
    assert!(rest.iter().all(|event| event["type"] == "stream" && event["in_response_to"] == "m-1"), "{text}");
    let output = rest.iter().find(|event| event["payload"]["result"]["event"] == "output").unwrap();
    assert_eq!(output["payload"]["result"]["text"], "hello");
    assert!(rest.iter().any(|event| event["payload"]["result"]["state"] == "running"), "{text}");
    assert_eq!((&last["type"], &last["payload"]["result"]["output"]), (&json!("response"), &json!("hello")));
}

#[tokio::test]
async fn errors_have_a_code_and_a_field() {
    // A2A-5
    let server = start_echo().await;
    let with = |path: &str, value: Value| {
        let mut envelope = envelope_request("execute-agent", json!({"input": "hello"}));
        *envelope.pointer_mut(path).unwrap() = value;
        envelope
    };
    let without = |field: &str| {
        let mut envelope = envelope_request("execute-agent", json!({"input": "hello"}));
        envelope.as_object_mut().unwrap().shift_remove(field);
        envelope
    };
    let more = |envelope: Value| {
        let mut envelope = envelope;
        envelope["surprise"] = json!(1);
        envelope
    };
    let stream_of_status = {
        let mut envelope = envelope_request("status", json!({}));
        envelope["type"] = json!("stream");
        envelope
    };
    for (envelope, code, field) in [
        (with("/protocol", json!("mcp")), -32600, "protocol"),
        (without("protocol"), -32600, "protocol"),
        (with("/version", json!("9.9")), -32009, ""),
        (with("/version", json!("")), -32600, "version"),
        (without("version"), -32600, "version"),
        (with("/id", json!("")), -32600, "id"),
        (with("/id", json!(7)), -32600, "id"),
        (with("/type", json!("response")), -32600, "type"),
        (with("/timestamp", json!("yesterday")), -32600, "timestamp"),
        (with("/context/to", json!("somebody")), -32600, "context.to"),
        (with("/context/from", json!("x".repeat(201))), -32600, "context.from"),
        (without("payload"), -32600, "payload"),
        (with("/payload", json!([])), -32600, "payload"),
        (more(envelope_request("status", json!({}))), -32600, "surprise"),
        (json!([1, 2]), -32600, ""),
        (with("/payload/method", json!("dance")), -32601, ""),
        (with("/payload/params", json!({})), -32602, "params.input"),
        (with("/payload/params", json!({"input": 7})), -32602, "params.input"),
        (with("/payload/params", json!({"input": "x", "inptu": "y"})), -32602, "params.inptu"),
        (with("/payload/params", json!({"input": "wrong"})), -32602, "params.input"),
        (with("/payload/params", json!({"input": "x".repeat(1001)})), -32602, "params.input"),
        (with("/payload/params", json!({"input": "x", "envs": {"A": "b"}})), -32004, ""),
        (envelope_request("status", json!({"deep": true})), -32602, "params.deep"),
        (stream_of_status, -32004, ""),
    ] {
        let answer = ask(&server, "echo", &envelope).await;
        assert_eq!(answer["type"], "error", "{envelope} {answer}");
        let error = &answer["payload"]["error"];
        assert_eq!(error["code"], code, "{envelope} {error}");
        assert!(!error["message"].as_str().unwrap().is_empty());
        assert_eq!(error["data"]["errors"][0]["field"].as_str().unwrap_or_default(), field, "{envelope} {error}");
        if envelope["id"] == "m-1" {
            assert_eq!(answer["in_response_to"], "m-1");
        }
    }
}

#[tokio::test]
async fn malformed_bodies_get_an_error_envelope() {
    // A2A-5
    let server = start_echo().await;
    let send = |body: Vec<u8>, kind: &'static str| {
        let request =
            request(&server, Method::POST, "/agents/echo/v1/envelope").header("content-type", kind).body(body);
        async move {
            let answer = request.send().await.unwrap();
            assert_eq!(answer.status(), 200);
            answer.json::<Value>().await.unwrap()["payload"]["error"]["code"].clone()
        }
    };
    assert_eq!(send(b"{not json".to_vec(), "application/json").await, -32700);
    assert_eq!(send(Vec::new(), "application/json").await, -32700);
    assert_eq!(send(b"\"\xff\"".to_vec(), "application/json").await, -32700);
    assert_eq!(send(b"{}".to_vec(), "text/plain").await, -32005);
    assert_eq!(send(vec![b' '; 1_200_000], "application/json").await, -32600, "too large");
    assert_eq!(
        send(format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000)).into(), "application/json").await,
        -32700
    );
    assert_eq!(get(&server, "/agents/echo/v1/envelope").await.status(), 405);
    assert_eq!(post(&server, "nobody", &envelope_request("status", json!({}))).send().await.unwrap().status(), 404);
}

#[tokio::test]
async fn operations_that_are_not_offered_are_rejected() {
    // A2A-4, A2A-5
    let agents = vec![
        echo("status", json!({"a2a": {"supported_methods": ["status"]}})),
        echo("rpc", json!({"a2a": {"transports": ["json_rpc", "grpc"]}})),
        echo("still", json!({"a2a": {"capabilities": {"streaming_support": false, "max_input_size": 3}}})),
    ];
    let server = start_server(ServerSettings::default(), agents).await;
    let code =
        async |agent: &str, envelope: &Value| ask(&server, agent, envelope).await["payload"]["error"]["code"].clone();
    let execute = envelope_request("execute-agent", json!({"input": "hi"}));
    let mut stream = execute.clone();
    stream["type"] = json!("stream");
    assert_eq!(code("status", &envelope_request("status", json!({}))).await, Value::Null);
    assert_eq!(code("status", &execute).await, -32004);
    assert_eq!(code("rpc", &execute).await, -32004);
    assert_eq!(code("still", &stream).await, -32004);
    assert_eq!(code("still", &execute).await, Value::Null);
    assert_eq!(code("still", &envelope_request("execute-agent", json!({"input": "long"}))).await, -32602);
}

#[tokio::test]
async fn the_assistant_keeps_the_conversation() {
    // A2A-5
    let server = TestServer::offline().await;
    server.app.supervisor().start().await.unwrap();
    let send = async |input: &str| {
        let answer = ask(&server, "assistant", &envelope_request("execute-agent", json!({"input": input}))).await;
        answer["payload"]["result"]["output"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
    };
    assert!(send("add buy milk").await.contains("buy milk"));
    assert!(send("show my tasks").await.contains("buy milk"));
    assert!(send("the last one is done").await.contains("buy milk"));
}

#[tokio::test]
async fn overrides_require_an_administrator_and_the_agents_consent() {
    // A2A-5
    let consents = json!({"overrides": ["envs", "working_directory"], "allow": ["*"]});
    let server = start_server(with_tokens(), vec![echo("echo", consents)]).await;
    let envelope =
        envelope_request("execute-agent", json!({"input": "hi", "envs": {"A": "b"}, "working_directory": "/"}));
    let code = async |scope: &str| {
        let request = post(&server, "echo", &envelope).bearer_auth(jwt(ALICE, scope));
        request.send().await.unwrap().json::<Value>().await.unwrap()["payload"]["error"]["code"].clone()
    };
    assert_eq!(code("").await, -32004);
    assert_eq!(code("adjutant:admin").await, Value::Null);
}

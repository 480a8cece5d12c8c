//! S2's envelope: every method, every way to get it wrong.

use super::*;

async fn ask(bench: &Bench, agent: &str, envelope: &Value) -> Value {
    let answer = post(bench, agent, envelope).send().await.unwrap();
    assert_eq!(answer.status(), 200, "always");
    answer.json().await.unwrap()
}

async fn usual() -> Bench {
    bench(Settings::default(), vec![echo("echo", json!({"max_input_size": 1000}))]).await
}

#[tokio::test]
async fn a_run_is_asked_for_and_its_result_comes_back() {
    // A2A-5
    let bench = usual().await;
    let answer = ask(&bench, "echo", &asks("execute-agent", json!({"input": "hello", "parameters": {"a": 1}}))).await;
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
    // The same run as any other door has it.
    let path = format!("/api/executions/{}/result", result["id"].as_str().unwrap());
    assert_eq!(get(&bench, &path).await.json::<Value>().await.unwrap(), *result);
    let failed = ask(&bench, "echo", &asks("execute-agent", json!({"input": "fail"}))).await;
    assert_eq!(failed["type"], "response", "a run that failed has a result too");
    assert_eq!(failed["payload"]["result"]["status"], "failure");
    assert_eq!(failed["payload"]["result"]["error"], "it did not work");
}

#[tokio::test]
async fn status_says_how_busy_it_is_and_what_it_can_do() {
    // A2A-4, A2A-5
    let bench = usual().await;
    let answer = ask(&bench, "echo", &asks("status", json!({}))).await;
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
async fn a_stream_tells_what_happens_and_ends_with_the_result() {
    // A2A-5
    let bench = usual().await;
    let mut envelope = asks("execute-agent", json!({"input": "hello"}));
    envelope["type"] = json!("stream");
    let answer = post(&bench, "echo", &envelope).send().await.unwrap();
    assert_eq!(
        (answer.status().as_u16(), &answer.headers()["content-type"]),
        (200, &"text/event-stream".parse().unwrap())
    );
    let text = answer.text().await.unwrap();
    let blocks = text.split("\n\n").filter_map(|block| block.strip_prefix("data: "));
    let told: Vec<Value> = blocks.map(|block| serde_json::from_str(block).unwrap()).collect();
    let (last, rest) = told.split_last().unwrap();
    assert!(rest.iter().all(|told| told["type"] == "stream" && told["in_response_to"] == "m-1"), "{text}");
    let output = rest.iter().find(|told| told["payload"]["result"]["event"] == "output").unwrap();
    assert_eq!(output["payload"]["result"]["text"], "hello");
    assert!(rest.iter().any(|told| told["payload"]["result"]["state"] == "running"), "{text}");
    assert_eq!((&last["type"], &last["payload"]["result"]["output"]), (&json!("response"), &json!("hello")));
}

#[tokio::test]
async fn whatever_is_wrong_has_its_code_and_its_field() {
    // A2A-5
    let bench = usual().await;
    let with = |path: &str, value: Value| {
        let mut envelope = asks("execute-agent", json!({"input": "hello"}));
        *envelope.pointer_mut(path).unwrap() = value;
        envelope
    };
    let without = |field: &str| {
        let mut envelope = asks("execute-agent", json!({"input": "hello"}));
        envelope.as_object_mut().unwrap().shift_remove(field);
        envelope
    };
    let more = |envelope: Value| {
        let mut envelope = envelope;
        envelope["surprise"] = json!(1);
        envelope
    };
    let stream_of_status = {
        let mut envelope = asks("status", json!({}));
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
        (more(asks("status", json!({}))), -32600, "surprise"),
        (json!([1, 2]), -32600, ""),
        (with("/payload/method", json!("dance")), -32601, ""),
        (with("/payload/params", json!({})), -32602, "params.input"),
        (with("/payload/params", json!({"input": 7})), -32602, "params.input"),
        (with("/payload/params", json!({"input": "x", "inptu": "y"})), -32602, "params.inptu"),
        (with("/payload/params", json!({"input": "wrong"})), -32602, "params.input"),
        (with("/payload/params", json!({"input": "x".repeat(1001)})), -32602, "params.input"),
        (with("/payload/params", json!({"input": "x", "envs": {"A": "b"}})), -32004, ""),
        (asks("status", json!({"deep": true})), -32602, "params.deep"),
        (stream_of_status, -32004, ""),
    ] {
        let answer = ask(&bench, "echo", &envelope).await;
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
async fn bodies_that_are_none_are_answered_too() {
    // A2A-5
    let bench = usual().await;
    let send = |body: Vec<u8>, kind: &'static str| {
        let request = request(&bench, Method::POST, "/agents/echo/v1/envelope").header("content-type", kind).body(body);
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
    assert_eq!(get(&bench, "/agents/echo/v1/envelope").await.status(), 405);
    assert_eq!(post(&bench, "nobody", &asks("status", json!({}))).send().await.unwrap().status(), 404);
}

#[tokio::test]
async fn only_what_is_listed_can_be_asked_for() {
    // A2A-4, A2A-5
    let agents = vec![
        echo("status", json!({"a2a": {"supported_methods": ["status"]}})),
        echo("rpc", json!({"a2a": {"transports": ["json_rpc", "grpc"]}})),
        echo("still", json!({"a2a": {"capabilities": {"streaming_support": false, "max_input_size": 3}}})),
    ];
    let bench = bench(Settings::default(), agents).await;
    let code =
        async |agent: &str, envelope: &Value| ask(&bench, agent, envelope).await["payload"]["error"]["code"].clone();
    let execute = asks("execute-agent", json!({"input": "hi"}));
    let mut stream = execute.clone();
    stream["type"] = json!("stream");
    assert_eq!(code("status", &asks("status", json!({}))).await, Value::Null);
    assert_eq!(code("status", &execute).await, -32004);
    assert_eq!(code("rpc", &execute).await, -32004);
    assert_eq!(code("still", &stream).await, -32004);
    assert_eq!(code("still", &execute).await, Value::Null);
    assert_eq!(code("still", &asks("execute-agent", json!({"input": "long"}))).await, -32602);
}

#[tokio::test]
async fn the_assistant_keeps_its_conversation() {
    // A2A-5
    let bench = Bench::offline().await;
    bench.app.supervisor().work().await.unwrap();
    let say = async |input: &str| {
        let answer = ask(&bench, "assistant", &asks("execute-agent", json!({"input": input}))).await;
        answer["payload"]["result"]["output"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
    };
    assert!(say("add buy milk").await.contains("buy milk"));
    assert!(say("the last one is done").await.contains("buy milk"));
}

#[tokio::test]
async fn what_is_put_into_an_environment_is_for_administrators_where_the_agent_consents() {
    // A2A-5
    let consents = json!({"overrides": ["envs", "working_directory"], "allow": ["*"]});
    let bench = bench(with_tokens(), vec![echo("echo", consents)]).await;
    let envelope = asks("execute-agent", json!({"input": "hi", "envs": {"A": "b"}, "working_directory": "/"}));
    let code = async |scope: &str| {
        let request = post(&bench, "echo", &envelope).bearer_auth(jwt(ALICE, scope));
        request.send().await.unwrap().json::<Value>().await.unwrap()["payload"]["error"]["code"].clone()
    };
    assert_eq!(code("").await, -32004);
    assert_eq!(code("adjutant:admin").await, Value::Null);
}

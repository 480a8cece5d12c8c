//! Requests and responses: tool calls, rejected messages and log entries (TASK-1, TASK-3).

use reqwest::Method;
use serde_json::{Value, json};

use super::{Client, MODERN, error_code};
use crate::{ALICE, home, home_with_auth, token};

#[tokio::test]
async fn tools_are_listed_and_called_in_both_eras() {
    // TASK-1, TASK-3
    let home = home();
    let server = home.serve();
    let found = Client::modern(&server, None).request_result("server/discover", json!({})).await;
    let versions = found["supportedVersions"].as_array().unwrap();
    assert!(versions.contains(&json!(MODERN)) && versions.contains(&json!("2025-11-25")), "{found}");
    for client in [Client::modern(&server, None), Client::legacy(&server, None).await] {
        let listed = client.request_result("tools/list", json!({})).await;
        let tools = listed["tools"].as_array().unwrap();
        let names: Vec<_> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        assert_eq!(names[..3], ["add_task", "list_tasks", "complete_task"], "in a fixed order");
        let delete = tools.iter().find(|tool| tool["name"] == "delete_task").unwrap();
        let hints = &delete["annotations"];
        assert_eq!((&hints["destructiveHint"], &hints["readOnlyHint"]), (&json!(true), &json!(false)));
        assert_eq!((&hints["openWorldHint"], &delete["title"]), (&json!(false), &json!("Delete a task")));
        assert_eq!(delete["inputSchema"]["required"], json!(["task_id"]));

        let added = client.call("add_task", json!({"title": "milk", "tags": ["shop"]})).await;
        assert_eq!((&added["isError"], &added["structuredContent"]["task"]["tags"]), (&json!(false), &json!(["shop"])));
        let text: Value = serde_json::from_str(added["content"][0]["text"].as_str().unwrap()).unwrap();
        assert_eq!(text, added["structuredContent"]);
        let done = client.call("complete_task", json!({"task_id": added["structuredContent"]["task_id"]})).await;
        assert_eq!(done["structuredContent"]["status"], "completed");
    }
}

#[tokio::test]
async fn annotations_of_agent_tools_state_their_effects() {
    // TASK-6
    let home = home().with_config("[[agents]]\nid = \"echo\"\nexecutable_path = \"/bin/echo\"\n");
    let server = home.serve();
    let listed = Client::modern(&server, None).request_result("tools/list", json!({})).await;
    let hints = |name: &str| {
        let tool = listed["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == name).unwrap();
        let hint = |name: &str| tool["annotations"][name].as_bool().unwrap();
        (hint("readOnlyHint"), hint("destructiveHint"), hint("idempotentHint"), hint("openWorldHint"))
    };
    assert_eq!(hints("run_agent"), (false, true, false, true), "an agent can change anything it reaches");
    assert_eq!(hints("schedule_agent"), (false, true, false, true));
    assert_eq!(hints("resume_schedule"), (false, true, true, true));
    assert_eq!(hints("update_schedule"), (false, true, true, true));
    assert_eq!(hints("run_schedule"), (false, true, false, true));
    assert_eq!(hints("delete_schedule"), (false, true, false, false), "the history is lost");
    assert_eq!(hints("explain_schedule"), (true, false, true, false));
    assert_eq!(hints("list_executions"), (true, false, true, false));
    assert_eq!(hints("cancel_execution"), (false, true, false, false), "the work of the run is lost");
    assert_eq!(hints("list_agents"), (true, false, true, false));
}

#[tokio::test]
async fn tool_failures_are_results_and_unknown_methods_are_errors() {
    // TASK-1
    let home = home();
    let server = home.serve();
    for client in [Client::modern(&server, None), Client::legacy(&server, None).await] {
        assert_eq!(error_code(&client.call("add_task", json!({})).await), "VALIDATION_ERROR");
        assert_eq!(error_code(&client.call("complete_task", json!({"task_id": "x"})).await), "VALIDATION_ERROR");
        let missing = json!({"task_id": "01a1e165-d9c5-76fe-a95f-0986e08b32da"});
        assert_eq!(error_code(&client.call("delete_task", missing).await), "NOT_FOUND");
        assert_eq!(client.call("no_such_tool", json!({})).await["code"], -32602);
        assert_eq!(
            client.request_result("tools/call", json!({"name": "add_task", "arguments": "x"})).await["code"],
            -32602
        );
        for method in ["prompts/list", "resources/list", "resources/templates/list"] {
            assert_eq!(client.request_result(method, json!({})).await["code"], -32601, "{method}");
        }
        let reference = json!({"ref": {"type": "ref/prompt", "name": "x"}, "argument": {"name": "a", "value": ""}});
        assert_eq!(client.request_result("completion/complete", reference).await["code"], -32601);
    }
}

#[tokio::test]
async fn invalid_messages_are_rejected() {
    // TASK-3
    let home = home().with_config("[server]\nmax_body_bytes = 4096\n");
    let server = home.serve();
    let client = Client::modern(&server, None);
    let post = async |body: String| {
        let request = client.request(Method::POST).header("content-type", "application/json");
        let answer = request.body(body).send().await.unwrap();
        let status = answer.status().as_u16();
        (status, answer.json::<Value>().await.unwrap())
    };
    for (body, status, code) in
        [("{", 400, -32700), ("", 400, -32700), ("[1]", 400, -32600), ("{}", 400, -32600), ("\"x\"", 400, -32600)]
    {
        let (answered, problem) = post(body.to_owned()).await;
        assert_eq!((answered, &problem["error"]["code"]), (status, &json!(code)), "{body}: {problem}");
    }
    assert_eq!(post("x".repeat(5000)).await.0, 413);
    let cross_origin = client.request(Method::POST).header("origin", "http://evil.example").body("{}");
    assert_eq!(cross_origin.send().await.unwrap().status(), 403);
    assert_eq!(client.request(Method::PUT).send().await.unwrap().status(), 405);
    // Headers that contradict the body.
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "it", "version": "1"},
    }}});
    let request = client.request(Method::POST).header("mcp-protocol-version", MODERN).header("mcp-method", "ping");
    let answer = request.json(&message).send().await.unwrap();
    assert_eq!(answer.status(), 400);
    assert_eq!(answer.json::<Value>().await.unwrap()["error"]["code"], -32020);
}

#[tokio::test]
async fn the_token_determines_the_user() {
    // AGENT-3, OPS-3
    let home = home_with_auth();
    let server = home.serve();
    for method in [Method::POST, Method::GET, Method::DELETE] {
        assert_eq!(Client::modern(&server, None).request(method).send().await.unwrap().status(), 401);
    }
    let alice = token(&home, ALICE, &[]);
    let bob = token(&home, crate::BOB, &[]);
    let alice = Client::modern(&server, Some(&alice));
    let bob = Client::modern(&server, Some(&bob));
    let secret = alice.add("alice's secret").await;
    let tried = bob.call("add_task", json!({"title": "for alice", "user_id": ALICE})).await;
    assert_eq!(tried["isError"], false, "user_id is ignored: {tried}");
    assert_eq!(alice.titles().await, ["alice's secret"]);
    assert_eq!(bob.titles().await, ["for alice"]);
    for tool in ["complete_task", "delete_task", "update_task"] {
        let arguments = json!({"task_id": secret, "user_id": ALICE, "title": "mine"});
        let arguments = if tool == "update_task" { arguments } else { json!({"task_id": secret, "user_id": ALICE}) };
        assert_eq!(error_code(&bob.call(tool, arguments).await), "NOT_FOUND", "{tool}");
    }
}

#[tokio::test]
async fn calls_are_logged_with_their_request_id_and_without_secrets() {
    // AGENT-5, OPS-1, SUP-9
    let home = home();
    let server = home.serve();
    let key = format!("sk-ant-api03-{}", "aB3".repeat(30));
    for client in [Client::modern(&server, None), Client::legacy(&server, None).await] {
        let params = json!({"name": "add_task", "arguments": {"title": "renew", "description": key}});
        let answer = client.send("tools/call", params).await;
        let id = answer.headers()["x-request-id"].to_str().unwrap().to_owned();
        super::Messages::new(answer).next().await.unwrap();
        let entry = async |event: &str| loop {
            if let Some(entry) = server.log().into_iter().find(|e| e["event"] == event && e["request_id"] == id) {
                return entry;
            }
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        };
        let called = entry("mcp_tool_called").await;
        assert_eq!(called["details"]["tool_name"], "add_task");
        assert_eq!(called["details"]["arguments"]["title"], "renew");
        assert!(called["duration_ms"].is_u64(), "{called}");
        let result = entry("mcp_tool_result").await;
        assert_eq!(result["details"]["success"], true);
        assert!(result["details"]["result_preview"].as_str().unwrap().chars().count() <= 200);
        assert_eq!(result["user_id"], "00000000-0000-7000-8000-000000000001");
    }
    assert!(!server.raw_log().contains(&key));
}

#[tokio::test]
async fn tools_can_use_the_todo_names() {
    // TASK-2
    let home = home().with_config("[tasks]\ntool_names = \"todo\"\n");
    let server = home.serve();
    let client = Client { can_elicit: false, ..Client::modern(&server, None) };
    let listed = client.request_result("tools/list", json!({})).await;
    let names: Vec<_> = listed["tools"].as_array().unwrap().iter().map(|tool| tool["name"].clone()).collect();
    assert!(names.contains(&json!("create_todo")) && !names.contains(&json!("add_task")), "{names:?}");
    let added = client.call("create_todo", json!({"title": "milk"})).await;
    let id = &added["structuredContent"]["task_id"];
    let refused = client.call("delete_todo", json!({"todo_id": id, "confirmation": false})).await;
    assert_eq!(error_code(&refused), "CONFIRMATION_REQUIRED");
    let deleted = client.call("delete_todo", json!({"todo_id": id, "confirmation": true})).await;
    assert_eq!(deleted["isError"], false, "{deleted}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_outage_is_reported_without_details() {
    // OPS-2, RES-2
    let url = testkit::postgres::create_database().await.unwrap();
    let (host, rest) = url.split_once('@').unwrap().1.split_once('/').unwrap();
    let proxy = testkit::proxy::TcpProxy::start(host).await;
    let home = home().with_env("ADJUTANT_DATABASE__URL", &format!("postgres://adjutant@{}/{rest}", proxy.address));
    let server = home.serve();
    let client = Client::modern(&server, None);
    client.add("a").await;
    proxy.cut();
    let refused = client.call("add_task", json!({"title": "b"})).await;
    assert_eq!(error_code(&refused), "UNAVAILABLE");
    let message = refused["structuredContent"]["error"]["message"].as_str().unwrap();
    assert!(message.starts_with("The tasks cannot be reached") && !message.contains("postgres"), "{message}");
    server.wait_for_event("error_occurred").await;
}

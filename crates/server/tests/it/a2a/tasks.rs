//! Tests of messages and their tasks: results, lists and cancellation.

use server::ServerSettings;

use super::*;

#[tokio::test]
async fn output_becomes_an_artifact() {
    // A2A-1
    let (server, _) = start_server(ServerSettings::default()).await;
    let client = RpcClient::new(&server, AGENT_ID);
    let mut message = text("hello");
    message["contextId"] = json!("my context");
    let task = client.send(message).await;
    assert_eq!((state_of(&task), &task["contextId"]), ("COMPLETED", &json!("my context")), "{task}");
    let expected = json!([{"artifactId": "output", "parts": [{"text": "hello"}]}]);
    assert_eq!(task["artifacts"], expected);
    let request = &task["history"][0];
    assert_eq!((&request["messageId"], &request["role"]), (&json!("m"), &json!("ROLE_USER")));
    assert_eq!((&request["taskId"], &request["contextId"]), (&task["id"], &task["contextId"]));
    assert_eq!(client.get(&task["id"]).await, task, "GetTask returns the same");
    let execution = format!("{}/api/executions/{}", server.url, task["id"].as_str().unwrap());
    let execution: Value = server.client.get(execution).send().await.unwrap().json().await.unwrap();
    assert_eq!((&execution["agent_id"], &execution["input"]), (&json!(AGENT_ID), &json!("hello")));
}

#[tokio::test]
async fn rich_output_reaches_a2a() {
    // A2A-1
    let (server, _) = start_server(ServerSettings::default()).await;
    let client = RpcClient::new(&server, AGENT_ID);
    let chunk = |text: &str, append: bool| json!({"artifact": {"artifact_id": "a", "name": "A", "parts": [{"text": text}], "append": append}});
    let parts = json!([{"bytes": "AAEC", "name": "a.bin", "media_type": "a/b"}, {"url": "https://example.com/x"}, {"data": {"k": 1}}]);
    let task = client
        .send(steps(json!({"do": [
            {"status": [{"text": "soon"}]}, chunk("1", true), {"status": [{"text": "done"}]}, chunk("2", true),
            {"artifact": {"artifact_id": "b", "parts": parts, "metadata": {"m": 1}}},
        ]})))
        .await;
    let expected = json!([
        {"artifactId": "a", "name": "A", "parts": [{"text": "1"}, {"text": "2"}]},
        {"artifactId": "b", "metadata": {"m": 1}, "parts": [
            {"raw": "AAEC", "filename": "a.bin", "mediaType": "a/b"}, {"url": "https://example.com/x"}, {"data": {"k": 1}},
        ]},
    ]);
    assert_eq!(task["artifacts"], expected);
    assert_eq!(task["status"]["message"]["parts"], json!([{"text": "done"}]));
    assert_eq!(task["status"]["message"]["role"], "ROLE_AGENT");
    let texts: Vec<_> =
        task["history"].as_array().unwrap().iter().map(|message| &message["parts"][0]["text"]).collect();
    assert_eq!(texts[1..], [&json!("soon")], "earlier status messages are history");
}

#[tokio::test]
async fn outcomes_map_to_task_states() {
    // A2A-1
    let (server, _) = start_server(ServerSettings::default()).await;
    let client = RpcClient::new(&server, AGENT_ID);
    for (script, state, expected) in [
        (json!({}), "COMPLETED", Value::Null),
        (json!({"outcome": "asks", "do": [{"print": "which one?"}]}), "INPUT_REQUIRED", json!("which one?")),
        (json!({"outcome": "asks", "do": [{"status": [{"text": "who?"}]}]}), "INPUT_REQUIRED", json!("who?")),
        (json!({"outcome": "needs_access"}), "AUTH_REQUIRED", Value::Null),
        (json!({"outcome": "rejected", "do": [{"status": [{"text": "no"}]}]}), "REJECTED", json!("no")),
        (json!({"outcome": "rejected"}), "REJECTED", json!("the agent rejected the request")),
        (json!({"failure": "it broke", "do": [{"status": [{"text": "soon"}]}]}), "FAILED", json!("it broke")),
        (json!({"do": ["fail once", {"print": "second try"}]}), "COMPLETED", Value::Null),
    ] {
        let task = client.send(steps(script.clone())).await;
        let message = &task["status"]["message"]["parts"][0]["text"];
        assert_eq!((state_of(&task), message), (state, &expected), "{script}: {task}");
    }
}

#[tokio::test]
async fn the_answer_can_be_a_message() {
    // A2A-1
    let (server, _) = start_server(ServerSettings::default()).await;
    let client = RpcClient::new(&server, AGENT_ID);
    let message = || steps(json!({"outcome": "message", "do": [{"message": [{"text": "hello"}]}]}));
    let answer = client.ok("SendMessage", json!({"message": message()})).await;
    assert_eq!(answer["message"]["parts"], json!([{"text": "hello"}]), "{answer}");
    assert_eq!((answer["message"].get("taskId"), &answer["message"]["role"]), (None, &json!("ROLE_AGENT")));
    assert!(answer["message"]["contextId"].is_string() && answer.get("task").is_none());
    let events = client.stream("SendStreamingMessage", json!({"message": message()})).await.rest().await;
    assert_eq!(events.len(), 1, "{events:?}");
    assert_eq!(events[0]["message"]["parts"], json!([{"text": "hello"}]));
    // Without waiting the response is a task, which later contains the message.
    let task = client.start_task(message()).await;
    let task = client.wait_for_state(&task["id"], "COMPLETED").await;
    assert_eq!(task["status"]["message"]["parts"], json!([{"text": "hello"}]));
}

#[tokio::test]
async fn a_task_continues_after_input() {
    // A2A-1
    let (server, _) = start_server(ServerSettings::default()).await;
    let client = RpcClient::new(&server, AGENT_ID);
    let asks = json!({"outcome": "asks", "do": [{"print": "sure?"}]});
    let first = client.send(steps(asks.clone())).await;
    let again = client.send(to_task(&first, steps(asks))).await;
    assert_eq!((state_of(&again), &again["id"]), ("INPUT_REQUIRED", &first["id"]));
    assert_eq!(again["contextId"], first["contextId"]);
    let mut yes = to_task(&first, text("yes"));
    yes["contextId"] = first["contextId"].clone();
    let done = client.send(yes).await;
    assert_eq!((state_of(&done), &done["id"]), ("COMPLETED", &first["id"]), "{done}");
    let ids: Vec<_> = done["artifacts"].as_array().unwrap().iter().map(|artifact| &artifact["artifactId"]).collect();
    assert_eq!(ids, ["output", "output-2", "output-3"]);
    let roles: Vec<_> = done["history"].as_array().unwrap().iter().map(|message| &message["role"]).collect();
    assert_eq!(roles, ["ROLE_USER", "ROLE_AGENT", "ROLE_USER", "ROLE_AGENT", "ROLE_USER"]);
    assert_eq!(client.get(&first["id"]).await, done);
    for (length, count) in [(json!(0), 0), (json!(2), 2), (json!(9), 5), (Value::Null, 5)] {
        let mut params = json!({"id": first["id"]});
        if length.is_number() {
            params["historyLength"] = length.clone();
        }
        let task = client.ok("GetTask", params).await;
        let history = task["history"].as_array().map_or(0, Vec::len);
        assert_eq!(history, count, "{length}");
        if count == 2 {
            assert_eq!(task["history"][1]["parts"], json!([{"text": "yes"}]), "the newest messages");
        }
    }
    let (code, error) = client.error("SendMessage", json!({"message": to_task(&first, text("more"))})).await;
    assert_eq!(code, -32004);
    assert!(error.contains("has ended"), "{error}");
    let old = RpcClient { version: "0.3", ..client.clone() };
    let message = json!({"messageId": "m", "role": "user", "kind": "message", "parts": [{"kind": "text", "text": "x"}], "taskId": first["id"]});
    assert_eq!(old.error("message/send", json!({ "message": message })).await.0, -32602);
}

#[tokio::test]
async fn task_and_context_ids_are_checked() {
    // A2A-1
    let (server, go) = start_server(ServerSettings::default()).await;
    let client = RpcClient::new(&server, AGENT_ID);
    let asking = client.send(steps(json!({"outcome": "asks"}))).await;
    let mut wrong_context = to_task(&asking, text("yes"));
    wrong_context["contextId"] = json!("another");
    let (code, error) = client.error("SendMessage", json!({ "message": wrong_context })).await;
    assert_eq!((code, error.contains("message.contextId")), (-32602, true), "{error}");
    for unknown in
        ["no-such-task", "0190a6d2-7c00-7000-8000-000000000000", &asking["id"].as_str().unwrap().to_uppercase()]
    {
        let mut message = text("x");
        message["taskId"] = json!(unknown);
        for method in ["SendMessage", "SendStreamingMessage"] {
            assert_eq!(client.error(method, json!({"message": message.clone()})).await.0, -32001, "{unknown}");
        }
        for method in ["GetTask", "CancelTask", "SubscribeToTask"] {
            assert_eq!(client.error(method, json!({ "id": unknown })).await.0, -32001, "{method} {unknown}");
        }
    }
    let working = client.start_task(steps(json!({"do": ["wait"]}))).await;
    let (code, error) = client.error("SendMessage", json!({"message": to_task(&working, text("more"))})).await;
    assert_eq!((code, error.contains("is running")), (-32004, true), "{error}");
    go.notify_one();
    client.wait_for_state(&working["id"], "COMPLETED").await;
    let mut long = text("x");
    long["contextId"] = json!("x".repeat(300));
    assert_eq!(client.error("SendMessage", json!({ "message": long })).await.0, -32602);
    let mut agent = text("x");
    agent["role"] = json!("ROLE_AGENT");
    assert_eq!(client.error("SendMessage", json!({ "message": agent })).await.0, -32602);
}

#[tokio::test]
async fn return_immediately_does_not_wait() {
    // A2A-1
    let (server, go) = start_server(ServerSettings::default()).await;
    let client = RpcClient::new(&server, AGENT_ID);
    let task = client.start_task(steps(json!({"do": [{"print": "half\n"}, "wait", {"print": "done\n"}]}))).await;
    assert!(["SUBMITTED", "WORKING"].contains(&state_of(&task)), "{task}");
    for _ in 0..500 {
        if client.get(&task["id"]).await["artifacts"][0]["parts"][0]["text"] == "half\n" {
            go.notify_one();
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let done = client.wait_for_state(&task["id"], "COMPLETED").await;
    assert_eq!(done["artifacts"][0]["parts"], json!([{"text": "half\ndone\n"}]));
}

#[tokio::test]
async fn files_and_data_reach_the_agent() {
    // A2A-1
    let (server, _) = start_server(ServerSettings::default()).await;
    let client = RpcClient::new(&server, AGENT_ID);
    let parts = json!([{"text": json!({"do": ["message"]}).to_string()}, {"raw": "AAEC", "filename": "a.bin"}, {"data": {"k": 1}}]);
    // Data is appended to the text as a separate line, so the input is no longer a script.
    let message = json!({"messageId": "m", "role": "ROLE_USER", "parts": parts, "metadata": {"a": "b"}});
    let task = client.send(message).await;
    let text = task["artifacts"][0]["parts"][0]["text"].as_str().unwrap();
    assert_eq!(text.lines().nth(1), Some("{\"k\":1}"), "{text}");
    let request = &task["history"][0];
    assert_eq!((&request["parts"], &request["metadata"]), (&parts, &json!({"a": "b"})));
}

#[tokio::test]
async fn secrets_are_not_stored() {
    // A2A-3, SUP-10
    let (server, _) = start_server(ServerSettings::default()).await;
    let client = RpcClient::new(&server, AGENT_ID);
    let task = client.send(text("password=hunter22hunter22")).await;
    assert_eq!(state_of(&task), "COMPLETED");
    assert!(!task.to_string().contains("hunter22"), "{task}");
}

#[tokio::test]
async fn a_full_queue_is_reported_as_busy() {
    // A2A-3
    let (server, _) = start_server(ServerSettings::default()).await;
    let client = RpcClient::new(&server, AGENT_ID);
    let mut started = Vec::new();
    for _ in 0..8 {
        started.push(client.start_task(steps(json!({"do": ["wait"]}))).await);
    }
    let response = client.request("SendMessage", json!({"message": text("x")})).send().await.unwrap();
    let answer: Value = response.json().await.unwrap();
    assert_eq!(answer["error"]["code"], -32000, "{answer}");
    assert_eq!(answer["error"]["data"][0]["reason"], "BUSY");
    let rest = client.http.post(format!("{}/message:send", client.url)).header("A2A-Version", "1.0");
    let rest = rest.json(&json!({"message": text("x")})).send().await.unwrap();
    assert_eq!(rest.status(), 429);
    for task in &started {
        client.ok("CancelTask", json!({"id": task["id"]})).await;
    }
}

#[tokio::test]
async fn tasks_can_be_cancelled() {
    // A2A-1
    let (server, _) = start_server(ServerSettings::default()).await;
    let client = RpcClient::new(&server, AGENT_ID);
    let working = client.start_task(steps(json!({"do": [{"print": "half\n"}, "wait"]}))).await;
    client.wait_for_state(&working["id"], "WORKING").await;
    let cancelled = client.ok("CancelTask", json!({"id": working["id"]})).await;
    assert_eq!((state_of(&cancelled), &cancelled["id"]), ("CANCELED", &working["id"]), "{cancelled}");
    // Queued tasks can be cancelled too.
    let mut started = Vec::new();
    for _ in 0..5 {
        started.push(client.start_task(steps(json!({"do": ["wait"]}))).await);
    }
    for task in started.iter().rev() {
        assert_eq!(state_of(&client.ok("CancelTask", json!({"id": task["id"]})).await), "CANCELED");
    }
    let asking = client.send(steps(json!({"outcome": "asks"}))).await;
    let cancelled = client.ok("CancelTask", json!({"id": asking["id"]})).await;
    assert_eq!(state_of(&cancelled), "CANCELED");
    assert_eq!(client.error("SendMessage", json!({"message": to_task(&asking, text("yes"))})).await.0, -32004);
    let done = client.send(text("x")).await;
    for task in [&done, &working, &asking] {
        assert_eq!(client.error("CancelTask", json!({"id": task["id"]})).await.0, -32002);
    }
}

#[tokio::test]
async fn tasks_can_be_listed() {
    // A2A-1
    let (server, go) = start_server(ServerSettings::default()).await;
    let client = RpcClient::new(&server, AGENT_ID);
    let mut ids = Vec::new();
    for n in 0..5 {
        let mut message = if n == 2 { steps(json!({"outcome": "asks", "do": [{"print": "who?"}]})) } else { text("x") };
        message["contextId"] = json!(if n < 3 { "one" } else { "two" });
        ids.insert(0, client.send(message).await["id"].take());
    }
    let working = client.start_task(steps(json!({"do": ["wait"]}))).await;
    client.wait_for_state(&working["id"], "WORKING").await;
    ids.insert(0, working["id"].clone());
    let list = async |params: Value| {
        let answer = client.ok("ListTasks", params).await;
        let tasks = answer["tasks"].as_array().unwrap();
        (tasks.iter().map(|task| task["id"].clone()).collect::<Vec<_>>(), answer)
    };
    let (all, answer) = list(json!({})).await;
    assert_eq!(all, ids, "the most recently changed first");
    assert_eq!(
        (&answer["totalSize"], &answer["pageSize"], &answer["nextPageToken"]),
        (&json!(6), &json!(50), &json!(""))
    );
    assert!(answer["tasks"].as_array().unwrap().iter().all(|task| task.get("artifacts").is_none()));
    let asking = &answer["tasks"][3];
    assert_eq!(asking["status"]["message"]["parts"], json!([{"text": "who?"}]), "{asking}");
    let mut whole = client.get(&asking["id"]).await;
    whole.as_object_mut().unwrap().remove("artifacts");
    assert_eq!(*asking, whole, "the same as GetTask, without artifacts");
    let mut paged = Vec::new();
    let mut token = String::new();
    loop {
        let (page, answer) = list(json!({"pageSize": 2, "pageToken": token})).await;
        assert_eq!((page.len(), &answer["totalSize"], &answer["pageSize"]), (2, &json!(6), &json!(2)));
        paged.extend(page);
        token = answer["nextPageToken"].as_str().unwrap().to_owned();
        if token.is_empty() {
            break;
        }
    }
    assert_eq!(paged, ids);
    assert_eq!(list(json!({"contextId": "one"})).await.0, ids[3..]);
    assert_eq!(list(json!({"status": "TASK_STATE_INPUT_REQUIRED"})).await.0, [ids[3].clone()]);
    assert_eq!(list(json!({"status": "TASK_STATE_WORKING"})).await.0, [ids[0].clone()]);
    assert!(list(json!({"status": "TASK_STATE_AUTH_REQUIRED"})).await.0.is_empty());
    assert!(list(json!({"contextId": "three"})).await.0.is_empty());
    let since = answer["tasks"][2]["status"]["timestamp"].clone();
    assert_eq!(list(json!({"statusTimestampAfter": since})).await.0, ids[..3]);
    let (_, answer) = list(json!({"includeArtifacts": true, "historyLength": 0, "pageSize": 3})).await;
    assert_eq!(answer["tasks"][1]["artifacts"][0]["parts"], json!([{"text": "x"}]));
    assert!(answer["tasks"].as_array().unwrap().iter().all(|task| task.get("history").is_none()));
    for wrong in [
        json!({"pageToken": "nonsense"}),
        json!({"pageSize": 0}),
        json!({"pageSize": 101}),
        json!({"historyLength": -1}),
    ] {
        assert_eq!(client.error("ListTasks", wrong.clone()).await.0, -32602, "{wrong}");
    }
    go.notify_one();
}

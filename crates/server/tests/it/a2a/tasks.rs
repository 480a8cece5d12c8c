//! Messages that are sent, and the tasks that come of them: as they stand, in lists, and cancelled.

use server::Settings;

use super::*;

#[tokio::test]
async fn an_answer_is_an_artifact() {
    // A2A-1
    let (bench, _) = started(Settings::default()).await;
    let client = Client::of(&bench, AGENT);
    let mut message = text("hello");
    message["contextId"] = json!("my context");
    let task = client.send(message).await;
    assert_eq!((state_of(&task), &task["contextId"]), ("COMPLETED", &json!("my context")), "{task}");
    let wanted = json!([{"artifactId": "output", "parts": [{"text": "hello"}]}]);
    assert_eq!(task["artifacts"], wanted);
    let asked = &task["history"][0];
    assert_eq!((&asked["messageId"], &asked["role"]), (&json!("m"), &json!("ROLE_USER")));
    assert_eq!((&asked["taskId"], &asked["contextId"]), (&task["id"], &task["contextId"]));
    assert_eq!(client.get(&task["id"]).await, task, "whoever asks later sees the same");
    let execution = format!("{}/api/executions/{}", bench.url, task["id"].as_str().unwrap());
    let execution: Value = bench.client.get(execution).send().await.unwrap().json().await.unwrap();
    assert_eq!((&execution["agent_id"], &execution["input"]), (&json!(AGENT), &json!("hello")));
}

#[tokio::test]
async fn everything_that_an_agent_says_is_told() {
    // A2A-1
    let (bench, _) = started(Settings::default()).await;
    let client = Client::of(&bench, AGENT);
    let piece = |text: &str, append: bool| json!({"artifact": {"artifact_id": "a", "name": "A", "parts": [{"text": text}], "append": append}});
    let parts = json!([{"bytes": "AAEC", "name": "a.bin", "media_type": "a/b"}, {"url": "https://example.com/x"}, {"data": {"k": 1}}]);
    let task = client
        .send(order(json!({"do": [
            {"status": [{"text": "soon"}]}, piece("1", true), {"status": [{"text": "done"}]}, piece("2", true),
            {"artifact": {"artifact_id": "b", "parts": parts, "metadata": {"m": 1}}},
        ]})))
        .await;
    let wanted = json!([
        {"artifactId": "a", "name": "A", "parts": [{"text": "1"}, {"text": "2"}]},
        {"artifactId": "b", "metadata": {"m": 1}, "parts": [
            {"raw": "AAEC", "filename": "a.bin", "mediaType": "a/b"}, {"url": "https://example.com/x"}, {"data": {"k": 1}},
        ]},
    ]);
    assert_eq!(task["artifacts"], wanted);
    assert_eq!(task["status"]["message"]["parts"], json!([{"text": "done"}]));
    assert_eq!(task["status"]["message"]["role"], "ROLE_AGENT");
    let said: Vec<_> = task["history"].as_array().unwrap().iter().map(|message| &message["parts"][0]["text"]).collect();
    assert_eq!(said[1..], [&json!("soon")], "what it said before is history");
}

#[tokio::test]
async fn every_end_has_its_state() {
    // A2A-1
    let (bench, _) = started(Settings::default()).await;
    let client = Client::of(&bench, AGENT);
    for (order_of, state, words) in [
        (json!({}), "COMPLETED", Value::Null),
        (json!({"outcome": "asks", "do": [{"print": "which one?"}]}), "INPUT_REQUIRED", json!("which one?")),
        (json!({"outcome": "asks", "do": [{"status": [{"text": "who?"}]}]}), "INPUT_REQUIRED", json!("who?")),
        (json!({"outcome": "needs_access"}), "AUTH_REQUIRED", Value::Null),
        (json!({"outcome": "rejected", "do": [{"status": [{"text": "no"}]}]}), "REJECTED", json!("no")),
        (json!({"outcome": "rejected"}), "REJECTED", json!("the agent does not want to do this")),
        (json!({"failure": "it broke", "do": [{"status": [{"text": "soon"}]}]}), "FAILED", json!("it broke")),
        (json!({"do": ["fail once", {"print": "second try"}]}), "COMPLETED", Value::Null),
    ] {
        let task = client.send(order(order_of.clone())).await;
        let said = &task["status"]["message"]["parts"][0]["text"];
        assert_eq!((state_of(&task), said), (state, &words), "{order_of}: {task}");
    }
}

#[tokio::test]
async fn an_answer_can_be_a_message() {
    // A2A-1
    let (bench, _) = started(Settings::default()).await;
    let client = Client::of(&bench, AGENT);
    let message = || order(json!({"outcome": "message", "do": [{"message": [{"text": "hello"}]}]}));
    let answer = client.ok("SendMessage", json!({"message": message()})).await;
    assert_eq!(answer["message"]["parts"], json!([{"text": "hello"}]), "{answer}");
    assert_eq!((answer["message"].get("taskId"), &answer["message"]["role"]), (None, &json!("ROLE_AGENT")));
    assert!(answer["message"]["contextId"].is_string() && answer.get("task").is_none());
    let events = client.stream("SendStreamingMessage", json!({"message": message()})).await.rest().await;
    assert_eq!(events.len(), 1, "{events:?}");
    assert_eq!(events[0]["message"]["parts"], json!([{"text": "hello"}]));
    // Who does not wait is told of a task, and finds the message there.
    let task = client.begin(message()).await;
    let task = client.reaches(&task["id"], "COMPLETED").await;
    assert_eq!(task["status"]["message"]["parts"], json!([{"text": "hello"}]));
}

#[tokio::test]
async fn a_question_is_answered() {
    // A2A-1
    let (bench, _) = started(Settings::default()).await;
    let client = Client::of(&bench, AGENT);
    let asks = json!({"outcome": "asks", "do": [{"print": "sure?"}]});
    let first = client.send(order(asks.clone())).await;
    let again = client.send(to(&first, order(asks))).await;
    assert_eq!((state_of(&again), &again["id"]), ("INPUT_REQUIRED", &first["id"]));
    assert_eq!(again["contextId"], first["contextId"]);
    let mut yes = to(&first, text("yes"));
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
            assert_eq!(task["history"][1]["parts"], json!([{"text": "yes"}]), "the last ones");
        }
    }
    let (code, words) = client.error("SendMessage", json!({"message": to(&first, text("more"))})).await;
    assert_eq!(code, -32004);
    assert!(words.contains("has ended"), "{words}");
    let old = Client { version: "0.3", ..client.clone() };
    let message = json!({"messageId": "m", "role": "user", "kind": "message", "parts": [{"kind": "text", "text": "x"}], "taskId": first["id"]});
    assert_eq!(old.error("message/send", json!({ "message": message })).await.0, -32602);
}

#[tokio::test]
async fn where_a_message_belongs_is_checked() {
    // A2A-1
    let (bench, go) = started(Settings::default()).await;
    let client = Client::of(&bench, AGENT);
    let asking = client.send(order(json!({"outcome": "asks"}))).await;
    let mut elsewhere = to(&asking, text("yes"));
    elsewhere["contextId"] = json!("another");
    let (code, words) = client.error("SendMessage", json!({ "message": elsewhere })).await;
    assert_eq!((code, words.contains("message.contextId")), (-32602, true), "{words}");
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
    let working = client.begin(order(json!({"do": ["wait"]}))).await;
    let (code, words) = client.error("SendMessage", json!({"message": to(&working, text("more"))})).await;
    assert_eq!((code, words.contains("at work")), (-32004, true), "{words}");
    go.notify_one();
    client.reaches(&working["id"], "COMPLETED").await;
    let mut long = text("x");
    long["contextId"] = json!("x".repeat(300));
    assert_eq!(client.error("SendMessage", json!({ "message": long })).await.0, -32602);
    let mut agent = text("x");
    agent["role"] = json!("ROLE_AGENT");
    assert_eq!(client.error("SendMessage", json!({ "message": agent })).await.0, -32602);
}

#[tokio::test]
async fn who_does_not_wait_is_answered_at_once() {
    // A2A-1
    let (bench, go) = started(Settings::default()).await;
    let client = Client::of(&bench, AGENT);
    let task = client.begin(order(json!({"do": [{"print": "half\n"}, "wait", {"print": "done\n"}]}))).await;
    assert!(["SUBMITTED", "WORKING"].contains(&state_of(&task)), "{task}");
    for _ in 0..500 {
        if client.get(&task["id"]).await["artifacts"][0]["parts"][0]["text"] == "half\n" {
            go.notify_one();
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let done = client.reaches(&task["id"], "COMPLETED").await;
    assert_eq!(done["artifacts"][0]["parts"], json!([{"text": "half\ndone\n"}]));
}

#[tokio::test]
async fn files_and_data_reach_the_agent() {
    // A2A-1
    let (bench, _) = started(Settings::default()).await;
    let client = Client::of(&bench, AGENT);
    let parts = json!([{"text": json!({"do": ["message"]}).to_string()}, {"raw": "AAEC", "filename": "a.bin"}, {"data": {"k": 1}}]);
    // The text alone would be the order: data stands behind it on a line of its own.
    let message = json!({"messageId": "m", "role": "ROLE_USER", "parts": parts, "metadata": {"a": "b"}});
    let task = client.send(message).await;
    let text = task["artifacts"][0]["parts"][0]["text"].as_str().unwrap();
    assert_eq!(text.lines().nth(1), Some("{\"k\":1}"), "{text}");
    let asked = &task["history"][0];
    assert_eq!((&asked["parts"], &asked["metadata"]), (&parts, &json!({"a": "b"})));
}

#[tokio::test]
async fn secrets_are_not_kept() {
    // A2A-3, SUP-10
    let (bench, _) = started(Settings::default()).await;
    let client = Client::of(&bench, AGENT);
    let task = client.send(text("password=hunter22hunter22")).await;
    assert_eq!(state_of(&task), "COMPLETED");
    assert!(!task.to_string().contains("hunter22"), "{task}");
}

#[tokio::test]
async fn a_full_queue_says_so() {
    // A2A-3
    let (bench, _) = started(Settings::default()).await;
    let client = Client::of(&bench, AGENT);
    let mut begun = Vec::new();
    for _ in 0..8 {
        begun.push(client.begin(order(json!({"do": ["wait"]}))).await);
    }
    let response = client.request("SendMessage", json!({"message": text("x")})).send().await.unwrap();
    let answer: Value = response.json().await.unwrap();
    assert_eq!(answer["error"]["code"], -32000, "{answer}");
    assert_eq!(answer["error"]["data"][0]["reason"], "BUSY");
    let rest = client.http.post(format!("{}/message:send", client.url)).header("A2A-Version", "1.0");
    let rest = rest.json(&json!({"message": text("x")})).send().await.unwrap();
    assert_eq!(rest.status(), 429);
    for task in &begun {
        client.ok("CancelTask", json!({"id": task["id"]})).await;
    }
}

#[tokio::test]
async fn tasks_are_cancelled() {
    // A2A-1
    let (bench, _) = started(Settings::default()).await;
    let client = Client::of(&bench, AGENT);
    let working = client.begin(order(json!({"do": [{"print": "half\n"}, "wait"]}))).await;
    client.reaches(&working["id"], "WORKING").await;
    let cancelled = client.ok("CancelTask", json!({"id": working["id"]})).await;
    assert_eq!((state_of(&cancelled), &cancelled["id"]), ("CANCELED", &working["id"]), "{cancelled}");
    // Those that wait in the queue, too.
    let mut begun = Vec::new();
    for _ in 0..5 {
        begun.push(client.begin(order(json!({"do": ["wait"]}))).await);
    }
    for task in begun.iter().rev() {
        assert_eq!(state_of(&client.ok("CancelTask", json!({"id": task["id"]})).await), "CANCELED");
    }
    let asking = client.send(order(json!({"outcome": "asks"}))).await;
    let withdrawn = client.ok("CancelTask", json!({"id": asking["id"]})).await;
    assert_eq!(state_of(&withdrawn), "CANCELED");
    assert_eq!(client.error("SendMessage", json!({"message": to(&asking, text("yes"))})).await.0, -32004);
    let done = client.send(text("x")).await;
    for task in [&done, &working, &asking] {
        assert_eq!(client.error("CancelTask", json!({"id": task["id"]})).await.0, -32002);
    }
}

#[tokio::test]
async fn tasks_are_listed() {
    // A2A-1
    let (bench, go) = started(Settings::default()).await;
    let client = Client::of(&bench, AGENT);
    let mut ids = Vec::new();
    for n in 0..5 {
        let mut message = if n == 2 { order(json!({"outcome": "asks", "do": [{"print": "who?"}]})) } else { text("x") };
        message["contextId"] = json!(if n < 3 { "one" } else { "two" });
        ids.insert(0, client.send(message).await["id"].take());
    }
    let working = client.begin(order(json!({"do": ["wait"]}))).await;
    client.reaches(&working["id"], "WORKING").await;
    ids.insert(0, working["id"].clone());
    let list = async |params: Value| {
        let answer = client.ok("ListTasks", params).await;
        let tasks = answer["tasks"].as_array().unwrap();
        (tasks.iter().map(|task| task["id"].clone()).collect::<Vec<_>>(), answer)
    };
    let (all, answer) = list(json!({})).await;
    assert_eq!(all, ids, "what changed last first");
    assert_eq!(
        (&answer["totalSize"], &answer["pageSize"], &answer["nextPageToken"]),
        (&json!(6), &json!(50), &json!(""))
    );
    assert!(answer["tasks"].as_array().unwrap().iter().all(|task| task.get("artifacts").is_none()));
    let asking = &answer["tasks"][3];
    assert_eq!(asking["status"]["message"]["parts"], json!([{"text": "who?"}]), "{asking}");
    let mut whole = client.get(&asking["id"]).await;
    whole.as_object_mut().unwrap().remove("artifacts");
    assert_eq!(*asking, whole, "the same as alone, without its artifacts");
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

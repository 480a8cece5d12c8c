//! Tests of streams: every update arrives once and in order, and a disconnect stops nothing.

use server::ServerSettings;

use super::*;

#[tokio::test]
async fn a_stream_starts_with_the_task() {
    // A2A-1
    let (server, go) = start_server(ServerSettings::default()).await;
    let client = RpcClient::new(&server, AGENT_ID);
    let message =
        steps(json!({"do": [{"print": "one\n"}, "wait", {"print": "two\n"}, {"status": [{"text": "almost"}]}]}));
    let mut events = client.stream("SendStreamingMessage", json!({ "message": message })).await;
    let first = events.next().await.unwrap();
    let task = &first["task"];
    assert!(task["id"].is_string(), "{first}");
    let mut text = task["artifacts"][0]["parts"][0]["text"].as_str().unwrap_or_default().to_owned();
    while text != "one\n" {
        let event = events.next().await.unwrap();
        text.push_str(event["artifactUpdate"]["artifact"]["parts"][0]["text"].as_str().unwrap_or_default());
    }
    go.notify_one();
    let rest = events.rest().await;
    let chunks = rest.iter().filter_map(|event| event.get("artifactUpdate"));
    let chunks: Vec<_> = chunks
        .map(|update| {
            (update["artifact"]["parts"][0]["text"].as_str().unwrap(), &update["append"], &update["lastChunk"])
        })
        .collect();
    assert_eq!(chunks, [("two\n", &json!(true), &json!(false)), ("", &json!(true), &json!(true))]);
    let messages =
        rest.iter().filter_map(|event| event["statusUpdate"]["status"]["message"]["parts"][0]["text"].as_str());
    assert_eq!(messages.collect::<Vec<_>>(), ["almost", "almost"]);
    let last = rest.last().unwrap();
    assert_eq!(event_state(last), Some("COMPLETED"));
    let done = client.get(&task["id"]).await;
    assert_eq!(done["status"], last["statusUpdate"]["status"], "GetTask returns the streamed status");
    assert_eq!(done["artifacts"][0]["parts"], json!([{"text": "one\ntwo\n"}]));
}

#[tokio::test]
async fn a_thousand_updates_arrive_once() {
    // A2A-1, A2A-3
    let (server, _) = start_server(ServerSettings::default()).await;
    let client = RpcClient::new(&server, AGENT_ID);
    let chunk =
        |n: usize| json!({"artifact": {"artifact_id": "a", "parts": [{"text": n.to_string()}], "append": true}});
    let message = steps(json!({"do": (0..1000).map(chunk).collect::<Vec<_>>()}));
    let events = client.stream("SendStreamingMessage", json!({ "message": message })).await.rest().await;
    let mut received: Vec<String> = Vec::new();
    for event in &events {
        let artifact = event["task"]["artifacts"].get(0).or(event["artifactUpdate"].get("artifact"));
        let parts = artifact.and_then(|artifact| artifact["parts"].as_array());
        received.extend(parts.into_iter().flatten().map(|part| part["text"].as_str().unwrap().to_owned()));
    }
    assert_eq!(received, (0..1000).map(|n| n.to_string()).collect::<Vec<_>>());
    assert_eq!(event_state(events.last().unwrap()), Some("COMPLETED"));
}

#[tokio::test]
async fn states_only_move_forward() {
    // A2A-1
    let (server, _) = start_server(ServerSettings::default()).await;
    let client = RpcClient::new(&server, AGENT_ID);
    let message = steps(json!({"do": [{"print": "one\n"}, "fail once", {"print": "two\n"}]}));
    let events = client.stream("SendStreamingMessage", json!({ "message": message })).await.rest().await;
    let rank = |state: &str| ["SUBMITTED", "WORKING", "COMPLETED"].iter().position(|known| *known == state).unwrap();
    let ranks: Vec<_> = events.iter().filter_map(event_state).map(rank).collect();
    assert!(ranks.is_sorted() && ranks.last() == Some(&2), "{events:?}");
    let last = events.iter().filter_map(|event| event.get("artifactUpdate")).next_back();
    if let Some(update) = last {
        assert_eq!(update["lastChunk"], true);
    }
    let task = client.get(&events[0]["task"]["id"]).await;
    assert_eq!(
        task["artifacts"],
        json!([{"artifactId": "output", "parts": [{"text": "one\ntwo\n"}]}]),
        "the output of the last attempt"
    );
}

#[tokio::test]
async fn a_stream_ends_when_input_is_required() {
    // A2A-1
    let (server, _) = start_server(ServerSettings::default()).await;
    let client = RpcClient::new(&server, AGENT_ID);
    let asks = json!({"message": steps(json!({"outcome": "asks", "do": [{"print": "sure?"}]}))});
    let events = client.stream("SendStreamingMessage", asks).await.rest().await;
    assert_eq!(event_state(events.last().unwrap()), Some("INPUT_REQUIRED"));
    let task = &events[0]["task"];
    let more = client.stream("SendStreamingMessage", json!({"message": to_task(task, text("yes"))})).await.rest().await;
    assert_eq!((&more[0]["task"]["id"], event_state(more.last().unwrap())), (&task["id"], Some("COMPLETED")));
    assert_eq!(
        more[0]["task"]["artifacts"][0]["parts"],
        json!([{"text": "sure?"}]),
        "the first event contains the earlier artifacts"
    );
    let later =
        more.iter().filter_map(|event| event.get("artifactUpdate")).map(|update| &update["artifact"]["artifactId"]);
    assert!(later.into_iter().all(|id| id == "output-2"), "{more:?}");
}

#[tokio::test]
async fn a_disconnect_does_not_stop_a_task() {
    // A2A-1, A2A-3
    let (server, go) = start_server(ServerSettings::default()).await;
    let client = RpcClient::new(&server, AGENT_ID);
    let params = json!({"message": steps(json!({"do": ["wait", {"print": "done"}]}))});
    let mut events = client.stream("SendStreamingMessage", params.clone()).await;
    let id = events.next().await.unwrap()["task"]["id"].clone();
    drop(events);
    // A client timeout in SendMessage does not stop the task either.
    let sending = client.request("SendMessage", params).timeout(Duration::from_millis(300)).send().await;
    assert!(sending.unwrap_err().is_timeout());
    tokio::time::sleep(Duration::from_millis(200)).await;
    let list = client.ok("ListTasks", json!({"status": "TASK_STATE_WORKING"})).await;
    assert_eq!(list["totalSize"], 2, "{list}");
    go.notify_waiters();
    assert_eq!(client.wait_for_state(&id, "COMPLETED").await["artifacts"][0]["parts"], json!([{"text": "done"}]));
}

#[tokio::test]
async fn all_subscribers_get_the_same_updates() {
    // A2A-1
    let (server, _) = start_server(ServerSettings::default()).await;
    let client = RpcClient::new(&server, AGENT_ID);
    let task = client.send(steps(json!({"outcome": "asks"}))).await;
    let params = json!({"id": task["id"]});
    let mut one = client.stream("SubscribeToTask", params.clone()).await;
    let mut other = client.stream("SubscribeToTask", params.clone()).await;
    let disconnected = client.stream("SubscribeToTask", params.clone()).await;
    let first = one.next().await.unwrap();
    assert_eq!((&first["task"], other.next().await.unwrap()), (&task, first.clone()));
    drop(disconnected);
    let chunk = json!({"artifact": {"artifact_id": "a", "parts": [{"text": "x"}], "last": true}});
    client.send(to_task(&task, steps(json!({"do": [{"status": [{"text": "on it"}]}, chunk]})))).await;
    let one = one.rest().await;
    let other = other.rest().await;
    assert_eq!(one, other);
    assert!(one.len() >= 3, "{one:?}");
    assert_eq!((event_state(&one[0]), event_state(one.last().unwrap())), (Some("WORKING"), Some("COMPLETED")));
    // Subscribing to an ended task is an error.
    let (code, message) = client.error("SubscribeToTask", params.clone()).await;
    assert_eq!(code, -32004, "{message}");
    let old = RpcClient { version: "0.3", ..client.clone() };
    let events = old.stream("tasks/resubscribe", params).await.rest().await;
    assert_eq!((events[0]["kind"].as_str(), events[0]["status"]["state"].as_str()), (Some("task"), Some("completed")));
}

#[tokio::test]
async fn cancelling_a_task_that_requires_input_ends_the_stream() {
    // A2A-1
    let (server, _) = start_server(ServerSettings::default()).await;
    let client = RpcClient::new(&server, AGENT_ID);
    let task = client.send(steps(json!({"outcome": "asks"}))).await;
    let mut events = client.stream("SubscribeToTask", json!({"id": task["id"]})).await;
    events.next().await.unwrap();
    client.ok("CancelTask", json!({"id": task["id"]})).await;
    let rest = events.rest().await;
    assert_eq!(rest.iter().map(event_state).collect::<Vec<_>>(), [Some("CANCELED")]);
}

#[tokio::test]
async fn a_subscription_starts_with_the_current_task() {
    // A2A-1
    let (server, go) = start_server(ServerSettings::default()).await;
    let client = RpcClient::new(&server, AGENT_ID);
    let task = client.start_task(steps(json!({"do": [{"print": "one\n"}, "wait", {"print": "two\n"}]}))).await;
    while client.get(&task["id"]).await["artifacts"][0]["parts"][0]["text"] != "one\n" {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let mut events = client.stream("SubscribeToTask", json!({"id": task["id"]})).await;
    let first = events.next().await.unwrap();
    assert_eq!(first["task"]["artifacts"][0]["parts"], json!([{"text": "one\n"}]));
    go.notify_one();
    let rest = events.rest().await;
    let update = &rest[0]["artifactUpdate"];
    assert_eq!((&update["artifact"]["parts"][0]["text"], &update["append"]), (&json!("two\n"), &json!(true)));
    assert_eq!(event_state(rest.last().unwrap()), Some("COMPLETED"));
}

#[tokio::test]
async fn streams_end_when_the_server_stops() {
    // A2A-1, A2A-3
    let (server, _) = start_server(ServerSettings::default()).await;
    let client = RpcClient::new(&server, AGENT_ID);
    let params = json!({"message": steps(json!({"do": ["wait"]}))});
    let mut events = client.stream("SendStreamingMessage", params.clone()).await;
    events.next().await.unwrap();
    let sending = tokio::spawn(client.request("SendMessage", params).send());
    tokio::time::sleep(Duration::from_millis(200)).await;
    server.app.stopping().cancel();
    let rest = tokio::time::timeout(Duration::from_secs(10), events.rest()).await.unwrap();
    assert!(rest.iter().filter_map(event_state).all(|state| state == "WORKING"), "{rest:?}");
    let answer: Value = sending.await.unwrap().unwrap().json().await.unwrap();
    assert_eq!(state_of(&answer["result"]["task"]), "WORKING", "{answer}");
}

//! Tasks that are followed: everything once, in order, to the end, whoever goes away.

use server::Settings;

use super::*;

#[tokio::test]
async fn a_task_first_then_what_happens() {
    // A2A-1
    let (bench, go) = started(Settings::default()).await;
    let client = Client::of(&bench, AGENT);
    let message =
        order(json!({"do": [{"print": "one\n"}, "wait", {"print": "two\n"}, {"status": [{"text": "almost"}]}]}));
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
    let pieces = rest.iter().filter_map(|event| event.get("artifactUpdate"));
    let pieces: Vec<_> = pieces
        .map(|update| {
            (update["artifact"]["parts"][0]["text"].as_str().unwrap(), &update["append"], &update["lastChunk"])
        })
        .collect();
    assert_eq!(pieces, [("two\n", &json!(true), &json!(false)), ("", &json!(true), &json!(true))]);
    let words = rest.iter().filter_map(|event| event["statusUpdate"]["status"]["message"]["parts"][0]["text"].as_str());
    assert_eq!(words.collect::<Vec<_>>(), ["almost", "almost"]);
    let last = rest.last().unwrap();
    assert_eq!(state_in(last), Some("COMPLETED"));
    let done = client.get(&task["id"]).await;
    assert_eq!(done["status"], last["statusUpdate"]["status"], "whoever asks later sees what was told");
    assert_eq!(done["artifacts"][0]["parts"], json!([{"text": "one\ntwo\n"}]));
}

#[tokio::test]
async fn a_thousand_updates_are_told_once() {
    // A2A-3
    let (bench, _) = started(Settings::default()).await;
    let client = Client::of(&bench, AGENT);
    let piece =
        |n: usize| json!({"artifact": {"artifact_id": "a", "parts": [{"text": n.to_string()}], "append": true}});
    let message = order(json!({"do": (0..1000).map(piece).collect::<Vec<_>>()}));
    let events = client.stream("SendStreamingMessage", json!({ "message": message })).await.rest().await;
    let mut heard: Vec<String> = Vec::new();
    for event in &events {
        let artifact = event["task"]["artifacts"].get(0).or(event["artifactUpdate"].get("artifact"));
        let parts = artifact.and_then(|artifact| artifact["parts"].as_array());
        heard.extend(parts.into_iter().flatten().map(|part| part["text"].as_str().unwrap().to_owned()));
    }
    assert_eq!(heard, (0..1000).map(|n| n.to_string()).collect::<Vec<_>>());
    assert_eq!(state_in(events.last().unwrap()), Some("COMPLETED"));
}

#[tokio::test]
async fn states_never_go_back() {
    // A2A-1
    let (bench, _) = started(Settings::default()).await;
    let client = Client::of(&bench, AGENT);
    let message = order(json!({"do": [{"print": "one\n"}, "fail once", {"print": "two\n"}]}));
    let events = client.stream("SendStreamingMessage", json!({ "message": message })).await.rest().await;
    let rank = |state: &str| ["SUBMITTED", "WORKING", "COMPLETED"].iter().position(|known| *known == state).unwrap();
    let ranks: Vec<_> = events.iter().filter_map(state_in).map(rank).collect();
    assert!(ranks.is_sorted() && ranks.last() == Some(&2), "{events:?}");
    let last = events.iter().filter_map(|event| event.get("artifactUpdate")).next_back();
    if let Some(update) = last {
        assert_eq!(update["lastChunk"], true);
    }
    let task = client.get(&events[0]["task"]["id"]).await;
    assert_eq!(
        task["artifacts"],
        json!([{"artifactId": "output", "parts": [{"text": "one\ntwo\n"}]}]),
        "of the last try"
    );
}

#[tokio::test]
async fn a_stream_ends_with_a_question() {
    // A2A-1
    let (bench, _) = started(Settings::default()).await;
    let client = Client::of(&bench, AGENT);
    let asks = json!({"message": order(json!({"outcome": "asks", "do": [{"print": "sure?"}]}))});
    let events = client.stream("SendStreamingMessage", asks).await.rest().await;
    assert_eq!(state_in(events.last().unwrap()), Some("INPUT_REQUIRED"));
    let task = &events[0]["task"];
    let more = client.stream("SendStreamingMessage", json!({"message": to(task, text("yes"))})).await.rest().await;
    assert_eq!((&more[0]["task"]["id"], state_in(more.last().unwrap())), (&task["id"], Some("COMPLETED")));
    assert_eq!(more[0]["task"]["artifacts"][0]["parts"], json!([{"text": "sure?"}]), "what was before is in the first");
    let later =
        more.iter().filter_map(|event| event.get("artifactUpdate")).map(|update| &update["artifact"]["artifactId"]);
    assert!(later.into_iter().all(|id| id == "output-2"), "{more:?}");
}

#[tokio::test]
async fn whoever_goes_away_stops_nothing() {
    // A2A-3
    let (bench, go) = started(Settings::default()).await;
    let client = Client::of(&bench, AGENT);
    let params = json!({"message": order(json!({"do": ["wait", {"print": "done"}]}))});
    let mut events = client.stream("SendStreamingMessage", params.clone()).await;
    let id = events.next().await.unwrap()["task"]["id"].clone();
    drop(events);
    // Nor does who waits for the answer and does not get it.
    let sending = client.request("SendMessage", params).timeout(Duration::from_millis(300)).send().await;
    assert!(sending.unwrap_err().is_timeout());
    tokio::time::sleep(Duration::from_millis(200)).await;
    let list = client.ok("ListTasks", json!({"status": "TASK_STATE_WORKING"})).await;
    assert_eq!(list["totalSize"], 2, "{list}");
    go.notify_waiters();
    assert_eq!(client.reaches(&id, "COMPLETED").await["artifacts"][0]["parts"], json!([{"text": "done"}]));
}

#[tokio::test]
async fn all_who_subscribe_hear_the_same() {
    // A2A-1
    let (bench, _) = started(Settings::default()).await;
    let client = Client::of(&bench, AGENT);
    let task = client.send(order(json!({"outcome": "asks"}))).await;
    let params = json!({"id": task["id"]});
    let mut one = client.stream("SubscribeToTask", params.clone()).await;
    let mut other = client.stream("SubscribeToTask", params.clone()).await;
    let gone = client.stream("SubscribeToTask", params.clone()).await;
    let first = one.next().await.unwrap();
    assert_eq!((&first["task"], other.next().await.unwrap()), (&task, first.clone()));
    drop(gone);
    let piece = json!({"artifact": {"artifact_id": "a", "parts": [{"text": "x"}], "last": true}});
    client.send(to(&task, order(json!({"do": [{"status": [{"text": "on it"}]}, piece]})))).await;
    let one = one.rest().await;
    let other = other.rest().await;
    assert_eq!(one, other);
    assert!(one.len() >= 3, "{one:?}");
    assert_eq!((state_in(&one[0]), state_in(one.last().unwrap())), (Some("WORKING"), Some("COMPLETED")));
    // Who comes too late is told so.
    let (code, words) = client.error("SubscribeToTask", params.clone()).await;
    assert_eq!(code, -32004, "{words}");
    let old = Client { version: "0.3", ..client.clone() };
    let events = old.stream("tasks/resubscribe", params).await.rest().await;
    assert_eq!((events[0]["kind"].as_str(), events[0]["status"]["state"].as_str()), (Some("task"), Some("completed")));
}

#[tokio::test]
async fn a_question_that_is_withdrawn_ends_the_stream() {
    // A2A-1
    let (bench, _) = started(Settings::default()).await;
    let client = Client::of(&bench, AGENT);
    let task = client.send(order(json!({"outcome": "asks"}))).await;
    let mut events = client.stream("SubscribeToTask", json!({"id": task["id"]})).await;
    events.next().await.unwrap();
    client.ok("CancelTask", json!({"id": task["id"]})).await;
    let rest = events.rest().await;
    assert_eq!(rest.iter().map(state_in).collect::<Vec<_>>(), [Some("CANCELED")]);
}

#[tokio::test]
async fn subscribing_joins_in_the_middle() {
    // A2A-1
    let (bench, go) = started(Settings::default()).await;
    let client = Client::of(&bench, AGENT);
    let task = client.begin(order(json!({"do": [{"print": "one\n"}, "wait", {"print": "two\n"}]}))).await;
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
    assert_eq!(state_in(rest.last().unwrap()), Some("COMPLETED"));
}

#[tokio::test]
async fn streams_end_when_the_server_stops() {
    // A2A-3
    let (bench, _) = started(Settings::default()).await;
    let client = Client::of(&bench, AGENT);
    let params = json!({"message": order(json!({"do": ["wait"]}))});
    let mut events = client.stream("SendStreamingMessage", params.clone()).await;
    events.next().await.unwrap();
    let sending = tokio::spawn(client.request("SendMessage", params).send());
    tokio::time::sleep(Duration::from_millis(200)).await;
    bench.app.stopping().cancel();
    let rest = tokio::time::timeout(Duration::from_secs(10), events.rest()).await.unwrap();
    assert!(rest.iter().filter_map(state_in).all(|state| state == "WORKING"), "{rest:?}");
    let answer: Value = sending.await.unwrap().unwrap().json().await.unwrap();
    assert_eq!(state_of(&answer["result"]["task"]), "WORKING", "{answer}");
}

//! Tests of the delivery of push notifications: order, format and failures.

use serde_json::json;

use super::{CREDENTIALS, DataDir, Receiver, TOKEN, settle, stored_config, wait_until};

#[tokio::test]
async fn updates_arrive_in_order_in_the_format_of_their_version() {
    // A2A-1
    let data_dir = DataDir::new();
    let receiver = Receiver::start().await;
    let node = data_dir.start().await;
    let task = node.send("two, slowly", None, Some(receiver.push_config("new"))).await;
    wait_until("the task is working", async || receiver.updates("new") == ["statusUpdate WORKING"]).await;
    let authentication = json!({"schemes": ["Bearer"], "credentials": CREDENTIALS});
    let config = json!({"url": receiver.url("old"), "token": TOKEN, "authentication": authentication});
    let params = json!({"taskId": task, "pushNotificationConfig": config});
    let set = node.v03("tasks/pushNotificationConfig/set", params).await;
    assert_eq!(set["result"]["pushNotificationConfig"]["url"], receiver.url("old"), "{set}");
    wait_until("the second receiver gets it too", async || receiver.updates("old") == ["0.3 working"]).await;
    node.gate.add_permits(1);
    let expected = ["statusUpdate WORKING", "artifactUpdate one", "artifactUpdate two", "statusUpdate COMPLETED"];
    wait_until("all updates are delivered", async || receiver.updates("new") == expected).await;
    wait_until("all updates reach the second receiver", async || {
        receiver.updates("old") == ["0.3 working", "0.3 completed"]
    })
    .await;
    for (path, kind) in [("new", "application/a2a+json"), ("old", "application/json")] {
        for (_, headers, _) in receiver.requests(path) {
            assert_eq!(headers["content-type"], kind);
            assert_eq!(headers["authorization"], format!("Bearer {CREDENTIALS}"));
            assert_eq!(headers["x-a2a-notification-token"], TOKEN);
            assert_eq!(headers["a2a-notification-token"], TOKEN);
        }
    }
    let (_, _, last) = receiver.requests("old").pop().unwrap();
    assert_eq!((&last["id"], last["artifacts"].as_array().unwrap().len()), (&json!(task), 2));
    let (_, _, chunk) = receiver.requests("new").remove(1);
    let chunk = &chunk["artifactUpdate"];
    assert_eq!((&chunk["taskId"], &chunk["artifact"]["parts"][0]["text"]), (&json!(task), &json!("one")));
    assert_eq!((&chunk["append"], &chunk["lastChunk"]), (&json!(false), &json!(true)));
    settle().await;
    assert_eq!(receiver.count(), 6, "no further notifications arrive");
}

#[tokio::test]
async fn input_required_and_the_continuation_are_delivered() {
    // A2A-1
    let data_dir = DataDir::new();
    let receiver = Receiver::start().await;
    let node = data_dir.start().await;
    let task = node.send("ask slowly", None, Some(receiver.push_config("a"))).await;
    wait_until("the task is working", async || receiver.updates("a").len() == 1).await;
    node.gate.add_permits(1);
    let asked = ["statusUpdate WORKING", "statusUpdate INPUT_REQUIRED"];
    wait_until("the task requires input", async || receiver.updates("a") == asked).await;
    let (_, _, question) = receiver.requests("a").pop().unwrap();
    assert_eq!(question["statusUpdate"]["status"]["message"]["parts"][0]["text"], "Really?");
    // A configuration that is added now gets only later updates.
    let set = json!({"taskId": task, "id": "b", "url": receiver.url("b")});
    assert_eq!(node.v10("CreateTaskPushNotificationConfig", set).await["result"]["id"], "b");
    settle().await;
    assert_eq!(receiver.updates("b"), [] as [&str; 0]);
    // A third configuration is part of the reply.
    node.send("yes, slowly", Some(&task), Some(receiver.push_config("c"))).await;
    wait_until("the task continues", async || receiver.updates("a").len() == 3 && receiver.updates("c").len() == 1)
        .await;
    node.gate.add_permits(1);
    let rest = ["statusUpdate WORKING", "artifactUpdate output-2", "statusUpdate COMPLETED"];
    for path in ["b", "c"] {
        wait_until("all updates are delivered", async || receiver.updates(path) == rest).await;
    }
    wait_until("all updates are delivered", async || receiver.updates("a") == [&asked[..], &rest[..]].concat()).await;
}

#[tokio::test]
async fn the_cancellation_of_a_task_that_requires_input_is_delivered() {
    // A2A-1
    let data_dir = DataDir::new();
    let receiver = Receiver::start().await;
    let node = data_dir.start().await;
    let task = node.send("ask", None, Some(receiver.push_config("a"))).await;
    wait_until("the task requires input", async || {
        receiver.updates("a").last().is_some_and(|last| last.ends_with("INPUT_REQUIRED"))
    })
    .await;
    let cancelled = node.v10("CancelTask", json!({"id": task})).await;
    assert_eq!(cancelled["result"]["status"]["state"], "TASK_STATE_CANCELED", "{cancelled}");
    wait_until("the cancellation is delivered", async || {
        receiver.updates("a").last().is_some_and(|last| last.ends_with("CANCELED"))
    })
    .await;
}

#[tokio::test]
async fn updates_during_an_outage_are_combined() {
    // A2A-1: while the receiver fails, no update is lost or reordered
    let data_dir = DataDir::new();
    let receiver = Receiver::start().await;
    let node = data_dir.start().await;
    receiver.respond_with(503);
    let task = node.send("ask slowly", None, Some(receiver.push_config("a"))).await;
    wait_until("the first attempt was made", async || receiver.count() == 1).await;
    node.gate.add_permits(1);
    wait_until("the task requires input", async || node.state(&task).await == "TASK_STATE_INPUT_REQUIRED").await;
    node.send("yes", Some(&task), None).await;
    wait_until("the task has ended", async || node.state(&task).await == "TASK_STATE_COMPLETED").await;
    receiver.respond_with(200);
    wait_until("the updates are delivered", async || {
        receiver.updates("a").last().is_some_and(|last| last == "task COMPLETED")
    })
    .await;
    let mut updates = receiver.updates("a");
    updates.dedup();
    assert_eq!(updates, ["statusUpdate WORKING", "task COMPLETED"]);
    let (_, _, last) = receiver.requests("a").pop().unwrap();
    assert_eq!(last["task"]["artifacts"][0]["artifactId"], "output-2");
}

#[tokio::test]
async fn delivery_stops_after_410_gone() {
    // A2A-1
    let data_dir = DataDir::new();
    let receiver = Receiver::start().await;
    let node = data_dir.start().await;
    receiver.respond_with(410);
    let task = node.send("slowly", None, Some(receiver.push_config("a"))).await;
    wait_until("the delivery is given up", async || stored_config(&node, &task, "a").await.dead).await;
    assert_eq!(
        stored_config(&node, &task, "a").await.last_error.as_deref(),
        Some("the server responded with 410 Gone")
    );
    receiver.respond_with(200);
    node.gate.add_permits(1);
    wait_until("the task has ended", async || node.state(&task).await == "TASK_STATE_COMPLETED").await;
    settle().await;
    assert_eq!(receiver.count(), 1);
    // Setting the configuration again resumes the delivery with the missed updates.
    let mut push = receiver.push_config("a");
    push["taskId"] = json!(task);
    node.v10("CreateTaskPushNotificationConfig", push).await;
    let rest = ["statusUpdate WORKING", "artifactUpdate output", "statusUpdate COMPLETED"];
    wait_until("the updates are delivered", async || receiver.updates("a") == rest).await;
}

#[tokio::test]
async fn delivery_stops_after_deletion() {
    // A2A-1
    let data_dir = DataDir::new();
    let receiver = Receiver::start().await;
    let other = Receiver::start().await;
    let node = data_dir.start().await;
    receiver.respond_with(503);
    let task = node.send("slowly", None, Some(receiver.push_config("a"))).await;
    wait_until("the first attempt was made", async || receiver.count() == 1).await;
    let deleted = node.v10("DeleteTaskPushNotificationConfig", json!({"taskId": task, "id": "a"})).await;
    assert!(deleted.get("error").is_none(), "{deleted}");
    let set = json!({"taskId": task, "id": "b", "url": other.url("b")});
    node.v10("CreateTaskPushNotificationConfig", set).await;
    node.gate.add_permits(1);
    wait_until("the second receiver gets the end", async || {
        other.updates("b").last().is_some_and(|last| last.ends_with("COMPLETED"))
    })
    .await;
    // The retry would have happened after one second.
    tokio::time::sleep(std::time::Duration::from_millis(1500)).await;
    assert_eq!(receiver.count(), 1);
    let mut reader = node.app.store().reader().await.unwrap();
    assert!(store::outbox::is_empty(&mut reader).await.unwrap(), "the outbox is empty");
}

#[tokio::test]
async fn a_dead_host_does_not_delay_other_hosts() {
    // A2A-1
    let data_dir = DataDir::new();
    let receiver = Receiver::start().await;
    let dead = Receiver::start().await;
    let node = data_dir.start().await;
    dead.respond_with(500);
    for n in 0..30 {
        node.send("go", None, Some(dead.push_config(&n.to_string()))).await;
    }
    let task = node.send("go", None, Some(receiver.push_config("a"))).await;
    wait_until("the updates are delivered", async || {
        receiver.updates("a").last().is_some_and(|last| last.ends_with("COMPLETED"))
    })
    .await;
    wait_until("the dead host is suspended", async || node.app.notifier().suspended_hosts() == 1).await;
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let health: serde_json::Value =
        client.get(format!("{}/health", node.url)).send().await.unwrap().json().await.unwrap();
    assert_eq!((&health["status"], &health["dependencies"]["push_hosts_left_alone"]), (&json!("ok"), &json!(1)));
    assert!(!health.to_string().contains("127.0.0.1"), "the host is not published");
    let metrics = client.get(format!("{}/metrics", node.url)).send().await.unwrap().text().await.unwrap();
    assert!(metrics.contains("adjutant_deliveries_total{channel=\"a2a:push\",outcome=\"delivered\"}"), "{metrics}");
    assert!(metrics.contains("adjutant_push_hosts_left_alone 1"), "{metrics}");
    assert!(!task.is_empty());
}

//! What is told, in which order and in whose words.

use serde_json::json;

use super::{CREDENTIALS, Home, Receiver, TOKEN, a_while, kept, until};

#[tokio::test]
async fn each_is_told_in_order_in_the_words_of_its_version() {
    // A2A-1
    let home = Home::new();
    let receiver = Receiver::start().await;
    let node = home.start().await;
    let task = node.send("two, slowly", None, Some(receiver.push("new"))).await;
    until("it is at work", async || receiver.told("new") == ["statusUpdate WORKING"]).await;
    let authentication = json!({"schemes": ["Bearer"], "credentials": CREDENTIALS});
    let config = json!({"url": receiver.url("old"), "token": TOKEN, "authentication": authentication});
    let params = json!({"taskId": task, "pushNotificationConfig": config});
    let set = node.v03("tasks/pushNotificationConfig/set", params).await;
    assert_eq!(set["result"]["pushNotificationConfig"]["url"], receiver.url("old"), "{set}");
    until("the other hears it too", async || receiver.told("old") == ["0.3 working"]).await;
    node.gate.add_permits(1);
    let whole = ["statusUpdate WORKING", "artifactUpdate one", "artifactUpdate two", "statusUpdate COMPLETED"];
    until("it is told to the end", async || receiver.told("new") == whole).await;
    until("and there", async || receiver.told("old") == ["0.3 working", "0.3 completed"]).await;
    for (path, kind) in [("new", "application/a2a+json"), ("old", "application/json")] {
        for (_, headers, _) in receiver.got(path) {
            assert_eq!(headers["content-type"], kind);
            assert_eq!(headers["authorization"], format!("Bearer {CREDENTIALS}"));
            assert_eq!(headers["x-a2a-notification-token"], TOKEN);
            assert_eq!(headers["a2a-notification-token"], TOKEN);
        }
    }
    let (_, _, last) = receiver.got("old").pop().unwrap();
    assert_eq!((&last["id"], last["artifacts"].as_array().unwrap().len()), (&json!(task), 2));
    let (_, _, piece) = receiver.got("new").remove(1);
    let piece = &piece["artifactUpdate"];
    assert_eq!((&piece["taskId"], &piece["artifact"]["parts"][0]["text"]), (&json!(task), &json!("one")));
    assert_eq!((&piece["append"], &piece["lastChunk"]), (&json!(false), &json!(true)));
    a_while().await;
    assert_eq!(receiver.count(), 6, "and nothing more");
}

#[tokio::test]
async fn a_question_is_told_and_what_comes_of_its_answer() {
    // A2A-1
    let home = Home::new();
    let receiver = Receiver::start().await;
    let node = home.start().await;
    let task = node.send("ask slowly", None, Some(receiver.push("a"))).await;
    until("it is at work", async || receiver.told("a").len() == 1).await;
    node.gate.add_permits(1);
    let asked = ["statusUpdate WORKING", "statusUpdate INPUT_REQUIRED"];
    until("it asks", async || receiver.told("a") == asked).await;
    let (_, _, question) = receiver.got("a").pop().unwrap();
    assert_eq!(question["statusUpdate"]["status"]["message"]["parts"][0]["text"], "Really?");
    // One that comes to it now is told what comes next.
    let set = json!({"taskId": task, "id": "b", "url": receiver.url("b")});
    assert_eq!(node.v10("CreateTaskPushNotificationConfig", set).await["result"]["id"], "b");
    a_while().await;
    assert_eq!(receiver.told("b"), [] as [&str; 0]);
    // A third comes with the answer.
    node.send("yes, slowly", Some(&task), Some(receiver.push("c"))).await;
    until("it goes on", async || receiver.told("a").len() == 3 && receiver.told("c").len() == 1).await;
    node.gate.add_permits(1);
    let rest = ["statusUpdate WORKING", "artifactUpdate output-2", "statusUpdate COMPLETED"];
    for path in ["b", "c"] {
        until("it is told to the end", async || receiver.told(path) == rest).await;
    }
    until("it is told to the end", async || receiver.told("a") == [&asked[..], &rest[..]].concat()).await;
}

#[tokio::test]
async fn a_question_that_is_withdrawn_is_told() {
    // A2A-1
    let home = Home::new();
    let receiver = Receiver::start().await;
    let node = home.start().await;
    let task = node.send("ask", None, Some(receiver.push("a"))).await;
    until("it asks", async || receiver.told("a").last().is_some_and(|last| last.ends_with("INPUT_REQUIRED"))).await;
    let cancelled = node.v10("CancelTask", json!({"id": task})).await;
    assert_eq!(cancelled["result"]["status"]["state"], "TASK_STATE_CANCELED", "{cancelled}");
    until("that is told", async || receiver.told("a").last().is_some_and(|last| last.ends_with("CANCELED"))).await;
}

#[tokio::test]
async fn what_happens_meanwhile_is_told_together() {
    // A2A-1: while one does not answer, nothing is lost and nothing comes out of order
    let home = Home::new();
    let receiver = Receiver::start().await;
    let node = home.start().await;
    receiver.answer(503);
    let task = node.send("ask slowly", None, Some(receiver.push("a"))).await;
    until("it is tried", async || receiver.count() == 1).await;
    node.gate.add_permits(1);
    until("it asks", async || node.state(&task).await == "TASK_STATE_INPUT_REQUIRED").await;
    node.send("yes", Some(&task), None).await;
    until("it has ended", async || node.state(&task).await == "TASK_STATE_COMPLETED").await;
    receiver.answer(200);
    until("it is told", async || receiver.told("a").last().is_some_and(|last| last == "task COMPLETED")).await;
    let mut told = receiver.told("a");
    told.dedup();
    assert_eq!(told, ["statusUpdate WORKING", "task COMPLETED"]);
    let (_, _, last) = receiver.got("a").pop().unwrap();
    assert_eq!(last["task"]["artifacts"][0]["artifactId"], "output-2");
}

#[tokio::test]
async fn one_that_is_gone_is_told_nothing_more() {
    // A2A-1
    let home = Home::new();
    let receiver = Receiver::start().await;
    let node = home.start().await;
    receiver.answer(410);
    let task = node.send("slowly", None, Some(receiver.push("a"))).await;
    until("it is given up", async || kept(&node, &task, "a").await.dead).await;
    assert_eq!(kept(&node, &task, "a").await.last_error.as_deref(), Some("it answers 410 Gone"));
    receiver.answer(200);
    node.gate.add_permits(1);
    until("it has ended", async || node.state(&task).await == "TASK_STATE_COMPLETED").await;
    a_while().await;
    assert_eq!(receiver.count(), 1);
    // Whoever sets it again is there again, and hears what was missed.
    let mut push = receiver.push("a");
    push["taskId"] = json!(task);
    node.v10("CreateTaskPushNotificationConfig", push).await;
    let rest = ["statusUpdate WORKING", "artifactUpdate output", "statusUpdate COMPLETED"];
    until("it is told", async || receiver.told("a") == rest).await;
}

#[tokio::test]
async fn one_that_is_deleted_is_told_nothing_more() {
    // A2A-1
    let home = Home::new();
    let receiver = Receiver::start().await;
    let other = Receiver::start().await;
    let node = home.start().await;
    receiver.answer(503);
    let task = node.send("slowly", None, Some(receiver.push("a"))).await;
    until("it is tried", async || receiver.count() == 1).await;
    let deleted = node.v10("DeleteTaskPushNotificationConfig", json!({"taskId": task, "id": "a"})).await;
    assert!(deleted.get("error").is_none(), "{deleted}");
    let set = json!({"taskId": task, "id": "b", "url": other.url("b")});
    node.v10("CreateTaskPushNotificationConfig", set).await;
    node.gate.add_permits(1);
    until("another is", async || other.told("b").last().is_some_and(|last| last.ends_with("COMPLETED"))).await;
    // It would have been tried again after a second.
    tokio::time::sleep(std::time::Duration::from_millis(1500)).await;
    assert_eq!(receiver.count(), 1);
    let mut reader = node.app.store().reader().await.unwrap();
    assert!(store::outbox::is_empty(&mut reader).await.unwrap(), "nothing is left behind");
}

#[tokio::test]
async fn a_dead_host_holds_up_nobody() {
    // A2A-1
    let home = Home::new();
    let receiver = Receiver::start().await;
    let dead = Receiver::start().await;
    let node = home.start().await;
    dead.answer(500);
    for n in 0..30 {
        node.send("go", None, Some(dead.push(&n.to_string()))).await;
    }
    let task = node.send("go", None, Some(receiver.push("a"))).await;
    until("it is told", async || receiver.told("a").last().is_some_and(|last| last.ends_with("COMPLETED"))).await;
    until("the dead one is left alone", async || node.app.notifier().hosts_left_alone() == 1).await;
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let health: serde_json::Value =
        client.get(format!("{}/health", node.url)).send().await.unwrap().json().await.unwrap();
    assert_eq!((&health["status"], &health["dependencies"]["push_hosts_left_alone"]), (&json!("ok"), &json!(1)));
    assert!(!health.to_string().contains("127.0.0.1"), "whose host it is is nobody's business");
    let metrics = client.get(format!("{}/metrics", node.url)).send().await.unwrap().text().await.unwrap();
    assert!(metrics.contains("adjutant_deliveries_total{channel=\"a2a:push\",outcome=\"delivered\"}"), "{metrics}");
    assert!(metrics.contains("adjutant_push_hosts_left_alone 1"), "{metrics}");
    assert!(!task.is_empty());
}

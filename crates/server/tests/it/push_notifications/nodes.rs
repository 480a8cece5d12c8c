//! Tests of push notifications with restarts and several nodes.

use std::collections::HashSet;

use server::ServerSettings;
use server::settings::AuthSettings;
use store::Location;

use super::{DataDir, Node, Receiver, allow_private, settle, wait_until};

#[tokio::test]
async fn a_later_node_continues_the_delivery() {
    // A2A-1: for pending deliveries and for later updates
    let data_dir = DataDir::new();
    let receiver = Receiver::start().await;
    let node = data_dir.start().await;
    receiver.respond_with(503);
    let task = node.send("ask slowly", None, Some(receiver.push_config("a"))).await;
    wait_until("the first attempt was made", async || receiver.count() == 1).await;
    node.gate.add_permits(1);
    wait_until("the task requires input", async || node.state(&task).await == "TASK_STATE_INPUT_REQUIRED").await;
    node.stop().await;
    receiver.respond_with(200);
    let node = data_dir.start().await;
    let expected = ["statusUpdate WORKING", "statusUpdate INPUT_REQUIRED"];
    wait_until("the updates are delivered", async || {
        let mut updates = receiver.updates("a");
        updates.dedup();
        updates == expected
    })
    .await;
    node.stop().await;
    let node = data_dir.start().await;
    node.send("yes", Some(&task), None).await;
    wait_until("the end is delivered", async || {
        receiver.updates("a").last().is_some_and(|last| last.ends_with("COMPLETED"))
    })
    .await;
    settle().await;
    let ends = receiver.updates("a").iter().filter(|update| update.ends_with("COMPLETED")).count();
    assert_eq!(ends, 1);
}

#[tokio::test]
async fn two_nodes_deliver_each_update_once() {
    // A2A-1
    let secret = "correct-horse-battery-staple-0123456789";
    let url = testkit::postgres::create_database().await.unwrap();
    let location = Location::postgres(url);
    let receiver = Receiver::start().await;
    let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let auth = AuthSettings { secret: Some(secret.into()), ..AuthSettings::default() };
    let settings = || ServerSettings { auth: Some(auth.clone()), ..allow_private() };
    let nodes = [
        Node::start(&location, dirs[0].path(), settings()).await,
        Node::start(&location, dirs[1].path(), settings()).await,
    ];
    let token = testkit::issuer::sign_hs256(
        secret,
        &serde_json::json!({"sub": "aaaaaaaa-0000-4000-8000-00000000000a", "exp": 4_000_000_000_i64}),
    );
    for n in 0..12 {
        let message = serde_json::json!({"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "two"}]});
        let push = receiver.push_config(&n.to_string());
        let configuration = serde_json::json!({"returnImmediately": true, "taskPushNotificationConfig": push});
        let params = serde_json::json!({"message": message, "configuration": configuration});
        let sent = nodes[n % 2].call_as(Some(&token), "1.0", "SendMessage", params).await;
        assert!(sent["result"]["task"]["id"].is_string(), "{sent}");
    }
    let end = ["artifactUpdate one", "artifactUpdate two", "statusUpdate COMPLETED"];
    for n in 0..12 {
        wait_until("all updates are delivered", async || {
            receiver.updates(&n.to_string()).ends_with(&end.map(str::to_owned))
        })
        .await;
    }
    settle().await;
    let mut ids = HashSet::new();
    for n in 0..12 {
        let updates = receiver.updates(&n.to_string());
        let before = &updates[..updates.len() - end.len()];
        assert!(before.is_empty() || before == ["statusUpdate WORKING"], "{updates:?}");
        for (_, headers, _) in receiver.requests(&n.to_string()) {
            assert!(ids.insert(headers["x-adjutant-delivery"].clone()), "a notification was delivered twice");
        }
    }
    let delivered =
        |node: &Node| -> u64 { node.app.notifier().delivery_counts().iter().map(|(_, counts)| counts.delivered).sum() };
    assert_eq!(delivered(&nodes[0]) + delivered(&nodes[1]), receiver.count() as u64);
}

#[tokio::test]
async fn a_node_without_the_key_leaves_the_delivery_to_its_owner() {
    // A2A-1: without a shared secret each node has its own key
    let url = testkit::postgres::create_database().await.unwrap();
    let location = Location::postgres(url);
    let receiver = Receiver::start().await;
    let here = tempfile::tempdir().unwrap();
    let there = tempfile::tempdir().unwrap();
    let node = Node::start(&location, here.path(), allow_private()).await;
    let other = Node::start(&location, there.path(), allow_private()).await;
    node.send("go", None, Some(receiver.push_config("a"))).await;
    // The node without the key may claim a delivery first. It then releases it for five seconds.
    for _ in 0..5 {
        if receiver.updates("a").last().is_some_and(|last| last.ends_with("COMPLETED")) {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_secs(5)).await;
    }
    wait_until("all updates are delivered", async || {
        receiver.updates("a").last().is_some_and(|last| last.ends_with("COMPLETED"))
    })
    .await;
    assert!(here.path().join("seal.key").exists() && !there.path().join("seal.key").exists());
    drop(other);
}

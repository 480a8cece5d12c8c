//! Nodes that come, go, and share the work.

use std::collections::HashSet;

use server::Settings;
use server::settings::Auth;
use store::Location;

use super::{Home, Node, Receiver, a_while, private, until};

#[tokio::test]
async fn another_goes_on_where_one_has_stopped() {
    // A2A-1: with what was under way, and with what happens later
    let home = Home::new();
    let receiver = Receiver::start().await;
    let node = home.start().await;
    receiver.answer(503);
    let task = node.send("ask slowly", None, Some(receiver.push("a"))).await;
    until("it is tried", async || receiver.count() == 1).await;
    node.gate.add_permits(1);
    until("it asks", async || node.state(&task).await == "TASK_STATE_INPUT_REQUIRED").await;
    node.stop().await;
    receiver.answer(200);
    let node = home.start().await;
    let asked = ["statusUpdate WORKING", "statusUpdate INPUT_REQUIRED"];
    until("it is told", async || {
        let mut told = receiver.told("a");
        told.dedup();
        told == asked
    })
    .await;
    node.stop().await;
    let node = home.start().await;
    node.send("yes", Some(&task), None).await;
    until("the end is told", async || receiver.told("a").last().is_some_and(|last| last.ends_with("COMPLETED"))).await;
    a_while().await;
    let ends = receiver.told("a").iter().filter(|told| told.ends_with("COMPLETED")).count();
    assert_eq!(ends, 1);
}

#[tokio::test]
async fn two_nodes_tell_each_once() {
    // A2A-1
    let secret = "correct-horse-battery-staple-0123456789";
    let url = testkit::postgres::database().await.unwrap();
    let location = Location::Postgres(url);
    let receiver = Receiver::start().await;
    let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let auth = Auth { secret: Some(secret.into()), jwks_url: None, issuer: None, audience: None };
    let settings = || Settings { auth: Some(auth.clone()), ..private() };
    let nodes = [
        Node::start(&location, dirs[0].path(), settings()).await,
        Node::start(&location, dirs[1].path(), settings()).await,
    ];
    let token = testkit::issuer::hs256(
        secret,
        &serde_json::json!({"sub": "aaaaaaaa-0000-4000-8000-00000000000a", "exp": 4_000_000_000_i64}),
    );
    for n in 0..12 {
        let message = serde_json::json!({"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "two"}]});
        let push = receiver.push(&n.to_string());
        let configuration = serde_json::json!({"returnImmediately": true, "taskPushNotificationConfig": push});
        let params = serde_json::json!({"message": message, "configuration": configuration});
        let sent = nodes[n % 2].ask_as(Some(&token), "1.0", "SendMessage", params).await;
        assert!(sent["result"]["task"]["id"].is_string(), "{sent}");
    }
    let end = ["artifactUpdate one", "artifactUpdate two", "statusUpdate COMPLETED"];
    for n in 0..12 {
        until("it is told to the end", async || receiver.told(&n.to_string()).ends_with(&end.map(str::to_owned))).await;
    }
    a_while().await;
    let mut ids = HashSet::new();
    for n in 0..12 {
        let told = receiver.told(&n.to_string());
        let before = &told[..told.len() - end.len()];
        assert!(before.is_empty() || before == ["statusUpdate WORKING"], "{told:?}");
        for (_, headers, _) in receiver.got(&n.to_string()) {
            assert!(ids.insert(headers["x-adjutant-delivery"].clone()), "it came twice");
        }
    }
    let delivered =
        |node: &Node| -> u64 { node.app.notifier().deliveries().iter().map(|(_, counts)| counts.delivered).sum() };
    assert_eq!(delivered(&nodes[0]) + delivered(&nodes[1]), receiver.count() as u64);
}

#[tokio::test]
async fn a_node_without_the_key_leaves_it_to_the_one_that_has_it() {
    // A2A-1: without a secret that both know, each has a key of its own
    let url = testkit::postgres::database().await.unwrap();
    let location = Location::Postgres(url);
    let receiver = Receiver::start().await;
    let here = tempfile::tempdir().unwrap();
    let there = tempfile::tempdir().unwrap();
    let node = Node::start(&location, here.path(), private()).await;
    let other = Node::start(&location, there.path(), private()).await;
    node.send("go", None, Some(receiver.push("a"))).await;
    // Each delivery may be looked at by the other a few times, which leaves it alone for five seconds then.
    for _ in 0..5 {
        if receiver.told("a").last().is_some_and(|last| last.ends_with("COMPLETED")) {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_secs(5)).await;
    }
    until("it is told to the end", async || receiver.told("a").last().is_some_and(|last| last.ends_with("COMPLETED")))
        .await;
    assert!(here.path().join("seal.key").exists() && !there.path().join("seal.key").exists());
    drop(other);
}

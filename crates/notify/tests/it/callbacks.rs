//! Callbacks: each to a host that somebody has named, with what has to be shown there, and no host in the way of another.

use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderName, HeaderValue};
use notify::{Notifier, Outgoing, Resolver, Unresolved};
use serde_json::{Value, json};
use store::outbox;

use crate::webhook::Receiver;
use crate::{Bench, a_while, until};

const NAME: &str = "x:push";

/// Goes to the port that its target names, and shows a token there.
fn by_port(can: bool) -> Resolver {
    Arc::new(move |target| {
        Box::pin(async move {
            let target: Value = serde_json::from_str(&target).unwrap();
            if target["gone"] == true {
                return Err(Unresolved::Gone);
            }
            if !can {
                return Err(Unresolved::Elsewhere("this node has another key".into()));
            }
            let host = target["host"].as_str().unwrap_or("127.0.0.1");
            let port = &target["port"];
            Ok(Outgoing {
                url: format!("http://user:pass@{host}:{port}/hook"),
                content_type: "application/a2a+json",
                headers: vec![
                    (HeaderName::from_static("authorization"), HeaderValue::from_static("Bearer s3cret")),
                    (HeaderName::from_static("x-token"), HeaderValue::from_static("t0ken")),
                ],
                allow_private: target["public"] != true,
            })
        })
    })
}

impl Bench {
    fn call_back(&self) {
        self.notifier.call_back(NAME, by_port(true));
    }

    async fn put(&self, target: Value) {
        let host = format!("http://127.0.0.1:{}", target["port"]);
        let new = outbox::New {
            id: self.clock.id(),
            owner: self.alice,
            notification_id: None,
            channel: notify::callback::channel(NAME, &host),
            target: Some(target.to_string()),
            payload: json!({"n": target["n"]}).to_string(),
        };
        let now = self.clock.now();
        self.store.transaction(async move |tx| outbox::add(tx, &new, now).await).await.unwrap();
    }

    /// What waits, and what was given up, for all hosts.
    async fn callbacks(&self) -> (i64, i64) {
        let mut reader = self.store.reader().await.unwrap();
        let all = outbox::standing(&mut reader).await.unwrap();
        all.iter().fold((0, 0), |sum, one| (sum.0 + one.waiting, sum.1 + one.dead))
    }
}

#[tokio::test]
async fn it_goes_where_it_is_said_to_and_shows_what_has_to_be_shown() {
    // A2A-1
    let bench = Bench::sqlite().await;
    let receiver = Receiver::default();
    bench.call_back();
    bench.run();
    bench.put(json!({"port": receiver.start().await, "n": 7})).await;
    until("it arrives", async || receiver.count() == 1).await;
    let (headers, body) = receiver.got.lock().unwrap()[0].clone();
    assert_eq!(body, r#"{"n":7}"#);
    assert_eq!(headers["content-type"], "application/a2a+json");
    assert_eq!(headers.get_all("authorization").iter().collect::<Vec<_>>(), ["Bearer s3cret"]);
    assert_eq!(headers["x-token"], "t0ken");
    assert!(headers.contains_key("x-adjutant-delivery"));
    until("it is noted", async || bench.callbacks().await == (0, 0)).await;
    assert_eq!(bench.counts(NAME).delivered, 1, "hosts are no names of counters");
    assert_eq!(bench.notifier.deliveries().len(), 1);
}

#[tokio::test]
async fn a_host_that_hangs_holds_up_no_other() {
    // A2A-1
    let bench = Bench::sqlite().await;
    let slow = Receiver::default();
    let quick = Receiver::default();
    slow.answer(418);
    let slow_port = slow.start().await;
    let quick_port = quick.start().await;
    bench.call_back();
    for _ in 0..20 {
        bench.put(json!({"port": slow_port})).await;
        bench.put(json!({"port": quick_port})).await;
    }
    bench.run();
    until("the others arrive", async || quick.count() == 20).await;
    assert_eq!(slow.count(), 4, "a few at once, not all");
}

#[tokio::test]
async fn a_host_that_does_not_work_is_left_alone_for_a_minute() {
    // A2A-1
    let bench = Bench::sqlite().await;
    let dead = Receiver::default();
    let quick = Receiver::default();
    dead.answer(503);
    let dead_port = dead.start().await;
    let quick_port = quick.start().await;
    bench.call_back();
    for _ in 0..12 {
        bench.put(json!({"port": dead_port})).await;
    }
    bench.run();
    until("it is left alone", async || bench.notifier.hosts_left_alone() == 1).await;
    until("all have ended", async || bench.counts(NAME).failed as usize == dead.count()).await;
    let before = dead.count();
    assert!((5..=8).contains(&before), "{before}");
    bench.put(json!({"port": quick_port})).await;
    bench.advance(Duration::from_secs(59));
    until("another is not", async || quick.count() == 1).await;
    a_while().await;
    assert_eq!(dead.count(), before);
    bench.advance(Duration::from_secs(1));
    until("it is tried once", async || dead.count() == before + 1).await;
    a_while().await;
    assert_eq!(dead.count(), before + 1);
    dead.answer(200);
    bench.advance(Duration::from_secs(60));
    until("all arrive", async || bench.counts(NAME).delivered == 13).await;
    assert_eq!(bench.notifier.hosts_left_alone(), 0);
}

#[tokio::test]
async fn an_address_that_is_gone_says_nothing_about_its_host() {
    let bench = Bench::sqlite().await;
    let receiver = Receiver::default();
    let port = receiver.start().await;
    bench.call_back();
    bench.run();
    receiver.answer(410);
    for dead in 1..=10 {
        bench.put(json!({"port": port})).await;
        until("it is given up", async || bench.callbacks().await == (0, dead)).await;
    }
    assert_eq!((receiver.count(), bench.notifier.hosts_left_alone()), (10, 0));
    receiver.answer(200);
    bench.put(json!({"port": port})).await;
    until("another arrives", async || bench.counts(NAME).delivered == 1).await;
}

#[tokio::test]
async fn a_private_address_is_refused_when_it_is_connected_to() {
    // A2A-1: by number before, by name when it is looked up
    let bench = Bench::sqlite().await;
    let receiver = Receiver::default();
    let port = receiver.start().await;
    bench.call_back();
    bench.run();
    for (dead, host) in [(1, "127.0.0.1"), (2, "localhost"), (3, "[::1]")] {
        bench.put(json!({"port": port, "host": host, "public": true})).await;
        until("it is given up", async || bench.callbacks().await == (0, dead)).await;
    }
    assert_eq!(receiver.count(), 0);
}

#[tokio::test]
async fn what_nobody_wants_any_more_is_not_sent() {
    let bench = Bench::sqlite().await;
    let receiver = Receiver::default();
    let port = receiver.start().await;
    bench.call_back();
    bench.put(json!({"port": port, "gone": true})).await;
    bench.run();
    until("it is dropped", async || bench.callbacks().await == (0, 0)).await;
    assert_eq!((receiver.count(), bench.counts(NAME)), (0, notify::Deliveries::default()));
}

#[tokio::test]
async fn what_a_node_cannot_read_is_left_to_others() {
    // A2A-1
    let bench = Bench::postgres().await;
    let receiver = Receiver::default();
    bench.notifier.call_back(NAME, by_port(false));
    bench.run();
    bench.put(json!({"port": receiver.start().await})).await;
    for _ in 0..15 {
        a_while().await;
        bench.advance(Duration::from_secs(5));
    }
    assert_eq!(bench.callbacks().await, (1, 0), "it is not given up, however often it was looked at");
    let store = store::Store::open(&bench.location, store::Durability::Full).await.unwrap();
    let other = Notifier::new(store, bench.clock.clone());
    other.call_back(NAME, by_port(true));
    bench.run_too(other.clone());
    until("it arrives", async || {
        bench.advance(Duration::from_secs(1));
        // Both nodes have the same chance to claim it.
        other.wake();
        receiver.count() == 1
    })
    .await;
    until("it is noted", async || bench.callbacks().await == (0, 0)).await;
    assert_eq!((bench.counts(NAME).failed, other.deliveries()[0].1.delivered), (0, 1));
}

#[tokio::test]
async fn what_nobody_can_read_is_given_up() {
    // Where there is no other node.
    let bench = Bench::sqlite().await;
    let receiver = Receiver::default();
    bench.notifier.call_back(NAME, by_port(false));
    bench.run();
    bench.put(json!({"port": receiver.start().await})).await;
    until("it is given up", async || {
        bench.advance(Duration::from_secs(3600));
        bench.callbacks().await == (0, 1)
    })
    .await;
    assert_eq!(receiver.count(), 0);
}

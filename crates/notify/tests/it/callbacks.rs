//! Callbacks: the resolved URL and headers are used, and hosts do not affect each other.

use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderName, HeaderValue};
use notify::{CallbackRequest, CallbackResolver, Notifier, ResolveError};
use serde_json::{Value, json};
use store::outbox;

use crate::webhook::Receiver;
use crate::{Bench, settle, until};

const NAME: &str = "x:push";

/// Returns a resolver that sends to the port in the target, with a token. It fails unless `can_resolve` is set.
fn resolver(can_resolve: bool) -> CallbackResolver {
    Arc::new(move |target| {
        Box::pin(async move {
            let target: Value = serde_json::from_str(&target).unwrap();
            if target["gone"] == true {
                return Err(ResolveError::Removed);
            }
            if !can_resolve {
                return Err(ResolveError::OtherNode("this node has another key".into()));
            }
            let host = target["host"].as_str().unwrap_or("127.0.0.1");
            let port = &target["port"];
            Ok(CallbackRequest {
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
    fn register_callbacks(&self) {
        self.notifier.register_callbacks(NAME, resolver(true));
    }

    async fn add_delivery(&self, target: Value) {
        let host = format!("http://127.0.0.1:{}", target["port"]);
        let new = outbox::NewDelivery {
            id: self.clock.id(),
            owner: self.alice,
            notification_id: None,
            channel: notify::callback::channel_name(NAME, &host),
            target: Some(target.to_string()),
            payload: json!({"n": target["n"]}).to_string(),
        };
        let now = self.clock.now();
        self.store.transaction(async move |tx| outbox::add(tx, &new, now).await).await.unwrap();
    }

    /// Returns the number of waiting and failed deliveries of all hosts.
    async fn callback_backlog(&self) -> (i64, i64) {
        let mut reader = self.store.reader().await.unwrap();
        let all = outbox::channel_backlogs(&mut reader).await.unwrap();
        all.iter().fold((0, 0), |sum, backlog| (sum.0 + backlog.waiting, sum.1 + backlog.dead))
    }
}

#[tokio::test]
async fn callbacks_use_the_resolved_url_and_headers() {
    // A2A-1
    let bench = Bench::sqlite().await;
    let receiver = Receiver::default();
    bench.register_callbacks();
    bench.run();
    bench.add_delivery(json!({"port": receiver.start().await, "n": 7})).await;
    until("the callback arrives", async || receiver.count() == 1).await;
    let (headers, body) = receiver.requests.lock().unwrap()[0].clone();
    assert_eq!(body, r#"{"n":7}"#);
    assert_eq!(headers["content-type"], "application/a2a+json");
    assert_eq!(headers.get_all("authorization").iter().collect::<Vec<_>>(), ["Bearer s3cret"]);
    assert_eq!(headers["x-token"], "t0ken");
    assert!(headers.contains_key("x-adjutant-delivery"));
    until("the outcome is recorded", async || bench.callback_backlog().await == (0, 0)).await;
    assert_eq!(bench.counts(NAME).delivered, 1, "counters do not contain hosts");
    assert_eq!(bench.notifier.delivery_counts().len(), 1);
}

#[tokio::test]
async fn a_hanging_host_does_not_delay_other_hosts() {
    // A2A-1
    let bench = Bench::sqlite().await;
    let slow = Receiver::default();
    let quick = Receiver::default();
    slow.answer(418);
    let slow_port = slow.start().await;
    let quick_port = quick.start().await;
    bench.register_callbacks();
    for _ in 0..20 {
        bench.add_delivery(json!({"port": slow_port})).await;
        bench.add_delivery(json!({"port": quick_port})).await;
    }
    bench.run();
    until("the other callbacks arrive", async || quick.count() == 20).await;
    assert_eq!(slow.count(), 4, "the concurrency is limited");
}

#[tokio::test]
async fn a_failing_host_is_suspended_for_a_minute() {
    // A2A-1
    let bench = Bench::sqlite().await;
    let dead = Receiver::default();
    let quick = Receiver::default();
    dead.answer(503);
    let dead_port = dead.start().await;
    let quick_port = quick.start().await;
    bench.register_callbacks();
    for _ in 0..12 {
        bench.add_delivery(json!({"port": dead_port})).await;
    }
    bench.run();
    until("the host is suspended", async || bench.notifier.suspended_hosts() == 1).await;
    until("all attempts have ended", async || bench.counts(NAME).failed as usize == dead.count()).await;
    let before = dead.count();
    assert!((5..=8).contains(&before), "{before}");
    bench.add_delivery(json!({"port": quick_port})).await;
    bench.advance(Duration::from_secs(59));
    until("another host is not suspended", async || quick.count() == 1).await;
    settle().await;
    assert_eq!(dead.count(), before);
    bench.advance(Duration::from_secs(1));
    until("the host gets one attempt", async || dead.count() == before + 1).await;
    settle().await;
    assert_eq!(dead.count(), before + 1);
    dead.answer(200);
    bench.advance(Duration::from_secs(60));
    until("all arrive", async || bench.counts(NAME).delivered == 13).await;
    assert_eq!(bench.notifier.suspended_hosts(), 0);
}

#[tokio::test]
async fn a_removed_url_does_not_suspend_its_host() {
    let bench = Bench::sqlite().await;
    let receiver = Receiver::default();
    let port = receiver.start().await;
    bench.register_callbacks();
    bench.run();
    receiver.answer(410);
    for dead in 1..=10 {
        bench.add_delivery(json!({"port": port})).await;
        until("the delivery is given up", async || bench.callback_backlog().await == (0, dead)).await;
    }
    assert_eq!((receiver.count(), bench.notifier.suspended_hosts()), (10, 0));
    receiver.answer(200);
    bench.add_delivery(json!({"port": port})).await;
    until("another arrives", async || bench.counts(NAME).delivered == 1).await;
}

#[tokio::test]
async fn private_addresses_are_rejected_on_connect() {
    // A2A-1: IP addresses before the request, names when they are resolved
    let bench = Bench::sqlite().await;
    let receiver = Receiver::default();
    let port = receiver.start().await;
    bench.register_callbacks();
    bench.run();
    for (dead, host) in [(1, "127.0.0.1"), (2, "localhost"), (3, "[::1]")] {
        bench.add_delivery(json!({"port": port, "host": host, "public": true})).await;
        until("the delivery is given up", async || bench.callback_backlog().await == (0, dead)).await;
    }
    assert_eq!(receiver.count(), 0);
}

#[tokio::test]
async fn deliveries_to_removed_targets_are_dropped() {
    let bench = Bench::sqlite().await;
    let receiver = Receiver::default();
    let port = receiver.start().await;
    bench.register_callbacks();
    bench.add_delivery(json!({"port": port, "gone": true})).await;
    bench.run();
    until("the delivery is dropped", async || bench.callback_backlog().await == (0, 0)).await;
    assert_eq!((receiver.count(), bench.counts(NAME)), (0, notify::DeliveryCounts::default()));
}

#[tokio::test]
async fn unreadable_targets_are_left_to_other_nodes() {
    // A2A-1
    let bench = Bench::postgres().await;
    let receiver = Receiver::default();
    bench.notifier.register_callbacks(NAME, resolver(false));
    bench.run();
    bench.add_delivery(json!({"port": receiver.start().await})).await;
    for _ in 0..15 {
        settle().await;
        bench.advance(Duration::from_secs(5));
    }
    assert_eq!(bench.callback_backlog().await, (1, 0), "returned claims do not count as attempts");
    let store = store::Store::open(&bench.location, store::Durability::Full).await.unwrap();
    let other = Notifier::new(store, bench.clock.clone());
    other.register_callbacks(NAME, resolver(true));
    bench.run_node(other.clone());
    until("the callback arrives", async || {
        bench.advance(Duration::from_secs(1));
        // Wakes both nodes, so that either can claim it.
        other.wake();
        receiver.count() == 1
    })
    .await;
    until("the outcome is recorded", async || bench.callback_backlog().await == (0, 0)).await;
    assert_eq!((bench.counts(NAME).failed, other.delivery_counts()[0].1.delivered), (0, 1));
}

#[tokio::test]
async fn unreadable_targets_are_given_up_without_other_nodes() {
    // SQLite has only one node.
    let bench = Bench::sqlite().await;
    let receiver = Receiver::default();
    bench.notifier.register_callbacks(NAME, resolver(false));
    bench.run();
    bench.add_delivery(json!({"port": receiver.start().await})).await;
    until("the delivery is given up", async || {
        bench.advance(Duration::from_secs(3600));
        bench.callback_backlog().await == (0, 1)
    })
    .await;
    assert_eq!(receiver.count(), 0);
}

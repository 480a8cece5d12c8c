//! Channels: their filters, and the handling of failing channels and nodes.

use std::time::Duration;

use model::UserId;
use model::breaker::BreakerState;
use model::notification::NotificationKind;
use notify::{Channel, Notifier, NotifySettings};
use uuid::Uuid;

use crate::webhook::{Receiver, to};
use crate::{Bench, settle, until};

#[tokio::test]
async fn channels_filter_by_kind_and_user() {
    let bench = Bench::sqlite().await;
    let all = Receiver::default();
    let reminders = Receiver::default();
    let bobs = Receiver::default();
    let bob = UserId::new(Uuid::from_u128(0xb0b));
    let channel = async |name: &str, receiver: &Receiver, kinds: &[NotificationKind], users: &[UserId]| Channel {
        name: name.into(),
        transport: to(receiver.start().await, None),
        kinds: kinds.to_vec(),
        users: users.to_vec(),
    };
    let channels = vec![
        channel("all", &all, &[], &[]).await,
        channel("reminders", &reminders, &[NotificationKind::Reminder], &[]).await,
        channel("bobs", &bobs, &[NotificationKind::Reminder, NotificationKind::Execution], &[bob]).await,
    ];
    bench.notifier.reload(NotifySettings { channels, ..NotifySettings::default() });
    bench.run();
    for (kind, owner) in [
        (NotificationKind::Reminder, bench.alice),
        (NotificationKind::Execution, bench.alice),
        (NotificationKind::Execution, bob),
        (NotificationKind::Schedule, bob),
    ] {
        bench.notify_user(kind, owner, "x").await;
    }
    until("all arrive", async || all.count() == 4 && reminders.count() == 1 && bobs.count() == 1).await;
    settle().await;
    assert_eq!((all.count(), reminders.count(), bobs.count()), (4, 1, 1));
}

#[tokio::test]
async fn a_dead_channel_is_suspended_and_resumed() {
    let bench = Bench::sqlite().await;
    let receiver = Receiver::default();
    bench.set_channels([("hook", to(receiver.start().await, None))]);
    receiver.answer(410);
    bench.run();
    for dead in 1..=3 {
        assert_eq!(bench.notifier.channel_states()[0].disabled_until, None);
        bench.notify("x").await;
        until("the delivery is given up", async || bench.backlog("hook").await == (0, dead)).await;
    }
    until("the channel is suspended", async || bench.notifier.channel_states()[0].breaker.state == BreakerState::Open)
        .await;
    let state = bench.notifier.channel_states().remove(0);
    assert_eq!((state.name.as_str(), state.kind), ("hook", "webhook"));
    assert_eq!(state.disabled_until, Some(bench.clock.now() + Duration::from_secs(900)));
    assert_eq!(state.last_error.as_deref(), Some("the server responded with 410 Gone"));
    receiver.answer(200);
    bench.notify("waits").await;
    bench.advance(Duration::from_secs(899));
    settle().await;
    assert_eq!((receiver.count(), bench.backlog("hook").await), (3, (1, 3)), "nothing is sent, nothing is lost");
    bench.advance(Duration::from_secs(1));
    until("it arrives", async || bench.counts("hook").delivered == 1).await;
    until("the channel is resumed", async || bench.notifier.channel_states()[0].breaker.state == BreakerState::Closed)
        .await;
}

#[tokio::test]
async fn claims_of_a_dead_node_are_delivered() {
    // TASK-4
    // A claim without an outcome: PostgreSQL repeats it after the lease, SQLite at the next start.
    for (bench, wait) in [(Bench::postgres().await, 30), (Bench::sqlite().await, 0)] {
        let receiver = Receiver::default();
        bench.set_channels([("hook", to(receiver.start().await, None))]);
        bench.notify("x").await;
        let now = bench.clock.now();
        let lease = bench.clock.now() + Duration::from_secs(30);
        let claimed = bench.store.transaction(async move |tx| store::outbox::claim(tx, "hook", 9, now, lease).await);
        assert_eq!(claimed.await.unwrap().len(), 1);
        bench.run();
        if wait > 0 {
            settle().await;
            assert_eq!(receiver.count(), 0, "the claim is still valid");
            bench.advance(Duration::from_secs(wait));
        }
        until("it arrives", async || receiver.count() == 1).await;
    }
}

#[tokio::test]
async fn two_nodes_send_each_delivery_once() {
    let bench = Bench::postgres().await;
    let receiver = Receiver::default();
    let transport = to(receiver.start().await, None);
    bench.set_channels([("hook", transport.clone())]);
    let store = store::Store::open(&bench.location, store::Durability::Full).await.unwrap();
    let other = Notifier::new(store, bench.clock.clone());
    let channels = vec![Channel { name: "hook".into(), transport, kinds: vec![], users: vec![] }];
    other.reload(NotifySettings { channels, ..NotifySettings::default() });
    bench.run();
    bench.run_node(other.clone());
    for n in 0..60 {
        bench.notify(&n.to_string()).await;
    }
    until("all arrive", async || bench.backlog("hook").await == (0, 0)).await;
    settle().await;
    assert_eq!(receiver.count(), 60);
    let here = bench.counts("hook").delivered;
    let there: u64 = other.delivery_counts().iter().map(|(_, counts)| counts.delivered).sum();
    assert_eq!(here + there, 60);
}

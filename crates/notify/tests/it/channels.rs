//! Who gets what, and what happens to a channel that does not work.

use std::time::Duration;

use model::UserId;
use model::breaker::State;
use model::notification::Kind;
use notify::{Channel, Notifier, Settings};
use uuid::Uuid;

use crate::webhook::{Receiver, to};
use crate::{Bench, a_while, until};

#[tokio::test]
async fn each_gets_what_it_is_for() {
    let bench = Bench::sqlite().await;
    let all = Receiver::default();
    let reminders = Receiver::default();
    let bobs = Receiver::default();
    let bob = UserId::new(Uuid::from_u128(0xb0b));
    let channel = async |name: &str, receiver: &Receiver, kinds: &[Kind], users: &[UserId]| Channel {
        name: name.into(),
        way: to(receiver.start().await, None),
        kinds: kinds.to_vec(),
        users: users.to_vec(),
    };
    let channels = vec![
        channel("all", &all, &[], &[]).await,
        channel("reminders", &reminders, &[Kind::Reminder], &[]).await,
        channel("bobs", &bobs, &[Kind::Reminder, Kind::Execution], &[bob]).await,
    ];
    bench.notifier.reload(Settings { channels, ..Settings::default() });
    bench.run();
    for (kind, owner) in
        [(Kind::Reminder, bench.alice), (Kind::Execution, bench.alice), (Kind::Execution, bob), (Kind::Schedule, bob)]
    {
        bench.tell_of(kind, owner, "x").await;
    }
    until("they arrive", async || all.count() == 4 && reminders.count() == 1 && bobs.count() == 1).await;
    a_while().await;
    assert_eq!((all.count(), reminders.count(), bobs.count()), (4, 1, 1));
}

#[tokio::test]
async fn one_that_is_dead_is_left_alone_for_a_while() {
    let bench = Bench::sqlite().await;
    let receiver = Receiver::default();
    bench.with([("hook", to(receiver.start().await, None))]);
    receiver.answer(410);
    bench.run();
    for dead in 1..=3 {
        assert_eq!(bench.notifier.states()[0].disabled_until, None);
        bench.tell("x").await;
        until("it is given up", async || bench.standing("hook").await == (0, dead)).await;
    }
    until("it is disabled", async || bench.notifier.states()[0].breaker.state == State::Open).await;
    let state = bench.notifier.states().remove(0);
    assert_eq!((state.name.as_str(), state.kind), ("hook", "webhook"));
    assert_eq!(state.disabled_until, Some(bench.clock.now() + Duration::from_secs(900)));
    assert_eq!(state.last_error.as_deref(), Some("it answers 410 Gone"));
    receiver.answer(200);
    bench.tell("waits").await;
    bench.advance(Duration::from_secs(899));
    a_while().await;
    assert_eq!((receiver.count(), bench.standing("hook").await), (3, (1, 3)), "nothing is sent, nothing is lost");
    bench.advance(Duration::from_secs(1));
    until("it arrives", async || bench.counts("hook").delivered == 1).await;
    until("it is enabled", async || bench.notifier.states()[0].breaker.state == State::Closed).await;
}

#[tokio::test]
async fn what_a_dead_node_held_is_delivered_by_another() {
    // Claimed and never heard of again: on PostgreSQL by whoever is there after the lease, on SQLite at the next start.
    for (bench, wait) in [(Bench::postgres().await, 30), (Bench::sqlite().await, 0)] {
        let receiver = Receiver::default();
        bench.with([("hook", to(receiver.start().await, None))]);
        bench.tell("x").await;
        let now = bench.clock.now();
        let lease = bench.clock.now() + Duration::from_secs(30);
        let claimed = bench.store.transaction(async move |tx| store::outbox::claim(tx, "hook", 9, now, lease).await);
        assert_eq!(claimed.await.unwrap().len(), 1);
        bench.run();
        if wait > 0 {
            a_while().await;
            assert_eq!(receiver.count(), 0, "it may be at it");
            bench.advance(Duration::from_secs(wait));
        }
        until("it arrives", async || receiver.count() == 1).await;
    }
}

#[tokio::test]
async fn two_nodes_deliver_each_once() {
    let bench = Bench::postgres().await;
    let receiver = Receiver::default();
    let way = to(receiver.start().await, None);
    bench.with([("hook", way.clone())]);
    let store = store::Store::open(&bench.location, store::Durability::Full).await.unwrap();
    let other = Notifier::new(store, bench.clock.clone());
    let channels = vec![Channel { name: "hook".into(), way, kinds: vec![], users: vec![] }];
    other.reload(Settings { channels, ..Settings::default() });
    bench.run();
    bench.run_too(other.clone());
    for n in 0..60 {
        bench.tell(&n.to_string()).await;
    }
    until("all arrive", async || bench.standing("hook").await == (0, 0)).await;
    a_while().await;
    assert_eq!(receiver.count(), 60);
    let here = bench.counts("hook").delivered;
    let there: u64 = other.deliveries().iter().map(|(_, counts)| counts.delivered).sum();
    assert_eq!(here + there, 60);
}

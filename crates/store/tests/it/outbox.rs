//! The outbox: claimed by one at a time, for a while, and never lost.

use std::time::Duration;

use jiff::Timestamp;
use store::data;
use store::outbox::{
    Claimed, New, Standing, add, again, claim, done, give_up, is_empty, next, put_back, release, standing, waiting,
};
use uuid::Uuid;

use crate::{Bench, on_both, write};

on_both!(
    a_claim_is_ones_own_until_it_ends,
    tried_again_when_it_is_time,
    given_up_for_good,
    claimed_once_by_many,
    every_channel_with_something_waiting,
    put_back_without_being_tried,
    erased_with_their_owner,
);

const MINUTE: Duration = Duration::from_secs(60);

async fn put(bench: &Bench, channel: &str) -> Uuid {
    let new = New {
        id: bench.clock.id(),
        owner: bench.alice,
        notification_id: Some(bench.clock.id()),
        channel: channel.into(),
        target: Some("{\"n\":1}".into()),
        payload: "{}".into(),
    };
    let id = new.id;
    let now = bench.now();
    write!(bench, tx => add(tx, &new, now)).unwrap();
    id
}

async fn take(bench: &Bench, channel: &'static str, limit: i64) -> Vec<Claimed> {
    let now = bench.now();
    let until = bench.now() + MINUTE;
    write!(bench, tx => claim(tx, channel, limit, now, until)).unwrap()
}

async fn due(bench: &Bench, channel: &str) -> Option<Timestamp> {
    next(&mut bench.store.reader().await.unwrap(), channel).await.unwrap()
}

async fn a_claim_is_ones_own_until_it_ends(bench: Bench) {
    // TASK-4; what a dead node held is delivered by another
    let ids = [put(&bench, "a").await, put(&bench, "a").await, put(&bench, "b").await];
    assert_eq!(due(&bench, "a").await, Some(bench.now()));
    let first = take(&bench, "a", 1).await.remove(0);
    assert_eq!((first.id, first.attempts, first.owner), (ids[0], 1, bench.alice));
    assert_eq!((first.target.as_deref(), first.payload.as_str()), (Some("{\"n\":1}"), "{}"));
    assert_eq!(take(&bench, "a", 9).await.iter().map(|claimed| claimed.id).collect::<Vec<_>>(), [ids[1]]);
    assert_eq!(take(&bench, "a", 9).await, []);
    assert_eq!(due(&bench, "a").await, Some(bench.now() + MINUTE));

    bench.clock.advance(MINUTE);
    let second = take(&bench, "a", 1).await.remove(0);
    assert_eq!((second.id, second.attempts), (ids[0], 2));
    let now = bench.now();
    let overtaken = first.clone();
    assert!(!write!(bench, tx => done(tx, &overtaken, now)).unwrap(), "it is another's now");
    let overtaken = first.clone();
    assert!(!write!(bench, tx => again(tx, &overtaken, "late", now)).unwrap());
    assert!(!write!(bench, tx => give_up(tx, &first, "late", now)).unwrap());
    let holder = second.clone();
    assert!(write!(bench, tx => done(tx, &holder, now)).unwrap());
    assert!(!write!(bench, tx => done(tx, &second, now)).unwrap(), "once");
    let mut last = take(&bench, "b", 9).await;
    assert_eq!(last[0].id, ids[2]);
    // Whoever is alone need not wait for the end of a claim.
    assert_eq!(write!(bench, tx => release(tx, now)).unwrap(), 1);
    last.extend(take(&bench, "b", 9).await);
    assert_eq!((last[1].id, last[1].attempts), (ids[2], 2));
    last.extend(take(&bench, "a", 9).await);
    for claimed in last.split_off(1) {
        assert!(!is_empty(&mut bench.store.reader().await.unwrap()).await.unwrap());
        assert!(write!(bench, tx => done(tx, &claimed, now)).unwrap());
    }
    assert!(is_empty(&mut bench.store.reader().await.unwrap()).await.unwrap());
}

async fn tried_again_when_it_is_time(bench: Bench) {
    let id = put(&bench, "a").await;
    let claimed = take(&bench, "a", 1).await.remove(0);
    let later = bench.now() + 5 * MINUTE;
    assert!(write!(bench, tx => again(tx, &claimed, "no \0 answer", later)).unwrap());
    assert_eq!(due(&bench, "a").await, Some(later));
    bench.clock.advance(5 * MINUTE - Duration::from_micros(1));
    assert_eq!(take(&bench, "a", 1).await, []);
    bench.clock.advance(Duration::from_micros(1));
    assert_eq!(take(&bench, "a", 1).await[0].id, id);
}

async fn given_up_for_good(bench: Bench) {
    for _ in 0..2 {
        put(&bench, "a").await;
    }
    put(&bench, "b").await;
    let claimed = take(&bench, "a", 1).await.remove(0);
    let now = bench.now();
    assert!(write!(bench, tx => give_up(tx, &claimed, "gone", now)).unwrap());
    let stand = |channel: &str, waiting, dead| Standing { channel: channel.into(), waiting, dead };
    let mut reader = bench.store.reader().await.unwrap();
    assert_eq!(standing(&mut reader).await.unwrap(), [stand("a", 1, 1), stand("b", 1, 0)]);
    let claimed = take(&bench, "a", 9).await.remove(0);
    assert!(write!(bench, tx => done(tx, &claimed, now)).unwrap());
    assert_eq!(standing(&mut reader).await.unwrap()[0], stand("a", 0, 1));
    bench.clock.advance(5 * MINUTE);
    assert_eq!(take(&bench, "a", 9).await, []);
    assert_eq!(due(&bench, "a").await, None);
}

async fn claimed_once_by_many(bench: Bench) {
    for _ in 0..40 {
        put(&bench, "a").await;
    }
    let now = bench.now();
    let until = bench.now() + MINUTE;
    let claims = (0..20).map(|_| bench.store.transaction(async move |tx| claim(tx, "a", 3, now, until).await));
    let mut ids = Vec::new();
    for claimed in futures::future::join_all(claims).await {
        ids.extend(claimed.unwrap().iter().map(|claimed| claimed.id));
    }
    ids.extend(take(&bench, "a", 40).await.iter().map(|claimed| claimed.id));
    assert_eq!(ids.len(), 40);
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 40);
}

async fn every_channel_with_something_waiting(bench: Bench) {
    // A2A-1: by its name, whatever else has that name as its beginning
    assert_eq!(waiting(&mut bench.store.reader().await.unwrap()).await.unwrap(), []);
    for channel in ["b", "a2a:push:https://hooks.example", "b", "a", "a2a:push:https://hooks.example:8443"] {
        put(&bench, channel).await;
    }
    let claimed = take(&bench, "b", 1).await.remove(0);
    bench.clock.advance(Duration::from_secs(1));
    put(&bench, "b").await;
    let ended = take(&bench, "a", 1).await.remove(0);
    let now = bench.now();
    write!(bench, tx => done(tx, &ended, now)).unwrap();
    let mut found = waiting(&mut bench.store.reader().await.unwrap()).await.unwrap();
    // In the order of the database.
    found.sort();
    let early = now - Duration::from_secs(1);
    let expected =
        [("a2a:push:https://hooks.example", early), ("a2a:push:https://hooks.example:8443", early), ("b", early)];
    assert_eq!(found, expected.map(|(channel, at)| (channel.to_owned(), at)));
    write!(bench, tx => done(tx, &claimed, now)).unwrap();
}

async fn put_back_without_being_tried(bench: Bench) {
    // A2A-1: what one node cannot read is another's
    let id = put(&bench, "a").await;
    let claimed = take(&bench, "a", 1).await.remove(0);
    let later = bench.now() + MINUTE;
    let stale = Claimed { attempts: 2, ..claimed.clone() };
    assert!(!write!(bench, tx => put_back(tx, &stale, later)).unwrap());
    assert!(write!(bench, tx => put_back(tx, &claimed, later)).unwrap());
    assert_eq!(take(&bench, "a", 1).await, []);
    bench.clock.advance(MINUTE);
    let again = take(&bench, "a", 1).await.remove(0);
    assert_eq!((again.id, again.attempts), (id, 1), "it does not count");
}

async fn erased_with_their_owner(bench: Bench) {
    // OPS-7
    put(&bench, "a").await;
    let alice = bench.alice;
    let bob = bench.bob;
    write!(bench, tx => data::erase(tx, bob)).unwrap();
    assert_eq!(take(&bench, "a", 9).await.len(), 1);
    write!(bench, tx => data::erase(tx, alice)).unwrap();
    bench.clock.advance(MINUTE);
    assert_eq!(take(&bench, "a", 9).await, []);
}

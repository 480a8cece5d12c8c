//! The outbox: deliveries are claimed exclusively for a limited time and never lost.

use std::time::Duration;

use jiff::Timestamp;
use store::data;
use store::outbox::{
    ChannelBacklog, ClaimedDelivery, NewDelivery, add, channel_backlogs, claim, give_up, is_empty, mark_delivered,
    next_attempt_at, pending_channels, release_all, retry_at, return_claim,
};
use uuid::Uuid;

use crate::{Bench, on_both, write};

on_both!(
    a_claim_is_exclusive_until_it_expires,
    a_retry_waits_for_its_time,
    a_delivery_that_is_given_up_is_not_claimed_again,
    concurrent_claims_are_disjoint,
    pending_channels_are_listed_by_name,
    a_returned_claim_does_not_count_as_an_attempt,
    erasing_a_user_removes_deliveries,
);

const MINUTE: Duration = Duration::from_secs(60);

async fn add_delivery(bench: &Bench, channel: &str) -> Uuid {
    let new = NewDelivery {
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

async fn claim_now(bench: &Bench, channel: &'static str, limit: i64) -> Vec<ClaimedDelivery> {
    let now = bench.now();
    let until = bench.now() + MINUTE;
    write!(bench, tx => claim(tx, channel, limit, now, until)).unwrap()
}

async fn next_attempt(bench: &Bench, channel: &str) -> Option<Timestamp> {
    next_attempt_at(&mut bench.store.reader().await.unwrap(), channel).await.unwrap()
}

async fn a_claim_is_exclusive_until_it_expires(bench: Bench) {
    // TASK-4; another node delivers for a crashed one
    let ids = [add_delivery(&bench, "a").await, add_delivery(&bench, "a").await, add_delivery(&bench, "b").await];
    assert_eq!(next_attempt(&bench, "a").await, Some(bench.now()));
    let first = claim_now(&bench, "a", 1).await.remove(0);
    assert_eq!((first.id, first.attempts, first.owner), (ids[0], 1, bench.alice));
    assert_eq!((first.target.as_deref(), first.payload.as_str()), (Some("{\"n\":1}"), "{}"));
    assert_eq!(claim_now(&bench, "a", 9).await.iter().map(|claimed| claimed.id).collect::<Vec<_>>(), [ids[1]]);
    assert_eq!(claim_now(&bench, "a", 9).await, []);
    assert_eq!(next_attempt(&bench, "a").await, Some(bench.now() + MINUTE));

    bench.clock.advance(MINUTE);
    let second = claim_now(&bench, "a", 1).await.remove(0);
    assert_eq!((second.id, second.attempts), (ids[0], 2));
    let now = bench.now();
    let expired = first.clone();
    assert!(!write!(bench, tx => mark_delivered(tx, &expired, now)).unwrap(), "another claim is valid now");
    let expired = first.clone();
    assert!(!write!(bench, tx => retry_at(tx, &expired, "late", now)).unwrap());
    assert!(!write!(bench, tx => give_up(tx, &first, "late", now)).unwrap());
    let holder = second.clone();
    assert!(write!(bench, tx => mark_delivered(tx, &holder, now)).unwrap());
    assert!(!write!(bench, tx => mark_delivered(tx, &second, now)).unwrap(), "once");
    let mut last = claim_now(&bench, "b", 9).await;
    assert_eq!(last[0].id, ids[2]);
    // A single node need not wait for the end of a claim.
    assert_eq!(write!(bench, tx => release_all(tx, now)).unwrap(), 1);
    last.extend(claim_now(&bench, "b", 9).await);
    assert_eq!((last[1].id, last[1].attempts), (ids[2], 2));
    last.extend(claim_now(&bench, "a", 9).await);
    for claimed in last.split_off(1) {
        assert!(!is_empty(&mut bench.store.reader().await.unwrap()).await.unwrap());
        assert!(write!(bench, tx => mark_delivered(tx, &claimed, now)).unwrap());
    }
    assert!(is_empty(&mut bench.store.reader().await.unwrap()).await.unwrap());
}

async fn a_retry_waits_for_its_time(bench: Bench) {
    let id = add_delivery(&bench, "a").await;
    let claimed = claim_now(&bench, "a", 1).await.remove(0);
    let later = bench.now() + 5 * MINUTE;
    assert!(write!(bench, tx => retry_at(tx, &claimed, "no \0 answer", later)).unwrap());
    assert_eq!(next_attempt(&bench, "a").await, Some(later));
    bench.clock.advance(5 * MINUTE - Duration::from_micros(1));
    assert_eq!(claim_now(&bench, "a", 1).await, []);
    bench.clock.advance(Duration::from_micros(1));
    assert_eq!(claim_now(&bench, "a", 1).await[0].id, id);
}

async fn a_delivery_that_is_given_up_is_not_claimed_again(bench: Bench) {
    for _ in 0..2 {
        add_delivery(&bench, "a").await;
    }
    add_delivery(&bench, "b").await;
    let claimed = claim_now(&bench, "a", 1).await.remove(0);
    let now = bench.now();
    assert!(write!(bench, tx => give_up(tx, &claimed, "gone", now)).unwrap());
    let backlog = |channel: &str, waiting, dead| ChannelBacklog { channel: channel.into(), waiting, dead };
    let mut reader = bench.store.reader().await.unwrap();
    assert_eq!(channel_backlogs(&mut reader).await.unwrap(), [backlog("a", 1, 1), backlog("b", 1, 0)]);
    let claimed = claim_now(&bench, "a", 9).await.remove(0);
    assert!(write!(bench, tx => mark_delivered(tx, &claimed, now)).unwrap());
    assert_eq!(channel_backlogs(&mut reader).await.unwrap()[0], backlog("a", 0, 1));
    bench.clock.advance(5 * MINUTE);
    assert_eq!(claim_now(&bench, "a", 9).await, []);
    assert_eq!(next_attempt(&bench, "a").await, None);
}

async fn concurrent_claims_are_disjoint(bench: Bench) {
    for _ in 0..40 {
        add_delivery(&bench, "a").await;
    }
    let now = bench.now();
    let until = bench.now() + MINUTE;
    let claims = (0..20).map(|_| bench.store.transaction(async move |tx| claim(tx, "a", 3, now, until).await));
    let mut ids = Vec::new();
    for claimed in futures::future::join_all(claims).await {
        ids.extend(claimed.unwrap().iter().map(|claimed| claimed.id));
    }
    ids.extend(claim_now(&bench, "a", 40).await.iter().map(|claimed| claimed.id));
    assert_eq!(ids.len(), 40);
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 40);
}

async fn pending_channels_are_listed_by_name(bench: Bench) {
    // A2A-1: by complete name, also if one name is a prefix of another
    assert_eq!(pending_channels(&mut bench.store.reader().await.unwrap()).await.unwrap(), []);
    for channel in ["b", "a2a:push:https://hooks.example", "b", "a", "a2a:push:https://hooks.example:8443"] {
        add_delivery(&bench, channel).await;
    }
    let claimed = claim_now(&bench, "b", 1).await.remove(0);
    bench.clock.advance(Duration::from_secs(1));
    add_delivery(&bench, "b").await;
    let ended = claim_now(&bench, "a", 1).await.remove(0);
    let now = bench.now();
    write!(bench, tx => mark_delivered(tx, &ended, now)).unwrap();
    let mut found = pending_channels(&mut bench.store.reader().await.unwrap()).await.unwrap();
    // The databases sort differently.
    found.sort();
    let early = now - Duration::from_secs(1);
    let expected =
        [("a2a:push:https://hooks.example", early), ("a2a:push:https://hooks.example:8443", early), ("b", early)];
    assert_eq!(found, expected.map(|(channel, at)| (channel.to_owned(), at)));
    write!(bench, tx => mark_delivered(tx, &claimed, now)).unwrap();
}

async fn a_returned_claim_does_not_count_as_an_attempt(bench: Bench) {
    // A2A-1: another node may be able to read the configuration
    let id = add_delivery(&bench, "a").await;
    let claimed = claim_now(&bench, "a", 1).await.remove(0);
    let later = bench.now() + MINUTE;
    let stale = ClaimedDelivery { attempts: 2, ..claimed.clone() };
    assert!(!write!(bench, tx => return_claim(tx, &stale, later)).unwrap());
    assert!(write!(bench, tx => return_claim(tx, &claimed, later)).unwrap());
    assert_eq!(claim_now(&bench, "a", 1).await, []);
    bench.clock.advance(MINUTE);
    let again = claim_now(&bench, "a", 1).await.remove(0);
    assert_eq!((again.id, again.attempts), (id, 1), "it does not count");
}

async fn erasing_a_user_removes_deliveries(bench: Bench) {
    // OPS-7
    add_delivery(&bench, "a").await;
    let alice = bench.alice;
    let bob = bench.bob;
    write!(bench, tx => data::erase(tx, bob)).unwrap();
    assert_eq!(claim_now(&bench, "a", 9).await.len(), 1);
    write!(bench, tx => data::erase(tx, alice)).unwrap();
    bench.clock.advance(MINUTE);
    assert_eq!(claim_now(&bench, "a", 9).await, []);
}

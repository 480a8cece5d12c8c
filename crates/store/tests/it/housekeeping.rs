//! Housekeeping removes what is past its time, and only that.

use std::time::Duration;

use jiff::SignedDuration;
use model::conversation::{Id, Message, Role};
use store::housekeeping::{Removed, Retention, sweep};
use store::idempotency::{Key, claim};
use store::{conversations, tokens};

use crate::{Bench, on_both, write};

on_both!(old_things_go, everything_can_be_kept);

const DAY: u64 = 24 * 3600;

async fn converse(bench: &Bench, id: &str) {
    let (alice, now, id): (_, _, Id) = (bench.alice, bench.now(), id.parse().unwrap());
    let message = Message {
        id: bench.clock.id(),
        role: Role::User,
        content: "hi".into(),
        timestamp: now,
        tool_calls: Vec::new(),
        pending: None,
    };
    write!(bench, tx => conversations::append(tx, alice, &id, &[message], now)).unwrap();
}

async fn old_things_go(bench: Bench) {
    // OPS-7
    let (alice, now) = (bench.alice, bench.now());
    for n in 0..3 {
        converse(&bench, &format!("conv_{n}")).await;
    }
    let key = Key { key: "k".into(), fingerprint: "f".into() };
    write!(bench, tx => claim(tx, alice, &key, now)).unwrap();
    write!(bench, tx => tokens::revoke(tx, "t", now + Duration::from_secs(60), now)).unwrap();
    let task = bench.add(alice, bench.titled("tasks are never swept")).await;

    bench.clock.advance(Duration::from_secs(30 * DAY - 10));
    converse(&bench, "conv_1").await;
    bench.clock.advance(Duration::from_secs(20));
    let retention = Retention { conversations: Some(SignedDuration::from_hours(30 * 24)) };
    let removed = sweep(&bench.store, retention, bench.now()).await.unwrap();
    assert_eq!(removed, Removed { conversations: 2, idempotency_keys: 1, revoked_tokens: 1 });
    assert_eq!(sweep(&bench.store, retention, bench.now()).await.unwrap(), Removed::default());
    let mut reader = bench.store.reader().await.unwrap();
    let left = conversations::list(&mut reader, alice, None, None, 50).await.unwrap().rows;
    assert_eq!(left.len(), 1);
    assert_eq!((left[0].id.to_string().as_str(), left[0].message_count), ("conv_1", 2));
    store::tasks::get(&mut reader, alice, task.id).await.unwrap();
}

async fn everything_can_be_kept(bench: Bench) {
    converse(&bench, "conv_1").await;
    bench.clock.advance(Duration::from_secs(1000 * DAY));
    let removed = sweep(&bench.store, Retention { conversations: None }, bench.now()).await.unwrap();
    assert_eq!(removed, Removed::default());
}

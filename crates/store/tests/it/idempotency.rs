//! Idempotency keys: a repeated request is executed once, a different request is rejected, keys expire after a day.

use std::time::Duration;

use model::UserId;
use store::idempotency::{IdempotencyKey, StoredReply, claim, run_once, save_reply};
use store::undo::UndoStep;
use store::{Error, tasks};

use crate::{Bench, on_both, write};

on_both!(
    a_repeated_request_returns_the_stored_reply,
    a_key_cannot_be_used_for_another_request,
    a_key_is_busy_until_its_reply_is_stored,
    keys_expire_after_a_day,
    a_failed_request_releases_its_key
);

fn key(key: &str, fingerprint: &str) -> IdempotencyKey {
    IdempotencyKey { key: key.into(), fingerprint: fingerprint.into() }
}

/// Creates a task with a key. Returns the title in the reply, and true if the reply is a stored one.
async fn create(bench: &Bench, owner: UserId, key: IdempotencyKey, title: &str) -> store::Result<(String, bool)> {
    let task = bench.titled(title);
    let now = bench.now();
    let (reply, earlier) = bench
        .store
        .owner_transaction::<_, Error, _>(owner, async move |tx| {
            run_once(tx, owner, Some(&key), now, async move |tx| {
                let mut step = UndoStep::begin(tx, owner).await?;
                tasks::create(tx, &mut step, &task).await?;
                Ok(StoredReply { status: 201, body: task.title })
            })
            .await
        })
        .await?;
    assert_eq!(reply.status, 201);
    Ok((reply.body, earlier))
}

async fn a_repeated_request_returns_the_stored_reply(bench: Bench) {
    // CHAT-6
    assert_eq!(create(&bench, bench.alice, key("k", "f"), "first").await.unwrap(), ("first".into(), false));
    assert_eq!(create(&bench, bench.alice, key("k", "f"), "again").await.unwrap(), ("first".into(), true));
    assert_eq!(create(&bench, bench.bob, key("k", "g"), "bob's").await.unwrap(), ("bob's".into(), false));
    let mut reader = bench.store.reader().await.unwrap();
    let page = tasks::list(&mut reader, bench.alice, &model::task::TaskFilter::default(), None, 50).await.unwrap();
    assert_eq!(page.rows.len(), 1);
}

async fn a_key_cannot_be_used_for_another_request(bench: Bench) {
    create(&bench, bench.alice, key("k", "f"), "first").await.unwrap();
    assert!(matches!(create(&bench, bench.alice, key("k", "g"), "other").await, Err(Error::KeyReused)));
}

async fn a_key_is_busy_until_its_reply_is_stored(bench: Bench) {
    let alice = bench.alice;
    let now = bench.now();
    assert_eq!(write!(bench, tx => claim(tx, alice, &key("k", "f"), now)).unwrap(), None);
    assert!(matches!(write!(bench, tx => claim(tx, alice, &key("k", "f"), now)), Err(Error::KeyBusy)));
    let reply = StoredReply { status: 200, body: "done".into() };
    let saved = reply.clone();
    write!(bench, tx => save_reply(tx, alice, &key("k", "f"), now, &saved)).unwrap();
    assert_eq!(write!(bench, tx => claim(tx, alice, &key("k", "f"), now)).unwrap(), Some(reply));
}

async fn keys_expire_after_a_day(bench: Bench) {
    // CHAT-6, OPS-7
    create(&bench, bench.alice, key("k", "f"), "first").await.unwrap();
    bench.clock.advance(Duration::from_secs(24 * 3600 - 1));
    assert!(create(&bench, bench.alice, key("k", "f"), "again").await.unwrap().1);
    bench.clock.advance(Duration::from_secs(1));
    assert_eq!(create(&bench, bench.alice, key("k", "g"), "new").await.unwrap(), ("new".into(), false));
}

async fn a_failed_request_releases_its_key(bench: Bench) {
    let alice = bench.alice;
    let now = bench.now();
    let failed = bench
        .transaction(async move |tx| {
            run_once(tx, alice, Some(&key("k", "f")), now, async |_| Err(Error::NotFound)).await
        })
        .await;
    assert!(failed.is_err());
    assert!(!create(&bench, bench.alice, key("k", "g"), "now").await.unwrap().1);
}

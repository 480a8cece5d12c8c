//! Idempotency keys: the same request once, another request refused, forgotten after a day.

use std::time::Duration;

use model::UserId;
use store::idempotency::{Key, Reply, claim, once, settle};
use store::undo::Step;
use store::{Error, tasks};

use crate::{Bench, on_both, write};

on_both!(carried_out_once, another_request_is_refused, still_at_work, forgotten_after_a_day, a_failure_frees_the_key);

fn key(key: &str, fingerprint: &str) -> Key {
    Key { key: key.into(), fingerprint: fingerprint.into() }
}

/// Creates a task under a key; the title of the task that the answer names, and whether it is an earlier answer.
async fn create(bench: &Bench, owner: UserId, key: Key, title: &str) -> store::Result<(String, bool)> {
    let task = bench.titled(title);
    let now = bench.now();
    let (reply, earlier) = bench
        .transaction(async move |tx| {
            once(tx, owner, Some(&key), now, async move |tx| {
                let mut step = Step::begin(tx, owner).await?;
                tasks::create(tx, &mut step, &task).await?;
                Ok(Reply { status: 201, body: task.title })
            })
            .await
        })
        .await?;
    assert_eq!(reply.status, 201);
    Ok((reply.body, earlier))
}

async fn carried_out_once(bench: Bench) {
    assert_eq!(create(&bench, bench.alice, key("k", "f"), "first").await.unwrap(), ("first".into(), false));
    assert_eq!(create(&bench, bench.alice, key("k", "f"), "again").await.unwrap(), ("first".into(), true));
    assert_eq!(create(&bench, bench.bob, key("k", "g"), "bob's").await.unwrap(), ("bob's".into(), false));
    let mut reader = bench.store.reader().await.unwrap();
    let page = tasks::list(&mut reader, bench.alice, &model::task::Filter::default(), None, 50).await.unwrap();
    assert_eq!(page.rows.len(), 1);
}

async fn another_request_is_refused(bench: Bench) {
    create(&bench, bench.alice, key("k", "f"), "first").await.unwrap();
    assert!(matches!(create(&bench, bench.alice, key("k", "g"), "other").await, Err(Error::KeyReused)));
}

async fn still_at_work(bench: Bench) {
    let alice = bench.alice;
    let now = bench.now();
    assert_eq!(write!(bench, tx => claim(tx, alice, &key("k", "f"), now)).unwrap(), None);
    assert!(matches!(write!(bench, tx => claim(tx, alice, &key("k", "f"), now)), Err(Error::KeyBusy)));
    let reply = Reply { status: 200, body: "done".into() };
    let given = reply.clone();
    write!(bench, tx => settle(tx, alice, &key("k", "f"), now, &given)).unwrap();
    assert_eq!(write!(bench, tx => claim(tx, alice, &key("k", "f"), now)).unwrap(), Some(reply));
}

async fn forgotten_after_a_day(bench: Bench) {
    create(&bench, bench.alice, key("k", "f"), "first").await.unwrap();
    bench.clock.advance(Duration::from_secs(24 * 3600 - 1));
    assert!(create(&bench, bench.alice, key("k", "f"), "again").await.unwrap().1);
    bench.clock.advance(Duration::from_secs(1));
    assert_eq!(create(&bench, bench.alice, key("k", "g"), "new").await.unwrap(), ("new".into(), false));
}

async fn a_failure_frees_the_key(bench: Bench) {
    let alice = bench.alice;
    let now = bench.now();
    let failed = bench
        .transaction(async move |tx| once(tx, alice, Some(&key("k", "f")), now, async |_| Err(Error::NotFound)).await)
        .await;
    assert!(failed.is_err());
    assert!(!create(&bench, bench.alice, key("k", "g"), "now").await.unwrap().1);
}

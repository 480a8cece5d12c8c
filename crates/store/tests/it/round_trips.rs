//! The number of round trips to PostgreSQL. A database in another zone makes each of them expensive.

use store::idempotency::{IdempotencyKey, StoredReply, run_once};
use store::undo::UndoStep;
use store::{Durability, Error, Location, PostgresSettings, Store, tasks};
use testkit::proxy::TcpProxy;

use crate::{Bench, on_postgres};

on_postgres!(a_keyed_creation_takes_three_round_trips, texts_are_stored_unchanged);

const WRITES: u64 = 20;

/// Creates a task with an idempotency key, as a handler does.
async fn create(bench: &Bench, store: &Store, number: u64) -> store::Result<()> {
    let owner = bench.alice;
    let now = bench.now();
    let task = bench.titled("a task");
    let key = IdempotencyKey { key: format!("key-{number}"), fingerprint: "f".to_owned() };
    let created = store.owner_transaction::<_, Error, _>(owner, async move |tx| {
        run_once(tx, owner, Some(&key), now, async move |tx| {
            let mut step = UndoStep::begin(tx, owner).await?;
            tasks::create(tx, &mut step, &task).await?;
            Ok::<_, Error>(StoredReply { status: 201, body: task.title })
        })
        .await
    });
    created.await.map(drop)
}

async fn a_keyed_creation_takes_three_round_trips(bench: Bench) {
    // OPS-5
    let Location::Postgres(settings) = &bench.location else { panic!("not PostgreSQL") };
    let server = settings.url.split(['@', '/']).nth(3).unwrap();
    let proxy = TcpProxy::start(server).await;
    // Two connections: the pool tests one after the answer, and the next write uses the other.
    let settings =
        PostgresSettings { max_connections: 2, ..PostgresSettings::new(settings.url.replace(server, &proxy.address)) };
    let store = Store::open(&Location::Postgres(settings), Durability::Full).await.unwrap();
    // The first statements of a connection are prepared.
    for number in 0..WRITES {
        create(&bench, &store, number).await.unwrap();
    }
    let before = proxy.round_trips();
    for number in WRITES..2 * WRITES {
        create(&bench, &store, number).await.unwrap();
    }
    // The begin with the lock, the claim of the key, and the changes with the commit. No caller waits for the fourth one, with
    // which the pool tests the connection afterwards.
    let taken = proxy.round_trips() - before;
    assert!((3 * WRITES..=4 * WRITES).contains(&taken), "{taken} round trips for {WRITES} writes");
    assert_eq!(bench.titles(bench.alice).await.len(), 2 * WRITES as usize);
}

async fn texts_are_stored_unchanged(bench: Bench) {
    // SEC-2
    let titles = ["it's", r"back\slash \' end\", "$1 $2; --", "/* ' */ E'", "ünï 🦀"];
    for title in titles {
        bench.add(bench.alice, bench.titled(title)).await;
    }
    assert_eq!(bench.titles(bench.alice).await, titles);
}

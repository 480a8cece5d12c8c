//! A pooler that gives each transaction another server connection.

use futures::future::join_all;
use model::UserId;
use store::hints::Hint;
use store::{Durability, Error, Location, Pooler, PostgresSettings, Store, tasks};
use uuid::Uuid;

use crate::{Bench, on_postgres};

on_postgres!(
    a_pooler_without_the_setting_is_rejected,
    nodes_work_behind_a_pooler,
    hints_need_a_direct_connection_behind_a_pooler
);

/// Returns the settings for the database of the bench through PgBouncer, which pools transactions.
fn pooled(bench: &Bench) -> PostgresSettings {
    let Location::Postgres(direct) = &bench.location else { panic!("not PostgreSQL") };
    let pooler = std::env::var("ADJUTANT_TEST_PGBOUNCER")
        .unwrap_or_else(|_| panic!("ADJUTANT_TEST_PGBOUNCER is not set: eval \"$(scripts/postgres)\""));
    let name = direct.url.rsplit('/').next().unwrap();
    PostgresSettings { pooler: Pooler::Transaction, ..PostgresSettings::new(format!("{pooler}/{name}")) }
}

async fn a_pooler_without_the_setting_is_rejected(bench: Bench) {
    // OPS-5
    let settings = PostgresSettings { pooler: Pooler::None, ..pooled(&bench) };
    let error = Store::open(&Location::Postgres(settings), Durability::Full).await.unwrap_err();
    assert!(matches!(error, Error::Pooler), "{error}");
    assert!(error.to_string().contains("database.pooler = \"transaction\""), "{error}");
}

async fn nodes_work_behind_a_pooler(bench: Bench) {
    // OPS-5
    let location = Location::Postgres(pooled(&bench));
    let one = Store::open(&location, Durability::Full).await.unwrap();
    let two = Store::open(&location, Durability::Full).await.unwrap();
    let owner = |number: u128| UserId::new(Uuid::from_u128(number % 8));
    let writes = (0..80).map(|number| {
        let owner = owner(number);
        let task = bench.titled("it's $1 task");
        let store = if number % 2 == 0 { &one } else { &two };
        store.owner_transaction(owner, async move |tx| {
            let mut step = store::undo::UndoStep::begin(tx, owner).await?;
            tasks::create(tx, &mut step, &task).await
        })
    });
    for written in join_all(writes).await {
        written.unwrap();
    }
    let reads = (0..8).map(async |number| {
        let mut reader = two.owner_reader(owner(number)).await.unwrap();
        tasks::list(&mut reader, owner(number), &Default::default(), None, 50).await.unwrap().rows.len()
    });
    assert_eq!(join_all(reads).await, [10; 8]);
    let mut snapshot = one.snapshot().await.unwrap();
    let first = tasks::list(&mut snapshot, owner(0), &Default::default(), None, 1).await.unwrap();
    assert_eq!(first.rows[0].title, "it's $1 task");
    one.ping().await.unwrap();
}

async fn hints_need_a_direct_connection_behind_a_pooler(bench: Bench) {
    // OPS-5
    let Location::Postgres(direct) = &bench.location else { panic!("not PostgreSQL") };
    let polling = Store::open(&Location::Postgres(pooled(&bench)), Durability::Full).await.unwrap();
    assert!(polling.hint_listener().is_none());
    let settings = PostgresSettings { direct_url: Some(direct.url.clone()), ..pooled(&bench) };
    let listening = Store::open(&Location::Postgres(settings), Durability::Full).await.unwrap();
    let mut listener = listening.hint_listener().unwrap();
    assert_eq!(listener.next().await, [Hint::Everything]);
    let sent = polling.transaction(async |tx| {
        store::hints::queue_changed(tx, "an-agent");
        Ok::<_, Error>(())
    });
    sent.await.unwrap();
    assert_eq!(listener.next().await, [Hint::Queue("an-agent".to_owned())]);
}

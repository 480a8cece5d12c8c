//! Timeouts and conflicts of PostgreSQL: they are temporary, and a failed statement is never acknowledged.

use std::time::Duration;

use model::UserId;
use sqlx::{Connection, PgConnection};
use store::{Durability, Error, Location, PostgresSettings, Store, tasks};
use testkit::proxy::TcpProxy;
use tokio::sync::oneshot;

use crate::{Bench, on_postgres};

on_postgres!(
    an_exceeded_timeout_is_temporary,
    a_write_waits_for_its_turn_within_a_limit,
    writes_do_not_depend_on_the_isolation_of_the_server,
    an_ignored_failure_is_not_acknowledged,
    lost_connections_are_replaced
);

fn settings_of(bench: &Bench) -> PostgresSettings {
    let Location::Postgres(settings) = &bench.location else { panic!("not PostgreSQL") };
    settings.clone()
}

async fn open(settings: PostgresSettings) -> Store {
    Store::open(&Location::Postgres(settings), Durability::Full).await.unwrap()
}

async fn add(bench: &Bench, store: &Store, owner: UserId) -> store::Result<()> {
    let task = bench.titled("a task");
    let added = store.owner_transaction(owner, async move |tx| {
        let mut step = store::undo::UndoStep::begin(tx, owner).await?;
        tasks::create(tx, &mut step, &task).await
    });
    added.await
}

async fn an_exceeded_timeout_is_temporary(bench: Bench) {
    // OPS-5
    let short = Duration::from_millis(100);
    let mut blocker = PgConnection::connect(&settings_of(&bench).url).await.unwrap();
    sqlx::raw_sql("BEGIN; LOCK TABLE tasks").execute(&mut blocker).await.unwrap();
    let of_locks = PostgresSettings { lock_timeout: short, ..settings_of(&bench) };
    let of_statements = PostgresSettings { statement_timeout: Some(short), ..settings_of(&bench) };
    for settings in [of_locks, of_statements] {
        let store = open(settings).await;
        let error = add(&bench, &store, bench.alice).await.unwrap_err();
        assert!(matches!(error, Error::Unavailable(_)), "{error}");
    }
    sqlx::raw_sql("ROLLBACK").execute(&mut blocker).await.unwrap();
    add(&bench, &bench.store, bench.alice).await.unwrap();
}

async fn a_write_waits_for_its_turn_within_a_limit(bench: Bench) {
    // OPS-5
    let store = open(PostgresSettings { lock_timeout: Duration::from_millis(100), ..settings_of(&bench) }).await;
    let (entered, has_entered) = oneshot::channel();
    let (proceed, may_proceed) = oneshot::channel::<()>();
    let first = store.owner_transaction(bench.alice, async move |_| {
        entered.send(()).unwrap();
        may_proceed.await.unwrap();
        Ok::<_, Error>(())
    });
    let others = async {
        has_entered.await.unwrap();
        for _ in 0..3 {
            let refused = futures::join!(add(&bench, &store, bench.alice), add(&bench, &store, bench.alice));
            assert!(matches!(refused, (Err(Error::Unavailable(_)), Err(Error::Unavailable(_)))), "{refused:?}");
        }
        add(&bench, &store, bench.bob).await.unwrap();
        proceed.send(()).unwrap();
    };
    let (first, ()) = futures::join!(first, others);
    first.unwrap();
    add(&bench, &store, bench.alice).await.unwrap();
}

async fn writes_do_not_depend_on_the_isolation_of_the_server(bench: Bench) {
    // OPS-5
    let mut admin = PgConnection::connect(&settings_of(&bench).url).await.unwrap();
    let name = settings_of(&bench).url.rsplit('/').next().unwrap().to_owned();
    let serializable = format!("ALTER DATABASE {name} SET default_transaction_isolation = 'serializable'");
    sqlx::raw_sql(sqlx::AssertSqlSafe(serializable)).execute(&mut admin).await.unwrap();
    let one = open(settings_of(&bench)).await;
    let two = open(settings_of(&bench)).await;
    let writes = (0..60).map(|number| add(&bench, if number % 2 == 0 { &one } else { &two }, bench.alice));
    for written in futures::future::join_all(writes).await {
        written.unwrap();
    }
    assert_eq!(bench.titles(bench.alice).await.len(), 60);
}

async fn an_ignored_failure_is_not_acknowledged(bench: Bench) {
    // TASK-5
    let mut admin = PgConnection::connect(&settings_of(&bench).url).await.unwrap();
    sqlx::raw_sql("ALTER TABLE conversations RENAME TO other").execute(&mut admin).await.unwrap();
    let owner = bench.alice;
    let task = bench.titled("a task");
    let added = bench.store.owner_transaction(owner, async move |tx| {
        let mut step = store::undo::UndoStep::begin(tx, owner).await?;
        tasks::create(tx, &mut step, &task).await?;
        let ignored = store::conversations::delete(tx, owner, &"conv_x".parse().unwrap()).await;
        assert!(ignored.is_err());
        Ok::<_, Error>(())
    });
    assert!(matches!(added.await, Err(Error::Unavailable(_))));
    assert!(bench.titles(owner).await.is_empty());
}

async fn lost_connections_are_replaced(bench: Bench) {
    // OPS-2
    let url = settings_of(&bench).url;
    let server = url.split(['@', '/']).nth(3).unwrap();
    let proxy = TcpProxy::start(server).await;
    let store = open(PostgresSettings::new(url.replace(server, &proxy.address))).await;
    // All connections of the pool are open and idle.
    let readers = (0..16).map(|_| store.reader());
    drop(futures::future::join_all(readers).await);
    store.ping().await.unwrap();
    proxy.cut();
    assert!(store.ping().await.is_err());
    proxy.restore();
    store.ping().await.unwrap();
    let list = async || {
        let mut reader = store.reader().await?;
        tasks::list(&mut reader, bench.alice, &Default::default(), None, 9).await
    };
    for listed in futures::future::join_all((0..16).map(|_| list())).await {
        listed.unwrap();
    }
    add(&bench, &store, bench.alice).await.unwrap();
}

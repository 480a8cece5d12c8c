//! Migrations: nodes may start together, data survives a restart, and a newer schema is rejected unchanged.

use model::task::TaskFilter;
use store::{Durability, Error, Location, Store, tasks};

use crate::{Bench, on_both};

on_both!(reopening_keeps_the_data, a_newer_schema_is_rejected);

async fn reopening_keeps_the_data(bench: Bench) {
    // TASK-5
    let task = bench.add(bench.alice, bench.titled("still here")).await;
    let again = Store::open(&bench.location, Durability::Full).await.unwrap();
    let page = tasks::list(&mut again.reader().await.unwrap(), bench.alice, &TaskFilter::default(), None, 50).await;
    assert_eq!(page.unwrap().rows, [task]);
}

async fn a_newer_schema_is_rejected(bench: Bench) {
    let sql = "INSERT INTO schema_steps (version, digest) VALUES (999, 'newer')";
    match &bench.location {
        Location::Sqlite(path) => {
            rusqlite::Connection::open(path).unwrap().execute_batch(sql).unwrap();
        }
        Location::Postgres(settings) => {
            let mut conn = <sqlx::PgConnection as sqlx::Connection>::connect(&settings.url).await.unwrap();
            sqlx::raw_sql(sql).execute(&mut conn).await.unwrap();
        }
    }
    let error = Store::open(&bench.location, Durability::Full).await.unwrap_err();
    assert!(matches!(error, Error::NewerSchema { found: 999, .. }), "{error}");
}

#[tokio::test]
async fn an_edited_migration_is_rejected() {
    let bench = Bench::sqlite().await;
    let Location::Sqlite(path) = &bench.location else { panic!("not SQLite") };
    rusqlite::Connection::open(path).unwrap().execute_batch("UPDATE schema_steps SET digest = 'other'").unwrap();
    let error = Store::open(&bench.location, Durability::Full).await.unwrap_err();
    assert!(matches!(error, Error::ChangedMigration { version: 1 }), "{error}");
}

#[tokio::test]
async fn the_database_file_may_be_a_symlink() {
    let bench = Bench::sqlite().await;
    let task = bench.add(bench.alice, bench.titled("still here")).await;
    let Location::Sqlite(path) = &bench.location else { panic!("not SQLite") };
    let other_dir = tempfile::tempdir().unwrap();
    let link = other_dir.path().join("adjutant.db");
    std::os::unix::fs::symlink(path, &link).unwrap();
    let store = Store::open(&Location::Sqlite(link), Durability::Full).await.unwrap();
    let page = tasks::list(&mut store.reader().await.unwrap(), bench.alice, &TaskFilter::default(), None, 50).await;
    assert_eq!(page.unwrap().rows, [task]);
    assert!(!other_dir.path().join("adjutant.db-wal").exists(), "the WAL lies beside the real file");
}

#[tokio::test]
async fn postgres_nodes_may_start_together() {
    // OPS-5
    let url = testkit::postgres::create_database().await.unwrap();
    let location = Location::postgres(url);
    let nodes = (0..8).map(|_| Store::open(&location, Durability::Full));
    for node in futures::future::join_all(nodes).await {
        node.unwrap().ping().await.unwrap();
    }
}

#[tokio::test]
async fn an_unreachable_server_is_reported() {
    for url in ["postgres://adjutant@127.0.0.1:1/none", "not a url"] {
        let error = Store::open(&Location::postgres(url), Durability::Full).await.unwrap_err();
        assert!(matches!(error, Error::Unavailable(_) | Error::InvalidUrl(_)), "{error:?}");
    }
}

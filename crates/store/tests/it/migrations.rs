//! Migrations: nodes may start together, data survives a restart, a newer schema is refused untouched.

use model::task::Filter;
use store::{Durability, Error, Location, Store, tasks};

use crate::{Bench, on_both};

on_both!(opening_again_keeps_the_data, a_newer_schema_is_refused);

async fn opening_again_keeps_the_data(bench: Bench) {
    let task = bench.add(bench.alice, bench.titled("still here")).await;
    let again = Store::open(&bench.location, Durability::Full).await.unwrap();
    let page = tasks::list(&mut again.reader().await.unwrap(), bench.alice, &Filter::default(), None, 50).await;
    assert_eq!(page.unwrap().rows, [task]);
}

async fn a_newer_schema_is_refused(bench: Bench) {
    let sql = "INSERT INTO schema_steps (version, digest) VALUES (999, 'of the future')";
    match &bench.location {
        Location::Sqlite(path) => {
            rusqlite::Connection::open(path).unwrap().execute_batch(sql).unwrap();
        }
        Location::Postgres(url) => {
            let mut conn = <sqlx::PgConnection as sqlx::Connection>::connect(url).await.unwrap();
            sqlx::raw_sql(sql).execute(&mut conn).await.unwrap();
        }
    }
    let refused = Store::open(&bench.location, Durability::Full).await.unwrap_err();
    assert!(matches!(refused, Error::NewerSchema { found: 999, .. }), "{refused}");
}

#[tokio::test]
async fn an_edited_step_is_refused() {
    let bench = Bench::sqlite().await;
    let Location::Sqlite(path) = &bench.location else { panic!("not SQLite") };
    rusqlite::Connection::open(path).unwrap().execute_batch("UPDATE schema_steps SET digest = 'other'").unwrap();
    let refused = Store::open(&bench.location, Durability::Full).await.unwrap_err();
    assert!(matches!(refused, Error::ChangedMigration { version: 1 }), "{refused}");
}

#[tokio::test]
async fn a_file_may_be_a_link() {
    let bench = Bench::sqlite().await;
    let task = bench.add(bench.alice, bench.titled("still here")).await;
    let Location::Sqlite(path) = &bench.location else { panic!("not SQLite") };
    let elsewhere = tempfile::tempdir().unwrap();
    let link = elsewhere.path().join("adjutant.db");
    std::os::unix::fs::symlink(path, &link).unwrap();
    let store = Store::open(&Location::Sqlite(link), Durability::Full).await.unwrap();
    let page = tasks::list(&mut store.reader().await.unwrap(), bench.alice, &Filter::default(), None, 50).await;
    assert_eq!(page.unwrap().rows, [task]);
    assert!(!elsewhere.path().join("adjutant.db-wal").exists(), "its log is beside the file itself");
}

#[tokio::test]
async fn postgres_nodes_may_start_together() {
    let url = testkit::postgres::database().await.unwrap();
    let location = Location::Postgres(url);
    let nodes = (0..8).map(|_| Store::open(&location, Durability::Full));
    for node in futures::future::join_all(nodes).await {
        node.unwrap().ping().await.unwrap();
    }
}

#[tokio::test]
async fn what_cannot_be_reached_says_so() {
    for url in ["postgres://adjutant@127.0.0.1:1/none", "not a url"] {
        let error = Store::open(&Location::Postgres(url.into()), Durability::Full).await.unwrap_err();
        assert!(matches!(error, Error::Unavailable(_) | Error::Url(_)), "{error:?}");
    }
}

//! Storage faults: writes fail with the cause, health checks notice them, and a closed database file is complete.

use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use model::task::TaskFilter;
use store::undo::UndoStep;
use store::{Durability, Error, Location, StorageFault, Store, tasks};

use crate::{Bench, on_both};

on_both!(another_schema_is_noticed, a_test_write_succeeds);

const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);

fn file_of(bench: &Bench) -> PathBuf {
    let Location::Sqlite(path) = &bench.location else { panic!("not SQLite") };
    path.clone()
}

fn wal_of(database: &Path) -> PathBuf {
    database.with_extension("db-wal")
}

/// Adds a task.
async fn add(bench: &Bench, store: &Store) -> store::Result<()> {
    let task = bench.titled("a task");
    let owner = bench.alice;
    let added = store.owner_transaction(owner, async move |tx| {
        let mut step = UndoStep::begin(tx, owner).await?;
        tasks::create(tx, &mut step, &task).await.map(drop)
    });
    added.await
}

/// Adds a task and returns the storage fault of the failure.
async fn fault_of_write(bench: &Bench) -> Option<StorageFault> {
    match add(bench, &bench.store).await {
        Err(Error::Storage(fault)) => Some(fault),
        _ => None,
    }
}

async fn fault_of_ping(store: &Store) -> Option<StorageFault> {
    match store.ping().await {
        Err(Error::Storage(fault)) => Some(fault),
        _ => None,
    }
}

async fn execute(location: &Location, sql: &'static str) {
    match location {
        Location::Sqlite(path) => rusqlite::Connection::open(path).unwrap().execute_batch(sql).unwrap(),
        Location::Postgres(settings) => {
            let mut conn = <sqlx::PgConnection as sqlx::Connection>::connect(&settings.url).await.unwrap();
            sqlx::raw_sql(sql).execute(&mut conn).await.unwrap();
        }
    }
}

async fn another_schema_is_noticed(bench: Bench) {
    // OPS-2
    bench.store.ping().await.unwrap();
    execute(&bench.location, "INSERT INTO schema_steps (version, digest) VALUES (999, 'newer')").await;
    assert_eq!(fault_of_ping(&bench.store).await, Some(StorageFault::WrongSchema));
    execute(&bench.location, "DELETE FROM schema_steps WHERE version = 999").await;
    bench.store.ping().await.unwrap();
    execute(&bench.location, "DROP TABLE schema_steps").await;
    assert_eq!(fault_of_ping(&bench.store).await, Some(StorageFault::WrongSchema));
}

async fn a_test_write_succeeds(bench: Bench) {
    // OPS-2
    bench.store.test_write().await.unwrap();
    bench.store.test_write().await.unwrap();
    bench.store.ping().await.unwrap();
}

#[tokio::test]
async fn a_missing_table_of_postgres_is_a_fault_and_fails_the_next_ping() {
    // OPS-2
    let bench = Bench::postgres().await;
    execute(&bench.location, "ALTER TABLE tasks RENAME COLUMN title TO name").await;
    assert_eq!(fault_of_write(&bench).await, Some(StorageFault::WrongSchema));
    execute(&bench.location, "ALTER TABLE revoked_tokens RENAME TO other").await;
    assert_eq!(fault_of_ping(&bench.store).await, Some(StorageFault::WrongSchema), "the test write fails");
    execute(&bench.location, "ALTER TABLE other RENAME TO revoked_tokens").await;
    bench.store.ping().await.unwrap();
}

#[tokio::test]
async fn a_removed_or_replaced_file_refuses_writes() {
    // TASK-5
    for remove in [
        |database: &Path| std::fs::remove_file(database).unwrap(),
        |database: &Path| std::fs::remove_file(wal_of(database)).unwrap(),
        |database: &Path| std::fs::remove_dir_all(database.parent().unwrap()).unwrap(),
        |database: &Path| {
            std::fs::copy(database, database.with_extension("copy")).unwrap();
            std::fs::rename(database.with_extension("copy"), database).unwrap();
        },
    ] {
        let bench = Bench::sqlite().await;
        bench.add(bench.alice, bench.titled("stored")).await;
        remove(&file_of(&bench));
        assert_eq!(fault_of_write(&bench).await, Some(StorageFault::FileReplaced));
        assert_eq!(fault_of_ping(&bench.store).await, Some(StorageFault::FileReplaced));
    }
}

#[tokio::test]
async fn a_damaged_file_fails_every_later_ping() {
    // OPS-2
    let bench = Bench::sqlite().await;
    for number in 0..200 {
        bench.add(bench.alice, bench.titled(&format!("task {number}"))).await;
    }
    bench.store.close(CLOSE_TIMEOUT).unwrap();
    let path = file_of(&bench);
    let mut file = std::fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).unwrap();
    // Only pages with titles, so that the database can be opened.
    let has_title = |page: &[u8]| page.windows(8).any(|text| text == b"task 150");
    let damaged: Vec<_> = bytes.chunks_mut(4096).filter(|page| has_title(page)).collect();
    assert!(!damaged.is_empty());
    for page in damaged {
        page[..16].fill(0xff);
    }
    file.seek(SeekFrom::Start(0)).unwrap();
    file.write_all(&bytes).unwrap();
    let store = Store::open(&bench.location, Durability::Full).await.unwrap();
    store.ping().await.unwrap();
    let mut reader = store.reader().await.unwrap();
    let listed = tasks::list(&mut reader, bench.alice, &TaskFilter::default(), None, 500).await;
    assert!(matches!(listed, Err(Error::Storage(StorageFault::Damaged))), "{listed:?}");
    assert_eq!(fault_of_ping(&store).await, Some(StorageFault::Damaged));
    store.test_write().await.unwrap();
    assert_eq!(
        fault_of_ping(&store).await,
        Some(StorageFault::Damaged),
        "a write succeeds, but the file stays damaged"
    );
}

#[tokio::test]
async fn a_closed_database_file_is_complete_without_its_wal() {
    // OPS-4
    for tasks in [1, 3, 300] {
        let bench = Bench::sqlite().await;
        for number in 0..tasks {
            bench.add(bench.alice, bench.titled(&format!("task {number}"))).await;
        }
        let reader = bench.store.reader().await.unwrap();
        drop(reader);
        bench.store.close(CLOSE_TIMEOUT).unwrap();
        assert!(matches!(add(&bench, &bench.store).await, Err(Error::Unavailable(_))), "later writes fail");
        let elsewhere = tempfile::tempdir().unwrap();
        let copy = elsewhere.path().join("adjutant.db");
        std::fs::copy(file_of(&bench), &copy).unwrap();
        let store = Store::open(&Location::Sqlite(copy), Durability::Full).await.unwrap();
        let mut reader = store.reader().await.unwrap();
        let listed = tasks::list(&mut reader, bench.alice, &TaskFilter::default(), None, 500).await.unwrap();
        assert_eq!(listed.rows.len(), tasks);
    }
}

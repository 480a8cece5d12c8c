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

/// Copies the files of an open database, as they are after a kill.
fn copy_after_kill(bench: &Bench) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let copy = directory.path().join("adjutant.db");
    std::fs::copy(file_of(bench), &copy).unwrap();
    std::fs::copy(wal_of(&file_of(bench)), wal_of(&copy)).unwrap();
    (directory, copy)
}

/// Overwrites the headers of the pages that contain `text`. Returns their number.
fn damage_pages(path: &Path, text: &str) -> usize {
    let mut bytes = std::fs::read(path).unwrap();
    let contains = |page: &[u8]| page.windows(text.len()).any(|found| found == text.as_bytes());
    // Not the first page, so that the database can be opened.
    let damaged: Vec<_> = bytes.chunks_mut(4096).skip(1).filter(|page| contains(page)).collect();
    let count = damaged.len();
    for page in damaged {
        page[..16].fill(0xff);
    }
    std::fs::write(path, bytes).unwrap();
    count
}

/// Waits until a condition holds.
async fn until(mut holds: impl AsyncFnMut() -> bool) {
    let wait = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), wait).await.unwrap();
}

#[tokio::test]
async fn a_database_is_checked_after_a_stop_that_was_not_clean() {
    // OPS-2
    let bench = Bench::sqlite().await;
    for number in 0..200 {
        bench.add(bench.alice, bench.titled(&format!("task {number}"))).await;
    }
    let (_directory, killed) = copy_after_kill(&bench);
    let mark = killed.with_extension("db-unchecked");
    let sound = Store::open(&Location::Sqlite(killed.clone()), Durability::Full).await.unwrap();
    until(async || !mark.exists()).await;
    sound.ping().await.unwrap();
    sound.close(CLOSE_TIMEOUT).unwrap();
    store::check_file(&killed).unwrap();
    assert!(damage_pages(&killed, "task 150") > 0);
    let clean = Store::open(&Location::Sqlite(killed.clone()), Durability::Full).await.unwrap();
    assert!(!mark.exists(), "a clean stop needs no check");
    clean.ping().await.unwrap();
    add(&bench, &clean).await.unwrap();
    let wal = std::fs::read(wal_of(&killed)).unwrap();
    clean.close(CLOSE_TIMEOUT).unwrap();
    drop(clean);
    std::fs::write(wal_of(&killed), wal).unwrap();
    for _ in 0..2 {
        let damaged = Store::open(&Location::Sqlite(killed.clone()), Durability::Full).await.unwrap();
        until(async || fault_of_ping(&damaged).await == Some(StorageFault::Damaged)).await;
        damaged.close(CLOSE_TIMEOUT).unwrap();
        assert!(mark.exists(), "the next start checks again");
    }
    assert!(matches!(store::check_file(&killed), Err(Error::Storage(StorageFault::Damaged))));
}

#[tokio::test]
async fn the_readable_rows_of_a_damaged_file_are_recovered() {
    // OPS-7
    const TASKS: usize = 2000;
    let bench = Bench::sqlite().await;
    let owner = bench.alice;
    let new: Vec<_> = (0..TASKS).map(|number| bench.titled(&format!("task {number:04}"))).collect();
    let added = bench.store.owner_transaction(owner, async move |tx| -> store::Result<()> {
        for task in &new {
            let mut step = UndoStep::begin(tx, owner).await?;
            tasks::create(tx, &mut step, task).await?;
        }
        Ok(())
    });
    added.await.unwrap();
    bench.store.close(CLOSE_TIMEOUT).unwrap();
    let path = file_of(&bench);
    for title in ["task 0150", "task 0151", "task 1200"] {
        assert!(damage_pages(&path, title) > 0);
    }
    // A WAL with further changes, which must be read and must stay.
    let open = Store::open(&bench.location, Durability::Full).await.unwrap();
    let other = bench.bob;
    let titled = bench.titled("only in the WAL");
    let in_wal = open.owner_transaction(other, async move |tx| {
        let mut step = UndoStep::begin(tx, other).await?;
        tasks::create(tx, &mut step, &titled).await.map(drop)
    });
    in_wal.await.unwrap();
    let directory = tempfile::tempdir().unwrap();
    let damaged = directory.path().join("adjutant.db");
    std::fs::copy(&path, &damaged).unwrap();
    std::fs::copy(wal_of(&path), wal_of(&damaged)).unwrap();
    let files = || (std::fs::read(&damaged).unwrap(), std::fs::read(wal_of(&damaged)).unwrap());
    let before = files();
    let (recovered, outcome) = store::backup::recover(&damaged, directory.path().join("new.db")).await.unwrap();
    assert!(files() == before, "the damaged files are unchanged");
    let of_tasks = outcome.iter().find(|table| table.name == "tasks").unwrap();
    assert_eq!(of_tasks.saved + of_tasks.lost, TASKS as u64 + 1, "{of_tasks:?}");
    assert!(of_tasks.is_damaged && (3..300).contains(&of_tasks.lost), "{of_tasks:?}");
    assert!(outcome.iter().any(|table| table.name == "task_changes" && table.saved > 0));
    // The result is a backup that can be restored.
    let mut backup = store::backup::Backup::begin(&recovered, bench.now()).await.unwrap();
    let mut text = String::new();
    while let Some(chunk) = backup.next().await.unwrap() {
        text.push_str(&chunk);
    }
    let file = directory.path().join("backup.jsonl");
    std::fs::write(&file, text).unwrap();
    let fresh = Store::open(&Location::Sqlite(directory.path().join("fresh.db")), Durability::Full).await.unwrap();
    store::backup::restore(&fresh, file, None).await.unwrap();
    let mut reader = fresh.reader().await.unwrap();
    let count = tasks::count(&mut reader, owner, &TaskFilter::default()).await.unwrap();
    assert_eq!(count as u64, of_tasks.saved - 1);
    assert_eq!(tasks::count(&mut reader, other, &TaskFilter::default()).await.unwrap(), 1);
}

#[tokio::test]
async fn a_file_that_is_no_database_cannot_be_recovered() {
    // OPS-7
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("adjutant.db");
    std::fs::write(&file, vec![7; 8192]).unwrap();
    let recovered = store::backup::recover(&file, directory.path().join("new.db")).await;
    assert!(matches!(recovered, Err(Error::Storage(StorageFault::Damaged))));
}

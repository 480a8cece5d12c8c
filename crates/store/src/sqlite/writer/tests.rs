//! Tests of the writer with a simulated disk.

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};

use rusqlite::Connection;
use tokio::sync::oneshot::error::TryRecvError;

use super::super::queue::{JobSender, job_queue};
use super::*;
use crate::conn::{Conn, DriverConnection, args};
use crate::quotas::QuotaLedger;

/// A writer with a simulated disk. The test decides the result of each sync.
struct WriterBench {
    dir: tempfile::TempDir,
    jobs: JobSender,
    /// `None` once it is started.
    writer: Option<Writer>,
    health: StorageHealth,
    stop: Arc<WriterStop>,
    /// Receives a message when a sync starts.
    sync_started: Receiver<()>,
    sync_result: Sender<io::Result<()>>,
}

impl WriterBench {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let connection = Connection::open(dir.path().join("db")).unwrap();
        connection.pragma_update(None, "journal_mode", "wal").unwrap();
        connection.execute_batch("CREATE TABLE entries (text TEXT)").unwrap();
        connection.busy_timeout(Duration::from_millis(50)).unwrap();
        let (jobs, queue) = job_queue(1000);
        let (sync_start, sync_started) = channel();
        let (sync_result, sync_results) = channel();
        let sync_results = Mutex::new(sync_results);
        let flush = Arc::new(move || {
            sync_start.send(()).unwrap();
            sync_results.lock().unwrap().recv().unwrap()
        });
        let health = StorageHealth::default();
        let stop = Arc::new(WriterStop::default());
        let files = Arc::new(DatabaseFiles::find(&dir.path().join("db")).unwrap());
        let checks = WriterChecks { files, health: health.clone(), stop: stop.clone() };
        let tx =
            Transaction::new(Conn::new(DriverConnection::Sqlite(connection), QuotaLedger::default(), health.clone()));
        let writer = Writer::new(tx, queue, checks, Some(flush)).unwrap();
        Self { dir, jobs, writer: Some(writer), health, stop, sync_started, sync_result }
    }

    /// Starts the writer. All jobs that are queued before are one group.
    fn start(&mut self) {
        let writer = self.writer.take().unwrap();
        std::thread::spawn(move || writer.run());
    }

    /// Queues an insert. Returns a receiver for its execution and one for its answer.
    fn insert(&self, text: &'static str, when: Acknowledge) -> (Receiver<()>, oneshot::Receiver<Result<()>>) {
        self.queue_job(None, "INSERT INTO entries VALUES ($1)", text, when)
    }

    fn queue_job(
        &self,
        owner: Option<UserId>,
        sql: &'static str,
        text: &'static str,
        when: Acknowledge,
    ) -> (Receiver<()>, oneshot::Receiver<Result<()>>) {
        let (ran, has_run) = channel();
        let (answer, answered) = oneshot::channel();
        let job: QueuedJob = Box::new(move |conn| {
            Box::pin(async move {
                let is_kept = conn.run((sql, args![text])).await.is_ok();
                let _ = ran.send(());
                let answer = |committed| -> FinishFn { Box::new(move || answer.send(committed).unwrap()) };
                JobOutcome { is_kept, when, answer: Box::new(answer) }
            })
        });
        block_on(self.jobs.send(owner, job)).unwrap();
        (has_run, answered)
    }

    fn rows(&self) -> Vec<String> {
        let connection = Connection::open(self.dir.path().join("db")).unwrap();
        let mut select = connection.prepare("SELECT text FROM entries ORDER BY rowid").unwrap();
        let rows = select.query_map([], |row| row.get(0)).unwrap();
        rows.collect::<rusqlite::Result<_>>().unwrap()
    }

    fn wal_path(&self) -> PathBuf {
        self.dir.path().join("db-wal")
    }
}

fn broken() -> io::Result<()> {
    Err(io::Error::other("the disk is broken"))
}

#[test]
fn the_next_group_runs_during_the_sync_of_the_previous_one() {
    let mut bench = WriterBench::new();
    let (_, one) = bench.insert("one", Acknowledge::Synced);
    let (_, two) = bench.insert("two", Acknowledge::Synced);
    bench.start();
    bench.sync_started.recv().unwrap();
    let (ran, mut three) = bench.insert("three", Acknowledge::Synced);
    ran.recv().unwrap();
    assert_eq!(bench.rows(), ["one", "two"], "an uncommitted row is not visible");
    assert!(matches!(three.try_recv(), Err(TryRecvError::Empty)));
    bench.sync_result.send(Ok(())).unwrap();
    assert!(one.blocking_recv().unwrap().is_ok() && two.blocking_recv().unwrap().is_ok());
    bench.sync_started.recv().unwrap();
    assert!(matches!(three.try_recv(), Err(TryRecvError::Empty)), "the sync is not finished");
    bench.sync_result.send(Ok(())).unwrap();
    assert!(three.blocking_recv().unwrap().is_ok());
    assert_eq!(bench.rows(), ["one", "two", "three"]);
}

#[test]
fn owners_take_turns_and_share_small_groups() {
    // OPS-5
    let user = |number| Some(UserId::new(uuid::Uuid::from_u128(number)));
    let mut bench = WriterBench::new();
    let insert = "INSERT INTO entries VALUES ($1)";
    let queue = |owner, text| bench.queue_job(owner, insert, text, Acknowledge::Synced).1;
    let ones: Vec<_> = (0..MAX_GROUP_SIZE).map(|_| queue(user(1), "one")).collect();
    let two = queue(user(2), "two");
    bench.start();
    bench.sync_started.recv().unwrap();
    let rows = bench.rows();
    assert_eq!(rows.len(), SHARED_GROUP_SIZE, "the rest of the first owner is in later groups");
    assert!(rows.iter().position(|row| row == "two").unwrap() <= 1);
    bench.sync_result.send(Ok(())).unwrap();
    assert!(two.blocking_recv().unwrap().is_ok());
    bench.sync_started.recv().unwrap();
    bench.sync_result.send(Ok(())).unwrap();
    assert!(ones.into_iter().all(|one| one.blocking_recv().unwrap().is_ok()));
}

#[test]
fn a_group_is_checkpointed_after_a_failed_sync() {
    let mut bench = WriterBench::new();
    let (_, one) = bench.insert("one", Acknowledge::Synced);
    let (_, two) = bench.insert("two", Acknowledge::Synced);
    bench.start();
    bench.sync_started.recv().unwrap();
    let (ran, three) = bench.insert("three", Acknowledge::Synced);
    ran.recv().unwrap();
    let before = std::fs::metadata(bench.wal_path()).unwrap().len();
    bench.sync_result.send(broken()).unwrap();
    assert!(matches!(three.blocking_recv().unwrap(), Err(Error::Unavailable(_))), "the next group is rolled back");
    assert!(one.blocking_recv().unwrap().is_ok() && two.blocking_recv().unwrap().is_ok());
    assert_eq!(bench.rows(), ["one", "two"]);
    assert_eq!((before > 0, std::fs::metadata(bench.wal_path()).unwrap().len()), (true, 0), "the WAL is truncated");
    assert!(!bench.health.has_failed());
    let (_, four) = bench.insert("four", Acknowledge::Synced);
    bench.sync_started.recv().unwrap();
    bench.sync_result.send(Ok(())).unwrap();
    assert!(four.blocking_recv().unwrap().is_ok());
    assert_eq!(bench.rows(), ["one", "two", "four"]);
}

#[test]
fn a_group_is_not_answered_until_the_checkpoint_succeeds() {
    let mut bench = WriterBench::new();
    let (_, one) = bench.insert("one", Acknowledge::Synced);
    let (_, mut two) = bench.insert("two", Acknowledge::Synced);
    // A reader of the WAL blocks the checkpoint.
    let reader = Connection::open(bench.dir.path().join("db")).unwrap();
    bench.start();
    bench.sync_started.recv().unwrap();
    reader.execute_batch("BEGIN; SELECT * FROM entries").unwrap();
    bench.sync_result.send(broken()).unwrap();
    std::thread::sleep(Duration::from_millis(100));
    assert!(bench.health.has_failed());
    assert!(matches!(two.try_recv(), Err(TryRecvError::Empty)));
    reader.execute_batch("COMMIT").unwrap();
    assert!(one.blocking_recv().unwrap().is_ok() && two.blocking_recv().unwrap().is_ok());
    assert!(!bench.health.has_failed());
}

#[test]
fn a_single_job_is_checkpointed_after_a_failed_sync() {
    let mut bench = WriterBench::new();
    bench.start();
    let (_, one) = bench.insert("one", Acknowledge::Synced);
    bench.sync_started.recv().unwrap();
    bench.sync_result.send(broken()).unwrap();
    assert!(one.blocking_recv().unwrap().is_ok());
    assert_eq!((bench.rows(), std::fs::metadata(bench.wal_path()).unwrap().len()), (vec!["one".to_owned()], 0));
}

#[test]
fn only_synced_jobs_wait_for_the_sync() {
    let mut bench = WriterBench::new();
    let (_, committed) = bench.insert("now", Acknowledge::Committed);
    let (_, mut synced) = bench.insert("then", Acknowledge::Synced);
    bench.start();
    assert!(committed.blocking_recv().unwrap().is_ok());
    bench.sync_started.recv().unwrap();
    assert!(matches!(synced.try_recv(), Err(TryRecvError::Empty)));
    bench.sync_result.send(Ok(())).unwrap();
    assert!(synced.blocking_recv().unwrap().is_ok());
    // A job without changes needs no sync.
    let (_, nothing) = bench.queue_job(None, "DELETE FROM entries WHERE text = $1", "missing", Acknowledge::Synced);
    assert!(nothing.blocking_recv().unwrap().is_ok());
    assert!(bench.sync_started.try_recv().is_err());
}

#[test]
fn jobs_fail_at_a_stop_if_the_disk_does_not_accept_them() {
    // OPS-4
    let mut bench = WriterBench::new();
    let (_, one) = bench.insert("one", Acknowledge::Synced);
    let (_, mut two) = bench.insert("two", Acknowledge::Synced);
    let reader = Connection::open(bench.dir.path().join("db")).unwrap();
    bench.start();
    bench.sync_started.recv().unwrap();
    reader.execute_batch("BEGIN; SELECT * FROM entries").unwrap();
    bench.sync_result.send(broken()).unwrap();
    std::thread::sleep(Duration::from_millis(100));
    assert!(matches!(two.try_recv(), Err(TryRecvError::Empty)), "repeated");
    bench.stop.give_up();
    assert!(one.blocking_recv().unwrap().is_err() && two.blocking_recv().unwrap().is_err());
}

#[test]
fn groups_fail_if_the_file_was_replaced() {
    // TASK-5
    let mut bench = WriterBench::new();
    bench.start();
    std::fs::rename(bench.dir.path().join("db"), bench.dir.path().join("old")).unwrap();
    std::fs::copy(bench.dir.path().join("old"), bench.dir.path().join("db")).unwrap();
    let (_, one) = bench.insert("one", Acknowledge::Synced);
    assert!(one.blocking_recv().is_err(), "the job does not run");
    assert!(bench.health.has_failed());
    std::fs::rename(bench.dir.path().join("old"), bench.dir.path().join("db")).unwrap();
    let (_, two) = bench.insert("two", Acknowledge::Synced);
    bench.sync_started.recv().unwrap();
    bench.sync_result.send(Ok(())).unwrap();
    assert!(two.blocking_recv().unwrap().is_ok());
    assert!(!bench.health.has_failed());
}

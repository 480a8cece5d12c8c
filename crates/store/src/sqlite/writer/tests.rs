//! The writer with a disk that does what the test says.

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};

use rusqlite::Connection;
use tokio::sync::oneshot::error::TryRecvError;

use super::*;
use crate::conn::{Conn, Inner, args};

/// A writer whose disk does what the test says.
struct Bench {
    dir: tempfile::TempDir,
    jobs: mpsc::Sender<QueuedJob>,
    /// Until it is started.
    writer: Option<Writer>,
    failing: Arc<AtomicBool>,
    /// Says that something is to be brought to disk.
    asked: Receiver<()>,
    disk: Sender<io::Result<()>>,
}

impl Bench {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let connection = Connection::open(dir.path().join("db")).unwrap();
        connection.pragma_update(None, "journal_mode", "wal").unwrap();
        connection.execute_batch("CREATE TABLE said (text TEXT)").unwrap();
        let (jobs, queue) = mpsc::channel(8);
        let (asking, asked) = channel();
        let (disk, says) = channel();
        let says = Mutex::new(says);
        let flush = Arc::new(move || {
            asking.send(()).unwrap();
            says.lock().unwrap().recv().unwrap()
        });
        let failing = Arc::new(AtomicBool::new(false));
        let tx = Transaction::new(Conn::new(Inner::Sqlite(connection)));
        let writer = Writer::new(tx, queue, failing.clone(), Some(flush)).unwrap();
        Self { dir, jobs, writer: Some(writer), failing, asked, disk }
    }

    /// What waits by then is one group.
    fn start(&mut self) {
        let writer = self.writer.take().unwrap();
        std::thread::spawn(move || writer.run());
    }

    /// Tells when it was carried out, and then when it was answered.
    fn say(&self, text: &'static str, when: Acknowledge) -> (Receiver<()>, oneshot::Receiver<Result<()>>) {
        self.put("INSERT INTO said VALUES ($1)", text, when)
    }

    fn put(
        &self,
        sql: &'static str,
        text: &'static str,
        when: Acknowledge,
    ) -> (Receiver<()>, oneshot::Receiver<Result<()>>) {
        let (ran, has_run) = channel();
        let (answer, answered) = oneshot::channel();
        let job: QueuedJob = Box::new(move |conn| {
            Box::pin(async move {
                let keep = conn.run((sql, args![text])).await.is_ok();
                let _ = ran.send(());
                Verdict { keep, when, answer: Box::new(|committed| answer.send(committed).unwrap()) }
            })
        });
        self.jobs.blocking_send(job).unwrap_or_else(|_| panic!("the writer has ended"));
        (has_run, answered)
    }

    fn all(&self) -> Vec<String> {
        let connection = Connection::open(self.dir.path().join("db")).unwrap();
        let mut select = connection.prepare("SELECT text FROM said ORDER BY rowid").unwrap();
        let rows = select.query_map([], |row| row.get(0)).unwrap();
        rows.collect::<rusqlite::Result<_>>().unwrap()
    }

    fn log(&self) -> PathBuf {
        self.dir.path().join("db-wal")
    }
}

fn broken() -> io::Result<()> {
    Err(io::Error::other("the disk is broken"))
}

#[test]
fn while_the_disk_is_busy_the_next_group_is_carried_out() {
    let mut bench = Bench::new();
    let (_, one) = bench.say("one", Acknowledge::Synced);
    let (_, two) = bench.say("two", Acknowledge::Synced);
    bench.start();
    bench.asked.recv().unwrap();
    let (ran, mut three) = bench.say("three", Acknowledge::Synced);
    ran.recv().unwrap();
    assert_eq!(bench.all(), ["one", "two"], "what is not committed cannot be read");
    assert!(matches!(three.try_recv(), Err(TryRecvError::Empty)));
    bench.disk.send(Ok(())).unwrap();
    assert!(one.blocking_recv().unwrap().is_ok() && two.blocking_recv().unwrap().is_ok());
    bench.asked.recv().unwrap();
    assert!(matches!(three.try_recv(), Err(TryRecvError::Empty)), "it is not on disk yet");
    bench.disk.send(Ok(())).unwrap();
    assert!(three.blocking_recv().unwrap().is_ok());
    assert_eq!(bench.all(), ["one", "two", "three"]);
}

#[test]
fn what_the_disk_did_not_take_is_written_another_way_before_anything_else() {
    let mut bench = Bench::new();
    let (_, one) = bench.say("one", Acknowledge::Synced);
    let (_, two) = bench.say("two", Acknowledge::Synced);
    bench.start();
    bench.asked.recv().unwrap();
    let (ran, three) = bench.say("three", Acknowledge::Synced);
    ran.recv().unwrap();
    let before = std::fs::metadata(bench.log()).unwrap().len();
    bench.disk.send(broken()).unwrap();
    assert!(matches!(three.blocking_recv().unwrap(), Err(Error::Unavailable(_))), "it can still be taken back");
    assert!(one.blocking_recv().unwrap().is_ok() && two.blocking_recv().unwrap().is_ok());
    assert_eq!(bench.all(), ["one", "two"]);
    assert_eq!((before > 0, std::fs::metadata(bench.log()).unwrap().len()), (true, 0), "it stands in the file");
    assert!(!bench.failing.load(Ordering::Relaxed));
    let (_, four) = bench.say("four", Acknowledge::Synced);
    bench.asked.recv().unwrap();
    bench.disk.send(Ok(())).unwrap();
    assert!(four.blocking_recv().unwrap().is_ok());
    assert_eq!(bench.all(), ["one", "two", "four"]);
}

#[test]
fn nobody_is_answered_before_it_is_somewhere() {
    let mut bench = Bench::new();
    let (_, one) = bench.say("one", Acknowledge::Synced);
    let (_, mut two) = bench.say("two", Acknowledge::Synced);
    // The log cannot be written into the file while somebody reads from it.
    let reader = Connection::open(bench.dir.path().join("db")).unwrap();
    bench.start();
    bench.asked.recv().unwrap();
    reader.execute_batch("BEGIN; SELECT * FROM said").unwrap();
    bench.disk.send(broken()).unwrap();
    std::thread::sleep(Duration::from_millis(100));
    assert!(bench.failing.load(Ordering::Relaxed));
    assert!(matches!(two.try_recv(), Err(TryRecvError::Empty)));
    reader.execute_batch("COMMIT").unwrap();
    assert!(one.blocking_recv().unwrap().is_ok() && two.blocking_recv().unwrap().is_ok());
    assert!(!bench.failing.load(Ordering::Relaxed));
}

#[test]
fn nothing_of_one_who_waits_alone_is_lost_either() {
    let mut bench = Bench::new();
    bench.start();
    let (_, one) = bench.say("one", Acknowledge::Synced);
    bench.asked.recv().unwrap();
    bench.disk.send(broken()).unwrap();
    assert!(one.blocking_recv().unwrap().is_ok());
    assert_eq!((bench.all(), std::fs::metadata(bench.log()).unwrap().len()), (vec!["one".to_owned()], 0));
}

#[test]
fn only_who_must_waits_for_the_disk() {
    let mut bench = Bench::new();
    let (_, now) = bench.say("now", Acknowledge::Committed);
    let (_, mut then) = bench.say("then", Acknowledge::Synced);
    bench.start();
    assert!(now.blocking_recv().unwrap().is_ok());
    bench.asked.recv().unwrap();
    assert!(matches!(then.try_recv(), Err(TryRecvError::Empty)));
    bench.disk.send(Ok(())).unwrap();
    assert!(then.blocking_recv().unwrap().is_ok());
    // What changes nothing has nothing to wait for: nobody asks the disk.
    let (_, nothing) = bench.put("DELETE FROM said WHERE text = $1", "never said", Acknowledge::Synced);
    assert!(nothing.blocking_recv().unwrap().is_ok());
    assert!(bench.asked.try_recv().is_err());
}

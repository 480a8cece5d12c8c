//! The one thread that writes.
//!
//! It puts whatever waits into one transaction (group commit) and answers when that is on disk. While one group is
//! brought there, by a thread of its own, the next one is carried out already, and takes along whoever comes meanwhile; it
//! is committed when the one before it is safe. So there is never more than one group of which nobody knows whether it is
//! kept, and that one is not answered before somebody does.
//!
//! A job that fails takes nothing of the others with it: the first of a transaction is the whole of it and can be rolled
//! back as such, each one after it has a savepoint, which costs a copy of every page it changes.

#[cfg(test)]
mod tests;

use std::io;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::FutureExt;
use futures::executor::block_on;
use futures::future::BoxFuture;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};

use crate::{Acknowledge, Error, Result, Transaction};

const MAX_GROUP: usize = 256;
/// How long until a disk that is in trouble is tried again.
const PAUSE: Duration = Duration::from_secs(1);

/// Does its work inside the transaction and says what to do once it is known whether that was committed.
pub(super) type QueuedJob = Box<dyn for<'t> FnOnce(&'t mut Transaction) -> BoxFuture<'t, Verdict> + Send>;

pub(super) struct Verdict {
    pub(super) keep: bool,
    pub(super) when: Acknowledge,
    pub(super) answer: Box<dyn FnOnce(Result<()>) + Send>,
}

/// Returns when everything that was committed is on disk.
pub(super) type Flush = Arc<dyn Fn() -> io::Result<()> + Send + Sync>;

pub(super) struct Writer {
    tx: Transaction,
    queue: mpsc::Receiver<QueuedJob>,
    /// Whether the last group could not be written.
    failing: Arc<AtomicBool>,
    /// None where nobody waits for it.
    disk: Option<Disk>,
}

impl Writer {
    pub(super) fn new(
        tx: Transaction,
        queue: mpsc::Receiver<QueuedJob>,
        failing: Arc<AtomicBool>,
        flush: Option<Flush>,
    ) -> io::Result<Self> {
        let disk = flush.map(|flush| Disk::new(flush, failing.clone())).transpose()?;
        Ok(Self { tx, queue, failing, disk })
    }

    /// Ends when every handle to the store is gone and the queue is empty.
    pub(super) fn run(mut self) {
        block_on(async {
            while let Some(first) = self.first().await {
                self.write_group(first).await;
                self.mend().await;
            }
        });
    }

    /// The first of a group. Meanwhile the one before may turn out to be lost.
    async fn first(&mut self) -> Option<QueuedJob> {
        if let Some(disk) = self.disk.as_mut().filter(|disk| disk.under_way.is_some()) {
            tokio::select! {
                job = self.queue.recv() => return job,
                _ = disk.settled() => {}
            }
        }
        self.mend().await;
        self.queue.recv().await
    }

    async fn write_group(&mut self, first: QueuedJob) {
        let mut verdicts = Vec::new();
        let before = self.tx.total_changes();
        let mut failed = self.tx.mark(&["BEGIN IMMEDIATE"]).err();
        // Whether nothing is in the transaction that must be kept.
        let mut fresh = true;
        let mut next = Some(first);
        let mut last_call = None;
        while let Some(job) = next {
            match failed {
                None => failed = self.carry_out(job, &mut fresh, &mut verdicts).await.err(),
                // Whoever waits is told that the store is unavailable, by dropping the job.
                Some(_) => last_call = last_call.or(Some(self.queue.len())),
            }
            next = if verdicts.len() < MAX_GROUP { self.next(&mut last_call).await } else { None };
        }
        if let (None, Some(disk)) = (&failed, &mut self.disk) {
            failed = disk.settled().await.err();
        }
        match failed.or_else(|| self.tx.mark(&["COMMIT"]).err()) {
            None if self.tx.total_changes() == before => self.pass_on(verdicts),
            None => self.keep(verdicts),
            Some(error) => {
                tracing::error!(error = %error, "a group of writes was not committed");
                // Leaves no transaction open; fails, harmlessly, where the failure has already ended it.
                let _ = self.tx.mark(&["ROLLBACK"]);
                self.failing.store(true, Ordering::Relaxed);
                answer(verdicts, Some(&error.to_string()));
            }
        }
    }

    /// What the disk did not take is written another way, and answered then: it was committed and cannot be taken back. A
    /// page that did not get to the disk may count as written from then on, so that to ask again would prove nothing. What
    /// stands in the log is written into the file instead, and the log begins anew.
    async fn mend(&mut self) {
        let Some(lost) = self.disk.as_mut().and_then(|disk| disk.lost.take()) else { return };
        while let Err(error) = self.checkpoint().await {
            tracing::error!(error = %error, "what was committed is not on disk yet");
            std::thread::sleep(PAUSE);
        }
        self.pass_on(lost);
    }

    async fn checkpoint(&mut self) -> Result<()> {
        let done = self.tx.first(("PRAGMA wal_checkpoint(TRUNCATE)", [])).await?;
        match done.map_or(Ok(1), |row| row.int(0))? {
            0 => Ok(()),
            _ => Err(Error::Unavailable("others read from the log".to_owned())),
        }
    }

    /// An error is one of the whole group.
    async fn carry_out(&mut self, job: QueuedJob, fresh: &mut bool, verdicts: &mut Vec<Verdict>) -> Result<()> {
        if !*fresh {
            self.tx.mark(&["SAVEPOINT job"])?;
        }
        // A panic in one job must not end the writer that all others depend on.
        let verdict = AssertUnwindSafe(job(&mut self.tx)).catch_unwind().await;
        let keep = verdict.as_ref().is_ok_and(|verdict| verdict.keep);
        match verdict {
            Ok(verdict) => verdicts.push(verdict),
            Err(_panic) => drop(self.tx.take_effects()),
        }
        let next: &[_] = match (*fresh, keep) {
            (true, true) => &[],
            (true, false) => &["ROLLBACK", "BEGIN IMMEDIATE"],
            (false, true) => &["RELEASE job"],
            (false, false) => &["ROLLBACK TO job", "RELEASE job"],
        };
        *fresh &= !keep;
        self.tx.mark(next)
    }

    /// Whoever comes while the disk is busy with the group before; then those who are there already, and no more.
    async fn next(&mut self, last_call: &mut Option<usize>) -> Option<QueuedJob> {
        if let Some(disk) = self.disk.as_mut().filter(|disk| last_call.is_none() && disk.under_way.is_some()) {
            tokio::select! {
                biased;
                _ = disk.settled() => {}
                job = self.queue.recv() => return job,
            }
        }
        let left = last_call.get_or_insert_with(|| self.queue.len());
        *left = left.checked_sub(1)?;
        self.queue.try_recv().ok()
    }

    /// There is nothing to bring to the disk, or nobody wants that.
    fn pass_on(&self, verdicts: Vec<Verdict>) {
        self.failing.store(false, Ordering::Relaxed);
        answer(verdicts, None);
    }

    /// Answers a group that was committed, those who want it once it is on disk.
    fn keep(&mut self, verdicts: Vec<Verdict>) {
        let Some(disk) = &mut self.disk else { return self.pass_on(verdicts) };
        let (now, then): (Vec<_>, Vec<_>) =
            verdicts.into_iter().partition(|verdict| verdict.when == Acknowledge::Committed);
        answer(now, None);
        // Nobody gains by a second thread where one waits alone.
        match then.len() == 1 && self.queue.is_empty() {
            true => disk.bring(then),
            false => disk.hand_over(then),
        }
    }
}

/// Brings what was committed to the disk, and answers then.
struct Disk {
    flush: Flush,
    failing: Arc<AtomicBool>,
    groups: std::sync::mpsc::Sender<Group>,
    /// Tells whether the last group is safe, where that is not known yet, or gives it back.
    under_way: Option<oneshot::Receiver<Lost>>,
    /// What was committed and did not get there.
    lost: Lost,
}

struct Group {
    verdicts: Vec<Verdict>,
    done: oneshot::Sender<Lost>,
}

type Lost = Option<Vec<Verdict>>;

impl Disk {
    fn new(flush: Flush, failing: Arc<AtomicBool>) -> io::Result<Self> {
        let (groups, received) = std::sync::mpsc::channel::<Group>();
        let flushing = flush.clone();
        let failed = failing.clone();
        let runtime = Handle::try_current().ok();
        std::thread::Builder::new().name("sqlite-disk".to_owned()).spawn(move || {
            // For effects that spawn tasks.
            let _runtime = runtime.as_ref().map(Handle::enter);
            for Group { verdicts, done } in received {
                match is_flushed(&flushing, &failed) {
                    true => {
                        // The writer first: it has the next group ready.
                        let _ = done.send(None);
                        answer(verdicts, None);
                    }
                    false => drop(done.send(Some(verdicts))),
                }
            }
        })?;
        Ok(Self { flush, failing, groups, under_way: None, lost: None })
    }

    /// In the background.
    fn hand_over(&mut self, verdicts: Vec<Verdict>) {
        let (done, under_way) = oneshot::channel();
        // A group that nobody takes is dropped, and its callers are told so.
        let _ = self.groups.send(Group { verdicts, done });
        self.under_way = Some(under_way);
    }

    /// On this thread.
    fn bring(&mut self, verdicts: Vec<Verdict>) {
        match is_flushed(&self.flush, &self.failing) {
            true => answer(verdicts, None),
            false => self.lost = Some(verdicts),
        }
    }

    /// Once it is known what became of the last group: nothing may be committed behind one that was lost.
    async fn settled(&mut self) -> Result<()> {
        if let Some(under_way) = &mut self.under_way {
            self.lost = under_way.await.unwrap_or(Some(Vec::new()));
            self.under_way = None;
        }
        match self.lost {
            Some(_) => Err(Error::Unavailable("the disk did not take what was written before".to_owned())),
            None => Ok(()),
        }
    }
}

fn is_flushed(flush: &Flush, failing: &AtomicBool) -> bool {
    let flushed = flush();
    failing.store(flushed.is_err(), Ordering::Relaxed);
    if let Err(error) = &flushed {
        tracing::error!(error = %error, "a group of writes was not brought to disk");
    }
    flushed.is_ok()
}

fn answer(verdicts: Vec<Verdict>, failed: Option<&str>) {
    for verdict in verdicts {
        (verdict.answer)(match failed {
            None => Ok(()),
            Some(why) => Err(Error::Unavailable(why.to_owned())),
        });
    }
}

//! The writer thread.
//!
//! The writer runs all queued jobs in one transaction (group commit) and answers them after the sync. A second thread
//! syncs one group while the writer runs the next one. The next group accepts new jobs until the sync ends, and is
//! committed only after the sync has succeeded. So at most one group is committed but not synced, and its jobs are not
//! answered before the sync.
//!
//! A failed job does not affect the rest of its group. The first job of a transaction is rolled back with the
//! transaction. Each later job runs in a savepoint, which costs a copy of every page that the job changes.

#[cfg(test)]
mod tests;

use std::io;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures::FutureExt;
use futures::executor::block_on;
use futures::future::BoxFuture;
use model::UserId;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::BUSY_TIMEOUT;
use super::files::DatabaseFiles;
use super::queue::JobQueue;
use crate::fault::{StorageFault, StorageHealth};
use crate::{Acknowledge, Error, Result, Transaction};

/// The largest number of jobs in a group.
const MAX_GROUP_SIZE: usize = 256;
/// The largest number of jobs in a group of several owners. Each of them waits for the jobs of the others.
const SHARED_GROUP_SIZE: usize = 32;
/// The number of jobs after which the task that answers a group lets other tasks run.
const FINISH_BATCH_SIZE: usize = 16;
/// The delay before a failed checkpoint is repeated.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// The longest wait for readers before the last checkpoint.
const FINAL_CHECKPOINT_TIMEOUT: Duration = Duration::from_secs(1);

/// A job that runs inside the transaction of a group.
pub(super) type QueuedJob = Box<dyn for<'t> FnOnce(&'t mut Transaction) -> BoxFuture<'t, JobOutcome> + Send>;

/// A job, and the user whose data it changes.
type OwnedJob = (Option<UserId>, QueuedJob);

/// The outcome of a job inside the transaction.
pub(super) struct JobOutcome {
    /// False if the changes of the job must be rolled back.
    pub(super) is_kept: bool,
    pub(super) when: Acknowledge,
    /// Called with the outcome of the commit. Returns the rest of the work, which any thread may do.
    pub(super) answer: Box<dyn FnOnce(Result<()>) -> FinishFn + Send>,
}

/// Runs the effects of a commit and answers the caller of a job.
pub(super) type FinishFn = Box<dyn FnOnce() + Send>;

/// Syncs all commits to disk. Fails if the disk fails.
pub(super) type FlushFn = Arc<dyn Fn() -> io::Result<()> + Send + Sync>;

/// The conditions of writes, shared with other parts of the store.
pub(super) struct WriterChecks {
    pub(super) files: Arc<DatabaseFiles>,
    pub(super) health: StorageHealth,
    pub(super) stop: Arc<WriterStop>,
}

/// The stop of the writer thread.
#[derive(Debug, Default)]
pub(super) struct WriterStop {
    requested: CancellationToken,
    /// Writes that cannot be synced fail.
    gives_up: AtomicBool,
    has_ended: Mutex<bool>,
    ended: Condvar,
}

impl WriterStop {
    /// Lets writes fail that cannot be synced.
    pub(super) fn give_up(&self) {
        self.gives_up.store(true, Ordering::Relaxed);
    }

    fn gives_up(&self) -> bool {
        self.gives_up.load(Ordering::Relaxed)
    }

    /// Requests the end of the writer and waits for it. Returns false if it does not end in time.
    pub(super) fn end(&self, timeout: Duration) -> bool {
        self.give_up();
        self.requested.cancel();
        let has_ended = self.has_ended.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.ended.wait_timeout_while(has_ended, timeout, |has_ended| !*has_ended);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Records that the writer has closed the database.
    pub(super) fn set_ended(&self) {
        *self.has_ended.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.ended.notify_all();
    }
}

/// The state of the writer thread.
pub(super) struct Writer {
    tx: Transaction,
    queue: JobQueue,
    checks: WriterChecks,
    /// `None` if commits are not synced.
    syncer: Option<Syncer>,
    /// Set if the WAL contains data that was erased: the time from which on it is truncated.
    truncate_at: Option<Instant>,
}

impl Writer {
    /// Creates a writer. Fails if the sync thread cannot be started.
    pub(super) fn new(
        tx: Transaction,
        queue: JobQueue,
        checks: WriterChecks,
        flush: Option<FlushFn>,
    ) -> io::Result<Self> {
        let syncer = flush.map(|flush| Syncer::new(flush, checks.health.clone())).transpose()?;
        Ok(Self { tx, queue, checks, syncer, truncate_at: None })
    }

    /// Runs jobs until a stop is requested or all handles to the store are dropped, and the queue is empty. Then writes
    /// the WAL into the database file.
    pub(super) fn run(mut self) {
        block_on(async {
            while let Some(first) = self.first_job().await {
                self.write_group(first).await;
                self.recover_unsynced().await;
                self.truncate_if_erased().await;
            }
            self.finish().await;
        });
    }

    /// Waits for the last sync, then writes the WAL into the database file, so that this file alone is complete. A failure
    /// is logged: the data is in the WAL then, unless the files were replaced.
    async fn finish(&mut self) {
        if let Some(syncer) = &mut self.syncer
            && syncer.finish_group().await.is_err()
        {
            self.recover_unsynced().await;
        }
        let finished = match self.checks.files.check() {
            Ok(()) => self.tx.set_busy_timeout(FINAL_CHECKPOINT_TIMEOUT),
            Err(error) => Err(error),
        };
        let finished = match finished {
            Ok(()) => self.checkpoint().await,
            Err(error) => Err(error),
        };
        if let Err(error) = finished {
            tracing::error!(%error, "cannot write the WAL into the database file before the end");
        }
    }

    /// Waits for the first job of a group and returns it. If the sync of the previous group ends before a job arrives
    /// and has failed, first recovers that group. Returns `None` if a stop is requested or all handles to the store are
    /// dropped, and the queue is empty.
    async fn first_job(&mut self) -> Option<OwnedJob> {
        if let Some(syncer) = self.syncer.as_mut().filter(|syncer| syncer.in_progress.is_some()) {
            tokio::select! {
                job = self.queue.recv() => return job,
                _ = syncer.finish_group() => {}
            }
        }
        self.recover_unsynced().await;
        tokio::select! {
            biased;
            job = self.queue.recv() => return job,
            () = self.checks.stop.requested.cancelled() => {}
        }
        // Later jobs are refused. The queued ones still run.
        self.queue.close();
        self.queue.recv().await
    }

    /// Runs and commits one group of jobs, beginning with `first`. The group ends at [`MAX_GROUP_SIZE`] outcomes, or at
    /// [`SHARED_GROUP_SIZE`] if it has jobs of several owners.
    /// Commits only after the previous group is synced. If the group changes no rows, answers it without a sync. The
    /// group fails if the database files were replaced, or if the BEGIN, a savepoint, the previous sync or the COMMIT fails. Then logs the error, rolls back,
    /// records the failure, and answers the jobs with the storage fault or [`Error::Unavailable`]. A job that has failed itself keeps its own
    /// error. After a failed BEGIN or savepoint, drops the jobs that are still queued; their callers get
    /// [`Error::Unavailable`], too.
    async fn write_group(&mut self, first: OwnedJob) {
        let mut outcomes = Vec::new();
        let changes_before = self.tx.total_changes();
        let began = self.checks.files.check().and_then(|()| self.tx.run_cached(&["BEGIN IMMEDIATE"]));
        let mut failed = began.err();
        // True while the transaction has no changes to keep.
        let mut is_empty = true;
        let mut next = Some(first);
        let mut remaining = None;
        let first_owner = next.as_ref().and_then(|(owner, _)| *owner);
        let mut limit = MAX_GROUP_SIZE;
        while let Some(job) = next {
            if job.0 != first_owner {
                limit = SHARED_GROUP_SIZE;
            }
            if let Some(error) = &failed {
                // Before a job is dropped, so that its caller gets the cause.
                self.checks.health.fail(error);
            }
            match failed {
                None => failed = self.run_job(job, &mut is_empty, &mut outcomes).await.err(),
                // Dropping the job reports to its caller that the store is unavailable.
                Some(_) => remaining = remaining.or(Some(self.queue.len())),
            }
            next = if outcomes.len() < limit { self.next_job(&mut remaining).await } else { None };
        }
        if let (None, Some(syncer)) = (&failed, &mut self.syncer) {
            failed = syncer.finish_group().await.err();
        }
        match failed.or_else(|| self.tx.run_cached(&["COMMIT"]).err()) {
            None if self.tx.total_changes() == changes_before => answer(outcomes, None),
            None => self.sync_and_answer(outcomes),
            Some(error) => {
                tracing::error!(error = %error, "cannot commit a group of writes");
                // Fails without harm if the failure has already ended the transaction.
                let _ = self.tx.run_cached(&["ROLLBACK"]);
                self.checks.health.fail(&error);
                answer(outcomes, Some(&error));
            }
        }
    }

    /// Writes a group to disk after its sync failed, and answers it then. The group is committed and cannot be rolled
    /// back. A second sync would prove nothing: after a failed sync the kernel may mark the pages as clean. A
    /// checkpoint writes the pages into the database file instead and truncates the WAL. Repeats a failed checkpoint, until
    /// the store is about to close: then the jobs fail, although their changes may be found after the next start.
    async fn recover_unsynced(&mut self) {
        let Some(unsynced) = self.syncer.as_mut().and_then(|syncer| syncer.unsynced.take()) else { return };
        while let Err(error) = self.checkpoint().await {
            tracing::error!(error = %error, "cannot write committed data to disk");
            if self.checks.stop.gives_up() {
                return answer(unsynced, Some(&error));
            }
            std::thread::sleep(RETRY_DELAY);
        }
        self.answer_written(unsynced);
    }

    /// Truncates the WAL after a group that erased data. If a reader uses the WAL, tries again after a later group, at
    /// least [`RETRY_DELAY`] later.
    async fn truncate_if_erased(&mut self) {
        if self.tx.take_erases() {
            self.truncate_at = Some(Instant::now());
        }
        if self.truncate_at.is_none_or(|at| at > Instant::now()) {
            return;
        }
        if let Some(syncer) = &mut self.syncer
            && syncer.finish_group().await.is_err()
        {
            return self.recover_unsynced().await;
        }
        // A reader must not delay the writer.
        let truncated = match self.tx.set_busy_timeout(Duration::ZERO) {
            Ok(()) => self.checkpoint().await,
            Err(error) => Err(error),
        };
        self.truncate_at = truncated.err().map(|_| Instant::now() + RETRY_DELAY);
        if let Err(error) = self.tx.set_busy_timeout(BUSY_TIMEOUT) {
            tracing::error!(error = %error, "cannot restore the busy timeout");
        }
    }

    /// Writes the WAL into the database file and truncates it. Fails if a reader still uses the WAL.
    async fn checkpoint(&mut self) -> Result<()> {
        let done = self.tx.first(("PRAGMA wal_checkpoint(TRUNCATE)", [])).await?;
        match done.map_or(Ok(1), |row| row.int(0))? {
            0 => Ok(()),
            _ => Err(Error::Unavailable("a reader still uses the WAL".to_owned())),
        }
    }

    /// Runs one job, appends its outcome to `outcomes`, and rolls it back if it fails. If the job panics, appends
    /// nothing, drops its effects as for a rollback, and rolls it back. `is_empty` is true while no job of the
    /// transaction was kept, and is updated. Then a rollback restarts the transaction, otherwise it uses a savepoint.
    /// Fails only if SQLite rejects one of these statements, which fails the whole group.
    async fn run_job(
        &mut self,
        (owner, job): OwnedJob,
        is_empty: &mut bool,
        outcomes: &mut Vec<JobOutcome>,
    ) -> Result<()> {
        if !*is_empty {
            self.tx.run_cached(&["SAVEPOINT job"])?;
        }
        self.tx.set_owner(owner);
        // A panic in one job must not end the writer thread.
        let outcome = AssertUnwindSafe(job(&mut self.tx)).catch_unwind().await;
        let is_kept = outcome.as_ref().is_ok_and(|outcome| outcome.is_kept);
        match outcome {
            Ok(outcome) => outcomes.push(outcome),
            Err(_panic) => drop(self.tx.take_effects()),
        }
        let next: &[_] = match (*is_empty, is_kept) {
            (true, true) => &[],
            (true, false) => &["ROLLBACK", "BEGIN IMMEDIATE"],
            (false, true) => &["RELEASE job"],
            (false, false) => &["ROLLBACK TO job", "RELEASE job"],
        };
        *is_empty &= !is_kept;
        self.tx.run_cached(next)
    }

    /// Returns the next job of the group, or `None` at its end. While the previous group is syncing and `remaining` is
    /// `None`, waits for a new job or the end of the sync. After the sync, `remaining` is set to the number of queued
    /// jobs, and each call takes one of them without waiting.
    async fn next_job(&mut self, remaining: &mut Option<usize>) -> Option<OwnedJob> {
        if let Some(syncer) = self.syncer.as_mut().filter(|syncer| remaining.is_none() && syncer.in_progress.is_some())
        {
            tokio::select! {
                biased;
                _ = syncer.finish_group() => {}
                job = self.queue.recv() => return job,
            }
        }
        let remaining = remaining.get_or_insert_with(|| self.queue.len());
        *remaining = remaining.checked_sub(1)?;
        self.queue.try_recv()
    }

    /// Answers a group whose changes are written.
    fn answer_written(&self, outcomes: Vec<JobOutcome>) {
        self.checks.health.succeed();
        answer(outcomes, None);
    }

    /// Syncs a committed group. Answers each job after the commit or after the sync, according to its `when`. Without a
    /// syncer, answers all jobs immediately. Syncs on this thread if exactly one job waits for the sync and the queue
    /// is empty, otherwise on the sync thread. A failed sync leaves its jobs unanswered for
    /// [`Writer::recover_unsynced`].
    fn sync_and_answer(&mut self, outcomes: Vec<JobOutcome>) {
        let Some(syncer) = &mut self.syncer else { return self.answer_written(outcomes) };
        let (committed, synced): (Vec<_>, Vec<_>) =
            outcomes.into_iter().partition(|outcome| outcome.when == Acknowledge::Committed);
        answer(committed, None);
        // For a single job a switch to the other thread costs more than it saves.
        match synced.len() == 1 && self.queue.is_empty() {
            true => syncer.sync_inline(synced),
            false => syncer.sync_in_background(synced),
        }
    }
}

/// Syncs committed groups to disk and answers their jobs.
struct Syncer {
    flush: FlushFn,
    health: StorageHealth,
    groups: std::sync::mpsc::Sender<CommitGroup>,
    /// Receives the result of the sync that is in progress.
    in_progress: Option<oneshot::Receiver<Unsynced>>,
    /// The group that was committed but could not be synced.
    unsynced: Unsynced,
}

/// A committed group on its way to the sync thread.
struct CommitGroup {
    outcomes: Vec<JobOutcome>,
    done: oneshot::Sender<Unsynced>,
}

/// The jobs of a group if its sync has failed.
type Unsynced = Option<Vec<JobOutcome>>;

impl Syncer {
    /// Starts the sync thread, which syncs one group after the other. After a successful sync it informs the writer and
    /// then answers the jobs. After a failed one it returns the jobs to the writer unanswered. `health` gets the
    /// outcome of each sync. Fails if the thread cannot be started.
    fn new(flush: FlushFn, health: StorageHealth) -> io::Result<Self> {
        let (groups, received) = std::sync::mpsc::channel::<CommitGroup>();
        let thread_flush = flush.clone();
        let thread_health = health.clone();
        let runtime = Handle::try_current().ok();
        std::thread::Builder::new().name("sqlite-disk".to_owned()).spawn(move || {
            // Effects may spawn tasks.
            let _runtime = runtime.as_ref().map(Handle::enter);
            for CommitGroup { outcomes, done } in received {
                match try_flush(&thread_flush, &thread_health) {
                    true => {
                        // Inform the writer first, because the next group waits for it.
                        let _ = done.send(None);
                        answer(outcomes, None);
                    }
                    false => drop(done.send(Some(outcomes))),
                }
            }
        })?;
        Ok(Self { flush, health, groups, in_progress: None, unsynced: None })
    }

    /// Passes a group to the sync thread.
    fn sync_in_background(&mut self, outcomes: Vec<JobOutcome>) {
        let (done, in_progress) = oneshot::channel();
        // If the thread has ended, the group is dropped, which reports an error to its callers.
        let _ = self.groups.send(CommitGroup { outcomes, done });
        self.in_progress = Some(in_progress);
    }

    /// Syncs a group on this thread and answers it. Keeps it as unsynced if the sync fails.
    fn sync_inline(&mut self, outcomes: Vec<JobOutcome>) {
        match try_flush(&self.flush, &self.health) {
            true => answer(outcomes, None),
            false => self.unsynced = Some(outcomes),
        }
    }

    /// Waits for the sync in progress, if any, and keeps the jobs of a failed sync in `unsynced`. Fails with
    /// [`Error::Unavailable`] while a group is not synced, because nothing may be committed after it. A sync thread
    /// that has ended counts as a failed sync.
    async fn finish_group(&mut self) -> Result<()> {
        if let Some(in_progress) = &mut self.in_progress {
            self.unsynced = in_progress.await.unwrap_or(Some(Vec::new()));
            self.in_progress = None;
        }
        match self.unsynced {
            Some(_) => Err(Error::Unavailable("an earlier write could not be synced to disk".to_owned())),
            None => Ok(()),
        }
    }
}

/// Syncs to disk and records failures. Returns true on success.
fn try_flush(flush: &FlushFn, health: &StorageHealth) -> bool {
    match flush() {
        Ok(()) => {
            health.succeed();
            true
        }
        Err(error) => {
            tracing::error!(error = %error, "cannot sync a group of writes to disk");
            health.fail(&Error::Storage(StorageFault::DiskError));
            false
        }
    }
}

/// Answers all jobs of a group, with an error if `failure` is set. Several jobs are finished in a task of the runtime, so
/// that this thread can continue, and so that the tasks that are woken or started stay on the threads of the runtime.
fn answer(outcomes: Vec<JobOutcome>, failure: Option<&Error>) {
    let finish = |outcome: JobOutcome| {
        (outcome.answer)(match failure {
            None => Ok(()),
            Some(Error::Storage(fault)) => Err(Error::Storage(*fault)),
            Some(error) => Err(Error::Unavailable(error.to_string())),
        })
    };
    let finishers: Vec<FinishFn> = outcomes.into_iter().map(finish).collect();
    match Handle::try_current() {
        Ok(runtime) if finishers.len() > 1 => {
            runtime.spawn(async move {
                for (number, finish) in finishers.into_iter().enumerate() {
                    if number % FINISH_BATCH_SIZE == FINISH_BATCH_SIZE - 1 {
                        tokio::task::yield_now().await;
                    }
                    finish();
                }
            });
        }
        _ => finishers.into_iter().for_each(|finish| finish()),
    }
}

//! The queue of the writer. Owners take turns, so that a user with many queued writes delays the write of another user
//! by one write of each owner, and not by all of them. The writes of one owner run in the order of their arrival. Writes
//! without an owner share one turn.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use model::UserId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use super::writer::QueuedJob;
use crate::{Error, Result};

/// Creates a queue for this number of jobs. Senders wait while it is full.
pub(super) fn job_queue(capacity: usize) -> (JobSender, JobQueue) {
    let (sender, arrived) = mpsc::unbounded_channel();
    let free = Arc::new(Semaphore::new(capacity));
    let queue = JobQueue { arrived, waiting: HashMap::new(), turns: VecDeque::new(), sorted: 0 };
    (JobSender { sender, free, capacity }, queue)
}

/// A handle that adds jobs to the queue.
#[derive(Clone, Debug)]
pub(super) struct JobSender {
    sender: mpsc::UnboundedSender<ArrivedJob>,
    free: Arc<Semaphore>,
    capacity: usize,
}

impl JobSender {
    /// Adds a job. Waits while the queue is full. Fails if the queue is closed.
    pub(super) async fn send(&self, owner: Option<UserId>, job: QueuedJob) -> Result<()> {
        let stopped = || Error::Unavailable("the writer has stopped".to_owned());
        let place = self.free.clone().acquire_owned().await.map_err(|_| stopped())?;
        self.sender.send(ArrivedJob { owner, job, _place: place }).map_err(|_| stopped())
    }

    /// Returns the number of jobs in the queue.
    pub(super) fn len(&self) -> usize {
        self.capacity.saturating_sub(self.free.available_permits())
    }
}

/// A job with its place in the queue.
struct ArrivedJob {
    owner: Option<UserId>,
    job: QueuedJob,
    _place: OwnedSemaphorePermit,
}

/// The receiving end of the queue. Each owner with jobs in `waiting` is in `turns` once.
pub(super) struct JobQueue {
    arrived: mpsc::UnboundedReceiver<ArrivedJob>,
    waiting: HashMap<Option<UserId>, VecDeque<ArrivedJob>>,
    turns: VecDeque<Option<UserId>>,
    /// The number of jobs in `waiting`.
    sorted: usize,
}

impl JobQueue {
    /// Waits for a job and returns it with its owner. Returns `None` if the queue is closed and empty. Dropping the
    /// returned future loses no job.
    pub(super) async fn recv(&mut self) -> Option<(Option<UserId>, QueuedJob)> {
        if let Some(next) = self.try_recv() {
            return Some(next);
        }
        let arrived = self.arrived.recv().await?;
        Some((arrived.owner, arrived.job))
    }

    /// Returns the next job with its owner, or `None` if the queue is empty.
    pub(super) fn try_recv(&mut self) -> Option<(Option<UserId>, QueuedJob)> {
        while let Ok(arrived) = self.arrived.try_recv() {
            let jobs = self.waiting.entry(arrived.owner).or_default();
            if jobs.is_empty() {
                self.turns.push_back(arrived.owner);
            }
            jobs.push_back(arrived);
            self.sorted += 1;
        }
        let owner = self.turns.pop_front()?;
        let jobs = self.waiting.get_mut(&owner)?;
        let next = jobs.pop_front()?;
        match jobs.is_empty() {
            true => drop(self.waiting.remove(&owner)),
            false => self.turns.push_back(owner),
        }
        self.sorted -= 1;
        Some((next.owner, next.job))
    }

    /// Returns the number of jobs in the queue.
    pub(super) fn len(&self) -> usize {
        self.sorted + self.arrived.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Refuses further jobs. Those in the queue can still be received.
    pub(super) fn close(&mut self) {
        self.arrived.close();
    }
}

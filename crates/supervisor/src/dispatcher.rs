//! Claims executions for this node and starts them: new ones and queued ones.
//!
//! A claim and the slot of the agent are taken in one transaction. Claimed executions start after the commit.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use store::Transaction;
use store::executions::{ClaimedExecution, NewExecution, agents_with_queued, claim, end_queued};
use tokio::sync::Notify;

use crate::capacity::{Capacity, Reservation};
use crate::registry::AgentEntry;
use crate::{Admission, Supervisor, lock};

/// The longest time between two reads of the queues without a wake-up.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// The maximum number of executions of one agent that are claimed in one transaction.
const BATCH_SIZE: usize = 32;
/// The maximum number of executions of a removed agent that are ended in one transaction.
const ORPHAN_BATCH_SIZE: i64 = 100;

/// The queues to read and the capacity for their executions.
pub(crate) struct Dispatcher {
    /// Agents with a queue that has to be read.
    woken: Mutex<HashSet<String>>,
    wake: Notify,
    /// The only agents that this node runs, if it is limited.
    only_agents: Mutex<Option<HashSet<String>>>,
    /// No further executions are claimed.
    draining: AtomicBool,
    /// Sessions start no further messages.
    holds_sessions: AtomicBool,
    /// This node runs no agents. Other nodes do.
    disabled: AtomicBool,
    pub(crate) capacity: Arc<Capacity>,
}

impl Dispatcher {
    /// Returns a dispatcher without woken agents. It is not limited to an agent, not draining and not disabled.
    pub(crate) fn new(admission: Admission) -> Self {
        Self {
            woken: Mutex::default(),
            wake: Notify::new(),
            only_agents: Mutex::default(),
            draining: AtomicBool::new(false),
            holds_sessions: AtomicBool::new(false),
            disabled: AtomicBool::new(false),
            capacity: Arc::new(Capacity::new(admission)),
        }
    }

    /// Makes the dispatcher read the queues of these agents.
    pub(crate) fn wake(&self, agents: impl IntoIterator<Item = String>) {
        lock(&self.woken).extend(agents);
        self.wake.notify_one();
    }

    /// Limits this node to one agent, or adds the agent if it is limited already. Ends a drain.
    pub(crate) fn add_only_agent(&self, agent_id: &str) {
        lock(&self.only_agents).get_or_insert_default().insert(agent_id.to_owned());
        self.draining.store(false, Ordering::Relaxed);
    }

    /// Stops claiming executions until another agent is added.
    pub(crate) fn drain(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }

    /// Stops sessions from starting further messages.
    pub(crate) fn hold_sessions(&self) {
        self.holds_sessions.store(true, Ordering::Relaxed);
    }

    pub(crate) fn holds_sessions(&self) -> bool {
        self.holds_sessions.load(Ordering::Relaxed)
    }

    /// Marks this node as one that runs no agents.
    pub(crate) fn disable(&self) {
        self.disabled.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_disabled(&self) -> bool {
        self.disabled.load(Ordering::Relaxed)
    }

    /// Returns true if this node claims executions of the agent: it does not drain and is not limited to other agents.
    fn serves(&self, agent_id: &str) -> bool {
        let is_served = || lock(&self.only_agents).as_ref().is_none_or(|only| only.contains(agent_id));
        !self.draining.load(Ordering::Relaxed) && is_served()
    }
}

/// Executions claimed for this node, with the capacity they need.
#[derive(Default)]
#[must_use = "no other node starts these while this node lives"]
pub(crate) struct ClaimedBatch {
    claimed: Vec<(ClaimedExecution, AgentEntry)>,
    /// Held until all of them run.
    _capacity: Option<Reservation>,
}

impl ClaimedBatch {
    pub(crate) fn is_empty(&self) -> bool {
        self.claimed.is_empty()
    }
}

impl Supervisor {
    /// Claims executions when it is woken and at every poll interval, until the node stops. A wake-up reads only the
    /// queues of the woken agents. Agents are handled one after the other. Failures are logged; the next poll finds
    /// their queues again.
    pub(crate) async fn dispatch(self) {
        let dispatcher = &self.0.dispatcher;
        let mut poll = tokio::time::interval(POLL_INTERVAL);
        poll.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = self.0.stopping.cancelled() => return,
                () = dispatcher.wake.notified() => {}
                _ = poll.tick() => {
                    if let Err(error) = self.poll_queues().await {
                        tracing::warn!(event = "queue_not_read", error = %error);
                    }
                }
            }
            let woken = std::mem::take(&mut *lock(&dispatcher.woken));
            for agent in woken {
                if let Err(error) = self.claim_for(&agent).await {
                    tracing::warn!(event = "queue_not_claimed", agent_id = agent, error = %error);
                }
            }
        }
    }

    /// Marks the agents with queued executions as woken: another node has enqueued them, or their retry has become due.
    /// Fails if the database fails.
    async fn poll_queues(&self) -> store::Result<()> {
        let waiting = agents_with_queued(&mut self.0.store.reader().await?, self.0.clock.now()).await?;
        lock(&self.0.dispatcher.woken).extend(waiting);
        Ok(())
    }

    /// Claims queued executions of an agent, at most [`BATCH_SIZE`], and starts them after the commit. Does nothing if
    /// this node may not start executions of the agent now. If the agent is unknown, calls [`Supervisor::end_orphans`]
    /// instead, unless the node drains or is limited to another agent. Fails if the database fails.
    async fn claim_for(&self, agent_id: &str) -> store::Result<()> {
        if self.registry().get(agent_id).is_none() && self.0.dispatcher.serves(agent_id) {
            return self.end_orphans(agent_id).await;
        }
        let supervisor = self.clone();
        let id = agent_id.to_owned();
        let claim = async move |tx: &mut Transaction| {
            if let Some(entry) = supervisor.claimable(&id, 0) {
                let claimed = supervisor.claim_waiting(tx, entry).await?;
                tx.after_commit(move || supervisor.start_claimed(claimed));
            }
            Ok(())
        };
        self.0.store.transaction(claim).await
    }

    /// Inserts the execution and claims executions of its agent that can start now. Returns the claimed ones: the new
    /// one if the queue is empty and a slot is free, otherwise the first of the queue. Claims nothing for a message of
    /// a session, or if this node may not start executions of the agent. Fails with [`store::Error::QueueFull`] if the
    /// queue is full. If the execution continues an A2A task, fails with [`store::Error::NotFound`] if the task does
    /// not exist, and with [`store::Error::AlreadyEnded`] or [`store::Error::NotEnded`] if it has not requested input.
    pub(crate) async fn submit_and_claim(
        &self,
        tx: &mut Transaction,
        new: &NewExecution,
    ) -> store::Result<ClaimedBatch> {
        let entry = self.claimable(&new.execution.agent_id, 0);
        let capacity = entry.as_ref().map(|_| self.reserve(1)).filter(|capacity| capacity.count() > 0);
        let claimed = store::a2a::enqueue_or_claim(tx, new, capacity.as_ref().map(|_| self.0.node)).await?;
        match (claimed, entry) {
            (Some(claimed), Some(entry)) => Ok(ClaimedBatch { claimed: vec![(claimed, entry)], _capacity: capacity }),
            (None, Some(entry)) if new.execution.session_id.is_none() => {
                drop(capacity);
                self.claim_waiting(tx, entry).await
            }
            _ => Ok(ClaimedBatch::default()),
        }
    }

    /// Returns the agent if this node may start executions of it now. Returns `None` if the agent is unknown or
    /// disabled, if the node drains, stops, is limited to another agent, or has no capacity. `ending` running
    /// executions are about to end and do not count. Stores the result of the capacity check for
    /// [`Supervisor::admission_refusal`].
    pub(crate) fn claimable(&self, agent_id: &str, ending: usize) -> Option<AgentEntry> {
        let dispatcher = &self.0.dispatcher;
        let may_start = dispatcher.serves(agent_id) && !self.0.stopping.is_cancelled();
        let entry = self.registry().get(agent_id).filter(|entry| may_start && entry.agent.enabled)?;
        dispatcher.capacity.admits(self.running_count().saturating_sub(ending)).then_some(entry)
    }

    /// Claims the first queued executions of the agent, within its slots and the capacity of this node, at most
    /// [`BATCH_SIZE`]. Skips requests in the spool of another machine. Returns an empty batch if the node was declared
    /// dead. Fails if the database fails.
    async fn claim_waiting(&self, tx: &mut Transaction, entry: AgentEntry) -> store::Result<ClaimedBatch> {
        let mut capacity = self.reserve(BATCH_SIZE);
        let limit = i64::try_from(capacity.count()).unwrap_or(i64::MAX);
        let spool = self.spool_name();
        let slots = i64::from(entry.agent.max_concurrency());
        let now = self.0.clock.now();
        let claimed = claim(tx, self.0.node, &spool, &entry.agent.id, slots, limit, now).await?;
        capacity.shrink(claimed.len());
        let claimed = claimed.into_iter().map(|claimed| (claimed, entry.clone())).collect();
        Ok(ClaimedBatch { claimed, _capacity: Some(capacity) })
    }

    /// Starts claimed executions. The reservation is released once all of them count as running.
    pub(crate) fn start_claimed(&self, batch: ClaimedBatch) {
        for (claimed, entry) in batch.claimed {
            self.start_execution(claimed, entry);
        }
    }

    fn reserve(&self, wanted: usize) -> Reservation {
        self.0.dispatcher.capacity.reserve(self.running_count(), wanted)
    }

    /// Ends the queued executions of a removed agent as failed, at most [`ORPHAN_BATCH_SIZE`], and wakes their
    /// followers. Does nothing if several nodes share the database, because the agent may be in the configuration of
    /// another node. Executions that no node claims end by their queue timeout. Fails if the database fails.
    async fn end_orphans(&self, agent_id: &str) -> store::Result<()> {
        if self.0.store.is_shared() {
            return Ok(());
        }
        let id = agent_id.to_owned();
        let now = self.0.clock.now();
        let ended = self
            .0
            .store
            .transaction(async move |tx| end_queued(tx, &id, "its agent was removed", now, ORPHAN_BATCH_SIZE).await);
        for execution in ended.await? {
            self.publish_change(&execution);
        }
        Ok(())
    }
}

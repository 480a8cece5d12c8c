//! Claims executions for this node and starts them: those that are just enqueued, and those that wait.
//!
//! A claim and the slot of the agent are taken in one transaction. What is claimed starts after the commit.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use store::Transaction;
use store::executions::{Claimed, New, agents_waiting, claim, end_waiting};
use tokio::sync::Notify;

use crate::capacity::{Capacity, Reservation};
use crate::registry::Entry;
use crate::{Admission, Supervisor, lock};

/// How often the queues are read although nothing has woken the dispatcher.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// How many executions of one agent are claimed in one transaction.
const BATCH_SIZE: usize = 32;
/// How many executions of a removed agent are ended in one transaction.
const ORPHAN_BATCH_SIZE: i64 = 100;

/// The queues to look at, and the capacity for what is in them.
pub(crate) struct Dispatcher {
    /// Agents whose queue is to be read.
    woken: Mutex<HashSet<String>>,
    wake: Notify,
    /// The one agent that this node works for, if it is only one.
    only_agent: OnceLock<String>,
    /// Nothing more is claimed.
    draining: AtomicBool,
    /// This node runs nothing; others do.
    resting: AtomicBool,
    pub(crate) capacity: Arc<Capacity>,
}

impl Dispatcher {
    pub(crate) fn new(admission: Admission) -> Self {
        Self {
            woken: Mutex::default(),
            wake: Notify::new(),
            only_agent: OnceLock::new(),
            draining: AtomicBool::new(false),
            resting: AtomicBool::new(false),
            capacity: Arc::new(Capacity::new(admission)),
        }
    }

    /// Has the queues of these agents read.
    pub(crate) fn wake(&self, agents: impl IntoIterator<Item = String>) {
        lock(&self.woken).extend(agents);
        self.wake.notify_one();
    }

    pub(crate) fn work_only_for(&self, agent_id: &str) {
        let _ = self.only_agent.set(agent_id.to_owned());
    }

    pub(crate) fn drain(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }

    pub(crate) fn rest(&self) {
        self.resting.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_resting(&self) -> bool {
        self.resting.load(Ordering::Relaxed)
    }

    /// Returns whether this node claims executions of the agent.
    fn serves(&self, agent_id: &str) -> bool {
        !self.draining.load(Ordering::Relaxed) && self.only_agent.get().is_none_or(|only| only == agent_id)
    }
}

/// Executions claimed for this node, with the capacity they need.
#[derive(Default)]
#[must_use = "no other node starts these while this node lives"]
pub(crate) struct ClaimedBatch {
    claimed: Vec<(Claimed, Entry)>,
    /// Held until all of them run.
    _capacity: Option<Reservation>,
}

impl ClaimedBatch {
    pub(crate) fn is_empty(&self) -> bool {
        self.claimed.is_empty()
    }
}

impl Supervisor {
    /// Claims when it is woken and in every poll interval, until the node stops.
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

    /// Finds the agents with executions that wait: another node has enqueued them, or they have become due.
    async fn poll_queues(&self) -> store::Result<()> {
        let waiting = agents_waiting(&mut self.0.store.reader().await?, self.0.clock.now()).await?;
        lock(&self.0.dispatcher.woken).extend(waiting);
        Ok(())
    }

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

    /// Inserts the execution and claims what may start of its agent's queue.
    pub(crate) async fn submit_and_claim(&self, tx: &mut Transaction, new: &New) -> store::Result<ClaimedBatch> {
        let entry = self.claimable(&new.execution.agent_id, 0);
        let capacity = entry.as_ref().map(|_| self.reserve(1)).filter(|capacity| capacity.count() > 0);
        let claimed = store::a2a::submit_to(tx, new, capacity.as_ref().map(|_| self.0.node)).await?;
        match (claimed, entry) {
            (Some(claimed), Some(entry)) => Ok(ClaimedBatch { claimed: vec![(claimed, entry)], _capacity: capacity }),
            (None, Some(entry)) if new.execution.session_id.is_none() => {
                drop(capacity);
                self.claim_waiting(tx, entry).await
            }
            _ => Ok(ClaimedBatch::default()),
        }
    }

    /// Returns the agent if this node may start executions of it now. `ending` of those that run are about to end.
    pub(crate) fn claimable(&self, agent_id: &str, ending: usize) -> Option<Entry> {
        let dispatcher = &self.0.dispatcher;
        let may = dispatcher.serves(agent_id) && !self.0.stopping.is_cancelled();
        let entry = self.registry().get(agent_id).filter(|entry| may && entry.agent.enabled)?;
        dispatcher.capacity.admits(self.running().saturating_sub(ending)).then_some(entry)
    }

    /// Claims the first executions that wait for the agent, as many as it and this node have capacity for.
    async fn claim_waiting(&self, tx: &mut Transaction, entry: Entry) -> store::Result<ClaimedBatch> {
        let mut capacity = self.reserve(BATCH_SIZE);
        let limit = i64::try_from(capacity.count()).unwrap_or(i64::MAX);
        let spool = self.spool_name();
        let slots = i64::from(entry.agent.places());
        let now = self.0.clock.now();
        let claimed = claim(tx, self.0.node, &spool, &entry.agent.id, slots, limit, now).await?;
        capacity.shrink(claimed.len());
        let claimed = claimed.into_iter().map(|claimed| (claimed, entry.clone())).collect();
        Ok(ClaimedBatch { claimed, _capacity: Some(capacity) })
    }

    /// Starts what was claimed. The reserved capacity is given back when all of it counts as running.
    pub(crate) fn start_claimed(&self, batch: ClaimedBatch) {
        for (claimed, entry) in batch.claimed {
            self.begin(claimed, entry);
        }
    }

    fn reserve(&self, wanted: usize) -> Reservation {
        self.0.dispatcher.capacity.reserve(self.running(), wanted)
    }

    /// Ends what waits for an agent that was removed. If there are several nodes, the agent may be in the configuration of
    /// another; what no node claims then ends by its queue timeout.
    async fn end_orphans(&self, agent_id: &str) -> store::Result<()> {
        if self.0.store.is_shared() {
            return Ok(());
        }
        let id = agent_id.to_owned();
        let now = self.0.clock.now();
        let ended = self
            .0
            .store
            .transaction(async move |tx| end_waiting(tx, &id, "its agent was removed", now, ORPHAN_BATCH_SIZE).await);
        for execution in ended.await? {
            self.after(&execution);
        }
        Ok(())
    }
}

//! Finds changes that no notification reports: cancellations from other nodes, expired queue timeouts, dead nodes, and
//! files that are no longer needed.

use std::time::Duration;

use background::reconcile;
use jiff::{SignedDuration, Timestamp};
use model::clock::StepDetector;
use model::execution::Execution;
use store::executions::{OwnerScope, claimed_by, expire_queued, has_abandoned, has_expired, lock_abandoned, recover};
use store::{clock_steps, nodes};
use tokio::time::Instant;
use uuid::Uuid;

use crate::Supervisor;
use crate::lease::LEASE;
use crate::submit::later;

/// The time between two rounds of maintenance.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// The time between two searches for files of removed executions.
const CLEANUP_INTERVAL: Duration = Duration::from_secs(60 * 60);
/// The number of rows handled in one transaction.
const BATCH_SIZE: i64 = 100;
/// The number of rounds of maintenance after which a claim of this node that does not run counts as unknown to it.
const UNKNOWN_CLAIM_ROUNDS: u32 = 10;
/// The delay before an interrupted execution is retried if its agent is not known on this node.
const DEFAULT_RETRY_DELAY: Duration = Duration::from_secs(1);

/// The state of the execution that a file belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FileOwner {
    Active,
    Ended,
    Removed,
}

impl Supervisor {
    /// Does maintenance at every poll interval until the node stops. Removes unneeded files once per hour, for the
    /// first time after an hour; a failure to read their owners is logged and retried an hour later. Other failures are
    /// retried in the next round, and only the first of several consecutive ones is logged.
    pub(crate) async fn maintain(self) {
        let stopping = self.0.stopping.clone();
        let cleaned = std::sync::Mutex::new(Instant::now());
        let steps = std::sync::Mutex::new(StepDetector::default());
        let work = || async {
            let now = self.0.clock.now();
            if crate::lock(&steps).is_due(now) {
                self.correct_times().await?;
                crate::lock(&steps).set_checked(now);
            }
            let is_due = crate::lock(&cleaned).elapsed() >= CLEANUP_INTERVAL;
            if is_due {
                *crate::lock(&cleaned) = Instant::now();
                if let Err(error) = self.clean_up().await {
                    tracing::warn!(event = "files_not_tidied", error = %error);
                }
            }
            self.maintain_once().await.map(|()| None)
        };
        let never = std::future::pending;
        reconcile::run("executions_not_looked_after", POLL_INTERVAL, &stopping, never, work).await;
    }

    /// Applies a stop of everything, stops cancelled executions, and ends up to [`BATCH_SIZE`] queued executions that have exceeded the queue timeout
    /// as timed out. On a shared database, also reads the agents, removes dead nodes, recovers the executions of dead nodes,
    /// and starts unknown claims. Fails if the database fails.
    async fn maintain_once(&self) -> store::Result<()> {
        self.refresh_stop_state().await?;
        self.stop_cancelled().await?;
        let now = self.0.clock.now();
        if has_expired(&mut self.0.store.reader().await?, now).await? {
            let ended = self.0.store.transaction(async move |tx| expire_queued(tx, now, BATCH_SIZE).await).await?;
            ended.iter().for_each(|execution| self.publish_change(execution));
        }
        if self.0.store.is_shared() {
            self.read_agents().await?;
            let removed = self.0.store.transaction(async move |tx| {
                let now = nodes::lease_time(tx, now).await?;
                nodes::remove_expired(tx, now).await
            });
            removed.await?;
            // An earlier recovery may have failed, or the node that removed the dead one may have died before it.
            if has_abandoned(&mut self.0.store.reader().await?).await? {
                self.recover_abandoned().await?;
            }
            self.start_unknown_claims().await?;
        }
        Ok(())
    }

    /// Starts the executions that this node has claimed without knowing it: the connection to the database was lost
    /// during the commit. An execution counts as unknown after [`UNKNOWN_CLAIM_ROUNDS`], because a claim is committed
    /// shortly before the execution counts as running. Fails if the database fails.
    async fn start_unknown_claims(&self) -> store::Result<()> {
        let mut claimed = claimed_by(&mut self.0.store.reader().await?, self.0.node).await?;
        claimed.retain(|claimed| self.recorder_of(claimed.fence.id).is_none());
        let mut seen = crate::lock(&self.0.unknown_claims);
        let rounds = claimed.iter().map(|claimed| {
            let id = claimed.fence.id;
            (id, seen.get(&id).copied().unwrap_or_default() + 1)
        });
        *seen = rounds.collect();
        claimed.retain(|claimed| seen.get(&claimed.fence.id).is_some_and(|rounds| *rounds >= UNKNOWN_CLAIM_ROUNDS));
        drop(seen);
        for claimed in claimed {
            if let Some(entry) = self.registry().get(&claimed.row.execution.agent_id) {
                tracing::warn!(event = "unknown_claim_started", execution_id = %claimed.fence.id);
                self.start_execution(claimed, entry);
            }
        }
        Ok(())
    }

    /// Corrects times that were stored while the clock was ahead, and wakes the dispatcher. Fails if the database fails.
    pub(crate) async fn correct_times(&self) -> store::Result<()> {
        let now = self.0.clock.now();
        let is_shared = self.0.store.is_shared();
        let corrected = self.0.store.transaction(async move |tx| -> store::Result<_> {
            if is_shared {
                let now = nodes::lease_time(tx, now).await?;
                nodes::limit_leases(tx, later(now, LEASE), later(now, LEASE * 10)).await?;
            }
            clock_steps::correct_times(tx, now).await
        });
        let corrected = corrected.await?;
        if !corrected.is_empty() {
            tracing::warn!(
                event = "times_corrected",
                executions = corrected.executions,
                reminders = corrected.reminders,
                deliveries = corrected.deliveries,
                conversations = corrected.turns,
            );
        }
        if corrected.executions > 0 {
            self.registry().all().keys().for_each(|agent| self.wake(agent));
        }
        Ok(())
    }

    /// Ends the executions of dead nodes as failed, or puts them back into the queue if they have retries left. One
    /// with a cancellation request is cancelled, and a message of a session is never retried. Also fails the sessions
    /// of dead nodes. Works in batches until none is left. Logs each execution and wakes its followers and the
    /// dispatcher. Fails if the database fails.
    pub(crate) async fn recover_abandoned(&self) -> store::Result<()> {
        loop {
            let now = self.0.clock.now();
            let supervisor = self.clone();
            let recovered = self.0.store.transaction(async move |tx| -> store::Result<_> {
                let mut recovered = Vec::new();
                store::sessions::fail_abandoned(tx, now).await?;
                for row in lock_abandoned(tx, BATCH_SIZE).await? {
                    let retry_at = supervisor.retry_at(&row.execution, now);
                    recovered.push(recover(tx, row, "adjutant was stopped while it ran", retry_at, now).await?);
                }
                Ok(recovered)
            });
            let recovered = recovered.await?;
            for execution in &recovered {
                tracing::warn!(event = "execution_recovered", execution_id = %execution.id, state = %execution.state_name());
                self.publish_change(execution);
                self.wake(&execution.agent_id);
            }
            if recovered.len() < usize::try_from(BATCH_SIZE).unwrap_or(usize::MAX) {
                return Ok(());
            }
        }
    }

    /// Returns the time of the next attempt of an interrupted execution: `now` plus the `retry_delay` of its agent, or
    /// plus [`DEFAULT_RETRY_DELAY`] if the agent is unknown here. Returns `None` if it has no retries left or the time
    /// is out of range.
    fn retry_at(&self, execution: &Execution, now: Timestamp) -> Option<Timestamp> {
        if !execution.can_retry() {
            return None;
        }
        let entry = self.registry().get(&execution.agent_id);
        let delay = entry.map_or(DEFAULT_RETRY_DELAY, |entry| entry.agent.retry_delay.duration());
        now.checked_add(SignedDuration::try_from(delay).unwrap_or_default()).ok()
    }

    /// Removes files that are no longer needed: requests with secrets of executions that have ended or are unknown,
    /// scratch directories of sessions that have ended or are unknown, and artifacts of removed executions. A request
    /// that is prepared and not committed yet counts as unknown. Failures to remove a file are ignored. Fails if the
    /// database fails.
    pub(crate) async fn clean_up(&self) -> store::Result<()> {
        if let Some(spool) = self.spool() {
            for id in spool.ids() {
                if self.owner_of(id).await? != FileOwner::Active {
                    spool.remove(id);
                }
            }
        }
        for id in self.0.processes.scratch_ids() {
            if self.owner_of(id).await? != FileOwner::Active && !self.is_open_session(id).await? {
                self.0.processes.remove_scratch(id);
            }
        }
        for id in self.0.processes.artifact_ids() {
            if self.owner_of(id).await? == FileOwner::Removed {
                self.0.processes.remove_artifacts(id);
            }
        }
        Ok(())
    }

    /// Returns the state of the execution with this id. An unknown execution counts as removed. Fails if the database
    /// fails.
    async fn owner_of(&self, id: Uuid) -> store::Result<FileOwner> {
        match store::executions::get(&mut self.0.store.reader().await?, OwnerScope::AllUsers, id).await {
            Ok(execution) if execution.is_ended() => Ok(FileOwner::Ended),
            Ok(_) => Ok(FileOwner::Active),
            Err(store::Error::NotFound) => Ok(FileOwner::Removed),
            Err(error) => Err(error),
        }
    }

    /// Returns true if a session with this id exists and has not ended. Fails if the database fails.
    async fn is_open_session(&self, id: Uuid) -> store::Result<bool> {
        match store::sessions::get(&mut self.0.store.reader().await?, OwnerScope::AllUsers, id).await {
            Ok(session) => Ok(session.ended_at.is_none()),
            Err(store::Error::NotFound) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures::future::BoxFuture;
    use model::agent::AgentDraft;
    use model::{Clock, User};
    use store::{Durability, Location, Store};

    use super::*;
    use crate::{AgentRun, RunDraft, RunOrigin, RunRecorder, RunResult, Runner, SupervisorOptions};

    struct Finished;

    impl Runner for Finished {
        fn run<'a>(&'a self, _: &'a AgentRun, _: &'a RunRecorder) -> BoxFuture<'a, RunResult> {
            Box::pin(async { RunResult::default() })
        }
    }

    #[tokio::test]
    async fn a_claim_that_the_node_does_not_know_is_started() {
        // SUP-11: the connection was lost during the commit
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&Location::Sqlite(dir.path().join("db")), Durability::Normal).await.unwrap();
        let agent = AgentDraft { id: Some("a".to_owned()), allow: Some(vec!["*".to_owned()]), ..AgentDraft::default() };
        let built_in = vec![(agent.into_built_in(), Arc::new(Finished) as Arc<dyn Runner>)];
        let options = SupervisorOptions::new(store, Clock::system(), dir.path());
        let supervisor = Supervisor::new(SupervisorOptions { built_in, ..options });
        supervisor.join().await.unwrap();
        let user = User::local(jiff::tz::TimeZone::UTC);
        let submission = supervisor.prepare(&user, "a", RunDraft::default(), RunOrigin::default()).unwrap();
        let id = submission.id();
        let node = supervisor.0.node;
        let claim = async move |tx: &mut store::Transaction| {
            store::executions::enqueue_or_claim(tx, &submission.new_execution, Some(node)).await
        };
        assert!(supervisor.store().transaction(claim).await.unwrap().is_some());
        for _ in 1..UNKNOWN_CLAIM_ROUNDS {
            supervisor.start_unknown_claims().await.unwrap();
        }
        assert_eq!(supervisor.running_count(), 0, "a commit may be in progress");
        supervisor.start_unknown_claims().await.unwrap();
        let ended = supervisor.wait(OwnerScope::AllUsers, id).await.unwrap();
        assert_eq!(ended.attempt(), 1);
        supervisor.start_unknown_claims().await.unwrap();
        assert!(crate::lock(&supervisor.0.unknown_claims).is_empty());
    }
}

//! Looks for what no signal reports: cancellations from other nodes, executions that wait too long, nodes that died, files
//! that nothing needs any more.

use std::time::Duration;

use background::reconcile;
use jiff::{SignedDuration, Timestamp};
use model::execution::Execution;
use store::executions::{Whose, abandoned, any_too_late, recover, too_late};
use store::nodes;
use tokio::time::Instant;
use uuid::Uuid;

use crate::Supervisor;

const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// How often files of executions that are gone are looked for.
const CLEANUP_INTERVAL: Duration = Duration::from_secs(60 * 60);
/// Rows handled in one transaction.
const BATCH_SIZE: i64 = 100;
/// The delay before an interrupted execution is tried again if its agent is not known here.
const DEFAULT_RETRY_DELAY: Duration = Duration::from_secs(1);

/// The execution that a file belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Owner {
    Active,
    Ended,
    Gone,
}

impl Supervisor {
    /// Runs until the node stops.
    pub(crate) async fn maintain(self) {
        let stopping = self.0.stopping.clone();
        let cleaned = std::sync::Mutex::new(Instant::now());
        let work = || async {
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

    async fn maintain_once(&self) -> store::Result<()> {
        self.stop_cancelled().await?;
        let now = self.0.clock.now();
        if any_too_late(&mut self.0.store.reader().await?, now).await? {
            let ended = self.0.store.transaction(async move |tx| too_late(tx, now, BATCH_SIZE).await).await?;
            ended.iter().for_each(|execution| self.after(execution));
        }
        if self.0.store.is_shared() {
            self.read_agents().await?;
            let dead = self.0.store.transaction(async move |tx| {
                let now = nodes::judge(tx, now).await?;
                nodes::bury(tx, now).await
            });
            if dead.await? > 0 {
                self.recover_abandoned().await?;
            }
        }
        Ok(())
    }

    /// Ends what dead nodes have left running, or puts it back into the queue.
    pub(crate) async fn recover_abandoned(&self) -> store::Result<()> {
        loop {
            let now = self.0.clock.now();
            let supervisor = self.clone();
            let recovered = self.0.store.transaction(async move |tx| -> store::Result<_> {
                let mut recovered = Vec::new();
                store::sessions::abandon(tx, now).await?;
                for stored in abandoned(tx, BATCH_SIZE).await? {
                    let retry_at = supervisor.retry_at(&stored.execution, now);
                    recovered.push(recover(tx, stored, "adjutant was stopped while it ran", retry_at, now).await?);
                }
                Ok(recovered)
            });
            let recovered = recovered.await?;
            for execution in &recovered {
                tracing::warn!(event = "execution_recovered", execution_id = %execution.id, state = %execution.state_name());
                self.after(execution);
                self.wake(&execution.agent_id);
            }
            if recovered.len() < usize::try_from(BATCH_SIZE).unwrap_or(usize::MAX) {
                return Ok(());
            }
        }
    }

    /// Returns when an interrupted execution is tried again, if it is.
    fn retry_at(&self, execution: &Execution, now: Timestamp) -> Option<Timestamp> {
        if !execution.may_retry() {
            return None;
        }
        let entry = self.registry().get(&execution.agent_id);
        let delay = entry.map_or(DEFAULT_RETRY_DELAY, |entry| entry.agent.retry_delay.duration());
        now.checked_add(SignedDuration::try_from(delay).unwrap_or_default()).ok()
    }

    /// Removes the files of executions that have ended or are gone: requests with secrets, scratch directories, artifacts.
    pub(crate) async fn clean_up(&self) -> store::Result<()> {
        if let Some(spool) = self.spool() {
            for id in spool.ids() {
                if self.owner_of(id).await? != Owner::Active {
                    spool.remove(id);
                }
            }
        }
        for id in self.0.processes.left_scratch() {
            if self.owner_of(id).await? != Owner::Active && !self.is_open_session(id).await? {
                self.0.processes.remove_scratch(id);
            }
        }
        for id in self.0.processes.kept_artifacts() {
            if self.owner_of(id).await? == Owner::Gone {
                self.0.processes.remove_artifacts(id);
            }
        }
        Ok(())
    }

    async fn owner_of(&self, id: Uuid) -> store::Result<Owner> {
        match store::executions::get(&mut self.0.store.reader().await?, Whose::Everyones, id).await {
            Ok(execution) if execution.is_ended() => Ok(Owner::Ended),
            Ok(_) => Ok(Owner::Active),
            Err(store::Error::NotFound) => Ok(Owner::Gone),
            Err(error) => Err(error),
        }
    }

    async fn is_open_session(&self, id: Uuid) -> store::Result<bool> {
        match store::sessions::get(&mut self.0.store.reader().await?, Whose::Everyones, id).await {
            Ok(session) => Ok(session.ended_at.is_none()),
            Err(store::Error::NotFound) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

//! Starts, drains and stops a node.

use std::time::Duration;

use store::nodes;
use tokio_util::sync::CancellationToken;

use crate::{StopReason, Supervisor, guardian};

/// The longest time between two checks of a draining node.
const DRAIN_POLL_INTERVAL: Duration = Duration::from_secs(1);
/// The time between two checks of a stopping node.
const STOP_POLL_INTERVAL: Duration = Duration::from_millis(20);

impl Supervisor {
    /// Starts this node. Kills processes that dead nodes have left, and logs their number. Reads the agents, registers
    /// the node, recovers executions of dead nodes, and removes unneeded files. Then runs the queued executions in the
    /// background until [`Supervisor::stop`]. Fails if the database fails.
    pub async fn start(&self) -> store::Result<()> {
        let swept = guardian::sweep().await;
        if swept > 0 {
            tracing::warn!(event = "processes_swept", count = swept);
        }
        self.refresh_agents().await?;
        self.join().await?;
        self.0.processes.sweep_scratch();
        self.clean_up().await?;
        let tasks = &self.0.tasks;
        tasks.spawn(self.clone().dispatch());
        tasks.spawn(self.clone().write_reports());
        tasks.spawn(self.clone().keep_lease());
        tasks.spawn(self.clone().maintain());
        tasks.spawn(self.clone().listen());
        self.wake_all();
        Ok(())
    }

    /// Like [`Supervisor::start`], but runs only executions of one agent. For a process that ends after one run.
    pub async fn start_for_agent(&self, agent_id: &str) -> store::Result<()> {
        self.0.dispatcher.add_only_agent(agent_id);
        self.start().await
    }

    /// Also runs executions of another agent on a node that was started with [`Supervisor::start_for_agent`]. Ends a
    /// drain in progress.
    pub fn add_agent(&self, agent_id: &str) {
        self.0.dispatcher.add_only_agent(agent_id);
        self.wake(agent_id);
    }

    /// Stops claiming executions and waits until none runs on this node. [`Supervisor::add_agent`] starts claiming again.
    /// Open sessions are not affected and may still run messages.
    pub async fn drain(&self) {
        self.0.dispatcher.drain();
        loop {
            let ended = self.0.running.ended.notified();
            if self.running_count() == 0 {
                return;
            }
            let _ = tokio::time::timeout(DRAIN_POLL_INTERVAL, ended).await;
        }
    }

    /// Like [`Supervisor::drain`], but open sessions start no further messages either. For a node that stops afterwards.
    pub async fn drain_before_stop(&self) {
        self.0.dispatcher.hold_sessions();
        self.drain().await;
    }

    /// Stops the running executions and sessions, puts executions with attempts left back into the queue, and waits
    /// until all have ended. Then ends the guardian and removes this node from the database. A failure to remove it is
    /// logged.
    pub async fn stop(&self) {
        self.0.stopping.cancel();
        self.0.running.stop_all(StopReason::Shutdown);
        self.0.tasks.close();
        self.0.tasks.wait().await;
        self.0.processes.stop().await;
        let node = self.0.node;
        let left = self.0.store.transaction(async move |tx| nodes::leave(tx, node).await).await;
        if let Err(error) = left {
            tracing::warn!(event = "node_not_signed_off", error = %error);
        }
    }

    /// Returns a token that is cancelled when the node stops and no execution runs on it. Starts a task that waits for
    /// that.
    pub(crate) fn drained(&self) -> CancellationToken {
        let supervisor = self.clone();
        let drained = CancellationToken::new();
        let token = drained.clone();
        self.0.tasks.spawn(async move {
            supervisor.0.stopping.cancelled().await;
            while supervisor.running_count() > 0 {
                tokio::time::sleep(STOP_POLL_INTERVAL).await;
            }
            token.cancel();
        });
        drained
    }
}

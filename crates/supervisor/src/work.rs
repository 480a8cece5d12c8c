//! The work of a node from its start to its stop.

use std::time::Duration;

use store::nodes;
use tokio_util::sync::CancellationToken;

use crate::{Stop, Supervisor, guardian};

/// How often a node that drains looks at what runs although nothing has ended.
const DRAIN_POLL_INTERVAL: Duration = Duration::from_secs(1);
/// How often a node that stops looks at what runs.
const STOP_POLL_INTERVAL: Duration = Duration::from_millis(20);

impl Supervisor {
    /// Starts to work: recovers what dead nodes have left, then runs what is in the queues, until [`Supervisor::stop`].
    pub async fn work(&self) -> store::Result<()> {
        let swept = guardian::sweep().await;
        if swept > 0 {
            tracing::warn!(event = "processes_swept", count = swept);
        }
        self.refresh().await?;
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

    /// Works on the queue of one agent only: for a node that is there for one run and ends after it.
    pub async fn work_only_for(&self, agent_id: &str) -> store::Result<()> {
        self.0.dispatcher.work_only_for(agent_id);
        self.work().await
    }

    /// Claims nothing more, and waits until nothing runs here.
    pub async fn drain(&self) {
        self.0.dispatcher.drain();
        loop {
            let ended = self.0.running.ended.notified();
            if self.running() == 0 {
                return;
            }
            let _ = tokio::time::timeout(DRAIN_POLL_INTERVAL, ended).await;
        }
    }

    /// Ends what runs, hands the rest back, and returns when that is done.
    pub async fn stop(&self) {
        self.0.stopping.cancel();
        self.0.running.stop_all(Stop::Shutdown);
        self.0.tasks.close();
        self.0.tasks.wait().await;
        self.0.processes.stop().await;
        let node = self.0.node;
        let left = self.0.store.transaction(async move |tx| nodes::leave(tx, node).await).await;
        if let Err(error) = left {
            tracing::warn!(event = "node_not_signed_off", error = %error);
        }
    }

    /// Returns a token that is cancelled when the node stops and nothing runs on it any more.
    pub(crate) fn drained(&self) -> CancellationToken {
        let supervisor = self.clone();
        let drained = CancellationToken::new();
        let token = drained.clone();
        self.0.tasks.spawn(async move {
            supervisor.0.stopping.cancelled().await;
            while supervisor.running() > 0 {
                tokio::time::sleep(STOP_POLL_INTERVAL).await;
            }
            token.cancel();
        });
        drained
    }
}

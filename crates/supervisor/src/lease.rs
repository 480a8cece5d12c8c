//! The lease of a node. Other nodes take it for alive until the lease expires. The guardian ends its agents before
//! that.

use std::time::Duration;

use store::nodes;

use crate::submit::later;
use crate::{StopReason, Supervisor};

/// The time for which a node counts as alive after a renewal.
pub(crate) const LEASE: Duration = Duration::from_secs(20);
/// The time between two renewals.
const RENEWAL_INTERVAL: Duration = Duration::from_secs(5);
/// The time before the end of the lease at which the guardian ends the agents of this node.
const GUARD_MARGIN: Duration = Duration::from_secs(5);

/// Ends the processes of this node unless it is renewed in time.
pub(crate) trait ProcessGuard: Send + Sync {
    /// Lets the processes run for the time `lease` from now on.
    fn renew(&self, lease: Duration);
}

impl Supervisor {
    /// Registers this node, removes dead nodes, and recovers their executions. If the database is not shared, all other
    /// nodes count as dead. Fails if the database fails.
    pub(crate) async fn join(&self) -> store::Result<()> {
        let node = self.0.node;
        let now = self.0.clock.now();
        let is_alone = !self.0.store.is_shared();
        let join = self.0.store.transaction(async move |tx| {
            let now = nodes::lease_time(tx, now).await?;
            nodes::join(tx, node, now, later(now, LEASE)).await?;
            // The node that holds the lock of the data directory is the only one.
            if is_alone { nodes::remove_others(tx, node).await } else { nodes::remove_expired(tx, now).await }
        });
        join.await?;
        self.recover_abandoned().await
    }

    /// Renews the lease every 5 seconds until the node has stopped and no execution runs on it. The guardian gets a
    /// shorter lease at the start and after each successful renewal. If the lease was lost, stops all executions of
    /// this node and registers it again. Failures are logged, and the next round tries again; without success, the
    /// guardian ends the agents.
    pub(crate) async fn keep_lease(self) {
        let guard = self.0.processes.clone();
        guard.renew(LEASE - GUARD_MARGIN);
        let drained = self.drained();
        loop {
            tokio::select! {
                () = drained.cancelled() => return,
                () = tokio::time::sleep(RENEWAL_INTERVAL) => {}
            }
            match self.renew_lease().await {
                // The lease of the guardian must never outlast the one in the database.
                Ok(true) => guard.renew(LEASE - GUARD_MARGIN),
                Ok(false) => {
                    tracing::error!(
                        event = "lease_lost",
                        message = "another node declared this node dead; it registers again"
                    );
                    self.0.running.stop_all(StopReason::ClaimLost);
                    if let Err(error) = self.join().await {
                        tracing::error!(event = "lease_not_renewed", error = %error);
                    }
                }
                Err(error) => tracing::error!(event = "lease_not_renewed", error = %error),
            }
        }
    }

    /// Renews the lease in the database. Returns `false` if another node has declared this one dead. Returns `true`
    /// without a write if the database is not shared. Fails if the database fails.
    async fn renew_lease(&self) -> store::Result<bool> {
        if !self.0.store.is_shared() {
            return Ok(true);
        }
        let node = self.0.node;
        let now = self.0.clock.now();
        let renewed = self.0.store.transaction(async move |tx| {
            let now = nodes::lease_time(tx, now).await?;
            nodes::renew_lease(tx, node, later(now, LEASE)).await
        });
        renewed.await
    }
}

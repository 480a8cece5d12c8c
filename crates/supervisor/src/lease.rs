//! The lease of a node: other nodes believe it to live until the lease expires, and the guardian ends its agents before that.

use std::time::Duration;

use store::nodes;

use crate::submit::later;
use crate::{Stop, Supervisor};

/// How long a node counts as alive after a renewal, and how often it renews.
const LEASE: Duration = Duration::from_secs(20);
const RENEWAL_INTERVAL: Duration = Duration::from_secs(5);
/// How long before the end of the lease the guardian ends the agents of this node.
const GUARD_MARGIN: Duration = Duration::from_secs(5);

/// Ends the processes of this node unless it is renewed in time.
pub(crate) trait Guard: Send + Sync {
    fn renew(&self, for_so_long: Duration);
}

impl Supervisor {
    /// Signs this node on, and recovers what dead nodes have left.
    pub(crate) async fn join(&self) -> store::Result<()> {
        let node = self.0.node;
        let now = self.0.clock.now();
        let alone = !self.0.store.is_shared();
        let join = self.0.store.transaction(async move |tx| {
            let now = nodes::judge(tx, now).await?;
            nodes::join(tx, node, now, later(now, LEASE)).await?;
            // The node that holds the lock of the data directory is the only one.
            if alone { nodes::bury_others(tx, node).await } else { nodes::bury(tx, now).await }
        });
        join.await?;
        self.recover_abandoned().await
    }

    /// Renews the lease until the node has stopped and nothing runs on it any more.
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
                // The guardian is promised no more than what other nodes believe.
                Ok(true) => guard.renew(LEASE - GUARD_MARGIN),
                Ok(false) => {
                    tracing::error!(event = "lease_lost", message = "this node was taken for dead; it begins anew");
                    self.0.running.stop_all(Stop::Lost);
                    if let Err(error) = self.join().await {
                        tracing::error!(event = "lease_not_renewed", error = %error);
                    }
                }
                Err(error) => tracing::error!(event = "lease_not_renewed", error = %error),
            }
        }
    }

    /// Returns `false` if another node has taken this one for dead.
    async fn renew_lease(&self) -> store::Result<bool> {
        if !self.0.store.is_shared() {
            return Ok(true);
        }
        let node = self.0.node;
        let now = self.0.clock.now();
        let renewed = self.0.store.transaction(async move |tx| {
            let now = nodes::judge(tx, now).await?;
            nodes::renew(tx, node, later(now, LEASE)).await
        });
        renewed.await
    }
}

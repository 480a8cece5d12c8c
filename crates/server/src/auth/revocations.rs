//! The revoked tokens, cached in memory. Every node reads the table every few seconds. So a revocation applies at once
//! on its own node, and soon on all nodes.

use std::collections::HashSet;
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use background::reconcile;

use crate::App;

const REFRESH_INTERVAL: Duration = Duration::from_secs(2);

/// The ids of revoked tokens, as `revocation_id` computes them.
#[derive(Debug, Default)]
pub(crate) struct Revocations {
    ids: RwLock<HashSet<String>>,
}

impl Revocations {
    /// Returns `true` if the token with this id is revoked.
    pub(crate) fn contains(&self, id: &str) -> bool {
        self.ids.read().unwrap_or_else(PoisonError::into_inner).contains(id)
    }

    /// Adds an id to the cache, without the table.
    pub(crate) fn add(&self, id: String) {
        self.ids.write().unwrap_or_else(PoisonError::into_inner).insert(id);
    }

    /// Reads the table. Fails if the database fails; then the cache is unchanged.
    pub(crate) async fn refresh(&self, app: &App) -> store::Result<()> {
        let mut reader = app.store().reader().await?;
        let ids = store::tokens::revoked(&mut reader, app.clock().now()).await?;
        *self.ids.write().unwrap_or_else(PoisonError::into_inner) = ids.into_iter().collect();
        Ok(())
    }
}

/// Refreshes the cache until the server stops. While the database is unavailable, the last list stays valid.
pub(crate) async fn refresh_loop(app: App) {
    let work = || async { app.revocations().refresh(&app).await.map(|()| None) };
    reconcile::run("revocations_not_read", REFRESH_INTERVAL, app.stopping(), std::future::pending, work).await;
}

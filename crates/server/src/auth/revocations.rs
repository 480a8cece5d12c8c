//! The tokens that were taken back, in memory. The table is the truth: it is read again every few seconds, so that
//! what one node revokes soon holds on all; the node that revokes knows at once.

use std::collections::HashSet;
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use background::reconcile;

use crate::App;

const INTERVAL: Duration = Duration::from_secs(2);

#[derive(Debug, Default)]
pub(crate) struct Revocations {
    ids: RwLock<HashSet<String>>,
}

impl Revocations {
    pub(crate) fn contains(&self, id: &str) -> bool {
        self.ids.read().unwrap_or_else(PoisonError::into_inner).contains(id)
    }

    pub(crate) fn add(&self, id: String) {
        self.ids.write().unwrap_or_else(PoisonError::into_inner).insert(id);
    }

    pub(crate) async fn refresh(&self, app: &App) -> store::Result<()> {
        let mut reader = app.store().reader().await?;
        let ids = store::tokens::revoked(&mut reader, app.clock().now()).await?;
        *self.ids.write().unwrap_or_else(PoisonError::into_inner) = ids.into_iter().collect();
        Ok(())
    }
}

/// Reads the list until the server stops. The list known last stays in force while the database is away.
pub(crate) async fn keep_fresh(app: App) {
    let work = || async { app.revocations().refresh(&app).await.map(|()| None) };
    reconcile::run("revocations_not_read", INTERVAL, app.stopping(), std::future::pending, work).await;
}

//! Removes rows after their retention period and idle state of the rate limits, once an hour. Tests once a minute that the
//! database accepts writes, so that health checks notice a fault before a user does (OPS-2). Updates the index of task
//! texts.

use std::time::Duration;

use background::reconcile;
use store::Store;
use store::housekeeping::{RemovedRows, sweep};

use crate::App;
use crate::auth::revocations;

/// The time between two updates of the index of task texts. A search also checks the tasks that wait for an update.
const INDEX_INTERVAL: Duration = Duration::from_secs(10);
const INTERVAL: Duration = Duration::from_secs(3600);
/// The time between two test writes of a server without other writes.
const TEST_WRITE_INTERVAL: Duration = Duration::from_secs(60);

/// Runs housekeeping, test writes, updates of the index and the refresh of revocations until the server stops.
pub async fn run(app: App) {
    let revocations = tokio::spawn(revocations::refresh_loop(app.clone()));
    let index_updates = tokio::spawn({
        let app = app.clone();
        async move { update_index(&app).await }
    });
    let test_writes = tokio::spawn({
        let app = app.clone();
        async move { app.stopping().run_until_cancelled(test_writes(app.store())).await }
    });
    while app.stopping().run_until_cancelled(round(&app)).await.is_some() {}
    let _ = revocations.await;
    let _ = test_writes.await;
    let _ = index_updates.await;
}

/// Indexes the queued tasks in each interval, until the server stops.
async fn update_index(app: &App) {
    let work = async || -> store::Result<_> {
        let more = store::task_index::update(app.store()).await?;
        Ok(more.then_some(Duration::ZERO))
    };
    reconcile::run("task_index_failed", INDEX_INTERVAL, app.stopping(), std::future::pending, work).await;
}

/// Makes a test write in each interval in which no other write was committed. Logs the first failure and the recovery.
async fn test_writes(store: &Store) {
    let mut commits = store.commits();
    let mut has_failed = false;
    loop {
        commits.mark_unchanged();
        tokio::time::sleep(TEST_WRITE_INTERVAL).await;
        if commits.has_changed().unwrap_or(true) {
            continue;
        }
        let written = store.test_write().await;
        match &written {
            Ok(()) if has_failed => tracing::info!(event = "storage_recovered"),
            Err(error) if !has_failed => tracing::error!(event = "storage_failed", error = %error),
            Ok(()) | Err(_) => {}
        }
        has_failed = written.is_err();
    }
}

/// Removes expired rows, full buckets of the rate limits and expired blocks of addresses. Then sleeps for an hour.
/// Removed rows and failures are logged; a failure does not end the round.
async fn round(app: &App) {
    let config = app.active_config();
    match sweep(app.store(), config.settings.retention, app.clock().now()).await {
        Ok(removed) if removed != RemovedRows::default() => {
            tracing::info!(event = "housekeeping", removed = ?removed, "removed expired rows");
        }
        Ok(_) => {}
        Err(error) => tracing::warn!(error = %error, "housekeeping failed; retrying in an hour"),
    }
    if let Some(limiter) = &config.limiter {
        limiter.remove_idle();
    }
    app.a2a().evict_expired(app.clock().now());
    tokio::time::sleep(INTERVAL).await;
}

//! Removes rows after their retention period and idle state of the rate limits, once an hour.

use std::time::Duration;

use store::housekeeping::{RemovedRows, sweep};

use crate::App;
use crate::auth::revocations;

const INTERVAL: Duration = Duration::from_secs(3600);

/// Runs housekeeping and the refresh of revocations until the server stops.
pub async fn run(app: App) {
    let revocations = tokio::spawn(revocations::refresh_loop(app.clone()));
    while app.stopping().run_until_cancelled(round(&app)).await.is_some() {}
    let _ = revocations.await;
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

//! What the server does by itself from time to time: removes what is past its time and forgets idle rate buckets.

use std::time::Duration;

use store::housekeeping::{Removed, sweep};

use crate::App;
use crate::auth::revocations;

const INTERVAL: Duration = Duration::from_secs(3600);

/// Runs until the server stops.
pub async fn run(app: App) {
    let tokens = tokio::spawn(revocations::keep_fresh(app.clone()));
    while app.stopping().run_until_cancelled(tick(&app)).await.is_some() {}
    let _ = tokens.await;
}

async fn tick(app: &App) {
    let in_force = app.in_force();
    match sweep(app.store(), in_force.settings.retention, app.clock().now()).await {
        Ok(removed) if removed != Removed::default() => {
            tracing::info!(event = "housekeeping", removed = ?removed, "removed what was past its time");
        }
        Ok(_) => {}
        Err(error) => tracing::warn!(error = %error, "housekeeping failed; it is tried again later"),
    }
    if let Some(limiter) = &in_force.limiter {
        limiter.tidy();
    }
    app.a2a().tidy(app.clock().now());
    tokio::time::sleep(INTERVAL).await;
}

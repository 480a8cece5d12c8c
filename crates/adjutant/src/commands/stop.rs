//! `adjutant stop`, and the drain of a server that stops.

use std::time::Duration;

use api::stop::{ServerStopRequest, ServerStopSummary};
use server::App;

use crate::cli::GlobalOptions;
use crate::client::Client;
use crate::exit::{ExitError, ExitStatus};
use crate::output;
use crate::target::{ConnectionTarget, ServerKind, find_target};

/// The limit of a drain without `--timeout`.
const DEFAULT_DRAIN_SECONDS: u32 = 600;
/// The time between two checks whether the server has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// The time in which a server ends after a drain.
const STOP_TIMEOUT: Duration = Duration::from_secs(30);

/// Stops the server, and waits for its end if it uses the data directory of this machine. With `drain`, running executions
/// may finish for `timeout` seconds. Fails if no server runs, if it refuses, or if it does not end in time.
pub(crate) async fn run(global: &GlobalOptions, drain: bool, timeout: Option<u32>) -> anyhow::Result<()> {
    match find_target(global).await? {
        ConnectionTarget::Server(target) if target.kind == ServerKind::Server => {}
        _ => return Err(ExitError::new(ExitStatus::NotFound, "no server is running").into()),
    }
    let drain_seconds = drain.then(|| timeout.unwrap_or(DEFAULT_DRAIN_SECONDS));
    let answer = Client::connect(global).await?.post("/api/stop", &ServerStopRequest { drain_seconds }).await?;
    answer.show(|summary: ServerStopSummary| {
        output::note(&match (drain_seconds, summary.running) {
            (Some(seconds), running) if running > 0 => {
                format!("{running} running executions may finish within {seconds} s")
            }
            _ => "the server stops".to_owned(),
        });
        Ok(())
    })?;
    if global.server.is_some() {
        return Ok(());
    }
    let end = async {
        while let Ok(ConnectionTarget::Server(_)) = find_target(global).await {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    };
    let limit = STOP_TIMEOUT + Duration::from_secs(drain_seconds.unwrap_or_default().into());
    let message = "the server has not ended in time";
    tokio::time::timeout(limit, end).await.map_err(|_| ExitError::new(ExitStatus::Timeout, message).into())
}

/// Lets the running executions of this node finish, for at most `limit` and until `interrupted` completes. Nothing starts
/// meanwhile. Requests are answered.
pub(super) async fn drain(app: &App, limit: Duration, interrupted: impl Future<Output = ()>) {
    if limit.is_zero() {
        return;
    }
    app.set_draining();
    let running = app.supervisor().running_count();
    tracing::info!(event = "server_draining", running, limit_seconds = limit.as_secs());
    tokio::select! {
        () = app.supervisor().drain_before_stop() => tracing::info!(event = "server_drained"),
        () = tokio::time::sleep(limit) => {
            let running = app.supervisor().running_count();
            tracing::warn!(event = "server_not_drained", running, "executions did not finish in time and are ended");
        }
        () = interrupted => tracing::info!(event = "drain_interrupted"),
    }
}

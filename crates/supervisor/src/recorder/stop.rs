//! The request to stop a run. Only the first request counts.

use std::sync::OnceLock;

use tokio::sync::watch;

use super::RunRecorder;

/// Why a run has to end early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    Timeout,
    Cancelled,
    /// This node stops.
    Shutdown,
    /// Another node has taken over the execution. Nothing more is recorded for this claim.
    ClaimLost,
}

/// The state of a request to stop.
pub(super) struct StopSignal {
    reason: watch::Sender<Option<StopReason>>,
    /// The error of the execution after a cancellation.
    cancel_error: OnceLock<String>,
}

impl Default for StopSignal {
    fn default() -> Self {
        Self { reason: watch::Sender::new(None), cancel_error: OnceLock::new() }
    }
}

impl RunRecorder {
    /// Waits until the run is requested to stop and returns the reason. Returns at once if it was requested before. Can
    /// be called any number of times.
    pub async fn stop_requested(&self) -> StopReason {
        let mut stop = self.0.stop.reason.subscribe();
        loop {
            if let Some(reason) = *stop.borrow_and_update() {
                return reason;
            }
            if stop.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Returns the reason if the run is requested to stop.
    pub fn stop_reason(&self) -> Option<StopReason> {
        *self.0.stop.reason.borrow()
    }

    /// Requests the run to stop. Only the first reason counts.
    pub(crate) fn request_stop(&self, reason: StopReason) {
        self.0.stop.reason.send_if_modified(|stop| {
            let first = stop.is_none();
            stop.get_or_insert(reason);
            first
        });
    }

    /// Requests the run to stop as cancelled. `error` becomes the error of the execution; without it, a default text
    /// does.
    pub(crate) fn request_cancel(&self, error: Option<String>) {
        if let Some(error) = error {
            let _ = self.0.stop.cancel_error.set(error);
        }
        self.request_stop(StopReason::Cancelled);
    }

    /// Returns the error of the execution after a cancellation.
    pub(crate) fn cancel_error(&self) -> String {
        self.0.stop.cancel_error.get().cloned().unwrap_or_else(|| "cancelled".to_owned())
    }
}

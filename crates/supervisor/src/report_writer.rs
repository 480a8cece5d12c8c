//! Writes what running executions report, for all of them together.

use std::time::Duration;

use crate::Supervisor;

/// How often reports are written.
const WRITE_INTERVAL: Duration = Duration::from_millis(100);
/// How soon a report is written after a time without any. A run that ends by then is written once.
const FLUSH_DELAY: Duration = Duration::from_millis(20);

impl Supervisor {
    /// Runs until the node has stopped and nothing runs on it any more.
    pub(crate) async fn write_reports(self) {
        let drained = self.drained();
        loop {
            tokio::select! {
                () = drained.cancelled() => return,
                () = self.0.running.unwritten.notified() => {}
            }
            tokio::time::sleep(FLUSH_DELAY).await;
            for desk in self.0.running.all() {
                if let Err(error) = desk.flush().await {
                    tracing::warn!(event = "output_not_written", execution_id = %desk.id(), error = %error);
                }
            }
            tokio::time::sleep(WRITE_INTERVAL - FLUSH_DELAY).await;
        }
    }
}

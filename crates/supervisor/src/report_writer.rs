//! Writes the records of all running executions.

use std::time::Duration;

use crate::Supervisor;

/// The time between two writes.
const WRITE_INTERVAL: Duration = Duration::from_millis(100);
/// The delay of the first write after a time without changes. A run that ends within the delay is written once.
const FLUSH_DELAY: Duration = Duration::from_millis(20);

impl Supervisor {
    /// Writes records when they change, until the node has stopped and no execution runs on it. Waits [`FLUSH_DELAY`]
    /// after a change and writes at most once per [`WRITE_INTERVAL`]. A failed write is logged. The recorder keeps its
    /// batch for the next round.
    pub(crate) async fn write_reports(self) {
        let drained = self.drained();
        loop {
            tokio::select! {
                () = drained.cancelled() => return,
                () = self.0.running.unwritten.notified() => {}
            }
            tokio::time::sleep(FLUSH_DELAY).await;
            for recorder in self.0.running.all() {
                if let Err(error) = recorder.flush().await {
                    tracing::warn!(event = "output_not_written", execution_id = %recorder.execution_id(), error = %error);
                }
            }
            tokio::time::sleep(WRITE_INTERVAL - FLUSH_DELAY).await;
        }
    }
}

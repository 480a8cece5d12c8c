//! The stop of everything (SEC-6). The table is authoritative: the statements of the queue check it. This node caches
//! the state for reports, and ends its executions and sessions while everything is stopped.

use model::stop_state::StopState;

use crate::{Supervisor, lock};

impl Supervisor {
    /// Returns the state while everything is stopped, as this node knows it. Another node may have changed it less than
    /// a poll interval ago.
    pub fn stop_state(&self) -> Option<StopState> {
        lock(&self.0.stop_state).clone()
    }

    /// Reads the state and applies it. While everything is stopped, requests the end of all executions and sessions, on
    /// all nodes, and stops those of this node. After the stop, makes the dispatcher read all queues. Does not wait for
    /// the ends. Fails if the database fails.
    pub async fn refresh_stop_state(&self) -> store::Result<()> {
        let mut reader = self.0.store.reader().await?;
        let current = store::stop_state::current(&mut reader).await?;
        let previous = std::mem::replace(&mut *lock(&self.0.stop_state), current.clone());
        let Some(state) = current else {
            if previous.is_some() {
                tracing::info!(event = "everything_resumed");
                self.wake_all();
            }
            return Ok(());
        };
        if previous.is_none() {
            tracing::warn!(event = "everything_stopped", reason = state.reason);
        }
        if store::stop_state::has_running(&mut reader).await? {
            drop(reader);
            let error = StopState::describe(state.reason.as_deref());
            let now = self.0.clock.now();
            let ends = self
                .0
                .store
                .transaction(async move |tx| store::stop_state::request_ends(tx, &error, now).await)
                .await?;
            ends.sessions.iter().for_each(|id| self.wake_session(*id));
            self.stop_cancelled().await?;
        }
        Ok(())
    }
}

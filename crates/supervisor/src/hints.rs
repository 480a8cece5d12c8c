//! Handles hints from other nodes on the same database: queue changes, ends, cancellations. A hint saves the wait for
//! the next poll. A missed hint costs one poll interval.

use store::executions::cancel_requests;
use store::hints::Hint;

use crate::Supervisor;

impl Supervisor {
    /// Starts a node that serves requests but runs no agents. Reads the agents and removes unneeded files. Then follows
    /// the changes of other nodes and does maintenance in the background. Fails if the database fails.
    pub async fn start_without_running(&self) -> store::Result<()> {
        self.0.dispatcher.disable();
        self.refresh_agents().await?;
        self.clean_up().await?;
        self.0.tasks.spawn(self.clone().listen());
        self.0.tasks.spawn(self.clone().maintain());
        Ok(())
    }

    /// Returns true if this node runs no agents.
    pub(crate) fn runs_nothing(&self) -> bool {
        self.0.dispatcher.is_disabled()
    }

    /// Handles hints until the node stops. Returns at once if the database is not shared. A failure is logged. The
    /// failed hints are not handled again; the following ones are.
    pub(crate) async fn listen(self) {
        let Some(mut listener) = self.0.store.hint_listener() else { return };
        let stopping = self.0.stopping.clone();
        while let Some(hints) = stopping.run_until_cancelled(listener.next()).await {
            if let Err(error) = self.handle_hints(hints).await {
                tracing::warn!(event = "hint_not_heeded", error = %error);
            }
        }
    }

    /// Wakes the queues and followers that the hints name. Reads the agents, the stop of everything and the cancellations
    /// at most once for all hints, after the rest. A cancellation counts only if the execution runs on this node. An end also wakes the
    /// tasks that wait for one. `Everything` stands for all hints at once. Hints about queues have no effect on a node
    /// that runs no agents. Fails if the database fails.
    async fn handle_hints(&self, hints: Vec<Hint>) -> store::Result<()> {
        let mut ended = false;
        let mut agents = false;
        let mut cancel = false;
        let mut stop = false;
        for hint in hints {
            match hint {
                Hint::Queue(agent) if !self.runs_nothing() => self.wake(&agent),
                Hint::Queue(_) => {}
                Hint::Execution(id) | Hint::Session(id) => self.0.notifiers.notify(id),
                Hint::Ended(id) => {
                    self.0.notifiers.notify(id);
                    ended = true;
                }
                Hint::Cancel(id) => cancel |= self.recorder_of(id).is_some(),
                Hint::Agents => agents = true,
                Hint::Stop => stop = true,
                Hint::Everything => {
                    self.0.notifiers.notify_all();
                    self.wake_all();
                    (ended, agents, cancel, stop) = (true, true, true, true);
                }
            }
        }
        if ended {
            self.0.running.ended.notify_waiters();
        }
        if agents {
            self.refresh_agents().await?;
        }
        if stop {
            self.refresh_stop_state().await?;
        }
        if cancel {
            self.stop_cancelled().await?;
        }
        Ok(())
    }

    /// Stops the executions of this node that were cancelled or erased. Does not wait for their end. Fails if the
    /// database fails.
    pub(crate) async fn stop_cancelled(&self) -> store::Result<()> {
        for request in cancel_requests(&mut self.0.store.reader().await?, self.0.node).await? {
            if let Some(recorder) = self.recorder_of(request.id) {
                recorder.request_cancel(request.reason);
            }
        }
        Ok(())
    }
}

//! What other nodes on the same database hint at: work in a queue, an end, a wish to cancel. Whoever waits for it looks at
//! once; whoever misses a hint looks a moment later.

use store::executions::cancelled;
use store::hints::Hint;

use crate::{Stop, Supervisor};

impl Supervisor {
    /// For a node that serves and runs nothing: it hears what others do, and looks after what nobody else does.
    pub async fn attend(&self) -> store::Result<()> {
        self.0.dispatcher.rest();
        self.refresh().await?;
        self.clean_up().await?;
        self.0.tasks.spawn(self.clone().listen());
        self.0.tasks.spawn(self.clone().maintain());
        Ok(())
    }

    /// Whether other nodes run what is asked for here.
    pub(crate) fn is_resting(&self) -> bool {
        self.0.dispatcher.is_resting()
    }

    /// Nothing where there are no other nodes.
    pub(crate) async fn listen(self) {
        let Some(mut listener) = self.0.store.listener() else { return };
        let stopping = self.0.stopping.clone();
        while let Some(hints) = stopping.run_until_cancelled(listener.next()).await {
            if let Err(error) = self.heed(hints).await {
                tracing::warn!(event = "hint_not_heeded", error = %error);
            }
        }
    }

    async fn heed(&self, hints: Vec<Hint>) -> store::Result<()> {
        let mut ended = false;
        let mut agents = false;
        let mut cancel = false;
        for hint in hints {
            match hint {
                Hint::Queue(agent) if !self.is_resting() => self.wake(&agent),
                Hint::Queue(_) => {}
                Hint::Execution(id) | Hint::Session(id) => self.0.wakes.wake(id),
                Hint::Ended(id) => {
                    self.0.wakes.wake(id);
                    ended = true;
                }
                Hint::Cancel(id) => cancel |= self.desk(id).is_some(),
                Hint::Agents => agents = true,
                Hint::Everything => {
                    self.0.wakes.wake_all();
                    self.wake_all();
                    (ended, agents, cancel) = (true, true, true);
                }
            }
        }
        if ended {
            self.0.running.ended.notify_waiters();
        }
        if agents {
            self.refresh().await?;
        }
        if cancel {
            self.stop_cancelled().await?;
        }
        Ok(())
    }

    /// Stops what runs here and somebody wants cancelled.
    pub(crate) async fn stop_cancelled(&self) -> store::Result<()> {
        for id in cancelled(&mut self.0.store.reader().await?, self.0.node).await? {
            if let Some(desk) = self.desk(id) {
                desk.stop(Stop::Cancelled);
            }
        }
        Ok(())
    }
}

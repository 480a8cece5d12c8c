//! Handles the ends of executions: counts failures, pauses a schedule that fails too often, notifies its owner and
//! starts the next queued occurrence. The row of the execution marks that this is still to be done. It is therefore
//! done once, even if a node is killed.

use std::collections::BTreeMap;

use futures::StreamExt;
use jiff::Timestamp;
use model::execution::{Execution, FollowUp};
use store::executions::{ExecutionRow, OwnerScope, mark_followed_up, pending_follow_ups};
use store::schedules::{self, ScheduleRow};
use uuid::Uuid;

use crate::Scheduler;
use crate::firing::{Firing, Submissions};

/// The number of ended executions that are read at once.
const BATCH_SIZE: i64 = 128;

impl Scheduler {
    /// Handles every ended execution of a schedule, in batches. The ends of one schedule are handled in order,
    /// different schedules concurrently. Then starts queued occurrences of schedules without a running execution, for
    /// up to 128 schedules. Returns the number of ended executions. Fails after a batch with a failure and leaves the
    /// rest to the next call. Also fails at the first database error for a queued occurrence. A refused occurrence is
    /// no failure of this function.
    pub async fn follow_up(&self) -> store::Result<usize> {
        let mut total = 0;
        loop {
            let ended = pending_follow_ups(&mut self.store().reader().await?, FollowUp::Schedule, BATCH_SIZE).await?;
            let count = ended.len();
            total += count;
            // Ends of one schedule are handled in order, different schedules concurrently.
            let mut by_schedule = BTreeMap::<_, Vec<ExecutionRow>>::new();
            for stored in ended {
                by_schedule.entry(stored.execution.schedule_id).or_default().push(stored);
            }
            let each = by_schedule.into_values().map(|ended| self.handle_ends(ended));
            let results: Vec<_> =
                futures::stream::iter(each).buffer_unordered(self.max_concurrent_transactions()).collect().await;
            if let Some(error) = results.into_iter().find_map(Result::err) {
                return Err(error);
            }
            if (count as i64) < BATCH_SIZE {
                break;
            }
        }
        // These occurrences wait for an execution that was removed, or that ended while they were queued.
        for id in schedules::ready_with_queued(&mut self.store().reader().await?, BATCH_SIZE).await? {
            self.start_queued(id).await?;
        }
        Ok(total)
    }

    /// Handles the ended executions of one schedule in order. Stops at the first failure.
    async fn handle_ends(&self, ended: Vec<ExecutionRow>) -> store::Result<()> {
        for stored in ended {
            self.handle_end(&stored).await?;
        }
        Ok(())
    }

    /// Handles one ended execution. If it has no schedule, or its schedule was removed or cannot be read, only marks
    /// the follow-up as done. Fails if the database fails.
    async fn handle_end(&self, stored: &ExecutionRow) -> store::Result<()> {
        let id = stored.execution.id;
        let now = self.clock().now();
        let seen = match stored.execution.schedule_id {
            Some(schedule) => self.load(schedule, now).await?,
            None => None,
        };
        let Some((seen, submissions)) = seen else {
            // The schedule was removed.
            let job = self.store().transaction(async move |tx| mark_followed_up(tx, id).await);
            return job.await.map(drop);
        };
        self.act_on_end(seen, submissions, Some(stored.execution.clone())).await
    }

    /// Starts the next queued occurrence of a schedule, unless it was removed, cannot be read, is paused, or has a
    /// running execution.
    async fn start_queued(&self, schedule: Uuid) -> store::Result<()> {
        let now = self.clock().now();
        let Some((seen, submissions)) = self.load(schedule, now).await? else { return Ok(()) };
        self.act_on_end(seen, submissions, None).await
    }

    /// Reads the schedule and prepares an execution for its next queued occurrence. The submissions are empty if none
    /// is queued, and contain an error if the execution cannot be prepared. Returns `None` if the schedule does not
    /// exist or its row is invalid; the latter is logged. Fails if the database fails.
    async fn load(&self, schedule: Uuid, now: Timestamp) -> store::Result<Option<(ScheduleRow, Submissions)>> {
        let mut reader = self.store().reader().await?;
        let row = match schedules::get_row(&mut reader, OwnerScope::AllUsers, schedule, now).await {
            Ok(row) => row,
            Err(store::Error::NotFound) => return Ok(None),
            // It will be paused when it is due. It must not block the follow-up of other schedules.
            Err(store::Error::Corrupt(why)) => {
                tracing::error!(event = "schedule_unreadable", schedule_id = %schedule, error = why);
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        let queued = schedules::queued_decisions(&mut reader, schedule, 1).await?.pop();
        drop(reader);
        let submission = queued.map(|queued| self.prepare(&row.schedule, row.owner, Some(queued.due_at)));
        Ok(Some((row, submission.into_iter().collect())))
    }

    /// Records the end of an execution, if there is one, starts the next queued occurrence, and pauses a finished
    /// schedule, in one transaction. Does nothing if the end was recorded before or the schedule was removed. Starts
    /// nothing if the schedule has changed since `seen` was read. Fails if the database fails. The schedule is locked
    /// before anything else. Every transaction on schedules uses this order.
    async fn act_on_end(
        &self,
        seen: ScheduleRow,
        submissions: Submissions,
        ended: Option<Execution>,
    ) -> store::Result<()> {
        let scheduler = self.clone();
        let now = self.clock().now();
        let done = self.store().owner_transaction(seen.owner, async move |tx| {
            let row = schedules::lock_row(tx, OwnerScope::AllUsers, seen.schedule.id, now).await?;
            // A changed schedule may no longer need the prepared execution. The next round prepares it again.
            let submissions = if row.version == seen.version { submissions } else { Submissions::new() };
            let mut firing = Firing::new(&scheduler, tx, row, submissions, now);
            if let Some(execution) = &ended
                && !firing.record_end(execution).await?
            {
                return Ok(());
            }
            firing.start_queued().await?;
            firing.finish().await
        });
        match done.await {
            // The schedule was removed in the meantime. The next round handles that.
            Err(store::Error::NotFound) => Ok(()),
            result => result,
        }
    }
}

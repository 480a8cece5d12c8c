//! Acts upon the ends of executions: counts failures, pauses a schedule that fails too often, tells people, and starts what
//! waited. The row of the execution says that this is yet to be done, so it is done once, whoever dies meanwhile.

use std::collections::BTreeMap;

use futures::StreamExt;
use jiff::Timestamp;
use model::execution::{Execution, FollowUp};
use store::executions::{Stored, Whose, followed_up, to_follow_up};
use store::schedules::{self, Kept};
use uuid::Uuid;

use crate::Scheduler;
use crate::firing::{Firing, Submissions};

const AT_ONCE: i64 = 128;

impl Scheduler {
    /// Acts upon every execution of a schedule that has ended; says how many there were.
    pub async fn follow_up(&self) -> store::Result<usize> {
        let mut total = 0;
        loop {
            let ended = to_follow_up(&mut self.store().reader().await?, FollowUp::Schedule, AT_ONCE).await?;
            let count = ended.len();
            total += count;
            // Those of one schedule in the order of their ends, those of different ones at the same time.
            let mut by_schedule = BTreeMap::<_, Vec<Stored>>::new();
            for stored in ended {
                by_schedule.entry(stored.execution.schedule_id).or_default().push(stored);
            }
            let each = by_schedule.into_values().map(|ended| self.ended_in_order(ended));
            let results: Vec<_> = futures::stream::iter(each).buffer_unordered(self.together()).collect().await;
            if let Some(error) = results.into_iter().find_map(Result::err) {
                return Err(error);
            }
            if (count as i64) < AT_ONCE {
                break;
            }
        }
        // Whatever these waited for has gone in another way, or they came to wait while it ended.
        for id in schedules::queued_and_free(&mut self.store().reader().await?, AT_ONCE).await? {
            self.free(id).await?;
        }
        Ok(total)
    }

    async fn ended_in_order(&self, ended: Vec<Stored>) -> store::Result<()> {
        for stored in ended {
            self.ended(&stored).await?;
        }
        Ok(())
    }

    async fn ended(&self, stored: &Stored) -> store::Result<()> {
        let id = stored.execution.id;
        let now = self.clock().now();
        let seen = match stored.execution.schedule_id {
            Some(schedule) => self.look(schedule, now).await?,
            None => None,
        };
        let Some((seen, submissions)) = seen else {
            // Its schedule was removed.
            let job = self.store().transaction(async move |tx| followed_up(tx, id).await);
            return job.await.map(drop);
        };
        self.act_on_end(seen, submissions, Some(stored.execution.clone())).await
    }

    /// Starts what waits, although no execution has ended that it could have waited for.
    async fn free(&self, schedule: Uuid) -> store::Result<()> {
        let now = self.clock().now();
        let Some((seen, submissions)) = self.look(schedule, now).await? else { return Ok(()) };
        self.act_on_end(seen, submissions, None).await
    }

    /// The schedule as it is, and an execution for what waits, if something does.
    async fn look(&self, schedule: Uuid, now: Timestamp) -> store::Result<Option<(Kept, Submissions)>> {
        let mut reader = self.store().reader().await?;
        let kept = match schedules::look(&mut reader, Whose::Everyones, schedule, now).await {
            Ok(kept) => kept,
            Err(store::Error::NotFound) => return Ok(None),
            // It will be paused when it is due; meanwhile it keeps nobody else waiting.
            Err(store::Error::Corrupt(why)) => {
                tracing::error!(event = "schedule_unreadable", schedule_id = %schedule, error = why);
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        let waits = schedules::queued(&mut reader, schedule, 1).await?.pop();
        drop(reader);
        let submission = waits.map(|waits| self.prepare(&kept.schedule, kept.owner, Some(waits.due_at)));
        Ok(Some((kept, submission.into_iter().collect())))
    }

    /// Records the end of an execution, if there is one, and starts what waits. The schedule is locked before anything else:
    /// every transaction that acts on one uses this order.
    async fn act_on_end(&self, seen: Kept, submissions: Submissions, ended: Option<Execution>) -> store::Result<()> {
        let scheduler = self.clone();
        let now = self.clock().now();
        let done = self.store().transaction(async move |tx| {
            let row = schedules::lock(tx, Whose::Everyones, seen.schedule.id, now).await?;
            // A schedule that was changed since may not want what was prepared; the next look prepares it again.
            let submissions = if row.version == seen.version { submissions } else { Submissions::new() };
            let mut firing = Firing::new(&scheduler, tx, row, submissions, now);
            if let Some(execution) = &ended
                && !firing.record_end(execution).await?
            {
                return Ok(());
            }
            firing.begin_queued().await?;
            firing.finish().await
        });
        match done.await {
            // The schedule was removed meanwhile; the next look finds that.
            Err(store::Error::NotFound) => Ok(()),
            result => result,
        }
    }
}

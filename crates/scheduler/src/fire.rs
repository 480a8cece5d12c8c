//! Fires due schedules. One transaction for each schedule replaces the next occurrence by the one after it, enqueues
//! the executions and writes the decisions.

use futures::StreamExt;
use jiff::Timestamp;
use model::schedule::OverlapPolicy;
use model::stop_state::StopState;
use store::schedules::{self, ScheduleRow};
use uuid::Uuid;

use crate::firing::{Firing, Submissions};
use crate::occurrences::OccurrenceRule;
use crate::plan::{FiringPlan, plan};
use crate::{CrashPoint, Scheduler};

/// The number of due schedules that are read at once.
const BATCH_SIZE: i64 = 128;

/// The result of firing the due schedules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FiringReport {
    /// The number of schedules that were due.
    pub due: usize,
    /// The number of schedules that this node fired. Another node had the rest, or their transactions failed.
    pub fired: usize,
}

impl Scheduler {
    /// Fires all schedules that are due now, in batches of 128. The schedules of a batch fire concurrently. Stops after
    /// a batch that is not full, or in which this node fired none. A schedule that is read in two batches counts twice
    /// in `due`. A failed transaction does not stop the other schedules. Fails at the end with an error of the last
    /// batch that had one, and at once if the due schedules cannot be read.
    pub async fn fire_due(&self) -> store::Result<FiringReport> {
        let mut report = FiringReport::default();
        let mut failed = None;
        loop {
            let now = self.clock().now();
            let mut reader = self.store().reader().await?;
            let due = schedules::due_schedules(&mut reader, now, BATCH_SIZE).await?;
            let stop = if due.is_empty() { None } else { store::stop_state::last(&mut reader).await? };
            drop(reader);
            let is_full_batch = due.len() as i64 == BATCH_SIZE;
            report.due += due.len();
            let firings =
                futures::stream::iter(due.into_iter().map(|(id, row)| self.fire(id, row, stop.as_ref(), now)));
            let results: Vec<_> = firings.buffer_unordered(self.max_concurrent_transactions()).collect().await;
            let fired = results.iter().filter(|result| matches!(result, Ok(true))).count();
            report.fired += fired;
            failed = results.into_iter().find_map(Result::err).or(failed);
            if !is_full_batch || fired == 0 {
                return failed.map_or(Ok(report), Err);
            }
        }
    }

    /// Fires one schedule in one transaction: replaces its next occurrence, decides on each due one in order, and
    /// pauses it if it is finished. Returns `false` without a change if another node was faster or the schedule has
    /// changed since it was read. Calls the crash hook at each step. Fails if the database fails.
    ///
    /// `row` is an error if the stored row is invalid. Such a schedule is paused, which counts as fired. The same
    /// applies if its settings are invalid or the time of its next occurrence is missing. `stop` is the last stop of
    /// everything. It is a reason of the occurrences that were due during it.
    async fn fire(
        &self,
        id: Uuid,
        row: store::Result<ScheduleRow>,
        stop: Option<&StopState>,
        now: Timestamp,
    ) -> store::Result<bool> {
        self.reach(CrashPoint::Due);
        let planned = row.map_err(|error| error.to_string()).and_then(|row| {
            let rule = OccurrenceRule::new(&row.schedule.settings, row.schedule.created_at)
                .map_err(|invalid| invalid.to_string())?;
            let due = row.due_at.ok_or("the time of its next occurrence is missing")?;
            let mut plan = plan(&row, &rule, due, now);
            stop.into_iter().for_each(|stop| plan.explain_stop(stop));
            Ok((row, plan))
        });
        let (row, plan) = match planned {
            Ok(planned) => planned,
            Err(why) => return self.pause_unreadable(id, why, now).await,
        };
        let submissions = self.prepare_all(&row, &plan);
        self.reach(CrashPoint::Prepared);
        let scheduler = self.clone();
        let fired = self.store().owner_transaction(row.owner, async move |tx| -> store::Result<bool> {
            if !schedules::lock_due(tx, &row).await? || !schedules::advance(tx, &row, plan.next).await? {
                return Ok(false);
            }
            scheduler.reach(CrashPoint::Advanced);
            let last = plan.occurrences.iter().rposition(|occurrence| occurrence.verdict.is_ok());
            let mut firing = Firing::new(&scheduler, tx, row, submissions, now);
            for (index, occurrence) in plan.occurrences.iter().enumerate() {
                firing.decide(occurrence, Some(index) == last).await?;
            }
            if plan.next.is_none() {
                firing.finish().await?;
            }
            scheduler.reach(CrashPoint::Written);
            Ok(true)
        });
        let fired = match fired.await {
            // Everything was stopped after the schedule was read. The occurrence stays due until it is resumed.
            Err(store::Error::Stopped { .. }) => false,
            fired => fired?,
        };
        if fired {
            self.reach(CrashPoint::Committed);
        }
        Ok(fired)
    }

    /// Prepares the executions that may start, in the order of the occurrences. Considers only occurrences that the
    /// plan runs. Prepares all of them if runs may overlap, only the last if it cancels the previous run, and otherwise
    /// only the first. An execution that cannot be prepared becomes an error in the list.
    fn prepare_all(&self, row: &ScheduleRow, plan: &FiringPlan) -> Submissions {
        let to_run =
            plan.occurrences.iter().filter(|occurrence| occurrence.verdict.is_ok()).map(|occurrence| occurrence.due);
        let to_run: Vec<_> = match row.schedule.settings.overlap {
            OverlapPolicy::Allow => to_run.collect(),
            OverlapPolicy::Cancel => to_run.rev().take(1).collect(),
            OverlapPolicy::Skip | OverlapPolicy::QueueOne | OverlapPolicy::QueueAll => to_run.take(1).collect(),
        };
        // The ids are created in this order, and the queue follows the ids.
        to_run.into_iter().map(|due| self.prepare(&row.schedule, row.owner, Some(due))).collect()
    }

    /// Pauses a schedule that cannot be read, so that it is not read again in every round. Logs `why` as an error and
    /// stores it in the reason of the pause. Returns `true`, also if the schedule was removed meanwhile. Fails if the
    /// database fails.
    async fn pause_unreadable(&self, id: Uuid, why: String, now: Timestamp) -> store::Result<bool> {
        tracing::error!(event = "schedule_unreadable", schedule_id = %id, error = why);
        let reason = format!("the stored schedule is invalid: {why}");
        let given_up =
            self.store().transaction(async move |tx| schedules::pause_unreadable(tx, id, &reason, now).await).await;
        match given_up {
            Ok(()) | Err(store::Error::NotFound) => Ok(true),
            Err(error) => Err(error),
        }
    }
}

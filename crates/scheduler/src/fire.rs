//! Acts upon schedules whose time has come: one transaction each, in which the next time is swapped for the one behind it,
//! the execution is put into the queue, and the decision is written.

use futures::StreamExt;
use jiff::Timestamp;
use model::schedule::Overlap;
use store::schedules::{self, Kept};
use uuid::Uuid;

use crate::firing::{Firing, Submissions};
use crate::plan::{Plan, plan};
use crate::when::When;
use crate::{Point, Scheduler};

/// Looked at in one go.
const AT_ONCE: i64 = 128;

/// What came of one look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fired {
    /// Schedules that were due.
    pub seen: usize,
    /// Those that this node has acted upon; the others were somebody else's, or could not be written.
    pub acted: usize,
}

impl Scheduler {
    /// Acts upon everything that is due now.
    pub async fn fire_due(&self) -> store::Result<Fired> {
        let mut all = Fired::default();
        let mut failed = None;
        loop {
            let now = self.clock().now();
            let due = schedules::due(&mut self.store().reader().await?, now, AT_ONCE).await?;
            let full = due.len() as i64 == AT_ONCE;
            let seen = due.len();
            let acted = futures::stream::iter(due.into_iter().map(|(id, kept)| self.act(id, kept, now)));
            let results: Vec<_> = acted.buffer_unordered(self.together()).collect().await;
            let acted = results.iter().filter(|result| matches!(result, Ok(true))).count();
            all = Fired { seen: all.seen + seen, acted: all.acted + acted };
            failed = results.into_iter().find_map(Result::err).or(failed);
            if !full || acted == 0 {
                return failed.map_or(Ok(all), Err);
            }
        }
    }

    /// Whether it was this node that acted.
    async fn act(&self, id: Uuid, kept: store::Result<Kept>, now: Timestamp) -> store::Result<bool> {
        self.at(Point::Seen);
        let planned = kept.map_err(|error| error.to_string()).and_then(|kept| {
            let when =
                When::new(&kept.schedule.settings, kept.schedule.created_at).map_err(|wrong| wrong.to_string())?;
            let due = kept.due_at.ok_or("it does not say when it is due")?;
            let plan = plan(&kept, &when, due, now);
            Ok((kept, plan))
        });
        let (kept, plan) = match planned {
            Ok(planned) => planned,
            Err(why) => return self.give_up(id, why, now).await,
        };
        let submissions = self.prepare_all(&kept, &plan);
        self.at(Point::Prepared);
        let scheduler = self.clone();
        let fired = self.store().transaction(async move |tx| -> store::Result<bool> {
            if !schedules::lock_due(tx, &kept).await? || !schedules::advance(tx, &kept, plan.next).await? {
                return Ok(false);
            }
            scheduler.at(Point::Advanced);
            let last = plan.steps.iter().rposition(|step| step.verdict.is_ok());
            let mut firing = Firing::new(&scheduler, tx, kept, submissions, now);
            for (at, step) in plan.steps.iter().enumerate() {
                firing.decide(step, Some(at) == last).await?;
            }
            if plan.next.is_none() {
                firing.finish().await?;
            }
            scheduler.at(Point::Written);
            Ok(true)
        });
        let fired = fired.await?;
        if fired {
            self.at(Point::Committed);
        }
        Ok(fired)
    }

    /// Prepares one execution for each run that may start.
    fn prepare_all(&self, kept: &Kept, plan: &Plan) -> Submissions {
        let to_run = plan.steps.iter().filter(|step| step.verdict.is_ok()).map(|step| step.due);
        let to_run: Vec<_> = match kept.schedule.settings.overlap {
            Overlap::Allow => to_run.collect(),
            Overlap::Cancel => to_run.rev().take(1).collect(),
            Overlap::Skip | Overlap::QueueOne | Overlap::QueueAll => to_run.take(1).collect(),
        };
        // In the order of their times: that is also the order of their ids, and of the queue.
        to_run.into_iter().map(|due| self.prepare(&kept.schedule, kept.owner, Some(due))).collect()
    }

    /// What cannot be read is not looked at for ever.
    async fn give_up(&self, id: Uuid, why: String, now: Timestamp) -> store::Result<bool> {
        tracing::error!(event = "schedule_unreadable", schedule_id = %id, error = why);
        let reason = format!("it cannot be read: {why}");
        let given_up = self.store().transaction(async move |tx| schedules::give_up(tx, id, &reason, now).await).await;
        match given_up {
            Ok(()) | Err(store::Error::NotFound) => Ok(true),
            Err(error) => Err(error),
        }
    }
}

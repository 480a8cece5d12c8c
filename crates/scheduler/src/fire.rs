//! Acts upon schedules whose time has come: one transaction each, in which the next time is swapped for the one behind it,
//! the execution is put into the queue, and the decision is written.

use std::sync::Arc;

use futures::StreamExt;
use jiff::Timestamp;
use model::schedule::{Decision, Kind, Overlap};
use store::schedules::{self, Kept};
use uuid::Uuid;

use crate::plan::{Plan, Step, plan};
use crate::start::{Done, Prepared};
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
        let (mut all, mut failed) = (Fired::default(), None);
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
        let mut prepared = self.prepare_all(&kept, &plan);
        self.at(Point::Prepared);
        let scheduler = self.clone();
        let (kept, plan) = (Arc::new(kept), Arc::new(plan));
        let copies: Vec<_> = prepared.iter().flatten().cloned().collect();
        let written = self.store().write(move |conn| {
            Box::pin(async move {
                let mut done = Done::default();
                if !schedules::lock_due(conn, &kept).await? || !schedules::advance(conn, &kept, plan.next).await? {
                    return Ok(None);
                }
                scheduler.at(Point::Advanced);
                let last = plan.steps.iter().rposition(|step| step.verdict.is_ok());
                for (at, step) in plan.steps.iter().enumerate() {
                    scheduler.decide(conn, &kept, step, Some(at) == last, &mut prepared, now, &mut done).await?;
                }
                if plan.next.is_none() {
                    scheduler.finish(conn, &kept, now).await?;
                }
                done.unused.extend(prepared.into_iter().flatten());
                scheduler.at(Point::Written);
                Ok(Some(done))
            })
        });
        match written.await {
            Ok(Some(done)) => {
                self.at(Point::Committed);
                self.after(&done);
                Ok(true)
            }
            other => {
                copies.iter().for_each(|new| self.0.supervisor.forget(new));
                other.map(|_| false)
            }
        }
    }

    /// One for each run that may start, the first one last.
    fn prepare_all(&self, kept: &Kept, plan: &Plan) -> Prepared {
        let to_run = plan.steps.iter().filter(|step| step.verdict.is_ok()).map(|step| step.due);
        let to_run: Vec<_> = match kept.schedule.settings.overlap {
            Overlap::Allow => to_run.collect(),
            Overlap::Cancel => to_run.rev().take(1).collect(),
            Overlap::Skip | Overlap::QueueOne | Overlap::QueueAll => to_run.take(1).collect(),
        };
        // In the order of their times: that is also the order of their ids, and of the queue.
        let prepared = to_run.into_iter().map(|due| self.prepare(&kept.schedule, kept.owner, Some(due)));
        let mut prepared: Prepared = prepared.collect();
        prepared.reverse();
        prepared
    }

    #[expect(clippy::too_many_arguments, reason = "what is decided upon, with what, and what comes of it")]
    async fn decide(
        &self,
        conn: &mut store::Conn,
        kept: &Kept,
        step: &Step,
        last: bool,
        prepared: &mut Prepared,
        now: Timestamp,
        done: &mut Done,
    ) -> store::Result<()> {
        let id = kept.schedule.id;
        if schedules::is_decided(conn, id, step.due).await? {
            // The clock was put back, or somebody has set this time anew.
            return Ok(());
        }
        let decision = Decision {
            schedule_id: id,
            due_at: step.due,
            decided_at: now,
            kind: Kind::Missed,
            reason: None,
            execution_id: None,
            until: step.until,
        };
        let decision = match &step.verdict {
            Err(why) => Decision { reason: Some(why.clone()), ..decision },
            Ok(_) if !last && kept.schedule.settings.overlap == Overlap::Cancel => {
                Decision { kind: Kind::Skipped, reason: Some("a later one took its place".to_owned()), ..decision }
            }
            Ok(kind) => self.begin(conn, kept, Decision { kind: *kind, ..decision }, prepared, done).await?,
        };
        schedules::decide(conn, &decision).await?;
        done.kinds.push(decision.kind);
        if decision.kind == Kind::Refused {
            let why = decision.reason.unwrap_or_default();
            self.failed(conn, kept, None, &why, None, now, done).await?;
        }
        Ok(())
    }

    /// What cannot be read is not looked at for ever.
    async fn give_up(&self, id: Uuid, why: String, now: Timestamp) -> store::Result<bool> {
        tracing::error!(event = "schedule_unreadable", schedule_id = %id, error = why);
        let reason = format!("it cannot be read: {why}");
        let given_up = self
            .store()
            .write(move |conn| Box::pin(async move { schedules::give_up(conn, id, &reason, now).await }))
            .await;
        match given_up {
            Ok(()) | Err(store::Error::NotFound) => Ok(true),
            Err(error) => Err(error),
        }
    }
}

//! Acts upon the ends of executions: counts failures, pauses a schedule that fails too often, tells people, and starts what
//! waited. The row of the execution says that this is yet to be done, so it is done once, whoever dies meanwhile.

use std::collections::BTreeMap;

use futures::StreamExt;
use jiff::Timestamp;
use model::execution::{FollowUp, State, Status};
use store::executions::{Stored, Whose, followed_up, to_follow_up};
use store::schedules::{self, Kept};
use uuid::Uuid;

use crate::start::{Done, Prepared};
use crate::{Event, Scheduler};

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
        let (id, now) = (stored.execution.id, self.clock().now());
        let seen = match stored.execution.schedule_id {
            Some(schedule) => self.look(schedule, now).await?,
            None => None,
        };
        let Some((seen, prepared)) = seen else {
            // Its schedule is no more.
            let job = self.store().write(move |conn| Box::pin(async move { followed_up(conn, id).await }));
            return job.await.map(drop);
        };
        let execution = stored.execution.clone();
        self.in_order(seen, prepared, move |scheduler, conn, kept, prepared, done| {
            Box::pin(async move {
                if !followed_up(conn, id).await? {
                    return Ok(());
                }
                match Status::of(execution.state) {
                    Some(Status::Success) => {
                        schedules::followed(conn, kept, Some(Status::Success), 0).await?;
                        if kept.schedule.failures > 0 {
                            let text = match kept.schedule.failures {
                                1 => "it works again after a failure".to_owned(),
                                count => format!("it works again after {count} failures"),
                            };
                            scheduler.tell(conn, kept, Event::Recovered, text, Some(id), now, done).await?;
                        }
                    }
                    Some(Status::Cancelled) => {
                        // Somebody wanted that; it says nothing about the agent.
                        schedules::followed(conn, kept, Some(Status::Cancelled), kept.schedule.failures).await?;
                    }
                    status => {
                        let why = execution.error_message.clone().unwrap_or_else(|| words(execution.state).to_owned());
                        scheduler.failed(conn, kept, status, &why, Some(id), now, done).await?;
                    }
                }
                let kept = schedules::lock(conn, Whose::Users(kept.owner), kept.schedule.id, now).await?;
                scheduler.begin_queued(conn, &kept, prepared, now, done).await?;
                scheduler.finish(conn, &kept, now).await
            })
        })
        .await
    }

    /// Starts what waits, although nothing has ended that it could have waited for.
    async fn free(&self, schedule: Uuid) -> store::Result<()> {
        let now = self.clock().now();
        let Some((seen, prepared)) = self.look(schedule, now).await? else { return Ok(()) };
        self.in_order(seen, prepared, move |scheduler, conn, kept, prepared, done| {
            Box::pin(async move {
                scheduler.begin_queued(conn, kept, prepared, now, done).await?;
                scheduler.finish(conn, kept, now).await
            })
        })
        .await
    }

    /// The schedule as it is, and an execution for what waits, if something does.
    async fn look(&self, schedule: Uuid, now: Timestamp) -> store::Result<Option<(Kept, Prepared)>> {
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
        let prepared = waits.map(|waits| self.prepare(&kept.schedule, kept.owner, Some(waits.due_at)));
        Ok(Some((kept, prepared.into_iter().collect())))
    }

    /// The schedule is locked before anything else is: everyone who acts upon one does it in this order.
    async fn in_order<W>(&self, seen: Kept, mut prepared: Prepared, work: W) -> store::Result<()>
    where
        W: for<'c> FnOnce(
                &'c Self,
                &'c mut store::Conn,
                &'c Kept,
                &'c mut Prepared,
                &'c mut Done,
            ) -> futures::future::BoxFuture<'c, store::Result<()>>
            + Send
            + 'static,
    {
        let (scheduler, now) = (self.clone(), self.clock().now());
        let copies: Prepared = prepared.clone();
        let written = self.store().write(move |conn| {
            Box::pin(async move {
                let mut done = Done::default();
                let kept = schedules::lock(conn, Whose::Everyones, seen.schedule.id, now).await?;
                if kept.version != seen.version {
                    // What was prepared may not be what is wanted now; it waits a moment longer.
                    done.unused.extend(prepared.drain(..).flatten());
                }
                work(&scheduler, conn, &kept, &mut prepared, &mut done).await?;
                done.unused.extend(prepared.into_iter().flatten());
                Ok(done)
            })
        });
        match written.await {
            Ok(done) => {
                self.after(&done);
                Ok(())
            }
            Err(error) => {
                self.forget(&copies);
                // Removed meanwhile: the next look finds it so.
                if matches!(error, store::Error::NotFound) { Ok(()) } else { Err(error) }
            }
        }
    }
}

fn words(state: State) -> &'static str {
    match state {
        State::Timeout => "it took too long",
        _ => "it failed",
    }
}

//! Starts a run of a schedule, or decides that it is not to be started now. In the transaction of the caller, who has
//! locked the schedule: nobody else starts one of its runs meanwhile.

use jiff::Timestamp;
use model::UserId;
use model::execution::{Execution, FollowUp, Status};
use model::schedule::{Decision, Kind, Overlap, Schedule};
use serde::Serialize;
use store::executions::{New, Whose};
use store::schedules::{self, Kept};
use store::{Conn, Error};
use supervisor::{Draft, Origin, Refused};
use uuid::Uuid;

use crate::{Event, FINISHED, News, Scheduler, owner};

/// How many may wait for one run to end.
const QUEUE: i64 = 1000;

/// Executions that could be put into the queue, or why not. Those that are not taken leave nothing behind.
pub(crate) type Prepared = Vec<Result<New, Refused>>;

/// What came of a transaction, to be acted upon once it is committed.
#[derive(Debug, Default)]
pub(crate) struct Done {
    pub(crate) kinds: Vec<Kind>,
    /// Agents for which something was put into the queue.
    pub(crate) agents: Vec<String>,
    /// What was prepared and not needed, or refused.
    pub(crate) unused: Vec<New>,
    pub(crate) cancelled: Vec<Execution>,
    pub(crate) told: bool,
    /// Why the last one could not be put into the queue.
    refusal: Option<String>,
    /// One failure too many has paused the schedule.
    paused: bool,
}

/// More for the record of the execution.
#[derive(Serialize)]
struct Occasion<'a> {
    name: &'a str,
    due_at: Option<Timestamp>,
}

impl Scheduler {
    /// An execution of the schedule that can be put into the queue.
    pub(crate) fn prepare(
        &self,
        schedule: &Schedule,
        owned_by: UserId,
        due: Option<Timestamp>,
    ) -> Result<New, Refused> {
        let (input, parameters) = schedule.settings.request();
        let draft = Draft { input, parameters: Some(parameters), ..Draft::default() };
        let mut origin =
            Origin { schedule_id: Some(schedule.id), follow_up: Some(FollowUp::Schedule), ..Origin::default() };
        let occasion = serde_json::to_value(Occasion { name: &schedule.settings.name, due_at: due });
        origin.context.insert("schedule".to_owned(), occasion.unwrap_or_default());
        self.0.supervisor.prepare(&owner(owned_by), &schedule.settings.agent_id, draft, origin)
    }

    /// Decides upon a time that is to be run: by what else runs, whether there is room, and what the schedule says to that.
    pub(crate) async fn begin(
        &self,
        conn: &mut Conn,
        kept: &Kept,
        mut decision: Decision,
        prepared: &mut Prepared,
        done: &mut Done,
    ) -> store::Result<Decision> {
        let (id, now) = (kept.schedule.id, decision.decided_at);
        if done.paused {
            let reason = Some("paused after too many failures".to_owned());
            return Ok(Decision { kind: Kind::Paused, reason, ..decision });
        }
        let running = schedules::running(conn, id).await?;
        let overlap = kept.schedule.settings.overlap;
        let waiting = match overlap {
            Overlap::Skip | Overlap::Allow => Vec::new(),
            Overlap::QueueOne | Overlap::QueueAll | Overlap::Cancel => schedules::queued(conn, id, QUEUE).await?,
        };
        let not_now = |kind: Kind, why: &str| Decision { kind, reason: Some(why.to_owned()), ..decision.clone() };
        match overlap {
            Overlap::Allow => {}
            _ if running.is_empty() && waiting.is_empty() => {}
            Overlap::Skip => return Ok(not_now(Kind::Skipped, "the run before it goes on")),
            Overlap::QueueOne if !waiting.is_empty() => {
                return Ok(not_now(Kind::Skipped, "the run before it goes on, and one waits for its end already"));
            }
            Overlap::QueueAll if waiting.len() as i64 >= QUEUE => {
                return Ok(not_now(Kind::Refused, &format!("{QUEUE} wait for the run before them already")));
            }
            Overlap::QueueOne | Overlap::QueueAll => {
                return Ok(not_now(Kind::Queued, "waits for the run before it to end"));
            }
            Overlap::Cancel => {
                for earlier in waiting {
                    let reason = Some("a later one took its place".to_owned());
                    let given_up = Decision { kind: Kind::Skipped, reason, decided_at: now, ..earlier };
                    schedules::redecide(conn, &given_up).await?;
                }
                self.cancel(conn, &running, now, done).await?;
                if !schedules::running(conn, id).await?.is_empty() {
                    return Ok(not_now(Kind::Queued, "waits until the run before it is cancelled"));
                }
            }
        }
        let started = self.submit(conn, kept, prepared.pop(), now, done).await?;
        match started {
            Ok(execution) => decision.execution_id = Some(execution),
            Err(why) => (decision.kind, decision.reason) = (Kind::Refused, Some(why)),
        }
        Ok(decision)
    }

    /// Starts the first of those that waited, now that nothing of the schedule runs.
    pub(crate) async fn begin_queued(
        &self,
        conn: &mut Conn,
        kept: &Kept,
        prepared: &mut Prepared,
        now: Timestamp,
        done: &mut Done,
    ) -> store::Result<()> {
        let id = kept.schedule.id;
        if prepared.is_empty() || !kept.schedule.enabled || !schedules::running(conn, id).await?.is_empty() {
            return Ok(());
        }
        let Some(waited) = schedules::queued(conn, id, 1).await?.pop() else { return Ok(()) };
        let started = self.submit(conn, kept, prepared.pop(), now, done).await?;
        let reason = started.clone().err().unwrap_or_else(|| "waited for the run before it to end".to_owned());
        let decision = Decision {
            decided_at: now,
            kind: if started.is_ok() { Kind::Fired } else { Kind::Refused },
            reason: Some(reason),
            execution_id: started.clone().ok(),
            ..waited
        };
        schedules::redecide(conn, &decision).await?;
        done.kinds.push(decision.kind);
        match started {
            Ok(_) => Ok(()),
            Err(why) => self.failed(conn, kept, None, &why, None, now, done).await,
        }
    }

    /// The id of the execution, or why there is none.
    async fn submit(
        &self,
        conn: &mut Conn,
        kept: &Kept,
        prepared: Option<Result<New, Refused>>,
        now: Timestamp,
        done: &mut Done,
    ) -> store::Result<Result<Uuid, String>> {
        let new = match prepared {
            Some(Ok(new)) => new,
            Some(Err(refused)) => {
                let why = refused.to_string();
                done.refusal = Some(why.clone());
                return Ok(Err(why));
            }
            // One is prepared for all that cannot run beside each other; what kept that one keeps the others.
            None => return Ok(Err(done.refusal.clone().unwrap_or_default())),
        };
        match store::executions::submit(conn, &new).await {
            Ok(()) => {
                schedules::started(conn, kept.schedule.id, now).await?;
                done.agents.push(new.execution.agent_id.clone());
                Ok(Ok(new.execution.id))
            }
            Err(full @ Error::QueueFull { .. }) => {
                done.unused.push(new);
                let why = format!("the queue of the agent is full: {full}");
                done.refusal = Some(why.clone());
                Ok(Err(why))
            }
            Err(error) => Err(error),
        }
    }

    async fn cancel(&self, conn: &mut Conn, ids: &[Uuid], now: Timestamp, done: &mut Done) -> store::Result<()> {
        for id in ids {
            match store::executions::cancel(conn, Whose::Everyones, *id, now).await {
                Ok(execution) => done.cancelled.push(execution),
                Err(Error::Ended | Error::NotFound) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Counts a failure; pauses the schedule where that was one too many.
    #[expect(clippy::too_many_arguments, reason = "each says something else about the failure")]
    pub(crate) async fn failed(
        &self,
        conn: &mut Conn,
        kept: &Kept,
        status: Option<Status>,
        why: &str,
        execution_id: Option<Uuid>,
        now: Timestamp,
        done: &mut Done,
    ) -> store::Result<()> {
        let kept = schedules::lock(conn, Whose::Users(kept.owner), kept.schedule.id, now).await?;
        let failures = kept.schedule.failures + 1;
        schedules::followed(conn, &kept, status, failures).await?;
        let most = kept.schedule.settings.pause_after_failures.map(i64::from);
        if kept.schedule.enabled && most.is_some_and(|most| failures >= most) {
            let text =
                if failures == 1 { "it failed".to_owned() } else { format!("it failed {failures} times in a row") };
            let text = format!("{text}: {why}");
            schedules::pause(conn, &kept, &text, now).await?;
            done.paused = true;
            self.tell(conn, &kept, Event::Paused, text, execution_id, now, done).await?;
        } else if failures == 1 {
            self.tell(conn, &kept, Event::Failed, why.to_owned(), execution_id, now, done).await?;
        }
        Ok(())
    }

    #[expect(clippy::too_many_arguments, reason = "each is part of the news")]
    pub(crate) async fn tell(
        &self,
        conn: &mut Conn,
        kept: &Kept,
        event: Event,
        text: String,
        execution_id: Option<Uuid>,
        at: Timestamp,
        done: &mut Done,
    ) -> store::Result<()> {
        let news = News { owner: kept.owner, schedule: kept.schedule.clone(), event, text, execution_id, at };
        done.told = true;
        self.0.notices.tell(conn, &news).await
    }

    /// A schedule without further times, of which nothing runs and nothing waits, is over.
    pub(crate) async fn finish(&self, conn: &mut Conn, kept: &Kept, now: Timestamp) -> store::Result<()> {
        let id = kept.schedule.id;
        let kept = schedules::lock(conn, Whose::Users(kept.owner), id, now).await?;
        let over = kept.schedule.enabled && kept.schedule.next_execution.is_none();
        if over && schedules::running(conn, id).await?.is_empty() && schedules::queued(conn, id, 1).await?.is_empty() {
            schedules::pause(conn, &kept, FINISHED, now).await?;
        }
        Ok(())
    }

    /// What is left to do when a transaction is committed.
    pub(crate) fn after(&self, done: &Done) {
        done.kinds.iter().for_each(|kind| self.count(*kind));
        done.unused.iter().for_each(|new| self.0.supervisor.forget(new));
        done.cancelled.iter().for_each(|execution| self.0.supervisor.wake_cancelled(execution));
        done.agents.iter().for_each(|agent| self.0.supervisor.wake(agent));
        if done.told {
            self.0.notices.committed();
        }
    }

    /// Nothing of what was prepared has come to be.
    pub(crate) fn forget(&self, prepared: &Prepared) {
        prepared.iter().flatten().for_each(|new| self.0.supervisor.forget(new));
    }
}

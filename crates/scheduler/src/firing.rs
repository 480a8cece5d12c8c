//! One transaction that acts on a schedule: it starts runs, or decides that they do not start now, and says why.
//!
//! The schedule is locked first, so no other node starts one of its runs meanwhile. Everything that must wait for the commit
//! is registered with the transaction.

use std::collections::VecDeque;

use jiff::Timestamp;
use model::UserId;
use model::execution::{Execution, FollowUp, Status};
use model::schedule::{Decision, Kind, Overlap, Schedule};
use serde::Serialize;
use store::executions::{Whose, followed_up};
use store::schedules::{self, Kept};
use store::{Error, Transaction};
use supervisor::{Draft, Origin, Refused, Submission};
use uuid::Uuid;

use crate::plan::Step;
use crate::{Event, FINISHED, News, Scheduler, owner};

/// How many occurrences may wait for a run to end.
const MAX_QUEUED: i64 = 1000;

/// Requests that were checked before the transaction, in the order of their occurrences.
pub(crate) type Submissions = VecDeque<Result<Submission, Refused>>;

/// The schedule and the occurrence that an execution was started for, as its context records them.
#[derive(Serialize)]
struct Occasion<'a> {
    name: &'a str,
    due_at: Option<Timestamp>,
}

impl Scheduler {
    /// Prepares an execution of the schedule.
    pub(crate) fn prepare(
        &self,
        schedule: &Schedule,
        owned_by: UserId,
        due: Option<Timestamp>,
    ) -> Result<Submission, Refused> {
        let (input, parameters) = schedule.settings.request();
        let draft = Draft { input, parameters: Some(parameters), ..Draft::default() };
        let mut origin =
            Origin { schedule_id: Some(schedule.id), follow_up: Some(FollowUp::Schedule), ..Origin::default() };
        let occasion = serde_json::to_value(Occasion { name: &schedule.settings.name, due_at: due });
        origin.context.insert("schedule".to_owned(), occasion.unwrap_or_default());
        self.0.supervisor.prepare(&owner(owned_by), &schedule.settings.agent_id, draft, origin)
    }
}

pub(crate) struct Firing<'a> {
    scheduler: &'a Scheduler,
    tx: &'a mut Transaction,
    row: Kept,
    now: Timestamp,
    submissions: Submissions,
    /// Why the last submission did not enter the queue. One submission serves all occurrences that cannot overlap, so its
    /// refusal holds for all of them.
    refusal: Option<String>,
    /// A failure in this transaction has paused the schedule.
    paused: bool,
}

impl<'a> Firing<'a> {
    /// Acts on a schedule that this transaction has locked.
    pub(crate) fn new(
        scheduler: &'a Scheduler,
        tx: &'a mut Transaction,
        row: Kept,
        submissions: Submissions,
        now: Timestamp,
    ) -> Self {
        Self { scheduler, tx, row, now, submissions, refusal: None, paused: false }
    }

    /// Decides on one occurrence and records the decision. `last` marks the last occurrence that is to run.
    pub(crate) async fn decide(&mut self, step: &Step, last: bool) -> store::Result<()> {
        let id = self.row.schedule.id;
        if schedules::is_decided(self.tx, id, step.due).await? {
            // The clock was set back, or the schedule was moved to a time that has passed before.
            return Ok(());
        }
        let decision = Decision {
            schedule_id: id,
            due_at: step.due,
            decided_at: self.now,
            kind: Kind::Missed,
            reason: None,
            execution_id: None,
            until: step.until,
        };
        let decision = match &step.verdict {
            Err(why) => Decision { reason: Some(why.clone()), ..decision },
            Ok(_) if !last && self.row.schedule.settings.overlap == Overlap::Cancel => {
                Decision { kind: Kind::Skipped, reason: Some("a later one took its place".to_owned()), ..decision }
            }
            Ok(kind) => self.begin(Decision { kind: *kind, ..decision }).await?,
        };
        schedules::decide(self.tx, &decision).await?;
        self.count(decision.kind);
        if decision.kind == Kind::Refused {
            self.record_failure(None, &decision.reason.unwrap_or_default(), None).await?;
        }
        Ok(())
    }

    /// Starts an occurrence, unless the overlap policy or the queue of the agent forbids it. Returns the decision.
    async fn begin(&mut self, mut decision: Decision) -> store::Result<Decision> {
        let id = self.row.schedule.id;
        if self.paused {
            let reason = Some("paused after too many failures".to_owned());
            return Ok(Decision { kind: Kind::Paused, reason, ..decision });
        }
        let running = schedules::running(self.tx, id).await?;
        let overlap = self.row.schedule.settings.overlap;
        let waiting = match overlap {
            Overlap::Skip | Overlap::Allow => Vec::new(),
            Overlap::QueueOne | Overlap::QueueAll | Overlap::Cancel => {
                schedules::queued(self.tx, id, MAX_QUEUED).await?
            }
        };
        let not_now = |kind: Kind, why: &str| Decision { kind, reason: Some(why.to_owned()), ..decision.clone() };
        match overlap {
            Overlap::Allow => {}
            _ if running.is_empty() && waiting.is_empty() => {}
            Overlap::Skip => return Ok(not_now(Kind::Skipped, "the run before it goes on")),
            Overlap::QueueOne if !waiting.is_empty() => {
                return Ok(not_now(Kind::Skipped, "the run before it goes on, and one waits for its end already"));
            }
            Overlap::QueueAll if waiting.len() as i64 >= MAX_QUEUED => {
                return Ok(not_now(Kind::Refused, &format!("{MAX_QUEUED} wait for the run before them already")));
            }
            Overlap::QueueOne | Overlap::QueueAll => {
                return Ok(not_now(Kind::Queued, "waits for the run before it to end"));
            }
            Overlap::Cancel => {
                for earlier in waiting {
                    let reason = Some("a later one took its place".to_owned());
                    let given_up = Decision { kind: Kind::Skipped, reason, decided_at: self.now, ..earlier };
                    schedules::redecide(self.tx, &given_up).await?;
                }
                self.cancel(&running).await?;
                if !schedules::running(self.tx, id).await?.is_empty() {
                    return Ok(not_now(Kind::Queued, "waits until the run before it is cancelled"));
                }
            }
        }
        match self.enqueue().await? {
            Ok(execution) => decision.execution_id = Some(execution),
            Err(why) => {
                decision.kind = Kind::Refused;
                decision.reason = Some(why);
            }
        }
        Ok(decision)
    }

    /// Starts the first occurrence that waits, if nothing of the schedule runs.
    pub(crate) async fn begin_queued(&mut self) -> store::Result<()> {
        let id = self.row.schedule.id;
        let enabled = self.row.schedule.enabled;
        if self.submissions.is_empty() || !enabled || !schedules::running(self.tx, id).await?.is_empty() {
            return Ok(());
        }
        let Some(waited) = schedules::queued(self.tx, id, 1).await?.pop() else { return Ok(()) };
        let started = self.enqueue().await?;
        let reason = started.clone().err().unwrap_or_else(|| "waited for the run before it to end".to_owned());
        let decision = Decision {
            decided_at: self.now,
            kind: if started.is_ok() { Kind::Fired } else { Kind::Refused },
            reason: Some(reason),
            execution_id: started.clone().ok(),
            ..waited
        };
        schedules::redecide(self.tx, &decision).await?;
        self.count(decision.kind);
        match started {
            Ok(_) => Ok(()),
            Err(why) => self.record_failure(None, &why, None).await,
        }
    }

    /// Puts the next submission into the queue. Returns the id of the execution, or why there is none.
    async fn enqueue(&mut self) -> store::Result<Result<Uuid, String>> {
        let refusal = match self.submissions.pop_front() {
            Some(Ok(submission)) => match self.scheduler.0.supervisor.enqueue(self.tx, submission).await {
                Ok(id) => {
                    schedules::started(self.tx, self.row.schedule.id, self.now).await?;
                    return Ok(Ok(id));
                }
                Err(full @ Error::QueueFull { .. }) => format!("the queue of the agent is full: {full}"),
                Err(error) => return Err(error),
            },
            Some(Err(refused)) => refused.to_string(),
            None => self.refusal.take().unwrap_or_default(),
        };
        self.refusal = Some(refusal.clone());
        Ok(Err(refusal))
    }

    async fn cancel(&mut self, ids: &[Uuid]) -> store::Result<()> {
        for id in ids {
            match self.scheduler.0.supervisor.cancel(self.tx, Whose::Everyones, *id).await {
                Ok(_) | Err(Error::Ended | Error::NotFound) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Records how an execution of the schedule has ended. Returns `false` if that was done before.
    pub(crate) async fn record_end(&mut self, execution: &Execution) -> store::Result<bool> {
        let id = execution.id;
        if !followed_up(self.tx, id).await? {
            return Ok(false);
        }
        let failures = self.row.schedule.failures;
        match execution.ended().map(|end| end.status) {
            Some(Status::Success) => {
                schedules::followed(self.tx, &self.row, Some(Status::Success), 0).await?;
                if failures > 0 {
                    let text = match failures {
                        1 => "it works again after a failure".to_owned(),
                        count => format!("it works again after {count} failures"),
                    };
                    self.notify(Event::Recovered, text, Some(id)).await?;
                }
            }
            // A person cancelled it; that says nothing about the agent.
            Some(Status::Cancelled) => {
                schedules::followed(self.tx, &self.row, Some(Status::Cancelled), failures).await?;
            }
            status => {
                let why = execution.error_message().unwrap_or_else(|| words(status));
                self.record_failure(status, why, Some(id)).await?;
            }
        }
        self.reload().await?;
        Ok(true)
    }

    /// Counts a failure, and pauses the schedule if it was one too many.
    async fn record_failure(
        &mut self,
        status: Option<Status>,
        why: &str,
        execution_id: Option<Uuid>,
    ) -> store::Result<()> {
        self.reload().await?;
        let schedule = &self.row.schedule;
        let failures = schedule.failures + 1;
        let limit = schedule.settings.pause_after_failures.map(i64::from);
        let is_one_too_many = schedule.enabled && limit.is_some_and(|limit| failures >= limit);
        schedules::followed(self.tx, &self.row, status, failures).await?;
        if is_one_too_many {
            let text = match failures {
                1 => format!("it failed: {why}"),
                _ => format!("it failed {failures} times in a row: {why}"),
            };
            schedules::pause(self.tx, &self.row, &text, self.now).await?;
            self.paused = true;
            self.notify(Event::Paused, text, execution_id).await?;
        } else if failures == 1 {
            self.notify(Event::Failed, why.to_owned(), execution_id).await?;
        }
        Ok(())
    }

    async fn notify(&mut self, event: Event, text: String, execution_id: Option<Uuid>) -> store::Result<()> {
        let schedule = self.row.schedule.clone();
        let news = News { owner: self.row.owner, schedule, event, text, execution_id, at: self.now };
        self.scheduler.0.notices.tell(self.tx, &news).await
    }

    /// Pauses the schedule if it has no further occurrence, and none runs or waits.
    pub(crate) async fn finish(&mut self) -> store::Result<()> {
        self.reload().await?;
        let id = self.row.schedule.id;
        let over = self.row.schedule.enabled && self.row.schedule.next_execution.is_none();
        if over
            && schedules::running(self.tx, id).await?.is_empty()
            && schedules::queued(self.tx, id, 1).await?.is_empty()
        {
            schedules::pause(self.tx, &self.row, FINISHED, self.now).await?;
        }
        Ok(())
    }

    /// Reads the schedule again, as this transaction has changed it.
    async fn reload(&mut self) -> store::Result<()> {
        let whose = Whose::Users(self.row.owner);
        self.row = schedules::lock(self.tx, whose, self.row.schedule.id, self.now).await?;
        Ok(())
    }

    fn count(&mut self, kind: Kind) {
        self.scheduler.count_after_commit(self.tx, kind);
    }
}

fn words(status: Option<Status>) -> &'static str {
    match status {
        Some(Status::Timeout) => "it took too long",
        _ => "it failed",
    }
}

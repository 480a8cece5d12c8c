//! One transaction on a schedule. It starts runs, or decides that they do not start, and records the reason.
//!
//! The schedule is locked first, so that no other node starts one of its runs at the same time. Everything that must
//! wait for the commit is registered as an effect of the transaction.

use std::collections::VecDeque;

use jiff::Timestamp;
use model::UserId;
use model::execution::{Execution, ExecutionStatus, FollowUp};
use model::schedule::{Decision, DecisionKind, OverlapPolicy, Schedule};
use serde::Serialize;
use store::executions::{OwnerScope, mark_followed_up};
use store::schedules::{self, ScheduleRow};
use store::{Error, Transaction};
use supervisor::{RunDraft, RunOrigin, Submission, SubmitError};
use uuid::Uuid;

use crate::plan::PlannedOccurrence;
use crate::{FINISHED_REASON, ScheduleEvent, ScheduleNotice, Scheduler, schedule_owner};

/// The maximum number of queued occurrences of a schedule.
const MAX_QUEUED: i64 = 1000;
/// The reason of an occurrence that was skipped in favour of a newer one.
const REPLACED: &str = "a later occurrence replaced it";

/// Requests that were checked before the transaction, in the order of their occurrences.
pub(crate) type Submissions = VecDeque<Result<Submission, SubmitError>>;

/// The schedule and the occurrence in the context of an execution.
#[derive(Serialize)]
struct OccurrenceContext<'a> {
    name: &'a str,
    /// `None` for a manual run.
    due_at: Option<Timestamp>,
}

impl Scheduler {
    /// Prepares an execution of the schedule for its owner, as an administrator in UTC. `due` is its occurrence, `None`
    /// for a manual run. The name of the schedule and `due` become the field `schedule` in the context of the
    /// execution. A request with secrets is written to the spool at once; dropping the submission removes it. Fails if
    /// the agent does not exist, is disabled or is not allowed for the owner. Also fails if the request is invalid or
    /// too large, or if its secrets cannot be stored on this node.
    pub(crate) fn prepare(
        &self,
        schedule: &Schedule,
        owner: UserId,
        due: Option<Timestamp>,
    ) -> Result<Submission, SubmitError> {
        let (input, parameters) = schedule.settings.input_and_parameters();
        let draft = RunDraft { input, parameters: Some(parameters), ..RunDraft::default() };
        let mut origin =
            RunOrigin { schedule_id: Some(schedule.id), follow_up: Some(FollowUp::Schedule), ..RunOrigin::default() };
        let context = serde_json::to_value(OccurrenceContext { name: &schedule.settings.name, due_at: due });
        origin.context.insert("schedule".to_owned(), context.unwrap_or_default());
        self.0.supervisor.prepare(&schedule_owner(owner), &schedule.settings.agent_id, draft, origin)
    }
}

/// A transaction on one schedule.
pub(crate) struct Firing<'a> {
    scheduler: &'a Scheduler,
    tx: &'a mut Transaction,
    row: ScheduleRow,
    now: Timestamp,
    submissions: Submissions,
    /// The reason why the last submission was not enqueued. All occurrences that cannot overlap share one submission,
    /// so the reason applies to all of them.
    refusal: Option<String>,
    /// True if a failure in this transaction has paused the schedule.
    paused: bool,
}

impl<'a> Firing<'a> {
    /// Creates a firing for a schedule that the transaction has locked.
    pub(crate) fn new(
        scheduler: &'a Scheduler,
        tx: &'a mut Transaction,
        row: ScheduleRow,
        submissions: Submissions,
        now: Timestamp,
    ) -> Self {
        Self { scheduler, tx, row, now, submissions, refusal: None, paused: false }
    }

    /// Decides on one occurrence, records the decision, and counts it after the commit. Does nothing if it has one. An
    /// occurrence that the plan does not run is `Missed` with the reason of the plan. `is_last` marks the last
    /// occurrence that is to run. With the overlap policy `Cancel`, all earlier ones are `Skipped`. The rest is passed
    /// to [`Firing::start`]. A refused occurrence counts as a failure of the schedule, which may pause it.
    pub(crate) async fn decide(&mut self, occurrence: &PlannedOccurrence, is_last: bool) -> store::Result<()> {
        let id = self.row.schedule.id;
        if schedules::is_decided(self.tx, id, occurrence.due).await? {
            // The clock was set back, or the schedule was changed to an occurrence that was decided before.
            return Ok(());
        }
        let decision = Decision {
            schedule_id: id,
            due_at: occurrence.due,
            decided_at: self.now,
            kind: DecisionKind::Missed,
            reason: None,
            execution_id: None,
            until: occurrence.until,
        };
        let decision = match &occurrence.verdict {
            Err(why) => Decision { reason: Some(why.clone()), ..decision },
            Ok(_) if !is_last && self.row.schedule.settings.overlap == OverlapPolicy::Cancel => {
                Decision { kind: DecisionKind::Skipped, reason: Some(REPLACED.to_owned()), ..decision }
            }
            Ok(kind) => self.start(Decision { kind: *kind, reason: occurrence.note.clone(), ..decision }).await?,
        };
        schedules::record_decision(self.tx, &decision).await?;
        self.count(decision.kind);
        if decision.kind == DecisionKind::Refused {
            self.record_failure(None, &decision.reason.unwrap_or_default(), None).await?;
        }
        Ok(())
    }

    /// Enqueues an execution for an occurrence and returns `decision` with its id. Otherwise returns `decision` with
    /// another kind and a reason. A run counts as in progress until its execution has ended, also while it is queued.
    /// - `Paused`: a failure in this transaction has paused the schedule.
    /// - `Skipped`: a run is in progress with the policy `Skip`, or an occurrence is queued already with `QueueOne`.
    /// - `Queued`: a run is in progress with `QueueOne` or `QueueAll`, or an occurrence is queued with `QueueAll`.
    /// - `Refused`: [`MAX_QUEUED`] occurrences are queued with `QueueAll`, or [`Firing::enqueue`] refuses the
    ///   execution.
    ///
    /// `Cancel` first changes queued occurrences to `Skipped` and cancels the runs in progress. If one of them has not
    /// ended then, the occurrence is `Queued`. `Allow` always enqueues.
    async fn start(&mut self, mut decision: Decision) -> store::Result<Decision> {
        let id = self.row.schedule.id;
        if self.paused {
            let reason = Some("the schedule was paused after too many failures".to_owned());
            return Ok(Decision { kind: DecisionKind::Paused, reason, ..decision });
        }
        let running = schedules::running_executions(self.tx, id).await?;
        let overlap = self.row.schedule.settings.overlap;
        let queued = match overlap {
            OverlapPolicy::Skip | OverlapPolicy::Allow => Vec::new(),
            OverlapPolicy::QueueOne | OverlapPolicy::QueueAll | OverlapPolicy::Cancel => {
                schedules::queued_decisions(self.tx, id, MAX_QUEUED).await?
            }
        };
        let not_now =
            |kind: DecisionKind, why: &str| Decision { kind, reason: Some(why.to_owned()), ..decision.clone() };
        match overlap {
            OverlapPolicy::Allow => {}
            _ if running.is_empty() && queued.is_empty() => {}
            OverlapPolicy::Skip => return Ok(not_now(DecisionKind::Skipped, "the previous run is still in progress")),
            OverlapPolicy::QueueOne if !queued.is_empty() => {
                return Ok(not_now(
                    DecisionKind::Skipped,
                    "the previous run is still in progress, and one occurrence is queued already",
                ));
            }
            OverlapPolicy::QueueAll if queued.len() as i64 >= MAX_QUEUED => {
                return Ok(not_now(DecisionKind::Refused, &format!("{MAX_QUEUED} occurrences are queued already")));
            }
            OverlapPolicy::QueueOne | OverlapPolicy::QueueAll => {
                return Ok(not_now(DecisionKind::Queued, "waits for the previous run to end"));
            }
            OverlapPolicy::Cancel => {
                for earlier in queued {
                    let reason = Some(REPLACED.to_owned());
                    let replaced = Decision { kind: DecisionKind::Skipped, reason, decided_at: self.now, ..earlier };
                    schedules::resolve_queued(self.tx, &replaced).await?;
                }
                self.cancel(&running).await?;
                if !schedules::running_executions(self.tx, id).await?.is_empty() {
                    return Ok(not_now(DecisionKind::Queued, "waits for the previous run to be cancelled"));
                }
            }
        }
        match self.enqueue().await? {
            Ok(execution) => decision.execution_id = Some(execution),
            Err(why) => {
                decision.kind = DecisionKind::Refused;
                decision.reason = Some(why);
            }
        }
        Ok(decision)
    }

    /// Starts the first queued occurrence: its decision becomes `Fired` or `Refused`, in both cases with a new time and
    /// a reason, and is counted after the commit. Does nothing if no submission is prepared, the schedule is paused, an
    /// execution has not ended, or none is queued. A refused occurrence counts as a failure of the schedule, which may
    /// pause it.
    pub(crate) async fn start_queued(&mut self) -> store::Result<()> {
        let id = self.row.schedule.id;
        let enabled = self.row.schedule.enabled;
        if self.submissions.is_empty() || !enabled || !schedules::running_executions(self.tx, id).await?.is_empty() {
            return Ok(());
        }
        let Some(queued) = schedules::queued_decisions(self.tx, id, 1).await?.pop() else { return Ok(()) };
        let started = match self.enqueue().await {
            // It stays queued until everything is resumed.
            Err(Error::Stopped { .. }) => return Ok(()),
            started => started?,
        };
        let reason = started.clone().err().unwrap_or_else(|| "waited for the previous run to end".to_owned());
        let decision = Decision {
            decided_at: self.now,
            kind: if started.is_ok() { DecisionKind::Fired } else { DecisionKind::Refused },
            reason: Some(reason),
            execution_id: started.clone().ok(),
            ..queued
        };
        schedules::resolve_queued(self.tx, &decision).await?;
        self.count(decision.kind);
        match started {
            Ok(_) => Ok(()),
            Err(why) => self.record_failure(None, &why, None).await,
        }
    }

    /// Removes the next submission, enqueues it and records the start. Returns the id of the execution, or the reason
    /// why it was refused: the agent cannot accept it, its queue is full, or a quota of the owner is reached. Without a
    /// further submission, returns the last reason again, or an empty one. Fails with [`Error::Stopped`] while everything
    /// is stopped, and with any other error of the supervisor.
    async fn enqueue(&mut self) -> store::Result<Result<Uuid, String>> {
        let refusal = match self.submissions.pop_front() {
            Some(Ok(submission)) => match self.scheduler.0.supervisor.enqueue(self.tx, submission).await {
                Ok(id) => {
                    schedules::record_start(self.tx, self.row.schedule.id, self.now).await?;
                    return Ok(Ok(id));
                }
                Err(full @ Error::QueueFull { .. }) => format!("the queue of the agent is full: {full}"),
                Err(Error::QuotaReached(reached)) => reached.to_string(),
                Err(error) => return Err(error),
            },
            Some(Err(refused)) => refused.to_string(),
            None => self.refusal.take().unwrap_or_default(),
        };
        self.refusal = Some(refusal.clone());
        Ok(Err(refusal))
    }

    /// Cancels executions. Ignores executions that have ended or do not exist.
    async fn cancel(&mut self, ids: &[Uuid]) -> store::Result<()> {
        for id in ids {
            match self.scheduler.0.supervisor.cancel(self.tx, OwnerScope::AllUsers, *id).await {
                Ok(_) | Err(Error::AlreadyEnded | Error::NotFound) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Records the end of an execution of the schedule, marks its follow-up as done and reads the schedule again. A
    /// success resets the failures, and the owner is notified if there were some. A cancellation leaves them unchanged.
    /// Anything else counts as a failure, which may pause the schedule. Returns `false` without a change if the end was
    /// recorded before.
    pub(crate) async fn record_end(&mut self, execution: &Execution) -> store::Result<bool> {
        let id = execution.id;
        if !mark_followed_up(self.tx, id).await? {
            return Ok(false);
        }
        let failures = self.row.schedule.failures;
        match execution.ended().map(|end| end.status) {
            Some(ExecutionStatus::Success) => {
                schedules::record_run_end(self.tx, &self.row, Some(ExecutionStatus::Success), 0).await?;
                if failures > 0 {
                    let text = match failures {
                        1 => "it succeeded after a failure".to_owned(),
                        count => format!("it succeeded after {count} failures"),
                    };
                    self.notify(ScheduleEvent::Recovered, text, Some(id)).await?;
                }
            }
            // A person or the overlap policy cancelled it. This is no failure of the agent.
            Some(ExecutionStatus::Cancelled) => {
                schedules::record_run_end(self.tx, &self.row, Some(ExecutionStatus::Cancelled), failures).await?;
            }
            status => {
                let why = execution.error_message().unwrap_or_else(|| status_message(status));
                self.record_failure(status, why, Some(id)).await?;
            }
        }
        self.reload().await?;
        Ok(true)
    }

    /// Counts a failure. Pauses an enabled schedule if `pause_after_failures` is reached; later occurrences of this
    /// transaction do not start then. Notifies the owner of the pause, or otherwise of the first failure of a series.
    /// `why` is part of the notice and of the reason of the pause. `status` is `None` if no execution has run; then the
    /// last status is kept. Reads the schedule again first.
    async fn record_failure(
        &mut self,
        status: Option<ExecutionStatus>,
        why: &str,
        execution_id: Option<Uuid>,
    ) -> store::Result<()> {
        self.reload().await?;
        let schedule = &self.row.schedule;
        let failures = schedule.failures + 1;
        let limit = schedule.settings.pause_after_failures.map(i64::from);
        let reaches_limit = schedule.enabled && limit.is_some_and(|limit| failures >= limit);
        schedules::record_run_end(self.tx, &self.row, status, failures).await?;
        if reaches_limit {
            let text = match failures {
                1 => format!("it failed: {why}"),
                _ => format!("it failed {failures} times in a row: {why}"),
            };
            schedules::pause(self.tx, &self.row, &text, self.now).await?;
            self.paused = true;
            self.notify(ScheduleEvent::Paused, text, execution_id).await?;
        } else if failures == 1 {
            self.notify(ScheduleEvent::Failed, why.to_owned(), execution_id).await?;
        }
        Ok(())
    }

    /// Sends a notice with the schedule as it was last read. Its writes belong to this transaction.
    async fn notify(&mut self, event: ScheduleEvent, text: String, execution_id: Option<Uuid>) -> store::Result<()> {
        let schedule = self.row.schedule.clone();
        let notice = ScheduleNotice { owner: self.row.owner, schedule, event, text, execution_id, at: self.now };
        self.scheduler.0.notices.send(self.tx, &notice).await
    }

    /// Reads the schedule again. Pauses it with [`FINISHED_REASON`] if it is enabled, has no future occurrence, none is
    /// queued, and none of its executions is queued or running.
    pub(crate) async fn finish(&mut self) -> store::Result<()> {
        self.reload().await?;
        let id = self.row.schedule.id;
        let is_over = self.row.schedule.enabled && self.row.schedule.next_execution.is_none();
        if is_over
            && schedules::running_executions(self.tx, id).await?.is_empty()
            && schedules::queued_decisions(self.tx, id, 1).await?.is_empty()
        {
            schedules::pause(self.tx, &self.row, FINISHED_REASON, self.now).await?;
        }
        Ok(())
    }

    /// Reads the schedule again, because this transaction may have changed it.
    async fn reload(&mut self) -> store::Result<()> {
        let scope = OwnerScope::User(self.row.owner);
        self.row = schedules::lock_row(self.tx, scope, self.row.schedule.id, self.now).await?;
        Ok(())
    }

    fn count(&mut self, kind: DecisionKind) {
        self.scheduler.count_after_commit(self.tx, kind);
    }
}

/// Returns the reason of a failure without an error message.
fn status_message(status: Option<ExecutionStatus>) -> &'static str {
    match status {
        Some(ExecutionStatus::Timeout) => "the run timed out",
        _ => "the run failed",
    }
}

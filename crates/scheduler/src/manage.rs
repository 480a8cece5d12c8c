//! Creates, changes, pauses, resumes, removes and runs schedules for users. All writes happen in the transaction of the
//! caller. Every function that reads or writes rows fails if the database fails.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use model::audit::{Actor, AuditAction, AuditRecord};
use model::invalid::Checks;
use model::schedule::{
    Decision, DecisionKind, Schedule, ScheduleDraft, SchedulePatch, ScheduleSettings, ScheduleSource,
};
use model::{Invalid, User, UserId};
use store::executions::OwnerScope;
use store::schedules::{self, NextOccurrence, ScheduleRow};
use store::{Error, Transaction};
use supervisor::{Submission, SubmitError};
use uuid::Uuid;

use crate::occurrences::{OccurrenceRule, apply_jitter};
use crate::plan::due_occurrences;
use crate::{FINISHED_REASON, Scheduler};

/// The reason of a pause for which the user gave none. Stored in rows.
const PAUSED_BY_HAND: &str = "paused by hand";

/// The validated settings of a schedule.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckedSchedule {
    pub settings: ScheduleSettings,
    /// `None` does not change it.
    pub enabled: Option<bool>,
}

/// A schedule before and after a change. `None` if it did not exist.
#[derive(Clone, Copy, Debug)]
pub struct ScheduleChange<'a> {
    pub before: Option<&'a Schedule>,
    pub after: Option<&'a Schedule>,
}

/// Validates a schedule without access to the agents and the clock, including its cron expression. Used directly for
/// schedules of the configuration file. `zone` applies if the draft has no time zone. `enabled` is returned as it is.
/// Fails with all violations.
pub fn check_draft(draft: ScheduleDraft, zone: &TimeZone) -> Result<CheckedSchedule, Invalid> {
    let mut checks = Checks::default();
    let enabled = draft.enabled;
    let expression = draft.cron_expression.clone();
    let settings = checks.take(draft.check(zone));
    if let Some(expression) = expression {
        checks.take(OccurrenceRule::check_cron(&expression));
    }
    checks.finish(settings.map(|settings| CheckedSchedule { settings, enabled }))
}

impl Scheduler {
    /// Validates a new schedule of the user. Its agent must be enabled and allowed for the user, and it must have a
    /// future occurrence. Fails with all violations.
    pub fn check(&self, user: &User, draft: ScheduleDraft) -> Result<CheckedSchedule, Invalid> {
        self.check_against(user, draft, None)
    }

    /// Validates a change to a schedule of the user, like [`Scheduler::check`]. The agent is checked only if it
    /// changes, the future occurrence only if the timing changes. Fails with all violations, or only with those of the
    /// patch if it cannot be applied.
    pub fn check_change(
        &self,
        user: &User,
        schedule: &Schedule,
        patch: SchedulePatch,
    ) -> Result<CheckedSchedule, Invalid> {
        self.check_against(user, patch.apply_to(schedule.settings.clone())?, Some(schedule))
    }

    /// Validates a draft. `before` is the schedule that it changes, `None` for a new one. If the agent differs from
    /// that of `before`, it must be enabled and allowed for the user. If the timing differs and the draft has no
    /// violation of [`check_draft`], a future occurrence is required. Fails with all violations. An agent that the user
    /// may not run is reported as not existing.
    fn check_against(
        &self,
        user: &User,
        draft: ScheduleDraft,
        before: Option<&Schedule>,
    ) -> Result<CheckedSchedule, Invalid> {
        let mut checks = Checks::default();
        let agent_id = draft.agent_id.clone().unwrap_or_default();
        let checked = checks.take(check_draft(draft, &user.time_zone));
        let is_same_agent = before.is_some_and(|before| before.settings.agent_id == agent_id);
        if !agent_id.is_empty() && !is_same_agent {
            match self.supervisor().agent_for(user, &agent_id) {
                Err(_) => {
                    checks.fail("agent_id", "agent", format!("must be the id of an agent; '{agent_id}' does not exist"))
                }
                Ok(entry) if !entry.agent.enabled => {
                    checks.fail("agent_id", "agent", format!("must be an enabled agent; '{agent_id}' is disabled"));
                }
                Ok(_) => {}
            }
        }
        if let Some(CheckedSchedule { settings, .. }) = &checked
            && before.is_none_or(|before| !before.settings.has_same_timing(settings))
        {
            let created_at = before.map_or(self.clock().now(), |before| before.created_at);
            checks.take(check_has_future_occurrence(settings, created_at, self.clock().now()));
        }
        checks.finish(checked)
    }

    /// Creates a schedule from the result of [`Scheduler::check`]. It starts paused if `enabled` is false or it has no
    /// future occurrence. Wakes the firing loop after the commit. Returns the new schedule. Fails with
    /// [`Error::AlreadyExists`] if a schedule of any user has the name, ignoring case.
    pub async fn create(
        &self,
        tx: &mut Transaction,
        owner: UserId,
        checked: &CheckedSchedule,
    ) -> store::Result<Schedule> {
        let paused_reason = (checked.enabled == Some(false)).then(|| PAUSED_BY_HAND.to_owned());
        self.insert(tx, owner, checked, ScheduleSource::Api, paused_reason).await
    }

    /// Stores a schedule with its first occurrence after now, and wakes the firing loop after the commit. It starts
    /// paused if `paused_reason` is given, or with [`FINISHED_REASON`] if it has no future occurrence. Returns the
    /// schedule. Fails with [`Error::AlreadyExists`] if a schedule of any user has the name, ignoring case, and with
    /// [`Error::Corrupt`] if the settings are invalid.
    pub(crate) async fn insert(
        &self,
        tx: &mut Transaction,
        owner: UserId,
        checked: &CheckedSchedule,
        source: ScheduleSource,
        paused_reason: Option<String>,
    ) -> store::Result<Schedule> {
        let id = self.clock().id();
        let now = self.clock().now();
        let settings = checked.settings.clone();
        let next = next_occurrence(id, &settings, now, now)?;
        let paused_reason = paused_reason.or_else(|| next.is_none().then(|| FINISHED_REASON.to_owned()));
        self.wake_after_commit(tx);
        let new_schedule = schedules::NewSchedule { id, settings, source, paused_reason, next };
        schedules::create(tx, owner, &new_schedule, now).await
    }

    /// Changes a schedule to the result of [`Scheduler::check_change`], and pauses or resumes it if `enabled` is set.
    /// If its timing changes, the next occurrence is computed from now. Returns the changed schedule. Fails with:
    /// - [`Error::NotFound`] if it does not exist in the scope.
    /// - [`Error::DefinedInConfig`] if it belongs to the configuration file.
    /// - [`Error::AlreadyExists`] if the name is in use.
    /// - [`Error::AlreadyEnded`] if it has to be resumed and has no future occurrence.
    pub async fn change(
        &self,
        tx: &mut Transaction,
        scope: OwnerScope,
        id: Uuid,
        checked: &CheckedSchedule,
    ) -> store::Result<Schedule> {
        let row = schedules::lock_row(tx, scope, id, self.clock().now()).await?;
        if row.schedule.source == ScheduleSource::File {
            return Err(Error::DefinedInConfig);
        }
        self.apply(tx, row, checked).await
    }

    /// Changes a locked schedule, also one of the configuration file. New timing moves the next occurrence to the first
    /// one after now; otherwise it stays. `enabled` pauses or resumes the schedule. If it is `None`, only a finished
    /// schedule is resumed, when new timing gives it a future occurrence. Does not pause a schedule that loses its
    /// future occurrences. Wakes the firing loop after the commit. Returns the schedule. Fails if the name is in use,
    /// if the settings are invalid, or like [`Scheduler::resume`].
    pub(crate) async fn apply(
        &self,
        tx: &mut Transaction,
        row: ScheduleRow,
        checked: &CheckedSchedule,
    ) -> store::Result<Schedule> {
        let now = self.clock().now();
        let settings = &checked.settings;
        let id = row.schedule.id;
        let is_retimed = !settings.has_same_timing(&row.schedule.settings);
        let upcoming = if is_retimed {
            next_occurrence(id, settings, row.schedule.created_at, now)?
        } else {
            row.due_at.map(|due_at| NextOccurrence { due_at, fire_at: apply_jitter(id, due_at, settings.jitter) })
        };
        self.wake_after_commit(tx);
        let mut schedule = row.schedule.clone();
        if *settings != row.schedule.settings {
            schedule = schedules::update(tx, &row, settings, upcoming, now).await?;
        }
        let is_finished = schedule.paused_reason.as_deref() == Some(FINISHED_REASON);
        let scope = OwnerScope::User(row.owner);
        match checked.enabled {
            Some(false) if schedule.enabled => self.pause(tx, scope, id, None).await,
            Some(true) if !schedule.enabled => self.resume(tx, scope, id).await,
            None if is_finished && is_retimed && upcoming.is_some() => self.resume(tx, scope, id).await,
            _ => Ok(schedule),
        }
    }

    /// Pauses a schedule, also one of the configuration file, and discards its queued occurrences. Running executions
    /// continue. Spaces around the reason are removed; without a reason, a default one is stored. A schedule that is
    /// already paused stays unchanged, with its first reason. Returns the schedule. Fails with [`Error::NotFound`] if
    /// it does not exist in the scope.
    pub async fn pause(
        &self,
        tx: &mut Transaction,
        scope: OwnerScope,
        id: Uuid,
        reason: Option<&str>,
    ) -> store::Result<Schedule> {
        let now = self.clock().now();
        let row = schedules::lock_row(tx, scope, id, now).await?;
        if !row.schedule.enabled {
            return Ok(row.schedule);
        }
        let reason = reason.map(str::trim).filter(|reason| !reason.is_empty()).unwrap_or(PAUSED_BY_HAND);
        schedules::pause(tx, &row, reason, now).await
    }

    /// Resumes a schedule with its first occurrence after now, resets its failures, and wakes the firing loop after the
    /// commit. Occurrences during the pause get decisions and are not caught up. A schedule that is not paused stays
    /// unchanged. Returns the schedule. Fails with [`Error::AlreadyEnded`] if it has no future occurrence, with
    /// [`Error::NotFound`] if it does not exist in the scope, and with [`Error::Corrupt`] if its settings are invalid.
    pub async fn resume(&self, tx: &mut Transaction, scope: OwnerScope, id: Uuid) -> store::Result<Schedule> {
        let now = self.clock().now();
        let row = schedules::lock_row(tx, scope, id, now).await?;
        if row.schedule.enabled {
            return Ok(row.schedule);
        }
        let upcoming = next_occurrence(id, &row.schedule.settings, row.schedule.created_at, now)?;
        if upcoming.is_none() {
            return Err(Error::AlreadyEnded);
        }
        self.record_paused_occurrences(tx, &row, now).await?;
        self.wake_after_commit(tx);
        schedules::resume(tx, &row, upcoming, now).await
    }

    /// Records a `Paused` decision for each occurrence from the stored next one to `now`, with the reason of the pause.
    /// The ones before the newest thousand share a decision. Occurrences that have a decision are
    /// skipped. Decisions are counted after the commit. Does nothing if the stored next occurrence is missing or after
    /// `now`. Fails if the settings are invalid.
    async fn record_paused_occurrences(
        &self,
        tx: &mut Transaction,
        row: &ScheduleRow,
        now: Timestamp,
    ) -> store::Result<()> {
        let Schedule { id, settings, created_at, paused_reason, .. } = &row.schedule;
        let Some(first) = row.due_at.filter(|due| *due <= now) else { return Ok(()) };
        let reason = paused_reason.clone();
        for (due_at, until) in due_occurrences(&rule_of(settings, *created_at)?, first, now) {
            if !schedules::is_decided(tx, *id, due_at).await? {
                let decided_at = now;
                let kind = DecisionKind::Paused;
                let reason = reason.clone();
                let decision =
                    Decision { schedule_id: *id, due_at, decided_at, kind, reason, execution_id: None, until };
                schedules::record_decision(tx, &decision).await?;
                self.count_after_commit(tx, DecisionKind::Paused);
            }
        }
        Ok(())
    }

    /// Removes a schedule and its history, and returns it. Its executions stay, and running ones continue. Fails if it
    /// does not exist in the scope or belongs to the configuration file.
    pub async fn remove(&self, tx: &mut Transaction, scope: OwnerScope, id: Uuid) -> store::Result<Schedule> {
        let schedule = schedules::get(tx, scope, id, self.clock().now()).await?;
        if schedule.source == ScheduleSource::File {
            return Err(Error::DefinedInConfig);
        }
        schedules::remove(tx, scope, id).await?;
        Ok(schedule)
    }

    /// Adds a record of a change to the audit log. Does nothing if the schedule is unchanged. Fails if the database fails.
    pub async fn audit(
        &self,
        tx: &mut Transaction,
        actor: Actor,
        action: AuditAction,
        change: ScheduleChange<'_>,
    ) -> store::Result<()> {
        let ScheduleChange { before, after } = change;
        let Some(schedule) = after.or(before).filter(|_| before != after) else { return Ok(()) };
        let mut record = AuditRecord::new(self.clock(), actor, action, schedule.id);
        if let Some(before) = before {
            record = record.with_before(before);
        }
        if let Some(after) = after {
            record = record.with_after(after);
        }
        store::audit::record(tx, &record).await
    }

    /// Returns an execution for [`Scheduler::run_now`]. It belongs to the owner of the schedule. Fails if the agent
    /// cannot accept it.
    pub fn prepare_run(&self, row: &ScheduleRow) -> Result<Submission, SubmitError> {
        self.prepare(&row.schedule, row.owner, None)
    }

    /// Runs a schedule now, even if it is paused or already running. `submission` comes from
    /// [`Scheduler::prepare_run`]. Records the start and a manual decision, which is moved by microseconds if its time
    /// is taken. The next occurrence does not change. Returns the id of the execution. Fails with [`Error::NotFound`]
    /// if the schedule does not exist in the scope, and with [`Error::QueueFull`] if the queue of its agent is full. Fails
    /// with [`Error::Stopped`] while everything is stopped.
    pub async fn run_now(
        &self,
        tx: &mut Transaction,
        scope: OwnerScope,
        id: Uuid,
        submission: Submission,
    ) -> store::Result<Uuid> {
        let now = self.clock().now();
        let row = schedules::lock_row(tx, scope, id, now).await?;
        let execution = self.supervisor().enqueue(tx, submission).await?;
        schedules::record_start(tx, id, now).await?;
        let mut decision = Decision {
            schedule_id: row.schedule.id,
            due_at: now,
            decided_at: now,
            kind: DecisionKind::Run,
            reason: None,
            execution_id: Some(execution),
            until: None,
        };
        // The time may be taken by another manual run or by an occurrence.
        while !schedules::record_decision(tx, &decision).await? {
            decision.due_at += jiff::SignedDuration::from_micros(1);
        }
        self.count_after_commit(tx, DecisionKind::Run);
        Ok(execution)
    }

    /// Returns the times of the next `count` runs, jitter included, or fewer if the schedule ends before. For a paused
    /// schedule, these are the times it would have. Fails if the stored settings are invalid.
    pub fn upcoming(&self, schedule: &Schedule, count: usize) -> store::Result<Vec<Timestamp>> {
        let times = rule_of(&schedule.settings, schedule.created_at)?.next_n(self.clock().now(), count);
        Ok(times.into_iter().map(|due| apply_jitter(schedule.id, due, schedule.settings.jitter)).collect())
    }
}

/// Returns the occurrence rule of stored settings. Fails with [`Error::Corrupt`] if they are invalid, for example after
/// a manual edit of the database.
pub(crate) fn rule_of(settings: &ScheduleSettings, created_at: Timestamp) -> store::Result<OccurrenceRule> {
    OccurrenceRule::new(settings, created_at).map_err(|invalid| Error::Corrupt(invalid.to_string()))
}

/// Returns the first occurrence after `now` with its firing time, jitter included, or `None` if there is none.
/// Intervals are counted from `created_at`, or from the start of the schedule. Fails with [`Error::Corrupt`] if the
/// settings are invalid.
fn next_occurrence(
    id: Uuid,
    settings: &ScheduleSettings,
    created_at: Timestamp,
    now: Timestamp,
) -> store::Result<Option<NextOccurrence>> {
    let due = rule_of(settings, created_at)?.next_after(now);
    Ok(due.map(|due_at| NextOccurrence { due_at, fire_at: apply_jitter(id, due_at, settings.jitter) }))
}

/// Fails if the settings have no occurrence after `now`. The violation names `at` if it is set, else `end_at` if it is
/// set, else `cron_expression`. Also fails if the cron expression or the time zone is invalid.
fn check_has_future_occurrence(
    settings: &ScheduleSettings,
    created_at: Timestamp,
    now: Timestamp,
) -> Result<(), Invalid> {
    if OccurrenceRule::new(settings, created_at)?.next_after(now).is_some() {
        return Ok(());
    }
    Err(match (settings.at, settings.end_at) {
        (Some(_), _) => Invalid::one("at", "future", "must be in the future"),
        (None, Some(_)) => Invalid::one("end_at", "future", "must be after the next occurrence of the schedule"),
        (None, None) => Invalid::one("cron_expression", "cron", "must have a future occurrence"),
    })
}

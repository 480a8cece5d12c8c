//! Makes, changes, pauses, resumes, removes and runs schedules for people. Everything that writes does so in the
//! transaction of the caller.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use model::invalid::Checks;
use model::schedule::{Decision, Draft, Kind, Patch, Schedule, Settings, Source};
use model::{Invalid, User, UserId};
use store::executions::Whose;
use store::schedules::{self, Kept, Next};
use store::{Error, Transaction};
use supervisor::{Refused, Submission};
use uuid::Uuid;

use crate::plan::occurrences;
use crate::when::{When, put_off};
use crate::{FINISHED, Scheduler};

/// Why a schedule is paused of which nobody said more.
const BY_HAND: &str = "paused by hand";

/// What somebody wrote down, and may have.
#[derive(Clone, Debug, PartialEq)]
pub struct Checked {
    pub settings: Settings,
    /// `None` leaves it as it is.
    pub enabled: Option<bool>,
}

/// A schedule as it stands in a file: everything that can be said without knowing the agents and the time.
pub fn check_written(draft: Draft, zone: &TimeZone) -> Result<Checked, Invalid> {
    let mut checks = Checks::default();
    let enabled = draft.enabled;
    let expression = draft.cron_expression.clone();
    let settings = checks.take(draft.check(zone));
    if let Some(expression) = expression {
        checks.take(When::check_cron(&expression));
    }
    checks.finish(settings.map(|settings| Checked { settings, enabled }))
}

impl Scheduler {
    /// A schedule that the user wants, or everything that is wrong with it.
    pub fn check(&self, user: &User, draft: Draft) -> Result<Checked, Invalid> {
        self.check_over(user, draft, None)
    }

    /// A schedule as the user wants it changed, or everything that is wrong with that.
    pub fn check_change(&self, user: &User, schedule: &Schedule, patch: Patch) -> Result<Checked, Invalid> {
        self.check_over(user, patch.over(schedule.settings.clone())?, Some(schedule))
    }

    fn check_over(&self, user: &User, draft: Draft, before: Option<&Schedule>) -> Result<Checked, Invalid> {
        let mut checks = Checks::default();
        let agent_id = draft.agent_id.clone().unwrap_or_default();
        let checked = checks.take(check_written(draft, &user.time_zone));
        let same_agent = before.is_some_and(|before| before.settings.agent_id == agent_id);
        if !agent_id.is_empty() && !same_agent {
            match self.supervisor().agent_for(user, &agent_id) {
                Err(_) => {
                    checks.fail("agent_id", "agent", format!("must be an agent: there is none called '{agent_id}'"))
                }
                Ok(entry) if !entry.agent.enabled => {
                    checks.fail("agent_id", "agent", format!("must be an agent that is enabled: '{agent_id}' is not"));
                }
                Ok(_) => {}
            }
        }
        if let Some(Checked { settings, .. }) = &checked
            && before.is_none_or(|before| !before.settings.is_timed_like(settings))
        {
            let made = before.map_or(self.clock().now(), |before| before.created_at);
            checks.take(comes(settings, made, self.clock().now()));
        }
        checks.finish(checked)
    }

    /// Makes a schedule that [`Scheduler::check`] has let through.
    pub async fn create(&self, tx: &mut Transaction, owner: UserId, checked: &Checked) -> store::Result<Schedule> {
        let paused = (checked.enabled == Some(false)).then(|| BY_HAND.to_owned());
        self.make(tx, owner, checked, Source::Api, paused).await
    }

    pub(crate) async fn make(
        &self,
        tx: &mut Transaction,
        owner: UserId,
        checked: &Checked,
        source: Source,
        paused: Option<String>,
    ) -> store::Result<Schedule> {
        let id = self.clock().id();
        let now = self.clock().now();
        let settings = checked.settings.clone();
        let next = next(id, &settings, now, now)?;
        let paused = paused.or_else(|| next.is_none().then(|| FINISHED.to_owned()));
        self.wake_after_commit(tx);
        schedules::create(tx, owner, &schedules::New { id, settings, source, paused, next }, now).await
    }

    /// Changes a schedule to what [`Scheduler::check_change`] has let through. Its next time is counted from now where its
    /// times are others.
    pub async fn change(
        &self,
        tx: &mut Transaction,
        whose: Whose,
        id: Uuid,
        checked: &Checked,
    ) -> store::Result<Schedule> {
        let kept = schedules::lock(tx, whose, id, self.clock().now()).await?;
        if kept.schedule.source == Source::File {
            return Err(Error::Configured);
        }
        self.rewrite(tx, kept, checked).await
    }

    pub(crate) async fn rewrite(&self, tx: &mut Transaction, kept: Kept, checked: &Checked) -> store::Result<Schedule> {
        let now = self.clock().now();
        let settings = &checked.settings;
        let id = kept.schedule.id;
        let retimed = !settings.is_timed_like(&kept.schedule.settings);
        let upcoming = if retimed {
            next(id, settings, kept.schedule.created_at, now)?
        } else {
            kept.due_at.map(|due_at| Next { due_at, at: put_off(id, due_at, settings.jitter) })
        };
        self.wake_after_commit(tx);
        let mut schedule = kept.schedule.clone();
        if *settings != kept.schedule.settings {
            schedule = schedules::change(tx, &kept, settings, upcoming, now).await?;
        }
        let finished = schedule.paused_reason.as_deref() == Some(FINISHED);
        let whose = Whose::Users(kept.owner);
        match checked.enabled {
            Some(false) if schedule.enabled => self.pause(tx, whose, id, None).await,
            Some(true) if !schedule.enabled => self.resume(tx, whose, id).await,
            None if finished && retimed && upcoming.is_some() => self.resume(tx, whose, id).await,
            _ => Ok(schedule),
        }
    }

    /// Pauses a schedule; one that is paused stays so, with its first reason.
    pub async fn pause(
        &self,
        tx: &mut Transaction,
        whose: Whose,
        id: Uuid,
        reason: Option<&str>,
    ) -> store::Result<Schedule> {
        let now = self.clock().now();
        let kept = schedules::lock(tx, whose, id, now).await?;
        if !kept.schedule.enabled {
            return Ok(kept.schedule);
        }
        let reason = reason.map(str::trim).filter(|reason| !reason.is_empty()).unwrap_or(BY_HAND);
        schedules::pause(tx, &kept, reason, now).await
    }

    /// Lets a schedule go on with its next time from now; what fell into the pause is on record and not made up for.
    /// [`Error::Ended`]: it has no more times.
    pub async fn resume(&self, tx: &mut Transaction, whose: Whose, id: Uuid) -> store::Result<Schedule> {
        let now = self.clock().now();
        let kept = schedules::lock(tx, whose, id, now).await?;
        if kept.schedule.enabled {
            return Ok(kept.schedule);
        }
        let upcoming = next(id, &kept.schedule.settings, kept.schedule.created_at, now)?;
        if upcoming.is_none() {
            return Err(Error::Ended);
        }
        self.note_pause(tx, &kept, now).await?;
        self.wake_after_commit(tx);
        schedules::resume(tx, &kept, upcoming, now).await
    }

    /// The times that fell into a pause have their decisions too.
    async fn note_pause(&self, tx: &mut Transaction, kept: &Kept, now: Timestamp) -> store::Result<()> {
        let Schedule { id, settings, created_at, paused_reason, .. } = &kept.schedule;
        let Some(first) = kept.due_at.filter(|due| *due <= now) else { return Ok(()) };
        let reason = paused_reason.clone();
        for (due_at, until) in occurrences(&when(settings, *created_at)?, first, now) {
            if !schedules::is_decided(tx, *id, due_at).await? {
                let decided_at = now;
                let kind = Kind::Paused;
                let reason = reason.clone();
                let decision =
                    Decision { schedule_id: *id, due_at, decided_at, kind, reason, execution_id: None, until };
                schedules::decide(tx, &decision).await?;
                self.count_after_commit(tx, Kind::Paused);
            }
        }
        Ok(())
    }

    /// Removes a schedule with its history.
    pub async fn remove(&self, tx: &mut Transaction, whose: Whose, id: Uuid) -> store::Result<()> {
        if schedules::get(tx, whose, id, self.clock().now()).await?.source == Source::File {
            return Err(Error::Configured);
        }
        schedules::remove(tx, whose, id).await
    }

    /// Prepares an execution for [`Scheduler::run_now`]. It belongs to the owner of the schedule.
    pub fn prepare_run(&self, kept: &Kept) -> Result<Submission, Refused> {
        self.prepare(&kept.schedule, kept.owner, None)
    }

    /// Runs a schedule at once, whatever else of it runs, also one that is paused. Returns the id of the execution.
    pub async fn run_now(
        &self,
        tx: &mut Transaction,
        whose: Whose,
        id: Uuid,
        submission: Submission,
    ) -> store::Result<Uuid> {
        let now = self.clock().now();
        let kept = schedules::lock(tx, whose, id, now).await?;
        let execution = self.supervisor().enqueue(tx, submission).await?;
        schedules::started(tx, id, now).await?;
        let mut decision = Decision {
            schedule_id: kept.schedule.id,
            due_at: now,
            decided_at: now,
            kind: Kind::Run,
            reason: None,
            execution_id: Some(execution),
            until: None,
        };
        // Twice within a microsecond, or at one of its own times.
        while !schedules::decide(tx, &decision).await? {
            decision.due_at += jiff::SignedDuration::from_micros(1);
        }
        self.count_after_commit(tx, Kind::Run);
        Ok(execution)
    }

    /// The next times at which something will be run, as they will be run: put off by their jitter. Also of one that is
    /// paused: as they would be.
    pub fn next(&self, schedule: &Schedule, count: usize) -> store::Result<Vec<Timestamp>> {
        let times = when(&schedule.settings, schedule.created_at)?.next_n(self.clock().now(), count);
        Ok(times.into_iter().map(|due| put_off(schedule.id, due, schedule.settings.jitter)).collect())
    }
}

/// What was let through once can be read, unless somebody has changed it by hand.
pub(crate) fn when(settings: &Settings, made: Timestamp) -> store::Result<When> {
    When::new(settings, made).map_err(|wrong| Error::Corrupt(wrong.to_string()))
}

fn next(id: Uuid, settings: &Settings, made: Timestamp, now: Timestamp) -> store::Result<Option<Next>> {
    let due = when(settings, made)?.after(now);
    Ok(due.map(|due_at| Next { due_at, at: put_off(id, due_at, settings.jitter) }))
}

/// Whether there is a time to come.
fn comes(settings: &Settings, made: Timestamp, now: Timestamp) -> Result<(), Invalid> {
    if When::new(settings, made)?.after(now).is_some() {
        return Ok(());
    }
    Err(match (settings.at, settings.end_at) {
        (Some(_), _) => Invalid::one("at", "future", "must be in the future"),
        (None, Some(_)) => Invalid::one("end_at", "future", "must leave a time to come: there is none before it"),
        (None, None) => Invalid::one("cron_expression", "cron", "never comes"),
    })
}

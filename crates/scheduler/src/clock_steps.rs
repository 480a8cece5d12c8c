//! Corrects schedules after the clock was ahead. Their next occurrences are as far ahead as the clock was, so they would be
//! silent until then. An occurrence that has started is not repeated.

use std::sync::PoisonError;

use jiff::{SignedDuration, Timestamp};
use model::schedule::{Decision, DecisionKind, Schedule};
use store::executions::OwnerScope;
use store::schedules::{self, NextOccurrence, ScheduleRow};
use store::{Error, Transaction};

use crate::manage::rule_of;
use crate::occurrences::apply_jitter;
use crate::{FINISHED_REASON, Scheduler};

/// The number of schedules that are read at once.
const BATCH_SIZE: i64 = 128;
/// The number of occurrences to pass that have started already. Later ones are passed when they are due.
const MAX_PASSED: usize = 10_000;

impl Scheduler {
    /// Calls [`Scheduler::correct_schedules`] in the first round, after the clock was set back, and at intervals. Fails if
    /// the database fails.
    pub(crate) async fn correct_if_due(&self) -> store::Result<()> {
        let now = self.clock().now();
        let steps = || self.0.steps.lock().unwrap_or_else(PoisonError::into_inner);
        if !steps().is_due(now) {
            return Ok(());
        }
        self.correct_schedules().await?;
        steps().set_checked(now);
        Ok(())
    }

    /// Computes the next occurrence again of each schedule whose stored one is after the first one that its rule allows
    /// from now. Also resumes schedules that are finished only because the clock was ahead. Records a decision with the
    /// reason. Returns the number of corrected schedules. Unreadable schedules are left to the firing. Fails if the
    /// database fails.
    pub async fn correct_schedules(&self) -> store::Result<usize> {
        let mut corrected = 0;
        let mut after = None;
        loop {
            let now = self.clock().now();
            let mut reader = self.store().reader().await?;
            let page = schedules::schedules_ahead(&mut reader, FINISHED_REASON, now, after, BATCH_SIZE).await?;
            drop(reader);
            after = page.last().map(|(id, _)| *id);
            let is_full = page.len() as i64 == BATCH_SIZE;
            for row in page.into_iter().filter_map(|(_, row)| row.ok()).filter(|row| is_too_far_ahead(row, now)) {
                let scheduler = self.clone();
                let job = async move |tx: &mut Transaction| scheduler.correct(tx, row, now).await;
                corrected += usize::from(self.store().transaction(job).await?);
            }
            if !is_full {
                return Ok(corrected);
            }
        }
    }

    /// Corrects one schedule. Returns false, without a change, if it was changed since it was read, or if all occurrences
    /// before the stored one have started.
    async fn correct(&self, tx: &mut Transaction, row: ScheduleRow, now: Timestamp) -> store::Result<bool> {
        let id = row.schedule.id;
        let locked = match schedules::lock_row(tx, OwnerScope::AllUsers, id, now).await {
            Err(Error::NotFound) => return Ok(false),
            locked => locked?,
        };
        if locked.version != row.version {
            return Ok(false);
        }
        schedules::forget_missed_after(tx, id, now).await?;
        let Schedule { settings, created_at, .. } = &row.schedule;
        let rule = rule_of(settings, *created_at)?;
        let mut next = rule.next_after(now);
        for _ in 0..MAX_PASSED {
            match next {
                Some(time) if schedules::is_decided(tx, id, time).await? => next = rule.next_after(time),
                _ => break,
            }
        }
        let Some(due_at) = next.filter(|next| row.due_at.is_none_or(|stored| *next < stored)) else {
            return Ok(false);
        };
        let upcoming = Some(NextOccurrence { due_at, fire_at: apply_jitter(id, due_at, settings.jitter) });
        if row.schedule.enabled {
            schedules::advance(tx, &row, upcoming).await?;
        } else {
            schedules::resume(tx, &row, upcoming, now).await?;
        }
        schedules::limit_last_start(tx, id, now).await?;
        let reason = match row.due_at {
            Some(stored) => format!(
                "the next occurrence was at {stored}, later than the schedule allows, because the clock was ahead; it is \
                 at {due_at} now"
            ),
            None => format!("the schedule had ended, because the clock was ahead; the next occurrence is at {due_at}"),
        };
        tracing::warn!(event = "schedule_recomputed", schedule_id = %id, reason);
        self.record_at(tx, id, now, reason).await?;
        self.wake_after_commit(tx);
        Ok(true)
    }

    /// Records a correction at `now`, or microseconds later if the time is taken.
    async fn record_at(
        &self,
        tx: &mut Transaction,
        id: uuid::Uuid,
        now: Timestamp,
        reason: String,
    ) -> store::Result<()> {
        let kind = DecisionKind::Recomputed;
        let mut decision = Decision {
            schedule_id: id,
            due_at: now,
            decided_at: now,
            kind,
            reason: Some(reason),
            execution_id: None,
            until: None,
        };
        while !schedules::record_decision(tx, &decision).await? {
            decision.due_at += SignedDuration::from_micros(1);
        }
        self.count_after_commit(tx, kind);
        Ok(())
    }
}

/// Returns true if the next occurrence is after the first one that the rule allows from `now`, or if the schedule has
/// finished and the rule allows one. An invalid rule counts as false.
fn is_too_far_ahead(row: &ScheduleRow, now: Timestamp) -> bool {
    let Schedule { settings, created_at, enabled, .. } = &row.schedule;
    let next = rule_of(settings, *created_at).ok().and_then(|rule| rule.next_after(now));
    next.is_some_and(|next| match row.due_at {
        Some(stored) => *enabled && stored > next,
        None => !enabled,
    })
}

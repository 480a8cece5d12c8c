//! The next occurrence of a recurring task: a copy of the task, due at the next time of its rule.
//!
//! The next due date is always in the future. Missed occurrences do not create tasks.

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{Timestamp, Unit, Zoned};

use super::{Task, TaskStatus};
use crate::Clock;
use crate::due::DueDate;
use crate::recurrence::{self, RecurrenceRule, reduce_count};
use crate::reminder::{Reminder, ReminderStatus};

impl Task {
    /// Returns the next task: a pending copy with a new id, the next due date and a reduced `COUNT`. Returns `None` if
    /// the task does not recur, or if its rule is malformed or has no further occurrence.
    ///
    /// `zone` is the time zone of the owner. The local time of day does not change across clock changes.
    pub fn next_occurrence(&self, clock: &Clock, zone: &TimeZone) -> Option<Self> {
        let text = self.recurrence.as_deref()?;
        let now = clock.now();
        let rule = RecurrenceRule::parse(text).ok()?;
        let (due, steps) = next_due(&rule, self.due_date, now, zone)?;
        Some(Self {
            id: clock.id(),
            status: TaskStatus::Pending,
            due_date: Some(due),
            recurrence: Some(reduce_count(text, steps)),
            created_at: now,
            updated_at: now,
            completed_at: None,
            ..self.clone()
        })
    }

    /// Returns the first time after `now` at which the rule of the task repeats its due time. Unlike
    /// [`Self::next_occurrence`], this is about the task itself, which stays open. Returns `None` if the task has no
    /// rule or no due time, or if the rule has ended.
    pub fn next_due_time(&self, now: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let rule = RecurrenceRule::parse(self.recurrence.as_deref()?).ok()?;
        let due = self.due_date?.timestamp()?.to_zoned(zone.clone());
        recurrence::next_moment(&rule, &due, now).map(|(next, _)| next.timestamp())
    }

    /// Returns a copy of the reminder for the task `next`, which has not fired. One with `before_minutes` gets the time
    /// before the new due date; it is done if that has passed. Others keep the local time relative to the due date. If a
    /// due date is only a day, they move by whole days.
    ///
    /// Returns `None` if the reminder was dropped or one of the tasks has no due date, or if the copy would not be in
    /// the future. A reminder after the due date is copied only if it repeats.
    pub fn carry_reminder(
        &self,
        reminder: &Reminder,
        next: &Self,
        clock: &Clock,
        zone: &TimeZone,
        default_time: Time,
    ) -> Option<Reminder> {
        if reminder.status == ReminderStatus::Dropped {
            return None;
        }
        if reminder.before_minutes.is_some() {
            let mut copy = Reminder { id: clock.id(), task_id: next.id, ..reminder.clone() };
            copy.follow_due_date(next.due_date, default_time, clock.now());
            return Some(copy).filter(|copy| copy.status != ReminderStatus::Dropped);
        }
        let at = reminder.remind_at.to_zoned(zone.clone());
        let remind_at = match (self.due_date?, next.due_date?) {
            (DueDate::Day(old), _) if at.date() > old && !reminder.repeats() => return None,
            (DueDate::Moment { at: old, .. }, _) if reminder.remind_at > old && !reminder.repeats() => return None,
            (DueDate::Moment { at: old, .. }, DueDate::Moment { at: new, .. }) => {
                let local = |time: Timestamp| time.to_zoned(zone.clone()).datetime();
                let moved = local(old).until((Unit::Day, local(new))).ok()?;
                at.datetime().checked_add(moved).ok()?
            }
            (old, new) => {
                let moved = local_day(old, zone).until((Unit::Day, local_day(new, zone))).ok()?;
                at.datetime().checked_add(moved).ok()?
            }
        };
        let remind_at = remind_at.to_zoned(zone.clone()).ok()?.timestamp();
        (remind_at > clock.now()).then(|| Reminder {
            id: clock.id(),
            task_id: next.id,
            remind_at,
            fired_count: 0,
            status: ReminderStatus::Scheduled,
            snoozed_until: None,
            next_at: Some(remind_at),
            ..reminder.clone()
        })
    }
}

/// Returns the day of a due date. The day of a moment is its day in `zone`.
fn local_day(due: DueDate, zone: &TimeZone) -> Date {
    match due {
        DueDate::Day(day) => day,
        DueDate::Moment { at, .. } => at.to_zoned(zone.clone()).date(),
    }
}

/// Returns the first occurrence after the due date and after now, with the number of occurrences up to it. Returns
/// `None` if the rule has none.
///
/// The result is a moment if the due date is a moment or the rule has times of day, otherwise a day. A due day starts
/// at midnight in `zone` then. Without a due date, the rule starts now, in whole seconds.
fn next_due(rule: &RecurrenceRule, due: Option<DueDate>, now: Timestamp, zone: &TimeZone) -> Option<(DueDate, i64)> {
    let now = now.to_zoned(zone.clone());
    match due {
        Some(DueDate::Moment { at, .. }) => next_moment(rule, at.to_zoned(zone.clone()), &now),
        Some(DueDate::Day(day)) if rule.has_time_of_day() => next_moment(rule, day.to_zoned(zone.clone()).ok()?, &now),
        None if rule.has_time_of_day() => next_moment(rule, now.with().subsec_nanosecond(0).build().ok()?, &now),
        Some(DueDate::Day(day)) => next_day(rule, day, &now),
        None => next_day(rule, now.date(), &now),
    }
}

/// Returns the first day of a rule without times of day that is after the due day and after today, with the number of
/// occurrences up to it. Returns `None` if the rule has none.
fn next_day(rule: &RecurrenceRule, due: Date, now: &Zoned) -> Option<(DueDate, i64)> {
    let last = due.max(now.date());
    let zone = now.time_zone();
    let midnight = |day: Date| day.to_datetime(Time::midnight());
    let allowed = |time: DateTime| rule.allows_day(time.date(), zone);
    let (next, steps) = rule.next_occurrence(midnight(due), midnight(last), allowed, |time| time.date() > last)?;
    Some((DueDate::Day(next.date()), steps))
}

/// Returns the first moment of a rule that is after the due date and after now, with the number of occurrences up to
/// it. Returns `None` if the rule has none.
fn next_moment(rule: &RecurrenceRule, due: Zoned, now: &Zoned) -> Option<(DueDate, i64)> {
    let (next, steps) = recurrence::next_moment(rule, &due, now.timestamp())?;
    Some((DueDate::from_zoned(&next), steps))
}

#[cfg(test)]
mod tests;

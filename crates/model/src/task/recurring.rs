//! The next occurrence of a recurring task: a copy of the task, due at the next time of its rule.
//!
//! The next due date is always in the future. Missed occurrences do not create tasks.

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan, Unit, Zoned};

use super::{Task, TaskStatus};
use crate::Clock;
use crate::due::DueDate;
use crate::recurrence::{RecurrenceRule, reduce_count};
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

    /// Returns a copy of the reminder for the task `next`, with the same local time before the due date. If a due date
    /// is only a day, the reminder moves by whole days. The copy is scheduled and has not fired.
    ///
    /// Returns `None` if one of the tasks has no due date, or if the reminder is after the due date or was dropped.
    /// Also returns `None` if the copy would not be in the future.
    pub fn carry_reminder(&self, reminder: &Reminder, next: &Self, clock: &Clock, zone: &TimeZone) -> Option<Reminder> {
        let at = reminder.remind_at.to_zoned(zone.clone());
        let remind_at = match (self.due_date?, next.due_date?) {
            (DueDate::Day(old), _) if at.date() > old => return None,
            (DueDate::Moment { at: old, .. }, _) if reminder.remind_at > old => return None,
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
        let is_carried = reminder.status != ReminderStatus::Dropped && remind_at > clock.now();
        is_carried.then(|| Reminder {
            id: clock.id(),
            task_id: next.id,
            remind_at,
            fired_count: 0,
            status: ReminderStatus::Scheduled,
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
    let zone = now.time_zone();
    let last = due.timestamp().max(now.timestamp());
    // A local time that a clock change skips is moved to a later time, so the search starts a day earlier.
    let from = last.to_zoned(zone.clone()).datetime().checked_sub(1.day()).ok()?;
    let moment = |time: DateTime| time.to_zoned(zone.clone()).ok();
    let allowed = |time: DateTime| rule.allows(time, zone);
    let ahead = |time: DateTime| moment(time).is_some_and(|time| time.timestamp() > last);
    let (next, steps) = rule.next_occurrence(due.datetime(), from, allowed, ahead)?;
    Some((DueDate::from_zoned(&moment(next)?), steps))
}

#[cfg(test)]
mod tests;

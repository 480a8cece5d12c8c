//! What follows a recurring task that was completed: the same once more, due at the next occurrence of its rule.
//!
//! The next one is always ahead: whoever is late finds one task, not one for each time that was missed.

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan, Unit, Zoned};

use super::{Status, Task};
use crate::Clock;
use crate::due::Due;
use crate::recurrence::{Rule, counted_down};
use crate::reminder::{self, Reminder};

impl Task {
    /// The task that follows this one; nothing where it does not repeat, or where its rule has ended. `zone` is the
    /// owner's: the time of day stays what it is there.
    pub fn next(&self, clock: &Clock, zone: &TimeZone) -> Option<Self> {
        let text = self.recurrence.as_deref()?;
        let now = clock.now();
        let rule = Rule::read(text).ok()?;
        let (due, steps) = next_due(&rule, self.due_date, now, zone)?;
        Some(Self {
            id: clock.id(),
            status: Status::Pending,
            due_date: Some(due),
            recurrence: Some(counted_down(text, steps)),
            created_at: now,
            updated_at: now,
            completed_at: None,
            ..self.clone()
        })
    }

    /// A reminder of this task as `next` shall have it: as long before the due date, by the owner's clock. Nothing where it
    /// came after the due date, was dropped, or would lie in the past.
    pub fn carried(&self, reminder: &Reminder, next: &Self, clock: &Clock, zone: &TimeZone) -> Option<Reminder> {
        let at = reminder.remind_at.to_zoned(zone.clone());
        let remind_at = match (self.due_date?, next.due_date?) {
            (Due::Day(old), _) if at.date() > old => return None,
            (Due::Moment { at: old, .. }, _) if reminder.remind_at > old => return None,
            (Due::Moment { at: old, .. }, Due::Moment { at: new, .. }) => {
                let local = |time: Timestamp| time.to_zoned(zone.clone()).datetime();
                let moved = local(old).until((Unit::Day, local(new))).ok()?;
                at.datetime().checked_add(moved).ok()?
            }
            (old, new) => {
                let moved = day_of(old, zone).until((Unit::Day, day_of(new, zone))).ok()?;
                at.datetime().checked_add(moved).ok()?
            }
        };
        let remind_at = remind_at.to_zoned(zone.clone()).ok()?.timestamp();
        let wanted = reminder.status != reminder::Status::Dropped && remind_at > clock.now();
        wanted.then(|| Reminder {
            id: clock.id(),
            task_id: next.id,
            remind_at,
            fired_count: 0,
            status: reminder::Status::Scheduled,
            ..reminder.clone()
        })
    }
}

fn day_of(due: Due, zone: &TimeZone) -> Date {
    match due {
        Due::Day(day) => day,
        Due::Moment { at, .. } => at.to_zoned(zone.clone()).date(),
    }
}

/// The next occurrence after the due date and after now, and how many occurrences on it is. Without a due date the rule
/// goes on from now.
fn next_due(rule: &Rule, due: Option<Due>, now: Timestamp, zone: &TimeZone) -> Option<(Due, i64)> {
    let now = now.to_zoned(zone.clone());
    match due {
        Some(Due::Moment { at, .. }) => next_moment(rule, at.to_zoned(zone.clone()), &now),
        Some(Due::Day(day)) if rule.is_timed() => next_moment(rule, day.to_zoned(zone.clone()).ok()?, &now),
        None if rule.is_timed() => next_moment(rule, now.with().subsec_nanosecond(0).build().ok()?, &now),
        Some(Due::Day(day)) => next_day(rule, day, &now),
        None => next_day(rule, now.date(), &now),
    }
}

/// What is done today is done for today.
fn next_day(rule: &Rule, due: Date, now: &Zoned) -> Option<(Due, i64)> {
    let last = due.max(now.date());
    let zone = now.time_zone();
    let midnight = |day: Date| day.to_datetime(Time::midnight());
    let allowed = |time: DateTime| rule.allows_day(time.date(), zone);
    let (next, steps) = rule.next(midnight(due), midnight(last), allowed, |time| time.date() > last)?;
    Some((Due::Day(next.date()), steps))
}

fn next_moment(rule: &Rule, due: Zoned, now: &Zoned) -> Option<(Due, i64)> {
    let zone = now.time_zone();
    let last = due.timestamp().max(now.timestamp());
    // A time that the clock leaves out comes later than it says: look a day back.
    let from = last.to_zoned(zone.clone()).datetime().checked_sub(1.day()).ok()?;
    let moment = |time: DateTime| time.to_zoned(zone.clone()).ok();
    let allowed = |time: DateTime| rule.allows(time, zone);
    let ahead = |time: DateTime| moment(time).is_some_and(|time| time.timestamp() > last);
    let (next, steps) = rule.next(due.datetime(), from, allowed, ahead)?;
    Some((Due::at(&moment(next)?), steps))
}

#[cfg(test)]
mod tests;

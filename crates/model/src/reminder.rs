//! Reminders: the times at which a user is notified about a task.
//!
//! A reminder has one of these times: a moment, a moment with a repetition, or a number of minutes before the due date of
//! its task. [`draft`] checks the input.

mod draft;

use jiff::civil::Time;
use jiff::fmt::temporal::{DateTimeParser, DateTimePrinter};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

pub use self::draft::{ReminderDraft, ReminderPatch, SnoozeRequest, parse_future};
use crate::clock::from_micros;
use crate::due::DueDate;
use crate::invalid::Checks;
use crate::recurrence::{self, RecurrenceRule};
use crate::{Clock, Invalid, User};

pub const MAX_INTERVAL_MINUTES: i64 = 1440;
pub const MAX_COUNT: i64 = 100;
/// A year.
pub const MAX_BEFORE_MINUTES: i64 = 366 * 1440;
const DAY_MINUTES: i64 = 1440;

/// The time of day of reminders for a day, unless the configuration has another one.
pub const DEFAULT_TIME: Time = Time::constant(9, 0, 0, 0);

/// One or several notifications about a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Reminder {
    pub id: Uuid,
    pub task_id: Uuid,
    /// The first time. It follows the due date of the task if `before_minutes` is set.
    pub remind_at: Timestamp,
    pub repeat_interval_minutes: Option<i64>,
    /// The total number of notifications. With an interval and no count, the reminder repeats until the task is
    /// completed.
    pub repeat_count: Option<i64>,
    pub fired_count: i64,
    pub status: ReminderStatus,
    /// An RFC 5545 RRULE that starts at `remind_at`.
    #[serde(default)]
    #[schema(examples("FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR"))]
    pub recurrence: Option<String>,
    /// The minutes before the due date of the task.
    #[serde(default)]
    pub before_minutes: Option<i64>,
    /// The time zone of the recurrence and of whole days before the due date.
    #[serde(default)]
    #[schema(examples("Europe/Berlin"))]
    pub time_zone: Option<String>,
    /// The time to which the next notification was moved.
    #[serde(default)]
    pub snoozed_until: Option<Timestamp>,
    /// The time of the next notification, null if there is none. An import ignores it.
    #[serde(default)]
    pub next_at: Option<Timestamp>,
}

/// The status of a reminder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReminderStatus {
    Scheduled,
    Done,
    Dropped,
}

impl ReminderStatus {
    /// Parses a status. Fails if the text is not a status.
    pub fn parse(field: &str, text: &str) -> Result<Self, Invalid> {
        match text {
            "scheduled" => Ok(Self::Scheduled),
            "done" => Ok(Self::Done),
            "dropped" => Ok(Self::Dropped),
            _ => Err(Invalid::one(field, "one_of", "must be scheduled, done or dropped")),
        }
    }

    /// Returns the JSON spelling.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Scheduled => "scheduled",
            Self::Done => "done",
            Self::Dropped => "dropped",
        }
    }
}

impl Reminder {
    /// Returns the imported reminder with a normalized recurrence and its next time. Fails if its interval, count or
    /// minutes are out of range, or if its recurrence or time zone is invalid.
    pub fn check(mut self, now: Timestamp) -> Result<Self, Invalid> {
        let mut checks = Checks::default();
        checks.take(in_range("repeat_interval_minutes", self.repeat_interval_minutes, MAX_INTERVAL_MINUTES));
        checks.take(in_range("repeat_count", self.repeat_count, MAX_COUNT));
        checks.take(draft::check_before(self.before_minutes));
        if let Some(name) = &self.time_zone
            && parse_zone(name).is_none()
        {
            checks.fail("time_zone", "time_zone", "is not a known time zone");
        }
        let rule = self.recurrence.as_deref().map(|rule| recurrence::normalize("recurrence", rule)).transpose();
        self.recurrence = checks.take(rule).flatten();
        self.next_at = (self.status == ReminderStatus::Scheduled).then(|| self.next_firing(now));
        checks.finish(Some(self))
    }

    /// Returns true if the reminder has an interval or a recurrence.
    pub fn repeats(&self) -> bool {
        self.repeat_interval_minutes.is_some() || self.recurrence.is_some()
    }

    /// Returns the time of the next firing. A snoozed reminder is due at the end of the snooze. One that has never fired
    /// is due at `remind_at`, however late that is. After that, the result is the next repetition after `now`, or
    /// `remind_at` if there is none.
    pub fn next_firing(&self, now: Timestamp) -> Timestamp {
        if let Some(until) = self.snoozed_until {
            return until;
        }
        if self.fired_count == 0 { self.remind_at } else { self.next_after(now).unwrap_or(self.remind_at) }
    }

    /// Counts a firing and returns the time of the next one, which is after `now`. Missed firings are skipped and not
    /// counted. A firing that was snoozed after it had been counted is not counted again. Returns `None` and sets the
    /// status to `Done` if the reminder does not repeat, its recurrence has ended, or `repeat_count` is reached.
    pub fn fire(&mut self, now: Timestamp) -> Option<Timestamp> {
        let is_counted = self.snoozed_until.take().is_some() && self.fired_count > 0;
        self.fired_count += i64::from(!is_counted);
        self.continue_after(now);
        self.next_at
    }

    /// Sets the next firing to the first one after `now`, or the status to `Done` if there is none. Dropped reminders
    /// are not changed.
    pub fn continue_after(&mut self, now: Timestamp) {
        if self.status == ReminderStatus::Dropped {
            return;
        }
        let is_complete = self.repeat_count.is_some_and(|count| self.fired_count >= count);
        self.next_at = self.next_after(now).filter(|_| !is_complete);
        self.status = if self.next_at.is_some() { ReminderStatus::Scheduled } else { ReminderStatus::Done };
    }

    /// Returns the first repetition after `now`, at or after `remind_at`. Returns `None` if the reminder does not
    /// repeat, or if its recurrence has ended or is malformed.
    pub fn next_after(&self, now: Timestamp) -> Option<Timestamp> {
        if let Some(text) = &self.recurrence {
            let rule = RecurrenceRule::parse(text).ok()?;
            let start = self.remind_at.to_zoned(self.zone());
            return recurrence::next_moment(&rule, &start, now).map(|(next, _)| next.timestamp());
        }
        let every = self.repeat_interval_minutes?.checked_mul(60_000_000).filter(|every| *every > 0)?;
        let first = self.remind_at.as_microsecond();
        let steps = now.as_microsecond().saturating_sub(first).div_euclid(every).saturating_add(1).max(1);
        Some(from_micros(first.saturating_add(steps.saturating_mul(every))))
    }

    /// Sets the time of a reminder with `before_minutes` for a due date of its task. If the time is not after `now`, the
    /// status becomes `Done`, else `Scheduled`. Without a due date, the reminder is dropped. Other reminders, and dropped
    /// ones, are not changed.
    pub fn follow_due_date(&mut self, due: Option<DueDate>, default_time: Time, now: Timestamp) {
        let Some(minutes) = self.before_minutes else { return };
        if self.status == ReminderStatus::Dropped {
            return;
        }
        self.snoozed_until = None;
        match due.and_then(|due| time_before(due, minutes, &self.zone(), default_time)) {
            Some(at) => {
                self.remind_at = at;
                self.fired_count = 0;
                self.status = if at > now { ReminderStatus::Scheduled } else { ReminderStatus::Done };
                self.next_at = (at > now).then_some(at);
            }
            None => self.set_dropped(),
        }
    }

    /// Moves the next firing to `until` and schedules it, also if the reminder had ended.
    pub fn snooze(&mut self, until: Timestamp) {
        self.status = ReminderStatus::Scheduled;
        self.snoozed_until = Some(until);
        self.next_at = Some(until);
    }

    /// Ends the reminder without a further firing.
    pub fn set_dropped(&mut self) {
        self.status = ReminderStatus::Dropped;
        self.next_at = None;
    }

    /// Returns the time zone, UTC if it is missing or unknown.
    fn zone(&self) -> TimeZone {
        self.time_zone.as_deref().and_then(parse_zone).unwrap_or(TimeZone::UTC)
    }
}

/// Returns the text of a time zone for storage: its name, or its rule if it has no name. `None` if it has neither.
pub fn zone_text(zone: &TimeZone) -> Option<String> {
    DateTimePrinter::new().time_zone_to_string(zone).ok()
}

/// Parses the result of [`zone_text`]. Returns `None` if the zone is unknown.
pub fn parse_zone(text: &str) -> Option<TimeZone> {
    DateTimeParser::new().parse_time_zone(text).ok()
}

/// Returns the time that is `minutes` before a due date. A due day counts as this day at `default_time`. Whole days keep
/// the local time of day across clock changes. Returns `None` if the time is out of range.
pub fn time_before(due: DueDate, minutes: i64, zone: &TimeZone, default_time: Time) -> Option<Timestamp> {
    let due = match due {
        DueDate::Day(day) => day.to_datetime(default_time).to_zoned(zone.clone()).ok()?,
        DueDate::Moment { at, .. } => at.to_zoned(zone.clone()),
    };
    let before = if minutes % DAY_MINUTES == 0 {
        due.checked_sub((minutes / DAY_MINUTES).days())
    } else {
        due.checked_sub(minutes.minutes())
    };
    before.ok().map(|before| before.timestamp())
}

/// Fails if the value is given and not between 1 and `max`.
fn in_range(field: &str, value: Option<i64>, max: i64) -> Result<(), Invalid> {
    match value {
        Some(n) if !(1..=max).contains(&n) => {
            Err(Invalid::one(field, "range", format!("must be between 1 and {max}, is {n}")))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;

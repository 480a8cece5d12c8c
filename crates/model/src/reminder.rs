//! Reminders: the times at which a user is notified about a task.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::clock::from_micros;
use crate::due::DueDate;
use crate::invalid::Checks;
use crate::{Clock, Invalid, User};

pub const MAX_INTERVAL_MINUTES: i64 = 1440;
pub const MAX_COUNT: i64 = 100;

/// One or several notifications about a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Reminder {
    pub id: Uuid,
    pub task_id: Uuid,
    pub remind_at: Timestamp,
    pub repeat_interval_minutes: Option<i64>,
    /// The total number of notifications. With an interval and no count, the reminder repeats until the task is
    /// completed.
    pub repeat_count: Option<i64>,
    pub fired_count: i64,
    pub status: ReminderStatus,
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
    /// Returns the imported reminder. Fails if its interval or count is out of range.
    pub fn check(self) -> Result<Self, Invalid> {
        let mut checks = Checks::default();
        checks.take(in_range("repeat_interval_minutes", self.repeat_interval_minutes, MAX_INTERVAL_MINUTES));
        checks.take(in_range("repeat_count", self.repeat_count, MAX_COUNT));
        checks.finish(Some(self))
    }

    /// Returns the time of the next firing. A reminder that has never fired is due at `remind_at`, however late that
    /// is. After that, the result is the next repetition after `now`, or `remind_at` if the reminder has no interval.
    pub fn next_firing(&self, now: Timestamp) -> Timestamp {
        if self.fired_count == 0 { self.remind_at } else { self.next_after(now).unwrap_or(self.remind_at) }
    }

    /// Counts a firing and returns the time of the next one, which is after `now`. Missed firings are skipped and not
    /// counted. Returns `None` and sets the status to `Done` if the reminder has no interval, or if `repeat_count` is
    /// reached.
    pub fn fire(&mut self, now: Timestamp) -> Option<Timestamp> {
        self.fired_count += 1;
        let is_last = self.repeat_count.is_some_and(|count| self.fired_count >= count);
        let next = self.next_after(now).filter(|_| !is_last);
        if next.is_none() {
            self.status = ReminderStatus::Done;
        }
        next
    }

    /// Returns the first time after `now` that is one or more intervals after `remind_at`. Returns `None` if the
    /// interval is not set or not positive.
    fn next_after(&self, now: Timestamp) -> Option<Timestamp> {
        let every = self.repeat_interval_minutes?.checked_mul(60_000_000).filter(|every| *every > 0)?;
        let first = self.remind_at.as_microsecond();
        let steps = now.as_microsecond().saturating_sub(first).div_euclid(every).saturating_add(1).max(1);
        Some(from_micros(first.saturating_add(steps.saturating_mul(every))))
    }
}

/// A request to create a reminder.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReminderDraft {
    pub task_id: String,
    /// RFC 3339, or a date and time without offset in the user's time zone.
    pub remind_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 1440)]
    pub repeat_interval_minutes: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 100)]
    pub repeat_count: Option<i64>,
}

impl ReminderDraft {
    /// Returns the new, scheduled reminder. Fails with all violations of the draft. `task_id` must be a UUID; it is not
    /// checked that the task exists. `remind_at` must be in the future and name a time of day. The interval has 1 to
    /// [`MAX_INTERVAL_MINUTES`] minutes, the count is 1 to [`MAX_COUNT`], and a count above 1 requires an interval.
    pub fn check(self, clock: &Clock, user: &User) -> Result<Reminder, Invalid> {
        let mut checks = Checks::default();
        let task_id = Uuid::try_parse(&self.task_id).map_err(|_| Invalid::one("task_id", "uuid", "must be a UUID"));
        let task_id = checks.take(task_id);
        let remind_at = checks.take(remind_at(&self.remind_at, clock.now(), &user.time_zone));
        let interval = self.repeat_interval_minutes;
        checks.take(in_range("repeat_interval_minutes", interval, MAX_INTERVAL_MINUTES));
        checks.take(in_range("repeat_count", self.repeat_count, MAX_COUNT));
        if interval.is_none() && self.repeat_count.is_some_and(|count| count > 1) {
            checks.fail("repeat_interval_minutes", "required", "must be given when repeat_count is more than 1");
        }
        let reminder = task_id.zip(remind_at).map(|(task_id, remind_at)| Reminder {
            id: clock.id(),
            task_id,
            remind_at,
            repeat_interval_minutes: interval,
            repeat_count: self.repeat_count,
            fired_count: 0,
            status: ReminderStatus::Scheduled,
        });
        checks.finish(reminder)
    }
}

/// Parses a time like [`DueDate::parse`]; without an offset it is in `zone`. Fails if it is malformed, has no time of
/// day, or is not after `now`.
fn remind_at(text: &str, now: Timestamp, zone: &TimeZone) -> Result<Timestamp, Invalid> {
    let Some(at) = DueDate::parse("remind_at", text, zone)?.timestamp() else {
        return Err(Invalid::one(
            "remind_at",
            "date_time",
            "must name a time of day, such as 2026-01-31T15:00:00+01:00",
        ));
    };
    if at <= now {
        return Err(Invalid::one("remind_at", "future", "must be in the future"));
    }
    Ok(at)
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
mod tests {
    use super::*;

    fn check(remind_at: &str, interval: Option<i64>, count: Option<i64>) -> Result<Reminder, Vec<String>> {
        let draft = ReminderDraft {
            task_id: "0190a6d2-7c00-7000-8000-000000000000".into(),
            remind_at: remind_at.into(),
            repeat_interval_minutes: interval,
            repeat_count: count,
        };
        let clock = Clock::manual("2026-01-10T12:00:00Z".parse().unwrap());
        let user = User::local(TimeZone::get("Europe/Berlin").unwrap());
        draft.check(&clock, &user).map_err(|e| e.violations.into_iter().map(|v| v.field).collect())
    }

    fn at(time: &str) -> Timestamp {
        format!("2026-01-10T{time}Z").parse().unwrap()
    }

    #[test]
    fn a_repeating_reminder_keeps_its_interval_and_its_count() {
        // TASK-4
        let mut reminder = check("2026-01-10T12:30:00Z", Some(15), Some(3)).unwrap();
        assert_eq!(reminder.next_firing(at("18:00:00")), at("12:30:00"), "a late reminder still fires");
        assert_eq!(reminder.fire(at("12:30:01")), Some(at("12:45:00")));
        assert_eq!(reminder.fire(at("13:00:00")), Some(at("13:15:00")), "very late: one firing is skipped");
        assert_eq!(reminder.next_firing(at("13:20:00")), at("13:30:00"));
        assert_eq!(
            (reminder.fire(at("13:15:00")), reminder.fired_count, reminder.status),
            (None, 3, ReminderStatus::Done)
        );

        let mut endless = check("2026-01-10T12:30:00Z", Some(1440), None).unwrap();
        for day in 0..1000_i64 {
            let now = endless.remind_at + jiff::SignedDuration::from_hours(24 * day);
            assert_eq!(endless.fire(now), Some(now + jiff::SignedDuration::from_hours(24)));
        }
        assert_eq!(endless.fire(at("00:00:00")), Some(at("12:30:00") + jiff::SignedDuration::from_hours(24)));

        let mut once = check("2026-01-10T12:30:00Z", None, None).unwrap();
        assert_eq!((once.fire(at("12:30:00")), once.status), (None, ReminderStatus::Done));
    }

    #[test]
    fn limits_are_inclusive() {
        // TASK-1
        assert!(check("2026-01-10T13:00:01", Some(1440), Some(100)).is_ok(), "13:00:01 in Berlin is after 12:00 UTC");
        assert_eq!(check("2026-01-10T13:00:00", None, None), Err(vec!["remind_at".into()]), "not later than now");
        assert_eq!(check("2026-01-31", None, None), Err(vec!["remind_at".into()]), "a day is not a time");
        let both = vec!["repeat_interval_minutes".to_owned(), "repeat_count".to_owned()];
        assert_eq!(check("2026-01-11T13:00", Some(1441), Some(101)), Err(both.clone()));
        assert_eq!(check("2026-01-11T13:00", Some(0), Some(0)), Err(both));
        assert_eq!(check("2026-01-11T13:00", None, Some(2)), Err(vec!["repeat_interval_minutes".into()]));
    }
}

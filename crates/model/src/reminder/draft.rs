//! Requests to create, change and snooze a reminder, and their checks.

use jiff::Zoned;

use super::*;
use crate::json::present;

/// A request to create a reminder. It has `remind_at`, `before_minutes` or `recurrence`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReminderDraft {
    pub task_id: String,
    /// RFC 3339, a date and time without offset in the user's time zone, or words such as `tomorrow 9am`. A date without a
    /// time of day means this day at the configured time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remind_at: Option<String>,
    /// Minutes before the due date of the task, instead of `remind_at`. The reminder moves with the due date.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0, maximum = 527040)]
    pub before_minutes: Option<i64>,
    /// An RFC 5545 RRULE in the user's time zone, or words such as `every day at 8am`. It starts at `remind_at`, by default at its first occurrence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(examples("FREQ=DAILY;BYHOUR=8;BYMINUTE=0"))]
    pub recurrence: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 1440)]
    pub repeat_interval_minutes: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 100)]
    pub repeat_count: Option<i64>,
}

/// Changes to a reminder. An absent field is not changed; `null` clears it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReminderPatch {
    /// The new time, as for a new reminder.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, required = false)]
    pub remind_at: Option<String>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = i64, required = false, minimum = 0, maximum = 527040)]
    pub before_minutes: Option<i64>,
    /// Replaces an interval.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub recurrence: Option<Option<String>>,
    /// Replaces a recurrence.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<i64>, minimum = 1, maximum = 1440)]
    pub repeat_interval_minutes: Option<Option<i64>>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<i64>, minimum = 1, maximum = 100)]
    pub repeat_count: Option<Option<i64>>,
}

/// A request to move the next notification of a reminder.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SnoozeRequest {
    /// A future time, as `remind_at` of a new reminder.
    #[schema(examples("2026-01-31T15:00"))]
    pub until: String,
}

/// The values that the times of a request depend on.
struct TimeContext<'a> {
    now: Timestamp,
    zone: &'a TimeZone,
    default_time: Time,
}

impl ReminderDraft {
    /// Returns the new, scheduled reminder. The time of one with `before_minutes` is not known yet:
    /// [`Reminder::follow_due_date`] sets it.
    ///
    /// Fails with all violations of the draft. `task_id` must be a UUID; it is not checked that the task exists.
    /// Exactly one of `remind_at` and `before_minutes` is needed, or a recurrence. A time must be in the future; with a
    /// recurrence, the first occurrence after now counts. The interval has 1 to [`MAX_INTERVAL_MINUTES`] minutes, the
    /// count is 1 to [`MAX_COUNT`], and a count above 1 requires a repetition. A recurrence excludes an interval and
    /// `before_minutes`.
    pub fn check(self, clock: &Clock, user: &User, default_time: Time) -> Result<Reminder, Invalid> {
        let context = TimeContext { now: clock.now(), zone: &user.time_zone, default_time };
        let mut checks = Checks::default();
        let task_id = Uuid::try_parse(&self.task_id).map_err(|_| Invalid::one("task_id", "uuid", "must be a UUID"));
        let task_id = checks.take(task_id);
        let rule = self.recurrence.as_deref().map(|rule| recurrence::normalize("recurrence", rule)).transpose();
        let rule = checks.take(rule).flatten();
        let remind_at = match (&self.remind_at, self.before_minutes) {
            (Some(_), Some(_)) => {
                checks.fail("before_minutes", "exclusive", "must not be given together with remind_at");
                None
            }
            (None, Some(_)) => Some(context.now),
            (None, None) if self.recurrence.is_none() => {
                checks.fail("remind_at", "required", "must be given, unless before_minutes or recurrence is");
                None
            }
            (None, None) => rule.as_deref().and_then(|rule| checks.take(context.first_of_rule(rule, None))),
            (Some(text), None) => checks.take(context.start(text, rule.as_deref())),
        };
        if self.recurrence.is_some() && self.before_minutes.is_some() {
            checks.fail("recurrence", "exclusive", "must not be given together with before_minutes");
        }
        check_repetition(&mut checks, self.recurrence.is_some(), self.repeat_interval_minutes, self.repeat_count);
        checks.take(check_before(self.before_minutes));
        let reminder = task_id.zip(remind_at).map(|(task_id, remind_at)| Reminder {
            id: clock.id(),
            task_id,
            remind_at,
            repeat_interval_minutes: self.repeat_interval_minutes,
            repeat_count: self.repeat_count,
            fired_count: 0,
            status: ReminderStatus::Scheduled,
            time_zone: context.zone_of(rule.is_some() || self.before_minutes.is_some()),
            recurrence: rule,
            before_minutes: self.before_minutes,
            snoozed_until: None,
            next_at: Some(remind_at),
        });
        checks.finish(reminder)
    }
}

impl ReminderPatch {
    /// Returns true if no field is given.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the changed reminder, which is scheduled. `due` is the due date of its task. A new time or repetition
    /// starts a new count of notifications. A recurrence without a new time keeps the time of day; a new time of day
    /// replaces the one of the recurrence. Fails with all violations, as for new reminders, or if the patch is empty.
    pub fn apply(
        &self,
        reminder: &Reminder,
        due: Option<DueDate>,
        clock: &Clock,
        user: &User,
        default_time: Time,
    ) -> Result<Reminder, Invalid> {
        let context = TimeContext { now: clock.now(), zone: &user.time_zone, default_time };
        let mut checks = Checks::default();
        if self.is_empty() {
            let message = "must name at least one of remind_at, before_minutes, recurrence, repeat_interval_minutes, \
                           repeat_count";
            checks.fail("body", "min_fields", message);
        }
        if self.remind_at.is_some() && self.before_minutes.is_some() {
            checks.fail("before_minutes", "exclusive", "must not be given together with remind_at");
        }
        let mut next = reminder.clone();
        let rule = match &self.recurrence {
            Some(Some(text)) => checks.take(recurrence::normalize("recurrence", text)),
            _ => None,
        };
        if rule.is_some() && self.before_minutes.is_some() {
            checks.fail("recurrence", "exclusive", "must not be given together with before_minutes");
        }
        let interval = self.repeat_interval_minutes.flatten();
        self.set_repetition(&mut next, rule.as_deref());
        if rule.is_some() && interval.is_some() {
            checks.fail("repeat_interval_minutes", "exclusive", "must not be given together with recurrence");
        }
        let has_rule = next.recurrence.is_some();
        let count = self.repeat_count.flatten();
        check_repetition(&mut checks, has_rule, next.repeat_interval_minutes.filter(|_| !has_rule), count);
        checks.take(check_before(self.before_minutes));
        let placed = checks.take(self.place(&mut next, due, &context));
        checks.finish(placed.map(|()| next))
    }

    /// Sets the fields of the repetition. A repetition of one kind replaces that of the other kind, and a recurrence
    /// replaces `before_minutes`.
    fn set_repetition(&self, next: &mut Reminder, rule: Option<&str>) {
        if self.recurrence.is_some() {
            next.recurrence = rule.map(str::to_owned);
        }
        if rule.is_some() {
            next.repeat_interval_minutes = None;
            next.before_minutes = None;
        }
        if let Some(interval) = self.repeat_interval_minutes {
            next.repeat_interval_minutes = interval;
            if interval.is_some() {
                next.recurrence = None;
            }
        }
        if self.before_minutes.is_some() {
            next.recurrence = None;
        }
        next.repeat_count = self.repeat_count.unwrap_or(next.repeat_count).filter(|_| next.repeats());
    }

    /// Sets the time, the status and the counts after the repetition was set. Fails if the time has passed or is
    /// missing.
    fn place(&self, next: &mut Reminder, due: Option<DueDate>, context: &TimeContext<'_>) -> Result<(), Invalid> {
        if self.is_count_only() {
            if next.repeat_count.is_some_and(|count| count <= next.fired_count) {
                let message = format!("must be more than {}, the notifications so far", next.fired_count);
                return Err(Invalid::one("repeat_count", "range", message));
            }
            if next.status != ReminderStatus::Scheduled {
                next.status = ReminderStatus::Scheduled;
                next.continue_after(context.now);
            }
            return Ok(());
        }
        if let Some(minutes) = self.before_minutes {
            next.before_minutes = Some(minutes);
            next.time_zone = context.zone_of(true);
            return place_before_due(next, due, context);
        }
        let now = context.now;
        next.remind_at = if let Some(text) = &self.remind_at {
            next.before_minutes = None;
            if self.recurrence.is_none() && DueDate::parse("remind_at", text, context.zone)?.timestamp().is_some() {
                next.recurrence = next.recurrence.as_deref().map(recurrence::without_time_of_day);
            }
            context.start(text, next.recurrence.as_deref())?
        } else if let Some(rule) = &next.recurrence {
            context.first_of_rule(rule, Some(next.remind_at.to_zoned(context.zone.clone())))?
        } else if next.remind_at > now {
            next.remind_at
        } else if let Some(minutes) = next.repeat_interval_minutes {
            now + jiff::SignedDuration::from_mins(minutes)
        } else {
            next.next_at
                .ok_or_else(|| Invalid::one("remind_at", "required", "must be given, because the time has passed"))?
        };
        next.time_zone = context.zone_of(next.recurrence.is_some() || next.before_minutes.is_some());
        next.fired_count = 0;
        next.status = ReminderStatus::Scheduled;
        next.snoozed_until = None;
        next.next_at = Some(next.remind_at);
        Ok(())
    }

    fn is_count_only(&self) -> bool {
        *self == Self { repeat_count: self.repeat_count, ..Self::default() }
    }
}

impl Reminder {
    /// Sets the time of a new reminder with `before_minutes`. Fails if the task has no due date, or if the time is not
    /// after now. Other reminders are not changed.
    pub fn place_before(&mut self, due: Option<DueDate>, default_time: Time, now: Timestamp) -> Result<(), Invalid> {
        if self.before_minutes.is_none() {
            return Ok(());
        }
        let zone = self.zone();
        place_before_due(self, due, &TimeContext { now, zone: &zone, default_time })
    }
}

impl SnoozeRequest {
    /// Returns the time. Fails if it is malformed or not in the future.
    pub fn check(&self, clock: &Clock, user: &User, default_time: Time) -> Result<Timestamp, Invalid> {
        parse_future("until", &self.until, clock.now(), &user.time_zone, default_time)
    }
}

/// Parses a time like [`DueDate::parse`]; without an offset it is in `zone`. A day means this day at `default_time`.
/// Fails if it is malformed or not after `now`.
pub fn parse_future(
    field: &str,
    text: &str,
    now: Timestamp,
    zone: &TimeZone,
    default_time: Time,
) -> Result<Timestamp, Invalid> {
    let context = TimeContext { now, zone, default_time };
    context.future(field, DueDate::parse(field, text, zone)?)
}

impl TimeContext<'_> {
    /// Returns the time zone as text, if it is needed.
    fn zone_of(&self, is_needed: bool) -> Option<String> {
        zone_text(self.zone).filter(|_| is_needed)
    }

    /// Returns the moment, or the day at the default time. Fails if it has passed.
    fn future(&self, field: &str, time: DueDate) -> Result<Timestamp, Invalid> {
        let at = match time {
            DueDate::Moment { at, .. } => at,
            DueDate::Day(day) => match day.to_datetime(self.default_time).to_zoned(self.zone.clone()) {
                Ok(at) => at.timestamp(),
                Err(_) => return Err(Invalid::one(field, "range", "is out of range")),
            },
        };
        if at > self.now {
            return Ok(at);
        }
        let message = match time {
            DueDate::Moment { .. } => "must be in the future".to_owned(),
            DueDate::Day(day) => format!(
                "must be in the future: without a time of day it means {day} at {}, which has passed; give a time",
                self.default_time.strftime("%H:%M")
            ),
        };
        Err(Invalid::one(field, "future", message))
    }

    /// Returns the first time of a reminder that starts at `text`: the time itself, or the first occurrence of the rule
    /// at or after it. Fails if that is not in the future.
    fn start(&self, text: &str, rule: Option<&str>) -> Result<Timestamp, Invalid> {
        let time = DueDate::parse("remind_at", text, self.zone)?;
        let Some(rule) = rule else { return self.future("remind_at", time) };
        let start = match time {
            DueDate::Moment { at, .. } => Some(at.to_zoned(self.zone.clone())),
            DueDate::Day(day) => {
                let time = self.default_start(&RecurrenceRule::parse(rule).map_err(|_| malformed())?);
                day.to_datetime(time).to_zoned(self.zone.clone()).ok()
            }
        };
        self.first_of_rule(rule, start)
    }

    /// Returns the time of day at which a rule starts on a day: midnight if the rule selects hours, else the default.
    fn default_start(&self, rule: &RecurrenceRule) -> Time {
        if rule.hours.is_empty() { self.default_time } else { Time::midnight() }
    }

    /// Returns the first occurrence after now that is not before `start`. Without a start, the rule starts today, and an
    /// hourly or minutely one starts with the current minute. Fails if it has no occurrence.
    fn first_of_rule(&self, rule: &str, start: Option<Zoned>) -> Result<Timestamp, Invalid> {
        let rule = RecurrenceRule::parse(rule).map_err(|_| malformed())?;
        let now = self.now.to_zoned(self.zone.clone());
        let start = start.or_else(|| {
            if rule.frequency >= recurrence::Frequency::Hourly && rule.hours.is_empty() {
                return now.with().second(0).subsec_nanosecond(0).build().ok();
            }
            now.date().to_datetime(self.default_start(&rule)).to_zoned(self.zone.clone()).ok()
        });
        let first = start.and_then(|start| recurrence::first_moment(&rule, &start, self.now));
        let none = || Invalid::one("recurrence", "future", "must have an occurrence in the future");
        first.map(|first| first.timestamp()).ok_or_else(none)
    }
}

fn malformed() -> Invalid {
    Invalid::one("recurrence", "rrule", "must be an RRULE")
}

/// Sets the time of a reminder with `before_minutes`. Fails without a due date, or if the time is not after now.
fn place_before_due(reminder: &mut Reminder, due: Option<DueDate>, context: &TimeContext<'_>) -> Result<(), Invalid> {
    if due.is_none() {
        let message = "needs a task with a due date; give the task a due date, or give remind_at";
        return Err(Invalid::one("before_minutes", "due_date", message));
    }
    reminder.status = ReminderStatus::Scheduled;
    reminder.follow_due_date(due, context.default_time, context.now);
    if reminder.status == ReminderStatus::Scheduled {
        return Ok(());
    }
    let at = reminder.remind_at.to_zoned(context.zone.clone()).strftime("%Y-%m-%d %H:%M").to_string();
    Err(Invalid::one("before_minutes", "future", format!("must lead to a time in the future, but {at} has passed")))
}

/// Checks the interval and the count. A count above 1 requires a repetition, and an interval excludes a recurrence.
fn check_repetition(checks: &mut Checks, has_rule: bool, interval: Option<i64>, count: Option<i64>) {
    checks.take(in_range("repeat_interval_minutes", interval, MAX_INTERVAL_MINUTES));
    checks.take(in_range("repeat_count", count, MAX_COUNT));
    if has_rule && interval.is_some() {
        checks.fail("repeat_interval_minutes", "exclusive", "must not be given together with recurrence");
    }
    if !has_rule && interval.is_none() && count.is_some_and(|count| count > 1) {
        checks.fail("repeat_interval_minutes", "required", "must be given when repeat_count is more than 1");
    }
}

/// Fails if the minutes before the due date are out of range. 0 means the due date itself.
pub(super) fn check_before(minutes: Option<i64>) -> Result<(), Invalid> {
    match minutes {
        Some(n) if !(0..=MAX_BEFORE_MINUTES).contains(&n) => {
            let message = format!("must be between 0 and {MAX_BEFORE_MINUTES}, is {n}");
            Err(Invalid::one("before_minutes", "range", message))
        }
        _ => Ok(()),
    }
}

//! Converts times such as "every Friday at 5pm" to the times of a schedule. Times that a schedule cannot represent are
//! refused, never rounded.

use jiff::Zoned;
use jiff::civil::{DateTime, Time, Weekday, time};
use model::recurrence::{Frequency, RecurrenceRule, Until};

use crate::parsed::DayOrTime;

/// The time of day if the words have none.
const DEFAULT_TIME: Time = time(9, 0, 0, 0);

/// Returns the time, or the day at [`DEFAULT_TIME`].
pub fn start_time(when: DayOrTime) -> DateTime {
    match when {
        DayOrTime::Time(time) => time,
        DayOrTime::Day(day) => day.to_datetime(DEFAULT_TIME),
    }
}

/// Formats a local time without an offset.
pub fn format_local(time: DateTime) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S").to_string()
}

/// Names and values of schedule arguments: `cron_expression`, `every`, `at`, `start_at` and `end_at`.
pub type ScheduleArguments = Vec<(&'static str, String)>;

/// Converts a recurrence to `cron_expression` or `every`, with its end. Only `every` has a start. An end day lasts
/// until 23:59:59. Returns `None` if neither can represent the rule. Rules with a count, positions, weeks or days of
/// the year are never supported.
pub fn recurring_arguments(rule: &RecurrenceRule, first: Option<DayOrTime>, now: &Zoned) -> Option<ScheduleArguments> {
    if rule.count.is_some() || ![&rule.positions, &rule.weeks, &rule.year_days].iter().all(|list| list.is_empty()) {
        return None;
    }
    let mut arguments = match rule.frequency {
        Frequency::Minutely | Frequency::Hourly => minute_interval(rule, first)?,
        Frequency::Daily | Frequency::Weekly if rule.interval > 1 => day_interval(rule, first, now)?,
        _ => vec![("cron_expression", cron(rule, first, now)?)],
    };
    arguments.extend(rule.until.map(|until| {
        let last = match until {
            Until::Day(day) => day.at(23, 59, 59, 0),
            Until::Local(time) => time,
            Until::Instant(last) => last.to_zoned(now.time_zone().clone()).datetime(),
        };
        ("end_at", format_local(last))
    }));
    Some(arguments)
}

/// Converts an interval of hours or minutes. It starts now, or at the time of `first`. A `first` without a time is
/// ignored. Returns `None` if the rule has further restrictions: weekdays, months, days of the month, hours or minutes.
fn minute_interval(rule: &RecurrenceRule, first: Option<DayOrTime>) -> Option<ScheduleArguments> {
    let is_plain = rule.weekdays.is_empty() && rule.months.is_empty() && rule.month_days.is_empty();
    let minutes = if rule.frequency == Frequency::Hourly { rule.interval * 60 } else { rule.interval };
    if !is_plain || !rule.hours.is_empty() || !rule.minutes.is_empty() {
        return None;
    }
    let mut arguments = vec![("every", format_interval(minutes))];
    if let Some(DayOrTime::Time(first)) = first {
        arguments.push(("start_at", format_local(first)));
    }
    Some(arguments)
}

/// Converts an interval of days or weeks, such as "every other Tuesday". Cron cannot represent it, so it becomes a
/// number of days with a start: `first`, or the next [`DEFAULT_TIME`]. Returns `None` for several weekdays, and for
/// days that are restricted to weekdays. A single weekday, months and hours of the rule are not read. Only `first`
/// determines these.
fn day_interval(rule: &RecurrenceRule, first: Option<DayOrTime>, now: &Zoned) -> Option<ScheduleArguments> {
    let days = match (rule.frequency, rule.weekdays.as_slice()) {
        (Frequency::Daily, []) => rule.interval,
        (Frequency::Weekly, [] | [_]) => rule.interval * 7,
        _ => return None,
    };
    let first = match first {
        Some(first) => start_time(first),
        None => {
            let today = now.date().to_datetime(DEFAULT_TIME);
            if today > now.datetime() { today } else { now.date().tomorrow().ok()?.to_datetime(DEFAULT_TIME) }
        }
    };
    Some(vec![("every", format_interval(days * 24 * 60)), ("start_at", format_local(first))])
}

/// Formats an interval in the largest unit that divides it.
fn format_interval(minutes: i64) -> String {
    match minutes {
        _ if minutes % (24 * 60) == 0 => format!("{}d", minutes / (24 * 60)),
        _ if minutes % 60 == 0 => format!("{}h", minutes / 60),
        _ => format!("{minutes}m"),
    }
}

/// Converts a rule to a cron expression with five fields. The minute and the hour come from the rule, else from
/// `first`, else from [`DEFAULT_TIME`]. So do the weekday of a weekly rule, the day of a monthly or yearly one and the
/// month of a yearly one, at last from today. Other fields are `*` unless the rule has them. The last day of a month
/// becomes `L`, and the second Friday `FRI#2`. The interval of daily and weekly rules is not read.
///
/// Returns `None` for years with an interval, hours, minutes, months that [`months_of`] rejects, other negative days,
/// weekdays together with days of the month, and numbered weekdays other than 1 to 5 and -1 of a month or year.
fn cron(rule: &RecurrenceRule, first: Option<DayOrTime>, now: &Zoned) -> Option<String> {
    let first = first.map_or_else(|| now.date().to_datetime(DEFAULT_TIME), start_time);
    let or_default = |list: &[i64], default: i64| if list.is_empty() { default.to_string() } else { joined(list) };
    let minutes = or_default(&rule.minutes, i64::from(first.minute()));
    let hours = or_default(&rule.hours, i64::from(first.hour()));
    let mut days = "*".to_owned();
    let mut months = "*".to_owned();
    let mut weekdays = "*".to_owned();
    if !rule.months.is_empty() {
        months = joined(&rule.months);
    }
    match rule.frequency {
        Frequency::Daily => {}
        Frequency::Weekly if rule.weekdays.is_empty() => weekdays = cron_weekday(first.weekday()).to_owned(),
        Frequency::Weekly => {}
        Frequency::Monthly => months = months_of(rule, first, months)?,
        Frequency::Yearly if rule.interval > 1 => return None,
        Frequency::Yearly if rule.months.is_empty() => months = first.month().to_string(),
        Frequency::Yearly => {}
        Frequency::Hourly | Frequency::Minutely => return None,
    }
    let of_month = matches!(rule.frequency, Frequency::Monthly | Frequency::Yearly);
    match (rule.month_days.as_slice(), rule.weekdays.as_slice()) {
        ([], []) if of_month => days = first.day().to_string(),
        ([], []) => {}
        ([-1], []) => days = "L".to_owned(),
        (list, []) if list.iter().all(|day| *day > 0) => days = joined(list),
        // Cron combines days of the month and weekdays with "or", so both together are unsupported.
        ([], list) => {
            let named = list.iter().map(|(nth, day)| match nth {
                0 => Some(cron_weekday(*day).to_owned()),
                -1 if of_month => Some(format!("{}L", cron_weekday(*day))),
                1..=5 if of_month => Some(format!("{}#{nth}", cron_weekday(*day))),
                _ => None,
            });
            weekdays = named.collect::<Option<Vec<_>>>()?.join(",");
        }
        _ => return None,
    }
    Some(format!("{minutes} {hours} {days} {months} {weekdays}"))
}

/// Returns the month field of a monthly rule. `named` is the field for an interval of 1. An interval of 2, 3, 4 or 6
/// months becomes a list of months that contains the month of `first`. Returns `None` for any other interval, or if the
/// rule also names months.
fn months_of(rule: &RecurrenceRule, first: DateTime, named: String) -> Option<String> {
    match rule.interval {
        1 => Some(named),
        every @ (2 | 3 | 4 | 6) if rule.months.is_empty() => {
            let from = i64::from(first.month()) - 1;
            let mut months: Vec<_> = (0..12 / every).map(|n| (from + n * every) % 12 + 1).collect();
            months.sort_unstable();
            Some(joined(&months))
        }
        _ => None,
    }
}

fn joined(list: &[i64]) -> String {
    list.iter().map(i64::to_string).collect::<Vec<_>>().join(",")
}

/// Returns the name of a weekday in a cron expression, such as `MON`.
pub fn cron_weekday(day: Weekday) -> &'static str {
    match day {
        Weekday::Monday => "MON",
        Weekday::Tuesday => "TUE",
        Weekday::Wednesday => "WED",
        Weekday::Thursday => "THU",
        Weekday::Friday => "FRI",
        Weekday::Saturday => "SAT",
        Weekday::Sunday => "SUN",
    }
}

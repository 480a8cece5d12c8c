//! Converts times such as "every Friday at 5pm" to the arguments of a schedule. Times that a schedule cannot represent
//! are refused, never rounded.

pub(super) mod change;

use jiff::Zoned;
use jiff::civil::{DateTime, Time, Weekday, time};
use model::recurrence::{Frequency, RecurrenceRule, Until};
use tools::ToolArguments;
use understand::{DayOrTime, TimeExpression};

/// The time of day if the message has none.
const DEFAULT_TIME: Time = time(9, 0, 0, 0);

/// The times of a new schedule.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SchedulePlan {
    /// The arguments of the tool.
    pub(super) arguments: ToolArguments,
    /// The text of the user, with the time of day if it was missing.
    pub(super) words: String,
    /// The text without the times.
    pub(super) input: String,
}

/// The times in the input of an agent.
#[derive(Debug, PartialEq)]
pub(super) enum InputTiming {
    /// None: the agent runs now.
    Now,
    Planned(SchedulePlan),
    /// A time that a schedule cannot represent.
    Unsupported,
}

/// Finds the times in `text`. The first recurrence is used, at any position. Without one, the first single time is used
/// that is in the future and at the start or the end of the text. Any other time belongs to the input. Without a time
/// of day, the schedule uses [`DEFAULT_TIME`], which the words then contain. Returns [`InputTiming::Unsupported`] if
/// the recurrence is invalid or a schedule cannot represent it.
pub(super) fn find_timing(text: &str, expressions: &[TimeExpression], now: &Zoned) -> InputTiming {
    let recurring = expressions.iter().find(|found| found.recurrence.is_some());
    let once = || expressions.iter().find(|found| is_at_an_end(text, found) && is_ahead(found, now));
    let Some(found) = recurring.or_else(once) else { return InputTiming::Now };
    let first = found.due.or(found.start);
    let arguments = match &found.recurrence {
        Some(rule) => RecurrenceRule::parse(rule).ok().and_then(|rule| recurring_arguments(&rule, first, now)),
        None => first.map(|first| vec![("at", format_local(start_time(first)))]),
    };
    let Some(arguments) = arguments else { return InputTiming::Unsupported };
    let has_time = matches!(first, Some(DayOrTime::Time(_))) || arguments.iter().any(|(name, _)| *name == "every");
    let words = trim_punctuation(&found.text);
    let words = if has_time { words } else { format!("{words} at 9am") };
    let before = &text[..found.span.start];
    let after = &text[found.span.end..];
    let input = format!("{} {}", trim_punctuation(before), trim_punctuation(after));
    // "tomorrow at 6am to rebuild the docs"
    let input = input.trim();
    let input = input.strip_prefix("to ").or_else(|| input.strip_prefix("and ")).unwrap_or(input).trim().to_owned();
    let arguments = arguments.into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect();
    InputTiming::Planned(SchedulePlan { arguments, words, input })
}

/// Returns `true` if no letters or digits precede or none follow the expression.
fn is_at_an_end(text: &str, found: &TimeExpression) -> bool {
    let is_empty = |text: &str| !text.contains(char::is_alphanumeric);
    is_empty(&text[..found.span.start]) || is_empty(&text[found.span.end..])
}

/// Returns `true` if the time is after now, or the day after today.
fn is_ahead(found: &TimeExpression, now: &Zoned) -> bool {
    match found.due.or(found.start) {
        Some(DayOrTime::Time(time)) => time > now.datetime(),
        Some(DayOrTime::Day(day)) => day > now.date(),
        None => false,
    }
}

fn trim_punctuation(text: &str) -> String {
    text.trim().trim_matches([',', ';', ':', '.', '!']).trim().to_owned()
}

/// Returns the time, or the day at [`DEFAULT_TIME`].
fn start_time(when: DayOrTime) -> DateTime {
    match when {
        DayOrTime::Time(time) => time,
        DayOrTime::Day(day) => day.to_datetime(DEFAULT_TIME),
    }
}

fn format_local(time: DateTime) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S").to_string()
}

/// Names and values of schedule arguments.
type ScheduleArguments = Vec<(&'static str, String)>;

/// Converts a recurrence to `cron_expression` or `every`, with its end. Only `every` has a start. An end day lasts
/// until 23:59:59. Returns `None` if neither can represent the rule. Rules with a count, positions, weeks or days of
/// the year are never supported.
fn recurring_arguments(rule: &RecurrenceRule, first: Option<DayOrTime>, now: &Zoned) -> Option<ScheduleArguments> {
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
        Frequency::Weekly if rule.weekdays.is_empty() => weekdays = name(first.weekday()).to_owned(),
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
                0 => Some(name(*day).to_owned()),
                -1 if of_month => Some(format!("{}L", name(*day))),
                1..=5 if of_month => Some(format!("{}#{nth}", name(*day))),
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
fn name(day: Weekday) -> &'static str {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Uses Sunday, December 21, 2025, 12:00 as the current time.
    fn timing(text: &str) -> InputTiming {
        let now = "2025-12-21T12:00:00[UTC]".parse().unwrap();
        find_timing(text, &understand::find_expressions(text, &now), &now)
    }

    #[track_caller]
    fn planned(text: &str) -> (String, String, String) {
        let InputTiming::Planned(plan) = timing(text) else { panic!("{text}: {:?}", timing(text)) };
        let arguments: Vec<_> =
            plan.arguments.iter().map(|(name, value)| format!("{name}={}", value.as_str().unwrap())).collect();
        (arguments.join(" "), plan.words, plan.input)
    }

    #[test]
    fn recurrences_become_cron_or_every() {
        for (text, arguments) in [
            ("tidy the changelog every Friday at 5pm", "cron_expression=0 17 * * FRI"),
            ("every Friday at 5pm", "cron_expression=0 17 * * FRI"),
            ("check every weekday at 8:30am", "cron_expression=30 8 * * MON,TUE,WED,THU,FRI"),
            ("sync every day at 8pm", "cron_expression=0 20 * * *"),
            ("sync daily", "cron_expression=0 9 * * *"),
            ("report on the 1st of every month", "cron_expression=0 9 1 * *"),
            ("report the first Monday of every month", "cron_expression=0 9 * * MON#1"),
            ("report the last Friday of every month at 4pm", "cron_expression=0 16 * * FRIL"),
            ("rotate the keys every 3 months", "cron_expression=0 9 21 3,6,9,12 *"),
            ("every 90 minutes", "every=90m"),
            ("look every hour", "every=1h"),
            ("look every other day", "every=2d start_at=2025-12-22T09:00:00"),
            ("look every other Tuesday at 9am", "every=14d start_at=2025-12-23T09:00:00"),
            ("wish a happy new year every year on January 1", "cron_expression=0 9 1 1 *"),
        ] {
            assert_eq!(planned(text).0, arguments, "{text}");
        }
    }

    #[test]
    fn the_input_is_the_text_without_times() {
        let (_, words, input) = planned("tidy the changelog every Friday at 5pm");
        assert_eq!((words.as_str(), input.as_str()), ("every Friday at 5pm", "tidy the changelog"));
        let (_, words, input) = planned("tidy the changelog every Friday.");
        assert_eq!((words.as_str(), input.as_str()), ("every Friday at 9am", "tidy the changelog"));
        let (arguments, words, input) = planned("look at the queue tomorrow at 3pm");
        assert_eq!((arguments.as_str(), input.as_str()), ("at=2025-12-22T15:00:00", "look at the queue"));
        assert_eq!(words, "tomorrow at 3pm");
    }

    #[test]
    fn times_inside_the_input_are_ignored() {
        for text in ["look at the 3pm incident in the log", "tidy the changelog", "summarise what happened today"] {
            assert_eq!(timing(text), InputTiming::Now, "{text}");
        }
    }

    #[test]
    fn unsupported_times_are_refused() {
        for text in ["tidy every other Monday and Thursday", "tidy every 5 months", "tidy every two years on May 5"] {
            assert_eq!(timing(text), InputTiming::Unsupported, "{text}");
        }
    }
}

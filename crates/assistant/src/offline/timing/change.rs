//! New times for an existing schedule: "make that 6pm", "every other day instead", "move it to friday". Parts that the
//! message does not name stay as they are.

use jiff::civil::{Date, DateTime, Time};
use jiff::{Timestamp, Zoned};
use model::recurrence::RecurrenceRule;
use serde_json::Value;
use tools::ToolArguments;
use understand::schedule_times::{ScheduleArguments, cron_weekday, format_local, recurring_arguments};
use understand::{DayOrTime, TimeExpression, UtteranceParser};

/// The new times in a message.
#[derive(Debug, PartialEq)]
pub(in crate::offline) enum TimeChange {
    /// The arguments of the tool.
    Arguments(ToolArguments),
    /// The message has no time.
    Missing,
    /// A schedule cannot represent the times, or they do not fit the old ones.
    Unsupported,
}

/// Returns the new times of a schedule. `schedule` is the summary of the tool that lists schedules.
pub(in crate::offline) fn find_change(
    text: &str,
    schedule: &Value,
    parser: &UtteranceParser,
    now: &Zoned,
) -> TimeChange {
    let old = OldTimes::read(schedule, now);
    let text = with_every(text);
    if let Some(minutes) = shift_minutes(&text) {
        return into_change(
            old.clock.and_then(|clock| shifted(clock, minutes)).and_then(|clock| old.at_clock(clock, now)),
        );
    }
    let expressions = parser.find_expressions(&text, now);
    if let Some(found) = expressions.iter().find(|found| found.recurrence.is_some()) {
        let first = found.due.or(found.start);
        // A repetition without a time of day keeps the old one.
        let first = match first {
            Some(DayOrTime::Time(_)) => first,
            Some(DayOrTime::Day(day)) => Some(old.on(day)),
            None => separate_clock(&expressions, found).or(old.clock).map(|clock| DayOrTime::Time(next_at(clock, now))),
        };
        let rule = found.recurrence.as_deref().and_then(|rule| RecurrenceRule::parse(rule).ok());
        return into_change(rule.and_then(|rule| recurring_arguments(&rule, first, now)));
    }
    let found = expressions.iter().find(|found| found.due.or(found.start).is_some());
    match found.and_then(|found| Some((found, found.due.or(found.start)?))) {
        Some((found, DayOrTime::Time(time))) if is_clock_only(&found.text) => {
            let clock = old.with_half_of_day(time.time(), &found.text);
            into_change(old.at_clock(clock, now))
        }
        Some((_, when)) => into_change(old.at_day(when)),
        None => match bare_hour(&text).map(|clock| old.with_half_of_day(clock, "")) {
            Some(clock) => into_change(old.at_clock(clock, now)),
            None => TimeChange::Missing,
        },
    }
}

fn into_change(arguments: Option<ScheduleArguments>) -> TimeChange {
    match arguments {
        None => TimeChange::Unsupported,
        Some(arguments) => {
            TimeChange::Arguments(arguments.into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect())
        }
    }
}

/// The times of the schedule before the change.
struct OldTimes<'s> {
    cron: Option<Vec<&'s str>>,
    every: Option<&'s str>,
    /// The time of a single run, in local time.
    at: Option<DateTime>,
    next: Option<DateTime>,
    /// The only time of day, if there is one.
    clock: Option<Time>,
}

impl<'s> OldTimes<'s> {
    fn read(schedule: &'s Value, now: &Zoned) -> Self {
        let text = |key: &str| schedule[key].as_str();
        let local = |key: &str| {
            let time: Timestamp = schedule[key].as_str()?.parse().ok()?;
            Some(time.to_zoned(now.time_zone().clone()).datetime())
        };
        let cron: Option<Vec<&str>> = text("cron_expression").map(|cron| cron.split_whitespace().collect());
        let cron = cron.filter(|fields| fields.len() == 5);
        let next = local("next_execution");
        let at = local("at");
        let of_cron = cron.as_ref().and_then(|fields| {
            let minute: i8 = fields.first()?.parse().ok()?;
            let hour: i8 = fields.get(1)?.parse().ok()?;
            Time::new(hour, minute, 0, 0).ok()
        });
        let every = text("every");
        let is_daily = every.is_some_and(|every| every.ends_with('d') || every.ends_with('w'));
        let clock = of_cron.or_else(|| at.or(next.filter(|_| is_daily)).map(|time| time.time()));
        Self { cron, every, at, next, clock }
    }

    /// Returns the arguments with another time of day.
    fn at_clock(&self, clock: Time, now: &Zoned) -> Option<ScheduleArguments> {
        if let Some(at) = self.at {
            return Some(vec![("at", format_local(at.date().to_datetime(clock)))]);
        }
        if let Some(fields) = &self.cron {
            self.clock?;
            let cron = [&[clock.minute().to_string(), clock.hour().to_string()][..], &owned(&fields[2..])[..]].concat();
            return Some(vec![("cron_expression", cron.join(" "))]);
        }
        let every = self.every.filter(|_| self.clock.is_some())?;
        let first = self.next.map_or(next_at(clock, now), |next| next.date().to_datetime(clock));
        Some(vec![("every", every.to_owned()), ("start_at", format_local(first))])
    }

    /// Returns the arguments with another day: that of a single run, or the weekday of a weekly schedule.
    fn at_day(&self, when: DayOrTime) -> Option<ScheduleArguments> {
        let (day, clock) = match when {
            DayOrTime::Day(day) => (day, self.clock),
            DayOrTime::Time(time) => (time.date(), Some(time.time())),
        };
        if self.at.is_some() {
            return Some(vec![("at", format_local(day.to_datetime(clock?)))]);
        }
        if let Some(fields) = &self.cron {
            let clock = clock?;
            let is_weekly = fields[2] == "*" && fields[3] == "*" && is_one_weekday(fields[4]);
            let weekday = cron_weekday(day.weekday());
            return is_weekly
                .then(|| vec![("cron_expression", format!("{} {} * * {weekday}", clock.minute(), clock.hour()))]);
        }
        let every = self.every.filter(|every| every.ends_with('d') || every.ends_with('w'))?;
        Some(vec![("every", every.to_owned()), ("start_at", format_local(day.to_datetime(clock?)))])
    }

    fn on(&self, day: Date) -> DayOrTime {
        self.clock.map_or(DayOrTime::Day(day), |clock| DayOrTime::Time(day.to_datetime(clock)))
    }

    /// Returns the time in the half of the day of the old one, unless the text says which half.
    fn with_half_of_day(&self, clock: Time, text: &str) -> Time {
        let lower = text.to_lowercase();
        let says = ["am", "pm", "a.m", "p.m", "noon", "midnight", "morning", "evening", "afternoon", "night", "oclock"];
        let is_clear = says.iter().any(|word| lower.contains(word))
            || lower.split(|c: char| !c.is_ascii_digit()).find(|part| !part.is_empty()).is_some_and(is_full_hour);
        let Some(old) = self.clock.filter(|_| !is_clear && (1..=23).contains(&clock.hour())) else { return clock };
        let hour = clock.hour() % 12;
        let hour = if old.hour() >= 12 { hour + 12 } else { hour };
        Time::new(hour, clock.minute(), 0, 0).unwrap_or(clock)
    }
}

/// Returns true for an hour of 24, such as "18" and "08".
fn is_full_hour(digits: &str) -> bool {
    (digits.len() == 2 && digits.starts_with('0')) || digits.parse::<i8>().is_ok_and(|hour| !(1..=12).contains(&hour))
}

fn owned(fields: &[&str]) -> Vec<String> {
    fields.iter().map(|field| (*field).to_owned()).collect()
}

fn is_one_weekday(field: &str) -> bool {
    field != "*" && !field.contains([',', '-', '/', '#'])
}

/// Returns the next local time at this time of day.
fn next_at(clock: Time, now: &Zoned) -> DateTime {
    let today = now.date().to_datetime(clock);
    if today > now.datetime() { today } else { now.date().tomorrow().map_or(today, |day| day.to_datetime(clock)) }
}

/// Returns the time of day of another expression than the repetition.
fn separate_clock(expressions: &[TimeExpression], repetition: &TimeExpression) -> Option<Time> {
    let others = expressions.iter().filter(|found| found.span != repetition.span);
    others.into_iter().find_map(|found| match found.due.or(found.start) {
        Some(DayOrTime::Time(time)) if is_clock_only(&found.text) => Some(time.time()),
        _ => None,
    })
}

/// Returns true if the text of an expression has a time of day and no day.
fn is_clock_only(text: &str) -> bool {
    let known = [
        "at", "to", "by", "in", "the", "around", "am", "pm", "noon", "midnight", "oclock", "half", "past", "quarter",
        "for", "from",
    ];
    text.to_lowercase().replace(['\'', '’', '.'], "").split(|c: char| !c.is_alphanumeric()).all(|word| {
        let letters = word.trim_start_matches(|c: char| c.is_ascii_digit());
        letters.is_empty() || known.contains(&letters)
    })
}

/// Returns the time of "make that 6", the only number of the text.
fn bare_hour(text: &str) -> Option<Time> {
    let mut numbers =
        text.split_whitespace().filter_map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()).parse::<i8>().ok());
    let hour = numbers.next().filter(|hour| (0..24).contains(hour))?;
    if numbers.next().is_some() { None } else { Time::new(hour, 0, 0, 0).ok() }
}

/// Puts "every" before days of a repetition that lack it: "to weekdays", "mondays".
fn with_every(text: &str) -> String {
    let mut words: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let plain = super::super::agents::words::plain_word(word);
        let singular = match plain.as_str() {
            "weekdays" => Some("weekday"),
            "weekends" => Some("weekend"),
            "mondays" => Some("monday"),
            "tuesdays" => Some("tuesday"),
            "wednesdays" => Some("wednesday"),
            "thursdays" => Some("thursday"),
            "fridays" => Some("friday"),
            "saturdays" => Some("saturday"),
            "sundays" => Some("sunday"),
            _ => None,
        };
        match singular {
            Some(day) => {
                let is_joined = words.last().is_some_and(|last| last == "and");
                if words.last().is_some_and(|last| matches!(last.as_str(), "to" | "on" | "every")) {
                    words.pop();
                }
                words.push(if is_joined { day.to_owned() } else { format!("every {day}") });
            }
            None => words.push(word.to_owned()),
        }
    }
    words.join(" ")
}

/// Returns the minutes of "an hour later" or "30 minutes earlier".
fn shift_minutes(text: &str) -> Option<i64> {
    let words: Vec<String> = text.split_whitespace().map(super::super::agents::words::plain_word).collect();
    let end = words.iter().position(|word| word == "later" || word == "earlier")?;
    let unit = match words.get(end.checked_sub(1)?)?.as_str() {
        "hour" | "hours" | "h" => 60,
        "minutes" | "minute" | "min" | "mins" => 1,
        _ => return None,
    };
    let count = match words.get(end.checked_sub(2)?)?.as_str() {
        "an" | "a" | "one" if words.get(end.wrapping_sub(3)).is_some_and(|word| word == "half") => 30,
        "an" | "a" | "one" => unit,
        number => number.parse::<i64>().ok()? * unit,
    };
    let count = if words[end] == "earlier" { -count } else { count };
    Some(count)
}

fn shifted(clock: Time, minutes: i64) -> Option<Time> {
    let total = i64::from(clock.hour()) * 60 + i64::from(clock.minute()) + minutes;
    // The day of a repetition does not change.
    if !(0..24 * 60).contains(&total) {
        return None;
    }
    Time::new(i8::try_from(total / 60).ok()?, i8::try_from(total % 60).ok()?, 0, 0).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Uses Sunday, December 21, 2025, 12:00 as the current time.
    fn changed(schedule: &Value, text: &str) -> String {
        let now = "2025-12-21T12:00:00[UTC]".parse().unwrap();
        match find_change(text, schedule, &UtteranceParser::default(), &now) {
            TimeChange::Arguments(arguments) => {
                let list: Vec<_> =
                    arguments.iter().map(|(name, value)| format!("{name}={}", value.as_str().unwrap())).collect();
                list.join(" ")
            }
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn other_times_keep_what_the_message_does_not_name() {
        // TRUST-3, TRUST-4
        let daily = json!({"cron_expression": "0 9 * * *"});
        for (text, expected) in [
            ("move it to 8am", "cron_expression=0 8 * * *"),
            ("make that 6pm", "cron_expression=0 18 * * *"),
            ("change it to 10:30", "cron_expression=30 10 * * *"),
            ("make that 6", "cron_expression=0 6 * * *"),
            ("change the standup notes to weekdays", "cron_expression=0 9 * * MON,TUE,WED,THU,FRI"),
            ("every monday at 7am", "cron_expression=0 7 * * MON"),
            ("every other day instead", "every=2d start_at=2025-12-22T09:00:00"),
            ("an hour later please", "cron_expression=0 10 * * *"),
            ("half an hour earlier", "cron_expression=30 8 * * *"),
            ("move it to friday", "Unsupported"),
            ("make it better", "Missing"),
        ] {
            assert_eq!(changed(&daily, text), expected, "{text}");
        }
        let weekly = json!({"cron_expression": "0 17 * * FRI"});
        assert_eq!(changed(&weekly, "move it to thursday"), "cron_expression=0 17 * * THU");
        assert_eq!(changed(&weekly, "at 4"), "cron_expression=0 16 * * FRI", "the half of the day stays");
        let once = json!({"at": "2025-12-24T06:00:00Z"});
        assert_eq!(changed(&once, "make that 7am"), "at=2025-12-24T07:00:00");
        assert_eq!(changed(&once, "move it to tuesday"), "at=2025-12-23T06:00:00");
        let interval = json!({"every": "90m", "next_execution": "2025-12-21T13:30:00Z"});
        assert_eq!(changed(&interval, "make that 6pm"), "Unsupported");
        assert_eq!(changed(&interval, "every 2 hours"), "every=2h");
    }
}

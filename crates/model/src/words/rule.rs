//! Recurrence rules in words.

use jiff::civil::Weekday;

use super::{clock_words, join_with_and};
use crate::recurrence::{Frequency, RecurrenceRule, Until};

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// Returns a recurrence rule in words: "every week on Monday and Friday", "on the last Friday of every month", "every 2
/// hours, 10 times in all". A rule with parts that have no words, such as week numbers, is quoted: "by the rule
/// FREQ=YEARLY;BYWEEKNO=20".
pub fn recurrence_words(rule: &str) -> String {
    let words = RecurrenceRule::parse(rule).ok().and_then(|rule| words(&rule));
    words.unwrap_or_else(|| format!("by the rule {rule}"))
}

/// Returns `None` for a rule with parts that have no words.
fn words(rule: &RecurrenceRule) -> Option<String> {
    let plain = [&rule.weeks, &rule.year_days, &rule.positions, &rule.seconds];
    if plain.iter().any(|list| !list.is_empty()) {
        return None;
    }
    let mut text = period(rule)?;
    if let Some(times) = times_of_day(rule)? {
        text.push_str(&times);
    }
    text.push_str(&end(rule));
    Some(text)
}

fn period(rule: &RecurrenceRule) -> Option<String> {
    let every = |one: &str, many: &str| match rule.interval {
        1 => format!("every {one}"),
        n => format!("every {n} {many}"),
    };
    let months = rule.months.iter().filter_map(|month| month_name(*month)).collect::<Vec<_>>();
    let days = rule.weekdays.iter().map(|(_, day)| day_name(*day)).collect::<Vec<_>>();
    let is_numbered = rule.weekdays.iter().any(|(position, _)| *position != 0);
    let in_months = if months.is_empty() { String::new() } else { format!(" in {}", join_with_and(&months)) };
    Some(match rule.frequency {
        _ if is_numbered && !matches!(rule.frequency, Frequency::Monthly | Frequency::Yearly) => return None,
        Frequency::Minutely | Frequency::Hourly => {
            let period = match rule.frequency {
                Frequency::Minutely => every("minute", "minutes"),
                _ => every("hour", "hours"),
            };
            let on = if days.is_empty() { String::new() } else { format!(" on {}", weekdays(&days)) };
            if rule.month_days.is_empty() { format!("{period}{on}{in_months}") } else { return None }
        }
        Frequency::Daily | Frequency::Weekly if !rule.month_days.is_empty() => return None,
        Frequency::Daily if days.is_empty() => format!("{}{in_months}", every("day", "days")),
        Frequency::Daily | Frequency::Weekly if rule.interval == 1 && !days.is_empty() => {
            format!("every {}{in_months}", weekdays(&days))
        }
        Frequency::Weekly if days.is_empty() => format!("{}{in_months}", every("week", "weeks")),
        Frequency::Weekly => format!("{} on {}{in_months}", every("week", "weeks"), weekdays(&days)),
        Frequency::Daily => return None,
        Frequency::Monthly => format!("{}{in_months}", monthly(rule, &every("month", "months"))?),
        Frequency::Yearly => yearly(rule, &every("year", "years"), &months)?,
    })
}

/// Returns "every month on the 1st", or "on the last Friday of every month".
fn monthly(rule: &RecurrenceRule, every: &str) -> Option<String> {
    Some(match (rule.month_days.as_slice(), rule.weekdays.as_slice()) {
        ([], []) => every.to_owned(),
        ([], _) => format!("on {} of {every}", numbered_days(rule)?),
        (days, []) => format!("{every} on {}", month_days(days)),
        _ => return None,
    })
}

fn yearly(rule: &RecurrenceRule, every: &str, months: &[&str]) -> Option<String> {
    Some(match (rule.month_days.as_slice(), rule.weekdays.as_slice(), months) {
        ([], [], []) => every.to_owned(),
        ([], [], months) => format!("{every} in {}", join_with_and(months)),
        ([day], [], [month]) if *day > 0 => format!("{every} on {day} {month}"),
        (days, [], months) if !days.is_empty() && !months.is_empty() => {
            format!("{every} on {} of {}", month_days(days), join_with_and(months))
        }
        ([], _, []) => format!("on {} of {every}", numbered_days(rule)?),
        ([], _, months) => format!("on {} of {} {every}", numbered_days(rule)?, join_with_and(months)),
        _ => return None,
    })
}

/// Returns "the first Monday", or "every Monday" for weekdays without a position.
fn numbered_days(rule: &RecurrenceRule) -> Option<String> {
    let words = rule.weekdays.iter().map(|(position, day)| {
        let day = day_name(*day);
        Some(match position {
            0 => format!("every {day}"),
            1 => format!("the first {day}"),
            2 => format!("the second {day}"),
            3 => format!("the third {day}"),
            4 => format!("the fourth {day}"),
            5 => format!("the fifth {day}"),
            -1 => format!("the last {day}"),
            _ => return None,
        })
    });
    Some(join_with_and(&words.collect::<Option<Vec<_>>>()?))
}

fn month_days(days: &[i64]) -> String {
    let words = days.iter().map(|day| match day {
        -1 => "the last day".to_owned(),
        day if *day < 0 => format!("the {} to last day", ordinal(-day)),
        day => format!("the {}", ordinal(*day)),
    });
    join_with_and(&words.collect::<Vec<_>>())
}

fn ordinal(number: i64) -> String {
    let ending = match (number % 10, number % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{number}{ending}")
}

/// Returns " at 9am and 5pm", or nothing if the times of day are those of the due date. Returns `None` for minutes
/// without hours.
fn times_of_day(rule: &RecurrenceRule) -> Option<Option<String>> {
    if rule.hours.is_empty() {
        return rule.minutes.is_empty().then_some(None);
    }
    let minutes = if rule.minutes.is_empty() { &[0][..] } else { &rule.minutes };
    let mut times = Vec::new();
    for hour in &rule.hours {
        for minute in minutes {
            let time = jiff::civil::Time::new(i8::try_from(*hour).ok()?, i8::try_from(*minute).ok()?, 0, 0).ok()?;
            times.push(clock_words(time));
        }
    }
    Some(Some(format!(" at {}", join_with_and(&times))))
}

fn end(rule: &RecurrenceRule) -> String {
    if let Some(count) = rule.count {
        return match count {
            1 => ", once".to_owned(),
            count => format!(", {count} times in all"),
        };
    }
    let last = match rule.until {
        None => return String::new(),
        Some(Until::Day(day)) => day,
        Some(Until::Local(time)) => time.date(),
        Some(Until::Instant(at)) => at.to_zoned(jiff::tz::TimeZone::UTC).date(),
    };
    format!(" until {}", last.strftime("%a %-d %b %Y"))
}

/// Returns "weekday" for Monday to Friday, "weekend day" for Saturday and Sunday, "day" for all, else their names.
fn weekdays(days: &[&str]) -> String {
    let has = |names: &[&str]| days.len() == names.len() && names.iter().all(|name| days.contains(name));
    if has(&["Monday", "Tuesday", "Wednesday", "Thursday", "Friday"]) {
        "weekday".to_owned()
    } else if has(&["Saturday", "Sunday"]) {
        "Saturday and Sunday".to_owned()
    } else if days.len() == 7 {
        "day".to_owned()
    } else {
        join_with_and(days)
    }
}

fn month_name(month: i64) -> Option<&'static str> {
    MONTHS.get(usize::try_from(month.checked_sub(1)?).ok()?).copied()
}

fn day_name(day: Weekday) -> &'static str {
    match day {
        Weekday::Monday => "Monday",
        Weekday::Tuesday => "Tuesday",
        Weekday::Wednesday => "Wednesday",
        Weekday::Thursday => "Thursday",
        Weekday::Friday => "Friday",
        Weekday::Saturday => "Saturday",
        Weekday::Sunday => "Sunday",
    }
}

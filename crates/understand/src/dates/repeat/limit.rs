//! Parses the end of a repetition and excluded days: "until March", "for two weeks", "5 times", "except Sundays".
//!
//! `i` is the position of the first word. A parser returns its result and the position after it, or `None` if nothing
//! matches.

use jiff::ToSpan;
use jiff::civil::Date;

use super::{Repeat, RepeatFrequency, RepeatLimit, week};
use crate::dates::names::TimeUnit;
use crate::dates::{DateParts, DateScan, calendar, offset, parse_expression};
use crate::lexicon;
use crate::numbers;
use crate::parsed::DayOrTime;

/// Parses a limit or an exception at `i`, possibly after a comma, and adds it to the repetition of `parts`. Returns the
/// next position. Tries an exception, then "until …", a duration and a count. An exception may follow a limit. Returns
/// `None` and changes nothing if `parts` has no repetition, if nothing matches, or if it already has a limit.
pub(crate) fn parse(scan: &DateScan, i: usize, parts: &mut DateParts) -> Option<usize> {
    let at = i + usize::from(scan.at(i) == ",");
    let hours = parts.clock.is_some();
    let repeat = parts.repeat.as_mut()?;
    if let Some(end) = parse_except(scan, at, repeat) {
        return Some(end);
    }
    if repeat.limit.is_some() {
        return None;
    }
    let (limit, end) = parse_until(scan, at, repeat, hours)
        .or_else(|| parse_duration(scan, at, repeat))
        .or_else(|| parse_count(scan, at))?;
    repeat.limit = Some(limit);
    Some(end)
}

/// Parses "except Sundays", "but not on weekends" and replaces the repetition by a weekly one on the remaining
/// weekdays. Its part of the day and its limit stay. Applies only to a repetition on every day or on several weekdays
/// of every week. Returns `None` and changes nothing otherwise, or if no day remains.
fn parse_except(scan: &DateScan, i: usize, repeat: &mut Repeat) -> Option<usize> {
    let len = scan.phrase(i, lexicon::repeats::EXCEPT)?;
    let weekly = repeat.frequency == RepeatFrequency::Weekly && repeat.days.len() > 1;
    if repeat.frequency != RepeatFrequency::Daily && !weekly || repeat.interval != 1 {
        return None;
    }
    let (mut rest, end) = week::parse_except(scan, i + len)?;
    rest.days.retain(|day| !weekly || repeat.days.contains(day));
    if rest.days.is_empty() {
        return None;
    }
    *repeat = Repeat { part: repeat.part, limit: repeat.limit, ..rest };
    Some(end)
}

/// Parses "until March 5", "through the end of May". A day limits to its end, a time to that time. A time of day
/// ("until 5pm") counts only for a repetition by minutes or hours. `timed` is true if the expression already has a
/// clock time; then it does not count either. Returns `None` if no date follows, if that date repeats, and for a day
/// before today. A time in the past counts.
fn parse_until(scan: &DateScan, i: usize, repeat: &Repeat, timed: bool) -> Option<(RepeatLimit, usize)> {
    let len = scan.phrase(i, lexicon::repeats::UNTIL)?;
    // After "until", "may" is a month.
    let lead = usize::from(matches!(scan.before(i + len), "until" | "till" | "til" | "on" | "through" | "thru"));
    let found = parse_expression(scan, i + len - lead)?;
    let within = matches!(repeat.frequency, RepeatFrequency::Minutely | RepeatFrequency::Hourly);
    if found.parts.repeat.is_some() || found.parts.is_clock_only() && (timed || !within) {
        return None;
    }
    let limit = match found.resolve(scan.now)? {
        DayOrTime::Day(date) => until_day(scan, date)?,
        DayOrTime::Time(at) => RepeatLimit::Until(at.date(), scan.now.time_zone().to_timestamp(at).ok()?),
    };
    Some((limit, found.tokens.end))
}

/// Returns the limit at the end of a day in the zone of the user, or `None` if the day is before today.
fn until_day(scan: &DateScan, date: Date) -> Option<RepeatLimit> {
    let last = date.at(23, 59, 59, 0);
    (date >= scan.today()).then_some(RepeatLimit::Until(date, scan.now.time_zone().to_timestamp(last).ok()?))
}

/// Parses "for two weeks", "for the next 10 days". Returns a count if the repetition has an interval of 1 and the unit
/// equals its step ("daily for 10 days"). For a daily one, weeks count as seven days. The count of "for 0 days" is 0.
/// In all other cases, also for several weekdays, returns the last day of the duration from today. Durations in hours
/// or minutes do not match.
fn parse_duration(scan: &DateScan, i: usize, repeat: &Repeat) -> Option<(RepeatLimit, usize)> {
    let at = i + scan.phrase(i, lexicon::repeats::LASTING)?;
    let (distance, end) = offset::parse_whole_days(scan, at)?;
    let step = match repeat.frequency {
        RepeatFrequency::Daily => TimeUnit::Day,
        RepeatFrequency::Weekly if repeat.days.len() < 2 => TimeUnit::Week,
        RepeatFrequency::Monthly => TimeUnit::Month,
        RepeatFrequency::Yearly => TimeUnit::Year,
        _ => return until_after(scan, distance, end),
    };
    let count = offset::count_units(scan, at, step).filter(|_| repeat.interval == 1);
    match count {
        Some(count) => Some((RepeatLimit::Count(count), end)),
        None => until_after(scan, distance, end),
    }
}

/// Returns the limit on the last day of a duration that begins today, and `end`.
fn until_after(scan: &DateScan, (months, days): (i64, i64), end: usize) -> Option<(RepeatLimit, usize)> {
    let last = calendar::plus_days(calendar::plus_months(scan.today(), months)?, days)?;
    let last = last.checked_sub(1.day()).ok()?;
    Some((until_day(scan, last)?, end))
}

/// Parses "5 times", "for 10 occurrences", up to 999. Returns `None` for a rate ("5 times a day", "5 times daily"), and
/// if no word such as "times" follows the number.
fn parse_count(scan: &DateScan, i: usize) -> Option<(RepeatLimit, usize)> {
    let at = i + usize::from(scan.at(i) == "for");
    let (n, len) = numbers::cardinal(scan.words, at).filter(|(n, _)| (1..=999).contains(n))?;
    let tail = scan.phrase(at + len, lexicon::repeats::COUNT)?;
    let end = at + len + tail;
    // "5 times a day" is a rate.
    let rate = matches!(scan.at(end), "a" | "per" | "each" | "every" | "an" | "daily" | "weekly");
    (!rate).then_some((RepeatLimit::Count(n), end))
}

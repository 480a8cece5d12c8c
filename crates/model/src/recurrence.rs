//! Recurrence rules of tasks: parsing, normalization and occurrences of an RFC 5545 RRULE.
//!
//! A series has no stored state. Each task carries the rule, and its due date is the start of the rule. Parts that the
//! rule omits, such as the day of the month or the time of day, are taken from the start.

mod days;
mod occurrences;
mod rule;

pub use occurrences::Occurrences;
pub use rule::{Frequency, RecurrenceRule, Until};

use jiff::{SignedDuration, Timestamp, ToSpan, Zoned};

use crate::Invalid;

/// Returns the rule in upper case, without outer white space and the prefix `RRULE:`. Parts keep their order. Fails if
/// it is not a valid rule, see [`RecurrenceRule::parse`].
pub fn normalize(field: &str, text: &str) -> Result<String, Invalid> {
    let rule = text.trim().to_ascii_uppercase();
    let rule = rule.strip_prefix("RRULE:").unwrap_or(&rule);
    RecurrenceRule::parse(rule).map_err(|reason| {
        Invalid::one(
            field,
            "rrule",
            format!("must be an RRULE such as FREQ=WEEKLY;BYDAY=MO or words such as 'every friday at 5pm': {reason}"),
        )
    })?;
    Ok(rule.to_owned())
}

/// Returns the rule with its `COUNT` reduced by `steps`. A rule without `COUNT` is not changed.
pub fn reduce_count(rule: &str, steps: i64) -> String {
    let part = |part: &str| match part.strip_prefix("COUNT=").and_then(|count| count.parse::<i64>().ok()) {
        Some(count) => format!("COUNT={}", count - steps),
        None => part.to_owned(),
    };
    rule.split(';').map(part).collect::<Vec<_>>().join(";")
}

/// Returns the rule without hours, minutes and seconds, so that they are taken from the start. Hourly and minutely rules
/// are not changed.
pub fn without_time_of_day(rule: &str) -> String {
    if rule.contains("FREQ=HOURLY") || rule.contains("FREQ=MINUTELY") {
        return rule.to_owned();
    }
    let is_time = |part: &&str| ["BYHOUR=", "BYMINUTE=", "BYSECOND="].iter().any(|name| part.starts_with(name));
    rule.split(';').filter(|part| !is_time(part)).collect::<Vec<_>>().join(";")
}

/// Returns the first occurrence after `start` and after `after`, with the number of occurrences up to it. The start
/// counts as the first occurrence of `COUNT`, but is not part of the number. Without `COUNT`, the number is not exact.
/// Returns `None` if the rule has none.
///
/// The rule has the time zone of `start`. Its local time of day does not change across clock changes. Hourly and
/// minutely rules without further conditions have equal distances instead.
pub fn next_moment(rule: &RecurrenceRule, start: &Zoned, after: Timestamp) -> Option<(Zoned, i64)> {
    let zone = start.time_zone();
    let last = start.timestamp().max(after);
    if let Some(period) = rule.fixed_period() {
        let steps = elapsed_periods(start.timestamp(), last, period).checked_add(1)?;
        let next = start.timestamp().checked_add(period.checked_mul(i32::try_from(steps).ok()?)?).ok()?;
        let next = next.to_zoned(zone.clone());
        let is_over = rule.count.is_some_and(|count| steps >= count) || !rule.allows(next.datetime(), zone);
        return (!is_over).then_some((next, steps));
    }
    // A local time that a clock change skips is moved to a later time, so the search starts a day earlier.
    let from = last.to_zoned(zone.clone()).datetime().checked_sub(1.day()).ok()?;
    let moment = |time: jiff::civil::DateTime| time.to_zoned(zone.clone()).ok();
    let allowed = |time| rule.allows(time, zone);
    let ahead = |time| moment(time).is_some_and(|time| time.timestamp() > last);
    let (next, steps) = rule.next_occurrence(start.datetime(), from, allowed, ahead)?;
    Some((moment(next)?, steps))
}

/// Returns the first occurrence at or after `start` and after `after`. The start is included only if the rule selects
/// it. `COUNT` is ignored, because it counts from the result. Returns `None` if the rule has none.
pub fn first_moment(rule: &RecurrenceRule, start: &Zoned, after: Timestamp) -> Option<Zoned> {
    let zone = start.time_zone();
    if rule.fixed_period().is_some() {
        let endless = RecurrenceRule { count: None, ..rule.clone() };
        let is_start = start.timestamp() > after && rule.allows(start.datetime(), zone);
        return if is_start { Some(start.clone()) } else { Some(next_moment(&endless, start, after)?.0) };
    }
    let from = after.to_zoned(zone.clone()).datetime().checked_sub(1.day()).ok()?;
    let occurrences = rule.occurrences(start.datetime(), from).take_while(|time| rule.allows(*time, zone));
    let mut moments = occurrences.filter_map(|time| time.to_zoned(zone.clone()).ok());
    moments.find(|moment| moment.timestamp() > after && moment.timestamp() >= start.timestamp())
}

/// Returns the number of complete periods from `start` to `time`, at least 0.
fn elapsed_periods(start: Timestamp, time: Timestamp, period: SignedDuration) -> i64 {
    let seconds = time.duration_since(start).as_secs();
    seconds.div_euclid(period.as_secs().max(1)).max(0)
}

#[cfg(test)]
mod tests;

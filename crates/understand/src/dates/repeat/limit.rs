//! When a repetition ends and which days it leaves out: "until March", "for two weeks", "5 times", "except Sundays".

use jiff::ToSpan;
use jiff::civil::Date;

use super::{Frequency, Limit, Repeat, week};
use crate::dates::names::Unit;
use crate::dates::{Parts, Scan, calendar, expression, offset};
use crate::lexicon;
use crate::numbers;
use crate::reading::When;

/// Takes what stands at `i` into the repetition; where it ends.
pub(crate) fn read(scan: &Scan, i: usize, parts: &mut Parts) -> Option<usize> {
    let at = i + usize::from(scan.at(i) == ",");
    let hours = parts.clock.is_some();
    let repeat = parts.repeat.as_mut()?;
    if let Some(end) = except(scan, at, repeat) {
        return Some(end);
    }
    if repeat.limit.is_some() {
        return None;
    }
    let (limit, end) =
        until(scan, at, repeat, hours).or_else(|| lasting(scan, at, repeat)).or_else(|| times(scan, at))?;
    repeat.limit = Some(limit);
    Some(end)
}

/// "except Sundays", "but not on weekends".
fn except(scan: &Scan, i: usize, repeat: &mut Repeat) -> Option<usize> {
    let len = scan.phrase(i, lexicon::repeats::EXCEPT)?;
    let weekly = repeat.frequency == Frequency::Weekly && repeat.days.len() > 1;
    if repeat.frequency != Frequency::Daily && !weekly || repeat.interval != 1 {
        return None;
    }
    let (mut rest, end) = week::except(scan, i + len)?;
    rest.days.retain(|day| !weekly || repeat.days.contains(day));
    if rest.days.is_empty() {
        return None;
    }
    *repeat = Repeat { part: repeat.part, limit: repeat.limit, ..rest };
    Some(end)
}

/// "until March 5", "through the end of May"; "until 5pm" for what repeats within a day.
fn until(scan: &Scan, i: usize, repeat: &Repeat, timed: bool) -> Option<(Limit, usize)> {
    let len = scan.phrase(i, lexicon::repeats::UNTIL)?;
    // "until" itself makes a month of "may".
    let lead = usize::from(matches!(scan.before(i + len), "until" | "till" | "til" | "on" | "through" | "thru"));
    let found = expression(scan, i + len - lead)?;
    let within = matches!(repeat.frequency, Frequency::Minutely | Frequency::Hourly);
    if found.parts.repeat.is_some() || found.parts.is_clock_only() && (timed || !within) {
        return None;
    }
    let limit = match found.when(scan.now)? {
        When::Day(date) => until_day(scan, date)?,
        When::Time(at) => Limit::Until(at.date(), scan.now.time_zone().to_timestamp(at).ok()?),
    };
    Some((limit, found.tokens.end))
}

fn until_day(scan: &Scan, date: Date) -> Option<Limit> {
    let last = date.at(23, 59, 59, 0);
    (date >= scan.today()).then_some(Limit::Until(date, scan.now.time_zone().to_timestamp(last).ok()?))
}

/// "for two weeks", "for the next 10 days": counted where each step of the repetition is one of these.
fn lasting(scan: &Scan, i: usize, repeat: &Repeat) -> Option<(Limit, usize)> {
    let at = i + scan.phrase(i, lexicon::repeats::LASTING)?;
    let (distance, end) = offset::whole_days(scan, at)?;
    let step = match repeat.frequency {
        Frequency::Daily => Unit::Day,
        Frequency::Weekly if repeat.days.len() < 2 => Unit::Week,
        Frequency::Monthly => Unit::Month,
        Frequency::Yearly => Unit::Year,
        _ => return until_after(scan, distance, end),
    };
    let count = offset::steps(scan, at, step).filter(|_| repeat.interval == 1);
    match count {
        Some(count) => Some((Limit::Count(count), end)),
        None => until_after(scan, distance, end),
    }
}

fn until_after(scan: &Scan, (months, days): (i64, i64), end: usize) -> Option<(Limit, usize)> {
    let last = calendar::plus_days(calendar::plus_months(scan.today(), months)?, days)?;
    let last = last.checked_sub(1.day()).ok()?;
    Some((until_day(scan, last)?, end))
}

/// "5 times", "for 10 occurrences".
fn times(scan: &Scan, i: usize) -> Option<(Limit, usize)> {
    let at = i + usize::from(scan.at(i) == "for");
    let (n, len) = numbers::cardinal(scan.words, at).filter(|(n, _)| (1..=999).contains(n))?;
    let tail = scan.phrase(at + len, lexicon::repeats::COUNT)?;
    let end = at + len + tail;
    // "5 times a day" says how often, not how long.
    let rate = matches!(scan.at(end), "a" | "per" | "each" | "every" | "an" | "daily" | "weekly");
    (!rate).then_some((Limit::Count(n), end))
}

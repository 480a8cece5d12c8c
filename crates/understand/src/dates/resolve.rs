//! Resolves the parts of an expression to the next matching point in time.

use jiff::civil::{Date, DateTime, Time, Weekday};
use jiff::{SignedDuration, Zoned};

use super::clock::{ClockTime, DayHalf};
use super::day::PeriodQualifier;
use super::names::DayPart;
use super::repeat::{Repeat, RepeatFrequency};
use super::{DateParts, Day, calendar};
use crate::parsed::DayOrTime;

/// Returns the first point in time that matches the parts. It is a time if they or their repetition contain a clock
/// time or a part of the day, else a day. A complete point in time wins over all other parts. With a day, it can be in
/// the past ("today at 8am"). Without a day, it is the first occurrence of the repetition, or the next such time.
/// Returns `None` for a repetition without a first day, such as "weekly" without a time. Also `None` beyond the
/// supported range of dates.
pub(crate) fn resolve(parts: &DateParts, now: &Zoned) -> Option<DayOrTime> {
    if let Some(at) = parts.instant {
        return Some(DayOrTime::Time(at));
    }
    let Some(zone) = &parts.zone else { return resolve_shifted(parts, now) };
    // Without a day, the next such time counts from now in that zone.
    let named = parts.names_day();
    let there = now.with_time_zone(zone.clone());
    let found = resolve_shifted(parts, if named { now } else { &there })?;
    let DayOrTime::Time(at) = found else { return Some(found) };
    let here = zone.to_zoned(at).ok()?.with_time_zone(now.time_zone().clone());
    Some(DayOrTime::Time(here.datetime()))
}

/// Returns the point in time at the distance of the parts from their clock time. Without a day, it is the first one
/// later than now. Returns `None` beyond the supported range of dates.
fn resolve_shifted(parts: &DateParts, now: &Zoned) -> Option<DayOrTime> {
    let found = resolve_local(parts, now)?;
    let DayOrTime::Time(base) = found else { return Some(found) };
    if parts.shift == 0 {
        return Some(found);
    }
    let at = base.checked_add(SignedDuration::from_secs(parts.shift)).ok()?;
    if parts.names_day() || parts.part.is_some() {
        return Some(DayOrTime::Time(at));
    }
    let days = [-1, 0, 1].into_iter().filter_map(|days| calendar::plus_days(at.date(), days));
    days.map(|date| date.to_datetime(at.time())).find(|at| *at > now.datetime()).map(DayOrTime::Time)
}

/// Returns the first point in time that matches the parts, see [`resolve`], without their zone and their distance.
fn resolve_local(parts: &DateParts, now: &Zoned) -> Option<DayOrTime> {
    let part = parts.part.or(parts.repeat.as_ref().and_then(|repeat| repeat.part));
    let date = resolve_date(parts, now);
    if parts.clock.is_none() && part.is_none() {
        return date.or_else(|| first_occurrence(parts.repeat.as_ref()?, None, now)).map(DayOrTime::Day);
    }
    let open = match (&parts.repeat, date) {
        (Some(repeat), None) => {
            let hour = parts.clock.map(|clock| hour_of(clock, part, None, now));
            first_occurrence(repeat, hour.or(part.map(DayPart::hour)), now)
        }
        (_, date) => date,
    };
    match (open, parts.clock) {
        (Some(date), Some(clock)) => Some(DayOrTime::Time(at_date(date, clock, part, now)?)),
        (Some(date), None) => Some(DayOrTime::Time(date.at(hour_on(date, part?, now), 0, 0, 0))),
        (None, Some(clock)) => next_time(clock, part, now).map(DayOrTime::Time),
        (None, None) => next_part(part?, now).map(DayOrTime::Time),
    }
}

/// Returns the named day. Returns `None` without a day, a weekday, and a day of the year in a repetition. A fixed date
/// ignores a weekday next to it. A rough date moves to that weekday of its week. A period yields its first such
/// weekday, or its due date if it has none. A day without a year or month is the next date on which both match. The
/// qualifier ("next") of a weekday counts only without a day.
pub(crate) fn resolve_date(parts: &DateParts, now: &Zoned) -> Option<Date> {
    let today = now.date();
    let weekday = parts.weekday;
    match parts.day.or(parts.repeat.as_ref().and_then(|repeat| repeat.day)) {
        None => weekday.and_then(|(day, which)| named_weekday(today, day, which)),
        Some(Day::Fixed(date)) => Some(date),
        Some(Day::Rough(date)) => match weekday {
            Some((day, _)) => calendar::in_week_of(date, day),
            None => Some(date),
        },
        Some(Day::Span { start, end, due }) => match weekday {
            Some((day, _)) => calendar::next_weekday(start, day, true).filter(|date| *date < end).or(Some(due)),
            None => Some(due),
        },
        Some(Day::Annual { month, day }) => next_month_day(today, month, day, weekday.map(|(day, _)| day)),
        Some(Day::Monthly(day)) => next_day_of_month(today, day, weekday.map(|(day, _)| day)),
    }
}

/// Returns the weekday that the qualifier selects, relative to today. Plain: the first one after today. This: the same,
/// or today. Next: the one of the next week. Last: the one before today. After next: a week after the plain one. Weeks
/// begin on Monday.
fn named_weekday(today: Date, day: Weekday, which: PeriodQualifier) -> Option<Date> {
    match which {
        PeriodQualifier::Plain => calendar::next_weekday(today, day, false),
        PeriodQualifier::This => calendar::next_weekday(today, day, true),
        PeriodQualifier::Next => calendar::in_week_of(calendar::plus_days(today, 7)?, day),
        PeriodQualifier::Last => today.nth_weekday(-1, day).ok(),
        PeriodQualifier::AfterNext => calendar::plus_days(calendar::next_weekday(today, day, false)?, 7),
        PeriodQualifier::Fortnight => calendar::plus_days(calendar::next_weekday(today, day, false)?, 14),
        PeriodQualifier::BeforeLast => today.nth_weekday(-2, day).ok(),
    }
}

/// Returns the next such day, which may be today. With a weekday, uses the next year in which both match within 40
/// years, or the next such day if there is none.
fn next_month_day(today: Date, month: i8, day: i8, weekday: Option<Weekday>) -> Option<Date> {
    let ahead = |fits: &dyn Fn(Date) -> bool| {
        (0..40)
            .filter_map(|n| Date::new(today.year().checked_add(n)?, month, day).ok())
            .find(|d| *d >= today && fits(*d))
    };
    weekday.and_then(|wanted| ahead(&|date| date.weekday() == wanted)).or_else(|| ahead(&|_| true))
}

/// Returns the next such day of a month, which may be today. Skips months that do not have it. With a weekday, uses the
/// next month in which both match, within 60 months. If there is none, ignores the weekday. Returns `None` if there is
/// no such day.
fn next_day_of_month(today: Date, day: i8, weekday: Option<Weekday>) -> Option<Date> {
    let first = today.first_of_month();
    let ahead = |fits: &dyn Fn(Date) -> bool| {
        (0..60)
            .filter_map(|n| calendar::plus_months(first, n))
            .filter_map(|month| Date::new(month.year(), month.month(), day).ok())
            .find(|date| *date >= today && fits(*date))
    };
    weekday.and_then(|wanted| ahead(&|date| date.weekday() == wanted)).or_else(|| ahead(&|_| true))
}

/// Returns the hour on the 24-hour clock. If am or pm is unknown, the part of the day decides. The morning and "first
/// thing" are before noon (12 is 0), other parts after noon. At night, 1 to 4 stay. In the evening and at night, 12 is
/// 0. Without a part, 7 to 12 are before or at noon, 1 to 6 after noon. If `day` is today and such a time before noon
/// is now or has passed, it is after noon.
fn hour_of(clock: ClockTime, part: Option<DayPart>, day: Option<Date>, now: &Zoned) -> i8 {
    let hour = clock.hour;
    match (clock.half, part) {
        (DayHalf::Exact, _) => hour,
        (DayHalf::Am, _) => hour % 12,
        (DayHalf::Pm, _) => hour % 12 + 12,
        (DayHalf::Open, Some(DayPart::Morning | DayPart::First)) => hour % 12,
        (DayHalf::Open, Some(DayPart::Night)) if hour < 5 => hour,
        (DayHalf::Open, Some(DayPart::Night | DayPart::Evening | DayPart::Last)) if hour == 12 => 0,
        (DayHalf::Open, Some(_)) => hour % 12 + 12,
        (DayHalf::Open, None) => {
            let usual = if hour == 12 || hour >= 7 { hour } else { hour + 12 };
            let passed = day == Some(now.date()) && (usual, clock.minute) <= (now.hour(), now.minute());
            if passed && usual < 12 { usual + 12 } else { usual }
        }
    }
}

/// Returns the time of day of a clock time, independent of the date. If am or pm is unknown, it is chosen as in
/// [`hour_of`].
pub(crate) fn time_of_day(clock: ClockTime, part: Option<DayPart>, now: &Zoned) -> Option<Time> {
    Time::new(hour_of(clock, part, None, now), clock.minute, clock.second, 0).ok()
}

/// Returns a clock time on a date, see [`hour_of`]. In the evening or at night, a time before 5 without am or pm, also
/// midnight, is on the next date. Returns `None` beyond the supported range of dates.
fn at_date(date: Date, clock: ClockTime, part: Option<DayPart>, now: &Zoned) -> Option<DateTime> {
    let hour = hour_of(clock, part, Some(date), now);
    let at = date.at(hour, clock.minute, clock.second, 0);
    // Midnight of an evening is the one at its end.
    let wraps = hour < 5
        && matches!(part, Some(DayPart::Night | DayPart::Evening))
        && matches!(clock.half, DayHalf::Open | DayHalf::Exact);
    if wraps { calendar::plus_days(date, 1).map(|next| next.at(hour, clock.minute, clock.second, 0)) } else { Some(at) }
}

/// Returns the next occurrence of a time without a day, today or tomorrow, later than now. If am or pm is unknown and
/// there is no part of the day, the next of both counts. It is not before 6 in the morning then. Otherwise [`hour_of`]
/// determines the hour.
fn next_time(clock: ClockTime, part: Option<DayPart>, now: &Zoned) -> Option<DateTime> {
    let today = now.date();
    let current = now.datetime();
    let tomorrow = calendar::plus_days(today, 1)?;
    let open = clock.half == DayHalf::Open && part.is_none();
    let hours: &[i8] = if open { &[clock.hour % 12, clock.hour % 12 + 12] } else { &[hour_of(clock, part, None, now)] };
    let waking = |hour: i8| !open || hour >= 6;
    [today, tomorrow]
        .into_iter()
        .flat_map(|date| hours.iter().map(move |hour| (date, *hour)))
        .filter(|(_, hour)| waking(*hour))
        .map(|(date, hour)| date.at(hour, clock.minute, clock.second, 0))
        .find(|at| *at > current)
}

/// Returns the next such part of the day: today if it has not ended, else tomorrow at its usual hour.
fn next_part(part: DayPart, now: &Zoned) -> Option<DateTime> {
    let today = now.date();
    if now.hour() >= part.end() {
        return Some(calendar::plus_days(today, 1)?.at(part.hour(), 0, 0, 0));
    }
    Some(today.at(hour_on(today, part, now), 0, 0, 0))
}

/// Returns the hour of a part on a date. It is the usual one, or, if that has passed today, the next full hour before
/// the end of the part, or else its last hour.
fn hour_on(date: Date, part: DayPart, now: &Zoned) -> i8 {
    let usual = part.hour();
    if date != now.date() || now.hour() < usual {
        return usual;
    }
    if now.hour() + 1 < part.end() { now.hour() + 1 } else { usual.max(part.end() - 1) }
}

/// Returns the first day of a repetition with named weekdays or days of the month, within 366 days. `hour` is the hour
/// of the occurrence. Today counts if it is later than the current hour or unknown; minutes are not compared. Without
/// named days, a repetition by days or longer units with an hour or a part of the day begins today or tomorrow. All
/// other repetitions without named days have no first day (`None`). Ignores the interval, the months and the limit.
fn first_occurrence(repeat: &Repeat, hour: Option<i8>, now: &Zoned) -> Option<Date> {
    let today = now.date();
    let ahead = hour.is_none_or(|hour| hour > now.hour());
    let candidates = 0..=366;
    let named = !repeat.days.is_empty() || !repeat.month_days.is_empty();
    if !named {
        let daily = hour.is_some() || repeat.part.is_some();
        return (daily && repeat.frequency != RepeatFrequency::Minutely && repeat.frequency != RepeatFrequency::Hourly)
            .then(|| calendar::plus_days(today, i64::from(!ahead)))?;
    }
    candidates
        .filter_map(|n| calendar::plus_days(today, n))
        .find(|date| (ahead || *date > today) && falls_on(repeat, *date))
}

/// Returns true if the date matches the weekdays, their positions and the days of the month of a repetition. An empty
/// list matches every date; -1 is the last, other negative numbers do not match. If `together` is set, positions count
/// all named weekdays as one sequence, and every negative position counts from its end. Ignores its interval and its
/// months.
fn falls_on(repeat: &Repeat, date: Date) -> bool {
    let weekday = repeat.days.is_empty() || repeat.days.contains(&date.weekday());
    let is_nth = |n: &i8| match *n {
        n if repeat.together => weekday_position(repeat, date, n > 0) == n.abs(),
        -1 => date.day() + 7 > date.days_in_month(),
        n => (date.day() - 1) / 7 + 1 == n,
    };
    let nth = repeat.nth.is_empty() || repeat.nth.iter().any(is_nth);
    let last = date.day() == date.days_in_month();
    let month_day = |day: &i8| if *day == -1 { last } else { *day == date.day() };
    weekday && nth && (repeat.month_days.is_empty() || repeat.month_days.iter().any(month_day))
}

/// Returns the position of a day among the weekdays of the repetition in its month, from the start or from the end. The
/// first position is 1.
fn weekday_position(repeat: &Repeat, date: Date, from_start: bool) -> i8 {
    let range = if from_start { 1..=date.day() } else { date.day()..=date.days_in_month() };
    let counts = |day: i8| {
        let date = Date::new(date.year(), date.month(), day);
        date.is_ok_and(|date| repeat.days.contains(&date.weekday()))
    };
    i8::try_from(range.filter(|day| counts(*day)).count()).unwrap_or(i8::MAX)
}

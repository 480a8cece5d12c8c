//! Turns what was said about a point in time into the point: the next one that fits.

use jiff::Zoned;
use jiff::civil::{Date, DateTime, Time, Weekday};

use super::clock::{Clock, Half};
use super::day::Which;
use super::names::Part;
use super::repeat::{Frequency, Repeat};
use super::{Day, Parts, calendar};
use crate::reading::When;

pub(crate) fn when(parts: &Parts, now: &Zoned) -> Option<When> {
    if let Some(at) = parts.instant {
        return Some(When::Time(at));
    }
    let part = parts.part.or(parts.repeat.as_ref().and_then(|repeat| repeat.part));
    let date = date(parts, now);
    if parts.clock.is_none() && part.is_none() {
        return date.or_else(|| first(parts.repeat.as_ref()?, None, now)).map(When::Day);
    }
    let open = match (&parts.repeat, date) {
        (Some(repeat), None) => {
            let hour = parts.clock.map(|clock| time(clock, part, None, now));
            first(repeat, hour.or(part.map(Part::hour)), now)
        }
        (_, date) => date,
    };
    match (open, parts.clock) {
        (Some(date), Some(clock)) => Some(When::Time(on(date, clock, part, now)?)),
        (Some(date), None) => Some(When::Time(date.at(hour_on(date, part?, now), 0, 0, 0))),
        (None, Some(clock)) => next_time(clock, part, now).map(When::Time),
        (None, None) => next_part(part?, now).map(When::Time),
    }
}

/// The day that is meant, where one is named.
pub(crate) fn date(parts: &Parts, now: &Zoned) -> Option<Date> {
    let today = now.date();
    let weekday = parts.weekday;
    match parts.day.or(parts.repeat.as_ref().and_then(|repeat| repeat.day)) {
        None => weekday.and_then(|(day, which)| named(today, day, which)),
        Some(Day::Fixed(date)) => Some(date),
        Some(Day::Rough(date)) => match weekday {
            Some((day, _)) => calendar::in_week_of(date, day),
            None => Some(date),
        },
        Some(Day::Span { start, end, due }) => match weekday {
            Some((day, _)) => calendar::next(start, day, true).filter(|date| *date < end).or(Some(due)),
            None => Some(due),
        },
        Some(Day::Annual { month, day }) => month_day(today, month, day, weekday.map(|(day, _)| day)),
        Some(Day::Monthly(day)) => day_of_month(today, day, weekday.map(|(day, _)| day)),
    }
}

fn named(today: Date, day: Weekday, which: Which) -> Option<Date> {
    match which {
        Which::Plain => calendar::next(today, day, false),
        Which::This => calendar::next(today, day, true),
        Which::Next => calendar::in_week_of(calendar::plus_days(today, 7)?, day),
        Which::Last => today.nth_weekday(-1, day).ok(),
        Which::AfterNext => calendar::plus_days(calendar::next(today, day, false)?, 7),
    }
}

/// The next such day; with a weekday, in the next year in which it falls on that.
fn month_day(today: Date, month: i8, day: i8, weekday: Option<Weekday>) -> Option<Date> {
    let ahead = |fits: &dyn Fn(Date) -> bool| {
        (0..40)
            .filter_map(|n| Date::new(today.year().checked_add(n)?, month, day).ok())
            .find(|d| *d >= today && fits(*d))
    };
    weekday.and_then(|wanted| ahead(&|date| date.weekday() == wanted)).or_else(|| ahead(&|_| true))
}

fn day_of_month(today: Date, day: i8, weekday: Option<Weekday>) -> Option<Date> {
    let first = today.first_of_month();
    let ahead = |fits: &dyn Fn(Date) -> bool| {
        (0..60)
            .filter_map(|n| calendar::plus_months(first, n))
            .filter_map(|month| Date::new(month.year(), month.month(), day).ok())
            .find(|date| *date >= today && fits(*date))
    };
    weekday.and_then(|wanted| ahead(&|date| date.weekday() == wanted)).or_else(|| ahead(&|_| true))
}

/// The hour on a clock of 24, with what the part of the day says where am and pm are open.
fn time(clock: Clock, part: Option<Part>, day: Option<Date>, now: &Zoned) -> i8 {
    let hour = clock.hour;
    match (clock.half, part) {
        (Half::Exact, _) => hour,
        (Half::Am, _) => hour % 12,
        (Half::Pm, _) => hour % 12 + 12,
        (Half::Open, Some(Part::Morning | Part::First)) => hour % 12,
        (Half::Open, Some(Part::Night)) if hour < 5 => hour,
        (Half::Open, Some(Part::Night | Part::Evening)) if hour == 12 => 0,
        (Half::Open, Some(_)) => hour % 12 + 12,
        (Half::Open, None) => {
            let usual = if hour == 12 || hour >= 7 { hour } else { hour + 12 };
            let passed = day == Some(now.date()) && (usual, clock.minute) <= (now.hour(), now.minute());
            if passed && usual < 12 { usual + 12 } else { usual }
        }
    }
}

/// The time that a clock shows on any day.
pub(crate) fn clock(clock: Clock, part: Option<Part>, now: &Zoned) -> Option<Time> {
    Time::new(time(clock, part, None, now), clock.minute, clock.second, 0).ok()
}

fn on(date: Date, clock: Clock, part: Option<Part>, now: &Zoned) -> Option<DateTime> {
    let hour = time(clock, part, Some(date), now);
    let at = date.at(hour, clock.minute, clock.second, 0);
    // Midnight of an evening is the one that ends it.
    let wraps =
        hour < 5 && matches!(part, Some(Part::Night | Part::Evening)) && matches!(clock.half, Half::Open | Half::Exact);
    if wraps { calendar::plus_days(date, 1).map(|next| next.at(hour, clock.minute, clock.second, 0)) } else { Some(at) }
}

/// A time without a day: its next occurrence, by day rather than at night where am and pm are open.
fn next_time(clock: Clock, part: Option<Part>, now: &Zoned) -> Option<DateTime> {
    let today = now.date();
    let current = now.datetime();
    let tomorrow = calendar::plus_days(today, 1)?;
    let open = clock.half == Half::Open && part.is_none();
    let hours: &[i8] = if open { &[clock.hour % 12, clock.hour % 12 + 12] } else { &[time(clock, part, None, now)] };
    let waking = |hour: i8| !open || hour >= 6;
    [today, tomorrow]
        .into_iter()
        .flat_map(|date| hours.iter().map(move |hour| (date, *hour)))
        .filter(|(_, hour)| waking(*hour))
        .map(|(date, hour)| date.at(hour, clock.minute, clock.second, 0))
        .find(|at| *at > current)
}

fn next_part(part: Part, now: &Zoned) -> Option<DateTime> {
    let today = now.date();
    if now.hour() >= part.end() {
        return Some(calendar::plus_days(today, 1)?.at(part.hour(), 0, 0, 0));
    }
    Some(today.at(hour_on(today, part, now), 0, 0, 0))
}

/// The hour for a part of a day; later than usual if that hour of today is over but the part is not.
fn hour_on(date: Date, part: Part, now: &Zoned) -> i8 {
    let usual = part.hour();
    if date != now.date() || now.hour() < usual {
        return usual;
    }
    if now.hour() + 1 < part.end() { now.hour() + 1 } else { usual.max(part.end() - 1) }
}

/// The first day of a repetition that names its days.
fn first(repeat: &Repeat, hour: Option<i8>, now: &Zoned) -> Option<Date> {
    let today = now.date();
    let ahead = hour.is_none_or(|hour| hour > now.hour());
    let candidates = 0..=366;
    let named = !repeat.days.is_empty() || !repeat.month_days.is_empty();
    if !named {
        let daily = hour.is_some() || repeat.part.is_some();
        return (daily && repeat.frequency != Frequency::Minutely && repeat.frequency != Frequency::Hourly)
            .then(|| calendar::plus_days(today, i64::from(!ahead)))?;
    }
    candidates
        .filter_map(|n| calendar::plus_days(today, n))
        .find(|date| (ahead || *date > today) && falls_on(repeat, *date))
}

fn falls_on(repeat: &Repeat, date: Date) -> bool {
    let weekday = repeat.days.is_empty() || repeat.days.contains(&date.weekday());
    let is_nth = |n: &i8| match *n {
        n if repeat.together => place(repeat, date, n > 0) == n.abs(),
        -1 => date.day() + 7 > date.days_in_month(),
        n => (date.day() - 1) / 7 + 1 == n,
    };
    let nth = repeat.nth.is_empty() || repeat.nth.iter().any(is_nth);
    let last = date.day() == date.days_in_month();
    let month_day = |day: &i8| if *day == -1 { last } else { *day == date.day() };
    weekday && nth && (repeat.month_days.is_empty() || repeat.month_days.iter().any(month_day))
}

/// Which of the repetition's weekdays in its month a day is, from the start or from the end.
fn place(repeat: &Repeat, date: Date, from_start: bool) -> i8 {
    let range = if from_start { 1..=date.day() } else { date.day()..=date.days_in_month() };
    let counts = |day: i8| {
        let date = Date::new(date.year(), date.month(), day);
        date.is_ok_and(|date| repeat.days.contains(&date.weekday()))
    };
    i8::try_from(range.filter(|day| counts(*day)).count()).unwrap_or(i8::MAX)
}

//! Steps on the calendar that never overflow: beyond its ends there is no day.

use jiff::Span;
use jiff::civil::{Date, Weekday};

pub(crate) fn plus_days(date: Date, days: i64) -> Option<Date> {
    date.checked_add(Span::new().try_days(days).ok()?).ok()
}

pub(crate) fn plus_months(date: Date, months: i64) -> Option<Date> {
    date.checked_add(Span::new().try_months(months).ok()?).ok()
}

/// The Monday of the week.
pub(crate) fn week_start(date: Date) -> Option<Date> {
    plus_days(date, -i64::from(date.weekday().to_monday_zero_offset()))
}

/// The day of that name in the week of `date`.
pub(crate) fn in_week_of(date: Date, weekday: Weekday) -> Option<Date> {
    plus_days(week_start(date)?, i64::from(weekday.to_monday_zero_offset()))
}

/// The next day of that name: today, or only from tomorrow on.
pub(crate) fn next(date: Date, weekday: Weekday, today_counts: bool) -> Option<Date> {
    if today_counts && date.weekday() == weekday {
        return Some(date);
    }
    date.nth_weekday(1, weekday).ok()
}

/// The year a short or long figure means.
pub(crate) fn year(figures: &str) -> Option<i16> {
    let n: i16 = figures.parse().ok()?;
    match figures.len() {
        2 if n < 70 => Some(2000 + n),
        2 => Some(1900 + n),
        4 if (1900..2200).contains(&n) => Some(n),
        _ => None,
    }
}

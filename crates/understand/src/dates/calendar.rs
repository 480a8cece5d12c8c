//! Calendar arithmetic. Functions return `None` beyond the supported range of dates.

use jiff::Span;
use jiff::civil::{Date, Weekday};

/// Adds days.
pub(crate) fn plus_days(date: Date, days: i64) -> Option<Date> {
    date.checked_add(Span::new().try_days(days).ok()?).ok()
}

/// Adds months. The day is limited to the length of the month.
pub(crate) fn plus_months(date: Date, months: i64) -> Option<Date> {
    date.checked_add(Span::new().try_months(months).ok()?).ok()
}

/// Returns the Monday on or before `date`.
pub(crate) fn week_start(date: Date) -> Option<Date> {
    plus_days(date, -i64::from(date.weekday().to_monday_zero_offset()))
}

/// Returns the weekday in the week of `date`, which may be before it. Weeks begin on Monday.
pub(crate) fn in_week_of(date: Date, weekday: Weekday) -> Option<Date> {
    plus_days(week_start(date)?, i64::from(weekday.to_monday_zero_offset()))
}

/// Returns the next such weekday. `date` itself counts if `today_counts` is true.
pub(crate) fn next_weekday(date: Date, weekday: Weekday, today_counts: bool) -> Option<Date> {
    if today_counts && date.weekday() == weekday {
        return Some(date);
    }
    date.nth_weekday(1, weekday).ok()
}

/// Parses a year of two or four digits. Two digits are 1970 to 2069. Four digits must be 1900 to 2199. A sign counts as
/// a digit: "+5" is 2005. Returns `None` for any other text.
pub(crate) fn parse_year(figures: &str) -> Option<i16> {
    let n: i16 = figures.parse().ok()?;
    match figures.len() {
        2 if n < 70 => Some(2000 + n),
        2 => Some(1900 + n),
        4 if (1900..2200).contains(&n) => Some(n),
        _ => None,
    }
}

/// Parses a year of four digits that cannot be a time of day such as "1830". Returns `None` for any other text.
pub(crate) fn parse_distant_year(figures: &str) -> Option<i16> {
    let n: i16 = figures.parse().ok().filter(|_| figures.bytes().all(|b| b.is_ascii_digit()))?;
    let is_time = n / 100 <= 24 && n % 100 < 60;
    (n >= 1000 && figures.len() == 4 && !is_time).then_some(n)
}

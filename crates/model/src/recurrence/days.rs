//! Matches days against the parts of a rule: month, week, day of the year, day of the month and day of the week.

use jiff::ToSpan;
use jiff::civil::{Date, Weekday};

use super::rule::{Frequency, RecurrenceRule};

impl RecurrenceRule {
    /// Returns `true` if all lists of days, weeks and months select the day. An empty list selects every day. The
    /// interval and `BYSETPOS` are not checked.
    pub(super) fn matches_day(&self, date: Date) -> bool {
        let matches = |list: &[i64], n: i64| list.is_empty() || list.contains(&n);
        matches(&self.months, i64::from(date.month()))
            && (self.month_days.is_empty() || contains_position(&self.month_days, date.day(), || date.days_in_month()))
            && (self.year_days.is_empty()
                || contains_position(&self.year_days, date.day_of_year(), || date.days_in_year()))
            && (self.weekdays.is_empty() || self.weekdays.iter().any(|day| self.matches_weekday(*day, date)))
            && (self.weeks.is_empty() || self.matches_week(date))
    }

    /// Returns `true` if the day is this weekday at the position `nth`. A negative position counts from the end.
    ///
    /// The position counts in the month, or in the year if the rule is yearly without months. It is ignored if it is 0,
    /// or if the rule is weekly or more frequent.
    fn matches_weekday(&self, (nth, weekday): (i64, Weekday), date: Date) -> bool {
        if date.weekday() != weekday {
            return false;
        }
        let of_month = match self.frequency {
            Frequency::Monthly => true,
            Frequency::Yearly => !self.months.is_empty(),
            // A week or a shorter period has only one such weekday.
            _ => return true,
        };
        let (day, length) = match of_month {
            true => (i64::from(date.day()), i64::from(date.days_in_month())),
            false => (i64::from(date.day_of_year()), i64::from(date.days_in_year())),
        };
        nth == 0 || nth == (day - 1) / 7 + 1 || nth == -((length - day) / 7 + 1)
    }

    /// Returns `true` if the number of the week is selected. The first week of a year is the first with four days in
    /// it. Returns `false` if the week crosses the limits of the calendar.
    fn matches_week(&self, date: Date) -> bool {
        let Some((year, week)) = self.week_number(date) else { return false };
        contains_position(&self.weeks, week, || {
            Date::new(year, 12, 28).ok().and_then(|day| self.week_number(day)).map_or(52, |(_, week)| week)
        })
    }

    /// Returns the year and the number of the week of a day, `None` at the limits of the calendar. The year of a week
    /// can differ from that of the day.
    fn week_number(&self, date: Date) -> Option<(i16, i64)> {
        let middle = self.week_start_of(date)?.checked_add(3.days()).ok()?;
        Some((middle.year(), i64::from(middle.day_of_year() - 1) / 7 + 1))
    }

    /// Returns the first day of the week that contains the day, `None` if it is before the start of the calendar.
    pub(super) fn week_start_of(&self, date: Date) -> Option<Date> {
        date.checked_sub(i64::from(date.weekday().since(self.week_start)).days()).ok()
    }
}

/// Returns `true` if a list contains the position `n` of a period of `length`. Negative entries count from the end; -1
/// is the last position. The list must be sorted.
fn contains_position<N: Into<i64>>(list: &[i64], n: N, length: impl FnOnce() -> N) -> bool {
    let n = n.into();
    list.contains(&n) || (list.first() < Some(&0) && list.contains(&(n - length().into() - 1)))
}

//! Which days a rule names, by month, week, day of the year, day of the month and day of the week.

use jiff::ToSpan;
use jiff::civil::{Date, Weekday};

use super::rule::{Frequency, Rule};

impl Rule {
    pub(super) fn is_day(&self, date: Date) -> bool {
        let is = |list: &[i64], n: i64| list.is_empty() || list.contains(&n);
        is(&self.months, i64::from(date.month()))
            && (self.month_days.is_empty() || names(&self.month_days, date.day(), || date.days_in_month()))
            && (self.year_days.is_empty() || names(&self.year_days, date.day_of_year(), || date.days_in_year()))
            && (self.weekdays.is_empty() || self.weekdays.iter().any(|day| self.is_weekday(*day, date)))
            && (self.weeks.is_empty() || self.is_in_week(date))
    }

    fn is_weekday(&self, (nth, weekday): (i64, Weekday), date: Date) -> bool {
        if date.weekday() != weekday {
            return false;
        }
        let of_month = match self.frequency {
            Frequency::Monthly => true,
            Frequency::Yearly => !self.months.is_empty(),
            // Within a week or less there is only one.
            _ => return true,
        };
        let (day, length) = match of_month {
            true => (i64::from(date.day()), i64::from(date.days_in_month())),
            false => (i64::from(date.day_of_year()), i64::from(date.days_in_year())),
        };
        nth == 0 || nth == (day - 1) / 7 + 1 || nth == -((length - day) / 7 + 1)
    }

    /// By the number of its week: the first week of a year is the first with four days in it.
    fn is_in_week(&self, date: Date) -> bool {
        let Some((year, week)) = self.week(date) else { return false };
        names(&self.weeks, week, || {
            Date::new(year, 12, 28).ok().and_then(|day| self.week(day)).map_or(52, |(_, week)| week)
        })
    }

    /// The year that the week of a day belongs to, and the week's number in it.
    fn week(&self, date: Date) -> Option<(i16, i64)> {
        let middle = self.week_begin(date)?.checked_add(3.days()).ok()?;
        Some((middle.year(), i64::from(middle.day_of_year() - 1) / 7 + 1))
    }

    pub(super) fn week_begin(&self, date: Date) -> Option<Date> {
        date.checked_sub(i64::from(date.weekday().since(self.week_start)).days()).ok()
    }
}

/// Whether a sorted list names the n-th, counted from the start or, by the length, from the end.
fn names<N: Into<i64>>(list: &[i64], n: N, length: impl FnOnce() -> N) -> bool {
    let n = n.into();
    list.contains(&n) || (list.first() < Some(&0) && list.contains(&(n - length().into() - 1)))
}

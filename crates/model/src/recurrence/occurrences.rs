//! The occurrences of a rule in order, as local times.
//!
//! The search proceeds period by period (year, month, week, day, hour, minute). A period is a set of days and a set of
//! times of day; their product is never materialized. The search always ends: at the end of the calendar, or when its
//! budget of steps is used up.

use jiff::civil::{Date, DateTime, Time};
use jiff::{SignedDuration, ToSpan, Unit};

use super::rule::{Frequency, RecurrenceRule};

/// The number of days, hours or minutes that one search may visit. It is more than a century of days.
const SEARCH_BUDGET: u32 = 40_000;
const LAST_YEAR: i64 = 9999;

impl RecurrenceRule {
    /// Returns the occurrences at or after `from` of a series that starts at `start`, in order, as local times. `start`
    /// is included only if the rule selects it; earlier times never are. The iterator ends after the year 9999, or
    /// after a search of 40,000 days, hours or minutes. The caller must check `COUNT` and `UNTIL`.
    pub fn occurrences(&self, start: DateTime, from: DateTime) -> Occurrences {
        let rule = self.with_defaults_from(start);
        let from = from.max(start);
        let next_period = rule.periods_between(start, from).div_euclid(rule.interval) * rule.interval;
        let daily = if rule.frequency < Frequency::Hourly {
            times(&rule.hours, &rule.minutes, &rule.seconds)
        } else {
            Vec::new()
        };
        Occurrences {
            rule,
            start,
            from,
            next_period,
            days: Vec::new(),
            times: daily,
            selected: None,
            cursor: 0,
            budget: SEARCH_BUDGET,
        }
    }

    /// Returns the first occurrence after `start` that satisfies `is_ahead`, with the number of occurrences up to it.
    /// The start is not part of this number, but it counts as the first occurrence of `COUNT`. Without `COUNT`, the
    /// number includes only the occurrences at or after `from`.
    ///
    /// Returns `None` if this occurrence or a visited earlier one does not satisfy `is_allowed`, if `COUNT` ends first,
    /// or if the search ends without a result. No time before `from` may satisfy `is_ahead`.
    pub fn next_occurrence(
        &self,
        start: DateTime,
        from: DateTime,
        is_allowed: impl Fn(DateTime) -> bool,
        is_ahead: impl Fn(DateTime) -> bool,
    ) -> Option<(DateTime, i64)> {
        // With a count, all occurrences since the start must be visited.
        let from = if self.count.is_some() { start } else { from };
        let after = self.occurrences(start, from).filter(|time| *time > start);
        for (time, steps) in after.zip(1..) {
            if !is_allowed(time) || self.count.is_some_and(|count| steps >= count) {
                return None;
            }
            if is_ahead(time) {
                return Some((time, steps));
            }
        }
        None
    }

    /// Returns the rule with the omitted parts taken from the start. A yearly rule without days gets the day, and the
    /// month if it has none; with only weeks it gets the weekday. A monthly rule without days gets the day, a weekly
    /// one the weekday. A missing hour is added unless the rule is hourly or minutely, a missing minute unless it is
    /// minutely, a missing second always.
    fn with_defaults_from(&self, start: DateTime) -> Self {
        let mut rule = self.clone();
        let lists = [&rule.weeks, &rule.year_days, &rule.month_days];
        let selects_days = !rule.weekdays.is_empty() || lists.iter().any(|list| !list.is_empty());
        match rule.frequency {
            Frequency::Yearly if !selects_days => {
                if rule.months.is_empty() {
                    rule.months.push(i64::from(start.month()));
                }
                rule.month_days.push(i64::from(start.day()));
            }
            Frequency::Yearly
                if !rule.weeks.is_empty()
                    && rule.weekdays.is_empty()
                    && lists[1..].iter().all(|list| list.is_empty()) =>
            {
                rule.weekdays.push((0, start.weekday()));
            }
            Frequency::Monthly if !selects_days => rule.month_days.push(i64::from(start.day())),
            Frequency::Weekly if !selects_days => rule.weekdays.push((0, start.weekday())),
            _ => {}
        }
        if rule.hours.is_empty() && rule.frequency < Frequency::Hourly {
            rule.hours.push(i64::from(start.hour()));
        }
        if rule.minutes.is_empty() && rule.frequency < Frequency::Minutely {
            rule.minutes.push(i64::from(start.minute()));
        }
        if rule.seconds.is_empty() {
            rule.seconds.push(i64::from(start.second()));
        }
        rule
    }

    /// Returns the number of periods (years, months, weeks …) between the period of `start` and that of `time`.
    /// Negative if `time` is in an earlier period. 0 if a week begins before the start of the calendar.
    fn periods_between(&self, start: DateTime, time: DateTime) -> i64 {
        let years = i64::from(time.year()) - i64::from(start.year());
        let days = |from: Date, to: Date| from.until((Unit::Day, to)).map_or(0, |span| i64::from(span.get_days()));
        let hours = || days(start.date(), time.date()) * 24 + i64::from(time.hour()) - i64::from(start.hour());
        match self.frequency {
            Frequency::Yearly => years,
            Frequency::Monthly => years * 12 + i64::from(time.month()) - i64::from(start.month()),
            Frequency::Weekly => match (self.week_start_of(start.date()), self.week_start_of(time.date())) {
                (Some(from), Some(to)) => days(from, to) / 7,
                _ => 0,
            },
            Frequency::Daily => days(start.date(), time.date()),
            Frequency::Hourly => hours(),
            Frequency::Minutely => hours() * 60 + i64::from(time.minute()) - i64::from(start.minute()),
        }
    }
}

/// An iterator over the occurrences of a rule.
pub struct Occurrences {
    rule: RecurrenceRule,
    start: DateTime,
    from: DateTime,
    /// The next period, counted from the period of the start.
    next_period: i64,
    /// The matching days of the current period.
    days: Vec<Date>,
    /// The times of day on each of these days.
    times: Vec<Time>,
    /// The indexes that `BYSETPOS` selects, if the rule has it.
    selected: Option<Vec<usize>>,
    /// The index of the next occurrence in the current period, or in `selected`.
    cursor: usize,
    /// The remaining steps of the search.
    budget: u32,
}

impl Iterator for Occurrences {
    type Item = DateTime;

    /// Returns the next occurrence at or after `from`, `None` at the end of the calendar or of the budget.
    fn next(&mut self) -> Option<DateTime> {
        loop {
            while let Some(time) = self.nth_of_period(self.cursor) {
                self.cursor += 1;
                if time >= self.from {
                    return Some(time);
                }
            }
            self.advance()?;
        }
    }
}

impl Occurrences {
    /// Returns occurrence `n` of the current period, starting at 0, `None` after the last one. With `BYSETPOS`, only
    /// the selected occurrences count.
    fn nth_of_period(&self, n: usize) -> Option<DateTime> {
        let n = match &self.selected {
            Some(selected) => *selected.get(n)?,
            None => n,
        };
        let day = self.days.get(n.checked_div(self.times.len())?)?;
        Some(day.to_datetime(*self.times.get(n % self.times.len())?))
    }

    /// Advances to the next period that has a matching day or time. Without `BYSETPOS`, skips its days before `from`.
    /// Returns `None` at the end of the calendar or of the budget.
    fn advance(&mut self) -> Option<()> {
        loop {
            let found = match self.rule.frequency {
                Frequency::Hourly | Frequency::Minutely => self.search_hour_or_minute()?,
                _ => self.search_days()?,
            };
            if found {
                break;
            }
        }
        self.cursor = 0;
        self.selected = (!self.rule.positions.is_empty()).then(|| self.select_positions());
        if self.selected.is_none() {
            self.cursor = self.days.partition_point(|day| *day < self.from.date()) * self.times.len();
        }
        Some(())
    }

    /// Returns the indexes that `BYSETPOS` selects in the current period, in order. Negative positions count from the
    /// end. Positions outside of the period are ignored.
    fn select_positions(&self) -> Vec<usize> {
        let size = i64::try_from(self.days.len() * self.times.len()).unwrap_or(i64::MAX);
        let indexes = self.rule.positions.iter().map(|n| if *n > 0 { n - 1 } else { size + n });
        let mut indexes: Vec<_> = indexes.filter(|n| *n < size).filter_map(|n| usize::try_from(n).ok()).collect();
        indexes.sort_unstable();
        indexes.dedup();
        indexes
    }

    /// Searches the next year, month, week or day, stores its matching days, and moves on by the interval. Returns
    /// `Some(false)` if it has none, `None` at the end of the calendar or if the budget does not suffice for all its
    /// days.
    fn search_days(&mut self) -> Option<bool> {
        let (first, length) = self.days_of_period()?;
        self.spend(length)?;
        self.next_period += self.rule.interval;
        self.days.clear();
        let mut day = Some(first);
        for _ in 0..length {
            let Some(date) = day.filter(|date| i64::from(date.year()) <= LAST_YEAR) else { break };
            if self.rule.matches_day(date) {
                self.days.push(date);
            }
            day = date.tomorrow().ok();
        }
        Some(!self.days.is_empty())
    }

    /// Returns the first day and the number of days of the next period, `None` after the year 9999. The first period
    /// contains the start and may begin before it. A rule that is not yearly, monthly or weekly has periods of one day.
    fn days_of_period(&self) -> Option<(Date, u32)> {
        let start = self.start.date();
        let within = |date: Date| Some(date).filter(|date| i64::from(date.year()) <= LAST_YEAR);
        match self.rule.frequency {
            Frequency::Yearly => {
                let year = i64::from(start.year()) + self.next_period;
                let first = within(Date::new(i16::try_from(year).ok()?, 1, 1).ok()?)?;
                Some((first, u32::try_from(first.days_in_year()).ok()?))
            }
            Frequency::Monthly => {
                let first = within(start.first_of_month().checked_add(self.next_period.months()).ok()?)?;
                Some((first, u32::try_from(first.days_in_month()).ok()?))
            }
            Frequency::Weekly => {
                let week_start = self.rule.week_start_of(start)?;
                Some((within(week_start.checked_add((self.next_period * 7).days()).ok()?)?, 7))
            }
            _ => Some((within(start.checked_add(self.next_period.days()).ok()?)?, 1)),
        }
    }

    /// Searches the next hour or minute, stores its occurrences, and moves on by the interval. Returns `Some(true)` if
    /// it matches. Otherwise returns `Some(false)` and skips the rest of the day or hour that does not match. Returns
    /// `None` at the end of the calendar or of the budget.
    fn search_hour_or_minute(&mut self) -> Option<bool> {
        self.spend(1)?;
        let hourly = self.rule.frequency == Frequency::Hourly;
        let start = self.start.date().at(self.start.hour(), 0, 0, 0);
        let unit = if hourly { 60 } else { 1 };
        let start = if hourly { start } else { start + SignedDuration::from_mins(i64::from(self.start.minute())) };
        let time = start.checked_add(SignedDuration::from_mins(self.next_period.checked_mul(unit)?)).ok()?;
        if i64::from(time.year()) > LAST_YEAR {
            return None;
        }
        let hour = i64::from(time.hour());
        let minute = i64::from(time.minute());
        let matches = |list: &[i64], n: i64| list.is_empty() || list.contains(&n);
        let remaining_minutes = if !self.rule.matches_day(time.date()) {
            24 * 60 - (hour * 60 + minute)
        } else if !matches(&self.rule.hours, hour) {
            60 - minute
        } else if !hourly && !matches(&self.rule.minutes, minute) {
            1
        } else {
            let minutes = if hourly { &self.rule.minutes } else { &vec![minute] };
            (self.days, self.times) = (vec![time.date()], times(&[hour], minutes, &self.rule.seconds));
            self.next_period += self.rule.interval;
            return Some(true);
        };
        // Continue with the first period that starts after these minutes.
        let skipped = (remaining_minutes + unit - 1) / unit;
        self.next_period += (skipped + self.rule.interval - 1) / self.rule.interval * self.rule.interval;
        Some(false)
    }

    /// Reduces the budget. Returns `None` without a change if less than `steps` is left.
    fn spend(&mut self, steps: u32) -> Option<()> {
        self.budget = self.budget.checked_sub(steps)?;
        Some(())
    }
}

/// Returns all combinations as times of day, in order if the lists are sorted. Skips numbers that are not valid in a
/// time.
fn times(hours: &[i64], minutes: &[i64], seconds: &[i64]) -> Vec<Time> {
    let part = |n: &i64| i8::try_from(*n).ok();
    let mut times = Vec::with_capacity(hours.len() * minutes.len() * seconds.len());
    for hour in hours.iter().filter_map(part) {
        for minute in minutes.iter().filter_map(part) {
            times.extend(seconds.iter().filter_map(part).filter_map(|second| Time::new(hour, minute, second, 0).ok()));
        }
    }
    times
}

//! The times that a rule names, in order, as a clock on the wall shows them.
//!
//! A rule is looked at period by period (year, month, week, day, hour, minute); each is a set of days times a set of times
//! of day that is never spelled out. Whatever the rule, the search ends: with the calendar, or when too much was looked at
//! in vain.

use jiff::civil::{Date, DateTime, Time};
use jiff::{SignedDuration, ToSpan, Unit};

use super::rule::{Frequency, Rule};

/// How many days, hours or minutes are looked at; more than a century of days.
const BUDGET: u32 = 40_000;
const LAST_YEAR: i64 = 9999;

impl Rule {
    /// Those from `from` on, of a series that starts at `start`; `start` itself only where the rule names it. `COUNT` and
    /// `UNTIL` are left to the caller.
    pub fn occurrences(&self, start: DateTime, from: DateTime) -> Occurrences {
        let rule = self.filled_in(start);
        let from = from.max(start);
        let at = rule.units(start, from).div_euclid(rule.interval) * rule.interval;
        let daily = if rule.frequency < Frequency::Hourly {
            times(&rule.hours, &rule.minutes, &rule.seconds)
        } else {
            Vec::new()
        };
        Occurrences { rule, start, from, at, days: Vec::new(), times: daily, picks: None, cursor: 0, budget: BUDGET }
    }

    /// The first one after `start` that is `ahead`, and how many occurrences on it is. Nothing where one that is not
    /// `allowed` comes before, or where `COUNT` ends first. Nothing before `from` is ahead.
    pub fn next(
        &self,
        start: DateTime,
        from: DateTime,
        allowed: impl Fn(DateTime) -> bool,
        ahead: impl Fn(DateTime) -> bool,
    ) -> Option<(DateTime, i64)> {
        // To count them, each must be seen.
        let from = if self.count.is_some() { start } else { from };
        let after = self.occurrences(start, from).filter(|time| *time > start);
        for (time, steps) in after.zip(1..) {
            if !allowed(time) || self.count.is_some_and(|count| steps >= count) {
                return None;
            }
            if ahead(time) {
                return Some((time, steps));
            }
        }
        None
    }

    /// With what the start says where the rule says nothing.
    fn filled_in(&self, start: DateTime) -> Self {
        let mut rule = self.clone();
        let lists = [&rule.weeks, &rule.year_days, &rule.month_days];
        let names_days = !rule.weekdays.is_empty() || lists.iter().any(|list| !list.is_empty());
        match rule.frequency {
            Frequency::Yearly if !names_days => {
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
            Frequency::Monthly if !names_days => rule.month_days.push(i64::from(start.day())),
            Frequency::Weekly if !names_days => rule.weekdays.push((0, start.weekday())),
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

    /// How many years, months, weeks … lie between the beginning of the start's and that of another time's.
    fn units(&self, start: DateTime, time: DateTime) -> i64 {
        let years = i64::from(time.year()) - i64::from(start.year());
        let days = |from: Date, to: Date| from.until((Unit::Day, to)).map_or(0, |span| i64::from(span.get_days()));
        let hours = || days(start.date(), time.date()) * 24 + i64::from(time.hour()) - i64::from(start.hour());
        match self.frequency {
            Frequency::Yearly => years,
            Frequency::Monthly => years * 12 + i64::from(time.month()) - i64::from(start.month()),
            Frequency::Weekly => match (self.week_begin(start.date()), self.week_begin(time.date())) {
                (Some(from), Some(to)) => days(from, to) / 7,
                _ => 0,
            },
            Frequency::Daily => days(start.date(), time.date()),
            Frequency::Hourly => hours(),
            Frequency::Minutely => hours() * 60 + i64::from(time.minute()) - i64::from(start.minute()),
        }
    }
}

pub struct Occurrences {
    rule: Rule,
    start: DateTime,
    from: DateTime,
    /// The next period, in units from that of the start.
    at: i64,
    /// Those of the present period.
    days: Vec<Date>,
    times: Vec<Time>,
    /// Where only some of them count: which.
    picks: Option<Vec<usize>>,
    cursor: usize,
    budget: u32,
}

impl Iterator for Occurrences {
    type Item = DateTime;

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
    fn nth_of_period(&self, n: usize) -> Option<DateTime> {
        let n = match &self.picks {
            Some(picks) => *picks.get(n)?,
            None => n,
        };
        let day = self.days.get(n.checked_div(self.times.len())?)?;
        Some(day.to_datetime(*self.times.get(n % self.times.len())?))
    }

    /// To the next period that has anything.
    fn advance(&mut self) -> Option<()> {
        loop {
            let found = match self.rule.frequency {
                Frequency::Hourly | Frequency::Minutely => self.within_a_day()?,
                _ => self.of_days()?,
            };
            if found {
                break;
            }
        }
        self.cursor = 0;
        self.picks = (!self.rule.positions.is_empty()).then(|| self.picked());
        if self.picks.is_none() {
            self.cursor = self.days.partition_point(|day| *day < self.from.date()) * self.times.len();
        }
        Some(())
    }

    fn picked(&self) -> Vec<usize> {
        let size = i64::try_from(self.days.len() * self.times.len()).unwrap_or(i64::MAX);
        let places = self.rule.positions.iter().map(|n| if *n > 0 { n - 1 } else { size + n });
        let mut places: Vec<_> = places.filter(|n| *n < size).filter_map(|n| usize::try_from(n).ok()).collect();
        places.sort_unstable();
        places.dedup();
        places
    }

    /// Looks at a year, a month, a week or a day; whether it has anything.
    fn of_days(&mut self) -> Option<bool> {
        let (first, length) = self.days_of_period()?;
        self.spend(length)?;
        self.at += self.rule.interval;
        self.days.clear();
        let mut day = Some(first);
        for _ in 0..length {
            let Some(date) = day.filter(|date| i64::from(date.year()) <= LAST_YEAR) else { break };
            if self.rule.is_day(date) {
                self.days.push(date);
            }
            day = date.tomorrow().ok();
        }
        Some(!self.days.is_empty())
    }

    /// The first day of the period, and how many it has; nothing past the calendar.
    fn days_of_period(&self) -> Option<(Date, u32)> {
        let start = self.start.date();
        let within = |date: Date| Some(date).filter(|date| i64::from(date.year()) <= LAST_YEAR);
        match self.rule.frequency {
            Frequency::Yearly => {
                let year = i64::from(start.year()) + self.at;
                let first = within(Date::new(i16::try_from(year).ok()?, 1, 1).ok()?)?;
                Some((first, u32::try_from(first.days_in_year()).ok()?))
            }
            Frequency::Monthly => {
                let first = within(start.first_of_month().checked_add(self.at.months()).ok()?)?;
                Some((first, u32::try_from(first.days_in_month()).ok()?))
            }
            Frequency::Weekly => {
                let begin = self.rule.week_begin(start)?;
                Some((within(begin.checked_add((self.at * 7).days()).ok()?)?, 7))
            }
            _ => Some((within(start.checked_add(self.at.days()).ok()?)?, 1)),
        }
    }

    /// Looks at an hour or a minute; whether it has anything. What has nothing for long is left behind at once.
    fn within_a_day(&mut self) -> Option<bool> {
        self.spend(1)?;
        let hourly = self.rule.frequency == Frequency::Hourly;
        let start = self.start.date().at(self.start.hour(), 0, 0, 0);
        let unit = if hourly { 60 } else { 1 };
        let start = if hourly { start } else { start + SignedDuration::from_mins(i64::from(self.start.minute())) };
        let time = start.checked_add(SignedDuration::from_mins(self.at.checked_mul(unit)?)).ok()?;
        if i64::from(time.year()) > LAST_YEAR {
            return None;
        }
        let hour = i64::from(time.hour());
        let minute = i64::from(time.minute());
        let is = |list: &[i64], n: i64| list.is_empty() || list.contains(&n);
        let left = if !self.rule.is_day(time.date()) {
            24 * 60 - (hour * 60 + minute)
        } else if !is(&self.rule.hours, hour) {
            60 - minute
        } else if !hourly && !is(&self.rule.minutes, minute) {
            1
        } else {
            let minutes = if hourly { &self.rule.minutes } else { &vec![minute] };
            (self.days, self.times) = (vec![time.date()], times(&[hour], minutes, &self.rule.seconds));
            self.at += self.rule.interval;
            return Some(true);
        };
        // The next period that begins when these minutes are over.
        let ahead = (left + unit - 1) / unit;
        self.at += (ahead + self.rule.interval - 1) / self.rule.interval * self.rule.interval;
        Some(false)
    }

    fn spend(&mut self, looks: u32) -> Option<()> {
        self.budget = self.budget.checked_sub(looks)?;
        Some(())
    }
}

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

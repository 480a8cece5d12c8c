//! Repetition: "every other Tuesday", "weekdays", "each month on the 1st", as a rule of RFC 5545.

mod limit;
mod month;
mod week;

use jiff::Timestamp;
use jiff::civil::{Date, Weekday};

use super::names::{self, Unit};
use super::{Day, Parts, Scan, day, holidays, offset, quarter};
use crate::lexicon;
use crate::numbers;
pub(super) use limit::read as limit;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Frequency {
    Minutely,
    Hourly,
    Daily,
    Weekly,
    Monthly,
    Yearly,
}

/// When a repetition ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    /// On this day; the moment is the end of what was named.
    Until(Date, Timestamp),
    /// After so many times.
    Count(i64),
}

/// A repetition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Repeat {
    pub(crate) frequency: Frequency,
    pub(crate) interval: i64,
    pub(crate) days: Vec<Weekday>,
    /// Which of these weekdays of the month: 1 is the first, -1 the last.
    pub(crate) nth: Vec<i8>,
    /// Whether `nth` counts all of these weekdays together: the last working day of the month.
    pub(crate) together: bool,
    /// Days of the month; -1 is the last.
    pub(crate) month_days: Vec<i8>,
    months: Vec<i8>,
    /// The part of the day it names itself ("every morning").
    pub(crate) part: Option<names::Part>,
    pub(crate) limit: Option<Limit>,
    /// The day of the year it names itself ("every Christmas").
    pub(crate) day: Option<Day>,
    /// Whether the day is left to the first date.
    anchored: bool,
}

impl Repeat {
    fn new(frequency: Frequency, interval: i64) -> Self {
        Self {
            frequency,
            interval: interval.clamp(1, 9999),
            days: Vec::new(),
            nth: Vec::new(),
            together: false,
            month_days: Vec::new(),
            months: Vec::new(),
            part: None,
            limit: None,
            day: None,
            anchored: false,
        }
    }

    fn weekly(days: Vec<Weekday>, interval: i64) -> Self {
        Self { days, ..Self::new(Frequency::Weekly, interval) }
    }

    /// Takes over what a second repetition adds ("weekly … every Friday"); `false` if they do not go together.
    pub(crate) fn join(&mut self, other: Self) -> bool {
        let daily_part = other.frequency == Frequency::Daily && other.interval == 1;
        if self.frequency != other.frequency && !daily_part && self.frequency != Frequency::Daily {
            return false;
        }
        let limit = self.limit.or(other.limit);
        if self.frequency == Frequency::Daily && !daily_part {
            let part = self.part;
            *self = other;
            self.part = self.part.or(part);
            self.limit = limit;
            return true;
        }
        if self.days.is_empty() && !other.days.is_empty() {
            // "weekly, every Friday": the first date says the day.
            self.anchored = other.days.len() == 1 && other.interval == 1 && self.interval == 1 && other.nth.is_empty();
            self.days = other.days;
            self.nth = other.nth;
            self.together = other.together;
        }
        if self.month_days.is_empty() {
            self.month_days = other.month_days;
        }
        self.interval = self.interval.max(other.interval);
        self.part = self.part.or(other.part);
        self.limit = limit;
        true
    }

    /// The rule. A day of the month that stands beside a monthly repetition becomes part of it.
    pub(crate) fn rule(&self, parts: &Parts) -> String {
        let frequency = match self.frequency {
            Frequency::Minutely => "MINUTELY",
            Frequency::Hourly => "HOURLY",
            Frequency::Daily => "DAILY",
            Frequency::Weekly => "WEEKLY",
            Frequency::Monthly => "MONTHLY",
            Frequency::Yearly => "YEARLY",
        };
        let mut rule = format!("FREQ={frequency}");
        if self.interval > 1 {
            rule.push_str(&format!(";INTERVAL={}", self.interval));
        }
        if !self.months.is_empty() {
            rule.push_str(&format!(";BYMONTH={}", list(&self.months)));
        }
        if !self.days.is_empty() && !self.anchored {
            rule.push_str(&format!(";BYDAY={}", self.numbered_days().join(",")));
        }
        let beside = match parts.day {
            Some(Day::Monthly(day)) if self.frequency == Frequency::Monthly => vec![day],
            _ => Vec::new(),
        };
        let month_days = if self.month_days.is_empty() { &beside } else { &self.month_days };
        if !month_days.is_empty() {
            rule.push_str(&format!(";BYMONTHDAY={}", list(month_days)));
        }
        if self.together {
            rule.push_str(&format!(";BYSETPOS={}", list(&self.nth)));
        }
        match self.limit {
            Some(Limit::Count(n)) => rule.push_str(&format!(";COUNT={n}")),
            Some(Limit::Until(date, end)) => rule.push_str(&format!(";UNTIL={}", self.until(parts, date, end))),
            None => {}
        }
        rule
    }

    /// "MO", or with its places in the month "1MO", "3MO".
    fn numbered_days(&self) -> Vec<String> {
        let places = if self.together { &[] } else { self.nth.as_slice() };
        let named = |day: &Weekday| match places {
            [] => vec![short(*day).to_owned()],
            places => places.iter().map(|n| format!("{n}{}", short(*day))).collect(),
        };
        self.days.iter().flat_map(named).collect()
    }

    /// A day for what repeats on days, a moment in UTC for what repeats at a time (RFC 5545, 3.3.10).
    fn until(&self, parts: &Parts, date: Date, end: Timestamp) -> String {
        let timed = parts.clock.is_some() || parts.part.is_some() || self.part.is_some();
        if timed || matches!(self.frequency, Frequency::Minutely | Frequency::Hourly) {
            end.strftime("%Y%m%dT%H%M%SZ").to_string()
        } else {
            date.strftime("%Y%m%d").to_string()
        }
    }
}

fn list(numbers: &[i8]) -> String {
    numbers.iter().map(i8::to_string).collect::<Vec<_>>().join(",")
}

fn short(day: Weekday) -> &'static str {
    match day {
        Weekday::Monday => "MO",
        Weekday::Tuesday => "TU",
        Weekday::Wednesday => "WE",
        Weekday::Thursday => "TH",
        Weekday::Friday => "FR",
        Weekday::Saturday => "SA",
        Weekday::Sunday => "SU",
    }
}

type Read = Option<(Repeat, usize)>;

pub(crate) fn read(scan: &Scan, i: usize, own: usize, parts: &Parts) -> Read {
    word(scan, i)
        .or_else(|| every(scan, i))
        .or_else(|| month::edge(scan, i))
        .or_else(|| month::of_every(scan, i))
        .or_else(|| month::beside(scan, i, parts))
        .or_else(|| week::plural(scan, i))
        .or_else(|| times_a(scan, i))
        .or_else(|| plural_part(scan, i, own))
}

/// "daily", "weekly", "on alternate Fridays", "on a monthly basis", …
fn word(scan: &Scan, i: usize) -> Read {
    let repeat = match scan.at(i) {
        "a" if scan.at(i + 2) == "basis" => return word(scan, i + 1),
        "daily" | "everyday" | "nightly" | "everynight" => Repeat::new(Frequency::Daily, 1),
        "hourly" => Repeat::new(Frequency::Hourly, 1),
        "weekly" | "semiweekly" | "semi-weekly" => Repeat::new(Frequency::Weekly, 1),
        "bi" if scan.at(i + 1) == "weekly" => return Some((Repeat::new(Frequency::Weekly, 2), i + 2)),
        "biweekly" | "bi-weekly" | "fortnightly" => Repeat::new(Frequency::Weekly, 2),
        "monthly" | "semimonthly" | "semi-monthly" => Repeat::new(Frequency::Monthly, 1),
        "bimonthly" | "bi-monthly" => Repeat::new(Frequency::Monthly, 2),
        "quarterly" => Repeat::new(Frequency::Monthly, 3),
        "half-yearly" | "semiannually" | "semi-annually" | "semiannual" | "biannually" | "bi-annually" => {
            Repeat::new(Frequency::Monthly, 6)
        }
        "yearly" | "annually" | "annual" => Repeat::new(Frequency::Yearly, 1),
        "biennially" | "biennial" => Repeat::new(Frequency::Yearly, 2),
        "weekdays" | "workdays" | "weekday" | "week" => return week::working(scan, i),
        "weekend" => return week::weekend_parts(scan, i),
        "weekends" => Repeat::weekly(week::WEEKEND.to_vec(), 1),
        "alternate" | "alternating" => return counted(scan, i + 1, 2),
        _ => return None,
    };
    let part = (scan.at(i) == "nightly").then_some(names::Part::Night);
    let end = i + 1;
    let end = if scan.phrase(end, lexicon::repeats::BASIS).is_some() { end + 1 } else { end };
    Some((Repeat { part, ..repeat }, end))
}

/// "every …", "each …".
fn every(scan: &Scan, i: usize) -> Read {
    let i = i + scan.phrase(i, lexicon::repeats::EVERY_FILLERS).filter(|n| is_every(scan, i + n)).unwrap_or(0);
    if !is_every(scan, i) {
        return None;
    }
    let mut at = i + 1;
    at += usize::from(matches!(scan.at(at), "single" | "and" | "of" | "the"));
    if matches!(scan.at(at), "other" | "alternate" | "alternating") {
        return counted(scan, at + 1, 2);
    }
    if let Some(named) = of_the_year(scan, at) {
        return Some(named);
    }
    if let Some((nth, len)) = numbers::ordinal(scan.words, at).filter(|(n, _)| *n <= 31) {
        return month::nth(scan, at)
            .or_else(|| month::first_weekday(scan, at))
            .or_else(|| counted(scan, at + len, nth))
            .or_else(|| month::days(scan, at));
    }
    if matches!(scan.at(at), "last" | "end" | "month" | "month-end") {
        let named = month::nth(scan, at).or_else(|| month::first_weekday(scan, at)).or_else(|| month::end(scan, at));
        if named.is_some() || scan.at(at) == "last" {
            return named;
        }
    }
    fraction(scan, at).or_else(|| several(scan, at)).or_else(|| counted(scan, at, 1))
}

fn is_every(scan: &Scan, i: usize) -> bool {
    match scan.at(i) {
        "every" | "each" | "evry" | "evey" | "evrey" | "eveyr" => true,
        "ever" => names::unit(scan.at(i + 1)).is_some(),
        _ => false,
    }
}

/// "half hour", "hour and a half", "half year".
fn fraction(scan: &Scan, at: usize) -> Read {
    if let Some(len) = scan.phrase(at, lexicon::repeats::HALF_HOUR) {
        return Some((Repeat::new(Frequency::Minutely, 30), at + len));
    }
    if let Some(len) = scan.phrase(at, lexicon::repeats::QUARTER_HOUR) {
        return Some((Repeat::new(Frequency::Minutely, 15), at + len));
    }
    if let Some(len) = scan.phrase(at, lexicon::repeats::HOUR_AND_A_HALF) {
        return Some((Repeat::new(Frequency::Minutely, 90), at + len));
    }
    let len = scan.phrase(at, lexicon::repeats::HALF_YEAR)?;
    Some((Repeat::new(Frequency::Monthly, 6), at + len))
}

/// "couple of days", "3 weeks", "15mins", "1.5 hours" after "every".
fn several(scan: &Scan, at: usize) -> Read {
    let couple = scan
        .phrase(at, lexicon::repeats::COUPLE)
        .map(|n| (2, n))
        .or_else(|| scan.phrase(at, lexicon::repeats::FEW).map(|n| (3, n)));
    if let Some((n, len)) = couple.or_else(|| numbers::cardinal(scan.words, at)) {
        return counted(scan, at + len, n);
    }
    let (minutes, unit, end) = offset::compact(scan, at)?;
    match unit {
        Unit::Minute => Some((Repeat::new(Frequency::Minutely, minutes), end)),
        Unit::Hour if minutes % 60 == 0 => Some((Repeat::new(Frequency::Hourly, minutes / 60), end)),
        Unit::Hour => Some((Repeat::new(Frequency::Minutely, minutes), end)),
        unit => Some((of_unit(unit, minutes)?, end)),
    }
}

fn of_unit(unit: Unit, interval: i64) -> Option<Repeat> {
    Some(match unit {
        Unit::Second => return None,
        Unit::Minute => Repeat::new(Frequency::Minutely, interval),
        Unit::Hour => Repeat::new(Frequency::Hourly, interval),
        Unit::Day => Repeat::new(Frequency::Daily, interval),
        Unit::Week => Repeat::new(Frequency::Weekly, interval),
        Unit::Fortnight => Repeat::new(Frequency::Weekly, interval.saturating_mul(2)),
        Unit::Month => Repeat::new(Frequency::Monthly, interval),
        Unit::Quarter => Repeat::new(Frequency::Monthly, interval.saturating_mul(3)),
        Unit::Year => Repeat::new(Frequency::Yearly, interval),
        Unit::Decade => Repeat::new(Frequency::Yearly, interval.saturating_mul(10)),
    })
}

/// "3 weeks", "Tuesday", "morning" after "every", each `interval` times.
fn counted(scan: &Scan, at: usize, interval: i64) -> Read {
    let word = scan.at(at);
    if let Some((repeat, end)) = week::named(scan, at, interval) {
        return Some((repeat, end));
    }
    if let Some((part, _)) = names::part(word) {
        return Some((Repeat { part: Some(part), ..Repeat::new(Frequency::Daily, interval) }, at + 1));
    }
    week::with_days(scan, at + 1, of_unit(names::unit(word)?, interval)?)
}

/// "June 3rd", "3rd of June", "Christmas", "January and July" after "every".
fn of_the_year(scan: &Scan, at: usize) -> Read {
    let yearly = Repeat::new(Frequency::Yearly, 1);
    if let Some((day @ Day::Annual { .. }, end)) = day::month_and_day(scan, at).or_else(|| day::day_and_month(scan, at))
    {
        return Some((Repeat { day: Some(day), ..yearly }, end));
    }
    if let Some((date, end)) = holidays::named(scan, at).filter(|(_, end)| scan.closes(*end)) {
        return Some((Repeat { day: Some(Day::Fixed(date)), ..yearly }, end));
    }
    if quarter::is_season(scan.at(at)) {
        let (start, _, end) = quarter::read(scan, at, 1).filter(|(.., end)| scan.closes(*end))?;
        return Some((Repeat { day: Some(Day::Fixed(start)), ..yearly }, end));
    }
    let (first, mut end) = names::month(scan.at(at)).map(|month| (month, at + 1))?;
    let mut months = vec![first];
    while let Some(month) = next_month(scan, end) {
        months.push(month);
        end += 2;
    }
    let start = Day::Annual { month: first, day: 1 };
    let months = if months.len() > 1 { months } else { Vec::new() };
    (months.len() > 1 || scan.closes(end)).then_some((Repeat { months, day: Some(start), ..yearly }, end))
}

fn next_month(scan: &Scan, end: usize) -> Option<i8> {
    let linked = matches!(scan.at(end), "," | "and" | "&" | "/");
    names::month(scan.at(end + 1)).filter(|_| linked)
}

/// "mornings at 9", "in the evenings".
fn plural_part(scan: &Scan, i: usize, own: usize) -> Read {
    let (part, _) = names::part(scan.at(i)).filter(|(_, plural)| *plural)?;
    let fits = i > own || scan.at(i + 1) == "at" || scan.is_whole(i, i + 1);
    fits.then_some((Repeat { part: Some(part), ..Repeat::new(Frequency::Daily, 1) }, i + 1))
}

/// "once a week", "three times a day", "twice daily", "3x a week", "2x/month".
fn times_a(scan: &Scan, i: usize) -> Read {
    let figure = |word: &str| word.strip_suffix('x').and_then(numbers::figures).is_some();
    let (at, loose) = match scan.at(i) {
        "once" | "twice" => (i + 1, false),
        word if figure(word) => (i + 1, true),
        _ => {
            let (_, len) = numbers::cardinal(scan.words, i)?;
            (i + len + scan.phrase(i + len, lexicon::repeats::TIMES)?, false)
        }
    };
    if let Some((repeat, end)) = word(scan, at).filter(|_| names::unit(scan.at(at)).is_none()) {
        return Some((repeat, end));
    }
    if scan.at(at) == "in"
        && let Some((n, len)) = numbers::cardinal(scan.words, at + 1)
    {
        return counted(scan, at + 1 + len, n);
    }
    let per = scan.phrase(at, lexicon::repeats::PER).or(loose.then_some(0))?;
    counted(scan, at + per, 1)
}

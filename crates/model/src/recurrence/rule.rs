//! An RRULE, part by part. Lists are sorted and free of doubles; nothing here knows a date.

use jiff::Timestamp;
use jiff::civil::{Date, DateTime, Weekday};
use jiff::tz::{Offset, TimeZone};

const MAX_LENGTH: usize = 500;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Frequency {
    Yearly,
    Monthly,
    Weekly,
    Daily,
    Hourly,
    Minutely,
}

/// The last time that a rule allows, as it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    Day(Date),
    Local(DateTime),
    Instant(Timestamp),
}

/// A rule whose every part is valid. An empty list leaves the choice open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    pub frequency: Frequency,
    pub interval: i64,
    /// Occurrences in all, the start included.
    pub count: Option<i64>,
    pub until: Option<Until>,
    pub week_start: Weekday,
    pub months: Vec<i64>,
    /// From the end of the year where negative; so are the next three.
    pub weeks: Vec<i64>,
    pub year_days: Vec<i64>,
    pub month_days: Vec<i64>,
    /// Which one of the month or year; 0 is every one.
    pub weekdays: Vec<(i64, Weekday)>,
    pub hours: Vec<i64>,
    pub minutes: Vec<i64>,
    pub seconds: Vec<i64>,
    /// Which ones of a year, a month, a week … remain.
    pub positions: Vec<i64>,
}

impl Rule {
    /// The rule that upper-case text says, or what is wrong with it.
    pub fn read(text: &str) -> Result<Self, String> {
        if text.len() > MAX_LENGTH {
            return Err(format!("it is longer than {MAX_LENGTH} characters"));
        }
        let mut rule = Self::every(Frequency::Daily);
        let mut seen = Vec::new();
        for part in text.split(';') {
            let (name, value) = part.split_once('=').ok_or_else(|| format!("'{part}' is not NAME=VALUE"))?;
            if seen.contains(&name) {
                return Err(format!("{name} is given twice"));
            }
            seen.push(name);
            rule.take(name, value)?.ok_or_else(|| format!("{name} cannot be '{value}'"))?;
        }
        if !seen.contains(&"FREQ") {
            return Err("FREQ is missing".to_owned());
        }
        if rule.count.is_some() && rule.until.is_some() {
            return Err("COUNT and UNTIL exclude each other".to_owned());
        }
        Ok(rule)
    }

    /// Every day, every week … without a word more.
    pub fn every(frequency: Frequency) -> Self {
        Self {
            frequency,
            interval: 1,
            count: None,
            until: None,
            week_start: Weekday::Monday,
            months: Vec::new(),
            weeks: Vec::new(),
            year_days: Vec::new(),
            month_days: Vec::new(),
            weekdays: Vec::new(),
            hours: Vec::new(),
            minutes: Vec::new(),
            seconds: Vec::new(),
            positions: Vec::new(),
        }
    }

    /// Takes one part; nothing where the value is not one of that part.
    fn take(&mut self, name: &str, value: &str) -> Result<Option<()>, String> {
        Ok(match name {
            "FREQ" => frequency(value).map(|frequency| self.frequency = frequency),
            "INTERVAL" => number(value, 1, 9999).map(|n| self.interval = n),
            "COUNT" => number(value, 1, 99_999).map(|n| self.count = Some(n)),
            "UNTIL" => until(value).map(|until| self.until = Some(until)),
            "WKST" => weekday(value).map(|day| self.week_start = day),
            "BYDAY" => each(value, numbered_weekday).map(|days| self.weekdays = days),
            "BYMONTH" => each(value, |v| number(v, 1, 12)).map(|list| self.months = sorted(list)),
            "BYMONTHDAY" => each(value, |v| signed(v, 31)).map(|list| self.month_days = sorted(list)),
            "BYYEARDAY" => each(value, |v| signed(v, 366)).map(|list| self.year_days = sorted(list)),
            "BYWEEKNO" => each(value, |v| signed(v, 53)).map(|list| self.weeks = sorted(list)),
            "BYSETPOS" => each(value, |v| signed(v, 366)).map(|list| self.positions = sorted(list)),
            "BYHOUR" => each(value, |v| number(v, 0, 23)).map(|list| self.hours = sorted(list)),
            "BYMINUTE" => each(value, |v| number(v, 0, 59)).map(|list| self.minutes = sorted(list)),
            "BYSECOND" => each(value, |v| number(v, 0, 59)).map(|list| self.seconds = sorted(list)),
            _ => return Err(format!("{name} is not part of an RRULE")),
        })
    }

    /// Whether it names times of day, and not only days.
    pub fn is_timed(&self) -> bool {
        let named = [&self.hours, &self.minutes, &self.seconds];
        self.frequency >= Frequency::Hourly || named.iter().any(|list| !list.is_empty())
    }

    /// Whether a time is not beyond the last one; `zone` is whose clock shows it.
    pub fn allows(&self, time: DateTime, zone: &TimeZone) -> bool {
        match self.until {
            None => true,
            Some(Until::Day(last)) => time.date() <= last,
            Some(Until::Local(last)) => time <= last,
            Some(Until::Instant(last)) => time.to_zoned(zone.clone()).is_ok_and(|time| time.timestamp() <= last),
        }
    }

    /// Whether a day is not beyond the last one; the day on which the last time falls is allowed as a whole.
    pub fn allows_day(&self, day: Date, zone: &TimeZone) -> bool {
        match self.until {
            None => true,
            Some(Until::Day(last)) => day <= last,
            Some(Until::Local(last)) => day <= last.date(),
            Some(Until::Instant(last)) => day <= last.to_zoned(zone.clone()).date(),
        }
    }
}

fn frequency(word: &str) -> Option<Frequency> {
    Some(match word {
        "YEARLY" => Frequency::Yearly,
        "MONTHLY" => Frequency::Monthly,
        "WEEKLY" => Frequency::Weekly,
        "DAILY" => Frequency::Daily,
        "HOURLY" => Frequency::Hourly,
        "MINUTELY" => Frequency::Minutely,
        _ => return None,
    })
}

fn each<T>(list: &str, read: impl Fn(&str) -> Option<T>) -> Option<Vec<T>> {
    list.split(',').map(read).collect()
}

fn sorted(mut list: Vec<i64>) -> Vec<i64> {
    list.sort_unstable();
    list.dedup();
    list
}

fn number(text: &str, min: i64, max: i64) -> Option<i64> {
    let digits = text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|n| digits && (min..=max).contains(n))
}

/// 1 to `max`, counted from the start or, with a minus sign, from the end.
fn signed(text: &str, max: i64) -> Option<i64> {
    let size = number(text.strip_prefix(['-', '+']).unwrap_or(text), 1, max)?;
    Some(if text.starts_with('-') { -size } else { size })
}

fn weekday(text: &str) -> Option<Weekday> {
    Some(match text {
        "MO" => Weekday::Monday,
        "TU" => Weekday::Tuesday,
        "WE" => Weekday::Wednesday,
        "TH" => Weekday::Thursday,
        "FR" => Weekday::Friday,
        "SA" => Weekday::Saturday,
        "SU" => Weekday::Sunday,
        _ => return None,
    })
}

/// `MO`, or the n-th of the month or year: `2MO`, `-1FR`.
fn numbered_weekday(text: &str) -> Option<(i64, Weekday)> {
    let (at, _) = text.char_indices().nth_back(1)?;
    let nth = if at == 0 { 0 } else { signed(&text[..at], 53)? };
    Some((nth, weekday(&text[at..])?))
}

fn until(text: &str) -> Option<Until> {
    if let Ok(day) = Date::strptime("%Y%m%d", text) {
        return Some(Until::Day(day));
    }
    let time = |text: &str| DateTime::strptime("%Y%m%dT%H%M%S", text).ok();
    match text.strip_suffix('Z') {
        Some(utc) => Offset::UTC.to_timestamp(time(utc)?).ok().map(Until::Instant),
        None => time(text).map(Until::Local),
    }
}

//! The parts of an RRULE and their parsing. Lists of numbers are sorted and have no duplicates.

use jiff::civil::{Date, DateTime, Weekday};
use jiff::tz::{Offset, TimeZone};
use jiff::{SignedDuration, Timestamp};

const MAX_RULE_BYTES: usize = 500;

/// The `FREQ` of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Frequency {
    Yearly,
    Monthly,
    Weekly,
    Daily,
    Hourly,
    Minutely,
}

/// The `UNTIL` of a rule: the last allowed time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// The last day. All of its times are allowed.
    Day(Date),
    /// A local time without a time zone.
    Local(DateTime),
    /// A time in UTC.
    Instant(Timestamp),
}

/// A valid rule. An empty list means no restriction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecurrenceRule {
    pub frequency: Frequency,
    pub interval: i64,
    /// The total number of occurrences, including the start.
    pub count: Option<i64>,
    pub until: Option<Until>,
    pub week_start: Weekday,
    pub months: Vec<i64>,
    /// Negative numbers count from the end of the year.
    pub weeks: Vec<i64>,
    /// Negative numbers count from the end of the year.
    pub year_days: Vec<i64>,
    /// Negative numbers count from the end of the month.
    pub month_days: Vec<i64>,
    /// The number is the position in the month or year. 0 means every such weekday.
    pub weekdays: Vec<(i64, Weekday)>,
    pub hours: Vec<i64>,
    pub minutes: Vec<i64>,
    pub seconds: Vec<i64>,
    /// `BYSETPOS`: the positions that are selected in each period.
    pub positions: Vec<i64>,
}

impl RecurrenceRule {
    /// Parses parts `NAME=VALUE` in upper case, separated by `;`, without the prefix `RRULE:`. Fails with the reason if
    /// a part is empty, unknown, malformed or repeated, or if `FREQ` is missing. Also fails if both `COUNT` and `UNTIL`
    /// are given, or if the text has more than 500 bytes. Does not check that the rule has an occurrence.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.len() > MAX_RULE_BYTES {
            return Err(format!("it is longer than {MAX_RULE_BYTES} bytes"));
        }
        let mut rule = Self::new(Frequency::Daily);
        let mut seen = Vec::new();
        for part in text.split(';') {
            let (name, value) = part.split_once('=').ok_or_else(|| format!("'{part}' is not NAME=VALUE"))?;
            if seen.contains(&name) {
                return Err(format!("{name} is given twice"));
            }
            seen.push(name);
            rule.set_part(name, value)?.ok_or_else(|| format!("{name} cannot be '{value}'"))?;
        }
        if !seen.contains(&"FREQ") {
            return Err("FREQ is missing".to_owned());
        }
        if rule.count.is_some() && rule.until.is_some() {
            return Err("COUNT and UNTIL exclude each other".to_owned());
        }
        Ok(rule)
    }

    /// Returns the rule with this frequency and no other part: the interval is 1, and weeks start on Monday.
    pub fn new(frequency: Frequency) -> Self {
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

    /// Sets one part. Lists of numbers are sorted, without duplicates. Returns `Ok(None)` without a change if the value
    /// or an entry of a list is malformed or out of range. `INTERVAL` is 1 to 9999 and `COUNT` 1 to 99999. Fails if the
    /// name is unknown.
    fn set_part(&mut self, name: &str, value: &str) -> Result<Option<()>, String> {
        Ok(match name {
            "FREQ" => frequency(value).map(|frequency| self.frequency = frequency),
            "INTERVAL" => number(value, 1, 9999).map(|n| self.interval = n),
            "COUNT" => number(value, 1, 99_999).map(|n| self.count = Some(n)),
            "UNTIL" => until(value).map(|until| self.until = Some(until)),
            "WKST" => weekday(value).map(|day| self.week_start = day),
            "BYDAY" => parse_list(value, numbered_weekday).map(|days| self.weekdays = days),
            "BYMONTH" => parse_list(value, |v| number(v, 1, 12)).map(|list| self.months = sorted(list)),
            "BYMONTHDAY" => parse_list(value, |v| signed(v, 31)).map(|list| self.month_days = sorted(list)),
            "BYYEARDAY" => parse_list(value, |v| signed(v, 366)).map(|list| self.year_days = sorted(list)),
            "BYWEEKNO" => parse_list(value, |v| signed(v, 53)).map(|list| self.weeks = sorted(list)),
            "BYSETPOS" => parse_list(value, |v| signed(v, 366)).map(|list| self.positions = sorted(list)),
            "BYHOUR" => parse_list(value, |v| number(v, 0, 23)).map(|list| self.hours = sorted(list)),
            "BYMINUTE" => parse_list(value, |v| number(v, 0, 59)).map(|list| self.minutes = sorted(list)),
            "BYSECOND" => parse_list(value, |v| number(v, 0, 59)).map(|list| self.seconds = sorted(list)),
            _ => return Err(format!("{name} is not part of an RRULE")),
        })
    }

    /// Returns `true` if the rule selects times of day, and not only days.
    pub fn has_time_of_day(&self) -> bool {
        let times = [&self.hours, &self.minutes, &self.seconds];
        self.frequency >= Frequency::Hourly || times.iter().any(|list| !list.is_empty())
    }

    /// Returns the distance of the occurrences of an hourly or minutely rule without conditions such as `BYHOUR`. Returns
    /// `None` for other rules.
    pub fn fixed_period(&self) -> Option<SignedDuration> {
        let minutes = match self.frequency {
            Frequency::Hourly => 60,
            Frequency::Minutely => 1,
            _ => return None,
        };
        let lists = [&self.months, &self.weeks, &self.year_days, &self.month_days, &self.hours, &self.minutes];
        let is_restricted = lists.iter().any(|list| !list.is_empty());
        let is_simple =
            !is_restricted && self.weekdays.is_empty() && self.seconds.is_empty() && self.positions.is_empty();
        is_simple.then(|| SignedDuration::from_mins(minutes * self.interval))
    }

    /// Returns `true` if the local time in `zone` is not after `UNTIL`, or if the rule has no `UNTIL`. Other parts of
    /// the rule are not checked.
    pub fn allows(&self, time: DateTime, zone: &TimeZone) -> bool {
        match self.until {
            None => true,
            Some(Until::Day(last)) => time.date() <= last,
            Some(Until::Local(last)) => time <= last,
            Some(Until::Instant(last)) => time.to_zoned(zone.clone()).is_ok_and(|time| time.timestamp() <= last),
        }
    }

    /// Returns `true` if the day is not after the day of `UNTIL`, or if the rule has no `UNTIL`. An `UNTIL` in UTC is
    /// converted to `zone`. The whole day of `UNTIL` is included.
    pub fn allows_day(&self, day: Date, zone: &TimeZone) -> bool {
        match self.until {
            None => true,
            Some(Until::Day(last)) => day <= last,
            Some(Until::Local(last)) => day <= last.date(),
            Some(Until::Instant(last)) => day <= last.to_zoned(zone.clone()).date(),
        }
    }
}

/// Returns the frequency with this name. Returns `None` for other words, also for `SECONDLY`.
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

fn parse_list<T>(list: &str, parse: impl Fn(&str) -> Option<T>) -> Option<Vec<T>> {
    list.split(',').map(parse).collect()
}

fn sorted(mut list: Vec<i64>) -> Vec<i64> {
    list.sort_unstable();
    list.dedup();
    list
}

/// Parses digits without a sign. Returns `None` if the number is malformed or not between `min` and `max`.
fn number(text: &str, min: i64, max: i64) -> Option<i64> {
    let digits = text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|n| digits && (min..=max).contains(n))
}

/// Parses a number from 1 to `max` with an optional sign. Returns `None` for everything else.
fn signed(text: &str, max: i64) -> Option<i64> {
    let size = number(text.strip_prefix(['-', '+']).unwrap_or(text), 1, max)?;
    Some(if text.starts_with('-') { -size } else { size })
}

/// Returns the weekday with this abbreviation, `MO` to `SU`. Returns `None` for everything else.
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

/// Parses a weekday with an optional position in the month or year: `MO`, `2MO`, `-1FR`. The position is 0 if it is
/// absent. Returns `None` for everything else, and for a position above 53.
fn numbered_weekday(text: &str) -> Option<(i64, Weekday)> {
    let (at, _) = text.char_indices().nth_back(1)?;
    let nth = if at == 0 { 0 } else { signed(&text[..at], 53)? };
    Some((nth, weekday(&text[at..])?))
}

/// Parses a day (`20260131`), a local time (`20260131T150000`) or a time in UTC (`20260131T150000Z`). Returns `None`
/// for everything else.
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

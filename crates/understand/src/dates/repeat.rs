//! Repetition: "every other Tuesday", "weekdays", "each month on the 1st", as a rule of RFC 5545.

use crate::phrases::phrases;
use jiff::civil::Weekday;

use super::names::{self, Form, Unit};
use super::{Day, Parts, Scan};
use crate::numbers;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Frequency {
    Minutely,
    Hourly,
    Daily,
    Weekly,
    Monthly,
    Yearly,
}

/// A repetition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Repeat {
    pub(crate) frequency: Frequency,
    pub(crate) interval: i64,
    pub(crate) days: Vec<Weekday>,
    /// Which of these weekdays of the month: 1 is the first, -1 the last.
    pub(crate) nth: Option<i8>,
    pub(crate) month_day: Option<i8>,
    /// The part of the day it names itself ("every morning").
    pub(crate) part: Option<names::Part>,
    /// Whether the day is left to the first date.
    anchored: bool,
}

impl Repeat {
    fn new(frequency: Frequency, interval: i64) -> Self {
        Self {
            frequency,
            interval: interval.clamp(1, 9999),
            days: Vec::new(),
            nth: None,
            month_day: None,
            part: None,
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
        if self.frequency == Frequency::Daily && !daily_part {
            let part = self.part;
            *self = other;
            self.part = self.part.or(part);
            return true;
        }
        if self.days.is_empty() && !other.days.is_empty() {
            // "weekly, every Friday": the first date says the day.
            self.anchored = other.days.len() == 1 && other.interval == 1;
            self.days = other.days;
        }
        self.interval = self.interval.max(other.interval);
        self.month_day = self.month_day.or(other.month_day);
        self.part = self.part.or(other.part);
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
        if !self.days.is_empty() && !self.anchored {
            let nth = self.nth.map(|n| n.to_string()).unwrap_or_default();
            let days: Vec<String> = self.days.iter().map(|day| format!("{nth}{}", short(*day))).collect();
            rule.push_str(&format!(";BYDAY={}", days.join(",")));
        }
        let beside = match parts.day {
            Some(Day::Monthly(day)) if self.frequency == Frequency::Monthly => Some(day),
            _ => None,
        };
        if let Some(day) = self.month_day.or(beside) {
            rule.push_str(&format!(";BYMONTHDAY={day}"));
        }
        rule
    }
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

const WORKDAYS: [Weekday; 5] =
    [Weekday::Monday, Weekday::Tuesday, Weekday::Wednesday, Weekday::Thursday, Weekday::Friday];
const WEEKEND: [Weekday; 2] = [Weekday::Saturday, Weekday::Sunday];

type Read = Option<(Repeat, usize)>;

pub(crate) fn read(scan: &Scan, i: usize, own: usize) -> Read {
    word(scan, i)
        .or_else(|| every(scan, i))
        .or_else(|| of_every_month(scan, i))
        .or_else(|| plural_days(scan, i))
        .or_else(|| times_a(scan, i))
        .or_else(|| plural_part(scan, i, own))
}

/// "daily", "weekly", …
fn word(scan: &Scan, i: usize) -> Read {
    let repeat = match scan.at(i) {
        "daily" | "everyday" | "nightly" | "everynight" => Repeat::new(Frequency::Daily, 1),
        "hourly" => Repeat::new(Frequency::Hourly, 1),
        "weekly" => Repeat::new(Frequency::Weekly, 1),
        "biweekly" | "bi-weekly" | "fortnightly" => Repeat::new(Frequency::Weekly, 2),
        "monthly" => Repeat::new(Frequency::Monthly, 1),
        "bimonthly" | "bi-monthly" => Repeat::new(Frequency::Monthly, 2),
        "quarterly" => Repeat::new(Frequency::Monthly, 3),
        "yearly" | "annually" | "annual" => Repeat::new(Frequency::Yearly, 1),
        "weekdays" | "workdays" => Repeat::weekly(WORKDAYS.to_vec(), 1),
        "weekends" => Repeat::weekly(WEEKEND.to_vec(), 1),
        "week" if scan.at(i + 1) == "days" => return Some((Repeat::weekly(WORKDAYS.to_vec(), 1), i + 2)),
        _ => return None,
    };
    let part = (scan.at(i) == "nightly").then_some(names::Part::Night);
    let end = i + 1;
    let end = if scan.phrase(end, phrases!("basis")).is_some() { end + 1 } else { end };
    Some((Repeat { part, ..repeat }, end))
}

/// "every …", "each …".
fn every(scan: &Scan, i: usize) -> Read {
    if !matches!(scan.at(i), "every" | "each" | "evry" | "ever" | "evey")
        || scan.at(i) == "ever" && names::unit(scan.at(i + 1)).is_none()
    {
        return None;
    }
    let mut at = i + 1;
    at += usize::from(matches!(scan.at(at), "single" | "and" | "of" | "the"));
    if scan.at(at) == "other" {
        return counted(scan, at + 1, 2);
    }
    if let Some((nth, len)) = numbers::ordinal(scan.words, at).filter(|(n, _)| *n <= 31) {
        return nth_of_month(scan, at).or_else(|| counted(scan, at + len, nth)).or_else(|| every_nth(scan, at));
    }
    if scan.at(at) == "last" {
        return nth_of_month(scan, at);
    }
    if let Some(len) = scan.phrase(at, phrases!("half an hour | half hour | half-hour")) {
        return Some((Repeat::new(Frequency::Minutely, 30), at + len));
    }
    let couple = scan
        .phrase(at, phrases!("couple of | couple"))
        .map(|n| (2, n))
        .or_else(|| scan.phrase(at, phrases!("few")).map(|n| (3, n)));
    if let Some((n, len)) = couple.or_else(|| numbers::cardinal(scan.words, at)) {
        return counted(scan, at + len, n);
    }
    counted(scan, at, 1)
}

/// "3 weeks", "Tuesday", "morning" after "every", each `interval` times.
fn counted(scan: &Scan, at: usize, interval: i64) -> Read {
    let word = scan.at(at);
    if let Some(end) = scan.phrase(at, phrases!("week day | weekday | work day | workday | weekdays | business day")) {
        return Some((Repeat::weekly(WORKDAYS.to_vec(), interval), at + end));
    }
    if matches!(word, "weekend" | "weekends") {
        return Some((Repeat::weekly(WEEKEND.to_vec(), interval), at + 1));
    }
    if let Some((days, end)) = day_list(scan, at) {
        return Some((Repeat::weekly(days, interval), end));
    }
    if let Some((part, _)) = names::part(word) {
        return Some((Repeat { part: Some(part), ..Repeat::new(Frequency::Daily, interval) }, at + 1));
    }
    let unit = names::unit(word)?;
    let repeat = match unit {
        Unit::Second => return None,
        Unit::Minute => Repeat::new(Frequency::Minutely, interval),
        Unit::Hour => Repeat::new(Frequency::Hourly, interval),
        Unit::Day => Repeat::new(Frequency::Daily, interval),
        Unit::Week => Repeat::new(Frequency::Weekly, interval),
        Unit::Fortnight => Repeat::new(Frequency::Weekly, interval * 2),
        Unit::Month => Repeat::new(Frequency::Monthly, interval),
        Unit::Quarter => Repeat::new(Frequency::Monthly, interval * 3),
        Unit::Year => Repeat::new(Frequency::Yearly, interval),
    };
    week_with_days(scan, at + 1, repeat)
}

/// "week on Tuesdays and Fridays".
fn week_with_days(scan: &Scan, end: usize, mut repeat: Repeat) -> Read {
    if repeat.frequency == Frequency::Weekly {
        let at = end + usize::from(scan.at(end) == "on");
        if let Some((days, end)) = day_list(scan, at) {
            repeat.days = days;
            return Some((repeat, end));
        }
    }
    Some((repeat, end))
}

/// "Monday", "Monday and Thursday", "Mon, Wed and Fri", "Monday through Friday".
fn day_list(scan: &Scan, start: usize) -> Option<(Vec<Weekday>, usize)> {
    let (first, _) = names::weekday(scan.at(start))?;
    let mut days = vec![first];
    let mut end = start + 1;
    if matches!(scan.at(end), "through" | "thru" | "to" | "-")
        && scan.before(start) != "from"
        && let Some((last, _)) = names::weekday(scan.at(end + 1))
    {
        return Some((from_to(first, last), end + 2));
    }
    for _ in 0..6 {
        let mut at = end;
        while matches!(scan.at(at), "," | "and" | "&" | "every" | "each") && at < end + 3 {
            at += 1;
        }
        let Some((day, _)) = names::weekday(scan.at(at)).filter(|_| at > end) else { break };
        if !days.contains(&day) {
            days.push(day);
        }
        end = at + 1;
    }
    Some((days, end))
}

fn from_to(first: Weekday, last: Weekday) -> Vec<Weekday> {
    let mut days = vec![first];
    let mut day = first;
    while day != last {
        day = day.next();
        days.push(day);
    }
    days
}

/// "Mondays", "on Tuesdays and Thursdays", "tuesday afternoons".
fn plural_days(scan: &Scan, i: usize) -> Read {
    if let Some((first, last)) = scan.at(i).split_once('-')
        && let (Some((first, _)), Some((last, _))) = (names::weekday(first), names::weekday(last))
    {
        return Some((Repeat::weekly(from_to(first, last), 1), i + 1));
    }
    let (days, end) = day_list(scan, i)?;
    let plural = |at: usize| names::weekday(scan.at(at)).is_some_and(|(_, form)| form == Form::Plural);
    let through = days.len() > 2;
    if through || (i..end).any(plural) && !scan.at(i).ends_with("'s") {
        return Some((Repeat::weekly(days, 1), end));
    }
    let (part, _) = names::part(scan.at(end)).filter(|(_, plural)| *plural)?;
    Some((Repeat { part: Some(part), ..Repeat::weekly(days, 1) }, end + 1))
}

/// "mornings at 9", "in the evenings".
fn plural_part(scan: &Scan, i: usize, own: usize) -> Read {
    let (part, _) = names::part(scan.at(i)).filter(|(_, plural)| *plural)?;
    let fits = i > own || scan.at(i + 1) == "at" || scan.is_whole(i, i + 1);
    fits.then_some((Repeat { part: Some(part), ..Repeat::new(Frequency::Daily, 1) }, i + 1))
}

/// "15th of each month", "first Monday of every month", "the last day of the month" is a date and not read here.
fn of_every_month(scan: &Scan, i: usize) -> Read {
    let (n, len) = numbers::ordinal(scan.words, i).or_else(|| (scan.at(i) == "last").then_some((-1, 1)))?;
    let at = i + len;
    let (days, after) = match names::weekday(scan.at(at)) {
        Some((day, _)) => (vec![day], at + 1),
        None => (Vec::new(), at + usize::from(scan.at(at) == "day")),
    };
    let end = after
        + scan.phrase(
            after,
            phrases!("of each month | of every month | each month | every month | of the month every month"),
        )?;
    month_rule(n, days, end)
}

/// "first Monday of the month" after "every".
fn nth_of_month(scan: &Scan, i: usize) -> Read {
    let (n, len) = numbers::ordinal(scan.words, i).or_else(|| (scan.at(i) == "last").then_some((-1, 1)))?;
    let at = i + len;
    let (days, after) = match names::weekday(scan.at(at)) {
        Some((day, _)) => (vec![day], at + 1),
        None => (Vec::new(), at + usize::from(scan.at(at) == "day")),
    };
    let end = after
        + scan.phrase(after, phrases!("of the month | of each month | of every month | of month | in the month"))?;
    month_rule(n, days, end)
}

/// "every 5th": that day of each month.
fn every_nth(scan: &Scan, i: usize) -> Read {
    let (n, len) = numbers::ordinal(scan.words, i)?;
    scan.closes(i + len).then(|| month_rule(n, Vec::new(), i + len))?
}

fn month_rule(n: i64, days: Vec<Weekday>, end: usize) -> Read {
    let n = i8::try_from(n).ok().filter(|n| (-1..=31).contains(n))?;
    let mut repeat = Repeat::new(Frequency::Monthly, 1);
    if days.is_empty() {
        repeat.month_day = Some(n);
    } else {
        repeat.nth = Some(n).filter(|n| *n <= 5);
        repeat.days = days;
    }
    Some((repeat, end))
}

/// "once a week", "three times a day", "twice daily".
fn times_a(scan: &Scan, i: usize) -> Read {
    let at = match scan.at(i) {
        "once" | "twice" => i + 1,
        _ => {
            let (_, len) = numbers::cardinal(scan.words, i)?;
            i + len + scan.phrase(i + len, phrases!("times"))?
        }
    };
    if let Some((repeat, end)) = word(scan, at) {
        return Some((repeat, end));
    }
    let per = scan.phrase(at, phrases!("a | per | each | every | an"))?;
    counted(scan, at + per, 1)
}

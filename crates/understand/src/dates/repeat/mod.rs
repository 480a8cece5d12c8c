//! Parses repetitions into rules of RFC 5545: "every other Tuesday", "weekdays", "each month on the 1st".
//!
//! Conventions of the `dates` module: `i` (or `at`) is the first token of the piece, `lead_start` the first of the
//! prepositions before it, and `parts` are the pieces before it. A parser returns its result and the position after it,
//! or `None` if nothing matches. "A noun follows" means that an ordinary word follows, see [`DateScan::can_end_at`].

mod limit;
mod month;
mod week;

use jiff::Timestamp;
use jiff::civil::{Date, Weekday};

use super::names::{self, TimeUnit};
use super::{DateParts, DateScan, Day, day, holidays, offset, quarter};
use crate::lexicon;
use crate::numbers;
pub(super) use limit::parse as parse_limit;

/// The frequency of a repetition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RepeatFrequency {
    Minutely,
    Hourly,
    Daily,
    Weekly,
    Monthly,
    Yearly,
}

/// The end of a repetition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RepeatLimit {
    /// The last day, and the last instant: the end of that day or the named time.
    Until(Date, Timestamp),
    /// The number of occurrences.
    Count(i64),
}

/// A repetition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Repeat {
    pub(crate) frequency: RepeatFrequency,
    /// The number of units between two occurrences, 1 to 9999.
    pub(crate) interval: i64,
    /// The weekdays. Empty if the repetition names none.
    pub(crate) days: Vec<Weekday>,
    /// The positions of the weekdays in the month: 1 is the first, -1 the last.
    pub(crate) nth: Vec<i8>,
    /// True if `nth` counts all weekdays together, as in the last working day of the month.
    pub(crate) together: bool,
    /// Days of the month. -1 is the last one.
    pub(crate) month_days: Vec<i8>,
    /// Several months of a yearly repetition. Empty for a single month.
    months: Vec<i8>,
    /// The part of the day in the repetition ("every morning").
    pub(crate) part: Option<names::DayPart>,
    pub(crate) limit: Option<RepeatLimit>,
    /// The day of the year in the repetition ("every Christmas").
    pub(crate) day: Option<Day>,
    /// True if the first date determines the weekday. The RRULE then contains no BYDAY.
    anchored: bool,
}

impl Repeat {
    /// Returns a repetition without days, months, part and limit. The interval is limited to 1 to 9999.
    fn new(frequency: RepeatFrequency, interval: i64) -> Self {
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

    /// Returns a repetition on these weekdays every `interval` weeks.
    fn weekly(days: Vec<Weekday>, interval: i64) -> Self {
        Self { days, ..Self::new(RepeatFrequency::Weekly, interval) }
    }

    /// Merges a second repetition of the same expression ("weekly … every Friday"). Returns false and changes nothing
    /// if the frequencies differ, unless the first one is daily or the other is plain "daily". A daily repetition is
    /// replaced by one that is not plain "daily". Its part of the day stays only if the other has none. Otherwise the
    /// first keeps its days, days of the month and part. Missing ones and the longer interval come from the other. Its
    /// months and its day of the year are dropped. A limit is kept; a missing one comes from the other. If one weekday
    /// without a position is added and both intervals are 1, the RRULE contains no BYDAY.
    pub(crate) fn merge(&mut self, other: Self) -> bool {
        let daily_part = other.frequency == RepeatFrequency::Daily && other.interval == 1;
        if self.frequency != other.frequency && !daily_part && self.frequency != RepeatFrequency::Daily {
            return false;
        }
        let limit = self.limit.or(other.limit);
        if self.frequency == RepeatFrequency::Daily && !daily_part {
            let part = self.part;
            *self = other;
            self.part = self.part.or(part);
            self.limit = limit;
            return true;
        }
        if self.days.is_empty() && !other.days.is_empty() {
            // In "weekly, every Friday", the first date determines the weekday.
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

    /// Returns the RRULE: FREQ, INTERVAL above 1, BYMONTH for several months, BYDAY, BYMONTHDAY, BYSETPOS, and COUNT or
    /// UNTIL, in this order. BYDAY is absent if the first date determines the weekday. BYMONTHDAY includes the day of
    /// the month in `parts` if the repetition is monthly and names no days of the month itself. The first date is not
    /// part of the rule.
    pub(crate) fn to_rrule(&self, parts: &DateParts) -> String {
        let frequency = match self.frequency {
            RepeatFrequency::Minutely => "MINUTELY",
            RepeatFrequency::Hourly => "HOURLY",
            RepeatFrequency::Daily => "DAILY",
            RepeatFrequency::Weekly => "WEEKLY",
            RepeatFrequency::Monthly => "MONTHLY",
            RepeatFrequency::Yearly => "YEARLY",
        };
        let mut rule = format!("FREQ={frequency}");
        if self.interval > 1 {
            rule.push_str(&format!(";INTERVAL={}", self.interval));
        }
        if !self.months.is_empty() {
            rule.push_str(&format!(";BYMONTH={}", join_numbers(&self.months)));
        }
        if !self.days.is_empty() && !self.anchored {
            rule.push_str(&format!(";BYDAY={}", self.numbered_days().join(",")));
        }
        let beside = match parts.day {
            Some(Day::Monthly(day)) if self.frequency == RepeatFrequency::Monthly => vec![day],
            _ => Vec::new(),
        };
        let month_days = if self.month_days.is_empty() { &beside } else { &self.month_days };
        if !month_days.is_empty() {
            rule.push_str(&format!(";BYMONTHDAY={}", join_numbers(month_days)));
        }
        if self.together {
            rule.push_str(&format!(";BYSETPOS={}", join_numbers(&self.nth)));
        }
        match self.limit {
            Some(RepeatLimit::Count(n)) => rule.push_str(&format!(";COUNT={n}")),
            Some(RepeatLimit::Until(date, end)) => rule.push_str(&format!(";UNTIL={}", self.until(parts, date, end))),
            None => {}
        }
        rule
    }

    /// Returns the weekdays with their positions: "MO", or "1MO", "3MO". There are no positions if they count all
    /// weekdays together.
    fn numbered_days(&self) -> Vec<String> {
        let positions = if self.together { &[] } else { self.nth.as_slice() };
        let named = |day: &Weekday| match positions {
            [] => vec![weekday_code(*day).to_owned()],
            positions => positions.iter().map(|n| format!("{n}{}", weekday_code(*day))).collect(),
        };
        self.days.iter().flat_map(named).collect()
    }

    /// Returns the value of UNTIL. It is `end` in UTC ("20270315T225959Z") if the repetition is by minutes or hours, or
    /// if it or `parts` has a clock time or a part of the day. Otherwise it is `date` ("20270315", RFC 5545, 3.3.10).
    fn until(&self, parts: &DateParts, date: Date, end: Timestamp) -> String {
        let timed = parts.clock.is_some() || parts.part.is_some() || self.part.is_some();
        if timed || matches!(self.frequency, RepeatFrequency::Minutely | RepeatFrequency::Hourly) {
            end.strftime("%Y%m%dT%H%M%SZ").to_string()
        } else {
            date.strftime("%Y%m%d").to_string()
        }
    }
}

fn join_numbers(numbers: &[i8]) -> String {
    numbers.iter().map(i8::to_string).collect::<Vec<_>>().join(",")
}

/// Returns the code of a weekday in an RRULE, "MO" to "SU".
fn weekday_code(day: Weekday) -> &'static str {
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

/// A repetition and the position after it.
type RepeatMatch = Option<(Repeat, usize)>;

/// Parses a repetition at `i`. Tries single words ("daily"), "every …", and edges and days of each month. Then tries
/// days after "monthly", plural weekdays, rates ("twice a week") and plural parts of the day. The first match counts.
/// `parts` matters only for days of the month after "monthly", `lead_start` only for plural parts of the day ("in the
/// mornings").
pub(crate) fn parse(scan: &DateScan, i: usize, lead_start: usize, parts: &DateParts) -> RepeatMatch {
    parse_word(scan, i)
        .or_else(|| parse_every(scan, i))
        .or_else(|| month::parse_edge(scan, i))
        .or_else(|| month::parse_of_every(scan, i))
        .or_else(|| month::parse_beside_monthly(scan, i, parts))
        .or_else(|| week::parse_plural(scan, i))
        .or_else(|| parse_rate(scan, i))
        .or_else(|| parse_plural_part(scan, i, lead_start))
}

/// Parses a repetition in one word or two: "daily", "hourly", "weekly", "monthly", "yearly", "weekdays", "weekends",
/// "weekend mornings". "biweekly", "bi weekly" and "fortnightly" are two weeks, "bimonthly" two months, "quarterly"
/// three, "half-yearly" and "biannually" six, "biennially" two years. "semiweekly" and "semimonthly" are treated as
/// "weekly" and "monthly". "nightly" is daily at night, "everynight" only daily. "alternate" doubles the unit or
/// weekday after it. Accepts "a monthly basis". Returns `None` for any other word.
fn parse_word(scan: &DateScan, i: usize) -> RepeatMatch {
    let repeat = match scan.at(i) {
        "a" if scan.at(i + 2) == "basis" => return parse_word(scan, i + 1),
        "daily" | "everyday" | "nightly" | "everynight" => Repeat::new(RepeatFrequency::Daily, 1),
        "hourly" => Repeat::new(RepeatFrequency::Hourly, 1),
        "weekly" | "semiweekly" | "semi-weekly" => Repeat::new(RepeatFrequency::Weekly, 1),
        "bi" if scan.at(i + 1) == "weekly" => return Some((Repeat::new(RepeatFrequency::Weekly, 2), i + 2)),
        "biweekly" | "bi-weekly" | "fortnightly" => Repeat::new(RepeatFrequency::Weekly, 2),
        "monthly" | "semimonthly" | "semi-monthly" => Repeat::new(RepeatFrequency::Monthly, 1),
        "bimonthly" | "bi-monthly" => Repeat::new(RepeatFrequency::Monthly, 2),
        "quarterly" => Repeat::new(RepeatFrequency::Monthly, 3),
        "half-yearly" | "semiannually" | "semi-annually" | "semiannual" | "biannually" | "bi-annually" => {
            Repeat::new(RepeatFrequency::Monthly, 6)
        }
        "yearly" | "annually" | "annual" => Repeat::new(RepeatFrequency::Yearly, 1),
        "biennially" | "biennial" => Repeat::new(RepeatFrequency::Yearly, 2),
        "weekdays" | "workdays" | "weekday" | "week" => return week::parse_workdays(scan, i),
        "weekend" => return week::parse_weekend_parts(scan, i),
        "weekends" => Repeat::weekly(week::WEEKEND.to_vec(), 1),
        "alternate" | "alternating" => return parse_counted(scan, i + 1, 2),
        _ => return None,
    };
    let part = (scan.at(i) == "nightly").then_some(names::DayPart::Night);
    let end = i + 1;
    let end = if scan.phrase(end, lexicon::repeats::BASIS).is_some() { end + 1 } else { end };
    Some((Repeat { part, ..repeat }, end))
}

/// Parses "every …", "each …", "once every …", also "every single …". "every other …" has the interval 2. Tries dates
/// of a year and days of a month before intervals: "every March 3" is yearly, "every first Monday" and "every last
/// Friday" monthly, "every second Monday" every two weeks, "every 5th" monthly. Then fractions, numbers with a unit,
/// and a bare unit or weekday ("every day"). Ordinals count up to 31. "last" matches only as a day of the month.
fn parse_every(scan: &DateScan, i: usize) -> RepeatMatch {
    let i = i + scan.phrase(i, lexicon::repeats::EVERY_FILLERS).filter(|n| is_every(scan, i + n)).unwrap_or(0);
    if !is_every(scan, i) {
        return None;
    }
    let mut at = i + 1;
    at += usize::from(matches!(scan.at(at), "single" | "and" | "of" | "the"));
    if matches!(scan.at(at), "other" | "alternate" | "alternating") {
        return parse_counted(scan, at + 1, 2);
    }
    if let Some(named) = parse_yearly(scan, at) {
        return Some(named);
    }
    if let Some((nth, len)) = numbers::ordinal(scan.words, at).filter(|(n, _)| *n <= 31) {
        return month::parse_nth(scan, at)
            .or_else(|| month::parse_first_weekday(scan, at))
            .or_else(|| parse_counted(scan, at + len, nth))
            .or_else(|| month::parse_days(scan, at));
    }
    if matches!(scan.at(at), "last" | "end" | "month" | "month-end") {
        let named = month::parse_nth(scan, at)
            .or_else(|| month::parse_first_weekday(scan, at))
            .or_else(|| month::parse_month_end(scan, at));
        if named.is_some() || scan.at(at) == "last" {
            return named;
        }
    }
    parse_fraction(scan, at).or_else(|| parse_interval(scan, at)).or_else(|| parse_counted(scan, at, 1))
}

/// Returns true for "every", "each" and misspellings at `i`. "ever" counts only before a unit of time.
fn is_every(scan: &DateScan, i: usize) -> bool {
    match scan.at(i) {
        "every" | "each" | "evry" | "evey" | "evrey" | "eveyr" => true,
        "ever" => names::time_unit(scan.at(i + 1)).is_some(),
        _ => false,
    }
}

/// Parses a fraction after "every": "half hour" is 30 minutes, "quarter of an hour" 15, "hour and a half" 90, "half
/// year" six months. Returns `None` for other words.
fn parse_fraction(scan: &DateScan, at: usize) -> RepeatMatch {
    if let Some(len) = scan.phrase(at, lexicon::repeats::HALF_HOUR) {
        return Some((Repeat::new(RepeatFrequency::Minutely, 30), at + len));
    }
    if let Some(len) = scan.phrase(at, lexicon::repeats::QUARTER_HOUR) {
        return Some((Repeat::new(RepeatFrequency::Minutely, 15), at + len));
    }
    if let Some(len) = scan.phrase(at, lexicon::repeats::HOUR_AND_A_HALF) {
        return Some((Repeat::new(RepeatFrequency::Minutely, 90), at + len));
    }
    let len = scan.phrase(at, lexicon::repeats::HALF_YEAR)?;
    Some((Repeat::new(RepeatFrequency::Monthly, 6), at + len))
}

/// Parses "couple of days", "3 weeks", "15mins", "1.5 hours" after "every". "couple" is two, "few" is three. After
/// these and a number, weekdays and parts of the day count too, see [`parse_counted`]. Hours with a fraction become
/// minutes. Fractions of other units, and seconds, do not match.
fn parse_interval(scan: &DateScan, at: usize) -> RepeatMatch {
    let couple = scan
        .phrase(at, lexicon::repeats::COUPLE)
        .map(|n| (2, n))
        .or_else(|| scan.phrase(at, lexicon::repeats::FEW).map(|n| (3, n)));
    if let Some((n, len)) = couple.or_else(|| numbers::cardinal(scan.words, at)) {
        return parse_counted(scan, at + len, n);
    }
    let (minutes, unit, end) = offset::parse_compact(scan, at)?;
    match unit {
        TimeUnit::Minute => Some((Repeat::new(RepeatFrequency::Minutely, minutes), end)),
        TimeUnit::Hour if minutes % 60 == 0 => Some((Repeat::new(RepeatFrequency::Hourly, minutes / 60), end)),
        TimeUnit::Hour => Some((Repeat::new(RepeatFrequency::Minutely, minutes), end)),
        unit => Some((repeat_of_unit(unit, minutes)?, end)),
    }
}

/// Returns a repetition with an interval of this many units. A fortnight is two weeks, a quarter three months, a decade
/// ten years. The interval is limited to 1 to 9999. Returns `None` for seconds, which a rule cannot express here.
fn repeat_of_unit(unit: TimeUnit, interval: i64) -> Option<Repeat> {
    Some(match unit {
        TimeUnit::Second => return None,
        TimeUnit::Minute => Repeat::new(RepeatFrequency::Minutely, interval),
        TimeUnit::Hour => Repeat::new(RepeatFrequency::Hourly, interval),
        TimeUnit::Day => Repeat::new(RepeatFrequency::Daily, interval),
        TimeUnit::Week => Repeat::new(RepeatFrequency::Weekly, interval),
        TimeUnit::Fortnight => Repeat::new(RepeatFrequency::Weekly, interval.saturating_mul(2)),
        TimeUnit::Month => Repeat::new(RepeatFrequency::Monthly, interval),
        TimeUnit::Quarter => Repeat::new(RepeatFrequency::Monthly, interval.saturating_mul(3)),
        TimeUnit::Year => Repeat::new(RepeatFrequency::Yearly, interval),
        TimeUnit::Decade => Repeat::new(RepeatFrequency::Yearly, interval.saturating_mul(10)),
    })
}

/// Parses "weeks", "weeks on Tuesday", "Tuesday", "morning", "weekday" at `at`, after "every" or a number. `interval`
/// is that number. For weekdays it counts weeks, for parts of the day it counts days. Returns `None` for seconds and
/// other words.
fn parse_counted(scan: &DateScan, at: usize, interval: i64) -> RepeatMatch {
    let word = scan.at(at);
    if let Some((repeat, end)) = week::parse_named(scan, at, interval) {
        return Some((repeat, end));
    }
    if let Some((part, _)) = names::day_part(word) {
        return Some((Repeat { part: Some(part), ..Repeat::new(RepeatFrequency::Daily, interval) }, at + 1));
    }
    week::parse_with_days(scan, at + 1, repeat_of_unit(names::time_unit(word)?, interval)?)
}

/// Parses "June 3rd", "3rd of June", "Christmas", "January and July", "summer" after "every" as a yearly repetition. A
/// movable holiday repeats on the date of its next occurrence. A season begins on the first day of the next one that
/// has not begun. A year after a holiday or a season selects the first occurrence. Months without a day begin on the
/// first of the first named month. No noun may follow a holiday, a season or a single month. Returns `None` for a day
/// of a month with a year, and for other words.
fn parse_yearly(scan: &DateScan, at: usize) -> RepeatMatch {
    let yearly = Repeat::new(RepeatFrequency::Yearly, 1);
    if let Some((day @ Day::Annual { .. }, end)) =
        day::parse_month_day(scan, at).or_else(|| day::parse_day_month(scan, at))
    {
        return Some((Repeat { day: Some(day), ..yearly }, end));
    }
    if let Some((date, end)) = holidays::parse_named(scan, at).filter(|(_, end)| scan.can_end_at(*end)) {
        return Some((Repeat { day: Some(Day::Fixed(date)), ..yearly }, end));
    }
    if quarter::is_season(scan.at(at)) {
        let (start, _, end) = quarter::parse(scan, at, 1).filter(|(.., end)| scan.can_end_at(*end))?;
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
    (months.len() > 1 || scan.can_end_at(end)).then_some((Repeat { months, day: Some(start), ..yearly }, end))
}

/// Returns the month after a comma, "and", "&" or a slash at `end`.
fn next_month(scan: &DateScan, end: usize) -> Option<i8> {
    let linked = matches!(scan.at(end), "," | "and" | "&" | "/");
    names::month(scan.at(end + 1)).filter(|_| linked)
}

/// Parses "mornings at 9", "in the evenings" as a daily repetition. The plural needs a preposition before it or "at"
/// after it, or must be the whole text.
fn parse_plural_part(scan: &DateScan, i: usize, lead_start: usize) -> RepeatMatch {
    let (part, _) = names::day_part(scan.at(i)).filter(|(_, plural)| *plural)?;
    let fits = i > lead_start || scan.at(i + 1) == "at" || scan.covers_all(i, i + 1);
    fits.then_some((Repeat { part: Some(part), ..Repeat::new(RepeatFrequency::Daily, 1) }, i + 1))
}

/// Parses "once a week", "three times a day", "twice daily", "3x a week", "2x/month". The result has the frequency of
/// the period; the number of times is ignored. After "3x", the word "a" may be absent. "once in 3 weeks" is every three
/// weeks. Returns `None` if no period follows.
fn parse_rate(scan: &DateScan, i: usize) -> RepeatMatch {
    let figure = |word: &str| word.strip_suffix('x').and_then(numbers::parse_digits).is_some();
    let (at, loose) = match scan.at(i) {
        "once" | "twice" => (i + 1, false),
        word if figure(word) => (i + 1, true),
        _ => {
            let (_, len) = numbers::cardinal(scan.words, i)?;
            (i + len + scan.phrase(i + len, lexicon::repeats::TIMES)?, false)
        }
    };
    if let Some((repeat, end)) = parse_word(scan, at).filter(|_| names::time_unit(scan.at(at)).is_none()) {
        return Some((repeat, end));
    }
    if scan.at(at) == "in"
        && let Some((n, len)) = numbers::cardinal(scan.words, at + 1)
    {
        return parse_counted(scan, at + 1 + len, n);
    }
    let per = scan.phrase(at, lexicon::repeats::PER).or(loose.then_some(0))?;
    parse_counted(scan, at + per, 1)
}

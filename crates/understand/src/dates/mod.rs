//! Finds dates, times and repetitions in an utterance and resolves them.
//!
//! An expression is a sequence of pieces ("at 7", "on Friday", "every week") that describe one point in time. An
//! ambiguous date is the next one in the future. Quoted passages are ignored.
//!
//! Conventions of the parsers in this module: `i` is the first token of the piece. `lead_start` is the first of the
//! prepositions and links before it; it equals `i` if there are none. `parts` are the pieces before it. A parser
//! returns its result and the position after it, or `None` if it does not match. It changes nothing unless its comment
//! states it.

mod calendar;
mod clock;
mod context;
mod daily_events;
mod day;
mod dispatch;
mod extent;
mod holidays;
mod names;
mod offset;
mod quarter;
mod range;
mod repeat;
mod resolve;
mod span;
mod zone;

use crate::lexicon;
use crate::numbers;
use crate::phrases::Phrases;
use std::ops::Range;

use jiff::Zoned;
use jiff::civil::{Date, DateTime, Time, Weekday};
use jiff::tz::TimeZone;

use crate::parsed::DayOrTime;
use crate::tokens::TokenizedText;
use clock::ClockTime;
use day::PeriodQualifier;
use dispatch::ParserSet;
use names::DayPart;
pub(crate) use offset::parse_shift;
pub(crate) use repeat::{Repeat, RepeatFrequency};

/// The range of tokens to scan, with the current time. `end` is exclusive.
#[derive(Clone, Copy)]
pub(crate) struct DateScan<'a> {
    pub(crate) words: &'a TokenizedText<'a>,
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) now: &'a Zoned,
}

impl<'a> DateScan<'a> {
    /// Returns the token at `i` in lower case, or an empty string at or beyond the end of the range.
    fn at(&self, i: usize) -> &'a str {
        if i < self.end { self.words.at(i) } else { "" }
    }

    /// Returns the token before `i` in lower case, or an empty string at the start of the range.
    fn before(&self, i: usize) -> &'a str {
        if i > self.start { self.words.before(i) } else { "" }
    }

    /// Returns the number of tokens of the longest phrase at `i`, or `None` if it goes beyond the range.
    fn phrase(&self, i: usize, phrases: Phrases) -> Option<usize> {
        self.words.phrase(i, phrases).filter(|n| i + n <= self.end)
    }

    fn today(&self) -> Date {
        self.now.date()
    }

    /// Returns true if an expression can end before `i`. It can end at or beyond the end of the range, and before a
    /// mark or a quoted passage. It can also end before a function word (also "task" and "reminder") or a word that
    /// starts another piece. Returns false before any other word (in short: a noun follows), and before a hyphen that
    /// joins two words.
    fn can_end_at(&self, i: usize) -> bool {
        if i >= self.end {
            return true;
        }
        if !self.words.is_word(i) {
            return !self.is_hyphen(i);
        }
        is_function_word(self.at(i)) || starts_piece(self.at(i)) || self.starts_time(i)
    }

    /// Returns true if a time in words ("half past six"), a time zone or a tail ("sharp") begins at `i`.
    fn starts_time(&self, i: usize) -> bool {
        match self.at(i) {
            "half" | "quarter" => {
                matches!(self.at(i + 1), "past" | "to" | "after" | "before" | "till" | "til")
                    || self.at(i) == "half" && numbers::cardinal(self.words, i + 1).is_some()
            }
            "except" | "excluding" => true,
            _ => self.phrase(i, lexicon::dates::TAILS).is_some() || zone::is_zone(self, i),
        }
    }

    /// Returns true if a hyphen at `i` joins two words without spaces, as in "7-eleven".
    fn is_hyphen(&self, i: usize) -> bool {
        self.at(i) == "-"
            && i > self.start
            && self.words.is_adjacent_to_next(i - 1)
            && self.words.is_adjacent_to_next(i)
            && self.words.is_word(i + 1)
    }

    /// Returns true if no word of the range is outside of `from..to`. Marks and quoted passages may be outside.
    fn covers_all(&self, from: usize, to: usize) -> bool {
        let rest = |range: Range<usize>| range.into_iter().all(|i| !self.words.is_word(i));
        rest(self.start..from) && rest(to..self.end)
    }
}

/// Returns true for words that do not belong to the number or day before them.
pub(crate) fn is_function_word(word: &str) -> bool {
    lexicon::dates::SMALL_WORDS.contains(word)
}

/// Returns true for some words that start a piece without a preposition. These are weekdays, parts of the day, "today",
/// "tomorrow", "tonight", "this", "next", "every", "each", "everyday", "daily", "weekly", "monthly", and times such as
/// "3pm". Returns false for all other words, also for months and "yearly".
fn starts_piece(word: &str) -> bool {
    names::weekday(word).is_some()
        || names::day_part(word).is_some()
        || names::is_today(word)
        || names::is_tomorrow(word)
        || matches!(word, "tonight" | "this" | "next" | "every" | "each" | "daily" | "weekly" | "everyday" | "monthly")
        || matches!(word, "tonite" | "am" | "pm" | "noon" | "midday" | "midnight" | "eod" | "cob")
        || clock::is_time_figure(word)
}

/// A named day that is not resolved yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Day {
    /// A certain date.
    Fixed(Date),
    /// A date at some distance. A weekday next to it selects a day of the same week.
    Rough(Date),
    /// A day of a month, in the next possible year.
    Annual { month: i8, day: i8 },
    /// A day of the month, in the next month that has it.
    Monthly(i8),
    /// A week, a month or another period. `end` is exclusive. `due` is the due date of a task in the period.
    Span { start: Date, end: Date, due: Date },
}

/// The combined pieces of one expression.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct DateParts {
    pub(crate) day: Option<Day>,
    weekday: Option<(Weekday, PeriodQualifier)>,
    clock: Option<ClockTime>,
    /// The end of "3-4pm".
    until: Option<ClockTime>,
    /// The number of days after the first in "March 3 to 5".
    days: i64,
    part: Option<DayPart>,
    /// The distance from the clock time in seconds: "2 hours after 3pm".
    shift: i64,
    /// The zone of the clock time, if it is not the zone of the user.
    zone: Option<TimeZone>,
    /// True while another piece looks ahead, see [`context`].
    looks_ahead: bool,
    /// A complete point in time, in the zone of the user. Other parts do not change it.
    instant: Option<DateTime>,
    pub(crate) repeat: Option<Repeat>,
}

/// One piece of an expression.
enum DatePiece {
    Day(Day),
    Weekday(Weekday, PeriodQualifier),
    /// Several days of a month: the first, and the number of further days.
    Days(Day, i64),
    Clock(ClockTime),
    /// A clock time and a distance from it in seconds.
    Shifted(ClockTime, i64),
    /// A range of times: the first and the last.
    Times(ClockTime, ClockTime),
    Part(DayPart),
    /// A part of a certain day: "tonight".
    PartOf(Date, DayPart),
    /// A complete point in time, in the zone of the user: "in 20 minutes".
    Instant(DateTime),
    Repeat(Repeat),
}

/// One expression and its tokens, including prepositions.
#[derive(Clone, Debug)]
pub(crate) struct DateMatch {
    pub(crate) tokens: Range<usize>,
    pub(crate) parts: DateParts,
}

impl DateMatch {
    /// Returns the first point in time of the expression. Returns `None` for a repetition that determines no first day
    /// ("weekly") and for dates beyond the supported range.
    pub(crate) fn resolve(&self, now: &Zoned) -> Option<DayOrTime> {
        resolve::resolve(&self.parts, now)
    }

    /// Returns the clock time if the expression contains no day, weekday, repetition or complete point in time. Returns
    /// `None` for a part of the day without a clock time.
    pub(crate) fn time_of_day(&self, now: &Zoned) -> Option<Time> {
        let alone = !self.parts.names_day() && self.parts.instant.is_none();
        let clock = self.parts.clock.filter(|_| alone)?;
        if self.parts.shift != 0 || self.parts.zone.is_some() {
            let Some(DayOrTime::Time(at)) = self.resolve(now) else { return None };
            return Some(at.time());
        }
        resolve::time_of_day(clock, self.parts.part, now)
    }

    /// Returns the RRULE of a repetition, or `None` if the expression does not repeat.
    pub(crate) fn rrule(&self) -> Option<String> {
        self.parts.repeat.as_ref().map(|repeat| repeat.to_rrule(&self.parts))
    }
}

impl DateParts {
    /// Adds a piece. Returns false and changes nothing if it begins another expression, because a piece of its kind is
    /// already present. A second day must select a day of the period before it, see [`day_within`], and replaces it. A
    /// second repetition must be compatible, see [`Repeat::merge`]. A complete point in time excludes a later weekday,
    /// clock time and part of the day, and cannot follow a clock time. A part of a certain day ("tonight") excludes a
    /// day and a weekday before it. "morning" after "first thing" has no effect, and the result is true.
    fn add(&mut self, piece: DatePiece) -> bool {
        match piece {
            DatePiece::Day(day) if self.day.is_none() => self.day = Some(day),
            DatePiece::Day(day) => match self.day.and_then(|known| day_within(known, day)) {
                Some(day) => self.day = Some(day),
                None => return false,
            },
            DatePiece::Days(day, more) if self.day.is_none() => {
                self.day = Some(day);
                self.days = more;
            }
            DatePiece::Times(first, last) if self.clock.is_none() && self.instant.is_none() => {
                self.clock = Some(first);
                self.until = Some(last);
            }
            DatePiece::Weekday(day, which) if self.weekday.is_none() && self.instant.is_none() => {
                self.weekday = Some((day, which))
            }
            DatePiece::Clock(clock) if self.clock.is_none() && self.instant.is_none() => self.clock = Some(clock),
            DatePiece::Shifted(clock, seconds) if self.clock.is_none() && self.instant.is_none() => {
                self.clock = Some(clock);
                self.shift = seconds;
            }
            DatePiece::Part(part) if self.part.is_none() && self.instant.is_none() => self.part = Some(part),
            // "last thing at night", "last thing tonight"
            DatePiece::Part(DayPart::Night) if self.part == Some(DayPart::Last) => {}
            DatePiece::PartOf(date, DayPart::Night) if self.part == Some(DayPart::Last) && !self.names_day() => {
                self.day = Some(Day::Fixed(date));
            }
            // "first thing Monday morning"
            DatePiece::Part(DayPart::Morning) if self.part == Some(DayPart::First) => {}
            DatePiece::PartOf(date, part) if self.part.is_none() && self.day.is_none() && self.weekday.is_none() => {
                self.day = Some(Day::Fixed(date));
                self.part = Some(part);
            }
            DatePiece::Instant(at) if self.instant.is_none() && self.clock.is_none() => self.instant = Some(at),
            DatePiece::Repeat(repeat) => match &mut self.repeat {
                None => self.repeat = Some(repeat),
                Some(known) => return known.merge(repeat),
            },
            _ => return false,
        }
        true
    }

    /// Returns true if the expression contains a day, a weekday or a repetition.
    fn names_day(&self) -> bool {
        self.day.is_some() || self.weekday.is_some() || self.repeat.is_some()
    }

    /// Returns true if the expression is only a time of day.
    pub(crate) fn is_clock_only(&self) -> bool {
        self.clock.is_some() && self.part.is_none() && !self.names_day() && self.instant.is_none()
    }

    /// Returns true if the expression contains a clock time and nothing decides between am and pm.
    pub(crate) fn is_half_open(&self) -> bool {
        self.clock.is_some_and(|clock| clock.half == clock::DayHalf::Open) && self.part.is_none()
    }

    /// Merges another expression of the same sentence and returns true. Missing parts come from the other, except for
    /// the number of further days. A second repetition is merged, or dropped if it is incompatible. Returns false and
    /// changes nothing if one contains a complete point in time. Also false if both contain a day, both a weekday, both
    /// a clock time or both a part of the day. Exception: "8am and 6pm daily". If this one has no repetition, day and
    /// complete point in time, it takes only the repetition of the other. The result is then true.
    pub(crate) fn merge(&mut self, other: &Self) -> bool {
        let fits = self.instant.is_none()
            && other.instant.is_none()
            && !(self.day.is_some() && other.day.is_some())
            && !(self.weekday.is_some() && other.weekday.is_some())
            && !(self.clock.is_some() && other.clock.is_some())
            && !(self.part.is_some() && other.part.is_some());
        if !fits {
            // In "8am and 6pm daily", both times repeat.
            let adds = self.repeat.is_none() && other.repeat.is_some() && self.instant.is_none() && self.day.is_none();
            self.repeat = if adds { other.repeat.clone() } else { self.repeat.take() };
            return adds;
        }
        self.day = self.day.or(other.day);
        self.weekday = self.weekday.or(other.weekday);
        if self.clock.is_none() {
            self.shift = other.shift;
        }
        self.zone = self.zone.take().or_else(|| other.zone.clone());
        self.until = self.until.or(other.until);
        self.clock = self.clock.or(other.clock);
        self.part = self.part.or(other.part);
        match (&mut self.repeat, &other.repeat) {
            (Some(mine), Some(theirs)) => {
                mine.merge(theirs.clone());
            }
            (mine @ None, theirs) => *mine = theirs.clone(),
            _ => {}
        }
        true
    }
}

/// Returns the fixed day in the period `known`: "next month on the 3rd", "next year on March 3". A day of the month
/// needs a period of 28 to 31 days. A date without a year needs one of at least 365 days. It is in the month or year in
/// which the period begins. Returns `None` for any other pair, if `known` is no period, or if the date does not exist.
fn day_within(known: Day, day: Day) -> Option<Day> {
    let Day::Span { start, end, .. } = known else { return None };
    let length = end.since(start).ok()?.get_days();
    let date = match day {
        Day::Monthly(day) if (28..=31).contains(&length) => Date::new(start.year(), start.month(), day),
        Day::Annual { month, day } if length >= 365 => Date::new(start.year(), month, day),
        _ => return None,
    };
    date.ok().map(Day::Fixed)
}

/// Returns all expressions of the range in order, or an empty list. They do not overlap. The first one that begins
/// wins, and the search goes on after it.
pub(crate) fn find(scan: DateScan) -> Vec<DateMatch> {
    let mut found = Vec::new();
    let mut i = scan.start;
    while i < scan.end {
        match parse_expression(&scan, i) {
            Some(one) => {
                i = one.tokens.end.max(i + 1);
                found.push(one);
            }
            None => i += 1,
        }
    }
    found
}

/// Skips up to three prepositions at `start`, of one or several words ("no later than"). Stops before one that does not
/// lead to a date, see [`is_lead`]. Returns the position after them, or `start` if there are none.
fn skip_leads(scan: &DateScan, start: usize) -> usize {
    let mut i = start;
    for _ in 0..3 {
        match scan.phrase(i, lexicon::dates::LEADS).filter(|n| is_lead(scan, i, *n)) {
            Some(n) => i += n,
            None => break,
        }
    }
    i
}

/// Returns true if the preposition of `n` tokens at `i` leads to a date. Returns false for some that belong to other
/// words:
/// - "beginning" before "of"; "due" after "is", "are", "was" or "be".
/// - "on" or "in" alone before today, tomorrow, tonight, "at", "by", "before", "for", "every" or "from".
/// - "about" alone, unless a time in figures follows and neither "me" nor "us" precedes.
/// - "roughly", "exactly" and synonyms, unless "at", a number or a time in figures follows.
/// - "early", "late", "later", unless "in", "this", "next", today, tonight, tomorrow or a part of the day follows.
///   "early" and "late" in any case if they begin an edge ("early next month").
/// - "all day", if a noun follows.
/// - "all", unless "this", "next", "day", "week" or a weekday follows.
fn is_lead(scan: &DateScan, i: usize, n: usize) -> bool {
    let next = scan.at(i + n);
    match scan.at(i) {
        "beginning" => next != "of",
        "on" | "in" if n == 1 => {
            let relative = names::is_today(next) || names::is_tomorrow(next) || matches!(next, "tonight" | "tonite");
            !relative && !matches!(next, "at" | "by" | "before" | "for" | "every" | "from")
        }
        "about" if n == 1 => clock::is_time_figure(next) && !matches!(scan.before(i), "me" | "us"),
        "roughly" | "approximately" | "approx" | "exactly" | "precisely" => {
            next == "at" || numbers::cardinal(scan.words, i + n).is_some() || clock::is_time_figure(next)
        }
        "early" | "late" if span::parse_edge(scan, i).is_some() => false,
        "early" | "late" | "later" => {
            matches!(next, "in" | "this" | "next" | "today" | "tonight" | "tomorrow")
                || names::day_part(next).is_some()
                || names::weekday(next).is_some() && names::day_part(scan.at(i + n + 1)).is_some()
                || i == scan.start && next == "on" && names::weekday(scan.at(i + n + 1)).is_some()
        }
        "due" => !matches!(scan.before(i), "is" | "are" | "was" | "be"),
        "all" if n == 2 => !scan.words.is_word(i + n) || scan.can_end_at(i + n) || names::month(next).is_some(),
        "all" => matches!(next, "this" | "next" | "day" | "week") || names::weekday(next).is_some(),
        _ => true,
    }
}

/// Skips up to three prepositions and marks between two pieces: a comma, a hyphen, an en dash, a period, an opening
/// parenthesis. Stops before a preposition that does not lead to a date, see [`is_lead`]. Returns the position after
/// them, or `start` if there are none.
fn skip_links(scan: &DateScan, start: usize) -> usize {
    let mut i = start;
    for _ in 0..3 {
        match scan.at(i) {
            "," | "-" | "–" | "." | "(" => i += 1,
            _ => match scan.phrase(i, lexicon::dates::LEADS).filter(|n| is_lead(scan, i, *n)) {
                Some(n) => i += n,
                None => break,
            },
        }
    }
    i
}

/// Parses the longest sequence of pieces that begins at `start` and describes one point in time. Up to three
/// prepositions may precede it, and prepositions and marks may separate the pieces. It ends before a piece that
/// contradicts the pieces before it. The tokens include the prepositions, the limit of a repetition ("until March") and
/// a tail ("sharp"), a time zone, and a second weekday ("Monday and Tuesday"), which is ignored.
/// Returns `None` if no piece begins at `start` or after its prepositions.
fn parse_expression(scan: &DateScan, start: usize) -> Option<DateMatch> {
    if !scan.words.may_begin(start, lexicon::dates::LEADS) && dispatch::parsers_for(scan.words, start) == 0 {
        return None;
    }
    let mut parts = DateParts::default();
    let mut end = start;
    loop {
        let first = end == start;
        let i = if first { skip_leads(scan, start) } else { skip_links(scan, end) };
        let lead_start = if first { start } else { end };
        if !first && let Some(next) = skip_other_weekday(scan, end, &parts) {
            end = next;
            continue;
        }
        if !first && let Some(next) = repeat::parse_limit(scan, end, &mut parts) {
            end = next;
            continue;
        }
        let found = (lead_start..=i).rev().find_map(|at| parse_piece(scan, at, lead_start, &parts));
        let added = found.filter(|(_, next)| *next > end).and_then(|(piece, next)| parts.add(piece).then_some(next));
        match added.or_else(|| if first { None } else { skip_tail(scan, end, &mut parts) }) {
            Some(next) => end = next,
            None => break,
        }
    }
    (end > start).then(|| DateMatch { tokens: start..tail_end(scan, start, end).min(scan.end), parts })
}

/// Returns the position after a time zone or a tail at `i` ("sharp"), so that the expression goes on after it: "3pm EST
/// tomorrow". A zone counts only after a clock time and is added to `parts`.
fn skip_tail(scan: &DateScan, i: usize, parts: &mut DateParts) -> Option<usize> {
    if parts.clock.is_some()
        && parts.zone.is_none()
        && let Some((zone, end)) = zone::parse(scan, i)
    {
        parts.zone = Some(zone);
        return Some(end);
    }
    scan.phrase(i, lexicon::dates::TAILS).map(|n| i + n)
}

/// Returns the position after a second weekday that follows "and" or "or" at `i`, because a single date holds only one.
/// Returns `None` if there is none, or if a clock time precedes it.
fn skip_other_weekday(scan: &DateScan, i: usize, parts: &DateParts) -> Option<usize> {
    let linked = matches!(scan.at(i), "and" | "or" | "&") && parts.weekday.is_some() && parts.clock.is_none();
    (linked && names::weekday(scan.at(i + 1)).is_some()).then_some(i + 2)
}

/// Returns the end of the expression `start..end` including the parenthesis that closes it.
fn tail_end(scan: &DateScan, start: usize, end: usize) -> usize {
    let end = end.min(scan.end);
    let opened = (start..end).any(|i| scan.at(i) == "(");
    end + usize::from(opened && scan.at(end) == ")")
}

/// Parses the piece at `i`. `lead_start` is the start of its prepositions: "at 5" is a time, "5" is not. Tries only the
/// parsers that fit the first word, see [`dispatch`]. Returns `None` if none matches or `i` is beyond the range.
fn parse_piece(scan: &DateScan, i: usize, lead_start: usize, parts: &DateParts) -> Option<(DatePiece, usize)> {
    if i >= scan.end {
        return None;
    }
    let parsers = dispatch::parsers_for(scan.words, i);
    if parsers == 0 {
        return None;
    }
    parse_with(parsers, scan, i, lead_start, parts)
}

/// Returns the result of the first parser of the set that matches at `i`. The order is fixed: repetition, distance,
/// range of times, clock time, daily event, part of the day, period, day, holiday. A daily event becomes a clock time,
/// a holiday a fixed day. Returns `None` if no parser of the set matches.
fn parse_with(
    parsers: ParserSet,
    scan: &DateScan,
    i: usize,
    lead_start: usize,
    parts: &DateParts,
) -> Option<(DatePiece, usize)> {
    let applies = |parser: ParserSet| (parsers & parser != 0).then_some(());
    let found = applies(dispatch::REPEAT).and_then(|()| repeat::parse(scan, i, lead_start, parts));
    found
        .map(|(r, end)| (DatePiece::Repeat(r), end))
        .or_else(|| applies(dispatch::OFFSET).and_then(|()| offset::parse(scan, i, lead_start, parts)))
        .or_else(|| {
            let (a, b, end) = applies(dispatch::TIMES).and_then(|()| range::parse_times(scan, i, lead_start, parts))?;
            Some((DatePiece::Times(a, b), end))
        })
        .or_else(|| {
            let found = applies(dispatch::CLOCK).and_then(|()| clock::parse(scan, i, lead_start, parts));
            found.map(|(c, end)| (DatePiece::Clock(c), end))
        })
        .or_else(|| {
            let found = applies(dispatch::DAILY_EVENT).and_then(|()| daily_events::parse(scan, i, lead_start, parts));
            found.map(|(c, end)| (DatePiece::Clock(c), end))
        })
        .or_else(|| applies(dispatch::DAY_PART).and_then(|()| clock::parse_part(scan, i, lead_start, parts)))
        .or_else(|| applies(dispatch::SPAN).and_then(|()| span::parse(scan, i, lead_start)))
        .or_else(|| applies(dispatch::DAY).and_then(|()| day::parse(scan, i, lead_start, parts)))
        .or_else(|| {
            let found = applies(dispatch::HOLIDAY).and_then(|()| holidays::parse(scan, i, lead_start, parts));
            found.map(|(d, end)| (DatePiece::Day(Day::Fixed(d)), end))
        })
}

#[cfg(test)]
mod tests;

//! Finds the dates, times and repetitions in an utterance and says what they mean.
//!
//! An expression is read as a row of pieces ("at 7", "on Friday", "every week") that together name one point in time.
//! What may lie in the past or the future is taken to lie ahead. Nothing in quotes is looked at.

mod calendar;
mod clock;
mod day;
mod extent;
mod first;
mod habit;
mod holidays;
mod names;
mod offset;
mod quarter;
mod range;
mod repeat;
mod resolve;
mod span;

use crate::lexicon;
use crate::numbers;
use crate::phrases::Phrases;
use std::ops::Range;

use jiff::Zoned;
use jiff::civil::{Date, DateTime, Time, Weekday};

use crate::reading::When;
use crate::tokens::Words;
use clock::Clock;
use day::Which;
use first::Readers;
use names::Part;
pub(crate) use offset::shift as distance;
pub(crate) use repeat::{Frequency, Repeat};

/// A stretch of an utterance with everything a reader of dates needs to know.
#[derive(Clone, Copy)]
pub(crate) struct Scan<'a> {
    pub(crate) words: &'a Words<'a>,
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) now: &'a Zoned,
}

impl<'a> Scan<'a> {
    fn at(&self, i: usize) -> &'a str {
        if i < self.end { self.words.at(i) } else { "" }
    }

    fn before(&self, i: usize) -> &'a str {
        if i > self.start { self.words.before(i) } else { "" }
    }

    fn phrase(&self, i: usize, phrases: Phrases) -> Option<usize> {
        self.words.phrase(i, phrases).filter(|n| i + n <= self.end)
    }

    fn today(&self) -> Date {
        self.now.date()
    }

    /// Whether what is read up to `i` can be the end of an expression: no noun follows it directly.
    fn closes(&self, i: usize) -> bool {
        if i >= self.end {
            return true;
        }
        if !self.words.is_word(i) {
            return !self.hyphenates(i);
        }
        is_small(self.at(i)) || starts_piece(self.at(i))
    }

    /// Whether a hyphen at `i` holds two words together, as in "7-eleven".
    fn hyphenates(&self, i: usize) -> bool {
        self.at(i) == "-"
            && i > self.start
            && self.words.touches_next(i - 1)
            && self.words.touches_next(i)
            && self.words.is_word(i + 1)
    }

    fn is_whole(&self, from: usize, to: usize) -> bool {
        let rest = |range: Range<usize>| range.into_iter().all(|i| !self.words.is_word(i));
        rest(self.start..from) && rest(to..self.end)
    }
}

/// Words that do not belong to the number or day before them.
pub(crate) fn is_small(word: &str) -> bool {
    lexicon::dates::SMALL_WORDS.contains(word)
}

fn starts_piece(word: &str) -> bool {
    names::weekday(word).is_some()
        || names::part(word).is_some()
        || names::is_today(word)
        || names::is_tomorrow(word)
        || matches!(word, "tonight" | "this" | "next" | "every" | "each" | "daily" | "weekly" | "everyday" | "monthly")
        || clock::is_figure(word)
}

/// A day as it was named, before the calendar says which one it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Day {
    /// This day and no other.
    Fixed(Date),
    /// A day at some distance: a weekday beside it moves it within its week.
    Rough(Date),
    /// A day of a month, in whichever year comes next.
    Annual { month: i8, day: i8 },
    /// A day of whichever month comes next.
    Monthly(i8),
    /// A week, a month: from the first day to the one after the last; `due` stands for it.
    Span { start: Date, end: Date, due: Date },
}

/// What the pieces of one expression say.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Parts {
    pub(crate) day: Option<Day>,
    weekday: Option<(Weekday, Which)>,
    clock: Option<Clock>,
    /// The other end of "3-4pm".
    until: Option<Clock>,
    /// How many days after the first the last of "March 3 to 5" is.
    days: i64,
    part: Option<Part>,
    instant: Option<DateTime>,
    pub(crate) repeat: Option<Repeat>,
}

enum Piece {
    Day(Day),
    Weekday(Weekday, Which),
    /// Several days of a month: the first, and how many more.
    Days(Day, i64),
    Clock(Clock),
    /// From one time to another.
    Times(Clock, Clock),
    Part(Part),
    /// A part of a certain day: "tonight".
    PartOf(Date, Part),
    Instant(DateTime),
    Repeat(Repeat),
}

/// One expression and the tokens it takes, prepositions included.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) tokens: Range<usize>,
    pub(crate) parts: Parts,
}

impl Found {
    pub(crate) fn when(&self, now: &Zoned) -> Option<When> {
        resolve::when(&self.parts, now)
    }

    /// The time of day, where nothing else is said.
    pub(crate) fn clock(&self, now: &Zoned) -> Option<Time> {
        let alone = !self.parts.names_day() && self.parts.instant.is_none();
        self.parts.clock.filter(|_| alone).and_then(|clock| resolve::clock(clock, self.parts.part, now))
    }

    pub(crate) fn rule(&self) -> Option<String> {
        self.parts.repeat.as_ref().map(|repeat| repeat.rule(&self.parts))
    }
}

impl Parts {
    /// Adds a piece; `false` where it contradicts what is there, so that it begins another expression.
    fn add(&mut self, piece: Piece) -> bool {
        match piece {
            Piece::Day(day) if self.day.is_none() => self.day = Some(day),
            Piece::Day(day) => match self.day.and_then(|known| within(known, day)) {
                Some(day) => self.day = Some(day),
                None => return false,
            },
            Piece::Days(day, more) if self.day.is_none() => {
                self.day = Some(day);
                self.days = more;
            }
            Piece::Times(first, last) if self.clock.is_none() && self.instant.is_none() => {
                self.clock = Some(first);
                self.until = Some(last);
            }
            Piece::Weekday(day, which) if self.weekday.is_none() && self.instant.is_none() => {
                self.weekday = Some((day, which))
            }
            Piece::Clock(clock) if self.clock.is_none() && self.instant.is_none() => self.clock = Some(clock),
            Piece::Part(part) if self.part.is_none() && self.instant.is_none() => self.part = Some(part),
            // "first thing Monday morning"
            Piece::Part(Part::Morning) if self.part == Some(Part::First) => {}
            Piece::PartOf(date, part) if self.part.is_none() && self.day.is_none() && self.weekday.is_none() => {
                self.day = Some(Day::Fixed(date));
                self.part = Some(part);
            }
            Piece::Instant(at) if self.instant.is_none() && self.clock.is_none() => self.instant = Some(at),
            Piece::Repeat(repeat) => match &mut self.repeat {
                None => self.repeat = Some(repeat),
                Some(known) => return known.join(repeat),
            },
            _ => return false,
        }
        true
    }

    fn names_day(&self) -> bool {
        self.day.is_some() || self.weekday.is_some() || self.repeat.is_some()
    }

    /// Whether nothing but a time of day is said.
    pub(crate) fn is_clock_only(&self) -> bool {
        self.clock.is_some() && self.part.is_none() && !self.names_day() && self.instant.is_none()
    }

    /// Takes over what another expression of the same sentence adds; `false` where both say the same kind of thing.
    pub(crate) fn complete(&mut self, other: &Self) -> bool {
        let fits = self.instant.is_none()
            && other.instant.is_none()
            && !(self.day.is_some() && other.day.is_some())
            && !(self.weekday.is_some() && other.weekday.is_some())
            && !(self.clock.is_some() && other.clock.is_some())
            && !(self.part.is_some() && other.part.is_some());
        if !fits {
            // "8am and 6pm daily": the repetition holds for both.
            let adds = self.repeat.is_none() && other.repeat.is_some() && self.instant.is_none() && self.day.is_none();
            self.repeat = if adds { other.repeat.clone() } else { self.repeat.take() };
            return adds;
        }
        self.day = self.day.or(other.day);
        self.weekday = self.weekday.or(other.weekday);
        self.until = self.until.or(other.until);
        self.clock = self.clock.or(other.clock);
        self.part = self.part.or(other.part);
        match (&mut self.repeat, &other.repeat) {
            (Some(mine), Some(theirs)) => {
                mine.join(theirs.clone());
            }
            (mine @ None, theirs) => *mine = theirs.clone(),
            _ => {}
        }
        true
    }
}

/// "next month on the 3rd", "next year on March 3": a day of a stretch that was named.
fn within(known: Day, day: Day) -> Option<Day> {
    let Day::Span { start, end, .. } = known else { return None };
    let length = end.since(start).ok()?.get_days();
    let date = match day {
        Day::Monthly(day) if (28..=31).contains(&length) => Date::new(start.year(), start.month(), day),
        Day::Annual { month, day } if length >= 365 => Date::new(start.year(), month, day),
        _ => return None,
    };
    date.ok().map(Day::Fixed)
}

/// Every expression in the stretch, in order.
pub(crate) fn find(scan: Scan) -> Vec<Found> {
    let mut found = Vec::new();
    let mut i = scan.start;
    while i < scan.end {
        match expression(&scan, i) {
            Some(one) => {
                i = one.tokens.end.max(i + 1);
                found.push(one);
            }
            None => i += 1,
        }
    }
    found
}

fn lead(scan: &Scan, start: usize) -> usize {
    let mut i = start;
    for _ in 0..3 {
        match scan.phrase(i, lexicon::dates::LEADS).filter(|n| leads(scan, i, *n)) {
            Some(n) => i += n,
            None => break,
        }
    }
    i
}

/// Whether a word that may lead to a date does so here: "on at 9" and "in tomorrow" belong to what was said before.
fn leads(scan: &Scan, i: usize, n: usize) -> bool {
    let next = scan.at(i + n);
    match scan.at(i) {
        "beginning" => next != "of",
        "on" | "in" if n == 1 => {
            let relative = names::is_today(next) || names::is_tomorrow(next) || matches!(next, "tonight" | "tonite");
            !relative && !matches!(next, "at" | "by" | "before" | "for" | "every" | "from")
        }
        "about" if n == 1 => clock::is_figure(next) && !matches!(scan.before(i), "me" | "us"),
        "roughly" | "approximately" | "approx" | "exactly" | "precisely" => {
            next == "at" || numbers::cardinal(scan.words, i + n).is_some() || clock::is_figure(next)
        }
        "early" | "late" if span::edge(scan, i).is_some() => false,
        "early" | "late" | "later" => {
            matches!(next, "in" | "this" | "next" | "today" | "tonight" | "tomorrow") || names::part(next).is_some()
        }
        "due" => !matches!(scan.before(i), "is" | "are" | "was" | "be"),
        "all" => matches!(next, "this" | "next" | "day" | "week") || names::weekday(next).is_some(),
        _ => true,
    }
}

/// Words and marks that may stand between two pieces.
fn link(scan: &Scan, start: usize) -> usize {
    let mut i = start;
    for _ in 0..3 {
        match scan.at(i) {
            "," | "-" | "–" | "." | "(" => i += 1,
            _ => match scan.phrase(i, lexicon::dates::LEADS).filter(|n| leads(scan, i, *n)) {
                Some(n) => i += n,
                None => break,
            },
        }
    }
    i
}

fn expression(scan: &Scan, start: usize) -> Option<Found> {
    if !scan.words.may_begin(start, lexicon::dates::LEADS) && first::readers(scan.words, start) == 0 {
        return None;
    }
    let mut parts = Parts::default();
    let mut end = start;
    loop {
        let first = end == start;
        let i = if first { lead(scan, start) } else { link(scan, end) };
        let own = if first { start } else { end };
        if !first && let Some(next) = other_weekday(scan, end, &parts) {
            end = next;
            continue;
        }
        if !first && let Some(next) = repeat::limit(scan, end, &mut parts) {
            end = next;
            continue;
        }
        let read = (own..=i).rev().find_map(|at| piece(scan, at, own, &parts));
        let Some((piece, next)) = read else { break };
        if !parts.add(piece) || next <= end {
            break;
        }
        end = next;
    }
    (end > start).then(|| Found { tokens: start..tail(scan, start, end).min(scan.end), parts })
}

/// "and Friday" after a weekday: a second day, which a single date has no room for.
fn other_weekday(scan: &Scan, i: usize, parts: &Parts) -> Option<usize> {
    let linked = matches!(scan.at(i), "and" | "or" | "&") && parts.weekday.is_some() && parts.clock.is_none();
    (linked && names::weekday(scan.at(i + 1)).is_some()).then_some(i + 2)
}

/// Zones and small words after a time belong to it; the time stays on the clock of the user.
fn tail(scan: &Scan, start: usize, end: usize) -> usize {
    let end = end.min(scan.end);
    let end = scan.phrase(end, lexicon::dates::TAILS).map_or(end, |n| end + n);
    let opened = (start..end).any(|i| scan.at(i) == "(");
    end + usize::from(opened && scan.at(end) == ")")
}

/// The piece at `i`. `own` is where its prepositions begin, so that "at 5" is a time and "5" is not.
fn piece(scan: &Scan, i: usize, own: usize, parts: &Parts) -> Option<(Piece, usize)> {
    if i >= scan.end {
        return None;
    }
    let readers = first::readers(scan.words, i);
    if readers == 0 {
        return None;
    }
    read_by(readers, scan, i, own, parts)
}

/// What the first of these readers makes of `i` that makes anything of it.
fn read_by(readers: Readers, scan: &Scan, i: usize, own: usize, parts: &Parts) -> Option<(Piece, usize)> {
    let asks = |reader: Readers| (readers & reader != 0).then_some(());
    let read = asks(first::REPEAT).and_then(|()| repeat::read(scan, i, own, parts));
    read.map(|(r, end)| (Piece::Repeat(r), end))
        .or_else(|| asks(first::OFFSET).and_then(|()| offset::read(scan, i, own)))
        .or_else(|| {
            let (a, b, end) = asks(first::TIMES).and_then(|()| range::times(scan, i, own, parts))?;
            Some((Piece::Times(a, b), end))
        })
        .or_else(|| {
            let read = asks(first::CLOCK).and_then(|()| clock::read(scan, i, own, parts));
            read.map(|(c, end)| (Piece::Clock(c), end))
        })
        .or_else(|| {
            let read = asks(first::HABIT).and_then(|()| habit::read(scan, i, own));
            read.map(|(c, end)| (Piece::Clock(c), end))
        })
        .or_else(|| asks(first::PART).and_then(|()| clock::part(scan, i, own, parts)))
        .or_else(|| asks(first::SPAN).and_then(|()| span::read(scan, i, own)))
        .or_else(|| asks(first::DAY).and_then(|()| day::read(scan, i, own, parts)))
        .or_else(|| {
            let read = asks(first::FEAST).and_then(|()| holidays::read(scan, i, own));
            read.map(|(d, end)| (Piece::Day(Day::Fixed(d)), end))
        })
}

#[cfg(test)]
mod tests;

//! Distances from now or from a day: "in two weeks", "4 days from Monday", "an hour ago", "2 hours later".

use crate::phrases::phrases;
use jiff::Span;
use jiff::civil::Date;

use super::names::{self, Unit};
use super::{Day, Piece, Scan, calendar, day};
use crate::numbers;
use crate::reading::Shift;

/// A distance: the part that moves the date and the part that moves the clock.
#[derive(Clone, Copy, Default)]
struct Distance {
    months: i64,
    days: i64,
    seconds: i64,
    /// Whether a unit below a day was named.
    exact: bool,
}

impl Distance {
    fn add(&mut self, (n, sixtieths): (i64, i64), unit: Unit) {
        let half = i64::from(sixtieths >= 30);
        match unit {
            Unit::Second => self.seconds += n,
            Unit::Minute => self.seconds += n * 60 + sixtieths,
            Unit::Hour => self.seconds += n * 3600 + sixtieths * 60,
            Unit::Day => {
                self.days += n;
                self.seconds += sixtieths * 1440;
            }
            Unit::Week => self.days += n * 7 + half * 3,
            Unit::Fortnight => self.days += n * 14 + half * 7,
            Unit::Month => {
                self.months += n;
                self.days += half * 15;
            }
            Unit::Quarter => self.months += n * 3,
            Unit::Year => self.months += n * 12 + sixtieths / 5,
        }
        self.exact |= matches!(unit, Unit::Second | Unit::Minute | Unit::Hour) || unit == Unit::Day && sixtieths > 0;
    }

    fn turned(self) -> Self {
        Self { months: -self.months, days: -self.days, seconds: -self.seconds, exact: self.exact }
    }

    fn after(self, date: Date) -> Option<Date> {
        calendar::plus_days(calendar::plus_months(date, self.months)?, self.days)
    }
}

/// A distance at `i` as a move of a date, and where it ends.
pub(crate) fn shift(scan: &Scan, i: usize) -> Option<(Shift, usize)> {
    let (distance, end) = distance(scan, i)?;
    let narrow = |n: i64| i32::try_from(n).ok().filter(|n| n.abs() < 100_000);
    let minutes = distance.seconds / 60;
    Some((Shift { months: narrow(distance.months)?, days: narrow(distance.days)?, minutes }, end))
}

/// "two weeks", "an hour and a half", "2 years 1 month 21 days".
fn distance(scan: &Scan, i: usize) -> Option<(Distance, usize)> {
    let mut total = Distance::default();
    let mut at = i;
    for _ in 0..5 {
        let start = at + usize::from(at > i && matches!(scan.at(at), "and" | ","));
        let Some((amount, unit, end)) = step(scan, start) else { break };
        total.add(amount, unit);
        at = end;
        if let Some(n) = scan.phrase(at, phrases!("and a half | and half")) {
            total.add((0, 30), unit);
            at += n;
        }
    }
    (at > i).then_some((total, at))
}

fn step(scan: &Scan, i: usize) -> Option<((i64, i64), Unit, usize)> {
    if let Some((amount, len)) = numbers::amount(scan.words, i)
        && let Some(unit) = names::unit(scan.at(i + len))
    {
        return Some((amount, unit, i + len + 1));
    }
    let word = scan.at(i);
    let cut = word.find(|c: char| c.is_ascii_alphabetic())?;
    let (digits, unit) = (word.get(..cut)?, word.get(cut..)?);
    let amount = numbers::figures(digits).map(|n| (n, 0)).or_else(|| numbers::fraction(digits))?;
    let unit = match unit {
        "m" => Unit::Minute,
        "d" => Unit::Day,
        "w" => Unit::Week,
        unit => names::unit(unit)?,
    };
    Some((amount, unit, i + 1))
}

pub(crate) fn read(scan: &Scan, i: usize, own: usize) -> Option<(Piece, usize)> {
    if let Some(piece) = weekdays_from_now(scan, i) {
        return Some(piece);
    }
    let roughly = matches!(scan.before(i), "about" | "around" | "like") && i > own + 1 && scan.before(i - 1) == "in";
    let led = i > own && matches!(scan.before(i), "in" | "within" | "after" | "by") || roughly;
    if led && let Some(piece) = minutes_alone(scan, i) {
        return Some(piece);
    }
    let (distance, end) = distance(scan, i).or_else(|| {
        // "the day after Thanksgiving"
        let n = scan.phrase(i, phrases!("the day | day | the night | night"))?;
        Some((Distance { days: 1, ..Distance::default() }, i + n))
    })?;
    if let Some(n) = scan.phrase(end, phrases!("from now | later | hence | from today")) {
        return piece(scan, distance, end + n);
    }
    if let Some(n) = scan.phrase(end, phrases!("ago | earlier than now | back")) {
        return piece(scan, distance.turned(), end + n);
    }
    if matches!(scan.at(end), "from" | "after" | "before")
        && !distance.exact
        && let Some(found) = from_day(scan, distance, end)
    {
        return Some(found);
    }
    led.then(|| piece(scan, distance, end)).flatten()
}

/// "4 days from Monday", "two days before Christmas" (the day must be named).
fn from_day(scan: &Scan, distance: Distance, end: usize) -> Option<(Piece, usize)> {
    let (base, end_of_day) = day::alone(scan, end + 1)?;
    let distance = if scan.at(end) == "before" { distance.turned() } else { distance };
    Some((Piece::Day(Day::Fixed(distance.after(base)?)), end_of_day))
}

fn piece(scan: &Scan, distance: Distance, end: usize) -> Option<(Piece, usize)> {
    if !distance.exact {
        return Some((Piece::Day(Day::Rough(distance.after(scan.today())?)), end));
    }
    let span = Span::new()
        .try_months(distance.months)
        .ok()?
        .try_days(distance.days)
        .ok()?
        .try_seconds(distance.seconds)
        .ok()?;
    let at = scan.now.checked_add(span).ok()?.datetime();
    Some((Piece::Instant(at), end))
}

/// "in 15" and "in 15'" are minutes.
fn minutes_alone(scan: &Scan, i: usize) -> Option<(Piece, usize)> {
    let n = numbers::figures(scan.at(i)).filter(|n| *n > 0 && *n < 1000)?;
    let quote = matches!(scan.at(i + 1), "'" | "’");
    let at_end = (i + 1..scan.end).all(|k| !scan.words.is_word(k)) && scan.before(i) == "in";
    let distance = Distance { seconds: n * 60, exact: true, ..Distance::default() };
    (quote || at_end).then(|| piece(scan, distance, i + 1 + usize::from(quote)))?
}

/// "2 Mondays from now", "two Sundays from today".
fn weekdays_from_now(scan: &Scan, i: usize) -> Option<(Piece, usize)> {
    let (n, len) = numbers::cardinal(scan.words, i)?;
    let (weekday, _) = names::weekday(scan.at(i + len))?;
    let tail = scan.phrase(i + len + 1, phrases!("from now | from today"))?;
    let first = calendar::next(scan.today(), weekday, false)?;
    let date = calendar::plus_days(first, (n - 1) * 7)?;
    Some((Piece::Day(Day::Fixed(date)), i + len + 1 + tail))
}

//! Distances from now or from a day: "in two weeks", "4 days from Monday", "an hour ago", "2 hours later".

use jiff::Span;
use jiff::civil::{Date, Weekday};

use super::names::{self, Unit};
use super::{Day, Piece, Scan, calendar, day};
use crate::lexicon;
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
            Unit::Decade => self.months += n * 120 + sixtieths * 2,
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
        if let Some(n) = scan.phrase(at, lexicon::offsets::AND_A_HALF) {
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
    let (amount, unit) = tight(scan.at(i))?;
    Some((amount, unit, i + 1))
}

/// "45min", "2.5h", "3d" and "1h30m".
fn tight(word: &str) -> Option<((i64, i64), Unit)> {
    let cut = word.find(|c: char| c.is_ascii_alphabetic())?;
    let digits = word.get(..cut)?;
    let rest = word.get(cut..)?;
    let amount = numbers::figures(digits).map(|n| (n, 0)).or_else(|| numbers::fraction(digits))?;
    let unit = rest.trim_end_matches(|c: char| c.is_ascii_digit() || c == 'm');
    if let Some(hours) = rest.strip_prefix(unit).filter(|_| matches!(unit, "h" | "hr"))
        && let Some(minutes) = numbers::figures(hours.trim_end_matches('m')).filter(|n| *n < 60)
    {
        return Some(((amount.0 * 60 + minutes, 0), Unit::Minute));
    }
    let unit = match rest {
        "m" => Unit::Minute,
        "d" => Unit::Day,
        "w" => Unit::Week,
        "y" => Unit::Year,
        "s" => Unit::Second,
        rest => names::unit(rest)?,
    };
    Some((amount, unit))
}

/// A tight amount after "every", in minutes for minutes and hours; its unit and where it ends.
pub(crate) fn compact(scan: &Scan, i: usize) -> Option<(i64, Unit, usize)> {
    let (whole, sixtieths, unit, end) = match tight(scan.at(i)) {
        Some(((whole, sixtieths), unit)) => (whole, sixtieths, unit, i + 1),
        None => {
            let ((whole, sixtieths), unit, end) = step(scan, i)?;
            (whole, sixtieths, unit, end)
        }
    };
    match unit {
        Unit::Hour => Some((whole * 60 + sixtieths, unit, end)),
        _ => (sixtieths == 0).then_some((whole, unit, end)),
    }
}

/// A distance of whole days, as months and days.
pub(crate) fn whole_days(scan: &Scan, i: usize) -> Option<((i64, i64), usize)> {
    let (distance, end) = distance(scan, i)?;
    (!distance.exact).then_some(((distance.months, distance.days), end))
}

/// How many of a unit a distance is, where it names no other.
pub(crate) fn steps(scan: &Scan, i: usize, wanted: Unit) -> Option<i64> {
    let ((n, sixtieths), unit, end) = step(scan, i)?;
    let alone = distance(scan, i).is_some_and(|(_, last)| last == end);
    let n = if unit == Unit::Week && wanted == Unit::Day { n * 7 } else { n };
    (alone && sixtieths == 0 && (unit == wanted || unit == Unit::Week && wanted == Unit::Day)).then_some(n)
}

pub(crate) fn read(scan: &Scan, i: usize, own: usize) -> Option<(Piece, usize)> {
    if let Some(piece) = weekdays_from_now(scan, i) {
        return Some(piece);
    }
    let roughly = lexicon::offsets::APPROXIMATELY.contains(scan.before(i))
        && i > own + 1
        && matches!(scan.before(i - 1), "in" | "within" | "less");
    let led = i > own && matches!(scan.before(i), "in" | "within" | "after" | "by") || roughly;
    if led && let Some(piece) = minutes_alone(scan, i) {
        return Some(piece);
    }
    if let Some(piece) = workdays(scan, i, led) {
        return Some(piece);
    }
    let plus = usize::from(scan.at(i) == "+");
    let (distance, end) = distance(scan, i + plus).or_else(|| one(scan, i))?;
    if plus > 0 {
        return piece(scan, distance, end);
    }
    if let Some(n) = scan.phrase(end, lexicon::offsets::FROM_NOW) {
        return piece(scan, distance, end + n);
    }
    if !led && let Some(found) = from_here(scan, distance, end) {
        return Some(found);
    }
    if let Some(n) = scan.phrase(end, lexicon::offsets::AGO) {
        return piece(scan, distance.turned(), end + n);
    }
    if matches!(scan.at(end), "from" | "after" | "before")
        && !distance.exact
        && let Some(found) = from_day(scan, distance, end)
    {
        return Some(found);
    }
    // "in two weeks' time"
    let end = end + scan.phrase(end, lexicon::offsets::TIME).unwrap_or(0);
    led.then(|| piece(scan, distance, end)).flatten()
}

/// "the day" before or after a day, "the hour" that has begun.
fn one(scan: &Scan, i: usize) -> Option<(Distance, usize)> {
    let n = scan.phrase(i, lexicon::offsets::UNIT_ALONE)?;
    let mut distance = Distance::default();
    match scan.before(i + n) {
        "week" => distance.days = 7,
        "month" => distance.months = 1,
        "hour" => distance.add((1, 0), Unit::Hour),
        _ => distance.days = 1,
    }
    let hour = distance.exact && matches!(scan.before(i), "within" | "in");
    let bound = matches!(scan.at(i + n), "before" | "after" | "from");
    (if distance.exact { hour } else { bound }).then_some((distance, i + n))
}

/// "a week today", "a week on Friday", "two weeks tomorrow".
fn from_here(scan: &Scan, distance: Distance, end: usize) -> Option<(Piece, usize)> {
    let weeks = distance.days > 0 && distance.days % 7 == 0 && distance.months == 0 && !distance.exact;
    let on = usize::from(scan.at(end) == "on" && names::weekday(scan.at(end + 1)).is_some());
    let named = names::is_today(scan.at(end)) || names::is_tomorrow(scan.at(end));
    let (base, end) = day::alone(scan, end + on).filter(|_| weeks && (named || on > 0))?;
    Some((Piece::Day(Day::Fixed(distance.after(base)?)), end))
}

/// "in 3 business days", "5 working days from now", "the next working day".
fn workdays(scan: &Scan, i: usize, led: bool) -> Option<(Piece, usize)> {
    let next = scan.phrase(i, lexicon::offsets::NEXT);
    let (n, len) = next.map(|len| (1, len)).or_else(|| numbers::cardinal(scan.words, i))?;
    let mut end = i + len + scan.phrase(i + len, lexicon::offsets::WORKDAYS)?;
    let tail = scan.phrase(end, lexicon::offsets::FROM_NOW);
    end += tail.unwrap_or(0);
    if !(led || next.is_some() || tail.is_some()) || !(1..=250).contains(&n) {
        return None;
    }
    let mut date = scan.today();
    let mut left = n;
    while left > 0 {
        date = calendar::plus_days(date, 1)?;
        left -= i64::from(!matches!(date.weekday(), Weekday::Saturday | Weekday::Sunday));
    }
    Some((Piece::Day(Day::Fixed(date)), end))
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
    let tail = scan.phrase(i + len + 1, lexicon::offsets::FROM_TODAY)?;
    let first = calendar::next(scan.today(), weekday, false)?;
    let date = calendar::plus_days(first, (n - 1) * 7)?;
    Some((Piece::Day(Day::Fixed(date)), i + len + 1 + tail))
}

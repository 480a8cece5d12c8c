//! Parses distances from now or from a day: "in two weeks", "4 days from Monday", "an hour ago", "2 hours later".
//!
//! An amount is a pair: whole units and additional sixtieths of a unit. Conventions of the `dates` module: `i` is the
//! first token of the piece, `lead_start` the first of the prepositions before it, and `parts` are the pieces before
//! it. A parser returns its result and the position after it, or `None` if nothing matches. "A noun follows" means that
//! an ordinary word follows, see [`DateScan::can_end_at`].

use jiff::Span;
use jiff::civil::{Date, Weekday};

use super::names::{self, TimeUnit};
use super::{DateParts, DatePiece, DateScan, Day, calendar, clock, context, day};
use crate::lexicon;
use crate::numbers;
use crate::parsed::DateShift;

/// A distance in time. Months and days move the date, seconds move the clock.
#[derive(Clone, Copy, Default)]
struct Distance {
    months: i64,
    days: i64,
    seconds: i64,
    /// True if a unit below a day is named.
    exact: bool,
}

impl Distance {
    /// Adds an amount: whole units and additional sixtieths. Half a week is 3 days, half a fortnight 7 days, half a
    /// month 15 days. Other fractions of these units are rounded down to a half or to nothing. Fractions of years and
    /// decades become whole months. Fractions of seconds and quarters are ignored. Sets `exact` for units below a day
    /// and for fractions of a day.
    fn add(&mut self, (n, sixtieths): (i64, i64), unit: TimeUnit) {
        let half = i64::from(sixtieths >= 30);
        match unit {
            TimeUnit::Second => self.seconds += n,
            TimeUnit::Minute => self.seconds += n * 60 + sixtieths,
            TimeUnit::Hour => self.seconds += n * 3600 + sixtieths * 60,
            TimeUnit::Day => {
                self.days += n;
                self.seconds += sixtieths * 1440;
            }
            TimeUnit::Week => self.days += n * 7 + half * 3,
            TimeUnit::Fortnight => self.days += n * 14 + half * 7,
            TimeUnit::Month => {
                self.months += n;
                self.days += half * 15;
            }
            TimeUnit::Quarter => self.months += n * 3,
            TimeUnit::Year => self.months += n * 12 + sixtieths / 5,
            TimeUnit::Decade => self.months += n * 120 + sixtieths * 2,
        }
        self.exact |= matches!(unit, TimeUnit::Second | TimeUnit::Minute | TimeUnit::Hour)
            || unit == TimeUnit::Day && sixtieths > 0;
    }

    fn negated(self) -> Self {
        Self { months: -self.months, days: -self.days, seconds: -self.seconds, exact: self.exact }
    }

    /// Adds months and days to a date. Ignores seconds. Returns `None` beyond the supported range of dates.
    fn added_to(self, date: Date) -> Option<Date> {
        calendar::plus_days(calendar::plus_months(date, self.months)?, self.days)
    }
}

/// Parses a distance as a shift of a date. Returns the shift and its end. Seconds are cut off. Returns `None` for
/// 100,000 months or days and more.
pub(crate) fn parse_shift(scan: &DateScan, i: usize) -> Option<(DateShift, usize)> {
    let (distance, end) = parse_distance(scan, i)?;
    let narrow = |n: i64| i32::try_from(n).ok().filter(|n| n.abs() < 100_000);
    let minutes = distance.seconds / 60;
    Some((DateShift { months: narrow(distance.months)?, days: narrow(distance.days)?, minutes }, end))
}

/// Parses "two weeks", "an hour and a half", "2 years 1 month 21 days": the sum of up to five amounts. "and" or a comma
/// may separate them. "and a half" after a unit adds half of it. Returns the distance and its end, or `None` if no
/// amount with a unit begins at `i`.
fn parse_distance(scan: &DateScan, i: usize) -> Option<(Distance, usize)> {
    let mut total = Distance::default();
    let mut at = i;
    for _ in 0..5 {
        let start = at + usize::from(at > i && matches!(scan.at(at), "and" | ","));
        // "in 3 days, a quarter past 8"
        let clock = |end: usize| scan.at(end - 1) == "quarter" && scan.starts_time(end - 1);
        let Some((amount, unit, end)) = parse_step(scan, start).filter(|(.., end)| !clock(*end)) else { break };
        total.add(amount, unit);
        at = end;
        if let Some(n) = scan.phrase(at, lexicon::offsets::AND_A_HALF) {
            total.add((0, 30), unit);
            at += n;
        }
    }
    (at > i).then_some((total, at))
}

/// Parses one amount with its unit: "two weeks", "half an hour", "45min". Hours with minutes in one word ("1h30m") are
/// one amount in minutes. "m", "d", "w", "y" and "s" are units only in one word with the number ("3d"). Returns the
/// amount as whole units and sixtieths, the unit and the next position. Returns `None` if there is no amount, or if no
/// unit follows it.
fn parse_step(scan: &DateScan, i: usize) -> Option<((i64, i64), TimeUnit, usize)> {
    if let Some((amount, len)) = numbers::amount(scan.words, i)
        && let Some(unit) = names::time_unit(scan.at(i + len))
    {
        return Some((amount, unit, i + len + 1));
    }
    let (amount, unit) = parse_tight(scan.at(i))?;
    Some((amount, unit, i + 1))
}

/// Parses an amount and a unit in one word: "45min", "2.5h", "3d" and "1h30m". Returns whole units and sixtieths with
/// the unit. "1h30m" is in minutes; its minutes are below 60. "m", "d", "w", "y" and "s" are units here. Returns `None`
/// if the word does not begin with a number, or if the letters are no unit.
pub(super) fn parse_tight(word: &str) -> Option<((i64, i64), TimeUnit)> {
    let cut = word.find(|c: char| c.is_ascii_alphabetic())?;
    let digits = word.get(..cut)?;
    let rest = word.get(cut..)?;
    let amount = numbers::parse_digits(digits).map(|n| (n, 0)).or_else(|| numbers::fraction(digits))?;
    let unit = rest.trim_end_matches(|c: char| c.is_ascii_digit() || c == 'm');
    if let Some(hours) = rest.strip_prefix(unit).filter(|_| matches!(unit, "h" | "hr"))
        && let Some(minutes) = numbers::parse_digits(hours.trim_end_matches('m')).filter(|n| *n < 60)
    {
        return Some(((amount.0 * 60 + minutes, 0), TimeUnit::Minute));
    }
    let unit = match rest {
        "m" => TimeUnit::Minute,
        "d" => TimeUnit::Day,
        "w" => TimeUnit::Week,
        "y" => TimeUnit::Year,
        "s" => TimeUnit::Second,
        rest => names::time_unit(rest)?,
    };
    Some((amount, unit))
}

/// Parses an amount after "every": "15mins", "1.5 hours". Returns the amount, its unit and its end. The amount of hours
/// is in minutes, although the unit is the hour. Returns `None` for a fraction of another unit, and if there is no
/// amount.
pub(crate) fn parse_compact(scan: &DateScan, i: usize) -> Option<(i64, TimeUnit, usize)> {
    let (whole, sixtieths, unit, end) = match parse_tight(scan.at(i)) {
        Some(((whole, sixtieths), unit)) => (whole, sixtieths, unit, i + 1),
        None => {
            let ((whole, sixtieths), unit, end) = parse_step(scan, i)?;
            (whole, sixtieths, unit, end)
        }
    };
    match unit {
        TimeUnit::Hour => Some((whole * 60 + sixtieths, unit, end)),
        _ => (sixtieths == 0).then_some((whole, unit, end)),
    }
}

/// Parses a distance without hours, minutes and seconds. Returns months and days, and its end. Returns `None` if it
/// contains one of these units.
pub(crate) fn parse_whole_days(scan: &DateScan, i: usize) -> Option<((i64, i64), usize)> {
    let (distance, end) = parse_distance(scan, i)?;
    (!distance.exact).then_some(((distance.months, distance.days), end))
}

/// Returns the number of units of a distance at `i`. Returns `None` if it contains another unit or a fraction. Weeks
/// count as seven days if days are wanted.
pub(crate) fn count_units(scan: &DateScan, i: usize, wanted: TimeUnit) -> Option<i64> {
    let ((n, sixtieths), unit, end) = parse_step(scan, i)?;
    let alone = parse_distance(scan, i).is_some_and(|(_, last)| last == end);
    let n = if unit == TimeUnit::Week && wanted == TimeUnit::Day { n * 7 } else { n };
    (alone && sixtieths == 0 && (unit == wanted || unit == TimeUnit::Week && wanted == TimeUnit::Day)).then_some(n)
}

/// Parses a distance from now or from a day at `i`. With hours, minutes or seconds, a distance from now yields a point
/// in time, else a day. Also parses "in 15" (minutes), "in 3 business days" and "2 Mondays from now". A bare distance
/// ("two weeks") needs a context:
/// - after "in", "within", "after", "by" or "+"; "about" or a similar word may follow "in" and "within".
/// - before "ago", "back", "from now", "later", "hence" or "from today".
/// - before a reference, without hours, minutes and seconds: "two days before Christmas", "a week on Friday".
/// - before a clock time, without days and longer units: "2 hours after 3pm".
pub(crate) fn parse(scan: &DateScan, i: usize, lead_start: usize, parts: &DateParts) -> Option<(DatePiece, usize)> {
    if let Some(piece) = parse_counted_weekdays(scan, i, lead_start) {
        return Some(piece);
    }
    let roughly = lexicon::offsets::APPROXIMATELY.contains(scan.before(i))
        && i > lead_start + 1
        && matches!(scan.before(i - 1), "in" | "within" | "less");
    let led = i > lead_start && matches!(scan.before(i), "in" | "within" | "after" | "by") || roughly;
    if led && let Some(piece) = parse_bare_minutes(scan, i) {
        return Some(piece);
    }
    if let Some(piece) = parse_workdays(scan, i, led) {
        return Some(piece);
    }
    let plus = usize::from(scan.at(i) == "+");
    let (distance, end) = parse_distance(scan, i + plus).or_else(|| parse_single_unit(scan, i, lead_start))?;
    if plus > 0 {
        return distance_piece(scan, distance, end);
    }
    if let Some(n) = scan.phrase(end, lexicon::offsets::FROM_NOW) {
        return distance_piece(scan, distance, end + n);
    }
    if !led && let Some(found) = parse_weeks_from(scan, distance, end) {
        return Some(found);
    }
    if let Some(n) = scan.phrase(end, lexicon::offsets::AGO) {
        return distance_piece(scan, distance.negated(), end + n);
    }
    if distance.exact
        && let Some(found) = parse_from_time(scan, distance, end, parts)
    {
        return Some(found);
    }
    if matches!(scan.at(end), "from" | "after" | "before")
        && !distance.exact
        && let Some(found) = parse_from_day(scan, distance, end)
    {
        return Some(found);
    }
    // "in two weeks' time"
    let end = end + scan.phrase(end, lexicon::offsets::TIME).unwrap_or(0);
    led.then(|| distance_piece(scan, distance, end)).flatten()
}

/// Parses the reference of hours, minutes and seconds at `end`: "after 3pm", "before noon", "from half past six". A
/// bare hour counts only after a preposition that leads to a time ("before 8"). Returns the clock time with its
/// distance. Returns `None` if the distance contains days or longer units, and for any other reference.
fn parse_from_time(scan: &DateScan, distance: Distance, end: usize, parts: &DateParts) -> Option<(DatePiece, usize)> {
    let n = scan.phrase(end, lexicon::offsets::FROM_TIME).filter(|_| distance.days == 0 && distance.months == 0)?;
    let (base, next) = clock::parse(scan, end + n, end, parts)?;
    let is_before = matches!(scan.at(end), "before" | "prior" | "ahead");
    let seconds = if is_before { -distance.seconds } else { distance.seconds };
    Some((DatePiece::Shifted(base, seconds), next))
}

/// Parses a distance of one unit: "the day", "the night", "the week", "the month" before "before", "after" or "from",
/// and "the hour" after "in" or "within". "night" counts as a day. The article of "day" and "night" is optional.
/// "week" without an article must not follow a noun, and a weekday must follow: "week on Friday". Returns `None` in any
/// other context.
fn parse_single_unit(scan: &DateScan, i: usize, lead_start: usize) -> Option<(Distance, usize)> {
    if scan.at(i) == "week" {
        let linked = matches!(scan.at(i + 1), "on" | "from") && names::weekday(scan.at(i + 2)).is_some();
        let distance = Distance { days: 7, ..Distance::default() };
        return (linked && context::is_free_part(scan, i, lead_start)).then_some((distance, i + 1));
    }
    let n = scan.phrase(i, lexicon::offsets::UNIT_ALONE)?;
    let mut distance = Distance::default();
    match scan.before(i + n) {
        "week" => distance.days = 7,
        "month" => distance.months = 1,
        "hour" => distance.add((1, 0), TimeUnit::Hour),
        _ => distance.days = 1,
    }
    let hour = distance.exact && matches!(scan.before(i), "within" | "in");
    let bound = matches!(scan.at(i + n), "before" | "after" | "from");
    (if distance.exact { hour } else { bound }).then_some((distance, i + n))
}

/// Parses the reference of whole weeks or months at `end`: "a week today", "a week on Friday", "two weeks tomorrow", "a
/// month today". Returns `None` for other distances and other days.
fn parse_weeks_from(scan: &DateScan, distance: Distance, end: usize) -> Option<(DatePiece, usize)> {
    let weeks = distance.days > 0 && distance.days % 7 == 0 && distance.months == 0 && !distance.exact;
    let months = distance.months > 0 && distance.days == 0 && !distance.exact;
    let on = usize::from(scan.at(end) == "on" && names::weekday(scan.at(end + 1)).is_some());
    let named = names::is_today(scan.at(end)) || names::is_tomorrow(scan.at(end));
    let (base, end) = day::parse_alone(scan, end + on).filter(|_| weeks && (named || on > 0) || months && named)?;
    Some((DatePiece::Day(Day::Fixed(distance.added_to(base)?)), end))
}

/// Parses "in 3 business days", "5 working days from now", "the next working day", up to 250, as a fixed day. Counts
/// from tomorrow and skips weekends, not holidays. `led` is true after "in" and similar words. Without it, "next" must
/// precede, or "from now" or "later" must follow. "next" is always one day. Returns `None` otherwise.
fn parse_workdays(scan: &DateScan, i: usize, led: bool) -> Option<(DatePiece, usize)> {
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
    Some((DatePiece::Day(Day::Fixed(date)), end))
}

/// Parses "4 days from Monday", "two days before Christmas". `end` is the position of "from", "after" or "before".
/// Returns a fixed day.
fn parse_from_day(scan: &DateScan, distance: Distance, end: usize) -> Option<(DatePiece, usize)> {
    let (base, end_of_day) = day::parse_reference(scan, end + 1)?;
    let distance = if scan.at(end) == "before" { distance.negated() } else { distance };
    Some((DatePiece::Day(Day::Fixed(distance.added_to(base)?)), end_of_day))
}

/// Returns the point in time at this distance from now, with `end`. A distance without hours, minutes and seconds
/// yields a rough day instead. A weekday next to it then selects a day of the same week. Returns `None` beyond the
/// supported range of dates.
fn distance_piece(scan: &DateScan, distance: Distance, end: usize) -> Option<(DatePiece, usize)> {
    if !distance.exact {
        return Some((DatePiece::Day(Day::Rough(distance.added_to(scan.today())?)), end));
    }
    let span = Span::new()
        .try_months(distance.months)
        .ok()?
        .try_days(distance.days)
        .ok()?
        .try_seconds(distance.seconds)
        .ok()?;
    let at = scan.now.checked_add(span).ok()?.datetime();
    Some((DatePiece::Instant(at), end))
}

/// Parses "in 15" and "in 15'" as minutes, up to 999. Without the mark, "in" must precede and no word may follow.
fn parse_bare_minutes(scan: &DateScan, i: usize) -> Option<(DatePiece, usize)> {
    let n = numbers::parse_digits(scan.at(i)).filter(|n| *n > 0 && *n < 1000)?;
    let quote = matches!(scan.at(i + 1), "'" | "’");
    let at_end = (i + 1..scan.end).all(|k| !scan.words.is_word(k)) && scan.before(i) == "in";
    let distance = Distance { seconds: n * 60, exact: true, ..Distance::default() };
    (quote || at_end).then(|| distance_piece(scan, distance, i + 1 + usize::from(quote)))?
}

/// Parses "2 Mondays from now", "two Sundays from today", "in 2 Mondays", "2 Thursdays ago" as a fixed day. The first
/// one ahead is after today, the first one back is before today. "0 Mondays from now" is the one before the first.
fn parse_counted_weekdays(scan: &DateScan, i: usize, lead_start: usize) -> Option<(DatePiece, usize)> {
    let (n, len) = numbers::cardinal(scan.words, i)?;
    let (weekday, form) = names::weekday(scan.at(i + len))?;
    let end = i + len + 1;
    let led = i > lead_start && scan.before(i) == "in" && form == names::WeekdayForm::Plural && n > 0;
    let (sign, tail) = match (scan.phrase(end, lexicon::offsets::FROM_TODAY), scan.phrase(end, lexicon::offsets::AGO)) {
        (Some(tail), _) => (1, tail),
        (None, Some(tail)) if n > 0 => (-1, tail),
        _ if led => (1, 0),
        _ => return None,
    };
    let first = scan.today().nth_weekday(sign, weekday).ok()?;
    let date = calendar::plus_days(first, (n - 1) * 7 * i64::from(sign))?;
    Some((DatePiece::Day(Day::Fixed(date)), end + tail))
}

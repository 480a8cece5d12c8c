//! Single days: "tomorrow", "next Friday", "Feb 18th", "10/31/2025", "the 21st".

use jiff::Timestamp;
use jiff::civil::{Date, DateTime, Weekday};

use super::names::{self, Form};
use super::{Day, Parts, Piece, Scan, calendar, range, resolve};
use crate::lexicon;
use crate::numbers;
use crate::reader::Order;

/// Which of several days, weeks or months of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    Plain,
    This,
    Next,
    Last,
    /// "Friday after next"
    AfterNext,
}

pub(crate) fn which(word: &str) -> Option<Which> {
    Some(match word {
        "this" | "current" => Which::This,
        "coming" | "upcoming" | "next" | "following" | "nxt" => Which::Next,
        "last" | "past" | "previous" | "prior" => Which::Last,
        _ => return None,
    })
}

pub(crate) fn read(scan: &Scan, i: usize, own: usize, parts: &Parts) -> Option<(Piece, usize)> {
    if let Some((at, end)) = iso(scan, i) {
        return Some((Piece::Instant(at), end));
    }
    if let Some((day, more, end)) = days_of_month(scan, i) {
        return Some((Piece::Days(day, more), end));
    }
    relative(scan, i)
        .or_else(|| numeric(scan, i, own))
        .or_else(|| unmarked(scan, i, own))
        .or_else(|| month_and_day(scan, i))
        .or_else(|| day_and_month(scan, i))
        .map(|(day, end)| (Piece::Day(day), end))
        .or_else(|| weekday(scan, i, own))
        .or_else(|| day_of_month(scan, i, own, parts).map(|(day, end)| (Piece::Day(day), end)))
}

/// A single day with nothing beside it, for "3 days from …".
pub(crate) fn alone(scan: &Scan, i: usize) -> Option<(Date, usize)> {
    let (piece, end) = read(scan, i, i, &Parts::default()).or_else(|| {
        super::holidays::read(scan, i, i.saturating_sub(1)).map(|(d, end)| (Piece::Day(Day::Fixed(d)), end))
    })?;
    let mut parts = Parts::default();
    parts.add(piece);
    Some((resolve::date(&parts, scan.now)?, end))
}

type Read = Option<(Day, usize)>;

fn relative(scan: &Scan, i: usize) -> Read {
    let today = scan.today();
    if let Some(n) = scan.phrase(i, lexicon::days::NEXT_DAY) {
        return Some((Day::Fixed(calendar::plus_days(today, 1)?), i + n));
    }
    if let Some(n) = scan.phrase(i, lexicon::days::AFTER) {
        if scan.at(i) == "overmorrow" || names::is_tomorrow(scan.at(i + n)) {
            let end = if scan.at(i) == "overmorrow" { i + 1 } else { i + n + 1 };
            return Some((Day::Fixed(calendar::plus_days(today, 2)?), end));
        }
        return None;
    }
    let word = scan.at(i);
    let days = if names::is_today(word) {
        0
    } else if names::is_tomorrow(word) {
        1
    } else if matches!(word, "yesterday" | "yesterday's") {
        -1
    } else {
        return None;
    };
    // "tomorrow week" is a week later.
    let week = days >= 0 && scan.at(i + 1) == "week" && scan.closes(i + 2);
    let (days, end) = if week { (days + 7, i + 2) } else { (days, i + 1) };
    Some((Day::Fixed(calendar::plus_days(today, days)?), end))
}

/// "12/31/1999", "12-31-99", "2025.6.14", "2025-12-24", "4/25".
fn numeric(scan: &Scan, i: usize, own: usize) -> Read {
    let word = scan.at(i);
    let mark = ['/', '-', '.'].into_iter().find(|mark| word.contains(*mark))?;
    // Of "3/3-3/5" the first.
    let word = word.split_once('-').filter(|(a, b)| a.contains('/') && b.contains('/')).map_or(word, |(a, _)| a);
    let mut fields = word.split(mark);
    let a = fields.next()?;
    let b = fields.next()?;
    let c = fields.next();
    if fields.next().is_some() {
        return None;
    }
    let x = numbers::figures(a)?;
    let y = numbers::figures(b)?;
    let small = |n: i64| i8::try_from(n).ok();
    let Some(c) = c else {
        if let Some(year) = calendar::year(b).filter(|_| mark == '/' && b.len() == 4) {
            let start = Date::new(year, small(x)?, 1).ok()?;
            let end = calendar::plus_months(start, 1)?;
            return Some((Day::Span { start, end, due: start }, i + 1));
        }
        let (month, day) = in_order(scan, x, y);
        let shaped = mark == '/' && (1..=12).contains(&month) && (1..=31).contains(&day);
        let led = own < i && scan.before(i) != "the";
        let near = led || which(scan.before(i)).is_some() || scan.is_whole(i, i + 1);
        // Round the clock, unless a day is asked for.
        let always = word == "24/7" && (scan.words.numeric == Order::MonthFirst || !led);
        let fits = shaped && !always && (near || scan.closes(i + 1)) && names::unit(scan.at(i + 1)).is_none();
        return if fits { dated(small(month)?, day, None, i + 1) } else { None };
    };
    let date = if a.len() == 4 {
        Date::new(calendar::year(a)?, small(y)?, small(numbers::figures(c)?)?).ok()
    } else {
        let (month, day) = in_order(scan, x, y);
        Date::new(calendar::year(c)?, small(month)?, small(day)?).ok()
    };
    Some((Day::Fixed(date?), i + 1))
}

/// "2027-03-15T14:30", on the clock of the zone it names and else on the user's.
fn iso(scan: &Scan, i: usize) -> Option<(DateTime, usize)> {
    let word = scan.at(i);
    if word.len() < 15 || !word.is_char_boundary(10) || !word.get(10..)?.starts_with('t') {
        return None;
    }
    let mut end = i + 1;
    while end < scan.end && scan.words.touches_next(end - 1) && end < i + 3 {
        end += 1;
    }
    (i + 1..=end).rev().find_map(|end| {
        let text = scan.words.text(i..end);
        let moment = text.parse::<Timestamp>().map(|at| at.to_zoned(scan.now.time_zone().clone()).datetime());
        Some((moment.or_else(|_| text.parse()).ok()?, end))
    })
}

/// "20270315" after "on" and its like.
fn unmarked(scan: &Scan, i: usize, own: usize) -> Read {
    let word = scan.at(i);
    let digits = word.len() == 8 && word.bytes().all(|b| b.is_ascii_digit());
    if !digits || !(own < i || scan.is_whole(i, i + 1)) {
        return None;
    }
    let date = Date::strptime("%Y%m%d", word).ok().filter(|date| (1970..2100).contains(&date.year()))?;
    Some((Day::Fixed(date), i + 1))
}

/// The month and the day of two figures: in the user's order unless only the other is possible.
fn in_order(scan: &Scan, x: i64, y: i64) -> (i64, i64) {
    let day_first = match scan.words.numeric {
        Order::MonthFirst => x > 12,
        Order::DayFirst => y <= 12,
    };
    if day_first { (y, x) } else { (x, y) }
}

fn dated(month: i8, day: i64, year: Option<i16>, end: usize) -> Read {
    let day = i8::try_from(day).ok().filter(|d| (1..=31).contains(d))?;
    match year {
        Some(year) => Some((Day::Fixed(Date::new(year, month, day).ok()?), end)),
        None => Date::new(2024, month, day).ok().map(|_| (Day::Annual { month, day }, end)),
    }
}

/// A year after a date: ", 2026", "of 1995", "'27", "next year".
pub(crate) fn year(scan: &Scan, i: usize) -> (Option<i16>, usize) {
    let at = i + usize::from(matches!(scan.at(i), "," | "of" | "in"));
    let word = scan.at(at);
    if let Some(year) = calendar::year(word).filter(|_| word.len() == 4 && !scan.at(at + 1).starts_with("hour")) {
        return (Some(year), at + 1);
    }
    if matches!(word, "'" | "’")
        && scan.words.touches_next(at)
        && let Some(year) = calendar::year(scan.at(at + 1)).filter(|_| scan.at(at + 1).len() == 2)
    {
        return (Some(year), at + 2);
    }
    let this = scan.today().year();
    let years = if scan.at(at + 1) == "year" { which(word) } else { None };
    match years {
        Some(Which::This) => (Some(this), at + 2),
        Some(Which::Next) => (this.checked_add(1), at + 2),
        Some(Which::Last) => (this.checked_sub(1), at + 2),
        _ => (None, i),
    }
}

/// "Feb 18", "June twenty first", "march first", "nov/2", "Oct2".
pub(crate) fn month_and_day(scan: &Scan, i: usize) -> Read {
    let word = scan.at(i);
    if let Some(cut) = word.find(|c: char| c.is_ascii_digit()).filter(|cut| *cut >= 3) {
        let name = word.get(..cut)?;
        let digits = word.get(cut..)?;
        return dated(names::month(name)?, numbers::figures(digits)?, None, i + 1);
    }
    let month = names::month(word)?;
    let mut at = i + 1;
    at += usize::from(matches!(scan.at(at), "." | "/"));
    at += usize::from(scan.at(at) == "the");
    let (day, len) = numbers::ordinal(scan.words, at)
        .or_else(|| numbers::cardinal(scan.words, at))
        .filter(|(n, _)| (1..=31).contains(n))?;
    if names::unit(scan.at(at + len)).is_some() || scan.at(at).contains(':') {
        return None;
    }
    let (year, end) = year(scan, at + len);
    dated(month, day, year, end)
}

/// "March 3-5", "3rd to 5th of March": the first day and how many more.
fn days_of_month(scan: &Scan, i: usize) -> Option<(Day, i64, usize)> {
    if let Some(month) = names::month(scan.at(i)) {
        let (first, more, end) = range::days(scan, i + 1).filter(|(.., end)| scan.closes(*end))?;
        let (year, end) = year(scan, end);
        return dated(month, first, year, end).map(|(day, end)| (day, more, end));
    }
    if !scan.at(i).starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let (first, more, at) = range::days(scan, i)?;
    let at = at + usize::from(scan.at(at) == "of");
    let (year, end) = year(scan, at + 1);
    dated(names::month(scan.at(at))?, first, year, end).map(|(day, end)| (day, more, end))
}

/// "18 Feb", "the 1st of March", "31st Dec 1999", "15Sep", "16. Oct. 2025", "15-Mar-2027".
pub(crate) fn day_and_month(scan: &Scan, i: usize) -> Read {
    let word = scan.at(i);
    if let Some(cut) = word.find(|c: char| c.is_ascii_alphabetic()).filter(|cut| (1..=2).contains(cut))
        && let Some(month) = word.get(cut..).and_then(names::month)
    {
        return dated(month, numbers::figures(word.get(..cut)?)?, None, i + 1);
    }
    let (day, len) = numbers::ordinal(scan.words, i)
        .or_else(|| numbers::cardinal(scan.words, i))
        .filter(|(n, _)| (1..=31).contains(n))?;
    let mut at = i + len;
    let spelled = numbers::figures(word).is_none() && !word.starts_with(|c: char| c.is_ascii_digit());
    at += usize::from(scan.at(at) == "day");
    let of = scan.at(at) == "of";
    at += usize::from(of || scan.at(at) == "." || matches!(scan.at(at), "-" | "/") && scan.words.touches_next(at));
    if let Some((month, year)) = scan.at(at).split_once('-') {
        return dated(names::month(month)?, day, Some(calendar::year(year)?), at + 1);
    }
    let month = names::month(scan.at(at)).filter(|_| of || !spelled || numbers::ordinal(scan.words, i).is_some())?;
    if !of
        && names::is_doubtful(scan.at(at))
        && scan.at(at) == "may"
        && !scan.closes(at + 1)
        && year(scan, at + 1).0.is_none()
    {
        return None;
    }
    at += 1;
    at += usize::from(matches!(scan.at(at), "." | "/") && calendar::year(scan.at(at + 1)).is_some());
    let (year, end) = year(scan, at);
    dated(month, day, year, end)
}

/// "Friday", "this Monday", "last Sunday", "Friday after next".
fn weekday(scan: &Scan, i: usize, own: usize) -> Option<(Piece, usize)> {
    let this = usize::from(
        scan.at(i) == "this" && matches!(scan.at(i + 1), "coming" | "upcoming" | "following" | "past" | "last"),
    );
    let said = which(scan.at(i + this));
    let at = i + this + usize::from(said.is_some());
    let (day, form) = names::weekday(scan.at(at))?;
    if form == Form::Plural || form == Form::Short && said.is_none() && !short_fits(scan, i, own) {
        return None;
    }
    let end = at + 1;
    if let Some(n) = scan.phrase(end, lexicon::days::LATER_WEEK)
        && (n > 1 || scan.closes(end + 1))
        && (scan.before(end + n) != "this" || scan.closes(end + n))
    {
        return Some((Piece::Weekday(day, Which::AfterNext), end + n));
    }
    if let Some((date, end)) = beside(scan, end, day) {
        return Some((Piece::Day(Day::Fixed(date)), end));
    }
    let end = end
        + usize::from(scan.at(end) == "next" && said.is_none() && scan.closes(end + 1) && !is_period(scan, end + 1));
    Some((Piece::Weekday(day, coming(scan.at(i + this), said)), end))
}

/// "after Thanksgiving", "before March 5": which weekday by that name is meant.
fn beside(scan: &Scan, i: usize, day: Weekday) -> Option<(Date, usize)> {
    let n = match scan.at(i) {
        "after" | "following" => 1,
        "before" => -1,
        _ => return None,
    };
    let (base, end) = super::holidays::named(scan, i + 1).filter(|(_, end)| scan.closes(*end)).or_else(|| {
        let (day, end) = month_and_day(scan, i + 1).or_else(|| day_and_month(scan, i + 1))?;
        let parts = Parts { day: Some(day), ..Parts::default() };
        Some((resolve::date(&parts, scan.now)?, end))
    })?;
    Some((base.nth_weekday(n, day).ok()?, end))
}

fn is_period(scan: &Scan, i: usize) -> bool {
    names::unit(scan.at(i)).is_some() || names::month(scan.at(i)).is_some()
}

/// "this coming Friday" and "upcoming Friday" are the nearest, "next Friday" is next week's.
fn coming(word: &str, said: Option<Which>) -> Which {
    match (word, said) {
        ("coming" | "upcoming", _) => Which::This,
        (_, said) => said.unwrap_or(Which::Plain),
    }
}

/// "sun" and "sat" are days only beside something that makes them so.
fn short_fits(scan: &Scan, i: usize, own: usize) -> bool {
    if !names::is_doubtful(scan.at(i)) {
        return true;
    }
    let digit = |word: &str| word.starts_with(|c: char| c.is_ascii_digit());
    let article = matches!(scan.at(i + 1), "the" | "my");
    i > own && (scan.before(i) != "the" || scan.closes(i + 1))
        || scan.closes(i + 1) && !article
        || digit(scan.at(i + 1))
        || names::month(scan.at(i + 1)).is_some()
        || matches!(scan.at(i + 1), "." | ",")
}

/// "the 21st", "the 27", "Tuesday 19th", "5th at 4".
fn day_of_month(scan: &Scan, i: usize, own: usize, parts: &Parts) -> Read {
    let at = i + usize::from(scan.at(i) == "the");
    let word = scan.at(at);
    let in_figures = word.starts_with(|c: char| c.is_ascii_digit());
    let after_weekday = parts.weekday.is_some() && parts.day.is_none();
    let ordinal = numbers::ordinal(scan.words, at);
    let (n, len) = match ordinal {
        Some(read) => read,
        None => {
            let plain = numbers::cardinal(scan.words, at).filter(|_| in_figures || after_weekday)?;
            let the = at > i || scan.before(i) == "the";
            if !(the || after_weekday && plain.0 > 12) || !(in_figures && scan.closes(at + 1)) {
                return None;
            }
            plain
        }
    };
    let day = i8::try_from(n).ok().filter(|d| (1..=31).contains(d))?;
    let end = at + len;
    let end = end + scan.phrase(end, lexicon::days::OF_THE_MONTH).unwrap_or(0);
    let led = at > i || i > own || after_weekday || parts.repeat.is_some();
    let closing = scan.before(at) == "the" && own < i && (end >= scan.end || scan.at(end) == "to");
    let spelled_alone = !closing && !in_figures && !after_weekday && end == at + len && parts.repeat.is_none();
    let fits = led && scan.closes(end) && !spelled_alone || scan.is_whole(i, end) && in_figures;
    let timed = scan.at(end + 1).starts_with(|c: char| c.is_ascii_digit()) && ordinal.is_some();
    let first = (own == scan.start || timed) && in_figures && scan.at(end) == "at";
    (fits || first).then_some((Day::Monthly(day), end))
}

//! Times of day: "3pm", "15:30", "half past eight", "noon", and parts of the day such as "in the evening".

use super::names::{self, Part};
use super::{Parts, Piece, Scan, calendar};
use crate::lexicon;
use crate::numbers;

/// A time on the clock face.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Clock {
    pub(crate) hour: i8,
    pub(crate) minute: i8,
    pub(crate) second: i8,
    pub(crate) half: Half,
}

/// Which half of the day is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Half {
    Am,
    Pm,
    /// Not said: the hour may be either.
    Open,
    /// Of a clock with 24 hours.
    Exact,
}

type Read = Option<(Clock, usize)>;

fn clock(hour: i64, minute: i64, second: i64, half: Half) -> Option<Clock> {
    let half = if half == Half::Open && (hour > 12 || hour == 0) { Half::Exact } else { half };
    let in_range = (0..=24).contains(&hour) && (0..60).contains(&minute) && (0..60).contains(&second);
    let said = matches!(half, Half::Am | Half::Pm);
    if !in_range || said && !(1..=12).contains(&hour) && !(13..=23).contains(&hour) {
        return None;
    }
    let half = if said && hour > 12 { Half::Exact } else { half };
    let narrow = |n: i64| i8::try_from(n).ok();
    Some(Clock {
        hour: narrow(if hour == 24 { 0 } else { hour })?,
        minute: narrow(minute)?,
        second: narrow(second)?,
        half,
    })
}

/// A time on the clock face to the minute.
pub(super) fn of(hour: i64, minute: i64, half: Half) -> Option<Clock> {
    clock(hour, minute, 0, half)
}

/// A time that cannot be anything else: "3pm", "15:30", "noon".
pub(super) fn certain(scan: &Scan, i: usize) -> Read {
    named(scan, i).or_else(|| figure_time(scan, i))
}

/// A time at `i`. A bare number is one only after "at" and its like, or beside a day.
pub(crate) fn read(scan: &Scan, i: usize, own: usize, parts: &Parts) -> Read {
    // "midnight snack": nothing leads to it, and it tells which snack.
    let epithet = scan.at(i) == "midnight" && own == i && !parts.names_day() && !scan.closes(i + 1);
    named(scan, i)
        .filter(|_| !epithet)
        .or_else(|| past_or_to(scan, i))
        .or_else(|| figures(scan, i, own, parts))
        .or_else(|| spelled(scan, i, own, parts))
}

fn named(scan: &Scan, i: usize) -> Read {
    // "this time tomorrow"
    if scan.phrase(i, lexicon::clock::SAME_TIME).is_some() {
        let now = scan.now;
        return Some((clock(now.hour().into(), now.minute().into(), 0, Half::Exact)?, i + 2));
    }
    let at = i + usize::from(matches!(scan.at(i), "12" | "high"));
    match scan.at(at) {
        "noon" | "midday" | "noontime" => Some((clock(12, 0, 0, Half::Exact)?, at + 1)),
        "midnight" => Some((clock(0, 0, 0, Half::Exact)?, at + 1)),
        _ => None,
    }
}

/// "half past eight", "a quarter to 7pm", "20 minutes after three", "10 to noon".
fn past_or_to(scan: &Scan, i: usize) -> Read {
    let mut at = i + usize::from(scan.at(i) == "a");
    if let Some((hours, end)) = hours(scan, i) {
        return shifted(scan, hours, end);
    }
    let (minutes, len) = match scan.at(at) {
        "half" => (30, 1),
        "quarter" => (15, 1),
        "minute" if at > i => (1, 0),
        _ => numbers::cardinal(scan.words, at).filter(|(n, _)| (1..60).contains(n))?,
    };
    at += len;
    let unit = names::unit(scan.at(at)) == Some(names::Unit::Minute);
    // "from 3 to 4pm" is a stretch of time.
    if !unit && (minutes % 5 != 0 || scan.before(i) == "from") {
        return None;
    }
    at += usize::from(unit);
    let before = match scan.at(at) {
        "past" | "after" => false,
        "to" | "of" | "before" | "till" | "til" => true,
        _ if minutes == 30 && scan.at(i) == "half" => return half_hour(scan, at),
        _ => return None,
    };
    let (base, end) = named(scan, at + 1).or_else(|| hour_alone(scan, at + 1))?;
    let (said, end) = half_after(scan, end).unwrap_or((base.half, end));
    let half = if base.half == Half::Open { said } else { base.half };
    // "call 5 to 10 people" names no time.
    let figures = numbers::figures(scan.at(i)).is_some() && !unit && !scan.is_whole(i, end);
    if before && figures && half == Half::Open && scan.before(i) != "at" {
        return None;
    }
    let total = i64::from(base.hour) * 60 + if before { -minutes } else { minutes };
    let total = total.rem_euclid(24 * 60);
    let hour = if before && base.hour == 1 && half != Half::Exact { 12 } else { total / 60 };
    Some((clock(hour, total % 60, 0, half)?, end))
}

/// "an hour", "half an hour", "two hours" in minutes.
fn hours(scan: &Scan, i: usize) -> Option<(i64, usize)> {
    let ((n, sixtieths), len) = numbers::amount(scan.words, i)?;
    let hour = names::unit(scan.at(i + len)) == Some(names::Unit::Hour);
    (hour && n < 12).then_some((n * 60 + sixtieths, i + len + 1))
}

/// "half an hour before noon", "an hour after 3pm": so many minutes from a time that leaves nothing open.
fn shifted(scan: &Scan, minutes: i64, at: usize) -> Read {
    let minutes = match scan.at(at) {
        "before" => -minutes,
        "after" | "past" => minutes,
        _ => return None,
    };
    let (base, end) = named(scan, at + 1).or_else(|| figure_time(scan, at + 1))?;
    let hour = match base.half {
        Half::Exact => base.hour,
        Half::Am => base.hour % 12,
        Half::Pm => base.hour % 12 + 12,
        Half::Open => return None,
    };
    let total = (i64::from(hour) * 60 + i64::from(base.minute) + minutes).rem_euclid(24 * 60);
    Some((clock(total / 60, total % 60, 0, Half::Exact)?, end))
}

/// Whether a word can only be a time: "3pm", "15:30".
pub(crate) fn is_figure(word: &str) -> bool {
    let (digits, half) = split_half(word);
    let colon = digits.split_once(':').is_some_and(|(_, m)| m.len() == 2);
    word.starts_with(|c: char| c.is_ascii_digit())
        && (colon && digits.bytes().all(|b| b.is_ascii_digit() || b == b':')
            || half.is_some() && word.ends_with('m') && digits.len() <= 2)
}

/// "half three" is half past three.
fn half_hour(scan: &Scan, at: usize) -> Read {
    let (base, end) = hour_alone(scan, at)?;
    (scan.closes(end)).then_some((Clock { minute: 30, ..base }, end))
}

/// An hour without minutes, for "half past …".
fn hour_alone(scan: &Scan, i: usize) -> Read {
    if let Some((clock, end)) = figure_time(scan, i) {
        return Some((clock, end));
    }
    let (n, len) = numbers::cardinal(scan.words, i).filter(|(n, _)| (1..=12).contains(n))?;
    Some((clock(n, 0, 0, Half::Open)?, i + len))
}

/// "am", "pm", "in the morning", "o'clock in the evening" after an hour.
pub(super) fn half_after(scan: &Scan, i: usize) -> Option<(Half, usize)> {
    if let Some(n) = scan.phrase(i, lexicon::clock::O_CLOCK) {
        return half_after(scan, i + n).or(Some((Half::Open, i + n)));
    }
    if let Some(n) = scan.phrase(i, lexicon::clock::MORNING) {
        return Some((Half::Am, i + n));
    }
    scan.phrase(i, lexicon::clock::AFTERNOON).map(|n| (Half::Pm, i + n))
}

/// Figures that can only be a time: "3pm", "3:15", "15h30", "330 pm", "8.30pm".
fn figure_time(scan: &Scan, i: usize) -> Read {
    let word = scan.at(i);
    if !word.as_bytes().first().is_some_and(u8::is_ascii_digit) {
        return None;
    }
    let (digits, half) = split_half(word);
    let (half, end) = match half {
        Some(half) => (half, i + 1),
        None => half_after(scan, i + 1).unwrap_or((Half::Open, i + 1)),
    };
    let said = half != Half::Open || end > i + 1;
    let (hour, minute, second) = if let Some((h, m)) = digits.split_once('h') {
        (numbers::figures(h)?, if m.is_empty() { 0 } else { numbers::figures(m)? }, 0)
    } else if digits.contains([':', ';']) {
        let mut fields = digits.split([':', ';']);
        let hour = numbers::figures(fields.next()?)?;
        // "1:1" is a meeting.
        let minute = numbers::figures(fields.next().filter(|minute| minute.len() == 2)?)?;
        (hour, minute, fields.next().map_or(Some(0), numbers::figures)?)
    } else if let Some((h, m)) = digits.split_once('.').filter(|(_, m)| said && m.len() == 2) {
        (numbers::figures(h)?, numbers::figures(m)?, 0)
    } else {
        let n = numbers::figures(digits).filter(|_| said)?;
        if n > 24 { (n / 100, n % 100, 0) } else { (n, 0, 0) }
    };
    let night = matches!(scan.at(end.saturating_sub(1)), "night") && hour == 12;
    let half = if night { Half::Am } else { half };
    let exact = half == Half::Open && digits.starts_with('0') || digits.contains('h');
    let clock = clock(hour, minute, second, if exact { Half::Exact } else { half })?;
    let end = if scan.at(end) == "in" { half_after(scan, end).map_or(end, |(_, e)| e) } else { end };
    Some((clock, end))
}

/// "3pm" into "3" and the half; "7ampm" leaves it open.
pub(super) fn split_half(word: &str) -> (&str, Option<Half>) {
    let bare = word.strip_suffix("-ish").or_else(|| word.strip_suffix("ish")).unwrap_or(word);
    for (suffix, half) in [("ampm", Half::Open), ("am", Half::Am), ("pm", Half::Pm), ("a", Half::Am), ("p", Half::Pm)] {
        if let Some(digits) = bare.strip_suffix(suffix).filter(|d| d.bytes().all(|b| !b.is_ascii_alphabetic())) {
            return (digits, Some(half));
        }
    }
    (bare, None)
}

fn figures(scan: &Scan, i: usize, own: usize, parts: &Parts) -> Read {
    if scan.at(i).ends_with("ampm") {
        let (digits, _) = split_half(scan.at(i));
        return Some((clock(numbers::figures(digits)?, 0, 0, Half::Open)?, i + 1));
    }
    if let Some(read) = figure_time(scan, i) {
        let doubtful =
            matches!(split_half(scan.at(i)), (d, Some(_)) if !d.contains(':') && scan.at(i).ends_with(['a', 'p']));
        return (!doubtful || after_at(scan, i, own) || parts.names_day() || scan.is_whole(i, i + 1)).then_some(read);
    }
    roughly(scan, i).or_else(|| military(scan, i)).or_else(|| bare(scan, i, own, parts))
}

/// "8ish".
fn roughly(scan: &Scan, i: usize) -> Read {
    let word = scan.at(i);
    let hour = numbers::figures(word.strip_suffix("-ish").or_else(|| word.strip_suffix("ish"))?)?;
    scan.closes(i + 1).then_some((clock(hour, 0, 0, Half::Open)?, i + 1))
}

/// "0800 hours", "seventeen hundred hours".
fn military(scan: &Scan, i: usize) -> Read {
    let (n, len) = numbers::cardinal(scan.words, i)?;
    let said = scan.at(i).len() == 4 && len == 1 || scan.at(i + 1) == "hundred";
    let fits = said && matches!(scan.at(i + len), "hours" | "hrs" | "h") && n < 2400;
    fits.then(|| Some((clock(n / 100, n % 100, 0, Half::Exact)?, i + len + 1)))?
}

fn after_at(scan: &Scan, i: usize, own: usize) -> bool {
    i > own && lexicon::clock::LEADS.contains(scan.before(i))
        || i > own + 1 && scan.before(i) == "about" && scan.before(i - 1) == "at"
}

/// Whether a number after "by" and its like is a year to come rather than a time on a clock of 24 hours.
fn is_year(scan: &Scan, i: usize, n: i64) -> bool {
    let this = i64::from(scan.today().year());
    (this..this + 12).contains(&n) && matches!(scan.before(i), "by" | "before" | "until" | "till" | "til" | "after")
}

/// "at 3", "at 3 15", "tomorrow 3", "7 tomorrow evening".
fn bare(scan: &Scan, i: usize, own: usize, parts: &Parts) -> Read {
    if after_at(scan, i, own) && scan.at(i).len() >= 3 && scan.closes(i + 1) {
        let n = numbers::figures(scan.at(i)).filter(|n| (100..2400).contains(n) && !is_year(scan, i, *n));
        let Some(n) = n else { return dotted(scan, i) };
        let half = if scan.at(i).starts_with('0') { Half::Exact } else { Half::Open };
        return Some((clock(n / 100, n % 100, 0, half)?, i + 1));
    }
    if parts.names_day() && scan.at(i).contains('.') && scan.closes(i + 1) {
        return dotted(scan, i);
    }
    let hour = numbers::figures(scan.at(i)).filter(|n| (1..=24).contains(n))?;
    let minute = numbers::figures(scan.at(i + 1)).filter(|n| scan.at(i + 1).len() == 2 && *n < 60);
    // "Friday the 7 of May"
    let of_month = scan.at(i + 1) == "of" && scan.before(i) == "the";
    let day_number = parts.weekday.is_some() && parts.day.is_none() && hour > 12 || of_month;
    let beside_day = (parts.names_day() || parts.part.is_some()) && !day_number;
    if after_at(scan, i, own) || beside_day {
        if let Some(minute) = minute.filter(|_| scan.closes(i + 2)) {
            return Some((clock(hour, minute, 0, Half::Open)?, i + 2));
        }
        let unit_follows = names::unit(scan.at(i + 1)).is_some();
        return (scan.closes(i + 1) && !unit_follows).then_some((clock(hour, 0, 0, Half::Open)?, i + 1));
    }
    before_part(scan, i + 1).then_some((clock(hour, 0, 0, Half::Open)?, i + 1))
}

/// "at 5.15".
fn dotted(scan: &Scan, i: usize) -> Read {
    let (hour, minute) = scan.at(i).split_once('.').filter(|(_, minute)| minute.len() == 2)?;
    Some((clock(numbers::figures(hour)?, numbers::figures(minute)?, 0, Half::Open)?, i + 1))
}

/// Whether a day with a part of it follows: "tomorrow evening", ", this morning".
fn before_part(scan: &Scan, i: usize) -> bool {
    let i = i + usize::from(scan.at(i) == ",");
    let named = names::is_tomorrow(scan.at(i)) || scan.at(i) == "this" || names::weekday(scan.at(i)).is_some();
    named && names::part(scan.at(i + 1)).is_some_and(|(_, plural)| !plural)
        || matches!(scan.at(i), "tonight" | "tonite")
}

/// "seven thirty", "eight forty am", "three o'clock", "at three".
fn spelled(scan: &Scan, i: usize, own: usize, parts: &Parts) -> Read {
    let hour = numbers::unit(scan.at(i)).or_else(|| scan.at(i).split_once('-').and_then(|(h, _)| numbers::unit(h)));
    let hour = hour.filter(|n| (1..=12).contains(n))?;
    let (minute, end) = spelled_minute(scan, i);
    let end = end + usize::from(minute > 0 && names::unit(scan.at(end)) == Some(names::Unit::Minute));
    if let Some((half, end)) = half_after(scan, end) {
        return Some((clock(hour, minute, 0, half)?, end));
    }
    let context = after_at(scan, i, own) || parts.names_day() || parts.part.is_some() || before_part(scan, end);
    let whole = minute > 0 && scan.is_whole(i, end) || minute >= 10 && minute % 5 == 0 && end == scan.end;
    let fits = context && scan.closes(end) && names::unit(scan.at(end)).is_none() || whole;
    fits.then_some((clock(hour, minute, 0, Half::Open)?, end))
}

fn spelled_minute(scan: &Scan, i: usize) -> (i64, usize) {
    if let Some((_, minute)) = scan.at(i).split_once('-') {
        return numbers::cardinal(&crate::tokens::Words::new(minute), 0).map_or((0, i + 1), |(n, _)| (n, i + 1));
    }
    if matches!(scan.at(i + 1), "oh" | "o")
        && let Some(minute) = numbers::unit(scan.at(i + 2)).filter(|n| (1..10).contains(n))
    {
        return (minute, i + 3);
    }
    match numbers::cardinal(scan.words, i + 1) {
        Some((n, len)) if (1..60).contains(&n) && numbers::figures(scan.at(i + 1)).is_none() => (n, i + 1 + len),
        _ => (0, i + 1),
    }
}

fn names_day(word: &str) -> bool {
    names::is_today(word) || names::is_tomorrow(word) || names::weekday(word).is_some()
}

/// "this morning", "in the evening", "tonight", "at night", "tomorrow night" (after the day).
pub(crate) fn part(scan: &Scan, i: usize, own: usize, parts: &Parts) -> Option<(Piece, usize)> {
    let word = scan.at(i);
    let today = scan.today();
    if matches!(word, "tonight" | "tonite" | "tonight's" | "tonights" | "2nite") {
        return Some((Piece::PartOf(today, Part::Night), i + 1));
    }
    if matches!(word, "am" | "pm") && parts.day.is_some() && parts.clock.is_none() {
        return Some((Piece::Part(if word == "am" { Part::Morning } else { Part::Afternoon }), i + 1));
    }
    if let Some(n) = scan.phrase(i, lexicon::clock::FIRST_THING)
        && !matches!(scan.before(i), "the" | "my" | "is" | "are" | "a")
        && (n > 2 || scan.closes(i + n) && scan.at(i + n) != "to")
    {
        return Some((Piece::Part(Part::First), i + n));
    }
    if matches!(word, "eod" | "cob" | "cop") {
        return Some((Piece::Part(Part::End), i + 1));
    }
    if let Some(n) = scan.phrase(i, lexicon::clock::LAST_NIGHT) {
        return Some((Piece::PartOf(calendar::plus_days(today, -1)?, Part::Night), i + n));
    }
    let this = usize::from(matches!(word, "this"));
    let early = usize::from(matches!(scan.at(i + this), "early" | "late" | "mid"));
    let at = i + this + early;
    let name = scan.at(at);
    let (part, plural) = names::part(name.strip_prefix("mid-").unwrap_or(name))?;
    let middle = early > 0 || name.starts_with("mid-");
    if plural {
        return None;
    }
    let lead = i > own
        && matches!(
            scan.before(i),
            "the" | "in" | "at" | "on" | "by" | "before" | "during" | "this" | "early" | "late"
        );
    let after_day = parts.names_day() || parts.clock.is_some();
    let before_clock = read(scan, at + 1, at + 1, &Parts { part: Some(part), ..Parts::default() }).is_some();
    let fits = this > 0
        || after_day
        || middle && (scan.is_whole(i, at + 1) || names_day(scan.at(at + 1)))
        || lead && (scan.closes(at + 1))
        || before_clock && (scan.start == i || is_figure(scan.at(at + 1)));
    let fits = fits && !(part == Part::Evening && scan.at(at) == "eve" && this == 0 && !after_day);
    fits.then_some((Piece::Part(part), at + 1))
}

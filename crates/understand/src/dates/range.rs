//! Stretches between two times of a day or two days of a month: "3-4pm", "between 9 and 11", "March 3 to 5".

use super::clock::{self, Clock, Half};
use super::names;
use super::{Parts, Scan};
use crate::lexicon;
use crate::numbers;

/// Two times of one day, and where they end.
pub(crate) fn times(scan: &Scan, i: usize, own: usize, parts: &Parts) -> Option<(Clock, Clock, usize)> {
    let word = scan.at(i);
    if !word.starts_with(|c: char| c.is_ascii_digit()) && numbers::unit(word).is_none() {
        return None;
    }
    let lead = if i > own { scan.before(i) } else { "" };
    let beside = parts.names_day() || matches!(lead, "from" | "between" | "at");
    if let Some((first, second)) = word.split_once('-') {
        let (second, end) = in_word(scan, second, i)?;
        return ordered(half_known(first)?, second, beside || closed_figure(first)).map(|(a, b)| (a, b, end));
    }
    let (first, at) = one(scan, i)?;
    let and = scan.at(at) == "and" && lead == "between";
    let link = scan.phrase(at, lexicon::ranges::LINKS).or(and.then_some(1))?;
    if !and && scan.at(at) == "to" && changes(scan, i) {
        return None;
    }
    let (second, end) = one(scan, at + link)?;
    // "10 to 4pm" is ten minutes before four.
    let minutes = numbers::cardinal(scan.words, i).is_some_and(|(n, _)| n % 5 == 0 && (n > 5 || second.hour % 12 == 0));
    if minutes && !beside && matches!(scan.at(at), "to" | "till" | "til") {
        return None;
    }
    // "5 to 10 people", "read 3 to 4 pages"
    let sure = beside || word.contains(':');
    let (first, second) = ordered(first, second, sure).filter(|_| scan.closes(end))?;
    Some((first, second, end))
}

/// Whether the sentence moves something from one time to another.
fn changes(scan: &Scan, i: usize) -> bool {
    (scan.start..i).any(|at| scan.words.is_one_of(at, lexicon::ranges::CHANGE_VERBS))
}

/// A time with its am or pm, or a bare hour.
fn one(scan: &Scan, i: usize) -> Option<(Clock, usize)> {
    clock::certain(scan, i).or_else(|| {
        let (n, len) = numbers::cardinal(scan.words, i).filter(|(n, _)| (1..=24).contains(n))?;
        (names::unit(scan.at(i + len)).is_none()).then(|| Some((clock::of(n, 0, Half::Open)?, i + len)))?
    })
}

/// The second time of "3-4pm" or "3-4 pm".
fn in_word(scan: &Scan, second: &str, i: usize) -> Option<(Clock, usize)> {
    let time = match second {
        "noon" | "midday" => clock::of(12, 0, Half::Exact)?,
        "midnight" => clock::of(0, 0, Half::Exact)?,
        second => half_known(second)?,
    };
    match clock::half_after(scan, i + 1).filter(|_| time.half == Half::Open) {
        Some((half, end)) => Some((Clock { half, ..time }, end)),
        None => scan.closes(i + 1).then_some((time, i + 1)),
    }
}

/// "3", "3pm", "3:30pm".
fn half_known(word: &str) -> Option<Clock> {
    let (digits, half) = clock::split_half(word);
    let (hour, minute) = match digits.split_once(':') {
        Some((hour, minute)) => (hour, numbers::figures(minute).filter(|_| minute.len() == 2)?),
        None => (digits, 0),
    };
    let hour = numbers::figures(hour).filter(|hour| (0..=24).contains(hour))?;
    clock::of(hour, minute, half.unwrap_or(Half::Open))
}

fn closed_figure(word: &str) -> bool {
    word.contains(':')
}

/// Both times with the half of the day that one of them names; `None` where nothing says that they are times.
fn ordered(first: Clock, second: Clock, sure: bool) -> Option<(Clock, Clock)> {
    // 13 and more may be pages; noon and midnight are none.
    let said = |clock: Clock| match clock.half {
        Half::Am | Half::Pm => true,
        Half::Exact => clock.hour % 12 == 0,
        Half::Open => false,
    };
    if !sure && !said(first) && !said(second) {
        return None;
    }
    if said(first) || !matches!(second.half, Half::Am | Half::Pm) {
        return Some((first, second));
    }
    let earlier = (first.hour % 12, first.minute) < (second.hour % 12, second.minute);
    let half = match (earlier, second.half) {
        (true, half) => half,
        (false, Half::Am) => Half::Pm,
        (false, _) => Half::Am,
    };
    Some((Clock { half, ..first }, second))
}

/// "3-5", "3 to 5", "3rd to the 5th" as days of a month: the first, how many days later the last is, and the end.
pub(crate) fn days(scan: &Scan, i: usize) -> Option<(i64, i64, usize)> {
    let day = |n: i64| (1..=31).contains(&n);
    if let Some((first, last)) = scan.at(i).split_once('-') {
        let first = figure(first)?;
        let last = figure(last)?;
        return (day(first) && day(last) && first < last).then_some((first, last - first, i + 1));
    }
    let (first, len) = number(scan, i).filter(|(n, _)| day(*n))?;
    let at = i + len;
    let at = at + scan.phrase(at, lexicon::ranges::LINKS)?;
    let at = at + usize::from(scan.at(at) == "the");
    let (last, len) = number(scan, at).filter(|(n, _)| day(*n) && *n > first)?;
    Some((first, last - first, at + len))
}

fn figure(word: &str) -> Option<i64> {
    numbers::figures(word).or_else(|| numbers::ordinal_figures(word))
}

fn number(scan: &Scan, i: usize) -> Option<(i64, usize)> {
    numbers::ordinal(scan.words, i).or_else(|| numbers::figures(scan.at(i)).map(|n| (n, 1)))
}

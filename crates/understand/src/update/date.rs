//! The new date of a task: "to Friday", "from 3 to 4", "by two days", "2 hours later".

use std::ops::Range;

use jiff::civil::Time;

use crate::clause::Clause;
use crate::dates::{self, Found, Scan};
use crate::lead_time;
use crate::lexicon;
use crate::numbers;
use crate::reading::{Command, Missing, When};
use crate::timing;

/// Takes "instead of Friday", "rather than at 3", "instead".
pub(super) fn drop_instead(clause: &mut Clause, range: Range<usize>) {
    let Some((at, n)) = clause.seek(range.start, lexicon::update_dates::INSTEAD) else { return };
    let old = clause
        .date_at(at + n)
        .map(|found| found.tokens.end)
        .or_else(|| amount_end(clause, at + n))
        .or_else(|| short_end(clause, at + n).filter(|_| n > 1));
    if clause.at(at) == "not" && old.is_none() {
        return;
    }
    clause.take(at..old.unwrap_or(at + n));
}

/// A bare number or "30 minutes before" after "instead of".
fn amount_end(clause: &Clause, i: usize) -> Option<usize> {
    let i = i + clause.phrase(i, lexicon::update_dates::AMOUNT_TAILS).unwrap_or(0);
    let (_, len) = numbers::amount(clause.words, i)?;
    let unit = lead_time::unit(clause, i).map(|unit| unit + 1);
    let end = unit.map_or(i + len, |end| end + usize::from(clause.at(end) == "before"));
    clause.is_spent(end..clause.end).then_some(end)
}

/// What is left after "instead of" if it is only a word or two.
fn short_end(clause: &Clause, i: usize) -> Option<usize> {
    (i < clause.end && clause.end - i <= 2).then_some(clause.end)
}

/// Takes "from Tuesday" of "from Tuesday to Friday".
pub(super) fn drop_from(clause: &mut Clause, range: Range<usize>) {
    split_spans(clause, &range);
    let from = |found: &&Found| range.contains(&found.tokens.start) && clause.at(found.tokens.start) == "from";
    let old: Vec<Range<usize>> = clause.dates.iter().filter(from).map(|found| found.tokens.clone()).collect();
    for span in old {
        clause.take(span);
    }
    // A bare hour is no date by itself: "from 4 to 5".
    for i in range {
        if clause.at(i) == "from" && hour(clause, i + 1).is_some() && !clause.is_taken(i) && clause.at(i + 2) == "to" {
            clause.take(i..i + 2);
        }
    }
}

/// "from 10 am to 8 am" may have been read as one stretch of time: what stands after "to" is a date of its own.
fn split_spans(clause: &mut Clause, range: &Range<usize>) {
    let spans: Vec<(usize, Range<usize>)> = clause
        .dates
        .iter()
        .enumerate()
        .filter(|(_, found)| range.contains(&found.tokens.start) && clause.at(found.tokens.start) == "from")
        .map(|(n, found)| (n, found.tokens.clone()))
        .collect();
    for (n, tokens) in spans.into_iter().rev() {
        let Some(to) = tokens.clone().rev().find(|i| clause.at(*i) == "to") else { continue };
        let scan = Scan { words: clause.words, start: to + 1, end: tokens.end, now: clause.now };
        let later = dates::find(scan);
        if let (Some(old), false) = (clause.dates.get_mut(n), later.is_empty()) {
            old.tokens = tokens.start..to;
            clause.dates.splice(n + 1..n + 1, later);
        }
    }
}

/// "5", "five", "530": an hour and minutes that stand without am or pm.
fn hour(clause: &Clause, i: usize) -> Option<(i8, i8)> {
    let spelled = numbers::unit(clause.at(i)).filter(|n| *n <= 12);
    let n = numbers::figures(clause.at(i)).or(spelled)?;
    let (hour, minute) = if n >= 100 { (n / 100, n % 100) } else { (n, 0) };
    let fits = (1..=24).contains(&hour) && minute < 60;
    fits.then_some((i8::try_from(hour).ok()?, i8::try_from(minute).ok()?))
}

/// The new date: after the last "to", "until", "by", or the last date of the stretch.
pub(super) fn read(clause: &mut Clause, range: Range<usize>, command: &mut Command) -> Option<Range<usize>> {
    if let Some(about) = relative(clause, range.clone(), command) {
        return Some(about);
    }
    let inside = |found: &&Found| {
        found.tokens.start >= range.start && found.tokens.end <= range.end && !clause.is_taken(found.tokens.end - 1)
    };
    let dates: Vec<Found> = clause.dates.iter().filter(inside).cloned().collect();
    let led = |found: &Found| {
        let before = matches!(clause.before(found.tokens.start), "to" | "until" | "till" | "into" | "be" | "by");
        before || matches!(clause.at(found.tokens.start), "until" | "till" | "by" | "to")
    };
    let to = dates.iter().rposition(led);
    if to.is_none()
        && let Some(about) = bare_hour(clause, range.clone(), command)
    {
        return Some(about);
    }
    if to.is_none()
        && let Some(about) = bare_day(clause, range.clone(), command)
    {
        return Some(about);
    }
    let n = to.or(dates.len().checked_sub(1))?;
    let mut main = dates.get(n)?.clone();
    let says_more = (main.tokens.end..range.end).any(|i| clause.at(i) == "to" && clause.date_at(i).is_none());
    if to.is_none() && (says_more || renames(clause, range.start..main.tokens.start)) {
        return None;
    }
    let start = before_filler(clause, range.start, main.tokens.start);
    clause.take(start..main.tokens.end);
    for other in dates.iter().skip(n + 1) {
        if main.parts.complete(&other.parts) {
            clause.take(other.tokens.clone());
        }
    }
    timing::apply(command, Some(main), clause.now);
    take_tail(clause, range.clone());
    Some(if clause.is_spent(start..range.end) { range.start..start } else { range })
}

/// "a due date of Friday to the report": the date stands before the task.
pub(super) fn given(clause: &mut Clause, range: Range<usize>, command: &mut Command) -> Option<Range<usize>> {
    let found = clause.dates.iter().find(|found| found.tokens.start <= range.start && found.tokens.end > range.start);
    let found = found.filter(|found| found.tokens.end < range.end)?.clone();
    let end = found.tokens.end;
    let task = matches!(clause.at(end), "to" | "on" | "for") && clause.date_at(end).is_none();
    if !task || end + 1 >= range.end {
        return None;
    }
    clause.take(found.tokens.clone());
    timing::apply(command, Some(found), clause.now);
    Some(end + 1..range.end)
}

/// Where "to", "to be", "to start" and their like before the new date begin.
fn before_filler(clause: &Clause, from: usize, start: usize) -> usize {
    let to = (from..start).rev().find(|i| clause.at(*i) == "to" && start - i <= 5);
    let mut first = match to {
        Some(to)
            if (to..start).all(|i| lexicon::update_dates::FILLERS.contains(clause.at(i)) || clause.is_taken(i)) =>
        {
            to
        }
        _ if lexicon::update_dates::LAST_FILLERS.contains(clause.before(start)) && start > from + 1 => start - 1,
        _ => start,
    };
    while first > from + 1 && matches!(clause.before(first), "back" | "forward" | "out") {
        first -= 1;
    }
    first
}

/// What is left of the stretch when a date in it is taken.
pub(super) fn without(clause: &mut Clause, range: Range<usize>, tokens: Range<usize>) -> Range<usize> {
    let start = before_filler(clause, range.start, tokens.start);
    clause.take(start..tokens.end);
    range.start..start
}

/// Takes "at the same time" and its like, which changes nothing.
fn take_tail(clause: &mut Clause, range: Range<usize>) {
    if let Some((at, n)) = clause.seek(range.start, lexicon::update_dates::TAILS).filter(|(at, n)| at + n <= range.end)
    {
        clause.take(at..at + n);
    }
}

/// "2 hours later", "by 15 more minutes", "30 minutes before": what lies relative to the old date. Only what lies
/// ahead can be reckoned from now.
fn relative(clause: &mut Clause, range: Range<usize>, command: &mut Command) -> Option<Range<usize>> {
    let (at, unit) = range
        .clone()
        .filter(|i| clause.date_at(*i).is_none() && !clause.is_taken(*i))
        .find_map(|i| Some((i, lead_time::unit(clause, i)?)))?;
    let before = clause.phrase(unit + 1, lexicon::dates::LEAD_TIME_AHEAD);
    let end = unit + 1 + before.unwrap_or(0);
    if !clause.is_spent(end..range.end) {
        return None;
    }
    match before {
        Some(_) => command.missing = Some(Missing::Time),
        None => command.when = from_now(clause, at, unit),
    }
    let up = at > range.start + 1 && clause.before(at) == "up";
    let start = before_filler(clause, range.start, at - usize::from(up));
    clause.take(start..end);
    Some(range.start..start)
}

fn from_now(clause: &Clause, at: usize, unit: usize) -> Option<When> {
    when(clause, &format!("in {}", clause.words.text(at..unit + 1)))
}

/// What the words mean by themselves.
fn when(clause: &Clause, text: &str) -> Option<When> {
    let words = crate::tokens::Words::new(text);
    let scan = Scan { words: &words, start: 0, end: words.len(), now: clause.now };
    dates::find(scan).first().and_then(|found| found.when(clause.now))
}

/// "to the 20th", "to evening" at the end: too little to be a date anywhere else.
fn bare_day(clause: &mut Clause, range: Range<usize>, command: &mut Command) -> Option<Range<usize>> {
    let to = (range.start..range.end).rev().find(|i| clause.at(*i) == "to")?;
    let at = to + 1 + usize::from(clause.at(to + 1) == "the");
    let word = clause.at(at);
    let end = at + 1 + usize::from(matches!(clause.at(at + 1), "time" | "instead"));
    let part = lexicon::update_dates::PARTS.contains(word);
    let lead = match numbers::ordinal(clause.words, at) {
        Some((day, 1)) if (1..=31).contains(&day) => "on the",
        None if part => "in the",
        _ => return None,
    };
    if !clause.is_spent(end..range.end) {
        return None;
    }
    let lead = if matches!(word, "noon" | "midnight" | "night") { "at" } else { lead };
    command.when = when(clause, &format!("{lead} {word}"));
    command.when?;
    clause.take(to..end);
    let from = (range.start..to).find(|i| clause.at(*i) == "from" && to - i <= 3);
    Some(range.start..from.unwrap_or(to))
}

/// "to 7" at the end, or before the day, means the hour.
fn bare_hour(clause: &mut Clause, mut range: Range<usize>, command: &mut Command) -> Option<Range<usize>> {
    let from = range.start;
    let end = range.end;
    let at = range.rfind(|i| clause.at(*i) == "to" && hour(clause, i + 1).is_some())?;
    let day = clause.date_at(at + 2).filter(|found| found.tokens.start == at + 2).cloned();
    if !clause.is_spent(at + 2..end) && day.is_none() && !matches!(clause.at(at + 2), "for" | "on" | "instead") {
        return None;
    }
    let (hour, minute) = hour(clause, at + 1)?;
    let hour = if (1..7).contains(&hour) { hour + 12 } else { hour % 24 };
    let date = match day.as_ref().and_then(|found| found.when(clause.now)) {
        Some(When::Day(day)) => day,
        Some(When::Time(at)) => at.date(),
        None if hour > clause.now.hour() => clause.now.date(),
        None => clause.now.date().tomorrow().ok()?,
    };
    command.when = Some(When::Time(date.at(hour, minute, 0, 0)));
    command.clock = Time::new(hour, minute, 0, 0).ok().filter(|_| day.is_none());
    clause.take(at..day.map_or(at + 2, |found| found.tokens.end));
    Some(if clause.is_spent(at..end) { from..at } else { from..end })
}

/// Whether a "to" before the date leads to a new title: "change it to call Bob tomorrow".
fn renames(clause: &Clause, range: Range<usize>) -> bool {
    let filler = |from: usize| (from..range.end).all(|i| matches!(clause.at(i), "be" | "due" | "for"));
    let leads = |i: usize| clause.at(i) == "to" && !filler(i + 1);
    clause.noun_in(range.clone()).is_none() && (range.start + 1..range.end).any(leads)
}

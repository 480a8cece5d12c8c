//! Parses the new date of a task: "to Friday", "from 3 to 4", "by two days", "2 hours later".
//!
//! `range` are the tokens after the verb: the task and the new value. `command` receives the change. Consumed tokens
//! are no part of a name or a title. "A noun for a task" is a word such as "task", "reminder" or "list".

use std::ops::Range;

use jiff::civil::Time;

use crate::clause::Clause;
use crate::dates::{self, DateMatch, DateScan};
use crate::lead_time;
use crate::lexicon;
use crate::numbers;
use crate::parsed::{DayOrTime, MissingSlot, ParsedCommand};
use crate::timing;

/// Consumes the first "instead of", "rather than", "instead", "and not" or "not", and the old value after it. The
/// search begins at the start of the range and may go beyond its end. The old value is a date, or an amount that ends
/// the clause. After a phrase of two words, one or two last tokens of the clause count too. Without an old value, only
/// the phrase is consumed. Has no effect if there is no phrase, or for "not" without an old value.
pub(super) fn consume_instead(clause: &mut Clause, range: Range<usize>) {
    let Some((at, n)) = clause.find_phrase(range.start, lexicon::update_dates::INSTEAD) else { return };
    let old = clause
        .date_at(at + n)
        .map(|found| found.tokens.end)
        .or_else(|| amount_end(clause, at + n))
        .or_else(|| short_end(clause, at + n).filter(|_| n > 1));
    if clause.at(at) == "not" && old.is_none() {
        return;
    }
    clause.consume(at..old.unwrap_or(at + n));
}

/// Returns the end of a bare number or "30 minutes before" after "instead of". Returns `None` if it does not end the
/// clause.
fn amount_end(clause: &Clause, i: usize) -> Option<usize> {
    let i = i + clause.phrase(i, lexicon::update_dates::AMOUNT_TAILS).unwrap_or(0);
    let (_, len) = numbers::amount(clause.words, i)?;
    let unit = lead_time::unit_at(clause, i).map(|unit| unit + 1);
    let end = unit.map_or(i + len, |end| end + usize::from(clause.at(end) == "before"));
    clause.is_exhausted(end..clause.end).then_some(end)
}

/// Returns the end of the clause if one or two tokens follow "instead of".
fn short_end(clause: &Clause, i: usize) -> Option<usize> {
    (i < clause.end && clause.end - i <= 2).then_some(clause.end)
}

/// Consumes every date in the range that begins with "from": "from Tuesday" of "from Tuesday to Friday". A time span
/// from one to the other is split first, see [`split_spans`]. Also consumes "from" and a bare hour before "to" ("from 4
/// to 5").
pub(super) fn consume_old_date(clause: &mut Clause, range: Range<usize>) {
    split_spans(clause, &range);
    let from = |found: &&DateMatch| range.contains(&found.tokens.start) && clause.at(found.tokens.start) == "from";
    let old: Vec<Range<usize>> = clause.dates.iter().filter(from).map(|found| found.tokens.clone()).collect();
    for span in old {
        clause.consume(span);
    }
    // A bare hour is not a date on its own: "from 4 to 5".
    for i in range {
        if clause.at(i) == "from"
            && hour_at(clause, i + 1).is_some()
            && !clause.is_consumed(i)
            && clause.at(i + 2) == "to"
        {
            clause.consume(i..i + 2);
        }
    }
}

/// Splits "from 10 am to 8 am", which may have been parsed as one time span. Changes `clause.dates`: the date that
/// begins with "from" ends before its last "to", and the dates after "to" are inserted. Its resolved parts stay
/// unchanged. Has no effect on a date without "to", or if no date follows "to".
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
        let scan = DateScan { words: clause.words, start: to + 1, end: tokens.end, now: clause.now };
        let later = dates::find(scan);
        if let (Some(old), false) = (clause.dates.get_mut(n), later.is_empty()) {
            old.tokens = tokens.start..to;
            clause.dates.splice(n + 1..n + 1, later);
        }
    }
}

/// Returns hour and minute without am or pm: "5", "five", "530". Returns `None` if the hour is not between 1 and 24,
/// the minute exceeds 59, or a spelled number exceeds 12.
fn hour_at(clause: &Clause, i: usize) -> Option<(i8, i8)> {
    let spelled = numbers::small_number(clause.at(i)).filter(|n| *n <= 12);
    let n = numbers::parse_digits(clause.at(i)).or(spelled)?;
    let (hour, minute) = if n >= 100 { (n / 100, n % 100) } else { (n, 0) };
    let fits = (1..=24).contains(&hour) && minute < 60;
    fits.then_some((i8::try_from(hour).ok()?, i8::try_from(minute).ok()?))
}

/// Parses the new date, applies it to the command and consumes it. Tries a distance at the end (see
/// [`parse_relative`]), then the last date after "to", "until", "till", "into", "be" or "by". Otherwise tries an hour
/// ("to 7"), a day ("to the 20th"), then the last date of the range. Later compatible dates are merged into it. Returns
/// the range that names the task: the tokens before the date, or the whole range if other words follow. Returns `None`
/// if there is no date, or if a "to" before or after the last date leads to a new title.
pub(super) fn parse(clause: &mut Clause, range: Range<usize>, command: &mut ParsedCommand) -> Option<Range<usize>> {
    if let Some(about) = parse_relative(clause, range.clone(), command) {
        return Some(about);
    }
    let inside = |found: &&DateMatch| {
        found.tokens.start >= range.start && found.tokens.end <= range.end && !clause.is_consumed(found.tokens.end - 1)
    };
    let dates: Vec<DateMatch> = clause.dates.iter().filter(inside).cloned().collect();
    let led = |found: &DateMatch| {
        let before = matches!(clause.before(found.tokens.start), "to" | "until" | "till" | "into" | "be" | "by");
        before || matches!(clause.at(found.tokens.start), "until" | "till" | "by" | "to")
    };
    let to = dates.iter().rposition(led);
    if to.is_none()
        && let Some(about) = parse_bare_hour(clause, range.clone(), command)
    {
        return Some(about);
    }
    if to.is_none()
        && let Some(about) = parse_bare_day(clause, range.clone(), command)
    {
        return Some(about);
    }
    let n = to.or(dates.len().checked_sub(1))?;
    let mut main = dates.get(n)?.clone();
    let says_more = (main.tokens.end..range.end).any(|i| clause.at(i) == "to" && clause.date_at(i).is_none());
    if to.is_none() && (says_more || leads_to_title(clause, range.start..main.tokens.start)) {
        return None;
    }
    let start = filler_start(clause, range.start, main.tokens.start);
    clause.consume(start..main.tokens.end);
    for other in dates.iter().skip(n + 1) {
        if main.parts.merge(&other.parts) {
            clause.consume(other.tokens.clone());
        }
    }
    timing::apply_date(command, Some(main), clause.now);
    consume_tail(clause, range.clone());
    Some(if clause.is_exhausted(start..range.end) { range.start..start } else { range })
}

/// Parses a date that precedes the task: "a due date of Friday to the report". Applies and consumes it. Returns the
/// range after "to", "on" or "for", which names the task. Returns `None` and changes nothing if no date covers the
/// start of the range. The same holds if no such word with a task follows it.
pub(super) fn parse_date_before_task(
    clause: &mut Clause,
    range: Range<usize>,
    command: &mut ParsedCommand,
) -> Option<Range<usize>> {
    let found = clause.dates.iter().find(|found| found.tokens.start <= range.start && found.tokens.end > range.start);
    let found = found.filter(|found| found.tokens.end < range.end)?.clone();
    let end = found.tokens.end;
    let task = matches!(clause.at(end), "to" | "on" | "for") && clause.date_at(end).is_none();
    if !task || end + 1 >= range.end {
        return None;
    }
    clause.consume(found.tokens.clone());
    timing::apply_date(command, Some(found), clause.now);
    Some(end + 1..range.end)
}

/// Returns the start of "to", "to be", "to start" and similar fillers before the new date at `start`. A "to" counts
/// within five tokens if only fillers and consumed tokens follow it. Otherwise one filler such as "until", "by" or
/// "for" counts. "back", "forward" and "out" before them are included. Returns `start` if there are none. `from` is the
/// start of the range; its first token is only included if it is that "to".
fn filler_start(clause: &Clause, from: usize, start: usize) -> usize {
    let to = (from..start).rev().find(|i| clause.at(*i) == "to" && start - i <= 5);
    let mut first = match to {
        Some(to)
            if (to..start).all(|i| lexicon::update_dates::FILLERS.contains(clause.at(i)) || clause.is_consumed(i)) =>
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

/// Consumes the date at `tokens` with its fillers. Returns the part of the range before them.
pub(super) fn range_without_date(clause: &mut Clause, range: Range<usize>, tokens: Range<usize>) -> Range<usize> {
    let start = filler_start(clause, range.start, tokens.start);
    clause.consume(start..tokens.end);
    range.start..start
}

/// Consumes "at the same time" and similar tails inside of the range, which have no effect.
fn consume_tail(clause: &mut Clause, range: Range<usize>) {
    if let Some((at, n)) =
        clause.find_phrase(range.start, lexicon::update_dates::TAILS).filter(|(at, n)| at + n <= range.end)
    {
        clause.consume(at..at + n);
    }
}

/// Parses a distance at the end of the range: "by 15 more minutes". Sets the date, computed from now, not from the old
/// date. A lead time ("30 minutes before") sets the time as missing instead. Consumes the distance and its fillers.
/// Returns the range before them, which names the task. Returns `None` and changes nothing if the first distance
/// outside of a date does not end the range.
fn parse_relative(clause: &mut Clause, range: Range<usize>, command: &mut ParsedCommand) -> Option<Range<usize>> {
    let (at, unit) = range
        .clone()
        .filter(|i| clause.date_at(*i).is_none() && !clause.is_consumed(*i))
        .find_map(|i| Some((i, lead_time::unit_at(clause, i)?)))?;
    let before = clause.phrase(unit + 1, lexicon::dates::LEAD_TIME_AHEAD);
    let end = unit + 1 + before.unwrap_or(0);
    if !clause.is_exhausted(end..range.end) {
        return None;
    }
    match before {
        Some(_) => command.missing = Some(MissingSlot::Time),
        None => command.when = from_now(clause, at, unit),
    }
    let up = at > range.start + 1 && clause.before(at) == "up";
    let start = filler_start(clause, range.start, at - usize::from(up));
    clause.consume(start..end);
    Some(range.start..start)
}

fn from_now(clause: &Clause, at: usize, unit: usize) -> Option<DayOrTime> {
    resolve_text(clause, &format!("in {}", clause.words.text(at..unit + 1)))
}

/// Returns the first date of a text, or `None` if it contains none.
fn resolve_text(clause: &Clause, text: &str) -> Option<DayOrTime> {
    let words = crate::tokens::TokenizedText::new(text);
    let scan = DateScan { words: &words, start: 0, end: words.len(), now: clause.now };
    dates::find(scan).first().and_then(|found| found.resolve(clause.now))
}

/// Parses "to the 20th", "to evening" at the end. These are dates only in this position. Accepts an ordinal from 1 to
/// 31 in one token, and morning, afternoon, evening, night, noon and midnight. "time" or "instead" may follow. Sets and
/// consumes the date. Returns the range before "to", or before a "from" up to three tokens earlier. Returns `None` if
/// the last "to" does not lead to such a word, or if other words follow.
fn parse_bare_day(clause: &mut Clause, range: Range<usize>, command: &mut ParsedCommand) -> Option<Range<usize>> {
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
    if !clause.is_exhausted(end..range.end) {
        return None;
    }
    let lead = if matches!(word, "noon" | "midnight" | "night") { "at" } else { lead };
    command.when = resolve_text(clause, &format!("{lead} {word}"));
    command.when?;
    clause.consume(to..end);
    let from = (range.start..to).find(|i| clause.at(*i) == "from" && to - i <= 3);
    Some(range.start..from.unwrap_or(to))
}

/// Parses "to 7", "to 530" at the end, before a date, or before "for", "on" or "instead", as a time. Uses the last such
/// "to". Hours from 1 to 6 are in the afternoon, 24 is midnight. Without a date, the day is today if the hour is later
/// than the current one, and otherwise tomorrow. Then the time of day is set too. Sets and consumes the date. Returns
/// the range before "to", or the whole range if words follow the date, "for", "on" or "instead". Returns `None` if
/// there is no such hour, or if another word directly follows it.
fn parse_bare_hour(clause: &mut Clause, mut range: Range<usize>, command: &mut ParsedCommand) -> Option<Range<usize>> {
    let from = range.start;
    let end = range.end;
    let at = range.rfind(|i| clause.at(*i) == "to" && hour_at(clause, i + 1).is_some())?;
    let day = clause.date_at(at + 2).filter(|found| found.tokens.start == at + 2).cloned();
    if !clause.is_exhausted(at + 2..end) && day.is_none() && !matches!(clause.at(at + 2), "for" | "on" | "instead") {
        return None;
    }
    let (hour, minute) = hour_at(clause, at + 1)?;
    let hour = if (1..7).contains(&hour) { hour + 12 } else { hour % 24 };
    let date = match day.as_ref().and_then(|found| found.resolve(clause.now)) {
        Some(DayOrTime::Day(day)) => day,
        Some(DayOrTime::Time(at)) => at.date(),
        None if hour > clause.now.hour() => clause.now.date(),
        None => clause.now.date().tomorrow().ok()?,
    };
    command.when = Some(DayOrTime::Time(date.at(hour, minute, 0, 0)));
    command.time_of_day = Time::new(hour, minute, 0, 0).ok().filter(|_| day.is_none());
    clause.consume(at..day.map_or(at + 2, |found| found.tokens.end));
    Some(if clause.is_exhausted(at..end) { from..at } else { from..end })
}

/// Returns true if a "to" before the date leads to a new title: "change it to call Bob tomorrow". False if the range
/// contains a noun for a task.
fn leads_to_title(clause: &Clause, range: Range<usize>) -> bool {
    let filler = |from: usize| (from..range.end).all(|i| matches!(clause.at(i), "be" | "due" | "for"));
    let leads = |i: usize| clause.at(i) == "to" && !filler(i + 1);
    clause.noun_in(range.clone()).is_none() && (range.start + 1..range.end).any(leads)
}

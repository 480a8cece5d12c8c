//! Which tasks a list shows: by status, priority, due date, tag, or words to look for. Takes the tokens that say so.

use std::ops::Range;

use jiff::civil::Date;
use model::task::Priority;

use crate::attributes;
use crate::clause::Clause;
use crate::dates::{self, Day, Found, Scan};
use crate::lexicon;
use crate::reading::{DueFilter, Filter, StatusFilter};
use crate::spelling::resembles;

pub(crate) fn read(clause: &mut Clause, range: Range<usize>, filter: &mut Filter) {
    due(clause, range.clone(), filter);
    // The word before counts as well: "tagged work" may be all there is.
    let from = range.start.saturating_sub(1).max(clause.start);
    let mut tags = attributes::tags(clause, from, range.end);
    filter.tags.append(&mut tags);
    let mut i = range.start;
    while i < range.end {
        if clause.is_taken(i) || clause.words.is_quoted(i) {
            i += 1;
            continue;
        }
        i = word(clause, i, filter);
    }
    // "what did I finish today": when something was done is not when it was due.
    let done = filter.status == Some(StatusFilter::Completed) && filter.due != Some(DueFilter::Overdue);
    if done && filter.due.is_some() && !clause.has(lexicon::grammar::DUE) {
        filter.due = None;
        filter.unsupported = true;
    }
}

/// Reads the filter word at `i`, if there is one, and says where to go on.
fn word(clause: &mut Clause, i: usize, filter: &mut Filter) -> usize {
    if let Some(n) = clause.phrase(i, lexicon::filters::DATELESS) {
        filter.unsupported = true;
        clause.take(i..i + n);
        return i + n;
    }
    if let Some(n) = clause.phrase(i, lexicon::filters::ANY_STATUS) {
        filter.status = Some(StatusFilter::All);
        clause.take(i..i + n);
        return i + n;
    }
    if let Some(n) = clause.phrase(i, lexicon::filters::PENDING).filter(|_| clause.at(i) != "open" || i > clause.start)
    {
        filter.status = Some(StatusFilter::Pending);
        clause.take(i..i + n);
        return i + n;
    }
    if let Some(n) = clause.phrase(i, lexicon::filters::COMPLETED).filter(|_| !done_is_verb(clause, i)) {
        filter.status = Some(StatusFilter::Completed);
        clause.take(i..i + n);
        return i + n;
    }
    if let Some(known) = misspelt(clause, i) {
        match known {
            "overdue" => filter.due = Some(DueFilter::Overdue),
            "pending" => filter.status = Some(StatusFilter::Pending),
            _ => filter.status = Some(StatusFilter::Completed),
        }
        clause.take(i..i + 1);
        return i + 1;
    }
    if let Some(n) = clause.phrase(i, lexicon::filters::OVERDUE) {
        filter.due = Some(DueFilter::Overdue);
        clause.take(i..i + n);
        return i + n;
    }
    match priority(clause, i) {
        Some((priority, n)) => {
            filter.priority = Some(priority);
            clause.take(i..i + n);
            i + n
        }
        None => i + 1,
    }
}

/// A slip of the keys before a word for tasks: "overdu tasks".
fn misspelt(clause: &Clause, i: usize) -> Option<&'static str> {
    let word = clause.at(i);
    if word.len() < 6 || clause.noun_at(i + 1).is_none() {
        return None;
    }
    ["overdue", "pending", "completed", "finished"].into_iter().find(|known| word != *known && resembles(word, known))
}

fn priority(clause: &Clause, i: usize) -> Option<(Priority, usize)> {
    if let Some(n) = clause.phrase(i, lexicon::filters::MOST_IMPORTANT) {
        return Some((Priority::High, n));
    }
    attributes::priority_at(clause, i)
}

/// "what needs to be done" asks for what is not.
fn done_is_verb(clause: &Clause, i: usize) -> bool {
    let before = clause.before(i);
    matches!(before, "be" | "get" | "to" | "getting") || i == clause.start && clause.noun_at(i + 1).is_none()
}

fn due(clause: &mut Clause, range: Range<usize>, filter: &mut Filter) {
    let inside = |span: &Range<usize>| span.end > range.start && span.end <= range.end && span.start + 3 > range.start;
    let Some(n) = clause.dates.iter().position(|found| inside(&found.tokens)) else { return };
    let Some(found) = clause.dates.get(n).cloned().filter(|found| found.parts.repeat.is_none()) else { return };
    let second = clause.dates.get(n + 1).cloned().filter(|second| joins(clause, &found, second));
    let second = second.or_else(|| inner(clause, &found));
    clause.take(found.tokens.start..second.as_ref().unwrap_or(&found).tokens.end);
    let lead = found.tokens.start + usize::from(clause.at(found.tokens.start) == "due");
    let days = days(clause, &found);
    filter.due = match (clause.at(lead), second.and_then(|second| self::days(clause, &second))) {
        (_, Some((_, last))) => days.map(|(first, _)| DueFilter::Between(Some(first), Some(last))),
        ("before", _) => days.and_then(|(first, _)| Some(DueFilter::Between(None, Some(first.yesterday().ok()?)))),
        ("by" | "until" | "till" | "through", _) => days.map(|(_, last)| DueFilter::Between(None, Some(last))),
        ("after", _) => days.and_then(|(_, last)| Some(DueFilter::Between(Some(last.tomorrow().ok()?), None))),
        ("since", _) => days.map(|(first, _)| DueFilter::Between(Some(first), None)),
        _ => days.map(|(first, last)| named(clause, first, last)),
    };
    filter.unsupported |= filter.due.is_none();
}

/// "between Monday and 5 January", "from today to Friday".
fn joins(clause: &Clause, first: &Found, second: &Found) -> bool {
    let gap = first.tokens.end..second.tokens.start;
    let link = if gap.is_empty() { second.tokens.start } else { gap.start };
    gap.len() <= 1 && divides(clause, first, link) && second.parts.repeat.is_none()
}

/// "between Monday and Friday" where both were read as one.
fn inner(clause: &Clause, found: &Found) -> Option<Found> {
    let link = found.tokens.clone().find(|i| divides(clause, found, *i))?;
    let scan = Scan { words: clause.words, start: link + 1, end: found.tokens.end, now: clause.now };
    dates::find(scan).pop()
}

/// Whether the word at `link` leads from one end of a stretch to the other.
fn divides(clause: &Clause, first: &Found, link: usize) -> bool {
    let start = first.tokens.start + usize::from(clause.at(first.tokens.start) == "due");
    match (clause.before(start), clause.at(start)) {
        ("between", _) | (_, "between") => matches!(clause.at(link), "and" | "&"),
        ("from", _) | (_, "from") => matches!(clause.at(link), "to" | "-" | "–" | "until" | "till" | "through"),
        _ => false,
    }
}

/// The first and the last day that a date stands for.
fn days(clause: &Clause, found: &Found) -> Option<(Date, Date)> {
    let start = found.tokens.start + usize::from(clause.at(found.tokens.start) == "due");
    if clause.phrase(start, lexicon::filters::DAYS_AHEAD).is_some() {
        let today = clause.now.date();
        let last = match found.parts.day {
            Some(Day::Span { start, end, .. }) => today.checked_add(start.until(end).ok()?).ok()?,
            _ => found.when(clause.now)?.date(),
        };
        return Some((today, last)).filter(|(first, last)| first <= last);
    }
    if let Some(Day::Span { start, end, .. }) = found.parts.day {
        return Some((start, end.yesterday().ok()?)).filter(|(first, last)| first <= last);
    }
    let date = found.when(clause.now)?.date();
    Some((date, date))
}

fn named(clause: &Clause, first: Date, last: Date) -> DueFilter {
    let today = clause.now.date();
    let week = last.since(first).is_ok_and(|span| span.get_days() == 6);
    if first != last {
        let this = week && first <= today && today <= last;
        return if this { DueFilter::ThisWeek } else { DueFilter::Between(Some(first), Some(last)) };
    }
    if first == today {
        DueFilter::Today
    } else if Some(first) == today.tomorrow().ok() {
        DueFilter::Tomorrow
    } else {
        DueFilter::Day(first)
    }
}

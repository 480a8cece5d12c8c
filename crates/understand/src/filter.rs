//! Parses the filter of a list: status, priority, due date and tags. Consumes its tokens. The text to search for is
//! parsed in [`crate::command`] and [`crate::target`].

use std::ops::Range;

use jiff::civil::Date;
use model::task::Priority;

use crate::attributes;
use crate::clause::Clause;
use crate::dates::{self, DateMatch, DateScan, Day};
use crate::lexicon;
use crate::parsed::{CommandFilter, DueFilter, StatusFilter};
use crate::spelling::resembles;

/// Parses the due date, tags, status and priority in the range into `filter` and consumes them. Tags may begin one
/// token before the range. Quoted words set no status, no priority and no "overdue". Tags are added; another condition
/// replaces an earlier one of the same kind. Sets `unsupported` for "without a due date" and similar phrases. Completed
/// tasks with a due date other than overdue need the word "due". Without it, the due date is dropped and `unsupported`
/// is set, because the date means the completion.
pub(crate) fn parse(clause: &mut Clause, range: Range<usize>, filter: &mut CommandFilter) {
    parse_due(clause, range.clone(), filter);
    // Includes the word before, because the range can begin inside of "tagged work".
    let from = range.start.saturating_sub(1).max(clause.start);
    let mut tags = attributes::consume_tags(clause, from, range.end);
    filter.tags.append(&mut tags);
    let mut i = range.start;
    while i < range.end {
        if clause.is_consumed(i) || clause.words.is_quoted(i) {
            i += 1;
            continue;
        }
        i = parse_filter_word(clause, i, filter);
    }
    // "what did I finish today" asks for the completion date, which is not the due date.
    let done = filter.status == Some(StatusFilter::Completed) && filter.due != Some(DueFilter::Overdue);
    if done && filter.due.is_some() && !clause.has(lexicon::grammar::DUE) {
        filter.due = None;
        filter.unsupported = true;
    }
}

/// Parses and consumes the condition at `i`, if any. Returns the next position. "without a due date" sets
/// `unsupported`. Otherwise sets a status ("done or not", "open", "completed"), "overdue" or a priority. "open" at the
/// start of the clause and "done" in a verb ("to be done") do not count. "done" or a similar word at the start of the
/// clause needs a noun after it. Misspelled words of six letters or more count before a noun. Has no effect for other
/// words and returns `i + 1`.
fn parse_filter_word(clause: &mut Clause, i: usize, filter: &mut CommandFilter) -> usize {
    if let Some(n) = clause.phrase(i, lexicon::filters::DATELESS) {
        filter.unsupported = true;
        clause.consume(i..i + n);
        return i + n;
    }
    if let Some(n) = clause.phrase(i, lexicon::filters::ANY_STATUS) {
        filter.status = Some(StatusFilter::All);
        clause.consume(i..i + n);
        return i + n;
    }
    if let Some(n) = clause.phrase(i, lexicon::filters::PENDING).filter(|_| clause.at(i) != "open" || i > clause.start)
    {
        filter.status = Some(StatusFilter::Pending);
        clause.consume(i..i + n);
        return i + n;
    }
    if let Some(n) = clause.phrase(i, lexicon::filters::COMPLETED).filter(|_| !done_is_verb(clause, i)) {
        filter.status = Some(StatusFilter::Completed);
        clause.consume(i..i + n);
        return i + n;
    }
    if let Some(known) = misspelled_filter(clause, i) {
        match known {
            "overdue" => filter.due = Some(DueFilter::Overdue),
            "pending" => filter.status = Some(StatusFilter::Pending),
            _ => filter.status = Some(StatusFilter::Completed),
        }
        clause.consume(i..i + 1);
        return i + 1;
    }
    if let Some(n) = clause.phrase(i, lexicon::filters::OVERDUE) {
        filter.due = Some(DueFilter::Overdue);
        clause.consume(i..i + n);
        return i + n;
    }
    match priority_at(clause, i) {
        Some((priority, n)) => {
            filter.priority = Some(priority);
            clause.consume(i..i + n);
            i + n
        }
        None => i + 1,
    }
}

/// Returns the filter word that the word at `i` misspells before a noun: "overdu tasks". Words of less than six letters
/// do not count.
fn misspelled_filter(clause: &Clause, i: usize) -> Option<&'static str> {
    let word = clause.at(i);
    if word.len() < 6 || clause.noun_at(i + 1).is_none() {
        return None;
    }
    ["overdue", "pending", "completed", "finished"].into_iter().find(|known| word != *known && resembles(word, known))
}

/// Returns the priority at `i`, and its number of tokens. Phrases such as "most important" count as high.
fn priority_at(clause: &Clause, i: usize) -> Option<(Priority, usize)> {
    if let Some(n) = clause.phrase(i, lexicon::filters::MOST_IMPORTANT) {
        return Some((Priority::High, n));
    }
    attributes::priority_at(clause, i)
}

/// Returns true if the word at `i` belongs to a verb: "what needs to be done". A word at the start of the clause needs
/// a noun after it to be a filter.
fn done_is_verb(clause: &Clause, i: usize) -> bool {
    let before = clause.before(i);
    matches!(before, "be" | "get" | "to" | "getting") || i == clause.start && clause.noun_at(i + 1).is_none()
}

/// Sets the due date from the first date that ends in the range. It may begin up to two tokens before the range. Also
/// uses the second end of "from … to …" and "between … and …". Consumes both. "before" and "after" exclude the date,
/// "by", "until" and "since" include it; these ranges have an open end. Has no effect without a date and for a
/// repetition. Sets `unsupported` and no due date if the date has no value.
fn parse_due(clause: &mut Clause, range: Range<usize>, filter: &mut CommandFilter) {
    let inside = |span: &Range<usize>| span.end > range.start && span.end <= range.end && span.start + 3 > range.start;
    let Some(n) = clause.dates.iter().position(|found| inside(&found.tokens)) else { return };
    let Some(found) = clause.dates.get(n).cloned().filter(|found| found.parts.repeat.is_none()) else { return };
    let second = clause.dates.get(n + 1).cloned().filter(|second| joins_range(clause, &found, second));
    let second = second.or_else(|| inner_date(clause, &found));
    clause.consume(found.tokens.start..second.as_ref().unwrap_or(&found).tokens.end);
    let lead = found.tokens.start + usize::from(clause.at(found.tokens.start) == "due");
    let days = covered_days(clause, &found);
    filter.due = match (clause.at(lead), second.and_then(|second| covered_days(clause, &second))) {
        (_, Some((_, last))) => days.map(|(first, _)| DueFilter::Between(Some(first), Some(last))),
        ("before", _) => days.and_then(|(first, _)| Some(DueFilter::Between(None, Some(first.yesterday().ok()?)))),
        ("by" | "until" | "till" | "through", _) => days.map(|(_, last)| DueFilter::Between(None, Some(last))),
        ("after", _) => days.and_then(|(_, last)| Some(DueFilter::Between(Some(last.tomorrow().ok()?), None))),
        ("since", _) => days.map(|(first, _)| DueFilter::Between(Some(first), None)),
        _ => days.map(|(first, last)| due_filter(clause, first, last)),
    };
    filter.unsupported |= filter.due.is_none();
}

/// Returns true if two dates form a range: "between Monday and 5 January", "from today to Friday". "between" or "from"
/// must be at or directly before `first`. At most one token, the link, may separate them. False if the second one
/// repeats.
fn joins_range(clause: &Clause, first: &DateMatch, second: &DateMatch) -> bool {
    let gap = first.tokens.end..second.tokens.start;
    let link = if gap.is_empty() { second.tokens.start } else { gap.start };
    gap.len() <= 1 && is_range_link(clause, first, link) && second.parts.repeat.is_none()
}

/// Returns the last date after the link if one expression covers both ends of a range: "between Monday and Friday".
/// Returns `None` if `found` contains no link of a range, or no date follows it.
fn inner_date(clause: &Clause, found: &DateMatch) -> Option<DateMatch> {
    let link = found.tokens.clone().find(|i| is_range_link(clause, found, *i))?;
    let scan = DateScan { words: clause.words, start: link + 1, end: found.tokens.end, now: clause.now };
    dates::find(scan).pop()
}

/// Returns true if the word at `link` connects the ends of a date range. `first` must begin with "between" or "from",
/// or follow it. "between" needs "and" or "&". "from" needs "to", a dash, "until", "till" or "through".
fn is_range_link(clause: &Clause, first: &DateMatch, link: usize) -> bool {
    let start = first.tokens.start + usize::from(clause.at(first.tokens.start) == "due");
    match (clause.before(start), clause.at(start)) {
        ("between", _) | (_, "between") => matches!(clause.at(link), "and" | "&"),
        ("from", _) | (_, "from") => matches!(clause.at(link), "to" | "-" | "–" | "until" | "till" | "through"),
        _ => false,
    }
}

/// Returns the first and the last day that a date covers, both included. Phrases such as "in the next 3 days" and
/// "within a week" begin today and end on the resolved date. With a span of weeks or longer units, they end after its
/// length: "the next 2 weeks" end in 14 days. A span such as "next week" covers its days, any other date one day.
/// Returns `None` if the date has no value, or if the last day precedes the first.
fn covered_days(clause: &Clause, found: &DateMatch) -> Option<(Date, Date)> {
    let start = found.tokens.start + usize::from(clause.at(found.tokens.start) == "due");
    if clause.phrase(start, lexicon::filters::DAYS_AHEAD).is_some() {
        let today = clause.now.date();
        let last = match found.parts.day {
            Some(Day::Span { start, end, .. }) => today.checked_add(start.until(end).ok()?).ok()?,
            _ => found.resolve(clause.now)?.date(),
        };
        return Some((today, last)).filter(|(first, last)| first <= last);
    }
    if let Some(Day::Span { start, end, .. }) = found.parts.day {
        return Some((start, end.yesterday().ok()?)).filter(|(first, last)| first <= last);
    }
    let date = found.resolve(clause.now)?.date();
    Some((date, date))
}

/// Returns the filter for the days from `first` to `last`. A single day is today, tomorrow or the day itself. Seven
/// days that include today are this week. Other days are a range.
fn due_filter(clause: &Clause, first: Date, last: Date) -> DueFilter {
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

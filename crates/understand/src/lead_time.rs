//! Lead times of reminders: "10 minutes before", "an hour early", "the evening before the exam". They are not part of a
//! title or a name.

use std::ops::Range;

use jiff::civil::Time;

use crate::clause::Clause;
use crate::dates::{self, DateScan};
use crate::lexicon;
use crate::numbers;
use crate::parsed::{LeadTime, TaskTarget};
use crate::vocabulary::{self, Noun, Verb};

/// A lead time in a clause.
pub(crate) struct LeadTimeMention {
    /// The tokens, with the event and the time of day next to it.
    pub(crate) tokens: Range<usize>,
    pub(crate) lead: LeadTime,
    /// The event, if the words name it or refer to it by a pronoun.
    pub(crate) event: Option<TaskTarget>,
}

/// Returns the position of the unit after the amount at `i`: "minutes" of "ten minutes". Returns `None` if there is no
/// amount, or if no unit follows it.
pub(crate) fn unit_at(clause: &Clause, i: usize) -> Option<usize> {
    let (_, len) = numbers::amount(clause.words, i)?;
    is_unit(clause, i + len).then_some(i + len)
}

/// Returns true if the word at `i` is a unit of a lead time.
pub(crate) fn is_unit(clause: &Clause, i: usize) -> bool {
    lexicon::dates::LEAD_TIME_UNITS.contains(clause.at(i))
}

/// Returns the first lead time in the range: "2 hours before the dentist", "the day before at 6pm", "on the morning of
/// the exam", "30 minutes early". The event ends before "to", "about", a date, a mark or "remind". An event such as "I
/// leave" is no task, so its lead time is none. A lead time that is part of a date ("two days before christmas") does
/// not count either.
pub(crate) fn find(clause: &Clause, range: Range<usize>) -> Option<LeadTimeMention> {
    if !clause.has(lexicon::reminders::LEAD_TIME_SIGNS) {
        return None;
    }
    range.clone().find_map(|i| mention_at(clause, i, &range))
}

/// Removes the dates of a lead time from the clause and consumes its tokens.
pub(crate) fn consume(clause: &mut Clause, mention: &LeadTimeMention) {
    let tokens = mention.tokens.clone();
    clause.dates.retain(|found| found.tokens.end <= tokens.start || found.tokens.start >= tokens.end);
    clause.consume(tokens);
}

/// Returns the lead time that begins at `i`.
fn mention_at(clause: &Clause, i: usize, range: &Range<usize>) -> Option<LeadTimeMention> {
    let (mut lead, unit) = distance_at(clause, i)?;
    let ahead = if clause.at(unit + 1) == "of" && lead.minutes == 0 && lead.days == 0 {
        1
    } else {
        clause.phrase(unit + 1, lexicon::dates::LEAD_TIME_AHEAD)?
    };
    let mut end = unit + 1 + ahead;
    let leads_on = matches!(clause.before(end), "before" | "to" | "of" | "prior");
    let covering = clause.date_at(i).filter(|found| found.tokens.start <= i && found.tokens.end > end);
    if covering.is_some_and(|found| !matches!(clause.at(end), "at" | "@") || found.tokens.start < i) {
        return None;
    }
    let (event, after) = if leads_on { event_at(clause, end, range.end)? } else { (None, end) };
    end = after;
    let mut start =
        i.checked_sub(1).filter(|k| matches!(clause.at(*k), "at" | "about" | "for" | "by" | "on")).unwrap_or(i);
    start = start.max(range.start);
    let scan = DateScan { words: clause.words, start: end, end: range.end, now: clause.now };
    let next = if end < range.end { dates::find(scan).into_iter().next() } else { None };
    if let Some(found) = next.filter(|found| found.tokens.start == end)
        && let Some(time) = found.time_of_day(clause.now)
    {
        lead.time_of_day = Some(time);
        end = found.tokens.end;
    } else if let Some(found) = start.checked_sub(1).and_then(|k| clause.date_at(k)).filter(|f| f.tokens.end == start)
        && let Some(time) = found.time_of_day(clause.now)
    {
        lead.time_of_day = Some(time);
        start = found.tokens.start.max(range.start);
    }
    Some(LeadTimeMention { tokens: start..end, lead, event })
}

/// Returns the distance at `i` and the position of its unit: "half an hour", "the night", "the morning". A part of the
/// day is one day, except before "of", and has a time of day. Returns `None` for other words.
fn distance_at(clause: &Clause, i: usize) -> Option<(LeadTime, usize)> {
    let article = usize::from(clause.at(i) == "the");
    let named = clause.at(i + article);
    let of = clause.at(i + article + 1) == "of";
    let bare = article == 1 || matches!(named, "night" | "evening" | "day" | "morning") && clause.before(i) != "a";
    let hour = match named {
        "morning" => Some(9),
        "afternoon" => Some(15),
        "evening" => Some(18),
        "night" => Some(20),
        _ => None,
    };
    if bare && (hour.is_some() || matches!(named, "day" | "week" | "month")) {
        let days = match (named, of) {
            (_, true) => 0,
            ("week", _) => 7,
            ("month", _) => 30,
            _ => 1,
        };
        let time_of_day = hour.and_then(|hour| Time::new(hour, 0, 0, 0).ok());
        return Some((LeadTime { days, minutes: 0, time_of_day }, i + article));
    }
    let ((whole, sixtieths), len) = numbers::amount(clause.words, i)?;
    let unit = i + len;
    let word = clause.at(unit);
    let days = |days: i64| {
        Some(LeadTime {
            days: i32::try_from(whole.checked_mul(days)?).ok()?,
            minutes: sixtieths * 24 * days,
            time_of_day: None,
        })
    };
    let lead = match word {
        "minute" | "minutes" | "min" | "mins" => Some(LeadTime { minutes: whole, ..LeadTime::default() }),
        "hour" | "hours" | "hr" | "hrs" => {
            Some(LeadTime { minutes: whole.checked_mul(60)? + sixtieths, ..LeadTime::default() })
        }
        "day" | "days" | "night" => days(1),
        "week" | "weeks" => days(7),
        "month" | "months" => days(30),
        _ => None,
    }?;
    Some((lead, unit))
}

/// Returns the event at `i`, and the position after it. A pronoun is [`TaskTarget::It`]. Returns an empty event at the
/// end and before "to", "at" and marks. Returns `None` for an event that is a sentence ("I leave").
fn event_at(clause: &Clause, i: usize, to: usize) -> Option<(Option<TaskTarget>, usize)> {
    if let Some(n) = clause.phrase(i, lexicon::create_task::LEAD_TIME_OBJECTS).filter(|n| i + n <= to) {
        return Some((Some(TaskTarget::It), i + n));
    }
    if matches!(clause.at(i), "i" | "i'm" | "we" | "he" | "she" | "they" | "you" | "bed" | "bedtime") {
        return None;
    }
    let opens_title = |k: usize| {
        clause.at(k) == "to"
            && !matches!(
                clause.before(k),
                "have" | "has" | "need" | "needs" | "going" | "trip" | "flight" | "drive" | "move"
            )
    };
    let ends = |k: usize| {
        !clause.words.is_word(k) && !clause.words.is_quoted(k)
            || opens_title(k)
            || clause.is_consumed(k)
            || clause.date_at(k).is_some()
            || matches!(
                clause.at(k),
                "about" | "that" | "and" | "because" | "so" | "starts" | "begins" | "comes" | "is"
            )
            || vocabulary::verb(clause.at(k)) == Some(Verb::Remind)
    };
    let end = (i..to.min(i + 8)).find(|k| ends(*k)).unwrap_or(to.min(i + 8));
    let mut start = i;
    while start < end && (vocabulary::is_article(clause.at(start)) || matches!(clause.at(start), "that" | "this")) {
        start += 1;
    }
    let closed = end + usize::from(matches!(clause.at(end), "starts" | "begins" | "comes"));
    if clause.date_at(i).or(clause.date_at(start)).is_some_and(|found| !found.parts.is_clock_only()) {
        return None;
    }
    if clause.noun_at(start).is_some_and(|noun| noun.noun == Noun::Reminder) {
        return Some((None, i));
    }
    let noun = clause.noun_in(start..end).filter(|noun| noun.end == end && noun.noun != Noun::List);
    let name_end = noun.map_or(end, |noun| noun.at);
    if start >= name_end {
        return Some((noun.map(|_| TaskTarget::It), closed));
    }
    let name = clause.words.text(start..name_end);
    let name =
        if clause.words.is_quoted(start) && name_end == start + 1 { clause.words.quoted_text(start) } else { name };
    Some((Some(TaskTarget::Named(name.to_owned())), closed))
}

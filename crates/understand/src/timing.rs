//! Chooses the date of a command among the dates of a clause, and merges dates that belong together.

use std::ops::Range;

use jiff::Zoned;

use crate::clause::Clause;
use crate::dates::DateMatch;
use crate::lexicon;
use crate::parsed::{Intent, ParsedCommand};

/// Sets `when` and the recurrence of the command from `dates`, also to `None` if the date has no such value. For an
/// update or a reminder, sets the time of day, too. Has no effect for `None`.
pub(crate) fn apply_date(command: &mut ParsedCommand, dates: Option<DateMatch>, now: &Zoned) {
    if let Some(found) = dates {
        command.when = found.resolve(now);
        command.recurrence = found.rrule();
        if matches!(command.intent, Intent::UpdateTask | Intent::ScheduleReminder) {
            command.time_of_day = found.time_of_day(now);
        }
    }
}

/// Consumes the first "repeating", "and repeat it" or similar phrase at or after `body` that directly precedes a
/// repetition ("every hour"). Also consumes a comma before it. Has no effect if there is none.
pub(crate) fn consume_repeating(clause: &mut Clause, body: usize) {
    let words = lexicon::dates::REPEATING;
    let repeats = |i: usize| clause.date_at(i).is_some_and(|found| found.parts.repeat.is_some());
    let at =
        (body..clause.end).find_map(|i| clause.phrase(i, words).map(|n| i..i + n).filter(|phrase| repeats(phrase.end)));
    if let Some(phrase) = at {
        let comma = usize::from(phrase.start > body && clause.at(phrase.start - 1) == ",");
        clause.consume(phrase.start - comma..phrase.end);
    }
}

/// Returns the main date inside of the range, see [`pick_main`]. Compatible dates are merged into it, and directly
/// continuing ones ("9am and 6pm") are dropped, unless a date before the main one was merged. Consumes all of these,
/// and the links before continuing ones. Dates with "'s" are not merged. If the main date is a time that is part of a
/// name ("my 7am alarm"), it stays in the title. As another date, such a time is merged and consumed like any other. A
/// main date with "'s" ("today's") more than two tokens after `prefer` stays, too. Consumed dates and epithets ("my
/// quarterly taxes") do not count. Other dates stay. Returns `None` if no date is left.
pub(crate) fn choose_date(clause: &mut Clause, range: Range<usize>, prefer: usize) -> Option<DateMatch> {
    let free = |found: &&DateMatch| {
        let inside = found.tokens.start >= range.start && found.tokens.end <= range.end;
        inside && !clause.is_consumed(found.tokens.end - 1) && !is_epithet(clause, found)
    };
    let dates: Vec<DateMatch> = clause.dates.iter().filter(free).cloned().collect();
    let first = pick_main(clause, &dates, prefer)?;
    let mut main = dates.get(first)?.clone();
    let within = is_possessive(clause, &main) && main.tokens.start > prefer + 2;
    if !is_part_of_name(clause, &main) && !within {
        clause.consume(main.tokens.clone());
    }
    let mut last = main.tokens.end;
    for (n, other) in dates.iter().enumerate() {
        if n == first || dates.len() > 1 && is_possessive(clause, other) {
            continue;
        }
        let gap = last..other.tokens.start;
        let follows = n > first && continues(clause, gap.clone(), other);
        if main.parts.merge(&other.parts) || follows {
            if follows {
                clause.consume(gap);
            }
            clause.consume(other.tokens.clone());
            last = other.tokens.end;
        }
    }
    Some(main)
}

/// Returns the index of the main date: the first one at or after `prefer`, else the first one. Dates in a name or with
/// "'s" count only if there is no other. A later deadline ("by", "before", "due") wins if both cannot be merged.
/// Returns `None` without dates.
fn pick_main(clause: &Clause, dates: &[DateMatch], prefer: usize) -> Option<usize> {
    let strong = |found: &DateMatch| !is_part_of_name(clause, found) && !is_possessive(clause, found);
    let after = dates.iter().position(|found| found.tokens.start >= prefer && strong(found));
    let deadline = dates.iter().position(|found| matches!(clause.at(found.tokens.start), "by" | "before" | "due"));
    let first = after.or_else(|| dates.iter().position(strong)).or((!dates.is_empty()).then_some(0))?;
    let rivals = deadline.filter(|n| *n > first).and_then(|n| {
        let one = dates.get(first)?;
        let other = dates.get(n)?;
        (!one.parts.clone().merge(&other.parts)).then_some(n)
    });
    Some(rivals.unwrap_or(first))
}

/// Returns true if the date describes a noun: "today's lunch".
fn is_possessive(clause: &Clause, found: &DateMatch) -> bool {
    found.tokens.end.checked_sub(1).is_some_and(|last| clause.at(last).ends_with("'s"))
}

/// Returns true if a repetition of one word is part of a name: "my quarterly taxes". "my", "our", "his", "her" or
/// "their" must precede it. A word must follow that is neither a noun for a task nor "to", "for", "and" or a similar
/// word.
fn is_epithet(clause: &Clause, found: &DateMatch) -> bool {
    let owned = matches!(clause.before(found.tokens.start), "my" | "our" | "his" | "her" | "their");
    let named = clause.words.is_word(found.tokens.end)
        && found.tokens.end < clause.end
        && clause.noun_at(found.tokens.end).is_none();
    let goes_on = lexicon::dates::EPITHET_STOPS.contains(clause.at(found.tokens.end));
    found.parts.repeat.is_some() && found.tokens.len() == 1 && owned && named && !goes_on
}

/// Returns true if a clock time without a date is part of a name: "my 7am alarm". "my", "the", "a" or "our" must
/// precede it. A word must follow that is not "to", "for", "reminder", "task" or a similar word.
fn is_part_of_name(clause: &Clause, found: &DateMatch) -> bool {
    let led =
        found.tokens.len() > 1 && found.tokens.end.checked_sub(2).is_some_and(|i| matches!(clause.at(i), "the" | "my"));
    let start = found.tokens.start;
    found.parts.is_clock_only()
        && (led || matches!(clause.before(start), "my" | "the" | "a" | "our"))
        && clause.words.is_word(found.tokens.end)
        && found.tokens.end < clause.end
        && !lexicon::dates::DESCRIPTION_STOPS.contains(clause.at(found.tokens.end))
}

/// Returns true if the second date continues the first ("9am and 6pm"). `gap` contains the tokens between them. Up to
/// two of "to", "until", "through", "and", "&", commas and dashes may separate them. Without a gap, the second one must
/// open with such a word or be a clock time.
fn continues(clause: &Clause, gap: Range<usize>, second: &DateMatch) -> bool {
    let link =
        |i: usize| matches!(clause.at(i), "to" | "-" | "–" | "until" | "till" | "through" | "and" | "thru" | "," | "&");
    match gap.len() {
        0 => link(second.tokens.start) || second.parts.is_clock_only(),
        1 => link(gap.start),
        2 => link(gap.start) && link(gap.start + 1),
        _ => false,
    }
}

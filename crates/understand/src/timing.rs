//! Chooses among the dates of a command the one that is meant, and puts together those that belong together.

use std::ops::Range;

use jiff::Zoned;

use crate::clause::Clause;
use crate::dates::Found;
use crate::lexicon;
use crate::reading::{Command, Intent};

/// Writes the date and the repetition into the command.
pub(crate) fn apply(command: &mut Command, dates: Option<Found>, now: &Zoned) {
    if let Some(found) = dates {
        command.when = found.when(now);
        command.recurrence = found.rule();
        if matches!(command.intent, Intent::UpdateTask | Intent::ScheduleReminder) {
            command.clock = found.clock(now);
        }
    }
}

/// Takes "repeating" before "every hour".
pub(crate) fn take_repeating(clause: &mut Clause, body: usize) {
    let words = lexicon::dates::REPEATING;
    let repeats = |i: usize| clause.date_at(i).is_some_and(|found| found.parts.repeat.is_some());
    let at =
        (body..clause.end).find_map(|i| clause.phrase(i, words).map(|n| i..i + n).filter(|said| repeats(said.end)));
    if let Some(said) = at {
        let comma = usize::from(said.start > body && clause.at(said.start - 1) == ",");
        clause.take(said.start - comma..said.end);
    }
}

/// The date of a stretch: that after `prefer`, a deadline ("by …"), or the first. Others complete it; what
/// contradicts it stays where it is, as part of the title.
pub(crate) fn choose(clause: &mut Clause, range: Range<usize>, prefer: usize) -> Option<Found> {
    let free = |found: &&Found| {
        let inside = found.tokens.start >= range.start && found.tokens.end <= range.end;
        inside && !clause.is_taken(found.tokens.end - 1) && !is_epithet(clause, found)
    };
    let dates: Vec<Found> = clause.dates.iter().filter(free).cloned().collect();
    let first = pick(clause, &dates, prefer)?;
    let mut main = dates.get(first)?.clone();
    let within = is_possessive(clause, &main) && main.tokens.start > prefer + 2;
    if !describes(clause, &main) && !within {
        clause.take(main.tokens.clone());
    }
    let mut last = main.tokens.end;
    for (n, other) in dates.iter().enumerate() {
        if n == first || dates.len() > 1 && is_possessive(clause, other) {
            continue;
        }
        let gap = last..other.tokens.start;
        let follows = n > first && continues(clause, gap.clone(), other);
        if main.parts.complete(&other.parts) || follows {
            if follows {
                clause.take(gap);
            }
            clause.take(other.tokens.clone());
            last = other.tokens.end;
        }
    }
    Some(main)
}

fn pick(clause: &Clause, dates: &[Found], prefer: usize) -> Option<usize> {
    let strong = |found: &Found| !describes(clause, found) && !is_possessive(clause, found);
    let after = dates.iter().position(|found| found.tokens.start >= prefer && strong(found));
    let deadline = dates.iter().position(|found| matches!(clause.at(found.tokens.start), "by" | "before" | "due"));
    let first = after.or_else(|| dates.iter().position(strong)).or((!dates.is_empty()).then_some(0))?;
    let rivals = deadline.filter(|n| *n > first).and_then(|n| {
        let one = dates.get(first)?;
        let other = dates.get(n)?;
        (!one.parts.clone().complete(&other.parts)).then_some(n)
    });
    Some(rivals.unwrap_or(first))
}

/// "today's lunch": the day tells which lunch.
fn is_possessive(clause: &Clause, found: &Found) -> bool {
    found.tokens.end.checked_sub(1).is_some_and(|last| clause.at(last).ends_with("'s"))
}

/// "my quarterly taxes": how often is part of a name.
fn is_epithet(clause: &Clause, found: &Found) -> bool {
    let owned = matches!(clause.before(found.tokens.start), "my" | "our" | "his" | "her" | "their");
    let named = clause.words.is_word(found.tokens.end)
        && found.tokens.end < clause.end
        && clause.noun_at(found.tokens.end).is_none();
    let goes_on = lexicon::dates::EPITHET_STOPS.contains(clause.at(found.tokens.end));
    found.parts.repeat.is_some() && found.tokens.len() == 1 && owned && named && !goes_on
}

/// "my 7am alarm": the time is part of a name.
fn describes(clause: &Clause, found: &Found) -> bool {
    let led =
        found.tokens.len() > 1 && found.tokens.end.checked_sub(2).is_some_and(|i| matches!(clause.at(i), "the" | "my"));
    let start = found.tokens.start;
    found.parts.is_clock_only()
        && (led || matches!(clause.before(start), "my" | "the" | "a" | "our"))
        && clause.words.is_word(found.tokens.end)
        && found.tokens.end < clause.end
        && !lexicon::dates::DESCRIPTION_STOPS.contains(clause.at(found.tokens.end))
}

/// Whether only "to", "and", a comma or a dash stands before a date that goes on from another ("9am and 6pm").
fn continues(clause: &Clause, gap: Range<usize>, second: &Found) -> bool {
    let link =
        |i: usize| matches!(clause.at(i), "to" | "-" | "–" | "until" | "till" | "through" | "and" | "thru" | "," | "&");
    match gap.len() {
        0 => link(second.tokens.start) || second.parts.is_clock_only(),
        1 => link(gap.start),
        2 => link(gap.start) && link(gap.start + 1),
        _ => false,
    }
}

//! Parses references to several tasks: "tasks 2 and 4", "milk and bread", "call mom and the report".

use std::ops::Range;

use crate::clause::Clause;
use crate::intent;
use crate::numbers;
use crate::parsed::TaskTarget;
use crate::target::{parse_one, parse_position};
use crate::vocabulary;

/// Parses "tasks 2 and 4", "tasks 2 to 4", "the first two". An article may come first. "first" or "top" needs a number from 2 to
/// 20, and nothing or a noun after it. A list of one or more numbers needs a plural noun before it, so "tasks 2" yields
/// [`TaskTarget::Several`] with one position; only "and", commas, "&" and "#" may separate them. Returns `None` for
/// other references and for more than 20 tasks.
pub(crate) fn parse_positions(clause: &Clause, range: &Range<usize>) -> Option<TaskTarget> {
    let article = range.start + usize::from(vocabulary::is_article(clause.at(range.start)));
    if matches!(clause.at(article), "first" | "top") {
        let (n, len) = numbers::cardinal(clause.words, article + 1).filter(|(n, _)| (2..=20).contains(n))?;
        let after = article + 1 + len;
        let closed = after >= range.end || clause.noun_at(after).is_some_and(|noun| noun.end >= range.end);
        return closed.then(|| {
            TaskTarget::Several((1..).take(usize::try_from(n).unwrap_or(0)).map(TaskTarget::Position).collect())
        });
    }
    let noun = clause.noun_at(article).filter(|noun| noun.plural)?;
    if let Some(positions) = parse_position_range(clause, noun.end..range.end) {
        return Some(positions);
    }
    let numbers: Vec<usize> =
        (noun.end..range.end).filter(|i| !matches!(clause.at(*i), "and" | "," | "&" | "#")).collect();
    let positions: Option<Vec<TaskTarget>> = numbers.iter().map(|i| parse_position(clause, *i..i + 1)).collect();
    positions.filter(|positions| !positions.is_empty() && positions.len() <= 20).map(TaskTarget::Several)
}

/// Parses "2-4", "2 to 4", "2 through 4" in digits. Both ends are included. Returns `None` if the range has other
/// tokens, does not ascend, or begins with 0. Also returns `None` for more than 20 positions.
fn parse_position_range(clause: &Clause, range: Range<usize>) -> Option<TaskTarget> {
    let first = clause.at(range.start);
    let (first, last) = match first.split_once(['-', '–']) {
        Some(ends) if range.len() == 1 => ends,
        None if range.len() == 3 && matches!(clause.at(range.start + 1), "to" | "through" | "thru" | "-" | "–") => {
            (first, clause.at(range.start + 2))
        }
        _ => return None,
    };
    let first = first.parse::<usize>().ok()?;
    let last = last.parse::<usize>().ok()?;
    let fits = first > 0 && first < last && last - first < 20;
    fits.then(|| TaskTarget::Several((first..=last).map(TaskTarget::Position).collect()))
}

/// Parses "the first and the third", "milk and bread", "'a' and 'b'" as several targets. "and", commas and "&" outside
/// of dates divide the sides. All sides must be positions, or all must stand alone ([`stands_alone`]), or all must be
/// activities ([`are_activities`]). In the second case, the last one may also end in a noun: "milk and bread tasks".
/// Returns `None` for less than 2 or more than 20 sides. A side that can only be part of a title ("buy milk and eggs")
/// also yields `None`. Consumes dates inside of names.
pub(crate) fn parse(clause: &mut Clause, range: &Range<usize>) -> Option<TaskTarget> {
    let divides = |i: &usize| matches!(clause.at(*i), "and" | "," | "&") && clause.date_at(*i).is_none();
    let mut sides = Vec::new();
    let mut from = range.start;
    for i in range.clone().filter(divides).chain([range.end]) {
        if i > from {
            sides.push(from..i);
        }
        from = i + 1;
    }
    if sides.len() < 2 || sides.len() > 20 {
        return None;
    }
    let positions: Option<Vec<TaskTarget>> = sides.iter().map(|side| parse_position(clause, side.clone())).collect();
    if let Some(positions) = positions {
        return Some(TaskTarget::Several(positions));
    }
    let count = sides.len();
    let fits =
        |(n, side): (usize, &Range<usize>)| stands_alone(clause, side) || n + 1 == count && ends_in_noun(clause, side);
    if !sides.iter().enumerate().all(fits) && !are_activities(clause, &sides) {
        return None;
    }
    let named: Vec<TaskTarget> = sides.into_iter().filter_map(|side| parse_one(clause, side)).collect();
    (named.len() == count).then_some(TaskTarget::Several(named))
}

/// Returns true if each side is an activity of two to six tokens, or stands alone after "the" or "my". Examples are
/// "buy milk and call mom", "call mom and the report". "buy milk and eggs" is one title.
fn are_activities(clause: &Clause, sides: &[Range<usize>]) -> bool {
    let doing = |side: &Range<usize>| side.len() > 1 && side.len() <= 6 && intent::is_activity(clause, side.start);
    let definite = |side: &Range<usize>| matches!(clause.at(side.start), "the" | "my") && stands_alone(clause, side);
    sides.iter().all(|side| doing(side) || definite(side))
}

/// Returns true for a single word or quoted passage. Also true for up to four tokens that begin with "the" or "my".
/// These must not have words after a noun for a task ("the task about").
fn stands_alone(clause: &Clause, side: &Range<usize>) -> bool {
    let labelled = clause.noun_in(side.clone()).is_some_and(|noun| noun.end < side.end);
    let article = matches!(clause.at(side.start), "the" | "my") && side.len() <= 4 && !labelled;
    side.len() == 1 && (clause.words.is_word(side.start) || clause.words.is_quoted(side.start)) || article
}

/// Returns true for up to three tokens that end in a noun for a task: "bread tasks". A noun alone does not count.
fn ends_in_noun(clause: &Clause, side: &Range<usize>) -> bool {
    side.len() <= 3 && clause.nouns_in(side.clone()).any(|noun| noun.end == side.end && noun.at > side.start)
}

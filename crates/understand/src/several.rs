//! References to several tasks at once: "tasks 2 and 4", "milk and bread", "call mom and the report".

use std::ops::Range;

use crate::clause::Clause;
use crate::intent;
use crate::numbers;
use crate::reading::Target;
use crate::target::{one, place};
use crate::vocabulary;

/// "tasks 2 and 4", "the first two".
pub(crate) fn places(clause: &Clause, range: &Range<usize>) -> Option<Target> {
    let article = range.start + usize::from(vocabulary::is_article(clause.at(range.start)));
    if clause.at(article) == "first" {
        let (n, len) = numbers::cardinal(clause.words, article + 1).filter(|(n, _)| (2..=20).contains(n))?;
        let after = article + 1 + len;
        let closed = after >= range.end || clause.noun_at(after).is_some_and(|noun| noun.end >= range.end);
        return closed
            .then(|| Target::Several((1..).take(usize::try_from(n).unwrap_or(0)).map(Target::Position).collect()));
    }
    let noun = clause.noun_at(article).filter(|noun| noun.plural)?;
    if let Some(places) = row(clause, noun.end..range.end) {
        return Some(places);
    }
    let numbers: Vec<usize> =
        (noun.end..range.end).filter(|i| !matches!(clause.at(*i), "and" | "," | "&" | "#")).collect();
    let places: Option<Vec<Target>> = numbers.iter().map(|i| place(clause, *i..i + 1)).collect();
    places.filter(|places| !places.is_empty() && places.len() <= 20).map(Target::Several)
}

/// "2-4", "2 to 4", "2 through 4".
fn row(clause: &Clause, range: Range<usize>) -> Option<Target> {
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
    fits.then(|| Target::Several((first..=last).map(Target::Position).collect()))
}

/// "the first and the third", "milk and bread", "'a' and 'b'": only where each side can stand alone.
pub(crate) fn read(clause: &mut Clause, range: &Range<usize>) -> Option<Target> {
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
    let places: Option<Vec<Target>> = sides.iter().map(|side| place(clause, side.clone())).collect();
    if let Some(places) = places {
        return Some(Target::Several(places));
    }
    let count = sides.len();
    let fits =
        |(n, side): (usize, &Range<usize>)| stands_alone(clause, side) || n + 1 == count && ends_in_noun(clause, side);
    if !sides.iter().enumerate().all(fits) && !are_doings(clause, &sides) {
        return None;
    }
    let named: Vec<Target> = sides.into_iter().filter_map(|side| one(clause, side)).collect();
    (named.len() == count).then_some(Target::Several(named))
}

/// "buy milk and call mom", "call mom and the report"; "buy milk and eggs" is one title.
fn are_doings(clause: &Clause, sides: &[Range<usize>]) -> bool {
    let doing = |side: &Range<usize>| side.len() > 1 && side.len() <= 6 && intent::is_doing(clause, side.start);
    let definite = |side: &Range<usize>| matches!(clause.at(side.start), "the" | "my") && stands_alone(clause, side);
    sides.iter().all(|side| doing(side) || definite(side))
}

fn stands_alone(clause: &Clause, side: &Range<usize>) -> bool {
    let labelled = clause.noun_in(side.clone()).is_some_and(|noun| noun.end < side.end);
    let article = matches!(clause.at(side.start), "the" | "my") && side.len() <= 4 && !labelled;
    side.len() == 1 && (clause.words.is_word(side.start) || clause.words.is_quoted(side.start)) || article
}

fn ends_in_noun(clause: &Clause, side: &Range<usize>) -> bool {
    side.len() <= 3 && clause.nouns_in(side.clone()).any(|noun| noun.end == side.end && noun.at > side.start)
}

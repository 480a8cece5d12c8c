//! Changes that name the field: "the priority of X to high", "X's description to Y".

use std::ops::Range;

use model::task::Status;

use crate::attributes;
use crate::clause::Clause;
use crate::dates;
use crate::lexicon;
use crate::phrases::Phrases;
use crate::reading::Command;
use crate::vocabulary;

/// What a named field holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A date, which is read elsewhere.
    Date,
    /// A priority, a title, a state, a description.
    Value,
}

/// Reads a change of a named field. What is given back names the task, and says what was named.
pub(super) fn read(clause: &mut Clause, range: Range<usize>, command: &mut Command) -> (Range<usize>, Option<Kind>) {
    let limit = range.end.min(range.start + 8);
    let found = (range.start..limit).find_map(|i| clause.phrase(i, lexicon::update_fields::NAMES).map(|n| (i, n)));
    let is_field =
        |(at, n): &(usize, usize)| clause.noun_at(at + n).is_none() && attributes::level(clause.before(*at)).is_none();
    // "our date night", "the time capsule": a word that goes on is part of a name.
    let goes_on = |(at, n): &(usize, usize)| {
        let next = at + n;
        clause.words.is_word(next)
            && next < range.end
            && !dates::is_small(clause.at(next))
            && clause.date_at(next).is_none()
    };
    let weak =
        |(at, _): &(usize, usize)| matches!(clause.at(*at), "date" | "time" | "name" | "title" | "note" | "notes");
    let found = found.filter(|field| !weak(field) || !goes_on(field));
    let Some((at, n)) = found.filter(is_field) else { return (range, None) };
    let name = clause.at(at);
    let article = |i: usize| vocabulary::is_article(clause.at(i)) || matches!(clause.at(i), "alert" | "reminder");
    let direct = (range.start..at).all(article);
    let possessive = clause.before(at).ends_with("'s");
    if !direct && !possessive && !matches!(name, "priority" | "description" | "due" | "deadline") {
        if matches!(name, "time" | "date") && clause.noun_at(at.saturating_sub(1)).is_some() {
            clause.take(at..at + n);
        }
        return (range, None);
    }
    let of = at + n + clause.phrase(at + n, lexicon::update_fields::OF).unwrap_or(0);
    if matches!(name, "due" | "deadline" | "date" | "time") {
        clause.take(at..of);
        return (if direct { of..range.end } else { range }, Some(Kind::Date));
    }
    let Some(to) = divider(clause, of..range.end, name) else {
        command.priority = (of..range.end).find_map(|i| attributes::level(clause.at(i))).filter(|_| name == "priority");
        clause.take(at..of);
        return (if direct { of..range.end } else { range.start..at }, None);
    };
    set(clause, name, to + 1..range.end, command);
    clause.take(to..range.end);
    // "from low to high"
    let from =
        to.checked_sub(2).filter(|from| clause.at(*from) == "from" && attributes::level(clause.at(from + 1)).is_some());
    let to = from.filter(|from| *from > of).unwrap_or(to);
    (if direct { of..to } else { range.start..at }, Some(Kind::Value))
}

fn set(clause: &Clause, name: &str, value: Range<usize>, command: &mut Command) {
    match name {
        "priority" => command.priority = value.clone().find_map(|i| attributes::level(clause.at(i))),
        "tags" | "labels" => command.tags = super::tags::names(clause, value),
        "title" | "name" => command.title = Some(clause.rest(value)).filter(|title| !title.is_empty()),
        "status" => {
            let says = |words: Phrases| value.clone().any(|i| words.contains(clause.at(i)));
            command.status = match (says(lexicon::update_fields::OPEN), says(lexicon::update_fields::DONE)) {
                (true, _) => Some(Status::Pending),
                (_, true) => Some(Status::Completed),
                _ => None,
            };
        }
        _ => {
            let quoted = value.len() == 1 && clause.words.is_quoted(value.start);
            let text = if quoted { clause.words.inside(value.start) } else { clause.words.text(value) };
            command.description = Some(text.to_owned()).filter(|text| !text.is_empty());
        }
    }
}

/// Where the value begins: free text after the first "to", a choice after the last.
fn divider(clause: &Clause, mut range: Range<usize>, field: &str) -> Option<usize> {
    let text = matches!(field, "description" | "details" | "notes" | "note");
    let divides = |i: &usize| match clause.at(*i) {
        "to" | ":" | "=" | "as" | "is" => true,
        "with" => text,
        _ => false,
    };
    if matches!(field, "priority" | "status") { range.rev().find(divides) } else { range.find(divides) }
}

/// "to high priority", "as urgent" at the end.
pub(super) fn new_priority(
    clause: &mut Clause,
    mut range: Range<usize>,
    command: &mut Command,
) -> Option<Range<usize>> {
    let start = range.start;
    let end = range.end;
    let to = range.rfind(|i| matches!(clause.at(*i), "to" | "as"))?;
    let (priority, n) =
        attributes::priority_at(clause, to + 1).or_else(|| Some((attributes::level(clause.at(to + 1))?, 1)))?;
    if !clause.is_spent(to + 1 + n..end) {
        return None;
    }
    command.priority = Some(priority);
    Some(start..to)
}

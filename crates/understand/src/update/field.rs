//! Parses changes with a field name: "the priority of X to high", "X's description to Y".

use std::ops::Range;

use model::task::TaskStatus;

use crate::attributes;
use crate::clause::Clause;
use crate::dates;
use crate::lexicon;
use crate::parsed::ParsedCommand;
use crate::phrases::Phrases;
use crate::vocabulary;

/// The kind of value of a named field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UpdatedFieldKind {
    /// A date. Parsed by [`super::date`].
    Date,
    /// A priority, a title, a status or a description.
    Value,
}

/// Parses a change of a field that is named within the first eight tokens, and consumes its name and value. Returns the
/// range that names the task, and the kind of the field. The kind is `None` if no field is named, or if no "to" or
/// similar word leads to its value.
pub(super) fn parse(
    clause: &mut Clause,
    range: Range<usize>,
    command: &mut ParsedCommand,
) -> (Range<usize>, Option<UpdatedFieldKind>) {
    let limit = range.end.min(range.start + 8);
    let found = (range.start..limit).find_map(|i| clause.phrase(i, lexicon::update_fields::NAMES).map(|n| (i, n)));
    let is_field = |(at, n): &(usize, usize)| {
        clause.noun_at(at + n).is_none() && attributes::priority_level(clause.before(*at)).is_none()
    };
    // In "our date night", "the time capsule" the word is part of a name.
    let goes_on = |(at, n): &(usize, usize)| {
        let next = at + n;
        clause.words.is_word(next)
            && next < range.end
            && !dates::is_function_word(clause.at(next))
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
            clause.consume(at..at + n);
        }
        return (range, None);
    }
    let of = at + n + clause.phrase(at + n, lexicon::update_fields::OF).unwrap_or(0);
    if matches!(name, "due" | "deadline" | "date" | "time") {
        clause.consume(at..of);
        return (if direct { of..range.end } else { range }, Some(UpdatedFieldKind::Date));
    }
    let Some(to) = value_divider(clause, of..range.end, name) else {
        command.priority =
            (of..range.end).find_map(|i| attributes::priority_level(clause.at(i))).filter(|_| name == "priority");
        clause.consume(at..of);
        return (if direct { of..range.end } else { range.start..at }, None);
    };
    set_field(clause, name, to + 1..range.end, command);
    clause.consume(to..range.end);
    // "from low to high"
    let from = to
        .checked_sub(2)
        .filter(|from| clause.at(*from) == "from" && attributes::priority_level(clause.at(from + 1)).is_some());
    let to = from.filter(|from| *from > of).unwrap_or(to);
    (if direct { of..to } else { range.start..at }, Some(UpdatedFieldKind::Value))
}

/// Sets the field from the tokens of the value. An invalid priority or status leaves the field empty. Names other than
/// priority, tags, title and status set the description.
fn set_field(clause: &Clause, name: &str, value: Range<usize>, command: &mut ParsedCommand) {
    match name {
        "priority" => command.priority = value.clone().find_map(|i| attributes::priority_level(clause.at(i))),
        "tags" | "labels" => command.tags = super::tags::tag_names(clause, value),
        "title" | "name" => command.title = Some(clause.remaining_text(value)).filter(|title| !title.is_empty()),
        "status" => {
            let contains = |words: Phrases| value.clone().any(|i| words.contains(clause.at(i)));
            command.status = match (contains(lexicon::update_fields::OPEN), contains(lexicon::update_fields::DONE)) {
                (true, _) => Some(TaskStatus::Pending),
                (_, true) => Some(TaskStatus::Completed),
                _ => None,
            };
        }
        _ => {
            let quoted = value.len() == 1 && clause.words.is_quoted(value.start);
            let text = if quoted { clause.words.quoted_text(value.start) } else { clause.words.text(value) };
            command.description = Some(text.to_owned()).filter(|text| !text.is_empty());
        }
    }
}

/// Returns the position of "to", ":", "=", "as" or "is" before the value: the first one for text, the last one for a
/// priority or a status. "with" counts only for a description.
fn value_divider(clause: &Clause, mut range: Range<usize>, field: &str) -> Option<usize> {
    let text = matches!(field, "description" | "details" | "notes" | "note");
    let divides = |i: &usize| match clause.at(*i) {
        "to" | ":" | "=" | "as" | "is" => true,
        "with" => text,
        _ => false,
    };
    if matches!(field, "priority" | "status") { range.rev().find(divides) } else { range.find(divides) }
}

/// Parses "to high priority", "as urgent" at the end. Returns the range that names the task, or `None` if the last "to"
/// or "as" does not lead to a priority that ends the range.
pub(super) fn parse_closing_priority(
    clause: &mut Clause,
    mut range: Range<usize>,
    command: &mut ParsedCommand,
) -> Option<Range<usize>> {
    let start = range.start;
    let end = range.end;
    let to = range.rfind(|i| matches!(clause.at(*i), "to" | "as"))?;
    let (priority, n) = attributes::priority_at(clause, to + 1)
        .or_else(|| Some((attributes::priority_level(clause.at(to + 1))?, 1)))?;
    if !clause.is_exhausted(to + 1 + n..end) {
        return None;
    }
    command.priority = Some(priority);
    Some(start..to)
}

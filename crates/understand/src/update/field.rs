//! Parses changes with a field name: "the priority of X to high", "X's description to Y".
//!
//! `range` are the tokens after the verb: the task and the new value. `command` receives the change. Consumed tokens
//! are no part of a name or a title. "A noun for a task" is a word such as "task", "reminder" or "list".

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

/// Parses a change of the first field that is named within the first eight tokens. Its name is no part of the result. A
/// value after "to" or a similar word is set and consumed, except for a date; an invalid one leaves the field empty.
/// Returns the range that names the task, and the kind of the field. The kind of a date field does not depend on a
/// value. For other fields it is `None` if no such word follows; then "priority" takes the next priority word. It is
/// also `None` if no field is named.
/// - Only articles, "alert" and "reminder" may precede the name, or it follows a possessive. "priority", "description",
///   "due date" and "deadline" may stand anywhere. "time" and "date" after a noun for a task are consumed without
///   effect.
/// - A name before a noun for a task or after a priority is no field. Neither are "date", "time", "name", "title" and
///   "note" before an ordinary word ("our date night").
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

/// Sets the field `name` from the tokens of the value. A priority is the first priority word, a status the first kind
/// of word found: pending ("not", "open") before completed ("done"). An invalid priority or status, and an empty text,
/// leave the field empty. Tags are all words except fillers; the tag operation stays unchanged. Any other name sets the
/// description, with the quotes of a single quoted passage removed. Consumes nothing.
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

/// Returns the position of "to", ":", "=", "as" or "is" before the value. It is the last one for a priority or a
/// status, the first one for other fields. "with" counts only for a description, details and notes. Returns `None` if
/// there is none.
fn value_divider(clause: &Clause, mut range: Range<usize>, field: &str) -> Option<usize> {
    let text = matches!(field, "description" | "details" | "notes" | "note");
    let divides = |i: &usize| match clause.at(*i) {
        "to" | ":" | "=" | "as" | "is" => true,
        "with" => text,
        _ => false,
    };
    if matches!(field, "priority" | "status") { range.rev().find(divides) } else { range.find(divides) }
}

/// Parses "to high priority", "as urgent" at the end and sets the priority. Returns the range before "to" or "as".
/// Returns `None` and changes nothing if the last "to" or "as" does not lead to a priority that ends the range.
/// Consumed tokens and marks may follow. Consumes nothing.
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

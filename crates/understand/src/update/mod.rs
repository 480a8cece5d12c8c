//! Parses an update: the changes and the target.
//!
//! `range` are the tokens after the verb: the task and the new value. `command` receives the change. Consumed tokens
//! are no part of a name or a title. "A noun for a task" is a word such as "task", "reminder" or "list".

mod date;
mod field;
pub(crate) mod note;
mod shift;
pub(crate) mod tags;
mod title;

use std::ops::Range;

use model::task::{Priority, TaskStatus};

use crate::attributes;
use crate::clause::Clause;
use crate::dates::DateMatch;
use crate::intent;
use crate::lexicon;
use crate::parsed::{ClearableField, Intent, MissingSlot, ParsedCommand, TaskTarget};
use crate::subject;
use crate::target;
use crate::timing;
use crate::vocabulary::Noun;
use field::UpdatedFieldKind;

/// The kind of change that the verb implies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UpdateKind {
    /// "change … to …"
    Any,
    /// "move … to Friday"
    Due,
    /// "rename … to …"
    Title,
    /// "reopen …", "mark … as pending"
    Reopen,
    /// "tag … with …"
    Tags,
    /// "remove the tag … from …"
    Untag,
    /// "remove the due date of …"
    Clear(ClearableField),
    /// "make … urgent", "mark … as high priority"
    Priority(Priority),
    /// "remind me on Friday instead of Thursday to …"
    Instead,
    /// "cancel … and reschedule it for Monday": the start of the second part.
    Replace(usize),
    /// "add … to the shopping reminder"
    Addition,
    /// "add a note to the report: …"
    Note,
    /// "call it …": the start of the new title.
    NewName(usize),
}

/// Parses an update. The verb directly precedes `range`. `change` decides which fields are set and which words name the
/// task. Consumes the parsed values in the clause. Without a target, or with a pronoun, a remark before the verb can
/// name the task and the change. It needs at least two tokens, see [`parse_preceding_remark`]. `confidence` is that of
/// the result. It is lowered if the change or the target is missing, and the missing slot is set, see
/// [`set_missing_slot`].
pub(crate) fn parse(clause: &mut Clause, range: Range<usize>, change: UpdateKind, confidence: f64) -> ParsedCommand {
    let mut command = ParsedCommand::new(Intent::UpdateTask, confidence);
    let before = range.start.saturating_sub(1);
    let (range, second) = match change {
        UpdateKind::Any | UpdateKind::Due | UpdateKind::Priority(_) => split_second_change(clause, range),
        _ => (range, SecondChange::default()),
    };
    // In "make the report due friday and urgent", the date is the first change.
    let change = match change {
        UpdateKind::Priority(_) if second.priority.is_some() => UpdateKind::Due,
        change => change,
    };
    let about = match change {
        UpdateKind::Reopen => {
            command.status = Some(TaskStatus::Pending);
            before_state(clause, range)
        }
        UpdateKind::Tags => tags::parse(clause, range, &mut command),
        UpdateKind::Untag => tags::parse_removal(clause, range, &mut command),
        UpdateKind::Clear(field) => {
            command.cleared_fields.push(field);
            range
        }
        UpdateKind::Priority(priority) => {
            command.priority = Some(priority);
            before_priority(clause, range)
        }
        UpdateKind::Addition => parse_addition(clause, range, &mut command),
        UpdateKind::Replace(at) => {
            timing::apply_date(&mut command, timing::choose_date(clause, at..range.end, at), clause.now);
            title::parse_replacement(clause, at..range.end, &mut command);
            range.start..at
        }
        UpdateKind::Note => note::parse(clause, range, &mut command),
        UpdateKind::NewName(at) => {
            let instead = usize::from(clause.at(clause.end - 1) == "instead" && at + 1 < clause.end);
            command.title = Some(clause.remaining_text(at..clause.end - instead)).filter(|title| !title.is_empty());
            range
        }
        UpdateKind::Instead => parse_instead(clause, range, &mut command),
        UpdateKind::Title => title::parse_rename(clause, range, &mut command),
        UpdateKind::Any | UpdateKind::Due => parse_change(clause, range, change, &mut command),
    };
    second.apply(clause, &mut command);
    let about = without_direction(clause, about, &command);
    let bare =
        clause.is_exhausted(about.clone()) || clause.noun_in(about.clone()).is_some_and(|noun| noun.noun != Noun::List);
    command.target = target::parse(clause, about, &mut command.filter);
    if matches!(command.target, None | Some(TaskTarget::It)) && before > clause.start + 1 {
        parse_preceding_remark(clause, before, &mut command);
    }
    set_missing_slot(&mut command, bare);
    command
}

/// A change after "and": "high priority and due friday", "due friday and high priority".
#[derive(Default)]
struct SecondChange {
    date: Option<DateMatch>,
    priority: Option<Priority>,
}

impl SecondChange {
    /// Sets the fields that the first change left empty.
    fn apply(self, clause: &Clause, command: &mut ParsedCommand) {
        if command.when.is_none() && command.recurrence.is_none() && command.shift.is_none() {
            timing::apply_date(command, self.date, clause.now);
        }
        command.priority = command.priority.or(self.priority);
    }
}

/// Splits "and due friday" after a priority, or "and high priority" after a date, from the end of the range and consumes
/// it. Returns the range before it. Returns the whole range if no such words end it.
fn split_second_change(clause: &mut Clause, range: Range<usize>) -> (Range<usize>, SecondChange) {
    let link = |i: usize| matches!(clause.at(i), "and" | "," | "&" | "plus" | "with");
    let Some(at) = range.clone().skip(2).rev().find(|i| link(*i) && clause.date_at(*i).is_none()) else {
        return (range, SecondChange::default());
    };
    let ranked_before = (range.start + 1..at).any(|i| {
        attributes::priority_at(clause, i).is_some_and(|(_, n)| i + n == at)
            || attributes::priority_level(clause.at(i)).is_some() && i + 1 == at
    });
    let mut start = at + 1;
    while matches!(clause.at(start), "and" | "make" | "set" | "it" | "also" | "is" | "as" | "a" | "to") {
        start += 1;
    }
    let ends = |end: usize| clause.is_exhausted(end..range.end);
    let date = clause.date_at(start).or(clause.date_at(start + 1)).filter(|found| ends(found.tokens.end)).cloned();
    if let Some(date) = date.filter(|_| ranked_before) {
        clause.consume(at..range.end);
        return (range.start..at, SecondChange { date: Some(date), priority: None });
    }
    let dated_before = clause.dates.iter().any(|found| found.tokens.end == at);
    let priority = attributes::priority_at(clause, start).filter(|(_, n)| dated_before && ends(start + n));
    match priority {
        Some((priority, _)) => {
            clause.consume(at..range.end);
            (range.start..at, SecondChange { date: None, priority: Some(priority) })
        }
        None => (range, SecondChange::default()),
    }
}

/// Returns the range without a final "back", "forward" or similar word if the command has no change yet: "bring the
/// report forward".
fn without_direction(clause: &Clause, about: Range<usize>, command: &ParsedCommand) -> Range<usize> {
    let last = about.end.saturating_sub(1);
    let directed =
        about.len() > 1 && matches!(clause.at(last), "back" | "forward" | "forwards" | "backwards" | "out" | "up");
    if directed && is_empty_update(command) { about.start..last } else { about }
}

/// Takes the target from the remark before the verb at `verb`, and the date if the command has no change yet: "The
/// party got moved to Friday, please update the reminder". A remark without a known phrasing names the target only if
/// the command has a date or a repetition. Keeps the target if the remark names none. Consumes the date, an old date
/// and the participle.
fn parse_preceding_remark(clause: &mut Clause, verb: usize, command: &mut ParsedCommand) {
    let mut about = clause.start..verb;
    if is_empty_update(command) {
        consume_participle(clause, about.clone());
        date::consume_instead(clause, about.clone());
        date::consume_old_date(clause, about.clone());
        about = date::parse(clause, about.clone(), command).unwrap_or(about);
    }
    let named = subject::parse(clause, about.clone());
    let end = subject::trim_links(clause, &about);
    let named = named.or_else(|| has_date(command).then(|| target::parse_one(clause, about.start..end)).flatten());
    command.target = named.or(command.target.take());
}

fn has_date(command: &ParsedCommand) -> bool {
    command.when.is_some() || command.recurrence.is_some()
}

/// Sets the missing slot and limits the confidence. A command without a change lacks the change, unless another slot is
/// already missing. A change without a name (`bare`: "change my reminder to 11pm") applies to the task in context, with
/// a confidence of at most 0.85. No target, and an unsupported filter for all tasks, count as a missing target, which
/// replaces any other missing slot. The confidence is at most 0.8 if a slot is missing.
fn set_missing_slot(command: &mut ParsedCommand, bare: bool) {
    let is_empty = is_empty_update(command);
    if is_empty && command.missing.is_none() {
        command.missing = Some(MissingSlot::Change);
    }
    if command.target.is_none() && bare && !is_empty {
        command.target = Some(TaskTarget::It);
        command.confidence = command.confidence.min(0.85);
    }
    if command.target.is_none() || command.target == Some(TaskTarget::All) && command.filter.unsupported {
        command.missing = Some(MissingSlot::Target);
    }
    if command.missing.is_some() {
        command.confidence = command.confidence.min(0.8);
    }
}

/// Returns true if the command changes no field: title, description, date, shift, recurrence, priority, status, tags,
/// and no field is cleared. Ignores the time of day.
pub(crate) fn is_empty_update(command: &ParsedCommand) -> bool {
    command.title.is_none()
        && command.description.is_none()
        && command.when.is_none()
        && command.shift.is_none()
        && command.recurrence.is_none()
        && command.priority.is_none()
        && command.status.is_none()
        && command.tags.is_empty()
        && command.cleared_fields.is_empty()
}

/// Merges another change of the same task into the first. `second` must name the task by a pronoun, and the first must
/// have a target, which stays. Returns false and changes nothing if one is not an update or if both are empty. Also
/// false if both change the title, the priority, the description, the tags or the date. A shift and a repetition count
/// as a date. The status of the first wins. Cleared fields are added. A missing change or time is no longer missing.
/// The confidence of the first stays.
pub(crate) fn merge(first: &mut ParsedCommand, second: &ParsedCommand) -> bool {
    let changes = |command: &ParsedCommand| matches!(command.intent, Intent::UpdateTask | Intent::UpdateReminder);
    let updates = changes(first) && changes(second);
    let same = matches!(second.target, Some(TaskTarget::It | TaskTarget::Them)) && first.target.is_some();
    let twice = first.title.is_some() && second.title.is_some()
        || (has_date(first) || first.shift.is_some()) && (has_date(second) || second.shift.is_some())
        || first.priority.is_some() && second.priority.is_some()
        || first.description.is_some() && second.description.is_some()
        || !first.tags.is_empty() && !second.tags.is_empty();
    if !updates || !same || twice || is_empty_update(first) && is_empty_update(second) {
        return false;
    }
    first.title = first.title.take().or_else(|| second.title.clone());
    first.description = first.description.take().or_else(|| second.description.clone());
    first.appends_description |= second.appends_description;
    first.adds_item |= second.adds_item;
    first.recurrence = first.recurrence.take().or_else(|| second.recurrence.clone());
    first.when = first.when.or(second.when);
    first.time_of_day = first.time_of_day.or(second.time_of_day);
    first.shift = first.shift.or(second.shift);
    first.priority = first.priority.or(second.priority);
    first.status = first.status.or(second.status);
    first.cleared_fields.extend(&second.cleared_fields);
    if !second.tags.is_empty() {
        first.tags.clone_from(&second.tags);
        first.tag_operation = second.tag_operation;
    }
    first.missing = first.missing.filter(|missing| !matches!(missing, MissingSlot::Change | MissingSlot::Time));
    true
}

/// Returns the range before "as pending", "as not done", or the whole range if there is no such phrase.
fn before_state(clause: &Clause, range: Range<usize>) -> Range<usize> {
    let state = clause.find_phrase(range.start, lexicon::update_fields::STATE_WORDS);
    state.map_or(range.clone(), |(at, _)| range.start..at)
}

/// Returns the range before "urgent", "as high priority" at the end, or the whole range if there is none.
fn before_priority(clause: &Clause, range: Range<usize>) -> Range<usize> {
    let at = attributes::closing_priority(clause, range.start + 1).map(|(at, _)| at);
    range.start..at.unwrap_or(range.end).min(range.end)
}

/// Parses "add ink to my reminder to order paper". The added text is appended to the description. Returns the range
/// that names the task. Without a reminder, it returns the whole range and changes nothing.
fn parse_addition(clause: &mut Clause, range: Range<usize>, command: &mut ParsedCommand) -> Range<usize> {
    let Some(to) = intent::added_reminder_start(clause, range.start.saturating_sub(1)) else { return range };
    command.description = Some(clause.remaining_text(range.start..to - 1)).filter(|text| !text.is_empty());
    command.appends_description = command.description.is_some();
    command.adds_item = command.appends_description;
    to..range.end
}

/// Parses "… instead of …": a new title, see [`title::parse_instead_of`], or a new date. Consumes the old date after
/// "instead of". If "of" or "than" precedes the range, this is the date at its start. Applies the remaining date.
/// Consumes "remind me", "can you" and similar requests. Returns the range that names the task, without connectives at
/// its start. In "remind Bob about lunch", it begins at "about", "that" or "to".
fn parse_instead(clause: &mut Clause, range: Range<usize>, command: &mut ParsedCommand) -> Range<usize> {
    if let Some(about) = title::parse_instead_of(clause, range.clone(), command) {
        return about;
    }
    date::consume_instead(clause, range.clone());
    let first = clause.date_at(range.start).map(|found| found.tokens.clone());
    if let Some(old) = first.filter(|_| matches!(clause.before(range.start), "of" | "than")) {
        clause.consume(old);
    }
    match timing::choose_date(clause, range.clone(), range.start) {
        Some(found) => timing::apply_date(command, Some(found), clause.now),
        None => {
            date::parse(clause, range.clone(), command);
        }
    }
    for i in range.clone() {
        if let Some(n) = clause.phrase(i, lexicon::update_fields::REQUEST_LEADS) {
            clause.consume(i..i + n);
        }
    }
    let start = range.clone().find(|i| !clause.is_exhausted(*i..i + 1)).unwrap_or(range.end);
    // In "remind Bob about lunch", Bob is not the task.
    let other = matches!(clause.before(range.start), "remind" | "alert" | "notify") && clause.at(range.start) != "me";
    let about = (start + 1..range.end.min(start + 4)).find(|i| matches!(clause.at(*i), "about" | "that" | "to"));
    let start = about.filter(|_| other).unwrap_or(start);
    target::skip_connectives(clause, start, range.end)..range.end
}

/// Parses "change … to …", "move … to …", also with fields ("the priority of …", "the description of …"). Tries a named
/// field, a new title, a priority at the end, a shift and a date in this order. Stops after a named field with a value,
/// even if the value is invalid. A priority next to a shift or date is also set. A shift to an earlier date drops the
/// date, and every shift drops the time of day and the missing slot. For [`UpdateKind::Any`], the rest is a new title;
/// for [`UpdateKind::Due`] and a date field, nothing is changed. Returns the range that names the task.
fn parse_change(
    clause: &mut Clause,
    range: Range<usize>,
    change: UpdateKind,
    command: &mut ParsedCommand,
) -> Range<usize> {
    let (range, field) = field::parse(clause, range, command);
    if field == Some(UpdatedFieldKind::Date)
        && let Some(about) = date::parse_date_before_task(clause, range.clone(), command)
    {
        return about;
    }
    // An invalid value of a field ("priority to 5") is reported as missing. The title stays unchanged.
    if !is_empty_update(command) || field == Some(UpdatedFieldKind::Value) {
        return range;
    }
    let retitled = title::parse_from_to(clause, range.clone(), command)
        .or_else(|| title::parse_replace(clause, range.clone(), command))
        .or_else(|| title::parse_should_say(clause, range.clone(), command))
        .or_else(|| title::parse_instead(clause, range.clone(), command))
        .or_else(|| title::parse_addition(clause, range.clone(), command));
    if let Some(about) = retitled {
        return about;
    }
    consume_participle(clause, range.clone());
    command.priority = consume_priority(clause, range.clone());
    date::consume_instead(clause, range.clone());
    date::consume_old_date(clause, range.clone());
    if let Some(about) = field::parse_closing_priority(clause, range.clone(), command) {
        return about;
    }
    let shift = shift::find(clause, range.clone(), change);
    let about = date::parse(clause, range.clone(), command);
    if let Some((shift, tokens)) = shift {
        command.shift = Some(shift);
        // An earlier date cannot be computed from now, because the old date is unknown.
        command.when = command.when.filter(|_| shift.months >= 0 && shift.days >= 0 && shift.minutes >= 0);
        command.time_of_day = None;
        command.missing = None;
        return about.unwrap_or_else(|| date::range_without_date(clause, range, tokens));
    }
    if let Some(about) = about {
        return about;
    }
    if field == Some(UpdatedFieldKind::Date) {
        let to = range.clone().rfind(|i| matches!(clause.at(*i), "to" | "as" | "for"));
        return range.start..to.unwrap_or(range.end);
    }
    if change == UpdateKind::Any { title::parse_change(clause, range, command) } else { range }
}

/// Consumes the first priority next to another change. It begins with "with" ("with high priority") or precedes "and"
/// ("urgent and …"); that "and" is consumed too. Does not look at the first token. Returns `None` if there is no such
/// priority.
fn consume_priority(clause: &mut Clause, range: Range<usize>) -> Option<Priority> {
    let stated_priority = |i: usize| {
        attributes::priority_at(clause, i).filter(|(_, n)| clause.at(i) == "with" || clause.at(i + n) == "and")
    };
    let (at, priority, n) =
        (range.start + 1..range.end).find_map(|i| stated_priority(i).map(|(priority, n)| (i, priority, n)))?;
    clause.consume(at..at + n + usize::from(clause.at(at + n) == "and"));
    Some(priority)
}

/// Consumes the verb of a stated change: a passive ("has been moved"). If there is none, a statement ("should be", "is
/// now"), or else a participle alone ("moved"). Has no effect if the first one found does not end inside of the range.
/// Does not look at the first token.
fn consume_participle(clause: &mut Clause, range: Range<usize>) {
    let participle = intent::find_passive(clause, range.start + 1, lexicon::update_fields::CHANGED)
        .or_else(|| clause.find_phrase(range.start + 1, lexicon::update_fields::STATEMENTS))
        .or_else(|| clause.find_phrase(range.start + 1, lexicon::update_fields::CHANGED));
    if let Some((at, n)) = participle.filter(|(at, n)| at + n <= range.end) {
        clause.consume(at..at + n);
    }
}

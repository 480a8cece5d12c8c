//! Reads what is to change in an existing task, and which task it is.

mod date;
mod field;
pub(crate) mod note;
mod shift;
pub(crate) mod tags;
mod title;

use std::ops::Range;

use model::task::{Priority, Status};

use crate::attributes;
use crate::clause::Clause;
use crate::intent;
use crate::lexicon;
use crate::reading::{Command, Field, Intent, Missing, Target};
use crate::subject;
use crate::target;
use crate::timing;
use crate::vocabulary::Noun;
use field::Kind;

/// What an update is about, as far as its verb says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
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
    Clear(Field),
    /// "make … urgent", "mark … as high priority"
    Priority(Priority),
    /// "remind me on Friday instead of Thursday to …"
    Instead,
    /// "cancel … and reschedule it for Monday": where the second part begins.
    Replace(usize),
    /// "add … to the shopping reminder"
    Addition,
    /// "add a note to the report: …"
    Note,
    /// "call it …": where the new title begins.
    NewName(usize),
}

pub(crate) fn read(clause: &mut Clause, range: Range<usize>, change: Change, confidence: f64) -> Command {
    let mut command = Command::new(Intent::UpdateTask, confidence);
    let before = range.start.saturating_sub(1);
    let about = match change {
        Change::Reopen => {
            command.status = Some(Status::Pending);
            without_state(clause, range)
        }
        Change::Tags => tags::read(clause, range, &mut command),
        Change::Untag => tags::removed(clause, range, &mut command),
        Change::Clear(field) => {
            command.clear.push(field);
            range
        }
        Change::Priority(priority) => {
            command.priority = Some(priority);
            without_priority(clause, range)
        }
        Change::Addition => added(clause, range, &mut command),
        Change::Replace(at) => {
            timing::apply(&mut command, timing::choose(clause, at..range.end, at), clause.now);
            title::replacement(clause, at..range.end, &mut command);
            range.start..at
        }
        Change::Note => note::read(clause, range, &mut command),
        Change::NewName(at) => {
            let instead = usize::from(clause.at(clause.end - 1) == "instead" && at + 1 < clause.end);
            command.title = Some(clause.rest(at..clause.end - instead)).filter(|title| !title.is_empty());
            range
        }
        Change::Instead => instead(clause, range, &mut command),
        Change::Title => title::renamed(clause, range, &mut command),
        Change::Any | Change::Due => changed(clause, range, change, &mut command),
    };
    let bare =
        clause.is_spent(about.clone()) || clause.noun_in(about.clone()).is_some_and(|noun| noun.noun != Noun::List);
    command.target = target::read(clause, about, &mut command.filter);
    if matches!(command.target, None | Some(Target::It)) && before > clause.start + 1 {
        told_before(clause, before, &mut command);
    }
    finish(&mut command, bare);
    command
}

/// "The party got moved to Friday, please update the reminder": what stands before says which task, and what is new.
fn told_before(clause: &mut Clause, verb: usize, command: &mut Command) {
    let mut about = clause.start..verb;
    if says_nothing(command) {
        take_participle(clause, about.clone());
        date::drop_instead(clause, about.clone());
        date::drop_from(clause, about.clone());
        about = date::read(clause, about.clone(), command).unwrap_or(about);
    }
    let named = subject::read(clause, about.clone());
    let end = subject::before_links(clause, &about);
    let named = named.or_else(|| says_date(command).then(|| target::one(clause, about.start..end)).flatten());
    command.target = named.or(command.target.take());
}

fn says_date(command: &Command) -> bool {
    command.when.is_some() || command.recurrence.is_some()
}

/// Says what is missing. A change without a name for its task ("change my reminder to 11pm") is about the one in hand.
fn finish(command: &mut Command, bare: bool) {
    let nothing = says_nothing(command);
    if nothing && command.missing.is_none() {
        command.missing = Some(Missing::Change);
    }
    if command.target.is_none() && bare && !nothing {
        command.target = Some(Target::It);
        command.confidence = command.confidence.min(0.85);
    }
    if command.target.is_none() || command.target == Some(Target::All) && command.filter.unsupported {
        command.missing = Some(Missing::Target);
    }
    if command.missing.is_some() {
        command.confidence = command.confidence.min(0.8);
    }
}

pub(crate) fn says_nothing(command: &Command) -> bool {
    command.title.is_none()
        && command.description.is_none()
        && command.when.is_none()
        && command.shift.is_none()
        && command.recurrence.is_none()
        && command.priority.is_none()
        && command.status.is_none()
        && command.tags.is_empty()
        && command.clear.is_empty()
}

/// Takes another change of the same task into the first; `false` where it is not one, or both change the same thing.
pub(crate) fn join(first: &mut Command, second: &Command) -> bool {
    let updates = first.intent == Intent::UpdateTask && second.intent == Intent::UpdateTask;
    let same = second.target == Some(Target::It) && first.target.is_some();
    let twice = first.title.is_some() && second.title.is_some()
        || (says_date(first) || first.shift.is_some()) && (says_date(second) || second.shift.is_some())
        || first.priority.is_some() && second.priority.is_some()
        || first.description.is_some() && second.description.is_some()
        || !first.tags.is_empty() && !second.tags.is_empty();
    if !updates || !same || twice || says_nothing(first) && says_nothing(second) {
        return false;
    }
    first.title = first.title.take().or_else(|| second.title.clone());
    first.description = first.description.take().or_else(|| second.description.clone());
    first.adds |= second.adds;
    first.recurrence = first.recurrence.take().or_else(|| second.recurrence.clone());
    first.when = first.when.or(second.when);
    first.clock = first.clock.or(second.clock);
    first.shift = first.shift.or(second.shift);
    first.priority = first.priority.or(second.priority);
    first.status = first.status.or(second.status);
    first.clear.extend(&second.clear);
    if !second.tags.is_empty() {
        first.tags.clone_from(&second.tags);
        first.tagging = second.tagging;
    }
    first.missing = first.missing.filter(|missing| !matches!(missing, Missing::Change | Missing::Time));
    true
}

/// Leaves out "as pending", "as not done".
fn without_state(clause: &Clause, range: Range<usize>) -> Range<usize> {
    let state = clause.seek(range.start, lexicon::update_fields::STATE_WORDS);
    state.map_or(range.clone(), |(at, _)| range.start..at)
}

/// Leaves out "urgent", "as high priority" at the end.
fn without_priority(clause: &Clause, range: Range<usize>) -> Range<usize> {
    let at = attributes::closing_priority(clause, range.start + 1).map(|(at, _)| at);
    range.start..at.unwrap_or(range.end).min(range.end)
}

/// "add ink to my reminder to order paper": what is added goes into the description.
fn added(clause: &mut Clause, range: Range<usize>, command: &mut Command) -> Range<usize> {
    let Some(to) = intent::to_reminder(clause, range.start.saturating_sub(1)) else { return range };
    command.description = Some(clause.rest(range.start..to - 1)).filter(|text| !text.is_empty());
    command.adds = command.description.is_some();
    to..range.end
}

/// "… instead of …": the old date goes, the new one stays.
fn instead(clause: &mut Clause, range: Range<usize>, command: &mut Command) -> Range<usize> {
    if let Some(about) = title::rather(clause, range.clone(), command) {
        return about;
    }
    date::drop_instead(clause, range.clone());
    let first = clause.date_at(range.start).map(|found| found.tokens.clone());
    if let Some(old) = first.filter(|_| matches!(clause.before(range.start), "of" | "than")) {
        clause.take(old);
    }
    match timing::choose(clause, range.clone(), range.start) {
        Some(found) => timing::apply(command, Some(found), clause.now),
        None => {
            date::read(clause, range.clone(), command);
        }
    }
    for i in range.clone() {
        if let Some(n) = clause.phrase(i, lexicon::update_fields::REQUEST_LEADS) {
            clause.take(i..i + n);
        }
    }
    let start = range.clone().find(|i| !clause.is_spent(*i..i + 1)).unwrap_or(range.end);
    // "remind Bob about lunch": Bob is not the task.
    let other = matches!(clause.before(range.start), "remind" | "alert" | "notify") && clause.at(range.start) != "me";
    let about = (start + 1..range.end.min(start + 4)).find(|i| matches!(clause.at(*i), "about" | "that" | "to"));
    let start = about.filter(|_| other).unwrap_or(start);
    target::connective(clause, start, range.end)..range.end
}

/// "change … to …", "move … to …", with fields ("the priority of …", "the description of …").
fn changed(clause: &mut Clause, range: Range<usize>, change: Change, command: &mut Command) -> Range<usize> {
    let (range, field) = field::read(clause, range, command);
    if field == Some(Kind::Date)
        && let Some(about) = date::given(clause, range.clone(), command)
    {
        return about;
    }
    // A field that gets a value nobody can read ("priority to 5") is asked about; the task keeps its title.
    if !says_nothing(command) || field == Some(Kind::Value) {
        return range;
    }
    let retitled = title::replaced(clause, range.clone(), command)
        .or_else(|| title::said(clause, range.clone(), command))
        .or_else(|| title::instead(clause, range.clone(), command))
        .or_else(|| title::added(clause, range.clone(), command));
    if let Some(about) = retitled {
        return about;
    }
    take_participle(clause, range.clone());
    command.priority = beside(clause, range.clone());
    date::drop_instead(clause, range.clone());
    date::drop_from(clause, range.clone());
    if let Some(about) = field::new_priority(clause, range.clone(), command) {
        return about;
    }
    let shift = shift::find(clause, range.clone(), change);
    let about = date::read(clause, range.clone(), command);
    if let Some((shift, tokens)) = shift {
        command.shift = Some(shift);
        // What lies earlier than an unknown date cannot be reckoned from now.
        command.when = command.when.filter(|_| shift.months >= 0 && shift.days >= 0 && shift.minutes >= 0);
        command.clock = None;
        command.missing = None;
        return about.unwrap_or_else(|| date::without(clause, range, tokens));
    }
    if let Some(about) = about {
        return about;
    }
    if field == Some(Kind::Date) {
        let to = range.clone().rfind(|i| matches!(clause.at(*i), "to" | "as" | "for"));
        return range.start..to.unwrap_or(range.end);
    }
    if change == Change::Any { title::changed(clause, range, command) } else { range }
}

/// Takes "with high priority", "urgent and …", said beside another change.
fn beside(clause: &mut Clause, range: Range<usize>) -> Option<Priority> {
    let said = |i: usize| {
        attributes::priority_at(clause, i).filter(|(_, n)| clause.at(i) == "with" || clause.at(i + n) == "and")
    };
    let (at, priority, n) = (range.start + 1..range.end).find_map(|i| said(i).map(|(priority, n)| (i, priority, n)))?;
    clause.take(at..at + n + usize::from(clause.at(at + n) == "and"));
    Some(priority)
}

/// Takes "needs to be changed", "has been moved": the words of a change that was told and not asked for.
fn take_participle(clause: &mut Clause, range: Range<usize>) {
    let told = intent::passive(clause, range.start + 1, lexicon::update_fields::CHANGED)
        .or_else(|| clause.seek(range.start + 1, lexicon::update_fields::STATEMENTS))
        .or_else(|| clause.seek(range.start + 1, lexicon::update_fields::CHANGED));
    if let Some((at, n)) = told.filter(|(at, n)| at + n <= range.end) {
        clause.take(at..at + n);
    }
}

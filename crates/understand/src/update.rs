//! Reads what is to change in an existing task, and which task it is.

use crate::phrases::{Phrases, phrases};
use std::ops::Range;

use model::task::{Priority, Status};

use crate::attributes;
use crate::clause::Clause;
use crate::create;
use crate::lexicon::{self, Noun};
use crate::reading::{Command, Field, Intent, Missing};
use crate::target;

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
    /// "remove the due date of …"
    Clear(Field),
    /// "make … urgent", "mark … as high priority"
    Priority(Priority),
    /// "remind me on Friday instead of Thursday to …"
    Instead,
}

pub(crate) fn read(clause: &mut Clause, body: usize, change: Change, confidence: f64) -> Command {
    let mut command = Command::new(Intent::UpdateTask, confidence);
    let range = body..clause.end;
    let about = match change {
        Change::Reopen => {
            command.status = Some(Status::Pending);
            without_state(clause, range)
        }
        Change::Tags => tagged(clause, range, &mut command),
        Change::Clear(field) => {
            command.clear.push(field);
            range
        }
        Change::Priority(priority) => {
            command.priority = Some(priority);
            without_priority(clause, range)
        }
        Change::Instead => instead(clause, range, &mut command),
        Change::Title => renamed(clause, range, &mut command),
        Change::Any | Change::Due => changed(clause, range, change, &mut command),
    };
    command.target = target::read(clause, about, &mut command.filter);
    if says_nothing(&command) {
        command.missing = Some(Missing::Change);
    }
    if command.target.is_none() {
        command.missing = Some(Missing::Target);
    }
    if command.missing.is_some() {
        command.confidence = command.confidence.min(0.8);
    }
    command
}

fn says_nothing(command: &Command) -> bool {
    command.title.is_none()
        && command.description.is_none()
        && command.when.is_none()
        && command.recurrence.is_none()
        && command.priority.is_none()
        && command.status.is_none()
        && command.tags.is_empty()
        && command.clear.is_empty()
}

/// Leaves out "as pending", "as not done".
fn without_state(clause: &Clause, range: Range<usize>) -> Range<usize> {
    let state = clause.seek(range.start, phrases!("as | pending | not done | incomplete | undone | open"));
    state.map_or(range.clone(), |(at, _)| range.start..at)
}

/// Leaves out "urgent", "as high priority" at the end.
fn without_priority(clause: &Clause, range: Range<usize>) -> Range<usize> {
    let at = (range.start + 1..range.end)
        .find(|i| attributes::priority_at(clause, *i).is_some_and(|(_, n)| clause.is_spent(i + n..range.end)));
    range.start..at.unwrap_or(range.end)
}

/// "tag the report with work", "tag the report as work", "add the tag work to the report".
fn tagged(clause: &mut Clause, range: Range<usize>, command: &mut Command) -> Range<usize> {
    if matches!(clause.words.before(range.start), "tag" | "tags" | "label") && clause.has(phrases!("add | put")) {
        let Some((at, n)) = clause.seek(range.start, phrases!("to | on")) else { return range };
        command.tags = names(clause, range.start..at);
        return at + n..range.end;
    }
    let Some((at, n)) = clause.seek(range.start, phrases!("with | as | :")) else {
        if let Some(hash) = (range.start..range.end).find(|i| clause.at(*i) == "#") {
            command.tags = names(clause, hash..range.end);
            return range.start..hash;
        }
        return range;
    };
    command.tags = names(clause, at + n..range.end);
    range.start..at
}

fn names(clause: &Clause, range: Range<usize>) -> Vec<String> {
    let of = |i: usize| if clause.words.is_quoted(i) { clause.words.inside(i) } else { clause.words.text(i..i + 1) };
    range
        .filter(|i| {
            (clause.words.is_word(*i) || clause.words.is_quoted(*i))
                && !matches!(clause.at(*i), "and" | "the" | "tag" | "tags")
        })
        .map(|i| of(i).to_owned())
        .collect()
}

/// "rename a to b": the last "to" outside of quotes divides, or "as".
fn renamed(clause: &mut Clause, range: Range<usize>, command: &mut Command) -> Range<usize> {
    let divides = |i: &usize| matches!(clause.at(*i), "to" | "as" | "into" | "->" | "→");
    let quoted_before = |i: &usize| i.checked_sub(1).is_some_and(|k| clause.words.is_quoted(k));
    let found = range.clone().find(|i| divides(i) && quoted_before(i));
    let after_noun = |i: usize| {
        (range.start..i)
            .any(|k| lexicon::noun(clause.words, k).is_some_and(|(n, len, _)| n != Noun::List && k + len == i))
    };
    let found =
        found.or_else(|| range.clone().find(|i| divides(i) && after_noun(*i) && !clause.is_spent(range.start..*i)));
    let Some(at) = found.or_else(|| range.clone().find(|i| divides(i))) else { return range };
    command.title = Some(clause.rest(at + 1..range.end)).filter(|title| !title.is_empty());
    range.start..at
}

/// "… instead of …": the old date goes, the new one stays.
fn instead(clause: &mut Clause, range: Range<usize>, command: &mut Command) -> Range<usize> {
    drop_instead(clause, range.clone());
    let dates = create::choose(clause, range.start, range.end);
    create::apply(command, dates, clause.now);
    let mut start = range.start;
    while start < range.end && clause.is_taken(start) {
        start += 1;
    }
    let start = target::connective(clause, start, range.end);
    start..range.end
}

/// Takes "instead of Friday", "rather than at 3", "instead".
fn drop_instead(clause: &mut Clause, range: Range<usize>) {
    let Some((at, n)) = clause.seek(
        range.start,
        phrases!("instead of at | instead of on | instead of | rather than | instead | and not | not"),
    ) else {
        return;
    };
    if clause.at(at) == "not" && clause.date_at(at + n).is_none() {
        return;
    }
    let old = clause.date_at(at + n).map(|found| found.tokens.clone());
    clause.take(at..at + n);
    if let Some(old) = old {
        clause.take(old);
    }
}

/// "change … to …", "move … to …", with fields ("the priority of …", "the description of …").
fn changed(clause: &mut Clause, range: Range<usize>, change: Change, command: &mut Command) -> Range<usize> {
    let range = field(clause, range, command);
    if command.description.is_some() || command.priority.is_some() || command.status.is_some() {
        return range;
    }
    drop_instead(clause, range.clone());
    drop_from(clause, range.clone());
    if let Some(about) = new_priority(clause, range.clone(), command) {
        return about;
    }
    if let Some(about) = new_date(clause, range.clone(), command) {
        return about;
    }
    if change == Change::Any { new_title(clause, range, command) } else { range }
}

/// "the priority of X to high", "X's description to Y", "the due date of X to …": what is left names the task.
fn field(clause: &mut Clause, range: Range<usize>, command: &mut Command) -> Range<usize> {
    const FIELDS: Phrases = phrases!(
        "priority | description | due date | deadline | title | name | status | date | time | due time | \
         details | notes | note"
    );
    let limit = range.end.min(range.start + 8);
    let Some((at, n)) = (range.start..limit).find_map(|i| clause.phrase(i, FIELDS).map(|n| (i, n))) else {
        return range;
    };
    let name = clause.at(at);
    let direct = (range.start..at).all(|i| lexicon::is_article(clause.at(i)));
    let possessive = at.checked_sub(1).is_some_and(|k| clause.at(k).ends_with("'s"));
    if !direct && !possessive && !matches!(name, "priority" | "description" | "due" | "deadline") {
        if matches!(name, "time" | "date") {
            clause.take(at..at + n);
        }
        return range;
    }
    let of = at + n + clause.phrase(at + n, phrases!("of | for | on | in")).unwrap_or(0);
    let Some(to) = last_divider(clause, of..range.end, name) else {
        clause.take(at..of);
        return if direct { of..range.end } else { range.start..at };
    };
    let value = to + 1..range.end;
    let about = if direct { of..to } else { range.start..at };
    match name {
        "priority" => command.priority = value.clone().find_map(|i| level(clause.at(i))),
        "description" | "details" | "notes" | "note" => {
            let text = if value.len() == 1 && clause.words.is_quoted(value.start) {
                clause.words.inside(value.start)
            } else {
                clause.words.text(value.clone())
            };
            command.description = Some(text.to_owned()).filter(|text| !text.is_empty());
        }
        "title" | "name" => command.title = Some(clause.rest(value.clone())).filter(|title| !title.is_empty()),
        "status" => {
            let done = value.clone().any(|i| matches!(clause.at(i), "done" | "complete" | "completed" | "finished"));
            command.status = Some(if done { Status::Completed } else { Status::Pending });
        }
        _ => {
            clause.take(at..of);
            return if direct { of..range.end } else { range.start..range.end };
        }
    }
    clause.take(to..range.end);
    if possessive { without_possessive(clause, about, command) } else { about }
}

/// "report's": the target is kept as the words before the possessive mark.
fn without_possessive(_clause: &Clause, about: Range<usize>, _command: &mut Command) -> Range<usize> {
    about
}

fn last_divider(clause: &Clause, range: Range<usize>, field: &str) -> Option<usize> {
    let divides = |i: &usize| matches!(clause.at(*i), "to" | ":" | "=" | "as") || clause.at(*i) == "is";
    let free_text = matches!(field, "description" | "details" | "notes" | "note" | "title" | "name");
    if free_text { range.clone().find(divides) } else { range.rev().find(divides) }
}

fn level(word: &str) -> Option<Priority> {
    Some(match word {
        "high" | "urgent" | "important" | "top" | "highest" | "critical" => Priority::High,
        "medium" | "normal" | "standard" | "default" => Priority::Medium,
        "low" | "lowest" | "minor" => Priority::Low,
        _ => return None,
    })
}

/// Takes "from Tuesday" of "from Tuesday to Friday".
fn drop_from(clause: &mut Clause, range: Range<usize>) {
    let old: Vec<Range<usize>> = clause
        .dates
        .iter()
        .filter(|found| range.contains(&found.tokens.start) && matches!(clause.at(found.tokens.start), "from"))
        .map(|found| found.tokens.clone())
        .collect();
    for span in old {
        clause.take(span);
    }
    // A bare hour is no date by itself: "from 4 to 5".
    for i in range.clone() {
        let hour = crate::numbers::figures(clause.at(i + 1)).is_some_and(|n| (1..=24).contains(&n));
        if clause.at(i) == "from" && hour && !clause.is_taken(i) && matches!(clause.at(i + 2), "to") {
            clause.take(i..i + 2);
        }
    }
}

/// "to high priority", "urgent" at the end.
fn new_priority(clause: &mut Clause, range: Range<usize>, command: &mut Command) -> Option<Range<usize>> {
    let to = range.clone().rev().find(|i| matches!(clause.at(*i), "to" | "as"))?;
    let (priority, n) = attributes::priority_at(clause, to + 1).or_else(|| Some((level(clause.at(to + 1))?, 1)))?;
    if !clause.is_spent(to + 1 + n..range.end) {
        return None;
    }
    command.priority = Some(priority);
    Some(range.start..to)
}

/// The new date: after the last "to", "until", "by", "for", or the last date of the stretch.
fn new_date(clause: &mut Clause, range: Range<usize>, command: &mut Command) -> Option<Range<usize>> {
    let free = |found: &&crate::dates::Found| {
        found.tokens.start >= range.start && found.tokens.end <= range.end && !clause.is_taken(found.tokens.start)
    };
    let lead = |i: usize| {
        matches!(i.checked_sub(1).map(|k| clause.at(k)), Some("to" | "until" | "till" | "into" | "be" | "by"))
    };
    let dates: Vec<_> = clause.dates.iter().filter(free).cloned().collect();
    let to = dates.iter().rposition(|found| {
        lead(found.tokens.start) || matches!(clause.at(found.tokens.start), "until" | "till" | "by")
    });
    let bare = to.is_none().then(|| bare_hour(clause, range.clone())).flatten();
    if let Some((at, when)) = bare {
        command.when = Some(when);
        clause.take(at..at + 2);
        return Some(range.start..at);
    }
    let n = to.or(dates.len().checked_sub(1))?;
    let mut main = dates.get(n)?.clone();
    let start = main.tokens.start;
    let about_end = if lead(start) && to.is_some() { start - 1 } else { start };
    let titled = to.is_none() && has_divider(clause, range.start..start);
    if titled {
        return None;
    }
    clause.take(about_end..main.tokens.end);
    for other in dates.iter().skip(n + 1) {
        if main.parts.complete(&other.parts) {
            clause.take(other.tokens.clone());
        }
    }
    create::apply(command, Some(main), clause.now);
    let rest_after = clause.is_spent(about_end..range.end);
    Some(if rest_after { range.start..about_end } else { range })
}

/// "to 7" at the end means the hour.
fn bare_hour(clause: &Clause, range: Range<usize>) -> Option<(usize, crate::reading::When)> {
    let at = range.clone().rev().find(|i| {
        clause.at(*i) == "to" && crate::numbers::figures(clause.at(i + 1)).is_some_and(|n| (1..=24).contains(&n))
    })?;
    let ends = clause.is_spent(at + 2..range.end) || clause.date_at(at + 2).is_some();
    if !ends {
        return None;
    }
    let hour = i8::try_from(crate::numbers::figures(clause.at(at + 1))?).ok()?;
    let hour = if (1..7).contains(&hour) { hour + 12 } else { hour % 24 };
    let date = clause.date_at(at + 2).and_then(|found| found.when(clause.now));
    let day = match date {
        Some(crate::reading::When::Day(day)) => day,
        Some(crate::reading::When::Time(at)) => at.date(),
        None if hour > clause.now.hour() => clause.now.date(),
        None => clause.now.date().tomorrow().ok()?,
    };
    Some((at, crate::reading::When::Time(day.at(hour, 0, 0, 0))))
}

fn has_divider(clause: &Clause, range: Range<usize>) -> bool {
    let noun = range.clone().rev().find_map(|i| lexicon::noun(clause.words, i).map(|(_, len, _)| i + len));
    let from = noun.unwrap_or(range.start);
    (from + 1..range.end).any(|i| clause.at(i) == "to" && noun != Some(i)) && noun.is_none()
}

/// "the milk task to oat milk", "'a' to 'b'", "reminder to buy milk to buy eggs".
fn new_title(clause: &mut Clause, range: Range<usize>, command: &mut Command) -> Range<usize> {
    let dividers: Vec<usize> = range
        .clone()
        .filter(|i| matches!(clause.at(*i), "to" | "into" | "with") && clause.date_at(*i).is_none())
        .collect();
    let noun = range.clone().find_map(|i| lexicon::noun(clause.words, i).map(|(noun, len, _)| (noun, i, i + len)));
    let named_before = noun.is_some_and(|(_, at, _)| (range.start..at).any(|i| !lexicon::is_article(clause.at(i))));
    let at = match (noun, dividers.as_slice()) {
        (_, []) => return range,
        // "the reminder to call Bob" names a task: its first "to" does not divide.
        (Some((Noun::Reminder, _, after)), [first, rest @ ..]) if *first == after && !named_before => match rest.last()
        {
            Some(last) => *last,
            None => return range,
        },
        (Some((_, _, after)), _) if dividers.contains(&after) => after,
        (_, [first, ..]) => *first,
    };
    let title = clause.rest(at + 1..range.end);
    command.title = Some(title).filter(|title| !title.is_empty());
    range.start..at
}

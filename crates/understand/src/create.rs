//! Reads the new task that a command asks for: its title, and what is said beside it.

use crate::phrases::{Phrases, phrases};
use std::ops::Range;

use jiff::Zoned;

use crate::attributes;
use crate::clause::Clause;
use crate::dates::Found;
use crate::lexicon::{self, Noun};
use crate::reading::{Command, Intent, Missing};
use crate::target;

/// How the task is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// "remind me to …": the title follows.
    Remind,
    /// "add …", "put …": the title follows, the list after it.
    Add,
    /// "set a … reminder …": the title stands around the noun.
    Make,
    /// "todo: …", "remember to …": all of the rest is the title.
    Rest,
}

pub(crate) fn read(clause: &mut Clause, body: usize, form: Form, confidence: f64) -> Command {
    let mut command = Command::new(Intent::CreateTask, confidence);
    let end = clause.end;
    command.description = attributes::description(clause, body, end);
    command.tags = attributes::tags(clause, body, end);
    let body = skip_list(clause, body, form);
    let list = if form == Form::Add || form == Form::Rest { target::list_tail(clause, body..end) } else { end };
    clause.take(list..end);
    take_lead_time(clause, body, list);
    let dates = choose(clause, body, list);
    command.priority = attributes::priority(clause, body, list);
    apply(&mut command, dates, clause.now);
    let title = match form {
        Form::Make => made(clause, body, list),
        Form::Add => added(clause, body, list),
        Form::Remind | Form::Rest => after_connective(clause, body, list),
    };
    set_title(&mut command, title);
    command
}

fn set_title(command: &mut Command, title: String) {
    if is_empty_title(&title) {
        command.missing = Some(Missing::Title);
        command.confidence = command.confidence.min(0.8);
    } else {
        command.title = Some(title);
    }
}

/// Words that stand for a task without saying which.
fn is_empty_title(title: &str) -> bool {
    const NOTHING: Phrases = phrases!(
        " | something | anything | this | that | it | this item | an item | a task | task | item | me | again | \
         later | something else | a new one | one | another | another one | some items | items | new | stuff | \
         things | of | to | about | for | that i | up"
    );
    NOTHING.iter().any(|known| known.eq_ignore_ascii_case(title))
}

pub(crate) fn apply(command: &mut Command, dates: Option<Found>, now: &Zoned) {
    if let Some(found) = dates {
        command.when = found.when(now);
        command.recurrence = found.rule();
    }
}

/// Puts together the dates of a stretch that go together, and takes their tokens. What contradicts the first one
/// ("by" excepted) stays in the title.
pub(crate) fn choose(clause: &mut Clause, from: usize, to: usize) -> Option<Found> {
    let inside: Vec<Found> = clause
        .dates
        .iter()
        .filter(|f| f.tokens.start >= from && f.tokens.end <= to && !clause.is_taken(f.tokens.start))
        .cloned()
        .collect();
    let deadline = inside.iter().position(|f| matches!(clause.at(f.tokens.start), "by" | "before" | "due"));
    let first = if inside.len() > 1 && deadline.is_some_and(|n| n > 0) && !same_kind(&inside, deadline) {
        0
    } else {
        deadline.filter(|n| *n > 0).unwrap_or(0)
    };
    let mut main = inside.get(first)?.clone();
    clause.take(main.tokens.clone());
    let mut last = main.tokens.clone();
    for (n, other) in inside.iter().enumerate() {
        if n == first {
            continue;
        }
        let ranged = other.tokens.start >= last.end && is_range(clause, last.end..other.tokens.start, other);
        if main.parts.complete(&other.parts) || ranged {
            if ranged {
                clause.take(last.end..other.tokens.start);
            }
            clause.take(other.tokens.clone());
            last = other.tokens.clone();
        }
    }
    Some(main)
}

fn same_kind(inside: &[Found], n: Option<usize>) -> bool {
    match (inside.first(), n.and_then(|n| inside.get(n))) {
        (Some(first), Some(other)) => !first.parts.clone().complete(&other.parts),
        _ => false,
    }
}

/// Whether only "to", "until" or a dash stands between two dates.
fn is_range(clause: &Clause, gap: Range<usize>, second: &Found) -> bool {
    let word = |i: usize| matches!(clause.at(i), "to" | "-" | "–" | "until" | "till" | "through" | "and" | "thru");
    match gap.len() {
        0 => word(second.tokens.start),
        1 => word(gap.start),
        _ => false,
    }
}

/// "10 minutes before", "an hour early": how long before the task to speak up; it is no part of the title.
fn take_lead_time(clause: &mut Clause, from: usize, to: usize) {
    for i in from..to {
        let Some((_, len)) = crate::numbers::amount(clause.words, i) else { continue };
        let unit = phrases!("minute | minutes | min | mins | hour | hours | day | days | week | weeks | hr | hrs")
            .contains(clause.at(i + len));
        let after = i + len + 1;
        if unit
            && after < to
            && matches!(clause.at(after), "before" | "prior" | "early" | "beforehand" | "ahead" | "earlier")
            && clause.date_at(i).is_none()
        {
            let end = after + 1;
            let end = end
                + clause
                    .phrase(end, phrases!("of time | to it | to that | it | hand | it starts | it begins | the event"))
                    .unwrap_or(0);
            let start = i.checked_sub(1).filter(|k| matches!(clause.at(*k), "at" | "about")).unwrap_or(i);
            if end >= to || matches!(clause.at(end), "to" | "about" | "." | ",") || clause.at(after) != "before" {
                clause.take(start..end);
            }
            return;
        }
    }
}

/// "to my list: …" and "on my to do list add …" before the title.
fn skip_list(clause: &mut Clause, body: usize, form: Form) -> usize {
    if form != Form::Add || !matches!(clause.at(body), "to" | "on" | "in" | "onto") {
        return body;
    }
    for i in body + 1..clause.end.min(body + 6) {
        let note = matches!(clause.at(i), "note" | "notes");
        if let Some(end) = target::list_end(clause, i, i + 1).or(note.then_some(i + 1)) {
            return if clause.is_spent(end..clause.end) { body } else { connective_or(clause, end) };
        }
    }
    body
}

fn connective_or(clause: &Clause, i: usize) -> usize {
    i + usize::from(matches!(clause.at(i), ":" | "," | "-" | "to" | "that"))
}

/// The title after "remind me", "remember", "todo".
fn after_connective(clause: &mut Clause, body: usize, end: usize) -> String {
    let mut start = body;
    while start < end
        && (clause.is_taken(start)
            || !clause.words.is_word(start) && !clause.words.is_quoted(start) && is_lead_mark(clause.at(start)))
    {
        start += 1;
    }
    const LEADS: Phrases = phrases!(
        "again to | to | that i have to | that i need to | that i must | that i should | that i have | \
         that there is | that | about | of | regarding | for me to | i need to | i have to | i must | i should | \
         i have | for | on | when it's time to | when it's time for | the | my | a | an | in order to"
    );
    for _ in 0..3 {
        match clause.phrase(start, LEADS).filter(|n| start + n < end) {
            Some(n) => start += n,
            None => break,
        }
        while start < end && clause.is_taken(start) {
            start += 1;
        }
    }
    clause.rest(start..end)
}

fn is_lead_mark(mark: &str) -> bool {
    matches!(mark, ":" | "-" | "," | "–" | "—" | ">" | "." | "=")
}

/// Words that may stand between the verb and the noun without being a title.
fn is_adjective(word: &str) -> bool {
    lexicon::is_article(word)
        || phrases!(
            "new | me | up | another | recurring | repeating | repeat | single | one | us | quick | in | urgent | \
             important | high | low | priority | medium | down | event | additional | annual | for | you | to | \
             set | out | type | scheduled | regular | simple | short"
        )
        .contains(word)
}

/// "add a task to …", "add … task", "add …".
fn added(clause: &mut Clause, body: usize, end: usize) -> String {
    let mut i = body;
    while i < end
        && (clause.is_taken(i)
            || is_adjective(clause.at(i))
            || matches!(clause.at(i), "on" | "off" | "shopping" | "grocery" if lexicon::noun(clause.words, i + 1).is_some()))
    {
        if let Some((_, len, _)) = lexicon::noun(clause.words, i) {
            return titled(clause, i + len, end);
        }
        i += 1;
    }
    if let Some((noun, len, _)) = lexicon::noun(clause.words, i).filter(|_| i < end) {
        let list_only = noun == Noun::List && clause.is_spent(i + len..end);
        if noun != Noun::List || list_only {
            return titled(clause, i + len, end);
        }
    }
    let tail = end.checked_sub(1).filter(|last| {
        *last > body
            && lexicon::noun(clause.words, *last).is_some_and(|(noun, _, plural)| noun != Noun::List && !plural)
    });
    let start = body + usize::from(lexicon::is_article(clause.at(body)) && tail.is_some());
    clause.rest(start..tail.unwrap_or(end))
}

/// What follows "task", "reminder": "to …", "called …", ": …".
fn titled(clause: &mut Clause, i: usize, end: usize) -> String {
    let start = target::connective(clause, i, end);
    clause.rest(start..end)
}

/// "set a dentist reminder for …", "create a task to …": the noun, what stands before it, what comes after.
fn made(clause: &mut Clause, body: usize, end: usize) -> String {
    let nouns = |i: &usize| {
        lexicon::noun(clause.words, *i).is_some_and(|(noun, _, _)| noun != Noun::List) && !clause.is_taken(*i)
    };
    let Some(at) = (body..end).find(nouns).or_else(|| (body..end).find(|i| lexicon::noun(clause.words, *i).is_some()))
    else {
        return clause.rest(body..end);
    };
    let len = lexicon::noun(clause.words, at).map_or(1, |(_, len, _)| len);
    let mut start = body;
    while start < at && (clause.is_taken(start) || is_adjective(clause.at(start))) {
        start += 1;
    }
    let after = target::connective(clause, at + len, end);
    let list = target::list_tail(clause, after..end);
    clause.take(list..end);
    let tail = clause.rest(after..list);
    let spoken = matches!(clause.at(at + len), "to" | "about" | "that" | ":" | "called" | "named");
    if start >= at || spoken && !tail.is_empty() {
        return tail;
    }
    let head = clause.rest(start..at);
    if tail.is_empty() {
        return head;
    }
    if is_person(&head) { tail } else { format!("{head} {}", clause.rest(at + len..list)) }
}

/// "send Nico a reminder about …": who is reminded is no part of the title.
fn is_person(head: &str) -> bool {
    head.ends_with(" a") || head.ends_with(" the") || head.ends_with(" another")
}

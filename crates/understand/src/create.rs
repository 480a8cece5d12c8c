//! Reads the new task that a command asks for: its title, and what is said beside it.

use crate::attributes;
use crate::clause::Clause;
use crate::intent;
use crate::labels;
use crate::lead_time;
use crate::lexicon;
use crate::margins;
use crate::reading::{Command, Intent, Missing};
use crate::target;
use crate::timing;
use crate::vocabulary::{self, Noun};

/// How the task is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// "remind me to …": the title follows.
    Remind,
    /// "remind Bob to …": the title follows the person.
    RemindOther,
    /// "add …", "put …": the title follows, the list after it.
    Add,
    /// "set a … reminder …": the title stands around the noun.
    Make,
    /// "todo: …", "remember to …": all of the rest is the title.
    Rest,
    /// "I have to …, remind me at 5": the title stands before.
    Preamble,
}

pub(crate) fn read(clause: &mut Clause, body: usize, form: Form, confidence: f64) -> Command {
    let mut command = Command::new(Intent::CreateTask, confidence);
    let from = if form == Form::Preamble { clause.start } else { body };
    let end = clause.end;
    command.tags = labels::opening(clause);
    command.tags.append(&mut attributes::tags(clause, body, end));
    if let Some(at) = labels::kind(clause, body).filter(|_| matches!(form, Form::Add | Form::Make)) {
        command.tags.push(labels::name(clause, at));
        clause.take(at..at + 1);
    }
    command.description = attributes::description(clause, body, end);
    let from = skip_list(clause, from, form);
    let words = if matches!(form, Form::Add | Form::Rest) { target::list_words(clause, from..end) } else { None };
    let list = words.as_ref().map_or(end, |words| words.start);
    clause.take(words.unwrap_or(end..end));
    take_lead_time(clause, body, list);
    timing::take_repeating(clause, body);
    // "Tomorrow at 5, remind me to …": a date that opens the clause counts, one in a remark before it does not.
    let opens = clause.date_at(clause.start).is_some();
    let dated = if opens { clause.start } else { from };
    timing::apply(&mut command, timing::choose(clause, dated..end, body), clause.now);
    take_due_label(clause, from, end);
    command.priority = attributes::priority(clause, from, list);
    let title = match form {
        Form::Make => made(clause, body, list),
        Form::Add => added(clause, from, list),
        Form::Preamble => before_command(clause, body),
        Form::RemindOther => {
            let body = after_person(clause, body, list);
            after_connective(clause, body, list)
        }
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

/// Takes "with a due date of" and "deadline:" before the date that was read.
fn take_due_label(clause: &mut Clause, from: usize, to: usize) {
    let label = (from..to).find_map(|i| Some((i, clause.phrase(i, lexicon::create_task::DUE_LABELS)?)));
    if let Some((at, n)) = label.filter(|(at, n)| at + n < to && clause.is_taken(at + n) && !clause.is_taken(*at)) {
        if vocabulary::is_article(clause.before(at)) || matches!(clause.before(at), "about" | "of") {
            return;
        }
        let mark = usize::from(at > from && matches!(clause.at(at - 1), "," | ";" | "and"));
        clause.take(at - mark..at + n);
    }
}

/// The words of a title in a stretch.
fn title(clause: &Clause, range: std::ops::Range<usize>) -> String {
    clause.rest(margins::title(clause, range))
}

/// Words that stand for a task without saying which.
fn is_empty_title(title: &str) -> bool {
    title.is_empty() || lexicon::create_task::EMPTY_TITLES.has(title)
}

/// "10 minutes before", "an hour early": how long before the task to speak up; it is no part of the title.
fn take_lead_time(clause: &mut Clause, from: usize, to: usize) {
    if !clause.has(lexicon::dates::LEAD_TIME_AHEAD) {
        return;
    }
    for i in from..to {
        // "the night before"
        let named = clause.at(i) == "the" && lead_time::is_unit(clause, i + 1);
        let Some(unit) = lead_time::unit(clause, i).or(named.then_some(i + 1)) else { continue };
        let Some(n) = clause.phrase(unit + 1, lexicon::dates::LEAD_TIME_AHEAD) else { continue };
        if clause.date_at(i).is_some_and(|found| found.tokens.end > unit + 1) {
            continue;
        }
        let end = unit + 1 + n;
        let end = end + clause.phrase(end, lexicon::create_task::LEAD_TIME_OBJECTS).unwrap_or(0);
        let last =
            end >= to || matches!(clause.at(end), "to" | "about" | "." | "," | "and") || clause.date_at(end).is_some();
        let led = i.saturating_sub(usize::from(matches!(clause.before(i), "for" | "at")));
        let first = clause.is_spent(from..i) || clause.noun_at(led.saturating_sub(1)).is_some();
        let event = first.then(|| event_end(clause, end, to)).flatten();
        let end = event.unwrap_or(end);
        if last || first {
            let start = i.checked_sub(1).filter(|k| matches!(clause.at(*k), "at" | "about" | "for")).unwrap_or(i);
            clause.take(start.max(from)..end);
        }
        return;
    }
}

/// "an hour before the game to order pizza": where the event ends and the task begins.
fn event_end(clause: &Clause, from: usize, to: usize) -> Option<usize> {
    let part =
        |i: usize| matches!(clause.before(i), "have" | "has" | "need" | "needs" | "going" | "want" | "time" | "ready");
    (from + 1..to.min(from + 5)).find(|i| clause.at(*i) == "to" && !part(*i))
}

/// "to my list: …" before the title.
fn skip_list(clause: &mut Clause, body: usize, form: Form) -> usize {
    if form != Form::Add || !matches!(clause.at(body), "to" | "on" | "in" | "onto") {
        return body;
    }
    for i in body + 1..clause.end.min(body + 6) {
        let note = matches!(clause.at(i), "note" | "notes");
        if let Some(end) = target::list_end(clause, i, i + 1).or(note.then_some(i + 1)) {
            let title = end + usize::from(matches!(clause.at(end), ":" | "," | "-" | "to" | "that"));
            return if clause.is_spent(end..clause.end) { body } else { title };
        }
    }
    body
}

/// The title after "remind me", "remember", "todo".
fn after_connective(clause: &mut Clause, body: usize, end: usize) -> String {
    let mut start = skip_taken(clause, body, end);
    for _ in 0..3 {
        match clause.phrase(start, lexicon::create_task::TITLE_LEADS).filter(|n| start + n < end) {
            Some(n) => start = skip_taken(clause, start + n, end),
            None => break,
        }
    }
    // "remind me 2 pay rent", "remind me and Jen to pay rent"
    if clause.at(start) == "2" && intent::is_doing(clause, start + 1) {
        start += 1;
    }
    if clause.at(start) == "and"
        && let Some(to) = (start + 2..end.min(start + 5)).find(|i| clause.at(*i) == "to")
    {
        start = to + 1;
    }
    take_later(clause, start, end);
    title(clause, start..end)
}

fn skip_taken(clause: &Clause, start: usize, end: usize) -> usize {
    (start..end).find(|i| !clause.is_spent(*i..i + 1)).unwrap_or(end)
}

/// "later" at the end says nothing that could be kept.
fn take_later(clause: &mut Clause, start: usize, end: usize) {
    let last = (start + 1..end).rev().find(|i| !clause.is_spent(*i..i + 1));
    if let Some(last) = last.filter(|i| matches!(clause.at(*i), "later" | "sometime")) {
        clause.take(last..last + 1);
    }
}

/// Skips who is to be reminded: up to "to", "about", "that" or a date.
fn after_person(clause: &mut Clause, body: usize, end: usize) -> usize {
    (body + 1..end).find(|i| lexicon::grammar::OF_TASK.contains(clause.at(*i)) || clause.is_taken(*i)).unwrap_or(body)
}

/// The title that stands before "remind me".
fn before_command(clause: &mut Clause, head: usize) -> String {
    let mut end = head;
    while end > clause.start && lexicon::create_task::REMARK_TAILS.contains(clause.before(end)) {
        end -= 1;
    }
    let start = skip_taken(clause, clause.start, end);
    let start =
        skip_taken(clause, start + clause.phrase(start, lexicon::create_task::TRAILING_REMARKS).unwrap_or(0), end);
    title(clause, start + usize::from(vocabulary::is_article(clause.at(start)))..end)
}

/// Words that may stand between the verb and the noun without being a title.
fn is_adjective(word: &str) -> bool {
    vocabulary::is_article(word) || lexicon::create_task::NOUN_ADJECTIVES.contains(word)
}

/// "add a task to …", "add … task", "add …".
fn added(clause: &mut Clause, body: usize, end: usize) -> String {
    let mut i = body;
    while i < end
        && clause.noun_at(i).is_none()
        && (clause.is_taken(i) || is_adjective(clause.at(i)) || list_name(clause, i))
    {
        i += 1;
    }
    if let Some(noun) = clause.noun_at(i).filter(|_| i < end)
        && (noun.noun != Noun::List || clause.is_spent(noun.end..end))
    {
        let start = target::connective(clause, noun.end, end);
        return title(clause, start..end);
    }
    // "add one more: …", "add one for …"
    let one = clause.phrase(body, lexicon::create_task::ONE_MORE);
    if let Some(n) = one.filter(|n| body + n < end) {
        return title(clause, body + n..end);
    }
    let last = clause
        .nouns_in(body + 1..end)
        .find(|noun| clause.is_spent(noun.end..end) && noun.noun != Noun::List && !noun.plural);
    let start = body + usize::from(vocabulary::is_article(clause.at(body)) && last.is_some());
    title(clause, start..last.map_or(end, |noun| noun.at))
}

/// "grocery" of "grocery items".
fn list_name(clause: &Clause, i: usize) -> bool {
    matches!(clause.at(i), "shopping" | "grocery") && clause.noun_at(i + 1).is_some()
}

/// "set a dentist reminder for …", "create a task to …": the noun, what stands before it, what comes after.
fn made(clause: &mut Clause, body: usize, end: usize) -> String {
    let noun = clause.nouns_in(body..end).find(|noun| noun.noun != Noun::List && !clause.is_taken(noun.at));
    let Some(noun) = noun.or_else(|| clause.noun_in(body..end)) else { return title(clause, body..end) };
    let start = (body..noun.at).find(|i| !clause.is_taken(*i) && !is_adjective(clause.at(*i))).unwrap_or(noun.at);
    let after = target::connective(clause, noun.end, end);
    let after = after + clause.phrase(after, lexicon::create_task::SELF_NOTES).unwrap_or(0);
    let words = target::list_words(clause, after..end);
    let list = words.as_ref().map_or(end, |words| words.start);
    clause.take(words.unwrap_or(end..end));
    take_later(clause, after, list);
    let tail = title(clause, after..list);
    let spoken = matches!(clause.at(noun.end), "to" | "about" | "that" | ":" | "called" | "named");
    if start >= noun.at || spoken && !tail.is_empty() {
        return tail;
    }
    let head = title(clause, start..noun.at);
    match (tail.is_empty(), is_person(&clause.rest(start..noun.at))) {
        (true, _) => head,
        (_, true) => tail,
        _ => format!("{head} {}", clause.rest(noun.end..list)),
    }
}

/// "send Bob a reminder about …": who is reminded is no part of the title.
fn is_person(head: &str) -> bool {
    head.ends_with(" a") || head.ends_with(" the") || head.ends_with(" another") || head.ends_with(" an")
}

//! Recognises create_task where nothing asks for a task: "buy milk", "I have to call mum", "team lunch Dec 23 12:30",
//! "sunscreen needs to go on the list".
//!
//! The confidence is low, because the task is only needed or named.

use super::{Act, Guess, grammar, no_request};
use crate::attributes;
use crate::clause::Clause;
use crate::command;
use crate::create::Form;
use crate::lexicon;
use crate::scope;
use crate::vocabulary::Noun;

/// Whether what is named at `i` can be done by somebody.
pub(crate) fn is_doing(clause: &Clause, i: usize) -> bool {
    clause.phrase(i, lexicon::create_task::ERRANDS).is_some()
        || clause.phrase(i, lexicon::create_task::DOINGS).is_some()
}

pub(super) fn recognise(clause: &Clause) -> Guess {
    recognise_errand(clause).or_else(|| recognise_duty(clause)).or_else(|| recognise_plan(clause))
}

/// "Buy milk", "I have to call mom tomorrow": nothing asks for a task, but what is said is one. Errands are taken as
/// they are, other doings only with a date or an urgency.
fn recognise_errand(clause: &Clause) -> Guess {
    let i = clause.start + clause.phrase(clause.start, lexicon::create_task::MUST).unwrap_or(0);
    let asked = clause.asked
        || i == clause.start && matches!(clause.words.before(i), "i" | "we")
        || clause.has(lexicon::create_task::ERRAND_STOPS);
    let urgent = (i + 1..clause.end).any(|k| attributes::priority_at(clause, k).is_some());
    let deadline = clause.dates.iter().any(|found| clause.at(found.tokens.start) == "by");
    // "email Bob": the verb itself is of another trade, what it is about is not.
    let other = clause.is_foreign() && (i + 1..clause.end).any(|k| scope::is_foreign(clause.at(k)));
    let needed = no_request::is_need(clause, i)
        && (clause.has(lexicon::create_task::BOOKED_DOINGS) || !other)
        && !matches!(clause.at(i + 1), "it" | "that");
    if asked || clause.end - i < 2 || other && !deadline && !needed {
        return None;
    }
    let timed = !clause.dates.is_empty() || urgent;
    let errand = clause.phrase(i, lexicon::create_task::ERRANDS).is_some();
    let confidence = if timed {
        0.6
    } else if errand {
        0.5
    } else {
        command::NEED
    };
    (errand || (timed || needed) && is_doing(clause, i)).then_some((Act::Create(Form::Rest, i), confidence))
}

/// "gotta wash the car", "tomorrow I have to submit the claims", "…, so I need to apply by July".
fn recognise_duty(clause: &Clause) -> Guess {
    let at = deed_at(clause)?;
    if asks(clause) || at >= clause.end || !clause.words.is_word(at) {
        return None;
    }
    let object = grammar::is_definite(clause, at + 1) || clause.end - at > 2;
    let timed = !clause.dates.is_empty()
        || (at..clause.end).any(|k| attributes::priority_at(clause, k).is_some() || clause.at(k) == "#");
    let other = (at + 1..clause.end).any(|k| scope::is_foreign(clause.at(k))) && clause.is_foreign();
    let late = clause.dates.iter().any(|found| matches!(clause.at(found.tokens.start), "by" | "before" | "on" | "due"));
    let doing = is_doing(clause, at) || clause.phrase(at, lexicon::create_task::NEEDED_DOINGS).is_some();
    let known = doing && (timed || grammar::is_definite(clause, at + 1));
    let plain = known
        || !lexicon::create_task::VAGUE_DOINGS.contains(clause.at(at))
            && (timed || grammar::is_definite(clause, at + 1));
    let service = lexicon::create_task::SERVICES.contains(clause.at(at));
    let abroad = (other || service) && !(timed && (late || clause.has(lexicon::create_task::BOOKED_DOINGS)));
    let wished = clause.before(at) == "wanna" || no_request::is_wish(clause, at) && !no_request::is_need(clause, at);
    if !plain || !object || abroad || wished && !late {
        return None;
    }
    Some((Act::Create(Form::Rest, at), if timed { 0.6 } else { command::NEED }))
}

/// Where what has to be done begins: after "I have to" and its like.
fn deed_at(clause: &Clause) -> Option<usize> {
    if let Some(n) = clause.phrase(clause.start, lexicon::create_task::DUTIES) {
        return Some(clause.start + n);
    }
    if no_request::is_wish(clause, clause.start) {
        return Some(clause.start);
    }
    let (at, n) = clause.seek(clause.start, lexicon::create_task::DUTIES)?;
    let linked = lexicon::create_task::DUTY_LINKS.contains(clause.before(at));
    let led = clause.phrase(clause.start, lexicon::create_task::DUTY_OPENERS).is_some();
    (linked || led || !clause.dates.is_empty()).then_some(at + n)
}

/// Whether a duty is only asked or talked about.
fn asks(clause: &Clause) -> bool {
    clause.asked
        || clause.has(lexicon::create_task::DUTY_QUESTIONS)
        || lexicon::create_task::DUTY_MESSAGES.contains(clause.at(clause.start))
        || lexicon::create_task::DUTY_VERBS.contains(clause.at(clause.start))
            && grammar::is_pronoun(clause.at(clause.start + 1))
}

/// "rotate the mattress on the first of the month", "team lunch Dec 23 12:30", "ship the parcel #errands": something
/// short with a date, a tag or a priority and nothing that makes it a question or a remark.
fn recognise_plan(clause: &Clause) -> Guess {
    let i = clause.start;
    let long = clause.end - i;
    let (from, told) = heading(clause, i);
    let wished = no_request::is_wish(clause, i) && !no_request::is_need(clause, i);
    if clause.has_noun() && !told
        || wished
        || clause.asked
        || !(2..=16).contains(&long)
        || clause.is_foreign() && !is_errand_abroad(clause, from)
    {
        return None;
    }
    let tagged = (i..clause.end).any(|k| clause.at(k) == "#" && clause.words.touches_next(k));
    let urgent = (i..clause.end).any(|k| attributes::priority_at(clause, k).is_some());
    let timed = !clause.dates.is_empty();
    let spent = clause.dates.iter().map(|found| found.tokens.len()).sum::<usize>() >= long;
    if !timed && !tagged && !urgent && !told || spent || speaks(clause, from) || is_search(clause) {
        return None;
    }
    Some((Act::Create(Form::Rest, from), if told { 0.6 } else { 0.52 }))
}

/// Whether it looks for something to do or asks another service: "parties in Miami on Sunday", "a table for two at 8".
fn is_search(clause: &Clause) -> bool {
    let place = (clause.start + 1..clause.end)
        .any(|k| matches!(clause.before(k), "in" | "near" | "around") && grammar::is_name(clause, k));
    let asked =
        (clause.opening..clause.start).any(|k| matches!(clause.words.at(k), "you" | "can" | "could" | "do" | "u"));
    place || asked || clause.has(lexicon::create_task::SHOWS)
}

/// "for tomorrow: …", "due Thursday: …", "one thing for tomorrow: …".
fn heading(clause: &Clause, i: usize) -> (usize, bool) {
    let colon = (i + 1..clause.end.min(i + 6)).find(|k| clause.at(*k) == ":");
    match colon {
        Some(at) if clause.dates.iter().any(|found| found.tokens.end <= at) => (at + 1, true),
        _ => (i, false),
    }
}

/// Words that a plan does not begin with or hold: whoever speaks so tells or asks something.
fn speaks(clause: &Clause, from: usize) -> bool {
    let opener = clause.phrase(from, lexicon::create_task::NOT_PLAN_OPENERS).is_some()
        && clause.phrase(from, lexicon::create_task::ERRANDS).is_none();
    let held = (from + 1..clause.end)
        .any(|k| clause.phrase(k, lexicon::create_task::NOT_PLAN_WORDS).is_some() && clause.date_at(k).is_none());
    opener || held
}

/// "pay credit card on the 15th", "print the tickets on Thursday": what is done about other trades by hand.
fn is_errand_abroad(clause: &Clause, i: usize) -> bool {
    clause.phrase(i, lexicon::create_task::MANUAL_DOINGS).is_some() && !clause.has(lexicon::create_task::OTHER_DOMAINS)
}

/// "sunscreen needs to go on the holiday list", "lob some teabags on the list": what goes onto a list is new.
pub(super) fn recognise_onto_list(clause: &Clause) -> Guess {
    let i = clause.start;
    let noun = clause.nouns_in(i..clause.end).find(|noun| noun.noun == Noun::List)?;
    let (at, _) = (i + 1..noun.at)
        .rev()
        .find_map(|k| clause.phrase(k, lexicon::create_task::ON_THE).map(|n| (k, n)))
        .filter(|(at, _)| noun.at <= at + 4)?;
    let asks = scope::is_order(clause)
        || grammar::is_pronoun(clause.at(i))
        || clause.asked
        || scope::is_media(clause)
        || clause.is_elsewhere()
        || lexicon::create_task::NOT_TITLES.contains(clause.at(i))
        || clause.has(lexicon::create_task::NOT_ADDED);
    if asks || noun.at == i || at == i {
        return None;
    }
    if let Some((k, _)) = clause.seek(i + 1, lexicon::create_task::GOES_ON).filter(|(k, n)| k + n == at) {
        return Some((Act::Create(Form::Preamble, k), 0.7));
    }
    let plain = (i..at).all(|k| clause.words.is_word(k) || clause.words.is_quoted(k)) && at > i + 1 && at <= i + 6;
    let object = !crate::vocabulary::is_article(clause.at(i)) && clause.noun_in(i..at).is_none();
    (plain && object && noun.end >= clause.end).then_some((Act::Create(Form::Add, i + 1), 0.6))
}

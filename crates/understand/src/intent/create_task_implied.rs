//! Recognises create_task without a request: "buy milk", "I have to call mum", "team lunch Dec 23 12:30", "sunscreen
//! needs to go on the list".
//!
//! The confidence is low (0.48 to 0.7), because the clause only mentions the task. Rules return `None` if they do not
//! match. A definite object begins with "the", "my", "it", a quote, a number, a name or a word for a task.

use super::{CommandAction, Guess, grammar, no_request};
use crate::attributes;
use crate::clause::Clause;
use crate::command;
use crate::create::CreatePhrasing;
use crate::lexicon;
use crate::scope;
use crate::vocabulary::Noun;

/// Returns true if an errand ("buy", "call") or another activity begins at `i`.
pub(crate) fn is_activity(clause: &Clause, i: usize) -> bool {
    clause.phrase(i, lexicon::create_task::ERRANDS).is_some()
        || clause.phrase(i, lexicon::create_task::ACTIVITIES).is_some()
}

/// Recognises an errand, a duty or a plan.
pub(super) fn recognise(clause: &Clause) -> Guess {
    recognise_errand(clause).or_else(|| recognise_duty(clause)).or_else(|| recognise_plan(clause))
}

/// Recognises errands at the start: "Buy milk", "I must call mom tomorrow". Verbs of errands ("buy", "clean") need only
/// an object. Other activities ("call", "pay") need a date, a priority or "I need to". Returns `None` for questions,
/// single words, clauses with "me", "you", "how" or "what", and directly after "I" or "we". An object of another domain
/// or a plan needs a date with "by". After "I need to", "book a", "pay the" or a similar phrase suffices instead.
/// Confidence is 0.6 with a date or priority, 0.5 for errands, else [`command::NEED_CONFIDENCE`].
fn recognise_errand(clause: &Clause) -> Guess {
    let i = clause.start + clause.phrase(clause.start, lexicon::create_task::MUST).unwrap_or(0);
    let asked = clause.is_question
        || i == clause.start && matches!(clause.words.before(i), "i" | "we")
        || clause.has(lexicon::create_task::ERRAND_STOPS);
    let urgent = (i + 1..clause.end).any(|k| attributes::priority_at(clause, k).is_some());
    let deadline = clause.dates.iter().any(|found| clause.at(found.tokens.start) == "by");
    // "email Bob" is an errand, although "email" belongs to another domain.
    let other = clause.is_out_of_scope() && (i + 1..clause.end).any(|k| scope::is_out_of_scope_word(clause.at(k)));
    let must = i > clause.start;
    let needed = (must || no_request::is_need(clause, i))
        && (clause.has(lexicon::create_task::BOOKED_DOINGS) || !other)
        && !matches!(clause.at(i + 1), "it" | "that");
    if asked || clause.end - i < 2 || other && !deadline && !needed {
        return None;
    }
    let timed = !clause.dates.is_empty() || urgent || clause.has_date_name;
    let errand = clause.phrase(i, lexicon::create_task::ERRANDS).is_some();
    let confidence = if timed {
        0.6
    } else if errand {
        0.5
    } else {
        command::NEED_CONFIDENCE
    };
    (errand || (timed || needed) && is_activity(clause, i))
        .then_some((CommandAction::Create(CreatePhrasing::Rest, i), confidence))
}

/// Recognises duties: "gotta wash the car", "tomorrow I have to submit the claims", "…, so I need to apply by July".
/// The activity needs an object. It also needs a date, a priority, a tag or a definite object. Vague verbs ("know",
/// "go", "think") do not match unless they are also known activities. A wish ("I want to …", "I wanna …") also needs a
/// date with "by", "before", "on" or "due". So do services ("book", "order") and objects of other domains or plans. For
/// these two, a date, a priority or a tag with "book a", "pay the" or a similar phrase also suffices. Returns `None`
/// for questions and talk about a duty. The confidence is 0.6 with a date, a priority or a tag, else
/// [`command::NEED_CONFIDENCE`].
fn recognise_duty(clause: &Clause) -> Guess {
    let at = duty_start(clause)?;
    if is_question_about_duty(clause) || at >= clause.end || !clause.words.is_word(at) {
        return None;
    }
    let object = grammar::is_definite(clause, at + 1) || clause.end - at > 2;
    let timed = !clause.dates.is_empty()
        || (at..clause.end).any(|k| attributes::priority_at(clause, k).is_some() || clause.at(k) == "#");
    let other = (at + 1..clause.end).any(|k| scope::is_out_of_scope_word(clause.at(k))) && clause.is_out_of_scope();
    let late = clause.dates.iter().any(|found| matches!(clause.at(found.tokens.start), "by" | "before" | "on" | "due"));
    let doing = is_activity(clause, at) || clause.phrase(at, lexicon::create_task::NEEDED_DOINGS).is_some();
    let known = doing && (timed || grammar::is_definite(clause, at + 1));
    let plain = known
        || !lexicon::create_task::VAGUE_DOINGS.contains(clause.at(at))
            && (timed || grammar::is_definite(clause, at + 1));
    let service = lexicon::create_task::SERVICES.contains(clause.at(at));
    let is_other_domain = (other || service) && !(timed && (late || clause.has(lexicon::create_task::BOOKED_DOINGS)));
    let wished = clause.before(at) == "wanna" || no_request::is_wish(clause, at) && !no_request::is_need(clause, at);
    if !plain || !object || is_other_domain || wished && !late {
        return None;
    }
    Some((CommandAction::Create(CreatePhrasing::Rest, at), if timed { 0.6 } else { command::NEED_CONFIDENCE }))
}

/// Returns the start of the activity after "I have to", "must", "should" and similar phrases. Without one at the start
/// of the clause, a removed courtesy such as "I want to" before it counts. In the middle of a clause, the phrase needs
/// a link before it ("so", "and", a comma). An opener of the clause ("before I …") or a date anywhere also suffices.
/// Otherwise returns `None`.
fn duty_start(clause: &Clause) -> Option<usize> {
    if let Some(n) = clause.phrase(clause.start, lexicon::create_task::DUTIES) {
        return Some(clause.start + n);
    }
    if no_request::is_wish(clause, clause.start) {
        return Some(clause.start);
    }
    let (at, n) = clause.find_phrase(clause.start, lexicon::create_task::DUTIES)?;
    let linked = lexicon::create_task::DUTY_LINKS.contains(clause.before(at));
    let led = clause.phrase(clause.start, lexicon::create_task::DUTY_OPENERS).is_some();
    (linked || led || !clause.dates.is_empty()).then_some(at + n)
}

/// Returns true if the clause only asks or talks about a duty. It is a question, or contains "you", "how", "not" or a
/// similar word. Or it begins with "text", "ask", "can", "if" or a similar word. "is", "are" or "should" before a
/// pronoun at the start also counts.
fn is_question_about_duty(clause: &Clause) -> bool {
    clause.is_question
        || clause.has(lexicon::create_task::DUTY_QUESTIONS)
        || lexicon::create_task::DUTY_MESSAGES.contains(clause.at(clause.start))
        || lexicon::create_task::DUTY_VERBS.contains(clause.at(clause.start))
            && grammar::is_pronoun(clause.at(clause.start + 1))
}

/// Recognises plans: "rotate the mattress on the first of the month", "team lunch Dec 23 12:30", "ship the parcel
/// #errands". A plan has 2 to 16 tokens and a date, a tag, a priority (0.52) or a heading ("for tomorrow: …", 0.6).
/// Dates must not fill it. Returns `None` for questions, wishes, conversation and searches. A word for a task excludes
/// a plan without a heading. A word of another domain or for an appointment excludes it, except for errands by hand
/// ("pay credit card on the 15th").
fn recognise_plan(clause: &Clause) -> Guess {
    let i = clause.start;
    let long = clause.end - i;
    let (from, has_heading) = heading_end(clause, i);
    let wished = no_request::is_wish(clause, i) && !no_request::is_need(clause, i);
    if clause.has_noun() && !has_heading
        || wished
        || clause.is_question
        || !(2..=16).contains(&long)
        || clause.is_out_of_scope() && !is_manual_errand(clause, from)
    {
        return None;
    }
    let tagged = (i..clause.end).any(|k| clause.at(k) == "#" && clause.words.is_adjacent_to_next(k));
    let urgent = (i..clause.end).any(|k| attributes::priority_at(clause, k).is_some());
    let timed = !clause.dates.is_empty();
    let spent = clause.dates.iter().map(|found| found.tokens.len()).sum::<usize>() >= long;
    if !timed && !tagged && !urgent && !has_heading || spent || is_conversation(clause, from) || is_search(clause) {
        return None;
    }
    Some((CommandAction::Create(CreatePhrasing::Rest, from), if has_heading { 0.6 } else { 0.52 }))
}

/// Returns true for searches and requests to other services: "parties in Miami on Sunday", "a table for two at 8". A
/// capitalised name after "in", "near" or "around" counts, and words such as "show", "events" or "price". A removed
/// courtesy with "you", "can", "could" or "do" before the clause also counts.
fn is_search(clause: &Clause) -> bool {
    let names_place = (clause.start + 1..clause.end)
        .any(|k| matches!(clause.before(k), "in" | "near" | "around") && grammar::is_name(clause, k));
    let asked =
        (clause.outer_start..clause.start).any(|k| matches!(clause.words.at(k), "you" | "can" | "could" | "do" | "u"));
    names_place || asked || clause.has(lexicon::create_task::SEARCH_WORDS)
}

/// Returns the end of a heading with a colon and true: "for tomorrow: …", "due Thursday: …", "one thing for tomorrow:
/// …". The colon is one to five tokens after `i`, and a date ends before it. Returns `i` and false otherwise.
fn heading_end(clause: &Clause, i: usize) -> (usize, bool) {
    let colon = (i + 1..clause.end.min(i + 6)).find(|k| clause.at(*k) == ":");
    match colon {
        Some(at) if clause.dates.iter().any(|found| found.tokens.end <= at) => (at + 1, true),
        _ => (i, false),
    }
}

/// Returns true if the words from `from` on are conversation and not a plan. A question word, pronoun, article, "my",
/// greeting or command verb opens them, unless they are an errand. Or a word such as "I", "you", "is" or "will" follows
/// outside of a date.
fn is_conversation(clause: &Clause, from: usize) -> bool {
    let opener = clause.phrase(from, lexicon::create_task::NOT_PLAN_OPENERS).is_some()
        && clause.phrase(from, lexicon::create_task::ERRANDS).is_none();
    let held = (from + 1..clause.end)
        .any(|k| clause.phrase(k, lexicon::create_task::NOT_PLAN_WORDS).is_some() && clause.date_at(k).is_none());
    opener || held
}

/// Returns true for a manual errand in another domain: "pay credit card on the 15th", "print the tickets on Thursday".
fn is_manual_errand(clause: &Clause, i: usize) -> bool {
    clause.phrase(i, lexicon::create_task::MANUAL_DOINGS).is_some() && !clause.has(lexicon::create_task::OTHER_DOMAINS)
}

/// Recognises additions to a list without a known verb. "sunscreen needs to go on the holiday list" has confidence 0.7,
/// and its title precedes the phrase. "lob some teabags on the list" has 0.6. Its first word is dropped as the verb,
/// and a title of up to five tokens follows. There the list must end the clause. "on the", "to my" or a similar phrase
/// begins at most four tokens before the list. Returns `None` for questions, purchases, lists of other domains, and
/// words of other domains. Pronouns, "is", "show" and similar first words, and "off", "from" or "me" anywhere also
/// exclude it.
pub(super) fn recognise_onto_list(clause: &Clause) -> Guess {
    let i = clause.start;
    let noun = clause.nouns_in(i..clause.end).find(|noun| noun.noun == Noun::List)?;
    let (at, _) = (i + 1..noun.at)
        .rev()
        .find_map(|k| clause.phrase(k, lexicon::create_task::ON_THE).map(|n| (k, n)))
        .filter(|(at, _)| noun.at <= at + 4)?;
    let is_other_request = scope::is_purchase(clause)
        || grammar::is_pronoun(clause.at(i))
        || clause.is_question
        || scope::is_other_list(clause)
        || clause.is_other_domain()
        || lexicon::create_task::NOT_TITLES.contains(clause.at(i))
        || clause.has(lexicon::create_task::NOT_ADDED);
    if is_other_request || noun.at == i || at == i {
        return None;
    }
    if let Some((k, _)) = clause.find_phrase(i + 1, lexicon::create_task::GOES_ON).filter(|(k, n)| k + n == at) {
        return Some((CommandAction::Create(CreatePhrasing::Preamble, k), 0.7));
    }
    let plain = (i..at).all(|k| clause.words.is_word(k) || clause.words.is_quoted(k)) && at > i + 1 && at <= i + 6;
    let object = !crate::vocabulary::is_article(clause.at(i)) && clause.noun_in(i..at).is_none();
    (plain && object && noun.end >= clause.end).then_some((CommandAction::Create(CreatePhrasing::Add, i + 1), 0.6))
}

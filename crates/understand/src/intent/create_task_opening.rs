//! Recognises create_task by an opening phrase: "remember to call mum", "don't let me forget the rent", "give me a
//! nudge at five", "todo: water the plants", "reminder to stretch".

use super::{Act, Guess, create_task, verb_at};
use crate::attributes;
use crate::clause::Clause;
use crate::create::Form;
use crate::lexicon;
use crate::spelling::resembles;
use crate::vocabulary::{Noun, Verb};

/// "remember to …", "don't let me forget …", "make a note that …".
pub(super) fn recognise_remember(clause: &Clause, i: usize) -> Guess {
    if let Some(guess) = recognise_nudge(clause, i) {
        return Some(guess);
    }
    let misspelt = clause.at(i + 1) == "to" && resembles(clause.at(i), "remember");
    let body =
        i + forget_warning(clause, i).or(clause.phrase(i, lexicon::create_task::REMEMBER)).or(misspelt.then_some(2))?;
    let body = body + clause.phrase(body, lexicon::create_task::OF).unwrap_or(0);
    if verb_at(clause, body) == Some(Verb::Remind) && clause.at(body + 1) == "me" {
        return super::at(clause, body);
    }
    // "I don't want to forget X, remind me at 5": the reminder is the command, X is its title.
    if let Some((at, n)) = clause.seek(body, lexicon::create_task::REMIND_ME) {
        return Some((Act::Create(Form::Preamble, at + n), 0.85));
    }
    Some((Act::Create(Form::Rest, body), 0.92))
}

/// "don't let me forget", "I mustn't forget", "make sure I don't miss": how many tokens it takes.
fn forget_warning(clause: &Clause, i: usize) -> Option<usize> {
    let from = i + usize::from(matches!(clause.at(i), "i" | "we" | "i'd"));
    let warned = clause.phrase(from, lexicon::create_task::NOT_FORGET);
    let not = || {
        clause
            .phrase(from, lexicon::create_task::MUST_NOT)
            .or(clause.phrase(from, lexicon::create_task::DO_NOT).filter(|_| from == i))
    };
    let verb = from + warned.or_else(not)?;
    let fits = clause.at(verb) == "forget" || clause.at(verb) == "miss" && warned.is_some();
    fits.then_some(verb + 1 - i)
}

/// "give me a nudge at five to ring the surgery", "drop me a line an hour before the interview task".
fn recognise_nudge(clause: &Clause, i: usize) -> Guess {
    let given = || {
        clause
            .phrase(i, lexicon::create_task::GIVE_ME_A)
            .and_then(|n| Some(n + clause.phrase(i + n, lexicon::create_task::NUDGES)?))
    };
    let n = clause.phrase(i, lexicon::create_task::NUDGE_ME).or_else(given)?;
    let task = clause
        .seek(i + n, lexicon::create_task::BEFORE)
        .is_some_and(|(at, _)| clause.nouns_in(at..clause.end).any(|noun| noun.noun == Noun::Task && !noun.plural));
    if task {
        return Some((Act::Remind(i + n), 0.85));
    }
    let told = clause.seek(i + n, lexicon::create_task::NUDGE_LINKS).is_some();
    (told && !(clause.asked && clause.dates.is_empty())).then_some((Act::Create(Form::Remind, i + n), 0.88))
}

/// "todo: …", "new task …", "urgent: …".
pub(super) fn recognise_label(clause: &Clause, i: usize) -> Guess {
    if attributes::priority_at(clause, i).is_some_and(|(_, n)| clause.at(i + n) == ":" && i + n + 1 < clause.end) {
        return Some((Act::Create(Form::Rest, i), 0.85));
    }
    if let Some(body) = title_after_heading(clause, i) {
        let asks = verb_at(clause, body) == Some(Verb::Remind);
        return if asks { super::at(clause, body) } else { Some((Act::Create(Form::Rest, body), 0.93)) };
    }
    let n = clause.phrase(i, lexicon::create_task::LABELS)?;
    let bare = clause.words.is_word(i + 1)
        && clause.noun_at(i + 1).is_none()
        && clause.date_at(i + 1).is_none()
        && !matches!(clause.at(i + 1), "list" | "lists" | "for" | "please");
    (n > 1 || bare).then_some((Act::Create(Form::Rest, i + n), 0.93))
}

/// "Note: …", "one more for the list: …", "two things to add: …": where what is to be kept begins. A heading that says
/// more ("haircut task: …") names something that there is.
fn title_after_heading(clause: &Clause, i: usize) -> Option<usize> {
    let colon = (i + 1..clause.end.min(i + 8)).find(|k| clause.at(*k) == ":").filter(|at| at + 1 < clause.end)?;
    let known = |k: usize| {
        lexicon::create_task::HEADINGS.contains(clause.at(k))
            || lexicon::create_task::HEADING_FILLERS.contains(clause.at(k))
    };
    let kept = (i..colon).any(|k| lexicon::create_task::HEADINGS.contains(clause.at(k)))
        || clause.phrase(i, lexicon::nouns::TO_DO).is_some();
    let alone = colon == i + 1;
    let pointed = matches!(clause.at(i), "the" | "my" | "this") || alone && clause.at(i) == "list";
    let noted = clause.at(i) == "add" && clause.before(colon) == "note";
    let acts = matches!(verb_at(clause, colon + 1), Some(Verb::Delete | Verb::Take)) && clause.before(colon) == "list";
    let fits = kept && (i..colon).all(known) && !pointed && !noted && !acts || alone && clause.at(i) == "title";
    (fits && !clause.asked).then_some(colon + 1)
}

/// "Reminder to …", "daily reminder for …", "reminder me to …" (for "remind me to").
pub(super) fn recognise_reminder_noun(clause: &Clause, i: usize) -> Guess {
    let mut at = i;
    while matches!(clause.at(at), "new" | "recurring" | "repeating" | "set" | "another")
        || clause.date_at(at).is_some_and(|found| found.parts.repeat.is_some())
    {
        at += 1;
    }
    let noun = clause.noun_at(at).filter(|noun| noun.noun == Noun::Reminder && !noun.plural)?;
    if let Some(from) = create_task::reminder_for_task(clause, noun.at.saturating_sub(1)) {
        return Some((Act::Remind(from), 0.86));
    }
    if clause.at(noun.end) == "me" {
        return Some((Act::Create(Form::Remind, noun.end + 1), 0.9));
    }
    let fits = matches!(clause.at(noun.end), "to" | "for" | "about" | "that" | "," | "of" | "needed")
        || clause.words.is_word(noun.end) && clause.words.at(clause.end) != "?";
    let listed = matches!(clause.at(noun.end), "list" | "lists");
    (fits && !listed && noun.end < clause.end).then_some((Act::Create(Form::Make, i), 0.85))
}

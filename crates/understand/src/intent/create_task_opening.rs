//! Recognises create_task by an opening phrase: "remember to call mum", "don't let me forget the rent", "give me a
//! nudge at five", "todo: water the plants", "reminder to stretch".
//!
//! The phrase begins at `i`. The rules return the action with its confidence, or `None` if they do not match.

use super::{CommandAction, Guess, create_task, verb_at};
use crate::attributes;
use crate::clause::Clause;
use crate::create::CreatePhrasing;
use crate::lexicon;
use crate::spelling::resembles;
use crate::vocabulary::{Noun, Verb};

/// Recognises "remember to …", "don't let me forget …", "make a note that …", "make sure I …", "give me a nudge at five
/// to …". "remember" before "to" may be misspelt. If "remind me" follows directly, it is the command itself. If it
/// follows later, the words before it are the title (0.85). Otherwise the rest of the clause is the title (0.92),
/// without a leading "to", "that", "about" or "of".
pub(super) fn recognise_remember(clause: &Clause, i: usize) -> Guess {
    if let Some(guess) = recognise_nudge(clause, i) {
        return Some(guess);
    }
    let misspelt = clause.at(i + 1) == "to" && resembles(clause.at(i), "remember");
    let body =
        i + forget_warning(clause, i).or(clause.phrase(i, lexicon::create_task::REMEMBER)).or(misspelt.then_some(2))?;
    let body = body + clause.phrase(body, lexicon::create_task::OF).unwrap_or(0);
    if verb_at(clause, body) == Some(Verb::Remind) && clause.at(body + 1) == "me" {
        return super::recognise_at(clause, body);
    }
    // In "I don't want to forget X, remind me at 5", X is the title of the reminder.
    if let Some((at, n)) = clause.find_phrase(body, lexicon::create_task::REMIND_ME) {
        return Some((CommandAction::Create(CreatePhrasing::Preamble, at + n), 0.85));
    }
    Some((CommandAction::Create(CreatePhrasing::Rest, body), 0.92))
}

/// Returns the number of tokens of "don't let me forget", "I mustn't forget", "make sure I don't miss", from `i`.
/// "don't forget" counts without "I"; "I don't forget" does not. "miss" counts only after "don't let me", "don't want
/// to" and "make sure I don't". Returns `None` for other words.
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

/// Recognises "give me a nudge at five to ring the surgery", "hit me up about …" (create, 0.88). "drop me a line an
/// hour before the interview task" is a reminder for an existing task (0.85): "before" and a singular task must follow.
/// Returns `None` without "to", "about", "that", "before" or "for", and for a question without a date.
fn recognise_nudge(clause: &Clause, i: usize) -> Guess {
    let given = || {
        clause
            .phrase(i, lexicon::create_task::GIVE_ME_A)
            .and_then(|n| Some(n + clause.phrase(i + n, lexicon::create_task::NUDGES)?))
    };
    let n = clause.phrase(i, lexicon::create_task::NUDGE_ME).or_else(given)?;
    let task = clause
        .find_phrase(i + n, lexicon::create_task::BEFORE)
        .is_some_and(|(at, _)| clause.nouns_in(at..clause.end).any(|noun| noun.noun == Noun::Task && !noun.plural));
    if task {
        return Some((CommandAction::Remind(i + n), 0.85));
    }
    let has_title = clause.find_phrase(i + n, lexicon::create_task::NUDGE_LINKS).is_some();
    (has_title && !(clause.is_question && clause.dates.is_empty()))
        .then_some((CommandAction::Create(CreatePhrasing::Remind, i + n), 0.88))
}

/// Recognises "todo: …", "new task …", "todo call mum", "urgent: …". A priority needs a colon and text after it, and
/// stays part of the words (0.85). All other labels have 0.93. "new task" and similar labels of two tokens ("todo -")
/// need nothing after them. "remind" after a colon ("todo: remind me …") is recognised itself. "todo" without a colon
/// needs a word after it. This must be no date, no word for a task, and not "list", "for" or "please". See
/// [`title_after_heading`] for other labels with a colon. Returns `None` otherwise.
pub(super) fn recognise_label(clause: &Clause, i: usize) -> Guess {
    if attributes::priority_at(clause, i).is_some_and(|(_, n)| clause.at(i + n) == ":" && i + n + 1 < clause.end) {
        return Some((CommandAction::Create(CreatePhrasing::Rest, i), 0.85));
    }
    if let Some(body) = title_after_heading(clause, i) {
        let is_remind = verb_at(clause, body) == Some(Verb::Remind);
        return if is_remind {
            super::recognise_at(clause, body)
        } else {
            Some((CommandAction::Create(CreatePhrasing::Rest, body), 0.93))
        };
    }
    let n = clause.phrase(i, lexicon::create_task::LABELS)?;
    let bare = clause.words.is_word(i + 1)
        && clause.noun_at(i + 1).is_none()
        && clause.date_at(i + 1).is_none()
        && !matches!(clause.at(i + 1), "list" | "lists" | "for" | "please");
    (n > 1 || bare).then_some((CommandAction::Create(CreatePhrasing::Rest, i + n), 0.93))
}

/// Returns the start of the title after a heading with a colon: "Note: …", "one more for the list: …", "two things to
/// add: …". The colon is one to seven tokens after `i`, and text follows it. All words before it must belong to
/// headings ("task", "idea", "groceries") or their fillers, at least one to headings. "title:" alone counts, too.
/// Returns `None` for questions, and for a more specific heading ("haircut task: …"). "the …:", "my …:", "this …:",
/// "list:", "add … note:" and a deletion after "list:" refer to existing tasks and return `None`.
fn title_after_heading(clause: &Clause, i: usize) -> Option<usize> {
    let colon = (i + 1..clause.end.min(i + 8)).find(|k| clause.at(*k) == ":").filter(|at| at + 1 < clause.end)?;
    let known = |k: usize| {
        lexicon::create_task::HEADINGS.contains(clause.at(k))
            || lexicon::create_task::HEADING_FILLERS.contains(clause.at(k))
    };
    let has_heading = (i..colon).any(|k| lexicon::create_task::HEADINGS.contains(clause.at(k)))
        || clause.phrase(i, lexicon::nouns::TO_DO).is_some();
    let alone = colon == i + 1;
    let pointed = matches!(clause.at(i), "the" | "my" | "this") || alone && clause.at(i) == "list";
    let noted = clause.at(i) == "add" && clause.before(colon) == "note";
    let acts = matches!(verb_at(clause, colon + 1), Some(Verb::Delete | Verb::Take)) && clause.before(colon) == "list";
    // "buy groceries: eggs and flour" is one task.
    let bought = (i + 1..colon).any(|k| {
        matches!(clause.at(k), "groceries" | "shopping")
            && matches!(clause.before(k), "buy" | "get" | "add" | "bought" | "the")
    });
    let fits = !bought && has_heading && (i..colon).all(known) && !pointed && !noted && !acts
        || alone && clause.at(i) == "title";
    (fits && !clause.is_question).then_some(colon + 1)
}

/// Recognises "Reminder to …", "daily reminder for …", "set reminder …" (0.85), and "reminder me to …" as "remind me
/// to" (0.9). "new", "recurring", "another" and repetitions may precede the noun. "reminder for the visa task" is a
/// reminder for an existing task (0.86). "to", "for", "about", "that", "of", "needed", a comma, or any word without a
/// question mark must follow. Plurals, a noun at the end and "reminder list" do not match.
pub(super) fn recognise_reminder_noun(clause: &Clause, i: usize) -> Guess {
    let mut at = i;
    while matches!(clause.at(at), "new" | "recurring" | "repeating" | "set" | "another")
        || clause.date_at(at).is_some_and(|found| found.parts.repeat.is_some())
    {
        at += 1;
    }
    let noun = clause.noun_at(at).filter(|noun| noun.noun == Noun::Reminder && !noun.plural)?;
    if let Some(from) = create_task::reminder_for_task(clause, noun.at.saturating_sub(1)) {
        return Some((CommandAction::Remind(from), 0.86));
    }
    if clause.at(noun.end) == "me" {
        return Some((CommandAction::Create(CreatePhrasing::Remind, noun.end + 1), 0.9));
    }
    let fits = matches!(clause.at(noun.end), "to" | "for" | "about" | "that" | "," | "of" | "needed")
        || clause.words.is_word(noun.end) && clause.words.at(clause.end) != "?";
    let listed = matches!(clause.at(noun.end), "list" | "lists");
    (fits && !listed && noun.end < clause.end).then_some((CommandAction::Create(CreatePhrasing::Make, i), 0.85))
}

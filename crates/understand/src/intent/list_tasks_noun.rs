//! Recognises list_tasks by a noun phrase: "my tasks", "reminders for tomorrow", "walk me through my list". A singular
//! noun is create_task: "a reminder for the game".

use super::{Act, Guess, grammar};
use crate::clause::{Clause, Named};
use crate::create::Form;
use crate::lexicon;
use crate::scope;
use crate::vocabulary::Noun;

/// A clause without a verb: "my tasks", "reminders for tomorrow", "a reminder for the game".
pub(super) fn recognise_noun(clause: &Clause) -> Guess {
    let noun =
        clause.noun_in(clause.start..clause.end).filter(|_| !scope::is_media(clause) && !scope::is_order(clause))?;
    let singular = !noun.plural && noun.noun != Noun::List;
    let turned = lexicon::list_tasks::NOT_NOUN_OPENERS.contains(clause.at(clause.start));
    if turned || grammar::is_pronoun(clause.at(clause.start)) && clause.has(lexicon::grammar::FEELINGS) {
        return None;
    }
    let wanted = clause.has(lexicon::create_task::NEED_A);
    let told = matches!(clause.at(noun.end), "to" | "for" | "about" | "that" | ":");
    let definite =
        (clause.start..noun.at).any(|i| matches!(clause.at(i), "my" | "the" | "all" | "any" | "that" | "this"));
    if singular && (wanted || told && !definite && noun.at < clause.start + 4) || wanted && told && noun.plural {
        return Some((Act::Create(Form::Make, clause.start), 0.75));
    }
    if singular && noun.end == clause.end && !definite {
        return Some((Act::Create(Form::Make, clause.start), 0.55));
    }
    let stated = clause.seek(noun.end, lexicon::grammar::MODALS);
    let named = heads(clause, noun) && follows(clause, noun) && stated.is_none();
    (named && clause.end - clause.start <= 14).then_some((Act::List(clause.start), 0.7))
}

/// Whether the words before the noun belong to it: no article stands among them but at their head.
fn heads(clause: &Clause, noun: Named) -> bool {
    let lead = clause.phrase(clause.start, lexicon::list_tasks::HEADS);
    let from = clause.start + lead.unwrap_or(0);
    let small = |i: usize| {
        crate::vocabulary::is_article(clause.at(i)) || !clause.words.is_word(i) && clause.date_at(i).is_none()
    };
    noun.at <= from + 5
        && !(from + 1..noun.at).any(|i| small(i) || grammar::is_pronoun(clause.at(i)) && clause.date_at(i).is_none())
}

/// Whether what follows the noun can belong to it: a date, "for …", "that …"; not a verb.
fn follows(clause: &Clause, noun: Named) -> bool {
    noun.end >= clause.end
        || clause.date_at(noun.end).is_some()
        || clause.phrase(noun.end, lexicon::list_tasks::AFTER_NOUN).is_some()
        || clause.noun_at(noun.end).is_some()
}

/// Whatever else is said about one's list or one's tasks asks to see them: "walk me through my list".
pub(super) fn recognise_own_list(clause: &Clause) -> Guess {
    let noun = clause.noun_in(clause.start..clause.end)?;
    let several = noun.plural || noun.noun == Noun::List;
    let own = clause.has(lexicon::list_tasks::OWN);
    let told = lexicon::list_tasks::NOT_LIST_OPENERS.contains(clause.at(clause.start))
        || clause.has(lexicon::list_tasks::NOT_LIST_WORDS);
    let fits = several && own && !told && !scope::is_media(clause) && !scope::is_order(clause) && !clause.is_foreign();
    (fits && clause.end - clause.start <= 14).then_some((Act::List(clause.start), 0.56))
}

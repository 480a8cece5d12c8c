//! Recognises list_tasks by a noun phrase: "my tasks", "reminders for tomorrow", "walk me through my list". A singular
//! noun is create_task: "a reminder for the game".

use super::{CommandAction, Guess, grammar};
use crate::clause::{Clause, NounMention};
use crate::create::CreatePhrasing;
use crate::lexicon;
use crate::scope;
use crate::vocabulary::Noun;

/// Recognises a clause with a word for tasks as a listing (0.7): "my tasks", "reminders for tomorrow". Command verbs
/// are not checked. A listing has up to 14 tokens. The first such word must be the head of the phrase ([`is_head`]).
/// The words after it must fit ([`can_follow`]), without "should", "can" or a similar verb. A singular task or reminder
/// in a clause with "need a" creates (0.75). So does one among the first four tokens, before "to", "for" or a similar
/// word and without "my", "the" or "any" before it: "a reminder for the game". A singular at the end without "my" or
/// "the" also creates (0.55). Plurals with "I need" before "to" or "for" create, too (0.75). Creates are checked first.
/// Returns `None` for lists of other domains, purchases, feelings ("I love …"), and first words such as "turn" or
/// "how".
pub(super) fn recognise_noun(clause: &Clause) -> Guess {
    let noun = clause
        .noun_in(clause.start..clause.end)
        .filter(|_| !scope::is_other_list(clause) && !scope::is_purchase(clause))?;
    let singular = !noun.plural && noun.noun != Noun::List;
    let turned = lexicon::list_tasks::NOT_NOUN_OPENERS.contains(clause.at(clause.start));
    if turned || grammar::is_pronoun(clause.at(clause.start)) && clause.has(lexicon::grammar::FEELINGS) {
        return None;
    }
    let wanted = clause.has(lexicon::create_task::NEED_A);
    let has_title = matches!(clause.at(noun.end), "to" | "for" | "about" | "that" | ":");
    let definite =
        (clause.start..noun.at).any(|i| matches!(clause.at(i), "my" | "the" | "all" | "any" | "that" | "this"));
    if singular && (wanted || has_title && !definite && noun.at < clause.start + 4)
        || wanted && has_title && noun.plural
    {
        return Some((CommandAction::Create(CreatePhrasing::Make, clause.start), 0.75));
    }
    if singular && noun.end == clause.end && !definite {
        return Some((CommandAction::Create(CreatePhrasing::Make, clause.start), 0.55));
    }
    let stated = clause.find_phrase(noun.end, lexicon::grammar::MODALS);
    let named = is_head(clause, noun) && can_follow(clause, noun) && stated.is_none();
    (named && clause.end - clause.start <= 14).then_some((CommandAction::List(clause.start), 0.7))
}

/// Returns true if the words before the noun belong to it. A lead such as "all of my" or "a list of the" may come
/// first. At most five tokens may stand between it and the noun. After the first of them, articles, pronouns and marks
/// outside of dates are not allowed.
fn is_head(clause: &Clause, noun: NounMention) -> bool {
    let lead = clause.phrase(clause.start, lexicon::list_tasks::HEADS);
    let from = clause.start + lead.unwrap_or(0);
    let small = |i: usize| {
        crate::vocabulary::is_article(clause.at(i)) || !clause.words.is_word(i) && clause.date_at(i).is_none()
    };
    noun.at <= from + 5
        && !(from + 1..noun.at).any(|i| small(i) || grammar::is_pronoun(clause.at(i)) && clause.date_at(i).is_none())
}

/// Returns true if the words after the noun can belong to it. These are nothing, a date, another noun, or a word such
/// as "for", "that", "due" or "and". Other words, such as most verbs, cannot.
fn can_follow(clause: &Clause, noun: NounMention) -> bool {
    noun.end >= clause.end
        || clause.date_at(noun.end).is_some()
        || clause.phrase(noun.end, lexicon::list_tasks::AFTER_NOUN).is_some()
        || clause.noun_at(noun.end).is_some()
}

/// Recognises any other clause of up to 14 tokens about the user's list as a listing (0.56): "walk me through my list".
/// The first word for tasks must be a plural or a list. "my", "me", "I", "the" or a similar word must occur. Returns
/// `None` after "who", "how", "do", "turn" and similar first words, and with "should", "love", "never" and similar
/// words. Lists of other domains, purchases, other domains and plans do not match. A question mark does not matter.
pub(super) fn recognise_own_list(clause: &Clause) -> Guess {
    let noun = clause.noun_in(clause.start..clause.end)?;
    let several = noun.plural || noun.noun == Noun::List;
    let own = clause.has(lexicon::list_tasks::OWN);
    let has_title = lexicon::list_tasks::NOT_LIST_OPENERS.contains(clause.at(clause.start))
        || clause.has(lexicon::list_tasks::NOT_LIST_WORDS);
    let fits = several
        && own
        && !has_title
        && !scope::is_other_list(clause)
        && !scope::is_purchase(clause)
        && !clause.is_out_of_scope();
    (fits && clause.end - clause.start <= 14).then_some((CommandAction::List(clause.start), 0.56))
}

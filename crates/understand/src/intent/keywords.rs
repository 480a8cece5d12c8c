//! Recognises delete_task, complete_task, create_task or update_task by keywords anywhere in a clause about a task. It
//! runs only if no earlier rule matches. Only the list of the user and "add" before an activity are tried after it.

use super::{CommandAction, Guess};
use crate::clause::Clause;
use crate::create::CreatePhrasing;
use crate::lexicon;
use crate::update::UpdateKind;
use crate::vocabulary::Noun;

/// Recognises the intent by keywords anywhere in a clause whose first noun is a word for a task or a reminder. A
/// determiner ("my", "the", "a") must come anywhere before it. "delete", "anymore" and similar words delete. Otherwise
/// "done" and similar words complete. Otherwise "a task" or "a reminder" creates if the noun is near the start.
/// Otherwise a date after the noun, a distance or a word such as "instead" updates. A plural creates or updates only
/// with a sign of a change such as "move". Confidence is 0.55 for updates, else 0.56. Returns `None` for questions,
/// opinions ("I love …") and if the first noun is a list. Words of other domains and plans do not matter, because the
/// clause has a noun.
pub(super) fn recognise(clause: &Clause) -> Guess {
    let noun = clause.noun_in(clause.start..clause.end).filter(|noun| noun.noun != Noun::List)?;
    let own = (clause.start..noun.at).any(|k| lexicon::grammar::DETERMINERS.contains(clause.at(k)));
    let question = clause.is_question || lexicon::grammar::QUESTION_OPENERS.contains(clause.at(clause.start));
    if !own || question || clause.is_out_of_scope() || clause.has(lexicon::grammar::OPINIONS) {
        return None;
    }
    let end = clause.find_phrase(noun.end, lexicon::complete_task::STATE_LEADS).map_or(clause.end, |(at, _)| at);
    let start = (clause.start..noun.at).rev().find(|k| crate::vocabulary::is_article(clause.at(*k))).unwrap_or(noun.at);
    if clause.has(lexicon::delete_task::ANYWHERE) {
        return Some((CommandAction::Delete(start, end), 0.56));
    }
    if clause.has(lexicon::complete_task::ANYWHERE) {
        return Some((CommandAction::Complete(start, end), 0.56));
    }
    // "I'd be interested in the tasks from last month" asks for a list.
    if noun.plural && !clause.has(lexicon::update_task::CHANGE_SIGNS) {
        return None;
    }
    if clause.has(lexicon::create_task::NEW_NOUN) && noun.at <= clause.start + 6 {
        return Some((CommandAction::Create(CreatePhrasing::Make, clause.start), 0.56));
    }
    let timed =
        clause.dates.iter().any(|found| found.tokens.start > noun.at) || clause.has(lexicon::update_task::DISTANCES);
    (timed || clause.has(lexicon::update_task::ANYWHERE))
        .then_some((CommandAction::Update(UpdateKind::Any, start, clause.end), 0.55))
}

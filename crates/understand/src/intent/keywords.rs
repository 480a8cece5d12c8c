//! Recognises delete_task, complete_task, create_task or update_task by words anywhere in a clause about a task. The last
//! rule: it is asked only where no other rule recognises the clause.

use super::{Act, Guess};
use crate::clause::Clause;
use crate::create::Form;
use crate::lexicon;
use crate::update::Change;
use crate::vocabulary::Noun;

/// What is said about a task in words no rule knows: the words beside its name say what is to become of it.
pub(super) fn recognise(clause: &Clause) -> Guess {
    let noun = clause.noun_in(clause.start..clause.end).filter(|noun| noun.noun != Noun::List)?;
    let own = (clause.start..noun.at).any(|k| lexicon::grammar::DETERMINERS.contains(clause.at(k)));
    let question = clause.asked || lexicon::grammar::QUESTION_OPENERS.contains(clause.at(clause.start));
    if !own || question || clause.is_foreign() || clause.has(lexicon::grammar::OPINIONS) {
        return None;
    }
    let end = clause.seek(noun.end, lexicon::complete_task::STATE_LEADS).map_or(clause.end, |(at, _)| at);
    let start = (clause.start..noun.at).rev().find(|k| crate::vocabulary::is_article(clause.at(*k))).unwrap_or(noun.at);
    if clause.has(lexicon::delete_task::ANYWHERE) {
        return Some((Act::Delete(start, end), 0.56));
    }
    if clause.has(lexicon::complete_task::ANYWHERE) {
        return Some((Act::Complete(start, end), 0.56));
    }
    // "I'd be interested in the tasks from last month": several, so a look at them is wanted.
    if noun.plural && !clause.has(lexicon::update_task::CHANGE_SIGNS) {
        return None;
    }
    if clause.has(lexicon::create_task::NEW_NOUN) && noun.at <= clause.start + 6 {
        return Some((Act::Create(Form::Make, clause.start), 0.56));
    }
    let timed =
        clause.dates.iter().any(|found| found.tokens.start > noun.at) || clause.has(lexicon::update_task::DISTANCES);
    (timed || clause.has(lexicon::update_task::ANYWHERE)).then_some((Act::Update(Change::Any, start, clause.end), 0.55))
}

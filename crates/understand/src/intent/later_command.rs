//! Recognises a command of any intent that does not stand first: "I'm tired, so please delete the gym task", "I need all my
//! reminders cancelled", "the reminder for the party needs to be cancelled".

use super::{Act, Guess, at, delete_task_colloquial, grammar, verb_at};
use crate::clause::Clause;
use crate::courtesy;
use crate::create::Form;
use crate::lexicon;
use crate::update::Change;
use crate::vocabulary::{Noun, Verb};

/// "I need all my reminders cancelled."
pub(super) fn recognise_wanted(clause: &Clause, i: usize) -> Guess {
    let n = clause.phrase(i, lexicon::create_task::WANT)?;
    let noun = clause.noun_in(i + n..clause.end)?;
    if let Some((at, _)) = clause.seek(noun.at, lexicon::delete_task::PASSIVES) {
        let end = if at == noun.end { clause.end } else { at };
        return Some((Act::Delete(i + n, end), 0.75));
    }
    if clause
        .seek(noun.at, lexicon::update_task::PASSIVES)
        .is_some_and(|(at, _)| clause.at(at + 1) == "to" || at + 1 == clause.end)
    {
        return Some((Act::Update(Change::Any, i + n, clause.end), 0.75));
    }
    None
}

/// How many places of a clause are tried: no sentence needs more, and noise must not take long.
const MOST_TRIES: usize = 24;

/// A command after a preamble: "I'm tired, so please delete …", "on my list, add …".
pub(super) fn recognise(clause: &Clause) -> Guess {
    if let Some(guess) = recognise_passive(clause) {
        return Some(guess);
    }
    let message = lexicon::grammar::MESSAGE_VERBS.contains(clause.at(clause.start)) && !clause.has_noun();
    let opens = |i: &usize| {
        let before = clause.before(*i);
        if clause.phrase(*i, lexicon::grammar::YOU_CAN).is_some() {
            return true;
        }
        clause.words.is_one_of(*i - 1, lexicon::grammar::COMMAND_OPENERS)
            || courtesy::is_please(before)
            || matches!(clause.at(*i), "remind" | "remember")
    };
    for i in (clause.start + 1..clause.end).filter(opens).take(MOST_TRIES) {
        let from = courtesy::after(clause.words, i, clause.end);
        let verb = verb_at(clause, from);
        if clause.is_foreign()
            && verb.is_some()
            && let Some(guess) = by_itself(clause, i, from)
        {
            return Some(guess);
        }
        if verb.is_none() && delete_task_colloquial::verb_length(clause, from).is_none() {
            continue;
        }
        let Some((act, confidence)) = at(clause, from) else { continue };
        if !message && stands(clause, i, from, act) {
            return Some((act, confidence - 0.08));
        }
        let remind = verb == Some(Verb::Remind) && matches!(clause.at(from + 1), "me" | "us");
        if remind || verb.is_some() && clause.has_noun() {
            return Some((with_preamble(clause, from, act), confidence - 0.08));
        }
    }
    None
}

/// Whether the command at `from` is plain without a word for a task: it follows a link, and a particular thing is its
/// object.
fn stands(clause: &Clause, i: usize, from: usize, act: Act) -> bool {
    let before = clause.before(i);
    let linked = lexicon::grammar::COMMAND_LINKS.contains(before)
        || clause.phrase(i, lexicon::grammar::YOU_CAN).is_some()
        || courtesy::is_please(before);
    let object = grammar::is_definite(clause, from + 1)
        || grammar::is_definite(clause, from + 2)
        || grammar::is_definite(clause, from + 3);
    match act {
        Act::Complete(..) if clause.at(from + 1) == "off" => linked,
        Act::List(_) => linked && verb_at(clause, from) == Some(Verb::Show),
        Act::Delete(..) | Act::Complete(..) => {
            linked && object && clause.dates.iter().all(|found| found.tokens.start < from)
        }
        Act::Update(..) => linked && object,
        Act::Create(Form::Add, _) => linked && verb_at(clause, from) == Some(Verb::Add),
        _ => false,
    }
}

/// "my train got cancelled, so move the handover to 4": words of other trades in the remark do not count.
fn by_itself(clause: &Clause, i: usize, from: usize) -> Guess {
    let part = Clause::new(clause.words, from..clause.end, clause.now);
    if part.is_foreign() || part.start != from {
        return None;
    }
    let (act, confidence) = at(&part, from)?;
    stands(clause, i, from, act).then_some((act, confidence - 0.08))
}

/// "I need to see the vet on Monday, remind me": what was said before is the title if nothing follows.
fn with_preamble(clause: &Clause, from: usize, act: Act) -> Act {
    let about = clause.phrase(clause.start, lexicon::grammar::TOPIC_LEADS);
    let task = clause.nouns_in(clause.start..from).any(|noun| noun.noun == Noun::Task && !noun.plural);
    if about.is_some() && task && matches!(act, Act::Create(Form::Remind, _)) {
        return Act::Remind(clause.start);
    }
    match act {
        Act::Create(Form::Remind | Form::Make, body) if from > clause.start + 1 => {
            let dated = clause.dates.iter().filter(|found| found.tokens.start >= body);
            let spent = (body..clause.end)
                .filter(|i| !dated.clone().any(|found| found.tokens.contains(i)))
                .all(|i| !clause.words.is_word(i) || is_filler(clause, i));
            if spent { Act::Create(Form::Preamble, from) } else { act }
        }
        act => act,
    }
}

fn is_filler(clause: &Clause, i: usize) -> bool {
    lexicon::grammar::PREAMBLE_FILLERS.contains(clause.at(i)) || clause.at(i).bytes().all(|b| b.is_ascii_digit())
}

/// "The reminder for the party needs to be cancelled."
fn recognise_passive(clause: &Clause) -> Guess {
    let noun = clause.noun_in(clause.start..clause.end)?;
    let modal = usize::from(matches!(clause.at(clause.start), "can" | "could" | "may" | "might" | "should" | "would"));
    let start = clause.start + modal;
    let first = lexicon::grammar::PASSIVE_SUBJECTS.contains(clause.at(start)) || noun.at == start;
    if !first {
        return None;
    }
    let be = |from: usize| clause.seek(from, lexicon::grammar::NEEDS_TO_BE).map_or(clause.end, |(at, _)| at);
    if clause.seek(noun.end, lexicon::delete_task::PASSIVES).is_some()
        || clause.phrase(clause.end.saturating_sub(1), lexicon::delete_task::PLAIN_VERBS).is_some()
    {
        return Some((Act::Delete(start, be(noun.end)), 0.75));
    }
    if clause.seek(noun.end, lexicon::update_task::PASSIVES).is_some() {
        return Some((Act::Update(Change::Any, start, clause.end), 0.75));
    }
    if noun.noun != Noun::List && clause.seek(noun.end, lexicon::update_task::SHOULD_BE).is_some() {
        return Some((Act::Update(Change::Any, clause.start, clause.end), 0.7));
    }
    if clause.has(lexicon::grammar::INSTEAD) {
        return Some((Act::Update(Change::Instead, clause.start, clause.end), 0.7));
    }
    None
}

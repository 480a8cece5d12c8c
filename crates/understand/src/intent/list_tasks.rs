//! Recognises list_tasks by its verb or as a question with a word for tasks: "show my tasks", "what tasks are due
//! today?", "read me the list".

use super::{Act, Guess, list_tasks_question};
use crate::clause::Clause;
use crate::create::Form;
use crate::lexicon;
use crate::scope;
use crate::update::Change;
use crate::vocabulary::Noun;

pub(super) fn recognise_question(clause: &Clause) -> Guess {
    let i = clause.start + usize::from(matches!(clause.at(clause.start), "at" | "for" | "on" | "in" | "of"));
    if !lexicon::list_tasks::ASKS.contains(clause.at(i))
        || i > clause.start && !matches!(clause.at(i), "what" | "which" | "when")
    {
        return None;
    }
    if clause.at(i) == "do" && !matches!(clause.at(i + 1), "i" | "you" | "we" | "they" | "any" | "my" | "not") {
        return None;
    }
    // "When I get home, remind me to …" is no question.
    let condition = matches!(clause.at(i), "when" | "if") && clause.has(lexicon::list_tasks::COMMANDS_INSIDE);
    let about = clause.has_noun() || clause.has(lexicon::list_tasks::MEMORY);
    if about {
        let fits = !condition && !scope::is_media(clause) && !clause.is_foreign() && !is_general(clause, i);
        return fits.then_some((Act::List(i), 0.93));
    }
    list_tasks_question::recognise(clause, i)
}

/// A question after a remark: "I'm at the shop, what do I need to get?", "I wonder what's left".
pub(super) fn recognise_later_question(clause: &Clause) -> Guess {
    let (i, _) = (clause.start + 1..clause.end)
        .find_map(|i| clause.phrase(i, lexicon::list_tasks::LATER_ASKS).map(|n| (i, n)))?;
    let told = clause.has(lexicon::list_tasks::NOT_QUESTIONS);
    if clause.has_noun() {
        let fits =
            !told && !is_general(clause, i) && !scope::is_media(clause) && !matches!(clause.at(i), "when" | "any");
        return fits.then_some((Act::List(i), 0.72));
    }
    let lost = clause.phrase(i, lexicon::list_tasks::WHAT_SHOULD_I_DO).is_some();
    list_tasks_question::recognise(clause, i)
        .filter(|_| clause.end - clause.start <= 24 && !lost)
        .map(|(act, confidence)| (act, confidence - 0.08))
}

/// Whether a question is about the words or about the engine and not about somebody's tasks.
fn is_general(clause: &Clause, i: usize) -> bool {
    let own = clause.has(lexicon::list_tasks::PERSONAL);
    let person =
        matches!(clause.at(i), "who" | "why") || clause.phrase(i, lexicon::list_tasks::GENERAL_OPENERS).is_some();
    clause.has(lexicon::list_tasks::GENERAL) || person && !own
}

/// "show …", "read …", "tell me …".
pub(super) fn recognise_show(clause: &Clause, i: usize) -> Guess {
    let verb = clause.at(i);
    let body = i + 1 + usize::from(matches!(clause.at(i + 1), "me" | "us" | "up" | "out"));
    if verb == "get" && wants_new(clause, i) {
        return Some((Act::Create(Form::Make, i + 1), 0.8));
    }
    if verb == "tell"
        && clause.at(i + 1) == "me"
        && !clause.dates.is_empty()
        && (clause.at(i + 2) == "to" || clause.date_at(i + 2).is_some_and(|found| clause.at(found.tokens.end) == "to"))
    {
        return Some((Act::Create(Form::Remind, i + 2), 0.7));
    }
    if verb == "bring" && clause.at(i + 1) == "back" {
        return Some((Act::Update(Change::Reopen, i + 2, clause.end), 0.6));
    }
    let repeats = clause.dates.iter().any(|found| found.parts.repeat.is_some());
    if verb == "repeat" && repeats && clause.has_noun() {
        return Some((Act::Update(Change::Any, i + 1, clause.end), 0.75));
    }
    if clause.has_noun() || clause.has(lexicon::list_tasks::NOTES) {
        return recognise_shown(clause, i, body);
    }
    if matches!(verb, "tell" | "know" | "see" | "show" | "list" | "look" | "hear" | "give" | "read")
        && let Some(guess) = list_tasks_question::recognise(clause, body)
    {
        return Some(guess);
    }
    let remembered = clause.has(lexicon::list_tasks::REMEMBER) && clause.has(lexicon::list_tasks::WHAT_OR_THINGS);
    let body = body + clause.phrase(body, lexicon::list_tasks::LOOK_AT).unwrap_or(0);
    if let Some(guess) = list_tasks_question::recognise(clause, body) {
        return Some(guess);
    }
    let shows = !matches!(verb, "get" | "open" | "repeat" | "know" | "bring" | "find")
        && list_tasks_question::names_entries(clause, body)
        || matches!(verb, "show" | "list" | "display" | "see" | "view" | "showing" | "listing")
            && (everything(clause, i, body) || dated(clause, body));
    ((shows || remembered) && !clause.is_foreign()).then_some((Act::List(body), 0.8))
}

/// Something that may be shown, or found and then deleted.
fn recognise_shown(clause: &Clause, i: usize, body: usize) -> Guess {
    if let Some((at, _)) = clause.seek(body, lexicon::list_tasks::AND_DELETE) {
        return Some((Act::Delete(i + 1, at), 0.75));
    }
    (!scope::is_media(clause) && !scope::is_order(clause)).then_some((Act::List(body), 0.95))
}

fn everything(clause: &Clause, i: usize, body: usize) -> bool {
    let alone = matches!(clause.at(i), "show" | "list") && clause.is_spent(body..clause.end);
    alone || clause.phrase(body, lexicon::list_tasks::EVERYTHING).is_some() || only_filters(clause, body)
}

/// "the completed ones", "only high priority".
fn only_filters(clause: &Clause, body: usize) -> bool {
    body < clause.end
        && (body..clause.end)
            .all(|i| lexicon::list_tasks::FILTER_FILLERS.contains(clause.at(i)) || clause.date_at(i).is_some())
}

fn dated(clause: &Clause, body: usize) -> bool {
    clause.date_at(body).is_some_and(|found| found.tokens.start == body && found.tokens.end == clause.end)
}

/// "get a reminder", "get me an alert".
fn wants_new(clause: &Clause, i: usize) -> bool {
    let article = matches!(clause.at(i + 1), "a" | "an") || clause.phrase(i + 1, lexicon::list_tasks::ME_A).is_some();
    article && clause.noun_in(i..clause.end).is_some_and(|noun| noun.noun != Noun::List)
}

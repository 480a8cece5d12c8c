//! Questions about one's tasks, and verbs that ask to see them.

use super::{Act, Guess, asks};
use crate::clause::Clause;
use crate::create::Form;
use crate::lexicon::Noun;
use crate::phrases::{Phrases, phrases};
use crate::scope;
use crate::update::Change;

pub(super) fn read(clause: &Clause) -> Guess {
    const ASKS: Phrases = phrases!(
        "what | what's | whats | which | when | when's | whens | where | who | how | do | does | did | am | is | \
         are | have | has | any | anything | will | should | whose | was | were | why | wheres | where's | \
         what're | hows | how's | wat | if | doesn't | don't | isn't | aren't | didn't | nothing | something | got | \
         wich | haven't | wasn't | weren't"
    );
    let i = clause.start + usize::from(matches!(clause.at(clause.start), "at" | "for" | "on" | "in" | "of"));
    if !ASKS.contains(clause.at(i)) || i > clause.start && !matches!(clause.at(i), "what" | "which" | "when") {
        return None;
    }
    if clause.at(i) == "do" && !matches!(clause.at(i + 1), "i" | "you" | "we" | "they" | "any" | "my" | "not") {
        return None;
    }
    // "When I get home, remind me to …" is no question.
    let condition = matches!(clause.at(i), "when" | "if")
        && clause.has(phrases!("remind me | alert me | delete | cancel | remove"));
    let about =
        clause.has_noun() || clause.has(phrases!("remind | reminded | reminding | remember | recall | bear in mind"));
    if about {
        let fits = !condition && !scope::is_media(clause) && !clause.is_foreign() && !is_general(clause, i);
        return fits.then_some((Act::List(i), 0.93));
    }
    asks::read(clause, i)
}

/// A question after a remark: "I'm at the shop, what do I need to get?", "I wonder what's left".
pub(super) fn later(clause: &Clause) -> Guess {
    const ASKS: Phrases = phrases!(
        "what | what's | whats | which | how many | how much | is there | are there | do i | have i | when | any"
    );
    let (i, _) = (clause.start + 1..clause.end).find_map(|i| clause.phrase(i, ASKS).map(|n| (i, n)))?;
    let told = clause.has(phrases!("remind me to | add | put | you"));
    if clause.has_noun() {
        let fits =
            !told && !is_general(clause, i) && !scope::is_media(clause) && !matches!(clause.at(i), "when" | "any");
        return fits.then_some((Act::List(i), 0.72));
    }
    let lost = clause.phrase(i, phrases!("what should i do | what do i do")).is_some();
    asks::read(clause, i)
        .filter(|_| clause.end - clause.start <= 24 && !lost)
        .map(|(act, confidence)| (act, confidence - 0.08))
}

/// Whether a question is about the words or about the engine and not about somebody's tasks.
fn is_general(clause: &Clause, i: usize) -> bool {
    const GENERAL: Phrases = phrases!(
        "mean | means | spell | spelled | pronounce | invented | invent | difference between | definition | \
         stand for | do you store | do you save | do you share | do you sell | do you keep | do you sync | app | \
         apps | translate | in spanish | in french | in german | synonym | better than | your favorite | \
         your favourite | are you able | would happen"
    );
    let own = clause.has(phrases!("i | my | me | we | our | us | there | i've | mine | any"));
    let person = matches!(clause.at(i), "who" | "why")
        || clause.phrase(i, phrases!("how do you | what does | how does")).is_some();
    clause.has(GENERAL) || person && !own
}

/// "show …", "read …", "tell me …".
pub(super) fn show(clause: &Clause, i: usize) -> Guess {
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
    if clause.has_noun() || clause.has(phrases!("notes")) {
        return shown(clause, i, body);
    }
    if matches!(verb, "tell" | "know" | "see" | "show" | "list" | "look" | "hear" | "give" | "read")
        && let Some(guess) = asks::read(clause, body)
    {
        return Some(guess);
    }
    let remembered = clause.has(phrases!("remember | recall")) && clause.has(phrases!("what | things"));
    let body = body + clause.phrase(body, phrases!("at | for | through | over | out")).unwrap_or(0);
    if let Some(guess) = asks::read(clause, body) {
        return Some(guess);
    }
    let shows = !matches!(verb, "get" | "open" | "repeat" | "know" | "bring" | "find") && asks::entries(clause, body)
        || matches!(verb, "show" | "list" | "display" | "see" | "view" | "showing" | "listing")
            && (everything(clause, i, body) || dated(clause, body));
    ((shows || remembered) && !clause.is_foreign()).then_some((Act::List(body), 0.8))
}

/// Something that may be shown, or found and then deleted.
fn shown(clause: &Clause, i: usize, body: usize) -> Guess {
    let gone = phrases!("and delete | and remove | and cancel | and erase | delete it | remove it | erase it");
    if let Some((at, _)) = clause.seek(body, gone) {
        return Some((Act::Delete(i + 1, at), 0.75));
    }
    (!scope::is_media(clause) && !scope::is_order(clause)).then_some((Act::List(body), 0.95))
}

fn everything(clause: &Clause, i: usize, body: usize) -> bool {
    const ALL: Phrases = phrases!(
        "everything | all | them all | all of them | all of it | what's pending | what is pending | what's due | \
         what's overdue | my day | what i have | what i need | completed | pending | overdue | what's left | \
         what is left | my priorities"
    );
    let alone = matches!(clause.at(i), "show" | "list") && clause.is_spent(body..clause.end);
    alone || clause.phrase(body, ALL).is_some() || only_filters(clause, body)
}

/// "the completed ones", "only high priority".
fn only_filters(clause: &Clause, body: usize) -> bool {
    let small = phrases!(
        "only | just | ones | the | my | all | priority | high | low | medium | urgent | important | completed | \
         done | pending | overdue | finished | open"
    );
    body < clause.end && (body..clause.end).all(|i| small.contains(clause.at(i)) || clause.date_at(i).is_some())
}

fn dated(clause: &Clause, body: usize) -> bool {
    clause.date_at(body).is_some_and(|found| found.tokens.start == body && found.tokens.end == clause.end)
}

/// "get a reminder", "get me an alert".
fn wants_new(clause: &Clause, i: usize) -> bool {
    let article = matches!(clause.at(i + 1), "a" | "an") || clause.phrase(i + 1, phrases!("me a | us a")).is_some();
    article && clause.noun_in(i..clause.end).is_some_and(|noun| noun.noun != Noun::List)
}

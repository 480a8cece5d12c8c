//! Questions about one's tasks, and verbs that ask to see them.

use super::{Act, Guess, change};
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
         what're | hows | how's | wat | if | doesn't | don't | isn't | aren't | didn't"
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
        return (!condition && !scope::is_media(clause) && !clause.is_foreign()).then_some((Act::List(i), 0.93));
    }
    about_tasks(clause, i)
}

/// "what do I have to do today", "what's due", "do I have anything about the dentist".
fn about_tasks(clause: &Clause, i: usize) -> Guess {
    if clause.is_foreign() {
        return None;
    }
    duties(clause, i).or_else(|| state(clause, i)).or_else(|| anything(clause, i))
}

fn duties(clause: &Clause, i: usize) -> Guess {
    const DUTIES: Phrases = phrases!(
        "i have to do | i need to do | i have to get done | i need to get done | to get done | i supposed to do | \
         i going to do | i should do | i must do | should i do | must i do | have i got to do | left to do | \
         i gotta do | i got to do | i have left | i have planned | do i have | i meant to do | needs to be done | \
         needs doing | needs to get done | i wanted to keep in mind | have i completed | have i finished | \
         have i done | did i finish | did i complete | did i get done | i forgetting | on my plate | on my agenda | \
         next for me | is pending | is overdue | is due | are due | is left | to do today | to do tomorrow | \
         to do this week | to do next | i have for | things i have"
    );
    const TAILS: Phrases = phrases!("next | now | first | on | still | due | at | left | for | soon");
    let closes = |after: usize| {
        let dated = clause.date_at(after).is_some();
        clause.is_spent(after..clause.end) || dated || TAILS.contains(clause.at(after))
    };
    let duty = (i..clause.end.min(i + 7)).any(|at| clause.phrase(at, DUTIES).is_some_and(|n| closes(at + n)));
    (duty && clause.end - i <= 14).then_some((Act::List(i), 0.85))
}

/// "what's pending", "what is due this week".
fn state(clause: &Clause, i: usize) -> Guess {
    const STATES: Phrases = phrases!(
        "pending | overdue | due | left | outstanding | next | done | completed | open | urgent | important | \
         my top priority | my priorities | my highest priority | top priority | most important | still pending | \
         still open | still left | not done | up next"
    );
    let short = matches!(clause.at(i), "what's" | "whats");
    let long = clause.at(i) == "what" && matches!(clause.at(i + 1), "is" | "are");
    if !short && !long {
        return None;
    }
    let body = i + if short { 1 } else { 2 };
    let n = clause.phrase(body, STATES)?;
    let after = body + n;
    let closed = clause.is_spent(after..clause.end)
        || clause.date_at(after).is_some()
        || matches!(clause.at(after), "on" | "for" | "soon");
    let vague = matches!(clause.at(body), "next" | "up") && after != clause.end;
    (closed && !vague).then_some((Act::List(body), 0.88))
}

fn anything(clause: &Clause, i: usize) -> Guess {
    let n = clause.phrase(
        i,
        phrases!("do i have anything | have i got anything | is there anything | anything | do i have something"),
    )?;
    let about = phrases!("about | due | pending | left | for | on | overdue | urgent | to | with | related");
    let fits = about.contains(clause.at(i + n)) || clause.date_at(i + n).is_some();
    fits.then_some((Act::List(i), 0.82))
}

/// "show …", "read …", "tell me …".
pub(super) fn show(clause: &Clause, i: usize) -> Guess {
    let verb = clause.at(i);
    let body = i + 1 + usize::from(matches!(clause.at(i + 1), "me" | "us" | "up" | "out"));
    if verb == "get" && wants_new(clause, i) {
        return Some((Act::Create(Form::Make, i + 1), 0.8));
    }
    if verb == "tell" && clause.at(i + 1) == "me" && clause.at(i + 2) == "to" && !clause.dates.is_empty() {
        return Some((Act::Create(Form::Remind, i + 2), 0.7));
    }
    if verb == "bring" && clause.has(phrases!("forward")) && (!clause.dates.is_empty() || clause.has(change::DISTANCES))
    {
        return Some((Act::Update(Change::Due, i + 1, clause.end), 0.75));
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
    if matches!(verb, "tell" | "know" | "see")
        && let Some(guess) = about_tasks(clause, body)
    {
        return Some(guess);
    }
    let remembered = clause.has(phrases!("remember | recall")) && clause.has(phrases!("what | things"));
    let shows = matches!(verb, "show" | "list" | "display" | "see" | "view")
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

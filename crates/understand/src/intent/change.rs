//! Verbs that change a task: "change", "update", "move", "postpone".

use model::task::Priority;

use super::{Act, Guess};
use crate::clause::Clause;
use crate::lexicon::Verb;
use crate::phrases::{Phrases, phrases};
use crate::scope;
use crate::update::Change;

pub(super) const DISTANCES: Phrases =
    phrases!("minutes | minute | hour | hours | day | days | week | weeks | month | months | year | years | fortnight");

pub(super) fn read(clause: &Clause, i: usize, verb: Verb) -> Guess {
    let noun = clause.has_noun();
    let next = clause.at(i + 1);
    let field = clause.phrase(
        i + 1,
        phrases!(
            "the time of | the time for | the date of | the title of | the due date of | the due date for | \
         the deadline of | the deadline for | the priority of | the priority for"
        ),
    );
    if i + 1 >= clause.end
        && phrases!("edit | update | move | reschedule | postpone | snooze | change").contains(clause.at(i))
    {
        return (clause.end - clause.start == 1).then_some((Act::Update(Change::Any, i + 1, clause.end), 0.55));
    }
    if clause.is_elsewhere() && field.is_none() && !is_moved(clause, i, verb)
        || !noun && is_other(clause, i)
        || scope::is_thing(clause, i + 1)
    {
        return None;
    }
    if matches!(clause.at(i), "prioritize" | "prioritise") {
        return Some((Act::Update(Change::Priority(Priority::High), i + 1, clause.end), 0.85));
    }
    if clause.at(i) == "update" && next == "me" {
        return noun.then_some((Act::List(i + 2), 0.7));
    }
    let errand = matches!(clause.at(i), "revise" | "fix" | "replace" | "correct") && !noun;
    if errand && (super::mood::is_need(clause, i) || next == "for") {
        return None;
    }
    let known = matches!(next, "it" | "that" | "this") || clause.words.is_quoted(i + 1);
    let to = clause.has(phrases!(
        "to | by | until | till | for | with | from | it should say | it should read | so it says | so it reads | \
         should say"
    ));
    let moved = verb == Verb::Move && clause.has(DISTANCES);
    let confidence = match (noun, !clause.dates.is_empty() || known || moved, to) {
        (true, _, _) => 0.95,
        (_, true, true) => 0.85,
        (_, true, false) | (_, false, true) => 0.65,
        _ if clause
            .phrase(i + 1, phrases!("the due date | the deadline | the priority | the description"))
            .is_some() =>
        {
            0.65
        }
        _ if phrases!("postpone | reschedule | snooze | delay | defer").contains(clause.at(i)) => 0.65,
        _ => return None,
    };
    let change = if verb == Verb::Move { Change::Due } else { Change::Any };
    let body = i + 1 + usize::from(matches!(next, "back" | "up"));
    Some((Act::Update(change, body, clause.end), confidence))
}

/// "reschedule call bank to Wednesday": such a verb with a new date or a new priority is plain whatever the task is
/// about.
fn is_moved(clause: &Clause, i: usize, verb: Verb) -> bool {
    let later =
        phrases!("postpone | reschedule | push | bump | delay | defer | move | shift | prepone").contains(clause.at(i));
    let date = clause.dates.last().is_some_and(|found| {
        let start = found.tokens.start;
        clause.is_spent(found.tokens.end..clause.end)
            && (matches!(clause.before(start), "to" | "until" | "till" | "by")
                || matches!(clause.at(start), "to" | "until" | "till" | "by"))
    });
    let ranked = crate::attributes::closing_priority(clause, i + 1)
        .is_some_and(|(at, _)| matches!(clause.before(at), "to" | "as"));
    let other = clause.has(phrases!(
        "alarm | alarms | timer | timers | calendar | flight | flights | song | volume | money | transfer | \
         reservation | reservations | account | balance | light | lights"
    ));
    !other && (later && verb == Verb::Move && date || ranked)
}

/// Without a word for a task these speak of something else: "switch to …", "convert …", "change that".
fn is_other(clause: &Clause, i: usize) -> bool {
    let verb = phrases!("switch | swap | convert | fix | correct | replace").contains(clause.at(i));
    let later = phrases!("postpone | reschedule | snooze | delay | defer").contains(clause.at(i));
    let nothing = clause.at(i + 1) == "to" || i + 2 >= clause.end && !(later && i + 1 < clause.end);
    let way = clause.phrase(i + 1, phrases!("the way | your | you | on | the subject | the topic")).is_some();
    verb && !clause.words.is_quoted(i + 1) || nothing || way
}

//! Questions about one's tasks that hold no word for a task: "what's left for today?", "am I behind on anything?".
//!
//! "What's left of the budget?" and "what do I need for lasagna?" are none: what is asked for must be something to do,
//! and nothing but a time, a tag or a place in the list may follow.

use super::{Act, Guess, past, shape};
use crate::clause::Clause;
use crate::labels;
use crate::phrases::{Phrases, phrases};

/// The question that begins at `i`.
pub(super) fn read(clause: &Clause, i: usize) -> Guess {
    if clause.is_foreign() {
        return None;
    }
    let found = state(clause, i)
        .or_else(|| duties(clause, i))
        .or_else(|| supposed(clause, i))
        .or_else(|| anything(clause, i))
        .or_else(|| caught_up(clause, i))
        .or_else(|| labelled(clause, i));
    found.map(|confidence| (Act::List(i), confidence))
}

/// "what's in the home category", "stuff with the label music", "tag: admin".
fn labelled(clause: &Clause, i: usize) -> Option<f64> {
    let asks = phrases!(
        "what's | whats | what | which | anything | everything | stuff | things | all | tag | tags | label | category | \
         the | my | only | just | do i have | is there | got"
    );
    clause.phrase(i, asks).filter(|_| clause.has(labels::SIGNS))?;
    let tag = |k: usize| {
        labels::closing(clause, k, clause.end).is_some()
            || labels::lead(clause, k, clause.end)
                .is_some_and(|name| name < clause.end && labels::is_name(clause, name))
    };
    let first = labels::WORDS.contains(clause.at(i)) && matches!(clause.at(i + 1), ":" | "=");
    (first || (i + 1..clause.end).any(tag)).then_some(0.8)
}

/// Whether a question about tasks can end at `i`: with nothing, a time, or a word that only limits it.
fn closes(clause: &Clause, i: usize) -> bool {
    const TAILS: Phrases = phrases!(
        "next | now | first | on my | on the list | still | due | left | for the day | for the week | for me | \
         soon | again | already | then | exactly | else | around the house | at home | at work | in the house | \
         so far | ugh | today | please | right | ? | , | before | after | by | yet | lol | at the moment | \
         on my plate | under | tagged | with the tag | # | for today | this | over | anyway | but | or | in total | \
         on my way | on the way | from the | that was | most | and"
    );
    i >= clause.end || clause.date_at(i).is_some() || clause.phrase(i, TAILS).is_some()
}

/// "what's due", "what is left for today", "what's tagged work", "what is most pressing".
fn state(clause: &Clause, i: usize) -> Option<f64> {
    const STATES: Phrases = phrases!(
        "pending | overdue | due | left | outstanding | next | done | completed | open | urgent | important | \
         my top priority | my priorities | my highest priority | top priority | most important | still pending | \
         still open | still left | not done | up next | coming up | late | most pressing | pressing | most urgent | \
         undone | unfinished | still due | still to do | on today | on tomorrow | on for today | on for tomorrow | \
         on this week | on my plate | on the agenda | on my agenda | on the docket | in store | there to do | \
         there left | tagged | under # | marked | not done yet | not finished | already done | to be done | \
         past due | first | first up | remaining | incomplete | still undone | high priority | on deck | upcoming | \
         still outstanding | still not done | in progress | the plan | for today | ahead"
    );
    let short = matches!(clause.at(i), "what's" | "whats" | "which" | "wat's" | "who's" | "what're");
    let long = matches!(clause.at(i), "what" | "which")
        && matches!(clause.at(i + 1), "is" | "are" | "else" | "ones" | "things" | "stuff");
    if !short && !long {
        return None;
    }
    let mut body = i + 1;
    while matches!(
        clause.at(body),
        "is" | "are"
            | "else"
            | "ones"
            | "things"
            | "stuff"
            | "all"
            | "currently"
            | "else's"
            | "the"
            | "my"
            | "already"
            | "actually"
            | "there"
            | "that's"
            | "thing"
    ) && body < clause.end
        && clause.phrase(body, STATES).is_none()
    {
        body += 1;
    }
    let n = clause.phrase(body, STATES)?;
    let after = body + n;
    let for_day = clause.phrase(after, phrases!("on | for | in | to do"));
    let closed = closes(clause, after) || for_day.is_some_and(|m| closes(clause, after + m));
    let vague = matches!(clause.at(body), "next" | "up" | "ahead" | "the" | "first")
        && after != clause.end
        && clause.date_at(after).is_none();
    let tagged = matches!(clause.at(body), "tagged" | "under" | "marked") && after < clause.end;
    (closed && !vague || tagged).then_some(0.88)
}

/// "what do I have to do today", "what needs doing", "what have I got on tomorrow".
fn duties(clause: &Clause, i: usize) -> Option<f64> {
    const DUTIES: Phrases = phrases!(
        "i have to do | i need to do | i have to get done | i need to get done | to get done | i supposed to do | \
         i going to do | i should do | i must do | should i do | must i do | have i got to do | left to do | \
         i gotta do | i got to do | i have left | i have planned | do i have | i meant to do | needs to be done | \
         needs doing | needs to be finished | needs finishing | have i got down | needs to get done | \
         i wanted to keep in mind | have i completed | have i finished | have i done | did i finish | \
         did i complete | did i get done | i forgetting | on my plate | on my agenda | next for me | is pending | \
         is overdue | is due | are due | is left | to do today | to do tomorrow | to do this week | to do next | \
         i have for | things i have | i still have to do | i still need to do | i still have to finish | \
         i have to finish | i need to finish | i still got to do | i've got to do | i've got left | \
         i supposed to be doing | should i be doing | i be doing | have i got on | have i got left | \
         have i got coming up | have i still got to | i have on | i have coming up | do i still have | i got on | \
         have we got on | have we got to do | i need to work on | should i work on | should i tackle | \
         should i start with | should i focus on | i have to remember | i not forget | i need to remember | \
         i planned | i have going on | i need to get through | i have lined up | i had to do | i needed to do | \
         i forget to do | did i forget | have i forgotten | did i plan | have i planned | do i need to do | \
         do i have to do | do we need to do | do we have to do | we need to do | we have to do | still needs doing | \
         still needs to be done | still has to be done | has to be done | has to get done | should have been done | \
         i have to buy | i need to buy | do we still need | i still have to buy | i have to pick up | \
         i need to pick up | i still have to | i still need to | have i got to | i got left | i got today | \
         i got tomorrow | i need from the | we need from the | i need at the | is there to do | there is to do | \
         is there left | i have to get through | is still open | is still left | are still open | are left | \
         are still left | are overdue | are pending | is outstanding"
    );
    let duty = |at: usize| {
        clause.phrase(at, DUTIES).is_some_and(|n| {
            let open = matches!(
                clause.before(at + n),
                "to" | "planned" | "forget" | "the" | "forgotten" | "remember" | "plan"
            );
            closes(clause, at + n)
                || open && clause.words.is_word(at + n)
                || clause.phrase(at + n, phrases!("at | for")).is_some() && clause.end - at <= 9
        })
    };
    let found = (i..clause.end.min(i + 8)).any(duty);
    let other = clause.has(phrases!("pay | money | budget | on hand | in stock | calories"));
    (found && !other && clause.end - i <= 16).then_some(0.85)
}

/// "when am I supposed to call the notary", "who was I meant to invite", "when do I need to pay the council tax".
fn supposed(clause: &Clause, i: usize) -> Option<f64> {
    const ASKS: Phrases =
        phrases!("what | when | who | where | which | whom | what's | how | was | wasn't | weren't | haven't");
    const MEANT: Phrases = phrases!(
        "am i supposed to | was i supposed to | was i meant to | am i meant to | were we supposed to | \
         are we supposed to | was i going to | did i want to | did i need to | did i have to | i was supposed to | \
         i'm supposed to | i was meant to | do i have to | do i need to | there something i | must i not | \
         did i put the | did i schedule | have i put the | did i plan to | did i say i would | i got an | i got a | \
         must i"
    );
    if !ASKS.contains(clause.at(i)) {
        return None;
    }
    let (at, n) = clause.seek(i + 1, MEANT).filter(|(at, _)| *at <= i + 4)?;
    let now = clause.words.phrase(at, phrases!("do i have to | do i need to")).is_some();
    let own = (at + n..clause.end).any(|k| matches!(clause.at(k), "the" | "my")) && clause.at(i) == "when";
    let essay = clause.at(at) == "i" && clause.at(at + 1) == "got";
    let fits = if now { own } else { clause.at(i) != "how" && (!essay || clause.has(phrases!("due | to do"))) };
    (fits && at + n < clause.end).then_some(0.7)
}

/// "anything due?", "do I have anything about the dentist", "got anything for me today".
fn anything(clause: &Clause, i: usize) -> Option<f64> {
    const ASKS: Phrases = phrases!(
        "do i have anything | have i got anything | is there anything | anything | do i have something | \
         is anything | are any | do i have any | have i got any | is there something | nothing | got anything | \
         got much | got something | anything else | do i have anything else | is there anything else | \
         am i missing anything | do i have much | have i got much | was there something | was there anything | \
         do i need to do anything | did i miss anything | have i missed anything | have i missed any | \
         did i forget anything | have i forgotten anything | am i forgetting anything | am i forgetting something | \
         something | have we got anything | do we have anything | are there any"
    );
    let n = clause.phrase(i, ASKS)?;
    let whole = clause
        .phrase(
            i,
            phrases!(
                "am i missing | did i miss | have i missed | did i forget | have i forgotten | am i forgetting | \
         do i need to do anything"
            ),
        )
        .is_some();
    let after = i + n + usize::from(matches!(clause.at(i + n), "still" | "else" | "really" | "that's" | "big"));
    let about = phrases!(
        "about | due | pending | left | for | on | overdue | urgent | to | with | related | late | coming up | \
         tagged | important | outstanding | planned | pressing | open | i need to | i have to | i should | \
         i had to | high priority | high prio | low priority | deadlines | things left | things due | still open | \
         under | unfinished | not done | undone"
    );
    let fits = clause.phrase(after, about).is_some() || clause.date_at(after).is_some() || whole;
    let vague = matches!(clause.at(i), "nothing" | "something" | "got") && !clause.asked && clause.at(i) != "got"
        || matches!(clause.at(after), "to" | "on" | "for" | "with") && matches!(clause.at(i), "something" | "nothing")
        || clause
            .phrase(
                after,
                phrases!(
                    "to eat | to drink | to watch | to wear | on tv | to read | good | fun | to say | to declare | \
             for dinner | for lunch | to listen"
                ),
            )
            .is_some();
    (fits && !vague).then_some(0.8)
}

/// "am I all caught up", "is everything done for today", "is that all".
fn caught_up(clause: &Clause, i: usize) -> Option<f64> {
    const ASKS: Phrases = phrases!(
        "am i behind on anything | am i behind | am i late | am i done | am i finished | am i all done | \
         am i all caught up | am i caught up | am i up to date | am i all set | is everything done | \
         is everything finished | is everything complete | is it all done | are they all done | is that all | \
         is that everything | is that it | is that the lot | should i be doing something | \
         should i be doing anything | have i done everything | did i do everything | did i finish everything | \
         have i finished everything | is there more | is there much left | is there a lot left"
    );
    let n = clause.phrase(i, ASKS)?;
    let after = i
        + n
        + clause.phrase(i + n, phrases!("with everything | on everything | on my | for | with my | on")).unwrap_or(0);
    let vague = clause
        .phrase(i, phrases!("is that it | is that all | is that everything | am i late | is there more"))
        .is_some();
    ((closes(clause, after) || closes(clause, i + n)) && (!vague || clause.date_at(after).is_some())).then_some(0.72)
}

/// Entries of the list without a word for a task: "the overdue ones", "things due on Saturday", "stuff to do",
/// "everything tagged garden", "overdue?".
pub(super) fn entries(clause: &Clause, i: usize) -> bool {
    const LIMITS: Phrases = phrases!(
        "high priority | low priority | medium priority | high prio | low prio | most important | completed | done | \
         pending | overdue | finished | open | urgent | important | unfinished | undone | outstanding | incomplete | \
         remaining | late | upcoming | past due | not done | top priority | due | leftover | still open | other | \
         pressing"
    );
    const THINGS: Phrases = phrases!(
        "ones | stuff | things | jobs | business | everything | deadlines | one | to-dos | priorities | anything | \
         bits | homework | work | what"
    );
    const AFTER: Phrases = phrases!(
        "due | to do | to get done | i have to | i need to | i've got to | i still have to | left | left to do | \
         tagged | with the tag | with tag | with the label | that are | that aren't | that's | that i | i've | ive | \
         i planned | i have | i already | under | labelled | labeled | overdue | , done or not | to buy | \
         still open | that need | that haven't | that have | which | marked | i finished | i completed | i did"
    );
    let mut at = i;
    let mut limited = false;
    while at < clause.end {
        if let Some(n) = clause.phrase(
            at,
            phrases!(
                "only | just | the | my | all | all of | of | me | and | please | every | some | a | or | also | \
             what's | what is | any | any of | except"
            ),
        ) {
            at += n;
        } else if let Some(n) = clause.phrase(at, LIMITS) {
            limited = true;
            at += n;
        } else if let Some(found) = clause.date_at(at).filter(|found| found.tokens.start == at) {
            at = found.tokens.end;
        } else {
            break;
        }
    }
    if at >= clause.end || clause.at(at) == "?" {
        return limited && clause.end > i;
    }
    let Some(n) = clause.phrase(at, THINGS) else {
        return limited && (closes(clause, at) && clause.at(at) != "and" && clause.at(at) != "but");
    };
    let after = at + n;
    let rest = clause.phrase(after, phrases!("for | on | from | in | of")).unwrap_or(0);
    let dated = clause.date_at(after + rest).is_some() && after + rest < clause.end;
    let marked = clause.phrase(after, AFTER).is_some();
    let tag = clause.at(after) == "#" || clause.at(after + rest) == "#";
    limited && closes(clause, after)
        || marked
        || (dated || tag) && !matches!(clause.at(at), "one" | "work" | "anything" | "what")
}

/// A noun phrase that names entries, standing alone.
pub(super) fn fragment(clause: &Clause) -> Guess {
    let i = clause.start
        + clause
            .phrase(
                clause.start,
                phrases!(
                    "and | what about | how about | filter by | filter on | filter for | give me a rundown of | \
         give me an overview of | give me a summary of | a rundown of | an overview of | a summary of | give me | \
         run me through | walk me through | talk me through | take me through"
                ),
            )
            .unwrap_or(0);
    if clause.phrase(clause.start, phrases!("filter by tag | filter by | filter for | to do ? | to-do ?")).is_some()
        && i < clause.end
    {
        return Some((Act::List(i), 0.75));
    }
    let state = past::finished(clause, i).is_some() || shape::is_pronoun(clause.at(i));
    let done =
        matches!(clause.at(i), "done" | "finished" | "completed" | "due" | "urgent" | "important" | "late" | "other")
            && !clause.asked
            && clause.end - i <= 2;
    let alone = state && clause.end - i < 2;
    (!alone && !done && !clause.is_foreign() && entries(clause, i)).then_some((Act::List(i), 0.66))
}

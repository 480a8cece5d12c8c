//! What a remark before a command is about: "the party got cancelled, delete that reminder" is about the party.
//!
//! Asked only where the command itself says no more than "it".

use std::ops::Range;

use crate::clause::Clause;
use crate::phrases::{Phrases, phrases};
use crate::reading::Target;
use crate::target;
use crate::tense;

/// What the remark at `range` speaks of, by name.
pub(crate) fn read(clause: &mut Clause, range: Range<usize>) -> Option<Target> {
    let end = before_links(clause, &range);
    let range = range.start..end;
    if range.len() < 2 {
        return None;
    }
    let said = led(clause, &range).or_else(|| stated(clause, &range)).or_else(|| heading(clause, &range))?;
    let small = |i: usize| matches!(clause.at(i), "it" | "that" | "this" | "them" | "i" | "you" | "we" | "he" | "she");
    if said.is_empty() || said.len() > 9 || said.len() == 1 && small(said.start) {
        return None;
    }
    target::one(clause, said).filter(|target| matches!(target, Target::Named(_) | Target::Position(_)))
}

/// Leaves out ", so can you please" and its like before the command.
pub(crate) fn before_links(clause: &Clause, range: &Range<usize>) -> usize {
    const LINKS: Phrases = phrases!(
        "so | and | please | can | could | would | you | will | , | ; | . | ! | ? | : | - | – | — | then | just | \
         kindly | to | i | need | want | go | ahead | but | also | like | now | ok | okay | yeah | yes | anyway | \
         let's"
    );
    let mut end = range.end;
    while end > range.start && (LINKS.contains(clause.at(end - 1)) || clause.is_taken(end - 1)) {
        end -= 1;
    }
    end
}

/// "spoke to the accountant, mark that as done": what was done, as a task to do.
pub(crate) fn done(clause: &Clause, range: Range<usize>) -> Option<Target> {
    const WHO: Phrases =
        phrases!("i just | i already | i've just | i've already | i have | i've | i | we | just | already | finally");
    let start = range.start + clause.phrase(range.start, WHO).unwrap_or(0);
    let verb = tense::base(clause.at(start)).filter(|_| start + 1 < range.end)?;
    let stop = |i: &usize| matches!(clause.at(*i), "," | "so" | "and" | "." | ";" | "-");
    let end = (start + 1..range.end).find(stop).unwrap_or(before_links(clause, &range));
    let object = clause.rest(start + 1..end.max(start + 1));
    (!object.is_empty() && end - start <= 8).then(|| Target::Named(format!("{verb} {object}")))
}

/// "I don't need to … anymore", "I changed my mind about …".
fn led(clause: &Clause, range: &Range<usize>) -> Option<Range<usize>> {
    const LEADS: Phrases = phrases!(
        "i don't need to | i dont need to | i do not need to | i don't need | i dont need | i do not need | \
         i no longer need to | i no longer need | i no longer have to | no longer need to | no longer need | \
         i don't have to | i dont have to | i do not have to | we don't need to | we don't need | we don't have to | \
         i won't need to | i won't need | i'm not going to the | i'm not going to | i am not going to | \
         im not going to | i'm not doing | i am not doing | im not doing | i'm no longer doing | i'm not | im not | \
         i am not | i changed my mind about | changed my mind about | i've changed my mind about | i can't miss | \
         i cannot miss | i don't want to miss | i dont want to miss | i can't make it to | i can't go to | \
         i can't make | i cancelled | i canceled | i've cancelled | i've canceled | i had to cancel | forget about | \
         forget | never mind | nevermind | i don't want | i already did | i already have | i added | i ticked off | \
         i checked off | i marked | no point keeping | there's no point keeping | quit bugging me about | \
         stop bugging me about | they changed the start time of | they changed the time of | they changed | \
         they moved | they cancelled | they canceled | it's about | this is about"
    );
    let (at, n) = (range.start..range.end.min(range.start + 12))
        .filter(|i| {
            *i == range.start || matches!(clause.before(*i), "," | "so" | "and" | "but" | "as" | "since" | "." | ";")
        })
        .find_map(|i| Some((i, clause.phrase(i, LEADS)?)))?;
    let stops = phrases!(
        ", | so | anymore | any more | because | and | ; | . | since | after | by accident | by mistake | twice | \
         as done | after all"
    );
    let start = at + n;
    let end = (start + 1..range.end).find(|i| clause.phrase(*i, stops).is_some()).unwrap_or(range.end);
    (start < end).then_some(start..end)
}

/// "the party got cancelled", "my midterm has been moved to Friday", "that curtain one was a mistake".
fn stated(clause: &Clause, range: &Range<usize>) -> Option<Range<usize>> {
    const BE: Phrases = phrases!(
        "has been | have been | had been | has just been | 's been | got | gets | was | were | is | are | isn't | \
         aren't | wasn't | has | have | needs | doesn't | changed | can be"
    );
    const STATES: Phrases = phrases!(
        "cancelled | canceled | cancel | changed | moved | postponed | rescheduled | pushed | delayed | off | over | \
         done | finished | complete | completed | sent | paid | mistake | necessary | longer | sorted | needed | \
         urgent | need | happening | now | to | sold | booked | fixed | handled | duplicate | earlier | later | out"
    );
    const NOBODY: Phrases = phrases!(
        "i | we | he | she | it | they | there | you | it's | that's | what | who | i'm | which | this | that | \
         everything | nothing | something | someone | my boss | these | those"
    );
    let from = range
        .clone()
        .rev()
        .find(|i| *i > range.start && matches!(clause.before(*i), "." | "," | "!" | ";") && *i + 2 < range.end);
    let starts = [from.unwrap_or(range.start), range.start];
    starts.into_iter().find_map(|start| {
        let (at, n) = clause.seek(start + 1, BE).filter(|(at, _)| *at < range.end)?;
        let state = (at..range.end.min(at + n + 4)).any(|i| STATES.contains(clause.at(i)) && (i > at || n == 1));
        let person = clause
            .phrase(start, NOBODY)
            .is_some_and(|n| start + n == at || !matches!(clause.at(start), "that" | "this"));
        (state && !person && at <= start + 8).then_some(start..at)
    })
}

/// "for the party, …", "about that invoice task, …", "the physics homework? …".
fn heading(clause: &Clause, range: &Range<usize>) -> Option<Range<usize>> {
    const LEADS: Phrases = phrases!("for | about | regarding | concerning | as for | on | with regard to");
    let n = clause.phrase(range.start, LEADS).unwrap_or(0);
    let end = (range.start..range.end).find(|i| matches!(clause.at(*i), "," | "?" | ":" | "-")).unwrap_or(range.end);
    let named = clause.noun_in(range.start..end).is_some() || n > 0;
    let definite = n > 0 || matches!(clause.at(range.start), "the" | "my" | "that" | "our");
    (named && definite && end > range.start + n).then_some(range.start + n..end)
}

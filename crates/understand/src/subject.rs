//! What a remark before a command is about: "the party got cancelled, delete that reminder" is about the party.
//!
//! Asked only where the command itself says no more than "it".

use std::ops::Range;

use crate::clause::Clause;
use crate::lexicon;
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
    let mut end = range.end;
    while end > range.start
        && (lexicon::references::VERB_LINKS.contains(clause.at(end - 1)) || clause.is_taken(end - 1))
    {
        end -= 1;
    }
    end
}

/// "spoke to the accountant, mark that as done": what was done, as a task to do.
pub(crate) fn done(clause: &Clause, range: Range<usize>) -> Option<Target> {
    let start = range.start + clause.phrase(range.start, lexicon::references::DEED_OPENERS).unwrap_or(0);
    let verb = tense::base(clause.at(start)).filter(|_| start + 1 < range.end)?;
    let stop = |i: &usize| matches!(clause.at(*i), "," | "so" | "and" | "." | ";" | "-");
    let end = (start + 1..range.end).find(stop).unwrap_or(before_links(clause, &range));
    let object = clause.rest(start + 1..end.max(start + 1));
    (!object.is_empty() && end - start <= 8).then(|| Target::Named(format!("{verb} {object}")))
}

/// "I don't need to … anymore", "I changed my mind about …".
fn led(clause: &Clause, range: &Range<usize>) -> Option<Range<usize>> {
    let (at, n) = (range.start..range.end.min(range.start + 12))
        .filter(|i| {
            *i == range.start || matches!(clause.before(*i), "," | "so" | "and" | "but" | "as" | "since" | "." | ";")
        })
        .find_map(|i| Some((i, clause.phrase(i, lexicon::references::UNNEEDED_LEADS)?)))?;
    let start = at + n;
    let end =
        (start + 1..range.end).find(|i| clause.phrase(*i, lexicon::references::STOPS).is_some()).unwrap_or(range.end);
    (start < end).then_some(start..end)
}

/// "the party got cancelled", "my midterm has been moved to Friday", "that curtain one was a mistake".
fn stated(clause: &Clause, range: &Range<usize>) -> Option<Range<usize>> {
    let from = range
        .clone()
        .rev()
        .find(|i| *i > range.start && matches!(clause.before(*i), "." | "," | "!" | ";") && *i + 2 < range.end);
    let starts = [from.unwrap_or(range.start), range.start];
    starts.into_iter().find_map(|start| {
        let (at, n) = clause.seek(start + 1, lexicon::references::PASSIVES).filter(|(at, _)| *at < range.end)?;
        let state = (at..range.end.min(at + n + 4))
            .any(|i| lexicon::references::STATES.contains(clause.at(i)) && (i > at || n == 1));
        let person = clause
            .phrase(start, lexicon::references::NOT_TASKS)
            .is_some_and(|n| start + n == at || !matches!(clause.at(start), "that" | "this"));
        (state && !person && at <= start + 8).then_some(start..at)
    })
}

/// "for the party, …", "about that invoice task, …", "the physics homework? …".
fn heading(clause: &Clause, range: &Range<usize>) -> Option<Range<usize>> {
    let n = clause.phrase(range.start, lexicon::grammar::TOPIC_LEADS).unwrap_or(0);
    let end = (range.start..range.end).find(|i| matches!(clause.at(*i), "," | "?" | ":" | "-")).unwrap_or(range.end);
    let named = clause.noun_in(range.start..end).is_some() || n > 0;
    let definite = n > 0 || matches!(clause.at(range.start), "the" | "my" | "that" | "our");
    (named && definite && end > range.start + n).then_some(range.start + n..end)
}

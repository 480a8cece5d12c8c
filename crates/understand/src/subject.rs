//! Finds the subject of a remark before a command: "the party got cancelled, delete that reminder" refers to the
//! party.
//!
//! Used only if the command itself has no more than a pronoun.

use std::ops::Range;

use crate::clause::Clause;
use crate::lexicon;
use crate::parsed::TaskTarget;
use crate::target;
use crate::tense;

/// Returns the subject of the remark in `range` as a name or a position. Accepts "I don't need …" ([`after_lead`]),
/// "the party got cancelled" ([`stated_subject`]) and "for the party, …" ([`heading_subject`]). Returns `None` for
/// other phrasings and a remark of less than two tokens. Also `None` if the subject is a pronoun, refers to several
/// tasks or has more than nine tokens. Consumes dates inside of the name.
pub(crate) fn parse(clause: &mut Clause, range: Range<usize>) -> Option<TaskTarget> {
    let end = trim_links(clause, &range);
    let range = range.start..end;
    if range.len() < 2 {
        return None;
    }
    let subject = after_lead(clause, &range)
        .or_else(|| stated_subject(clause, &range))
        .or_else(|| heading_subject(clause, &range))?;
    let small = |i: usize| matches!(clause.at(i), "it" | "that" | "this" | "them" | "i" | "you" | "we" | "he" | "she");
    if subject.is_empty() || subject.len() > 9 || subject.len() == 1 && small(subject.start) {
        return None;
    }
    target::parse_one(clause, subject).filter(|target| matches!(target, TaskTarget::Named(_) | TaskTarget::Position(_)))
}

/// Returns the end of the range without ", so can you please" and similar words, and consumed tokens. It is the start
/// if nothing else remains.
pub(crate) fn trim_links(clause: &Clause, range: &Range<usize>) -> usize {
    let mut end = range.end;
    while end > range.start
        && (lexicon::references::VERB_LINKS.contains(clause.at(end - 1)) || clause.is_consumed(end - 1))
    {
        end -= 1;
    }
    end
}

/// Returns a past activity as a task, with the verb in its base form: "spoke to the accountant, mark that as done".
/// "I", "I just" and similar words may come first. The object ends before a comma, "so", "and" or a similar mark.
/// Returns `None` without a past tense or an object, and if verb and object have more than eight tokens. Consumes
/// nothing.
pub(crate) fn parse_deed(clause: &Clause, range: Range<usize>) -> Option<TaskTarget> {
    let start = range.start + clause.phrase(range.start, lexicon::references::DEED_OPENERS).unwrap_or(0);
    let verb = tense::base_form(clause.at(start)).filter(|_| start + 1 < range.end)?;
    let stop = |i: &usize| matches!(clause.at(*i), "," | "so" | "and" | "." | ";" | "-");
    let end = (start + 1..range.end).find(stop).unwrap_or(trim_links(clause, &range));
    let object = clause.remaining_text(start + 1..end.max(start + 1));
    (!object.is_empty() && end - start <= 8).then(|| TaskTarget::Named(format!("{verb} {object}")))
}

/// Matches "I don't need to … anymore", "I changed my mind about …" within the first twelve tokens, at the start or
/// after a link. Returns the words after the lead, up to a comma, "so", "anymore", "because" or a similar word. Returns
/// `None` without a lead or without words after it.
fn after_lead(clause: &Clause, range: &Range<usize>) -> Option<Range<usize>> {
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

/// Matches "the party got cancelled", "my midterm has been moved to Friday", "that curtain one was a mistake". Looks at
/// the words after the last mark first, then at the whole range. The state must follow the verb within four tokens.
/// Returns the words before the verb, at most eight. Subjects such as "I", "it" or "they" do not match; "that one"
/// does. Returns `None` otherwise.
fn stated_subject(clause: &Clause, range: &Range<usize>) -> Option<Range<usize>> {
    let from = range
        .clone()
        .rev()
        .find(|i| *i > range.start && matches!(clause.before(*i), "." | "," | "!" | ";") && *i + 2 < range.end);
    let starts = [from.unwrap_or(range.start), range.start];
    starts.into_iter().find_map(|start| {
        let (at, n) = clause.find_phrase(start + 1, lexicon::references::PASSIVES).filter(|(at, _)| *at < range.end)?;
        let state = (at..range.end.min(at + n + 4))
            .any(|i| lexicon::references::STATES.contains(clause.at(i)) && (i > at || n == 1));
        let person = clause
            .phrase(start, lexicon::references::NOT_TASKS)
            .is_some_and(|n| start + n == at || !matches!(clause.at(start), "that" | "this"));
        (state && !person && at <= start + 8).then_some(start..at)
    })
}

/// Matches "for the party, …", "about that invoice task, …", "the physics homework task? …". Returns the words up to a
/// comma, "?", ":" or "-", without the lead. Without a lead such as "about", they begin with "the", "my", "that" or
/// "our". Then they also need a noun for a task. Returns `None` otherwise.
fn heading_subject(clause: &Clause, range: &Range<usize>) -> Option<Range<usize>> {
    let n = clause.phrase(range.start, lexicon::grammar::TOPIC_LEADS).unwrap_or(0);
    let end = (range.start..range.end).find(|i| matches!(clause.at(*i), "," | "?" | ":" | "-")).unwrap_or(range.end);
    let named = clause.noun_in(range.start..end).is_some() || n > 0;
    let definite = n > 0 || matches!(clause.at(range.start), "the" | "my" | "that" | "our");
    (named && definite && end > range.start + n).then_some(range.start + n..end)
}

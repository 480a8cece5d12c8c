//! Commands whose verb is said once: "move the gym to Tuesday and the dentist to Wednesday", "remind me to call Tom at 3
//! and to email Sue at 4", "tag the invoice as finance and the slides as work".
//!
//! Only where both sides say all that the verb needs: "move the desk and the lamp to Friday" is one change of two tasks.

use std::ops::Range;

use crate::attributes;
use crate::clause::Clause;
use crate::command::{self, Draft};
use crate::create::{self, Form};
use crate::intent;
use crate::lexicon;
use crate::reading::{Command, Intent};
use crate::tokens::Words;
use crate::update::{self, Change};

/// As many as anybody says in one breath.
const MOST: usize = 12;

/// The commands of a stretch in which the first is `first`, or nothing if it holds no other.
pub(crate) fn read(words: &Words, range: Range<usize>, first: &Command, now: &jiff::Zoned) -> Option<Vec<Draft>> {
    // Most stretches are one command, and a long text is no row of short ones: neither is looked at twice.
    let links = range.clone().filter(|i| words.is_one_of(*i, lexicon::clauses::OBJECT_LINKS)).take(MOST + 1).count();
    let kind = matches!(first.intent, Intent::CreateTask | Intent::UpdateTask | Intent::ListTasks);
    if !(1..=MOST).contains(&links) || !kind || first.missing.is_some() {
        return None;
    }
    let whole = Clause::new(words, range.clone(), now);
    let cuts = cuts(&whole, first);
    let mut drafts = vec![command::read(&mut Clause::new(words, range.start..cuts.first()?.start, now))];
    for (n, cut) in cuts.iter().enumerate() {
        let end = cuts.get(n + 1).map_or(range.end, |next| next.start);
        drafts.push(Draft::by_rules(again(&mut Clause::new(words, cut.end..end, now), first)?));
    }
    let same = |draft: &Draft| draft.command.intent == first.intent && draft.command.missing.is_none();
    drafts.iter().all(same).then_some(drafts)
}

/// Where the sides are divided: each time the tokens of the link.
fn cuts(clause: &Clause, first: &Command) -> Vec<Range<usize>> {
    let mut cuts: Vec<Range<usize>> = Vec::new();
    let mut i = clause.start + 1;
    let mut from = clause.start;
    while i < clause.end {
        let Some(n) = clause.phrase(i, lexicon::clauses::OBJECT_SEPARATORS).filter(|_| clause.date_at(i).is_none())
        else {
            i += 1;
            continue;
        };
        let end = (i + n..clause.end)
            .find(|k| clause.phrase(*k, lexicon::clauses::OBJECT_SEPARATORS).is_some())
            .unwrap_or(clause.end);
        if divides(clause, first, from..i, i + n..end) {
            cuts.push(i..i + n);
            from = i + n;
        }
        i += n;
    }
    cuts
}

/// Whether both sides are commands of the kind of the first.
fn divides(clause: &Clause, first: &Command, before: Range<usize>, after: Range<usize>) -> bool {
    let dated = |side: &Range<usize>| clause.dates.iter().any(|found| side.contains(&found.tokens.start));
    let definite = matches!(clause.at(after.start), "the" | "my" | "task" | "number" | "#");
    match first.intent {
        Intent::CreateTask => {
            let another = clause.phrase(after.start, lexicon::clauses::ANOTHER_TASK).is_some();
            let to = usize::from(clause.at(after.start) == "to");
            let doing = (to == 1 || intent::is_doing(clause, after.start)) && after.len() > 1 + to;
            let closed = clause.dates.iter().any(|found| found.tokens.end == before.end);
            another || doing && dated(&after) && (closed || to == 1 && dated(&before))
        }
        Intent::UpdateTask if definite => {
            let to = |side: &Range<usize>| {
                dated(side) && side.clone().any(|i| matches!(clause.at(i), "to" | "until" | "till"))
            };
            let level = |side: &Range<usize>| side.clone().any(|i| attributes::priority_at(clause, i).is_some());
            let label = |side: &Range<usize>| side.clone().any(|i| matches!(clause.at(i), "as" | "with" | "under"));
            first.when.is_some() && to(&before) && to(&after)
                || first.priority.is_some() && level(&before) && level(&after)
                || !first.tags.is_empty() && label(&before) && label(&after)
        }
        Intent::ListTasks => {
            let all = clause.phrase(after.start, lexicon::clauses::UNDIVIDED_OPENERS).is_some();
            let kind = matches!(clause.at(after.start), "the" | "my") && clause.noun_in(after.clone()).is_some();
            after.len() > 1 && (all || kind && clause.noun_in(before).is_some())
        }
        _ => false,
    }
}

/// The command of a side that has no verb of its own.
fn again(clause: &mut Clause, first: &Command) -> Option<Command> {
    let start = clause.start;
    let end = clause.end;
    if start >= end {
        return None;
    }
    Some(match first.intent {
        Intent::CreateTask => {
            let another = clause.phrase(start, lexicon::clauses::ANOTHER_TASK).unwrap_or(0);
            create::read(clause, start + another, Form::Rest, first.confidence)
        }
        Intent::UpdateTask => {
            let level = attributes::closing_priority(clause, start + 1).filter(|_| first.priority.is_some());
            let change = match level {
                Some((_, priority)) => Change::Priority(priority),
                None if !first.tags.is_empty() => Change::Tags,
                None => Change::Due,
            };
            update::read(clause, start..end, change, first.confidence)
        }
        _ => command::listed(clause, first.confidence),
    })
}

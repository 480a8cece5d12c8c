//! Which tasks a list shows: by status, priority, due date, tag, or words to look for. Takes the tokens that say so.

use crate::phrases::{Phrases, phrases};
use std::ops::Range;

use model::task::Priority;

use crate::attributes;
use crate::clause::Clause;
use crate::dates::Day;
use crate::reading::{DueFilter, Filter, StatusFilter, When};
use crate::spelling::resembles;

/// What leaves something out; no filter can.
pub(crate) const EXCEPTIONS: Phrases = phrases!(
    "except | except for | other than | apart from | aside from | excluding | everything but | all but | \
     not urgent | not important | not high priority | not low priority | not tagged | not due | not about | \
     aren't urgent | aren't important | aren't due | aren't tagged | aren't high priority"
);

pub(crate) fn read(clause: &mut Clause, range: Range<usize>, filter: &mut Filter) {
    due(clause, range.clone(), filter);
    let mut tags = attributes::tags(clause, range.start, range.end);
    filter.tags.append(&mut tags);
    let mut i = range.start;
    while i < range.end {
        if clause.is_taken(i) || clause.words.is_quoted(i) {
            i += 1;
            continue;
        }
        i = word(clause, i, filter);
    }
}

/// Reads the filter word at `i`, if there is one, and says where to go on.
fn word(clause: &mut Clause, i: usize, filter: &mut Filter) -> usize {
    const COMPLETED: Phrases = phrases!(
        "did i finish | did i complete | did i get done | have i done | completed | already done | finished | \
         checked off | done | complete"
    );
    const PENDING: Phrases = phrases!(
        "haven't i done | haven't i finished | haven't i completed | haven't done | haven't finished | \
         haven't completed | haven't gotten to | havent done | havent finished | not finish | not complete | \
         aren't done | aren't finished | aren't complete | aren't completed | arent done | isn't done | not yet done | \
         not been done | yet to do | still have to | still need to | still to do | still on | left | to go | \
         not done | not completed | not finished | still open | pending | open | incomplete | unfinished | \
         uncompleted | outstanding | remaining | undone | active | left to do"
    );
    const DATELESS: Phrases = phrases!(
        "without a due date | without due date | without due dates | without a deadline | without deadline | \
         without a date | with no due date | with no due dates | with no deadline | with no date | \
         that have no due date | no due date"
    );
    if let Some(n) = clause.phrase(i, DATELESS) {
        filter.unsupported = true;
        clause.take(i..i + n);
        return i + n;
    }
    const OVERDUE: Phrases = phrases!(
        "overdue | past due | over due | late | past their due date | past its due date | past the due date | \
         past their deadline | past the deadline | past deadline | past their due dates | behind on"
    );
    const EITHER: Phrases = phrases!(
        "completed and pending | pending and completed | open and completed | completed and open | done and open | \
         open and done | done and not done | done or not | finished or not | completed or not | \
         done and pending | pending and done | complete and incomplete | completed and incomplete | \
         including the finished | including the completed | including the done | including completed | \
         including finished | including done | finished and unfinished | done and undone | complete or not"
    );
    if let Some(n) = clause.phrase(i, EITHER) {
        filter.status = Some(StatusFilter::All);
        clause.take(i..i + n);
        return i + n;
    }
    if let Some(n) = clause.phrase(i, PENDING).filter(|_| clause.at(i) != "open" || i > clause.start) {
        filter.status = Some(StatusFilter::Pending);
        clause.take(i..i + n);
        return i + n;
    }
    if let Some(n) = clause.phrase(i, COMPLETED).filter(|_| !done_is_verb(clause, i)) {
        filter.status = Some(StatusFilter::Completed);
        clause.take(i..i + n);
        return i + n;
    }
    if let Some(known) = misspelt(clause, i) {
        match known {
            "overdue" => filter.due = Some(DueFilter::Overdue),
            "pending" => filter.status = Some(StatusFilter::Pending),
            _ => filter.status = Some(StatusFilter::Completed),
        }
        clause.take(i..i + 1);
        return i + 1;
    }
    if let Some(n) = clause.phrase(i, OVERDUE) {
        filter.due = Some(DueFilter::Overdue);
        clause.take(i..i + n);
        return i + n;
    }
    match priority(clause, i) {
        Some((priority, n)) => {
            filter.priority = Some(priority);
            clause.take(i..i + n);
            i + n
        }
        None => i + 1,
    }
}

/// A slip of the keys before a word for tasks: "overdu tasks".
fn misspelt(clause: &Clause, i: usize) -> Option<&'static str> {
    let word = clause.at(i);
    if word.len() < 6 || clause.noun_at(i + 1).is_none() {
        return None;
    }
    ["overdue", "pending", "completed", "finished"].into_iter().find(|known| word != *known && resembles(word, known))
}

fn priority(clause: &Clause, i: usize) -> Option<(Priority, usize)> {
    if let Some(n) = clause.phrase(i, phrases!("most important | the most important")) {
        return Some((Priority::High, n));
    }
    attributes::priority_at(clause, i)
}

/// "what needs to be done" asks for what is not.
fn done_is_verb(clause: &Clause, i: usize) -> bool {
    let before = clause.before(i);
    matches!(before, "be" | "get" | "to" | "getting") || i == clause.start && clause.noun_at(i + 1).is_none()
}

fn due(clause: &mut Clause, range: Range<usize>, filter: &mut Filter) {
    let inside = |span: &Range<usize>| span.end > range.start && span.end <= range.end && span.start + 3 > range.start;
    let Some(found) = clause.dates.iter().find(|found| inside(&found.tokens)).cloned() else { return };
    if found.parts.repeat.is_some() {
        return;
    }
    clause.take(found.tokens.clone());
    let lead = found.tokens.start + usize::from(clause.at(found.tokens.start) == "due");
    let open = matches!(clause.at(lead), "before" | "after" | "until" | "till" | "since" | "by");
    filter.due = if open { None } else { due_filter(clause, &found) };
    filter.unsupported |= filter.due.is_none();
}

fn due_filter(clause: &Clause, found: &crate::dates::Found) -> Option<DueFilter> {
    let today = clause.now.date();
    if let Some(Day::Span { start, end, .. }) = found.parts.day {
        let week = end.since(start).is_ok_and(|span| span.get_days() == 7);
        return (week && start <= today && today < end).then_some(DueFilter::ThisWeek);
    }
    let date = match found.when(clause.now)? {
        When::Day(date) => date,
        When::Time(at) => at.date(),
    };
    Some(if date == today {
        DueFilter::Today
    } else if Some(date) == today.tomorrow().ok() {
        DueFilter::Tomorrow
    } else {
        DueFilter::Day(date)
    })
}

//! What is left hanging at the ends of a title or a name when dates, tags and courtesies around it are taken away.

use std::ops::Range;

use crate::clause::Clause;
use crate::lexicon;
use crate::phrases::Phrases;

/// The name of a task without what hangs at its ends.
pub(crate) fn trimmed(clause: &Clause, range: Range<usize>) -> Range<usize> {
    cut(clause, range, lexicon::titles::REFERENCE_STOPS)
}

/// The same for the title of a new task.
pub(crate) fn title(clause: &Clause, range: Range<usize>) -> Range<usize> {
    cut(clause, range, lexicon::titles::TITLE_STOPS)
}

fn cut(clause: &Clause, range: Range<usize>, led_on: Phrases) -> Range<usize> {
    let mut range = range.start..range.end.min(clause.end);
    let mut cut = false;
    while let Some(last) = range.end.checked_sub(1).filter(|last| *last > range.start) {
        let again = clause.at(last) == "again" && clause.before(last) == "and";
        let led = (cut || clause.date_at(last + 1).is_some()) && led_on.contains(clause.at(last));
        let hangs =
            clause.is_spent(last..range.end) || lexicon::titles::NEVER_LAST.contains(clause.at(last)) || led || again;
        if !hangs {
            break;
        }
        cut |= led || clause.date_at(last).is_some();
        range.end = last;
    }
    while range.len() > 1
        && (clause.is_spent(range.start..range.start + 1) || matches!(clause.at(range.start), "and" | "or" | "but"))
    {
        range.start += 1;
    }
    range
}

//! Trims words that remain at the ends of a title or a name after dates, tags and courtesies are consumed.

use std::ops::Range;

use crate::clause::Clause;
use crate::lexicon;
use crate::phrases::Phrases;

/// Trims the range of the name of a task.
pub(crate) fn trim_name(clause: &Clause, range: Range<usize>) -> Range<usize> {
    trim_edges(clause, range, lexicon::titles::REFERENCE_STOPS)
}

/// Trims the range of the title of a new task.
pub(crate) fn trim_title(clause: &Clause, range: Range<usize>) -> Range<usize> {
    trim_edges(clause, range, lexicon::titles::TITLE_STOPS)
}

/// Trims marks, consumed tokens and hanging words at both ends. At the end, hanging words are "and", "the", "because"
/// and similar ones, and "again" after "and". At the start they are "and", "or" and "but". Words of `led_on` ("to",
/// "for") are trimmed only at the end, before a date or after another such cut. Keeps at least one token of a range
/// that is not empty. The range is cut at the end of the clause.
fn trim_edges(clause: &Clause, range: Range<usize>, led_on: Phrases) -> Range<usize> {
    let mut range = range.start..range.end.min(clause.end);
    let mut cut = false;
    while let Some(last) = range.end.checked_sub(1).filter(|last| *last > range.start) {
        let again = clause.at(last) == "again" && clause.before(last) == "and";
        let led = (cut || clause.date_at(last + 1).is_some()) && led_on.contains(clause.at(last));
        let hangs = clause.is_exhausted(last..range.end)
            || lexicon::titles::NEVER_LAST.contains(clause.at(last))
            || led
            || again;
        if !hangs {
            break;
        }
        cut |= led || clause.date_at(last).is_some();
        range.end = last;
    }
    while range.len() > 1
        && (clause.is_exhausted(range.start..range.start + 1) || matches!(clause.at(range.start), "and" | "or" | "but"))
    {
        range.start += 1;
    }
    range
}

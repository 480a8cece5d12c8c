//! What is left hanging at the ends of a title or a name when dates, tags and courtesies around it are taken away.

use std::ops::Range;

use crate::clause::Clause;
use crate::phrases::{Phrases, phrases};

/// Words that cannot end a title.
const NEVER_LAST: Phrases = phrases!("and | or | but | the | a | an | my | so | & | + | because | then");

/// Words that cannot end one where a date stood after them: "the recital is", "the party for", "the trip this".
const LED_ON: Phrases = phrases!(
    "is | are | was | were | be | will | to | for | from | by | of | at | until | till | this | that | not | no | \
     starts | start | falls | fall | set | scheduled | due | happening | occurring | coming | again | now | which | \
     with | b4 | it's | its | comes"
);

/// The stretch without what hangs at its ends.
pub(crate) fn trimmed(clause: &Clause, range: Range<usize>) -> Range<usize> {
    let mut range = range.start..range.end.min(clause.end);
    while let Some(last) = range.end.checked_sub(1).filter(|last| *last > range.start) {
        let led = last + 1 < clause.end && clause.is_taken(last + 1) && LED_ON.contains(clause.at(last));
        let hangs = clause.is_spent(last..range.end) || NEVER_LAST.contains(clause.at(last)) || led;
        if !hangs {
            break;
        }
        range.end = last;
    }
    while range.len() > 1
        && (clause.is_spent(range.start..range.start + 1) || matches!(clause.at(range.start), "and" | "or" | "but"))
    {
        range.start += 1;
    }
    range
}

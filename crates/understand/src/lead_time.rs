//! Lead times of reminders: "10 minutes before", "an hour early". They are not part of a title or a name.

use crate::clause::Clause;
use crate::lexicon;
use crate::numbers;

/// Returns the position of the unit after the amount at `i`: "minutes" of "ten minutes". Returns `None` if there is no
/// amount, or if no unit follows it.
pub(crate) fn unit_at(clause: &Clause, i: usize) -> Option<usize> {
    let (_, len) = numbers::amount(clause.words, i)?;
    is_unit(clause, i + len).then_some(i + len)
}

/// Returns true if the word at `i` is a unit of a lead time.
pub(crate) fn is_unit(clause: &Clause, i: usize) -> bool {
    lexicon::dates::LEAD_TIME_UNITS.contains(clause.at(i))
}

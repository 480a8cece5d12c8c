//! "10 minutes before", "an hour early": how long before something to speak up. It is no part of a title or of a name.

use crate::clause::Clause;
use crate::lexicon;
use crate::numbers;

/// Where the unit of the distance that begins at `i` stands: "minutes" of "ten minutes".
pub(crate) fn unit(clause: &Clause, i: usize) -> Option<usize> {
    let (_, len) = numbers::amount(clause.words, i)?;
    is_unit(clause, i + len).then_some(i + len)
}

pub(crate) fn is_unit(clause: &Clause, i: usize) -> bool {
    lexicon::dates::LEAD_TIME_UNITS.contains(clause.at(i))
}

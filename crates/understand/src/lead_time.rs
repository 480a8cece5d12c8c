//! "10 minutes before", "an hour early": how long before something to speak up. It is no part of a title or of a name.

use crate::clause::Clause;
use crate::numbers;
use crate::phrases::{Phrases, phrases};

const UNITS: Phrases = phrases!(
    "minute | minutes | min | mins | hour | hours | hr | hrs | day | days | week | weeks | night | month | months | \
     morning"
);

/// What says that the time lies before something.
pub(crate) const AHEAD: Phrases = phrases!(
    "before | prior to | prior | early | beforehand | ahead of time | ahead of | ahead | in advance of | in advance | \
     earlier"
);

/// Where the unit of the distance that begins at `i` stands: "minutes" of "ten minutes".
pub(crate) fn unit(clause: &Clause, i: usize) -> Option<usize> {
    let (_, len) = numbers::amount(clause.words, i)?;
    is_unit(clause, i + len).then_some(i + len)
}

pub(crate) fn is_unit(clause: &Clause, i: usize) -> bool {
    UNITS.contains(clause.at(i))
}

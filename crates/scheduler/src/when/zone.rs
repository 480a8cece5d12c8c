//! What civil times are in a time zone, on the days on which clocks are changed too. The rule is Vixie cron's:
//!
//! - An expression that names its times (no `*` at the beginning of its hour, minute or second) runs once for each of them.
//!   A time that the clock skips is run right after the gap, together with whatever else falls there; of a time that comes
//!   twice, the first counts.
//! - Any other expression follows the clock on the wall: what is skipped is not run, what comes twice is run twice.

use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};
use jiff::{SignedDuration, Timestamp};

use super::cron::Cron;

/// The first of the expression's times after `after`.
pub(super) fn next(cron: &Cron, zone: &TimeZone, after: Timestamp) -> Option<Timestamp> {
    if cron.fixed { named(cron, zone, after) } else { by_the_clock(cron, zone, after) }
}

fn named(cron: &Cron, zone: &TimeZone, after: Timestamp) -> Option<Timestamp> {
    let mut civil = zone.to_datetime(after);
    loop {
        civil = cron.next(civil, false)?;
        let at = instant(zone, civil)?;
        // In the second pass of an hour that comes twice, the times of that hour are over.
        if at > after {
            return Some(at);
        }
    }
}

/// When a civil time is: never twice, and always at some time.
fn instant(zone: &TimeZone, civil: DateTime) -> Option<Timestamp> {
    match zone.to_ambiguous_timestamp(civil).offset() {
        AmbiguousOffset::Unambiguous { offset } | AmbiguousOffset::Fold { before: offset, .. } => {
            offset.to_timestamp(civil).ok()
        }
        AmbiguousOffset::Gap { before, .. } => {
            // By the clock as it was before, the gap has begun by then.
            let within = before.to_timestamp(civil).ok()?.checked_add(SignedDuration::from_nanos(1)).ok()?;
            zone.preceding(within).next().map(|change| change.timestamp())
        }
    }
}

/// From one change of the clock to the next; in between every civil time comes once.
fn by_the_clock(cron: &Cron, zone: &TimeZone, after: Timestamp) -> Option<Timestamp> {
    let mut from = after;
    let mut inclusive = false;
    let mut changes = zone.following(after);
    loop {
        let offset: Offset = zone.to_offset(from);
        let change = changes.next().map(|change| change.timestamp());
        let found = cron.next(offset.to_datetime(from), inclusive).and_then(|civil| offset.to_timestamp(civil).ok());
        match change {
            Some(change) if found.is_none_or(|found| found >= change) => (from, inclusive) = (change, true),
            _ => return found,
        }
    }
}

//! Maps the civil times of a cron expression to instants in a time zone, across daylight saving changes. The rules are
//! those of Vixie cron:
//!
//! - A fixed expression (no leading `*` in its hour, minute and second) runs once for each of its times. A skipped time
//!   runs right after the gap, together with all other times in the gap. Of a repeated time, the first one runs.
//! - Any other expression follows the wall clock. Skipped times do not run, repeated times run twice.

use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};
use jiff::{SignedDuration, Timestamp};

use super::cron::CronExpression;

/// Returns the first occurrence of the expression after `after`, or `None` if there is none.
pub(super) fn next(cron: &CronExpression, zone: &TimeZone, after: Timestamp) -> Option<Timestamp> {
    if cron.is_fixed { next_fixed(cron, zone, after) } else { next_by_wall_clock(cron, zone, after) }
}

/// Returns the first occurrence of a fixed expression after `after`. Skipped and repeated times are mapped by
/// [`instant`]. Returns `None` if there is none or it is out of range.
fn next_fixed(cron: &CronExpression, zone: &TimeZone, after: Timestamp) -> Option<Timestamp> {
    let mut civil = zone.to_datetime(after);
    loop {
        civil = cron.next(civil, false)?;
        let at = instant(zone, civil)?;
        // In the second pass of a repeated hour, the times of that hour have passed.
        if at > after {
            return Some(at);
        }
    }
}

/// Returns the instant of a civil time: the first one if it is repeated, the end of the gap if it is skipped. Returns
/// `None` if it is out of range.
fn instant(zone: &TimeZone, civil: DateTime) -> Option<Timestamp> {
    match zone.to_ambiguous_timestamp(civil).offset() {
        AmbiguousOffset::Unambiguous { offset } | AmbiguousOffset::Fold { before: offset, .. } => {
            offset.to_timestamp(civil).ok()
        }
        AmbiguousOffset::Gap { before, .. } => {
            // With the offset before the change, this instant is after the start of the gap.
            let within = before.to_timestamp(civil).ok()?.checked_add(SignedDuration::from_nanos(1)).ok()?;
            zone.preceding(within).next().map(|change| change.timestamp())
        }
    }
}

/// Returns the first occurrence after `after` of an expression that follows the wall clock, or `None` if there is none.
/// Searches from one offset change to the next. Between two changes, every civil time occurs once, so a skipped time
/// does not occur and a repeated time occurs twice.
fn next_by_wall_clock(cron: &CronExpression, zone: &TimeZone, after: Timestamp) -> Option<Timestamp> {
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

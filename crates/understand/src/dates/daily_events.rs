//! Parses times named by a daily event: "after lunch", "before bed", "at sunset".
//!
//! Inside of a sentence most of them belong to the activity and stay in the title.

use super::DateScan;
use super::clock::{ClockTime, DayHalf};
use crate::lexicon;

/// The hours before, at and after lunch.
const LUNCH: [i8; 3] = [11, 12, 13];

/// Returns the hours before, at and after the event at `i`, and the next position. An hour is 0 if it has no value.
fn event_hours(scan: &DateScan, i: usize) -> Option<([i8; 3], usize)> {
    let (hours, name) = match scan.at(i) {
        "breakfast" => ([7, 8, 9], lexicon::habits::BREAKFAST),
        "lunch" | "lunchtime" => (LUNCH, lexicon::habits::LUNCH),
        "dinner" | "supper" | "dinnertime" | "suppertime" => ([17, 18, 19], lexicon::habits::DINNER),
        "work" => ([8, 0, 17], lexicon::habits::WORK),
        "school" => ([8, 0, 15], lexicon::habits::SCHOOL),
        "bed" => ([21, 0, 0], lexicon::habits::BED),
        "bedtime" => ([21, 21, 0], lexicon::habits::BEDTIME),
        "dawn" | "sunrise" => ([6, 6, 6], lexicon::habits::SUNRISE),
        "sunset" | "dusk" | "sundown" => ([18, 18, 18], lexicon::habits::SUNSET),
        _ => return None,
    };
    Some((hours, i + scan.phrase(i, name)?))
}

/// Parses a daily event at `i` after a preposition. Returns the time, which is an hour of the 24-hour clock, and its
/// end. Inside of a sentence, only the sun and lunchtime count. Returns `None` if the event has no hour for the
/// preposition ("after bed").
pub(crate) fn parse(scan: &DateScan, i: usize, lead_start: usize) -> Option<(ClockTime, usize)> {
    let (hours, end) = event_hours(scan, i).filter(|_| i > lead_start)?;
    let position = match scan.before(i) {
        "before" => 0,
        "at" | "by" | "around" | "during" | "until" | "till" | "over" => 1,
        "after" => 2,
        _ => return None,
    };
    let hour = hours.get(position).copied().filter(|hour| *hour > 0)?;
    // "buy milk after work" is a title. A time counts if it is the whole text, or if it refers to the sun or to
    // lunchtime.
    let sun = hours.first() == hours.last() || position == 1 && hours == LUNCH;
    let closed =
        scan.can_end_at(end) && !matches!(scan.at(end), "with" | "at" | "in" | "for" | "of" | "and" | "is" | "my");
    (scan.covers_all(lead_start, end) || sun && closed)
        .then_some((ClockTime { hour, minute: 0, second: 0, half: DayHalf::Exact }, end))
}

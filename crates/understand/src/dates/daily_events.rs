//! Parses times named by a daily event: "after lunch", "before bed", "at sunset".
//!
//! Inside of a sentence most of them belong to the activity and stay in the title.
//!
//! Conventions of the `dates` module: `i` is the first token of the piece and `lead_start` the first of the
//! prepositions before it. A parser returns its result and the position after it, or `None` if nothing matches. "A noun
//! follows" means that an ordinary word follows, see [`DateScan::can_end_at`].

use super::clock::{ClockTime, DayHalf};
use super::{DateParts, DateScan, context};
use crate::lexicon;

/// The hours before, at and after lunch.
const LUNCH: [i8; 3] = [11, 12, 13];

/// Returns the hours before, at and after the event at `i`, and the next position. An hour is 0 if it has no value.
/// Breakfast is 7, 8, 9. Lunch is 11, 12, 13. Dinner is 17, 18, 19. Work is 8, 0, 17; school 8, 0, 15. Bed is 21, 0, 0;
/// bedtime 21, 21, 0. Sunrise is always 6, sunset always 18. Returns `None` for any other word.
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

/// Parses a daily event at `i`. The preposition directly before it selects the hour: "before", "after", or one of "at",
/// "by", "around", "during", "until", "till" and "over". Returns an hour of the 24-hour clock and its end. As the whole
/// text, also with a day ("after work tomorrow"), every event counts. Inside of a sentence, only the sun and lunch after one of the group of "at" count. There,
/// no noun may follow, and none of "with", "at", "in", "for", "of", "and", "is" and "my". Returns `None` without such a
/// preposition, and if the event has no hour for it ("after bed").
pub(crate) fn parse(scan: &DateScan, i: usize, lead_start: usize, parts: &DateParts) -> Option<(ClockTime, usize)> {
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
    let beside = || {
        let after_day = parts.names_day() && parts.part.is_none() && scan.covers_all(scan.start, end);
        after_day && context::begins_text(scan, i) || context::precedes_last_day(scan, lead_start, end, parts)
    };
    (scan.covers_all(lead_start, end) || sun && closed || beside())
        .then_some((ClockTime { hour, minute: 0, second: 0, half: DayHalf::Exact }, end))
}
